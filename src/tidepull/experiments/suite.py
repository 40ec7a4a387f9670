"""Suites: a TOML file becomes frozen trial specs; each error is one sentence that names file and
key.

`suite_text` writes the TOML of chosen settings, which `tidepull sweep` runs next.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any

from tidepull._internal.extras import needs
from tidepull._internal.validation import in_words
from tidepull.errors import DataError, InputError, ParameterError, SuiteError
from tidepull.experiments import grid
from tidepull.experiments.delay import delay_text
from tidepull.experiments.spec import TrialSpec, load_modules
from tidepull.policies import policies
from tidepull.problems import problems

with needs("reading suites", "experiments"):
    import msgspec
    from msgspec import Meta

_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"
_PATTERNS = {_NAME: "letters, digits, '.', '_' and '-', the first a letter or a digit"}
Name = Annotated[str, Meta(pattern=_NAME)]
PositiveInt = Annotated[int, Meta(ge=1)]


class Seeds(tuple[int, ...]):
    """Seeds as `parse_seeds` reads them."""


class DelayText(str):
    """A delay in its one spelling."""


class ProblemTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[[problems]]`: one world; `name` is what it is called (its id when absent).

    Horizon, delay and seeds are the suite's where they are absent.
    """

    id: str
    name: Name | None = None
    horizon: PositiveInt | None = None
    delay: DelayText | None = None
    seeds: Seeds | None = None
    parameters: dict[str, Any] = {}

    @property
    def shown_name(self) -> str:
        """The name that results carry."""
        return self.name or self.id


class PolicyTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[[policies]]`: one learner, or a grid of its settings; `id` is its name when absent.

    `grid` maps parameters to lists of candidates; the settings are their product. `chosen`
    says in words how the parameters were chosen, and from how many trials; reports show it.
    """

    name: Name
    id: str | None = None
    problems: tuple[str, ...] = ("*",)
    parameters: dict[str, Any] = {}
    grid: dict[str, Annotated[list[Any], Meta(min_length=1)]] = {}
    from_variation_budget: bool = False
    chosen: str = ""


class SuiteTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The whole file."""

    name: Name
    description: str = ""
    seeds: Seeds
    horizon: PositiveInt | None = None
    delay: DelayText | None = None
    problem_seed: Annotated[int, Meta(ge=0)] | None = None
    modules: tuple[str, ...] = ()
    problems: Annotated[tuple[ProblemTable, ...], Meta(min_length=1)]
    policies: Annotated[tuple[PolicyTable, ...], Meta(min_length=1)]
    search: grid.SearchRule = grid.SearchRule()


_TABLES: dict[str, type[msgspec.Struct]] = {
    "": SuiteTable,
    "problems": ProblemTable,
    "policies": PolicyTable,
    "search": grid.SearchRule,
    "search.rungs": grid.Rung,
}


def read_suite(content: dict[str, Any]) -> SuiteTable:
    """Check what a TOML file says; a `SuiteError` names the key, the value and what is allowed."""
    try:
        return msgspec.convert(content, SuiteTable, dec_hook=_decode)
    except msgspec.ValidationError as error:
        message, _, path = str(error).partition(" - at `$")
        place, value = _located(path.rstrip("`"), content)
        if match := re.fullmatch(
            r"Object (contains unknown|missing required) field `(.*)`", message
        ):
            key = f"{place}.{match[2]}".lstrip(".")
            if match[1] == "missing required":
                raise SuiteError(f"the key '{key}' is missing") from None
            allowed = _TABLES[re.sub(r"\[\d+\]", "", place)].__struct_fields__
            raise SuiteError(
                f"there is no key '{key}'; allowed here: {', '.join(allowed)}"
            ) from None
        raise SuiteError(f"{place}: {in_words(message, _PATTERNS)[1]} (got {value!r})") from None


def _decode(kind: type, value: Any) -> Any:
    """Read seeds and delays, which have a text of their own."""
    if kind is Seeds:
        return Seeds(grid.parse_seeds(value))
    try:
        return DelayText(delay_text(value))
    except ParameterError as error:
        raise ValueError(str(error).removeprefix("delay ").partition(", got ")[0]) from None


def _located(path: str, value: Any) -> tuple[str, Any]:
    """Turn msgspec's path into `policies[2].grid`, counted from 1, and look up the value there.

    msgspec writes `[...]` for the keys of a grid; the key is that of the first entry that is no
    list of candidates.
    """
    place = ""
    for key, index in re.findall(r"\.(\w+)|\[(\d+|\.\.\.)\]", path):
        if index == "...":
            key = next(key for key, one in value.items() if not (isinstance(one, list) and one))
        if key:
            place, value = f"{place}.{key}", value[key]
        else:
            place, value = f"{place}[{int(index) + 1}]", value[int(index)]
    return place.lstrip("."), value


MOST_TRIALS = 1_000_000
"""Of one suite; a hundred times the paper's largest search."""


@dataclass(frozen=True, slots=True)
class Suite:
    """A suite as it will be run. The specs go seed by seed, so that a half-finished grid is evenly
    so.

    `search` is the rule of `tidepull search`.
    """

    name: str
    description: str
    text: str
    specs: tuple[TrialSpec, ...]
    search: grid.SearchRule = field(default_factory=grid.SearchRule)


def load_suite(suite: str | Path) -> Suite:
    """Read and check a suite: the path of a TOML file, or the name of one that comes with
    tidepull."""
    path = find_suite(suite)
    return parse_suite(_text(path), where=str(path), folder=path.parent)


def read_table(suite: str | Path) -> SuiteTable:
    """What a suite's file says, checked for its form; problems and policies are not looked up."""
    path = find_suite(suite)
    return _validated(_text(path), str(path))


def parse_suite(text: str, *, where: str, folder: Path) -> Suite:
    """A suite from its text; `where` is named in errors, modules are looked for in `folder`."""
    table = _validated(text, where)
    modules = tuple(str((folder / m).resolve()) if m.endswith(".py") else m for m in table.modules)
    load_modules(modules)
    specs = tuple(_Expansion(table, where, modules).specs())
    _check_labels(specs, where)
    with _at(f"{where}: search"):
        rule = grid.check_rule(table.search, len(table.seeds))
    return Suite(table.name, table.description, text, specs, rule)


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except UnicodeDecodeError:
        raise SuiteError(f"the suite {path} is not UTF-8 text") from None
    except OSError as error:
        raise SuiteError(f"the suite {path} cannot be read ({error.strerror})") from None


def find_suite(suite: str | Path) -> Path:
    """The file that a path or a bare name stands for."""
    path = Path(suite)
    if path.is_file():
        return path
    known = {file.stem: file for file in sorted(own_suites().glob("*.toml"))}
    if str(suite) in known:
        return known[str(suite)]
    if path.suffix == ".toml":
        raise SuiteError(f"there is no file {suite}")
    near = get_close_matches(str(suite), known, n=1)
    hint = "give a TOML file, or see: tidepull list suites"
    hint = f"did you mean '{near[0]}'?" if near else hint
    raise SuiteError(f"there is no suite '{suite}'; {hint}")


def own_suites() -> Path:
    """The folder of the suites that come with tidepull."""
    package = Path(__file__).parents[1]
    return next(
        (place for place in (package / "suites", package.parents[1] / "suites") if place.is_dir()),
        package,
    )


class _Expansion:
    """From the checked table to specs; knows the file's name for its errors."""

    def __init__(self, table: SuiteTable, where: str, modules: tuple[str, ...]) -> None:
        self._table = table
        self._where = where
        self._modules = modules
        self._filled_in: dict[tuple[str, int, str, str], grid.GridPoint] = {}

    def specs(self) -> Iterator[TrialSpec]:
        self._check_size()
        table = self._table
        worlds = [self._world(*pair) for pair in enumerate(table.problems, 1)]
        learners = [self._learner(*pair) for pair in enumerate(table.policies, 1)]
        seeds = {seed for problem in table.problems for seed in self._seeds(problem)}
        for seed in sorted(seeds):
            for problem, horizon in worlds:
                for policy, settings in learners:
                    if seed in self._seeds(problem) and _plays(policy, problem):
                        for setting in settings:
                            yield self._spec(problem, horizon, policy, setting, seed)

    def _check_size(self) -> None:
        """Count before anything is made."""
        worlds, policies = self._table.problems, self._table.policies
        count = sum(
            grid.count_settings(policy.grid) * len(self._seeds(world))
            for policy in policies
            for world in worlds
            if _plays(policy, world)
        )
        if count > MOST_TRIALS:
            raise SuiteError(
                f"{self._where}: the suite has {count:,} trials, and at most {MOST_TRIALS:,} can "
                "be handled; make grids or seeds smaller, or several suites of it"
            )

    def _seeds(self, problem: ProblemTable) -> Sequence[int]:
        return problem.seeds or self._table.seeds

    def _spec(
        self,
        problem: ProblemTable,
        horizon: int,
        policy: PolicyTable,
        setting: grid.GridPoint,
        seed: int,
    ) -> TrialSpec:
        world_seed = seed if self._table.problem_seed is None else self._table.problem_seed
        if setting.asks:
            setting = self._from_problem(problem, horizon, policy, setting, world_seed)
        return TrialSpec(
            problem=problem.id,
            problem_parameters=problem.parameters,
            problem_name=problem.shown_name,
            policy=policy.id or policy.name,
            policy_parameters=setting.parameters,
            name=policy.name,
            setting=setting.text,
            horizon=horizon,
            seed=seed,
            problem_seed=self._table.problem_seed,
            delay=str(problem.delay or self._table.delay or 0),
            modules=self._modules,
        )

    def _world(self, number: int, problem: ProblemTable) -> tuple[ProblemTable, int]:
        with _at(f"{self._where}: problems[{number}]"):
            entry, _ = problems.resolve((problem.id, problem.parameters))
        return problem, problem.horizon or self._table.horizon or entry.horizon

    def _learner(
        self, number: int, policy: PolicyTable
    ) -> tuple[PolicyTable, list[grid.GridPoint]]:
        with _at(f"{self._where}: policies[{number}] ({policy.name})"):
            entry = policies.entry(policy.id or policy.name)
            fixed: Mapping[str, Any] = policy.parameters
            if policy.from_variation_budget:
                fixed = grid.budgeted(entry, fixed)
            settings = grid.settings_of(fixed, policy.grid)
            names = [problem.shown_name for problem in self._table.problems]
            for pattern in policy.problems:
                if not any(fnmatchcase(name, pattern) for name in names):
                    raise SuiteError(
                        f"no problem of the suite is called '{pattern}'; it has: {', '.join(names)}"
                    )
            settings = [replace(one, asks=grid.asks(entry, one.parameters)) for one in settings]
        return policy, settings

    def _from_problem(
        self,
        problem: ProblemTable,
        horizon: int,
        policy: PolicyTable,
        setting: grid.GridPoint,
        seed: int,
    ) -> grid.GridPoint:
        key = (problem.shown_name, seed, policy.name, setting.text)
        if key not in self._filled_in:
            with _at(f"{self._where}: {policy.name} on {problem.shown_name}"):
                try:
                    self._filled_in[key] = grid.from_problem(
                        policies.entry(policy.id or policy.name),
                        setting,
                        (problem.id, problem.parameters),
                        horizon=horizon,
                        seed=seed,
                    )
                except DataError:  # its trials cannot run here, and say what is missing
                    return setting
        return self._filled_in[key]


def _plays(policy: PolicyTable, problem: ProblemTable) -> bool:
    return any(fnmatchcase(problem.shown_name, pattern) for pattern in policy.problems)


def _check_labels(specs: Sequence[TrialSpec], where: str) -> None:
    seen: set[str] = set()
    for spec in specs:
        if spec.id in seen:
            raise SuiteError(
                f"{where}: two trials are called {spec.id}; give one of the problems or policies "
                "another name, and name each candidate of a grid once"
            )
        seen.add(spec.id)


@contextmanager
def _at(place: str) -> Iterator[None]:
    """Put the place in the file before the sentence of any mistake made there."""
    try:
        yield
    except InputError as error:
        raise SuiteError(f"{place}: {error}") from None


def _validated(text: str, where: str) -> SuiteTable:
    try:
        return read_suite(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise SuiteError(f"{where}: not valid TOML: {error}") from None
    except SuiteError as error:
        raise SuiteError(f"{where}: {error}") from None


def suite_text(
    name: str,
    description: str,
    *,
    seeds: Sequence[int],
    problems: Iterable[Mapping[str, Any]],
    policies: Iterable[Mapping[str, Any]],
    modules: Sequence[str] = (),
    problem_seed: int | None = None,
) -> str:
    """The file's text, with a `[[problems]]` or `[[policies]]` table for each mapping; what is None
    or empty is left out."""
    with needs("writing a suite", "experiments"):
        import tomli_w
    content: dict[str, Any] = {"name": name, "description": description, "seeds": _seeds(seeds)}
    content |= {"problem_seed": problem_seed, "modules": list(modules)}
    content |= {
        "problems": [_filled(one) for one in problems],
        "policies": [_filled(one) for one in policies],
    }
    return tomli_w.dumps(_filled(content))


def _seeds(seeds: Sequence[int]) -> str:
    return grid.seeds_text(seeds) if len(seeds) > 1 else f"{seeds[0]}-{seeds[0]}"


def _filled(table: Mapping[str, Any]) -> dict[str, Any]:
    filled = {key: value for key, value in table.items() if value not in (None, "", [], {})}
    if values := filled.get("parameters"):
        filled["parameters"] = {key: value for key, value in values.items() if value is not None}
    return filled
