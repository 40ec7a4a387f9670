"""The application of whatever service lives: it takes long to make, keeps nothing, and outlives
them all."""

from __future__ import annotations

from typing import Any

from tidepull.service.app import App
from tidepull.service.handlers import OPERATIONS
from tidepull.service.metrics import Metrics
from tidepull.service.service import Service


class Current:
    """The service of the process that lives; the application, which takes long to make, outlives
    it."""

    service: Service

    def __getattr__(self, name: str) -> Any:
        return getattr(Current.service, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(Current.service, name, value)


METRICS = Metrics()
_APP: list[App] = []


def app() -> App:
    """The application; it asks whatever service lives."""
    if not _APP:
        _APP.append(App(Current(), OPERATIONS))  # type: ignore[arg-type]
    return _APP[0]
