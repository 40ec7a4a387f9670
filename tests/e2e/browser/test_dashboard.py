"""The dashboard of `tidepull serve` in a real browser: what it shows is what the service
answers."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.browser.chromium import chromium, clean_page, needed
from tests.e2e.browser.serving import HTML, Served, fill, serving
from tidepull import Agent
from tidepull.service.auth import new_token, write_tokens

pytestmark = needed


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("agents")
    fill(root / "shop.db", 900)
    fill(root / "silent.db", 200, silent=100)
    fields = {"device": ["it's a phone", "desktop"], "age": float}
    Agent(root / "new.db", arms=["a", "b"], context=fields, policy="bernoulli-ts").close()
    return root


@pytest.fixture(scope="module")
def service(directory: Path) -> Iterator[Served]:
    with serving(directory) as served:
        yield served


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with chromium(tmp_path_factory.mktemp("profile"), offline=False) as opened:
        yield opened


@pytest.fixture(scope="module")
def page(browser: Any, service: Served) -> Iterator[Any]:
    """The shop's page; errors and violations of the page's policy go to the console and fail the
    test."""
    with clean_page(browser) as opened:
        opened.asked = Asked(opened)
        opened.goto(f"{service.url}/#/shop")
        opened.locator(".legend b").first.wait_for()
        yield opened
        assert {httpx.URL(url).netloc for url in opened.asked} == {httpx.URL(service.url).netloc}


def later(page: Any, seen: Callable[[], bool]) -> None:
    """Let the page's clock run, in steps that no question takes, until something is seen."""
    for _ in range(100):
        if seen():
            return
        page.clock.run_for(2000)
        page.wait_for_timeout(50)
    pytest.fail("that was not seen in the page's next 200 seconds")


def tile(page: Any, name: str) -> str:
    return str(page.locator(f".tile:has(.name:text-is('{name}')) b").inner_text())


def chart(page: Any, title: str) -> Any:
    return page.locator(f".chart:has(h2:text-is('{title}'))")


def legend(page: Any, title: str) -> dict[str, str]:
    buttons = chart(page, title).locator(".legend button")
    return {
        one.locator(".label").inner_text(): one.locator("b").inner_text() for one in buttons.all()
    }


def shares(history: Any) -> dict[str, str]:
    counts = {label: sum(line["decisions"]) for label, line in history["arms"].items()}
    return {label: f"{100 * n / sum(counts.values()):.0f}%" for label, n in counts.items()}


class Asked(list[str]):
    """Every address that a page asked for."""

    def __init__(self, page: Any) -> None:
        super().__init__()
        page.on("request", lambda request: self.append(request.url))

    def history(self) -> dict[str, float]:
        """Since, until and bins of the latest question for a history."""
        latest = [httpx.URL(url).params for url in self if "/history" in url][-1]
        return {name: float(latest[name]) for name in ("since", "until", "bins")}

    def seconds(self) -> float:
        return self.history()["until"] - self.history()["since"]


def test_tiles_and_panels_show_what_the_service_answers(page: Any, service: Served) -> None:
    report, waiting = service.get("/v1/agents/shop/explain"), service.get("/v1/agents/shop/waiting")
    best, chance = max(report["chances"].items(), key=lambda item: item[1])
    assert tile(page, "Best arm at this hour") == "Not sure"
    bars = page.locator(".chances li").all()
    assert bars[0].locator(".label").inner_text() == best
    assert bars[0].locator("b").inner_text() == f"{100 * chance:.0f}%"
    assert f"{abs(100 * report['lift']['relative']):.0f}" in tile(
        page, "Improvement over random arms"
    )
    assert tile(page, "Pending rewards") == str(waiting["pending"])
    assert page.locator(".facts dd").first.inner_text() == f"{waiting['decisions']}" == "900"
    assert page.locator(".status").inner_text() == report["status"]
    assert all(
        sentence in page.locator("ul.said").first.inner_text() for sentence in report["when"]
    )


def test_legends_show_shares_and_rewards_of_the_range_that_is_pressed(
    page: Any, service: Served
) -> None:
    for name, seconds in (("24 hours", 86_400), ("7 days", 7 * 86_400)):
        button = page.get_by_role("button", name=name)
        button.click()
        page.locator(".toolbar [aria-pressed='true']", has_text=name).wait_for()
        assert seconds <= page.asked.seconds() <= 1.2 * seconds
        history = service.get("/v1/agents/shop/history", **page.asked.history() | {"bins": 7})
        assert legend(page, "Traffic share by arm") == shares(history)
        paid = [
            (mean, n)
            for one in history["arms"].values()
            for mean, n in zip(one["mean"], one["rewarded"], strict=True)
            if n
        ]
        mean = sum(mean * n for mean, n in paid) / sum(n for _, n in paid)
        assert float(legend(page, "Reward per decision")["all decisions"]) == pytest.approx(
            mean, abs=6e-4
        )
        assert legend(page, "Decisions and their rewards")["with a reward"] == str(
            sum(n for _, n in paid)
        )


def test_arrow_keys_read_the_values_of_a_bin(page: Any, service: Served) -> None:
    plot = chart(page, "Decisions and their rewards").locator(".plot")
    plot.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    bins = int(page.asked.history()["bins"])
    history = service.get("/v1/agents/shop/history", **page.asked.history() | {"bins": bins})
    second = sum(line["decisions"][1] for line in history["arms"].values())
    assert (
        f"decisions {second},"
        in chart(page, "Decisions and their rewards").locator("output").inner_text()
    )
    assert legend(page, "Decisions and their rewards")["decisions"] == str(second)


def test_charts_are_drawn_in_the_colours_of_their_arms(page: Any) -> None:
    canvas = chart(page, "Traffic share by arm").locator("canvas")
    painted = canvas.evaluate(
        """(canvas) => {
          const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
          const seen = {};
          for (let n = 0; n < data.length; n += 4) {
            const key = data.slice(n, n + 3).join();
            if (data[n + 3] > 100) seen[key] = (seen[key] ?? 0) + 1;
          }
          return Object.entries(seen).filter(([, n]) => n > 500).map(([key]) => key.split(",").map(Number));
        }"""
    )
    swatches = (
        chart(page, "Traffic share by arm")
        .locator(".legend i")
        .evaluate_all(
            "(all) => all.map((one) => "
            "getComputedStyle(one).backgroundColor.match(/\\d+/g).map(Number))"
        )
    )
    assert len(swatches) == 3
    for swatch in swatches:
        assert any(
            max(abs(a - b) for a, b in zip(swatch, colour, strict=True)) <= 3 for colour in painted
        )


def test_zoom_is_kept_when_the_page_asks_again(browser: Any, service: Served) -> None:
    with clean_page(browser) as page:
        page.clock.install()
        asked = Asked(page)
        page.goto(f"{service.url}/#/shop")
        page.locator(".legend b").first.wait_for()
        whole = asked.seconds()
        chart(page, "Reward per decision").locator(".plot").focus()
        with page.expect_response(lambda answer: "/history" in answer.url):
            page.keyboard.press("+")
        page.locator(".toolbar [aria-pressed='true']").wait_for(state="detached")
        zoomed = asked.history()
        assert asked.seconds() < 0.7 * whole
        before = len(asked)
        later(page, lambda: any("/history" in url for url in asked[before:]))
        assert asked.history() == zoomed


def test_page_asks_nothing_while_it_is_hidden(browser: Any, service: Served) -> None:
    with clean_page(browser) as page:
        page.clock.install()
        page.goto(f"{service.url}/#/shop")
        page.locator(".legend b").first.wait_for()
        page.locator("#pulse", has_text="live").wait_for()
        asked = Asked(page)
        hide = """(hidden) => {
          Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
          document.dispatchEvent(new Event("visibilitychange"));
        }"""
        page.evaluate(hide, True)
        page.clock.run_for(120_000)
        assert asked == []
        with page.expect_response(lambda answer: "/history" in answer.url):
            page.evaluate(hide, False)


def test_arms_are_listed_with_rate_interval_and_number(page: Any, service: Served) -> None:
    rows = service.get("/v1/agents/shop/breakdown")["rows"]
    table = page.locator("section", has_text="Reward of each arm").last.locator("tbody tr")
    shown = [table.nth(n).inner_text().split("\t") for n in range(table.count())]
    assert [(row[0], row[1]) for row in shown] == [
        (row["arm"], str(row["decisions"])) for row in rows
    ]
    for row, found in zip(shown, rows, strict=True):
        low, high = row[4].split(" to ")
        assert float(row[3]) == pytest.approx(found["mean"], abs=0.001)
        assert float(low) == pytest.approx(found["low"], abs=0.001)
        assert float(high) == pytest.approx(found["high"], abs=0.001)


def test_of_arms_that_are_alike_nothing_is_said_about_hours(page: Any, service: Served) -> None:
    map, report = service.get("/v1/agents/shop/heatmap"), service.get("/v1/agents/shop/explain")
    assert {arm for day in map["best"] for arm in day} == {None}
    assert "is best from" not in report["words"]
    rows = page.locator(".heat tbody tr")
    for day, hour in ((0, 0), (3, 14), (6, 23)):
        said = rows.nth(day).locator("td").nth(hour).get_attribute("aria-label")
        assert re.search("it is not sure which arm is best|too few decisions to tell", said)
    assert not re.search(r"is best (from|all|at|on) |takes over", page.inner_text("body"))
    rows.nth(0).locator("td").nth(0).click()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    assert (
        page.locator("output.said")
        .inner_text()
        .endswith(rows.nth(1).locator("td").nth(1).get_attribute("aria-label"))
    )


def test_html_in_the_name_of_an_arm_is_shown_as_text(page: Any) -> None:
    assert HTML in legend(page, "Traffic share by arm")
    assert page.locator("main img").count() == 0


def test_change_is_listed_with_its_date(page: Any) -> None:
    page.get_by_role("button", name="30 days").click()
    page.locator(".changes time").first.wait_for()
    assert "arm 'tea' added" in page.locator(".changes").inner_text()


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_page_fits_its_window_and_follows_the_colour_scheme(
    page: Any, width: int, scheme: str
) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    page.emulate_media(color_scheme=scheme)
    page.wait_for_function("(width) => document.documentElement.scrollWidth <= width", arg=width)
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert background == ("rgb(246, 247, 249)" if scheme == "light" else "rgb(18, 22, 26)")


def test_tab_walks_from_the_header_through_ranges_and_charts(browser: Any, service: Served) -> None:
    wanted = [
        "Skip to the content",
        "tidepull",
        "Pause",
        "Theme: system",
        "1 hour",
        "All",
        "Earlier",
        "Zoom out",
    ]
    with clean_page(browser) as page:
        page.goto(f"{service.url}/#/shop")
        page.locator(".legend b").first.wait_for()
        walked = []
        for _ in range(50):
            page.keyboard.press("Tab")
            walked.append(
                page.evaluate(
                    "document.activeElement.ariaLabel ?? document.activeElement.textContent"
                )
            )
        assert [text for text in walked if text in wanted] == wanted
        charts = [text.partition(".")[0] for text in walked if "Arrow keys" in text]
        assert charts[:2] == ["Reward per decision", "Traffic share by arm"]


def test_overview_tells_how_agents_are_and_alarms_when_rewards_stop(
    page: Any, service: Served
) -> None:
    page.goto(f"{service.url}/#/silent")
    page.locator(".alarms p").wait_for()
    assert "Rewards have stopped coming" in page.locator(".alarms").inner_text()
    page.goto(f"{service.url}/#/")
    row = page.locator("tr[data-agent='silent']")
    row.locator(".badge.bad").wait_for()
    assert "Rewards have stopped" in row.inner_text()
    page.locator("tr[data-agent='shop'] .badge.good").wait_for()
    assert "900" in page.locator("tr[data-agent='shop']").inner_text()


def test_first_steps_of_a_new_agent_work_as_they_are_written(browser: Any, service: Served) -> None:
    with clean_page(browser) as page:
        page.clock.install()
        page.goto(f"{service.url}/#/new")
        page.locator("pre").first.wait_for()
        words = shlex.split(page.locator("pre").first.inner_text().replace("\\\n", " "))
        assert words[0] == "curl"
        answer = httpx.post(
            words[1],
            content=words[words.index("-d") + 1],
            headers={"content-type": "application/json"},
        )
        assert answer.status_code == 200, answer.text
        later(page, page.locator(".tile b").first.is_visible)
        assert page.locator("pre").count() == 0


def test_token_is_asked_for_kept_out_of_addresses_and_told_what_it_lacks(
    browser: Any, tmp_path: Path
) -> None:
    fill(tmp_path / "shop.db", 60)
    reader, kept = new_token(("*",), ("read",))
    decider, other = new_token(("*",), ("decide",))
    write_tokens(tmp_path / "tokens.json", {kept.id: kept, other.id: other})
    expected = ("401", "403")
    with (
        serving(tmp_path, tokens=tmp_path / "tokens.json") as served,
        clean_page(browser, expected) as page,
    ):
        asked = Asked(page)
        page.goto(f"{served.url}/")
        page.get_by_label("Token").fill("tp_1_wrong")
        page.keyboard.press("Enter")
        page.get_by_text("This token is not valid.").wait_for()
        page.get_by_label("Token").fill(decider)
        page.keyboard.press("Enter")
        page.locator("#trouble:has-text(\"needs a token with the scope 'read'\")").wait_for()
        page.get_by_role("button", name="Sign out").click()
        page.get_by_label("Token").fill(reader)
        page.keyboard.press("Enter")
        page.locator(".legend b").first.wait_for()
        assert not page.locator("#trouble").is_visible()
        assert not any(
            clear.split("_", 2)[2] in url for clear in (reader, decider) for url in asked
        )
        assert json.loads(page.evaluate("JSON.stringify([...Object.keys(sessionStorage)])")) == [
            "tidepull-token"
        ]


def test_page_says_that_the_server_is_gone_and_goes_on_when_it_is_back(
    browser: Any, tmp_path: Path
) -> None:
    fill(tmp_path / "shop.db", 60)
    with clean_page(browser, ("ERR_CONNECTION_REFUSED", "asked for")) as page:
        page.clock.install()
        with serving(tmp_path) as served:
            page.goto(f"{served.url}/")
            page.locator(".legend b").first.wait_for()
            page.locator("#pulse", has_text="live").wait_for()
        later(page, page.get_by_text("The server does not answer.").is_visible)
        with serving(tmp_path, port=httpx.URL(served.url).port or 0):
            later(page, page.locator("#trouble").is_hidden)


def press(page: Any, button: str, title: str, **fields: str) -> None:
    """Press a button, fill the dialog in, and send it."""
    page.get_by_role("button", name=button, exact=True).first.click()
    dialog = page.get_by_role("dialog", name=title)
    for label, value in fields.items():
        field = dialog.get_by_label(label)
        field.select_option(value) if label in ("Share", "Format") else field.fill(value)
    dialog.get_by_role("button", name=title).click()
    dialog.wait_for(state="detached")


def test_every_button_does_what_it_says_for_a_token_that_may(browser: Any, tmp_path: Path) -> None:
    fill(tmp_path / "shop.db", 120)
    admin, one = new_token(("*",), ("admin",))
    reader, other = new_token(("*",), ("read",))
    write_tokens(tmp_path / "tokens.json", {one.id: one, other.id: other})
    with (
        serving(tmp_path, tokens=tmp_path / "tokens.json") as served,
        clean_page(browser, ("401",)) as page,
    ):
        service = Served(served.url, admin)
        page.goto(f"{served.url}/#/shop")
        page.get_by_label("Token").fill(admin)
        page.keyboard.press("Enter")
        page.locator(".legend b").first.wait_for()
        press(page, "Add an arm", "Add the arm", Label="mint")
        page.locator("th", has_text="mint").wait_for()
        assert service.get("/v1/agents/shop")["arms"][-1] == {"label": "mint", "retired": False}
        row = page.locator("tr", has=page.locator("th", has_text="mint"))
        row.get_by_role("button", name="Retire").click()
        page.get_by_role("dialog").get_by_role("button", name="Retire mint").click()
        page.locator("th", has_text="mint (retired)").wait_for()
        assert service.get("/v1/agents/shop")["arms"][-1]["retired"]
        press(page, "Freeze", "Freeze")
        page.locator(".badge", has_text="Frozen").wait_for()
        assert service.get("/v1/agents/shop")["frozen"]
        press(page, "Learn again", "Learn again")
        page.locator(".badge", has_text="Running").wait_for()
        press(page, "Promote", "Promote random", Share="0.25")
        page.locator("td", has_text="25%").wait_for()
        assert service.get("/v1/agents/shop")["promotion"]["share"] == 0.25
        with page.expect_download() as caught:
            press(page, "Download", "Download", Format="jsonl")
        rows = Path(caught.value.path()).read_text().splitlines()
        assert caught.value.suggested_filename == "shop.jsonl"
        assert len(rows) == 120
        middle = json.loads(rows[60])["at"][:16]
        press(page, "Roll back", "Roll back", To=middle)
        page.locator(".changes", has_text="rolled back").wait_for()
        page.get_by_role("button", name="Sign out").click()
        page.get_by_label("Token").fill(reader)
        page.keyboard.press("Enter")
        page.locator(".legend b").first.wait_for()
        shown = [one.inner_text() for one in page.locator("main button:visible").all()]
        acting = {"Add an arm", "Retire", "Add again", "Freeze", "Promote", "Roll back", "Download"}
        assert not acting & set(shown)
        assert not page.get_by_text("Decisions, and why").is_visible()


def test_slider_shows_what_was_known_and_why_an_arm_was_taken(
    browser: Any, service: Served
) -> None:
    with clean_page(browser) as page:
        page.goto(f"{service.url}/#/shop")
        page.locator(".legend b").first.wait_for()
        asked = Asked(page)
        page.locator("#moment").fill("250")
        page.get_by_text("rebuilt from the ledger").wait_for()
        at = next(httpx.URL(url).params["at"] for url in asked if "/explain?at=" in url)
        then = service.get("/v1/agents/shop/explain", at=at)
        assert then["status"].startswith("450 decisions")
        assert page.locator(".status").inner_text() == then["status"]
        assert asked.history()["until"] == float(at)
        page.get_by_role("button", name="Show decisions").click()
        page.get_by_role("button", name="Why?").first.click()
        page.get_by_text("Replayed from the ledger, the same decision comes out.").wait_for()
        page.get_by_role("button", name="Back to now").click()
        page.locator(".status", has_text="900 decisions").wait_for()


def test_dates_and_time_zone_can_be_chosen(browser: Any, service: Served) -> None:
    first, last = (datetime.now(UTC) - timedelta(days=days) for days in (4, 3))
    with clean_page(browser) as page:
        tools = page.context.new_cdp_session(page)
        tools.send("Emulation.setTimezoneOverride", {"timezoneId": "Asia/Tokyo"})
        asked = Asked(page)
        page.goto(f"{service.url}/#/shop")
        page.locator(".legend b").first.wait_for()
        page.get_by_label("Time zone").select_option("Asia/Tokyo")
        page.get_by_label("First day").fill(f"{first:%Y-%m-%d}")
        page.get_by_label("Last day").fill(f"{last:%Y-%m-%d}")
        days = [
            f"{day.day} {day:%b} {day.year}, 00:00" for day in (first, last + timedelta(days=1))
        ]
        page.get_by_text(" to ".join(days)).wait_for()
        since = first.replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(hours=9)
        assert asked.history()["since"] == since.timestamp()
        assert asked.seconds() == 2 * 86_400
        page.evaluate("localStorage.clear()")
