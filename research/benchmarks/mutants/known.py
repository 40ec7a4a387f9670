"""Faults that once passed all tests, each with the quick test that must notice it now.

python -m research.benchmarks.mutants.known        exit code 0 when every one of them is noticed
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from research.benchmarks.mutants.judge import Judge
from research.benchmarks.mutants.plan import SRC, Target

ROOT = Path(__file__).parents[3]
_ARITHMETIC = "tests/unit/tide/models/test_arithmetic.py"
_STEPS = "tests/unit/tide/test_steps.py"
_ORDER = "tests/unit/experiments/store/test_order.py"
_NORMALISE = "tests/unit/reporting/test_normalise.py"


@dataclass(frozen=True)
class Fault:
    """In a module, `was` becomes `now`; `test` is the one that notices."""

    words: str
    module: str
    was: str
    now: str
    test: str
    jit: bool = True


FAULTS = (
    Fault(
        "Beta counts swapped",
        "tide/models/kernels.py",
        "successes[k], failures[k] = 0.5 * (n + s), 0.5 * (n - s)",
        "successes[k], failures[k] = 0.5 * (n - s), 0.5 * (n + s)",
        f"{_ARITHMETIC}::test_counts_of_successes_and_failures_are_those_of_each_arm_and_phase",
        jit=False,
    ),
    Fault(
        "the outlook has the belief of arm 0 for all arms",
        "tide/models/kernels.py",
        "phi[d - 1] = per_arm[bank.appended[m], k]",
        "phi[d - 1] = per_arm[bank.appended[m], 0]",
        f"{_ARITHMETIC}::test_outlook_of_every_arm_equals_dense_algebra",
        jit=False,
    ),
    Fault(
        "shared draws with three times the noise",
        "tide/models/bank.py",
        "state.covariates, X, std * noise, drawn",
        "state.covariates, X, 3 * std * noise, drawn",
        f"{_ARITHMETIC}::test_shared_draws_are_as_wide_as_noise_and_scale_say",
    ),
    Fault(
        "shared draws with three times the noise, in the kernel",
        "tide/models/kernels.py",
        "total += phi[i] * (z[i] + noise[i])",
        "total += phi[i] * (z[i] + 3 * noise[i])",
        f"{_ARITHMETIC}::test_shared_draw_moves_by_the_noise_as_the_posterior_is_wide",
        jit=False,
    ),
    Fault(
        "success inverted",
        "tide/patterns.py",
        "success = reward > units.threshold",
        "success = reward <= units.threshold",
        f"{_STEPS}::test_success_is_a_reward_above_the_threshold",
    ),
    Fault(
        "turns fed inverted",
        "tide/models/turns.py",
        "self._filter.add(arm, success, t - self._latest)",
        "self._filter.add(arm, not success, t - self._latest)",
        "tests/unit/tide/models/test_covariates.py::test_turns_are_noted_for_every_arm_in_their_own_scale",
    ),
    Fault(
        "turns not fed",
        "tide/models/turns.py",
        "self._filter.add(arm, success, t - self._latest)",
        "pass",
        "tests/unit/tide/models/test_covariates.py::test_turns_are_noted_for_every_arm_in_their_own_scale",
    ),
    Fault(
        "memories not fed",
        "tide/patterns.py",
        "tracker.observe(t, arm, reward, success)",
        "pass",
        f"{_STEPS}::test_success_is_a_reward_above_the_threshold",
    ),
    Fault(
        "the sign of the log spread in a rebuild",
        "tide/rebuild.py",
        "scores[-1] = network_scores + (0.0 if units.binary else math.log(units.spread))",
        "scores[-1] = network_scores - (0.0 if units.binary else math.log(units.spread))",
        "tests/unit/tide/test_rebuild.py::test_everybody_lives_again_in_the_new_units",
    ),
    Fault(
        "the network's rewards shifted by a round after a change of units",
        "tide/models/network.py",
        "y[window.t[kept] - oldest], z[window.t[kept] - oldest] =",
        "y[(window.t[kept] - oldest + 1) % n], z[window.t[kept] - oldest] =",
        f"{_STEPS}::test_network_sees_rewards_and_contexts_in_their_new_units",
    ),
    Fault(
        "the prior of 'nothing changes' 0.08",
        "tide/models/linear.py",
        "prior=0.80",
        "prior=0.080",
        f"{_STEPS}::test_priors_are_those_of_the_families_and_add_up",
    ),
    Fault(
        "no exploration",
        "tide/patterns.py",
        "return min(0.05, self.parameters.exploration / (state.t + 1))",
        "return 0.0",
        f"{_STEPS}::test_families_are_drawn_uniformly_as_rarely_as_the_parameter_says",
    ),
    Fault(
        "least draw scale 0.1",
        "tide/models/noise.py",
        "min_scale: float = 0.5",
        "min_scale: float = 0.1",
        f"{_ARITHMETIC}::test_draw_is_as_wide_as_noise_and_scale_say",
    ),
    Fault(
        "the manifest written before the data",
        "experiments/store.py",
        """        write_whole(self.data_path(hash), data)
        write_whole(self.manifest_path(hash), manifest_of(result, result.trial, data))
""",
        """        write_whole(self.manifest_path(hash), manifest_of(result, result.trial, data))
        write_whole(self.data_path(hash), data)
""",
        f"{_ORDER}::test_trial_exists_only_when_its_rounds_are_on_disk",
    ),
    Fault(
        "no probe",
        "experiments/store.py",
        """        write_whole(probe, b"x" * 4096)
        probe.unlink()
""",
        "",
        f"{_ORDER}::test_store_is_tried_out_before_any_work_is_spent",
    ),
    Fault(
        "the mean of before a restore",
        "posteriors/linear_gaussian.py",
        """        super().restore(snapshot)
        self._mean = None
""",
        """        super().restore(snapshot)
""",
        "tests/property/test_posteriors.py::test_restored_posterior_says_what_the_saved_one_says_for_ever",
    ),
    Fault(
        "the largest regret of random instead of the mean",
        "reporting/frames.py",
        "return float(group.regrets.mean())",
        "return float(group.regrets.max())",
        f"{_NORMALISE}::test_regret_of_random_is_the_mean_of_its_trials",
    ),
    Fault(
        "a round too few",
        "reporting/frames.py",
        "random_regret(study.horizon)",
        "random_regret(study.horizon - 1)",
        f"{_NORMALISE}::test_regret_of_random_is_the_problems_formula_for_the_whole_horizon",
    ),
    Fault(
        "the wrong seed",
        "reporting/frames.py",
        "rows[0].problem_seed",
        "rows[0].seed",
        f"{_NORMALISE}::test_regret_of_random_is_that_of_the_first_trials_world_and_parameters",
    ),
)


def main() -> int:
    """Judge every fault by its test, and print a table."""
    missed = 0
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        judge = Judge(ROOT, Path(folder))
        print("| fault | module | noticed by |\n|---|---|---|")
        for fault in FAULTS:
            target = Target((fault.module,), (fault.test,), jit=fault.jit)
            source = judge.source(SRC + fault.module)
            assert source.count(fault.was) == 1, f"{fault.module} no longer has: {fault.was}"
            clean = judge.clean(target)
            verdict = judge.judge(target, SRC + fault.module, source.replace(fault.was, fault.now))
            noticed = clean.outcome == "survived" and verdict.outcome != "survived"
            missed += not noticed
            test = f"`{fault.test.split('::')[1]}`" if noticed else "**nothing**"
            print(f"| {fault.words} | `{fault.module}` | {test} |", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
