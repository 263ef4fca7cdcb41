"""ISO 8601 durations, as approval configs write them: `PT30M`, `P1DT12H`, `P2W`."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

# A due time that no calendar has would be an error only when a call waits.
LONGEST: Final = timedelta(days=36_500)
_DURATION = re.compile(
    r"P(?=.)(?:(?P<weeks>\d+)W|(?:(?P<days>\d+)D)?"
    r"(?:T(?=.)(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:\.\d{1,6})?)S)?)?)",
    re.ASCII,
)
_CALENDAR = re.compile(r"P[^T]*\d[YM].*", re.ASCII)
_MEANT = re.compile(
    r"\s*(?:PT?)?(\d{1,9})\s*"
    r"(?:(s|secs?|seconds?)|(m|mins?|minutes?)|(h|hrs?|hours?)|(d|days?)|(w|wks?|weeks?))\s*",
    re.ASCII | re.IGNORECASE,
)


def read_duration(text: str) -> timedelta:
    """The length of time a text states.

    Raises ValueError for a text that is no ISO 8601 duration, for years and months, whose length is not
    fixed, and for a duration of zero or of more than 36,500 days.
    """
    if _CALENDAR.fullmatch(text):
        raise ValueError("years and months have no fixed length: count days, and write minutes behind a T")
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError("this is no ISO 8601 duration such as PT30M or P1D")
    try:
        length = timedelta(**{unit: float(number) for unit, number in match.groupdict("0").items()})
    except OverflowError:
        length = timedelta.max
    if not length:
        raise ValueError("a duration is longer than zero")
    if length > LONGEST:
        raise ValueError(f"a duration is at most {LONGEST.days} days")
    return length


def meant_duration(text: str) -> str:
    """The ISO 8601 duration that `30m` or `5 minutes` may mean; empty where none can be told."""
    match = _MEANT.fullmatch(text)
    if match is None or _CALENDAR.fullmatch(text.strip().upper()):
        return ""
    number, unit = match[1], "SMHDW"[(match.lastindex or 0) - 2]
    meant = f"P{number}{unit}" if unit in "DW" else f"PT{number}{unit}"
    try:
        read_duration(meant)
    except ValueError:
        return ""
    return meant


def written_duration(length: timedelta) -> str:
    """A length of time as an ISO 8601 duration: `P1DT30M`."""
    minutes, seconds = divmod(length.seconds, 60)
    hours, minutes = divmod(minutes, 60)
    fraction = f".{length.microseconds:06}".rstrip("0") if length.microseconds else ""
    time = "".join(f"{number}{unit}" for number, unit in ((hours, "H"), (minutes, "M")) if number)
    time += f"{seconds}{fraction}S" if seconds or fraction else ""
    return "P" + (f"{length.days}D" if length.days else "") + (f"T{time}" if time else "")
