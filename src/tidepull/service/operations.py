"""Operations of the HTTP interface: what may be asked with which token, the forms of request and
answer, and how answers are sent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal, Self, get_args, get_origin, get_type_hints
from urllib.parse import parse_qsl
from uuid import uuid4

import msgspec

from tidepull._internal.validation import in_words
from tidepull.agent.commands import Caller
from tidepull.service.auth import Scope, Token
from tidepull.service.messages import PATTERNS
from tidepull.service.problem_details import CONTENT_TYPE, HttpError, personalizer_error, sentence

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


Handler = Callable[..., Awaitable[Any]]
"""Takes a call, and its `body` or `query` where it has a parameter of that name."""


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
    content_types: tuple[str, ...] = ("application/json",)
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
            raise HttpError(422, _explained(error, "The body", self.body)) from None
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise HttpError(400, "The body is not JSON.") from None
        except RecursionError:
            raise HttpError(400, "The body is nested too deeply.") from None

    def read_query(self, text: bytes) -> Any:
        """A query; what does not fit is a 422."""
        try:
            values = dict(parse_qsl(text.decode("latin-1")))
            return msgspec.convert(values, self.query, strict=False)
        except msgspec.ValidationError as error:
            raise HttpError(422, _explained(error, "The query", self.query)) from None

    def handle(self, call: Call) -> Awaitable[Any]:
        """Let the handler answer."""
        inputs = [one for one in (call.body, call.query) if one is not None]
        return self.handler(call, *inputs)


def _explained(error: Exception, what: str, structure: Any) -> str:
    """What msgspec says as a sentence that names the field, and the values that it may have."""
    where, words = in_words(str(error), PATTERNS)
    if words.startswith(_NO_CHOICE):
        hint = get_type_hints(structure).get(where.split("[")[0])
        choices = ", ".join(f"'{choice}'" for choice in _choices(hint))
        words = f"must be one of {choices}, got {words.removeprefix(_NO_CHOICE)}"
    return sentence(f"{what} does not fit: {where or 'it'} {words}")


def _choices(hint: Any) -> list[str]:
    """The strings that a type names."""
    if get_origin(hint) is Literal:
        return list(get_args(hint))
    return [choice for inner in get_args(hint) for choice in _choices(inner)]


class Operations(list[Operation]):
    """Operations in the order of their handlers; each method is a decorator that adds one."""

    def add(
        self, method: str, path: str, scope: Scope | str | None, **details: Any
    ) -> Callable[[Handler], Handler]:
        """Add an operation. Its id is the handler's name, its summary the handler's docstring, and
        the types of body, query and answer are those of the handler's annotations, unless given."""

        def register(handler: Handler) -> Handler:
            types = get_type_hints(handler)
            answer = None if types["return"] is RawResponse else types["return"]
            about: dict[str, Any] = {
                "id": handler.__name__, "summary": " ".join((handler.__doc__ or "").split()),
                "answer": answer, "body": types.get("body"), "query": types.get("query"),
            }  # fmt: skip
            self.append(Operation(method, path, handler=handler, scope=scope, **about | details))
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


_NO_CHOICE = "is wrong: invalid enum value "
"""How a value outside a list of strings is told."""
JSON = b"application/json"
PART = 262_144
"""Bytes of a file that are sent at a time."""

SECURITY_HEADERS: tuple[tuple[bytes, bytes], ...] = (
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        b"connect-src 'self'; "
        b"font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
)


class FileParts:
    """A file in a temporary directory, read a part at a time by threads; both are gone
    afterwards."""

    def __init__(self, directory: TemporaryDirectory[str], path: Path) -> None:
        self._directory = directory
        self._file = path.open("rb")
        self.size = path.stat().st_size

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self._close)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while part := await asyncio.to_thread(self._file.read, PART):
            yield part

    def move(self, folder: Path) -> Path:
        """Leave the file to another process, in a folder on the same disk."""
        moved = Path(self._file.name).rename(folder / f"export-{uuid4().hex}")
        self._close()
        return moved

    def _close(self) -> None:
        self._file.close()
        self._directory.cleanup()


@dataclass(frozen=True, slots=True)
class RawResponse:
    """An answer that is not a structure. `status`: where it is not the operation's own; `file`: is
    sent instead of `data`."""

    data: bytes
    content_type: bytes
    headers: tuple[tuple[bytes, bytes], ...] = ()
    status: int | None = None
    file: FileParts | None = None


async def send_plain(
    send: Any,
    status: int,
    data: bytes,
    content_type: bytes,
    headers: tuple[tuple[bytes, bytes], ...] = (),
) -> None:
    """Send a response whole."""
    length = str(len(data)).encode()
    start = (
        [(b"content-type", content_type), (b"content-length", length), *headers]
        if status != 204
        else []
    )
    await send({"type": "http.response.start", "status": status, "headers": start})
    await send({"type": "http.response.body", "body": data})


async def send_raw(send: Any, answer: RawResponse, status: int) -> None:
    """An answer as it is; a file is sent a part at a time."""
    status = answer.status or status
    if answer.file is None:
        await send_plain(send, status, answer.data, answer.content_type, answer.headers)
        return
    async with answer.file as parts:
        length = str(parts.size).encode()
        headers = [(b"content-type", answer.content_type), (b"content-length", length)]
        start = {"status": status, "headers": [*headers, *answer.headers]}
        await send({"type": "http.response.start", **start})
        async for part in parts:
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


def problem_response(problem: HttpError, request: str, personalizer: bool = False) -> RawResponse:
    """An error, in the form that the interface has."""
    headers = tuple((name.encode(), value.encode()) for name, value in problem.headers.items())
    if personalizer:
        status, body = personalizer_error(problem)
        return RawResponse(msgspec.json.encode(body), JSON, headers, status)
    data = msgspec.json.encode(problem.body(request))
    return RawResponse(data, CONTENT_TYPE, headers, problem.status)
