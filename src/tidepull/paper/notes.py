"""What is known of how the paper's numbers came about, from the authors' published code; shown beside ours."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from tidepull.reporting.frames import Frame

OWN_WORLDS: Final = (
    "The paper played all trials in one realisation of each environment; here every trial has a world of its own, "
    "so our standard deviations are wider."
)
ONE_WORLD: Final = (
    "All trials of a problem were played in one realisation of it, as the paper's were; the seeds vary the policies. "
    "It is not the paper's own realisation."
)
GENERAL: Final = (
    "The paper's linear rows are expected (pseudo) regret; its other rows use realised rewards, which adds noise of "
    "about the reward's standard deviation times the root of the horizon (6 to 30). Ours is pseudo-regret.",
    "The hyperparameters that the paper's table calls variances are used as standard deviations, as in its code.",
    "The paper's row of flipping-digits measures another problem than its text describes, and its column of D-LinUCB "
    "mixes code with and without a slip: what differs there does not differ by chance (see each problem).",
)

_LENGTHS = (
    "S and L of D-LinUCB and SW-LinUCB are the lengths of the longest w and of the longest vector in the prepared "
    "file, so that their confidence bounds hold; the paper does not say which it used."
)

BY_PROBLEM: Final = MappingProxyType(
    {
        "flipping-digits": (
            "In the published code a slip of operator precedence makes even labels pay arm 1 and odd labels pay no "
            "arm in flipped phases, so the paper's row measures another problem than its text describes. We follow "
            'the text; the parameter `variant = "published-code"` gives the other.'
        ),
        "flipping-vector": (
            "The paper's D-LinUCB comes out of the published code with a slip in its second matrix; ours has the "
            "algorithm's own."
        ),
        "rotating-vector-32": (
            "The paper's D-LinUCB figure needs the algorithm's own second matrix and the arc length as variation "
            "budget; the other linear rows need the slip in the published code. Its column mixes two versions."
        ),
        "rotating-vector-2048": (
            "The paper's D-LinUCB comes out of the published code with a slip in its second matrix; ours has the "
            "algorithm's own."
        ),
        "circular-markov-chain": (
            "Outcomes of the recurrent network are bimodal: a trial either follows the chain or loses it, as the paper "
            "says of its default setting too. Means over ten trials move a lot."
        ),
        "criteo-partial-flip": _LENGTHS,
        "criteo-flipping": _LENGTHS,
    }
)
"""Problem to a sentence or two."""


def general(frame: Frame) -> tuple[str, ...]:
    """What holds for all rows: how many worlds there were, what regret is, what variances are."""
    rows = [row for study in frame.studies for group in study.groups for row in group.rows]
    one_world = any(row.problem_seed != row.seed for row in rows)
    return (ONE_WORLD if one_world else OWN_WORLDS, *GENERAL)
