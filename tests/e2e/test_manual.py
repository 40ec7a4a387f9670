"""The manual as text: its links lead somewhere, its commands are understood, its code is code."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from manual.diagrams import DIAGRAMS, FIGURES
from manual.diagrams import drawn as diagram_drawn
from manual.map import SAYS, WALKS, drawn, layers
from tests.commands import mentioned, shown, understand

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
GENERATED = {DOCS / "reference" / "commands.md"}
COMMANDS = sorted({line for page in PAGES for line in shown(page.read_text())})
MENTIONED = sorted({line for page in PAGES for line in mentioned(page.read_text())} - set(COMMANDS))


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_of_a_page_lead_to_files(page: Path) -> None:
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(), flags=re.S)
    links = [link.split("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", text)]
    wanted = [
        (page.parent / link).resolve() for link in links if link and not link.startswith("http")
    ]
    assert [named(path) for path in wanted if not path.exists() and path not in GENERATED] == []


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_python_of_a_page_is_python(page: Path) -> None:
    for block in re.findall(r"```python\n(.*?)```", page.read_text(), re.S):
        ast.parse(block)


@pytest.mark.parametrize("line", COMMANDS)
def test_command_of_the_manual_is_understood(line: str) -> None:
    understand(line)


@pytest.mark.parametrize("line", MENTIONED)
def test_command_within_a_sentence_is_one(line: str) -> None:
    try:
        understand(line)
    except Exception as error:
        if type(error).__name__ not in ("MissingParameter", "NoArgsIsHelpError"):
            raise


def test_commands_are_found_in_blocks_and_sentences() -> None:
    text = (
        "```\n$ tidepull run a  # why\ntidepull sweep DIR [--x]\n```\nor `tidepull list problems`."
    )
    assert shown(text) == ["tidepull run a"]
    assert mentioned(text) == ["tidepull list problems"]
    assert len(COMMANDS) > 70


def test_misspelt_command_is_noticed() -> None:
    with pytest.raises(BaseException, match="--sed"):
        understand("tidepull run flipping-gaussian tide --sed 3")


def test_every_page_is_in_the_menu() -> None:
    menu = (ROOT / "mkdocs.yml").read_text().partition("nav:")[2]
    listed = {DOCS / path for path in re.findall(r"[\w/-]+\.md", menu)}
    assert listed == {*DOCS.rglob("*.md"), *GENERATED}


def test_map_shows_every_room_and_none_that_is_gone() -> None:
    """`python -m manual.map` draws it anew."""
    names = set(re.findall(r'class="name"[^>]*>(\w+)<', (DOCS / "figures" / "map.svg").read_text()))
    package = ROOT / "src" / "tidepull"
    assert {place.parent.name for place in package.glob("*/__init__.py")} <= names
    assert names <= {place.stem for place in package.iterdir()}
    assert {*SAYS, *(step for walk in WALKS.values() for step in walk)} <= names


def test_map_is_drawn_from_the_layers() -> None:
    rooms = {room for layer in layers() for room in layer}
    assert rooms == set(re.findall(r'class="name"[^>]*>(\w+)<', drawn(layers())))


@pytest.mark.parametrize("name", DIAGRAMS)
def test_diagram_is_what_its_command_draws(name: str) -> None:
    """`python -m manual.diagrams` draws it."""
    assert (FIGURES / f"{name}.svg").read_text() == diagram_drawn(DIAGRAMS[name])


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_picture_of_a_page_has_an_alternative_text(page: Path) -> None:
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(), flags=re.S)
    assert [alt for alt in re.findall(r"!\[([^\]]*)\]\(", text) if not alt.strip()] == []
