"""What an agent needs to be imported: few modules, and nothing that only some systems have."""

from __future__ import annotations

import subprocess
import sys


def printed(program: str) -> str:
    """What a program of its own process prints."""
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
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
