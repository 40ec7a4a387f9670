"""The page of a diagnosis: whole in itself, with every part, and safe whatever arms are called."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from tests.commands import understand
from tests.unit.logs.making import make_log
from tests.unit.logs.test_diagnosis import changing, simpson
from tidepull import logs
from tidepull.logs.diagnosis import advice
from tidepull.logs.diagnosis.confounding import mixups_of
from tidepull.logs.diagnosis.overview import best_by_hour
from tidepull.reporting import log_page
from tidepull.reporting.log_page import render
from tidepull.reporting.tables import to_html


@pytest.fixture(scope="module")
def found() -> logs.Diagnosis:
    """What is found in a log with changes."""
    log = replace(changing(0, 600), arms=("<script>alert(1)</script>", "b & c"))
    return logs.diagnose(log, shuffles=99)


@pytest.fixture(scope="module")
def page(found: logs.Diagnosis) -> str:
    """The page about it."""
    return render(found)


def test_the_page_has_every_part(page: str) -> None:
    assert "<p>No arm is clearly the best of an hour.</p>" in page
    for heading in (
        "What to do",
        "In short", "Caveats", "What happened", "Rewards over time", "Does time matter", "Would forgetting help",
        "Are the propensities right", "How this was made", "Change points", "Effective rows by hour and weekday",
        "Mean reward of all arms by hour and weekday", "Evidence over time", "Leading models",
    ):  # fmt: skip
        assert heading in page, heading
    assert page.count("<svg") == 9


def test_card_comes_first_and_says_what_to_do_what_it_brings_and_how_to_deploy_it(
    found: logs.Diagnosis, page: str
) -> None:
    assert page.index("What to do") < page.index("Deploy it") < page.index("In short")
    assert advice.action(found) in found.recommendation
    assert advice.worth(found)
    serve, create = advice.commands(found)
    understand(serve)
    understand(create)
    assert "--arm 'b & c'" in create


def test_best_arm_of_an_hour_is_named_where_the_log_is_clear() -> None:
    rng = np.random.default_rng(0)
    time = 1_780_272_000.0 + 600.0 * np.arange(6000)
    arm, hour = rng.integers(2, size=6000), (time % 86_400 // 3600).astype(int)
    chance = np.where(hour < 12, 0.3, np.where(arm == (hour >= 18), 0.7, 0.2))
    rewards = (rng.random(6000) < chance).astype(float)
    log = make_log(arm, rewards, np.full(6000, 0.5), n_arms=2, time=time)
    best = best_by_hour(log)
    assert best is not None
    assert set(best[0, 12:18]) == {0}
    assert set(best[0, 18:]) == {1}
    assert (best[:, :12] == -1).mean() > 0.8


def test_the_page_needs_nothing_from_outside(page: str) -> None:
    assert not re.findall(r'(?:src|href)="(?!#|data:)', page)
    assert "url(http" not in page
    assert "@import" not in page


def test_arms_cannot_become_code(page: str) -> None:
    assert "<script>alert(1)" not in page
    assert "&lt;script&gt;alert(1)" in page


def test_ink_is_that_of_the_page_and_ids_are_unique(page: str) -> None:
    assert "#123456" not in page
    assert "currentColor" in page
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r"url\(#([^)]+)\)", page)) <= set(ids)


def test_the_same_diagnosis_makes_the_same_pictures(found: logs.Diagnosis, page: str) -> None:
    assert log_page.weights(found) in page


def test_a_page_without_times_and_propensities_leaves_their_parts_out() -> None:
    log = changing(0, 300)
    text = render(logs.diagnose(make_log(log.arm, log.reward, None, n_arms=2), shuffles=99))
    assert "Are the propensities right" not in text
    assert "by hour" not in text
    assert "What happened" in text


def test_simpsons_paradox_has_a_table() -> None:
    table = to_html(log_page.mixup_table(mixups_of(simpson())[0]))
    assert "&#39;0&#39; is ahead over the whole log" in table
    assert table.count("<tr>") == 25
