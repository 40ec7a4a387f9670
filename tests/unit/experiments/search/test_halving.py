from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from tidepull.cli.app import app
from tidepull.errors import InputError, ParameterError, StoreError, SuiteError
from tidepull.experiments.grid import (
    Rung,
    SearchRule,
    check_rule,
    parse_rungs,
    plan_name,
    rungs_text,
)
from tidepull.experiments.loop import run_trial
from tidepull.experiments.rows import load_rows
from tidepull.experiments.search import Halving, RungMeans, agreements, rank_correlation, world_of
from tidepull.experiments.spec import TrialSpec
from tidepull.experiments.store import Store
from tidepull.experiments.suite import Suite, load_suite, parse_suite

OWN = Path(__file__).parents[1] / "own_trivial.py"
DISCOUNTS = [round(0.5 + 0.02 * number, 2) for number in range(16)]
TEXT = f"""
name = "mine"
seeds = "100-102"
horizon = 80
[[problems]]
id = "flipping-gaussian"
name = "p"
[[problems]]
id = "flipping-bernoulli"
name = "q"
[[policies]]
name = "random"
[[policies]]
name = "d-ucb"
grid = {{ discount = {DISCOUNTS} }}
"""
Reward = Callable[[str, float, int], float]


def parse(text: str) -> Suite:
    return parse_suite(text, where="mine.toml", folder=Path())


def halved(text: str = TEXT, **rule: Any) -> Halving:
    return Halving(parse(text), SearchRule(**rule), {"p": "plain", "q": "plain"})


def rewarded(specs: tuple[TrialSpec, ...], reward: Reward) -> dict[str, float | None]:
    """Random arms earn nothing; a setting what `reward` says of world, discount and rounds."""
    return {
        spec.hash: reward(world_of(spec), float(spec.setting.partition("=")[2]), spec.horizon)
        if spec.setting
        else 0.0
        for spec in specs
    }


def climbed(halving: Halving, reward: Reward) -> list[tuple[TrialSpec, ...]]:
    """What each rung asks for, when the earlier ones came out as `reward` says."""
    known: dict[str, float | None] = {}
    asked = []
    for number in range(len(halving.rule.rungs)):
        rung = halving.asked(number, known)
        assert rung.waiting == ()
        asked.append(rung.specs)
        known |= rewarded(rung.specs, reward)
    return asked


def discounts(specs: tuple[TrialSpec, ...], world: str) -> list[float]:
    found = {spec.setting for spec in specs if world_of(spec) == world and spec.setting}
    return sorted(float(text.partition("=")[2]) for text in found)


def high_in_p_low_in_q(world: str, discount: float, rounds: int) -> float:
    return rounds * (discount if world == "p" else 1 - discount)


def test_rungs_grow_longer_and_fewer_settings_reach_them() -> None:
    first, second, last = climbed(halved(generalists=0), high_in_p_low_in_q)
    assert [len(discounts(specs, "p")) for specs in (first, second, last)] == [16, 4, 2]
    assert [{spec.horizon for spec in specs} for specs in (first, second, last)] == [
        {20},
        {40},
        {80},
    ]
    assert [{spec.seed for spec in specs} for specs in (first, second, last)] == [
        {100},
        {100},
        {100, 101, 102},
    ]
    assert discounts(second, "p") == DISCOUNTS[-4:]
    assert discounts(second, "q") == DISCOUNTS[:4]
    assert discounts(last, "p") == DISCOUNTS[-2:]
    assert len(last) == 3 * 2 * (2 + 1)


def test_every_rung_has_random_arms_of_its_own_length() -> None:
    for specs in climbed(halved(), high_in_p_low_in_q):
        assert {(world_of(s), s.horizon) for s in specs if s.name == "random"} == {
            (world_of(s), s.horizon) for s in specs if s.name == "d-ucb"
        }


def test_a_rung_is_judged_by_its_own_trials() -> None:
    """A setting that is good in short trials and bad in long ones is dropped when the long ones are
    played."""

    def turning(_: str, discount: float, rounds: int) -> float:
        return discount if rounds == 20 else -discount

    _, second, last = climbed(halved(generalists=0), turning)
    assert discounts(second, "p") == DISCOUNTS[-4:]
    assert discounts(last, "p") == DISCOUNTS[-4:-2]


def middling(world: str, discount: float, _: int) -> float:
    """0.64 is nowhere among the best four, and the only one that is not bad on either problem."""
    if discount == 0.64:
        return 0.35
    share = (discount - 0.5) / 0.3 if world == "p" else (0.8 - discount) / 0.3
    return share**4 if share > 0.5 else -1.0


def test_generalists_stay_on_all_problems() -> None:
    _, second, last = climbed(halved(generalists=1), middling)
    assert 0.64 in discounts(second, "p")
    assert 0.64 in discounts(second, "q")
    assert discounts(last, "p") == [0.64, *DISCOUNTS[-2:]]
    assert discounts(last, "q") == [*DISCOUNTS[:2], 0.64]
    assert 0.64 not in discounts(climbed(halved(generalists=0), middling)[1], "p")


def test_a_problem_with_large_rewards_does_not_choose_the_generalists_alone() -> None:
    def unequal(world: str, discount: float, rounds: int) -> float:
        return middling(world, discount, rounds) * (1000 if world == "p" else 1)

    _, _, last = climbed(halved(generalists=1), unequal)
    assert discounts(last, "q") == [*DISCOUNTS[:2], 0.64]


def test_equals_are_taken_in_the_order_of_the_suite() -> None:
    _, second, last = climbed(halved(), lambda *_: 1.0)
    assert discounts(second, "p")[:4] == DISCOUNTS[:4]
    assert discounts(last, "q") == DISCOUNTS[:2]


def test_a_rung_waits_while_a_trial_before_it_is_missing() -> None:
    halving = halved()
    first = halving.asked(0, {}).specs
    known = rewarded(first, high_in_p_low_in_q)
    for lost in (first[0], first[-1]):  # random arms, and a setting
        rest = {hash: reward for hash, reward in known.items() if hash != lost.hash}
        asked = halving.asked(1, rest)
        assert asked.waiting == ("d-ucb",)
        assert {spec.name for spec in asked.specs} == {"random"}
    assert halving.asked(1, known).waiting == ()


def test_a_setting_whose_trial_failed_goes_no_further() -> None:
    halving = halved(generalists=0)
    first = halving.asked(0, {}).specs
    known = rewarded(first, high_in_p_low_in_q)
    best = next(s for s in first if world_of(s) == "p" and s.setting == f"discount={DISCOUNTS[-1]}")
    known[best.hash] = None
    assert discounts(halving.asked(1, known).specs, "p") == DISCOUNTS[-5:-1]


def test_generalists_need_random_arms() -> None:
    text = TEXT.replace('[[policies]]\nname = "random"\n', "")
    with pytest.raises(
        SuiteError, match="'random' must play p too; add it to the suite, or set generalists"
    ):
        halved(text)
    assert len(climbed(halved(text, generalists=0), high_in_p_low_in_q)[2]) == 2 * 3 * 2


def test_a_suite_without_a_grid_has_nothing_to_search() -> None:
    with pytest.raises(SuiteError, match="mine has no policy with several settings to search"):
        halved(TEXT.replace(f"grid = {{ discount = {DISCOUNTS} }}", ""))


def test_standings_and_their_rank_correlation_agree_with_scipy() -> None:
    from scipy.stats import spearmanr

    rng = np.random.default_rng(5)
    a = {str(number): float(value) for number, value in enumerate(rng.integers(0, 9, 20))}
    b = {text: value + float(rng.normal(0, 3)) for text, value in a.items() if text != "7"}
    count, correlation = rank_correlation(a, b)
    assert count == 19
    assert correlation == pytest.approx(
        spearmanr([a[text] for text in b], list(b.values())).statistic
    )
    assert rank_correlation({"x": 1.0, "y": 2.0}, {"x": 1.0, "y": 2.0}) == (2, None)
    assert rank_correlation(dict.fromkeys("xyz", 1.0), {"x": 1.0, "y": 2.0, "z": 3.0}) == (3, None)


def test_agreement_compares_every_rung_with_every_later_one() -> None:
    short = {"a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0}
    found = agreements(
        [RungMeans("p", "net", 0, short), RungMeans("p", "net", 1, {"d": 9.0, "c": 8.0, "b": 10.0})]
    )
    assert [(one.first, one.second, one.settings) for one in found] == [(0, 1, 3)]
    assert found[0].correlation == pytest.approx(-0.5)


@pytest.mark.parametrize(
    ("rungs", "sentence"),
    [
        ((Rung(0.5, 1),), "the last rung must have the whole horizon"),
        (
            (Rung(0.5, 4), Rung(1.0)),
            "rung 1: the suite has 3 seeds, so seeds must be 1 to 3, got 4",
        ),
        ((Rung(0.0, 1), Rung(1.0)), "rung 1: share must be above 0"),
        ((Rung(0.5, 2), Rung(1.0, 1)), "rung 2 must be longer or on more seeds than rung 1"),
        ((Rung(1.0, 3), Rung(1.0)), "rung 2 must be longer or on more seeds than rung 1"),
    ],
)
def test_rungs_that_make_no_sense_are_one_sentence(rungs: tuple[Rung, ...], sentence: str) -> None:
    with pytest.raises(ParameterError, match=sentence):
        check_rule(SearchRule(rungs=rungs), 3)
    with pytest.raises(ParameterError, match="eta must be at least 2"):
        check_rule(SearchRule(eta=1), 3)


def test_rungs_are_read_as_they_are_written() -> None:
    assert parse_rungs("1/4:1, 0.5:2,1") == (Rung(0.25, 1), Rung(0.5, 2), Rung(1.0))
    assert rungs_text(parse_rungs("1/4:1,1/2:1,1:5")) == "1/4:1,1/2:1,1:5"
    with pytest.raises(ParameterError, match="--rungs: '1/0:1' is no rung"):
        parse_rungs("1/0:1,1")


def test_the_suite_says_the_rule() -> None:
    rungs = "rungs = [{ share = 0.5, seeds = 2 }, { share = 1.0 }]"
    text = TEXT.replace(
        "horizon = 80\n", f"horizon = 80\n[search]\neta = 3\ngeneralists = 1\n{rungs}\n"
    )
    assert parse(text).search == SearchRule(3, 1, (Rung(0.5, 2), Rung(1.0)))
    assert parse(TEXT).search == SearchRule()
    with pytest.raises(SuiteError, match=r"search: rung 1: the suite has 3 seeds"):
        parse(text.replace("seeds = 2", "seeds = 9"))
    with pytest.raises(
        SuiteError, match=r"no key 'search.rungs\[1\].sedes'; allowed here: share, seeds"
    ):
        parse(text.replace("seeds = 2", "sedes = 2"))


def test_the_papers_search_without_contexts_plays_every_setting_five_times() -> None:
    assert load_suite("paper-grid-noncontextual").search.rungs == (Rung(1.0, 5),)


def test_a_short_trial_is_the_beginning_of_a_long_one() -> None:
    """So a ranking after a quarter of the rounds is the ranking of whole trials at that time."""
    small = {"units": [4, 4, 4], "train_every": 8, "epochs": 2}
    short, long = (
        run_trial(("rotating-vector-32", {}), ("rnlps", small), horizon=rounds, seed=3)
        for rounds in (20, 40)
    )
    assert np.array_equal(short.arms, long.arms[:20])
    assert np.array_equal(short.rewards, long.rewards[:20])


LEVERS = f"""
name = "levers"
seeds = "100-102"
horizon = 64
modules = ["{OWN}"]
[search]
eta = 2
generalists = 1
rungs = [{{ share = 0.25, seeds = 1 }}, {{ share = 1.0, seeds = 3 }}]
[[problems]]
id = "coins"
parameters = {{ n_arms = 6 }}
[[problems]]
id = "few-coins"
name = "more-coins"
parameters = {{ n_arms = 6 }}
[[policies]]
name = "random"
[[policies]]
name = "lever"
grid = {{ arm = [0, 1, 2, 3, 4, 5] }}
"""


@pytest.fixture
def levers(tmp_path: Path) -> Path:
    path = tmp_path / "levers.toml"
    path.write_text(LEVERS)
    return path


def command(*arguments: str) -> tuple[int, Any]:
    outcome = CliRunner().invoke(app, [*arguments, "--json"])
    if outcome.exception is not None and not isinstance(outcome.exception, SystemExit):
        raise outcome.exception
    return outcome.exit_code, json.loads(outcome.stdout)


def found_by(path: Path, store: Path, *more: str) -> Mapping[str, Any]:
    code, found = command("search", str(path), "--out", str(store), "--on", "here", *more)
    assert code == 0
    return dict(found)


def test_the_command_searches_and_selection_takes_the_last_rung_alone(
    levers: Path, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    found = found_by(levers, store)
    assert found["complete"] is True
    first, last = (
        load_rows(Store.open(store), plan_name("levers", number, 2)).rows for number in (0, 1)
    )
    assert {row.horizon for row in first} == {16}
    assert {row.horizon for row in last} == {64}
    assert [line["total"] for line in found["rungs"]] == [len(first), len(last)] == [14, len(last)]
    _, chosen = command("select", str(store))
    assert {(best["problem"], best["setting"]) for best in chosen["best"]} == {
        ("coins", "arm=5"),
        ("more-coins", "arm=5"),
    }
    means = np.mean(
        [row.reward for row in last if row.setting == "arm=5" and row.problem == "coins"]
    )
    assert next(
        best["reward"] for best in chosen["best"] if best["problem"] == "coins"
    ) == pytest.approx(means)
    assert load_suite(chosen["suite"]).name == "levers-selected"


def test_the_same_command_continues_and_ends_with_the_same_trials(
    levers: Path, tmp_path: Path
) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert found_by(levers, whole)["complete"]
    stopped = found_by(levers, parts, "--budget", "0.001s")
    assert stopped["complete"] is False
    assert stopped["rungs"][-1]["left"] > 0
    with pytest.raises(StoreError, match="has not reached its last rung"):
        command("select", str(parts))
    assert found_by(levers, parts, "--only", "coins/*")["complete"]
    one = load_rows(Store.open(parts), plan_name("levers", 1, 2)).rows[0]
    Store.open(parts).manifest_path(one.hash).unlink()
    with pytest.raises(StoreError, match="1 trials are not there"):
        command("select", str(parts))
    assert found_by(levers, parts)["complete"]
    assert Store.open(parts).hashes() == Store.open(whole).hashes()
    again = found_by(levers, parts)
    assert [line["ran"] for line in again["rungs"]] == [0, 0]


def test_policies_that_are_searched_one_by_one_share_the_rungs_plans(tmp_path: Path) -> None:
    path = tmp_path / "levers.toml"
    path.write_text(
        LEVERS
        + LEVERS[LEVERS.index('[[policies]]\nname = "lever"') :].replace(
            '"lever"', '"other"\nid = "lever"'
        )
    )
    for name in ("lever", "other"):
        assert found_by(path, tmp_path / "store", "--only", f"*/{name}/*")["complete"]
    last = load_rows(Store.open(tmp_path / "store"), plan_name("levers", 1, 2))
    assert {row.name for row in last.rows} == {"random", "lever", "other"}
    assert last.missing == ()
    _, chosen = command("select", str(tmp_path / "store"))
    assert {best["name"] for best in chosen["best"]} == {"lever", "other"}


def test_known_trials_are_not_played_again(levers: Path, tmp_path: Path) -> None:
    whole, rest, table = tmp_path / "whole", tmp_path / "rest", tmp_path / "tables" / "known.csv"
    found_by(levers, whole)
    rows = load_rows(Store.open(whole)).rows
    short = [row for row in rows if row.horizon == 16]
    table.parent.mkdir()
    with table.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerows(
            [("hash", "reward"), *((row.hash, row.reward) for row in short), ("not-played", "")]
        )
    (table.parent / "other.csv").write_text("a,b\n1,2\n")
    found = found_by(levers, rest, "--known", str(table.parent))
    assert [line["ran"] for line in found["rungs"]] == [0, len(rows) - len(short)]
    assert found["complete"] is True
    for wrong, sentence in (
        ("a,b\n1,2\n", "no columns 'hash'"),
        ("hash,reward\nx,high\n", "no number"),
    ):
        table.write_text(wrong)
        with pytest.raises(InputError, match=sentence):
            found_by(levers, rest, "--known", str(table))


def test_a_failed_trial_drops_its_setting_and_shows_in_the_exit_code(tmp_path: Path) -> None:
    path = tmp_path / "levers.toml"
    path.write_text(
        LEVERS.replace("arm = [0, 1, 2, 3, 4, 5]", "arm = [0, 1, 2, 3], fail_on_seed = [0, 100]")
    )
    code, found = command("search", str(path), "--out", str(tmp_path / "store"), "--on", "here")
    assert code == 1
    assert found["rungs"][0]["failed"] == 2 * 4
    assert found["rungs"][1]["failed"] == 0
    assert found["complete"] is True


def test_the_dry_run_says_what_waits(levers: Path, tmp_path: Path) -> None:
    _, lines = command("search", str(levers), "--out", str(tmp_path / "store"), "--dry-run")
    assert [(line["trials"], line["waiting"]) for line in lines] == [(14, []), (6, ["lever"])]
    assert not (tmp_path / "store").exists()


def test_an_exhaustive_search_of_the_same_suite_keeps_its_own_plan(
    levers: Path, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    found_by(levers, store)
    command("sweep", str(levers), "--out", str(store), "--on", "here")
    everything = load_rows(Store.open(store), "levers")
    assert len(everything.rows) == 3 * 2 * 7
    assert {row.horizon for row in everything.rows} == {64}
    _, chosen = command("select", str(store), "--suite", "levers")
    assert {best["settings"] for best in chosen["best"]} == {6}
    _, halved_choice = command("select", str(store), "--suite", plan_name("levers", 1, 2))
    assert all(best["settings"] < 6 for best in halved_choice["best"])


def test_survivors_are_never_fewer_than_two() -> None:
    halving = halved()
    assert [halving.survivors(count, 2) for count in (96, 576, 10, 1)] == [6, 36, 2, 1]
    assert math.ceil(97 / 16) == halving.survivors(97, 2)
