"""A live decision service with a dashboard: three weeks of a simulated shop, and then its visitors
as they come.

    python examples/serve_demo.py [--port 8000] [--days 21] [--seconds 0]

It fills an agent, makes tokens, starts `tidepull serve`, prints the address of its page and a token
to enter there, and drives it until Ctrl-C (or for so many seconds).
"""

import argparse
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
from examples.serve_shop import best, fill
from tidepull.service.auth import new_token, write_tokens

VISITS = 5.0
"""A second."""


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


def visit(shop: "tidepull.agent.client.RemoteAgent", rng: np.random.Generator) -> None:
    """Somebody comes, sees a banner, and clicks on it or not."""
    device = "phone" if rng.random() < 0.6 else "desktop"
    decision = shop.choose({"device": device})
    liked = rng.random() < (0.35 if decision.arm == best(time.time(), 0.0) else 0.12)
    shop.reward(decision.id, float(liked))


def drive(url: str, token: str, seconds: float) -> int:
    """Visitors, until Ctrl-C or for so long; how many."""
    rng, count, end = np.random.default_rng(1), 0, time.monotonic() + (seconds or 1e9)
    with tidepull.Client(url, token=token) as client:
        shop = client.agent("shop")
        try:
            while time.monotonic() < end:
                visit(shop, rng)
                count += 1
                time.sleep(rng.exponential(1 / VISITS))
        except KeyboardInterrupt:
            pass
    return count


def tokens(folder: Path) -> tuple[str, str]:
    """One for the shop, one for the page."""
    shop, page = (
        new_token(("shop",), ("decide",), note="shop"),
        new_token(("*",), ("read",), note="page"),
    )
    write_tokens(folder / "tokens.json", {token.id: token for _, token in (shop, page)})
    return shop[0], page[0]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--days", type=int, default=21)
    parser.add_argument("--seconds", type=float, default=0.0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tidepull-demo-") as name:
        folder = Path(name)
        print(f"a shop lives through {given.days} days (half a minute or so) ...", flush=True)
        print(f"{fill(folder / 'shop.db', days=given.days, a_day=100):,} decisions", flush=True)
        deciding, reading = tokens(folder)
        process, url = started(folder, given.port)
        try:
            print(f"\nopen   {url}\ntoken  {reading}\n\nvisitors come; Ctrl-C ends it", flush=True)
            print(f"\n{drive(url, deciding, given.seconds)} visitors; stopping")
        finally:
            os.kill(process.pid, signal.SIGTERM)
            process.wait(60)


if __name__ == "__main__":
    main()
