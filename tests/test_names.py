"""Names by pattern: counted by hand, and every name in exactly one line."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from inspector import names as names_by_pattern
from inspector.names import FOLDED, FOLDS, find_rows, fits, fold_rows, group_names

EXPERTS = [f"model.layers.{layer}.mlp.experts.{n}.w" for layer in range(3, 61) for n in range(256)]


def labels(names: list[str], **options) -> list[str]:
    return [group.label for group in group_names(names, **options)]


def test_a_level_at_a_time() -> None:
    (group,) = group_names(EXPERTS)
    assert group.label == "model.layers.[3–60].mlp.experts.[0–255].w"
    assert group.pattern == "model.layers.*.mlp.experts.*.w"
    layers = group_names(EXPERTS, opened=group.pattern)
    assert len(layers) == 58
    assert layers[0].label == "model.layers.3.mlp.experts.[0–255].w"
    assert layers[0].pattern == "model.layers.3.mlp.experts.*.w"
    inside = [EXPERTS[place] for place in layers[0].places]
    assert inside == EXPERTS[:256]
    assert labels(inside, opened=layers[0].pattern) == inside


def test_a_list_of_one_opens_with_the_list_inside_it() -> None:
    names = [f"encoder.0.experts.{n}.w" for n in range(4)]
    assert labels(names, opened="encoder.*.experts.*.w") == names


@pytest.mark.parametrize(
    ("name", "pattern", "found"),
    [
        ("h.3.w", "h.*.w", True),
        ("h.3.w", "h.*", False),
        ("h.3.w.4", "h.3.w.*", True),
        ("h.31.w.4", "h.3.w.*", False),
        ("h.x.w", "h.*.w", False),
        ("h.3.x.4.w", "h.*.x.4.w", True),
        ("h.3.x.5.w", "h.*.x.4.w", False),
        ("h+.3.w", "h+.*.w", True),
        ("h.3.w", "h.*.b", False),
    ],
)
def test_a_pattern_finds_whole_names(name: str, pattern: str, found: bool) -> None:
    assert fits(name, pattern) is found


def frame() -> pd.DataFrame:
    """Forty layers of three tensors, the first half of them wider, and one that is alone."""
    rows = [
        {
            "name": f"h.{layer}.{part}",
            "shape": "2 × 4" if layer < 20 else "2 × 2",
            "parameters": 8 if layer < 20 else 4,
            "relative_change": layer / 100,
            "cosine": 1 - layer / 100,
            "offset": 7 if part == "a" else layer,
            "file": f"{layer % 2}.bin",
        }
        for layer in range(40)
        for part in "abc"
    ]
    return pd.DataFrame([*rows, rows[0] | {"name": "wte"}])


def test_a_line_says_what_its_names_have_in_common_adds_up_or_is_the_worst() -> None:
    folded = fold_rows(frame())
    assert folded is not None
    rows, patterns = folded
    assert rows["name"].tolist() == [
        *(f"h.[0–19].{part}" for part in "abc"), *(f"h.[20–39].{part}" for part in "abc"), "wte",
    ]  # fmt: skip
    assert rows["names"].tolist() == [20] * 6 + [1]
    assert rows["parameters"].tolist() == [160] * 3 + [80] * 3 + [8]
    assert rows["relative_change"].tolist() == [0.19] * 3 + [0.39] * 3 + [0]
    assert rows["cosine"].tolist() == [1 - 0.19] * 3 + [1 - 0.39] * 3 + [1]
    assert rows["offset"].tolist() == [7, None, None, 7, None, None, 7]
    assert rows["file"].tolist() == ["2 different"] * 6 + ["0.bin"]
    assert patterns == ["h.*.a", "h.*.b", "h.*.c"] * 2 + [""]


def test_lines_differ_where_a_value_is_missing_from_some_of_their_names() -> None:
    table = frame().assign(reason="x", offset=5.0)
    table.loc[3, ["reason", "offset"]] = None  # of h.1.a
    folded = fold_rows(table)
    assert folded is not None
    rows, _ = folded
    assert rows["name"].tolist()[:4] == ["h.[0…19].a", "h.[0–19].b", "h.[0–19].c", "h.1.a"]
    assert rows["reason"].fillna("").tolist()[:4] == ["x", "x", "x", ""]
    same = fold_rows(table.drop(columns="reason"))  # the kind of value that does not tell names apart
    assert same is not None
    assert same[0]["offset"].tolist()[:3] == [None, 5.0, 5.0]


def test_a_level_of_rows_is_opened_by_its_pattern_alone() -> None:
    table = pd.DataFrame({"name": EXPERTS[:1024]})  # four layers
    for text, lines in (("", 1), ("model.layers.*.mlp.experts.*.w", 4), ("experts", 1)):
        folded = fold_rows(table, opened=text)
        assert folded is not None
        assert folded[0]["names"].tolist() == [1024 // lines] * lines
    inside = fold_rows(table.iloc[256:512], opened="model.layers.4.mlp.experts.*.w")
    assert inside is None  # each name by itself


@pytest.mark.parametrize(("pairs", "folds"), [(60, True), (40, False)])
def test_a_table_is_folded_where_that_halves_it(pairs: int, folds: bool) -> None:
    names = [f"{letter}{n}.{place}" for letter in "ab" for n in range(pairs) for place in range(2)]
    alone = [f"n{n}" for n in range(0 if folds else 50)]
    assert (fold_rows(pd.DataFrame({"name": names + alone})) is not None) is folds


def test_every_name_is_in_one_line() -> None:
    table = pd.DataFrame({"name": EXPERTS, "shape": ["1"] * len(EXPERTS)})
    pattern = ""
    for lines in (1, 58):
        found = find_rows(table, pattern, ("name", "shape"))
        folded = fold_rows(found, opened=pattern)
        assert folded is not None
        rows, patterns = folded
        assert len(rows) == lines
        assert sum(len(find_rows(table, each, ("name",))) for each in patterns) == len(found)
        pattern = patterns[-1]
    assert len(find_rows(table, pattern, ("name", "shape"))) == 256


def test_rows_are_folded_by_another_column_where_they_say_the_same() -> None:
    problems = {"a": ("holds NaN", 2), "b": ("all zeros", None)}
    rows = [
        {"check": "Numbers", "subject": f"h.{n}.{part}", "problem": problem, "count": count, "detail": str(n)}
        for part, (problem, count) in problems.items()
        for n in range(60)
    ]
    rows.append(rows[0] | {"subject": "h.99.a", "problem": "all zeros", "count": 5})
    folded = fold_rows(pd.DataFrame(rows), by="subject")
    assert folded is not None
    table, patterns = folded
    assert table.columns.tolist() == ["check", "subject", "names", "problem", "count", "detail"]
    assert table.fillna(-1).to_numpy().tolist() == [
        ["Numbers", "h.[0–59].a", 60, "holds NaN", 120, "60 different"],
        ["Numbers", "h.[0–59].b", 60, "all zeros", -1, "60 different"],
        ["Numbers", "h.99.a", 1, "all zeros", 5, "0"],
    ]
    assert patterns == ["h.*.a", "h.*.b", ""]


def test_the_same_rows_are_folded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def count(found: list[str], alike: list[Any], *, opened: str) -> list[names_by_pattern.NameGroup]:
        asked.append(opened)
        return group_names(found, alike)

    monkeypatch.setattr(names_by_pattern, "group_names", count)
    for number in range(FOLDS):  # in the place of whatever was folded before
        fold_rows(frame(), opened=f"n{number}")
    asked.clear()
    first = fold_rows(frame())
    again = fold_rows(frame())  # equal rows of another frame, as the page makes them
    assert len(asked) == 1
    assert first is not None
    assert again is not None
    assert first[0].equals(again[0])
    assert first[1] == again[1]
    other = frame()
    other.loc[0, "parameters"] = 108
    changed = fold_rows(other)
    assert changed is not None
    assert changed[0]["parameters"].tolist()[0] == 260
    fold_rows(frame(), opened="h.*.a")  # another pattern, so it is another answer
    assert len(asked) == 3
    fold_rows(frame())
    assert len(asked) == 3
    for number in range(FOLDS):  # and only the last few are kept
        fold_rows(frame(), opened=f"n{number}")
    fold_rows(frame())
    assert len(asked) == 3 + FOLDS + 1


def test_what_is_short_or_has_no_pattern_is_not_folded() -> None:
    assert fold_rows(pd.DataFrame({"name": EXPERTS[:FOLDED]})) is None
    assert fold_rows(pd.DataFrame({"name": [f"n{n}" for n in range(1_000)]})) is None
    assert fold_rows(pd.DataFrame({"token": EXPERTS})) is None


def test_a_text_is_no_regular_expression() -> None:
    table = pd.DataFrame({"name": ["a.b", "a+b", "aab", "[MASK]"]})
    for text, found in ((".", ["a.b"]), ("a+b", ["a+b"]), ("[mask]", ["[MASK]"]), ("", table["name"].tolist())):
        assert find_rows(table, text, ("name",))["name"].tolist() == found


def test_text_is_found_across_columns_in_any_case() -> None:
    found = find_rows(frame(), "2 × 4 0.BIN", ("name", "shape", "file"))
    assert found["name"].str[2:-2].astype(str).unique().tolist()[:-1] == [str(n) for n in range(0, 20, 2)]
