"""Besson, Kaufmann, Maillard and Seznec (JMLR 2022): five piecewise-stationary problems, and
GLR-klUCB.

The means are those of the authors' package SMPyBandits. `besson-glr` is GLR-klUCB with restarts of
single arms, told the horizon and the number of changes, as in their experiments
(`research/benchmarks/glr.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

from research.benchmarks.glr import GLRklUCB
from research.papers.tables import clicks, segments
from tidepull import Entry, add_policy, add_problem
from tidepull.parameters import Parameters, parameter
from tidepull.problems.arms import DriftingArms
from tidepull.random import Streams
from tidepull.types import FloatArray, ProblemShape

FIFTHS = (0.0, 0.2, 0.4, 0.6, 0.8)
PROBLEMS: dict[int, tuple[tuple[float, ...], tuple[tuple[float, ...], ...]]] = {
    1: (FIFTHS, ((.3, .5, .9), (.3, .2, .9), (.3, .2, .1), (.7, .2, .1), (.7, .5, .1))),
    2: (FIFTHS, ((.4, .5, .9), (.5, .4, .7), (.6, .3, .5), (.7, .2, .3), (.8, .1, .1))),
    3: (
        tuple(i / 9 for i in range(9)),
        (
            (.071, .041, .032, .030, .020, .011), (.055, .053, .032, .030, .008, .011),
            (.040, .063, .032, .030, .008, .011), (.040, .042, .043, .030, .008, .011),
            (.030, .032, .055, .030, .008, .011), (.030, .032, .020, .030, .008, .021),
            (.020, .022, .020, .045, .008, .021), (.020, .022, .020, .057, .008, .011),
            (.020, .022, .034, .057, .022, .011),
        ),
    ),
    4: (
        (0.0, 0.5, 0.625, 0.75, 0.875),
        ((.1, .5, .9), (.3, .4, .1), (.5, .3, .2), (.7, .4, .3), (.1, .5, .2)),
    ),
}  # fmt: skip
"""From the paper's number to the shares of the horizon at which segments begin, and their means."""
YAHOO = """
700 440 430 290 390, 630 440 440 290 400, 630 450 440 280 400, 630 450 460 280 340, 550 450
460 280 340, 550 490 450 240 350, 520 490 410 240 350, 520 480 410 200 370, 520 480 370 200
370, 450 500 370 200 350, 450 500 330 180 350, 455 470 330 180 350, 455 470 330 180 340, 370
420 300 200 340, 290 320 300 200 340, 310 260 320 200 330, 330 260 250 200 330, 330 350 230
200 300, 450 380 150 200 230, 450 380 200 140 230, 450 380 210 140 230, 490 420 290 140 160,
490 420 290 160 160, 490 420 300 140 160, 460 400 350 200 190, 460 400 350 200 290, 460 400
350 230 290, 460 370 340 230 330, 500 370 340 240 330, 500 400 340 240 330, 500 400 320 240
350, 490 400 290 235 350, 490 405 290 235 370, 470 380 295 250 370, 470 380 340 250 370, 470
410 340 250 380, 510 410 350 250 380, 510 400 350 250 380, 510 380 330 250 390, 470 380 330
260 390, 470 350 320 260 390, 450 330 320 240 380, 450 300 310 240 380, 450 270 310 240 380,
430 270 260 210 375, 430 300 260 210 375, 430 300 260 210 375, 430 340 250 210 375, 450 340
150 200 375, 450 330 160 200 360, 430 330 200 180 360, 430 350 200 180 320, 430 350 270 180
320, 400 350 270 180 320, 330 360 290 190 330, 280 360 290 190 330, 280 380 290 170 330, 320
380 340 170 300, 310 380 340 150 300, 310 400 340 150 300, 380 400 340 140 290, 380 380 340
120 260, 420 380 340 180 260, 420 370 340 180 190, 420 370 340 180 185, 430 370 340 230 170,
440 380 360 230 240, 440 380 360 230 290, 440 380 360 250 290, 440 370 340 250 340, 440 350
340 280 340, 440 350 340 280 370, 490 350 340 280 370, 480 320 370 280 370, 480 320 370 270
370, 470 290 370 270 380, 470 270 390 270 380, 470 230 390 300 390, 490 220 350 300 390, 490
310 350 300 390, 490 310 350 270 390, 490 320 330 270 390
"""
"""The 82 segments of problem 5 in ten-thousandths, from clicks on Yahoo's front page."""


def yahoo() -> tuple[tuple[float, ...], tuple[tuple[float, ...], ...]]:
    """Problem 5."""
    rows = [tuple(int(value) / 1e4 for value in row.split()) for row in YAHOO.split(",")]
    return tuple(i / len(rows) for i in range(len(rows))), tuple(rows)


@dataclass(frozen=True, kw_only=True)
class BessonParameters(Parameters):
    """Parameters of `besson`."""

    number: int = parameter(1, "number of the problem in the paper", ge=1, le=5)
    rounds: int = parameter(5000, "the horizon that the changes are spread over", ge=100)


def means(number: int, rounds: int) -> FloatArray:
    """A row for each round."""
    shares, rows = yahoo() if number == 5 else PROBLEMS[number]
    return segments(rows, [int(share * rounds) for share in shares], rounds)


def problem(parameters: BessonParameters, streams: Streams) -> DriftingArms:
    """Bernoulli arms."""
    return clicks(means(parameters.number, parameters.rounds), streams)


@dataclass(frozen=True, kw_only=True)
class GlrParameters(Parameters):
    """Parameters of `besson-glr`."""

    rounds: int = parameter(5000, "the horizon", ge=1)
    changes: int = parameter(4, "how often the world changes", ge=0)


def glr(parameters: GlrParameters, shape: ProblemShape, _: Streams) -> GLRklUCB:
    """It draws nothing at random."""
    return GLRklUCB(shape.n_arms, parameters.rounds, parameters.changes)


add_problem(Entry("besson", "piecewise-stationary Bernoulli arms", BessonParameters, problem))
add_policy(Entry("besson-glr", "GLR-klUCB, told the number of changes", GlrParameters, glr))
