from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest

from tidepull.errors import SuiteError
from tidepull.experiments.grid import parse_seeds, seeds_text
from tidepull.experiments.spec import load_modules
from tidepull.experiments.suite import Suite, load_suite, own_suites, parse_suite, read_table

HERE = Path(__file__).parents[1]
HEAD = 'name = "mine"\nseeds = "0-1"\nhorizon = 50\nmodules = ["own_trivial.py"]\n'
COINS = '[[problems]]\nid = "coins"\n'
LEVER = '[[policies]]\nname = "lever"\n'


def parse(text: str) -> Suite:
    return parse_suite(text, where="mine.toml", folder=HERE)


def test_a_grid_is_the_product_of_its_lists_seed_by_seed() -> None:
    suite = parse(HEAD + COINS + LEVER + "grid = { arm = [0, 1], sleep = [0.0, 0.001] }\n")
    assert [spec.id for spec in suite.specs] == [
        f"coins/lever/arm={arm},sleep={sleep}/seed-{seed}"
        for seed in (0, 1)
        for arm in (0, 1)
        for sleep in ("0", "0.001")
    ]
    assert suite.specs[1].policy_parameters == {"arm": 0, "sleep": 0.001}
    assert len({spec.hash for spec in suite.specs}) == 8


def test_horizon_comes_from_the_problem_then_the_suite_then_the_registry() -> None:
    body = '[[problems]]\nid = "coins"\nname = "own"\nhorizon = 7\n' + COINS + LEVER
    assert [spec.horizon for spec in parse(HEAD + body).specs] == [7, 50, 7, 50]
    assert parse(HEAD.replace("horizon = 50\n", "") + COINS + LEVER).specs[0].horizon == 4096


def test_seeds_come_from_the_problem_then_the_suite() -> None:
    body = '[[problems]]\nid = "coins"\nname = "own"\nseeds = "1-2"\n' + COINS + LEVER
    assert [spec.id for spec in parse(HEAD + body).specs] == [
        "coins/lever/seed-0",
        "own/lever/seed-1",
        "coins/lever/seed-1",
        "own/lever/seed-2",
    ]


def test_delay_comes_from_the_problem_then_the_suite() -> None:
    body = '[[problems]]\nid = "coins"\ndelay = 0\n[[problems]]\nid = "coins"\n[[problems]]\nid = "coins"\n'
    specs = parse("delay = 5\n" + HEAD + body + 'delay = "geometric:20:0.05"\n' + LEVER).specs[:3]
    assert [spec.delay_text for spec in specs] == ["0", "5", "geometric:20:0.05"]
    assert [spec.id for spec in specs] == [
        "coins/lever/seed-0",
        "coins/delay-5/lever/seed-0",
        "coins/delay-geometric-20-0.05/lever/seed-0",
    ]
    assert parse(HEAD + COINS + LEVER).specs[0].delay_text == "0"


def test_policies_can_be_kept_to_some_problems_and_share_a_name() -> None:
    text = (
        HEAD
        + COINS
        + '[[problems]]\nid = "few-coins"\n'
        + '[[policies]]\nname = "best"\nid = "lever"\nproblems = ["coins"]\nparameters = { arm = 2 }\n'
        + '[[policies]]\nname = "best"\nid = "lever"\nproblems = ["few-*"]\nparameters = { arm = 1 }\n'
    )
    assert [(spec.problem, spec.policy_parameters["arm"]) for spec in parse(text).specs[:2]] == [
        ("coins", 2),
        ("few-coins", 1),
    ]


def test_problem_seed_fixes_the_world() -> None:
    specs = parse("problem_seed = 4\n" + HEAD + COINS + LEVER).specs
    assert [(spec.seed, spec.problem_seed) for spec in specs] == [(0, 4), (1, 4)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            HEAD + "horizn = 3\n" + COINS + LEVER,
            r"mine.toml: there is no key 'horizn'; allowed here: name, descr",
        ),
        (
            HEAD + COINS + LEVER + "lr = 1\n",
            r"no key 'policies\[1\].lr'; allowed here: name, id, problems, param",
        ),
        (
            HEAD + COINS + "lr = 1\n" + LEVER,
            r"no key 'problems\[1\].lr'; allowed here: id, name, horizon, delay, seeds, param",
        ),
        (HEAD + LEVER, r"mine.toml: the key 'problems' is missing"),
        (
            HEAD + COINS + "delay = -1\n" + LEVER,
            r"problems\[1\].delay: must be a whole number of rounds .*, 'geometric:MEAN' .* \(got -1\)",
        ),
        (HEAD.replace('"0-1"', '"0-x"') + COINS + LEVER, r"seeds: write seeds as \"0-9\""),
        (HEAD.replace('"0-1"', '"4-1"') + COINS + LEVER, r"seeds: the seeds '4-1' run backwards"),
        (
            HEAD.replace("50", "0") + COINS + LEVER,
            r"mine.toml: horizon: must be a whole number of at least 1 \(got 0\)",
        ),
        (
            HEAD.replace("50", '"50"') + COINS + LEVER,
            r"mine.toml: horizon: must be a whole number \(got '50'\)",
        ),
        ("nonsense\n", r"mine.toml: not valid TOML: .*line 1"),
        (
            HEAD + COINS + LEVER.replace("lever", "levr"),
            r"mine.toml: policies\[1\] \(levr\): there is no policy 'levr'; did",
        ),
        (
            HEAD + COINS.replace("coins", "coin") + LEVER,
            r"mine.toml: problems\[1\]: there is no problem 'coin'; did you",
        ),
        (
            HEAD + COINS + LEVER + "grid = { arms = [1] }\n",
            r"\(lever\): lever: there is no parameter 'arms' \(did you",
        ),
        (
            HEAD + COINS + LEVER + "grid = { arm = [] }\n",
            r"policies\[1\].grid.arm: must be a list of length at least 1",
        ),
        (HEAD + COINS + LEVER + "grid = { arm = [-1] }\n", r"lever: arm must be ≥ 0, got -1"),
        (
            HEAD + COINS + LEVER + 'problems = ["cons"]\n',
            r"no problem of the suite is called 'cons'; it has: coins",
        ),
        (HEAD + COINS + LEVER + LEVER, r"two trials are called coins/lever/seed-0"),
        (
            HEAD + COINS + LEVER + "from_variation_budget = true\n",
            r"lever does not know from_variation_budget",
        ),
        (
            HEAD.replace("own_trivial", "nowhere") + COINS + LEVER,
            r"the module '.*nowhere.py' cannot be imported",
        ),
        (
            HEAD + COINS + LEVER + "parameters = { arm = 1 }\ngrid = { arm = [0, 1] }\n",
            r"policies\[1\] \(lever\): 'arm' is both in parameters and in grid",
        ),
        (
            HEAD
            + COINS
            + LEVER
            + f"grid = {{ arm = {list(range(1000))}, sleep = {list(range(501))} }}\n",
            r"mine.toml: the suite has 1,002,000 trials, and at most 1,000,000 can be handled",
        ),
        (
            HEAD.replace("mine", "a/b") + COINS + LEVER,
            r"mine.toml: name: must be letters, digits",
        ),
    ],
)
def test_a_mistake_names_the_file_the_key_and_what_is_allowed(text: str, message: str) -> None:
    with pytest.raises(SuiteError, match=message):
        parse(text)


def test_a_name_that_is_no_suite_is_named_with_the_nearest_one() -> None:
    for name, sentence in (
        ("smok", "there is no suite 'smok'; did you mean 'smoke'?"),
        ("zzzz", "there is no suite 'zzzz'; give a TOML file, or see: tidepull list suites"),
        ("mine.toml", "there is no file mine.toml"),
    ):
        with pytest.raises(SuiteError, match=re.escape(sentence)):
            load_suite(name)


@pytest.mark.parametrize("path", sorted(own_suites().glob("*.toml")), ids=lambda path: path.stem)
def test_every_suite_that_comes_along_is_valid_and_named_after_its_file(path: Path) -> None:
    suite = load_suite(path)
    assert suite.name == path.stem
    assert suite.description
    assert suite.specs[0].hash


def test_seeds_are_read_and_written_as_ranges() -> None:
    assert parse_seeds("0-3 7, 9-10") == (0, 1, 2, 3, 7, 9, 10)
    assert parse_seeds([3, 1]) == (1, 3)
    assert seeds_text((0, 1, 2, 3, 7, 9, 10)) == "0-3 7 9-10"
    assert parse_seeds([7]) == parse_seeds("7-7") == (7,)
    for wrong in ("", [], [True], 3, "-1", [1.5]):
        with pytest.raises(ValueError, match="write seeds as"):
            parse_seeds(wrong)


def test_a_number_alone_is_no_list_of_seeds() -> None:
    with pytest.raises(
        ValueError, match='"12" could be one seed or a count: write "12-12" or "0-11"'
    ):
        parse_seeds("12")


def test_seeds_beyond_a_million_are_refused_at_once() -> None:
    for many in ("0-99999999999", "0-999999 2000000"):
        with pytest.raises(ValueError, match="more than 1,000,000 seeds"):
            parse_seeds(many)
    assert len(parse_seeds("1-1000000")) == 1_000_000
    for endless in ("9" * 5000 + "-1", ["9" * 19]):
        with pytest.raises(ValueError, match="write seeds as"):
            parse_seeds(endless)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("x = 1\nraise ValueError('no good')\n", r"raised ValueError in line 2: no good"),
        (
            "def f():\n    return 1 / 0\n\nf()\n",
            r"raised ZeroDivisionError in line 2: division by zero",
        ),
        ("import sys\nsys.exit(0)\n", r"ends the program while it is imported \(sys.exit\)"),
        ("x = (\n", r"cannot be imported \('\(' was never closed"),
        (
            "import nothing_of_that_name\n",
            r"cannot be imported \(No module named 'nothing_of_that_name'",
        ),
    ],
)
def test_module_that_does_not_load_is_one_sentence(source: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "own.py"
    path.write_text(source)
    before = set(sys.modules)
    with pytest.raises(SuiteError, match=rf"^the module '{path}' {said}"):
        load_modules([str(path)])
    assert not [name for name in set(sys.modules) - before if name.startswith("tidepull_own")]


def test_dotted_module_that_ends_the_program_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "leaves_at_once.py").write_text("raise SystemExit(0)\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(SuiteError, match="the module 'leaves_at_once' ends the program"):
        load_modules(["leaves_at_once"])


def test_suite_beyond_a_million_trials_is_counted_and_not_built() -> None:
    wide = ", ".join(f"p{i} = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]" for i in range(30))
    with pytest.raises(SuiteError, match=r"the suite has 2(,000){10} trials"):
        parse(HEAD + COINS + LEVER + f"grid = {{ {wide} }}\n")


def sizes(name: str) -> dict[str, int]:
    """Settings of each policy on one problem and one seed."""
    specs = load_suite(name).specs
    first = [
        spec for spec in specs if spec.seed == specs[0].seed and spec.problem == specs[0].problem
    ]
    names = [spec.name for spec in first]
    return {name: names.count(name) for name in names}


def test_the_grids_are_as_large_as_the_papers() -> None:
    networks = {"random": 1, "rnlps": 96, "nlps": 576}
    assert sizes("paper-grid-noncontextual") == {**networks, "d-ucb": 10, "sw-ucb": 10}
    assert sizes("paper-grid-contextual") == networks
    assert sizes("paper-exploration") == {
        "random": 1,
        "rnlps": 96,
        "rnlps-epsilon-greedy": 384,
        "rnlps-boltzmann": 384,
    }
    assert len(load_suite("paper-grid-noncontextual").specs) == 4 * 5 * (1 + 96 + 576 + 20)


def test_suites_that_select_and_suites_that_report_share_no_seed() -> None:
    seeds = {
        path.stem: set(table.seeds).union(*(problem.seeds or () for problem in table.problems))
        for path in own_suites().glob("*.toml")
        for table in [read_table(path)]
    }
    select = {
        "paper-grid-noncontextual",
        "paper-grid-contextual",
        "paper-exploration",
        "paper-exploration-more",
        "rivals-search",
        "rivals-digits-search",
    }
    report = {"paper-table", "paper-criteo", "paper-stationary", "paper-exploration-report"}
    report |= {"rivals-published", "rivals-digits"}
    report |= {name for name in seeds if name.endswith("-selected")}
    assert all(not seeds[a] & seeds[b] for a in select for b in report)
    assert {len(seeds[name]) for name in report} == {10, 40}


def test_more_exploration_searches_the_same_grids_but_for_the_width_of_contextual_networks() -> (
    None
):
    first = {policy.name: policy.grid for policy in read_table("paper-exploration").policies}
    contextual = {p.name: p.grid for p in read_table("paper-grid-contextual").policies}["rnlps"][
        "units"
    ]
    more = read_table("paper-exploration-more").policies
    assert len(more) == 7
    for policy in more[1:]:
        wide = policy.problems == ("rotating-*",)
        assert policy.grid == first[policy.name] | ({"units": contextual} if wide else {})


def test_every_committed_choice_says_how_it_was_made_and_is_a_candidate_of_its_search() -> None:
    for path in own_suites().glob("*-selected.toml"):
        searched = read_table(path.stem.removesuffix("-selected")).policies
        for policy in read_table(path).policies:
            if policy.name == "random":
                continue
            grids = [one.grid for one in searched if one.name == policy.name.rpartition("-")[0]]
            assert any(
                all(policy.parameters[key] in grid[key] for key in grid) for grid in grids
            ), policy
            assert re.match(r"highest mean (reward|score) of \d+ settings", policy.chosen), policy


def test_rules_of_exploration_differ_in_nothing_else_in_the_suite_that_compares_them() -> None:
    by_problem: dict[tuple[str, int], set[str]] = {}
    for spec in load_suite("paper-exploration-report").specs:
        if spec.name != "random":
            rule = {"exploration", "epsilon", "temperature"}
            network = {
                key: value for key, value in spec.policy_parameters.items() if key not in rule
            }
            by_problem.setdefault((spec.problem, spec.seed), set()).add(
                str(sorted(network.items()))
            )
    assert len(by_problem) == 6 * 40
    assert all(len(networks) == 1 for networks in by_problem.values())


def test_discounts_and_windows_come_from_the_variation_budget() -> None:
    parameters = {
        (spec.problem, spec.name): spec.policy_parameters
        for spec in load_suite("paper-table").specs
        if spec.name in ("d-lin-ucb", "sw-lin-ucb")
    }
    assert len(parameters) == 6
    flipping = parameters["flipping-vector", "d-lin-ucb"]["discount"]
    assert flipping == pytest.approx(1 - (2 * (4096 // 64 - 1) / (50 * 4096)) ** (2 / 3), rel=1e-3)
    turning = 2 * np.sin(np.pi / 32) * 4095
    assert parameters["rotating-vector-32", "sw-lin-ucb"]["window"] == round(
        (2 * 4096 / turning) ** (2 / 3)
    )


VECTORS = '[[problems]]\nid = "flipping-vector"\n[[problems]]\nid = "rotating-vector-32"\n'


@pytest.mark.parametrize(("policy", "name"), [("d-lin-ucb", "discount"), ("sw-lin-ucb", "window")])
def test_variation_budget_as_a_value_makes_the_same_trials_as_the_key(
    policy: str, name: str
) -> None:
    head = (
        HEAD.replace("horizon = 50", "horizon = 4096")
        + VECTORS
        + f'[[policies]]\nname = "{policy}"\n'
    )
    by_key = parse(head + "from_variation_budget = true\n").specs
    by_value = parse(head + f'parameters = {{ {name} = "variation-budget" }}\n').specs
    in_grid = parse(head + f'grid = {{ {name} = ["variation-budget", 1] }}\n').specs
    assert [spec.hash for spec in by_value] == [spec.hash for spec in by_key]
    assert [spec.hash for spec in in_grid[::2]] == [spec.hash for spec in by_key]
    assert in_grid[0].setting == f"{name}=variation-budget"
    assert in_grid[1].policy_parameters == {name: 1}


def test_lengths_left_to_the_problem_become_numbers_beside_the_variation_budget() -> None:
    body = (
        '[[policies]]\nname = "d-lin-ucb"\nfrom_variation_budget = true\n'
        'parameters = { parameter_bound = "problem", feature_bound = "problem" }\n'
    )
    spec = parse(HEAD + VECTORS + body).specs[1]
    assert spec.policy_parameters["parameter_bound"] == pytest.approx(1.0)
    assert spec.policy_parameters["feature_bound"] == pytest.approx(1.0)
    assert spec.policy_parameters["discount"] < 1


def test_what_a_problem_does_not_state_is_named_with_its_place() -> None:
    body = '[[policies]]\nname = "lin-ucb"\nparameters = { feature_bound = "problem" }\n'
    with pytest.raises(
        SuiteError, match=r"mine.toml: lin-ucb on coins: lin-ucb: feature_bound = 'problem' needs"
    ):
        parse(HEAD + COINS + body)
