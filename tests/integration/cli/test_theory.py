from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tidepull.cli.theory import app
from tidepull.errors import ParameterError
from tidepull.paper.theory import bound as theory
from tidepull.paper.theory.bound import LinearSetting, regret_bound

BOUND = ["bound", "--d", "10", "--k", "20", "--horizon", "4096", "--epsilon", "0.01"]
SMALL = ["--horizon", "64", "--seeds", "4"]


def invoke(*arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout


def test_bound_prints_only_json_when_asked() -> None:
    report: dict[str, Any] = json.loads(invoke(*BOUND, "--json"))
    setting = LinearSetting(d=10, k=20, epsilon=0.01, delta=0.05, sigma=0.05)
    assert report["bound"] == float(regret_bound(4096, setting).total)
    assert report["g"] == float(theory.g(4096, setting))
    assert report["nu"] == float(theory.nu(4096, setting))
    assert report["l"] == float(theory.l(4096, setting))
    assert report["branch"] == "arms"
    assert report["linear_from"] == 551
    terms = [report[name] for name in ("mismatch", "exploration", "rare", "luck")]
    assert sum(terms) == pytest.approx(report["bound"])
    assert (
        report["branches"]["arms"]["bound"]
        == report["bound"]
        < report["branches"]["dimension"]["bound"]
    )


def test_bound_names_the_branch_and_the_horizon_of_the_linear_term() -> None:
    shown = invoke(*BOUND)
    assert "arms (active)" in shown
    assert "dominates from T = 551 on" in shown
    assert "3.339e+07" in shown


def test_bound_without_error_says_that_no_linear_term_dominates() -> None:
    assert "never dominates" in invoke("bound", "--d", "2", "--k", "25", "--horizon", "4096")


@pytest.mark.parametrize(
    ("option", "value", "name"),
    [
        ("--epsilon", "-1", "epsilon"),
        ("--delta", "1", "delta"),
        ("--k", "0", "k"),
        ("--horizon", "0", "horizon"),
    ],
)
def test_bound_refuses_impossible_arguments_by_name(option: str, value: str, name: str) -> None:
    with pytest.raises(ParameterError, match=f"^{name} must be"):
        CliRunner().invoke(app, [*BOUND, option, value], catch_exceptions=False)


def test_simulate_measures_and_draws(tmp_path: Path) -> None:
    picture = tmp_path / "new" / "regret.svg"
    shown = invoke("simulate", *SMALL, "--epsilon", "0.1", "--growth", "--out", str(picture))
    assert "failures of E^Θ" in shown
    assert [line.split()[0] for line in shown.splitlines()[-6:-1]] == [
        "axis",
        "T",
        "epsilon",
        "d",
        "k",
    ]
    for name in ("regret", "regret-promises", "regret-growth"):
        assert (tmp_path / "new" / f"{name}.svg").read_text().startswith("<?xml")


def test_simulate_is_deterministic_in_numbers_and_pictures(tmp_path: Path) -> None:
    reports, pictures = [], []
    for name in ("a.svg", "b.svg"):
        report = json.loads(invoke("simulate", *SMALL, "--json", "--out", str(tmp_path / name)))
        report.pop("rounds_per_second")
        reports.append(report)
        pictures.append((tmp_path / name).read_bytes())
    assert reports[0] == reports[1]
    assert pictures[0] == pictures[1]


def test_simulate_draws_nothing_with_json_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    report = json.loads(
        invoke("simulate", *SMALL, "--json", "--no-inflate", "--adversary", "hidden-best")
    )
    assert report["regret"]["worst"] == 0
    assert report["bound_over_worst"] is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["--adversary", "kind"], "adversary"),
        (["--out", "picture.txt"], "--out"),
        (["--seeds", "200000"], "seeds"),
    ],
)
def test_simulate_refuses_what_it_cannot_do(arguments: list[str], name: str) -> None:
    with pytest.raises(ParameterError, match=f"^{name} must"):
        CliRunner().invoke(app, ["simulate", *SMALL, *arguments], catch_exceptions=False)


def test_check_shows_one_line_for_each_configuration() -> None:
    shown = invoke("check", "--horizon", "16", "--seeds", "2").splitlines()
    assert shown[0].startswith("46 of 46 configurations keep every promise")
    assert all(line.endswith("yes") for line in shown[2:48])
    assert shown[48] == "The steps of the proof"
    steps = [line.split("  ")[0] for line in shown[50:]]
    assert steps == [
        *("Theorem", "Theorem", "Lemma 1", "Lemma 1", "Lemma 2"),
        *("Lemma 2", "Lemma 3", "Lemma 4", "Theorem", "Azuma", "Lemma 8"),
        *["Potential"] * 4,
        "Realised",
    ]
    assert all(line.endswith((" of 46", "13 of 13")) for line in shown[50:])
    reports = json.loads(invoke("check", "--horizon", "4", "--seeds", "20", "--json"))
    assert len(reports) == 46
    assert all(step["kept"] for report in reports for step in report["promises"]["steps"])


def test_features_measures_and_draws(tmp_path: Path) -> None:
    small = [
        "--set",
        "units=4,4,4",
        "--set",
        "epochs=1",
        "--set",
        "train_every=8",
        "--horizon",
        "96",
    ]
    picture = tmp_path / "features.svg"
    shown = invoke("features", "rotating-vector-32", *small, "--out", str(picture))
    assert shown.splitlines()[-2].startswith("88 to 95")
    assert picture.read_text().startswith("<?xml")
    report = json.loads(invoke("features", "rotating-vector-32", *small, "--json"))
    assert len(report["stretches"]) == 12
