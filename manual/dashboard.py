"""The dashboard in pictures: `python -m manual.dashboard` serves a simulated shop and takes its page
in light and in dark.

It needs Chromium on the path and the package playwright.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from examples.serve_shop import fill

FIGURES = Path(__file__).parents[1] / "docs" / "figures"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
SIZE = {"width": 1180, "height": 1160}


def chromium_path() -> str | None:
    """Where Chromium is; None if it is not on the path."""
    return next((found for name in BROWSERS if (found := shutil.which(name))), None)


def take(url: str) -> None:
    """Pictures of the page of the agent `shop`."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium_path(), args=["--no-sandbox"])
        for scheme in ("light", "dark"):
            page = browser.new_page(viewport=SIZE, color_scheme=scheme)
            page.goto(f"{url}/#/shop")
            page.wait_for_selector("canvas")
            page.wait_for_timeout(3000)
            page.screenshot(path=FIGURES / f"dashboard-{scheme}.png")
        browser.close()


def main() -> None:
    """Fill an agent, serve it on loopback, take the pictures."""
    with tempfile.TemporaryDirectory() as folder:
        fill(Path(folder) / "shop.db")
        command = [sys.executable, "-m", "tidepull", "serve", "--db", folder, "--port", "0"]
        process = subprocess.Popen([*command, "--insecure"], stderr=subprocess.PIPE, text=True)
        try:
            assert process.stderr is not None
            said = (re.search(r"listening on (http://\S+?);", line) for line in process.stderr)
            take(next(found[1] for found in said if found))
        finally:
            os.kill(process.pid, signal.SIGTERM)
            process.wait(60)


if __name__ == "__main__":
    main()
