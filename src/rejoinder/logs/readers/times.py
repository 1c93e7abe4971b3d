"""Parse times of logs into microseconds since 1970, UTC; a time without a zone is in UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_FIRST = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
_LAST = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
_MONTHS = {"Jan": 1, "Feb": 2, "Mar": 3, "Apr": 4, "May": 5, "Jun": 6}
_MONTHS |= {"Jul": 7, "Aug": 8, "Sep": 9, "Oct": 10, "Nov": 11, "Dec": 12}
_ZONES = {"UTC": 0, "GMT": 0, "EDT": -4, "EST": -5, "CDT": -5, "CST": -6, "MDT": -6, "MST": -7}
_ZONES |= {"PDT": -7, "PST": -8, "JST": 9}
_MILLISECONDS_FROM = 1e11
"""As seconds this is the year 5138, as milliseconds 1973, before any log was written."""
_TOO_LATE = 1e14


class BadTime(ValueError):
    """A time that cannot be parsed."""


def microseconds(time: str | int | float) -> int:
    """Parse ISO 8601, epoch seconds or milliseconds, or Twitter's own format."""
    try:
        if isinstance(time, str):
            if len(time) >= 28 and time[3] == " ":
                return _twitter(time)
            if not _is_number(time):
                return _since(datetime.fromisoformat(time))
            time = float(time)
        if isinstance(time, bool) or not 0 <= time < _TOO_LATE:
            raise ValueError
        seconds = time / 1000 if time >= _MILLISECONDS_FROM else time
        return round(seconds * 1_000_000)
    except (ValueError, KeyError, IndexError, OverflowError):
        raise BadTime(
            f"time: {str(time)[:60]!r} is not a time;"
            " expected ISO 8601, epoch seconds or Twitter's format"
        ) from None


def _is_number(time: str) -> bool:
    """Return whether a text is epoch seconds, and not 2017 or 20170620, which are ISO 8601."""
    whole, _, part = time.partition(".")
    return len(whole) >= 9 and whole.isdecimal() and (not part or part.isdecimal())


def _since(time: datetime) -> int:
    if time.tzinfo is None:
        time = time.replace(tzinfo=UTC)
    since = (time - _EPOCH) // _MICROSECOND
    if not _FIRST <= since <= _LAST:
        raise ValueError("not between the years 1 and 9999 in UTC")
    return since


def _twitter(time: str) -> int:
    """Parse ``Tue Jun 20 00:58:40 +0000 2017``, ten times as fast as strptime."""
    h, m, s = int(time[11:13]), int(time[14:16]), int(time[17:19])
    if not (h < 24 and m < 60 and s < 60 and time[10:20:3] == " :: "):
        raise ValueError
    return _day(time[4:10], time[20:]) + (h * 3600 + m * 60 + s) * 1_000_000


@lru_cache(maxsize=4096)
def _day(day: str, zone_and_year: str) -> int:
    """Return the beginning of a day; cached, because a log has few days."""
    month, number = day.split()
    zone, year = zone_and_year.split()
    if zone in _ZONES:
        offset = timezone(timedelta(hours=_ZONES[zone]))
    else:
        sign = {"+": 1, "-": -1}[zone[0]]
        offset = timezone(sign * timedelta(hours=int(zone[1:3]), minutes=int(zone[3:5])))
    return _since(datetime(int(year), _MONTHS[month], int(number), tzinfo=offset))
