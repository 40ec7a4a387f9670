"""`tide`: many hypotheses about time at once, weighed by how well they predicted.

    p_m(r)   Student-t with 2a degrees of freedom, centre phi'mu, scale^2 (b/a)(1 + phi' Lam^-1 phi)
             (rewards of 0 and 1: the probability of the reward, on the same scale for all hypotheses)
    v_m ~ w_m p_m(r);   w_m <- (1 - alpha) v_m + alpha prior_m
    act:     a hypothesis by weight, s2 = b / Gamma(a, 1), theta ~ N(mu, k^2 s2 Lam^-1), the best arm;
             k = 1, or 1/2 for weights on a context

With probability min(0.05, c / (t + 1)) a family is drawn uniformly instead, then a hypothesis within it.
The kernels are in `hypotheses/kernels.py`; which hypotheses there are, in `tide_families.py`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tidepull.errors import ArmError, ContextError, ParameterError, RewardError, SnapshotError
from tidepull.hypotheses import kernels
from tidepull.hypotheses.bank import HypothesisBank, Layout, NoisePrior
from tidepull.hypotheses.naming import hypothesis_of
from tidepull.hypotheses.spec import Moment
from tidepull.hypotheses.turns import TurnFilter, Turns
from tidepull.parameters import Parameters, parameter
from tidepull.policies.tide_births import Births
from tidepull.policies.tide_context import ContextMap
from tidepull.policies.tide_explain import Belief, Explanation, WeightHistory
from tidepull.policies.tide_families import GROUP_PRIOR, pools
from tidepull.policies.tide_network import NetworkHypothesis
from tidepull.policies.tide_scale import RewardScale
from tidepull.policies.tide_window import RecentRounds, standard_memory
from tidepull.seeds import Streams
from tidepull.snapshots import generator_state, restore_generator
from tidepull.types import Context, Diagnostics, Event, FloatArray, ProblemShape, Snapshot

_TRUSTED = 16
"""Rounds after which estimates of scale and noise are taken seriously."""


@dataclass(frozen=True, kw_only=True)
class TideParameters(Parameters):
    """There is nothing to tune; these exist to take `tide` apart."""

    without: tuple[str, ...] = parameter((), "families of hypotheses to leave out")
    uniform_weights: bool = parameter(False, "all hypotheses alike, instead of by likelihood")
    births: bool = parameter(True, "whether new hypotheses are born near good ones")
    share: float = parameter(1e-5, "alpha, the weight given back to the prior in every round", gt=0, lt=1)
    exploration: float = parameter(
        0.5, "c of the share min(0.05, c / (t + 1)) of families drawn uniformly", ge=0
    )
    window: int = parameter(2048, "past rounds kept for newborn hypotheses", ge=64)


class Tide:
    """Posterior sampling over a mixture of hypotheses about time."""

    not_finite = frozenset({"log_weights", "last", "rounds.recent", "rounds.network", "scale.scale"})

    def __init__(self, parameters: TideParameters, shape: ProblemShape, streams: Streams) -> None:
        unknown = [name for name in parameters.without if name not in GROUP_PRIOR]
        if unknown:
            raise ParameterError(
                f"without: there is no family '{unknown[0]}'; families: {', '.join(GROUP_PRIOR)}"
            )
        self.parameters = parameters
        self._n_arms = shape.n_arms
        self._rng = streams.generator("choices")
        self._contexts = ContextMap(shape)
        layout = Layout(shape.n_arms, self._contexts.dim, self._contexts.shared)
        kept = pools(layout, parameters.without)
        slots = [list(pool.room) for pool in kept for _ in range(len(pool.initial) + pool.spare)]
        self._bank = HypothesisBank(layout, slots, NoisePrior())
        self._births = Births(self._bank, kept, network="network" not in parameters.without)
        self._groups = self._births.groups
        self._prior = self._births.initial_prior()
        self._network: NetworkHypothesis | None = None
        if "network" not in parameters.without:
            self._network = NetworkHypothesis(
                self._contexts, shape.n_arms, min(1024, parameters.window // 2), streams.generator("network")
            )
        self._log_weights = _log(self._prior)
        self._evidence = 0.0
        self._scale = RewardScale(1 if self._contexts.shared else shape.n_arms)
        self._rounds = RecentRounds(
            parameters.window, min(1024, parameters.window), self._contexts.dim, self._contexts.raw_dim
        )
        self._history = WeightHistory(len(self._groups))
        self._last_arm, self._last_reward, self._last_success = -1, math.nan, -1
        asked = any(pool.group == Turns.group for pool in kept)
        self._turns = TurnFilter(shape.n_arms) if asked else None

    def choose(self, context: Context) -> int:
        """Draw a hypothesis, draw its weights, play the best available arm."""
        raw = self._contexts.raw(context)
        if self._rounds.count == 0 and self._contexts.shared:
            self._contexts.fit(raw)
        X = self._rows(raw)
        available = self._available(context)
        if self._rng.random() < min(0.05, self.parameters.exploration / (self._rounds.count + 1)):
            chances = self._within_random_group()
        else:
            chances = self._weights()
        m = int(np.searchsorted(np.cumsum(chances), self._rng.random() * chances.sum(), side="right"))
        m = min(m, int(np.flatnonzero(chances)[-1]))
        if m == self._bank.size and self._network is not None:
            draws = self._network.draw(X, self._scale.binary, self._rng)
        else:
            draws = self._bank.draw(m, self._moment(), X, self._scale.binary, self._rng)
        return int(np.argmax(np.where(available, draws, -np.inf)))

    def learn(self, event: Event) -> None:
        """Every hypothesis is scored on the reward, then learns it; weights follow Bayes' rule."""
        raw, arm, reward = self._checked(event)
        t = self._rounds.count
        stale = not self._scale.fits(reward)
        chosen = raw[arm if self._contexts.shared else 0]
        X = self._rows(raw)
        y, binary = float(self._scale.standardise(reward)), self._scale.binary and not stale
        scores = self._scores(self._bank.observe(self._moment(), arm, X[arm], y, binary))
        by_network = math.nan
        if self._network is not None:
            scores[-1] = self._network.observe(arm, X, y, binary)
            by_network = scores[-1] - (0.0 if binary else math.log(self._scale.spread))
        before = self._evidence
        self._evidence += self._reweigh(scores)
        kept = np.array([self._last_arm, self._last_reward, self._last_success, self._belief(arm)])
        self._rounds.append(
            recent=kept, arm=arm, raw=chosen, x=X[arm], reward=reward, evidence=before, network=by_network
        )
        self._scale.add(0 if self._contexts.shared else arm, reward)
        self._last_arm, self._last_reward = arm, reward
        success = reward > self._scale.threshold
        if success:
            self._last_success = arm
        if self._turns is not None:
            self._turns.add(arm, success)
        t += 1
        if stale or self._rebuild_is_due(t):
            self._rebuild(raw)
        elif t >= _TRUSTED and _is_power_of_two(t):
            self._bank.refresh_ridges()
        self._train_network(t)
        if self.parameters.births and _birth_is_due(t):
            self._give_birth()
        if self._history.due(t):
            self._history.record(t, self.group_weights())

    def group_weights(self) -> FloatArray:
        """The weight of each family."""
        weights = np.exp(self._log_weights)
        totals = np.bincount(self._births.group_of, weights=weights, minlength=len(self._groups))
        return totals.astype(float)

    def explain(self, most: int = 5) -> Explanation:
        """The leading hypotheses in words, and the weights of families over the rounds."""
        totals: dict[tuple[str, str], float] = {}
        weights = np.exp(self._log_weights)
        for m in np.argsort(-weights, kind="stable")[:200]:
            if m < self._bank.size and not self._bank.arrays.active[m]:
                continue
            key = self._words(int(m))
            totals[key] = totals.get(key, 0.0) + float(weights[m])
        ranked = sorted(totals.items(), key=lambda item: -item[1])[:most]
        rounds, table = self._history.table()
        beliefs = tuple(Belief(words, group, weight) for (words, group), weight in ranked)
        return Explanation(beliefs, rounds, self._groups, table)

    def _words(self, m: int) -> tuple[str, str]:
        if m == self._bank.size:
            return "something that only the recurrent network sees", "network"
        hypothesis = hypothesis_of(self._bank.spec(m))
        return hypothesis.words, hypothesis.group

    def diagnostics(self) -> Diagnostics:
        """The leading beliefs, the weights of families over the rounds, and how many hypotheses there are."""
        told = self.explain()
        return {
            "explanation": told.beliefs[0].words,
            "explanation_weight": told.beliefs[0].weight,
            "beliefs": told.plain(),
            "hypotheses": int(self._bank.arrays.active.sum()),
            "births": self._births.count,
            "failed_trainings": 0 if self._network is None else self._network.failures,
        }

    def snapshot(self) -> Snapshot:
        """The whole state."""
        return {
            "policy": "tide",
            "rng": generator_state(self._rng),
            "contexts": self._contexts.snapshot(),
            "bank": self._bank.snapshot(),
            "births": self._births.snapshot(),
            "scale": self._scale.snapshot(),
            "rounds": self._rounds.snapshot(),
            "history": self._history.snapshot(),
            "prior": self._prior.copy(),
            "log_weights": self._log_weights.copy(),
            "evidence": self._evidence,
            "network": None if self._network is None else self._network.snapshot(),
            "turns": None if self._turns is None else self._turns.snapshot(),
            "last": [self._last_arm, self._last_reward, self._last_success],
        }

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot of the same policy on a problem of the same shape."""
        if snapshot.get("policy") != "tide":
            raise SnapshotError("the snapshot is not one of the policy tide")
        try:
            self._bank.restore(snapshot["bank"])
            self._scale.restore(snapshot["scale"])
            self._contexts.restore(snapshot["contexts"])
            self._births.restore(snapshot["births"])
            self._rounds.restore(snapshot["rounds"])
            self._history.restore(snapshot["history"])
            self._prior = np.array(snapshot["prior"])
            self._log_weights = np.array(snapshot["log_weights"])
            self._evidence = float(snapshot["evidence"])
            if self._network is not None:
                self._network.restore(snapshot["network"])
            if self._turns is not None:
                self._turns.restore(snapshot["turns"])
            self._last_arm, self._last_reward, self._last_success = snapshot["last"]
        except (KeyError, TypeError, ValueError) as error:
            raise SnapshotError(f"the snapshot of tide is damaged ({error})") from None
        restore_generator(self._rng, snapshot["rng"])

    def _checked(self, event: Event) -> tuple[FloatArray, int, float]:
        if isinstance(event.arm, bool) or not 0 <= event.arm < self._n_arms:
            raise ArmError(f"arm must be a whole number from 0 to {self._n_arms - 1}, got {event.arm!r}")
        if not math.isfinite(event.reward) or abs(event.reward) > 1e100:
            raise RewardError(f"a reward must be a finite number, got {event.reward}")
        return self._contexts.raw(event.context), int(event.arm), float(event.reward)

    def _available(self, context: Context) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        if context.available is None:
            return np.ones(self._n_arms, bool)
        mask = np.asarray(context.available, dtype=bool)
        if mask.shape != (self._n_arms,) or not mask.any():
            raise ContextError(f"available must be a mask of {self._n_arms} arms with at least one of them")
        return mask

    def _rows(self, raw: FloatArray) -> FloatArray:
        """The context vector (1, z) of every arm."""
        X = self._contexts(raw)
        return X if self._contexts.shared else np.repeat(X, self._n_arms, axis=0)

    def _scores(self, by_bank: FloatArray) -> FloatArray:
        """Room for the network's score after those of the bank."""
        return by_bank if self._network is None else np.append(by_bank, math.nan)

    def _moment(self) -> Moment:
        reward = float(standard_memory(np.array(self._last_reward), self._scale.centre, self._scale.spread))
        beliefs = () if self._turns is None else tuple(self._turns.beliefs.tolist())
        return Moment(self._rounds.count, self._last_arm, reward, self._last_success, beliefs)

    def _belief(self, arm: int) -> float:
        return 0.0 if self._turns is None else float(self._turns.beliefs[arm])

    def _weights(self) -> FloatArray:
        return np.exp(self._log_weights)

    def _within_random_group(self) -> FloatArray:
        group = int(self._rng.integers(len(self._groups)))
        log_weights = np.where(self._births.group_of == group, self._log_weights, -np.inf)
        top = log_weights.max()
        return self._weights() if top == -np.inf else np.exp(log_weights - top)

    def _reweigh(self, scores: FloatArray) -> float:
        if math.isnan(scores[-1]):  # a sleeping hypothesis is taken to predict as the others do together
            awake = self._log_weights[:-1]
            scores[-1] = np.logaddexp.reduce(awake + scores[:-1]) - np.logaddexp.reduce(awake)
        if self.parameters.uniform_weights:
            scores = np.where(np.isfinite(scores), 0.0, -np.inf)
        return float(kernels.reweigh(self._log_weights, scores, self._prior, self.parameters.share))

    def _rebuild_is_due(self, t: int) -> bool:
        """At powers of two: always in the first rounds, then when contexts or rewards turn out otherwise."""
        if not _is_power_of_two(t):
            return False
        if t <= self._rounds.raw_capacity and self._contexts.raw_dim:
            return t <= 64 or t % 3 == 1  # powers of four
        return t <= _TRUSTED or self._scale.is_stale()

    def _rebuild(self, raw: FloatArray) -> None:
        """A new scale and context map; every hypothesis lives through the window again under them."""
        rounds, bank = self._rounds, self._bank
        old_spread, was_binary = self._scale.spread, self._scale.binary
        self._scale.refit(rounds.rewards)
        if was_binary and not self._scale.binary:
            rounds.silence_network()  # probabilities do not compare with densities
        if rounds.count <= rounds.raw_capacity:
            # Vectors of arms that were not chosen tell as much about contexts as those of arms that were.
            self._contexts.fit(np.concatenate([rounds.raw, raw]) if self._contexts.shared else rounds.raw)
            rounds.set_x(self._contexts(rounds.raw))
        self._last_success = rounds.mark_successes(self._scale.threshold)
        if self._turns is not None:
            rounds.set_beliefs(self._turns.replay(rounds.arms, rounds.rewards > self._scale.threshold))
        window = rounds.window(self._scale.centre, self._scale.spread)
        scores = np.full((len(rounds), len(self._prior)), -np.inf)
        for m in np.flatnonzero(bank.arrays.active):
            if rounds.count > _TRUSTED:
                bank.adapt_ridge(int(m), old_spread / self._scale.spread)
            bank.reset(int(m))
            scores[:, m] = bank.replay(int(m), window, self._scale.binary)
        if self._network is not None:
            scores[:, -1] = rounds.network + (0.0 if self._scale.binary else math.log(self._scale.spread))
            self._network.rescale(rounds, self._scale.binary, self._scale.centre, self._scale.spread)
        self._log_weights = _log(self._prior)
        gains = np.array([self._reweigh(row) for row in scores])
        self._evidence = float(gains.sum())
        rounds.set_evidence(np.cumsum(gains) - gains)

    def _train_network(self, t: int) -> None:
        if self._network is not None and self._network.training_is_due(t, math.exp(self._log_weights[-1])):
            scale = self._scale
            self._network.train(self._rounds, scale.binary, scale.centre, scale.spread)

    def _give_birth(self) -> None:
        window = self._rounds.window(self._scale.centre, self._scale.spread)
        gain = self._evidence - self._rounds.first_evidence
        self._evidence += self._births.seek(window, self._scale.binary, gain, self._log_weights, self._prior)


def _birth_is_due(t: int) -> bool:
    """At 24 and 32, then every 32 rounds to 512, every 128 to 1024, every 256 for ever after."""
    return t == 24 or (t >= 32 and t % (32 if t <= 512 else 128 if t <= 1024 else 256) == 0)


def _is_power_of_two(t: int) -> bool:
    return t & (t - 1) == 0


def _log(weights: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        return np.log(weights)
