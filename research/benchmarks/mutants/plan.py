"""Which modules are mutated, and which quick tests judge a mutant of each.

Numba's cache notices changes in the file of a kernel only, and compiling costs more than all tests
together: mutants of compiled modules are judged by the same functions as plain Python
(`jit=False`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

SRC = "src/tidepull/"


@dataclass(frozen=True)
class Target:
    """Some modules with one list of tests; `without` are tests too slow for judging."""

    modules: tuple[str, ...]
    tests: tuple[str, ...]
    without: tuple[str, ...] = field(default=())
    jit: bool = True


_KERNELS = (
    "tests/unit/tide/models/test_arithmetic.py",
    "tests/property/test_families.py",
    "tests/unit/tide/models/test_kernels.py",
)
_SLOW_KERNELS = (
    "test_bank_stays_positive_definite_for_a_million_rounds",
    "test_draws_have_the_mean_and_spread_of_the_posterior",
    "test_every_hypothesis_gives_probabilities_of_binary_rewards_that_add_up_to_one",
)
_POSTERIORS = ("tests/property/test_posteriors.py", "tests/unit/posteriors")
_SLOW_POSTERIORS = (
    "100_000_rounds",
    "brute_force",
    "test_update_refuses_what_is_not_finite_and_keeps_its_state",
)

TARGETS = (
    Target(
        ("tide/models/kernels.py", "tide/models/weights.py", "tide/models/algebra.py"),
        _KERNELS,
        _SLOW_KERNELS,
        jit=False,
    ),
    Target(
        ("tide/models/scan.py",),
        ("tests/unit/tide/models/test_scan.py", "tests/unit/tide/models/test_period_search.py"),
        ("one_per_cent", "with_their_offset", "through_contexts"),
        jit=False,
    ),
    Target(("tide/models/bank.py",), _KERNELS, _SLOW_KERNELS),
    Target(
        (
            "tide/models/turns.py",
            "tide/models/lagged.py",
            "tide/models/covariates.py",
            "tide/jobs.py",
        ),
        (
            "tests/unit/tide/models/test_covariates.py",
            "tests/unit/tide/models/test_families.py",
            "tests/unit/tide/models/test_turns.py",
        ),
        ("however_surprising",),
    ),
    Target(
        (
            "tide/models/spec.py",
            "tide/models/family.py",
            "tide/models/families.py",
            "tide/models/linear.py",
        ),
        (
            "tests/unit/tide/models/test_families.py",
            "tests/property/test_families.py",
            "tests/unit/tide/models/test_newborns.py",
        ),
    ),
    Target(
        ("tide/models/period_search.py",),
        ("tests/unit/tide/models/test_period_search.py", "tests/unit/tide/models/test_newborns.py"),
    ),
    Target(("posteriors/kernels.py",), _POSTERIORS, _SLOW_POSTERIORS, jit=False),
    Target(
        (
            "posteriors/linear_models.py",
            "policies/arms.py",
            "posteriors/linear_gaussian.py",
            "posteriors/linear_models.py",
            "posteriors/normal_inverse_gamma.py",
        ),
        _POSTERIORS,
        ("100_000_rounds", "brute_force"),
    ),
    Target(
        (
            "tide/mixture.py",
            "tide/scale.py",
            "tide/pending.py",
            "tide/window.py",
            "tide/context.py",
            "tide/explain.py",
        ),
        ("tests/unit/tide/test_parts.py", "tests/property/test_tide_parts.py"),
    ),
    Target(
        ("tide/patterns.py", "tide/search.py", "tide/rebuild.py"),
        (
            "tests/unit/tide/test_rebuild.py",
            "tests/unit/tide/test_births.py",
            "tests/unit/tide/test_steps.py",
            "tests/golden/test_trials.py",
        ),
    ),
    Target(
        (
            "experiments/archive.py",
            "experiments/maintenance.py",
            "experiments/rows.py",
            "experiments/store.py",
        ),
        ("tests/unit/experiments/store", "tests/property/test_store.py"),
        ("two_processes", "4096_rounds"),
    ),
    Target(
        ("reporting/frames.py",),
        ("tests/unit/reporting/test_normalise.py", "tests/unit/reporting/test_frame.py"),
    ),
    Target(
        (
            "policies/guard.py",
            "policies/checks.py",
            "state.py",
        ),
        (
            "tests/unit/policies/test_guard.py",
            "tests/unit/policies/test_checks.py",
            "tests/unit/policies/test_rounds.py",
            "tests/unit/policies/test_seal.py",
            "tests/property/test_snapshot_damage.py",
        ),
    ),
)
