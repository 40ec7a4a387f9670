"""From what a user gives to an agent's settings: at its making, and when it is opened again."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import timedelta
from hashlib import blake2b
from typing import Any
from zoneinfo import ZoneInfo

from tidepull import __version__
from tidepull.agent import release
from tidepull.agent.arms import arms_of
from tidepull.agent.clock import Clock
from tidepull.agent.ledger import Ledger
from tidepull.agent.schema import Schema
from tidepull.agent.settings import Settings, shares_of
from tidepull.errors import ParameterError, WrongStoreError
from tidepull.policies import policies
from tidepull.registry import Named


def settings_in(
    ledger: Ledger, given: Mapping[str, Any], where: str, *, read_only: bool = False
) -> tuple[Settings, bytes]:
    """The settings and the salt of a ledger: written if it is new, else compared with what is given (None: not)."""
    written_by = ledger.read(release.KEY)
    if written_by is not None and release.is_newer(written_by):
        raise release.newer_store(where, written_by)
    given = {name: value for name, value in given.items() if value is not None}
    text, salt = ledger.read("settings"), ledger.read("salt")
    if text is None or salt is None:
        settings = made(given, where)
        salt = _salt(settings.seed, given).hex()
        ledger.write({"settings": settings.text(), "salt": salt, release.KEY: __version__})
    else:
        settings = Settings.read(text)
        _require_same(settings, given, where)
        if written_by != __version__ and not read_only:
            ledger.write({release.KEY: __version__})
    return settings, bytes.fromhex(salt)


def made(given: Mapping[str, Any], where: str) -> Settings:
    """Settings of a new agent."""
    if "arms" not in given:
        raise WrongStoreError(f"there is no agent at {where} yet; to make one, give arms=[...]")
    chosen = _plain(given)
    if "seed" not in chosen:
        chosen["seed"] = int.from_bytes(os.urandom(7), "little")
    chosen.setdefault("context", None)
    chosen.setdefault("policy", "tide")
    _, parameters = policies.resolve((chosen["policy"], chosen.get("parameters", {})))
    chosen["parameters"] = {**parameters.pinned(), **chosen.get("parameters", {})}
    if "time_features" not in chosen:
        # The one switch for policies that read `Context.time` well enough to do without the calendar's features.
        chosen["time_features"] = not getattr(policies.entry(chosen["policy"]).build, "reads_time", False)
    return Settings(**chosen)


def _plain(given: Mapping[str, Any]) -> dict[str, Any]:
    """As settings have it."""
    plain = dict(given)
    if "arms" in plain:
        plain["arms"] = [
            [arm.label, None if arm.features is None else dict(arm.features)]
            for arm in arms_of(plain["arms"])
        ]
    if "context" in plain:
        plain["context"] = Schema(plain["context"], Clock()).plain()
    if "policy" in plain:
        plain |= _policy(plain["policy"])
    if isinstance(plain.get("timezone"), ZoneInfo):
        plain["timezone"] = plain["timezone"].key
    if "share_bounds" in plain:
        plain["share_bounds"] = shares_of(plain["share_bounds"])
    for name in ("reward_within", "retention"):
        if name in plain:
            plain[name] = seconds(plain[name])
    return {name: list(value) if isinstance(value, tuple) else value for name, value in plain.items()}


def _policy(named: Named) -> dict[str, Any]:
    entry, parameters = policies.resolve(named)
    given = {} if isinstance(named, str) else dict(named[1])
    values = {name: value for name, value in parameters.to_mapping().items() if name in given}
    pinned = {name: value for name, value in parameters.pinned().items() if name in given}
    return {"policy": entry.id, "parameters": {**values, **pinned}}


def seconds(given: Any) -> Any:
    """A `timedelta` or a number of seconds; what is neither is left for the check."""
    if isinstance(given, timedelta):
        return given.total_seconds()
    return float(given) if isinstance(given, int) and not isinstance(given, bool) else given


def _salt(seed: int, given: Mapping[str, Any]) -> bytes:
    """Given a seed, everything follows from it; else it is nobody's guess."""
    return blake2b(str(seed).encode(), digest_size=16).digest() if "seed" in given else os.urandom(16)


def _require_same(settings: Settings, given: Mapping[str, Any], where: str) -> None:
    for name, value in _plain(given).items():
        stored = getattr(settings, name)
        if name == "parameters":  # an agent keeps the version that was the default when it was made
            pins = policies.entry(settings.policy).parameters.before_pins()
            stored = {key: kept for key, kept in stored.items() if key in value or key not in pins}
        if name == "context":
            stored = None if stored is None else Schema(stored, Clock()).plain()
        if _tuples(value) != _tuples(stored):
            shown = f"; it has {stored!r}" if len(repr(stored)) < 200 else ""
            raise ParameterError(
                f"{where} was made with other {name}{shown}: leave {name} out"
                + (", and change arms with add, retire and rename" if name == "arms" else "")
            )


def _tuples(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _tuples(item) for key, item in value.items()}
    return tuple(_tuples(item) for item in value) if isinstance(value, list | tuple) else value
