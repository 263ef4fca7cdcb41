"""For any schema: what a strict model has to write is accepted, and stripping gives back what was meant."""

from __future__ import annotations

import copy
from typing import Any

import jsonschema_rs
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from toolgen.tools.export import export
from toolgen.tools.export.strict_nulls import strip_strict_nulls
from toolgen.tools.model import Annotations, Endpoint, RequestTemplate, Tool, Toolset

NAMES = ("a", "b", "c", "$ref", "_$ref", "with space", "x/y")
DEFINITIONS = ("Node", "Pet", "Both")


def toolset(parameters: dict[str, Any], schemas: dict[str, Any]) -> Toolset:
    hints = Annotations(
        title="T", read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=True
    )
    tool = Tool(
        name="send",
        description="Send it",
        endpoint=Endpoint(method="patch", path="/x"),
        annotations=hints,
        parameters=parameters,
        request=RequestTemplate(),
    )
    return Toolset(api="test", schemas=schemas, tools=(tool,))


def scalars() -> st.SearchStrategy[dict[str, Any]]:
    return st.sampled_from(
        [
            {"type": "string"},
            {"type": "string", "minLength": 1},
            {"type": "integer", "minimum": 0, "maximum": 9},
            {"type": ["string", "null"]},
            {"type": "boolean"},
            {"enum": ["red", "green"]},
            {"enum": [1, 2, True, None]},
            {"const": "fixed"},
            {"type": ["integer", "string"]},
            {"$ref": "#/$defs/Node"},
            {"$ref": "#/$defs/Pet", "description": "A pet"},
            {"$ref": "#/$defs/Both"},
        ]
    )


def objects(inner: st.SearchStrategy[Any], prefix: str = "") -> st.SearchStrategy[dict[str, Any]]:
    def build(properties: dict[str, Any], keep: list[bool], closed: bool) -> dict[str, Any]:
        named = {prefix + name: value for name, value in properties.items()}
        required = [name for name, needed in zip(named, keep, strict=False) if needed]
        rest = {"additionalProperties": False} if closed else {}
        return {"type": "object", "properties": named, **({"required": required} if required else {}), **rest}

    properties = st.dictionaries(st.sampled_from(NAMES), inner, min_size=1, max_size=4)
    return st.builds(build, properties, st.lists(st.booleans(), max_size=4), st.booleans())


def composed(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    variants = st.lists(st.one_of(objects(inner), inner), min_size=1, max_size=3)
    merged = st.tuples(objects(inner, "l"), objects(inner, "r")).map(
        lambda pair: [{k: v for k, v in part.items() if k != "additionalProperties"} for part in pair]
    )
    open_variants = st.lists(objects(inner).map(without_closing), min_size=1, max_size=3)
    base = st.tuples(objects(inner, "base"), open_variants)
    return st.one_of(
        objects(inner),
        st.builds(lambda items: {"type": "array", "items": items}, inner),
        st.builds(lambda members: {"anyOf": members}, variants),
        st.builds(lambda members: {"oneOf": members}, variants),
        st.builds(lambda members: {"allOf": members}, merged),
        st.builds(lambda pair: {**without_closing(pair[0]), "anyOf": pair[1]}, base),
    )


def without_closing(schema: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in schema.items() if k != "additionalProperties"}


SCHEMAS = st.recursive(scalars(), composed, max_leaves=6)


def resolved(schema: Any, definitions: dict[str, Any]) -> Any:
    """The schema with `$ref` and `allOf` folded into one flat object; unions are left."""
    if not isinstance(schema, dict):
        return {}
    parts = list(schema.get("allOf", []))
    if "$ref" in schema:
        parts.append(definitions[schema["$ref"].removeprefix("#/$defs/")])
    found = {k: v for k, v in schema.items() if k not in ("allOf", "$ref")}
    for part in parts:
        other = resolved(part, definitions)
        for key, value in other.items():
            if key == "properties":
                found[key] = {**value, **found.get(key, {})}
            elif key == "required":
                found[key] = [*found.get(key, []), *value]
            else:
                found.setdefault(key, value)
    return found


def draw_value(draw: Any, schema: Any, definitions: dict[str, Any], depth: int = 0) -> Any:
    flat = resolved(schema, definitions)
    if depth > 6:
        assume(False)
    value: Any = None
    for key in ("anyOf", "oneOf"):
        if key in flat:
            value = draw_value(draw, draw(st.sampled_from(flat[key])), definitions, depth + 1)
    if "const" in flat:
        return flat["const"]
    if "enum" in flat:
        return draw(st.sampled_from([v for v in flat["enum"] if v is not None]))
    if "properties" in flat:
        result = dict(value) if isinstance(value, dict) else {}
        for name, inner in flat["properties"].items():
            if name in flat.get("required", ()) or (depth < 4 and draw(st.booleans())):
                result[name] = draw_value(draw, inner, definitions, depth + 1)
        return result
    if "anyOf" in flat or "oneOf" in flat:
        return value
    kinds = flat.get("type", "string")
    kind = draw(st.sampled_from([kinds] if isinstance(kinds, str) else [k for k in kinds if k != "null"]))
    if kind == "array":
        count = draw(st.integers(0, 2 if depth < 4 else 0))
        return [draw_value(draw, flat["items"], definitions, depth + 1) for _ in range(count)]
    return {"string": "text", "integer": 3, "boolean": True}[kind]


def padded(schema: Any, value: Any, definitions: dict[str, Any]) -> Any:
    """The value as a strict model writes it: null for every optional property that is not there."""
    flat = resolved(schema, definitions)
    if isinstance(value, list):
        for branch in [*flat.get("anyOf", ()), *flat.get("oneOf", ())]:
            if jsonschema_rs.Draft202012Validator({**branch, "$defs": definitions}).is_valid(value):
                return padded(branch, value, definitions)
        return [padded(flat.get("items", {}), each, definitions) for each in value]
    if not isinstance(value, dict):
        return value
    properties = dict(flat.get("properties", {}))
    result = dict(value)
    for key in ("anyOf", "oneOf"):
        for branch in flat.get(key, ()):
            if not jsonschema_rs.Draft202012Validator({**branch, "$defs": definitions}).is_valid(value):
                continue
            names = set(all_properties(branch, definitions))
            own = {k: v for k, v in value.items() if k in names}
            if set(value) <= names | set(properties):
                result.update(padded(branch, own, definitions))
                break
        else:
            if key in flat:
                assume(False)  # no variant that names every key: a strict model could not write it
    for name, inner in properties.items():
        result[name] = padded(inner, value[name], definitions) if name in value else None
    return result


def all_properties(schema: Any, definitions: dict[str, Any]) -> list[str]:
    flat = resolved(schema, definitions)
    nested = [
        name
        for key in ("anyOf", "oneOf")
        for branch in flat.get(key, ())
        for name in all_properties(branch, definitions)
    ]
    return [*flat.get("properties", {}), *nested]


@st.composite
def cases(draw: Any) -> tuple[Toolset, dict[str, Any], dict[str, Any]]:
    pet = draw(objects(scalars()))
    definitions = {
        "Node": {
            "type": "object",
            "properties": {"v": {"type": "string"}, "kids": {"type": "array", "items": {"$ref": "#/$defs/Node"}}},
        },
        "Pet": pet,
        "Both": {
            "allOf": [{"$ref": "#/$defs/Node"}, {"properties": {"more": {"type": "integer"}}, "required": ["more"]}]
        },
    }
    parameters = {
        "type": "object",
        "properties": {"first": draw(SCHEMAS), "requestBody": draw(SCHEMAS)},
        "required": ["first"],
        "additionalProperties": False,
    }
    arguments = draw_value(draw, parameters, definitions)
    return toolset(parameters, definitions), arguments, padded(parameters, arguments, definitions)


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(cases())
def test_padded_arguments_are_accepted_and_stripping_gives_back_the_original(case: Any) -> None:
    tools, arguments, filled = case
    tool = tools.tools[0]
    assume(jsonschema_rs.Draft202012Validator(tool.input_schema()).is_valid(arguments))
    before = copy.deepcopy(tools.model_dump())
    function = export(tools, "openai-strict").data[0]["function"]
    jsonschema_rs.meta.validate(function["parameters"])
    if not function["strict"]:
        assert function["parameters"] == tool.input_schema()
        assert strip_strict_nulls(tool, filled) == filled
        return
    jsonschema_rs.Draft202012Validator(function["parameters"], offline=True).validate(filled)
    assert strip_strict_nulls(tool, filled) == arguments
    assert tools.model_dump() == before
