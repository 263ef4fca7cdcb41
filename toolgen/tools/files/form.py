"""A toolset as the plain data of its file, and back.

A file has camelCase keys in a fixed order, no defaults, and points to shared schemas as
`#/schemas/NAME` where JSON Schema, and the models, have `#/$defs/NAME`. Only what stands where a
schema stands is translated: an example, a constant or a property named `$ref` is data.
"""

from __future__ import annotations

import hashlib
import json
import marshal
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from toolgen.errors import ToolsetError
from toolgen.openapi.schema.keywords import LIST, MAP, ONE, PREFIX
from toolgen.openapi.source.json_text import paused_gc
from toolgen.tools.model import FORMAT_VERSION, Tool, Toolset

FILE_PREFIX = "#/schemas/"

_FIRST = tuple(field.serialization_alias or name for name, field in Toolset.model_fields.items())
_TOOL = tuple(field.serialization_alias or name for name, field in Tool.model_fields.items())
_SCHEMAS: Any = {"parameters": True, "response": {"schema_": True}}


@paused_gc()
def to_dict(toolset: Toolset) -> dict[str, Any]:
    """The file form of a toolset: the caller's own plain data, ready for JSON and YAML."""
    known = toolset.model_dump(mode="json", by_alias=True, exclude_defaults=True, exclude={"schemas", "tools"})
    tools = toolset.tools
    schemas = [toolset.schemas, [tool.parameters for tool in tools], [tool.response.schema_ for tool in tools]]
    # Schemas are most of a toolset: copied by marshal, which is fast and takes any depth a document can have.
    shared, parameters, responses = marshal.loads(marshal.dumps(schemas, 2))  # noqa: S302 (our own bytes)
    known["toolgen"] = FORMAT_VERSION
    known["tools"] = [_tool_dict(*one) for one in zip(tools, parameters, responses, strict=True)]
    if shared:
        known["schemas"] = shared
    data = {key: known[key] for key in _FIRST if key in known}
    _point(_schemas(data), PREFIX, FILE_PREFIX)
    return data


def _tool_dict(tool: Tool, parameters: Any, response_schema: Any) -> dict[str, Any]:
    known = tool.model_dump(mode="json", by_alias=True, exclude_defaults=True, exclude=_SCHEMAS)
    known["group"] = tool.group
    known["parameters"] = parameters
    if response_schema is not None:
        response = known.get("response", {})
        order = {
            "mediaTypes": response.get("mediaTypes"),
            "schema": response_schema,
            "headers": response.get("headers"),
        }
        known["response"] = {key: value for key, value in order.items() if value is not None}
    return {key: known[key] for key in _TOOL if key in known}


@paused_gc()
def from_dict(data: Mapping[str, Any]) -> Toolset:
    """The toolset of a file form, which stays as it is.

    Raises ToolsetError with every key that is unknown, missing or of the wrong type. What the
    values mean together is checked by `toolgen.tools.files.check.check_toolset`.
    """
    from pydantic import ValidationError

    from toolgen.tools.files.invalid import problems, version_problem

    try:
        copy = marshal.loads(marshal.dumps(dict(data), 2))  # noqa: S302 (our own bytes)
    except ValueError:
        raise ToolsetError("a toolset is plain data: mappings, lists, text, numbers, true, false and null") from None
    problem = version_problem(copy)
    if problem is not None:
        raise ToolsetError("not a toolset that can be read", [problem])
    _point(_schemas(copy), FILE_PREFIX, PREFIX)
    try:
        return Toolset.model_validate(copy, by_alias=True, by_name=False)
    except ValidationError as error:
        raise ToolsetError("not a valid toolset", problems(error, copy)) from None


def digest(data: Mapping[str, Any]) -> str:
    """`sha256:` over the canonical JSON of a file form, its own `generated` left out.

    Raises ToolsetError for what JSON cannot hold (NaN, infinity).
    """
    content = {key: value for key, value in data.items() if key != "generated"}
    try:
        text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    except ValueError as error:
        raise ToolsetError(f"the toolset cannot be written: {error}") from None
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def stamped(data: dict[str, Any]) -> dict[str, Any]:
    """The file form with `generated`. One that is there stays, so that edits of a loaded file stay noticed."""
    if "generated" in data:
        return data
    known = {**data, "generated": digest(data)}
    return {key: known[key] for key in _FIRST if key in known}


def is_edited(toolset: Toolset) -> bool:
    """True for a toolset that says what was generated and holds something else by now."""
    return bool(toolset.generated) and toolset.generated != digest(to_dict(toolset))


def _schemas(data: Mapping[str, Any]) -> Iterator[Any]:
    """Every schema of a file form that may not be valid yet."""
    yield from _values(data.get("schemas"))
    for tool in _items(data.get("tools")):
        yield _get(tool, "parameters")
        yield _get(_get(tool, "response"), "schema")


def _point(schemas: Iterable[Any], old: str, new: str) -> None:
    """Exchange the prefix of every `$ref` in these schemas, in place."""
    waiting = [schema for schema in schemas if isinstance(schema, dict)]
    while waiting:
        here = waiting.pop()
        for key, value in here.items():
            if isinstance(value, dict):
                if key in MAP:
                    waiting.extend([v for v in value.values() if isinstance(v, dict)])
                elif key in ONE:
                    waiting.append(value)
            elif isinstance(value, list):
                if key in LIST:
                    waiting.extend([v for v in value if isinstance(v, dict)])
            elif key == "$ref" and isinstance(value, str) and value.startswith(old):
                here[key] = new + value[len(old) :]


def _get(value: Any, key: str) -> Any:
    return value.get(key) if isinstance(value, dict) else None


def _values(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else ()


def _items(value: Any) -> Iterable[Any]:
    return value if isinstance(value, list) else ()
