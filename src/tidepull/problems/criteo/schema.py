"""The columns of the Criteo attribution dataset, and the few of them that the problems use."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

COLUMNS = (
    "timestamp", "uid", "campaign", "conversion", "conversion_timestamp", "conversion_id", "attribution",
    "click", "click_pos", "click_nb", "cost", "cpo", "time_since_last_click",
    "cat1", "cat2", "cat3", "cat4", "cat5", "cat6", "cat7", "cat8", "cat9",
)  # fmt: skip
"""Every column of the published file, in its order."""

FEATURES = ("campaign", "cat1", "cat2", "cat3", "cat4", "cat5", "cat6", "cat8", "cat9")
"""What describes a banner: the campaign and cat1 to cat9 without cat7."""

TARGET = "click"

PUBLISHED_NAME = "criteo_attribution_dataset.tsv.gz"
PUBLISHED_ROWS = 16_468_027

DIM = 50
SAMPLE = 200_000
POOL = 10_000

FIRST_SYNTHETIC_CAMPAIGN = 900_000_000
"""Synthetic campaigns are numbered from here, far above the published ids, so that a file made by
`synthesize-criteo` is recognised even after it was unpacked, cut or packed again."""


@dataclass(frozen=True, slots=True, eq=False)
class Impressions:
    """Some banners: their categories (a row each, a column for each of `FEATURES`), and who clicked.

    The two are kept apart so that what makes features can be given the categories alone.
    """

    categories: NDArray[np.int64]
    clicked: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.clicked)
