"""Requests between the workers of one machine, over local sockets: a connection carries many at a
time, each as a frame with its length in front."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import msgspec

from tidepull.service.auth import NO_TOKEN
from tidepull.service.operations import (
    JSON,
    Call,
    FileParts,
    Operation,
    RawResponse,
    problem_response,
)
from tidepull.service.problem_details import HttpError, problem_of
from tidepull.service.shards import MISDIRECTED, UnansweredError, UnreachableShardError
from tidepull.service.stores import WorkerPlace

if TYPE_CHECKING:
    from tidepull.service.service import Service

_LOG = logging.getLogger("tidepull.serve")
_KEY = b"idempotency-key"


class WorkerRequest(msgspec.Struct, array_like=True):
    """A request that has a token, as one worker sends it to another."""

    number: int
    operation: str
    token: str
    request: str
    name: str
    event: str
    query: bytes
    key: bytes | None
    body: bytes


class WorkerAnswer(msgspec.Struct, array_like=True):
    """The answer to the request of that number. `file`: the path of a file that the other worker
    takes over, instead of `data`."""

    number: int
    status: int
    content_type: bytes
    headers: list[tuple[bytes, bytes]]
    data: bytes
    file: str | None = None


_ENCODER = msgspec.msgpack.Encoder()
_REQUESTS = msgspec.msgpack.Decoder(WorkerRequest)
_ANSWERS = msgspec.msgpack.Decoder(WorkerAnswer)


class _Frames(asyncio.Protocol):
    """A stream of frames; `close` is called once when it ends."""

    def __init__(self, take: Callable[[_Frames, bytes], None], close: Callable[[], None]) -> None:
        self._take, self._close = take, close
        self._buffer = bytearray()

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def send(self, message: WorkerRequest | WorkerAnswer) -> None:
        frame = _ENCODER.encode(message)
        self._transport.write(len(frame).to_bytes(4, "big") + frame)

    def data_received(self, data: bytes) -> None:
        buffer = self._buffer
        buffer += data
        start = 0
        while len(buffer) - start >= 4:
            end = start + 4 + int.from_bytes(buffer[start : start + 4], "big")
            if len(buffer) < end:
                break
            self._take(self, bytes(buffer[start + 4 : end]))
            start = end
        del buffer[:start]

    def connection_lost(self, exc: Exception | None) -> None:
        self._close()

    def end(self) -> None:
        self._transport.close()


class _Link:
    """A connection to another worker, and the requests that it has not answered."""

    def __init__(self) -> None:
        self.closed = False
        self._waiting: dict[int, asyncio.Future[WorkerAnswer]] = {}
        self._last = 0
        self.frames = _Frames(self._take, self._lost)

    def ask(self, request: WorkerRequest) -> asyncio.Future[WorkerAnswer]:
        self._last = request.number = self._last + 1
        future = asyncio.get_running_loop().create_future()
        self._waiting[request.number] = future
        self.frames.send(request)
        return future

    def _take(self, _: _Frames, frame: bytes) -> None:
        answer = _ANSWERS.decode(frame)
        future = self._waiting.pop(answer.number)
        if not future.done():
            future.set_result(answer)

    def _lost(self) -> None:
        self.closed = True
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(UnansweredError("the worker has ended"))


class Links:
    """The way from a worker to the others; a connection is opened when it is needed."""

    def __init__(self, place: WorkerPlace) -> None:
        self.place = place
        self._open: dict[str, _Link] = {}
        self._opening = asyncio.Lock()

    async def ask(
        self, url: str, operation: str, call: Call, query: bytes, body: bytes
    ) -> RawResponse:
        """What another worker answers."""
        link = self._open.get(url)
        if link is None or link.closed:
            link = await self._connect(url)
        request = WorkerRequest(
            0, operation, call.token.id, call.request, call.name, call.event, query,
            call.headers.get(_KEY), body,
        )  # fmt: skip
        answer = await link.ask(request)
        file = None if answer.file is None else _adopt(Path(answer.file))
        headers = tuple(answer.headers)
        return RawResponse(answer.data, answer.content_type, headers, answer.status, file)

    async def ask_all(
        self, operation: str, call: Call, query: bytes, timeout: float
    ) -> dict[str, RawResponse]:
        """What all others answer; those that do not in time are a 503."""

        async def one(url: str) -> RawResponse:
            try:
                return await asyncio.wait_for(self.ask(url, operation, call, query, b""), timeout)
            except (UnansweredError, UnreachableShardError, TimeoutError):
                return problem_response(HttpError(503, f"{url} is being started."), call.request)

        others = self.place.others
        return dict(zip(others, await asyncio.gather(*map(one, others)), strict=True))

    async def _connect(self, url: str) -> _Link:
        async with self._opening:
            link = self._open.get(url)
            if link is None or link.closed:
                link = _Link()
                path = str(socket_of(self.place.folder, url))
                try:
                    loop = asyncio.get_running_loop()
                    await loop.create_unix_connection(lambda: link.frames, path)
                except OSError as error:
                    raise UnreachableShardError(str(error)) from None
                self._open[url] = link
            return link

    def close(self) -> None:
        """Close all connections."""
        for link in self._open.values():
            link.frames.end()


def socket_of(folder: Path, url: str) -> Path:
    """Where a worker takes requests of others."""
    return folder / f"{url.rpartition(':')[2]}.sock"


def _adopt(path: Path) -> FileParts:
    """A file that another worker has written."""
    directory = TemporaryDirectory(prefix="tidepull-export-")
    return FileParts(directory, path.rename(Path(directory.name) / path.name))


class LinkServer:
    """Answers the requests of other workers."""

    def __init__(
        self, service: Service, operations: Sequence[Operation], place: WorkerPlace
    ) -> None:
        self._service, self._place = service, place
        self._operations = {operation.id: operation for operation in operations}
        self._tasks: set[asyncio.Task[None]] = set()

    async def listen(self) -> None:
        """Take requests from now on."""
        path = socket_of(self._place.folder, f":{self._place.number}")
        path.unlink(missing_ok=True)  # of a worker that has died
        loop = asyncio.get_running_loop()
        self._server = await loop.create_unix_server(
            lambda: _Frames(self._take, lambda: None), str(path)
        )

    def _take(self, frames: _Frames, frame: bytes) -> None:
        request = _REQUESTS.decode(frame)
        task = asyncio.get_running_loop().create_task(self._respond(frames, request))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _respond(self, frames: _Frames, request: WorkerRequest) -> None:
        operation = self._operations[request.operation]
        try:
            answer = await self._answer(operation, request)
        except Exception as error:
            problem = problem_of(error)
            if problem is None:
                _LOG.exception("request %s failed", request.request)
                problem = HttpError(
                    500,
                    f"Something went wrong here; the log has it under request {request.request}.",
                )
            answer = problem_response(problem, request.request, operation.errors is not None)
        frames.send(self._frame(request.number, answer, operation.status))

    async def _answer(self, operation: Operation, request: WorkerRequest) -> RawResponse:
        service = self._service
        token = NO_TOKEN if operation.scope is None else service.tokens.named(request.token)
        if token is None:  # the other worker may have read the file a moment earlier
            raise HttpError(MISDIRECTED, "This worker does not know the token yet.")
        headers = {} if request.key is None else {_KEY: request.key}
        call = Call(service, token, request.request, headers, request.name, request.event)
        call.forwarded = True
        if operation.body is not None:
            call.body = operation.read(request.body)
        if operation.query is not None:
            call.query = operation.read_query(request.query)
        answer = await service.forwarder.answer(operation, call, {}, b"")
        if isinstance(answer, RawResponse):
            return answer
        return RawResponse(msgspec.json.encode(answer), JSON)

    def _frame(self, number: int, answer: RawResponse, status: int) -> WorkerAnswer:
        file = None
        if answer.file is not None:
            file = str(answer.file.move(self._place.folder))
        return WorkerAnswer(
            number, answer.status or status, answer.content_type, list(answer.headers),
            answer.data, file,
        )  # fmt: skip
