"""A discriminator as something a model can read and, where it is sound, a validator can check.

Source: OpenAPI 3.2, "Discriminator Object".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolgen.openapi.text import clean, one_line

_SHOWN = 20


def describe(out: dict[str, Any], found: Any, source: dict[str, Any]) -> list[dict[str, Any]]:
    """Add a sentence that names the deciding property and its values to a converted schema.

    Where a mapping names every member of `oneOf` or `anyOf` exactly once, each member also says
    its value as a `const`; a mapping that is incomplete or ambiguous proves nothing. Returns the
    members that got one, for `settle`.
    """
    name = found.get("propertyName") if isinstance(found, dict) else found  # 2.0 has the name alone
    if not isinstance(name, str) or not name:
        return []
    mapping = found.get("mapping") if isinstance(found, dict) else None
    mapping = {k: v for k, v in mapping.items() if isinstance(v, str)} if isinstance(mapping, dict) else {}
    sentence = f"`{one_line(name, 60)}` decides which shape it is"
    if mapping:
        shown = [one_line(value, 60) for value in list(mapping)[:_SHOWN]]
        sentence += ": " + ", ".join(shown) + (f", and {len(mapping) - _SHOWN} more" if len(mapping) > _SHOWN else "")
    before = out.get("description")
    out["description"] = f"{clean(before, 800)}\n{sentence}." if before else f"{sentence}."
    marked: list[dict[str, Any]] = []
    for key in ("oneOf", "anyOf"):
        if key in out:
            marked += _constants(
                out[key], source.get(key) if isinstance(source.get(key), list) else None, name, mapping
            )
    return marked


def _constants(members: list[Any], sources: Any, name: str, mapping: dict[str, str]) -> list[dict[str, Any]]:
    """Write `{name: {const: value}}` beside each member's `$ref`."""
    refs: list[Any] = [s.get("$ref") if isinstance(s, dict) else None for s in sources or ()]
    values: dict[str, str] = {}
    for value, target in mapping.items():
        ref = target if "#" in target or "/" in target or "." in target else f"#/components/schemas/{target}"
        if ref in values:
            return []  # two values for one shape
        values[ref] = value
    if len(refs) != len(members) or not all(isinstance(ref, str) for ref in refs):
        return []
    if len(set(refs)) != len(refs) or set(refs) != set(values):
        return []
    marked = []
    for member, ref in zip(members, refs, strict=True):
        if isinstance(ref, str) and set(member) == {"$ref"}:
            member["properties"] = {name: {"const": values[ref]}}
            marked.append(member)
    return marked


def settle(member: dict[str, Any], definitions: Mapping[str, Any]) -> None:
    """Drop the constant that `describe` gave a member if its own schema says it, or contradicts it: then that is right."""
    if _decided(next(iter(member["properties"])), member["$ref"], definitions):
        del member["properties"]


def _decided(name: str, ref: str, definitions: Mapping[str, Any]) -> bool:
    """Whether a definition says itself which values a property takes, or allows no such property."""
    waiting: list[Any] = [{"$ref": ref}]
    seen: set[str] = set()
    named = closed = False
    while waiting:
        here = waiting.pop()
        target = here.get("$ref") if isinstance(here, dict) else None
        if isinstance(target, str) and target not in seen:
            seen.add(target)
            waiting.append(definitions.get(target.removeprefix("#/$defs/")))
        if not isinstance(here, dict):
            continue
        closed = closed or here.get("additionalProperties") is False
        waiting.extend(here.get("allOf", ()))
        own = here.get("properties", {}).get(name)
        while isinstance(own, dict) and "$ref" in own and own["$ref"] not in seen:
            seen.add(own["$ref"])
            own = definitions.get(own["$ref"].removeprefix("#/$defs/"))
        if isinstance(own, dict):
            named = True
            if "enum" in own or "const" in own:
                return True
    return closed and not named
