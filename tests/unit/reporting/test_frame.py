from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.unit.reporting.filling import SUITE, fill
from tidepull.errors import StoreError
from tidepull.experiments import spec
from tidepull.experiments.store import Store
from tidepull.reporting.frames import load_frame


def test_frame_has_a_study_for_each_problem_and_a_group_for_each_policy(store: Store) -> None:
    frame = load_frame([store])
    assert [study.problem for study in frame.studies] == [
        "flipping-gaussian",
        "sinusoidal-bernoulli",
        "stationary-bernoulli",
    ]
    assert [group.name for group in frame.studies[1].groups] == [
        "random",
        "ucb",
        "d-ucb",
        "rnlps-default",
    ]
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
        assert [
            np.array_equal(g.regrets, h.regrets) for g, h in zip(a.groups, b.groups, strict=True)
        ]
        assert [len(group.rows) for group in b.groups] == [6] * len(b.groups)


def test_frame_names_failed_and_missing_trials(broken_store: Store) -> None:
    gaps = load_frame([broken_store]).gaps
    assert set(gaps.failed) == {f"flipping-gaussian/bernoulli-ts/seed-{seed}" for seed in range(5)}
    assert "flipping-gaussian/ucb/seed-5" in gaps.missing
    assert all(id.endswith("seed-5") for id in gaps.missing)


def test_frame_says_how_to_fill_an_empty_store(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="holds no trials yet"):
        load_frame([Store.create(tmp_path)])


def test_halves_of_a_suite_in_two_stores_make_one_whole(store: Store, tmp_path: Path) -> None:
    part = "stationary-bernoulli/*/seed-"
    first = fill(tmp_path / "a", SUITE, only=(f"{part}[0-1]", f"{part}[3-4]"))
    second = fill(tmp_path / "b", SUITE, only=(f"{part}[2-4]",))
    frame = load_frame([first, second])
    (study,) = frame.studies
    whole = {group.name: group for group in load_frame([store]).studies[2].groups}
    for group in study.groups:
        assert [row.seed for row in group.rows] == [0, 1, 2, 3, 4]
        finals = [trial.regret[-1] for trial in group.trials()]
        assert np.allclose(finals, whole[group.name].regrets[:5], rtol=1e-4)
    lost = [id for id in frame.gaps.missing if id.startswith("stationary")]
    assert all(id.endswith("seed-5") for id in lost)
    assert len(lost) == len(set(lost)) == 6


def test_two_versions_of_one_suite_are_never_averaged_together(tmp_path: Path) -> None:
    only = ("flipping-gaussian/rnlps-default/*",)
    first = fill(tmp_path / "a", SUITE, only=only)
    edited = fill(tmp_path / "b", SUITE.replace("window = 20", "window = 50"), only=only)
    slower = SUITE.replace(
        'id = "flipping-gaussian"', 'id = "flipping-gaussian"\nparameters = {half_period = 9}'
    )
    other = fill(tmp_path / "c", slower, only=only)
    (study,) = load_frame([first, edited]).studies
    assert [(group.name, len(group.rows)) for group in study.groups] == [
        ("rnlps-default", 6),
        ("rnlps-default (2)", 6),
    ]
    assert [row.policy_parameters["window"] for row in study.groups[1].rows] == [50] * 6
    assert [len(s.groups[0].rows) for s in load_frame([first, other]).studies] == [6, 6]


def test_trials_of_another_version_of_a_policy_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    only = ("stationary-bernoulli/ucb/*",)
    first = fill(tmp_path / "a", SUITE, only=only)
    monkeypatch.setattr(spec, "RESULTS_VERSION", 99)
    second = fill(tmp_path / "b", SUITE, only=only)
    (study,) = load_frame([first, second]).studies
    assert [(group.name, len(group.rows)) for group in study.groups] == [("ucb", 6), ("ucb (2)", 6)]
