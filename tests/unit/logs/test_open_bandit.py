"""The real sample of the Open Bandit Dataset: what each log says of the policy that wrote the other
one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tidepull import logs

SAMPLE = Path(os.environ.get("TIDEPULL_DATA", "missing")) / "open_bandit"
pytestmark = pytest.mark.skipif(not SAMPLE.is_dir(), reason="the sample is not in TIDEPULL_DATA")


def read(policy: str, campaign: str) -> logs.Log:
    return logs.read(SAMPLE / policy / campaign / f"{campaign}.csv.gz")


@pytest.mark.parametrize(
    ("campaign", "arms", "clicks"), [("men", 34, (46, 69)), ("all", 80, (38, 42))]
)
def test_each_log_says_what_the_other_shows_within_its_interval(
    campaign: str, arms: int, clicks: tuple[int, int]
) -> None:
    even, bts = read("random", campaign), read("bts", campaign)
    assert (even.n_arms, bts.n_arms, len(even), len(bts)) == (arms, arms, 10_000, 10_000)
    assert (even.reward.sum(), bts.reward.sum()) == clicks
    other = logs.as_logged(bts, "bts", by=["position"])
    forth = logs.backtest(even, [other], estimators=["dr"]).of("bts", "dr")
    back = logs.backtest(bts, ["random"], estimators=["dr"]).of("random", "dr")
    assert forth.low < bts.reward.mean() < forth.high
    assert back.low < even.reward.mean() < back.high
    assert forth.high > 2 * forth.low
