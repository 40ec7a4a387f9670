"""Less variance by what was known before a decision: CUPED (Deng, Xu, Kohavi and Walker, Improving the
Sensitivity of Online Controlled Experiments by Utilizing Pre-Experiment Data, WSDM 2013).

A ridge regression on the hour, the weekday and the context predicts each reward from earlier blocks
of decisions alone. What it predicts is the same for both groups, so that taking it off changes no
expected difference between them.
"""

from __future__ import annotations

import numpy as np

from tidepull.agent.log import DecisionLog
from tidepull.agent.records import DecisionGroup
from tidepull.types import FloatArray, IntArray

DAY = 86_400.0
PENALTY = 10.0
"""Of squared coefficients: about what ten decisions say."""

GROWTH = 1.2
"""The regression is computed again when there are so many times more decisions."""


def predicted_rewards(log: DecisionLog, block: IntArray) -> FloatArray:
    """The reward of every decision as earlier blocks predict it; 0 in the first block. The rows of
    the log are in the order of their blocks, and have rewards."""
    features, weights = _features(log), _weights(log)
    starts = np.searchsorted(block, np.arange(int(block[-1]) + 2))
    predicted: FloatArray = np.zeros(len(log))
    gram = PENALTY * np.eye(features.shape[1])
    gram[0, 0] = 1e-6
    moment, done = np.zeros(features.shape[1]), 0
    coefficients: FloatArray = np.zeros(features.shape[1])
    for start, end in zip(starts[1:-1].tolist(), starts[2:].tolist(), strict=True):
        if start >= GROWTH * done:
            rows = slice(done, start)
            weighted = features[rows] * weights[rows, None]
            gram += weighted.T @ features[rows]
            moment += weighted.T @ log.reward[rows]
            coefficients, done = np.linalg.solve(gram, moment), start
        predicted[start:end] = features[start:end] @ coefficients
    return predicted


def _features(log: DecisionLog) -> FloatArray:
    """One, the hour and the weekday as waves, and the context as policies see it."""
    day, week = 2 * np.pi * log.at / DAY, 2 * np.pi * log.at / (7 * DAY)
    angles = [day, 2 * day, 3 * day, week, 2 * week]
    waves = [wave(angle) for angle in angles for wave in (np.sin, np.cos)]
    varying = log.x[:, log.x.any(axis=0)]
    return np.column_stack([np.ones(len(log)), *waves, varying])


def _weights(log: DecisionLog) -> FloatArray:
    """Both groups weigh the same in all: the smaller one has most of the variance."""
    control = log.group == DecisionGroup.CONTROL
    share = np.clip(log.control_share, 0.01, 0.99)
    weights: FloatArray = np.where(control, 0.5 / share, 0.5 / (1 - share))
    return weights / max(1.0, float(weights.max()))
