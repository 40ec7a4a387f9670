"""The interactive charts of a report as plain data; `report.js` draws them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from tidepull.reporting.aggregate import Panel
from tidepull.reporting.colours import colour, dashes
from tidepull.reporting.frame import Study
from tidepull.reporting.sensitivity import Sensitivity
from tidepull.reporting.traces import Band
from tidepull.types import FloatArray

Chart = dict[str, Any]


def band_chart(bands: Mapping[str, Band], *, xlabel: str, ylabel: str, **options: Any) -> Chart:
    """Lines with bands."""
    series = [
        {
            **_series(name),
            "x": _numbers(band.x),
            "y": _numbers(band.mean),
            **(
                {"low": _numbers(band.low), "high": _numbers(band.high)}
                if np.isfinite(band.low).all()
                else {}
            ),
        }
        for name, band in bands.items()
    ]
    return {"kind": "lines", "xlabel": xlabel, "ylabel": ylabel, "series": series, **options}


def dots_chart(study: Study) -> Chart:
    """The final regret of every trial, a row for each policy."""
    series = [
        {**_series(g.name), "x": _numbers(g.regrets), "hover": [f"seed {row.seed}" for row in g.rows]}
        for g in study.contenders
    ]
    return {"kind": "dots", "xlabel": "final regret of each trial", "ylabel": "", "series": series}


def profile_chart(panel: Panel) -> Chart:
    """Performance profiles."""
    bands = {p.policy: Band(panel.thresholds, p.share, p.low, p.high) for p in panel.profiles}
    return band_chart(
        bands, xlabel="regret as a share of random's (0 oracle, 1 random)", ylabel="share of trials"
    )


def sensitivity_chart(found: Iterable[Sensitivity]) -> Chart:
    """Mean reward of every setting from best to worst; the hover names the setting."""
    series = [
        {
            **_series(s.name),
            "x": _numbers(np.linspace(0, 100, len(s.means))),
            "y": _numbers(s.means),
            "hover": list(s.settings),
        }
        for s in found
    ]
    return {
        "kind": "lines",
        "xlabel": "settings from best to worst (%)",
        "ylabel": "mean cumulative reward",
        "free": True,
        "series": series,
    }


def thinned(charts: Mapping[str, Chart], most_numbers: int) -> Mapping[str, Chart]:
    """Every n-th point (and the last) of all lines, so that all charts together stay within the budget."""
    total = sum(len(s.get(key, ())) for c in charts.values() for s in c["series"] for key in _ARRAYS)
    step = -(-total // most_numbers)
    if step <= 1:
        return charts
    return {
        id: chart
        if chart["kind"] == "dots"
        else {**chart, "series": [_every(series, step) for series in chart["series"]]}
        for id, chart in charts.items()
    }


_ARRAYS = ("x", "y", "low", "high", "hover")


def _every(series: Mapping[str, Any], step: int) -> dict[str, Any]:
    last = len(series["x"]) - 1
    kept = sorted({*range(0, last + 1, step), last})
    return {key: [value[i] for i in kept] if key in _ARRAYS else value for key, value in series.items()}


def _series(name: str) -> dict[str, Any]:
    return {"name": name, "colour": colour(name), "dash": list(dashes(name))}


def _numbers(values: FloatArray | Sequence[float]) -> list[float | None]:
    """Five significant digits; None where there is no number."""
    return [float(f"{v:.5g}") if math.isfinite(v) else None for v in np.asarray(values, dtype=float)]
