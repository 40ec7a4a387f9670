"""Parts of the page of results: how settings were chosen, kinds of exploration, the paper's claims."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tidepull.paper.chosen import chosen_table
from tidepull.paper.verdicts import Claim, lines_table, verdicts_table
from tidepull.reporting import result_tables
from tidepull.reporting.frames import Study
from tidepull.reporting.tables import to_markdown
from tidepull.reporting.traces import Examined


def exploration_picture(study: Study) -> str:
    """The file of the picture of one problem."""
    return f"exploration-{study.problem}-{study.horizon}.svg"


def chosen_section(suites: Mapping[str, str]) -> Iterator[str]:
    """How every setting of the table came about."""
    table = chosen_table(suites)
    if table.rows:
        yield "### How the settings were chosen"
        yield to_markdown(table)


def exploration_section(explored: Sequence[Examined]) -> Iterator[str]:
    """Posterior sampling beside its alternatives; pictures are where `exploration_picture` says."""
    if explored:
        yield "## Kinds of exploration"
        yield (
            "Posterior sampling (`rnlps`), epsilon-greedy and Boltzmann exploration on recurrent features. Without an "
            "ending: the paper's default network and tidepull's default epsilon and temperature, so that only the rule "
            "differs. `-best`: each rule with the setting that its own search chose."
        )
    for one in explored:
        yield f"### {one.study.title}: kinds of exploration"
        yield to_markdown(result_tables.details_table(one.study, one.random, one.traces))
        yield f"![Kinds of exploration on {one.study.title}](results/{exploration_picture(one.study)})"


def claims_section(claims: Sequence[Claim]) -> Iterator[str]:
    """All verdicts in one table, then each claim with its rule and figures."""
    yield "## The paper's claims, one by one"
    yield (
        "Every sentence of the paper's Analysis that trials can judge, as a rule. A claim holds when all its figures "
        "say so, fails when one says clearly otherwise, and is open in between or where trials are missing. "
        "Differences are paired on common seeds. Conventional policies stand there with the setting that reproduces "
        "the paper and, where it is another, with the one that our search chose."
    )
    yield to_markdown(verdicts_table(claims))
    for number, claim in enumerate(claims, 1):
        yield f"### {number}. {claim.topic}: {claim.says}"
        yield f"**{claim.outcome.capitalize()}**{f' ({claim.reason})' if claim.reason else ''}. Rule: {claim.rule}."
        yield to_markdown(lines_table(claim, f"claim-{number}"))
