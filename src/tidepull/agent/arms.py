"""The arms by name: which there are, which are retired, what is known of each, and their places in
a policy.

A policy has room for more arms than there are. An arm keeps its place for ever; when all places are
taken the room is doubled, and the policy is built anew from the ledger.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tidepull._internal.validation import is_unicode, shown
from tidepull.agent.clock import Clock
from tidepull.agent.fields import Category, FieldState, Number
from tidepull.agent.schema import (
    FreeFormFeatures,
    Schema,
    clean_features,
    guess,
    is_free,
    plain_context,
)
from tidepull.errors import ArmError, ContextError, ParameterError
from tidepull.types import BoolArray, FloatArray

MOST_ARMS = 4096


@dataclass(frozen=True, slots=True)
class Arm:
    """One arm: its label, its features (None: it has none), whether it is retired, and the labels
    of arms that had its place before, each with the last record of its time."""

    label: str
    features: Mapping[str, Any] | None = None
    retired: bool = False
    former: Sequence[tuple[str, int]] = ()


def room_for(n_arms: int) -> int:
    """Places for so many arms: a power of two with at least one to spare.

    >>> room_for(3), room_for(4), room_for(10)
    (4, 8, 16)
    """
    return 1 << n_arms.bit_length() if n_arms >= 2 else 4


class Arms:
    """All arms that ever were, in the order of their places."""

    def __init__(
        self,
        arms: Sequence[Arm],
        room: int | None = None,
        founders: int | None = None,
        described: FreeFormFeatures | None = None,
    ) -> None:
        self._arms = list(arms)
        self.room = room_for(len(self._arms)) if room is None else room
        self._founders = len(self._arms) if founders is None else founders
        self._places = {arm.label: place for place, arm in enumerate(self._arms)}
        self._open: BoolArray = np.zeros(self.room, bool)
        self._open[: len(self._arms)] = [not arm.retired for arm in self._arms]
        self._open.flags.writeable = False
        self._features: FloatArray | None = None
        self._schema: Schema | None = None
        self._described = described
        if described is None and self._arms and is_free(self._arms[0].features):
            first = self._arms[: self._founders]
            self._described = FreeFormFeatures.founded(
                [(arm.label, arm.features or {}) for arm in first]
            )
        elif described is None:
            self._describe()

    def __len__(self) -> int:
        return len(self._arms)

    def __iter__(self) -> Any:
        return iter(self._arms)

    def label(self, place: int, seq: int | None = None) -> str:
        """The label of the arm in that place, now or when record `seq` was made."""
        arm = self._arms[place]
        if seq is not None:
            for label, last in arm.former:
                if seq <= last:
                    return label
        return arm.label

    def since(self, place: int) -> int:
        """The last record before the time of the arm in that place."""
        former = self._arms[place].former
        return former[-1][1] if former else 0

    def needs_rebuild(self, change: Mapping[str, Any], after: Arms) -> bool:
        """Whether the policy is built anew for a change: there are more places, or what it knows of
        a place is of another arm."""
        return after.room != self.room or (change["op"] == "replace" and not self.described)

    @property
    def labels(self) -> list[str]:
        """The arms that can be chosen."""
        return [arm.label for arm in self._arms if not arm.retired]

    def features(self, label: str) -> Mapping[str, Any] | None:
        """What is known of an arm; None: nothing."""
        return self._arms[self.place(label)].features

    def place(self, label: Any) -> int:
        """The place of an arm, or an error that suggests the nearest one."""
        place = self._places.get(label) if isinstance(label, str) else None
        if place is None:
            near = difflib.get_close_matches(str(label), self._places, n=1)
            hint = f"did you mean '{near[0]}'?" if near else f"arms: {', '.join(self._places)}"
            raise ArmError(f"there is no arm {label!r}; {hint}")
        return place

    def available(self, among: Any = None) -> BoolArray:
        """Which places may be chosen: those of arms that are not retired, among the given ones."""
        if among is None:
            return self._open
        mask: BoolArray = np.zeros(self.room, bool)
        if isinstance(among, str) or not isinstance(among, Iterable):
            raise ArmError(f"arms must be a list of labels, got {among!r}")
        for label in among:
            place = self.place(label)
            if self._arms[place].retired:
                raise ArmError(f"the arm '{label}' is retired; leave it out, or add it again")
            mask[place] = True
        if not mask.any():
            raise ArmError("arms must name at least one arm that can be chosen")
        return mask

    def widened(self, available: BoolArray) -> BoolArray:
        """Which places could be chosen in a decision, among those that there are now."""
        if len(available) == self.room:
            return available
        return np.pad(available, (0, self.room - len(available)))

    def apply(self, change: Mapping[str, Any]) -> Arms:
        """These arms after one was added, replaced, retired or renamed, as a ledger has it; an
        `ArmError` if that cannot be."""
        label, features, arms = change["label"], change.get("features"), list(self._arms)
        if change["op"] == "add" and label not in self._places:
            self._require_fitting(label, features)
            place = len(arms)
            arms.append(Arm(label, features))
        else:
            place = self.place(label)
            arms[place] = self._changed(arms[place], change)
        described = self._described
        if described is not None and features is not None:
            described = described.with_arm(place, arms[place].label, features)
        room = self.room
        while room < len(arms):
            room *= 2
        return Arms(arms, room, self._founders, described)

    def _changed(self, arm: Arm, change: Mapping[str, Any]) -> Arm:
        """An arm after a change; an `ArmError` if that cannot be."""
        op, label, to = change["op"], arm.label, change.get("to")
        features = change.get("features")
        if to in self._places:
            raise ArmError(f"there is already an arm '{to}'")
        if op == "describe":
            if not self.described:
                raise ArmError(f"the arm '{label}' is not described freely, so it stays as it is")
            return replace(arm, features=features)
        if op == "add":
            if not arm.retired:
                raise ArmError(f"there is already an arm '{label}'")
            if features is not None and features != arm.features and not self.described:
                raise ArmError(
                    f"the arm '{label}' had other features; add it without, or under another label"
                )
            return replace(arm, retired=False, features=features or arm.features)
        if op == "replace":
            self._require_fitting(change["to"], features)
            return Arm(change["to"], features, former=(*arm.former, (label, change["after"])))
        if op == "retire":
            if arm.retired:
                raise ArmError(f"the arm '{label}' is retired already")
            if self.labels == [label]:
                raise ArmError(f"'{label}' is the only arm left; add another one first")
            return replace(arm, retired=True)
        return replace(arm, label=change["to"])

    @property
    def described(self) -> bool:
        """Whether arms are described by free-form objects."""
        return self._described is not None

    def rows(self, x: FloatArray, among: BoolArray | None = None) -> FloatArray | None:
        """What a policy sees of each place in a context x: which it is, and its features times (1,
        x); None without features. Those of arms that are described freely are 0 for places that are
        not `among` the given ones."""
        if self._described is not None:
            return self._described.rows(x, self.room, among)
        if self._features is None:
            return None
        seen = np.concatenate([[1.0], x])
        crossed = (self._features[:, :, None] * seen).reshape(self.room, -1)
        return np.concatenate([np.eye(self.room), crossed], axis=1)

    def row_width(self, observed: int) -> int:
        """How long a row is, for contexts of so many numbers; 0 without features."""
        if self._described is not None:
            return self._described.width(observed)
        return 0 if self._features is None else self.room + self._features.shape[1] * (1 + observed)

    def plain(self) -> dict[str, Any]:
        """As JSON."""
        arms = [
            [arm.label, arm.features, arm.retired, *([list(arm.former)] if arm.former else [])]
            for arm in self._arms
        ]
        plain = {"arms": arms, "room": self.room, "founders": self._founders}
        return plain if self._described is None else {**plain, "described": self._described.plain()}

    @classmethod
    def restored(cls, plain: Mapping[str, Any]) -> Arms:
        """From JSON."""
        described = FreeFormFeatures.restored(plain["described"]) if "described" in plain else None
        return cls(
            [_arm(*arm) for arm in plain["arms"]], plain["room"], plain["founders"], described
        )

    def _require_fitting(self, label: str, features: Any) -> None:
        has = self._features is not None or self._described is not None
        if has != (features is not None):
            wanted = "has features, so every arm needs them" if has else "has no features"
            raise ArmError(f"arm '{label}': the first arm {wanted}")
        if self._described is not None and not is_free(features):
            raise ArmError(
                f"arm '{label}': the first arms are described by a free-form object, so must this "
                "one be"
            )
        if features is None or self._schema is None:
            return
        if new := self._schema.unknown(features):
            raise ArmError(
                f"arm '{label}' has the feature '{new[0]}', which the first arms have not"
            )
        try:
            self._schema.clean(features)
        except ContextError as error:
            raise ArmError(f"arm '{label}': {str(error).removeprefix('context: ')}") from None

    def _describe(self) -> None:
        """Features as numbers: standardised by those of the first arms, texts as columns."""
        founders = [arm.features for arm in self._arms[: self._founders]]
        if not founders or founders[0] is None:
            return
        known: list[Mapping[str, Any]] = [dict(features or {}) for features in founders]
        fields = {
            name: Category(tuple(sorted({str(f[name]) for f in known if name in f})), unseen=2)
            if isinstance(field, Category)
            else field
            for name, field in guess(known).items()
        }
        self._schema = Schema(fields, Clock())
        seen = self._schema.fresh()
        for features in known:
            self._schema.encode(self._schema.clean(features), 0.0, seen)
        self._features = np.zeros((self.room, self._schema.width))
        for place, arm in enumerate(self._arms):
            frozen = {name: _copied(state) for name, state in seen.items()}
            for name, field in fields.items():
                if isinstance(field, Number) and frozen[name][0]:
                    frozen[name][0] = 10**9  # one more value does not move what the first arms said
            row = self._schema.encode(self._schema.clean(arm.features or {}), 0.0, frozen)
            self._features[place] = row


def _arm(label: str, features: Any, retired: bool, former: Sequence[Any] = ()) -> Arm:
    """An arm from JSON."""
    return Arm(label, features, retired, tuple((name, int(last)) for name, last in former))


def _copied(state: FieldState) -> FieldState:
    return [list(item) if isinstance(item, list) else item for item in state]


def arms_of(value: Any) -> list[Arm]:
    """Arms from what a user may write: labels, or a dictionary of labels and features (numbers or
    dictionaries)."""
    if isinstance(value, Mapping):
        pairs = [(label, features_of(label, features)) for label, features in value.items()]
    elif isinstance(value, str) or not isinstance(value, Iterable):
        raise ParameterError(
            f"arms must be a list of labels or a dictionary of labels and features, got {value!r}"
        )
    else:
        pairs = [(label, None) for label in value]
    arms = [Arm(label_of(label), features) for label, features in pairs]
    if not arms:
        raise ParameterError("arms must name at least one arm")
    if len(arms) > MOST_ARMS:
        raise ParameterError(f"there are {len(arms):,} arms; at most {MOST_ARMS:,} are taken")
    for n, arm in enumerate(arms):
        if any(other.label == arm.label for other in arms[:n]):
            raise ParameterError(f"arms: there are two arms '{arm.label}'")
        if (arm.features is None) != (arms[0].features is None):
            raise ParameterError(
                f"arms: '{arm.label}' and '{arms[0].label}' must both have features, or none of "
                "them"
            )
    return arms


def features_of(label: Any, features: Any) -> Mapping[str, Any] | None:
    """Features of an arm as a dictionary of JSON values; a list of numbers gets names by
    position."""
    if features is None:
        return None
    if is_free(features):
        return clean_features(label, features)
    if isinstance(features, Mapping):
        return plain_context(features)
    if isinstance(features, Sequence | np.ndarray) and not isinstance(features, str):
        return plain_context({str(n): value for n, value in enumerate(features)})
    raise ParameterError(
        f"arms: the features of '{label}' must be a dictionary or a list of numbers, got {features!r}"
    )


def label_of(label: Any) -> str:
    """A label, checked."""
    if not isinstance(label, str) or not 0 < len(label) <= 256 or not is_unicode(label):
        raise ArmError(
            f"the label of an arm must be text of 1 to 256 characters, got {shown(label)}"
        )
    return label
