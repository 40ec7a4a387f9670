"""Checks that every request passes before it is routed: its address, its headers, where it comes
from, and its path."""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from tidepull.service.auth import RateLimiter
from tidepull.service.problem_details import HttpError

if TYPE_CHECKING:
    from tidepull.service.auth import Limits
    from tidepull.service.metrics import Metrics

_LOOPBACK = re.compile(rb"(localhost|127\.0\.0\.1|\[::1\])(:\d+)?", re.IGNORECASE)
PERSONALIZER, KEY = "/personalizer/", b"ocp-apim-subscription-key"
_ONCE = (
    b"authorization",
    b"content-type",
    b"content-encoding",
    b"idempotency-key",
    b"host",
    KEY,
)
_OWN = (b"same-origin", b"none")
"""What browsers say of a request that no page of another site has sent (`Sec-Fetch-Site`)."""


class Gate:
    """What may come in. `insecure`: requests must name this machine, as no token protects it."""

    def __init__(self, limits: Limits, metrics: Metrics, *, insecure: bool) -> None:
        self._insecure = insecure
        self._metrics = metrics
        self._requests = RateLimiter(limits.address_requests, "This address")
        self._refusals = RateLimiter(limits.refusals, "This address")

    def check(self, scope: Any, headers: dict[bytes, bytes]) -> None:
        """Refuse what no token can make good."""
        try:
            self._requests.take(address_of(scope))
        except HttpError:
            self._metrics.refused("address")
            raise
        if len(headers) != len(scope["headers"]):
            _require_once(scope["headers"])
        if self._insecure and not _LOOPBACK.fullmatch(headers.get(b"host", b"localhost")):
            raise HttpError(
                421,
                "This service was started with --insecure: it answers only to localhost and "
                "127.0.0.1.",
            )
        if _is_foreign(scope, headers):
            self._metrics.refused("origin")
            raise HttpError(403, "Requests that a page of another site sends are not taken.")
        if b"%2f" in scope.get("raw_path", b"").lower() and not scope["path"].startswith(
            PERSONALIZER
        ):
            raise HttpError(
                404, "There is nothing at this path: an escaped slash (%2F) is part of no name."
            )

    def count_refusal(self, scope: Any, problem: HttpError) -> HttpError:
        """A request without a valid token; too many of one address are told to come later, and
        lose their connection."""
        self._metrics.refused("token")
        try:
            self._refusals.take(address_of(scope))
        except HttpError as error:
            error.headers["connection"] = "close"
            return error
        return problem


def address_of(scope: Any) -> str:
    """The address that a request comes from; of IPv6 the network, as each has very many."""
    host: str = scope["client"][0] if scope.get("client") else "unknown"
    if ":" in host:
        return str(ipaddress.ip_network(f"{host.partition('%')[0]}/64", strict=False))
    return host


def _require_once(headers: list[tuple[bytes, bytes]]) -> None:
    """Headers that decide something must not contradict themselves."""
    names = [name for name, _ in headers]
    for name in _ONCE:
        if names.count(name) > 1:
            raise HttpError(400, f"The header {name.decode()} came more than once.")


def _is_foreign(scope: Any, headers: dict[bytes, bytes]) -> bool:
    """Whether a browser says that a page of another site sends it. A link to the dashboard may be
    anywhere."""
    site = headers.get(b"sec-fetch-site")
    if site is not None:
        follows_link = scope["method"] == "GET" and scope["path"] == "/"
        return site not in _OWN and not follows_link
    origin = headers.get(b"origin")
    return (
        origin is not None and urlsplit(origin).netloc.lower() != headers.get(b"host", b"").lower()
    )
