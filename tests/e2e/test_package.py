"""What is published: wheel and sdist hold what they must, and the wheel runs in a fresh
environment."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

import tidepull
from manual.release import build, materials

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

TRIAL = """
import tidepull, importlib.resources as resources
assert tidepull.run_trial("stationary-bernoulli", "ucb", horizon=50).regret.shape == (50,)
with tidepull.Agent("shop.db", arms=["blue", "green"], policy="ucb") as agent:
    agent.reward(agent.choose().id, 1.0)
static = resources.files("tidepull.service") / "dashboard"
assert all((static / name).is_file() for name in ("index.html", "main.js", "style.css", "uPlot.LICENSE.txt"))
assert (resources.files("tidepull.reporting") / "report.js").is_file()
print(tidepull.__file__)
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A wheel and an sdist of what is committed, as `make release` makes them."""
    pytest.importorskip("hatchling", reason="the extra 'dev' has hatchling")
    if not (ROOT / ".git").exists():
        pytest.skip("a release is built from a repository")
    return build(tmp_path_factory.mktemp("built"))


def test_two_builds_in_other_places_zones_and_masks_are_equal(
    built: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1")  # the commit's time counts
    before = os.umask(0o077)
    try:
        again = build(tmp_path / "elsewhere")
    finally:
        os.umask(before)
    assert [one.name for one in again] == [one.name for one in built]
    assert [one.read_bytes() for one in again] == [one.read_bytes() for one in built]


def test_wheel_and_sdist_hold_nothing_of_research_tests_and_manual(
    built: tuple[Path, Path],
) -> None:
    with tarfile.open(built[1]) as archive:
        sources = {name.partition("/")[2] for name in archive.getnames()}
    wheel = set(zipfile.ZipFile(built[0]).namelist())
    assert {name.split("/")[0] for name in wheel} == {
        "tidepull",
        f"tidepull-{tidepull.__version__}.dist-info",
    }
    assert {name.split("/")[0] for name in sources if "/" in name} == {"src", "suites", "examples"}
    assert not [name for name in {*sources, *wheel} if "research/" in name or "tests/" in name]


def test_bill_of_materials_lists_what_an_extra_brings(built: tuple[Path, Path]) -> None:
    bill = materials(built[0], "serve")
    scopes = {one["name"]: one["scope"] for one in bill["components"]}
    plain = {name for name, scope in scopes.items() if scope == "required"}
    assert plain == {"numpy", "numba", "llvmlite", "threadpoolctl"}
    assert {"starlette", "uvicorn", "anyio"} <= set(scopes) - plain
    assert "pandas" not in scopes
    refs = {one["bom-ref"] for one in bill["components"]} | {
        bill["metadata"]["component"]["bom-ref"]
    }
    assert {one["ref"] for one in bill["dependencies"]} == refs
    assert {other for one in bill["dependencies"] for other in one["dependsOn"]} <= refs
    assert all(one.get("licenses") for one in bill["components"])


def test_wheel_holds_every_module_suite_and_static_file(built: tuple[Path, Path]) -> None:
    held = set(zipfile.ZipFile(built[0]).namelist())
    package = ROOT / "src" / "tidepull"
    kept = subprocess.run(["git", "ls-files", "."], cwd=package, capture_output=True, text=True)
    files = kept.stdout.split() if kept.returncode == 0 else []
    assert {f"tidepull/{name}" for name in files} <= held
    assert {f"tidepull/suites/{suite.name}" for suite in (ROOT / "suites").glob("*.toml")} <= held
    assert "tidepull/py.typed" in held
    assert any(name.endswith("licenses/LICENSE") for name in held)


def test_sdist_holds_sources_and_licence_and_stays_small(built: tuple[Path, Path]) -> None:
    with tarfile.open(built[1]) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    assert {
        "pyproject.toml",
        "README.md",
        "LICENSE",
        "CHANGELOG.md",
        "src/tidepull/__init__.py",
    } <= held
    assert built[1].stat().st_size < 12e6


@pytest.fixture(scope="module")
def fresh(built: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of a new environment with the wheel in it; its dependencies are borrowed from
    this one."""
    place = tmp_path_factory.mktemp("fresh") / "env"
    venv.create(place, with_pip=False, symlinks=True)
    programs = place / "bin"
    site = (
        place / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    )
    (site / "borrowed.pth").write_text(
        sysconfig.get_path("purelib") + "\n"
    )  # its own .pth files are not read
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "--python"]
    install = [
        str(programs / "python"),
        "install",
        "--no-deps",
        "--no-index",
        "--no-compile",
        str(built[0]),
    ]
    subprocess.run([*pip, *install], check=True, capture_output=True, timeout=120)
    return programs


def _run(folder: Path, *command: str) -> str:
    env = {
        key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")
    }
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_wheel_runs_in_a_fresh_environment(fresh: Path, tmp_path: Path) -> None:
    said = _run(tmp_path, str(fresh / "python"), "-W", "error::DeprecationWarning", "-c", TRIAL)
    assert Path(said.strip()).is_relative_to(fresh.parent)


def test_command_of_the_wheel_runs_in_a_fresh_environment(fresh: Path, tmp_path: Path) -> None:
    tidepull_command = str(fresh / "tidepull")
    assert (
        _run(tmp_path, tidepull_command, "--version").strip() == f"tidepull {tidepull.__version__}"
    )
    assert "Decisions of your own" in _run(tmp_path, tidepull_command, "--help")
    assert "paper-table" in _run(tmp_path, tidepull_command, "list", "suites")


def test_version_is_a_literal_in_one_file() -> None:
    assert PROJECT["dynamic"] == ["version"]
    assert (
        f'__version__ = "{tidepull.__version__}"' in (ROOT / "src/tidepull/__init__.py").read_text()
    )
    assert f"## [{tidepull.__version__}] - 20" in (ROOT / "CHANGELOG.md").read_text()
    assert f"\nversion: {tidepull.__version__}\n" in (ROOT / "CITATION.cff").read_text()


def test_changelog_of_this_version_is_short() -> None:
    section = (ROOT / "CHANGELOG.md").read_text().partition(f"## [{tidepull.__version__}]")[2]
    assert len(section.partition("\n## [")[0].splitlines()) <= 80


def test_changelog_keeps_to_the_headings_of_keep_a_changelog() -> None:
    """And "Results", which says which published figures a change moved."""
    lines = (ROOT / "CHANGELOG.md").read_text().splitlines()
    versions = [line for line in lines if line.startswith("## ")]
    assert versions[0] == "## [Unreleased]"
    assert all(
        re.fullmatch(r"## \[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", line) for line in versions[1:]
    )
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security", "Results"}
    assert {line.removeprefix("### ") for line in lines if line.startswith("### ")} <= kinds


def test_versions_of_python_that_are_named_are_those_that_the_workflow_tries() -> None:
    named = {c.rpartition(" ")[2] for c in PROJECT["classifiers"] if "Python :: 3." in c}
    workflow = (ROOT / ".github" / "workflows" / "test.yml").read_text()
    (tried,) = re.findall(r"python: \[(.*)\]", workflow)
    assert named == set(re.findall(r"[\d.]+", tried))
    facts = re.search(
        r"Version ([\d.]+) · Python (3\.\d+) to (3\.\d+) ·", (ROOT / "README.md").read_text()
    )
    assert facts is not None
    assert facts[1] == tidepull.__version__
    assert {facts[2], facts[3]} == {min(named, key=_minor), max(named, key=_minor)}


def _minor(version: str) -> int:
    return int(version.partition(".")[2])


def test_every_extra_that_is_named_can_be_installed() -> None:
    extras = PROJECT["optional-dependencies"]
    texts = [
        path.read_text()
        for folder, pattern in (
            ("src", "*.py"),
            ("docs", "*.md"),
            ("examples", "*"),
            ("tests", "*.py"),
        )
        for path in (ROOT / folder).rglob(pattern)
        if path.suffix in (".py", ".md", ".service", ".yaml")
    ]
    texts += [
        (ROOT / name).read_text()
        for name in ("README.md", "Makefile", "Dockerfile", "pyproject.toml")
    ]
    installed = [
        name
        for text in texts
        for names in re.findall(r"(?:tidepull|/clone|'\.)\[([a-z,]+)\]", text)
        for name in names.split(",")
    ]
    raised = [
        name
        for text in texts
        for name in re.findall(r'(?:MissingExtraError|needs)\([^()]*, "(\w+)"\)', text)
    ]
    said = [name for text in texts for name in re.findall(r"extra `(\w+)`", text)]
    assert len(installed) > 20
    assert len(raised) > 10
    assert len(said) > 5
    assert {*installed, *raised, *said} <= set(extras)


def test_one_extra_is_enough_for_what_its_name_says() -> None:
    extras = {
        name: {re.split(r"[>\[;]", one)[0] for one in needed}
        for name, needed in PROJECT["optional-dependencies"].items()
    }
    assert {"typer", "rich", "uvicorn", "starlette", "msgspec", "httpx"} <= extras["serve"]
    assert not {"pyarrow", "matplotlib", "optuna", "scipy"} & extras["serve"]
    experiments = {"typer", "rich", "matplotlib", "jinja2", "pyarrow", "optuna", "scipy"}
    assert experiments <= extras["experiments"]
    of_logs = {"matplotlib", "jinja2", "msgspec", "typer", "rich"}
    assert extras["tables"] == {"pandas", "polars", "pyarrow", "scipy", *of_logs}
