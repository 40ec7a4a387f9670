"""Operations of the HTTP interface: what may be asked with which token, and the forms of request
and answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec

from tidepull.agent.commands import Caller
from tidepull.service.auth import Scope, Token
from tidepull.service.problem_details import HttpError, sentence

if TYPE_CHECKING:
    from tidepull.service.hosted import HostedAgent
    from tidepull.service.service import Service


@dataclass(slots=True)
class Call:
    """A request that may be made: it was authorised, and its body and query fit. `forwarded`:
    another shard handed it on; `answered_by`: the shard that it was handed on to."""

    service: Service
    token: Token
    request: str
    headers: dict[bytes, bytes]
    name: str = ""
    event: str = ""
    body: Any = None
    query: Any = None
    forwarded: bool = False
    charged: int = 1
    answered_by: str | None = None

    @property
    def caller(self) -> Caller:
        """Admins may name any time of a decision, others one near the present."""
        return Caller.ADMIN if self.token.allows(Scope.ADMIN) else Caller.CLIENT

    def charge(self, items: int) -> None:
        """Let every item of a batch count as a request of the token, once: where it came first."""
        if self.forwarded:
            return
        self.service.rates.charge(self.token.id, items - self.charged)
        self.charged = items

    async def agent(self) -> HostedAgent:
        """The agent that it is for; a 404 if there is none. Before this, nothing may be done."""
        return await self.service.hosting.get(self.name, forwarded=self.forwarded)


Handler = Callable[[Call], Awaitable[Any]]


@dataclass(frozen=True, eq=False)
class Operation:
    """A method of a path. `scope` None: no token is needed; "any": any valid one will do.
    `problems` are the statuses that it may answer besides those that all do; `errors` is their form
    where they are no problem+json."""

    method: str
    path: str
    id: str
    summary: str
    handler: Handler
    scope: Scope | str | None
    answer: Any = None
    body: Any = None
    query: Any = None
    status: int = 200
    problems: tuple[int, ...] = ()
    example: Any = None
    answer_example: Any = None
    content_types: tuple[str, ...] = ("application/json",)
    parameters: tuple[dict[str, Any], ...] = field(default=())
    errors: Any = None

    @property
    def per_agent(self) -> bool:
        """Whether its path names an agent."""
        return "{name}" in self.path

    @property
    def audited(self) -> bool:
        """Whether it goes into the audit trail: whatever only an admin may do."""
        return self.scope == Scope.ADMIN

    @cached_property
    def decoder(self) -> msgspec.json.Decoder[Any]:
        """Reads its body."""
        return msgspec.json.Decoder(self.body)

    def read(self, data: bytes) -> Any:
        """A body; what is not JSON is a 400, what does not fit a 422."""
        try:
            return self.decoder.decode(data)
        except msgspec.ValidationError as error:
            raise HttpError(422, _explained(error, "The body")) from None
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise HttpError(400, "The body is not JSON.") from None
        except RecursionError:
            raise HttpError(400, "The body is nested too deeply.") from None

    def read_query(self, given: dict[str, str]) -> Any:
        """A query; what does not fit is a 422."""
        if self.query is None:
            return None
        try:
            return msgspec.convert(given, self.query, strict=False)
        except msgspec.ValidationError as error:
            raise HttpError(422, _explained(error, "The query")) from None


def _explained(error: Exception, what: str) -> str:
    """ "Expected `str`, got `int` - at `$.arms[1]`" as a sentence that names the field."""
    said, _, where = str(error).partition(" - at `")
    where = where.rstrip("`").removeprefix("$").removeprefix(".")
    return sentence(
        f"{what} does not fit{f', at {where}' if where else ''}: {said[:1].lower()}{said[1:]}"
    )


class Operations(list[Operation]):
    """Operations in the order of their handlers; each method is a decorator that adds one."""

    def add(
        self, method: str, path: str, scope: Scope | str | None, **details: Any
    ) -> Callable[[Handler], Handler]:
        """Add an operation. Its id is the handler's name and its summary the handler's docstring,
        unless given."""

        def register(handler: Handler) -> Handler:
            names = {"id": handler.__name__, "summary": " ".join((handler.__doc__ or "").split())}
            self.append(
                Operation(method, path, handler=handler, scope=scope, **{**names, **details})
            )
            return handler

        return register

    def get(
        self, path: str, scope: Scope | str | None, **details: Any
    ) -> Callable[[Handler], Handler]:
        """Add an operation of the method GET."""
        return self.add("GET", path, scope, **details)

    def post(
        self, path: str, scope: Scope | str | None, **details: Any
    ) -> Callable[[Handler], Handler]:
        """Add an operation of the method POST."""
        return self.add("POST", path, scope, **details)
