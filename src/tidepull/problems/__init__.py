"""The problems by id, and how one is built; the module of a problem is imported when its id is
asked for."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from tidepull.errors import ProblemError
from tidepull.protocols import Problem
from tidepull.random import Streams
from tidepull.registry import Declared, Named, is_named, problems, require_members
from tidepull.types import Context, ProblemShape

__all__ = ["build_problem", "problems", "shape_of"]


_DECLARED: tuple[Declared, ...] = (
    ("flipping-gaussian", "arms", "FlippingGaussianParameters", "flipping_gaussian", {},
     "8 Gaussian arms whose means change sign every 10 rounds"),
    ("flipping-bernoulli", "arms", "FlippingBernoulliParameters", "flipping_bernoulli", {},
     "8 Bernoulli arms whose means change from p to 1 - p every 10 rounds"),
    ("sinusoidal-bernoulli", "arms", "SinusoidalBernoulliParameters", "sinusoidal_bernoulli", {},
     "5 Bernoulli arms on one sine of 32 rounds, each with its own phase"),
    ("circular-markov-chain", "markov", "CircularMarkovChainParameters", "CircularMarkovChain", {},
     "8 Gaussian arms of which one pays; when chosen, the next one does"),
    ("flipping-digits", "classification", "FlippingDigitsParameters", "flipping_digits", {"horizon": 4095},
     "MNIST digits, 10 arms; the arm of digit k becomes that of 9 - k every 64 rounds"),
    ("wall-following", "classification", "WallFollowingParameters", "wall_following",
     {"horizon": 5455, "data": "wall_following_files"},
     "24 sensors of a robot in order of time, 4 arms; the arm of its movement pays"),
    ("flipping-vector", "linear", "FlippingVectorParameters", "flipping_vector", {},
     "linear, 25 vectors in 50 dimensions; w becomes -w every 64 rounds"),
    ("rotating-vector-32", "linear", "RotatingVectorParameters", "rotating_vector", {"defaults": {"period": 32}},
     "linear, 25 vectors in the plane; w turns once in 32 rounds"),
    ("rotating-vector-2048", "linear", "RotatingVectorParameters", "rotating_vector", {"defaults": {"period": 2048}},
     "linear, 25 vectors in the plane; w turns once in 2048 rounds"),
    ("criteo-partial-flip", "criteo.banners", "CriteoPartialFlipParameters", "criteo_partial_flip",
     {"horizon": 10_000, "data": "files"},
     "linear, 10 advertising banners in 50 dimensions; 60% of w's signs change once, in round "
     "4000"),
    ("criteo-flipping", "criteo.banners", "CriteoFlippingParameters", "criteo_flipping",
     {"horizon": 10_000, "data": "files"},
     "linear, 10 advertising banners in 50 dimensions; w becomes -w every 256 rounds"),
    ("stationary-bernoulli", "arms", "StationaryBernoulliParameters", "stationary_bernoulli", {},
     "8 Bernoulli arms that never change"),
    ("stationary-vector", "linear", "StationaryVectorParameters", "stationary_vector", {},
     "linear, 25 vectors in 8 dimensions; w never changes"),
    ("authors-world", "authors", "AuthorsWorldParameters", "authors_world", {"data": "authors_files"},
     "a row of the paper's table in the authors' own environment; seed 0 is the paper's world"),
    ("wall-clock-bernoulli", "arms", "WallClockParameters", "WallClockArms", {"horizon": 6000},
     "6 Bernoulli arms that follow hour and weekday, while traffic varies"),
    ("change-points-bernoulli", "change_points", "ChangePointsParameters", "change_points_bernoulli", {"horizon": 5000},
     "Bernoulli arms that change abruptly in unannounced rounds, one arm or all"),
    ("returning-regimes", "change_points", "ReturningRegimesParameters", "returning_regimes", {"horizon": 6000},
     "8 Bernoulli arms under three regimes that come back at irregular times"),
    ("random-world", "random_worlds", "RandomWorldParameters", "random_world", {"horizon": 2048},
     "a world drawn at random by its number: arms, vectors or labels under some drift or none"),
    ("steady-contexts", "linear", "SteadyContextsParameters", "SteadyContexts", {"horizon": 2000},
     "contexts of 10 numbers, 10 arms, each with weights of its own that never change"),
    ("class-blocks", "classification", "ClassBlocksParameters", "ClassBlocks", {"horizon": 6000},
     "40 classes, 4 at a time in blocks of 300 rounds, 21 numbers; only the arm of the right class "
     "pays"),
    ("wild-rewards", "arms", "WildRewardsParameters", "wild_rewards", {"horizon": 2000},
     "8 Gaussian arms; 1% of rewards have heavy tails, or one is absurd"),
    ("shop", "shops", "ShopParameters", "shop", {"horizon": 6000},
     "a simulated shop of one of twelve kinds: visitors by the clock, arms that follow it, some "
     "rewards late"),
    ("stream", "streams", "StreamParameters", "stream", {"horizon": 17_520, "data": "stream_files"},
     "a real record by the hour in which every arm's reward is known: prices, car parks, flights "
     "and others"),
    ("from-log", "from_log", "FromLogParameters", "from_log", {"horizon": 5000, "data": "files"},
     "a model of your own log: its rows, with arms' means by context and time as far as the log "
     "tells"),
)  # fmt: skip
problems.declare(_DECLARED, "tidepull.problems")


def build_problem(problem: Named | Problem, *, seed: int) -> Problem:
    """Build a problem from its id, on its own stream of a seed.

    Parameters
    ----------
    problem : str, (str, dict) or Problem
        An id, an `(id, {parameters})` pair, or an object, which is returned as it is.
    seed : int
        The trial's seed; the problem draws from the stream "problem" of it.

    Returns
    -------
    Problem
        The problem, before its first round.

    Raises
    ------
    UnknownIdError
        If there is no problem of that id.
    ParameterError
        If a parameter does not exist, or its value is out of range.
    ProblemError
        If an object lacks one of the methods of a `Problem`.

    Examples
    --------
    >>> build_problem(("stationary-bernoulli", {"n_arms": 3}), seed=0).means().tolist()
    [0.1, 0.633333333333, 0.9]
    """
    if is_named(problem):
        entry, parameters = problems.resolve(problem)
        return entry.build(parameters, Streams(seed).child("problem"))
    require_members(problem, "problem", ("n_arms", "context", "means", "step"))
    return cast(Problem, problem)


def shape_of(problem: Problem) -> ProblemShape:
    """Read off a problem's first context what a policy may know in advance.

    Parameters
    ----------
    problem : Problem
        The problem; its `context` is called once, and no round is played.

    Returns
    -------
    ProblemShape
        Numbers of arms, of the observation and of each arm's features.

    Raises
    ------
    ProblemError
        If the context is none of tidepull's, or its arrays do not fit the number of arms.

    Examples
    --------
    >>> shape_of(build_problem("flipping-vector", seed=0))
    ProblemShape(n_arms=25, observation_dim=0, arm_dim=50)
    """
    context = problem.context()
    if not isinstance(context, Context):
        raise ProblemError(
            "the problem's context() must return a tidepull.Context, got a "
            f"{type(context).__name__}"
        )
    observed, shown = _shape(context.observation), _shape(context.arm_features)
    try:
        plain = ProblemShape(problem.n_arms)
    except ProblemError as error:
        raise ProblemError(f"the problem's {error}") from None
    if observed is not None and len(observed) != 1:
        raise ProblemError(
            f"the problem's observation must be one vector, got the shape {observed}; flatten it"
        )
    if shown is not None and (len(shown) != 2 or shown[0] != plain.n_arms):
        raise ProblemError(
            f"the problem's arm_features must be a matrix with a row for each of {plain.n_arms} "
            f"arms, got the shape {shown}"
        )
    return ProblemShape(plain.n_arms, observed[0] if observed else 0, shown[1] if shown else 0)


def _shape(values: Any) -> tuple[int, ...] | None:
    try:
        return None if values is None else np.shape(values)
    except ValueError:
        raise ProblemError(
            "the problem's contexts must hold arrays whose rows are equally long"
        ) from None
