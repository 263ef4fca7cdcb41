"""A discriminator as something a model can read and, where it is sound, a validator can check.

Source: OpenAPI 3.2, "Discriminator Object".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolgen.openapi.text import clean, one_line

_SHOWN = 20


def describe(out: dict[str, Any], found: Any, source: dict[str, Any]) -> None:
    """Add a sentence that names the deciding property and its values to a converted schema.

    Where a mapping names every member of `oneOf` or `anyOf` exactly once, each member also says
    its value as a `const`; a mapping that is incomplete or ambiguous proves nothing.
    """
    name = found.get("propertyName") if isinstance(found, dict) else None
    if not isinstance(name, str) or not name:
        return
    mapping = found.get("mapping")
    mapping = {k: v for k, v in mapping.items() if isinstance(v, str)} if isinstance(mapping, dict) else {}
    sentence = f"`{one_line(name, 60)}` decides which shape it is"
    if mapping:
        shown = [one_line(value, 60) for value in list(mapping)[:_SHOWN]]
        sentence += ": " + ", ".join(shown) + (f", and {len(mapping) - _SHOWN} more" if len(mapping) > _SHOWN else "")
    before = out.get("description")
    out["description"] = f"{clean(before, 800)}\n{sentence}." if before else f"{sentence}."
    for key in ("oneOf", "anyOf"):
        if key in out:
            _constants(out[key], source.get(key) if isinstance(source.get(key), list) else None, name, mapping)


def _constants(members: list[Any], sources: Any, name: str, mapping: dict[str, str]) -> None:
    """Write `{name: {const: value}}` beside each member's `$ref`."""
    refs: list[Any] = [s.get("$ref") if isinstance(s, dict) else None for s in sources or ()]
    values: dict[str, str] = {}
    for value, target in mapping.items():
        ref = target if "#" in target or "/" in target or "." in target else f"#/components/schemas/{target}"
        if ref in values:
            return  # two values for one shape
        values[ref] = value
    if len(refs) != len(members) or None in refs or len(set(refs)) != len(refs) or set(refs) != set(values):
        return
    for member, ref in zip(members, refs, strict=True):
        if isinstance(ref, str) and set(member) == {"$ref"}:
            member["properties"] = {name: {"const": values[ref]}}


def settle(schema: dict[str, Any], definitions: Mapping[str, Any]) -> None:
    """Drop the constants a member's own schema already says, or contradicts: then the schema is right."""
    for member in (*schema.get("oneOf", ()), *schema.get("anyOf", ())):
        if not isinstance(member, dict) or set(member) != {"$ref", "properties"}:
            continue
        (name, constant), *others = member["properties"].items()
        if not others and set(constant) == {"const"} and _decided(name, member["$ref"], definitions):
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
