"""Try a wheel in fresh environments: `python -m manual.fresh WHEEL PYTHON... [--only EXTRA,...]`.

For each Python and each extra, an empty environment gets the wheel with that extra and nothing
else, with the newest versions that its index has. Then a program uses what the extra is for. It
needs an index of packages.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
import time
from pathlib import Path

START = """
import tidepull
with tidepull.Agent("shop.db", arms=["blue", "green"], context={"device": ["phone", "desktop"]}, seed=0) as agent:
    for n in range(30):
        decision = agent.choose({"device": ("phone", "desktop")[n % 2]})
        agent.reward(decision.id, float(decision.arm == "green"))
    assert agent.explain().status
assert tidepull.Agent("shop.db", read_only=True).check().sound
assert tidepull.run_trial("stationary-bernoulli", "ucb", horizon=40, seed=0).regret.shape == (40,)
"""
SERVE = """
import re, subprocess, sys, tidepull
command = [sys.executable, "-m", "tidepull", "serve", "--insecure", "--port", "0", "--db", "agents", "--no-wait"]
server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
try:
    url = next(found[0] for line in server.stdout if (found := re.search(r"http://[\\d.]+:\\d+", line)))
    with tidepull.Client(url, timeout=60.0) as client:
        shop = client.create("shop", arms=["blue", "green"], context={})
        decision = shop.choose()
        assert shop.reward(decision.id, 1.0)
finally:
    server.terminate()
assert server.wait(60) == 0
"""
CHECKS = {
    "": "",
    "serve": SERVE,
    "postgres": "import psycopg",
    "experiments": """
import subprocess, sys
run = [sys.executable, "-m", "tidepull", "run", "stationary-bernoulli", "ucb", "--seeds", "2", "--horizon", "50"]
subprocess.run(run, check=True, stdout=subprocess.DEVNULL)
tidepull.Agent("shop.db", read_only=True).plot("shop.png")
""",
    "tables": """
agent = tidepull.Agent("shop.db", read_only=True)
assert len(agent.history("pandas")) == len(agent.history("polars")) == 30
agent.export("shop.parquet")
assert len(tidepull.logs.read("shop.parquet")) == 30
import subprocess, sys
for command in ("diagnose", "backtest"):
    run = [sys.executable, "-m", "tidepull", command, "shop.parquet"]
    subprocess.run(run, check=True, capture_output=True)
""",
    "data": "import sklearn, mlxtend, pooch, pyarrow",
    "cluster": "import ray",
    "torch": "tidepull.TorchEncoder",
    "integrations": """
assert tidepull.run_trial("stationary-bernoulli", "mabwiser-thompson", horizon=20).regret.shape == (20,)
""",
}
"""A program for each extra, after that of the plain installation."""


def tried(wheel: Path, python: str, extra: str, *options: str) -> str:
    """A row of the table: what was installed, and whether its program ran.

    Parameters
    ----------
    wheel : Path
        The wheel.
    python : str
        The interpreter.
    extra : str
        The extra, or an empty string.
    *options : str
        For pip.
    """
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
        place, began = Path(temporary) / "env", time.monotonic()
        subprocess.run([python, "-m", "venv", place], check=True)
        inside = str(place / "bin" / "python")
        version = _run(temporary, inside, "-c", "import platform; print(platform.python_version())")
        wanted = f"{wheel}[{extra}]" if extra else str(wheel)
        try:
            _run(temporary, inside, "-m", "pip", "install", "--quiet", *options, wanted)
            installed = time.monotonic() - began
            _run(temporary, inside, "-c", START + CHECKS[extra])
            told = "works"
        except subprocess.CalledProcessError as error:
            installed = time.monotonic() - began
            told = f"fails: {error.stderr.strip().splitlines()[-1][:200]}"
        size = sum(path.stat().st_size for path in place.rglob("*") if path.is_file())
        packages = len(list(place.glob("lib/*/site-packages/*.dist-info")))
        return (
            f"| {version.strip()} | {extra or 'plain'} | {packages} | {size / 1e6:.0f} "
            f"| {installed:.0f} | {told} |"
        )


def _run(folder: str, *command: str) -> str:
    """Kernels of all environments go to one folder, where the background compiles them once."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    env["TIDEPULL_CACHE"] = str(Path(tempfile.gettempdir()) / "tidepull-fresh")
    done = subprocess.run(
        command, cwd=folder, env=env, check=True, capture_output=True, text=True, timeout=1800
    )
    return done.stdout


def main() -> None:
    """Print a row for each Python and extra."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("python", nargs="+")
    names = {extra or "plain": extra for extra in CHECKS}
    parser.add_argument("--only", default=",".join(names), help=f"some of {', '.join(names)}")
    parser.add_argument("--constraints", help="a file of versions, for pip")
    given = parser.parse_args()
    chosen = given.only.split(",")
    if unknown := set(chosen) - set(names):
        parser.error(f"--only: there is no extra {', '.join(sorted(unknown))}")
    options = ["--constraint", str(Path(given.constraints).resolve())] if given.constraints else []
    print("| Python | extra | packages | MB | seconds to install | result |")
    print("|---|---|---:|---:|---:|---|")
    for python in given.python:
        for name in chosen:
            print(tried(given.wheel.resolve(), python, names[name], *options), flush=True)


if __name__ == "__main__":
    main()
