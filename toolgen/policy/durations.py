"""ISO 8601 durations, as approval configs write them: `PT30M`, `P1DT12H`, `P2W`."""

from __future__ import annotations

import re
from datetime import timedelta

_DURATION = re.compile(
    r"P(?=.)(?:(?P<weeks>\d+)W|(?:(?P<days>\d+)D)?"
    r"(?:T(?=.)(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:\.\d{1,6})?)S)?)?)",
    re.ASCII,
)
_MEANT = re.compile(r"\s*(?:PT?)?(\d+)\s*(?:(s)|(m)|(h)|(d)|(w))[a-z]*\s*", re.IGNORECASE)


def read_duration(text: str) -> timedelta:
    """The length of time a text states.

    Raises ValueError, with what to write where that can be told, for a text that is no ISO 8601 duration,
    for years and months, whose length is not fixed, and for one that is zero or longer than 999,999,999 days.
    """
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError("this is no ISO 8601 duration such as PT30M or P1D")
    try:
        length = timedelta(**{unit: float(number) for unit, number in match.groupdict("0").items()})
    except OverflowError:
        raise ValueError("the duration is longer than 999,999,999 days") from None
    if not length:
        raise ValueError("a duration is longer than zero")
    return length


def meant_duration(text: str) -> str:
    """The ISO 8601 duration that `30m` or `5 minutes` may mean; empty where none can be told."""
    match = _MEANT.fullmatch(text)
    if match is None or not int(match[1]):
        return ""
    number, *units = match.groups()
    unit = next(letter for letter in units if letter).upper()
    return f"P{number}{unit}" if unit in "DW" else f"PT{number}{unit}"


def written_duration(length: timedelta) -> str:
    """A length of time as an ISO 8601 duration: `P1DT30M`."""
    minutes, seconds = divmod(length.seconds, 60)
    hours, minutes = divmod(minutes, 60)
    fraction = f".{length.microseconds:06}".rstrip("0") if length.microseconds else ""
    time = "".join(f"{number}{unit}" for number, unit in ((hours, "H"), (minutes, "M")) if number)
    time += f"{seconds}{fraction}S" if seconds or fraction else ""
    return "P" + (f"{length.days}D" if length.days else "") + (f"T{time}" if time else "")
