"""When kernels are compiled: never in a call of an exact one.

The first call of a kernel starts a thread. If a mark on disk says that all kernels were compiled,
the thread loads those that are in use; until then they run in Python. Otherwise the process is
*cold*: the thread starts a process that compiles them all, once for all processes of a machine (a
lock in the folder), waits for it, and then loads. Kernels are read from all of these places, and
written to the first that can be written:

    TIDEPULL_CACHE, NUMBA_CACHE_DIR, __pycache__ of the package, the user's cache directory

Where none can be written the thread compiles by itself, for its own process alone.
"""

from __future__ import annotations

import atexit
import json
import logging
import os
import platform
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from hashlib import blake2b
from importlib import import_module
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidepull._internal.kernels import Kernel

_LOG = logging.getLogger("tidepull")
_ROOT = Path(__file__).parents[1]
_SOURCES = ("encoders", "posteriors", "tide/models")
"""Folders with kernels."""
_LEVELS = {
    "x86-64-v2": {"cx16", "lahf_lm", "popcnt", "sse4_1", "sse4_2", "ssse3"},
    "x86-64-v3": {"abm", "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe", "xsave"},
    "x86-64-v4": {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"},
}
"""Flags of each level as Linux writes them."""
_DISABLED = os.environ.get("NUMBA_DISABLE_JIT", "0") != "0"
"""Whether all kernels run in Python for ever."""
_FROM = re.compile(r"^\s*from tidepull(\.[\w.]+)? import (?:\(([^)]*)\)|(.*))$", re.MULTILINE)
_PLAY = "tidepull._internal.warm_up"
_PROGRAM = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from tidepull._internal.warm_up import compile_all
compile_all()
"""


class NotCompiledError(Exception):
    """There is no compiled kernel for some arguments, and this is no place to compile one."""


class _Permission(threading.local):
    """Whether a thread may compile."""

    held = False


_permission = _Permission()
_lock = threading.Lock()
_in_use: list[tuple[Kernel, tuple[Any, ...]]] = []  # kernels that run in Python, and a call of each
_loading = threading.Lock()
atexit.register(lambda: _loading.acquire())  # LLVM must not be at work while the process ends
_ready = threading.Event()
_thread: threading.Thread | None = None
_began_cold = False
_missing: SimpleQueue[tuple[Any, Any]] = SimpleQueue()
_compiled = 0  # kernels that the process in the background has compiled so far


def adopt(kernel: Kernel, args: tuple[Any, ...]) -> None:
    """Switch a kernel that is called for the first time to compiled code, now or later."""
    if _DISABLED:
        return
    with _lock:
        if not (_ready.is_set() or _permission.held):
            _in_use.append((kernel, args))
            _start()
            return
    kernel.switch()


def is_ready() -> bool:
    """Whether kernels run compiled."""
    return _ready.is_set()


def is_cold() -> bool:
    """Whether kernels were not compiled when they were first needed, and are not loaded yet: work
    which needs them had better wait."""
    if _ready.is_set() or _DISABLED:
        return False
    return not is_warm() if _thread is None else _began_cold


def wait(
    announce: Callable[[], None] = lambda: None, stopping: Callable[[], bool] = lambda: False
) -> bool:
    """Wait until kernels run compiled, or `stopping` says to give up; whether they had to be
    compiled, which is announced."""
    if _ready.is_set() or _permission.held or _DISABLED:
        return False
    cold = not is_warm()
    with _lock:
        thread = _start()
    if cold:
        announce()
    began, shows = time.monotonic(), cold and sys.stderr.isatty()
    while not _ready.wait(0.2):
        if stopping():
            return cold
        if not thread.is_alive():
            raise RuntimeError("kernels could not be compiled or loaded; the log says why")
        if shows:
            spent = time.monotonic() - began
            print(f"\rcompiling kernels: {_compiled}, {spent:.0f} s", end="", file=sys.stderr)
    if shows:
        print("\rkernels are compiled" + " " * 20, file=sys.stderr)
    return cold


def say(text: str) -> None:
    """Tell a person at a terminal why nothing happens."""
    if sys.stderr.isatty():
        print(text, file=sys.stderr)


def is_allowed() -> bool:
    """Whether this thread may compile."""
    return _permission.held


@contextmanager
def allowed() -> Iterator[None]:
    """Let this thread compile."""
    before, _permission.held = _permission.held, True
    try:
        yield
    finally:
        _permission.held = before


def is_busy() -> bool:
    """Whether another thread compiles, behind numba's lock."""
    return _busy and not _permission.held


_busy = False


def put(dispatcher: Any, signature: Any) -> None:
    """Have a kernel compiled for types of arguments that are not on disk."""
    _missing.put((dispatcher, signature))
    with _lock:
        _start()


def compile_here(play: Callable[[], None]) -> None:
    """Run something that calls kernels, and compile in this process what it needs."""
    _ready.set()
    with allowed():
        play()


def _start() -> threading.Thread:
    global _thread, _began_cold
    if _thread is None:
        _began_cold = not is_warm()
        _thread = threading.Thread(target=_run, name="tidepull-kernels", daemon=True)
        _thread.start()
    return _thread


def _begin_anew() -> None:
    """In the child of a fork there is no thread."""
    global _lock, _loading, _ready, _thread, _busy
    _lock, _loading, _thread, _busy = threading.Lock(), threading.Lock(), None, False
    before, _ready = _ready, threading.Event()
    if before.is_set():
        _ready.set()
    for kernel, _ in _in_use:
        kernel.forget()
    _in_use.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)


def _run() -> None:
    try:
        if not (_ready.is_set() or is_warm() or _compile_elsewhere()):
            _compile_in_this_thread()
        _load()
    except Exception:
        _LOG.exception("kernels could not be compiled or loaded: they stay in Python")
        return
    while True:
        dispatcher, signature = _missing.get()
        with _compiling(), suppress(Exception):  # it stays in Python
            dispatcher.compile(signature)


def _load() -> None:
    """Load what is in use, and switch to it."""
    while True:
        with _lock:
            batch, _in_use[:] = _in_use[:], []
            if not batch:
                _ready.set()
                return
        for kernel, args in batch:
            with _loading:
                kernel.load(args)
            kernel.switch()


@contextmanager
def _compiling() -> Iterator[None]:
    """Compile in this thread; calls in others find its lock taken, and run in Python."""
    global _busy
    _busy = True
    try:
        with allowed():
            yield
    finally:
        _busy = False


def _compile_in_this_thread() -> None:
    _LOG.warning(
        "compiled kernels cannot be written to any of %s: they are compiled for this process "
        "alone; set TIDEPULL_CACHE to a folder that can be written",
        ", ".join(map(str, places())),
    )
    with _compiling():
        for kernel, _ in _in_use:
            kernel.switch()
        import_module(_PLAY).play_all()


def _compile_elsewhere() -> bool:
    """Let another process compile everything; whether that is done."""
    global _compiled
    if folder() is None or not sys.executable:
        return False
    program = [sys.executable, "-c", _PROGRAM, json.dumps(sys.path)]
    null = subprocess.DEVNULL
    with subprocess.Popen(
        program, stdin=null, stdout=subprocess.PIPE, stderr=null, start_new_session=True
    ) as process:
        assert process.stdout is not None
        for _ in process.stdout:
            _compiled += 1
    return is_warm()


def places() -> list[Path]:
    """Folders for compiled kernels, the preferred one first."""
    named = [os.environ.get(name) for name in ("TIDEPULL_CACHE", "NUMBA_CACHE_DIR")]
    folders = [Path(name) for name in named if name]
    folders.append(_ROOT / "__pycache__")
    with suppress(RuntimeError):  # a user without a home
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        folders.append(home / "tidepull" / "kernels")
    return folders


def folder() -> Path | None:
    """The first of these folders that can be written."""
    for place in places():
        with suppress(OSError):
            place.mkdir(parents=True, exist_ok=True)
            if os.access(place, os.W_OK):
                return place
    return None


def is_warm() -> bool:
    """Whether a mark on disk says that all kernels were compiled: for this very processor, or for a
    level of x86-64 that it has, which is then the target of numba in this process."""
    if any((place / mark(target())).exists() for place in places()):
        return True
    for level in [] if "numba" in sys.modules or os.environ.get("NUMBA_CPU_NAME") else levels():
        if any((place / mark(level)).exists() for place in places()):
            os.environ.update(NUMBA_CPU_NAME=level, NUMBA_CPU_FEATURES="")
            return True
    return False


@cache
def mark(processor: str) -> str:
    """The name of the mark: it changes with the sources, the compiler and the processor."""
    from importlib.metadata import version  # `import tidepull` is quicker without it

    digest = blake2b(digest_size=8)
    for name in (str(_ROOT), sys.version, version("numba"), version("llvmlite"), processor):
        digest.update(name.encode() + b"\0")
    for folder in _SOURCES:
        for file in sorted((_ROOT / folder).glob("*.py")):
            digest.update(source_digest(file).encode())
    return f"compiled-{digest.hexdigest()}"


@cache
def source_digest(path: Path, root: Path = _ROOT) -> str:
    """Return a digest of a source file and of all files below `root` that it imports, directly or
    not; it is the stamp of a kernel."""
    root = root.resolve()
    digest, waiting, seen = blake2b(digest_size=16), [path.resolve()], set()
    while waiting:
        if (file := waiting.pop()) not in seen:
            seen.add(file)
            waiting += _imported(file, root)
    for file in sorted(seen):
        digest.update(str(file.relative_to(root)).encode() + b"\0" + _content(file))
    return digest.hexdigest()


@cache
def _content(file: Path) -> bytes:
    return file.read_bytes()


@cache
def _imported(file: Path, root: Path) -> list[Path]:
    """The files of the package that a file imports by `from` (the only way in this package), but
    for those of decorators."""
    files = list[Path]()
    for module, several, one in _FROM.findall(_content(file).decode()):
        if not module.startswith("._internal"):
            folder = root.joinpath(*module.split("."))
            names = re.findall(r"\w+", several or one)
            files += [
                folder.with_suffix(".py"),
                *((folder / name).with_suffix(".py") for name in names),
            ]
    return [file for file in files if file.is_file()]


def target() -> str:
    """What numba compiles for: what it is told, or this very processor."""
    name = os.environ.get("NUMBA_CPU_NAME")
    return name or f"{platform.machine()} {_processor().get('model name')} {sorted(_flags())}"


def levels() -> list[str]:
    """Levels of x86-64 that this processor has, the highest first."""
    available: list[str] = []
    for level, needs in _LEVELS.items():
        if not needs <= _flags():
            break
        available.insert(0, level)
    return available


def _flags() -> set[str]:
    return set(_processor().get("flags", "").split())


@cache
def _processor() -> dict[str, str]:
    """What Linux says of the first processor."""
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines()
        pairs = (line.partition(":") for line in lines)
        return {name.strip(): value.strip() for name, _, value in pairs}
    return {}
