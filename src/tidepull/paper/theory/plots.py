"""Pictures of the regret bound with measurement error, and of the simulations that test it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tidepull.paper.theory.effective_error import EffectiveError
from tidepull.paper.theory.simulate import Exponent, Simulation
from tidepull.reporting.figures import plain_ticks, pyplot, save, unbox

_REGRET, _BOUND, _GUIDE, _SECOND = "#0072b2", "#d55e00", "#8c8c8c", "#009e73"
_NAMES = {"epsilon": "ε", "d": "d", "k": "K", "T": "T"}


def _describe(result: Simulation) -> str:
    setting, scenario = result.setting, result.scenario
    return (
        f"d = {setting.d}, K = {setting.k}, ε = {setting.epsilon:g}, σ = {setting.sigma:g}; "
        f"{scenario.adversary} contexts, {scenario.noise} noise; {scenario.seeds} trials"
    )


def regret_against_bound(result: Simulation, *, path: Path) -> None:
    """Empirical regret (mean, and all trials as a band), the bound, 2T, and slopes 1/2 and 1, on
    log axes."""
    plt = pyplot()
    figure, axes = plt.subplots(figsize=(8, 5.2), layout="constrained")
    T = result.checkpoints.astype(float)
    regret, label = result.regret, "regret: mean, and range of all trials"
    mean, low, high = regret.mean(axis=0), regret.min(axis=0), regret.max(axis=0)
    axes.loglog(T, result.bound, color=_BOUND, lw=2, label="the theorem's bound")
    axes.loglog(T, 2 * T, color="black", lw=1.2, ls=(0, (6, 3)), label="trivial bound, 2T")
    shown = mean > 0
    if shown.any():
        floor = float(mean[shown].min()) / 3
        axes.fill_between(
            T, np.maximum(low, floor), np.maximum(high, floor), color=_REGRET, alpha=0.18, lw=0
        )
        axes.loglog(T[shown], mean[shown], color=_REGRET, lw=2.4, label=label)
        end = mean[-1]
        for power, style, name in ((0.5, ":", "√T"), (1.0, "-.", "T")):
            guide = end * (T / T[-1]) ** power
            axes.loglog(T, guide, color=_GUIDE, ls=style, lw=1.4, label=f"slope of {name}")
        axes.set_ylim(bottom=floor)
    axes.set(xlabel="horizon T", ylabel="cumulative regret", title=_describe(result))
    axes.title.set_fontsize(10)
    axes.set_xlim(1, T[-1])
    axes.legend(frameon=False, loc="upper left", fontsize=9, ncols=2)
    axes.set_ylim(top=float(result.bound[-1]) * 60)
    unbox(axes, grid="both")
    save(figure, [path])


def promises(result: Simulation, *, path: Path) -> None:
    """Failures of the two events and the sum of s, beside what the lemmas allow."""
    plt = pyplot()
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
    trials, t = result.scenario.seeds, np.arange(1, result.scenario.horizon + 1)
    allowed = np.cumsum(1.0 / t.astype(float) ** 2)
    delta = result.setting.delta
    left.plot(t, allowed, color=_BOUND, lw=1.6, ls="--", label="E$^Θ$ allowed: Σ 1/t²")
    label = f"E$^w$ allowed: {delta:g} Σ 1/t²"
    theta, w = (np.cumsum(n) / trials for n in (result.failures_theta, result.failures_w))
    left.plot(t, theta, color=_BOUND, lw=2.2, label="E$^Θ$ measured")
    left.plot(t, delta * allowed, color=_REGRET, lw=1.6, ls="--", label=label)
    left.plot(t, w, color=_REGRET, lw=2.2, label="E$^w$ measured")
    left.set(xscale="log", xlabel="round t", ylabel="failures so far, per trial")
    left.set_title("Events of Lemma 1")
    left.set_ylim(-0.05, 2.6)
    left.legend(frameon=False, loc="upper left", fontsize=9, ncols=2)
    T = result.checkpoints.astype(float)
    right.loglog(
        T[1:], result.potential_limit[1:], color=_BOUND, lw=2, label="allowed: 5 √(d T log T)"
    )
    sums, label = result.potential, "Σ s: mean, range of all trials"
    right.fill_between(T, sums.min(axis=0), sums.max(axis=0), color=_SECOND, alpha=0.25, lw=0)
    right.loglog(T, sums.mean(axis=0), color=_SECOND, lw=2.2, label=label)
    right.set(
        xlabel="horizon T",
        ylabel="sum of s",
        title=f"Potential: at most {result.potential_share:.0%} of its limit",
    )
    right.legend(frameon=False, loc="upper left", fontsize=9)
    for axes in (left, right):
        unbox(axes, grid="both")
    save(figure, [path])


def growth(exponents: Sequence[Exponent], *, path: Path) -> None:
    """Regret against each axis on log axes, with the fitted power and the bound's own."""
    plt = pyplot()
    rows = -(-len(exponents) // 2)
    figure, panels = plt.subplots(
        rows, 2, figsize=(8, 3.3 * rows), layout="constrained", squeeze=False
    )
    for axes in panels.ravel()[len(exponents) :]:
        axes.set_visible(False)
    for axes, e in zip(panels.ravel(), exponents, strict=False):
        x, y = np.array(e.values), np.array(e.regret)
        scaled, level = x / np.exp(np.mean(np.log(x))), np.exp(np.mean(np.log(y)))
        axes.loglog(x, y, "o", color=_REGRET, ms=5, label="mean regret")
        fit = f"power {e.slope:.2f} ({e.low:.2f} to {e.high:.2f})"
        axes.loglog(x, level * scaled**e.slope, color=_REGRET, lw=1.8, label=fit)
        bound = f"the bound's power {e.bound_slope:.2f}"
        axes.loglog(x, level * scaled**e.bound_slope, color=_BOUND, lw=1.4, ls="--", label=bound)
        axes.set(xlabel=_NAMES[e.axis], ylabel="regret")
        axes.set_ylim(top=axes.get_ylim()[1] * 3)
        axes.legend(frameon=False, fontsize=9, loc="upper left")
        plain_ticks(axes)
        unbox(axes, grid="both")
    save(figure, [path])


def effective_error(measured: EffectiveError, *, title: str, path: Path) -> None:
    """The features' error between trainings above the cumulative regret, over the rounds of one
    trial."""
    plt = pyplot()
    figure, (top, bottom) = plt.subplots(
        2, 1, figsize=(8, 6.4), layout="constrained", sharex=True, height_ratios=(3, 2)
    )
    middle = measured.first + measured.length / 2
    lines = (
        (measured.nothing, "predicting 0", {"color": "black", "lw": 1.2, "ls": (0, (6, 3))}),
        (measured.vectors, "the arms' vectors, best linear map", {"color": _GUIDE, "lw": 1.8}),
        (measured.last_layer, "learned features, the policy's last layer", {"color": _SECOND}),
        (measured.features, "learned features, best linear map", {"color": _BOUND, "lw": 2.4}),
        (measured.regret_per_round, "regret a round", {"color": _REGRET, "lw": 1.4, "ls": ":"}),
    )
    for errors, label, style in lines:
        top.plot(middle, errors, label=label, **{"lw": 1.2, **style})
    top.set(ylabel="error on held-out rounds (reward)", title=title)
    top.set_ylim(0, 1.35 * max(float(np.max(line.get_ydata())) for line in top.get_lines()))
    top.legend(frameon=False, fontsize=9, loc="upper right", ncols=2)
    bottom.plot(np.arange(1, len(measured.regret) + 1), measured.regret, color=_REGRET, lw=2.2)
    bottom.set(xlabel="round", ylabel="cumulative regret", xlim=(0, len(measured.regret)))
    bottom.set_ylim(bottom=0)
    for axes in (top, bottom):
        unbox(axes, grid="both")
    save(figure, [path])
