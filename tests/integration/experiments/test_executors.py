from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from tidepull.errors import ParameterError
from tidepull.experiments import spec
from tidepull.experiments.executors import InProcess, LocalProcesses, Result
from tidepull.experiments.spec import TrialSpec

OWN = str(Path(__file__).parents[2] / "unit" / "experiments" / "own_trivial.py")


def levers(seeds: range, **parameters: object) -> list[TrialSpec]:
    return [
        TrialSpec(
            problem="coins",
            policy="lever",
            policy_parameters=parameters,
            horizon=20,
            seed=seed,
            modules=(OWN,),
        )
        for seed in seeds
    ]


def by_seed(results: list[Result]) -> dict[int, Result]:
    return {result.spec.seed: result for result in results}


def test_local_processes_give_the_same_trials_as_in_process() -> None:
    specs = levers(range(12))
    here = by_seed(list(InProcess().run(specs)))
    there = by_seed(list(LocalProcesses(2).run(iter(specs))))
    assert sorted(there) == list(range(12))
    for seed, result in here.items():
        assert result.trial is not None
        other = there[seed].trial
        assert other is not None
        assert np.array_equal(result.trial.arms, other.arms)
        assert np.array_equal(result.trial.rewards, other.rewards)
        assert np.array_equal(result.trial.regret, other.regret)
        assert other.diagnostics == {"learnt": 20}


def test_a_trial_that_raises_is_a_result_with_its_traceback_and_stops_nothing() -> None:
    results = by_seed(list(LocalProcesses(1).run(levers(range(4), fail_on_seed=2))))
    assert sorted(results) == [0, 1, 2, 3]
    assert results[2].trial is None
    assert "RuntimeError: this policy was told to fail" in results[2].error
    assert all(results[seed].trial is not None for seed in (0, 1, 3))


def test_a_trial_without_room_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def too_large(_: TrialSpec) -> None:
        raise MemoryError("Unable to allocate 9.9 TiB")

    monkeypatch.setattr(spec, "run_spec", too_large)
    (result,) = InProcess().run(levers(range(1)))
    assert result.trial is None
    assert result.mistake == (
        "coins/lever/seed-0 needs more memory than there is (Unable to allocate 9.9 TiB): make it "
        "smaller"
    )


def test_a_worker_that_dies_costs_only_the_trial_it_played() -> None:
    specs = [*levers(range(3)), *levers(range(3, 4), crash=True), *levers(range(4, 10))]
    results = by_seed(list(LocalProcesses(2).run(specs)))
    assert sorted(results) == list(range(10))
    assert results[3].error == "the worker process was killed by signal 9 while playing this trial"
    assert all(results[seed].trial is not None for seed in range(10) if seed != 3)


def test_two_trials_run_at_the_same_time_on_two_workers(tmp_path: Path) -> None:
    results = list(LocalProcesses(2).run(levers(range(2), meet=str(tmp_path))))
    assert [result.error for result in results] == ["", ""]


def test_closing_early_leaves_no_worker_behind() -> None:
    running = LocalProcesses(2).run(levers(range(50), sleep=0.05))
    next(running)
    assert (
        len([command for command in _children() if b"tidepull.experiments.executors" in command])
        == 2
    )
    running.close()  # type: ignore[attr-defined]
    assert not [command for command in _children() if b"tidepull.experiments.executors" in command]


def test_zero_workers_are_refused_by_name() -> None:
    with pytest.raises(ParameterError, match="workers must be at least 1, got 0"):
        LocalProcesses(0)


def test_workers_need_no_main_guard_and_see_one_blas_thread(tmp_path: Path) -> None:
    script = tmp_path / "unguarded.py"
    script.write_text(
        textwrap.dedent(
            f"""
            from tidepull.experiments.executors import LocalProcesses
            from tidepull.experiments.spec import TrialSpec
            spec = TrialSpec(problem="coins", policy="threads", horizon=5, seed=0,
                             modules=({OWN!r}, {str(tmp_path / "threads.py")!r}))
            result, = LocalProcesses(1).run([spec])
            print(result.error or result.trial.diagnostics["threads"])
            """
        )
    )
    (tmp_path / "threads.py").write_text(
        textwrap.dedent(
            """
            import numpy, threadpoolctl
            from tidepull.parameters import NoParameters
            from tidepull.registry import Entry, policies
            class Threads:
                def __init__(self, parameters, shape, streams): pass
                def choose(self, context): return 0
                def learn(self, event): pass
                def diagnostics(self):
                    pools = [p for p in threadpoolctl.threadpool_info() if p["user_api"] == "blas"]
                    return {"threads": max(p["num_threads"] for p in pools)}
            policies.add(Entry("threads", "counts", NoParameters, Threads))
            """
        )
    )
    environment = {k: v for k, v in os.environ.items() if not k.endswith("_NUM_THREADS")}
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, env=environment, check=True
    )
    assert done.stdout.strip() == "1"


def _children() -> list[bytes]:
    ids = " ".join(file.read_text() for file in Path("/proc/self/task").glob("*/children")).split()
    return [Path(f"/proc/{id}/cmdline").read_bytes() for id in ids]
