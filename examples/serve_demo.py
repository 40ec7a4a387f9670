"""A live decision service with a dashboard: four weeks of a simulated shop, and then its visitors
as they come.

    python examples/serve_demo.py [--port 8000] [--days 28] [--seconds 0]

It fills an agent, makes tokens, starts `tidepull serve`, prints the address of its page and a token
to enter there, and drives it until Ctrl-C (or for so many seconds).
"""

import argparse
import heapq
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import tidepull
from examples.serve_shop import busy, click, fill, visitor
from tidepull.service.auth import new_token, write_tokens

A_DAY, LIVE_A_DAY = 400, 1600
"""Visitors of a day in the four weeks, and from now on."""


def started(folder: Path, port: int) -> tuple[subprocess.Popen[str], str]:
    """The service and its address."""
    words = [
        "serve",
        "--db",
        str(folder),
        "--port",
        str(port),
        "--log",
        str(folder / "access.jsonl"),
    ]
    command = [sys.executable, "-m", "tidepull", *words]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    for line in process.stderr:
        if found := re.search(r"listening on (http://\S+?);", line):
            return process, found[1]
        print(line, end="")
    raise SystemExit("the service did not start")


def drive(url: str, token: str, seconds: float) -> int:
    """Visitors, until Ctrl-C or for so long; how many. Their clicks come as late as those of the
    four weeks did."""
    rng, count, end = np.random.default_rng(1), 0, time.time() + (seconds or 1e9)
    clicks: list[tuple[float, str, float]] = []
    due = time.time()
    with tidepull.Client(url, token=token) as client:
        shop = client.agent("shop")
        try:
            while time.time() < end:
                if time.time() >= due:
                    now = time.time()
                    decision = shop.choose(visitor(rng))
                    said_at, liked = click(decision.arm, now, 0.0, rng)
                    heapq.heappush(clicks, (said_at, decision.id, liked))
                    count += 1
                    due = now + rng.exponential(86_400 / (2 * LIVE_A_DAY * busy(now)))
                while clicks and clicks[0][0] <= time.time():
                    _, id, liked = heapq.heappop(clicks)
                    shop.reward(id, liked)
                time.sleep(0.2)
        except KeyboardInterrupt:
            pass
    return count


def tokens(folder: Path) -> tuple[str, str]:
    """One for the shop, one for the page, which may press every button."""
    shop, page = (
        new_token(("shop",), ("decide",), note="shop"),
        new_token(("*",), ("admin",), note="page"),
    )
    write_tokens(folder / "tokens.json", {token.id: token for _, token in (shop, page)})
    return shop[0], page[0]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--days", type=int, default=28)
    parser.add_argument("--seconds", type=float, default=0.0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tidepull-demo-") as name:
        folder = Path(name)
        print(f"a shop lives through {given.days} days (half a minute or so) ...", flush=True)
        print(f"{fill(folder / 'shop.db', days=given.days, a_day=A_DAY):,} decisions", flush=True)
        deciding, looking = tokens(folder)
        process, url = started(folder, given.port)
        try:
            print(
                f"\nopen   {url}\ntoken  {looking}\n\na visitor comes every minute or so; Ctrl-C ends it",
                flush=True,
            )
            print(f"\n{drive(url, deciding, given.seconds)} visitors; stopping")
        finally:
            os.kill(process.pid, signal.SIGTERM)
            process.wait(60)


if __name__ == "__main__":
    main()
