"""What became of a claim: a line for each figure that its rule looks at, and the verdict that
follows from them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tidepull.reporting import published
from tidepull.reporting.frames import Group, Study
from tidepull.reporting.stats import Difference
from tidepull.reporting.tables import Cell, Table, interval, number
from tidepull.reporting.traces import Examined

HOLDS, FAILS, OPEN = "holds", "fails", "open"
NOT_JUDGED = "not judged"
"""Where trials are fewer or shorter than the paper's."""
AS_PUBLISHED = "-as-published"
"""The ending of a problem that was played in the authors' world with the slip of their code."""
NAN = float("nan")


@dataclass(frozen=True, slots=True)
class Measurement:
    """One figure with its 95% interval, and what it says by itself; `what` may say instead that
    trials are missing."""

    problem: str
    what: str
    outcome: str
    value: float = NAN
    low: float = NAN
    high: float = NAN
    trials: int = 0
    digits: int = 1


@dataclass(frozen=True, slots=True)
class Claim:
    """What the paper says about `topic`, the rule it is put to, what was measured, and the
    verdict; `shown` are the figures that words such as "slowly" need beside it, `aside` is another
    verdict, on the paper's own code."""

    topic: str
    says: str
    rule: str
    lines: tuple[Measurement, ...]
    outcome: str
    shown: str = ""
    beyond_paper: bool = False
    aside: str = ""

    @property
    def verdict(self) -> str:
        """The outcome, in short why it is open or that the data are synthetic, and figures."""
        synthetic = any("synthetic" in line.problem for line in self.lines)
        untested = " on synthetic data, not tested on the paper's" if synthetic else ""
        missing = {line.what for line in self.lines if math.isnan(line.value)}
        lacks = missing.pop() if len(missing) == 1 else "trials are missing" if missing else ""
        why = f": {lacks or self.reason}" if self.reason else ""
        figures = f" ({self.shown})" if self.shown else ""
        return f"{self.outcome}{untested}{why}{figures}{f'; {self.aside}' if self.aside else ''}"

    @property
    def reason(self) -> str:
        """Why a claim is open or not judged; empty otherwise."""
        if self.outcome not in (OPEN, NOT_JUDGED):
            return ""
        missing = [line for line in self.lines if math.isnan(line.value)]
        if missing:
            return "missing: " + "; ".join(f"{line.problem}: {line.what}" for line in missing)
        lines = [line for line in self.lines if line.outcome == OPEN]
        if not lines:
            return "nothing was played"
        least = min(lines, key=lambda line: line.trials)
        few = "one trial" if least.trials == 1 else f"{least.trials} trials"
        compared = " minus " in least.what
        return f"no difference that {few} can show" if compared else f"{few} cannot tell"

    def as_plain(self) -> dict[str, Any]:
        """For JSON: what is not known is None."""
        known = [
            {
                k: None if isinstance(v, float) and math.isnan(v) else v
                for k, v in asdict(line).items()
            }
            for line in self.lines
        ]
        return {**asdict(self), "lines": known, "reason": self.reason}


def concluded(
    topic: str, says: str, rule: str, lines: Sequence[Measurement], shown: str = ""
) -> Claim:
    """It fails as soon as one line does, and holds when all do."""
    return Claim(topic, says, rule, tuple(lines), worst(line.outcome for line in lines), shown)


def span(values: Sequence[float], form: str) -> str:
    """The least and the largest of some figures, as `format` writes them; empty where there are
    none."""
    ends = dict.fromkeys(format(end, form) for end in (min(values), max(values))) if values else ()
    return " to ".join(ends)


def worst(outcomes: Iterable[str]) -> str:
    """Not judged before fails before open before holds; open where there is nothing."""
    present = set(outcomes)
    order = (NOT_JUDGED, FAILS, OPEN, HOLDS)
    return next((outcome for outcome in order if outcome in present), OPEN)


def below(low: float, high: float, limit: float) -> str:
    """Whether something is below a limit, judged by its interval."""
    return HOLDS if high < limit else FAILS if low > limit else OPEN


def above(low: float, high: float, limit: float) -> str:
    """Whether something is above a limit, judged by its interval."""
    return below(-high, -low, -limit)


def distinct(lines: Iterable[Measurement]) -> list[Measurement]:
    """Each line once. Lines that say nothing have NaN, by which they differ from themselves from
    Python 3.13 on."""
    return list({repr(line): line for line in lines}.values())


def missing(problem: str, what: str) -> Measurement:
    """Trials that a rule needs and the store lacks."""
    return Measurement(problem, what, OPEN)


def too_short(study: Study, groups: Iterable[Group]) -> list[Measurement]:
    """A line for each reason not to judge: fewer rounds or trials than the paper's."""
    lines = []
    rounds = published.HORIZONS.get(study.problem)
    if rounds and study.horizon < rounds:
        text = f"trials of {study.horizon:,} rounds, where the paper has {rounds:,}"
        lines.append(Measurement(study.problem, text, NOT_JUDGED))
    for group in groups:
        if 0 < (count := len(group.rows)) < published.TRIALS:
            text = f"{count} trials of {group.name}, where the paper has {published.TRIALS}"
            lines.append(Measurement(study.problem, text, NOT_JUDGED))
    return lines


def difference(
    problem: str, d: Difference, outcome: str, trials: int, digits: int = 1
) -> Measurement:
    """A comparison of two policies as a line: regret of the first minus that of the second."""
    what = f"regret of {d.a} minus {d.b}"
    return Measurement(problem, what, outcome, d.mean, d.low, d.high, d.pairs or trials, digits)


def lines_table(claim: Claim, name: str) -> Table:
    """The figures of one claim."""
    rows = tuple(
        (
            Cell(line.problem),
            Cell(line.what),
            number(line.value, line.digits),
            interval(line.low, line.high, line.digits),
            number(line.trials or NAN, 0),
            Cell(line.outcome),
        )
        for line in claim.lines
    )
    columns = ("problem", "figure", "value", "95% interval", "trials", "says")
    return Table(name, "What was measured", columns, rows)


def verdicts_table(claims: Sequence[Claim]) -> Table:
    """All claims in one table."""
    rows = tuple(
        (
            Cell(f"{number}", number),
            Cell(claim.topic),
            Cell(claim.says),
            Cell(claim.verdict, best=True),
        )
        for number, claim in enumerate(claims, 1)
    )
    return Table(
        "claims",
        "What the paper says, and what came out here",
        ("no.", "about", "the paper says", "verdict"),
        rows,
    )


BEST_RNN, DEFAULT_RNN, BEST_NN, DEFAULT_NN = (
    "rnlps-best",
    "rnlps-default",
    "nlps-best",
    "nlps-default",
)
DISCOUNTED, WINDOWED = "discounted", "windowed"
RECURRENT = (BEST_RNN, DEFAULT_RNN)
FEEDFORWARD = (BEST_NN, DEFAULT_NN)
CONVENTIONAL = (DISCOUNTED, WINDOWED)
EVERY = (*RECURRENT, *FEEDFORWARD, *CONVENTIONAL)

_NAMES: Mapping[str, tuple[str, ...]] = {
    DISCOUNTED: ("d-ucb", "d-lin-ucb"),
    WINDOWED: ("sw-ucb", "sw-lin-ucb"),
}
"""A conventional policy stands there with the setting that reproduces the paper and with all that
were searched."""
_SHOWN = {DISCOUNTED: "D-(Lin)UCB", WINDOWED: "SW-(Lin)UCB"}


@dataclass(frozen=True, slots=True)
class PolicyTrials:
    """The trials of one policy on one problem."""

    where: Examined
    group: Group

    @property
    def problem(self) -> str:
        """How the problem is called."""
        return self.where.study.title

    @property
    def name(self) -> str:
        """How the policy is called."""
        return self.group.name


@dataclass(frozen=True, slots=True)
class Evidence:
    """Reports by problem (the longest trials of each), searches, the studies that compare kinds of
    exploration, and the trials from which searches chose."""

    at: Mapping[str, Examined]
    searches: Sequence[Study]
    explored: Mapping[str, Examined]
    finals: Sequence[Study]

    def players(
        self, problem: str, kinds: Iterable[str]
    ) -> tuple[list[PolicyTrials], list[Measurement]]:
        """Return the trials of each kind of policy, and a line for each that is missing or too
        short."""
        where = self.at.get(problem)
        trials, lost = [], []
        for kind in kinds:
            if (
                kind in CONVENTIONAL
                and problem in published.REGRET
                and kind not in published.REGRET[problem]
            ):
                continue  # the paper has no such policy there
            groups = _groups(where, kind) if where else []
            trials += [PolicyTrials(where, group) for group in groups if where]
            if not groups:
                lost.append(missing(problem, f"{_SHOWN.get(kind, kind)} was not played"))
        lost += too_short(where.study, [one.group for one in trials]) if where else []
        return trials, lost

    def pairs(
        self, problem: str, firsts: Iterable[str], seconds: Iterable[str]
    ) -> tuple[list[tuple[PolicyTrials, PolicyTrials]], list[Measurement]]:
        """Every one of the first kinds with every one of the second, and what is missing."""
        (a, lost), (b, also_lost) = self.players(problem, firsts), self.players(problem, seconds)
        return [(one, other) for one in a for other in b], distinct((*lost, *also_lost))


def gather(
    reports: Sequence[Examined],
    searches: Sequence[Study],
    explored: Sequence[Examined],
    finals: Sequence[Study] = (),
) -> Evidence:
    """All that rules look at; of a problem that was played at several lengths, the longest."""
    return Evidence(_longest(reports), searches, _longest(explored), finals)


def _longest(examined: Sequence[Examined]) -> dict[str, Examined]:
    return {one.study.problem: one for one in sorted(examined, key=lambda one: one.study.horizon)}


def _groups(where: Examined, kind: str) -> list[Group]:
    if kind not in _NAMES:
        return [group for group in where.study.groups if group.name == kind]
    groups = [group for group in where.study.groups if _plain(group.name) in _NAMES[kind]]
    return list({group.hashes: group for group in reversed(groups)}.values())[::-1]


def _plain(name: str) -> str:
    """The policy behind the name of a setting that was searched."""
    return name.removesuffix("-selected").removesuffix("-best")
