"""The guard: rounds, threads, work that waits, and what it lets through."""

from __future__ import annotations

import copy
import dataclasses
import logging
import pickle
import threading
import time
from typing import Any

import numpy as np
import pytest

from tidepull import state as snapshots
from tidepull.errors import BusyError, EventError, RewardError
from tidepull.parameters import NoParameters
from tidepull.policies import build_policy, guard
from tidepull.policies.checks import RoundCounter
from tidepull.policies.guard import Guarded, GuardedOracle, guarded
from tidepull.protocols import HasDiagnostics, HasRounds, HasUpkeep, NeedsMeans, Policy
from tidepull.random import Streams
from tidepull.registry import Entry
from tidepull.types import Context, Event, ProblemShape, Snapshot

SHAPE = ProblemShape(n_arms=3)


class Recorder:
    """Plays arm 1 and keeps what it is told."""

    def __init__(self) -> None:
        self.seen: list[Context] = []
        self.learnt: list[Event] = []
        self.pending = False
        self.slices = 0

    def choose(self, context: Context) -> int:
        self.seen.append(context)
        return 1

    def learn(self, event: Event) -> None:
        if event.reward == 13.0:
            raise RewardError("not thirteen")
        self.learnt.append(event)

    def upkeep(self) -> bool:
        self.slices += 1
        return self.slices < 3

    def snapshot(self) -> Snapshot:
        return {"learnt": len(self.learnt)}

    def restore(self, snapshot: Snapshot) -> None:
        self.learnt = [Event(Context(), 0, 0.0)] * snapshot["learnt"]

    def hello(self, name: str) -> str:
        """Says hello."""
        return f"hello {name}"


def guard_of(policy: Any, shape: ProblemShape = SHAPE) -> Guarded:
    entry: Entry[Policy] = Entry("own", "a test's own", NoParameters, lambda *_: policy)
    return guarded(entry, NoParameters(), shape, Streams(0))


def decided(policy: Recorder) -> list[int | None]:
    return [event.decided for event in policy.learnt]


def test_guard_says_which_round_an_event_finishes_when_the_event_does_not() -> None:
    inner = Recorder()
    policy = guard_of(inner)
    policy.learn(Event(Context(), 0, 1.0))  # nothing was chosen: a round of its own
    policy.choose(Context())
    policy.learn(Event(Context(), 0, 1.0))  # the latest round
    policy.learn(Event(Context(), 0, 1.0))  # which is finished now: a round of its own
    policy.choose(Context())
    policy.choose(Context())
    policy.learn(Event(Context(), 0, 1.0))
    policy.learn(Event(Context(), 0, 1.0, decided=3))
    assert decided(inner) == [0, 1, 2, 4, 3]
    assert policy.rounds == 5


def test_guard_of_the_oracle_counts_rounds_too() -> None:
    policy = build_policy("oracle", SHAPE, seed=0)
    assert isinstance(policy, GuardedOracle)
    for _ in range(2):
        policy.choose_knowing(Context(), np.array([0.0, 1.0, 0.5]))
    policy.learn(Event(Context(), 1, 1.0, decided=0))
    assert policy.rounds == 2
    assert policy.snapshot()["unfinished"].tolist() == [1]


def test_guard_refuses_rounds_that_are_finished_or_have_not_begun() -> None:
    policy = guard_of(Recorder())
    with pytest.raises(EventError, match="no round has begun"):
        policy.learn(Event(Context(), 0, 1.0, decided=0))
    for _ in range(3):
        policy.choose(Context())
    policy.learn(Event(Context(), 0, 1.0, decided=1))
    with pytest.raises(EventError, match="the reward of round 1 has been learnt already"):
        policy.learn(Event(Context(), 0, 1.0, decided=1))
    policy.learn(Event(Context(), 0, 1.0, decided=2))
    with pytest.raises(EventError, match="the reward of round 2 has been learnt already"):
        policy.learn(Event(Context(), 0, 1.0, decided=2))
    with pytest.raises(EventError, match="rounds 0 to 2 have begun"):
        policy.learn(Event(Context(), 0, 1.0, decided=3))


def test_round_stays_unfinished_when_the_policy_itself_refuses_the_event() -> None:
    inner = Recorder()
    policy = guard_of(inner)
    policy.choose(Context())
    before = snapshots.dump(policy.snapshot())
    with pytest.raises(RewardError, match="thirteen"):
        policy.learn(Event(Context(), 0, 13.0))
    assert snapshots.dump(policy.snapshot()) == before
    policy.learn(Event(Context(), 0, 1.0))
    assert decided(inner) == [0]


@pytest.mark.parametrize("reward", [0.5, -1.0, 2.0])
def test_bernoulli_ts_refuses_other_rewards_and_its_round_stays_open(reward: float) -> None:
    policy = build_policy("bernoulli-ts", SHAPE, seed=0)
    policy.choose(Context())
    before = snapshots.dump(policy.snapshot())
    with pytest.raises(RewardError, match="must be 0 or 1"):
        policy.learn(Event(Context(), 0, reward, decided=0))
    assert snapshots.dump(policy.snapshot()) == before
    policy.learn(Event(Context(), 0, 1.0, decided=0))


def test_memory_of_unfinished_rounds_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidepull.policies.checks.TRAIL", 10)
    inner = Recorder()
    policy = guard_of(inner)
    for _ in range(100):
        policy.choose(Context())
    assert policy.snapshot()["unfinished"].tolist() == list(range(90, 100))
    policy.learn(Event(Context(), 0, 1.0, decided=5))  # too old to know whether it came before
    policy.learn(Event(Context(), 0, 1.0, decided=90))
    with pytest.raises(EventError, match="already"):
        policy.learn(Event(Context(), 0, 1.0, decided=90))
    for _ in range(20):
        policy.learn(Event(Context(), 0, 1.0))
    assert decided(inner)[:3] == [5, 90, 99]
    assert policy.rounds == 119
    assert len(policy.snapshot()["unfinished"]) == 0


def test_rounds_of_their_own_push_old_ones_out_of_the_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tidepull.policies.checks.TRAIL", 4)
    rounds = RoundCounter()
    rounds.begin()
    rounds.begin()
    rounds.finish(1)
    for _ in range(4):
        rounds.finish(rounds.decided(None))
    assert (rounds.begun, rounds.unfinished.tolist()) == (6, [])


def test_clean_input_passes_uncopied_and_the_rest_becomes_clean() -> None:
    inner = Recorder()
    policy = guard_of(inner, ProblemShape(2, observation_dim=2, arm_dim=1))
    clean = Context(np.ones(2), np.ones((2, 1)), np.array([True, False]), 4.0)
    policy.choose(clean)
    event = Event(clean, 1, 2.0, decided=0)
    policy.learn(event)
    assert inner.seen[0] is clean
    assert inner.learnt[0] is event
    mixed: Any = Context([1, 2], np.ones((2, 2))[:, ::2], [True, False], 4)  # type: ignore[arg-type]
    policy.choose(mixed)
    policy.learn(Event(mixed, np.int8(1), 3))  # type: ignore[arg-type]
    for context in (inner.seen[1], inner.learnt[1].context):
        assert context.observation is not None
        assert context.arm_features is not None
        assert context.observation.dtype == context.arm_features.dtype == np.float64
        assert context.arm_features.flags.c_contiguous
        assert context.available is not None
        assert context.available.dtype == np.bool_
        assert type(context.time) is float
    learnt = inner.learnt[1]
    assert (type(learnt.arm), type(learnt.reward), learnt.decided) == (int, float, 1)


@pytest.mark.parametrize(
    ("field", "loose", "clean"),
    [
        ("observation", [1, 2], [1.0, 2.0]),
        ("arm_features", [[3], [4]], [[3.0], [4.0]]),
        ("available", [True, False], [True, False]),
        ("time", 5, 5.0),
    ],
)
def test_one_part_of_a_context_becomes_clean_when_the_others_are(
    field: str, loose: Any, clean: Any
) -> None:
    inner = Recorder()
    policy = guard_of(inner, ProblemShape(2, observation_dim=2, arm_dim=1))
    good = Context(np.ones(2), np.ones((2, 1)), np.array([True, True]), 4.0)
    policy.choose(dataclasses.replace(good, **{field: loose}))
    seen = getattr(inner.seen[0], field)
    assert type(seen) is type(getattr(good, field))
    assert np.array_equal(seen, clean)


@pytest.mark.parametrize(
    ("field", "loose", "clean"),
    [
        ("arm", np.int64(2), 2),
        ("reward", 3, 3.0),
        ("reward", np.float32(3), 3.0),
        ("decided", np.int64(0), 0),
    ],
)
def test_one_part_of_an_event_becomes_clean_when_the_others_are(
    field: str, loose: Any, clean: Any
) -> None:
    inner = Recorder()
    policy = guard_of(inner)
    policy.choose(Context())
    policy.learn(dataclasses.replace(Event(Context(), 1, 1.0, decided=0), **{field: loose}))
    found = getattr(inner.learnt[0], field)
    assert type(found) is type(clean)
    assert found == clean


def test_guard_has_what_the_policy_has_and_nothing_more() -> None:
    policy = guard_of(Recorder())
    assert policy.hello("you") == "hello you"
    assert policy.hello.__doc__ == "Says hello."
    assert policy.slices == 0
    with pytest.raises(AttributeError, match="explain"):
        policy.explain()
    assert not isinstance(policy, NeedsMeans)
    assert isinstance(policy, Policy)
    assert isinstance(policy, HasRounds)
    assert isinstance(build_policy("oracle", SHAPE, seed=0), NeedsMeans)


def test_guard_passes_upkeep_and_diagnostics_on_where_there_are_any() -> None:
    policy, plain = guard_of(Recorder()), build_policy("ucb", SHAPE, seed=0)
    assert [policy.upkeep() for _ in range(3)] == [True, True, False]
    assert isinstance(plain, HasUpkeep)
    assert isinstance(plain, HasDiagnostics)
    assert plain.upkeep() is False
    assert plain.diagnostics() == {}


@pytest.mark.parametrize("early", [False, True])
def test_guard_warns_once_when_upkeep_is_not_called(
    early: bool, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "PATIENCE", 10)
    inner = Recorder()
    policy = guard_of(inner)
    with caplog.at_level(logging.WARNING, logger="tidepull"):
        for t in range(60):
            if early and t < 20:
                policy.upkeep()  # the first calls do not speak for later ones
            inner.pending = t >= 20
            policy.learn(Event(Context(), 0, 1.0))
            assert len(caplog.records) == int(t >= 29)
    assert "own has had work pending for 10 events without a call of upkeep()" in caplog.text


def test_guard_is_quiet_when_upkeep_is_called_or_nothing_is_pending(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "PATIENCE", 10)
    cared, idle = Recorder(), Recorder()
    cared.pending = True
    for inner in (cared, idle):
        policy = guard_of(inner)
        for n in range(50):
            policy.learn(Event(Context(), 0, 1.0))
            if inner is cared and n % 5 == 0:
                policy.upkeep()
    assert not caplog.records


@pytest.mark.parametrize("id", ["d-ucb", "lin-ts"])
def test_guarded_policy_can_be_copied_and_pickled(id: str) -> None:
    policy = build_policy(id, SHAPE, seed=0)
    policy.choose(Context())
    for other in (copy.deepcopy(policy), pickle.loads(pickle.dumps(policy))):
        assert snapshots.dump(other.snapshot()) == snapshots.dump(policy.snapshot())
        other.choose(Context())
        assert (other.rounds, policy.rounds) == (2, 1)


class Slow(Recorder):
    """Stays inside until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.inside, self.go = threading.Event(), threading.Event()

    def choose(self, context: Context) -> int:
        self.inside.set()
        assert self.go.wait(30)
        return super().choose(context)


def test_policy_refuses_a_second_thread_at_once_and_goes_on_with_the_first() -> None:
    inner = Slow()
    policy = guard_of(inner)
    saved = policy.snapshot()
    chosen: list[int] = []
    thread = threading.Thread(target=lambda: chosen.append(policy.choose(Context())))
    thread.start()
    assert inner.inside.wait(30)
    calls: list[Any] = [
        lambda: policy.choose(Context()),
        lambda: policy.learn(Event(Context(), 0, 1.0)),
        policy.upkeep,
        policy.snapshot,
        lambda: policy.restore(saved),
        lambda: policy.hello("you"),
    ]
    started = time.monotonic()
    for call in calls:
        with pytest.raises(
            BusyError, match="own is busy in another thread; let one thread at a time use it"
        ):
            call()
    assert time.monotonic() - started < 4  # at once: nobody waited for the thread inside
    inner.go.set()
    thread.join()
    assert (chosen, policy.rounds, len(inner.learnt)) == ([1], 1, 0)
    policy.learn(Event(Context(), 0, 1.0))
    assert decided(inner) == [0]


@pytest.mark.parametrize("id", ["ucb", "sw-lin-ucb", "rnlps", "tide"])
def test_policy_hammered_by_four_threads_stays_whole(id: str) -> None:
    settings = {"units": [8, 8, 8], "epochs": 2} if id == "rnlps" else {}
    policy = build_policy((id, settings), SHAPE, seed=0)
    done, busy, wrong = [0] * 4, [0] * 4, []

    def hammer(me: int) -> None:
        try:
            for _ in range(150):
                try:
                    policy.choose(Context())
                    policy.learn(Event(Context(), me % 3, 1.0))
                    done[me] += 1
                except BusyError:
                    busy[me] += 1
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=hammer, args=(me,)) for me in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert sum(done) + sum(busy) == 600
    assert sum(done) > 0
    fresh = build_policy((id, settings), SHAPE, seed=1)
    fresh.restore(policy.snapshot())
    assert fresh.choose(Context()) == policy.choose(Context())


def test_policy_may_be_used_from_different_threads_one_after_another() -> None:
    policy, alone = (build_policy("lin-ts", SHAPE, seed=0) for _ in range(2))

    def one_round(player: Guarded) -> None:
        player.learn(Event(Context(), player.choose(Context()), 1.0))

    for _ in range(20):
        thread = threading.Thread(target=one_round, args=(policy,))
        thread.start()
        thread.join()
        one_round(alone)
    assert snapshots.dump(policy.snapshot()) == snapshots.dump(alone.snapshot())
