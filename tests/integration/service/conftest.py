from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.service.houses import House


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    house = House(tmp_path)
    yield house
    house.close()


@pytest.fixture
def shop(house: House) -> House:
    house.make()
    return house
