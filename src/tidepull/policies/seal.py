"""Sealed snapshots: a state together with what it belongs to, and a checksum over both.

    {"format", "policy", "version", "parameters", "shape", "rounds", "unfinished", "state",
    "checksum"}

`open` says whether a snapshot is one of this very policy, `fill` whether a fresh policy takes its
state in exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from tidepull import state as snapshots
from tidepull.errors import ParameterError, SnapshotError
from tidepull.parameters import Parameters
from tidepull.policies.checks import RoundCounter, shown
from tidepull.protocols import HasNotFinite, Policy
from tidepull.types import ProblemShape, Snapshot

_PARTS = ("rounds", "unfinished", "state")


class Seal:
    """What the snapshots of one policy must say of themselves."""

    def __init__(self, id: str, version: int, parameters: Parameters, shape: ProblemShape) -> None:
        self.id = id
        self._parameters = type(parameters)
        self._marks: dict[str, Any] = {
            "format": snapshots.FORMAT,
            "policy": id,
            "version": version,
            "parameters": parameters.to_mapping(),
            "shape": asdict(shape),
        }

    def take(self, policy: Policy, rounds: RoundCounter) -> Callable[[], Snapshot]:
        """A snapshot of a policy and its rounds as they are now. The call that is returned checks
        and seals it, which takes several times as long and needs the policy no more."""
        if not hasattr(policy, "snapshot"):
            raise SnapshotError(f"{self.id} has no snapshot(), so its state cannot be saved")
        content = {
            **self._marks,
            "rounds": rounds.begun,
            "unfinished": rounds.unfinished,
            "state": policy.snapshot(),
        }
        return lambda: self._close(policy, content)

    def _close(self, policy: Policy, content: Snapshot) -> Snapshot:
        if (name := _not_finite(policy, content["state"])) is not None:
            raise SnapshotError(
                f"{self.id} cannot be saved: its '{name}' holds numbers that are not finite"
            )
        return {**content, "checksum": snapshots.checksum(content)}

    def open(self, snapshot: Any) -> tuple[Snapshot, RoundCounter]:
        """State and rounds of a snapshot that is whole and belongs to this policy."""
        if not isinstance(snapshot, dict):
            raise SnapshotError(f"a snapshot is a dictionary, got a {type(snapshot).__name__}")
        if "format" not in snapshot:
            raise SnapshotError(
                "the snapshot has no format: it is not one of tidepull's, or of version 0.1; start "
                "the policy afresh"
            )
        self._require(
            "format",
            snapshot["format"],
            self._marks["format"],
            "take one with this version of tidepull",
        )
        content = {name: snapshots.read(snapshot, name) for name in (*self._marks, *_PARTS)}
        fits = snapshots.difference(snapshot.get("checksum"), snapshots.checksum(content)) is None
        if not fits or len(snapshot) != len(content) + 1:
            raise SnapshotError(
                "the snapshot was altered or damaged: its checksum does not fit; use an older one"
            )
        self._require("policy", content["policy"], self.id, "restore it into that policy")
        self._require(
            "version", content["version"], self._marks["version"], "start the policy afresh"
        )
        self._compare("parameters", self._as_now(content["parameters"]))
        self._compare("shape", content["shape"])
        return content["state"], RoundCounter.restored(content["rounds"], content["unfinished"])

    def fill(self, fresh: Policy, state: Snapshot) -> None:
        """Restore a fresh policy, and make sure that nothing was lost or altered on the way."""
        if (name := _not_finite(fresh, state)) is not None:
            raise SnapshotError(
                f"the snapshot's '{name}' holds numbers that are not finite; use an older one"
            )
        try:
            fresh.restore(state)
            difference = snapshots.difference(state, fresh.snapshot())
        except SnapshotError:
            raise
        except Exception as error:
            raise SnapshotError(
                f"the snapshot's state cannot be restored into {self.id} ({type(error).__name__}: "
                f"{error})"
            ) from None
        if difference is not None:
            raise SnapshotError(
                f"the snapshot's '{difference}' does not fit {self.id}; use an older one"
            )

    def _require(self, name: str, found: Any, expected: Any, advice: str) -> None:
        if snapshots.difference(found, expected) is not None:
            raise SnapshotError(
                f"the snapshot has the {name} {shown(found)}, this policy has {expected!r}; "
                f"{advice}"
            )

    def _as_now(self, parameters: Any) -> Any:
        """Parameters of a snapshot; with other names they are those of an earlier release."""
        if not isinstance(parameters, dict) or set(parameters) == set(self._marks["parameters"]):
            return parameters
        try:
            return self._parameters.from_earlier(parameters)
        except ParameterError as error:
            raise SnapshotError(f"the snapshot was {error}") from None

    def _compare(self, part: str, found: Any) -> None:
        expected = self._marks[part]
        if not isinstance(found, dict):
            raise SnapshotError(f"the snapshot's '{part}' must be a dictionary, got {shown(found)}")
        for name in (*expected, *found):
            there, here = found.get(name, "nothing"), expected.get(name, "nothing")
            if snapshots.difference(there, here) is not None:
                raise SnapshotError(
                    f"the snapshot was taken with {name} = {shown(there)}, this policy has "
                    f"{shown(here)}; build it with the same {part}"
                )


def _not_finite(policy: Policy, state: Snapshot) -> str | None:
    allowed = policy.not_finite if isinstance(policy, HasNotFinite) else frozenset()
    return snapshots.first_not_finite(state, allowed)
