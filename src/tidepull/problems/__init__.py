"""The worlds of the paper; importing this package registers their ids."""

from __future__ import annotations

from tidepull.problems import (
    arms,
    change_points,
    classification,
    from_log,
    linear,
    markov,
    random_worlds,
    wall_clock,
)
from tidepull.problems.criteo import banners
from tidepull.registry import Entry, problems

__all__ = ["problems"]

problems.add(
    Entry(
        "flipping-gaussian",
        "8 Gaussian arms whose means change sign every 10 rounds",
        arms.FlippingGaussianParameters,
        arms.flipping_gaussian,
    )
)
problems.add(
    Entry(
        "flipping-bernoulli",
        "8 Bernoulli arms whose means change from p to 1 - p every 10 rounds",
        arms.FlippingBernoulliParameters,
        arms.flipping_bernoulli,
    )
)
problems.add(
    Entry(
        "sinusoidal-bernoulli",
        "5 Bernoulli arms on one sine of 32 rounds, each with its own phase",
        arms.SinusoidalBernoulliParameters,
        arms.sinusoidal_bernoulli,
    )
)
problems.add(
    Entry(
        "circular-markov-chain",
        "8 Gaussian arms of which one pays; when chosen, the next one does",
        markov.CircularMarkovChainParameters,
        markov.CircularMarkovChain,
    )
)
problems.add(
    Entry(
        "flipping-digits",
        "MNIST digits, 10 arms; the arm of digit k becomes that of 9 - k every 64 rounds",
        classification.FlippingDigitsParameters,
        classification.flipping_digits,
        horizon=4095,
    )
)
problems.add(
    Entry(
        "wall-following",
        "24 sensors of a robot in order of time, 4 arms; the arm of its movement pays",
        classification.WallFollowingParameters,
        classification.wall_following,
        horizon=5455,
        data=classification.wall_following_files,
    )
)
problems.add(
    Entry(
        "flipping-vector",
        "linear, 25 vectors in 50 dimensions; w becomes -w every 64 rounds",
        linear.FlippingVectorParameters,
        linear.flipping_vector,
    )
)
problems.add(
    Entry(
        "rotating-vector-32",
        "linear, 25 vectors in the plane; w turns once in 32 rounds",
        linear.RotatingVectorParameters,
        linear.rotating_vector,
        defaults={"period": 32},
    )
)
problems.add(
    Entry(
        "rotating-vector-2048",
        "linear, 25 vectors in the plane; w turns once in 2048 rounds",
        linear.RotatingVectorParameters,
        linear.rotating_vector,
        defaults={"period": 2048},
    )
)
problems.add(
    Entry(
        "criteo-partial-flip",
        "linear, 10 advertising banners in 50 dimensions; 60% of w's signs change once, in round 4000",
        banners.CriteoPartialFlipParameters,
        banners.criteo_partial_flip,
        horizon=10_000,
        data=banners.files,
    )
)
problems.add(
    Entry(
        "criteo-flipping",
        "linear, 10 advertising banners in 50 dimensions; w becomes -w every 256 rounds",
        banners.CriteoFlippingParameters,
        banners.criteo_flipping,
        horizon=10_000,
        data=banners.files,
    )
)
problems.add(
    Entry(
        "stationary-bernoulli",
        "8 Bernoulli arms that never change",
        arms.StationaryBernoulliParameters,
        arms.stationary_bernoulli,
    )
)
problems.add(
    Entry(
        "stationary-vector",
        "linear, 25 vectors in 8 dimensions; w never changes",
        linear.StationaryVectorParameters,
        linear.stationary_vector,
    )
)
problems.add(
    Entry(
        "wall-clock-bernoulli",
        "6 Bernoulli arms that follow hour and weekday, while traffic varies",
        wall_clock.WallClockParameters,
        wall_clock.WallClockArms,
        horizon=6000,
    )
)
problems.add(
    Entry(
        "change-points-bernoulli",
        "Bernoulli arms that change abruptly in unannounced rounds, one arm or all",
        change_points.ChangePointsParameters,
        change_points.change_points_bernoulli,
        horizon=5000,
    )
)
problems.add(
    Entry(
        "returning-regimes",
        "8 Bernoulli arms under three regimes that come back at irregular times",
        change_points.ReturningRegimesParameters,
        change_points.returning_regimes,
        horizon=6000,
    )
)
problems.add(
    Entry(
        "random-world",
        "a world drawn at random by its number: arms, vectors or labels under some drift or none",
        random_worlds.RandomWorldParameters,
        random_worlds.random_world,
        horizon=2048,
    )
)
problems.add(
    Entry(
        "steady-contexts",
        "contexts of 10 numbers, 10 arms, each with weights of its own that never change",
        linear.SteadyContextsParameters,
        linear.SteadyContexts,
        horizon=2000,
    )
)
problems.add(
    Entry(
        "class-blocks",
        "40 classes, 4 at a time in blocks of 300 rounds, 21 numbers; only the arm of the right class pays",
        classification.ClassBlocksParameters,
        classification.ClassBlocks,
        horizon=6000,
    )
)
problems.add(
    Entry(
        "wild-rewards",
        "8 Gaussian arms; 1% of rewards have heavy tails, or one is absurd",
        arms.WildRewardsParameters,
        arms.WildRewards,
        horizon=2000,
    )
)
problems.add(
    Entry(
        "from-log",
        "a model of your own log: its rows, with arms' means by context and time as far as the log tells",
        from_log.FromLogParameters,
        from_log.from_log,
        horizon=5000,
        data=from_log.files,
    )
)
