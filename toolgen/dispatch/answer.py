"""An HTTP answer -> ToolResult: what a model is given of it, and that is never more than it may have.

An answer is of a call that was carried out: nothing in it makes the call fail. Secrets that are known are
redacted wherever they stand in it; an error is redacted by name and by shape, too, since what fails
repeats what was sent.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from toolgen.dispatch.answer_headers import carried_headers, retry_after
from toolgen.dispatch.content import essence, is_text, json_of, text_of
from toolgen.dispatch.cut import cut
from toolgen.dispatch.events import parser_of, read_events
from toolgen.dispatch.reading import End, packing, read
from toolgen.dispatch.settings import Http
from toolgen.openapi.parameters import is_json
from toolgen.openapi.text import CUT, one_line
from toolgen.result import Sent, ToolResult
from toolgen.tools.model import Tool

if TYPE_CHECKING:
    import httpx2

    from toolgen.identity.redact import Redactor

_ERROR_CHARS: Final = 2000  # of an error's body, for a model
_ERROR_BYTES: Final = 200_000  # of an error's body that are read; more is a page for browsers
_GROWTH: Final = 6  # times as long a JSON text can become where it is written anew (`1E15`, `[1,1]`)
_SENTENCE: Final = 300  # characters of what an API says of its error
_LARGE: Final = 500_000  # bytes that are worth a thread: nothing blocks the event loop for long
_REDIRECTS: Final = (301, 302, 303, 307, 308)
_PHRASES: Final = {status.value: status.phrase for status in HTTPStatus}


@dataclass(frozen=True, slots=True)
class _Content:
    """What was read of a body. `notes` tell what is missing."""

    content: bytes
    content_type: str | None
    packed: bool
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Limits:
    """How a body is shown: within how many characters, and what is redacted of data and of text.

    `is_free` says of a JSON text that nothing in it would be.
    """

    characters: int
    data: Callable[[Any], Any]
    text: Callable[[str], str]
    is_free: Callable[[str], bool] = lambda _: False


@dataclass(frozen=True, slots=True)
class Whole:
    """An answer as a program gets it that is no model: with its own headers and bytes, known secrets apart.

    `content` is unpacked; `is_whole` is whether all of it is there.
    """

    status: int
    headers: tuple[tuple[str, str], ...]
    content: bytes = field(repr=False)
    is_whole: bool


Keep = Callable[[Whole], None]
# Of the connection, and of how the body came: it is handed on as one piece, unpacked.
_NOT_HANDED_ON: Final = frozenset(
    "connection content-encoding content-length keep-alive proxy-authenticate proxy-connection set-cookie set-cookie2"
    " te trailer transfer-encoding upgrade".split()
)


async def read_answer(
    response: httpx2.Response,
    tool: Tool,
    http: Http,
    redactor: Redactor,
    *,
    deadline: float | None = None,
    keep: Keep | None = None,
) -> ToolResult:
    """The result of a call whose answer has begun: `response` is a streaming one, and closed afterwards.

    `deadline` is a time of the running event loop, by default `http.total` seconds from now; what came
    until then is the answer. At most `http.max_answer_bytes` are read, unpacked. `keep` is given the answer as it
    is, a stream of events as one piece. Never raises because of what the API answers.
    """
    until = asyncio.get_running_loop().time() + http.total if deadline is None else deadline
    status = response.status_code
    ok = 200 <= status < 400
    content_type = response.headers.get("content-type")
    media_type = essence(content_type)
    retry = retry_after(response.headers)
    limits = _Limits(http.max_result_chars, redactor.known, redactor.known, redactor.is_free)
    if not ok:
        limits = _Limits(min(_ERROR_CHARS, http.max_result_chars), redactor.value, redactor.text)
    parser = parser_of(media_type) if ok and keep is None and not packing(response) else None
    if parser is not None:
        stream = await read_events(response, parser, http, until)
        body, note = await _in_a_thread(_json, stream.events, limits)
        notes, retry = [stream.message, note], stream.retry if retry is None else retry
    else:
        most = http.max_answer_bytes if ok or keep is not None else _ERROR_BYTES
        found = await _read(response, most, until, content_type)
        if keep is not None:
            keep(await _in_a_thread(_handed_on, response, found, redactor))
        shape = _in_a_thread if len(found.content) > _LARGE else _at_once
        body, notes = await shape(_shaped, found, media_type, limits)
    return ToolResult(
        ok=ok,
        sent=Sent.answered,
        status=status,
        media_type=media_type,
        body=body,
        headers=carried_headers(response.headers.multi_items(), tool.response.headers, redactor),
        message="; ".join(filter(None, [_verdict(status, media_type, body, response), *notes])),
        retry_after=retry,
    )


def _handed_on(response: httpx2.Response, found: _Content, redactor: Redactor) -> Whole:
    headers = [
        (name, str(redactor.known(value)))
        for name, value in response.headers.multi_items()
        if name.lower() not in _NOT_HANDED_ON
    ]
    # Latin-1 gives every byte a character and back: what is no text is left as it is.
    content = str(redactor.known(found.content.decode("latin-1"))).encode("latin-1", "replace")
    return Whole(response.status_code, tuple(headers), content, not found.notes)


async def _in_a_thread(function: Callable[..., Any], *arguments: Any) -> Any:
    return await asyncio.to_thread(function, *arguments)


async def _at_once(function: Callable[..., Any], *arguments: Any) -> Any:
    return function(*arguments)


async def _read(response: httpx2.Response, most: int, until: float, content_type: str | None) -> _Content:
    content = bytearray()

    def take(piece: bytes) -> bool:
        content.extend(piece)
        return len(content) <= most

    end = await read(response, until, take)
    del content[most:]
    so_far = f"only the first {len(content):,} bytes of the answer"
    incomplete = {
        End.complete: "",
        End.enough: f"{so_far} were read",
        End.late: f"{so_far} came in time",
        End.silent: f"{so_far} came, then nothing more",
        End.broken: f"{so_far} can be read, then it breaks off",
    }[end]
    coding = packing(response)
    packed = f"the body is packed as {one_line(coding, 40)!r}, which was not asked for" if coding and content else ""
    return _Content(bytes(content), content_type, bool(coding), tuple(filter(None, (incomplete, packed))))


def _shaped(found: _Content, media_type: str | None, limits: _Limits) -> tuple[Any, list[str]]:
    """The body as a model gets it, and what a reader has to know of it. No body is None."""
    notes = list(found.notes)
    if not found.content:
        return None, notes
    if found.packed:
        return _binary(found, media_type, limits, notes)
    text = _readable(found, media_type)
    if text is None:
        return _binary(found, media_type, limits, notes)
    if media_type is None or is_json(media_type):
        try:
            data = json_of(text)
            if len(text) * _GROWTH <= limits.characters and limits.is_free(text):
                return data, notes
            body, note = _json(data, limits)
            return body, [*notes, note]
        except ValueError:
            notes += ["the body is not the JSON that its media type says"] if media_type and not notes else []
    return _text(text, limits, notes)


def _readable(found: _Content, media_type: str | None) -> str | None:
    """The body as text; None for bytes. Without a media type it is text if it is UTF-8 without NUL."""
    if media_type is None:
        try:
            text = found.content.decode("utf-8-sig")
        except UnicodeDecodeError:
            return None
        return None if "\0" in text else text
    return text_of(found.content, found.content_type) if is_json(media_type) or is_text(media_type) else None


def _json(data: Any, limits: _Limits) -> tuple[Any, str]:
    """Redacted, then cut: half a secret would not be known as one."""
    kept, note = cut(limits.data(data), limits.characters)
    return kept, f"cut to {limits.characters:,} characters: {note}" if note else ""


def _text(text: str, limits: _Limits, notes: list[str]) -> tuple[str, list[str]]:
    shown = limits.text(text)
    if len(shown) <= limits.characters:
        return shown, notes
    kept = limits.characters - len(CUT)
    return shown[:kept] + CUT, [*notes, f"the first {kept:,} of {len(shown):,} characters"]


def _binary(found: _Content, media_type: str | None, limits: _Limits, notes: list[str]) -> tuple[Any, list[str]]:
    body = {"bytes": len(found.content), "mediaType": media_type or "application/octet-stream"}
    if 4 * ((len(found.content) + 2) // 3) > limits.characters:
        return body, [*notes, f"the {len(found.content):,} bytes are left out: more than a result holds"]
    return {"base64": limits.text(base64.b64encode(found.content).decode()), **body}, notes


def _verdict(status: int, media_type: str | None, body: Any, response: httpx2.Response) -> str:
    """What an error, or a redirect, comes to; nothing of what is fine."""
    if status in _REDIRECTS and response.headers.get("location"):
        return "redirects are not followed: see location"
    if 200 <= status < 400:
        return ""
    said = _problem(body) if media_type == "application/problem+json" else ""
    said = said or _PHRASES.get(status, "")
    return f"HTTP {status}: {said}" if said else f"HTTP {status}"


def _problem(body: Any) -> str:
    """Title and detail of a problem (RFC 9457, section 3.1)."""
    found = [body.get(key) for key in ("title", "detail")] if isinstance(body, dict) else []
    return one_line(": ".join(text for text in found if isinstance(text, str) and text.strip()), _SENTENCE)
