"""Schema Objects as JSON Schema 2020-12."""

from toolgen.openapi.schema.convert import Schemas

__all__ = ["Schemas"]
