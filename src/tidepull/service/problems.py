"""Every error as `application/problem+json` (RFC 9457): a status, a title, and one sentence that says what to do."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus

import msgspec

from tidepull.errors import (
    BusyError,
    ConflictError,
    DecisionError,
    ExpiredError,
    InputError,
    OtherRewardError,
    StoreError,
    TidepullError,
)

CONTENT_TYPE = b"application/problem+json"

_STATUS: list[tuple[type[TidepullError], int]] = [  # the first that fits
    (ExpiredError, 410),
    (DecisionError, 404),
    (OtherRewardError, 409),
    (ConflictError, 409),
    (InputError, 422),
    (StoreError, 503),
    (BusyError, 503),
]


class ProblemBody(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What went wrong: `detail` is one sentence for people, `request` the id under which the logs have it."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    request: str | None = None


class HttpError(Exception):
    """An answer that is an error."""

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status, self.detail = status, detail
        self.headers = dict(headers or {})

    @property
    def title(self) -> str:
        """What HTTP calls such a status."""
        return HTTPStatus(self.status).phrase

    def body(self, request: str | None = None) -> ProblemBody:
        """As it is sent."""
        return ProblemBody(title=self.title, status=self.status, detail=self.detail, request=request)


def problem_of(error: BaseException) -> HttpError | None:
    """What to answer to an error that was raised on purpose; None where it was not."""
    if isinstance(error, HttpError):
        return error
    if not isinstance(error, TidepullError):
        return None
    status = next((status for kind, status in _STATUS if isinstance(error, kind)), 500)
    return HttpError(status, sentence(str(error)), {"retry-after": "1"} if status == 503 else None)


def sentence(text: str) -> str:
    """With a full stop, and not endless."""
    text = text if len(text) <= 500 else text[:497] + "..."
    return text if text.endswith((".", "?", "!")) else text + "."
