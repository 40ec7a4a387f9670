"""`tidepull warm-up`: compile all kernels ahead of time."""

from __future__ import annotations

import os
import subprocess
import sys

from typer import Exit, Option

from tidepull._internal import compiler
from tidepull._internal.warm_up import missing_kernels
from tidepull._internal.warm_up import warm_up as compile_and_load
from tidepull.cli.console import say
from tidepull.errors import InputError


def warm_up(
    check: bool = Option(False, "--check", help="Only say what is missing (exit code 1)."),
    levels: bool = Option(
        False,
        "--levels",
        help="For every level of x86-64 that this processor has, not for itself: for an image.",
    ),
) -> None:
    """Compile all kernels for this processor, once for all processes (about a minute)."""
    if check:
        _check()
        return
    if compiler.folder() is None:
        tried = ", ".join(map(str, compiler.places()))
        raise InputError(f"no folder can be written: {tried}; set TIDEPULL_CACHE to one that can")
    if not levels:
        compiled = compile_and_load()
        say("kernels are compiled" if compiled else "all kernels were compiled before")
        return
    if not compiler.levels():
        raise InputError("--levels is for x86-64 processors on Linux")
    for level in compiler.levels():
        say(f"compiling for {level}")
        target = {"NUMBA_CPU_NAME": level, "NUMBA_CPU_FEATURES": ""}
        again = [sys.executable, "-m", "tidepull", "warm-up"]
        subprocess.run(again, env=os.environ | target, check=True)


def _check() -> None:
    if compiler.is_warm():
        say("all kernels are compiled")
        return
    missing = missing_kernels()
    say(f"{len(missing)} kernels are not compiled for this processor: {', '.join(missing)}")
    raise Exit(1)
