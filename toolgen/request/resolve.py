"""A tool and arguments become exactly the request that would be sent.

Pure: no I/O, no clock, no chance; the same tool, arguments, server and context give the same bytes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Mapping
from typing import Any, TypeVar
from urllib.parse import unquote

from toolgen.errors import ArgumentsError, Problem, RequestError
from toolgen.identity.caller import Caller
from toolgen.identity.references import ReferenceText
from toolgen.openapi.endpoint import EXPRESSION
from toolgen.request.arguments import validated
from toolgen.request.body import Written, write_body
from toolgen.request.model import Deferred, ResolvedRequest
from toolgen.request.names import as_taken, header_fault, key_fault, query_names, spread_faults, taken_names
from toolgen.request.path import has_separator, in_query, path_template, texts_in, value_fault
from toolgen.request.server import Base, server_of
from toolgen.request.styles import (
    content,
    cookie_name,
    cookie_pairs,
    header_text,
    loses,
    path_text,
    query_pairs,
    whole_query,
)
from toolgen.request.template import ABSENT, holds_references, reads_model, render
from toolgen.request.text import NotWritable, percent, utf8
from toolgen.tools.model import IDEMPOTENCY, Leaf, Location, Tool
from toolgen.tools.template import argument_of, arguments_in

# RFC 9110 section 5.5, without obs-text and the white space that would be cut off.
_TEXT = re.compile(r"[\t -~]*")
_FIELD = re.compile(r"(?:[!-~](?:[\t -~]*[!-~])?)?")
T = TypeVar("T")


def resolve(
    tool: Tool,
    arguments: Mapping[str, Any],
    *,
    server: str | None = None,
    server_variables: Mapping[str, str] | None = None,
    caller: Caller | None = None,
) -> ResolvedRequest:
    """The request that a call makes, unsent.

    `server` overrides every server of the document; `server_variables` are those of its URL. Of the
    `caller` only the `context` counts.

    Raises ArgumentsError for arguments that are not valid or lead where they must not, with all problems,
    each a JSON pointer into the arguments; ServerError where no server is known; RequestError for a value
    that the caller's context does not have, and for one of it or of the toolset that cannot be sent.
    """
    given = dict(validated(tool, arguments))
    base = server_of(tool, server, server_variables)
    return _Resolution(tool, given, caller.context if caller is not None else {}).request(base)


class _Resolution:
    """One call on its way to a request; faults are collected, so that a model sees all of them."""

    def __init__(self, tool: Tool, arguments: Mapping[str, Any], context: Mapping[str, Any]) -> None:
        self._tool, self._arguments, self._context = tool, arguments, context
        self._problems: list[Problem] = []
        self._notes: list[str] = []
        self._deferred: list[Deferred] = []

    def request(self, base: Base) -> ResolvedRequest:
        tool = self._tool
        path, template_query = self._path()
        query = self._query(base.query, template_query)
        headers, idempotency = self._headers()
        body = self._body()
        cookies = self._cookies()
        if self._problems:
            self._refuse("the arguments of {} cannot be sent as they are; nothing was sent")
        url = base.url + path + (f"?{query}" if query else "")
        self._check_url(url, base)
        ordered = [("Accept", _accept(tool.response.media_types))]
        ordered += [("Content-Type", body.content_type)] if body is not None else []
        ordered += headers + ([("Cookie", cookies)] if cookies else [])
        return ResolvedRequest(
            tool=tool,
            method=tool.request.method or tool.endpoint.method.upper(),
            url=url,
            headers=tuple(ordered),
            body=None if body is None else body.data,
            server=base.url,
            deferred=tuple(self._deferred),
            idempotency=idempotency,
            parts=() if body is None else body.parts,
            notes=tuple(self._notes),
        )

    # Values

    def _value(self, location: Location, leaf_value: Any) -> Any:
        """A leaf's value, or ABSENT: also for null, which only a JSON body can say, and for what is at fault."""
        try:
            value = render(leaf_value, self._arguments, self._context)
        except NotWritable as fault:
            self._fault(leaf_value, f"the value for the {location} cannot be written: {fault}")
            return ABSENT
        if isinstance(value, dict | list) and holds_references(value):
            raise RequestError(f"{self._tool.name}: a secret is a text of its own, and never stands in a body")
        if value is None and location != "body":
            self._undefined(leaf_value, location, "null", "only a JSON body has null")
            return ABSENT
        return value

    def _written(self, leaf: Leaf, location: Location, write: Callable[[Leaf, Any], T], value: Any) -> T | None:
        """What `write` makes of a leaf's value; nothing, with a note, for what is undefined (RFC 6570 section 2.3)."""
        try:
            found = write(leaf, value)
        except NotWritable as fault:
            self._fault(leaf.value, f"{location} {leaf.name}: {fault}")
            return None
        if not found and not isinstance(found, str):
            self._undefined(leaf.value, location, "empty", "OpenAPI's styles have no empty array or object")
        elif loses(leaf, value):
            self._note(leaf.value, "has members that are null or empty; they are not sent, since its style has neither")
        return found

    def _undefined(self, leaf_value: Any, location: Location, what: str, why: str) -> None:
        if argument_of(leaf_value) in self._tool.parameters.get("required", ()):
            self._fault(leaf_value, f"it is required in the {location}, and {what}, which is not sent at all: {why}")
        else:
            self._note(leaf_value, f"is {what} and is not sent: {why}")

    def _fault(self, leaf_value: Any, message: str) -> None:
        names = _names(leaf_value)
        if not names:  # the operator's text or the host's value: no model can mend it
            raise RequestError(f"{self._tool.name}: {message}")
        self._problems.append(Problem(message, f"/{names[0]}" if len(names) == 1 else ""))

    def _note(self, leaf_value: Any, said: str) -> None:
        names = _names(leaf_value)
        self._notes.append(f"{', '.join(names) or 'a constant'} {said}")

    def _defer(self, location: Any, leaf: Leaf, name: str, value: ReferenceText) -> None:
        faults = [fault for reference in value.references if (fault := reference.place_fault(location))]
        if faults:  # checked when a toolset is loaded; a tool made by hand was not
            raise RequestError(f"{self._tool.name}: {faults[0]}")
        try:
            for piece in value.pieces:
                if isinstance(piece, str) and (utf8(piece), location == "header")[1] and not _TEXT.fullmatch(piece):
                    raise NotWritable("a header holds printable ASCII without line ends")
            self._deferred.append(Deferred(location, name, value))
        except NotWritable as fault:
            self._fault(leaf.value, f"{location} {leaf.name}: {fault}")

    # Places

    def _path(self) -> tuple[str, str]:
        """The path with its values, encoded, and the constant query of the template."""
        template, tool = path_template(self._tool), self._tool
        values: dict[str, str] = {}
        for leaf in tool.request.path:
            before = len(self._problems)
            value = self._value("path", leaf.value)
            text = None if value is ABSENT else self._path_value(leaf, value, template.undivided)
            if text is None and len(self._problems) == before:
                self._fault(leaf.value, f"the path needs a value for {{{leaf.name}}}")
            values[leaf.name] = text or ""
        pieces = EXPRESSION.split((tool.request.template or tool.endpoint.path).partition("?")[2])
        return template.fill(values), "".join(
            in_query(values.get(piece[1:-1], "")) if index % 2 else piece for index, piece in enumerate(pieces)
        )

    def _path_value(self, leaf: Leaf, value: Any, undivided: Container[str]) -> str | None:
        if isinstance(value, ReferenceText):
            raise RequestError(f"{self._tool.name}: {value} cannot stand in a path")
        try:
            texts = texts_in(value) if leaf.media_type is None else [content(leaf.media_type, value)]
            for fault in filter(None, map(value_fault, texts)):
                self._fault(leaf.value, f"the value for {{{leaf.name}}} of the path {fault}")
                return None
            if leaf.name in undivided and any(map(has_separator, texts)):
                said = "has a slash or backslash, and this API has a longer path that it could lead to"
                self._fault(leaf.value, f"the value for {{{leaf.name}}} of the path {said}")
                return None
        except NotWritable:
            pass  # said when it is written
        return self._written(leaf, "path", path_text, value)

    def _query(self, *constants: str) -> str:
        request = self._tool.request
        pieces = [text for text in constants if text]
        taken = taken_names(self._tool)["query"]
        taken |= as_taken(query_names(constants[0])) if constants[0] else frozenset()
        for leaf in request.query:
            value = self._value("query", leaf.value)
            if value is ABSENT:
                continue
            if reads_model(leaf.value) and (fault := key_fault(leaf.name)):
                self._fault(leaf.value, fault)
            elif isinstance(value, ReferenceText):
                self._defer("query", leaf, percent(leaf.name), value)
            else:
                pairs = self._written(leaf, "query", query_pairs, value) or []
                self._check_names(leaf, (unquote(name) for name, _ in pairs), taken)
                pieces += [f"{name}={text}" for name, text in pairs]
        if request.querystring is not None:
            pieces += self._querystring(request.querystring, taken)
        return "&".join(pieces)

    def _querystring(self, leaf: Leaf, taken: frozenset[str]) -> list[str]:
        """The whole query as one value (OpenAPI 3.2, `in: querystring`)."""
        value = self._value("querystring", leaf.value)
        if value is ABSENT:
            return []
        if isinstance(value, ReferenceText):
            raise RequestError(f"{self._tool.name}: {value} cannot be a whole query")
        text = self._written(leaf, "querystring", whole_query, value) or ""
        self._check_names(leaf, query_names(text), taken)
        return [text] if text else []

    def _check_names(self, leaf: Leaf, names: Iterable[str], taken: frozenset[str]) -> None:
        for fault in spread_faults(leaf.name, names, taken):
            self._fault(leaf.value, fault)

    def _headers(self) -> tuple[list[tuple[str, str]], str | None]:
        """The headers, and the name of an idempotency header that is filled when the request is sent."""
        found: list[tuple[str, str]] = []
        idempotency = None
        for leaf in self._tool.request.header:
            value = self._value("header", leaf.value)
            if value is ABSENT:
                if leaf.name.lower() in IDEMPOTENCY:
                    idempotency = leaf.name
                continue
            if reads_model(leaf.value) and (fault := header_fault(leaf.name)):
                self._fault(leaf.value, fault)
            elif isinstance(value, ReferenceText):
                self._defer("header", leaf, leaf.name, value)
            else:
                text = self._written(leaf, "header", header_text, value)
                if isinstance(value, dict | list) and any("," in item for item in texts_in(value)):
                    self._note(leaf.value, "has a comma inside an item, which a header cannot tell from the end of one")
                if text is not None and self._is_field(leaf, text):
                    found.append((leaf.name, text))
        return found, idempotency

    def _is_field(self, leaf: Leaf, text: str) -> bool:
        if _FIELD.fullmatch(text):
            return True
        said = "a header holds printable ASCII without line ends, and no space at its ends"
        self._fault(leaf.value, f"header {leaf.name}: {said}")
        return False

    def _cookies(self) -> str:
        pieces: list[str] = []
        taken = taken_names(self._tool)["cookie"]
        for leaf in self._tool.request.cookie:
            value = self._value("cookie", leaf.value)
            if value is ABSENT:
                continue
            if reads_model(leaf.value) and (fault := key_fault(leaf.name)):
                self._fault(leaf.value, fault)
            elif isinstance(value, ReferenceText):
                self._written(leaf, "cookie", lambda leaf, _: cookie_name(leaf.name), "")
                self._defer("cookie", leaf, leaf.name, value)
            else:
                pairs = self._written(leaf, "cookie", cookie_pairs, value) or []
                self._check_names(leaf, (unquote(name) for name, _ in pairs), taken)
                pieces += [f"{name}={text}" for name, text in pairs]
        return "; ".join(pieces)

    def _body(self) -> Written | None:
        body = self._tool.request.body
        if body is None:
            return None
        value = self._value("body", body.value)
        if value is ABSENT:
            return None
        if isinstance(value, ReferenceText):
            raise RequestError(f"{self._tool.name}: a secret cannot stand in a body")
        try:
            found = write_body(body, value)
        except NotWritable as fault:
            self._fault(body.value, f"the body cannot be written: {fault}")
            return None
        if found is None:
            self._undefined(body.value, "body", "null", f"{body.media_type} has no null")
        elif found.unsent:
            self._note(body.value, f"has properties that are null or empty and are not sent: {', '.join(found.unsent)}")
        return found

    # The whole

    def _check_url(self, url: str, base: Base) -> None:
        """The URL is of this operation, by its own server, template and values, and of no other one."""
        path = url.partition("?")[0].removeprefix(base.url)
        template = path_template(self._tool)
        if template.is_sibling(path):
            self._problems.append(Problem("a value of the path leads to another operation of this API"))
        elif template.values(path) is None:
            said = "a value of the path has what separates it from another value, or leads to another path"
            self._problems.append(Problem(said))
        if self._problems and not any(_names(leaf.value) for leaf in self._tool.request.path):
            raise RequestError(f"{self._tool.name}: {self._problems[0].message}")
        if self._problems:
            self._refuse("the arguments of {} lead to another endpoint; nothing was sent")

    def _refuse(self, message: str) -> None:
        raise ArgumentsError(message.format(self._tool.name), self._problems)


def _names(leaf_value: Any) -> list[str]:
    return sorted(arguments_in(leaf_value))


def _accept(media_types: Iterable[str]) -> str:
    """The answers the document describes, JSON first, then anything: errors often come as something else."""
    named = sorted(dict.fromkeys(media_types), key=lambda one: "json" not in one.lower())
    return ", ".join(
        [*(one for one in named if _FIELD.fullmatch(one) and one != "*/*"), "*/*;q=0.5" if named else "*/*"]
    )
