"""Diagrams of the manual: `python -m manual.diagrams` draws the architecture, the path of a decision
and the structure of `tide` as SVG.

All text lies inside light boxes, so that a diagram can be read on a light and on a dark page.
"""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import NamedTuple

FIGURES = Path(__file__).parents[1] / "docs" / "figures"
LINE, PAD, TITLE = 17, 10, 20
STYLE = """<style>
.box { stroke-width: 1.2; }
.title { font-size: 15px; font-weight: 600; fill: #1c2126; text-anchor: middle; }
.line { font-size: 13px; fill: #37424d; text-anchor: middle; }
.arrow { stroke: #7b8ea1; stroke-width: 1.8; fill: none; marker-end: url(#head); }
</style>
<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
<path d="M0 0 L8 4 L0 8 z" fill="#7b8ea1"/></marker></defs>"""
COLOURS = {
    "user": ("#eef3f8", "#7f93a6"),
    "part": ("#e5f1fb", "#1f6fb2"),
    "core": ("#fdeee3", "#b3541e"),
    "store": ("#e9f5ec", "#2f7d4a"),
}


class Box(NamedTuple):
    """A box with a title and lines of text, by its centre and width."""

    x: float
    y: float
    width: float
    title: str
    lines: tuple[str, ...] = ()
    colour: str = "part"

    @property
    def height(self) -> float:
        return 2 * PAD + TITLE + LINE * len(self.lines) - 4


class Diagram(NamedTuple):
    """Boxes by name, and arrows between them; `name>name` goes down or up, `name-name` sideways."""

    title: str
    width: int
    height: int
    boxes: dict[str, Box]
    arrows: tuple[str, ...]


ARCHITECTURE = Diagram(
    "Architecture of tidepull",
    660,
    430,
    {
        "program": Box(115, 40, 200, "Your program", ("Python: tidepull.Agent",), "user"),
        "clients": Box(
            345, 40, 220, "Clients in any language", ("curl, JavaScript, tidepull.Client",), "user"
        ),
        "browser": Box(565, 40, 180, "Browser", ("dashboard",), "user"),
        "service": Box(
            455,
            130,
            400,
            "HTTP service: tidepull serve",
            ("tokens, limits, metrics, many agents, several machines",),
        ),
        "agent": Box(
            330,
            220,
            640,
            "Agent",
            ("arms, context, rewards, control group, lift, explain",),
            "core",
        ),
        "schema": Box(110, 310, 200, "Schema", ("checks the context,", "encodes it as numbers")),
        "policy": Box(
            330, 310, 200, "Policy", ("tide, lin-ts, rnlps, your own:", "probability of each arm")
        ),
        "ledger": Box(
            550, 310, 200, "Ledger", ("every decision and reward,", "in order, with hashes")
        ),
        "research": Box(
            220,
            395,
            420,
            "Research and logs",
            ("problems, experiments, Tideline; diagnose, backtest",),
        ),
        "disk": Box(550, 395, 200, "Storage", ("SQLite file or PostgreSQL",), "store"),
    },
    (
        "program>agent",
        "clients>service",
        "browser>service",
        "service>agent",
        "agent>schema",
        "agent>policy",
        "agent>ledger",
        "research>policy",
        "ledger>disk",
    ),
)

WALK = Diagram(
    "Path of a decision and its reward",
    660,
    310,
    {
        "ask": Box(110, 35, 196, "1 Request", ("context, optional id",), "user"),
        "check": Box(330, 35, 196, "2 Check", ("token, fields, known id",)),
        "policy": Box(550, 35, 196, "3 Policy", ("probability of each arm",), "core"),
        "answer": Box(110, 140, 196, "6 Answer", ("arm, id, propensity",), "user"),
        "ledger": Box(330, 140, 196, "5 Ledger", ("record on disk (fsync)",), "store"),
        "draw": Box(550, 140, 196, "4 Draw", ("min. share, control group",)),
        "reward": Box(110, 262, 196, "7 Reward", ("id and number, later",), "user"),
        "second": Box(330, 262, 196, "8 Ledger", ("record on disk, once",), "store"),
        "learn": Box(550, 262, 196, "9 Learn", ("update policy;", "upkeep in slices"), "core"),
    },
    (
        "ask-check",
        "check-policy",
        "policy>draw",
        "draw-ledger",
        "ledger-answer",
        "answer>reward",
        "reward-second",
        "second-learn",
    ),
)

TIDE = Diagram(
    "Structure of tide",
    660,
    560,
    {
        "context": Box(330, 35, 300, "Context and time", ("known before the choice",), "user"),
        "structural": Box(
            170,
            145,
            310,
            "Structural models",
            (
                "level, hour, weekday, weekend, context,",
                "context by hour, slow deviation",
                "26 or 52 structures, weighted",
            ),
            "core",
        ),
        "patterns": Box(
            490,
            145,
            310,
            "Patterns in rounds",
            (
                "periods, change points, regimes, turns,",
                "classes, last event, recurrent network",
                "hundreds of models, weighted",
            ),
            "core",
        ),
        "first": Box(
            170,
            260,
            310,
            "Draw",
            ("a model by its weight, then coefficients:", "probability s of each arm to be best"),
        ),
        "second": Box(
            490,
            260,
            310,
            "Draw",
            ("a model by its weight, then coefficients:", "probability p of each arm to be best"),
        ),
        "gate": Box(
            330,
            360,
            360,
            "Value gate",
            ("g = P(choices of structural models earn more)", "arm drawn from g s + (1 - g) p"),
            "core",
        ),
        "reward": Box(330, 440, 240, "Reward", ("at once or later",), "user"),
        "learn": Box(
            158,
            520,
            286,
            "Learn",
            ("posterior and weight of every model,", "value of both groups' choices"),
        ),
        "upkeep": Box(
            502,
            520,
            286,
            "Upkeep, between decisions",
            (
                "search for periods, train the network,",
                "fit scales; add models to the patterns",
            ),
        ),
    },
    (
        "context>structural",
        "context>patterns",
        "structural>first",
        "patterns>second",
        "first>gate",
        "second>gate",
        "gate>reward",
        "reward>learn",
        "learn-upkeep",
    ),
)

DIAGRAMS = {"architecture": ARCHITECTURE, "walk": WALK, "tide": TIDE}


def drawn(diagram: Diagram) -> str:
    """A diagram as SVG."""
    shapes = [_arrow(diagram.boxes, arrow) for arrow in diagram.arrows]
    shapes += [part for box in diagram.boxes.values() for part in _box(box)]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {diagram.width} {diagram.height}" '
        f'role="img" font-family="system-ui, sans-serif">\n<title>{diagram.title}</title>\n{STYLE}\n'
        + "\n".join(shapes)
        + "\n</svg>\n"
    )


def _box(box: Box) -> list[str]:
    fill, stroke = COLOURS[box.colour]
    left, top = box.x - box.width / 2, box.y - box.height / 2
    parts = [
        f'<rect class="box" x="{left:g}" y="{top:g}" width="{box.width:g}" height="{box.height:g}" '
        f'rx="7" fill="{fill}" stroke="{stroke}"/>',
        f'<text class="title" x="{box.x:g}" y="{top + PAD + 12:g}">{escape(box.title)}</text>',
    ]
    for n, line in enumerate(box.lines):
        y = top + PAD + 12 + TITLE + n * LINE - 1
        parts.append(f'<text class="line" x="{box.x:g}" y="{y:g}">{escape(line)}</text>')
    return parts


def _arrow(boxes: dict[str, Box], arrow: str) -> str:
    if "-" in arrow:
        start, end = (boxes[name] for name in arrow.split("-"))
        side = 1 if end.x > start.x else -1
        points = start.x + side * start.width / 2, start.y, end.x - side * end.width / 2, end.y
    else:
        start, end = (boxes[name] for name in arrow.split(">"))
        side = 1 if end.y > start.y else -1
        x = max(start.x - start.width / 2, end.x - end.width / 2)
        x = (x + min(start.x + start.width / 2, end.x + end.width / 2)) / 2
        points = x, start.y + side * start.height / 2, x, end.y - side * end.height / 2
    return '<path class="arrow" d="M{:g} {:g} L{:g} {:g}"/>'.format(*points)


if __name__ == "__main__":
    for name, diagram in DIAGRAMS.items():
        (FIGURES / f"{name}.svg").write_text(drawn(diagram))
