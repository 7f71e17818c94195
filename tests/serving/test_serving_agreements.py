"""What a browser's user agreed to open."""

from __future__ import annotations

from inspector.serving.agreements import Agreements


def test_agreements_are_each_browser_s_own() -> None:
    kept = Agreements()
    kept.add("one", "hub:a/b")
    assert kept.has("one", "hub:a/b")
    assert not kept.has("two", "hub:a/b")
    assert not kept.has("one", "hub:a/c")


def test_the_least_recently_used_go_first() -> None:
    kept = Agreements(most=2)
    kept.add("one", "hub:a")
    kept.add("one", "hub:b")
    assert kept.has("one", "hub:a")
    kept.add("one", "hub:c")
    assert [kept.has("one", f"hub:{name}") for name in "abc"] == [True, False, True]
