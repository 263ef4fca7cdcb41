"""The published JSON Schema of toolset files, made from the models, for editors to complete by.

`toolset.schema.json` beside this module is its output:

    python -m toolgen.tools.files.published > toolgen/tools/files/toolset.schema.json

Loading does not use it: the pydantic models are that check, and a test holds the two together.
"""

from __future__ import annotations

import json
from typing import Any

from toolgen.tools.model import FORMAT_VERSION, Toolset

METASCHEMA = "https://json-schema.org/draft/2020-12/schema"

_NAME = "^[A-Za-z0-9_-]{1,64}$"
_SCHEMA = {"$ref": METASCHEMA}
_TEMPLATE = "A jinja2 template that reads the tool's arguments, a constant, or a list or mapping of these."
_STYLE = "OpenAPI's serialisation style; the location's default without it."
_EXPLODE = "OpenAPI's explode; the style's default without it."
_RESERVED = "Send reserved characters of the value as they are (OpenAPI, allowReserved)."

# What a key means, and what its value is restricted to beyond the type that the models give.
_SAYS: dict[str, dict[str, str]] = {
    "Toolset": {
        "toolgen": "The version of this format.",
        "api": "The name of the API: the source its tools answer to, never a reserved source name.",
        "document": "The OpenAPI document the tools were generated from.",
        "generated": "Digest of what generation wrote; a file with another content was edited by hand.",
        "server": "The base URL that endpoint paths are appended to.",
        "securitySchemes": "OpenAPI's Security Scheme Objects by name; no credentials.",
        "schemas": "JSON Schemas shared by the tools, which point to them as #/schemas/NAME.",
        "tools": "What a model can call.",
    },
    "DocumentInfo": {
        "title": "The document's title.",
        "version": "The document's version.",
        "digest": "Digest of the document as it was read.",
    },
    "Server": {"url": "The URL, with {variables}.", "variables": "The URL's variables by name."},
    "ServerVariable": {"default": "The value without a choice.", "enum": "The values that can be chosen."},
    "Tool": {
        "name": "The name the model calls; unique in the file.",
        "description": "What the model reads about the tool.",
        "group": "The first tag of the operation.",
        "endpoint": "Method and path, which approval patterns match.",
        "annotations": "MCP tool annotations: hints for a client, never read by approval policy.",
        "deprecated": "The document marks the operation as deprecated.",
        "destructive": "Written by people: approval policy counts the tool as destructive.",
        "parameters": "The tool's input: an object schema with one property per argument.",
        "request": "What is sent.",
        "response": "What a good answer looks like.",
        "operation": "Where in the document the tool comes from.",
    },
    "Endpoint": {
        "method": "The HTTP method in lower case.",
        "path": "The normalised path template, without the server's base path.",
    },
    "Annotations": {
        "title": "A title for people.",
        "readOnlyHint": "The tool does not change anything.",
        "destructiveHint": "The tool may change or delete what is there.",
        "idempotentHint": "Calling the tool again changes nothing more.",
        "openWorldHint": "The tool reaches systems outside.",
    },
    "RequestTemplate": {
        "method": "The method as it is sent, where that is not the endpoint's in upper case.",
        "template": "The path as it is sent, where that is not the endpoint's path.",
        "server": "The base URL, where the operation has one of its own.",
        "path": "One leaf per {name} of the path.",
        "query": "The query parameters.",
        "querystring": "One leaf for the whole query string.",
        "header": "The header parameters.",
        "cookie": "The cookie parameters.",
        "body": "The request body.",
        "security": "Alternatives, each a list of security schemes that go together; [] sends no credential.",
        "siblings": "Paths of the document that a value in this path must not lead to.",
    },
    "Leaf": {
        "name": "The name on the wire.",
        "value": _TEMPLATE,
        "style": _STYLE,
        "explode": _EXPLODE,
        "allowReserved": _RESERVED,
        "mediaType": "The value is serialised as this media type, without a style.",
    },
    "Body": {
        "value": _TEMPLATE,
        "mediaType": "The media type that is sent.",
        "alternatives": "The media types the document also declares.",
        "encoding": "How the properties of a form or multipart body are sent, by name.",
        "binary": "The value is base64 text, decoded before it is sent.",
    },
    "Encoding": {
        "contentType": "The media type of the part.",
        "style": _STYLE,
        "explode": _EXPLODE,
        "allowReserved": _RESERVED,
        "headers": "The part's own headers, constants by name.",
        "binary": "The part's text is base64, decoded before it is sent.",
    },
    "Response": {
        "mediaTypes": "The media types of a good answer, in the document's order.",
        "schema": "JSON Schema of the JSON of a good answer; several that differ stand under anyOf.",
        "headers": "The documented headers of answers that carry their result there.",
    },
    "Provenance": {
        "pointer": "JSON pointer of the Operation Object.",
        "operationId": "The operation's id.",
        "tags": "The operation's tags.",
    },
}
_RESTRICTED: dict[str, dict[str, dict[str, Any]]] = {
    "Toolset": {
        "api": {"pattern": "^[a-z][a-z0-9-]{0,31}$"},
        "schemas": {"additionalProperties": _SCHEMA, "propertyNames": {"pattern": "^[A-Za-z0-9._-]+$"}},
    },
    "Tool": {"name": {"pattern": _NAME}, "parameters": {"allOf": [_SCHEMA]}},
    "Endpoint": {"method": {"pattern": "^[!#$%&'*+.^_`|~0-9a-z-]+$"}, "path": {"pattern": "^/"}},
    "Response": {"schema": {"anyOf": [_SCHEMA, {"type": "null"}]}},
}


def published_schema() -> dict[str, Any]:
    """JSON Schema 2020-12 of a toolset file."""
    made = Toolset.model_json_schema(by_alias=True)
    models = {**made.pop("$defs"), "Toolset": made}
    for name, model in models.items():
        model["description"] = str(model.get("description", "")).partition("\n\n")[0].replace("\n", " ")
        for key, member in model["properties"].items():
            member.pop("title", None)  # made of the key, and worth no more
            member["description"] = _SAYS[name][key]
            member.update(_RESTRICTED.get(name, {}).get(key, {}))
    made["required"] = ["toolgen", *made["required"]]
    made["properties"]["toolgen"] = {
        "const": FORMAT_VERSION,
        "description": _SAYS["Toolset"]["toolgen"],
    }
    del models["Toolset"]
    return {"$schema": METASCHEMA, **made, "title": "toolgen toolset", "$defs": models}


def published_text() -> str:
    """The published file's text."""
    return json.dumps(published_schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    print(published_text(), end="")
