"""How late rewards come, from the text people write to the report that says so."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import tidepull
from tests.unit.reporting.filling import fill
from tests.unit.reporting.making import make_study
from tidepull.errors import ParameterError
from tidepull.experiments.archive import summarise
from tidepull.experiments.delay import delay_slug, delay_text, delay_words
from tidepull.experiments.rows import load_rows, read_plans
from tidepull.experiments.selection import kinds_of, select
from tidepull.experiments.store import Store
from tidepull.paper.studies import combined
from tidepull.parameters import NoParameters
from tidepull.policies.guard import guarded
from tidepull.protocols import Policy
from tidepull.random import Streams
from tidepull.registry import Entry
from tidepull.reporting.frames import load_frame
from tidepull.reporting.published import reported, reported_share, versus_store
from tidepull.reporting.report import build_report
from tidepull.types import Context, Event, FloatArray, ProblemShape, Snapshot

SUITE = """
name = "late"
seeds = "0-2"
horizon = 60

[[problems]]
id = "flipping-gaussian"

[[problems]]
id = "flipping-gaussian"
delay = 8

[[policies]]
name = "random"

[[policies]]
name = "d-ucb"
grid = { discount = [0.8, 0.95] }
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return fill(tmp_path_factory.mktemp("late"), SUITE)


@pytest.mark.parametrize(
    ("written", "text", "slug", "words"),
    [
        (0, "0", "", ""),
        ("geometric:0", "0", "", ""),
        (" 8 ", "8", "delay-8", "rewards 8 rounds late"),
        (1, "1", "delay-1", "rewards 1 round late"),
        (
            "geometric:20.0:0",
            "geometric:20",
            "delay-geometric-20",
            "rewards 20 rounds late on average",
        ),
        (
            "geometric:20:0.05",
            "geometric:20:0.05",
            "delay-geometric-20-0.05",
            "rewards 20 rounds late on average, 5% never come",
        ),
    ],
)
def test_delay_has_one_text_one_slug_and_words(
    written: Any, text: str, slug: str, words: str
) -> None:
    assert delay_text(written) == text
    assert delay_text(text) == text
    assert (delay_slug(text), delay_words(text)) == (slug, words)


def test_store_keeps_the_delay_in_rows_plans_and_manifests(store: Store) -> None:
    rows = load_rows(store).rows
    assert {(row.delay, row.played) for row in rows} == {
        ("0", "flipping-gaussian"),
        ("8", "flipping-gaussian-delay-8"),
    }
    (plan,) = read_plans(store)
    assert "flipping-gaussian/delay-8/random/seed-0" in [trial.id for trial in plan.trials]
    late = next(row for row in rows if row.delay == "8")
    assert store.manifest(late.hash)["spec"]["delay"] == "8"
    assert [line["delay"] for line in summarise(rows)] == ["0"] * 3 + ["8"] * 3


def test_trials_that_no_plan_names_keep_their_delay(tmp_path: Path) -> None:
    bare = fill(tmp_path, SUITE)
    (bare.directory / "plans" / "late.parquet").unlink()
    assert {row.delay for row in load_rows(bare).rows} == {"0", "8"}
    assert sorted(study.delay for study in load_frame([bare]).studies) == ["0", "8"]


def test_plan_written_before_there_were_delays_is_read_as_without(tmp_path: Path) -> None:
    old = fill(tmp_path, SUITE, only=("flipping-gaussian/random/*",))
    path = old.directory / "plans" / "late.parquet"
    table = pq.read_table(io.BytesIO(path.read_bytes()))
    pq.write_table(table.drop_columns(["delay"]), path)
    (plan,) = read_plans(old)
    assert {trial.delay for trial in plan.trials} == {"0"}


def test_report_has_a_study_of_its_own_for_late_rewards_and_says_so(
    store: Store, tmp_path: Path
) -> None:
    made = build_report([store], tmp_path / "report", formats=["svg"])
    assert [study.title for study in made.frame.studies] == [
        "flipping-gaussian",
        "flipping-gaussian (rewards 8 rounds late)",
    ]
    assert all(len(group.rows) == 3 for study in made.frame.studies for group in study.groups)
    page = made.page.read_text()
    assert '<span class="remark">rewards 8 rounds late</span>' in page
    assert (
        "flipping-gaussian (rewards 8 rounds late)"
        in (tmp_path / "report/tables/results-late.md").read_text()
    )
    assert (tmp_path / "report/figures/regret-late-flipping-gaussian-delay-8.svg").exists()
    assert "delay" in (tmp_path / "report/tables/summary.csv").read_text().splitlines()[0].split(
        ","
    )


def test_late_rewards_are_never_held_against_the_paper_or_trials_without(store: Store) -> None:
    frame = load_frame([store])
    late = frame.studies[1]
    assert reported(late, "d-ucb") is None
    assert np.isnan(reported_share(late, "d-ucb", 100.0))
    assert np.isfinite(reported_share(frame.studies[0], "d-ucb", 100.0))
    study = make_study("flipping-gaussian", {"d-ucb": [1.0, 2.0]})
    assert combined([replace(study, delay="8"), study]) == [study]
    lines = list(versus_store(frame, frame))
    assert [(line.problem, line.difference.mean) for line in lines] == [
        (study.title, 0.0) for study in frame.studies for _ in study.groups
    ]


def test_selection_chooses_apart_for_late_rewards(store: Store) -> None:
    rows = load_rows(store).rows
    chosen = select(rows, kinds_of(rows))
    assert [best.problem for best in chosen.best] == [
        "flipping-gaussian",
        "flipping-gaussian-delay-8",
    ]
    assert {len(best.seeds) for best in chosen.best} == {3}


class Clocked:
    """Two arms; its contexts say the time, which runs at one and a half units a round."""

    n_arms = 2

    def __init__(self) -> None:
        self.now = 100.0

    def context(self) -> Context:
        return Context(time=self.now)

    def means(self) -> FloatArray:
        return np.array([0.0, 1.0])

    def step(self, arm: int) -> float:
        self.now += 1.5
        return float(arm)


class Diary:
    def __init__(self) -> None:
        self.chosen: list[float | None] = []
        self.learnt: list[tuple[float | None, int | None]] = []

    def choose(self, context: Context) -> int:
        self.chosen.append(context.time)
        return 0

    def learn(self, event: Event) -> None:
        self.learnt.append((event.context.time, event.decided))


def test_loop_passes_the_time_of_a_problem_through_with_late_rewards_too() -> None:
    diary = Diary()
    tidepull.run_trial(Clocked(), diary, horizon=4, delay=2)
    assert diary.chosen == [100.0, 101.5, 103.0, 104.5]
    assert diary.learnt == [(100.0, 0), (101.5, 1)]


class Kept(Diary):
    """With the two methods that make it a policy which can be registered."""

    def snapshot(self) -> Snapshot:
        return {}

    def restore(self, snapshot: Snapshot) -> None:
        pass


def test_guard_passes_the_time_of_a_problem_through_with_late_rewards_too() -> None:
    entry: Entry[Policy] = Entry("diary", "writes down", NoParameters, lambda *_: Kept())
    guard = guarded(entry, NoParameters(), ProblemShape(2), Streams(0))
    tidepull.run_trial(Clocked(), guard, horizon=4, delay=2)
    assert isinstance(guard.inner, Kept)
    assert guard.inner.chosen == [100.0, 101.5, 103.0, 104.5]
    assert guard.inner.learnt == [(100.0, 0), (101.5, 1)]


def test_delay_of_a_wrong_kind_is_one_sentence() -> None:
    for wrong in ("soon", -1, True, "geometric:2:1"):
        with pytest.raises(ParameterError, match="^delay must be a whole number of rounds"):
            delay_text(wrong)
