"""Which modules are mutated, and which quick tests judge a mutant of each.

Numba's cache notices changes in the file of a kernel only, and compiling costs more than all tests together: mutants
of compiled modules are judged by the same functions as plain Python (`jit=False`).
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
    "tests/hypotheses/test_arithmetic.py",
    "tests/properties/test_families.py",
    "tests/hypotheses/test_kernels.py",
)
_SLOW_KERNELS = (
    "test_bank_stays_positive_definite_for_a_million_rounds",
    "test_draws_have_the_mean_and_spread_of_the_posterior",
    "test_every_hypothesis_gives_probabilities_of_binary_rewards_that_add_up_to_one",
)
_POSTERIORS = ("tests/properties/test_posteriors.py", "tests/posteriors")
_SLOW_POSTERIORS = (
    "100_000_rounds",
    "brute_force",
    "test_update_refuses_what_is_not_finite_and_keeps_its_state",
)

TARGETS = (
    Target(
        ("hypotheses/kernels.py", "hypotheses/weights.py", "hypotheses/algebra.py"),
        _KERNELS,
        _SLOW_KERNELS,
        jit=False,
    ),
    Target(
        ("hypotheses/scan.py",),
        ("tests/hypotheses/test_scan.py", "tests/hypotheses/test_seek.py"),
        ("one_per_cent", "with_their_offset", "through_contexts"),
        jit=False,
    ),
    Target(("hypotheses/bank.py",), _KERNELS, _SLOW_KERNELS),
    Target(
        (
            "hypotheses/turns.py",
            "hypotheses/last_event.py",
            "hypotheses/last_success.py",
            "hypotheses/notes.py",
            "hypotheses/slices.py",
        ),
        (
            "tests/hypotheses/test_memories.py",
            "tests/hypotheses/test_families.py",
            "tests/hypotheses/test_turns.py",
        ),
        ("however_surprising",),
    ),
    Target(
        (
            "hypotheses/spec.py",
            "hypotheses/family.py",
            "hypotheses/families.py",
            "hypotheses/stationary.py",
            "hypotheses/discounted.py",
            "hypotheses/fourier.py",
            "hypotheses/square.py",
            "hypotheses/seasons.py",
        ),
        (
            "tests/hypotheses/test_families.py",
            "tests/properties/test_families.py",
            "tests/hypotheses/test_newborns.py",
        ),
    ),
    Target(("hypotheses/seek.py",), ("tests/hypotheses/test_seek.py", "tests/hypotheses/test_newborns.py")),
    Target(("posteriors/kernels.py",), _POSTERIORS, _SLOW_POSTERIORS, jit=False),
    Target(
        (
            "posteriors/beta.py",
            "posteriors/linear_models.py",
            "posteriors/forgetting.py",
            "posteriors/linear_gaussian.py",
            "posteriors/linear_models.py",
            "posteriors/normal_inverse_gamma.py",
        ),
        _POSTERIORS,
        ("100_000_rounds", "brute_force"),
    ),
    Target(
        (
            "policies/tide/mixture.py",
            "policies/tide/scale.py",
            "policies/tide/trail.py",
            "policies/tide/window.py",
            "policies/tide/context.py",
            "policies/tide/explain.py",
        ),
        ("tests/policies/tide/test_parts.py", "tests/properties/test_tide_parts.py"),
    ),
    Target(
        ("policies/tide/policy.py", "policies/tide/births.py", "policies/tide/rebuild.py"),
        (
            "tests/policies/tide/test_rebuild.py",
            "tests/policies/tide/test_births.py",
            "tests/policies/tide/test_steps.py",
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
        ("tests/bench/store", "tests/properties/test_store.py"),
        ("two_processes", "4096_rounds"),
    ),
    Target(("reporting/frames.py",), ("tests/analysis/test_normalise.py", "tests/analysis/test_frame.py")),
    Target(
        ("policies/guard.py", "policies/checks.py", "policies/checks.py", "policies/seal.py", "snapshots.py"),
        (
            "tests/policies/test_guard.py",
            "tests/policies/test_checks.py",
            "tests/policies/test_rounds.py",
            "tests/policies/test_seal.py",
            "tests/properties/test_snapshot_damage.py",
        ),
    ),
)
