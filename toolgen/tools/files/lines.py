"""Which line of a YAML or JSON text a place is on."""

from __future__ import annotations

from typing import Any

from toolgen.tools.files.places import Part, parts


class Lines:
    """Lines of one text; nothing is known of a text that cannot be read."""

    def __init__(self, content: bytes) -> None:
        import yaml

        self._root: Any = None
        try:
            self._root = yaml.compose(content.decode("utf-8-sig"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        except (yaml.YAMLError, UnicodeDecodeError, RecursionError):
            return

    def of(self, where: str) -> int | None:
        """The line (from 1) of a place, or of the nearest thing around it that is there."""
        node, mark = self._root, None
        for part in parts(where):
            found = _step(node, part)
            if found is None:
                break
            node, mark = found
        return None if mark is None else mark.line + 1


def _step(node: Any, part: Part) -> tuple[Any, Any] | None:
    children = getattr(node, "value", None)
    if not isinstance(children, list):
        return None
    if isinstance(part, int):
        return (children[part], children[part].start_mark) if part < len(children) else None
    pairs = (pair for pair in children if isinstance(pair, tuple))
    return next(((value, key.start_mark) for key, value in pairs if key.value == part), None)
