"""Judge one mutant after another: a copy of the repository is changed, and the module's quick tests
run on it.

Every judgement is a fork of one process that has the large libraries loaded already. Limits are in
seconds of CPU, so that a busy machine kills no mutant by itself.
"""

from __future__ import annotations

import importlib
import os
import resource
import shutil
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import NamedTuple

from research.benchmarks.mutants.plan import Target

_COPIED = ("src", "tests", "suites", "benchmarks", "examples", "pyproject.toml")
_PRELOADED = (
    "numpy", "scipy.linalg", "scipy.stats", "numba", "pyarrow.parquet", "pytest", "msgspec",
)  # fmt: skip
_LEAST_SECONDS = 20
_MEMORY = 8 << 30


class Verdict(NamedTuple):
    """`killed` by a test that failed, `timeout`, or `survived`; seconds of CPU; the test that
    failed."""

    outcome: str
    seconds: float
    test: str


class Judge:
    """Owns a copy of the repository under `work`."""

    def __init__(self, root: Path, work: Path) -> None:
        self._work = work
        for name in _COPIED:
            source, target = root / name, work / name
            if source.is_dir():
                # With numba's compiled kernels, which are valid as long as files keep their times.
                shutil.copytree(
                    source, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.pyc")
                )
            else:
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, target)
        os.environ.update(
            OPENBLAS_NUM_THREADS="1",
            OMP_NUM_THREADS="1",
            PYTHONPATH=str(work / "src"),
            PYTHONDONTWRITEBYTECODE="1",
        )
        sys.dont_write_bytecode = True
        for name in _PRELOADED:
            importlib.import_module(name)
        self._limits: dict[tuple[str, ...], int] = {}

    def clean(self, target: Target) -> Verdict:
        """The tests without any mutant; they must pass, and say how long a mutant may take."""
        verdict = self._tests(target, _LEAST_SECONDS * 60)
        self._limits[target.tests] = int(_LEAST_SECONDS + 4 * verdict.seconds)
        return verdict

    def source(self, module: str) -> str:
        """A module as it was when the copy was made."""
        return (self._work / module).read_text()

    def judge(self, target: Target, module: str, code: str) -> Verdict:
        """The verdict on a module with this code."""
        path = self._work / module
        original, stat = path.read_bytes(), path.stat()
        path.write_text(code)
        try:
            return self._tests(target, self._limits[target.tests])
        finally:
            path.write_bytes(original)
            os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))

    def _tests(self, target: Target, limit: int) -> Verdict:
        log = self._work / "log.txt"
        sys.stdout.flush()
        before = _cpu()
        pid = os.fork()
        if pid == 0:
            _run(target, self._work, log, limit)
        status = _wait(pid, 40 * limit)
        seconds = _cpu() - before
        if os.WIFSIGNALED(status):
            outcome = (
                "timeout" if os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL) else "killed"
            )
            return Verdict(outcome, seconds, "")
        code = os.WEXITSTATUS(status)
        return Verdict(
            "survived" if code == 0 else "killed", seconds, "" if code == 0 else _first_failure(log)
        )


def _run(target: Target, work: Path, log: Path, limit: int) -> None:
    """In the child: pytest, and out."""
    code = 99
    try:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.chdir(work)
        sys.path[:] = [
            str(work / "src"),
            str(work),
            *(p for p in sys.path if "tidepull" not in p and p),
        ]
        if not target.jit:
            import numba

            os.environ["NUMBA_DISABLE_JIT"] = "1"
            numba.config.DISABLE_JIT = True
        import pytest

        present = [test for test in target.tests if (work / test.split("::")[0]).exists()]
        assert present, "no such tests"
        unwanted = " or ".join(target.without)
        options = [
            "-x",
            "-q",
            "--tb=line",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:xdist",
            "--no-header",
        ]
        options += ["-W", "ignore::RuntimeWarning"] if not target.jit else []
        options += ["-k", f"not ({unwanted})"] if unwanted else []
        code = int(pytest.main([*options, *present]))
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _wait(pid: int, seconds: float) -> int:
    """The child's exit status; whoever neither works nor ends is stopped."""
    end = time.monotonic() + seconds
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return status
        if time.monotonic() > end:
            os.killpg(pid, signal.SIGKILL)
            return os.waitpid(pid, 0)[1]
        time.sleep(0.05)


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _first_failure(log: Path) -> str:
    for line in log.read_text(errors="replace").splitlines():
        if line.startswith(("FAILED ", "ERROR ")):
            return line.split(" ", 1)[1].split(" - ")[0]
    return "collection"
