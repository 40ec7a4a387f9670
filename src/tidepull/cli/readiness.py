"""Before trials start: can they run here? If not, one sentence says what is missing, and nothing is recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.markup import escape

from tidepull.cli.console import say
from tidepull.errors import DataError
from tidepull.experiments.spec import TrialSpec, lacking

PARTIAL = "Leave out trials whose data or extras are missing here, and run the others."
"""Help of every `--partial` of a command that runs trials."""


def ready(specs: Sequence[TrialSpec], *, partial: bool | None = None) -> tuple[TrialSpec, ...]:
    """The specs, if all of them can run here; with `partial`, those that can (None: there is no such option)."""
    found = lacking(specs)
    if not found:
        return tuple(specs)
    if not partial:
        raise DataError(sentence(found, len(specs), hint=partial is not None))
    for reason, lost in found.items():
        say(f"[yellow]left out: {len(lost):,} trials[/] (such as {escape(lost[0].id)}): {escape(reason)}")
    unable = {spec.hash for lost in found.values() for spec in lost}
    return tuple(spec for spec in specs if spec.hash not in unable)


def sentence(found: Mapping[str, Sequence[TrialSpec]], total: int, *, hint: bool) -> str:
    """What is missing for how many of the trials, and how to get it."""
    count = sum(len(lost) for lost in found.values())
    many = f"{count:,} of {total:,} trials" if total > 1 else "this trial"
    others = "; --partial runs the others" if hint and count < total else ""
    return f"{many} cannot run here: {'; '.join(found)}{others}"
