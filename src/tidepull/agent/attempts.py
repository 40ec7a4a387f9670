"""How a client asks a service: addresses, repetitions within one deadline, and a circuit breaker,
without any input or output."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Any

from tidepull.agent.requests import FAILING, HttpRequest, pause
from tidepull.errors import ParameterError, ServiceError


class ClientSettings:
    """What the clients share: addresses, deadlines, repetitions and the breaker."""

    def __init__(
        self,
        url: str | Sequence[str],
        *,
        timeout: float,
        long_timeout: float,
        retries: int,
        breaker: int,
        cooldown: float,
    ) -> None:
        for name, value in (("timeout", timeout), ("long_timeout", long_timeout)):
            if not value > 0:
                raise ParameterError(f"{name} must be a positive number of seconds, got {value!r}")
        self.timeout, self.long_timeout, self.retries = timeout, long_timeout, retries
        self.addresses = Addresses(url)
        self.breaker = CircuitBreaker(breaker, cooldown)

    def begin(self, request: HttpRequest[Any]) -> Attempts:
        """The attempts of a request; a `ServiceError` while the breaker is open."""
        self.breaker.require_closed()
        return Attempts(self, request)


class Addresses:
    """Where a service can be reached; the next one is taken when one fails."""

    def __init__(self, url: str | Sequence[str]) -> None:
        urls = [url] if isinstance(url, str) else list(url or ())
        if not urls or not all(str(one).startswith(("http://", "https://")) for one in urls):
            raise ParameterError(
                f"url must be an address such as 'http://127.0.0.1:8000', or a list of them, got {url!r}"
            )
        self._urls = [one.rstrip("/") for one in urls]
        self._now = 0

    def __len__(self) -> int:
        return len(self._urls)

    def of(self, path: str) -> str:
        """The address of a path."""
        return self._urls[self._now] + path

    def next(self, attempt: int, after: str | None) -> float:
        """Go on with the next one; how long to wait before. One that was not tried yet is asked at
        once."""
        self._now = (self._now + 1) % len(self._urls)
        return 0.0 if attempt + 1 < len(self._urls) else pause(attempt + 1 - len(self._urls), after)


class CircuitBreaker:
    """Stops asking a service that has failed several requests in a row; after `cooldown` seconds
    one request tries whether it is back.

    >>> breaker = CircuitBreaker(2, 60.0)
    >>> breaker.failed(), breaker.failed()
    (None, None)
    >>> breaker.require_closed()  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    ServiceError: the service was not asked
    """

    def __init__(self, failures: int, cooldown: float) -> None:
        self._most, self._cooldown = failures, cooldown
        self._failures = 0
        self._closed_again = 0.0
        self._lock = threading.Lock()

    def require_closed(self) -> None:
        """A `ServiceError` while the service is left alone."""
        with self._lock:
            if not self._most or self._failures < self._most:
                return
            left = self._closed_again - time.monotonic()
            if left > 0:
                raise ServiceError(
                    0,
                    f"the service was not asked: it failed {self._failures} requests in a row; it "
                    f"is tried again in {left:.1f} seconds",
                )
            self._closed_again = time.monotonic() + self._cooldown  # this request is the trial

    def failed(self) -> None:
        """A request came to nothing."""
        with self._lock:
            self._failures += 1
            self._closed_again = time.monotonic() + self._cooldown

    def succeeded(self) -> None:
        """A request was answered."""
        self._failures = 0


class Attempts:
    """The attempts of one request, all within its deadline."""

    def __init__(self, settings: ClientSettings, request: HttpRequest[Any]) -> None:
        self._settings, self._request = settings, request
        self._within = settings.timeout if request.quick else settings.long_timeout
        self._deadline = time.monotonic() + self._within
        self._attempt = 0

    @property
    def url(self) -> str:
        """Where to send this attempt."""
        return self._settings.addresses.of(self._request.path)

    @property
    def left(self) -> float:
        """Seconds for this attempt: all that are left, or a part where other addresses are left,
        too."""
        others = max(1, len(self._settings.addresses) - self._attempt)
        return max(0.001, (self._deadline - time.monotonic()) / others)

    def after_error(self, error: Exception, *, sent: bool) -> float:
        """Seconds to wait before the next attempt, after one without an answer (`sent`: it may have
        arrived); a `ServiceError` where there is none."""
        may_repeat = self._request.may_repeat(None, sent=sent)
        wait = self._next(None) if may_repeat else None
        if wait is not None:
            return wait
        self._settings.breaker.failed()
        if time.monotonic() >= self._deadline - 0.001:
            raise ServiceError(
                0, f"the service did not answer within {self._within:g} seconds"
            ) from error
        where = self._settings.addresses.of("")
        reason = f"{type(error).__name__}: {error}"
        raise ServiceError(
            0, f"the service at {where} cannot be reached ({reason}): start it, or give its URL"
        ) from error

    def after_answer(self, status: int, retry_after: str | None) -> float | None:
        """Seconds to wait before the next attempt; None: the answer counts."""
        wait = None
        if self._request.may_repeat(status, sent=True):
            wait = self._next(retry_after)
        if wait is None:
            breaker = self._settings.breaker
            breaker.failed() if status in FAILING else breaker.succeeded()
        return wait

    def _next(self, after: str | None) -> float | None:
        """How long to wait before one more attempt; None: there is none."""
        if self._attempt >= self._settings.retries:
            return None
        wait = self._settings.addresses.next(self._attempt, after)
        self._attempt += 1
        return wait if time.monotonic() + wait < self._deadline else None
