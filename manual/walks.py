"""Three walks from nothing, timed: `python -m manual.walks WHEEL [PYTHON [WALK...]]` prints a
table.

Each walk has an empty home and an empty environment. An engineer installs the wheel, runs the six
lines of the README, the page on delayed rewards, and a service with a token. A researcher runs the
first tutorial and a suite with a policy of their own. An analyst diagnoses a spreadsheet as it
comes: German dates, numbers and words, labels that differ by case, an id, and an amount that is
known only afterwards. Times are seconds since the walk began. It needs an index of packages.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

ROOT = Path(__file__).parents[1]
SERVE = """
import os, re, subprocess, sys, tidepull
tidepull_ = [sys.executable, "-m", "tidepull"]
new = [*tidepull_, "token", "new", "--tokens", "t.json", "--agent", "*", "--scope", "admin"]
token = subprocess.run(new, check=True, capture_output=True, text=True).stdout.strip()
serve = [*tidepull_, "serve", "--db", "agents", "--tokens", "t.json", "--port", "0", "--no-wait"]
server = subprocess.Popen(serve, stderr=subprocess.PIPE, text=True)
url = next(found[0] for line in server.stderr if (found := re.search(r"http://[\\d.]+:\\d+", line)))
with tidepull.Client(url, token=token, timeout=60.0) as client:
    shop = client.create("shop", arms=["blue", "green"], context={})
    shop.reward(shop.choose(), 1.0)
    print(shop.explain())
server.terminate()
assert server.wait(60) == 0
"""
OWN = """
import numpy as np, tidepull
from tidepull import Entry, NoParameters

class RepeatWinner:
    def __init__(self, parameters, shape, streams):
        self.rng, self.n_arms, self.last, self.won = streams.generator("tries"), shape.n_arms, 0, False

    def choose(self, context):
        return self.last if self.won else int(self.rng.integers(self.n_arms))

    def learn(self, event):
        self.last, self.won = event.arm, event.reward > 0.5

tidepull.add_policy(Entry("repeat-winner", "repeats an arm that has just paid", NoParameters, RepeatWinner))
"""
SUITE = """
name = "mine"
seeds = "0-4"
horizon = 500
modules = ["mine.py"]
problems = [{ id = "flipping-bernoulli" }]
policies = [{ name = "random" }, { name = "repeat-winner" }, { name = "tide" }]
"""


def code_of(page: str) -> str:
    """The Python of a page of the repository."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return "\n".join(re.findall(r"```python\n(.*?)```", text, re.S))


def spreadsheet(rows: int = 9000) -> str:
    """Clicks on three banners in four weeks, as a German office writes them."""
    rng = random.Random(3)
    start = datetime(2026, 3, 2)
    moments = sorted(start + timedelta(days=28 * rng.random()) for _ in range(rows))
    lines = ["Bestellnr;Gezeigt am;Banner;Gerät;Warenkorb;Klick;Umsatz"]
    for n, moment in enumerate(moments):
        banner = rng.choice(["Kaffee", "Abendessen", "Gutschein"])
        best = "Abendessen" if 17 <= moment.hour < 23 else "Kaffee"
        click = rng.random() < (0.18 if banner == best else 0.06)
        label = rng.choices([banner, banner.lower(), f"{banner} "], (98, 1, 1))[0]
        basket, paid = (f"{rng.uniform(5, 120):.2f}".replace(".", ",") for _ in range(2))
        device, sale = rng.choice(["Handy", "PC"]), paid if click and rng.random() < 0.6 else "0,00"
        word = "ja" if click else "nein"
        lines.append(
            f"A-{100_000 + n};{moment:%d.%m.%Y %H:%M};{label};{device};{basket};{word};{sale}"
        )
    return "\n".join(lines) + "\n"


class Walk:
    """An empty home with an environment of its own."""

    def __init__(self, folder: str, wheel: Path, python: str) -> None:
        self.folder, self.wheel = Path(folder), wheel
        self._env = {key: value for key, value in os.environ.items() if key[:6] != "PYTHON"}
        self._env |= {"HOME": folder, "XDG_CACHE_HOME": f"{folder}/.cache"}
        self._run(python, "-m", "venv", "env")

    def install(self, extra: str = "") -> None:
        """Install the wheel."""
        wanted = f"{self.wheel}[{extra}]" if extra else str(self.wheel)
        self.python("-m", "pip", "install", "--quiet", wanted)

    def python(self, *arguments: str) -> str:
        """What a program prints."""
        return self._run(str(self.folder / "env" / "bin" / "python"), *arguments)

    def _run(self, *command: str) -> str:
        done = subprocess.run(
            command, cwd=self.folder, env=self._env, capture_output=True, text=True, timeout=1800
        )
        if done.returncode:
            raise SystemExit(f"{' '.join(command)[:200]}\n{done.stdout}{done.stderr}")
        return done.stdout


def engineer(walk: Walk) -> Iterator[str]:
    """The steps of an engineer with a shop."""
    walk.install()
    yield "installed (plain)"
    walk.python("-c", code_of("README.md"))
    yield "first decision, its reward and a report"
    walk.python("-c", code_of("docs/how-to/late-rewards.md"))
    yield "late rewards"
    walk.install("serve")
    walk.python("-c", SERVE)
    yield "a service with a token has answered (extra serve)"


def researcher(walk: Walk) -> Iterator[str]:
    """The steps of a researcher."""
    walk.install("experiments")
    yield "installed (experiments)"
    walk.python("-c", code_of("docs/tutorials/first-experiment.md"))
    yield "first experiment, with its picture"
    (walk.folder / "mine.py").write_text(OWN)
    (walk.folder / "mine.toml").write_text(SUITE)
    walk.python("-m", "tidepull", "sweep", "mine.toml")
    walk.python("-m", "tidepull", "report", "out/mine")
    yield "a suite with a policy of one's own, and its page"


def analyst(walk: Walk) -> Iterator[str]:
    """The steps of an analyst with a spreadsheet."""
    walk.install("tables")
    yield "installed (tables)"
    (walk.folder / "klicks.csv").write_text(spreadsheet(), encoding="utf-8-sig")
    log = ("klicks.csv", "--reward", "Klick", "--timezone", "Europe/Berlin")
    walk.python("-m", "tidepull", "diagnose", *log, "--preview")
    yield "the log is understood"
    found = walk.python("-m", "tidepull", "diagnose", *log)
    assert "daily or weekly season" in found, found
    yield "first diagnosis, kernels compiled"
    walk.python("-m", "tidepull", "backtest", *log, "--uniform", "--policies", "tide,random")
    yield "first backtest"


WALKS = {walk.__name__: walk for walk in (engineer, researcher, analyst)}


def main(wheel: str, python: str = sys.executable, *names: str) -> None:
    """Print a row for each step of each walk."""
    print("| walk | step | seconds |\n|---|---|---:|")
    for steps in [WALKS[name] for name in names or WALKS]:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            began = time.monotonic()
            for step in steps(Walk(folder, Path(wheel).resolve(), python)):
                spent = time.monotonic() - began
                print(f"| {steps.__name__} | {step} | {spent:.0f} |", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
