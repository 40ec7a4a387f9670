"""An agent's settings: what a user gives, what is checked, and what stays with the ledger."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import timedelta
from functools import cached_property
from hashlib import blake2b
from typing import Any, Literal
from zoneinfo import ZoneInfo

from tidepull import __version__
from tidepull.agent.arms import arms_of
from tidepull.agent.clock import Clock
from tidepull.agent.ledger.base import Ledger
from tidepull.agent.records import RELEASE_KEY, Kind, is_newer, is_older, newer_store, unpack_json
from tidepull.agent.schema import Schema
from tidepull.errors import LedgerError, ParameterError, WrongStoreError
from tidepull.registry import Entry, Named, Registry

_LOG = logging.getLogger("tidepull")

DRAWS = 32
"""Draws of the policy from which an arm's chance follows."""

_OLD_NAMES = {
    "zone": "timezone",
    "calendar": "time_features",
    "room": "capacity",
    "draws": "propensity_draws",
    "floor": "min_share",
    "shares": "share_bounds",
    "again": "on_duplicate",
    "retain": "retention",
}
"""Names in the ledgers of version 0.2 and before, and what they are called now."""

_OF_POLICY = ("policy", "parameters", "time_features", "policy_version")

CHANGEABLE = (
    "control",
    "control_arm",
    "min_share",
    "share_bounds",
    "reward_within",
    "default_reward",
    "retention",
    "sticky",
    "shadow",
    "promotion",
    "context",
)
"""Settings that a living agent can change."""

UNSET = ("control_arm", "min_share", "reward_within", "default_reward", "retention", "sticky")
"""Settings that it can take back."""


def _policies() -> Registry[Any]:
    """The registered policies, imported when the first one is asked for: they are half of the
    library."""
    from tidepull.policies import policies

    return policies


@dataclass(frozen=True, kw_only=True)
class AgentSettings:
    """Everything about an agent that is not learnt; JSON values only."""

    arms: list[Any]
    context: dict[str, Any] | None
    policy: str
    parameters: dict[str, Any] = field(default_factory=dict)
    seed: int = 0
    timezone: str = "UTC"
    time_features: bool = True
    capacity: int | None = None
    propensity_draws: int = DRAWS
    control: float = 0.05
    control_arm: str | None = None
    min_share: float | None = None  # None: every available arm has its least chance
    share_bounds: dict[str, list[float]] = field(default_factory=dict)
    reward_within: float | None = None
    default_reward: float | None = None
    on_duplicate: Literal["refuse", "add", "replace"] = "refuse"
    retention: float | None = None
    sticky: float | None = None
    shadow: list[Any] = field(default_factory=list)  # candidates: [policy, parameters]
    promotion: list[Any] | None = None  # a candidate that decides too: [policy, parameters, share]
    policy_version: int | None = None  # of the registry's entry; None: made before 0.3

    def __post_init__(self) -> None:
        entry, _ = _policies().resolve((self.policy, self.parameters))
        if entry.library is not None:
            raise ParameterError(
                f"policy: {self.policy} has no snapshots, because its state lies inside "
                f"{entry.library.name}, so an "
                "agent could not restore it; choose one of tidepull's own (tidepull list policies)"
            )
        if self.policy == "oracle":
            raise ParameterError("policy: the oracle needs the truth, which an agent has not got")
        Clock(self.timezone)
        _between("control", self.control, 0.0, 1.0)
        if self.min_share is not None:
            _between("min_share", self.min_share, 0.0, 1.0)
        _whole("propensity_draws", self.propensity_draws, 1, 10_000)
        _whole("seed", self.seed, 0, 2**63)
        for name in ("reward_within", "retention", "sticky"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, float) and 0 < value < 1e12):
                raise ParameterError(
                    f"{name} must be a positive number of seconds or a timedelta, got {value!r}"
                )
        if self.default_reward is not None:
            _between("default_reward", self.default_reward, -1e15, 1e15)
        if not isinstance(self.time_features, bool):
            raise ParameterError(f"time_features must be True or False, got {self.time_features!r}")
        if self.default_reward is not None and self.reward_within is None:
            raise ParameterError(
                "default_reward needs reward_within: after which time does it count?"
            )
        if self.on_duplicate not in ("refuse", "add", "replace"):
            raise ParameterError(
                f"on_duplicate must be 'refuse', 'add' or 'replace', got {self.on_duplicate!r}"
            )
        if self.on_duplicate != "refuse" and self.reward_within is None:
            raise ParameterError(
                f"on_duplicate='{self.on_duplicate}' needs reward_within: "
                "a reward is learnt when nothing can change it any more"
            )
        if self.capacity is not None:
            _whole("capacity", self.capacity, len(self.arms), 1 << 13)
        self._check_shares()

    @property
    def is_current(self) -> bool:
        """Whether the policy still behaves as it did when the agent was made or upgraded."""
        return self.policy_version in (None, _policies().entry(self.policy).version)

    def upgraded(self, policy: Named | None = None) -> AgentSettings:
        """The same with the newest form of the policy, or with another one."""
        chosen: dict[str, Any] = {} if policy is None else _policy(policy)
        name = chosen.get("policy", self.policy)
        entry = _policies().entry(name)
        if name != self.policy:
            chosen["time_features"] = not getattr(entry.build, "reads_time", False)
        settings = replace(self, **chosen, policy_version=entry.version)
        return settings.without_promoted(settings.policy, settings.parameters)

    @property
    def of_candidate(self) -> AgentSettings | None:
        """The settings of the candidate that has a share of the decisions."""
        if self.promotion is None:
            return None
        policy, parameters, _ = self.promotion
        return replace(self.upgraded((policy, parameters)), promotion=None)

    def has_candidate_of(self, other: AgentSettings) -> bool:
        """Whether the same candidate has a share of the decisions, or none has."""
        return (self.promotion or [])[:2] == (other.promotion or [])[:2]

    def without_promoted(self, policy: str, parameters: Mapping[str, Any]) -> AgentSettings:
        """The same after that policy has become the agent's own: it is no candidate any more."""
        chosen = json.dumps([policy, dict(parameters)])
        if self.promotion is None or json.dumps(self.promotion[:2]) != chosen:
            return self
        return replace(self, promotion=None)

    def renamed(self, label: str, to: str) -> AgentSettings:
        """The same after an arm has another label. Settings name the first arms by their first
        labels, and arms that came later by their present ones."""
        if label in [arm[0] for arm in self.arms]:
            return self
        bounds = {to if name == label else name: b for name, b in self.share_bounds.items()}
        arm = to if self.control_arm == label else self.control_arm
        if arm == self.control_arm and bounds == self.share_bounds:
            return self
        return replace(self, control_arm=arm, share_bounds=bounds)

    @property
    def of_policy(self) -> dict[str, Any]:
        """What an upgrade may change, as its record has it."""
        return {name: getattr(self, name) for name in _OF_POLICY}

    def changed_since(self, founding: AgentSettings) -> dict[str, Any]:
        """The settings that are others now."""
        now, then = (
            {name: getattr(settings, name) for name in CHANGEABLE} for settings in (self, founding)
        )
        return {n: value for n, value in now.items() if json.dumps(value) != json.dumps(then[n])}

    @cached_property
    def learns_when_due(self) -> bool:
        """Whether rewards are learnt when their time is over, not when they come."""
        return self.on_duplicate != "refuse"

    @cached_property
    def holds_rewards(self) -> bool:
        """Whether rewards are learnt when a learning window closes (`delays.py`)."""
        return self.default_reward is not None and self.on_duplicate == "refuse"

    @cached_property
    def counts_missing(self) -> bool:
        """Whether somebody has to look for decisions whose time is over."""
        return self.learns_when_due or self.default_reward is not None

    def text(self) -> str:
        """As JSON; the order of fields is that of the vector that a policy sees."""
        return json.dumps(asdict(self))

    @classmethod
    def read(cls, text: str, *, earlier: bool = False) -> AgentSettings:
        """Settings from JSON, also under their old names; `earlier`: of a release that left no note
        of itself. Parameters that the policy does not take any more are left out, and it counts as
        one of another release."""
        values = {_OLD_NAMES.get(name, name): value for name, value in json.loads(text).items()}
        values.setdefault("min_share", 0.0)
        entry, parameters = _policies().entry(values["policy"]), values.get("parameters", {})
        try:
            values["parameters"] = (
                entry.parameters.from_earlier(parameters) if earlier else parameters
            )
            entry.parse(values["parameters"])
        except ParameterError as error:
            known = {
                name: value for name, value in parameters.items() if _takes(entry, name, value)
            }
            values |= {"parameters": known, "policy_version": 0}
            _LOG.warning("%s keeps of its parameters %s: %s", values["policy"], known, error)
        return cls(**values)

    def require_labels(self, labels: Sequence[str]) -> None:
        """A `ParameterError` where a setting names an arm that is not among the labels."""
        if self.control_arm is not None and self.control_arm not in labels:
            raise ParameterError(f"control_arm: there is no arm '{self.control_arm}'")
        for label in self.share_bounds:
            if label not in labels:
                raise ParameterError(f"share_bounds: there is no arm '{label}'")

    def _check_shares(self) -> None:
        labels = list(dict.fromkeys([*(arm[0] for arm in self.arms), *self.share_bounds]))
        least = most = 0.0
        for label, pair in self.share_bounds.items():
            if not isinstance(pair, list) or len(pair) != 2 or not 0 <= pair[0] <= pair[1] <= 1:
                raise ParameterError(
                    f"share_bounds: '{label}' must have a pair (least, most) between 0 and 1, got "
                    f"{pair!r}"
                )
        for label in labels:
            low, high = self.share_bounds.get(label, (0.0, 1.0))
            least, most = least + low, most + high
        if least > 1 or most < 1:
            raise ParameterError(
                f"share_bounds: the least shares add up to {least:g} and the most to {most:g}; "
                "they must leave room for 1"
            )


SETTINGS = frozenset(one.name for one in fields(AgentSettings))
"""Names of all settings: those of the parameters of `Agent`, and what follows from them."""


def _takes(entry: Entry[Any], name: str, value: Any) -> bool:
    try:
        entry.parse({name: value})
    except ParameterError:
        return False
    return True


def shares_of(bounds: Mapping[str, Any] | None) -> dict[str, list[float]]:
    """Pairs as lists of floats; what is no pair is left for the check."""
    pairs = {}
    for label, pair in (bounds or {}).items():
        numbers = list(pair) if isinstance(pair, list | tuple) else pair
        whole = isinstance(numbers, list) and all(
            isinstance(number, int | float) for number in numbers
        )
        pairs[label] = [float(number) for number in numbers] if whole else numbers
    return pairs


def _between(name: str, value: Any, least: float, most: float) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise ParameterError(f"{name} must be a number from {least:g} to {most:g}, got {value!r}")


def _whole(name: str, value: Any, least: int, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ParameterError(f"{name} must be a whole number from {least} to {most}, got {value!r}")


def load_settings(
    ledger: Ledger,
    arguments: Mapping[str, Any],
    where: str,
    *,
    read_only: bool = False,
    require: Callable[[AgentSettings], None] = lambda _: None,
) -> tuple[AgentSettings, bytes]:
    """The settings and the salt of a ledger: written if it is new and `require` raises nothing, else
    compared with what is given (None: not)."""
    written_by = ledger.read(RELEASE_KEY)
    if written_by is not None and is_newer(written_by):
        raise newer_store(where, written_by)
    arguments = {name: value for name, value in arguments.items() if value is not None}
    text, salt = ledger.read("settings"), ledger.read("salt")
    if text is None or salt is None:
        settings = new_settings(arguments, where)
        require(settings)
        salt = _salt(settings.seed, arguments).hex()
        ledger.write({**_sealed(settings.text(), salt), RELEASE_KEY: __version__})
    else:
        if ledger.read(_SEAL) not in (None, _sealed(text, salt)[_SEAL]):
            raise _damaged(where)
        try:
            stored = json.loads(text)
            for record in ledger.of_kind(Kind.UPGRADE)[-1:]:
                body = unpack_json(record.body)
                stored |= {name: body[name] for name in _OF_POLICY}
            if written_by is not None and is_older(written_by):
                stored.setdefault("policy_version", 0)  # of a release that did not note it
            settings = AgentSettings.read(json.dumps(stored), earlier=written_by is None)
            bytes.fromhex(salt)
        except ParameterError as error:
            raise WrongStoreError(f"{where} cannot be opened: {error}") from None
        except (AttributeError, KeyError, TypeError, ValueError):  # no settings
            raise _damaged(where) from None
        _require_same(settings, arguments, where)
        if written_by != __version__ and not read_only:
            ledger.write({**_sealed(json.dumps(stored), salt), RELEASE_KEY: __version__})
    return settings, bytes.fromhex(salt)


_SEAL = "seal"
"""The text of a ledger that has a hash of its settings and its salt; none before 0.3."""


def _sealed(settings: str, salt: str) -> dict[str, str]:
    """Settings, salt and their hash as texts of a ledger: all decisions follow from them."""
    seal = blake2b(f"{settings} {salt}".encode(), digest_size=8).hexdigest()
    return {"settings": settings, "salt": salt, _SEAL: seal}


def _damaged(where: str) -> LedgerError:
    return LedgerError(f"{where} is damaged: its settings are not as written; restore a copy")


def new_settings(arguments: Mapping[str, Any], where: str) -> AgentSettings:
    """Settings of a new agent."""
    if "arms" not in arguments:
        place = "in memory" if where == "memory" else f"at {where}"
        raise WrongStoreError(f"there is no agent {place} yet; to make one, give arms=[...]")
    chosen = plain_settings(arguments)
    if "seed" not in chosen:
        chosen["seed"] = int.from_bytes(os.urandom(7), "little")
    chosen.setdefault("context", None)
    chosen.setdefault("policy", "tide")
    if "time_features" not in chosen:
        # The one switch for policies that read `Context.time` well enough to do without the
        # calendar's features.
        chosen["time_features"] = not getattr(
            _policies().entry(chosen["policy"]).build, "reads_time", False
        )
    version = _policies().entry(chosen["policy"]).version
    settings = AgentSettings(**chosen, policy_version=version)
    settings.require_labels([arm[0] for arm in settings.arms])
    return settings


def plain_settings(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of `Agent` as settings have them."""
    plain = dict(arguments)
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
    if "shadow" in plain:
        plain["shadow"] = [list(_policy(named).values()) for named in _listed(plain["shadow"])]
    if "share_bounds" in plain:
        plain["share_bounds"] = shares_of(plain["share_bounds"])
    for name in ("reward_within", "retention", "sticky"):
        if name in plain:
            plain[name] = seconds(plain[name])
    return {
        name: list(value) if isinstance(value, tuple) else value for name, value in plain.items()
    }


def _listed(candidates: Any) -> list[Named]:
    """Candidates as a list of policies, each an id or an id and parameters."""
    if isinstance(candidates, str) or not isinstance(candidates, Sequence):
        raise ParameterError(f"shadow must be a list of policies, got {candidates!r}")
    return [one if isinstance(one, str) else (one[0], one[1]) for one in candidates]


def _policy(named: Named) -> dict[str, Any]:
    entry, parameters = _policies().resolve(named)
    names = set() if isinstance(named, str) else set(map(parameters.stored_name, named[1]))
    values = {name: value for name, value in parameters.to_mapping().items() if name in names}
    return {"policy": entry.id, "parameters": values}


def seconds(span: Any) -> Any:
    """A `timedelta` or a number of seconds; what is neither is left for the check."""
    if isinstance(span, timedelta):
        return span.total_seconds()
    return float(span) if isinstance(span, int) and not isinstance(span, bool) else span


def _salt(seed: int, arguments: Mapping[str, Any]) -> bytes:
    """Given a seed, everything follows from it; else it is nobody's guess."""
    return (
        blake2b(str(seed).encode(), digest_size=16).digest()
        if "seed" in arguments
        else os.urandom(16)
    )


def _require_same(settings: AgentSettings, arguments: Mapping[str, Any], where: str) -> None:
    for name, value in plain_settings(arguments).items():
        if name == "arms" or name in CHANGEABLE:  # these follow what is given, see `Agent`
            continue
        stored = getattr(settings, name)
        if _tuples(value) != _tuples(stored):
            shown = f"; it has {stored!r}" if len(repr(stored)) < 200 else ""
            way = ", or change it with upgrade" if name == "policy" else ""
            raise ParameterError(
                f"{where} was made with another {name}{shown}: leave {name} out{way}"
            )


def _tuples(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _tuples(item) for key, item in value.items()}
    return tuple(_tuples(item) for item in value) if isinstance(value, list | tuple) else value
