"""Names of definitions: two different targets never share one, the root document's keep theirs."""

from __future__ import annotations

import re
from typing import Any

from toolgen.openapi.references import Place, Resource, unescape

_ILLEGAL = re.compile(r"[^A-Za-z0-9._-]+")
# The last token of a pointer that says nothing by itself: the one before it is put in front.
_VAGUE = frozenset({"schema", "items", "additionalProperties", "content", "properties", "allOf", "anyOf", "oneOf"})


class Names:
    """Gives out definition names, each once."""

    def __init__(self, root: Resource) -> None:
        self._root = root
        self._taken: set[str] = set()
        names = [(_legal(name), name) for name in reversed(_component_names(root.tree))]
        self._reserved = dict(names)
        self._reserved.update(pair for pair in names if pair[0] == pair[1])

    def claim(self, place: Place, suffix: str = "") -> str:
        """A name for the schema at this place, with a suffix that is part of it."""
        tokens = [unescape(token) for token in place.pointer.split("/")[1:]]
        component = _is_component(tokens) and place.resource is self._root
        wanted = _legal(tokens[-1]) if component else _legal(self._describe(place, tokens))
        free = wanted + suffix
        if component and self._reserved.get(wanted) == tokens[-1] and free not in self._taken:
            self._taken.add(free)
            return free
        count = 1
        while free in self._taken or free in self._reserved:
            count += 1
            free = f"{wanted}{suffix}_{count}"
        self._taken.add(free)
        return free

    @staticmethod
    def _describe(place: Place, tokens: list[str]) -> str:
        if not tokens:
            return place.resource.label.rpartition("/")[2].partition(".")[0] or "Document"
        first = len(tokens) - 1
        while first > 0 and (tokens[first] in _VAGUE or tokens[first].isdigit()):
            first -= 1
        return "-".join(tokens[first:])


def _component_names(tree: Any) -> list[str]:
    if not isinstance(tree, dict):
        return []
    components = tree.get("components")
    held = (components.get("schemas") if isinstance(components, dict) else None, tree.get("definitions"))
    return [name for group in held if isinstance(group, dict) for name in group]


def _is_component(tokens: list[str]) -> bool:
    return (len(tokens) == 3 and tokens[:2] == ["components", "schemas"]) or (
        len(tokens) == 2 and tokens[0] == "definitions"
    )


def _legal(name: str) -> str:
    return _ILLEGAL.sub("_", name).strip("_")[:120] or "Schema"
