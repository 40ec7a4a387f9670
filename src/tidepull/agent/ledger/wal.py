"""SQLite's write-ahead log, as far as damage in it must be told from a commit that was under way.

SQLite reads a log up to the first frame whose checksum is wrong, and drops all behind it without a
word. The last commit may have been under way when the power was cut. Each one before it was synced,
so that more than one behind that frame are damage. The format is section 4 of
sqlite.org/fileformat2.html.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tidepull.types import BoolArray

ByteArray = np.ndarray[Any, np.dtype[np.uint8]]

_HEAD, _FRAME_HEAD = 32, 24
_PAGE = 4096
"""Bytes of a page, where the head does not say so."""

_LITTLE_ENDIAN = 0x377F0682
_BLOCK = 1024
"""Frames that are summed at a time: 8 MB of numbers."""


def unreadable_commits(log: Path) -> int:
    """Commits of a log that SQLite does not read, the last one included that was under way."""
    if not log.is_file():
        return 0
    with log.open("rb") as handle:
        content = handle.read()
    if len(content) < _HEAD:
        return 0
    words = np.dtype("<u4" if int.from_bytes(content[:4], "big") == _LITTLE_ENDIAN else ">u4")
    head = np.frombuffer(content, np.uint8, _HEAD)[None]
    is_sound = _has_sum(head[:, :24], head[:, 24:], np.zeros((1, 8), np.uint8), words)[0]
    size = (int.from_bytes(content[8:12], "big") if is_sound else _PAGE) + _FRAME_HEAD
    count = (len(content) - _HEAD) // size
    if count < 1:
        return 0
    frames = np.frombuffer(content, np.uint8, count * size, _HEAD).reshape(count, size)
    # Where the head itself is damaged, the first frame has the salt; frames of an earlier log
    # have another one.
    ours = (frames[:, 8:16] == (head[0, 16:24] if is_sound else frames[0, 8:16])).all(axis=1)
    commits = ours & frames[:, 4:8].any(axis=1)
    before = np.concatenate([head[:, 24:], frames[:-1, 16:_FRAME_HEAD]])
    first = 0
    for start in range(0, count if is_sound else 0, _BLOCK):
        part = slice(start, start + _BLOCK)
        text = np.delete(frames[part], np.s_[8:_FRAME_HEAD], axis=1)
        sums = frames[part, 16:_FRAME_HEAD]
        readable = ours[part] & _has_sum(text, sums, before[part], words)
        first = start + int(np.argmin(np.append(readable, False)))
        if first < min(start + _BLOCK, count):
            break
    return int(commits[first:].sum())


def _has_sum(text: ByteArray, sums: ByteArray, before: ByteArray, words: Any) -> BoolArray:
    """Whether each row of a text has its sum, given the sum before it. A pair of words (x, y) takes
    the sum (a, b) to (a + x + b, a + 2 b + x + y)."""
    numbers = np.ascontiguousarray(text).view(words).astype(np.uint64)
    a, b = np.ascontiguousarray(before).view(">u4").astype(np.uint64).T
    steps = numbers.shape[1] // 2
    weights, power = np.empty((2 * steps, 2), np.uint64), [[1, 0], [0, 1]]
    for n in reversed(range(steps)):
        for k, (to_a, to_b) in enumerate(power):
            weights[2 * n : 2 * n + 2, k] = (to_a + to_b) % 2**32, to_b
        power = [[(p + q) % 2**32, (p + 2 * q) % 2**32] for p, q in power]
    actual = numbers @ weights + np.outer(a, _column(power, 0)) + np.outer(b, _column(power, 1))
    stored = np.ascontiguousarray(sums).view(">u4").astype(np.uint64)
    return np.asarray((actual % np.uint64(2**32) == stored).all(axis=1))


def _column(power: list[list[int]], n: int) -> Any:
    return np.array([row[n] for row in power], np.uint64)
