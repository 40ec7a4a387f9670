"""Everything behind the page of results: settings, problem by problem, searches, claims with their
figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tidepull.paper.page import Block, PaperResults, played_words
from tidepull.paper.table import chosen_table
from tidepull.paper.verdicts import Claim, lines_table
from tidepull.reporting import published, result_tables
from tidepull.reporting.published import verdict
from tidepull.reporting.result_tables import halving_table
from tidepull.reporting.stats import sensitivities
from tidepull.reporting.tables import duration, provenance
from tidepull.reporting.traces import scored


def detail_blocks(results: PaperResults, command: str) -> Iterator[Block]:
    """The page of details, in the order of the page of results."""
    yield "# Results in detail"
    yield f"What is behind the page of results, by the same command:\n\n```\n{command}\n```"
    yield "## How the settings were chosen"
    yield chosen_table(results.frame.suites)
    panels = scored([one for one in results.reports if one.study.problem in published.REGRET])
    if table := result_tables.scores_table("all", panels):
        yield "## Over all problems"
        yield table
    yield from _problems(results)
    yield from _searches(results)
    yield from claim_blocks(results.claims)
    yield "## Where this comes from"
    yield "\n".join(f"- {line}" for line in provenance(results.frame, names=False))


def _problems(results: PaperResults) -> Iterator[Block]:
    yield "## Problem by problem"
    for one in results.reports:
        study = one.study
        yield f"### {study.title}"
        yield verdict(study)
        yield result_tables.details_table(study, one.random, one.traces)
        if recovery := result_tables.recovery_table(study, one.traces):
            yield f"{recovery.title}:"
            yield recovery
    if results.explored:
        yield "## Kinds of exploration"
        yield (
            "Posterior sampling (`rnlps`), epsilon-greedy and Boltzmann exploration on recurrent "
            "features. Without an ending: the paper's default network and tidepull's default "
            "epsilon and temperature, so that only the rule differs. `-best`: each rule with the "
            "setting that its own search chose."
        )
    for one in results.explored:
        yield f"### {one.study.title}: kinds of exploration"
        yield result_tables.details_table(one.study, one.random, one.traces)


def _searches(results: PaperResults) -> Iterator[Block]:
    if results.searches:
        yield "## Sensitivity to hyperparameters"
    for study in results.searches:
        groups = [group for settings in study.grids.values() for group in settings]
        seconds = sum(row.cpu_seconds for group in groups for row in group.rows)
        yield f"{played_words(study)} ({duration(seconds)} of CPU time):"
        yield result_tables.sensitivity_table(study, sensitivities(study))
    table = halving_table(results.frame.studies)
    if table.rows:
        yield "## Searches by halving"
        yield (
            "All settings of a grid play the first rung, the best of them the next, which is "
            "longer or on more seeds. Settings that were left behind were not played on, by "
            "design. The best setting is chosen on the last rung."
        )
        yield table


def claim_blocks(claims: Sequence[Claim]) -> Iterator[Block]:
    """Each claim with its rule and figures."""
    yield "## The paper's claims, one by one"
    yield (
        "Conventional policies stand there with the setting that reproduces the paper and, where "
        "it is another, with the one that our search chose."
    )
    for number, claim in enumerate(claims, 1):
        reason = f" ({claim.reason})" if claim.reason.startswith("missing") else ""
        yield f"### {number}. {claim.topic}: {claim.says}"
        yield f"**{claim.verdict.capitalize()}**{reason}. Rule: {claim.rule}."
        yield lines_table(claim, f"claim-{number}")
