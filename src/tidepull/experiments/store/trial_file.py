"""The rounds of one trial as a small parquet file: arm, reward, gap, optimal.

`gap` is the round's regret. Rewards, gaps and optima keep 18 significant bits (a relative error of at most
4e-6, far below any noise that a reward carries; 0, 1 and whole numbers up to 262,144 stay exact), so that
4,096 rounds take less than 40 KB even where nothing repeats. The exact totals are in the manifest.
The same trial gives the same bytes under the same version of pyarrow.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import numpy as np

from tidepull.errors import MissingExtraError, StoreError
from tidepull.experiments.trial import Trial
from tidepull.types import Diagnostics, FloatArray

_DROPPED_BITS = 24 - 18
_FLOATS = ("reward", "gap", "optimal")


def encode(trial: Trial) -> bytes:
    """The file's content."""
    pa, pq = arrow()
    arms = np.asarray(trial.arms)
    arms = arms.astype(np.int16 if arms.max(initial=0) <= np.iinfo(np.int16).max else np.int32)
    gaps = np.diff(trial.regret, prepend=0.0)
    floats = dict(
        zip(_FLOATS, (_rounded(trial.rewards), _rounded(gaps), _rounded(trial.optimal)), strict=True)
    )
    columns = {"arm": arms, **floats}
    schema = pa.schema(
        [pa.field(name, pa.from_numpy_dtype(c.dtype), nullable=False) for name, c in columns.items()]
    )
    buffer = io.BytesIO()
    pq.write_table(
        pa.table(columns, schema=schema),
        buffer,
        compression="zstd",
        compression_level=3,
        use_dictionary=["arm"],
        column_encoding=dict.fromkeys(_FLOATS, "BYTE_STREAM_SPLIT"),
        write_statistics=False,
        store_schema=False,
    )
    return buffer.getvalue()


def decode(data: bytes, *, seconds: float, remark: str, diagnostics: Diagnostics) -> Trial:
    """The trial again; what is not per round comes from the manifest."""
    pa, pq = arrow()
    try:
        table = pq.read_table(pa.BufferReader(data), use_threads=False)
        columns: Mapping[str, Any] = {name: table.column(name).to_numpy() for name in ("arm", *_FLOATS)}
    except (OSError, ValueError, KeyError, pa.ArrowException) as error:
        raise StoreError(f"the trial's data cannot be decoded ({error})") from None
    return Trial(
        arms=columns["arm"].astype(np.int64),
        rewards=columns["reward"].astype(float),
        regret=np.cumsum(columns["gap"].astype(float)),
        optimal=columns["optimal"].astype(float),
        seconds=seconds,
        remark=remark,
        diagnostics=diagnostics,
    )


def _rounded(values: FloatArray) -> FloatArray:
    """float32 rounded half up to 18 significant bits: the low bits become zeros, which compress away."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    half = np.uint32(1 << (_DROPPED_BITS - 1))
    return ((bits + half) >> _DROPPED_BITS << _DROPPED_BITS).view(np.float32)


def arrow() -> tuple[Any, Any]:
    """pyarrow and its parquet module, loaded when first needed."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtraError("storing trials", "bench") from None
    return pyarrow, pyarrow.parquet
