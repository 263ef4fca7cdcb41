"""Schemas as JSON Schema 2020-12: what constrains stays, what a direction may not carry goes."""

from __future__ import annotations

import json
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from openapi.documents import answered, argument, document, said, sent, tool, with_schema

from toolgen import generate
from toolgen.openapi.source import Limits

METASCHEMA = jsonschema_rs.Draft202012Validator({"$ref": "https://json-schema.org/draft/2020-12/schema"}, offline=True)


def ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


# Shapes


@pytest.mark.parametrize(
    ("schema", "becomes"),
    [
        ({}, {}),
        ({"type": "array"}, {"type": "array"}),
        ({"type": "array", "items": True}, {"type": "array", "items": True}),
        (
            {"type": "array", "items": [{"type": "string"}, True]},
            {"type": "array", "prefixItems": [{"type": "string"}, True]},
        ),
        (
            {"items": [{"type": "string"}], "additionalItems": False},
            {"prefixItems": [{"type": "string"}], "items": False},
        ),
        ({"type": "array", "items": []}, {"type": "array"}),
        ({"prefixItems": [{}], "items": {"type": "null"}}, {"prefixItems": [{}], "items": {"type": "null"}}),
        ({"additionalProperties": False}, {"additionalProperties": False}),
        ({"properties": {"a": True, "b": False}}, {"properties": {"a": True, "b": False}}),
        ({"type": ["string", "null"]}, {"type": ["string", "null"]}),
        ({"enum": ["a", None]}, {"enum": ["a", None]}),
        ({"enum": [None]}, {"enum": [None]}),
        ({"const": None}, {"const": None}),
        (
            {"dependencies": {"a": ["b"], "c": {"required": ["d"]}}},
            {"dependentRequired": {"a": ["b"]}, "dependentSchemas": {"c": {"required": ["d"]}}},
        ),
        ({"required": ["a", "a", "b"]}, {"required": ["a", "b"]}),
        ({"required": []}, {}),
        ({"example": 0}, {"examples": [0]}),
        ({"examples": [0, None]}, {"examples": [0, None]}),
        ({"examples": {"a": {"value": 1}}}, {"examples": [1]}),
        ({"default": None}, {"default": None}),
    ],
)
def test_each_shape_becomes_what_2020_12_has_for_it(schema: Any, becomes: Any) -> None:
    assert sent({"properties": {"a": schema}})["properties"]["a"] == becomes
    assert answered({"properties": {"a": schema}})["properties"]["a"] == becomes


@pytest.mark.parametrize(
    ("schema", "given"),
    [(True, {}), (False, {"not": {}}), ({"type": "string"}, {"type": "string"})],
)
def test_an_argument_is_always_an_object(schema: Any, given: Any) -> None:
    assert argument(schema) == given
    assert sent(schema) == given


@pytest.mark.parametrize(
    "keyword",
    [
        "xml",
        "externalDocs",
        "discriminator",
        "readOnly",
        "writeOnly",
        "nullable",
        "x-internal",
        "$schema",
        "$comment",
        "$id",
    ],
)
def test_what_json_schema_does_not_have_is_dropped(keyword: str) -> None:
    assert sent({"items": {keyword: {"name": "x"}, "type": "string"}}) == {"items": {"type": "string"}}


def test_an_unknown_keyword_is_dropped_and_noted_once() -> None:
    made = generate(with_schema({"properties": {"a": {"typ": "string"}, "b": {"typ": "string"}}}))
    where = "/paths/~1x/post/requestBody/content/application~1json/schema/properties/a"
    assert said(made) == [f"note: schemas use 'typ', which is no keyword of JSON Schema; it is left out at {where}"]


@pytest.mark.parametrize(
    ("schema", "becomes"),
    [
        ({"properties": 3}, {}),
        ({"items": 3}, {}),
        ({"allOf": {"type": "string"}}, {"allOf": [{"type": "string"}]}),
        ({"allOf": "text"}, {}),
        ({"allOf": []}, {}),
        ({"oneOf": [3]}, {"anyOf": [{}]}),
        ({"additionalProperties": "yes"}, {}),
        ({"patternProperties": []}, {}),
        ("text", {}),
        (None, {}),
        ([], {}),
    ],
)
def test_wrong_types_are_reported_and_constrain_nothing(schema: Any, becomes: Any) -> None:
    source = with_schema({"properties": {"a": schema}})
    made = generate(source)
    assert made.tools[0].parameters["properties"]["requestBody"]["properties"] == {"a": becomes}
    if schema != {"allOf": []}:
        assert said(made)[0].startswith("degraded:")
        assert "/schema/properties/a" in said(made)[0]


def test_patterns_of_properties_are_mended_and_one_that_cannot_be_checked_rules_nothing_out() -> None:
    closed = {"patternProperties": {"^[\\w-.]+\\Z": {"type": "integer"}}, "additionalProperties": False}
    assert sent(closed) == {"patternProperties": {"^[\\w\\-.]+$": {"type": "integer"}}, "additionalProperties": False}
    broken = {"patternProperties": {"(?<a": {"type": "integer"}}, "additionalProperties": False}
    made = generate(with_schema(broken))
    schema = made.tools[0].input_schema()["properties"]["requestBody"]
    assert jsonschema_rs.is_valid(schema, {"anything": "goes"})
    assert "cannot be checked" in said(made)[0]


def test_what_is_read_as_less_than_it_meant_never_rules_out_more() -> None:
    assert sent({"not": {"pattern": "(unclosed"}}) == {}
    assert sent({"not": {"properties": {"a": {"minimum": "much"}}}}) == {}
    assert sent({"not": {"deprecated": False}}) == {"not": {}}
    assert sent({"oneOf": [{"minimum": "much"}, {"type": "string"}]}) == {"anyOf": [{}, {"type": "string"}]}
    assert sent({"oneOf": [{"deprecated": False}, {"type": "string"}]}) == {"oneOf": [{}, {"type": "string"}]}


# Recursion and depth


def test_definitions_that_refer_to_each_other_are_kept_as_they_are() -> None:
    schemas = {
        "A": {"type": "object", "properties": {"b": ref("B"), "self": ref("A")}},
        "B": {"type": "array", "items": ref("A")},
        "Unused": {"type": "string"},
    }
    made = tool(with_schema(ref("A"), **schemas))
    definitions = made.input_schema()["$defs"]
    assert definitions == {
        "A": {"type": "object", "properties": {"b": {"$ref": "#/$defs/B"}, "self": {"$ref": "#/$defs/A"}}},
        "B": {"type": "array", "items": {"$ref": "#/$defs/A"}},
    }


def test_only_what_is_reachable_is_kept_through_every_position() -> None:
    positions = {
        "properties": {"p": ref("Properties")},
        "patternProperties": {"^x": ref("Patterns")},
        "additionalProperties": ref("Additional"),
        "propertyNames": ref("Names"),
        "dependentSchemas": {"p": ref("Dependent")},
        "items": ref("Items"),
        "prefixItems": [ref("Prefix")],
        "contains": ref("Contains"),
        "allOf": [ref("All")],
        "anyOf": [ref("Any")],
        "oneOf": [ref("One")],
        "not": ref("Not"),
        "if": ref("If"),
        "then": ref("Then"),
        "else": ref("Else"),
        "unevaluatedItems": ref("UnevaluatedItems"),
        "unevaluatedProperties": ref("UnevaluatedProperties"),
    }
    names = [
        value["$ref"].rpartition("/")[2] for value in positions.values() if isinstance(value, dict) and "$ref" in value
    ]
    names += ["Properties", "Patterns", "Dependent", "Prefix", "All", "Any", "One"]
    made = tool(with_schema(positions, Unused={}, **{name: {"title": name} for name in names}))
    assert sorted(made.input_schema()["$defs"]) == sorted(names)
    assert sorted(made.output_schema()["$defs"]) == sorted(names)


@pytest.mark.timeout(10)
def test_long_inheritance_takes_time_in_proportion() -> None:
    chain = {f"C{i}": {"allOf": [ref(f"C{i + 1}")], "required": ["id"]} for i in range(1200)}
    chain["C1200"] = {"type": "object", "properties": {"id": {"readOnly": True}}}
    made = generate(with_schema(ref("C0"), **chain))
    assert all("required" not in schema for name, schema in made.schemas.items() if not name.endswith("-response"))


def test_schemas_nested_as_deep_as_a_document_may_be_are_read() -> None:
    schema: Any = {"type": "string"}
    for _ in range(180):
        schema = {"items": schema}
    depth, here = 0, sent(schema)
    while "items" in here:
        depth, here = depth + 1, here["items"]
    assert depth == 180


def test_what_is_nested_too_deep_costs_itself_only() -> None:
    source = with_schema({"properties": {"a": ref("Deep")}}, Deep="DEEP")
    source["paths"]["/good"] = {"get": {"responses": {}}}
    text = json.dumps(source).replace('"DEEP"', '{"items": ' * 600 + "{}" + "}" * 600)
    made = generate(text, limits=Limits(nesting=10_000))
    assert len(made.tools) == 2
    assert any("nested too deep" in line for line in said(made))


# Directions


def test_read_only_properties_leave_requests_and_write_only_ones_answers() -> None:
    schema = {
        "type": "object",
        "required": ["id", "id", "name", "password"],
        "properties": {
            "id": {"type": "integer", "readOnly": True},
            "name": {"type": "string", "readOnly": False},
            "password": {"type": "string", "writeOnly": True},
        },
    }
    name, password = {"type": "string"}, {"type": "string"}
    assert sent(schema) == {
        "type": "object",
        "required": ["name", "password"],
        "properties": {"name": name, "password": password},
    }
    assert answered(schema) == {
        "type": "object",
        "required": ["id", "name"],
        "properties": {"id": {"type": "integer"}, "name": name},
    }


@pytest.mark.parametrize("version", ["2.0", "3.0.3", "3.1.0"])
@pytest.mark.parametrize(
    "said_by",
    [
        {"$ref": "Id"},
        {"allOf": [{"$ref": "Id"}]},
        {"allOf": [{"readOnly": True}, {"type": "string"}]},
        {"readOnly": True, "allOf": [{"$ref": "Plain"}]},
        {"$ref": "Chain"},
        {"$ref": "Composed"},
        {"allOf": [{"$ref": "Composed"}]},
    ],
)
def test_read_only_counts_through_references_and_all_of(version: str, said_by: dict[str, Any]) -> None:
    where = "#/definitions/" if version == "2.0" else "#/components/schemas/"

    def placed(node: Any) -> Any:
        return json.loads(json.dumps(node).replace('"$ref": "', f'"$ref": "{where}'))

    schemas = {
        "Id": {"type": "string", "readOnly": True},
        "Plain": {"type": "string"},
        "Chain": {"$ref": "Id"},
        "Composed": {"allOf": [{"$ref": "Chain"}, {"maxLength": 3}]},
    }
    schema = placed({"type": "object", "required": ["a", "b"], "properties": {"a": said_by, "b": {"type": "string"}}})
    made = tool(with_schema(schema, version=version, **placed(schemas)))
    given = made.parameters["properties"]["requestBody"]
    assert (list(given["properties"]), given["required"]) == (["b"], ["b"])
    assert list(made.response.schema_["properties"]) == ["a", "b"]


def test_what_is_read_only_is_so_each_time_it_is_referred_to() -> None:
    owned = {"allOf": [ref("Id"), {"maxLength": 3}]}
    schema = {"type": "object", "properties": {name: dict(owned) for name in "abc"}}
    assert sent(schema, Id={"type": "string", "readOnly": True})["properties"] == {}


def test_siblings_of_a_reference_say_read_only_in_3_1_and_nothing_in_3_0() -> None:
    schema = {"type": "object", "properties": {"a": {**ref("Plain"), "readOnly": True}}}
    assert sent(schema, Plain={})["properties"] == {}
    assert sent(schema, version="3.0.3", Plain={})["properties"] == {"a": {"$ref": "#/$defs/Plain"}}


def test_a_schema_that_was_left_out_takes_what_it_refers_to_with_it() -> None:
    body = {"properties": {"a": {"$ref": "#/components/schemas/Odd"}}}
    odd = {"not": {"allOf": [ref("Good"), ref("Missing")]}}
    made = tool(with_schema(body, Odd=odd, Good={"type": "string"}))
    assert made.input_schema()["$defs"] == {"Odd": {}}


def test_any_of_members_that_are_read_only_remove_nothing() -> None:
    schema = {"properties": {"a": {"anyOf": [{"readOnly": True}, {"type": "string"}]}}}
    assert list(sent(schema)["properties"]) == ["a"]


def test_required_is_cleared_across_compositions() -> None:
    base = {"type": "object", "properties": {"id": {"readOnly": True}, "n": {}}, "required": ["id", "n"]}
    derived = {"allOf": [ref("Base"), {"required": ["id"], "properties": {"m": {}}}], "required": ["id", "m"]}
    made = tool(with_schema(ref("Derived"), Base=base, Derived=derived))
    definitions = made.input_schema()["$defs"]
    assert definitions["Base"]["required"] == ["n"]
    assert definitions["Derived"]["required"] == ["m"]
    assert "required" not in definitions["Derived"]["allOf"][1]
    assert made.output_schema()["required"] == ["id", "m"]


def test_required_is_cleared_in_nested_members_and_dependencies() -> None:
    lost = {"properties": {"id": {"readOnly": True}, "n": {}}}
    assert sent({"allOf": [lost, {"allOf": [{"required": ["id", "n"]}]}]})["allOf"][1] == {
        "allOf": [{"required": ["n"]}]
    }
    assert sent({**lost, "dependentRequired": {"n": ["id", "m"]}})["dependentRequired"] == {"n": ["m"]}


def test_required_beside_a_reference_is_cleared() -> None:
    base = {"type": "object", "properties": {"id": {"readOnly": True}, "n": {}}}
    assert sent({**ref("Base"), "required": ["id", "n"]}, Base=base)["required"] == ["n"]
    beside = {**ref("Base"), "properties": {"z": {"readOnly": True}}, "allOf": [{}], "required": ["z", "n"]}
    assert sent(beside, Base={"type": "object"})["required"] == ["n"]


def test_what_is_dropped_never_clears_the_required_of_another_schema() -> None:
    lost = {**ref("Base"), "properties": {"id": {"readOnly": True}}}
    kept = {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"], "allOf": [{}]}
    schema = {"properties": {f"a{i}": lost if i % 2 else kept for i in range(60)}}
    made = sent(schema, Base={"type": "object"})
    assert all(made["properties"][f"a{i}"]["required"] == ["id"] for i in range(0, 60, 2))


def test_a_schema_is_kept_twice_only_where_its_directions_differ() -> None:
    schemas = {
        "Pet": {"type": "object", "properties": {"owner": ref("Owner"), "tag": ref("Tag")}},
        "Owner": {"type": "object", "properties": {"id": {"readOnly": True, "type": "integer"}}},
        "Tag": {"type": "object", "properties": {"name": {"type": "string"}}},
    }
    made = generate(with_schema(ref("Pet"), **schemas))
    assert sorted(made.schemas) == ["Owner", "Owner-response", "Pet", "Pet-response", "Tag"]
    assert made.schemas["Pet"]["properties"]["owner"] == {"$ref": "#/$defs/Owner"}
    assert made.schemas["Pet-response"]["properties"]["owner"] == {"$ref": "#/$defs/Owner-response"}
    assert made.schemas["Pet-response"]["properties"]["tag"] == {"$ref": "#/$defs/Tag"}


@pytest.mark.parametrize(
    "flag", [{"writeOnly": True}, {"$ref": "#/components/schemas/Secret"}, {"allOf": [ref("Secret")]}]
)
def test_a_secret_never_stands_in_an_answer_however_it_is_said(flag: dict[str, Any]) -> None:
    user = {"type": "object", "properties": {"password": flag, "name": {}}}
    secret = {"type": "string", "writeOnly": True}
    made = generate(with_schema(ref("User"), User=user, Secret=secret)).schemas
    assert list(made["User"]["properties"]) == ["password", "name"]
    assert list(made["User-response"]["properties"]) == ["name"]


def test_a_schema_used_in_answers_alone_has_its_plain_name() -> None:
    source = document(
        {"/x": {"get": {"responses": {"200": {"content": {"application/json": {"schema": ref("Pet")}}}}}}},
        components={"schemas": {"Pet": {"type": "object", "properties": {"p": {"writeOnly": True}}}}},
    )
    assert generate(source).schemas == {"Pet": {"type": "object", "properties": {}}}


# Nothing that constrains is lost

_TEXTS = st.sampled_from(["", "a", "ab", "abc", "b", "2020-01-01"])
_LEAVES = st.none() | st.booleans() | st.integers(-3, 5) | st.sampled_from([0.5, 1.0, 1e3]) | _TEXTS
INSTANCES = st.recursive(
    _LEAVES,
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.sampled_from("abc"), below, max_size=3),
    max_leaves=6,
)
_TYPES = ["string", "integer", "number", "boolean", "object", "array", "null"]
_COUNTS = st.integers(0, 3)
_NUMBERS = st.integers(-2, 4) | st.sampled_from([0.5, 1.5])


def _typed(values: Any) -> Any:
    """An enum whose members are of the schema's own type: others are mended on purpose."""
    return st.fixed_dictionaries({"enum": st.lists(values, min_size=1, max_size=3)})


def _keywords(below: Any) -> dict[str, Any]:
    maps = st.dictionaries(st.sampled_from("abc"), below, max_size=2)
    some = st.lists(below, min_size=1, max_size=2)
    return {
        "minimum": _NUMBERS,
        "maximum": _NUMBERS,
        "exclusiveMinimum": _NUMBERS,
        "exclusiveMaximum": _NUMBERS,
        "multipleOf": st.sampled_from([1, 2, 0.5]),
        "minLength": _COUNTS,
        "maxLength": _COUNTS,
        "pattern": st.sampled_from(["^a", "b$", "^[a-c]+$", "\\d", "[\\w-.]"]),
        "minItems": _COUNTS,
        "maxItems": _COUNTS,
        "uniqueItems": st.booleans(),
        "minContains": _COUNTS,
        "maxContains": _COUNTS,
        "minProperties": _COUNTS,
        "maxProperties": _COUNTS,
        "required": st.lists(st.sampled_from("abc"), max_size=2, unique=True),
        "dependentRequired": st.dictionaries(
            st.sampled_from("abc"), st.lists(st.sampled_from("abc"), unique=True), max_size=2
        ),
        "properties": maps,
        "patternProperties": st.dictionaries(st.sampled_from(["^a", "b|c", "^[\\w\\-.]$"]), below, max_size=2),
        "additionalProperties": below,
        "propertyNames": below,
        "dependentSchemas": maps,
        "items": below,
        "prefixItems": some,
        "contains": below,
        "allOf": some,
        "anyOf": some,
        "oneOf": some,
        "not": below,
        "if": below,
        "then": below,
        "else": below,
        "unevaluatedItems": below,
        "unevaluatedProperties": below,
        "const": INSTANCES,
        "title": st.just("t"),
        "default": _LEAVES,
        "examples": st.just([1]),
        "$comment": st.just("c"),
        "deprecated": st.booleans(),
    }


def _objects(below: Any) -> Any:
    chosen = st.fixed_dictionaries({}, optional=_keywords(below))
    kind = st.sampled_from(
        [{}, {"type": "object"}, {"type": "array"}, {"type": ["string", "null"]}, {"type": "integer"}]
    )
    few = st.tuples(kind, chosen, st.integers(0, 2**30)).map(lambda t: {**t[0], **_some_of(t[1], t[2])})
    return (
        few
        | few
        | st.just({"$ref": "#/components/schemas/A"})
        | st.just({"$ref": "#/components/schemas/B", "maxLength": 2})
    )


def _some_of(keywords: dict[str, Any], seed: int) -> dict[str, Any]:
    """At most four of the keywords: schemas of forty allow nothing."""
    names = sorted(keywords)
    start = seed % (len(names) or 1)
    return {name: keywords[name] for name in (names[start:] + names[:start])[: 1 + seed % 4]}


_SIMPLE = st.sampled_from(_TYPES).map(lambda kind: {"type": kind}) | st.booleans()
_SIMPLE |= _typed(_LEAVES) | st.lists(_TEXTS, min_size=1, max_size=2).map(lambda e: {"type": "string", "enum": e})
SCHEMAS = st.recursive(_SIMPLE, _objects, max_leaves=6)
# A component that is a reference may make a circle; what stands beside the reference is kept.
COMPONENTS = SCHEMAS.map(lambda s: {k: v for k, v in s.items() if k != "$ref"} if isinstance(s, dict) else s)


@settings(max_examples=250, suppress_health_check=[HealthCheck.filter_too_much])  # some have no valid original
@given(schema=SCHEMAS, first=COMPONENTS, second=COMPONENTS, instances=st.lists(INSTANCES, min_size=4, max_size=12))
def test_an_instance_is_valid_against_ours_exactly_if_it_is_against_the_original(
    schema: Any, first: Any, second: Any, instances: list[Any]
) -> None:
    definitions = {"A": first, "B": second}
    text = json.dumps({"$defs": definitions, "allOf": [schema]}).replace("#/components/schemas/", "#/$defs/")
    try:
        original = jsonschema_rs.Draft202012Validator(
            json.loads(text.replace("[\\\\w-.]", "[\\\\w\\\\-.]")), offline=True
        )
    except (ValueError, jsonschema_rs.ReferencingError):
        assume(False)
    made = tool(with_schema({"allOf": [schema]}, **definitions))
    ours = made.input_schema()
    METASCHEMA.validate(ours)
    wrapped = jsonschema_rs.Draft202012Validator(ours, offline=True)
    answer = made.output_schema()
    METASCHEMA.validate(answer)
    answers = jsonschema_rs.Draft202012Validator(answer, offline=True)
    for instance in instances:
        expected = original.is_valid(instance)
        assert wrapped.is_valid({"requestBody": instance}) == expected, (instance, ours)
        assert answers.is_valid(instance) == expected, (instance, answer)


@settings(max_examples=150)
@given(
    st.recursive(
        _LEAVES,
        lambda b: (
            st.lists(b, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "type",
                        "properties",
                        "items",
                        "allOf",
                        "oneOf",
                        "not",
                        "enum",
                        "pattern",
                        "required",
                        "$ref",
                        "minimum",
                        "nullable",
                        "discriminator",
                        "additionalProperties",
                        "default",
                        "readOnly",
                        "patternProperties",
                        "exclusiveMinimum",
                        "$id",
                        "a",
                        "$anchor",
                        "$dynamicRef",
                        "mapping",
                        "propertyName",
                        "format",
                        "description",
                        "const",
                        "examples",
                        "example",
                    ]
                ),
                b,
                max_size=4,
            )
        ),
        max_leaves=14,
    ),
    st.sampled_from(["2.0", "3.0.3", "3.1.0"]),
)
def test_whatever_stands_for_a_schema_what_comes_out_is_valid(junk: Any, version: str) -> None:
    made = tool(with_schema(junk if isinstance(junk, dict | bool) else {"properties": junk}, version=version, a=junk))
    METASCHEMA.validate(made.input_schema())
    answer = made.output_schema()
    METASCHEMA.validate({} if answer is None else answer)
    jsonschema_rs.Draft202012Validator(made.input_schema(), offline=True)
    json.dumps(made.input_schema(), allow_nan=False)
