from __future__ import annotations

import json

from tests.integration.cli.typing_it import tidepull
from tidepull.policies import policies


def test_list_shows_external_policies_only_when_they_are_asked_for() -> None:
    own = {row["id"] for row in json.loads(tidepull("list", "policies", "--json").stdout)}
    external = {row["id"] for row in json.loads(tidepull("list", "external", "--json").stdout)}
    both = {row["id"] for row in json.loads(tidepull("list", "policies", "--all", "--json").stdout)}
    assert own == set(policies.ids())
    assert external == {entry.id for entry in policies.external()}
    assert both == own | external
    assert not own & external


def test_list_says_which_package_an_external_policy_needs() -> None:
    version = policies.entry("vw-bag").library
    assert version is not None
    assert (
        f"(vowpalwabbit {version.version or 'is not installed'}"
        in tidepull("list", "external").stdout
    )


def test_external_policies_beside_problems_are_a_mistake_with_exit_code_2() -> None:
    done = tidepull("list", "problems", "--all")
    assert done.returncode == 2
    assert "tidepull list policies --all" in done.stderr
