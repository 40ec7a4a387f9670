"""The tables of `tidepull theory`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tidepull.cli.console import out, print_table
from tidepull.paper.theory.tables import STEPS, worst_steps


def show_bound(report: dict[str, Any]) -> None:
    """Terms, ingredients, and what they mean."""
    total = report["bound"]
    title = (
        f"With probability {1 - report['delta']:g}, regret after {report['horizon']:,} rounds is at most {total:,.4g} "
        f"({total / report['trivial']:,.3g} times the trivial 2T)"
    )
    terms = [
        ("mismatch", "4 ε T"),
        ("exploration", "44 e √π g_T · 5 √(d T log T)"),
        ("rare", "π² / 3"),
        ("luck", "(4 + 4 ε + 44 e √π g_T) √(2 T log(2/δ))"),
    ]
    parts = [
        ("base", "what remains without error, of order √T"),
        ("linear", "what is proportional to ε, of order T"),
    ]
    for heading, names in ((title, terms), ("The same total, split by ε", parts)):
        rows = [
            [name, formula, _number(report[name]), f"{report[name] / total:.1%}"] for name, formula in names
        ]
        print_table(heading, ["term", "formula", "value", "share"], rows, right=(2, 3))
    ingredients = [
        ("p_T", "√(T - 1)" if report["tight"] else "√(T d log((T + d)/d))", "p"),
        ("ν_T", "3 σ √(d log(T/δ)) + ε p_T", "nu"),
        ("l_T", "σ √(d log(T³/δ)) + 1 + ε p_T", "l"),
        ("c_T", "min(2 √(d log T), 2 √(log(T K)))", "c"),
        ("g_T", "c_T ν_T + l_T", "g"),
    ]
    print_table(
        "Ingredients",
        ["name", "formula", "value"],
        [[n, f, _number(report[k])] for n, f, k in ingredients],
        right=(2,),
    )
    rows = [
        [
            f"{name}{' (active)' if name == report['branch'] else ''}",
            _number(b["c"]),
            _number(b["g"]),
            _number(b["bound"]),
        ]
        for name, b in report["branches"].items()
    ]
    print_table("Branches of the minimum", ["branch", "c_T", "g_T", "bound"], rows, right=(1, 2, 3))
    for sentence in _sentences(report):
        out.print(sentence, soft_wrap=True)


def _sentences(report: dict[str, Any]) -> list[str]:
    linear, trivial, premise = (report[k] for k in ("linear_from", "below_trivial_from", "premise_from"))
    return [
        "The term linear in T never dominates: ε is 0."
        if linear is None and report["epsilon"] == 0
        else f"The term linear in T dominates {_from(linear)}.",
        f"The bound says more than the trivial 2T {_from(trivial)}.",
        "Lemma 2's premise l_t ≤ ν_t holds in every round."
        if premise == 1
        else f"Lemma 2's premise l_t ≤ ν_t holds {_from(premise, 't')}; it would in every round with "
        f"σ ≥ {report['premise_sigma']:.4g}, which is always allowed.",
    ]


def _from(horizon: int | None, name: str = "T") -> str:
    return f"at no {name} up to 10¹⁵" if horizon is None else f"from {name} = {horizon:,} on"


def show_simulation(report: dict[str, Any]) -> None:
    """Regret, potential and events of one simulation."""
    kept, regret, potential = report["promises"], report["regret"], report["potential"]
    title = (
        f"{report['seeds']} trials of {report['horizon']:,} rounds, d = {report['d']}, K = {report['k']}, "
        f"ε = {report['epsilon']:g}: {report['adversary']} contexts, {report['noise']} noise"
        f"{'' if report['inflate'] else ', not inflated'}"
    )
    ratio = report["bound_over_worst"]
    nearest = f"{report['nearest_w']['first']:.0%}, {report['nearest_w']['last']:.1%}"
    rows = [
        [
            "regret, mean and worst trial",
            f"{regret['mean']:.1f}, {regret['worst']:.1f}",
            _number(report["bound"]),
        ],
        ["bound / worst regret", "-" if ratio is None else _number(ratio), "≥ 1"],
        ["sum of s, worst trial", f"{potential['worst']:.1f}", f"{potential['limit']:.1f}"],
        ["E^w failures a trial", f"{kept['w_failures']:.3g}", f"{kept['w_allowed']:.3g}"],
        ["E^w: deviation / limit, first and last round", nearest, "100%"],
        [
            "E^Θ failures a trial from round 2",
            f"{kept['theta_failures']:.3g}",
            f"{kept['theta_allowed']:.3g}",
        ],
        ["rounds with an optimistic sample", f"{kept['optimism']:.1%}", f"{kept['optimism_promised']:.1%}"],
        ["arms in the saturated set", f"{report['saturated']:.1%}", "-"],
    ]
    print_table(title, ["measured", "value", "limit promised"], rows, right=(1, 2))
    show_steps([report])
    if report["exponents"]:
        show_exponents(report["exponents"])
    out.print(f"{report['rounds_per_second']:,.0f} rounds a second", style="dim")


def show_exponents(exponents: Sequence[dict[str, Any]]) -> None:
    """Fitted powers with their intervals."""
    rows = [
        [
            e["axis"],
            f"{e['values'][0]:g} ... {e['values'][-1]:g}",
            f"{e['slope']:.3f} ({e['low']:.3f} to {e['high']:.3f})",
            f"{e['bound_slope']:.3f}",
        ]
        for e in exponents
    ]
    columns = ["axis", "values", "regret's exponent (95%)", "bound's"]
    print_table("Growth of regret", columns, rows, right=(2, 3))


def show_check(reports: Sequence[dict[str, Any]]) -> None:
    """One line for each configuration."""
    rows = []
    for r in reports:
        kept = r["promises"]
        rows.append(
            [
                f"{r['adversary']}, {r['noise']}{_error_words(r)}",
                f"{r['d']}, {r['k']}, {r['epsilon']:g}, {r['sigma']:g}",
                f"{r['regret']['mean']:.1f}",
                f"{r['regret']['worst']:.1f}",
                _number(r["bound"]),
                f"{r['potential']['worst'] / r['potential']['limit']:.1%}",
                f"{kept['w_failures']:.2g} / {kept['w_allowed']:.2g}",
                f"{kept['theta_failures']:.2g} / {kept['theta_allowed']:.2g}",
                f"{kept['optimism']:.0%}",
                "yes" if kept["kept"] else "[bold red]NO[/]",
            ]
        )
    count = sum(r["promises"]["kept"] for r in reports)
    each = f"{reports[0]['seeds']} trials of {reports[0]['horizon']:,} rounds each"
    title = f"{count} of {len(reports)} configurations keep every promise ({each})"
    columns = [
        "contexts, noise",
        "d, K, ε, σ",
        "regret",
        "worst",
        "bound",
        "Σs / limit",
        "E^w failures",
        "E^Θ failures",
        "optimism",
        "kept",
    ]
    print_table(title, columns, rows, right=range(2, 9))
    show_steps(reports)


def _error_words(report: dict[str, Any]) -> str:
    return (", along w" if report["error"] == "aligned" else "") + (
        "" if report["schedule"] == "constant" else f", {report['schedule']}"
    )


def show_steps(reports: Sequence[dict[str, Any]]) -> None:
    """Every step of the proof, the worst of all configurations."""
    print_table("The steps of the proof", list(STEPS), worst_steps(reports), right=range(2, 6))


def show_features(title: str, report: dict[str, Any]) -> None:
    """The error of learned features at about ten moments of a trial."""
    stretches = report["stretches"]
    step = max(1, len(stretches) // 10)
    shown = (
        stretches[::step] if stretches[::step][-1] is stretches[-1] else [*stretches[::step], stretches[-1]]
    )
    rows = [
        [
            f"{s['first']:,} to {s['first'] + s['length'] - 1:,}",
            f"{s['features']:.3f}",
            f"{s['last_layer']:.3f}",
            f"{s['vectors']:.3f}",
            f"{s['nothing']:.3f}",
            f"{s['regret_per_round']:.3f}",
        ]
        for s in shown
    ]
    columns = [
        "rounds",
        "features",
        "with its last layer",
        "the arms' vectors",
        "predicting 0",
        "regret a round",
    ]
    print_table(f"{title}: effective measurement error", columns, rows, right=range(1, 6))
    out.print(
        f"regret {report['regret']:.1f}; correlation of error and regret a round {report['correlation']:.2f}"
        if report["correlation"] is not None
        else f"regret {report['regret']:.1f}",
        soft_wrap=True,
    )


def _number(value: float) -> str:
    return f"{value:,.4g}" if abs(value) < 1e6 else f"{value:.3e}"
