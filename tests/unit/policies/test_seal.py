"""Sealed snapshots: what they belong to, what is refused, and that a refusal changes nothing."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tidepull import state as snapshots
from tidepull.errors import SnapshotError
from tidepull.parameters import NoParameters
from tidepull.policies import build_policy, policies
from tidepull.policies.guard import Guarded, guarded
from tidepull.protocols import Policy
from tidepull.random import Streams
from tidepull.registry import Entry, Named
from tidepull.types import Context, Event, ProblemShape, Snapshot

SHAPE = ProblemShape(n_arms=3)


def played(named: Named = "d-ucb", shape: ProblemShape = SHAPE) -> Guarded:
    policy = build_policy(named, shape, seed=0)
    for t in range(20):
        context = Context(np.ones(shape.observation_dim) if shape.observation_dim else None)
        policy.choose(context)
        if t % 4:
            policy.learn(Event(context, t % 2, float(t % 3)))
    return policy


def resealed(snapshot: Snapshot, **changed: Any) -> Snapshot:
    content = {k: v for k, v in {**snapshot, **changed}.items() if k != "checksum"}
    return {**content, "checksum": snapshots.checksum(content)}


def with_state(snapshot: Snapshot, change: Callable[[Any], object]) -> Snapshot:
    """A snapshot whose state was altered by somebody who made the checksum fit."""
    altered = snapshots.load(snapshots.dump(snapshot))
    change(altered["state"])
    return resealed(altered)


def check_refused(policy: Guarded, snapshot: Any, sentence: str) -> None:
    before = snapshots.dump(policy.snapshot())
    with pytest.raises(SnapshotError, match=sentence) as caught:
        policy.restore(snapshot)
    assert "\n" not in str(caught.value)
    assert snapshots.dump(policy.snapshot()) == before


def test_snapshot_says_what_it_belongs_to() -> None:
    taken = played(("d-ucb", {"discount": 0.9})).snapshot()
    assert taken["format"] == 2
    assert (taken["policy"], taken["version"]) == ("d-ucb", policies.entry("d-ucb").version)
    assert taken["parameters"] == {"xi": 0.5, "reward_range": 1.0, "discount": 0.9}
    assert taken["shape"] == {"n_arms": 3, "observation_dim": 0, "arm_dim": 0}
    assert taken["rounds"] == 20
    assert taken["unfinished"].tolist() == [0, 4, 8, 12, 16]


def test_restored_policy_knows_its_rounds() -> None:
    policy, other = played(), build_policy("d-ucb", SHAPE, seed=7)
    other.restore(policy.snapshot())
    assert other.rounds == 20
    other.learn(Event(Context(), 0, 1.0, decided=16))
    assert snapshots.dump(other.snapshot()) != snapshots.dump(policy.snapshot())
    policy.learn(Event(Context(), 0, 1.0, decided=16))
    assert snapshots.dump(other.snapshot()) == snapshots.dump(policy.snapshot())


@pytest.mark.parametrize("named", [None, 20])
def test_restored_policy_waits_for_its_latest_round(named: int | None) -> None:
    policy, other = played(), build_policy("d-ucb", SHAPE, seed=7)
    policy.choose(Context())
    other.restore(policy.snapshot())
    for player in (policy, other):
        player.learn(Event(Context(), 0, 1.0, decided=named))
    assert other.rounds == 21
    assert other.snapshot()["unfinished"].tolist() == [0, 4, 8, 12, 16]
    assert snapshots.dump(other.snapshot()) == snapshots.dump(policy.snapshot())


def test_snapshot_of_another_policy_parameter_or_shape_is_refused() -> None:
    taken = played(("d-ucb", {"discount": 0.9})).snapshot()
    check_refused(played("ucb"), taken, "has the policy 'd-ucb', this policy has 'ucb'")
    check_refused(
        played(("d-ucb", {"discount": 0.5})),
        taken,
        "taken with discount = 0.9, this policy has 0.5; build",
    )
    check_refused(
        played(("d-ucb", {"discount": 0.9}), ProblemShape(4)),
        taken,
        "taken with n_arms = 3, this policy has 4",
    )
    observed = ProblemShape(3, observation_dim=2)
    check_refused(
        played(("d-ucb", {"discount": 0.9}), observed),
        taken,
        "with observation_dim = 0, this policy has 2",
    )


def test_snapshot_of_another_version_of_the_policy_is_refused() -> None:
    entry, parameters = policies.resolve("d-ucb")
    newer = guarded(dataclasses.replace(entry, version=7), parameters, SHAPE, Streams(0))
    check_refused(
        newer, played().snapshot(), "has the version 1, this policy has 7; start the policy afresh"
    )


def test_snapshot_of_another_format_is_refused() -> None:
    check_refused(
        played(), resealed(played().snapshot(), format=3), "has the format 3, this policy has 2"
    )
    check_refused(played(), resealed(played().snapshot(), format=True), "has the format True")


def test_snapshot_of_version_0_1_is_refused_with_a_sentence() -> None:
    old = {"kind": "d-ucb", "tally": {"counts": np.ones(3), "sums": np.ones(3)}, "generator": {}}
    check_refused(played(), old, "no format: it is not one of tidepull's, or of version 0.1")
    with pytest.raises(SnapshotError, match="of tidepull 0.1, which this version cannot read"):
        snapshots.load(b"PK\x03\x04 and so on")


@pytest.mark.parametrize("value", [None, "red", 3, [], b"", {}, {"format": 2}])
def test_restore_refuses_what_is_no_snapshot(value: Any) -> None:
    check_refused(played(), value, "snapshot")


def test_altered_snapshot_is_refused_by_its_checksum() -> None:
    taken = played().snapshot()
    taken["state"]["tally"]["counts"][0] += 1
    check_refused(played(), taken, "its checksum does not fit")
    check_refused(played(), {**played().snapshot(), "rounds": 21}, "its checksum does not fit")
    check_refused(played(), {**played().snapshot(), "remark": "mine"}, "its checksum does not fit")
    check_refused(
        played(), {**played().snapshot(), "checksum": np.ones(3)}, "its checksum does not fit"
    )


@pytest.mark.parametrize(
    "part", ["format", "policy", "version", "parameters", "shape", "rounds", "state"]
)
def test_snapshot_without_one_of_its_parts_is_refused(part: str) -> None:
    taken = played().snapshot()
    del taken[part]
    check_refused(played(), taken, f"has no '?{part}")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda s: s["tally"].update(counts=np.ones(4)), "'counts' has the shape"),
        (
            lambda s: s["tally"].update(counts=np.ones(3, np.float32)),
            "state.tally.counts' does not fit",
        ),
        (lambda s: s["tally"].update(counts=[1.0, 2.0, 3.0]), "state.tally.counts' does not fit"),
        (lambda s: s["tally"].update(counts="red"), "cannot be restored"),
        (lambda s: s["tally"].update(more=1), "state.tally.more' does not fit"),
        (lambda s: s["tally"].pop("sums"), "has no 'sums'"),
        (lambda s: s["tally"].update(latest=1.0), "'latest' must be a whole number"),
        (lambda s: s.update(kind="ucb"), "kind"),
        (lambda s: s.update(generator={}), "generator"),
        (lambda s: s["generator"].update(uinteger=1.5), "state.generator.uinteger' does not fit"),
        (
            lambda s: s["tally"].update(sums=np.array([1.0, np.nan, 1.0])),
            "'tally.sums' holds numbers that are not",
        ),
        (
            lambda s: s["tally"].update(sums=np.array([1.0, np.inf, 1.0])),
            "'tally.sums' holds numbers that are not",
        ),
    ],
)
def test_state_that_does_not_fit_is_refused_even_behind_a_checksum_that_fits(
    change: Callable[[Any], object], sentence: str
) -> None:
    check_refused(played(), with_state(played().snapshot(), change), sentence)


@pytest.mark.parametrize(
    ("rounds", "unfinished"),
    [
        (-1, np.zeros(0, np.int64)),
        (20.0, np.zeros(0, np.int64)),
        (True, np.zeros(0, np.int64)),
        (20, np.array([20])),
        (20, np.array([-1])),
        (20, np.array([3, 2])),
        (20, np.array([2, 2])),
        (20, np.array([2.0])),
        (20, [2]),
        (20, np.array([[2]])),
        (9000, np.array([2])),
    ],
)
def test_rounds_that_cannot_be_are_refused(rounds: Any, unfinished: Any) -> None:
    check_refused(
        played(), resealed(played().snapshot(), rounds=rounds, unfinished=unfinished), "rounds"
    )


def test_arms_and_models_out_of_range_are_refused() -> None:
    for named, change in (
        ("sw-ucb", lambda s: s["tally"]["arms"].__setitem__(0, 3)),
        ("sw-ucb", lambda s: s["tally"]["decided"].__setitem__(0, -1)),
        ("sw-lin-ucb", lambda s: s["models"]["owners"].__setitem__(0, 3)),
    ):
        check_refused(played(named), with_state(played(named).snapshot(), change), "out of range")


class Careless:
    """Takes whatever shape it is given, and says that `far` may be infinite."""

    not_finite = frozenset({"far", "deep.far"})

    def __init__(self, *_: object) -> None:
        self.far, self.near = np.array([np.inf]), np.zeros(2)

    def choose(self, context: Context) -> int:
        return 0

    def learn(self, event: Event) -> None:
        pass

    def snapshot(self) -> Snapshot:
        return {"far": self.far, "near": self.near, "deep": {"far": [float("nan")]}}

    def restore(self, snapshot: Snapshot) -> None:
        self.far, self.near = np.array(snapshot["far"]), np.zeros(2) + snapshot["near"]


def careless() -> Guarded:
    entry: Entry[Policy] = Entry("careless", "a test's own", NoParameters, Careless)
    return guarded(entry, NoParameters(), SHAPE, Streams(0))


def test_policy_says_which_numbers_need_not_be_finite() -> None:
    policy = careless()
    policy.restore(policy.snapshot())
    far = with_state(policy.snapshot(), lambda s: s.update(far=np.array([-np.inf])))
    policy.restore(far)
    assert policy.inner.far.tolist() == [-np.inf]  # type: ignore[attr-defined]
    near = with_state(policy.snapshot(), lambda s: s.update(near=np.array([0.0, np.nan])))
    check_refused(policy, near, "'near' holds numbers that are not finite")


def test_state_that_would_be_broadcast_or_lost_is_refused() -> None:
    spread = with_state(careless().snapshot(), lambda s: s.update(near=np.ones(1)))
    check_refused(careless(), spread, "state.near' does not fit careless")
    lost = with_state(careless().snapshot(), lambda s: s["deep"].update(far=[0.0]))
    check_refused(careless(), lost, "state.deep.far.0' does not fit careless")


def test_policy_with_numbers_that_are_not_finite_is_not_saved() -> None:
    policy = careless()
    policy.inner.near[1] = np.inf  # type: ignore[attr-defined]
    with pytest.raises(
        SnapshotError, match="careless cannot be saved: its 'near' holds numbers that are not"
    ):
        policy.snapshot()


def test_policy_without_snapshots_says_so() -> None:
    class Fleeting:
        def choose(self, context: Context) -> int:
            return 0

        def learn(self, event: Event) -> None:
            pass

    entry: Entry[Any] = Entry("fleeting", "a test's own", NoParameters, lambda *_: Fleeting())
    with pytest.raises(SnapshotError, match="fleeting has no snapshot"):
        guarded(entry, NoParameters(), SHAPE, Streams(0)).snapshot()


def test_bytes_of_another_format_or_of_nothing_are_refused() -> None:
    data = bytearray(snapshots.dump({"x": 1}))
    data[18] = 9
    with pytest.raises(SnapshotError, match="has the format 9, this version of tidepull reads 2"):
        snapshots.load(bytes(data))
    values: list[Any] = [b"", b"\x00", "text", None, 7, bytearray(b"x")]
    for value in values:
        with pytest.raises(SnapshotError, match="bytes"):
            snapshots.load(value)


@pytest.mark.parametrize(
    "structure",
    [
        '{"x": {"__array__": ["<f8", [1000000000000], false]}}',
        '{"x": {"__array__": ["<f8", [-1], false]}}',
        '{"x": {"__array__": ["|O", [1], false]}}',
        '{"x": {"__array__": ["<f8"]}}',
        '{"x": {"__array__": 3}}',
        "[1, 2]",
        '{"x": 1}',
        '{"x": 1} and more',
        "[" * 100_000,
        '{"x": ' + "9" * 10_000 + "}",
    ],
)
def test_absurd_content_behind_a_checksum_that_fits_is_refused(structure: str) -> None:
    text = structure.encode()
    with pytest.raises(SnapshotError, match="cannot be read"):
        snapshots.load(snapshots.wrap(len(text).to_bytes(8, "little") + text + bytes(8)))


def test_snapshot_refuses_what_it_cannot_keep() -> None:
    itself: dict[str, Any] = {}
    itself["x"] = itself
    for state in (
        itself,
        {"__array__": 1},
        {"x": np.array(["red"])},
        {"x": np.array([None])},
        {"x": {1, 2}},
    ):
        with pytest.raises(SnapshotError, match="a snapshot"):
            snapshots.dump(state)


@pytest.mark.parametrize(
    ("left", "right", "where"),
    [
        ({"x": 1}, {"x": True}, "state.x"),
        ({"x": 1}, {"x": 1.0}, "state.x"),
        ({"x": None}, {"x": float("nan")}, "state.x"),
        ({"x": [1, 2]}, {"x": [1]}, "state.x"),
        ({"x": [1, "a"]}, {"x": (1, "b")}, "state.x.1"),
        ({"x": {"y": 1}}, {"x": {"z": 1}}, "state.x.y"),
        ({"x": np.ones(2)}, {"x": [1.0, 1.0]}, "state.x"),
        ({"x": np.ones(2)}, {"x": np.ones((2, 1))}, "state.x"),
        ({"x": np.ones(2)}, {"x": np.ones(2, int)}, "state.x"),
        ({"x": np.array([np.nan])}, {"x": np.array([1.0])}, "state.x"),
        (
            {"x": np.array([np.nan]), "y": [float("nan"), (1,)]},
            {"x": np.array([np.nan]), "y": [float("nan"), [1]]},
            None,
        ),
    ],
)
def test_difference_says_where_two_snapshots_differ(
    left: Any, right: Any, where: str | None
) -> None:
    assert snapshots.difference(left, right) == where


def test_arrays_keep_their_layout() -> None:
    state = {
        "rows": np.arange(6.0).reshape(2, 3),
        "columns": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    }
    back = snapshots.load(snapshots.dump(state))
    assert back["rows"].flags.c_contiguous
    assert back["columns"].flags.f_contiguous
    assert not back["columns"].flags.c_contiguous
    assert snapshots.difference(state, back) is None
