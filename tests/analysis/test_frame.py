from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tidepull.analysis.frame import load_frame
from tidepull.bench.store import Store
from tidepull.errors import StoreError


def test_frame_has_a_study_for_each_problem_and_a_group_for_each_policy(store: Store) -> None:
    frame = load_frame([store])
    assert [study.problem for study in frame.studies] == [
        "flipping-gaussian",
        "sinusoidal-bernoulli",
        "stationary-bernoulli",
    ]
    assert [group.name for group in frame.studies[1].groups] == ["random", "ucb", "d-ucb", "rnlps-default"]
    assert all(len(group.rows) == 6 for study in frame.studies for group in study.groups)
    assert not frame.gaps


def test_group_of_a_grid_is_its_best_setting_and_says_so(store: Store) -> None:
    study = load_frame([store]).studies[0]
    best = study.group("d-ucb")
    assert best is not None
    assert best.chosen_from == 3
    assert best.rewards.mean() == max(group.rewards.mean() for group in study.grids["d-ucb"])


def test_oracle_is_shown_but_cannot_win(store: Store) -> None:
    study = load_frame([store]).studies[0]
    assert study.group("oracle") is not None
    assert "oracle" not in [group.name for group in study.contenders]
    means = [float(group.regrets.mean()) for group in study.contenders]
    assert means == sorted(means)


def test_frame_counts_a_trial_once_when_it_is_in_two_stores(store: Store) -> None:
    once, twice = load_frame([store]), load_frame([store, store])
    assert once.trials == twice.trials == 6 * (3 * 3 + 3 * 3 + 1)
    for a, b in zip(once.studies, twice.studies, strict=True):
        assert [np.array_equal(g.regrets, h.regrets) for g, h in zip(a.groups, b.groups, strict=True)]
        assert [len(group.rows) for group in b.groups] == [6] * len(b.groups)


def test_frame_names_failed_and_missing_trials(broken_store: Store) -> None:
    gaps = load_frame([broken_store]).gaps
    assert set(gaps.failed) == {f"flipping-gaussian/bernoulli-ts/seed-{seed}" for seed in range(5)}
    assert "flipping-gaussian/ucb/seed-5" in gaps.missing
    assert all(id.endswith("seed-5") for id in gaps.missing)


def test_frame_says_how_to_fill_an_empty_store(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="holds no trials yet"):
        load_frame([Store.create(tmp_path)])
