"""From the kernel's numbers back to the hypothesis they stand for."""

from __future__ import annotations

from tidepull.hypotheses.discounted import Discounted
from tidepull.hypotheses.fourier import Fourier
from tidepull.hypotheses.last_event import LastEvent
from tidepull.hypotheses.last_success import LastSuccess
from tidepull.hypotheses.seasons import Seasons
from tidepull.hypotheses.spec import (
    ADDED_SINE,
    LAST_EVENT,
    LAST_SUCCESS,
    NO_CLOCK,
    SINE,
    TURNS,
    Hypothesis,
    Spec,
)
from tidepull.hypotheses.square import Square
from tidepull.hypotheses.stationary import Stationary
from tidepull.hypotheses.turns import Turns


def hypothesis_of(spec: Spec) -> Hypothesis:
    """The inverse of `Hypothesis.spec`.

    >>> hypothesis_of(Square(10.0).spec()).words
    'repeats every 20.0 rounds, in two phases'
    """
    if spec.memory == LAST_EVENT:
        return LastEvent(spec.contextual)
    if spec.memory == LAST_SUCCESS:
        return LastSuccess(spec.contextual)
    if spec.memory == TURNS:
        return Turns(spec.contextual)
    clocks = [_clock(spec, i) for i in range(2) if spec.shapes[i] != NO_CLOCK]
    if len(clocks) == 2:
        return Seasons(clocks[0], clocks[1], spec.shapes[1] == ADDED_SINE)
    if clocks:
        return clocks[0]
    return Stationary(spec.contextual) if spec.discount == 1 else Discounted(spec.discount, spec.contextual)


def _clock(spec: Spec, i: int) -> Fourier | Square:
    if spec.shapes[i] in (SINE, ADDED_SINE):
        return Fourier(spec.periods[i], spec.discount, spec.contextual)
    return Square(spec.periods[i], spec.offsets[i], spec.discount, spec.contextual)
