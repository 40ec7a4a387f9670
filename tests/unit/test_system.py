from __future__ import annotations

import pytest

import tidepull
from tidepull._internal import system
from tidepull.errors import ParameterError


def test_what_does_not_fit_is_refused_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system, "free_memory", lambda: 2_500_000_000)
    system.require_memory(2_500_000_000, "this")
    with pytest.raises(
        ParameterError, match=r"^this would need 3\.2 GB of memory; 2\.5 GB are free here$"
    ):
        system.require_memory(3_200_000_000, "this")


def test_free_memory_is_less_than_a_petabyte_and_more_than_a_megabyte() -> None:
    assert 1e6 < system.free_memory() < 1e15


def test_horizon_is_refused_before_anything_is_allocated() -> None:
    with pytest.raises(
        ParameterError, match="a horizon of 999,999,999,999,999 rounds would need 64 PB"
    ):
        tidepull.run_trial("flipping-gaussian", "ucb", horizon=999_999_999_999_999)
