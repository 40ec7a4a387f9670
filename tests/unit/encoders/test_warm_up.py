"""Compiling ahead of time."""

from __future__ import annotations

from tidepull.encoders import warm_up


def test_second_warm_up_has_nothing_to_compile() -> None:
    warm_up((4, 4, 4))
    announced: list[str] = []
    assert not warm_up((4, 4, 4), announce=lambda: announced.append("compiling"))
    assert announced == []


def test_warm_up_announces_a_size_that_was_never_compiled() -> None:
    announced: list[str] = []
    compiled = warm_up((4, 5, 4), announce=lambda: announced.append("compiling"))
    assert announced == (["compiling"] if compiled else [])
