"""The one renderer of a preview: as text for a terminal, as data for programs and pages."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from toolgen.request.shown import Content, Cut, Field, Later, as_fields, label

if TYPE_CHECKING:
    from toolgen.request.preview import Preview


def as_dict(preview: Preview) -> dict[str, Any]:
    """The preview as JSON-ready data, keys in camelCase."""
    return {
        "tool": preview.tool,
        "method": preview.method,
        "url": preview.url,
        "host": preview.host,
        "path": {"template": preview.template, "values": as_fields(preview.path_values)},
        "query": as_fields(preview.query),
        "headers": as_fields(preview.headers),
        "cookies": as_fields(preview.cookies),
        "later": [asdict(later) for later in preview.later],
        "credentials": [list(all_of) for all_of in preview.credentials],
        "body": None if preview.body is None else _content(preview.body),
        "notes": list(preview.notes),
        "flags": list(preview.flags),
        "cuts": [asdict(cut) for cut in preview.cuts],
        "complete": preview.is_complete,
    }


def as_text(preview: Preview, width: int | None = None) -> str:
    """The preview as text. Headings begin a line, all else is indented: no value can look like a heading.

    `width` is in columns; a longer line goes on below, two columns deeper.
    """
    lines = list(_lines(preview))
    if width is not None:
        lines = [piece for line in lines for piece in _wrapped(line, max(width, 20))]
    return "\n".join(lines)


def from_dict(data: Mapping[str, Any]) -> Preview:
    """The preview that `as_dict` wrote, as it is kept with a pause; nothing that was cut can be had whole."""
    from toolgen.request.preview import Preview

    return Preview(
        tool=data["tool"],
        method=data["method"],
        url=data["url"],
        host=data["host"],
        template=data["path"]["template"],
        path_values=_fields(data["path"]["values"]),
        query=_fields(data["query"]),
        headers=_fields(data["headers"]),
        cookies=_fields(data["cookies"]),
        later=tuple(Later(**one) for one in data["later"]),
        credentials=tuple(map(tuple, data["credentials"])),
        body=None if data["body"] is None else _read_content(data["body"]),
        notes=tuple(data["notes"]),
        flags=tuple(data["flags"]),
        cuts=tuple(Cut(**one) for one in data["cuts"]),
    )


def _lines(preview: Preview) -> Iterator[str]:
    yield f"{preview.method} {preview.url}"
    yield from _list("look closely", preview.flags)
    if preview.path_values:
        yield from _table(f"path {preview.template}", preview.path_values)
    yield from _table("query", preview.query)
    yield from _table("headers", preview.headers)
    yield from _table("cookies", preview.cookies)
    if preview.later:
        yield "filled in when it is sent"
        yield from (f"  {later.location} {label(later.name)}: {later.value}" for later in preview.later)
    yield f"credentials: {_credentials(preview.credentials)}"
    if preview.body is None:
        yield "no body"
    else:
        yield f"body: {_facts(preview.body)}"
        yield from _body(preview.body, "  ")
    yield from _list("notes", preview.notes)
    yield from _list("not shown whole", [str(cut) for cut in preview.cuts])


def _body(content: Content, indent: str) -> Iterator[str]:
    yield from (f"{indent}{label(field.name)}: {_value(field.value)}" for field in content.headers)
    yield from (f"{indent}{label(field.name)}: {_value(field.value)}" for field in content.fields)
    if content.text is not None:
        yield from (f"{indent}{line}" for line in content.text.split("\n"))
    for part in content.parts:
        yield f"{indent}part {label(part.name or '')}: {_facts(part)}"
        yield from _body(part, indent + "  ")


def _facts(content: Content) -> str:
    """What a body or part is, in a line."""
    file = [] if content.filename is None else [f"file {json.dumps(content.filename, ensure_ascii=False)}"]
    facts = [*file, content.media_type or "no media type", f"{content.size:,} bytes"]
    if content.sha256 is not None and (content.kind == "bytes" or content.name is not None):
        facts.append(f"sha256 {content.sha256}")
    if content.kind == "multipart":
        facts.append(f"{len(content.parts)} parts" if len(content.parts) != 1 else "1 part")
    return ", ".join(facts)


def _credentials(alternatives: Sequence[Sequence[str]]) -> str:
    if not alternatives:
        return "none"
    return ", or ".join(" and ".join(map(label, all_of)) or "none" for all_of in alternatives)


def _table(heading: str, fields: Sequence[Field]) -> Iterator[str]:
    if fields:
        yield heading
        yield from (f"  {label(field.name)}: {_value(field.value)}" for field in fields)


def _list(heading: str, texts: Sequence[str]) -> Iterator[str]:
    if texts:
        yield heading
        yield from (f"  {text}" for text in texts)


def _value(text: str) -> str:
    """A value; in quotes where its beginning or end would not be seen."""
    return text if text and text == text.strip() else json.dumps(text, ensure_ascii=False)


def _wrapped(line: str, width: int) -> Iterator[str]:
    indent = " " * min(len(line) - len(line.lstrip(" ")) + 2, width // 2)
    taken, columns = 0, 0
    prefix = ""
    for at, char in enumerate(line):
        wide = 2 if unicodedata.east_asian_width(char) in "WF" else 1
        if columns + wide > width:
            yield prefix + line[taken:at]
            taken, columns, prefix = at, len(indent), indent
        columns += wide
    yield prefix + line[taken:]


def _content(content: Content) -> dict[str, Any]:
    """A body or part as JSON-ready data; what it does not have is left out."""
    found: dict[str, Any] = {
        "kind": content.kind,
        "mediaType": content.media_type,
        "size": content.size,
        "sha256": content.sha256,
        "name": content.name,
        "filename": content.filename,
        "text": content.text,
        "headers": as_fields(content.headers) or None,
        "fields": as_fields(content.fields) if content.kind == "form" else None,
        "parts": [_content(part) for part in content.parts] if content.kind == "multipart" else None,
    }
    return {key: value for key, value in found.items() if value is not None}


def _fields(data: Sequence[Mapping[str, str]]) -> tuple[Field, ...]:
    return tuple(Field(one["name"], one["value"]) for one in data)


def _read_content(data: Mapping[str, Any]) -> Content:
    return Content(
        kind=data["kind"],
        media_type=data.get("mediaType"),
        size=data["size"],
        sha256=data.get("sha256"),
        text=data.get("text"),
        fields=_fields(data.get("fields", ())),
        parts=tuple(map(_read_content, data.get("parts", ()))),
        name=data.get("name"),
        filename=data.get("filename"),
        headers=_fields(data.get("headers", ())),
    )
