"""The command line as a user meets it: a real process, its output and its exit code."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.integration.cli.typing_it import tidepull
from tidepull.cli.app import Commands
from tidepull.cli.run import with_spread
from tidepull.reporting.stats import summarise

TIDEPULL = [sys.executable, "-W", "error", "-c", "from tidepull.cli import main; main()"]


def process(*words: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run([*TIDEPULL, *words], capture_output=True, text=True, env=env, timeout=120)


def test_a_process_of_its_own_answers_and_fails_like_the_command_that_is_called_here() -> None:
    for words in (
        ("run", "flipping-bernoulli", "ucb", "--horizon", "20", "--json"),
        ("run", "x", "ucb"),
    ):
        real, here = process(*words), tidepull(*words)
        assert (real.returncode, real.stderr) == (here.returncode, here.stderr)
        assert [line for line in real.stdout.splitlines() if "seconds" not in line] == [
            line for line in here.stdout.splitlines() if "seconds" not in line
        ]


def test_help_imports_no_numerical_library() -> None:
    code = (
        "import sys; sys.argv = ['tidepull', '--help']; from tidepull.cli import main\n"
        "try: main()\n"
        "finally: print(sorted({'numpy', 'scipy', 'numba', 'pyarrow'} & set(sys.modules)))"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=env, timeout=120
    )
    assert done.stdout.splitlines()[-1] == "[]", done.stdout + done.stderr


def test_command_that_needs_scipy_names_the_extra() -> None:
    code = (
        "import sys; sys.modules['scipy'] = None; sys.argv = ['tidepull', 'run', 'shop', 'ucb']\n"
        "from tidepull.cli import main; main()"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=env, timeout=120
    )
    assert done.returncode == 2
    assert done.stderr == (
        "tidepull: tidepull run needs the extra 'experiments': pip install 'tidepull[experiments]'\n"
    )


def test_every_command_of_the_list_is_there_and_a_near_miss_is_named() -> None:
    for name, entry in Commands.entries.items():
        assert entry.load(name).name == name
    assert "Did you mean 'run'?" in tidepull("rum").stderr


def test_run_prints_only_an_array_of_seeds_when_asked_for_json() -> None:
    done = tidepull(
        "run", "flipping-bernoulli", "d-ucb", "--horizon", "50", "--seeds", "2", "--json"
    )
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    assert [row["seed"] for row in rows] == [0, 1]
    assert all(set(row) == {"seed", "regret", "reward", "seconds", "diagnostics"} for row in rows)


def test_run_plays_the_seeds_that_are_listed() -> None:
    words = ("run", "flipping-bernoulli", "d-ucb", "--horizon", "50", "--json", "--seeds")
    three, listed, one = (
        json.loads(tidepull(*words, seeds).stdout) for seeds in ("3", "2,0", "2-2")
    )
    regrets = {row["seed"]: row["regret"] for row in three}
    assert list(regrets) == [0, 1, 2]
    assert [(row["seed"], row["regret"]) for row in listed] == [(0, regrets[0]), (2, regrets[2])]
    assert [(row["seed"], row["regret"]) for row in one] == [(2, regrets[2])]


def test_run_gives_equal_numbers_whatever_the_number_of_workers() -> None:
    words = (
        "run",
        "flipping-gaussian",
        "sw-ucb",
        "--horizon",
        "60",
        "--seeds",
        "3",
        "--set",
        "window=20",
        "--json",
    )
    one, two = (json.loads(tidepull(*words, "--workers", n).stdout) for n in ("1", "2"))
    assert [(r["regret"], r["reward"]) for r in one] == [(r["regret"], r["reward"]) for r in two]


def test_run_delays_rewards_and_says_so_when_asked() -> None:
    words = ("run", "flipping-gaussian", "ucb", "--horizon", "100", "--delay")
    shown = tidepull(*words, "8")
    assert shown.returncode == 0, shown.stderr
    assert (
        shown.stdout.splitlines()[0]
        == "ucb on flipping-gaussian, 100 rounds, rewards 8 rounds late"
    )
    regrets = [
        json.loads(tidepull(*words, delay, "--json").stdout)[0]["regret"] for delay in ("0", "8")
    ]
    assert regrets[0] != regrets[1]


def test_run_prints_aligned_plain_text_when_piped() -> None:
    done = tidepull(
        "run", "stationary-bernoulli", "bernoulli-ts", "--horizon", "40", "--seeds", "2"
    )
    assert done.returncode == 0, done.stderr
    assert "\x1b[" not in done.stdout
    assert "│" not in done.stdout
    assert any(line.startswith("mean ± std") for line in done.stdout.splitlines())


def test_spread_is_the_standard_deviation_over_trials() -> None:
    regrets = [3.0, 5.0, 10.0]
    assert with_spread(summarise(np.array(regrets))) == f"6.0 ± {statistics.stdev(regrets):.1f}"
    assert with_spread(summarise(np.array(regrets[:1]))) == "3.0"


def test_run_gives_a_setting_to_the_problem_or_the_policy_that_has_it() -> None:
    done = tidepull(
        "run",
        "flipping-gaussian",
        "sw-ucb",
        "--horizon",
        "30",
        "--set",
        "policy.window=5",
        "--json",
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("kind", ["problems", "policies", "suites"])
def test_list_prints_every_id_with_a_description_when_asked_for_json(kind: str) -> None:
    rows = json.loads(tidepull("list", kind, "--json").stdout)
    assert len(rows) >= 11
    assert all(row["id"] and row["description"] for row in rows)


def test_list_shows_parameters_and_ranges_in_plain_text_when_piped() -> None:
    shown = tidepull("list", "policies").stdout
    assert "sw-ucb" in shown
    assert "window" in shown
    assert "\x1b[" not in shown


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("run", "flipping-gausian", "ucb"), "did you mean 'flipping-gaussian'"),
        (("run", "flipping-gaussian", "thompson"), "there is no policy 'thompson'"),
        (("run", "flipping-gaussian", "sw-ucb", "--set", "windw=3"), "did you mean 'window'"),
        (("run", "flipping-gaussian", "sw-ucb", "--set", "window=0"), "window must be ≥ 1"),
        (("run", "flipping-gaussian", "sw-ucb", "--set", "window"), "name=value"),
        (("run", "flipping-gaussian", "ucb", "--horizon", "-5"), "--horizon must be at least 1"),
        (
            ("run", "flipping-gaussian", "ucb", "--horizon", "9", "--seeds", "0"),
            "--seeds: there must be 1 to 1,000,000 of them, got 0",
        ),
        (
            ("run", "flipping-gaussian", "ucb", "--seeds", "0-99999999999"),
            "--seeds: more than 1,000,000 seeds",
        ),
        (
            ("run", "flipping-gaussian", "ucb", "--delay", "soon"),
            "delay must be a whole number of rounds that is not negative, 'geometric:MEAN' or",
        ),
        (
            ("run", "flipping-gaussian", "ucb", "--horizon", "999999999999999"),
            "rounds would need 64 PB of memory",
        ),
        (
            ("run", "flipping-gaussian", "sw-ucb", "--set", "window=3", "--set", "policy.window=4"),
            "--set window is given twice",
        ),
        (
            ("theory", "simulate", "--d", "100000", "--json"),
            "in 100,000 dimensions would need 144 TB of memory",
        ),
        (("sweep", "smoke", "--address", "here:6379"), "--address is for --on ray"),
        (
            ("tune", "flipping-gaussian", "ucb", "--address", "here:6379"),
            "--address is for --on ray",
        ),
        (("demo", "--seeds", "five"), '--seeds: write seeds as "0-9"'),
        (
            ("theory", "simulate", "--seeds", "0,3"),
            "--seeds: write them without gaps, such as 0-3, got 0,3",
        ),
        (
            ("run", "flipping-gaussian", "ucb", "--horizon", "9", "--workers", "0"),
            "--workers must be at least 1",
        ),
        (("run", "flipping-gaussian", "bernoulli-ts", "--horizon", "9"), "reward"),
    ],
)
def test_mistake_gives_one_sentence_and_exit_code_two(words: tuple[str, ...], said: str) -> None:
    done = tidepull(*words)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1


def test_missing_data_file_gives_one_sentence_that_says_where_to_put_it(tmp_path: Path) -> None:
    done = tidepull(
        "run", "wall-following", "random", "--horizon", "5",
        TIDEPULL_DATA=str(tmp_path), XDG_CACHE_HOME=str(tmp_path), TIDEPULL_OFFLINE="1",
    )  # fmt: skip
    assert done.returncode == 2
    assert "sensor_readings_24.data" in done.stderr
    assert "Traceback" not in done.stderr


def test_truncated_data_file_gives_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "sensor_readings_24.data").write_text("0.4,0.5,Move-Forward\n")
    done = tidepull(
        "run", "wall-following", "random", "--horizon", "5", TIDEPULL_DATA=str(tmp_path)
    )
    assert done.returncode == 2
    assert "sensor_readings_24.data" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_demo_shows_a_table_and_writes_a_picture(tmp_path: Path) -> None:
    done = tidepull("demo", "--seeds", "2", "--horizon", "60", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "random" in done.stdout
    assert (tmp_path / "demo-regret.png").read_bytes().startswith(b"\x89PNG")


def test_an_interrupted_command_leaves_without_unloading_anything() -> None:
    code = (
        "import atexit, sys; from tidepull.cli import app\n"
        "atexit.register(lambda: print('unloaded'))\n"
        "def interrupted(): print('kept'); sys.exit(app.INTERRUPTED)\n"
        "app.app = interrupted; app.run_app()"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=env, timeout=120
    )
    assert (done.returncode, done.stdout) == (130, "kept\n"), done.stderr


def test_token_without_the_name_of_an_agent_is_refused() -> None:
    done = tidepull("token", "new", "--agent", "", "--scope", "read")
    assert done.returncode == 2
    assert "--agent must be the name of an agent, or '*' for all" in done.stderr
