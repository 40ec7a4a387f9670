"""How specs travel to a cluster, without one."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from tidepull.experiments.executors import ATTEMPTS, LARGEST_BATCH, Flow, pack, play, unpack
from tidepull.experiments.spec import Result, TrialSpec

OWN = str(Path(__file__).parents[2] / "unit" / "experiments" / "own_trivial.py")
SPEC = TrialSpec(problem="coins", policy="lever", horizon=10, seed=0, modules=(OWN,))


def specs(count: int) -> list[TrialSpec]:
    return [replace(SPEC, seed=seed) for seed in range(count)]


def test_batches_grow_when_trials_are_short_and_shrink_when_they_are_long() -> None:
    flow = Flow(iter(specs(1000)))
    sizes = []
    for seconds in [0.01] * 12 + [60.0] * 3:
        batch = flow.next_batch()
        sizes.append(len(batch))
        list(flow.collect(batch, [Result(spec, None, seconds=seconds) for spec in batch]))
    assert sizes[0] == 1
    assert sizes[11] == LARGEST_BATCH
    assert len(flow.next_batch()) == 1


def test_a_batch_holds_specs_with_the_same_files_only(tmp_path: Path) -> None:
    (tmp_path / "world").write_text("")
    other = replace(
        SPEC, problem="file-coins", problem_parameters={"path": str(tmp_path / "world")}
    )
    flow = Flow(iter([SPEC, SPEC, other, other, SPEC]))
    flow._seconds = 0.001
    assert [len(flow.next_batch()) for _ in range(4)] == [2, 2, 1, 0]


@pytest.mark.parametrize(
    ("loss", "said"),
    [(RuntimeError("the machine is gone\nmore"), "the machine is gone"), (OSError(), "OSError")],
)
def test_lost_specs_go_out_again_one_by_one_and_fail_for_good_in_the_end(
    loss: Exception, said: str
) -> None:
    flow = Flow(iter(specs(3)))
    flow._seconds = 0.001
    batch = flow.next_batch()
    assert list(flow.collect(batch, loss)) == []
    alone = [flow.next_batch() for _ in range(3)]
    assert [[spec.seed for spec in batch] for batch in alone] == [[0], [1], [2]]
    for _ in range(ATTEMPTS - 1):
        failed = list(flow.collect(alone[0], loss))
    assert [result.error for result in failed] == [
        f"lost 3 times on the cluster; the last time: {said}"
    ]


def test_own_modules_and_data_travel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEPULL_DATA", "elsewhere")
    monkeypatch.setenv("XDG_CACHE_HOME", "elsewhere")
    (tmp_path / "world.txt").write_text("flat")
    shipment = pack((OWN,), [tmp_path / "world.txt"])
    moved = unpack(shipment)
    assert Path(moved[OWN]).read_bytes() == Path(OWN).read_bytes()
    assert Path(os.environ["TIDEPULL_DATA"], "world.txt").read_text() == "flat"
    (result,) = play(shipment, [SPEC])
    assert result.spec == SPEC
    assert result.trial is not None
