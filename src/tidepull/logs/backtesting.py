"""`backtest`: what other policies would have earned, with intervals, and when not to believe it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from tidepull.errors import DataError, ParameterError
from tidepull.logs.estimators import (
    ESTIMATORS,
    FEW,
    Scores,
    WeightDiagnostics,
    interval,
    model_warnings,
    rows_warning,
    weights_of,
    weights_warning,
)
from tidepull.logs.log import Log, list_html, slices, table_html
from tidepull.logs.models import RewardModel
from tidepull.logs.policies import Target, always, play, terms_of, uniform
from tidepull.protocols import Learner
from tidepull.registry import Named, is_named
from tidepull.types import IntArray

CLIP = 10.0
"""Weights beyond this are clipped, or switched to the model."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """An estimate of the mean reward of a policy, with its interval.

    Parameters
    ----------
    policy : str
        Name of the policy.
    estimator : str
        Name of the estimator.
    value : float
        The estimate.
    low, high : float
        The interval.
    rows : int
        The number of decisions behind the estimate.
    by : str, default: ""
        The kind of slice of time: "day", "hour" or "weekday". It is empty for the whole log.
    slice : str, default: ""
        The slice of time. It is empty for the whole log.
    warning : str, default: ""
        Why the interval may not hold. It is empty where the interval is claimed to hold.
    """

    policy: str
    estimator: str
    value: float
    low: float
    high: float
    rows: int
    by: str = ""
    slice: str = ""
    warning: str = ""


@dataclass(frozen=True, slots=True)
class Backtest:
    """The result of `backtest`.

    Parameters
    ----------
    estimates : tuple of Estimate
        All estimates.
    weights : mapping of str to WeightDiagnostics
        For each fixed policy the diagnostics of its weights.
    warnings : mapping of str to tuple of str
        For each policy sentences about when not to trust its estimates.
    left_out : tuple of str, default: ()
        Sentences about rows that were left out.
    settings : mapping, optional
        The arguments of `backtest`, and the number of rows.
    """

    estimates: tuple[Estimate, ...]
    weights: Mapping[str, WeightDiagnostics]
    warnings: Mapping[str, tuple[str, ...]]
    left_out: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)

    def rows(self) -> list[dict[str, Any]]:
        """Return the estimates as a list of dictionaries, as for a data frame."""
        return [asdict(estimate) for estimate in self.estimates]

    def __str__(self) -> str:
        """Return a table of the estimates over the whole log, and all caveats."""
        head = f"{'policy':20}{'estimator':12}{'reward':>10}   {'95% interval':24}caveat"
        lines = [
            f"{one.policy:20}{one.estimator:12}{one.value:>10.4g}   "
            f"{f'{one.low:.4g} to {one.high:.4g}':24}{one.warning}".rstrip()
            for one in self.estimates
            if not one.by
        ]
        return "\n".join([head, *lines, *self._sentences])

    @property
    def _sentences(self) -> list[str]:
        warnings = [
            f"{policy}: {sentence}"
            for policy, sentences in self.warnings.items()
            for sentence in sentences
        ]
        return [*self.left_out, *warnings]

    def _repr_html_(self) -> str:
        whole = [row for row in self.rows() if not row["by"]]
        shown = [{name: row[name] for name in row if name not in ("by", "slice")} for row in whole]
        return table_html(shown) + list_html(self._sentences)

    def of(self, policy: str, estimator: str) -> Estimate:
        """Return the estimate over the whole log.

        Parameters
        ----------
        policy : str
            Name of the policy.
        estimator : str
            Name of the estimator.

        Returns
        -------
        Estimate
            The estimate.

        Raises
        ------
        ParameterError
            If there is no such estimate.
        """
        for one in self.estimates:
            if (one.policy, one.estimator, one.by) == (policy, estimator, ""):
                return one
        raise ParameterError(f"there is no estimate of '{policy}' by '{estimator}'")


def backtest(
    log: Log,
    policies: Sequence[Named | Learner | Target],
    *,
    estimators: Sequence[str] = tuple(ESTIMATORS),
    by: Sequence[str] = (),
    clip: float = CLIP,
    block: int | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> Backtest:
    """Estimate what each policy would have earned on the decisions of a log.

    The policy that wrote the log comes first, as `logged`.

    Parameters
    ----------
    log : Log
        Decisions with rewards and propensities. Rows without are left out.
    policies : sequence of str, (str, dict), Learner or Target
        Ids such as `tide`, `(id, {parameters})` pairs, objects that choose and learn, or fixed
        policies: `random`, `arm:LABEL`, a `Target`.
    estimators : sequence of str, default: ("ips", "snips", "clipped", "dm", "dr", "switch-dr")
        Names of estimators for fixed policies.
    by : sequence of str, default: ()
        Slices of time to estimate as well: "day", "hour", "weekday".
    clip : float, default: 10.0
        The weight beyond which `clipped` clips and `switch-dr` uses the model.
    block : int, optional
        How many neighbouring rows are resampled together. By default it is the cube root of the
        number of rows.
    level : float, default: 0.95
        The confidence level of intervals.
    seed : int, default: 0
        The seed of policies and intervals.

    Returns
    -------
    Backtest
        Estimates with intervals, weight diagnostics and warnings.

    Raises
    ------
    DataError
        If the log has no propensities, no rewards or one arm only.
    ParameterError
        If an argument is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> from tidepull import logs
    >>> arms, rewards = np.arange(200) % 2, np.arange(200) // 2 % 2
    >>> log = logs.read({"action": arms, "reward": rewards, "pscore": np.full(200, 0.5)})
    >>> float(logs.backtest(log, ["arm:1"], estimators=["ips"]).of("arm:1", "ips").value)
    0.5
    """
    if not isinstance(log, Log):
        raise ParameterError(f"log must be a Log, which tidepull.logs.read makes, got {log!r}")
    if isinstance(policies, str):
        raise ParameterError(f"policies must be a list, such as ['random'], got {policies!r}")
    _check(estimators, by, clip, block, level, log)
    used, left_out = usable(log)
    model = RewardModel(used)
    judge = _Judge(used, model, estimators, by, clip, block, level, seed)
    judge.add("logged", "mean", Scores(used.reward, np.ones(len(used))), np.arange(len(used)))
    for policy in policies:
        if isinstance(policy, Target):
            judge.fixed(policy)
        elif policy == "random":
            judge.fixed(uniform())
        elif isinstance(policy, str) and policy.startswith("arm:"):
            judge.fixed(always(policy.removeprefix("arm:")))
        else:
            judge.learning(policy)
    settings = {"clip": clip, "block": block, "level": level, "seed": seed, "rows": len(used)}
    return Backtest(tuple(judge.estimates), judge.weights, judge.warnings, left_out, settings)


def usable(log: Log) -> tuple[Log, tuple[str, ...]]:
    """The rows with a reward and a propensity, and what was left out."""
    source = log.reading.source
    if log.n_arms < 2:
        raise DataError(
            f"{source} has one arm only, '{log.arms[0]}'; say which others there were (--arms)"
        )
    if log.propensity is None:
        raise DataError(
            f"{source} has no propensities; name their column (--propensity), or say --uniform if "
            "all arms had equal probability"
        )
    unpaid, unknown = np.isnan(log.reward), np.isnan(log.propensity)
    keep = ~unpaid & ~unknown
    if not keep.any():
        raise DataError(
            f"{source} has no row with a reward and a propensity; nothing can be estimated"
        )
    sentences = []
    if unpaid.any():
        sentences.append(f"{int(unpaid.sum()):,} decisions without a reward are left out")
    if (unknown & ~unpaid).any():
        sentences.append(
            f"{int((unknown & ~unpaid).sum()):,} decisions without a propensity are left out"
        )
    paid = log.reward[keep]
    if paid.min() == paid.max():
        sentences.append(f"every reward is {paid[0]:g}: no policy can be told from another")
    return (log if keep.all() else log.where(keep)), tuple(sentences)


class _Judge:
    """Collects the estimates of one backtest."""

    def __init__(
        self, log: Log, model: RewardModel, estimators: Sequence[str], by: Sequence[str], clip: float,
        block: int | None, level: float, seed: int,
    ) -> None:  # fmt: skip
        self._log, self._model, self._estimators = log, model, estimators
        self._clip, self._block, self._level, self._seed = clip, block, level, seed
        self._varies = bool(log.reward.min() < log.reward.max())
        self._slices = {
            name: slices(log.time, name, log.timezone) for name in by if log.time is not None
        }
        self.estimates: list[Estimate] = []
        self.weights: dict[str, WeightDiagnostics] = {}
        self.warnings: dict[str, tuple[str, ...]] = {}

    def fixed(self, target: Target) -> None:
        """A policy that does not learn."""
        name = self._new(target.name)
        rows, uncovered = terms_of(self._log, target, self._model, self._clip)
        self.weights[name] = weights_of(rows.weight, uncovered)
        doubts = model_warnings(rows, self._block, self._seed) if self._varies else []
        self.warnings[name] = (*self.weights[name].warnings(), *doubts)
        for estimator in self._estimators:

            def warning_of(some: Any, estimator: str = estimator) -> str:
                return weights_warning(estimator, rows.weight[some], self._clip, uncovered)

            self.add(
                name, estimator, ESTIMATORS[estimator](rows), np.arange(len(self._log)), warning_of
            )

    def learning(self, policy: Named | Learner) -> None:
        """A policy that learns while it plays."""
        name = self._new(_name(policy))
        played = play(self._log, policy, self._model, seed=self._seed)
        self.add(name, "replay", played.replay, played.rows)
        self.add(name, "replay-dr", played.dr, played.counted)
        sentences = [f"it learnt from {len(played.rows):,} of {len(self._log):,} decisions"]
        if len(played.rows) < FEW:
            sentences.append(
                "so few rounds say little of what it would do later: do not believe it"
            )
        if played.clipped > 0.01:
            sentences.append(
                f"{played.clipped:.0%} of the logged chances were too small to be evened out"
            )
        self.warnings[name] = tuple(sentences)

    def add(
        self,
        policy: str,
        estimator: str,
        scores: Scores,
        rows: IntArray,
        warning_of: Callable[[Any], str] = lambda some: rows_warning(int(some.sum())),
    ) -> None:
        """The estimate over the whole log, and in every slice; `warning_of(some)` is about some of
        its rows."""
        everything = np.ones(len(rows), bool)
        self.estimates.append(self._estimate(policy, estimator, scores, warning_of(everything)))
        for by, (places, names) in self._slices.items():
            here = places[rows]
            for n, name in enumerate(names):
                some = here == n
                if some.any():
                    part = scores.where(some)
                    self.estimates.append(
                        self._estimate(policy, estimator, part, warning_of(some), by, name)
                    )

    def _estimate(
        self,
        policy: str,
        estimator: str,
        scores: Scores,
        warning: str,
        by: str = "",
        slice: str = "",
    ) -> Estimate:
        low = high = float("nan")
        if self._varies:
            low, high = interval(scores, block=self._block, level=self._level, seed=self._seed)
        rows = len(scores.top)
        return Estimate(policy, estimator, scores.value, low, high, rows, by, slice, warning)

    def _new(self, name: str) -> str:
        """A name that no other policy of this backtest has."""
        taken = {estimate.policy for estimate in self.estimates}
        count = 2
        unique = name
        while unique in taken:
            unique, count = f"{name} ({count})", count + 1
        return unique


def _name(policy: Named | Learner) -> str:
    if is_named(policy):
        id, values = (policy, {}) if isinstance(policy, str) else policy
        return ":".join([id, *(f"{name}={value}" for name, value in values.items())])
    return type(policy).__name__


def _check(
    estimators: Iterable[str],
    by: Iterable[str],
    clip: float,
    block: int | None,
    level: float,
    log: Log,
) -> None:
    for name in estimators:
        if name not in ESTIMATORS:
            raise ParameterError(f"there is no estimator '{name}'; one of {', '.join(ESTIMATORS)}")
    for name in by:
        if name not in ("day", "hour", "weekday"):
            raise ParameterError(f"by must be 'day', 'hour' or 'weekday', got {name!r}")
        if log.time is None or not log.dated:
            raise DataError(
                f"{log.reading.source} has no dates, so there is nothing to slice by {name}"
            )
    if not clip > 0:
        raise ParameterError(f"clip must be above 0, got {clip!r}")
    if block is not None and block < 1:
        raise ParameterError(f"block must be a whole number of at least 1, got {block!r}")
    if not 0 < level < 1:
        raise ParameterError(f"level must be between 0 and 1, got {level!r}")
