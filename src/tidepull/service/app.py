"""The service as an ASGI application: operations, and what every request and every response passes
through.

Starlette routes a request to the operations of its path; msgspec reads and writes bodies.
`docs/architecture.md` has the measurements for which no framework does more than that.
"""

from __future__ import annotations

import contextlib
import logging
import random
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

import msgspec
from starlette.routing import BaseRoute, Route, Router

from tidepull.agent.commands import Caller
from tidepull.service.auth import Scope, Token, require
from tidepull.service.metrics import LONGEST_PATH, timestamp
from tidepull.service.problem_details import (
    CONTENT_TYPE,
    HttpError,
    personalizer_error,
    problem_of,
    sentence,
)
from tidepull.service.shards import FORWARDED, RawResponse

if TYPE_CHECKING:
    from tidepull.service.hosted import HostedAgent
    from tidepull.service.service import Service

_LOG = logging.getLogger("tidepull.serve")
_RANDOM = random.Random()
_REQUEST_ID = re.compile(rb"^[A-Za-z0-9._-]{1,64}$")
_LOOPBACK = re.compile(rb"^(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$", re.IGNORECASE)
JSON = b"application/json"
PERSONALIZER, KEY = "/personalizer/", b"ocp-apim-subscription-key"
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
    answered_by: str | None = None

    @property
    def caller(self) -> Caller:
        """Admins may name any time of a decision, others one near the present."""
        return Caller.ADMIN if self.token.allows(Scope.ADMIN) else Caller.CLIENT

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


class App:
    """Gives every request an id, every response its headers and every error a form, and logs them;
    `pages` are routes besides the operations."""

    def __init__(
        self, service: Service, operations: Sequence[Operation], pages: Sequence[BaseRoute] = ()
    ) -> None:
        self.service = service
        by_path: dict[str, dict[str, Operation]] = {}
        for operation in operations:
            by_path.setdefault(operation.path, {})[operation.method] = operation
        routes = [
            Route(path.replace("{eventId}", "{eventId:path}"), Resource(service, methods))
            for path, methods in by_path.items()
        ]
        self._router = Router(
            [*routes, *pages], redirect_slashes=False, default=_not_found, lifespan=self._lifespan
        )

    @contextlib.asynccontextmanager
    async def _lifespan(self, _: Any) -> AsyncIterator[None]:
        await self.service.start()
        yield
        await self.service.stop()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """An ASGI call."""
        if scope["type"] == "lifespan":
            await self._router(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        started = time.perf_counter()
        self.service.last_request = time.monotonic()
        headers = dict(scope["headers"])
        request_id = headers.get(b"x-request-id", b"")
        request = (
            request_id.decode()
            if _REQUEST_ID.match(request_id)
            else f"{_RANDOM.getrandbits(64):016x}"
        )
        scope["tidepull"] = trace = RequestTrace(request, headers)
        sent = 0

        async def send_with_headers(message: Any) -> None:
            nonlocal sent
            if message["type"] == "http.response.start":
                sent = trace.status = message["status"]
                own = {name for name, _ in message["headers"]}
                extra = [pair for pair in SECURITY_HEADERS if pair[0] not in own]
                message["headers"] = [
                    *message["headers"],
                    (b"x-request-id", request.encode()),
                    *extra,
                ]
            await send(message)

        try:
            if len(headers) != len(scope["headers"]):
                _require_once(scope["headers"])
            if self.service.tokens.insecure and not _LOOPBACK.match(
                headers.get(b"host", b"localhost")
            ):
                raise HttpError(
                    421,
                    "This service was started with --insecure: it answers only to localhost and "
                    "127.0.0.1.",
                )
            await self._router(scope, receive, send_with_headers)
        except ConnectionResetError:
            trace.status = 499
        except Exception as error:
            problem = problem_of(error)
            if problem is None:
                _LOG.exception("request %s failed", request)
                problem = HttpError(
                    500, f"Something went wrong here; the log has it under request {request}."
                )
            if not sent:
                await _send_problem(
                    send_with_headers, problem, request, scope["path"].startswith(PERSONALIZER)
                )
        self._record(scope, trace, time.perf_counter() - started)

    def _record(self, scope: Any, trace: RequestTrace, seconds: float) -> None:
        service, operation = self.service, trace.operation
        service.metrics.answered(
            "none" if operation is None else operation.id, trace.status, seconds
        )
        entry = {
            "at": timestamp(),
            "request": trace.request,
            "method": scope["method"][:16],
            "path": scope["path"][:LONGEST_PATH],
            "status": trace.status,
            "ms": round(1000 * seconds, 3),
            "token": None if trace.token is None else trace.token.id,
            "from": scope["client"][0] if scope.get("client") else None,
        }
        if trace.answered_by is not None:
            entry["answered_by"] = trace.answered_by
        service.request_log.write(entry)
        if operation is not None and operation.audited and scope["method"] != "HEAD":
            service.request_log.write_audit({**entry, "operation": operation.id, **trace.audit})


class RequestTrace:
    """What is known of a request while it is under way."""

    __slots__ = ("answered_by", "audit", "headers", "operation", "request", "status", "token")

    def __init__(self, request: str, headers: dict[bytes, bytes]) -> None:
        self.request, self.headers = request, headers
        self.status = 0
        self.token: Token | None = None
        self.operation: Operation | None = None
        self.audit: dict[str, Any] = {}
        self.answered_by: str | None = None


class Resource:
    """All methods of one path."""

    def __init__(self, service: Service, methods: dict[str, Operation]) -> None:
        self._service = service
        self._methods = {**methods, **({"HEAD": methods["GET"]} if "GET" in methods else {})}
        self._allow = ", ".join(sorted(self._methods))

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """An ASGI call; errors are left to the app."""
        operation = self._methods.get(scope["method"])
        if operation is None:
            raise HttpError(
                405,
                f"The method {scope['method'][:16]} is not for this path: use {self._allow}.",
                {"allow": self._allow},
            )
        trace: RequestTrace = scope["tidepull"]
        trace.operation = operation
        name: str = scope["path_params"].get("name", "")
        if operation.errors is not None and self._service.personalizer is not None:
            name = self._service.personalizer.name
        token = self._authorise(operation, trace, name)
        event: str = scope["path_params"].get("eventId", "")
        call = Call(self._service, token, trace.request, trace.headers, name, event)
        call.forwarded = FORWARDED in trace.headers
        body = b""
        if operation.body is not None:
            body = await self._body(receive, trace.headers)
            call.body = operation.read(body)
        if operation.query is not None:
            call.query = operation.read_query(
                dict(parse_qsl(scope["query_string"].decode("latin-1")))
            )
        if operation.audited:
            trace.audit = {"agent": name or getattr(call.body, "name", None)}
        answer = await self._service.forwarder.answer(operation, call, scope, body)
        trace.answered_by = call.answered_by
        if isinstance(answer, RawResponse):
            status = answer.status or operation.status
            await _send(send, status, answer.data, answer.content_type, answer.headers)
        else:
            await _send(send, operation.status, msgspec.json.encode(answer), JSON)

    def _authorise(self, operation: Operation, trace: RequestTrace, name: str) -> Token:
        if operation.scope is None:
            return _NO_TOKEN
        header = trace.headers.get(b"authorization")
        if operation.errors is not None and (key := trace.headers.get(KEY)) is not None:
            header = b"Bearer " + key
        token = trace.token = self._service.tokens.authenticate(header)
        self._service.rates.take(token.id)
        if isinstance(operation.scope, Scope) and name:
            require(token, operation.scope, name)
        return token

    async def _body(self, receive: Any, headers: dict[bytes, bytes]) -> bytes:
        kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        if kind != JSON:
            raise HttpError(415, "The body must be JSON: send `Content-Type: application/json`.")
        if headers.get(b"content-encoding", b"identity").lower() != b"identity":
            raise HttpError(415, "A compressed body is not taken: send it as it is.")
        limit, parts, more = self._service.limits.body, list[bytes](), True
        length = headers.get(b"content-length", b"0")
        size = 0 if length.isdigit() and int(length) <= limit else limit + 1
        while more and size <= limit:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ConnectionResetError
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            more = message.get("more_body", False)
        if size > limit:
            detail = f"The body is larger than {limit:,} bytes: send smaller batches."
            raise HttpError(413, detail, {"connection": "close"})
        return b"".join(parts)


def _require_once(headers: list[tuple[bytes, bytes]]) -> None:
    """Headers that decide something must not contradict themselves."""
    names = [name for name, _ in headers]
    for name in (
        b"authorization",
        b"content-type",
        b"content-encoding",
        b"idempotency-key",
        b"host",
        KEY,
    ):
        if names.count(name) > 1:
            raise HttpError(400, f"The header {name.decode()} came more than once.")


_NO_TOKEN = Token("", "", (), ())


async def _not_found(*_: Any) -> None:
    raise HttpError(404, "There is nothing at this path; /v1/openapi.json says what there is.")


async def _send(
    send: Any,
    status: int,
    data: bytes,
    content_type: bytes,
    headers: tuple[tuple[bytes, bytes], ...] = (),
) -> None:
    length = str(len(data)).encode()
    start = (
        [(b"content-type", content_type), (b"content-length", length), *headers]
        if status != 204
        else []
    )
    await send({"type": "http.response.start", "status": status, "headers": start})
    await send({"type": "http.response.body", "body": data})


async def _send_problem(send: Any, problem: HttpError, request: str, personalizer: bool) -> None:
    headers = tuple((name.encode(), value.encode()) for name, value in problem.headers.items())
    if personalizer:
        status, body = personalizer_error(problem)
        await _send(send, status, msgspec.json.encode(body), JSON, headers)
        return
    await _send(
        send, problem.status, msgspec.json.encode(problem.body(request)), CONTENT_TYPE, headers
    )
