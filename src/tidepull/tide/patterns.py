"""Patterns in rounds: many models of time at once, weighed by how well they predicted.

    p_m(r)   Student-t with 2a degrees of freedom, centre phi'mu, scale^2 (b/a)(1 + phi' Lam^-1 phi)
             (rewards of 0 and 1: the probability of the reward, on the same scale for all
             models)
    v_m ~ w_m p_m(r);   w_m <- (1 - alpha) v_m + alpha prior_m
    act:     a model by weight, s2 = b / Gamma(a, 1), theta ~ N(mu, k^2 s2 Lam^-1), the best arm;
             k = 1, or down to 1/4 for weights on a context (`tide/models/noise.py`);
             with observations the average of 16 models' phi'mu takes the place of its own

With probability min(0.05, c / (t + 1)) a family is drawn uniformly instead, then a model
within it.

A round is a call of `choose`. The prediction of a reward uses the covariates of its round, however
late the reward arrives (`pending.py`). New scales and context maps, training and
the structure search are due after certain numbers of rewards, and run in slices (`upkeep`).
"""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol

import numpy as np

from tidepull.policies.exploration import decided_round
from tidepull.protocols import Pick
from tidepull.random import Streams
from tidepull.state import generator_state, restore_generator
from tidepull.tide.context import ContextMap
from tidepull.tide.explain import Explanation, WeightHistory, findings_of, leading_beliefs
from tidepull.tide.gated import GATED, MIXTURE, gated_model
from tidepull.tide.jobs import Job, JobQueue, is_power_of_two, search_is_due
from tidepull.tide.mixture import Mixture
from tidepull.tide.models.bank import ModelBank
from tidepull.tide.models.covariates import CovariateTracker, RoundState, empty_state, in_units
from tidepull.tide.models.families import FAMILIES, build_filters, describe
from tidepull.tide.models.family import Layout, Window
from tidepull.tide.models.network import NetworkModel, too_many_arms
from tidepull.tide.models.noise import NoisePrior
from tidepull.tide.models.weights import best_arms
from tidepull.tide.outliers import OutlierFilter
from tidepull.tide.parameters import TideParameters
from tidepull.tide.pending import UnfinishedRound, UnfinishedRounds
from tidepull.tide.rebuild import TRUSTED, rebuilding
from tidepull.tide.scale import RewardScale
from tidepull.tide.search import Slots, StructureSearch, pools
from tidepull.tide.two_point import CHECK_INTERVAL, CHECK_WINDOW
from tidepull.tide.window import RecentRounds
from tidepull.types import Context, Diagnostics, Event, FloatArray, IntArray, ProblemShape, Snapshot

_NONE = np.empty(0, np.int64)

_PRODUCTS = 75_000
"""Multiplications that the models of one family may cost in a round, beyond the first few."""
_BLOCKS = 100_000
"""Weight vectors that a model may have: "the arm that paid last" among 1,000 would have a
million."""

_PIECE, _PIECE_OF_AN_ARM = 8_000, 100
"""Steps of a piece of upkeep outside of its kernels."""

_N_AVERAGED = 16
"""Models, drawn by weight, whose means are averaged where there are observations."""

_RESIDUAL_WINDOW = 256
"""Rewards among which a residual outlier is looked for."""
_RESIDUAL_THRESHOLD = 2.0
"""Threshold of residual outliers: smaller than that of rewards, since one that is learnt looks like a
change."""
_RESIDUAL_MIN_Z = 4.0
"""Standard deviations of the prediction below which a residual is no outlier."""
_MIN_LOG_WEIGHT = math.log(0.5)
"""Log weight from which on the predictions of the leading model are compared with rewards."""

_MIN_SCALE, _MAX_SCALE, _SCALE_C = 0.25, 2.0, 0.5
"""Minimum and maximum of the draw scale with contexts, and c (`tide/models/noise.py`); c is 1 where
every arm has weights of its own on an observation."""
_MIN_SCALE_PLAIN = 0.5
"""Minimum of the draw scale without contexts."""

_THRESHOLD, _THRESHOLD_OBSERVED = 3.0, 30.0
"""Thresholds of outliers. With observations a good policy sees few failures, and learns from
them."""


class _Part(Protocol):
    def snapshot(self) -> Snapshot: ...
    def restore(self, snapshot: Snapshot) -> None: ...


class _LatestContext(NamedTuple):
    """The context of the latest round, and its rows."""

    t: int
    context: Context
    contexts: ContextMap
    raw: FloatArray
    X: FloatArray


class _OpenRound(NamedTuple):
    """A round whose arm is not chosen yet: the best arm of each draw, of which the first `mixed`
    are the mixture's."""

    state: RoundState
    raw: FloatArray
    best: IntArray
    mixed: int


class Patterns:
    """Posterior sampling over a mixture of models of time: seasons, change points, regimes, turns,
    classes, the latest event, and the paper's network."""

    not_finite = frozenset(
        {
            "mixture.log_weights",  # of empty slots
            "scale.first",  # no reward yet
            "trackers.last event.reward",
            "recent.covariates",  # no last reward, or forgotten
            "recent.network",  # inactive
            "pending.covariates",
            *(
                f"{part}.{name}"
                for part in ("outliers", "residual_outliers")
                for name in ("low", "high", "latest")
            ),
        }
    )

    def __init__(
        self,
        parameters: TideParameters,
        shape: ProblemShape,
        streams: Streams,
        *,
        timed: bool = False,
    ) -> None:
        self.parameters, self.timed = parameters, timed
        self._n_arms, self._available = shape.n_arms, np.ones(shape.n_arms, bool)
        self._rng = streams.generator("choices")
        self._contexts = ContextMap(shape)
        layout = Layout(
            shape.n_arms, self._contexts.narrow, self._contexts.shared,
            products=_PRODUCTS, most_blocks=_BLOCKS, wide_dim=self._contexts.whole_dim,
        )  # fmt: skip
        own = layout.context_dim > 1 and not layout.shared
        families = parameters.families(observed=own, timed=timed, n_arms=shape.n_arms)
        kept = pools(layout, families)
        rooms = [list(pool.room) for pool in kept for _ in range(len(pool.initial) + pool.spare)]
        prior = NoisePrior(
            min_scale=_MIN_SCALE, max_scale=_MAX_SCALE, scale_c=1.0 if own else _SCALE_C,
            min_scale_plain=_MIN_SCALE_PLAIN, by_density=own,
        )  # fmt: skip
        self._averages = self._may_be_two_point = own
        self._bank = ModelBank(layout, rooms, prior, calibrated=own)
        self._network: NetworkModel | None = None
        if "network" in families and not too_many_arms(layout):
            half = min(1024, parameters.window // 2)
            self._network = NetworkModel(layout, half, streams.generator("network"))
        self._filters = build_filters(layout, families, self._bank.prior, streams)
        self._gated = gated_model(layout, families, parameters.share, self._bank.prior, streams)
        filter_families = [filter.family for filter in self._filters]
        alone = filter_families + ["network"] * (self._network is not None)
        slots = Slots(self._bank, kept, alone)
        self._mixture = Mixture(
            slots.initial_prior(), slots.family_of, slots.families, parameters.share
        )
        self._prior_of_network = float(self._mixture.prior[-1])
        self._scale = RewardScale(
            1 if self._contexts.shared else shape.n_arms, two_point=self._may_be_two_point
        )
        confirm_by_value = layout.context_dim == 1
        threshold = _THRESHOLD_OBSERVED if own else _THRESHOLD
        self._outliers = OutlierFilter(
            parameters.outlier_share,
            shape.n_arms,
            threshold=threshold,
            confirm_by_value=confirm_by_value,
        )
        self._residual_outliers = OutlierFilter(
            parameters.outlier_share if confirm_by_value else 0.0,
            shape.n_arms,
            threshold=_RESIDUAL_THRESHOLD,
            confirm_by_value=True,
            window=_RESIDUAL_WINDOW,
            min_bound=_RESIDUAL_MIN_Z,
        )
        self._recent = RecentRounds(
            parameters.window,
            min(1024, parameters.window),
            self._contexts.dim,
            self._contexts.raw_dim,
        )
        self._search = StructureSearch(self._bank, slots, self._mixture, self._recent)
        self._trackers: dict[str, CovariateTracker] = {}
        for name in dict.fromkeys(pool.family for pool in kept):
            tracker = FAMILIES[name].tracker
            if tracker is not None:
                self._trackers[name] = tracker(shape.n_arms)
        self._network_slot = np.array([len(slots.family_of) - 1])  # where there is one
        self._history = WeightHistory(len(self.families))
        self._pending = UnfinishedRounds()
        self._t = 0
        self._too_late = 0
        self._score = 0.0
        self._seen: FloatArray = np.empty((1, 0))
        self._latest_context: _LatestContext | None = None
        self._open_round: _OpenRound | None = None
        self._jobs = JobQueue(self._start_job, _PIECE + _PIECE_OF_AN_ARM * shape.n_arms)

    def choose(self, context: Context) -> int:
        """Draw a model, draw its weights, play the best available arm."""
        return self.choose_by(context, 1, lambda shares: int(np.argmax(shares)))

    def choose_by(self, context: Context, draws: int, pick: Pick) -> int:
        """Choose by each arm's share of `draws` draws of a model and its weights."""
        arm = pick(self.shares(context, draws))
        self.commit(arm)
        return arm

    def shares(self, context: Context, draws: int) -> FloatArray:
        """Begin a round: the share of draws in which each arm is best; `commit` ends it."""
        raw, X, state = self._open(context)
        gated = self._gated
        own = 0 if gated is None else gated.votes(draws, self._rng)
        scores = self._draws(state, X, draws - own)
        if gated is not None and own:
            binary = self._scale.units.binary
            more = [gated.filter.draw(state.t, X, binary, self._rng) for _ in range(own)]
            scores = np.concatenate([scores, more])
        self._available[:] = True if context.available is None else context.available
        best, shares = np.empty(draws, np.int64), np.empty(self._n_arms)
        best_arms(scores, self._available, best, shares)
        self._open_round = _OpenRound(state, raw, best, draws - own)
        return shares

    def commit(self, arm: int) -> None:
        """End the round that `shares` began."""
        open_round, gated = self._open_round, self._gated
        assert open_round is not None, "commit() follows shares()"
        if gated is not None:
            voters = np.flatnonzero(open_round.best == arm)
            if len(voters):  # one of them decided; the mixture's draws come first
                draw = int(voters[self._rng.integers(len(voters))])
                gated.decided(open_round.state.t, MIXTURE if draw < open_round.mixed else GATED)
        self._record_decision(open_round.state, open_round.raw, arm)
        self._open_round = None

    def _open(self, context: Context) -> tuple[FloatArray, FloatArray, RoundState]:
        """The context, its rows, and the state of a round that begins."""
        raw = self._contexts.raw(context)
        if self._recent.count == 0 and self._contexts.shared:
            self._contexts = self._contexts.fitted(raw)
        X = self._contexts.rows(raw)
        self._latest_context = _LatestContext(self._t, context, self._contexts, raw, X)
        return raw, X, self._begin(X)

    def _context_rows(self, context: Context, t: int) -> tuple[FloatArray, FloatArray]:
        """The context and its rows; those of the decision, if it was the latest."""
        latest_context = self._latest_context
        latest = (
            latest_context is not None
            and latest_context.t == t
            and latest_context.contexts is self._contexts
        )
        if latest_context is not None and latest and latest_context.context is context:
            return latest_context.raw, latest_context.X
        raw = self._contexts.raw(context)
        if latest_context is not None and latest and raw.tobytes() == latest_context.raw.tobytes():
            return raw, latest_context.X
        return raw, self._contexts.rows(raw)

    def _explore(self, state: RoundState) -> float:
        return min(0.05, self.parameters.exploration / (state.t + 1))

    def _draws(self, state: RoundState, X: FloatArray, count: int) -> FloatArray:
        """`count` draws of every arm's expected reward, one a row, each of a model drawn by
        weight; with observations centred on the average of these and others, at least
        `_N_AVERAGED` models."""
        rng, inactive, size = self._rng, self._inactive_slots(), self._bank.size
        now, binary = self._standard(state), self._scale.units.binary
        extra = max(_N_AVERAGED - count, 0) if self._averages else 0
        found, more = self._mixture.picks(rng, self._explore(state), inactive, count, extra)
        inside, about = {m: n for m, n in found.items() if m < size}, None
        if self._averages:
            slots = sorted({*inside, *(m for m in more if m < size)})
            about = {m: found.get(m, 0) + more.get(m, 0) for m in slots}
        drawn = [self._bank.draws(inside, now, X, binary, rng, about=about)] if inside else []
        drawn += [
            self._draw_unbanked(m - size, state.t, X, binary)[None]
            for m, n in found.items()
            for _ in range(n if m >= size else 0)
        ]
        return (
            drawn[0] if len(drawn) == 1 else np.concatenate([np.empty((0, self._n_arms)), *drawn])
        )

    def _record_decision(self, state: RoundState, raw: FloatArray, arm: int) -> int:
        """Record the chosen arm of the round that began."""
        self._pending.add(
            UnfinishedRound(
                state, self._recent.count, arm, raw[arm if self._contexts.shared else 0]
            )
        )
        if self._network is not None:
            self._network.set_arm(arm)
        return arm

    def learn(self, event: Event) -> None:
        """Every model is scored on the reward, then learns it; weights follow Bayes' rule."""
        arm, reward, t = event.arm, event.reward, decided_round(event)
        raw, X = self._context_rows(event.context, t)
        known = self._take_pending(t, arm, X)
        if not self._outliers.accepts(arm, reward) or not self._is_residual_inlier(
            known.state, arm, X, reward
        ):
            return
        units, stale = self._scale.units, not self._scale.fits(reward)
        # With observations a reward that is neither 0 nor 1, or of neither kind, is a success, or
        # none, meanwhile.
        y, binary = (
            self._scale.standardise(reward),
            units.binary and (self._may_be_two_point or not stale),
        )
        covariates, x, scores = known.state.row(arm), X[arm], np.empty(len(self._mixture.prior))
        self._bank.score(
            t, in_units(covariates, units.centre, units.spread), arm, x, y, binary, scores
        )
        for i, filter in enumerate(self._filters, self._bank.size):
            scores[i] = filter.observe(t, arm, x, y, binary)
        by_network = math.nan
        if self._network is not None:
            by_network = scores[-1] = self._network.observe(
                t, arm, known.arm, self._narrow(X), y, binary
            )
            by_network -= 0.0 if binary else math.log(units.spread)
        before = self._mixture.evidence
        gain = self._mixture.reweigh(scores, self._recent.count)
        self._score += gain - (0.0 if binary else math.log(units.spread))
        if self._gated is not None:
            self._gated.learn(t, arm, x, y, binary, others=gain, count=self._recent.count)
        self._recent.append(
            t=t, covariates=covariates, n_rewards_seen=known.n_rewards_seen, arm=arm, x=x, reward=reward,
            raw=raw[arm if self._contexts.shared else 0], evidence=before, network=by_network,
        )  # fmt: skip
        self._scale.add(0 if self._contexts.shared else arm, reward)
        success = reward > units.threshold
        for tracker in self._trackers.values():
            tracker.observe(t, arm, reward, success)
        self._seen = raw
        self._plan(self._clip_first_rewards() or stale)

    def _is_residual_inlier(
        self, state: RoundState, arm: int, X: FloatArray, reward: float
    ) -> bool:
        """Whether the residual of a reward under the leading model is usual, without contexts. Every
        reward is accepted where no model of the bank leads (as after a change), or where half of the
        rewards are equal."""
        scale = self._scale
        if not self._residual_outliers.share or scale.units.binary or not self._outliers.varied:
            return True
        m = int(np.argmax(self._mixture.log_weights))
        if m >= self._bank.size or self._mixture.log_weights[m] <= _MIN_LOG_WEIGHT:
            return True
        means, leverages = self._bank.predict(m, self._standard(state), X)
        error = scale.standardise(reward) - float(means[arm])
        error_z = error / math.sqrt(self._bank.noise(m) * (1 + float(leverages[arm])))
        return not math.isfinite(error_z) or self._residual_outliers.accepts(arm, error_z)

    def upkeep(self) -> bool:
        """One slice of pending work: a new scale and context map, training, structure search."""
        return self._jobs.slice()

    @property
    def pending(self) -> bool:
        """Whether `upkeep` has something to do."""
        return bool(self._jobs)

    @property
    def under_way(self) -> bool:
        """Whether `upkeep` has begun a job that a snapshot would start anew."""
        return self._jobs.under_way

    def explain(self, most: int = 5) -> Explanation:
        """Leading models in words, and weights of families over the rounds; of the gated model, the
        share of rounds that it decides."""
        weights, filters = np.exp(self._mixture.log_weights), list(self._filters)
        if self._gated is not None:
            share, filters = self._gated.share, [*filters, self._gated.filter]
            weights = np.insert((1 - share) * weights, self._bank.size + len(filters) - 1, share)
        rounds, table = self._history.table()
        filter_weights = weights[self._bank.size : self._bank.size + len(filters)]
        return Explanation(
            leading_beliefs(self._bank, filters, weights, most), rounds, self.families, table,
            findings_of(filters, filter_weights, self._scale.units),
        )  # fmt: skip

    @property
    def count(self) -> int:
        """Number of rewards that were learnt, without outliers."""
        return self._recent.count

    @property
    def evidence(self) -> float:
        """Log evidence of all models, in units of rewards, with that of candidates that were
        accepted later."""
        return self._score + self._search.evidence_gain

    @property
    def families(self) -> tuple[str, ...]:
        """Families that take part; that of the gated model comes last."""
        outside = () if self._gated is None else (self._gated.filter.family,)
        return self._mixture.families + outside

    def family_weights(self) -> FloatArray:
        """The weight of each family, in the order of `explain().families`."""
        weights = self._mixture.family_weights()
        if self._gated is None:
            return weights
        return np.append((1 - self._gated.share) * weights, self._gated.share)

    def diagnostics(self) -> Diagnostics:
        """Leading beliefs, weights of families over the rounds, and numbers of models, of rewards
        that arrived too late for covariates, and of rejected rewards."""
        explanation = self.explain()
        return {
            "explanation": explanation.beliefs[0].words,
            "explanation_weight": explanation.beliefs[0].weight,
            "beliefs": explanation.plain(),
            "hypotheses": int(self._bank.arrays.active.sum()),
            "births": self._search.count,
            "failed_trainings": 0 if self._network is None else self._network.failures,
            "too_late": self._too_late,
            "set_aside": self._outliers.n_rejected + self._residual_outliers.n_rejected,
        }

    def snapshot(self) -> Snapshot:
        """The state of all models, pending decisions and the generator; a running job starts
        again."""
        agenda = self._jobs.snapshot()
        filters = (
            {"filters": [filter.snapshot() for filter in self._filters]} if self._filters else {}
        )
        return {
            **filters,
            "rng": generator_state(self._rng),
            "t": self._t,
            "too_late": self._too_late,
            "score": self._score,
            "seen": self._seen.copy(),
            "agenda": agenda,
            "network": None if self._network is None else self._network.snapshot(),
            "trackers": {name: tracker.snapshot() for name, tracker in self._trackers.items()},
            **{name: part.snapshot() for name, part in self._parts().items()},
        }

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot of the same policy on a problem of the same shape."""
        for part, state in ((part, snapshot[name]) for name, part in self._parts().items()):
            part.restore(state)
        for m in np.flatnonzero(self._bank.arrays.active):
            describe(self._bank.spec(int(m)))  # an unknown family is an error
        for name, tracker in self._trackers.items():
            tracker.restore(snapshot["trackers"][name])
        for filter, state in zip(self._filters, snapshot.get("filters", []), strict=True):
            filter.restore(state)
        if self._network is not None:
            self._network.restore(snapshot["network"])
        self._jobs.restore(snapshot["agenda"])
        self._latest_context = None
        self._t, self._too_late = int(snapshot["t"]), int(snapshot["too_late"])
        self._score = float(snapshot["score"])
        self._seen = np.array(snapshot["seen"], float)
        restore_generator(self._rng, snapshot["rng"])

    def _parts(self) -> dict[str, _Part]:
        return {
            "contexts": self._contexts,
            "bank": self._bank,
            "births": self._search,
            "scale": self._scale,
            "recent": self._recent,
            "mixture": self._mixture,
            "history": self._history,
            "pending": self._pending,
            **({"outliers": self._outliers} if self._outliers.share else {}),
            **(
                {"residual_outliers": self._residual_outliers}
                if self._residual_outliers.share
                else {}
            ),
            **({"gated": self._gated} if self._gated is not None else {}),
        }

    def _begin(self, X: FloatArray) -> RoundState:
        """Begin a round: its covariates, with rewards as they were paid."""
        state = empty_state(self._t, self._n_arms)
        for tracker in self._trackers.values():
            tracker.write(state)
        if self._network is not None:
            self._network.begin(self._t, self._narrow(X))
        self._t += 1
        return state

    def _take_pending(self, t: int, arm: int, X: FloatArray) -> UnfinishedRound:
        """The decision of round t; an event without a decision is a round of its own."""
        known = self._pending.take(t)
        if known is None and t == self._t:
            return UnfinishedRound(self._begin(X), self._recent.count, arm, np.empty(0))
        if known is None:
            self._too_late += 1
            forgotten = empty_state(t, self._n_arms)
            forgotten.covariates[:], forgotten.per_arm[:] = np.nan, np.nan
            return UnfinishedRound(forgotten, -1, arm, np.empty(0))
        return known

    def _standard(self, state: RoundState) -> RoundState:
        return state.standardised(self._scale.units.centre, self._scale.units.spread)

    def _inactive_slots(self) -> IntArray:
        """Slots that cannot be drawn: the network's while it is inactive."""
        network = self._network
        is_inactive = network is not None and network.trainings > 0 and not network.active
        return self._network_slot if is_inactive else _NONE

    def _draw_unbanked(self, i: int, t: int, X: FloatArray, binary: bool) -> FloatArray:
        """A draw of a model that is not in the bank: the filters, then the network."""
        if i < len(self._filters):
            return self._filters[i].draw(t, X, binary, self._rng)
        assert self._network is not None
        return self._network.draw(self._narrow(X), binary, self._rng)

    def _narrow(self, rows: FloatArray) -> FloatArray:
        """The narrow part of contexts that have two widths."""
        return rows[..., : self._contexts.narrow] if self._contexts.whole_dim else rows

    def _plan(self, stale: bool) -> None:
        """Enqueue jobs that are due after this number of rewards; cheap ones are done at once."""
        count = self._recent.count
        if stale or self._rebuild_is_due(count):
            self._jobs.put("rebuild", count)
        elif count >= TRUSTED and is_power_of_two(count):
            self._bank.refresh_ridges()
            for filter in self._filters:
                filter.refresh_ridge()
        if self._network is not None and count % 32 == 0:
            self._update_network_schedule(self._network, count)
            if not self._network.paused:
                self._jobs.put("train", count)
        if self.parameters.births and search_is_due(count):
            self._jobs.put("search", count)
        if self._history.due(count):
            if self._jobs:
                self._jobs.put("record", count)
            else:
                self._history.record(count, self.family_weights())

    def _update_network_schedule(self, network: NetworkModel, count: int) -> None:
        """Pause the network, or resume it."""
        was_paused, slot = network.paused, len(self._mixture.prior) - 1
        network.update_schedule(count, math.exp(self._mixture.log_weights[slot]))
        if network.paused and not was_paused:
            self._mixture.pause(slot)
        elif was_paused and not network.paused:
            self._mixture.resume(slot, self._prior_of_network)

    def _clip_first_rewards(self) -> bool:
        """Clip the first rewards to the present bounds; whether any was outside."""
        if not self._outliers.must_clip_first() or not self._recent.clip(
            self._outliers.low, self._outliers.high
        ):
            return False
        self._scale.recount(
            [0 if self._contexts.shared else arm for _, arm, _ in self._recent.events(0)],
            self._recent.rewards,
        )
        return True

    def _rebuild_is_due(self, count: int) -> bool:
        """Whether a rebuild is due: at powers of two, always in the first rounds, then if contexts
        or rewards have changed; two-point rewards are tested more often."""
        if (
            self._scale.units.two_point
            and count % CHECK_INTERVAL == 0
            and self._scale.is_stale(self._recent.seen(CHECK_WINDOW))
        ):
            return True
        if not is_power_of_two(count):
            return False
        if count <= self._recent.raw_capacity and self._contexts.raw_dim:
            return count <= 64 or count % 3 == 1  # powers of four
        return count <= TRUSTED or self._scale.is_stale(self._recent.seen())

    def _start_job(self, name: str, count: int) -> Job[None]:
        """The job of a name that became due after `count` rewards."""
        if name == "rebuild":
            yield from self._rebuild()
        elif name == "search":
            yield from self._search.search(self._scale.units)
        elif name == "train":
            network, weight = self._network, math.exp(self._mixture.log_weights[-1])
            if network is not None and network.training_is_due(count, weight):
                yield from network.training(self._lessons, self._scale.units.binary)
        else:
            self._history.record(count, self.family_weights())

    def _lessons(self, since: int) -> tuple[Window, int]:
        window = self._recent.window(self._scale.units, since)
        return window._replace(x=self._narrow(window.x)), self._recent.count

    def _rebuild(self) -> Job[None]:
        new = yield from rebuilding(
            self._recent, self._scale, self._contexts, self._trackers, self._bank, self._mixture,
            filters=self._filters, gated=self._gated, latest=self._seen, network=self._network is not None,
        )  # fmt: skip
        if new is None:
            self._jobs.put("rebuild", self._recent.count)
            return
        self._scale.units, self._contexts, self._trackers = new.units, new.contexts, new.trackers
        before = (
            self._bank.arrays
        )  # giving many pages back takes a while, which a later slice shall pay
        self._bank.replace_with(new.bank)
        self._filters, self._gated = new.filters, new.gated
        self._mixture.replace_with(new.mixture)
        if new.units.two_point and not all(map(self._scale.fits, self._recent.rewards)):
            self._jobs.put("rebuild", self._recent.count)  # another reward arrived meanwhile
        self._recent.adopt(new.covariates, new.x, new.evidence, drop_network=new.drop_network)
        if self._network is not None:
            seen = {
                t: self._narrow(self._contexts(raw[None])[0])
                for t, raw in self._pending.seen().items()
            }
            self._network.rescale(self._lessons, seen)
            if self._network.trainings:
                yield from self._network.training(self._lessons, new.units.binary)
        del before
