"""When a decision is made: seconds since 1970, the user's time zone, and what a calendar says of a
moment."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from typing import Any, Literal, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np

from tidepull._internal.validation import shown
from tidepull.errors import InputError, ParameterError

LEAST, MOST = -62_135_596_800.0, 253_402_300_800.0
"""The years 1 to 9999, which is what calendars know."""

HELD = 300.0
"""Seconds by which clocks may differ. A clock that goes back by no more is held where it was."""

PROVED = 600.0
"""Seconds after which a jump of the machine's clock by more than `HELD` is believed."""

CALENDAR = ("day sin", "day cos", "half day sin", "half day cos", "week sin", "week cos", "weekend")
"""What `Clock.calendar` says of a moment, for policies without a sense of time."""

_DAY, _WEEK = 86_400.0, 604_800.0
_FIRST_MONDAY = 4 * _DAY  # 5 January 1970


class Jump(NamedTuple):
    """A clock that jumped by so many seconds: `held` and not believed yet, `believed`, or `found`
    at a restart, when nobody knows how long the pause was."""

    seconds: float
    state: Literal["held", "believed", "found"] = "believed"

    def __str__(self) -> str:
        if self.state == "found":
            return f"the clock is {abs(self.seconds):.0f} seconds behind the latest record"
        way = "ahead" if self.seconds > 0 else "back"
        text = f"the clock went {way} by {abs(self.seconds):.0f} seconds"
        return f"{text}, and is held" if self.state == "held" else text

    def pack(self) -> bytes:
        """As bytes."""
        return json.dumps({"clock": round(self.seconds, 3), "state": self.state}).encode()

    @classmethod
    def unpack(cls, data: bytes) -> Jump:
        """From bytes; notes before 0.3 are texts such as "the clock went back by 90 seconds"."""
        try:
            note = json.loads(data)
            return cls(float(note["clock"]), note["state"])
        except ValueError:
            return cls(-float(data.rsplit(b" ", 2)[1]), "found")


_BOOT_CLOCK: int | None = getattr(time, "CLOCK_BOOTTIME", None)


def elapsed() -> float:
    """Seconds of a clock that cannot jump; one that counts while the machine sleeps, where there is
    one."""
    return time.monotonic() if _BOOT_CLOCK is None else time.clock_gettime(_BOOT_CLOCK)


class SteadyTime:
    """A wall clock without its jumps: small differences are followed, a jump is held until it has
    lasted.

    >>> wall, passed = [1000.0], [0.0]
    >>> now = SteadyTime(lambda: wall[0], lambda: passed[0])
    >>> wall[0], passed[0] = 999_000.0, 5.0
    >>> now(), [str(jump) for jump in now.jumps()]
    (1005.0, ['the clock went ahead by 997995 seconds, and is held'])
    """

    def __init__(
        self, wall: Callable[[], float] = time.time, steady: Callable[[], float] = elapsed
    ) -> None:
        self._wall, self._steady = wall, steady
        self._offset = wall() - steady()
        self._since: float | None = None  # when the jump that is held was seen
        self._jumps: list[Jump] = []

    def __call__(self) -> float:
        """The present moment."""
        steady = self._steady()
        ahead = self._wall() - steady - self._offset
        if abs(ahead) <= HELD:
            self._offset, self._since = self._offset + ahead, None
        elif self._since is None:
            self._since = steady
            self._jumps.append(Jump(ahead, "held"))
        elif steady - self._since >= PROVED:
            self._offset, self._since = self._offset + ahead, None
            self._jumps.append(Jump(ahead))
        return steady + self._offset

    def jumps(self) -> list[Jump]:
        """Those that were seen since the last call."""
        seen, self._jumps = self._jumps, []
        return seen


class Clock:
    """Seconds since 1970 in one time zone.

    >>> clock = Clock("Europe/Berlin")
    >>> moment = clock.read("2026-07-01T12:00:00+00:00")
    >>> clock.local(moment) - moment
    7200.0
    >>> str(clock.datetime(moment))
    '2026-07-01 14:00:00+02:00'
    """

    def __init__(self, timezone: str = "UTC", now: Callable[[], float] = time.time) -> None:
        try:
            self._zone = ZoneInfo(timezone)
        except (KeyError, ValueError, OSError, TypeError):
            raise ParameterError(
                f"timezone: there is no time zone {timezone!r}; give a name such as "
                "'Europe/Berlin' or 'UTC'"
            ) from None
        self.timezone = timezone
        self._now = now
        self._utc = timezone == "UTC"
        self._last = -math.inf  # what was read last

    def now(self) -> float:
        """The present moment."""
        return float(self._now())

    def read(self, at: Any, name: str = "at") -> float:
        """A moment given as seconds, a `datetime` (naive: in this zone) or ISO text."""
        if isinstance(at, str):
            try:
                at = datetime.fromisoformat(at)
            except ValueError:
                raise InputError(
                    f"{name} must be seconds since 1970, a datetime or ISO text such as "
                    f"'2026-07-01T12:00', got {shown(at)}"
                ) from None
        if isinstance(at, Decimal | np.number):
            at = float(at)
        if isinstance(at, np.datetime64):
            at = at.astype("datetime64[us]").item()
        if isinstance(at, datetime) and at == at:  # pandas' NaT is no moment
            at = (at if at.tzinfo is not None else at.replace(tzinfo=self._zone)).timestamp()
        is_number = isinstance(at, int | float) and not isinstance(at, bool)
        if not is_number or not LEAST < at < MOST:
            is_milliseconds = is_number and 1000 * LEAST < at < 1000 * MOST
            hint = "; divide milliseconds by 1000" if is_milliseconds else ""
            raise InputError(
                f"{name} must be seconds since 1970, a datetime or ISO text, got {shown(at)}{hint}"
            )
        return float(at)

    def stamp(self, latest: float) -> tuple[float, float, list[Jump]]:
        """The moment that a record of now gets, given that of the latest one, which may have been
        told and not read from this clock; the present moment; and jumps that are worth a note.

        >>> Clock(now=lambda: 100.0).stamp(130.0)
        (130.0, 100.0, [])
        """
        now = self.now()
        if isinstance(self._now, SteadyTime):
            jumps = self._now.jumps()
        else:
            jumps = [Jump(now - self._last)] if now < self._last - HELD else []
        self._last = now
        behind = latest - now
        if behind > HELD and not jumps:
            jumps = [Jump(-behind, "found")]
        return (latest if 0.0 < behind <= HELD else now), now, jumps

    def read_near(self, at: Any, within: float | None) -> float:
        """A moment that a caller gives for something that happens now: a few minutes ahead at most,
        and no further back than rewards are waited for (None: any time)."""
        moment, now = self.read(at), self.now()
        if moment > now + HELD:
            raise InputError(
                f"at is {moment - now:,.0f} seconds ahead of the service's clock, and may be "
                f"{HELD:g}: leave it out, "
                "or use a token with the scope admin"
            )
        if within is not None and moment < now - within:
            raise InputError(
                f"at is {now - moment:,.0f} seconds ago, and rewards are waited for {within:g} "
                "seconds: leave it out, "
                "or use a token with the scope admin"
            )
        return moment

    def datetime(self, at: float) -> datetime:
        """That moment in this zone."""
        return datetime.fromtimestamp(at, self._zone)

    def local(self, at: float) -> float:
        """What a clock on the wall shows, in seconds: days begin at midnight here, summer or
        winter."""
        if self._utc:
            return at
        offset = self.datetime(at).utcoffset()
        assert offset is not None
        return at + offset.total_seconds()

    def calendar(self, at: float) -> list[float]:
        """A number for each name in `CALENDAR`."""
        local = self.local(at)
        day = math.tau * (local % _DAY) / _DAY
        since_monday = (local - _FIRST_MONDAY) % _WEEK
        week = math.tau * since_monday / _WEEK
        weekend = 1.0 if since_monday >= 5 * _DAY else -1.0
        sines = [math.sin(day), math.cos(day), math.sin(2 * day), math.cos(2 * day)]
        return [*sines, math.sin(week), math.cos(week), weekend]
