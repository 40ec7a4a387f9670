"""The built manual in a real browser, from its folder and without a network."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from manual.search import FIRST, first
from tests.e2e.browser.chromium import chromium, clean_page, needed

ROOT = Path(__file__).parents[3]
FITTING = (
    "index",
    "architecture",
    "explanation/forgetting",
    "reference/agent",
    "policies",
    "theory",
    "tide",
    "tideline-2/leaderboard",
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The manual, built as `make docs` does, where any warning is an error."""
    pytest.importorskip("material", reason="the extra 'docs' is not installed")
    pytest.importorskip("mkdocstrings", reason="the extra 'docs' is not installed")
    made = tmp_path_factory.mktemp("site")
    command = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "--quiet",
        "--site-dir",
        str(made),
    ]
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    done = subprocess.run(
        command,
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": paths, "NO_MKDOCS_2_WARNING": "1"},
    )
    assert done.returncode == 0, done.stderr
    return made


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with chromium(tmp_path_factory.mktemp("profile"), offline=True) as opened:
        yield opened


def test_manual_asks_nobody_for_anything(site: Path) -> None:
    asked = re.compile(r"""(?:src|href)=["'](https?:)?//[^"']*\.(?:js|css|woff2?|png|svg)["']""")
    found = {
        str(page.relative_to(site))
        for page in site.rglob("*.html")
        if asked.search(page.read_text())
    }
    assert not found


def test_reference_describes_members_with_their_signatures(site: Path) -> None:
    agent = (site / "reference" / "agent.html").read_text()
    assert 'id="tidepull.agent.agent.Agent.choose"' in agent
    assert "tidepull.agent.fields.field_of" not in agent  # not public
    assert "tidepull sweep" in (site / "reference" / "commands.html").read_text()


@needed
def test_formulas_are_set_and_no_raw_latex_is_left(site: Path, browser: Any) -> None:
    pages = [
        page for page in sorted(site.rglob("*.html")) if 'class="arithmatex"' in page.read_text()
    ]
    assert {page.stem for page in pages} >= {
        "neural",
        "theory",
        "tide",
        "policies",
        "problems",
    }
    for path in pages:
        with clean_page(browser) as page:
            page.goto(path.as_uri())
            page.wait_for_selector(".arithmatex .katex")
            formulas = page.locator(".arithmatex")
            assert page.locator(".arithmatex .katex-html").count() == formulas.count()
            assert page.locator(".katex-error").count() == 0
            seen = page.evaluate(RAW)
            assert not re.search(r"\\[a-zA-Z]+\{|\\\(|\\\[|\$\$", seen), path.name


RAW = """() => {
  const copy = document.querySelector("article").cloneNode(true);
  for (const part of copy.querySelectorAll(".katex, pre, code")) part.remove();
  return copy.textContent;
}"""
"""Jinja, shell and code may have backslashes and dollars; what is left over must not."""


@needed
def test_search_finds_a_page_from_a_folder(site: Path, browser: Any) -> None:
    with clean_page(browser) as page:
        page.goto((site / "index.html").as_uri())
        page.locator("input.md-search__input").click()
        page.keyboard.type("propensity")
        page.wait_for_selector(".md-search-result__link")
        assert page.locator(".md-search-result__link").count() >= 3


@needed
def test_search_shows_the_page_that_answers_first(site: Path, browser: Any) -> None:
    with clean_page(browser) as page:
        found = {query: first(page, site, query) for query in FIRST}
    assert found == FIRST


@needed
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_fit_their_window(site: Path, browser: Any, width: int, scheme: str) -> None:
    with clean_page(browser) as page:
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme)
        for name in FITTING:
            page.goto((site / f"{name}.html").as_uri())
            wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
            assert page.evaluate(wide) <= 0, name
        shade = page.evaluate("document.body.dataset.mdColorScheme")
        assert shade == ("default" if scheme == "light" else "slate")
