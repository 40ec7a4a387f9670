"""What a suite file may say; importing this module needs pydantic (extra `bench`)."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PositiveInt

from tidepull.errors import ParameterError
from tidepull.experiments.delay import delay_text
from tidepull.experiments.grid import Rung, SearchRule, parse_seeds

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
Seeds = Annotated[tuple[int, ...], BeforeValidator(parse_seeds)]


def _delay(value: Any) -> str:
    try:
        return delay_text(value)
    except ParameterError as error:
        raise ValueError(str(error).removeprefix("delay ").partition(", got ")[0]) from None


Delay = Annotated[str, BeforeValidator(_delay)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class ProblemTable(_Strict):
    """`[[problems]]`: one world; `name` is what it is called (its id when absent)."""

    id: str
    name: Name | None = None
    horizon: PositiveInt | None = None
    delay: Delay | None = None
    parameters: dict[str, Any] = Field(default_factory=dict)

    @property
    def shown_name(self) -> str:
        """The name that results carry."""
        return self.name or self.id


class PolicyTable(_Strict):
    """`[[policies]]`: one learner, or a grid of its settings; `id` is its name when absent.

    `grid` maps parameters to lists of candidates; the settings are their product. `keep` is a setting of the grid
    that `tidepull search` plays to the last rung whatever it scores. `chosen` says in words how the parameters were
    chosen, and from how many trials; reports show it.
    """

    name: Name
    id: str | None = None
    problems: tuple[str, ...] = Field(default=("*",), strict=False)
    parameters: dict[str, Any] = Field(default_factory=dict)
    grid: dict[str, Annotated[list[Any], Field(min_length=1)]] = Field(default_factory=dict)
    keep: dict[str, Any] = Field(default_factory=dict)
    from_variation_budget: bool = False
    chosen: str = ""


class RungTable(_Strict):
    """One of `rungs` in `[search]`: the share of the horizon, and on how many seeds (all when absent)."""

    share: float
    seeds: PositiveInt | None = None


class SearchTable(_Strict):
    """`[search]`: the rule by which `tidepull search` halves; what is absent is as in `SearchRule`."""

    eta: int | None = None
    generalists: int | None = None
    rungs: Annotated[tuple[RungTable, ...] | None, Field(strict=False)] = None

    def rule(self) -> SearchRule:
        """The rule that it says."""
        usual = SearchRule()
        rungs = usual.rungs if self.rungs is None else tuple(Rung(r.share, r.seeds) for r in self.rungs)
        return SearchRule(
            eta=usual.eta if self.eta is None else self.eta,
            generalists=usual.generalists if self.generalists is None else self.generalists,
            rungs=rungs,
        )


class SuiteTable(_Strict):
    """The whole file."""

    name: Name
    description: str = ""
    seeds: Seeds
    horizon: PositiveInt | None = None
    delay: Delay | None = None
    problem_seed: Annotated[int, Field(ge=0)] | None = None
    modules: tuple[str, ...] = Field(default=(), strict=False)
    problems: tuple[ProblemTable, ...] = Field(min_length=1, strict=False)
    policies: tuple[PolicyTable, ...] = Field(min_length=1, strict=False)
    search: SearchTable = SearchTable()


def allowed_keys(location: tuple[int | str, ...]) -> list[str]:
    """The keys that may stand in the table where `location` points."""
    tables: dict[str, type[_Strict]] = {
        "problems": ProblemTable,
        "policies": PolicyTable,
        "search": RungTable if "rungs" in location[:-1] else SearchTable,
    }
    owner = tables.get(str(location[0]), SuiteTable) if len(location) > 1 else SuiteTable
    return list(owner.model_fields)


def place(location: tuple[int | str, ...]) -> str:
    """`policies[2].grid` for a location inside the file; lists count from 1."""
    text = "".join(f"[{part + 1}]" if isinstance(part, int) else f".{part}" for part in location)
    return re.sub(r"^\.", "", text)
