"""One trial as data: problem, policy, horizon and seed, with a readable id and a content hash.

`run_spec` plays it, `attempt` also turns an exception into part of the `Result`. A spec may name
modules of the user, which are imported first, and problems may read data files; both enter the hash
by checksum. `lacking` says what trials cannot run here, by building each of their worlds once; the
package of an external policy is looked for, not imported.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import socket
import sys
import time
import traceback
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from hashlib import sha256
from pathlib import Path
from traceback import extract_tb
from typing import Any

from tidepull import registry
from tidepull.errors import DataError, MissingExtraError, SuiteError, TidepullError
from tidepull.experiments.delay import AT_ONCE, delay_slug, delay_text
from tidepull.experiments.loop import Trial, run_trial
from tidepull.policies import policies
from tidepull.problems import build_problem, problems

_loaded: dict[str, str] = {}
"""From each name to the checksum of the source that was imported under it."""


def load_modules(names: Iterable[str]) -> None:
    """Import each once; a name is dotted (`lab.policies`) or the path of a .py file."""
    for name in names:
        if name not in _loaded:
            # Of the code as imported: after a later edit, results of the old code must not pass as
            # new.
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
        raise SuiteError(
            f"the module '{name}' raised {type(error).__name__}{line}: {error}"
        ) from None


@lru_cache(maxsize=4096)
def data_files(problem: str, parameters: str) -> tuple[Path, ...]:
    """Files that a problem (id, and parameters as JSON) reads on this machine."""
    entry, resolved = problems.resolve((problem, json.loads(parameters)))
    return tuple(entry.data(resolved)) if entry.data is not None else ()


def checksum(path: Path) -> str:
    """Of a file's content; read again only when its size or time of change differs."""
    try:
        stat = path.stat()
        return _checksum(path, stat.st_size, stat.st_mtime_ns)
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror})") from None


@lru_cache(maxsize=256)
def _checksum(path: Path, size: int, changed: int) -> str:  # noqa: ARG001
    return sha256(path.read_bytes()).hexdigest()


RESULTS_VERSION = 1
"""Raised when a change to tidepull makes all trials come out differently; old results are then
re-run.

What changes one problem or one policy raises the `version` of its registry entry instead."""


@dataclass(frozen=True, kw_only=True)
class TrialSpec:
    """A trial that can be sent anywhere and run there with the same result.

    `name` and `setting` only name it (`rnlps-default`, `epochs=16,units=32x32x32`); everything else
    goes into the hash. `modules` are your own modules or .py files, imported first so that they can
    register problems and policies. `delay` is how late rewards come, as in `run_trial` (no
    function).
    """

    problem: str
    policy: str
    horizon: int
    seed: int
    problem_parameters: Mapping[str, Any] = field(default_factory=dict)
    policy_parameters: Mapping[str, Any] = field(default_factory=dict)
    problem_seed: int | None = None
    delay: int | str = 0
    problem_name: str = ""
    name: str = ""
    setting: str = ""
    modules: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """For people: `flipping-gaussian/rnlps-default/seed-3`; late rewards follow the problem, as
        `delay-8`."""
        parts = (
            self.problem_name or self.problem,
            delay_slug(self.delay_text),
            self.name or self.policy,
            self.setting,
            f"seed-{self.seed}",
        )
        return "/".join(part for part in parts if part)

    @property
    def delay_text(self) -> str:
        """How late rewards come, in its one spelling."""
        return delay_text(self.delay)

    @property
    def content(self) -> dict[str, Any]:
        """Everything that can change the result, every parameter spelled out."""
        policy, problem = self.resolved_parameters
        return {
            "results_version": RESULTS_VERSION,
            "problem": self.problem,
            "problem_parameters": json.loads(problem),
            "policy": self.policy,
            "policy_parameters": json.loads(policy),
            "horizon": self.horizon,
            "seed": self.seed,
            "problem_seed": self.seed if self.problem_seed is None else self.problem_seed,
            "code": source_hashes(self.modules),
            "data": {file.name: checksum(file) for file in self.data_files},
            **self._versions(),
            **({} if self.delay_text == AT_ONCE else {"delay": self.delay_text}),
        }

    def _versions(self) -> dict[str, int | str]:
        """Versions of the problem and the policy, where they are not the first, and of an external
        package."""
        load_modules(self.modules)
        policy = registry.policies.entry(self.policy)
        versions = {
            "problem_version": registry.problems.entry(self.problem).version,
            "policy_version": policy.version,
        }
        package = {} if policy.library is None else {policy.library.name: policy.library.version}
        return {name: version for name, version in versions.items() if version > 1} | package

    @property
    def resolved_parameters(self) -> tuple[str, str]:
        """All parameters of the policy and of the problem, defaults included, as JSON."""
        load_modules(self.modules)
        return (
            _resolved("policy", self.policy, canonical(self.policy_parameters)),
            _resolved("problem", self.problem, canonical(self.problem_parameters)),
        )

    @property
    def data_files(self) -> tuple[Path, ...]:
        """The files that the problem reads."""
        load_modules(self.modules)
        return data_files(self.problem, canonical(self.problem_parameters))

    @cached_property
    def hash(self) -> str:
        """Two specs with one hash give the same bytes."""
        return sha256(canonical(self.content).encode()).hexdigest()[:32]


def run_spec(spec: TrialSpec) -> Trial:
    """Play the trial that a spec describes."""
    load_modules(spec.modules)
    return run_trial(
        (spec.problem, spec.problem_parameters),
        (spec.policy, spec.policy_parameters),
        horizon=spec.horizon,
        seed=spec.seed,
        problem_seed=spec.problem_seed,
        delay=spec.delay,
    )


def canonical(value: Any) -> str:
    """JSON with one way to write each value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


@lru_cache(maxsize=65536)
def _resolved(noun: str, id: str, values: str) -> str:
    entries: registry.Registry[Any] = registry.problems if noun == "problem" else registry.policies
    return canonical(entries.resolve((id, json.loads(values)))[1].to_mapping())


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """What became of one spec; `seconds` and `cpu_seconds` include building problem and policy.

    `mistake` is the one sentence of a failure that tidepull raised on purpose.
    """

    spec: TrialSpec
    trial: Trial | None
    error: str = ""
    mistake: str = ""
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    machine: str = ""


def attempt(spec: TrialSpec) -> Result:
    """Run one spec here; an exception becomes part of the result."""
    started, cpu_started = time.perf_counter(), time.process_time()
    trial, error, mistake = None, "", ""
    try:
        trial = run_spec(spec)
    except Exception as failure:
        error = traceback.format_exc()
        mistake = str(failure) if isinstance(failure, TidepullError) else ""
        if isinstance(failure, MemoryError):
            mistake = f"{spec.id} needs more memory than there is ({failure}): make it smaller"
    return Result(
        spec=spec,
        trial=trial,
        error=error,
        mistake=mistake,
        seconds=time.perf_counter() - started,
        cpu_seconds=time.process_time() - cpu_started,
        machine=socket.gethostname(),
    )


def lacking(specs: Iterable[TrialSpec]) -> dict[str, list[TrialSpec]]:
    """The trials that cannot run here, by the sentence that says what is missing and how to get
    it."""
    worlds: dict[tuple[object, ...], str] = {}
    by_reason: dict[str, list[TrialSpec]] = {}
    for spec in specs:
        world = (spec.problem, canonical(spec.problem_parameters), spec.modules)
        if world not in worlds:
            worlds[world] = _missing(spec)
        if reason := worlds[world] or _absent(spec):
            by_reason.setdefault(reason, []).append(spec)
    return by_reason


def _absent(spec: TrialSpec) -> str:
    """Empty unless the policy is of a library that is not here."""
    library = policies.entry(spec.policy).library
    return (
        ""
        if library is None or library.installed
        else str(MissingExtraError(spec.policy, library.extra))
    )


def _missing(spec: TrialSpec) -> str:
    """Empty when the world can be built, or fails for a reason of its own, which its trials will
    record."""
    load_modules(spec.modules)
    seed = spec.seed if spec.problem_seed is None else spec.problem_seed
    try:
        build_problem((spec.problem, spec.problem_parameters), seed=seed)
    except (DataError, MissingExtraError) as error:
        return str(error)
    except Exception:
        return ""
    return ""
