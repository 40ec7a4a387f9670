"""What a caller may do: tokens for agents, with scopes, limits, and the checks that every request
passes before it is routed.

Tokens are kept as hashes in a file that is read again when it changes. A token is 256 random bits,
so one round of SHA-256 is enough: slow hashes are for passwords that people choose.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import json
import logging
import os
import re
import secrets
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from tidepull._internal.files import write_whole
from tidepull.errors import DataError, InputError
from tidepull.service.problem_details import HttpError

if TYPE_CHECKING:
    from tidepull.service.metrics import Metrics

_LOG = logging.getLogger("tidepull.serve")
_PREFIX = "tp"
_NO_TOKEN_HASH = hashlib.sha256(b"nobody").hexdigest()
ALL_AGENTS = "*"


class Scope(StrEnum):
    """What a token allows: looking, deciding and rewarding, or everything."""

    READ = "read"
    DECIDE = "decide"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class Token:
    """What is kept of a token. `agents` are names, or "*" for all; `expires` is in seconds since
    1970."""

    id: str
    hash: str
    agents: tuple[str, ...]
    scopes: tuple[str, ...]
    made: str = ""
    expires: float | None = None
    note: str = ""

    def allows(self, scope: Scope) -> bool:
        """Whether it has a scope; admin has all."""
        return scope in self.scopes or Scope.ADMIN in self.scopes

    def is_for(self, agent: str | None) -> bool:
        """Whether it is for an agent (None: for all of them)."""
        return ALL_AGENTS in self.agents or (agent is not None and agent in self.agents)


NO_TOKEN = Token("", "", (), ())
"""Of a request that needs none."""

ANONYMOUS = Token("insecure", "", (ALL_AGENTS,), (Scope.ADMIN,))
"""The token of every request to a service that was started with `--insecure`."""


def new_token(
    agents: tuple[str, ...], scopes: tuple[str, ...], *, days: float | None = None, note: str = ""
) -> tuple[str, Token]:
    """A new token in clear, to be shown once, and what is kept of it."""
    id = secrets.token_hex(4)
    clear = f"{_PREFIX}_{id}_{secrets.token_urlsafe(32)}"
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    expires = None if days is None else time.time() + days * 86_400
    return clear, Token(id, _hash(clear), agents, scopes, now, expires, note)


def _hash(clear: str) -> str:
    return hashlib.sha256(clear.encode()).hexdigest()


def read_tokens(path: Path) -> dict[str, Token]:
    """The tokens of a file, by their ids."""
    try:
        tokens = [_token(entry) for entry in json.loads(path.read_text())["tokens"]]
    except FileNotFoundError:
        raise DataError(
            f"there is no tokens file {path}: `tidepull token new --tokens {path}` makes one"
        ) from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"the tokens file {path} cannot be read ({error})") from None
    return {token.id: token for token in tokens}


def _token(entry: dict[str, Any]) -> Token:
    token = Token(**{**entry, "agents": tuple(entry["agents"]), "scopes": tuple(entry["scopes"])})
    if len(token.hash) != 64 or not set(token.scopes) <= set(Scope) or not token.scopes:
        raise ValueError(
            f"token {token.id}: a hash of 64 digits and scopes of read, decide, admin are needed"
        )
    return token


def write_tokens(path: Path, tokens: dict[str, Token]) -> None:
    """Keep tokens; only the owner may read the file."""
    text = json.dumps({"tokens": [asdict(token) for token in tokens.values()]}, indent=1)
    write_private(path, text + "\n")


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner may read."""
    old = os.umask(0o077)
    try:
        write_whole(path, text.encode())
    finally:
        os.umask(old)


class Tokens:
    """The tokens that are valid now; None stands for a service that lets anybody in."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._by_id: dict[str, Token] = {}
        self._stamp: tuple[int, ...] = ()
        self.sound = True
        if path is not None:
            self._by_id = read_tokens(path)
            self._stamp = self._stat()

    @property
    def insecure(self) -> bool:
        """Whether anybody is let in."""
        return self._path is None

    def authenticate(self, header: bytes | None) -> Token:
        """The token of an `Authorization` header; a 401 if there is none or it is not valid."""
        if self._path is None:
            return ANONYMOUS
        if header is None:
            raise _unauthorised("A token is needed: send it as `Authorization: Bearer tp_...`.")
        kind, _, clear = header.decode("latin-1").partition(" ")
        if kind.lower() != "bearer":
            raise _unauthorised("The Authorization header must have the form `Bearer tp_...`.")
        return self.verify(clear.strip())

    def named(self, id: str) -> Token | None:
        """The token with that id, unless it has expired."""
        token = ANONYMOUS if self._path is None else self._by_id.get(id)
        expired = token is not None and token.expires is not None and time.time() > token.expires
        return None if expired else token

    def verify(self, clear: str) -> Token:
        """The token that is written so; a 401 if it is not valid. Whether its id exists cannot be
        told from the time that this takes."""
        parts = clear.split("_", 2)
        token = self._by_id.get(parts[1]) if len(parts) == 3 else None
        same = hmac.compare_digest(_hash(clear), _NO_TOKEN_HASH if token is None else token.hash)
        if token is None or not same:
            raise _unauthorised("This token is not valid.")
        if token.expires is not None and time.time() > token.expires:
            raise _unauthorised("This token has expired: make a new one.")
        return token

    def _stat(self) -> tuple[int, ...]:
        assert self._path is not None
        try:
            stat = self._path.stat()
        except OSError:
            return ()
        return stat.st_mtime_ns, stat.st_size, stat.st_ino

    def reload(self) -> None:
        """Read the file again if it has changed."""
        if self._path is None:
            return
        stamp = self._stat()
        if stamp == self._stamp:
            return
        try:
            self._by_id = read_tokens(self._path)
        except InputError as error:
            if self.sound:
                _LOG.error(
                    "%s; the tokens that were valid before stay valid until it is mended", error
                )
            self.sound = False
            return
        self._stamp, self.sound = stamp, True
        _LOG.warning("%d tokens read from %s", len(self._by_id), self._path)


def _unauthorised(detail: str) -> HttpError:
    return HttpError(401, detail, {"www-authenticate": 'Bearer realm="tidepull"'})


def require(token: Token, scope: Scope, agent: str | None) -> None:
    """A 403 unless a token has a scope for an agent; whether there is such an agent is not told."""
    if not token.is_for(agent):
        raise HttpError(
            403, f"This token is not for {'all agents' if agent is None else f'agent {agent!r}'}."
        )
    if not token.allows(scope):
        raise HttpError(
            403,
            f"This needs a token with the scope '{scope}'; this one has {', '.join(token.scopes)}.",
        )


@dataclass(frozen=True, slots=True)
class Limits:
    """Bytes of a body, items of a batch, agents, requests a second for each token; of each address
    requests a second, and those without a valid token; requests under way at a time."""

    body: int = 1_000_000
    batch: int = 1000
    agents: int = 1000
    requests: float = 10_000.0
    address_requests: float = 20_000.0
    refusals: float = 100.0
    under_way: int = 2000


class RateLimiter:
    """A bucket for each caller: it fills at a constant rate and holds what a second brings. `what`
    callers are."""

    MAX_BUCKETS = 10_000

    def __init__(
        self,
        each_second: float,
        what: str = "This token",
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._rate = each_second
        self._what = what
        self._now = now
        self._buckets: dict[str, tuple[float, float]] = {}

    def charge(self, caller: str, cost: float) -> None:
        """What a request costs beyond 1; requests after it pay what is not left."""
        left, since = self._buckets.get(caller, (max(1.0, self._rate), self._now()))
        self._buckets[caller] = (left - cost, since)

    def take(self, caller: str) -> None:
        """One request of a caller; too many are a 429 that says when to come again."""
        now, most = self._now(), max(1.0, self._rate)
        left, since = self._buckets.get(caller, (most, now))
        left = min(most, left + (now - since) * self._rate)
        if left < 1.0:
            self._buckets[caller] = (left, now)
            wait = (1.0 - left) / self._rate
            raise HttpError(
                429,
                f"{self._what} has made more than {self._rate:g} requests in a second (every "
                "decision and reward of a batch counts): slow down.",
                {"retry-after": str(max(1, round(wait)))},
            )
        self._buckets[caller] = (left - 1.0, now)
        if len(self._buckets) > self.MAX_BUCKETS:
            self._drop_full(now)

    def _drop_full(self, now: float) -> None:
        """Forget callers that have been silent for long enough; if these are few, all of them."""
        missing = {
            caller: (left, since)
            for caller, (left, since) in self._buckets.items()
            if left + (now - since) * self._rate < self._rate
        }
        self._buckets = missing if len(missing) < self.MAX_BUCKETS / 2 else {}


_LOOPBACK = re.compile(rb"(localhost|127\.0\.0\.1|\[::1\])(:\d+)?", re.IGNORECASE)
PERSONALIZER, KEY = "/personalizer/", b"ocp-apim-subscription-key"
_ONCE = (b"authorization", b"content-type", b"content-encoding", b"idempotency-key", b"host", KEY)
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
