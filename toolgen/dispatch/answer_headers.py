"""The headers of an answer that a model is given, and when it may ask again.

Only those that carry the answer: where it is, its version, where to go on, when to ask again. None that
carries a credential, whatever the document says.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final

from toolgen.openapi.text import one_line

if TYPE_CHECKING:
    from toolgen.identity.redact import Redactor

_CARRIED: Final = frozenset(
    "location content-location operation-location retry-after etag last-modified link content-disposition "
    "content-range allow accept-patch accept-post deprecation sunset preference-applied warning "
    "request-id x-request-id x-correlation-id x-amzn-requestid x-trace-id idempotency-replayed".split()
)
_PAGES = re.compile(
    r"(x-)?(total|pages?|per-page|page-size|next|prev|previous|cursor|continuation|pagination|has-more|"
    r"limit|offset|ratelimit|rate-limit)(-[a-z-]+)?"
)
_NEVER = re.compile(r"(set-)?cookie2?|(www-authenticat|authorizat|authenticat|proxy-).*")
_LONGEST: Final = 2000  # characters of one value
_MOST: Final = 40  # headers
_DELAY = re.compile(r"[0-9]{1,9}")


def carried_headers(
    headers: Iterable[tuple[str, str]], documented: Iterable[str], redactor: Redactor
) -> dict[str, str]:
    """The headers that carry an answer, by name in lower case: on one line, redacted, each value capped.

    `documented` are names the document has for good answers. Values of one name are joined by commas
    (RFC 9110, section 5.3).
    """
    wanted = {name.lower() for name in documented}
    joined: dict[str, str] = {}
    for name, value in ((name.lower(), value) for name, value in headers):
        if not _NEVER.fullmatch(name) and (name in _CARRIED or name in wanted or _PAGES.fullmatch(name)):
            joined[name] = f"{joined[name]}, {value}" if name in joined else value
    return {name: _shown(name, value, redactor) for name, value in list(joined.items())[:_MOST]}


def _shown(name: str, value: str, redactor: Redactor) -> str:
    # Redacted before it is cut: half a secret looks like none.
    return one_line(str(redactor.named(name, one_line(value, 100_000))), _LONGEST)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait by Retry-After, a number or a date (RFC 9110, section 10.2.3); None without one.

    A date counts from the answer's own Date, so that clocks that differ do no harm. Never negative.
    """
    value = headers.get("retry-after", "").strip()
    if _DELAY.fullmatch(value):
        return float(value)
    due = _timestamp(value)
    if due is None:
        return None
    now = _timestamp(headers.get("date", ""))
    return max(0.0, due - (time.time() if now is None else now))


def _timestamp(text: str) -> float | None:
    try:
        return parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None
