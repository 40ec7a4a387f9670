"""Your own modules: imported before a trial, so that what they register can be named in a suite."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from traceback import extract_tb

from tidepull.errors import SuiteError

_loaded: dict[str, str] = {}
"""From each name to the checksum of the source that was imported under it."""


def load_modules(names: Iterable[str]) -> None:
    """Import each once; a name is dotted (`lab.policies`) or the path of a .py file."""
    for name in names:
        if name not in _loaded:
            # Of the code as imported: after a later edit, results of the old code must not pass as new.
            _loaded[name] = _load_file(Path(name)) if name.endswith(".py") else _load_dotted(name)


def source_hashes(names: Iterable[str]) -> list[str]:
    """Name and checksum of each module's source; where a file lies does not matter."""
    load_modules(names)
    return [f"{Path(name).name} {_loaded[name]}" for name in names]


def _load_dotted(name: str) -> str:
    with _importing(name):
        module = importlib.import_module(name)
    if module.__file__ is None:
        raise SuiteError(f"the module '{name}' has no source file; name one of its modules instead")
    return sha256(Path(module.__file__).read_bytes()).hexdigest()


def _load_file(path: Path) -> str:
    with _importing(str(path)):
        checksum = sha256(path.read_bytes()).hexdigest()
        if checksum in _loaded.values():
            return checksum  # The same code under another path has registered its ids already.
        qualified = f"tidepull_own_{path.stem}_{checksum[:8]}"
        spec = importlib.util.spec_from_file_location(qualified, path)
        if spec is None or spec.loader is None:
            raise ImportError("not a Python file")
        module = importlib.util.module_from_spec(spec)
        sys.modules[qualified] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[qualified]
            raise
    return checksum


@contextmanager
def _importing(name: str) -> Iterator[None]:
    """Whatever the module does while it is imported, one sentence says that it did not work."""
    try:
        yield
    except (ImportError, OSError, SyntaxError) as error:
        raise SuiteError(f"the module '{name}' cannot be imported ({error})") from None
    except SystemExit:
        raise SuiteError(
            f"the module '{name}' ends the program while it is imported (sys.exit): put that under "
            'if __name__ == "__main__"'
        ) from None
    except Exception as error:
        own = [frame for frame in extract_tb(error.__traceback__) if frame.filename == name]
        line = f" in line {own[-1].lineno}" if own else ""
        raise SuiteError(f"the module '{name}' raised {type(error).__name__}{line}: {error}") from None
