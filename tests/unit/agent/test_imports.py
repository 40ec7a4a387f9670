"""What an agent needs to be imported: few modules, and nothing that only some systems have."""

from __future__ import annotations

import os
import subprocess
import sys


def printed(program: str, environment: dict[str, str] | None = None) -> str:
    """What a program of its own process prints."""
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment
    ).stdout.strip()


def test_agent_loads_under_60_of_our_modules() -> None:
    program = "import sys, tidepull; tidepull.Agent; print(sum(m.startswith('tidepull') for m in sys.modules))"
    assert int(printed(program)) < 60


def test_importing_the_package_imports_no_other() -> None:
    program = """
import sys
before = set(sys.modules)
import tidepull
print(sorted({name.split(".")[0] for name in set(sys.modules) - before} - sys.stdlib_module_names))
"""
    assert printed(program) == "['tidepull']"


def test_simple_agent_needs_neither_scipy_nor_numba() -> None:
    program = """
import sys, tidepull
with tidepull.Agent.memory(arms=["a", "b"], context={}, policy="bernoulli-ts") as agent:
    agent.reward(agent.choose(), 1.0)
print({"scipy", "numba", "pandas", "msgspec"} & set(sys.modules))
"""
    assert printed(program) == "set()"


def test_agent_in_memory_needs_no_fcntl() -> None:
    program = """
import sys
sys.modules["fcntl"] = None
import tidepull
with tidepull.Agent.memory(arms=["a", "b"], context={}, policy="random") as agent:
    print(agent.reward(agent.choose(), 1.0))
try:
    tidepull.Agent("shop.db", arms=["a", "b"])
except tidepull.errors.LedgerError as error:
    print(error)
"""
    taken, refusal = printed(program).splitlines()
    assert taken == "True"
    assert "this system has no flock" in refusal


WITHOUT_SCIPY = """
import sys
sys.modules["scipy"] = None
import numpy as np, tidepull
"""


def test_agents_networks_and_lifts_need_no_scipy() -> None:
    program = """
for policy in ("tide", "lin-ts", "d-lin-ucb", "rnlps"):
    agent = tidepull.Agent.memory(
        arms=["a", "b"], context={"x": float}, policy=policy, control=0.5, training="inline", seed=0
    )
    with agent:
        for n in range(30):
            agent.reward(agent.choose({"x": n / 30}), float(n % 3))
        print(agent.lift().known)
covariance = np.array([[2.0, 1.0], [1.0, 3.0]])
posterior = tidepull.LinearGaussian(2, prior_covariance=covariance)
print(np.abs(posterior.precision @ covariance - np.eye(2)).max() < 1e-15)
"""
    assert printed(WITHOUT_SCIPY + program).split() == ["True"] * 5


def test_plot_names_the_extra_when_there_is_no_scipy() -> None:
    program = """
agent = tidepull.Agent.memory(arms=["a", "b"], context={}, policy="random")
try:
    agent.plot("shop.png")
except tidepull.errors.MissingExtraError as error:
    print(error.extra)
"""
    assert printed(WITHOUT_SCIPY + program) == "experiments"


def test_logs_and_synthetic_banners_name_the_extra_that_has_scipy() -> None:
    program = """
from tidepull.problems.criteo.banners import synthetic_file
for call in (lambda: tidepull.logs, lambda: synthetic_file(3)):
    try:
        call()
    except tidepull.errors.MissingExtraError as error:
        print(error)
"""
    environment = {**os.environ, "XDG_CACHE_HOME": "nowhere"}
    assert printed(WITHOUT_SCIPY + program, environment).splitlines() == [
        "tidepull.logs needs the extra 'tables': pip install 'tidepull[tables]'",
        "making a synthetic Criteo file needs the extra 'data': pip install 'tidepull[data]'",
    ]
