"""openapi-core, set up so that it looks at one operation, reads nothing but the document, and stays linear.

Patterns are matched by jsonschema-rs: they are written for ECMA-262, and Python's engine can take for ever
over a text that a model wrote. Nothing is ever fetched: a reference out of the document is an error.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from toolgen.request.contract_document import OneOperation
from toolgen.request.contract_wire import Wire

if TYPE_CHECKING:
    from openapi_core import Config, OpenAPI


class Application:
    """openapi-core for one operation."""

    def __init__(self, api: OpenAPI) -> None:
        self._api = api

    def errors(self, wire: Wire) -> Iterator[Exception]:
        """What openapi-core finds wrong; it may raise anything."""
        return self._api.iter_request_errors(wire)


class _Nowhere(dict[str, Any]):
    """Handlers of every URI scheme there is, each of which refuses."""

    def __contains__(self, scheme: object) -> bool:
        return True

    def __getitem__(self, scheme: str) -> Any:
        return _refuse


def _refuse(uri: str) -> Any:
    raise LookupError("a reference leads out of the document")


def application(operation: OneOperation) -> Application:
    """What checks requests of the operation."""
    from jsonschema_path import SchemaPath
    from openapi_core import OpenAPI

    spec = SchemaPath.from_dict(operation.document, handlers=_Nowhere())
    return Application(OpenAPI(spec, config=_config(operation)))


def _config(operation: OneOperation) -> Config:
    from openapi_core import Config
    from openapi_core.casting.schemas import oas31_types_caster
    from openapi_core.casting.schemas.factories import SchemaCastersFactory

    validators = _validators()
    return Config(
        spec_validator_cls=None,
        path_finder_cls=_finder(),
        schema_validators_factory=validators,
        schema_casters_factory=SchemaCastersFactory(validators, oas31_types_caster),
        extra_media_type_deserializers={
            **dict.fromkeys(map(_bare, operation.json), _json),
            **dict.fromkeys(map(_bare, operation.text), _text),
        },
    )


def _bare(media_type: str) -> str:
    return media_type.partition(";")[0].strip().lower()


def _json(value: str | bytes, **parameters: str) -> Any:
    return json.loads(value.decode(parameters.get("charset", "utf-8")) if isinstance(value, bytes) else value)


def _text(value: str | bytes, **parameters: str) -> str:
    return value.decode(parameters.get("charset", "utf-8")) if isinstance(value, bytes) else value


@cache
def _finder() -> Any:
    """A path finder that always finds the only operation: which one it is was decided before."""
    from openapi_core.templating.datatypes import TemplateResult
    from openapi_core.templating.paths.datatypes import PathOperationServer
    from openapi_core.templating.paths.finders import APICallPathFinder

    class Only(APICallPathFinder):
        def find(self, method: str, name: str) -> Any:
            path = self.spec / "paths" / "/operation"
            (known,) = path.str_keys()
            nothing = TemplateResult("", {})
            return PathOperationServer(path, path / known, None, nothing, nothing)

    return Only


@cache
def _validators() -> Any:
    from jsonschema.validators import extend  # type: ignore[import-untyped]
    from openapi_core.validation.schemas.factories import SchemaValidatorsFactory
    from openapi_schema_validator import OAS31Validator

    return SchemaValidatorsFactory(extend(OAS31Validator, {"pattern": _pattern}))


def _pattern(validator: Any, pattern: str, instance: Any, schema: Any) -> Iterator[Exception]:
    """JSON Schema's `pattern`, as ECMA-262 has it."""
    from jsonschema.exceptions import ValidationError  # type: ignore[import-untyped]

    if isinstance(instance, str) and not _matches(pattern, instance):
        yield ValidationError("pattern")


def _matches(pattern: str, text: str) -> bool:
    return bool(_compiled(pattern).is_valid(text))


@lru_cache(maxsize=4096)
def _compiled(pattern: str) -> Any:
    import jsonschema_rs

    return jsonschema_rs.Draft202012Validator({"pattern": pattern}, offline=True)
