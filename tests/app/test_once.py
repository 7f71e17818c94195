"""A page asks the engine each question once, and none when it is drawn again without a change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from inspector.analyses.overview.request import OverviewRequest
from inspector.analyses.tokenization.request import TokenizeRequest
from inspector.catalog import CATALOG, request_of
from inspector.demo import DEMOS
from pages._ui import once, session
from tests.app.looking import button, said
from tests.families import random_model, save_checkpoint

Open = Callable[..., AppTest]
SLUGS = tuple(dict.fromkeys(analysis.slug for analysis in CATALOG.values()))
MASKED = "the [MASK] of the city."
VIEWS = [
    ("overview", {"find": "bias"}),
    ("embeddings", {"token": "king", "method": "umap"}),
    ("lens", {"second": "the king of france.", "other": "demo-gpt2"}),
    ("report", {"sections": "compare", "other": "demo-gpt2"}),
    ("masked_lm", {"text": MASKED, "view": "Plausibility"}),
    ("masked_lm", {"text": MASKED, "view": "Two sentences"}),
    ("masked_lm", {"text": MASKED, "view": "Two checkpoints", "other": "demo-gpt2"}),
    ("compare", {"other": "demo-gpt2"}),
    *(("snapshots", {"run": "demo-run", "quantity": quantity}) for quantity in ("Padding", "Ties", "Checks")),
]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Counter[Hashable]:
    """How often each question was put to the engine, whoever put it."""
    found: Counter[Hashable] = Counter()
    run = session.engine().run

    def counted(fingerprint: str, verb: str, *, called: Sequence[str] = (), **parameters: Any) -> Any:
        found[fingerprint, request_of(verb)(**parameters), tuple(called)] += 1
        return run(fingerprint, verb, called=called, **parameters)

    monkeypatch.setattr(session.engine(), "run", counted)
    return found


def repeated(asked: Counter[Hashable]) -> dict[Hashable, int]:
    return {question: count for question, count in asked.items() if count > 1}


EVERY = [(slug, {"checkpoint": demo}) for slug in (*SLUGS, "report", "server", "tour") for demo in sorted(DEMOS)]


@pytest.mark.parametrize(("slug", "query"), [*EVERY, *VIEWS])
def test_a_page_asks_each_question_once(
    slug: str, query: dict[str, str], open_app: Open, asked: Counter[Hashable]
) -> None:
    app = open_app(slug, **query)
    assert not app.exception
    assert repeated(asked) == {}
    asked.clear()
    app.run()
    assert not app.exception
    assert asked == {}


def test_a_report_asks_each_question_once(open_app: Open, asked: Counter[Hashable]) -> None:
    app = open_app("report")
    asked.clear()
    button(app, "Create report").click().run()
    assert not app.exception
    assert "Your report" in said(app)
    assert asked
    assert repeated(asked) == {}
    asked.clear()
    app.run()
    assert asked == {}


def test_what_fails_is_asked_once_by_a_run_and_again_by_the_next(
    open_app: Open, roots: Path, asked: Counter[Hashable]
) -> None:
    folder = save_checkpoint(random_model("BertForMaskedLM"), roots / "wordless", tokenizer=False)
    app = open_app("masked_lm", agreed=f"path:{folder}", checkpoint=f"path:{folder}", text=MASKED)
    assert "tokenizer" in said(app)
    failed = {
        question for question in asked if isinstance(question, tuple) and TokenizeRequest(texts=(MASKED,)) in question
    }
    assert len(failed) == 1
    assert repeated(asked) == {}
    asked.clear()
    app.run()
    assert failed <= set(asked)
    assert repeated(asked) == {}


def test_what_has_changed_on_the_disk_or_was_deleted_is_asked_again(
    open_app: Open, roots: Path, asked: Counter[Hashable]
) -> None:
    folder = save_checkpoint(random_model("BertForMaskedLM"), roots / "changing")
    app = open_app(agreed=f"path:{folder}", checkpoint=f"path:{folder}")
    first = set(asked)
    asked.clear()
    (opened,) = {app.session_state["opened"].fingerprint}
    session.engine().forget(opened)
    app.run()
    assert set(asked) == first
    assert not app.error
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-4] + b"\1\2\3\4")
    app.switch_page("pages/sharing.py").run()
    assert "has changed since it was opened" in said(app)
    asked.clear()
    app.switch_page("pages/overview.py").run()
    assert first <= set(asked)
    assert "has changed since it was opened" in said(app)


class Work:
    """A job as a page knows it."""

    def __init__(self, number: int) -> None:
        self.id, self.status = str(number), "done"


class Worker:
    """An engine that counts what it is asked."""

    def __init__(self) -> None:
        self.jobs: dict[str, Work] = {}
        self.count = 0

    def run(self, *_: Any, **__: Any) -> Work:
        self.count += 1
        return self.jobs.setdefault(str(self.count), Work(self.count))

    def job(self, job_id: str) -> Work | None:
        return self.jobs.get(job_id)


def question(find: str = "", name: str = "mine") -> once.PageQuestion:
    return once.PageQuestion("f" * 64, OverviewRequest(find=find), (name,))


def test_every_name_of_a_checkpoint_and_every_session_has_its_own_question() -> None:
    engine: Any = Worker()
    mine, theirs = {}, {}
    jobs = [once.job_of(question(name=name), state, engine) for name in ("a", "b") for state in (mine, theirs)]
    assert len({job.id for job in jobs}) == 4
    assert once.job_of(question(name="b"), theirs, engine) is jobs[-1]
    assert engine.count == 4


def test_a_session_remembers_its_last_questions_and_no_answer() -> None:
    engine: Any = Worker()
    state: dict[Any, Any] = {}
    for number in range(once.MOST + 1):
        once.job_of(question(str(number)), state, engine)
        once.job_of(question("0"), state, engine)  # used in between, and so kept
    assert len(state[once.ASKED]) == once.MOST
    assert engine.count == once.MOST + 1
    once.job_of(question("1"), state, engine)
    assert engine.count == once.MOST + 2
    assert {type(kept) for kept in state[once.ASKED].values()} == {str}


@pytest.mark.parametrize("status", ["failed", "cancelled"])
def test_what_came_to_nothing_is_asked_again(status: str, monkeypatch: pytest.MonkeyPatch) -> None:
    engine: Any = Worker()
    state: dict[Any, Any] = {}
    job = once.job_of(question(), state, engine)
    engine.jobs[job.id].status = status
    assert once.job_of(question(), state, engine) is job
    once.begin_run(state)
    again = once.job_of(question(), state, engine)
    assert again is not job
    engine.jobs[again.id].status = status
    alone = SimpleNamespace(fragment_ids_this_run=["a part of the page"])
    monkeypatch.setattr(once, "get_script_run_ctx", lambda: alone)
    assert once.job_of(question(), state, engine) is not again
