"""From what a user calls the place of an agent to its ledger: nothing (memory), a file, or the URL
of a database."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from tidepull._internal.extras import needs
from tidepull._internal.validation import shown
from tidepull.agent.ledger.base import Ledger, MemoryLedger
from tidepull.agent.ledger.sqlite import SqliteLedger
from tidepull.errors import ParameterError, WrongStoreError

if TYPE_CHECKING:
    from tidepull.agent.ledger.postgres import Place


_SCHEMES = ("postgresql://", "postgres://")
_OURS = ("agent", "lease")


def ledger_at(
    path: str | os.PathLike[str] | Place, *, read_only: bool = False, create: bool = True
) -> tuple[Ledger, str]:
    """The ledger of an agent, and what to call its place; without `create` no file is made."""
    if path == ":memory:":
        return MemoryLedger(), "memory"
    if isinstance(path, str) and path.startswith(_SCHEMES):
        path = place_of(path)
    if isinstance(path, str | os.PathLike):
        _require_file(path)
        if not (create or read_only or Path(path).exists()) and Path(path).parent.is_dir():
            raise WrongStoreError(f"there is no agent at {path} yet; to make one, give arms=[...]")
        return SqliteLedger(Path(path), read_only=read_only), str(path)
    if not hasattr(path, "database"):
        raise ParameterError(
            f"an agent is a file or a postgresql:// URL, got {shown(path)}; Agent.memory(...) makes "
            "one that is kept in memory"
        )
    with needs("a ledger in PostgreSQL", "postgres"):
        from tidepull.agent.ledger.postgres import PostgresLedger
    ledger = PostgresLedger(path, read_only=read_only)
    return ledger, ledger.where


def _require_file(path: str | os.PathLike[str]) -> None:
    """Refuse what cannot be the name of a file."""
    if isinstance(path, str) and "://" in path:
        raise ParameterError(f"an agent is a file or a postgresql:// URL, got {path!r}")
    try:
        is_directory = not Path(path).name or stat.S_ISDIR(os.stat(path).st_mode)
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno != errno.ENAMETOOLONG:
            return  # whoever opens it says more
        why = getattr(error, "strerror", None) or error
        raise ParameterError(f"{shown(path)} cannot be the name of a file: {why}") from None
    if is_directory:
        raise ParameterError(f"{shown(str(path))} is a directory: name a file, such as shop.db")


def is_new_file(path: str | os.PathLike[str]) -> bool:
    """Whether an agent at a path would be a file that is not there yet."""
    if path == ":memory:" or (isinstance(path, str) and path.startswith(_SCHEMES)):
        return False
    _require_file(path)
    return not Path(path).exists()


def place_of(url: str) -> Place:
    """An agent in a database: postgresql://user@host/database?agent=shop, and if wanted &lease=10
    (seconds)."""
    with needs("a ledger in PostgreSQL", "postgres"):
        from tidepull.agent.ledger.leases import LENGTH
        from tidepull.agent.ledger.postgres import Place
    parts = urlsplit(url)
    query = parse_qsl(parts.query, keep_blank_values=True)
    ours = {name: value for name, value in query if name in _OURS}
    theirs = urlencode([(name, value) for name, value in query if name not in _OURS])
    if "agent" not in ours:
        raise ParameterError("the URL names no agent: end it with ?agent=NAME")
    try:
        length = float(ours.get("lease", LENGTH))
    except ValueError:
        raise ParameterError(f"lease must be a number of seconds, got {ours['lease']!r}") from None
    return Place(urlunsplit(parts._replace(query=theirs)), ours["agent"], length)
