"""Linear problems whose arms are advertising banners of the Criteo dataset.

Every round offers K/2 vectors of clicked banners and K/2 of not-clicked ones, in random order, so
that an arm's place says nothing of its pool. w starts as the least-squares parameter of the click
target.

The prepared file between the dataset and the problems holds two pools of vectors, a parameter, and
facts. It is an npz archive with a JSON member. Its checksum is verified on loading, and it is
renamed into place, so a reader never meets half a file or an altered one. Without a path the
problems play on the real file, else on a synthetic one.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidepull._internal.extras import Package
from tidepull._internal.files import replacing
from tidepull.errors import DataError, ParameterError, StoreError
from tidepull.parameters import Parameters, parameter
from tidepull.problems.datasets import cache_directory, find
from tidepull.problems.drift import ChangesOnce, Drift, Flip, FlipsRegularly, PartialFlip
from tidepull.problems.linear import LinearProblem, PoolSampler
from tidepull.random import Streams

FORMAT = 1
_ARRAYS = ("clicked", "not_clicked", "theta")


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """Vectors of clicked and of not-clicked banners, the linear parameter, and where they come
    from."""

    clicked: NDArray[np.float32]
    not_clicked: NDArray[np.float32]
    theta: NDArray[np.float64]
    about: dict[str, Any]

    @property
    def dim(self) -> int:
        """Length of each vector."""
        return len(self.theta)

    @property
    def synthetic(self) -> bool:
        """Whether any of the impressions were made up."""
        return bool(self.about["synthetic"])


def save(prepared: Prepared, path: Path) -> None:
    """Write the file, whole or not at all."""
    about = json.dumps(prepared.about, sort_keys=True).encode()
    arrays = {name: getattr(prepared, name) for name in _ARRAYS}
    members = {**arrays, "about": np.frombuffer(about, np.uint8)}
    digest = np.frombuffer(_digest(members), np.uint8)
    with replacing(path) as handle:
        np.savez(handle, allow_pickle=False, **members, sha256=digest)


def load(path: Path) -> Prepared:
    """Read and verify the file."""
    try:
        content = io.BytesIO(path.read_bytes())
    except FileNotFoundError:
        raise DataError(
            f"there is no prepared Criteo file {path}; make it with 'tidepull data prepare-criteo'"
        ) from None
    except OSError as error:
        raise DataError(
            f"the prepared Criteo file {path} cannot be read ({error.strerror})"
        ) from None
    try:
        with np.load(content, allow_pickle=False) as archive:
            members = {name: archive[name] for name in (*_ARRAYS, "about")}
            recorded = archive["sha256"].tobytes()
    except Exception:  # zipfile, zlib, struct and numpy each complain of damage in their own way
        raise DataError(_damaged(path, "it cannot be unpacked")) from None
    if _digest(members) != recorded:
        raise DataError(_damaged(path, "its checksum does not match its content"))
    about = json.loads(members["about"].tobytes())
    if about.get("format") != FORMAT:
        raise DataError(
            f"{path} has format {about.get('format')}, this tidepull reads {FORMAT}; prepare it "
            "again"
        )
    return Prepared(members["clicked"], members["not_clicked"], members["theta"], about)


def _digest(members: dict[str, NDArray[Any]]) -> bytes:
    digest = hashlib.sha256()
    for name in sorted(members):
        array = np.ascontiguousarray(members[name])
        digest.update(f"{name} {array.dtype.str} {array.shape} ".encode())
        digest.update(array.tobytes())
    return digest.digest()


def _damaged(path: Path, reason: str) -> str:
    return (
        f"{path} is not a prepared Criteo file, or damaged ({reason}); "
        "delete it and prepare it again (a synthetic one is generated again automatically)"
    )


SYNTHETIC_VERSION = 1
"""Goes up whenever the made-up impressions or their preparation change, so that no old file is
used."""

SYNTHETIC_ROWS = 60_000
SYNTHETIC_SEED = 0


def prepared_name(dim: int) -> str:
    """How the prepared real file is called in TIDEPULL_DATA and in the cache."""
    return f"criteo-{dim}.npz"


def find_prepared(path: str | None, dim: int) -> Prepared:
    """The file at `path`; else the real one in TIDEPULL_DATA or the cache; else the synthetic
    one."""
    place = prepared_file(path, dim)
    prepared = load(place)
    if prepared.dim != dim:
        raise DataError(
            f"{place} was prepared with {prepared.dim} dimensions, not {dim}; "
            f"set dim={prepared.dim}, or prepare it again with --dim {dim}"
        )
    return prepared


def prepared_file(path: str | None, dim: int) -> Path:
    """Where that file is; the synthetic one is made when it is needed and missing."""
    place = find(prepared_name(dim)) if path is None else Path(path).expanduser()
    return synthetic_file(dim) if place is None else place


def synthetic_file(dim: int) -> Path:
    """The synthetic file in the cache, made there when missing.

    Processes that start at once may each make it: their bytes are equal, and each renames a whole
    file into place, so all of them read the same.
    """
    path = cache_directory() / f"criteo-synthetic-{SYNTHETIC_VERSION}-{dim}.npz"
    if not path.is_file():
        Package("scipy", "data").require("making a synthetic Criteo file")
        from tidepull.problems.criteo.prepare import feature_rows, prepare_blocks

        rows = feature_rows(SYNTHETIC_ROWS, seed=SYNTHETIC_SEED)
        try:
            save(prepare_blocks(rows, dim=dim, seed=SYNTHETIC_SEED), path)
        except StoreError as error:
            raise StoreError(f"{error}; name another cache with XDG_CACHE_HOME") from None
    return path


SYNTHETIC_REMARK = "synthetic Criteo"


@dataclass(frozen=True, kw_only=True)
class CriteoParameters(Parameters):
    """What both problems have in common."""

    n_arms: int = parameter(10, "banners on offer in each round, half of them clicked ones", ge=2)
    dim: int = parameter(50, "length of the vectors", ge=1)
    noise_std: float = parameter(math.sqrt(0.15), "standard deviation of the reward's noise", ge=0)
    path: str | None = parameter(
        None,
        "prepared file (auto: criteo-<dim>.npz in TIDEPULL_DATA or the cache, else a synthetic "
        "one)",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n_arms % 2:
            raise ParameterError(f"n_arms must be even, got {self.n_arms}")


@dataclass(frozen=True, kw_only=True)
class CriteoPartialFlipParameters(ChangesOnce, CriteoParameters):
    """Parameters of `criteo-partial-flip`."""

    change_at: int = parameter(4000, "round of the change, counted from 0", ge=1)
    share: float = parameter(0.6, "share of w's components whose sign is switched", ge=0, le=1)


@dataclass(frozen=True, kw_only=True)
class CriteoFlippingParameters(FlipsRegularly, CriteoParameters):
    """Parameters of `criteo-flipping`."""

    half_period: int = parameter(256, "rounds between two changes of sign of w", ge=1)


def criteo_partial_flip(parameters: CriteoPartialFlipParameters, streams: Streams) -> LinearProblem:
    """Once, the signs of a share of w's components are switched; the seed says which."""
    prepared = find_prepared(parameters.path, parameters.dim)
    mask = np.zeros(prepared.dim, np.bool_)
    switched = round(parameters.share * prepared.dim)
    mask[streams.generator("mask").choice(prepared.dim, switched, replace=False)] = True
    drift = PartialFlip(prepared.theta, mask, parameters.change_at)
    return _on_banners(parameters, prepared, drift, streams)


def criteo_flipping(parameters: CriteoFlippingParameters, streams: Streams) -> LinearProblem:
    """w becomes -w every half period."""
    prepared = find_prepared(parameters.path, parameters.dim)
    drift = Flip(prepared.theta, -prepared.theta, parameters.half_period)
    return _on_banners(parameters, prepared, drift, streams)


def files(parameters: CriteoParameters) -> list[Path]:
    """The prepared file that both problems read."""
    return [prepared_file(parameters.path, parameters.dim)]


def _on_banners(
    parameters: CriteoParameters, prepared: Prepared, drift: Drift, streams: Streams
) -> LinearProblem:
    half = parameters.n_arms // 2
    return LinearProblem(
        sampler=PoolSampler([(prepared.clicked, half), (prepared.not_clicked, half)]),
        drift=drift,
        noise_std=parameters.noise_std,
        streams=streams,
        remark=SYNTHETIC_REMARK if prepared.synthetic else "",
    )
