"""Sessions that ask an engine: new questions, right answers, and a judge that sees wrong ones."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from inspector.serving.engine.local import LocalEngine
from inspector.settings import read_settings
from tools.load.asking import BEST, SHARES, Asker, Crowd
from tools.load.capacity import needs, open_asker, with_section
from tools.load.queueing import Service


@pytest.fixture(scope="module")
def asker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asker]:
    home = tmp_path_factory.mktemp("home")
    engine = LocalEngine(read_settings({"INSPECTOR_HOME": str(home)}), restrict_paths=False, spare=False)
    yield open_asker(engine, "demo-bert", texts=8)
    engine.close()


def test_no_question_comes_twice_and_every_answer_is_the_lone_ones(asker: Asker) -> None:
    asked = [asker.question(verb) for verb in SHARES for _ in range(60)]
    assert len(set(asked)) == len(asked)
    assert min(question.k for question in asked) > BEST
    for question in (asked[0], asked[-1]):
        seconds, wrong = asker.timed(question)
        assert seconds > 0
        assert wrong == ""


@pytest.mark.crowd
def test_a_crowd_is_answered_rightly(asker: Asker) -> None:
    crowd = asker.crowd(4, think=0.05, seconds=3.0)
    assert crowd.wrong == []
    assert crowd.refused == []
    assert crowd.answers >= max(1, len(crowd.seconds))
    assert crowd.per_second == pytest.approx(len(crowd.seconds) / 2.4)  # but for the first fifth


def test_percentiles_of_a_crowd() -> None:
    crowd = Crowd(2, seconds=[0.4, 0.1, 0.3, 0.2])
    assert (crowd.percentile(0.5), crowd.percentile(0.95)) == (0.3, 0.4)


def test_a_wrong_answer_is_seen(asker: Asker, monkeypatch: pytest.MonkeyPatch) -> None:
    question = asker.question("predict")
    right = asker.right[question.verb, question.text]
    (token, share), *rest = right
    monkeypatch.setitem(asker.right, (question.verb, question.text), [(token + 1, share), *rest])
    assert asker.timed(question)[1].startswith("LoadQuestion(verb='predict'")
    other = asker.question("predict")
    right = asker.right[other.verb, other.text]
    changed = [(token, share * 1.01) for token, share in right]
    monkeypatch.setitem(asker.right, (other.verb, other.text), changed)
    assert asker.timed(other)[1]


@pytest.mark.parametrize(("gpus", "cards"), [(0.0, 0), (0.25, 2), (0.3, 3), (1.0, 7), (2.0, 14)])
def test_a_class_is_told_its_workers_and_their_gpus(gpus: float, cards: int) -> None:
    """Of 50 people who think for 20 s, 50 / (20 + 2) ask in a second, and each takes a worker 2 s.

    That keeps 4.5 workers busy, 65 % of seven. With six, one answer in twenty is more than a second late.
    """
    lines = needs({"lens": Service(1.0, (2.0,))}, gpus, classes=(50,))
    assert lines[4:] == [f"| 50 | 7 | 65% | {cards} |", "", "One worker serves 3 users."]


def test_a_run_takes_the_place_of_the_one_before_on_the_page() -> None:
    page = with_section("# About\n\nText.\n", "local", "one\n\n### demo\n")
    assert page == "# About\n\nText.\n\n## local\n\none\n\n### demo\n"
    page = with_section(page, "ray", "two")
    assert with_section(page, "local", "three") == ("# About\n\nText.\n\n## local\n\nthree\n\n## ray\n\ntwo\n")
