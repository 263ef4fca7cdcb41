"""Documents with anything in the wrong place: a Toolset that holds together, or an error that says why."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from random import Random
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openapi.documents import parsed

from toolgen import ToolgenError, Toolset, generate
from toolgen.tools.files import from_dict, to_dict
from toolgen.tools.files.check import check_toolset

METASCHEMA = jsonschema_rs.Draft202012Validator({"$ref": "https://json-schema.org/draft/2020-12/schema"}, offline=True)
NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
CONTROL = {"get": {"operationId": "control", "responses": {"200": {"description": "ok"}}}}

V2 = """
swagger: '2.0'
info: {title: Old, version: '1', description: text}
host: old.test
basePath: /v1
schemes: [https]
consumes: [application/json]
produces: [application/json]
securityDefinitions:
  key: {type: apiKey, in: header, name: X-Key}
  oauth: {type: oauth2, flow: accessCode, authorizationUrl: 'https://a.test', tokenUrl: 'https://t.test', scopes: {r: read}}
security: [{key: []}]
parameters: {Limit: {name: limit, in: query, type: integer, maximum: 10, exclusiveMaximum: true}}
responses: {Gone: {description: gone, schema: {$ref: '#/definitions/Error'}}}
paths:
  /pets/{id}:
    parameters: [{name: id, in: path, required: true, type: string, pattern: '^[a-z]+$'}, {$ref: '#/parameters/Limit'}]
    get:
      tags: [pets]
      summary: Read
      parameters: [{name: tags, in: query, type: array, items: {type: string}, collectionFormat: multi}]
      responses: {'200': {description: ok, schema: {$ref: '#/definitions/Pet'}}, '404': {$ref: '#/responses/Gone'}}
    put:
      consumes: [application/json, text/xml]
      parameters: [{name: pet, in: body, required: true, schema: {$ref: '#/definitions/Pet'}}]
      security: [{oauth: [r]}, {}]
      responses: {default: {description: any}}
    post:
      consumes: [multipart/form-data]
      parameters: [{name: file, in: formData, type: file}, {name: note, in: formData, type: string}]
definitions:
  Pet:
    type: object
    discriminator: kind
    required: [kind, id]
    properties:
      id: {type: integer, readOnly: true}
      kind: {type: string, enum: [cat, dog]}
      owner: {$ref: '#/definitions/Owner'}
  Owner: {type: object, x-nullable: true, properties: {pets: {type: array, items: {$ref: '#/definitions/Pet'}}}}
  Error: {type: object, properties: {code: {type: integer}}}
"""
V30 = """
openapi: 3.0.3
info: {title: Middle, version: '1'}
servers: [{url: 'https://{region}.mid.test/v1', variables: {region: {default: eu, enum: [eu, us]}}}]
security: [{bearer: []}]
tags: [{name: pets}]
paths:
  /pets:
    parameters: [{$ref: '#/components/parameters/Trace'}]
    post:
      operationId: createPet
      tags: [pets]
      requestBody: {$ref: '#/components/requestBodies/Pet'}
      responses:
        '201': {description: made, headers: {Location: {schema: {type: string}}}, content: {application/json: {schema: {$ref: '#/components/schemas/Pet'}}}}
        '400': {$ref: '#/components/responses/Bad'}
    get:
      parameters:
      - {name: filter, in: query, content: {application/json: {schema: {type: object}}}}
      - {name: deep, in: query, style: deepObject, explode: true, schema: {type: object, additionalProperties: {type: string}}}
      responses: {'200': {description: ok, content: {application/json: {schema: {type: array, items: {$ref: '#/components/schemas/Pet'}}}}}}
  /files/{name}:
    put:
      parameters: [{name: name, in: path, required: true, schema: {type: string, nullable: true}}]
      requestBody:
        content:
          multipart/form-data:
            schema: {type: object, properties: {f: {type: string, format: binary}, meta: {$ref: '#/components/schemas/Pet'}}}
            encoding: {meta: {contentType: application/json, headers: {X-A: {schema: {type: string, enum: [a]}}}}}
          application/octet-stream: {schema: {type: string, format: binary}}
      responses: {'204': {description: none}}
components:
  securitySchemes: {bearer: {type: http, scheme: bearer}}
  parameters: {Trace: {name: X-Trace, in: header, schema: {type: string}, example: abc}}
  requestBodies: {Pet: {required: true, content: {application/json: {schema: {$ref: '#/components/schemas/Pet'}, example: {kind: cat}}}}}
  responses: {Bad: {description: bad, content: {application/json: {schema: {type: object}}}}}
  schemas:
    Pet:
      oneOf: [{$ref: '#/components/schemas/Cat'}, {$ref: '#/components/schemas/Dog'}]
      discriminator: {propertyName: kind, mapping: {cat: '#/components/schemas/Cat', dog: Dog}}
    Base: {type: object, required: [id], properties: {id: {type: integer, readOnly: true}, kind: {type: string}}}
    Cat: {allOf: [{$ref: '#/components/schemas/Base'}, {type: object, required: [id, lives], properties: {lives: {type: integer, minimum: 0, exclusiveMinimum: true}}}]}
    Dog: {allOf: [{$ref: '#/components/schemas/Base'}], properties: {friend: {$ref: '#/components/schemas/Pet'}}, nullable: true}
"""
V31 = """
openapi: 3.1.0
info: {title: New, version: '1'}
servers: [{url: https://new.test}, {url: /relative}]
paths:
  /a/{id}:
    $ref: '#/components/pathItems/Item'
    delete: {operationId: remove, responses: {'204': {description: gone}}}
components:
  pathItems:
    Item:
      summary: An item
      servers: [{url: https://item.test}]
      parameters: [{name: id, in: path, required: true, schema: {$ref: '#/components/schemas/Id', description: which}}]
      patch:
        operationId: change
        requestBody: {content: {application/merge-patch+json: {schema: {$ref: '#/components/schemas/Tree', required: [name]}}}}
        responses: {'200': {description: ok, content: {application/json: {schema: {$ref: '#tree'}}}}}
  schemas:
    Id: {type: [string, 'null'], enum: [a, null], examples: [a]}
    Tree:
      $anchor: tree
      type: object
      properties: {name: {type: string}, kids: {type: array, prefixItems: [{$ref: '#/components/schemas/Tree'}], items: false}}
      patternProperties: {'^x-': {const: 1}}
      dependentRequired: {name: [kids]}
      if: {required: [name]}
      then: {minProperties: 1}
      unevaluatedProperties: false
"""
V32 = """
openapi: 3.2.0
$self: https://self.test/api
info: {title: Newest, version: '1'}
paths:
  /search:
    query:
      operationId: search
      parameters: [{name: q, in: querystring, content: {application/x-www-form-urlencoded: {$ref: '#/components/mediaTypes/Form'}}}]
      requestBody: {content: {application/json: {$ref: '#/components/mediaTypes/Form'}}}
      responses: {'200': {summary: ok, content: {application/jsonl: {itemSchema: {type: object}}}}}
    additionalOperations:
      COPY: {operationId: copy, parameters: [{name: c, in: cookie, style: cookie, schema: {type: string}}], responses: {}}
components:
  mediaTypes: {Form: {schema: {$ref: 'https://self.test/api#/components/schemas/Form'}}}
  schemas: {Form: {$id: 'https://self.test/form', type: object, properties: {self: {$ref: '#'}, leaf: {$ref: '#/$defs/leaf'}}, $defs: {leaf: {type: integer}}}}
"""
DOCUMENTS = [parsed(text) for text in (V2, V30, V31, V32)]

_WORDS = [
    "",
    "text",
    "$ref",
    "get",
    "#",
    "#/",
    "#/paths",
    "application/json",
    "{id}",
    "${env:X}",
    "{{ 7*7 }}",
    "a" * 300,
    "\u202e",
    "http://[x",
    "-1",
    "true",
]
_SELF = [
    "#",
    "#/components/schemas/Pet",
    "#/definitions/Pet",
    "#/paths",
    "#/nope",
    "other.yaml#/A",
    "http://[x#/a",
    "https://self.test/form",
]


def places(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place below a node, except the control operation and the version."""
    children = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in children:
        if (*path, key) not in (("openapi",), ("swagger",), ("paths", "/control")):
            yield (*path, key)
            yield from places(value, (*path, key))


def junk(random: Random, depth: int = 0) -> Any:
    choice = random.randrange(14 if depth < 3 else 8)
    if choice < 6:
        return [None, True, False, random.choice([0, -1, 3.5, 10**30, 1e300]), random.choice(_WORDS), [], {}][choice]
    if choice < 8:
        return random.choice(
            [{}, [], {"$ref": random.choice(_SELF)}, {"type": random.choice(["string", "object", 3, ["null"]])}]
        )
    if choice < 10:
        return [junk(random, depth + 1) for _ in range(random.randrange(3))]
    if choice < 13:
        keys = random.sample(
            ["$ref", "name", "in", "schema", "type", "properties", "items", "enum", "content", "a", "$id", "allOf"], 3
        )
        return {key: junk(random, depth + 1) for key in keys}
    nest: Any = {}
    for _ in range(random.choice([5, 40])):
        nest = random.choice([{"items": nest}, {"properties": {"a": nest}}, {"allOf": [nest]}, [nest]])
    return nest


def damaged(document: Any, random: Random) -> Any:
    """The document with a few nodes replaced, removed, moved or renamed, and one operation untouched."""
    made = copy.deepcopy(document)
    made["paths"]["/control"] = copy.deepcopy(CONTROL)
    for _ in range(random.randint(1, 4)):
        found = list(places(made))
        *above, last = random.choice(found)
        holder = made
        for step in above:
            holder = holder[step]
        action = random.randrange(10)
        if action == 0:
            del holder[last]
        elif action == 1 and isinstance(holder, dict):
            holder[random.choice(_WORDS)] = holder.pop(last)
        elif action == 2:
            node = made
            for step in random.choice(found):
                if (
                    not isinstance(node, dict | list)
                    or (isinstance(node, list) and step >= len(node))
                    or (isinstance(node, dict) and step not in node)
                ):
                    break
                node = node[step]
            holder[last] = copy.deepcopy(node)
        else:
            holder[last] = junk(random)
        made["paths"] = made["paths"] if isinstance(made.get("paths"), dict) else {}
        made["paths"]["/control"] = copy.deepcopy(CONTROL)
    return made


def check(made: Toolset) -> None:
    assert made.report is not None
    assert check_toolset(made) == []
    assert len({t.name for t in made.tools}) == len(made.tools)
    again = from_dict(to_dict(made))  # which finds out by itself what refers to what
    assert again == made
    for tool in made.tools:
        schema = tool.input_schema()
        assert schema == again.tool(tool.name).input_schema()
        METASCHEMA.validate(schema)
        jsonschema_rs.Draft202012Validator(schema, offline=True)  # refuses a reference that leads nowhere
        answer = tool.output_schema()
        if answer is not None:
            METASCHEMA.validate(answer)
            jsonschema_rs.Draft202012Validator(answer, offline=True)
        assert NAME.fullmatch(tool.name)
        assert all(NAME.fullmatch(key) for key in schema["properties"])
        json.dumps([tool.model_dump(), schema], allow_nan=False)
    made.report.to_dict()


@pytest.mark.parametrize("document", DOCUMENTS, ids=["2.0", "3.0", "3.1", "3.2"])
def test_the_sound_documents_have_nothing_to_report(document: Any) -> None:
    made = generate(document)
    check(made)
    assert made.report is not None
    assert made.report.counts()["skipped"] == made.report.counts()["degraded"] == 0


@settings(max_examples=400)
@given(st.sampled_from(range(len(DOCUMENTS))), st.integers(0, 2**32))
def test_damage_gives_sound_tools_or_a_clear_error_and_never_costs_another_operation(index: int, seed: int) -> None:
    source = damaged(DOCUMENTS[index], Random(seed))
    made = generate(json.dumps(source))
    check(made)
    assert "control" in {t.operation.operation_id for t in made.tools if t.endpoint.key == "get:/control"}


@settings(max_examples=150)
@given(st.integers(0, 2**32))
def test_any_junk_is_a_toolset_or_an_error_of_ours(seed: int) -> None:
    random = Random(seed)
    source = {
        key: junk(random) for key in ("paths", "components", "servers", "security", "info", "$self", "definitions")
    }
    source["paths"] = {path: junk(random) for path in ("/a", "/{b}")} | ({"/c": {"get": junk(random)}})
    version = random.choice([{"openapi": "3.1.0"}, {"openapi": "3.0.0"}, {"openapi": "3.2.0"}, {"swagger": "2.0"}, {}])
    try:
        made = generate(json.dumps({**source, **version}))
    except ToolgenError:
        return
    check(made)
