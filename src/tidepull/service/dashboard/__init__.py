"""The page at `/`: static files of this directory, read once. uPlot 1.6.32 draws its charts (see uPlot.LICENSE.txt)."""

from __future__ import annotations

import hashlib
from importlib import resources

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}


def pages() -> list[BaseRoute]:
    """A route for the page and one for each file that it needs."""
    files = [file for file in resources.files(__name__).iterdir() if _ending(file.name) in _TYPES]
    routes = [_route(f"/dashboard/{file.name}", file.name, file.read_bytes()) for file in files]
    index = resources.files(__name__).joinpath("index.html")
    return [_route("/", index.name, index.read_bytes()), *routes]


def _route(path: str, name: str, data: bytes) -> Route:
    tag = f'"{hashlib.sha256(data).hexdigest()[:32]}"'
    headers = {"cache-control": "no-cache", "etag": tag, "content-type": _TYPES[_ending(name)]}

    async def file(request: Request) -> Response:
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(data, headers=headers)

    return Route(path, file, methods=["GET"])


def _ending(name: str) -> str:
    return name[name.rfind(".") :]
