"""The report in a real browser: the system's Chromium, driven by Playwright, on a file: address."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.browser.chromium import chromium, clean_page, needed
from tests.unit.reporting.filling import SUITE, fill
from tidepull.reporting.report import build_report

pytestmark = needed


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    store = fill(
        tmp_path_factory.mktemp("store"), SUITE.replace("0-5", "0-2").replace("= 200", "= 2000")
    )
    return build_report([store], tmp_path_factory.mktemp("report"), formats=[]).page.as_uri()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with chromium(tmp_path_factory.mktemp("profile"), offline=True) as opened:
        yield opened


@pytest.fixture
def page(browser: Any, address: str) -> Iterator[Any]:
    """The loaded report; any error on the console fails the test that used it."""
    with clean_page(browser) as opened:
        opened.goto(address)
        yield opened


def lines(page: Any, policy: str) -> int:
    return int(page.locator(f"[data-chart^='regret-'] polyline[data-policy='{policy}']").count())


def test_policy_disappears_from_every_chart_when_switched_off_and_returns(page: Any) -> None:
    assert lines(page, "random") == 3
    button = page.locator("[data-chart^='regret-'] .legend button[data-policy='random']").first
    button.click()
    assert button.get_attribute("aria-pressed") == "false"
    assert lines(page, "random") == 0
    assert lines(page, "ucb") == 3
    button.click()
    assert lines(page, "random") == 3


def test_hover_shows_the_values_of_every_policy(page: Any) -> None:
    chart = page.locator("[data-chart^='regret-']").first
    tip = chart.locator(".tip")
    assert not tip.is_visible()
    chart.locator("svg.plot").hover()
    assert tip.is_visible()
    said = tip.inner_text()
    assert "round:" in said
    assert all(policy in said for policy in ("random", "ucb", "d-ucb", "rnlps-default", "oracle"))


def test_arrow_keys_move_the_cursor_where_there_is_no_mouse(page: Any) -> None:
    chart = page.locator("[data-chart^='regret-']").first
    chart.locator("svg.plot").focus()
    page.keyboard.press("ArrowRight")
    first = chart.locator(".tip").inner_text()
    page.keyboard.press("ArrowRight")
    assert chart.locator(".tip").inner_text() != first


def test_table_sorts_by_number_both_ways_when_its_heading_is_clicked(page: Any) -> None:
    table = page.locator("table[id='details-tiny-flipping-gaussian']")
    column = table.locator("thead th").all_inner_texts().index("regret")
    heading = table.locator("thead th").nth(column)

    def values() -> list[float]:
        cells = table.locator(f"tbody tr > :nth-child({column + 1})")
        return [float(cell.get_attribute("data-value")) for cell in cells.all()]

    heading.locator("button").click()
    assert values() == sorted(values())
    assert heading.get_attribute("aria-sort") == "ascending"
    heading.locator("button").click()
    assert values() == sorted(values(), reverse=True)


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_page_fits_its_window_and_follows_the_colour_scheme(
    page: Any, width: int, scheme: str
) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    page.emulate_media(color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert background == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(20, 24, 28)")


def test_charts_inside_a_closed_section_are_seen_when_it_opens(page: Any) -> None:
    line = page.locator("[data-chart^='phases-'] polyline").first
    assert not line.is_visible()
    page.locator("details:has([data-chart^='phases-']) > summary").first.click()
    line.wait_for(state="visible")


def test_file_of_the_page_is_all_that_is_needed(address: str, tmp_path: Path, browser: Any) -> None:
    alone = tmp_path / "alone.html"
    alone.write_text(Path(address.removeprefix("file://")).read_text())
    opened = browser.new_page()
    opened.goto(alone.as_uri())
    assert opened.locator("svg.plot polyline").count() > 0
    opened.close()


def test_table_wider_than_the_window_says_that_it_scrolls(page: Any) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    figure = page.locator("figure.table:has(table[id='details-tiny-flipping-gaussian'])")
    caption = figure.locator("figcaption")
    page.wait_for_selector(".wide", state="attached")
    assert "wide" in figure.get_attribute("class")
    said = caption.evaluate("node => getComputedStyle(node, '::after').content")
    assert "scroll sideways" in said
    page.set_viewport_size({"width": 4000, "height": 800})
    page.add_style_tag(content="body { max-width: none }")
    page.wait_for_selector(".wide", state="detached")


@pytest.mark.parametrize("width", [390, 1280])
def test_no_tick_of_a_chart_is_cut_off(page: Any, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    page.wait_for_timeout(300)
    cut = page.evaluate(
        """() => [...document.querySelectorAll("svg.plot")].flatMap((plot) => {
          const edge = plot.getBoundingClientRect();
          return [...plot.querySelectorAll("text.tick")].map((tick) => tick.getBoundingClientRect())
            .filter((box) => box.right > edge.right + 0.5 || box.left < edge.left - 0.5)
            .map((box) => box.right - edge.right);
        })"""
    )
    assert cut == []
