"""Other papers' tables in small: their worlds are as published, their methods do what they publish,
and the page shows what was played."""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tidepull
from research.papers import __main__ as command
from research.papers.page import PAGE, page
from tidepull.experiments.archive import known_rewards
from tidepull.experiments.store import Store
from tidepull.registry import policies, problems
from tidepull.reporting.frames import archived_frame, load_frame

REGISTRIES: tuple[Any, ...] = problems, policies


@cache
def loaded() -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The papers' modules, and the registries with their ids, which other tests do not see."""
    names = "besson", "bone", "chen", "garivier", "latent_ar", "qi", "russac", "vgdts"
    before = [dict(registry._entries) for registry in REGISTRIES]
    modules = {name: import_module(f"research.papers.{name}") for name in names}
    after = [dict(registry._entries) for registry in REGISTRIES]
    for registry, entries in zip(REGISTRIES, before, strict=True):
        registry._entries = entries
    return modules, after


@pytest.fixture(autouse=True)
def papers(monkeypatch: pytest.MonkeyPatch) -> Any:
    modules, registered = loaded()
    for registry, entries in zip(REGISTRIES, registered, strict=True):
        monkeypatch.setattr(registry, "_entries", dict(entries))
    return type("Papers", (), modules)


def final(problem: Any, policy: Any, horizon: int, seeds: range) -> float:
    trials = (tidepull.run_trial(problem, policy, horizon=horizon, seed=seed) for seed in seeds)
    return float(np.mean([trial.regret[-1] for trial in trials]))


def test_worlds_have_the_published_means(papers: Any) -> None:
    assert papers.besson.means(4, 10_000)[[4999, 5000, 8750]].tolist() == [
        [0.1, 0.5, 0.9],
        [0.3, 0.4, 0.1],
        [0.1, 0.5, 0.2],
    ]
    yahoo = papers.besson.means(5, 100_000)
    assert len(np.unique(np.diff(yahoo, axis=0).any(axis=1).cumsum())) >= 80
    assert yahoo[-1].tolist() == [0.049, 0.032, 0.033, 0.027, 0.039]
    assert papers.vgdts.abrupt()[[49, 50, 449]].tolist() == [
        [0, 0, 0, 0],
        [0.1, 0, 0, 0],
        [0.1, 0.37, 0.63, 0],
    ]
    assert papers.garivier.Cycle()(0) == pytest.approx(0.5 + 0.375 * np.array([-0.5, -0.5, 1.0]))
    assert papers.russac.path("slow")[3000] == pytest.approx([0, 1])
    arms = papers.qi.problem(papers.qi.QiParameters(), tidepull.Streams(3))
    assert arms.means() == pytest.approx(np.random.RandomState(0).uniform(0, 1, 10))


def test_rounds_before_the_hidden_process_starts_do_not_count(papers: Any) -> None:
    trial = tidepull.run_trial(("latent-ar", {"order": 5}), ("fixed", {"arm": 0}), horizon=200)
    assert trial.regret[4] == 0
    assert trial.regret[-1] > 50
    assert papers.latent_ar.COEFFICIENTS[1] == (0.9,)


def test_regret_of_the_walk_is_against_the_best_realised_reward(papers: Any) -> None:
    trial = tidepull.run_trial("bone-walk", "random", horizon=300, seed=2)
    world = tidepull.build_problem("bone-walk", seed=2)
    assert isinstance(world, papers.bone.WalkingArms)
    best = world.table.rewards[:300].max(axis=1).sum()
    assert trial.regret[-1] == best - trial.rewards.sum()


def test_methods_reach_their_published_figures() -> None:
    slow = ("vgdts", {"kind": "slow"})
    assert final(slow, "vg-dts", 5000, range(3)) / 5000 == pytest.approx(0.100, abs=0.015)
    hidden = ("latent-ar", {"order": 5})
    assert final(hidden, "larl", 200, range(12)) == pytest.approx(167.8, abs=20)
    assert final("bone-walk", "rl-oupr", 10_000, range(1)) == pytest.approx(2367, rel=0.15)


def test_two_stages_find_every_period(papers: Any) -> None:
    rng = np.random.default_rng(0)
    for length in papers.chen.PERIODS:
        series = np.tile(rng.random(length), 20)[:96] + 0.1 * rng.standard_normal(96)
        assert papers.chen.period(series, 24) == length
    assert final("chen", "two-stage", 1500, range(2)) < 0.5 * final(
        "chen", "random", 1500, range(2)
    )


def test_page_shows_published_and_played_rows_and_nothing_is_played_twice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(command, "PAGE", tmp_path / "page.md")
    only = ["--only", "chen/two-stage/seed-1", "--only", "latent-ar-1/larl/seed-2"]
    for number, store in enumerate(("store", "store", "other")):
        arguments = ["papers", *only, "--out", str(tmp_path / store)]
        monkeypatch.setattr(sys, "argv", arguments)
        command.main()
        played = capsys.readouterr().out.count("regret")
        assert played == (2 if number == 0 else 0)
    text = (tmp_path / "page.md").read_text()
    assert "| published: LARL | 156.9 ± 47.9 | 167.8 ± 24.8 | 171.0 ± 22.2 |" in text
    assert "| `larl` | " in text
    assert "trials of the suites are not played yet" in text
    assert len(known_rewards([tmp_path / "results"])) == 2
    shown = page(load_frame([Store.open(tmp_path / "store")]))
    assert "| `two-stage` | " in shown


def test_page_is_what_the_archived_trials_give() -> None:
    assert page(archived_frame(command.RESULTS)) == PAGE.read_text()
