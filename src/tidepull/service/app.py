"""The service as an ASGI application: one door through which every request comes and every answer leaves."""

from __future__ import annotations

import contextlib
import logging
import random
import re
import time
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import parse_qsl

import msgspec
from starlette.routing import BaseRoute, Route, Router

from tidepull.service.auth import Scope, Token, require
from tidepull.service.forwarding import MARK
from tidepull.service.journal import LONGEST, now
from tidepull.service.limits import read_body
from tidepull.service.operation import JSON, Call, Operation, Raw
from tidepull.service.problems import CONTENT_TYPE, HttpError, problem_of
from tidepull.service.routes import OPERATIONS
from tidepull.service.routes.personalizer import error_of
from tidepull.service.service import Service

_LOG = logging.getLogger("tidepull.serve")
_RANDOM = random.Random()
_REQUEST_ID = re.compile(rb"^[A-Za-z0-9._-]{1,64}$")
_LOOPBACK = re.compile(rb"^(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$", re.IGNORECASE)
PERSONALIZER, KEY = "/personalizer/", b"ocp-apim-subscription-key"
SECURITY: tuple[tuple[bytes, bytes], ...] = (
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        b"font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
)


def make_app(service: Service, pages: list[BaseRoute] | None = None) -> Door:
    """The application of a service; `pages` are routes besides the operations."""
    by_path: dict[str, dict[str, Operation]] = {}
    for operation in OPERATIONS:
        by_path.setdefault(operation.path, {})[operation.method] = operation
    routes = [
        Route(path.replace("{eventId}", "{eventId:path}"), Resource(service, methods))
        for path, methods in by_path.items()
    ]
    return Door(service, [*routes, *(pages or [])])


class Door:
    """Gives every request an id, every answer its headers, every error a form, and writes them down."""

    def __init__(self, service: Service, routes: list[BaseRoute]) -> None:
        self.service = service
        self._router = Router(routes, redirect_slashes=False, default=_nowhere, lifespan=self._lifespan)

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
        given = headers.get(b"x-request-id", b"")
        request = given.decode() if _REQUEST_ID.match(given) else f"{_RANDOM.getrandbits(64):016x}"
        scope["tidepull"] = trace = Trace(request, headers)
        sent = 0

        async def guarded(message: Any) -> None:
            nonlocal sent
            if message["type"] == "http.response.start":
                sent = trace.status = message["status"]
                own = {name for name, _ in message["headers"]}
                extra = [pair for pair in SECURITY if pair[0] not in own]
                message["headers"] = [*message["headers"], (b"x-request-id", request.encode()), *extra]
            await send(message)

        try:
            if len(headers) != len(scope["headers"]):
                _require_once(scope["headers"])
            if self.service.tokens.insecure and not _LOOPBACK.match(headers.get(b"host", b"localhost")):
                raise HttpError(
                    421,
                    "This service was started with --insecure: it answers only to localhost and 127.0.0.1.",
                )
            await self._router(scope, receive, guarded)
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
                await _send_problem(guarded, problem, request, scope["path"].startswith(PERSONALIZER))
        self._wrote_down(scope, trace, time.perf_counter() - started)

    def _wrote_down(self, scope: Any, trace: Trace, seconds: float) -> None:
        service, operation = self.service, trace.operation
        service.metrics.answered("none" if operation is None else operation.id, trace.status, seconds)
        entry = {
            "at": now(),
            "request": trace.request,
            "method": scope["method"][:16],
            "path": scope["path"][:LONGEST],
            "status": trace.status,
            "ms": round(1000 * seconds, 3),
            "token": None if trace.token is None else trace.token.id,
            "from": scope["client"][0] if scope.get("client") else None,
        }
        if trace.answered_by is not None:
            entry["answered_by"] = trace.answered_by
        service.journal.request(entry)
        if operation is not None and operation.audited and scope["method"] != "HEAD":
            service.journal.admin({**entry, "operation": operation.id, **trace.audit})


class Trace:
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
        """An ASGI call; errors are left to the door."""
        operation = self._methods.get(scope["method"])
        if operation is None:
            raise HttpError(
                405,
                f"The method {scope['method'][:16]} is not for this path: use {self._allow}.",
                {"allow": self._allow},
            )
        trace: Trace = scope["tidepull"]
        trace.operation = operation
        name: str = scope["path_params"].get("name", "")
        if operation.errors is not None and self._service.personalizer is not None:
            name = self._service.personalizer.name
        token = self._authorised(operation, trace, name)
        event: str = scope["path_params"].get("eventId", "")
        call = Call(self._service, token, trace.request, trace.headers, name, event)
        call.forwarded = MARK in trace.headers
        body = b""
        if operation.body is not None:
            body = await self._body(receive, trace.headers)
            call.body = operation.read(body)
        if operation.query is not None:
            call.query = operation.read_query(dict(parse_qsl(scope["query_string"].decode("latin-1"))))
        if operation.audited:
            trace.audit = {"agent": name or getattr(call.body, "name", None)}
        answer = await self._service.forwarding.answered(operation, call, scope, body)
        trace.answered_by = call.answered_by
        if isinstance(answer, Raw):
            status = answer.status or operation.status
            await _send(send, status, answer.data, answer.content_type, answer.headers)
        else:
            await _send(send, operation.status, msgspec.json.encode(answer), JSON)

    def _authorised(self, operation: Operation, trace: Trace, name: str) -> Token:
        if operation.scope is None:
            return _NOBODY
        given = trace.headers.get(b"authorization")
        if operation.errors is not None and (key := trace.headers.get(KEY)) is not None:
            given = b"Bearer " + key
        token = trace.token = self._service.tokens.who(given)
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
        return await read_body(receive, headers.get(b"content-length"), self._service.limits)


def _require_once(headers: list[tuple[bytes, bytes]]) -> None:
    """Headers that decide something must not contradict themselves."""
    names = [name for name, _ in headers]
    for name in (b"authorization", b"content-type", b"content-encoding", b"idempotency-key", b"host", KEY):
        if names.count(name) > 1:
            raise HttpError(400, f"The header {name.decode()} came more than once.")


_NOBODY = Token("", "", (), ())


async def _nowhere(*_: Any) -> None:
    raise HttpError(404, "There is nothing at this path; /v1/openapi.json says what there is.")


async def _send(
    send: Any, status: int, data: bytes, content_type: bytes, headers: tuple[tuple[bytes, bytes], ...] = ()
) -> None:
    length = str(len(data)).encode()
    start = [(b"content-type", content_type), (b"content-length", length), *headers] if status != 204 else []
    await send({"type": "http.response.start", "status": status, "headers": start})
    await send({"type": "http.response.body", "body": data})


async def _send_problem(send: Any, problem: HttpError, request: str, personalizer: bool) -> None:
    headers = tuple((name.encode(), value.encode()) for name, value in problem.headers.items())
    if personalizer:
        status, body = error_of(problem)
        await _send(send, status, msgspec.json.encode(body), JSON, headers)
        return
    await _send(send, problem.status, msgspec.json.encode(problem.body(request)), CONTENT_TYPE, headers)
