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
    """A wheel and an sdist; the wheel is made from what the sdist holds, as an installer would."""
    pytest.importorskip("hatchling", reason="the extra 'dev' has hatchling")
    place = tmp_path_factory.mktemp("built")
    _build(ROOT, place, "sdist")
    sdist = next(place.glob("*.tar.gz"))
    with tarfile.open(sdist) as archive:
        archive.extractall(place, filter="data")
    _build(place / sdist.name.removesuffix(".tar.gz"), place, "wheel")
    return next(place.glob("*.whl")), sdist


def _build(source: Path, place: Path, target: str) -> None:
    command = [
        sys.executable,
        "-m",
        "hatchling",
        "build",
        "--target",
        target,
        "--directory",
        str(place),
    ]
    subprocess.run(command, cwd=source, check=True, capture_output=True, timeout=120)


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
    assert "version: 0" not in (ROOT / "CITATION.cff").read_text()


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


def test_classifiers_name_only_versions_of_python_that_the_suite_runs_on() -> None:
    named = {c.rpartition(" ")[2] for c in PROJECT["classifiers"] if "Python :: 3." in c}
    assert named == {"3.11"}


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
        name for text in texts for name in re.findall(r'MissingExtraError\([^()]*, "(\w+)"\)', text)
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
    assert not {"pyarrow", "matplotlib", "optuna"} & extras["serve"]
    assert {"typer", "rich", "matplotlib", "jinja2", "pyarrow", "optuna"} <= extras["experiments"]
    assert extras["tables"] == {"pandas", "polars", "pyarrow"}
