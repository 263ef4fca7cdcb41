"""A catalogue of the tools for people: what there is, what each takes, what it answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from toolgen.tools.export.escaping import Anchors, code, prose
from toolgen.tools.export.pointers import target_of
from toolgen.tools.model import Tool, Toolset

if TYPE_CHECKING:
    from jinja2 import Template

Schema = dict[str, Any]

_PAGE = """\
# {{ title }}

{{ summary }}

{% for group in groups -%}
- {{ group.title }}
{% for tool in group.tools %}  - [{{ tool.name }}](#{{ tool.anchor }})
{% endfor -%}
{% endfor -%}
{% for group in groups %}
## {{ group.title }}
{% for tool in group.tools %}
### {{ tool.name }}

{{ tool.endpoint }}{{ " (deprecated)" if tool.deprecated }}

{% if tool.description %}{{ tool.description }}

{% endif -%}
{% if tool.arguments -%}
| argument | in | type | required | description |
| --- | --- | --- | --- | --- |
{% for row in tool.arguments %}| {{ row | join(" | ") }} |
{% endfor -%}
{% else -%}
No arguments.
{% endif -%}
{% if tool.body %}
{{ tool.body_heading }}

| property | type | required | description |
| --- | --- | --- | --- |
{% for row in tool.body %}| {{ row | join(" | ") }} |
{% endfor -%}
{% endif %}
{{ tool.answer }}
{% endfor -%}
{% endfor -%}
"""


@dataclass(frozen=True, slots=True)
class _Entry:
    """One tool, every field already Markdown."""

    name: str
    anchor: str
    endpoint: str
    deprecated: bool
    description: str
    arguments: list[list[str]]
    body_heading: str
    body: list[list[str]]
    answer: str


@dataclass(frozen=True, slots=True)
class _Group:
    """Tools under one heading."""

    title: str
    tools: list[_Entry]


def render(toolset: Toolset) -> str:
    """The whole page."""
    anchors = Anchors()
    title = toolset.document.title or toolset.api
    anchors.add(title)
    by_group: dict[str, list[Tool]] = {}
    for tool in toolset.tools:
        by_group.setdefault(tool.group, []).append(tool)
    groups: list[_Group] = []
    for name, tools in by_group.items():
        anchors.add(name)
        groups.append(_Group(prose(name), [_entry(tool, anchors) for tool in tools]))
    count = len(toolset.tools)
    version = f", version {prose(toolset.document.version)}" if toolset.document.version else ""
    summary = f"{count} tool{'' if count == 1 else 's'} of {code(toolset.api)}{version}."
    return _template().render(title=prose(title), summary=summary, groups=groups)


@cache
def _template() -> Template:
    from jinja2 import StrictUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    environment = ImmutableSandboxedEnvironment(undefined=StrictUndefined, autoescape=False, keep_trailing_newline=True)
    environment.globals.clear()
    return environment.from_string(_PAGE)


def _entry(tool: Tool, anchors: Anchors) -> _Entry:
    schema = tool.input_schema()
    body = next((binding.argument for binding in tool.bindings if binding.location == "body"), None)
    properties = schema.get("properties", {})
    return _Entry(
        name=code(tool.name),
        anchor=anchors.add(tool.name),
        endpoint=code(f"{tool.endpoint.method.upper()} {tool.endpoint.path}"),
        deprecated=tool.deprecated,
        description="\n\n".join(filter(None, map(prose, tool.description.split("\n\n")))),
        arguments=list(_arguments(tool, schema)),
        body_heading=f"Properties of {code(body)}:" if body else "",
        body=list(_body(properties.get(body, {}), schema.get("$defs", {}))) if body else [],
        answer=_answer(tool),
    )


def _arguments(tool: Tool, schema: Schema) -> Iterator[list[str]]:
    places = {binding.argument: binding.location for binding in tool.bindings}
    required = schema.get("required", ())
    for name, value in schema.get("properties", {}).items():
        row = _row(name, value, name in required)
        yield [row[0], places.get(name, ""), *row[1:]]


def _row(name: str, schema: Any, required: bool) -> list[str]:
    text = schema.get("description", "") if isinstance(schema, dict) else ""
    return [code(name, cell=True), _type(schema), "yes" if required else "no", prose(text, cell=True)]


def _body(schema: Any, definitions: Schema) -> Iterator[list[str]]:
    """Rows for the properties a body names itself, those of what it refers to and combines included."""
    properties: Schema = {}
    required: set[str] = set()
    waiting, seen = [schema], set()
    while waiting:
        here = waiting.pop(0)
        target = target_of(here)
        if target is not None and target not in seen:
            seen.add(target)
            waiting.append(definitions.get(target))
        if isinstance(here, dict):
            waiting += here.get("allOf", [])
            properties = {**here.get("properties", {}), **properties}
            required.update(here.get("required", ()))
    for name, value in properties.items():
        yield _row(name, value, name in required)


def _answer(tool: Tool) -> str:
    media = ", ".join(map(code, tool.response.media_types))
    kind = _type(tool.response.schema_, cell=False) if tool.response.schema_ is not None else ""
    text = f"Answers with {media or 'no content'}" + (f": {kind}" if kind else "") + "."
    headers = ", ".join(map(code, tool.response.headers))
    return text + (f" Headers: {headers}." if headers else "")


def _type(schema: Any, *, cell: bool = True) -> str:
    """The type of a schema in a few words: its names, not its structure."""
    return _described(schema, cell, 0)


def _described(schema: Any, cell: bool, depth: int) -> str:
    if not isinstance(schema, dict) or depth > 3:
        return "any"
    target = target_of(schema)
    if target is not None:
        return code(target, cell=cell)
    for key, between in (("oneOf", " or "), ("anyOf", " or "), ("allOf", " and ")):
        if schema.get(key):
            return between.join(dict.fromkeys(_described(each, cell, depth + 1) for each in schema[key][:5]))
    if "const" in schema or "enum" in schema:
        return _values([schema["const"]] if "const" in schema else schema["enum"], cell)
    declared = schema.get("type", "object" if "properties" in schema else "any")
    kinds = [declared] if isinstance(declared, str) else declared
    items = _described(schema.get("items"), cell, depth + 1) if "array" in kinds else ""
    return " or ".join(f"array of {items}" if kind == "array" else prose(str(kind), cell=cell) for kind in kinds)


def _values(values: list[Any], cell: bool) -> str:
    import json

    shown = [code(json.dumps(value, ensure_ascii=False), cell=cell) for value in values[:10]]
    return ", ".join(shown) + (f" and {len(values) - 10} more" if len(values) > 10 else "")
