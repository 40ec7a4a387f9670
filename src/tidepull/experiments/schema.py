"""What a suite file may say; importing this module needs msgspec (extra `experiments`)."""

from __future__ import annotations

import re
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from tidepull.errors import ParameterError, SuiteError
from tidepull.experiments.delay import delay_text
from tidepull.experiments.grid import Rung, SearchRule, parse_seeds

Name = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
PositiveInt = Annotated[int, Meta(ge=1)]


class Seeds(tuple[int, ...]):
    """Seeds as `parse_seeds` reads them."""


class DelayText(str):
    """A delay in its one spelling."""


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table of the file: no other keys, no other types."""


class ProblemTable(_Table, frozen=True):
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


class PolicyTable(_Table, frozen=True):
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


class RungTable(_Table, frozen=True):
    """One of `rungs` in `[search]`: the share of the horizon, and on how many seeds (all when
    absent)."""

    share: float
    seeds: PositiveInt | None = None


class SearchTable(_Table, frozen=True):
    """`[search]`: the rule by which `tidepull search` halves; what is absent is as in
    `SearchRule`."""

    eta: int = SearchRule().eta
    generalists: int = SearchRule().generalists
    rungs: tuple[RungTable, ...] | None = None

    def rule(self) -> SearchRule:
        """The rule that it says."""
        if self.rungs is None:
            return SearchRule(eta=self.eta, generalists=self.generalists)
        rungs = tuple(Rung(rung.share, rung.seeds) for rung in self.rungs)
        return SearchRule(eta=self.eta, generalists=self.generalists, rungs=rungs)


class SuiteTable(_Table, frozen=True, kw_only=True):
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
    search: SearchTable = SearchTable()


_TABLES: dict[str, type[_Table]] = {
    "": SuiteTable,
    "problems": ProblemTable,
    "policies": PolicyTable,
    "search": SearchTable,
    "search.rungs": RungTable,
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
        text = re.sub(r" \| null|, got `\w+`$|`", "", message.replace("Expected", "must be"))
        raise SuiteError(f"{place}: {text} (got {value!r})") from None


def _decode(kind: type, value: Any) -> Any:
    """Read seeds and delays, which have a text of their own."""
    if kind is Seeds:
        return Seeds(parse_seeds(value))
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
            key = next(
                key for key, entry in value.items() if not (isinstance(entry, list) and entry)
            )
        if key:
            place, value = f"{place}.{key}", value[key]
        else:
            place, value = f"{place}[{int(index) + 1}]", value[int(index)]
    return place.lstrip("."), value
