"""Reading documents: a path, an http(s) URL, a text or a mapping becomes plain data, within limits and rules."""

from toolgen.openapi.source.loader import Document, Limits, Loader, check_size

__all__ = ["Document", "Limits", "Loader", "check_size"]
