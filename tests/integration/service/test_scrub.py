"""A damaged record of an open agent shows in the metrics and the log, though no request meets it."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from tests.integration.service.houses import House
from tidepull.service import service


def metric(house: House, name: str) -> float:
    """The value of a metric; 0 where it is not there."""
    for line in house.ask("GET", "/metrics").text.splitlines():
        if line.startswith(name):
            return float(line.rpartition(" ")[2])
    return 0.0


def test_damaged_record_shows_in_the_metrics_and_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(service, "SCRUB_INTERVAL", 0.002)
    monkeypatch.setattr(service, "SCRUB_RECORDS", 7)
    house, end = House(tmp_path), time.monotonic() + 30
    try:
        house.make()
        for _ in range(20):
            house.ask("POST", "/v1/agents/shop/choose", {"context": {"age": 30}})
        while metric(house, "tidepull_scrubbed_records_total") < 40:
            assert time.monotonic() < end
        assert metric(house, "tidepull_damaged_records") == 0
        (path,) = tmp_path.glob("**/shop.db")
        with closing(sqlite3.connect(path)) as file:
            file.execute("UPDATE records SET at = at + 1 WHERE seq = 5")
            file.commit()
        while not metric(house, "tidepull_damaged_records"):
            assert time.monotonic() < end
        for _ in range(20):
            assert metric(house, 'tidepull_damaged_records{agent="shop"}') == 1
        assert caplog.text.count("record 5 is not as it was written") == 1
        assert house.ask("DELETE", "/v1/agents/shop").status_code == 200
        assert metric(house, "tidepull_damaged_records") == 0
    finally:
        house.close()


def test_agent_that_was_closed_is_not_taken_for_damaged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    house = House(tmp_path)
    try:
        house.make()
        hosting, metrics = house.service.hosting, house.service.metrics
        hosted = hosting.hosted("shop")
        assert hosted is not None
        house.run(hosting.close_idle(-1.0))
        assert not hosting.is_open("shop")
        house.run(service.Scrubber(hosting, metrics).look(hosted))
        assert "damaged" not in caplog.text
        assert metric(house, "tidepull_damaged_records") == 0
    finally:
        house.close()
