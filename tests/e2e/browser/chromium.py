"""The system's Chromium, driven by Playwright."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CHROMIUM = next((path for name in NAMES if (path := shutil.which(name))), None)
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

PATIENCE = 60_000
"""Milliseconds; on a machine that is busy with trials a browser takes its time."""

needed = pytest.mark.skipif(
    CHROMIUM is None, reason=f"the browser tests need Chromium on the path ({', '.join(NAMES)})"
)


@contextmanager
def chromium(profile: Path, *, offline: bool) -> Iterator[Any]:
    """A browser with a profile of its own."""
    api = pytest.importorskip(
        "playwright.sync_api", reason="the browser tests need the package playwright"
    )
    with api.sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            str(profile),
            executable_path=CHROMIUM,
            headless=True,
            args=FLAGS,
            offline=offline,
            timeout=PATIENCE,
        )
        context.set_default_timeout(PATIENCE)
        yield context
        context.close()


@contextmanager
def clean_page(browser: Any, expected: tuple[str, ...] = ()) -> Iterator[Any]:
    """A page of whose console no error may come, but for those that have one of the `expected`
    words in them."""
    opened = browser.new_page()
    errors: list[str] = []
    opened.on(
        "console", lambda message: errors.append(message.text) if message.type == "error" else None
    )
    opened.on("pageerror", lambda error: errors.append(str(error)))
    opened.on("requestfailed", lambda request: errors.append(f"asked for {request.url}"))
    try:
        yield opened
        seen = list(errors)  # what is under way when a page is closed fails, and that is no error
    finally:
        opened.close()
    wrong = [text for text in seen if not any(word in text for word in expected)]
    assert not wrong, wrong
