"""The service as an ASGI application: operations, and what every request and every response passes
through.

Starlette routes a request to the operations of its path; msgspec reads and writes bodies.
`research/lab/design.md` has the measurements for which no framework does more than that.
"""

from __future__ import annotations

import contextlib
import logging
import os
import random
import re
import time
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.routing import BaseRoute, Route, Router

from tidepull.service.auth import KEY, NO_TOKEN, PERSONALIZER, Gate, Scope, Token, require
from tidepull.service.handover import FORWARDED, SIGNED, digest, refused
from tidepull.service.logs import LONGEST_PATH, timestamp
from tidepull.service.operations import (
    JSON,
    SECURITY_HEADERS,
    Call,
    Operation,
    RawResponse,
    problem_response,
    send_plain,
    send_raw,
)
from tidepull.service.problem_details import HttpError, problem_of
from tidepull.service.shards import target_of

if TYPE_CHECKING:
    from tidepull.service.service import Service

_LOG = logging.getLogger("tidepull.serve")
_RANDOM = random.Random()
os.register_at_fork(after_in_child=_RANDOM.seed)
_REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")


class App:
    """Gives every request an id, every response its headers and every error a form, and logs them;
    `pages` are routes besides the operations."""

    def __init__(
        self, service: Service, operations: Sequence[Operation], pages: Sequence[BaseRoute] = ()
    ) -> None:
        self.service = service
        self._gate = Gate(service.limits, service.metrics, insecure=service.tokens.insecure)
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
            if _REQUEST_ID.fullmatch(request_id)
            else f"{_RANDOM.getrandbits(64):016x}"
        )
        scope["tidepull"] = trace = RequestTrace(request, headers)
        sent = 0

        async def send_with_headers(message: Any) -> None:
            nonlocal sent
            if message["type"] == "http.response.start":
                sent = trace.status = message["status"]
                message["headers"] = [*message["headers"], *self._headers(message, trace)]
            await send(message)

        try:
            self._gate.check(scope, headers)
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
            elif problem.status == 401:
                problem = self._gate.count_refusal(scope, problem)
            if not sent:
                personalizer = scope["path"].startswith(PERSONALIZER)
                answer = problem_response(problem, request, personalizer)
                await send_raw(send_with_headers, answer, problem.status)
        self._record(scope, trace, time.perf_counter() - started)

    def _headers(self, message: Any, trace: RequestTrace) -> list[tuple[bytes, bytes]]:
        """What every response has, unless it says so itself."""
        own = {name for name, _ in message["headers"]}
        headers = [pair for pair in SECURITY_HEADERS if pair[0] not in own]
        if trace.handover is not None:
            signature = self.service.handover.sign_answer(trace.handover, message["status"])
            headers.append((SIGNED, signature))
        if self.service.status == "stopping" and b"connection" not in own:
            headers.append((b"connection", b"close"))
        return [(b"x-request-id", trace.request.encode()), *headers]

    def _record(self, scope: Any, trace: RequestTrace, seconds: float) -> None:
        service, operation = self.service, trace.operation
        service.metrics.answered(
            "none" if operation is None else operation.id, trace.status, seconds
        )
        if trace.token is None:  # counted, not written: whoever has no token fills no disk
            return
        entry = {
            "at": timestamp(),
            "request": trace.request,
            "method": scope["method"][:16],
            "path": scope["path"][:LONGEST_PATH],
            "status": trace.status,
            "ms": round(1000 * seconds, 3),
            "token": trace.token.id,
            "from": scope["client"][0] if scope.get("client") else None,
        }
        if trace.answered_by is not None:
            entry["answered_by"] = trace.answered_by
        service.request_log.write(entry)


class RequestTrace:
    """What is known of a request while it is under way. `handover`: the signature of the shard that
    forwarded it."""

    __slots__ = ("answered_by", "handover", "headers", "operation", "request", "status", "token")

    def __init__(self, request: str, headers: dict[bytes, bytes]) -> None:
        self.request, self.headers = request, headers
        self.status = 0
        self.token: Token | None = None
        self.operation: Operation | None = None
        self.handover: bytes | None = None
        self.answered_by: str | None = None


class Resource:
    """All methods of one path."""

    def __init__(self, service: Service, methods: dict[str, Operation]) -> None:
        self._service = service
        get = methods.get("GET")
        head = {} if get is None or get.audited else {"HEAD": get}
        self._methods = {**methods, **head}
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
        token, digested = self._authorise(operation, trace, name, scope)
        event: str = scope["path_params"].get("eventId", "")
        call = Call(self._service, token, trace.request, trace.headers, name, event)
        call.forwarded = trace.handover is not None
        body = b""
        if operation.body is not None:
            body = await self._body(receive, trace.headers)
            if digested is not None and digested != digest(body):
                raise refused()
            call.body = operation.read(body)
        if operation.query is not None:
            call.query = operation.read_query(scope["query_string"])
        with self._service.under_way(operation.scope is not None):
            answer = await self._answer(operation, call, scope, body)
        trace.answered_by = call.answered_by
        if isinstance(answer, RawResponse):
            await send_raw(send, answer, operation.status)
        else:
            await send_plain(send, operation.status, msgspec.json.encode(answer), JSON)

    async def _answer(self, operation: Operation, call: Call, scope: Any, body: bytes) -> Any:
        """What an operation gives. One that is audited has a line on disk before it begins, and a
        second one before its answer leaves."""
        if not operation.audited:
            return await self._service.forwarder.answer(operation, call, scope, body)
        agent = call.name or getattr(call.body, "name", None)
        require(call.token, Scope.ADMIN, agent)
        entry = {
            "request": call.request,
            "operation": operation.id,
            "agent": agent,
            "token": call.token.id,
            "from": scope["client"][0] if scope.get("client") else None,
        }
        audit, status = self._service.request_log.audit, 500
        await audit({**entry, "event": "begin"})
        try:
            answer = await self._service.forwarder.answer(operation, call, scope, body)
            status = getattr(answer, "status", None) or operation.status
        except Exception as error:
            problem = problem_of(error)
            status = 500 if problem is None else problem.status
            raise
        finally:
            await audit({**entry, "event": "end", "status": status})
        return answer

    def _authorise(
        self, operation: Operation, trace: RequestTrace, name: str, scope: Any
    ) -> tuple[Token, str | None]:
        """The token of a request; where another shard has forwarded it, also the digest of its
        body."""
        if operation.scope is None:
            return NO_TOKEN, None
        service, digested = self._service, None
        if FORWARDED in trace.headers and service.store.remote:
            token, digested = self._forwarded(trace, scope)
        else:
            header = trace.headers.get(b"authorization")
            if operation.errors is not None and (key := trace.headers.get(KEY)) is not None:
                header = b"Bearer " + key
            token = service.tokens.authenticate(header)
        trace.token = token
        service.rates.take(token.id)
        if isinstance(operation.scope, Scope) and name:
            require(token, operation.scope, name)
        return token, digested

    def _forwarded(self, trace: RequestTrace, scope: Any) -> tuple[Token, str]:
        """The token that another shard names, and the digest of the body that it has signed."""
        service, header = self._service, trace.headers[FORWARDED]
        target = target_of(scope)
        id, digested = service.handover.check(
            header, service.store.here, trace.request, scope["method"], target
        )
        trace.handover = header
        token = service.tokens.named(id)
        if token is None:  # the other shard may have read its file a moment earlier
            raise HttpError(421, "This shard does not know the token yet.")
        return token, digested

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


async def _not_found(*_: Any) -> None:
    raise HttpError(404, "There is nothing at this path; /v1/openapi.json says what there is.")
