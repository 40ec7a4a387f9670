"""What the README says is so: its numbers, its commands, and where `tide` is."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tidepull.cli import main
from tidepull.cli.run import POLICIES
from tidepull.experiments.suite import load_suite
from tidepull.policies import policies
from tidepull.problems import problems

README = (Path(__file__).parents[2] / "README.md").read_text()
WORDS = ("none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
         "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty",
         "twenty-one", "twenty-two", "twenty-three", "twenty-four", "twenty-five", "twenty-six", "twenty-seven",
         "twenty-eight", "twenty-nine", "thirty")  # fmt: skip
BLOCKS = README.split("```")[1::2]
COMMANDS = [
    line for block in BLOCKS for line in re.findall(r"(?m)^tidepull .*?(?=\s*(?:#.*)?$)", block)
]


def test_readme_counts_the_problems_policies_and_contenders_of_the_demo_rightly() -> None:
    found = re.search(r"tidepull list problems +# ([\w-]+) worlds", README)
    assert found is not None
    assert found[1] == WORDS[len(problems.ids())]
    found = re.search(r"tidepull list policies +# ([\w-]+) ways", README)
    assert found is not None
    assert found[1] == WORDS[len(policies.ids())]
    found = re.search(r"plays five trials of (\w+) policies", README)
    assert found is not None
    assert found[1] == WORDS[len(POLICIES)]


def test_readme_is_short_and_keeps_its_order() -> None:
    assert len(README.splitlines()) <= 130
    parts = re.findall(r"(?m)^## (.*)$", README)
    assert parts == ["Install", "Six lines", "Method", "Results", "Limits", "Links"]
    assert README.index("![") < README.index("## Install")


def test_code_of_the_readme_runs_and_is_six_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (code,) = [block.removeprefix("python\n") for block in BLOCKS if block.startswith("python\n")]
    assert len([line for line in code.splitlines() if line]) == 6
    exec(compile(code, "README.md", "exec"), {})
    assert capsys.readouterr().out.strip()
    assert (tmp_path / "shop.db").exists()


def test_readme_has_commands() -> None:
    assert len(COMMANDS) >= 8


@pytest.mark.parametrize("suite", ["quick", "quick-table"])
def test_tide_plays_every_problem_of_the_quick_suites(suite: str) -> None:
    specs = load_suite(suite).specs
    assert {s.problem for s in specs if s.policy == "tide"} == {s.problem for s in specs}


def test_tide_is_in_the_demo() -> None:
    assert "tide" in dict(POLICIES)


def test_command_without_its_extra_says_so_with_exit_code_two(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "typer", None)
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    assert capsys.readouterr().err == (
        "tidepull: the command line needs the extra 'serve', 'experiments' or 'tables': pip install "
        "'tidepull[serve]'\n"
    )
