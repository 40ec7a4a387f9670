"""The learners; importing this package registers their ids."""

from __future__ import annotations

from tidepull.parameters import NoParameters
from tidepull.policies import linear_ts, linear_ucb, presets, simple, specialist, thompson, tide, ucb
from tidepull.registry import Entry, policies

__all__ = ["policies"]

policies.add(Entry("random", "every arm equally likely", NoParameters, simple.RandomPolicy))
policies.add(Entry("fixed", "one arm for ever", simple.FixedParameters, simple.FixedPolicy))
policies.add(
    Entry(
        "oracle", "the best arm by the true means (the loop's privilege)", NoParameters, simple.OraclePolicy
    )
)
policies.add(
    Entry(
        "specialist",
        "told which rounds pay alike, with only the values to learn (the loop's privilege)",
        NoParameters,
        specialist.Specialist,
    )
)
policies.add(Entry("ucb", "UCB1: mean plus confidence width", ucb.UcbParameters, ucb.ucb))
policies.add(Entry("d-ucb", "UCB with discounted rounds", ucb.DiscountedUcbParameters, ucb.discounted_ucb))
policies.add(Entry("sw-ucb", "UCB on a sliding window", ucb.SlidingUcbParameters, ucb.sliding_ucb))
policies.add(
    Entry(
        "bernoulli-ts",
        "Thompson sampling for rewards of 0 and 1",
        thompson.BernoulliThompsonParameters,
        thompson.BernoulliThompson,
    )
)
policies.add(
    Entry("lin-ucb", "linear UCB (also known as OFUL)", linear_ucb.LinearUcbParameters, linear_ucb.linear_ucb)
)
policies.add(
    Entry(
        "lin-ts",
        "linear Thompson sampling",
        linear_ts.LinearThompsonParameters,
        linear_ts.LinearThompson,
    )
)
policies.add(
    Entry(
        "d-lin-ucb",
        "linear UCB with discounted rounds",
        linear_ucb.DiscountedLinearUcbParameters,
        linear_ucb.discounted_linear_ucb,
    )
)
policies.add(
    Entry(
        "sw-lin-ucb",
        "linear UCB on a sliding window",
        linear_ucb.SlidingLinearUcbParameters,
        linear_ucb.sliding_linear_ucb,
    )
)
policies.add(
    Entry("rnlps", "recurrent neural-linear posterior sampling", presets.RnlpsParameters, presets.rnlps)
)
policies.add(
    Entry("nlps", "feedforward neural-linear posterior sampling", presets.NlpsParameters, presets.nlps)
)
policies.add(
    Entry(
        "tide",
        "posterior sampling over many hypotheses about time, weighed by how well they predict",
        tide.TideParameters,
        tide.Tide,
        version=4,
    )
)
