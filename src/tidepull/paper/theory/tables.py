"""Bounds and simulations as plain JSON values, and the tables made from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from tidepull.paper.theory import bound as theory
from tidepull.paper.theory.bound import (
    Branch,
    LinearSetting,
    below_trivial_from,
    linear_from,
    premise_from,
    premise_sigma,
    regret_bound,
)
from tidepull.paper.theory.simulate import Exponent, Simulation, promises
from tidepull.reporting.tables import Cell, Table, number

_TERMS = ("mismatch", "exploration", "rare", "luck", "base", "linear")
_INGREDIENTS = ("p", "nu", "l", "c", "g")


def bound_report(setting: LinearSetting, horizon: int) -> dict[str, Any]:
    """The bound at one horizon: its terms, its ingredients, both branches, and the horizons that
    matter."""
    bound = regret_bound(horizon, setting)
    return {
        "horizon": horizon,
        **setting.to_mapping(),
        "bound": float(bound.total),
        "trivial": 2.0 * horizon,
        "branch": str(bound.branch),
        "branches": {name: _branch(setting, horizon, name) for name in ("dimension", "arms")},
        **{name: float(getattr(bound, name)) for name in _TERMS},
        **{name: float(getattr(theory, name)(horizon, setting)) for name in _INGREDIENTS},
        "linear_from": linear_from(setting),
        "below_trivial_from": below_trivial_from(setting),
        "premise_from": premise_from(setting),
        "premise_sigma": premise_sigma(setting),
    }


def _branch(setting: LinearSetting, horizon: int, branch: Branch) -> dict[str, float]:
    return {
        "bound": float(regret_bound(horizon, setting, branch).total),
        "c": float(theory.c(horizon, setting, branch)),
        "g": float(theory.g(horizon, setting, branch)),
    }


def simulation_report(result: Simulation, exponents: Sequence[Exponent] = ()) -> dict[str, Any]:
    """What a simulation measured, beside what was promised."""
    final = result.regret[:, -1]
    scenario, bound = result.scenario, float(result.bound[-1])
    steps = [{**asdict(step), "kept": step.kept} for step in promises(result)]
    return {
        **result.setting.to_mapping(),
        **scenario.to_mapping(),
        "regret": {
            "mean": float(final.mean()),
            "worst": float(final.max()),
            "trials": final.tolist(),
        },
        "bound": bound,
        "bound_over_worst": bound / float(final.max()) if final.max() > 0 else None,
        "trivial": 2.0 * scenario.horizon,
        "trials_with_w_always": float(np.mean(result.clean_w)),
        "nearest_w": {"first": float(result.nearest_w[0]), "last": float(result.nearest_w[-1])},
        "promises": {"steps": steps, "kept": all(step["kept"] for step in steps)},
        "saturated": result.saturated,
        "exponents": [asdict(exponent) for exponent in exponents],
        "rounds_per_second": scenario.horizon * scenario.seeds / result.seconds,
    }


def bound_tables(report: dict[str, Any]) -> list[Table]:
    """Terms of the bound, its split by epsilon, its ingredients, and both branches."""
    total = report["bound"]
    title = (
        f"With probability {1 - report['delta']:g}, regret after {report['horizon']:,} rounds is "
        f"at most {total:,.4g} "
        f"({total / report['trivial']:,.3g} times the trivial 2T)"
    )
    terms = {
        "mismatch": "4 ε T",
        "exploration": "44 e √π g_T · 5 √(d T log T)",
        "rare": "π² / 3",
        "luck": "(4 + 4 ε + 44 e √π g_T) √(2 T log(2/δ))",
    }
    parts = {
        "base": "what remains without error, of order √T",
        "linear": "what is proportional to ε, of order T",
    }
    ingredients = {
        "p": ("p_T", "√(T - 1)" if report["tight"] else "√(T d log((T + d)/d))"),
        "nu": ("ν_T", "3 σ √(d log(T/δ)) + ε p_T"),
        "l": ("l_T", "σ √(d log(T³/δ)) + 1 + ε p_T"),
        "c": ("c_T", "min(2 √(d log T), 2 √(log(T K)))"),
        "g": ("g_T", "c_T ν_T + l_T"),
    }
    columns, split = ("term", "formula", "value", "share"), "The same total, split by ε"
    shares = [
        Table(name, heading, columns, tuple(_term(report, *term) for term in formulas.items()))
        for name, heading, formulas in (("terms", title, terms), ("split", split, parts))
    ]
    values = tuple(
        (Cell(name), Cell(formula), _number(report[key]))
        for key, (name, formula) in ingredients.items()
    )
    active = {name: " (active)" if name == report["branch"] else "" for name in report["branches"]}
    branches = tuple(
        (Cell(f"{name}{active[name]}"), *(_number(branch[key]) for key in ("c", "g", "bound")))
        for name, branch in report["branches"].items()
    )
    return [
        *shares,
        Table("ingredients", "Ingredients", ("name", "formula", "value"), values),
        Table("branches", "Branches of the minimum", ("branch", "c_T", "g_T", "bound"), branches),
    ]


def _term(report: dict[str, Any], term: str, formula: str) -> tuple[Cell, ...]:
    share = number(100 * report[term] / report["bound"], 1, unit="%")
    return Cell(term), Cell(formula), _number(report[term]), share


def bound_sentences(report: dict[str, Any]) -> list[str]:
    """From which horizon on the linear term leads, the bound is useful, and Lemma 2's premise
    holds."""
    linear, trivial = report["linear_from"], report["below_trivial_from"]
    leads, holds = f"dominates {_from(linear)}", "in every round"
    if linear is None and report["epsilon"] == 0:
        leads = "never dominates: ε is 0"
    if (premise := report["premise_from"]) != 1:
        sigma = f"σ ≥ {report['premise_sigma']:.4g}"
        holds = (
            f"{_from(premise, 't')}; it would in every round with {sigma}, which is always allowed"
        )
    return [
        f"The term linear in T {leads}.",
        f"The bound says more than the trivial 2T {_from(trivial)}.",
        f"Lemma 2's premise l_t ≤ ν_t holds {holds}.",
    ]


def _from(horizon: int | None, name: str = "T") -> str:
    return f"at no {name} up to 10¹⁵" if horizon is None else f"from {name} = {horizon:,} on"


def simulation_tables(report: dict[str, Any]) -> list[Table]:
    """The regret of one simulation; the steps of the proof; fitted exponents."""
    regret, ratio, nearest = report["regret"], report["bound_over_worst"], report["nearest_w"]
    title = (
        "{seeds} trials of {horizon:,} rounds, d = {d}, K = {k}, ε = {epsilon:g}: {adversary} "
        "contexts, {noise} noise".format_map(report)
    ) + ("" if report["inflate"] else ", not inflated")
    mean, worst = f"{regret['mean']:.1f}", f"{regret['worst']:.1f}"
    first, last = f"{nearest['first']:.0%}", f"{nearest['last']:.1%}"
    rows = [
        ("regret, mean and worst trial", f"{mean}, {worst}", _text(report["bound"])),
        ("bound / worst regret", "-" if ratio is None else _text(ratio), "≥ 1"),
        ("E^w: deviation / limit, first and last round", f"{first}, {last}", "100%"),
        ("arms in the saturated set", f"{report['saturated']:.1%}", "-"),
    ]
    columns = ("measured", "value", "limit promised")
    cells = tuple((Cell(a), _right(b), _right(c)) for a, b, c in rows)
    growth = [_exponents(report["exponents"])] if report["exponents"] else []
    return [Table("simulation", title, columns, cells), steps_table([report]), *growth]


def _exponents(exponents: Sequence[dict[str, Any]]) -> Table:
    rows = tuple(
        (
            Cell(e["axis"]),
            Cell(f"{e['values'][0]:g} ... {e['values'][-1]:g}"),
            _right(f"{e['slope']:.3f} ({e['low']:.3f} to {e['high']:.3f})"),
            number(e["bound_slope"], 3),
        )
        for e in exponents
    )
    return Table(
        "growth", "Growth of regret", ("axis", "values", "regret's exponent (95%)", "bound's"), rows
    )


def check_table(reports: Sequence[dict[str, Any]]) -> Table:
    """One row for each configuration."""
    rows = tuple(
        (
            Cell(f"{r['adversary']}, {r['noise']}{_error_words(r)}"),
            Cell(f"{r['d']}, {r['k']}, {r['epsilon']:g}, {r['sigma']:g}"),
            number(r["regret"]["mean"]),
            number(r["regret"]["worst"]),
            _number(r["bound"]),
            *(
                _right(f"{step['measured']:.2g} / {step['allowed']:.2g}")
                for step in r["promises"]["steps"][1:5]
            ),
            Cell("yes" if r["promises"]["kept"] else "NO", best=not r["promises"]["kept"]),
        )
        for r in reports
    )
    count = sum(r["promises"]["kept"] for r in reports)
    each = "{seeds} trials of {horizon:,} rounds each".format_map(reports[0]) if reports else ""
    title = f"{count} of {len(reports)} configurations keep every promise of the proof ({each})"
    columns = (
        *("contexts, noise", "d, K, ε, σ", "regret", "worst", "bound"),
        *("Σs", "E^w failures", "E^Θ failures", "optimism", "kept"),
    )
    return Table("theory", title, columns, rows)


def _error_words(report: dict[str, Any]) -> str:
    return (", along w" if report["error"] == "aligned" else "") + (
        "" if report["schedule"] == "constant" else f", {report['schedule']}"
    )


def steps_table(reports: Sequence[dict[str, Any]]) -> Table:
    """Every step of the proof, the worst of all configurations."""
    rows = []
    for steps in zip(*(report["promises"]["steps"] for report in reports), strict=True):
        promised = [step for step in steps if step["promised"]]
        near = [step["nearest"] for step in steps if step["nearest"] is not None]
        rows.append(
            (
                Cell(steps[0]["lemma"]),
                Cell(steps[0]["what"]),
                _right(_worst(promised)),
                _right(_worst([step for step in steps if not step["promised"]])),
                number(max(near), 2) if near else Cell(""),
                _right(f"{sum(step['kept'] for step in promised)} of {len(promised)}"),
            )
        )
    columns = ("step", "measured", "worst / allowed", "no premise", "nearest / limit", "kept")
    return Table("proof", "The steps of the proof", columns, tuple(rows))


def _worst(steps: Sequence[dict[str, Any]]) -> str:
    """The measurement that comes nearest to breaking its promise, or breaks it."""
    if not steps:
        return ""
    signed = [(s["measured"] - s["allowed"]) * (1 if s["at_least"] else -1) for s in steps]
    worst = steps[signed.index(min(signed))]
    return f"{worst['measured']:.3g} {'≥' if worst['at_least'] else '≤'} {worst['allowed']:.3g}"


def features_table(title: str, report: dict[str, Any]) -> Table:
    """The error of learned features at about ten moments of a trial, the last one included."""
    stretches = report["stretches"]
    shown = stretches[:: max(1, len(stretches) // 10)]
    shown = shown if shown[-1] is stretches[-1] else [*shown, stretches[-1]]
    measured = ("features", "last_layer", "vectors", "nothing", "regret_per_round")
    rows = tuple(
        (
            Cell(f"{s['first']:,} to {s['first'] + s['length'] - 1:,}"),
            *(number(s[name], 3) for name in measured),
        )
        for s in shown
    )
    columns = (
        *("rounds", "features", "with its last layer", "the arms' vectors"),
        *("predicting 0", "regret a round"),
    )
    return Table("features", f"{title}: effective measurement error", columns, rows)


def _text(value: float) -> str:
    return f"{value:,.4g}" if abs(value) < 1e6 else f"{value:.3e}"


def _number(value: float) -> Cell:
    return Cell(_text(value), value)


def _right(text: str) -> Cell:
    """Text that stands on the right, as numbers do."""
    return Cell(text, 0.0)
