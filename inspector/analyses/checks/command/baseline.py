"""Compare checks with those of an earlier run: what is new, worse, better or gone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

from inspector.analyses.checks.result import REPORTED, SEVERITIES, STATUSES, Baseline, Check, Checks, EvidenceChange
from inspector.errors import InspectorError, RequestError
from inspector.program import command_line
from inspector.results.findings import UNCHECKED
from inspector.results.plain import to_json
from inspector.store.readers.jsons import read_json

MAX_NBYTES = 100_000_000
RANK = {severity: place for place, severity in enumerate(SEVERITIES)}
ORDER = ("new", "worse", "better", "gone")

Key = tuple[str, str]  # subject, problem


@dataclass(frozen=True, slots=True)
class Earlier:
    """What an earlier run printed."""

    name: str
    fingerprint: str
    values: str  # that were read
    checks: Mapping[str, Mapping[str, Any]]  # by name
    accepted: tuple[str, ...] = ()  # ids of findings


def read_baseline(path: Path) -> Earlier:
    """Read what an earlier run printed with --json.

    Raises:
        RequestError: If it cannot be read, or is something else.
    """
    try:
        found = read_json(path, path.name, limit=MAX_NBYTES)
    except OSError as error:
        raise RequestError(
            f"The baseline {path.name} cannot be read ({error.strerror or 'no access'}): name a "
            "file that `check --json` wrote."
        ) from error
    except InspectorError as error:
        raise RequestError(f"The baseline cannot be read: {error}") from error
    checks = found.get("checks") if isinstance(found, dict) else None
    accepted = found.get("accepted", []) if isinstance(found, dict) else None
    if not (isinstance(checks, list) and all(map(_is_check, checks)) and _is_accepted(accepted)):
        raise RequestError(
            f"{path.name} is not the output of `check --json`: write a baseline with "
            f"`{command_line(['check', 'CHECKPOINT', '--json'])} > FILE`."
        )
    return Earlier(
        name=str(found.get("name", "")),
        fingerprint=str(found.get("fingerprint", "")),
        values=str(found.get("values", "all")),
        checks={check["name"]: check for check in checks},
        accepted=tuple(accepted),
    )


def compare(checks: Checks, earlier: Earlier) -> Baseline:
    """Say what has changed since an earlier run, of this checkpoint or of one before it.

    Raises:
        RequestError: If the two did not read the same numbers: what one did not read is not gone.
    """
    if checks.values != earlier.values:
        raise RequestError(
            f"The baseline has values {earlier.values[:40]} and this run {checks.values}: add --values "
            f"{earlier.values[:40]}, or write a new baseline."
        )
    known, changes = 0, list[EvidenceChange]()
    now = {check.name: check for check in checks.checks}
    for name, check in now.items():
        same, changed = _compare(check, earlier.checks.get(name))
        known += same
        changes += changed
    for name in earlier.checks.keys() - now.keys():
        changes += [_change(name, key, "gone", was) for key, was in _items(earlier.checks[name])]
    changes.sort(key=lambda each: (ORDER.index(each.change), -RANK[each.severity]))
    return Baseline(earlier.name, earlier.fingerprint, known, tuple(changes))


def _compare(check: Check, was: Mapping[str, Any] | None) -> tuple[int, list[EvidenceChange]]:
    """How much of a check is as it was, and what has changed."""
    plain = to_json(check)
    now, before = dict(_items(plain)), dict(_items(was or {}))
    if was is not None and "evidence" not in was:  # an older run, which kept no evidence
        return _by_status(plain, was, now)
    known, changes = 0, list[EvidenceChange]()
    cut = _is_cut(was)  # what was not listed then may have been there
    grown = plain["found"] > (was or {}).get("found", 0)
    for key, item in now.items():
        unlisted = key not in before and cut and not grown
        changed = None if unlisted else _judge(before.get(key), item)
        if changed is None:
            known += 1
        else:
            changes.append(_change(check.name, key, changed, item))
    if not _is_cut(plain):
        gone = [(key, item) for key, item in before.items() if key not in now]
        changes += [_change(check.name, key, "gone", item) for key, item in gone]
    return known, changes


def _by_status(
    plain: Mapping[str, Any], was: Mapping[str, Any], now: Mapping[Key, Mapping[str, Any]]
) -> tuple[int, list[EvidenceChange]]:
    if STATUSES.index(plain["status"]) <= STATUSES.index(was["status"]):
        return len(now), []
    return 0, [_change(plain["name"], key, "worse", item) for key, item in now.items()]


def _judge(before: Mapping[str, Any] | None, now: Mapping[str, Any]) -> str | None:
    if before is None:
        return "new"
    then = (RANK[before["severity"]], before.get("count") or 0)
    here = (RANK[now["severity"]], now.get("count") or 0)
    if here == then:
        return None
    return "better" if here[0] <= then[0] and here[1] <= then[1] else "worse"


def _items(check: Mapping[str, Any]) -> list[tuple[Key, Mapping[str, Any]]]:
    """The evidence that counts; a check that was not made counts as one piece."""
    evidence = [each for each in check.get("evidence", ()) if each["severity"] in REPORTED]
    if not evidence and check.get("severity") in REPORTED:
        unchecked = f"{check.get('id', '')}.{UNCHECKED}"
        return [(("", "not checked"), {"severity": check["severity"], "count": None, "id": unchecked})]
    return [((each["subject"], each["problem"]), each) for each in evidence]


def _is_cut(check: Mapping[str, Any] | None) -> bool:
    return check is not None and check.get("found", 0) > len(check.get("evidence", ()))


def _change(check: str, key: Key, change: str, item: Mapping[str, Any]) -> EvidenceChange:
    return EvidenceChange(check, *key, change, item["severity"], item.get("id", ""))


def _is_accepted(accepted: Any) -> TypeGuard[list[str]]:
    return isinstance(accepted, list) and all(isinstance(each, str) for each in accepted)


def _is_check(check: Any) -> bool:
    return (
        isinstance(check, dict)
        and isinstance(check.get("name"), str)
        and check.get("status") in STATUSES
        and check.get("severity", "none") in SEVERITIES
        and type(check.get("found", 0)) is int
        and isinstance(check.get("evidence", []), list)
        and all(map(_is_evidence, check.get("evidence", [])))
    )


def _is_evidence(evidence: Any) -> bool:
    return (
        isinstance(evidence, dict)
        and all(isinstance(evidence.get(key), str) for key in ("subject", "problem"))
        and evidence.get("severity") in SEVERITIES
        and type(evidence.get("count")) in (int, type(None))
    )
