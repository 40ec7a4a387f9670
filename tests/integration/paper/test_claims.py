from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from tests.unit.reporting.making import around, make_study
from tidepull.paper import exploration, robustness, rules
from tidepull.paper.claims import check_claims
from tidepull.paper.studies import combined
from tidepull.paper.verdicts import (
    FAILS,
    HOLDS,
    NOT_JUDGED,
    OPEN,
    Claim,
    Evidence,
    above,
    below,
    gather,
    worst,
)
from tidepull.reporting.frames import Study, random_regret
from tidepull.reporting.traces import Band, Examined, GroupTrace

NOTHING = Band(*(np.zeros(1),) * 4)
GAUSSIAN, CHAIN = "flipping-gaussian", "circular-markov-chain"


def seen(study: Study, late: Mapping[str, Sequence[float]] | None = None) -> Examined:
    """A study with what each of its policies added at the end."""
    traces = {
        name: GroupTrace(NOTHING, 0.0, None, None, None, np.array(values))
        for name, values in (late or {}).items()
    }
    return Examined(study, random_regret(study), traces, ())


def evidence(
    *studies: Study,
    searches: Sequence[Study] = (),
    explored: Sequence[Study] = (),
    finals: Sequence[Study] = (),
) -> Evidence:
    others = [seen(study) for study in explored]
    return gather([seen(study) for study in studies], searches, others, finals)


def at(problem: str, **regrets: list[float]) -> Study:
    return make_study(problem, {name.replace("_", "-"): values for name, values in regrets.items()})


def test_every_claim_is_open_and_says_what_is_missing_when_nothing_was_played() -> None:
    claims = check_claims([], [], [])
    assert len(claims) == 42
    assert sum(claim.beyond_paper for claim in claims) == 1
    assert {claim.outcome for claim in claims} == {OPEN}
    assert all(claim.reason.startswith("missing: ") for claim in claims)
    assert len({(claim.topic, claim.says) for claim in claims}) == len(claims)


def test_claims_cover_every_problem_of_the_paper() -> None:
    problems = {line.problem for claim in check_claims([], [], []) for line in claim.lines}
    assert len(problems - {"six problems"}) == 13


@pytest.mark.parametrize(
    ("low", "high", "outcome"),
    [(-2, -1, HOLDS), (-1, 1, OPEN), (1, 2, FAILS), (np.nan, np.nan, OPEN)],
)
def test_limits_are_judged_by_the_interval(low: float, high: float, outcome: str) -> None:
    assert below(low, high, 0.0) == outcome
    assert above(-high, -low, 0.0) == outcome


def test_one_failure_decides_and_one_open_figure_keeps_a_claim_open() -> None:
    assert [worst(found) for found in ([HOLDS, FAILS, OPEN], [HOLDS, OPEN], [HOLDS], [])] == [
        FAILS,
        OPEN,
        HOLDS,
        OPEN,
    ]


@pytest.mark.parametrize(
    ("regret", "outcome"),
    [(300.0, HOLDS), (530.0, OPEN), (580.0, FAILS), (640.0, OPEN), (900.0, FAILS)],
)
def test_large_margin_holds_only_when_clear_and_large(regret: float, outcome: str) -> None:
    found = evidence(at(GAUSSIAN, a=around(regret, 40), b=around(640, 60)[::-1]))
    claim = rules.beats(found, "", GAUSSIAN, ["a"], ["b"], least=0.2)
    assert claim.outcome == outcome
    assert claim.lines[0].value == pytest.approx(regret - 640)
    assert claim.lines[0].low < regret - 640 < claim.lines[0].high


def test_small_margin_fails_when_it_is_clearly_large() -> None:
    found = evidence(at(GAUSSIAN, a=around(900), b=around(1000), c=around(1400)))
    small, large = (rules.beats(found, "", GAUSSIAN, ["a"], [b], most=0.2) for b in ("b", "c"))
    assert small.verdict == "holds (by 10% of their regret)"
    assert large.verdict == "fails (by 36% of their regret)"


def test_conventional_rivals_have_their_searched_settings_too() -> None:
    searched = {
        "d_ucb_best": around(200),
        "d_ucb_best_selected": around(301),
        "d_ucb_default": around(1),
    }
    study = at(GAUSSIAN, rnlps_best=around(300), d_ucb=around(1300), **searched)
    claim = rules.beats(evidence(study), "", GAUSSIAN, ["rnlps-best"], ["discounted"])
    assert [line.outcome for line in claim.lines] == [HOLDS, FAILS, HOLDS]
    assert claim.outcome == FAILS


def test_comparison_of_a_setting_with_itself_stays_open_and_says_so() -> None:
    study = at(GAUSSIAN, nlps_default=around(300))
    twin = replace(study, groups=(*study.groups, replace(study.groups[0], name="nlps-best")))
    claim = rules.ordered(evidence(twin), "", GAUSSIAN, ["nlps-default", "nlps-best"])
    assert (claim.outcome, claim.lines[0].what) == (
        OPEN,
        "nlps-default and nlps-best are one setting",
    )


def test_verdict_on_synthetic_data_says_so() -> None:
    study = replace(at("criteo-flipping", a=around(1), b=around(99)), remark="synthetic Criteo")
    claim = rules.beats(evidence(study), "", "criteo-flipping", ["a"], ["b"])
    assert claim.verdict == "holds on synthetic data, not tested on the paper's"


def test_same_trials_under_two_names_count_once() -> None:
    study = at(GAUSSIAN, rnlps_best=around(300), d_ucb=around(1300))
    twin = replace(study, groups=(*study.groups, replace(study.groups[1], name="d-ucb-best")))
    assert len(rules.beats(evidence(twin), "", GAUSSIAN, ["rnlps-best"], ["discounted"]).lines) == 1


def test_short_trials_are_not_judged_and_what_is_missing_is_named() -> None:
    short = make_study(
        GAUSSIAN, {"rnlps-default": around(100), "nlps-default": around(300)}, horizon=1024
    )
    claim = rules.beats(
        evidence(short), "", GAUSSIAN, ["rnlps-default", "rnlps-best"], ["nlps-default"]
    )
    assert claim.outcome == NOT_JUDGED
    assert claim.reason == (
        f"missing: {GAUSSIAN}: rnlps-best was not played; "
        f"{GAUSSIAN}: trials of 1,024 rounds, where the paper has 4,096"
    )


@pytest.mark.parametrize(
    ("others", "outcome"),
    [((1010, 1200), HOLDS), ((990, 1200), OPEN), ((500, 1200), FAILS), ((1150, 1200), FAILS)],
)
def test_insignificant_lead_is_neither_lost_nor_clear(
    others: tuple[float, float], outcome: str
) -> None:
    b, c = others
    study = at(
        "flipping-bernoulli", a=around(1000, 100), b=around(b, 100)[::-1], c=around(c, 100)[::-1]
    )
    claim = rules.leads_insignificantly(evidence(study), "", "flipping-bernoulli", "a", ["b", "c"])
    assert claim.outcome == outcome


def test_order_is_judged_step_by_step() -> None:
    found = evidence(at(GAUSSIAN, a=around(100), b=around(200), c=around(150)))
    claim = rules.ordered(found, "", GAUSSIAN, ["a", "b", "c"])
    assert [line.outcome for line in claim.lines] == [HOLDS, FAILS]


@pytest.mark.parametrize(
    ("late", "slow", "quick"), [(10.0, HOLDS, FAILS), (50.0, OPEN, OPEN), (120.0, FAILS, HOLDS)]
)
def test_growth_is_measured_against_the_pace_of_random(late: float, slow: str, quick: str) -> None:
    study = at(GAUSSIAN, random=around(1600), a=around(300))
    found = gather([seen(study, {"a": around(late, 8)})], [], [])
    claim = rules.grows(found, "", GAUSSIAN, ["a"], 0.25)
    assert claim.lines[0].value == pytest.approx(late / 200)
    assert claim.outcome == slow
    assert claim.verdict.endswith(f" ({late / 200:.0%} of random's pace; limit 25%)")
    assert ("10 trials cannot tell" in claim.verdict) == (slow == OPEN)
    assert rules.grows(found, "", GAUSSIAN, ["a"], 0.25, quickly=True).outcome == quick


def test_growth_is_open_without_the_rounds_of_the_trials() -> None:
    claim = rules.grows(
        evidence(at(GAUSSIAN, random=around(1600), a=around(300))), "", GAUSSIAN, ["a"], 0.25
    )
    assert claim.outcome == OPEN
    assert "regret of random arms beside a" in claim.reason


@pytest.mark.parametrize(("regret", "poor"), [(1200.0, HOLDS), (300.0, FAILS)])
def test_poor_policies_keep_more_than_half_of_randoms_regret(regret: float, poor: str) -> None:
    found = evidence(at(GAUSSIAN, random=around(1600), a=around(regret)))
    assert rules.keeps(found, "", GAUSSIAN, ["a"], 0.5).outcome == poor


@pytest.mark.parametrize(
    ("regret", "one_way", "both_ways"),
    [(30.0, HOLDS, HOLDS), (200.0, FAILS, FAILS), (-100.0, HOLDS, FAILS), (110.0, OPEN, OPEN)],
)
def test_comparable_is_within_a_twentieth_of_random(
    regret: float, one_way: str, both_ways: str
) -> None:
    found = evidence(
        at(GAUSSIAN, random=around(1600), a=around(regret, 20), b=around(30, 20)[::-1])
    )
    claim = rules.within(found, "", GAUSSIAN, [("a", "b")])
    assert claim.outcome == one_way
    assert f"({regret / 30:.1f} times its regret; limit 5% of random's apart)" in claim.verdict
    assert rules.within(found, "", GAUSSIAN, [("a", "b")], both_ways=True).outcome == both_ways


def test_spread_is_compared_by_the_ratio_of_standard_deviations() -> None:
    found = evidence(at(CHAIN, a=around(2000, 1000), b=around(2000, 100), c=around(2000, 990)))
    claim = rules.varies_most(found, "", CHAIN, "a", ["b", "c"])
    assert [line.outcome for line in claim.lines] == [HOLDS, OPEN]
    assert claim.lines[0].value == pytest.approx(10)


@pytest.mark.parametrize(("worse", "outcome"), [(3, HOLDS), (1, HOLDS), (9, FAILS)])
def test_share_of_lost_trials_is_compatible_with_the_papers_or_not(
    worse: int, outcome: str
) -> None:
    found = evidence(at(CHAIN, random=[3600.0] * 10, a=[4000.0] * worse + [1000.0] * (10 - worse)))
    claim = rules.fails_as_often(found, "", CHAIN, "a", 0.3)
    assert claim.lines[0].value == worse / 10
    assert claim.outcome == outcome


def test_conventional_policies_are_worse_where_change_is_quicker() -> None:
    slow = at("rotating-vector-2048", random=around(4000), d_lin_ucb=around(500))
    fast = at("rotating-vector-32", random=around(4000), d_lin_ucb=around(3300))
    claim = rules.worse_where_faster(
        evidence(slow, fast), "", slow.problem, fast.problem, ["discounted"]
    )
    assert claim.outcome == HOLDS
    assert claim.lines[0].value == pytest.approx(0.7)
    back = rules.worse_where_faster(
        evidence(slow, fast), "", fast.problem, slow.problem, ["discounted"]
    )
    assert back.outcome == FAILS


@pytest.mark.parametrize(
    ("second", "outcome"),
    [(around(500), HOLDS), (around(100), FAILS), (around(300), HOLDS), (None, OPEN)],
)
def test_consistently_allows_no_clear_loss_and_needs_all_problems(
    second: list[float] | None, outcome: str
) -> None:
    played = [GAUSSIAN, CHAIN, "flipping-bernoulli"]
    wins = [at(problem, a=around(200), b=around(400)) for problem in played]
    third = [at("wall-following", a=around(300), b=second)] if second else []
    third = [replace(study, horizon=5455) for study in third]
    claim = rules.consistently(
        evidence(*wins, *third), "", [("a", "b")], [*played, "wall-following"]
    )
    assert claim.outcome == outcome


def test_solving_what_others_solve_and_what_they_do_not_are_two_questions() -> None:
    easy = at(GAUSSIAN, random=around(1600), d_ucb=around(300), sw_ucb=around(900), a=around(500))
    hard = at(CHAIN, random=around(1600), d_ucb=around(1300), sw_ucb=around(900), a=around(500))
    lost = at(CHAIN, random=around(1600), d_ucb=around(300), sw_ucb=around(900), a=around(1500))

    def judged(*studies: Study, by_others: bool) -> Claim:
        both, others = [GAUSSIAN, CHAIN], ["discounted", "windowed"]
        return rules.solved(evidence(*studies), "", both, "a", others, by_others=by_others)

    assert [judged(easy, hard, by_others=asked).outcome for asked in (True, False)] == [
        HOLDS,
        HOLDS,
    ]
    assert [judged(easy, lost, by_others=asked).outcome for asked in (True, False)] == [
        FAILS,
        FAILS,
    ]
    assert [judged(easy, by_others=asked).outcome for asked in (True, False)] == [OPEN, OPEN]
    assert [line.problem for line in judged(easy, hard, by_others=True).lines] == [GAUSSIAN]


def grid(study: Study, rewards: Mapping[str, Sequence[Sequence[float]]]) -> Study:
    """A search: mean rewards of settings by seed."""
    grids = {}
    for name, settings in rewards.items():
        made = [
            make_study(study.problem, {name: [-r for r in values]}).groups[0] for values in settings
        ]
        grids[name] = tuple(replace(group, setting=str(i)) for i, group in enumerate(made))
    return replace(study, grids=grids)


def test_robustness_compares_median_settings_of_as_many_draws_on_common_seeds() -> None:
    steady = [[900.0 - i, 910.0 - i] * 3 for i in range(40)]
    shaky = [[900.0 - 20 * i, 910.0 - 20 * i] * 3 + [1e9] for i in range(80)]
    study = grid(at(GAUSSIAN, random=[1000.0]), {"rnlps": steady, "nlps": shaky})
    study = replace(study, groups=(make_study(GAUSSIAN, {"random": [0.0] * 7}).groups[0],))
    found = evidence(searches=[study])
    claim = robustness.more_robust(found, "", [GAUSSIAN], least=0.2)
    assert claim.outcome == HOLDS
    assert claim.lines[0].trials == 6
    assert "40 and 80 settings, 4,096 rounds" in claim.lines[0].what
    assert robustness.more_robust(found, "", [GAUSSIAN], feedforward=True).outcome == FAILS
    assert robustness.more_robust(found, "", [GAUSSIAN, CHAIN]).outcome == OPEN


@pytest.mark.parametrize(
    ("problem", "horizon", "trials", "judged"),
    [
        (GAUSSIAN, 2048, 5, True),
        (GAUSSIAN, 1024, 5, False),
        (GAUSSIAN, 2048, 4, False),
        ("wall-following", 4096, 5, False),
    ],
)
def test_searches_with_fewer_or_shorter_trials_than_the_papers_judge_nothing(
    problem: str, horizon: int, trials: int, judged: bool
) -> None:
    grids = {
        "rnlps": [[900.0] * trials] * 40,
        "nlps": [[900.0 - 9 * i] * trials for i in range(40)],
    }
    study = grid(make_study(problem, {"random": [0.0] * trials}, horizon=horizon), grids)
    found = evidence(searches=[study], finals=[study])
    claims = (
        robustness.more_robust(found, "", [problem]),
        robustness.mostly_above_random(found, "", problem),
        robustness.search_misleads(found, "", problem),
    )
    assert [claim.outcome == NOT_JUDGED for claim in claims] == [not judged] * 3
    assert claims[1].outcome == (HOLDS if judged else NOT_JUDGED)


def test_noise_of_seeds_is_in_the_interval_of_robustness() -> None:
    rng = np.random.default_rng(1)
    base = {name: rng.uniform(400, 900, (40, 1)) for name in ("rnlps", "nlps")}
    noisy = {name: (values + rng.normal(0, 400, (1, 3))).tolist() for name, values in base.items()}
    widths = []
    for grids in ({name: np.repeat(v, 3, axis=1).tolist() for name, v in base.items()}, noisy):
        study = grid(make_study(GAUSSIAN, {"random": [0.0] * 3}), grids)
        line = robustness.more_robust(evidence(searches=[study]), "", [GAUSSIAN]).lines[0]
        widths.append(line.high - line.low)
    assert widths[1] > 1.2 * widths[0]


def test_robustness_is_not_fooled_by_the_luck_of_a_larger_grid() -> None:
    rng = np.random.default_rng(0)
    lucky = {
        name: rng.exponential(100, (n, 1)).tolist() for name, n in (("rnlps", 60), ("nlps", 2000))
    }
    study = grid(make_study(GAUSSIAN, {"random": [0.0]}), lucky)
    line = robustness.more_robust(evidence(searches=[study]), "", [GAUSSIAN]).lines[0]
    own_best = [np.median(values) / np.max(values) for values in lucky.values()]
    assert own_best[0] > own_best[1] + 0.03
    assert line.outcome == OPEN
    assert abs(line.value) < 0.05


def test_search_that_misleads_is_ahead_on_search_seeds_and_behind_in_the_report() -> None:
    search = grid(
        make_study(GAUSSIAN, {"random": [0.0] * 5}),
        {"rnlps": [[9] * 5, [1] * 5], "nlps": [[5] * 5, [4] * 5]},
    )
    report = at(GAUSSIAN, nlps_best=around(100), rnlps_best=around(200))
    claim = robustness.search_misleads(evidence(report, finals=[search]), "", GAUSSIAN)
    assert [line.value for line in claim.lines] == [4.0, -100.0]
    assert claim.outcome == HOLDS


def test_settings_above_random_are_counted() -> None:
    good = [[50.0] * 5] * 90 + [[-50.0] * 5] * 6
    study = grid(make_study(CHAIN, {"random": [0.0] * 5}), {"rnlps": good})
    claim = robustness.mostly_above_random(evidence(searches=[study]), "", CHAIN)
    assert (claim.outcome, claim.lines[0].value) == (HOLDS, 90 / 96)


def explored(trials: int, *, best: float = 300.0) -> list[Study]:
    regrets = {
        "random": around(1600, trials=trials),
        "rnlps": around(400, trials=trials),
        "rnlps-epsilon-greedy": around(500, trials=trials),
        "rnlps-boltzmann": around(450, trials=trials)[::-1],
        "rnlps-best": around(best, trials=trials),
        "rnlps-epsilon-greedy-best": around(350, trials=trials),
        "rnlps-boltzmann-best": around(360, trials=trials),
    }
    return [
        make_study(problem, regrets, suite="paper-exploration-report")
        for problem in exploration.PROBLEMS
    ]


@pytest.mark.parametrize(
    ("trials", "best", "outcome"),
    [(40, 300.0, HOLDS), (39, 300.0, OPEN), (40, 400.0, FAILS), (40, 350.0, OPEN)],
)
def test_exploration_is_decided_by_forty_paired_trials_of_everything(
    trials: int, best: float, outcome: str
) -> None:
    found = evidence(explored=explored(trials, best=best))
    for judge in (exploration.papers_claim, exploration.wider_claim):
        claim = judge(found, "")
        assert claim.outcome == outcome, claim
        assert all(np.isfinite(line.low) for line in claim.lines)
        assert all("so far" in line.what for line in claim.lines) == (trials < 40)


def test_exploration_is_not_judged_by_fewer_trials_than_the_papers() -> None:
    claims = check_claims([], [], [seen(study) for study in explored(9)])
    assert [claims[n - 1].outcome for n in (36, 37)] == [NOT_JUDGED, NOT_JUDGED]


def test_exploration_on_six_problems_is_judged_by_their_average() -> None:
    studies = explored(40)
    worse = {group.name: group.regrets.tolist() for group in studies[1].groups} | {
        "rnlps-best": around(370, trials=40)
    }
    studies[1] = make_study(studies[1].problem, worse, suite=studies[1].suite)
    claim = exploration.wider_claim(evidence(explored=studies), "")
    assert FAILS in [line.outcome for line in claim.lines]
    assert claim.outcome == HOLDS
    assert exploration.papers_claim(evidence(explored=studies), "").outcome == HOLDS


def test_of_several_lengths_the_longest_trials_are_judged() -> None:
    short = make_study(GAUSSIAN, {"a": around(1), "b": around(200)}, horizon=100)
    found = evidence(at(GAUSSIAN, a=around(900), b=around(200)), short)
    assert rules.beats(found, "", GAUSSIAN, ["a"], ["b"]).lines[0].value == pytest.approx(700)


def test_exploration_names_what_was_not_played_and_shows_the_interval_so_far() -> None:
    claim = exploration.wider_claim(evidence(explored=explored(40)[:5]), "")
    assert claim.outcome == OPEN
    assert "so far on 5 of 6 problems" in claim.lines[0].what
    assert "rotating-vector-2048: rnlps-boltzmann-best was not played" in claim.reason


def test_policies_of_exploration_from_two_suites_stand_together_and_stay_out_of_reports() -> None:
    whole = explored(40)[0]
    first = replace(whole, groups=whole.groups[:3])
    more = replace(whole, suite="paper-exploration-selected", groups=whole.groups[2:])
    other = make_study(GAUSSIAN, {"rnlps-best": [1.0]})
    (study,) = exploration.explorations([first, more, other])
    assert study.groups == whole.groups
    assert combined([first, more, other]) == [other]


def test_claim_has_a_reason_only_while_it_is_open() -> None:
    few = rules.beats(evidence(at(GAUSSIAN, a=[1.0], b=[2.0])), "", GAUSSIAN, ["a"], ["b"])
    assert few.outcome == NOT_JUDGED
    assert few.reason.endswith("1 trials of b, where the paper has 10")
    near = at(GAUSSIAN, a=around(1), b=around(2)[::-1])
    claim = rules.beats(evidence(near), "", GAUSSIAN, ["a"], ["b"])
    assert isinstance(claim, Claim)
    assert (claim.outcome, claim.reason) == (OPEN, "no difference that 10 trials can show")
    decided = rules.beats(
        evidence(at(GAUSSIAN, a=around(1), b=around(200))), "", GAUSSIAN, ["a"], ["b"]
    )
    assert (decided.outcome, decided.reason) == (HOLDS, "")


def test_verdict_says_what_is_missing_where_it_is_one_thing() -> None:
    one = at(GAUSSIAN, a=around(1))
    lacking = rules.beats(evidence(one), "", GAUSSIAN, ["a"], ["b"])
    assert lacking.verdict == "open: b was not played"
    more = rules.beats(evidence(one), "", GAUSSIAN, ["a"], ["b", "c"])
    assert more.verdict == "open: trials are missing"
