"""References: one target per (URI, pointer), whatever it is called and however it is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from openapi.documents import answered, document, one, parsed, said, sent, tool, undescribed, with_schema, write
from pytest_httpserver import HTTPServer

from toolgen import generate
from toolgen.openapi.references import Dangling, Place, References, escape, unescape
from toolgen.openapi.source import Loader

ROOT = """
openapi: 3.1.0
info: {title: Root, version: '1'}
paths:
  /x:
    post:
      requestBody: {content: {application/json: {schema: {$ref: '%s'}}}}
      responses: {}
components: {schemas: {Pet: {type: object, properties: {root: {type: boolean}}}}}
"""


def body(source: Any, **settings: Any) -> Any:
    return undescribed(tool(source, **settings).parameters["properties"]["requestBody"])


def references(tree: Any) -> References:
    loader = Loader()
    return References(loader.load({"openapi": "3.1.0", **tree}), "3.1", loader)


# Pointers


@pytest.mark.parametrize(
    ("ref", "key"),
    [
        ("#/x/a~1b", "a/b"),
        ("#/x/a~0b", "a~b"),
        ("#/x/a~01b", "a~1b"),
        ("#/x/a%20b", "a b"),
        ("#/x/%7Bid%7D", "{id}"),
        ("#/x/a%7e1b", "a/b"),
        ("#/x/100%25", "100%"),
        ("#/x/%41", "A"),
        ("#/x/ä", "ä"),
        ("#/x/%C3%A4", "ä"),
        ("#/x/", ""),
    ],
)
def test_pointers_are_decoded_once(ref: str, key: str) -> None:
    found = references({"x": {key: {"type": "null"}}})
    assert found.resolve(ref, found.root).node == {"type": "null"}


def test_a_key_that_looks_encoded_is_found_as_it_is_written() -> None:
    found = references({"x": {"a%20b": {"type": "null"}}})
    assert found.resolve("#/x/a%20b", found.root).pointer == "/x/a%20b"


def test_tokens_escape_and_unescape_each_other() -> None:
    for token in ("a/b", "a~b", "~1", "~0/", ""):
        assert unescape(escape(token)) == token


def test_a_pointer_leads_into_arrays_and_through_references() -> None:
    found = references({"x": [{"$ref": "#/y"}], "y": {"z": {"type": "null"}}})
    place = found.resolve("#/x/0/z", found.root)
    assert (place.node, place.pointer) == ({"type": "null"}, "/y/z")


@pytest.mark.parametrize(
    "ref", ["#/nope", "#/x/1", "#/x/-1", "#/x/a", "#nope", "other.yaml", "http://[x#/a", "urn:x:y"]
)
def test_what_leads_nowhere_says_so(ref: str) -> None:
    found = references({"x": [0]})
    with pytest.raises(Dangling):
        found.resolve(ref, found.root)


def test_circles_of_references_end() -> None:
    found = references({"a": {"$ref": "#/b"}, "b": {"$ref": "#/a"}, "c": {"$ref": "#/c/d"}})
    for node in ("a", "b", "c"):
        with pytest.raises(Dangling, match="refers to itself"):
            found.follow(Place(found.root.tree[node], found.root))


def test_a_thousand_references_one_through_the_other_are_refused_not_recursed() -> None:
    chain: dict[str, Any] = {f"c{i}": {"$ref": f"#/chain/c{i + 1}/a"} for i in range(1500)}
    made = generate({**with_schema({"$ref": "#/chain/c0/a"}), "chain": {**chain, "c1500": {"a": {}}}})
    assert any("leads through more than 100 references" in line for line in said(made))


# Schemas by reference


def test_a_chain_of_references_is_one_definition_under_the_last_name() -> None:
    chain = {"A": {"$ref": "#/components/schemas/B"}, "B": {"$ref": "#/components/schemas/C"}, "C": {"type": "string"}}
    made = generate(with_schema({"$ref": "#/components/schemas/A"}, **chain))
    assert made.schemas == {"C": {"type": "string"}}


def test_a_reference_into_paths_is_followed() -> None:
    paths = """
    /pets/{id}:
      post:
        requestBody: {content: {application/json: {schema: {type: object, properties: {n: {type: integer}}}}}}
        parameters: [{name: id, in: path, required: true, schema: {type: string, maxLength: 9}}]
        responses: {}
    /other/{id}:
      post:
        parameters: [{$ref: '#/paths/~1pets~1%7Bid%7D/post/parameters/0'}]
        requestBody:
          content:
            application/json:
              schema: {$ref: '#/paths/~1pets~1{id}/post/requestBody/content/application~1json/schema/properties/n'}
        responses: {}
    """
    made = generate(document(paths))
    (other,) = [t for t in made.tools if t.endpoint.path == "/other/{id}"]
    assert other.parameters["properties"]["id"]["maxLength"] == 9
    assert made.schemas[other.parameters["properties"]["requestBody"]["$ref"].split("/")[-1]] == {"type": "integer"}


def test_siblings_of_a_reference_count_in_3_1_and_only_prose_counts_in_3_0() -> None:
    schema = {"$ref": "#/components/schemas/A", "maxLength": 3, "description": "short"}
    new, old = tool(with_schema(schema, A={"type": "string"})), tool(with_schema(schema, version="3.0.3", A={}))
    assert sent({"properties": {"a": schema}}, A={"type": "string"})["properties"]["a"] == {
        "$ref": "#/$defs/A",
        "maxLength": 3,
        "description": "short",
    }
    assert old.response.schema_ == {"$ref": "#/$defs/A", "description": "short"}
    assert new.response.schema_ == {"$ref": "#/$defs/A", "maxLength": 3, "description": "short"}


def test_a_property_named_ref_is_a_property() -> None:
    schema = {"type": "object", "properties": {"$ref": {"type": "string"}}, "required": ["$ref"]}
    assert sent(schema) == schema
    assert answered(schema) == schema


@pytest.mark.parametrize("version", ["3.0.3", "3.1.0"])
def test_references_in_examples_enums_and_defaults_are_data(version: str) -> None:
    data = {"$ref": "#/nowhere"}
    schema = {"enum": [data], "default": data, "example": data}
    assert sent(schema, version=version) == {"enum": [data], "default": data, "examples": [data]}
    assert sent({"const": data, "examples": [data]}) == {"const": data, "examples": [data]}


def test_recursion_stays_as_a_reference() -> None:
    node = {"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#/components/schemas/Node"}}}}
    for version in ("2.0", "3.0.3", "3.1.0"):
        where = "#/definitions/Node" if version == "2.0" else "#/components/schemas/Node"
        own = parsed(str(node).replace("#/components/schemas/Node", where))
        made = generate(with_schema({"$ref": where}, version=version, Node=own))
        kids = {"type": "array", "items": {"$ref": "#/$defs/Node"}}
        assert made.schemas == {"Node": {"type": "object", "properties": {"kids": kids}}}


# Anchors and identifiers


def test_an_anchor_is_a_target_in_its_own_document_first() -> None:
    inner = {"$id": "https://x.test/inner", "$anchor": "here", "type": "boolean"}
    schemas = {"A": {"$anchor": "here", "type": "integer"}, "B": inner}
    made = generate(
        with_schema({"properties": {"a": {"$ref": "#here"}, "b": {"$ref": "https://x.test/inner#here"}}}, **schemas)
    )
    assert made.schemas == {"A": {"type": "integer"}, "B": {"type": "boolean"}}


def test_references_inside_a_schema_with_an_id_are_relative_to_it() -> None:
    tree = {
        "$id": "https://x.test/schemas/tree",
        "type": "object",
        "properties": {
            "own": {"$ref": "#/$defs/leaf"},
            "sibling": {"$ref": "leaf"},
            "self": {"$ref": "#"},
            "component": {"$ref": "#/components/schemas/Plain"},
        },
        "$defs": {"leaf": {"type": "integer"}},
    }
    leaf = {"$id": "https://x.test/schemas/leaf", "type": "string"}
    made = generate(with_schema({"$ref": "#/components/schemas/Tree"}, Tree=tree, Leaf=leaf, Plain={"type": "null"}))
    assert said(made) == []
    assert made.schemas["Tree"]["properties"] == {
        "own": {"$ref": "#/$defs/leaf"},
        "sibling": {"$ref": "#/$defs/Leaf"},
        "self": {"$ref": "#/$defs/Tree"},
        "component": {"$ref": "#/$defs/Plain"},
    }
    assert (made.schemas["leaf"], made.schemas["Leaf"]) == ({"type": "integer"}, {"type": "string"})


def test_a_schema_is_the_same_by_its_id_and_by_its_pointer() -> None:
    pet = {"$id": "https://x.test/pet", "type": "object"}
    by = [{"$ref": "https://x.test/pet"}, {"$ref": "#/components/schemas/Pet"}]
    made = generate(with_schema({"allOf": by}, Pet=pet))
    assert made.schemas == {"Pet": {"type": "object"}}


def test_an_id_that_is_no_uri_changes_nothing() -> None:
    assert sent({"$id": "http://[x", "properties": {"a": {"$ref": "#/components/schemas/A"}}}, A={}) == {
        "properties": {"a": {"$ref": "#/$defs/A"}}
    }


def test_a_recursive_reference_means_the_schema_around_it() -> None:
    node = {"$recursiveAnchor": True, "type": "object", "properties": {"next": {"$recursiveRef": "#"}}}
    made = generate(with_schema({"$ref": "#/components/schemas/Node"}, Node=node))
    assert made.schemas == {"Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}}


def test_a_dynamic_reference_means_its_anchor() -> None:
    node = {"$dynamicAnchor": "node", "type": "object", "properties": {"next": {"$dynamicRef": "#node"}}}
    made = generate(with_schema({"$ref": "#/components/schemas/Node"}, Node=node))
    assert made.schemas["Node"]["properties"] == {"next": {"$ref": "#/$defs/Node"}}


# Many files


def test_two_targets_of_one_name_are_never_merged(tmp_path: Path) -> None:
    pet = "{type: object, properties: {%s: {type: string}}}"
    root = write(
        tmp_path,
        root=ROOT % "all.yaml#/All",
        a=f"Pet: {pet % 'a'}",
        b=f"Pet: {pet % 'b'}",
        all="""
      All: {anyOf: [{$ref: 'a.yaml#/Pet'}, {$ref: 'b.yaml#/Pet'}, {$ref: 'root.yaml#/components/schemas/Pet'}]}
    """,
    )
    made = generate(root)
    assert said(made) == []
    members = [made.schemas[m["$ref"].split("/")[-1]]["properties"] for m in made.schemas["All"]["anyOf"]]
    assert members == [{"a": {"type": "string"}}, {"b": {"type": "string"}}, {"root": {"type": "boolean"}}]
    assert made.schemas["Pet"]["properties"] == {"root": {"type": "boolean"}}  # the root document's keep their names
    assert len(made.schemas) == 4


def test_one_target_is_kept_once_however_it_is_addressed(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "c.yaml").write_text(
        "C: {anyOf: [{$ref: '../my%20pets.yaml#/P%65t'}, {$ref: '../my pets.yaml#/Pet'}]}"
    )
    (tmp_path / "my pets.yaml").write_text(
        "Pet: {type: string}\nOther: {allOf: [{$ref: '#/Pet'}, {$ref: ./sub/../my pets.yaml#/Pet}]}"
    )
    root = write(
        tmp_path,
        root=ROOT % "./all.yaml#/All",
        all="All: {allOf: [{$ref: 'sub/c.yaml#/C'}, {$ref: 'my pets.yaml#/Other'}]}",
    )
    made = generate(root)
    assert said(made) == []
    assert len(made.schemas) == 4
    pets = [name for name, schema in made.schemas.items() if schema == {"type": "string"}]
    assert len(pets) == 1


def test_cycles_across_files_work(tmp_path: Path) -> None:
    root = write(
        tmp_path,
        root=ROOT % "a.yaml#/A",
        a="A: {type: object, properties: {b: {$ref: 'b.yaml#/B'}}}",
        b="B: {type: object, properties: {a: {$ref: 'a.yaml#/A'}, r: {$ref: 'root.yaml#/components/schemas/Pet'}}}",
    )
    made = generate(root)
    assert said(made) == []
    assert made.schemas["A"]["properties"] == {"b": {"$ref": "#/$defs/B"}}
    assert made.schemas["B"]["properties"] == {"a": {"$ref": "#/$defs/A"}, "r": {"$ref": "#/$defs/Pet"}}


def test_a_whole_file_is_a_schema(tmp_path: Path) -> None:
    root = write(tmp_path, root=ROOT % "pet.yaml", pet="type: object\nproperties: {next: {$ref: '#'}}")
    made = generate(root)
    assert made.schemas == {"pet": {"type": "object", "properties": {"next": {"$ref": "#/$defs/pet"}}}}


def test_path_items_parameters_and_responses_come_from_files_and_refer_on_from_there(tmp_path: Path) -> None:
    root = write(
        tmp_path,
        root="openapi: 3.0.3\ninfo: {title: t, version: '1'}\npaths: {/x: {$ref: 'paths/x.yaml'}}",
    )
    (tmp_path / "paths").mkdir()
    (tmp_path / "paths" / "x.yaml").write_text(
        "get:\n  parameters: [{$ref: '../parts.yaml#/Limit'}]\n  responses: {'200': {$ref: '../parts.yaml#/Ok'}}\n"
    )
    (tmp_path / "parts.yaml").write_text(
        "Limit: {name: limit, in: query, schema: {type: integer}}\n"
        "Ok: {description: ok, content: {application/json: {schema: {$ref: '#/Answer'}}}}\n"
        "Answer: {type: boolean}\n"
    )
    made = generate(root)
    assert said(made) == []
    assert made.tools[0].parameters["properties"]["limit"]["type"] == "integer"
    assert made.tools[0].response.schema_ == {"$ref": "#/$defs/Answer"}
    assert made.tools[0].pointer == "/paths/~1x/get"


def test_a_file_of_another_version_is_read_as_that_version(tmp_path: Path) -> None:
    old = (
        "openapi: 3.0.0\ncomponents: {schemas: {A: {type: number, minimum: 1, exclusiveMinimum: true, nullable: true}}}"
    )
    made = generate(write(tmp_path, root=ROOT % "old.yaml#/components/schemas/A", old=old))
    assert made.schemas["A"] == {"type": ["number", "null"], "exclusiveMinimum": 1}


def test_a_missing_file_costs_only_the_schema_that_needs_it(tmp_path: Path) -> None:
    root = write(tmp_path, root=ROOT % "pats.yaml#/A", pets="A: {type: string}")
    made = generate(root)
    (line,) = said(made)
    assert "there is no file" in line
    assert "pets.yaml" in line  # the nearest name
    assert line.endswith("at /paths/~1x/post/requestBody/content/application~1json/schema")


def test_a_broken_file_costs_only_what_needs_it_and_says_where(tmp_path: Path) -> None:
    made = generate(write(tmp_path, root=ROOT % "a.yaml#/A", a="A: {type: string\nB: }"))
    assert made.tools[0].name
    assert "not valid YAML" in said(made)[0]


def test_a_dangling_body_costs_its_operation_and_no_other() -> None:
    paths = """
    /bad: {post: {requestBody: {$ref: '#/components/requestBodies/Nope'}, responses: {}}}
    /good: {post: {requestBody: {content: {application/json: {}}}, responses: {}}}
    """
    made = generate(document(paths))
    assert made.report is not None
    assert [(o.path, o.status) for o in made.report.operations] == [("/bad", "skipped"), ("/good", "ok")]


def test_a_dangling_parameter_response_or_schema_degrades_its_operation() -> None:
    made = generate(
        one(
            """
            parameters: [{$ref: '#/nope'}, {name: q, in: query, schema: {$ref: '#/nope'}}]
            responses: {'200': {$ref: '#/nope'}, '201': {content: {application/json: {schema: {$ref: '#/nope'}}}}}
            """
        )
    )
    assert list(made.tools[0].parameters["properties"]) == ["q"]
    assert [line.partition(":")[0] for line in said(made)] == ["degraded"] * len(said(made))
    assert any("/parameters/0" in line for line in said(made))
    assert any("/responses/200" in line for line in said(made))


def test_a_dangling_schema_rules_nothing_out() -> None:
    dangling = {"$ref": "#/nope"}
    assert sent({"not": dangling}) == {}
    assert sent({"oneOf": [dangling, {"type": "object"}]}) == {"anyOf": [{}, {"type": "object"}]}
    assert sent({"oneOf": [{}, {"type": "object"}]}) == {"oneOf": [{}, {"type": "object"}]}
    assert sent({**dangling, "type": "string"}) == {"type": "string"}


# What may be read


def test_a_file_outside_the_allowed_roots_is_refused_with_the_setting_that_allows_it(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (tmp_path / "secret.yaml").write_text("A: {type: string}")
    root = write(folder, root=ROOT % "../secret.yaml#/A")
    assert "--allow-root" in said(generate(root))[0]
    assert said(generate(root, allow_roots=[tmp_path])) == []


def test_a_host_is_refused_with_the_setting_that_allows_it(httpserver: HTTPServer) -> None:
    httpserver.expect_request("/a.yaml").respond_with_data("A: {type: string, maxLength: 4}")
    source = with_schema({"$ref": httpserver.url_for("/a.yaml") + "#/A"})
    refused = generate(source)
    assert "--allow-host" in said(refused)[0]
    assert httpserver.log == []
    allowed = generate(source, allow_hosts=["localhost"])
    assert said(allowed) == []
    assert allowed.schemas == {"A": {"type": "string", "maxLength": 4}}
    assert len(httpserver.log) == 1


def test_a_document_from_a_url_refers_to_its_neighbours_where_its_host_is_allowed(httpserver: HTTPServer) -> None:
    httpserver.expect_request("/d/root.yaml").respond_with_data(ROOT % "pets.yaml#/Pet")
    httpserver.expect_request("/d/pets.yaml").respond_with_data("Pet: {type: string}")
    url = httpserver.url_for("/d/root.yaml")
    assert "--allow-host" in said(generate(url))[0]
    made = generate(url, allow_hosts=["localhost"])
    assert said(made) == []
    assert made.server == httpserver.url_for("").rstrip("/")


def test_what_a_redirect_leads_to_is_the_same_target(httpserver: HTTPServer) -> None:
    httpserver.expect_request("/new").respond_with_data("A: {type: string}")
    httpserver.expect_request("/old").respond_with_data("", status=302, headers={"Location": "/new"})
    new, old = httpserver.url_for("/new") + "#/A", httpserver.url_for("/old") + "#/A"
    made = generate(with_schema({"allOf": [{"$ref": new}, {"$ref": old}]}), allow_hosts=["localhost"])
    assert made.schemas == {"A": {"type": "string"}}


@pytest.mark.parametrize("claim", ["$self", "$id"])
def test_a_document_from_a_url_reads_no_local_file_whatever_it_calls_itself(
    claim: str, tmp_path: Path, httpserver: HTTPServer
) -> None:
    (tmp_path / "secret.yaml").write_text("A: {type: string, const: secret}")
    own = (tmp_path / "own.yaml").as_uri()
    claims = {"$id": own} if claim == "$id" else {}
    schemas = ({**claims, "$ref": "secret.yaml#/A"}, {**claims, "allOf": [{"$ref": "secret.yaml#/A"}]})
    for number, schema in enumerate(schemas):
        source = one({"requestBody": {"content": {"application/json": {"schema": schema}}}})
        source = {"$self": own, **source} if claim == "$self" else source
        httpserver.expect_request(f"/{number}").respond_with_json(source)
        made = generate(httpserver.url_for(f"/{number}"), allow_roots=[tmp_path], allow_hosts=["localhost"])
        assert "secret" not in str(made.schemas)
        assert any("local file" in line for line in said(made))


# $self


def test_self_is_the_base_of_references(httpserver: HTTPServer) -> None:
    httpserver.expect_request("/d/pets.yaml").respond_with_data("Pet: {type: string}")
    source = {**with_schema({"$ref": "pets.yaml#/Pet"}, version="3.2.0"), "$self": httpserver.url_for("/d/root.yaml")}
    made = generate(source, allow_hosts=["localhost"])
    assert said(made) == []
    assert made.schemas == {"Pet": {"type": "string"}}


def test_a_document_may_refer_to_itself_by_what_it_calls_itself() -> None:
    source = with_schema({"$ref": "https://x.test/api#/components/schemas/A"}, version="3.2.0", A={"type": "string"})
    made = generate({**source, "$self": "https://x.test/api"})
    assert said(made) == []
    assert made.schemas == {"A": {"type": "string"}}


def test_neighbours_are_found_where_the_document_was_read_if_not_where_it_says(tmp_path: Path) -> None:
    root = write(tmp_path, root="$self: https://x.test/api.yaml" + ROOT % "pets.yaml#/Pet", pets="Pet: {type: string}")
    made = generate(root)
    assert said(made) == []
    assert {"type": "string"} in made.schemas.values()


def test_another_document_is_known_by_what_it_calls_itself(tmp_path: Path) -> None:
    pets = "$self: https://x.test/pets\nA: {$ref: 'https://x.test/pets#/B'}\nB: {type: string}"
    made = generate(write(tmp_path, root=ROOT % "pets.yaml#/A", pets=pets))
    assert said(made) == []
    assert made.schemas == {"B": {"type": "string"}}
