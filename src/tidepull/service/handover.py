"""How shards prove to each other that they belong together: a secret that all of them have.

A shard that forwards a request signs it, names the id of the caller's token, and keeps the token
itself. The other shard checks the signature, looks the token up in its own file, and signs its
answer. A signature names the shard that it is for, and is valid for a short time.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import time
from contextlib import suppress
from pathlib import Path

from tidepull._internal.files import explained
from tidepull.errors import InputError
from tidepull.service.problem_details import HttpError

FORWARDED, SIGNED = b"x-tidepull-forwarded", b"x-tidepull-signature"
LIFETIME = 30.0
"""Seconds for which a signature is valid; clocks of machines may differ by less."""

SHORTEST = 16
"""Bytes that a secret must have."""

_VERSION = "1"


class HandOver:
    """Signs and checks with one secret."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def sign(
        self, to: str, token: str, request: str, method: str, path: bytes, body: bytes
    ) -> bytes:
        """The header of a forwarded request."""
        claim = f"{_VERSION} {token} {time.time():.3f} {digest(body)}"
        return f"{claim} {self._mark('request', to, claim, request, method, path)}".encode()

    def check(
        self, header: bytes, here: str, request: str, method: str, path: bytes
    ) -> tuple[str, str]:
        """The id of the token of a forwarded request and the digest of its body; a 401 where no
        shard has signed it for this one, just now."""
        claim, _, mark = header.decode("latin-1").rpartition(" ")
        right = self._mark("request", here, claim, request, method, path)
        with suppress(ValueError):
            version, token, moment, digested = claim.split(" ")
            fresh = abs(time.time() - float(moment)) < LIFETIME
            if hmac.compare_digest(mark.encode(), right.encode()) and fresh and version == _VERSION:
                return token, digested
        raise refused()

    def sign_answer(self, header: bytes, status: int) -> bytes:
        """The header of an answer to a forwarded request."""
        return self._mark("answer", header, str(status)).encode()

    def is_answer(self, signature: bytes, header: bytes, status: int) -> bool:
        """Whether a shard with the same secret has answered so."""
        return hmac.compare_digest(signature, self.sign_answer(header, status))

    def _mark(self, *parts: str | bytes) -> str:
        data = b"\n".join(part if isinstance(part, bytes) else part.encode() for part in parts)
        return hmac.new(self._secret, data, hashlib.sha256).hexdigest()


def refused() -> HttpError:
    """What a shard with another secret is told."""
    return HttpError(
        401,
        "No shard with the same secret has forwarded this request: all shards need the same "
        f"--shard-secret, and clocks that differ by less than {LIFETIME:g} seconds.",
        {"www-authenticate": 'Bearer realm="tidepull"'},
    )


def digest(body: bytes) -> str:
    """What a signature says of a body."""
    return hashlib.sha256(body).hexdigest()


def read_secret(path: Path, *, make: bool) -> bytes:
    """The secret in a file; with `make`, a new one where there is no file."""
    with explained("read", path):
        if make and not path.exists():
            with suppress(FileExistsError):  # another shard was quicker
                _write_secret(path)
        secret = path.read_bytes().strip() if path.exists() else b""
    if len(secret) < SHORTEST:
        raise InputError(
            f"{path} must hold a secret of at least {SHORTEST} characters, the same for all shards: "
            f"`openssl rand -hex 32 > {path}` makes one"
        )
    return secret


def _write_secret(path: Path) -> None:
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.write(handle, secrets.token_hex(32).encode() + b"\n")
        os.fsync(handle)
        os.link(temporary, path)
    finally:
        os.close(handle)
        temporary.unlink()
