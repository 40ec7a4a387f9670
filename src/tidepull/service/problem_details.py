"""Errors as HTTP responses: `application/problem+json` (RFC 9457), or the form that Personalizer
has."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus

from msgspec import UNSET, Struct, UnsetType

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


class ProblemBody(Struct, kw_only=True, omit_defaults=True):
    """What went wrong: `detail` is one sentence for people, `request` the id under which the logs
    have it."""

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
        return ProblemBody(
            title=self.title, status=self.status, detail=self.detail, request=request
        )


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


class InnerError(Struct, kw_only=True):
    """A finer code."""

    code: str


class PersonalizerError(Struct, kw_only=True, rename="camel"):
    """BadRequest, ResourceNotFound or InternalServerError (or a status, as Azure's gateway had it),
    and a sentence."""

    code: str
    message: str
    inner_error: InnerError | UnsetType = UNSET


class ErrorResponse(Struct, kw_only=True):
    """What went wrong."""

    error: PersonalizerError


def personalizer_error(problem: HttpError) -> tuple[int, ErrorResponse]:
    """A problem as Personalizer had it: what is wrong with a request is a 400."""
    status = 400 if problem.status in (413, 422) else problem.status
    code = "BadRequest"
    inner: InnerError | UnsetType = UNSET
    if status in (401, 403, 429):
        code = str(status)
    elif status == 404:
        code = "ResourceNotFound"
    elif status >= 500:
        code = "InternalServerError"
    if problem.status == 413:
        inner = InnerError(code="PayloadSizeExceeded")
    return status, ErrorResponse(
        error=PersonalizerError(code=code, message=problem.detail, inner_error=inner)
    )
