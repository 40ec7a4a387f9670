"""What was compiled ahead is all that policies need; a cold process needs none of it."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import tidepull
from tidepull._internal import compiler
from tidepull._internal.kernels import KERNELS
from tidepull.state import dump

_AGENT = """
import json, os, pathlib, random, sys, threading, time
from tidepull._internal import compiler

began = time.process_time()
import tidepull
FIELDS = {"age": float, "visits": float, "device": ["phone", "desktop"], "new": bool, "day": int}

def play(rounds, context):
    fields = FIELDS if context else {}
    chance = random.Random(1)
    with tidepull.Agent.memory(arms=["a", "b", "c"], context=fields, seed=1) as agent:
        for n in range(rounds):
            seen = {"age": chance.random(), "visits": float(n), "device": "phone", "new": True, "day": n % 7}
            decision = agent.choose(seen if fields else {})
            agent.reward(decision.id, float(chance.random() < 0.4))
            if n == 0:
                first = time.process_time() - began
        return first
"""

_WARM = (
    _AGENT
    + """
import numpy as np
from numba.core import compiler as numba_compiler
from tidepull.policies import build_policy
from tidepull.types import Context, Event, ProblemShape

def refuse(*_, **__):
    raise AssertionError("a kernel is compiled")

numba_compiler.compile_extra = refuse
tidepull.warm_up()
for shape in (ProblemShape(3), ProblemShape(3, arm_dim=4)):
    policy, rng = build_policy("tide", shape, seed=1), np.random.default_rng(1)
    for t in range(40):
        seen = Context(arm_features=rng.normal(size=(3, 4)) if shape.arm_dim else None)
        policy.learn(Event(seen, policy.choose(seen), float(rng.normal())))
        while policy.upkeep():
            pass
for context in (False, True):
    play(40, context)
print(compiler._missing.qsize())
"""
)

_CALLED = """
import json
from tidepull._internal import compiler
from tidepull._internal.kernels import KERNELS
from tidepull._internal.warm_up import missing_kernels, play_all
compiler.compile_here(play_all)
missing_kernels()  # imports all that have kernels
inside = {name for kernel in KERNELS for name in kernel.py_func.__code__.co_names}
print(json.dumps([
    kernel.name for kernel in KERNELS
    if kernel._run == kernel._first_call and kernel.__name__ not in inside
]))
"""

_COLD = (
    _AGENT
    + """
compiler.places = lambda: [pathlib.Path(os.environ["TIDEPULL_CACHE"])]  # and nothing beside it
compiler._compile_elsewhere = lambda: threading.Event().wait()  # it takes for ever
sys.modules["numba"] = None  # whatever compiles or loads a kernel fails
print(json.dumps([play(3, True), play(3, False), compiler.is_cold()]))
"""
)


def run(program: str, **environment: str) -> Any:
    """What a process of its own prints."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_other_process_finds_all_kernels_after_warm_up() -> None:
    tidepull.warm_up()
    assert run(_WARM) == 0


def test_warm_up_calls_every_kernel_that_no_other_kernel_calls() -> None:
    tidepull.warm_up()
    # The types of boxed arguments are compiled with the kernels that take them.
    assert run(_CALLED) == ["tide.models.boxed_native._new_box"]


def test_no_call_of_a_cold_process_compiles(tmp_path: Path) -> None:
    first, second, cold = run(_COLD, TIDEPULL_CACHE=str(tmp_path), XDG_CACHE_HOME=str(tmp_path))
    assert cold
    assert first < 3.0, "seconds of the processor until the first reward was learnt"
    assert second < first + 3.0


def test_child_of_a_fork_goes_on_where_its_parent_was(tmp_path: Path) -> None:
    program = (
        _COLD
        + """
import os
if (child := os.fork()) == 0:
    play(2, False)
    os._exit(compiler._thread is None)
assert os.waitpid(child, 0)[1] == 0
"""
    )
    assert run(program, TIDEPULL_CACHE=str(tmp_path), XDG_CACHE_HOME=str(tmp_path))[2]


def test_import_and_agent_need_neither_numba_nor_scipy() -> None:
    program = """
import json, sys
import tidepull
tidepull.Agent.memory(arms=["a", "b"], context={"x": float})
print(json.dumps([name for name in ("numba", "llvmlite", "scipy", "pandas") if name in sys.modules]))
"""
    assert run(program) == []


FIELDS = {"age": float, "device": ["phone", "desktop"]}


def decide(switches: random.Random | None) -> bytes:
    """All that an agent knows after some decisions; kernels switch between Python and compiled code
    by chance, or stay compiled."""
    chance = random.Random(2)
    with tidepull.Agent.memory(
        arms=["a", "b", "c"], context=FIELDS, seed=3, training="manual"
    ) as agent:
        for n in range(60):
            for kernel in KERNELS:
                if switches is not None and kernel.exact and not kernel.inline:
                    kernel._run = switches.choice([kernel._in_python, kernel.dispatcher])
            decision = agent.choose({"age": chance.random(), "device": "phone"}, at=1.8e9 + n)
            agent.reward(decision.id, float(chance.random() < 0.4), at=1.8e9 + n)
        policy = agent._commands.state.learning.policy
        assert policy is not None
        return dump(policy.snapshot())


def test_switch_at_any_moment_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    tidepull.warm_up()
    expected = decide(None)
    with monkeypatch.context() as patched:
        for kernel in KERNELS:
            patched.setattr(kernel, "_run", kernel._run)
        assert decide(random.Random(4)) == expected


def test_replay_of_a_ledger_follows_what_a_cold_process_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tidepull.warm_up()
    with tidepull.Agent(tmp_path / "shop.db", arms=["a", "b"], context={}, seed=1) as agent:
        with monkeypatch.context() as patched:
            patched.setattr(compiler, "is_cold", lambda: True)
            for n in range(40):
                agent.reward(agent.choose().id, float(n % 2))
            assert agent._commands.state.learning.pending
        for n in range(40):
            agent.reward(agent.choose().id, float(n % 2))
        assert agent.check().differences == 0


def test_mark_changes_with_the_processor() -> None:
    assert compiler.mark("x86-64-v3") != compiler.mark("x86-64-v4")


def test_mark_changes_with_a_file_that_kernels_import(monkeypatch: pytest.MonkeyPatch) -> None:
    before = compiler.mark("x86-64-v3")
    errors = Path(tidepull.errors.__file__).resolve()
    content, digest, mark = compiler._content, compiler.source_digest, compiler.mark
    monkeypatch.setattr(compiler, "_content", lambda f: content(f) + b"#" * (f == errors))
    monkeypatch.setattr(compiler, "source_digest", digest.__wrapped__)
    assert mark.__wrapped__("x86-64-v3") != before


def test_kernels_of_a_level_serve_a_processor_without_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiler, "places", lambda: [tmp_path])
    monkeypatch.setattr(compiler, "levels", lambda: ["x86-64-v3", "x86-64-v2"])
    monkeypatch.setattr(sys, "modules", {n: m for n, m in sys.modules.items() if n != "numba"})
    for name in ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES"):
        monkeypatch.setenv(name, "")
    assert not compiler.is_warm()
    (tmp_path / compiler.mark("x86-64-v3")).touch()
    assert compiler.is_warm()
    assert os.environ["NUMBA_CPU_NAME"] == "x86-64-v3"


def test_waiting_for_the_compiler_ends_when_a_service_stops(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    forever = threading.Thread(target=threading.Event().wait, daemon=True)
    forever.start()
    monkeypatch.setattr(compiler, "_ready", threading.Event())
    monkeypatch.setattr(compiler, "_DISABLED", False)
    monkeypatch.setattr(compiler, "is_warm", lambda: False)
    monkeypatch.setattr(compiler, "_start", lambda: forever)
    monkeypatch.setattr(compiler._permission, "held", False)
    answers = iter([False, True])
    assert compiler.wait(stopping=lambda: next(answers))
    assert list(answers) == []
