"""The formulas, against a second implementation at 50 digits written from the paper's text."""

from __future__ import annotations

import itertools
import math
from typing import Any

import mpmath
import numpy as np
import pytest

from tidepull.errors import ParameterError
from tidepull.paper.theory import bound as theory
from tidepull.paper.theory.bound import LinearSetting, regret_bound

HORIZONS = (1, 2, 7, 4096, 10**9)
SETTINGS = [
    LinearSetting(d=d, k=k, epsilon=epsilon, delta=delta, sigma=sigma)
    for d, k, epsilon, delta, sigma in itertools.product(
        (1, 3, 10_000), (1, 10**9), (0.0, 1e-13, 2.0), (1e-300, 0.05, 1 - 1e-12), (0.0, 0.05, 30.0)
    )
]


def exact(t: int, s: LinearSetting, branch: str = "smaller") -> dict[str, Any]:
    """All quantities of the theorem as printed, in 50-digit arithmetic."""
    with mpmath.workdps(50):
        m = mpmath
        t, d, K = m.mpf(t), m.mpf(s.d), m.mpf(s.k)
        eps, delta, sigma = m.mpf(s.epsilon), m.mpf(s.delta), m.mpf(s.sigma)
        p = m.sqrt(t - 1) if s.tight else m.sqrt(t * d * m.log((t + d) / d))
        nu = 3 * sigma * m.sqrt(d * m.log(t / delta)) + eps * p
        l = sigma * m.sqrt(d * m.log(t**3 / delta)) + 1 + eps * p  # noqa: E741
        radii = {"dimension": 2 * m.sqrt(d * m.log(t)), "arms": 2 * m.sqrt(m.log(t * K))}
        c = radii.get(branch, min(radii.values()))
        g = c * nu + l
        M = 44 * m.e * m.sqrt(m.pi)
        total = (
            4 * eps * t
            + M * g * 5 * m.sqrt(d * t * m.log(t))
            + m.pi**2 / 3
            + (4 + 4 * eps + M * g) * m.sqrt(2 * t * m.log(2 / delta))
        )
        return {"p": p, "nu": nu, "l": l, "c": c, "g": g, "total": total, "radii": radii}


def relative_error(value: float, reference: Any) -> float:
    with mpmath.workdps(50):
        if reference == 0:
            return abs(float(value))
        return float(abs((mpmath.mpf(float(value)) - reference) / reference))


@pytest.mark.parametrize("branch", ["smaller", "dimension", "arms"])
def test_formulas_agree_with_fifty_digits(branch: theory.Branch) -> None:
    worst = 0.0
    with np.errstate(all="raise"):
        for setting, T in itertools.product(SETTINGS, HORIZONS):
            reference = exact(T, setting, branch)
            ours = {
                "p": theory.p(T, setting),
                "nu": theory.nu(T, setting),
                "l": theory.l(T, setting),
                "c": theory.c(T, setting, branch),
                "g": theory.g(T, setting, branch),
                "total": regret_bound(T, setting, branch).total,
            }
            for name, value in ours.items():
                error = relative_error(float(value), reference[name])
                assert error < 1e-12, (name, setting, T)
                worst = max(worst, error)
    assert worst > 0, (
        "an exact agreement everywhere would mean that the reference is not independent"
    )


def test_tight_variant_agrees_with_fifty_digits() -> None:
    for T in HORIZONS:
        setting = LinearSetting(d=7, k=5, epsilon=0.3, tight=True)
        reference = exact(T, setting)
        assert relative_error(float(theory.nu(T, setting)), reference["nu"]) < 1e-12
        assert relative_error(float(regret_bound(T, setting).total), reference["total"]) < 1e-12


def test_arrays_of_rounds_give_the_same_numbers_one_by_one() -> None:
    setting = LinearSetting(d=4, k=9, epsilon=0.02)
    t = np.array([[1, 2, 3], [50, 10**6, 10**9]])
    for function in (theory.p, theory.nu, theory.l, theory.c, theory.g):
        together = function(t, setting)
        assert together.shape == t.shape
        assert [float(x) for x in together.ravel()] == [
            float(function(int(x), setting)) for x in t.ravel()
        ]
    bound = regret_bound(t, setting)
    assert [float(x) for x in bound.total.ravel()] == [
        float(regret_bound(int(x), setting).total) for x in t.ravel()
    ]


def test_known_size_of_the_bound() -> None:
    # 238 times the trivial 2T, for d = 2, K = 25, sigma = 0.05 and no error at T = 4096.
    assert float(regret_bound(4096, LinearSetting(d=2, k=25)).total) / 8192 == pytest.approx(
        238, abs=0.5
    )
    assert pytest.approx(211.993, abs=5e-4) == theory.LEMMA_4


def test_active_branch_is_the_smaller_of_the_two() -> None:
    for setting, T in itertools.product(SETTINGS, HORIZONS):
        radii = exact(T, setting)["radii"]
        named = str(theory.active_branch(T, setting))
        other = "arms" if named == "dimension" else "dimension"
        assert radii[named] <= radii[other] * (1 + mpmath.mpf("1e-15"))
        total = float(regret_bound(T, setting).total)
        assert total == float(regret_bound(T, setting, named).total)  # type: ignore[arg-type]
    mixed = regret_bound([2, 10**6], LinearSetting(d=2, k=25))
    assert mixed.branch.tolist() == ["dimension", "arms"]


def test_both_splits_of_the_bound_add_up() -> None:
    for setting, T in itertools.product(SETTINGS, HORIZONS):
        bound = regret_bound(T, setting)
        assert float(bound.base + bound.linear) == pytest.approx(float(bound.total), rel=1e-12)


def test_linear_part_is_proportional_to_epsilon() -> None:
    small, large = (regret_bound(10**5, LinearSetting(d=3, k=4, epsilon=e)) for e in (0.01, 0.05))
    assert float(large.linear) == pytest.approx(5 * float(small.linear), rel=1e-12)
    assert float(large.base) == float(small.base)


def test_rare_term_is_the_sum_of_two_over_t_squared() -> None:
    n = 10**6
    direct = math.fsum(2 / t**2 for t in range(1, n + 1))
    assert regret_bound(1, LinearSetting(d=1, k=1)).rare == pytest.approx(direct + 2 / n, rel=1e-11)


def test_no_overflow_at_the_far_end() -> None:
    with np.errstate(all="raise"):
        bound = regret_bound(
            np.array([1, 10**9, 10**15]), LinearSetting(d=10**4, k=10**9, epsilon=2.0, sigma=1e3)
        )
    assert np.isfinite(bound.total).all()


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"epsilon": -0.1}, "epsilon"),
        ({"epsilon": math.nan}, "epsilon"),
        ({"delta": 0.0}, "delta"),
        ({"delta": 1.0}, "delta"),
        ({"delta": -3.0}, "delta"),
        ({"k": 0}, "k"),
        ({"d": 0}, "d"),
        ({"d": 2.5}, "d"),
        ({"sigma": -1.0}, "sigma"),
        ({"sigma": math.inf}, "sigma"),
    ],
)
def test_impossible_arguments_are_refused_by_name(change: dict[str, Any], name: str) -> None:
    with pytest.raises(ParameterError, match=f"^{name} must be"):
        LinearSetting(**({"d": 3, "k": 4} | change))


@pytest.mark.parametrize("t", [0, -1, 0.5, math.nan, math.inf, 10**400, "soon", [1, 2, 0]])
def test_rounds_below_one_are_refused(t: Any) -> None:
    with pytest.raises(ParameterError, match="^t must be"):
        theory.g(t, LinearSetting(d=3, k=4))
    with pytest.raises(ParameterError, match="^horizon must be"):
        regret_bound(t, LinearSetting(d=3, k=4))
