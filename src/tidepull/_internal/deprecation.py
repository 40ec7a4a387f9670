"""What goes: a name or an argument that has another name now warns for one version, the one that renamed it.

    def sweep(*, folds: int, n_folds: int | None = None) -> None:
        if n_folds is not None:
            warn_renamed("sweep(n_folds=)", "sweep(folds=)", since="0.2")
            folds = n_folds

What is left in the version after it is an error, so that nothing stays by oversight: the tests of every old name fail.
"""

from __future__ import annotations

import warnings

import tidepull


def warn_renamed(old: str, new: str, *, since: str) -> None:
    """Warn the caller of whoever calls this; `since` is the version that renamed it, as "0.2"."""
    if is_over(since):
        raise AttributeError(f"{old} became {new} in version {since} of tidepull, and is gone")
    warnings.warn(
        f"{old} is called {new} since version {since} of tidepull, and goes with the next one",
        DeprecationWarning,
        stacklevel=3,
    )


def is_over(since: str) -> bool:
    """Whether this is a later version than the one that renamed something: its fixes count as that version itself."""
    return _numbers(tidepull.__version__) > _numbers(since)


def _numbers(version: str) -> tuple[int, int]:
    major, minor = version.split(".")[:2]
    return int(major), int(minor)
