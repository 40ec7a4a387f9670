"""`tidepull apply`: agents as a file says, in a directory and in a running service."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.integration.service.running import running
from tidepull.agent.agent import Agent
from tidepull.cli.app import app

FIRST = """
[shop]
arms = ["blue", "green", "red"]
policy = "bernoulli-ts"
control = 0.1
[shop.context]
age = "number"
device = ["phone", "desktop"]
"""
SECOND = """
[shop]
arms = ["blue", "green", "pink"]
policy = "bernoulli-ts"
control = 0.2
reward_within = 3600
[shop.context]
device = ["phone", "desktop"]
loyal = "boolean"
"""
WORDS = [
    "shop: add arm 'pink'",
    "shop: retire arm 'red'",
    "shop: control: 0.1 -> 0.2",
    "shop: reward_within: null -> 3600.0",
]


def test_agents_of_a_directory_become_what_the_file_says(tmp_path: Path) -> None:
    file, db = tmp_path / "agents.toml", tmp_path / "agents"

    def run(text: str, *more: str) -> str:
        file.write_text(text)
        result = CliRunner().invoke(app, ["apply", str(file), "--db", str(db), *more])
        assert result.exit_code == 0, result.output
        return result.output

    assert "shop: make it, with arms blue, green, red" in run(FIRST, "--dry-run")
    assert not (db / "shop.db").exists()
    run(FIRST)
    assert "nothing to change" in run(FIRST)
    said = run(SECOND, "--dry-run")
    assert all(words in said for words in WORDS), said
    assert '"loyal"' in said
    with Agent(db / "shop.db") as agent:
        assert agent.arms == ["blue", "green", "red"]
    assert run(SECOND) == said
    assert "nothing to change" in run(SECOND)
    with Agent(db / "shop.db") as agent:
        assert agent.arms == ["blue", "green", "pink"]
        assert agent.settings.reward_within == 3600
        assert list(agent.state().context or {}) == ["device", "loyal"]
        agent.choose({"age": 3, "loyal": True})  # of a program that still gives the old field
        assert agent.check().sound


def test_agents_of_a_service_become_what_the_file_says(tmp_path: Path) -> None:
    file = tmp_path / "agents.toml"
    with running(tmp_path / "db") as service:
        env = {"TIDEPULL_URL": service.url, "TIDEPULL_TOKEN": service.token}

        def run(text: str, *more: str) -> str:
            file.write_text(text)
            result = CliRunner().invoke(app, ["apply", str(file), *more], env=env)
            assert result.exit_code == 0, result.output
            return result.output

        assert "make it" in run(FIRST)
        assert "nothing to change" in run(FIRST)
        said = run(SECOND)
        assert all(words in said for words in WORDS), said
        assert "nothing to change" in run(SECOND)
        change = ["client", "change", "shop", '{"control": 0.3}']
        assert "control: 0.2 -> 0.3" in CliRunner().invoke(app, change, env=env).output


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[shop]\narms = 3", "agent 'shop': Expected"),
        ("[shop]\ncolour = 3", "agent 'shop': Object contains unknown field `colour`"),
        ("[shop", "agents.toml: "),
        ("[shop]\narms = ['a', 'b', 'c']\npolicy = 'ucb'", "policy is 'bernoulli-ts' and cannot"),
    ],
)
def test_a_file_that_cannot_be_is_refused_in_one_sentence(
    text: str, words: str, tmp_path: Path
) -> None:
    with Agent(tmp_path / "shop.db", arms=["a", "b"], context={}, policy="bernoulli-ts"):
        pass
    file = tmp_path / "agents.toml"
    file.write_text(text)
    result = CliRunner().invoke(app, ["apply", str(file), "--db", str(tmp_path)])
    assert words in str(result.exception)
    with Agent(tmp_path / "shop.db") as agent:
        assert agent.arms == ["a", "b"]
