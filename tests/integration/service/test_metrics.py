"""Numbers about the service itself."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from tests.integration.service.houses import House
from tidepull.service.metrics import Metrics, Timing, total


def test_spans_are_the_ends_of_bins_within_which_half_and_most_was_done() -> None:
    metrics = Metrics()
    for seconds in [0.0015] * 60 + [0.015] * 39 + [0.15]:
        metrics.answered("choose", 200, seconds)
    metrics.answered("explain", 200, 99.0)
    assert metrics.operations == {
        "choose": Timing(100, 2.0, 20.0),
        "explain": Timing(1, None, None),
    }
    assert metrics.commits == Timing(0, None, None)
    metrics.snapshots.inc(3)
    assert total(metrics.snapshots) == 3


def test_service_says_how_it_is_doing_at_the_cost_of_few_metrics(house: House) -> None:
    metrics = house.service.metrics
    for n in range(25):
        metrics.answered(f"operation {n}", 200, 0.01)

    def seconds(work: Callable[[], object]) -> float:
        begun = time.process_time()
        for _ in range(3):
            work()
        return time.process_time() - begun

    metrics.text()
    assert house.ask("GET", "/v1/service").json()["operations"]["operation 7"]["p99"] == 10
    assert seconds(lambda: house.ask("GET", "/v1/service")) < 20 * seconds(metrics.text) + 0.05


def test_tokens_file_is_told_to_be_damaged_when_nobody_asks(house: House) -> None:
    house.tokens_file.write_text("{")

    async def told() -> bool:
        for _ in range(100):
            await asyncio.sleep(0.05)
            if b"tidepull_tokens_file_sound 0.0" in house.service.metrics.text():
                return True
        return False

    assert house.run(told())
