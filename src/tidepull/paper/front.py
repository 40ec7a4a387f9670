"""The paper at the top of a report: its table beside ours, its claims with their verdicts, the proof's promises."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

from tidepull.paper import notes
from tidepull.paper.chosen import chosen_table
from tidepull.paper.claims import check_claims
from tidepull.paper.combine import combined
from tidepull.paper.exploration import explorations
from tidepull.paper.paper_table import overview
from tidepull.paper.searches import searches_of
from tidepull.paper.theory_part import steps_table, theory_table
from tidepull.paper.verdicts import FAILS, HOLDS, OPEN, Claim, lines_table, verdicts_table
from tidepull.reporting.frames import Frame
from tidepull.reporting.tables import Table, to_html
from tidepull.reporting.traces import examined


def claims_of(frame: Frame) -> list[Claim]:
    """Every claim of the paper, judged by what has been played."""
    reports = [examined(study) for study in combined(frame.studies)]
    explored = [examined(study) for study in explorations(frame.studies)]
    return check_claims(reports, searches_of(frame.studies), explored)


def front(frame: Frame, claims: Sequence[Claim], theory: Sequence[dict[str, Any]]) -> Iterator[str]:
    """The parts of the page, as HTML; whatever has not been played is named, not left out silently."""
    reports = combined(frame.studies)
    yield "<h2>The paper's table</h2>"
    yield (
        '<p class="dim">Final regret: ours (the lowest in bold), <i>the paper\'s</i>, and the difference in standard '
        "errors; ± is the standard deviation over trials.</p>"
    )
    yield _plain(overview(reports))
    yield "<ul>" + "".join(f"<li>{escape(note)}</li>" for note in notes.general(frame)) + "</ul>"
    yield f"<details><summary>How the settings were chosen</summary>{to_html(chosen_table(frame.suites))}</details>"
    yield "<h2>The paper's claims</h2>"
    yield f"<p>{escape(tally(claims))}</p>"
    yield to_html(verdicts_table(claims))
    yield "<details><summary>The rule and the figures of each claim</summary>"
    yield from _details(claims)
    yield "</details>"
    yield "<h2>The theorem</h2>"
    if theory:
        yield to_html(steps_table(theory))
        yield f"<details><summary>Every configuration</summary>{to_html(theory_table(theory))}</details>"
    else:
        yield "<p>Not simulated yet: <code>tidepull reproduce theory</code>.</p>"


def tally(claims: Sequence[Claim]) -> str:
    """How many claims hold, fail and are open."""
    counts = ", ".join(f"{sum(c.outcome == word for c in claims)} {word}" for word in (HOLDS, FAILS, OPEN))
    return f"{len(claims)} claims: {counts}."


def _details(claims: Sequence[Claim]) -> Iterator[str]:
    for number, claim in enumerate(claims, 1):
        reason = f" ({claim.reason})" if claim.reason else ""
        yield f"<h4>{number}. {escape(claim.topic)}: {escape(claim.says)}</h4>"
        yield f"<p><b>{claim.outcome.capitalize()}</b>{escape(reason)}. Rule: {escape(claim.rule)}.</p>"
        yield to_html(lines_table(claim, f"claim-{number}"))


def _plain(table: Table) -> str:
    """A table whose cells have several lines, which nobody sorts; the Markdown of the cells becomes HTML."""
    head = "".join(f'<th scope="col">{escape(column)}</th>' for column in table.columns)
    body = "".join(
        f'<tr><th scope="row">{_marked(row[0].text)}</th>'
        + "".join(f"<td>{_marked(cell.text)}</td>" for cell in row[1:])
        + "</tr>"
        for row in table.rows
    )
    return (
        f'<figure class="table"><figcaption>{escape(table.title)}</figcaption><div class=scroll tabindex=0>'
        f"<table id={table.name}><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div></figure>"
    )


def _marked(text: str) -> str:
    html = escape(text).replace("&lt;br&gt;", "<br>")
    html = re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", html)
    return re.sub(r"\*(.+?)\*", r"<i>\1</i>", html)
