"""A discriminator as something a model can read and, where it is sound, a validator can check.

Source: OpenAPI 3.2, "Discriminator Object".
"""

from __future__ import annotations

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
            _constants(out[key], source.get(key), name, mapping)


def _constants(members: list[Any], sources: Any, name: str, mapping: dict[str, str]) -> None:
    """Write `{name: {const: value}}` beside each member's `$ref`."""
    refs = [s.get("$ref") if isinstance(s, dict) else None for s in sources] if isinstance(sources, list) else []
    values: dict[str, str] = {}
    for value, target in mapping.items():
        ref = target if "#" in target or "/" in target or "." in target else f"#/components/schemas/{target}"
        if ref in values:
            return  # two values for one shape
        values[ref] = value
    if len(refs) != len(members) or None in refs or len(set(refs)) != len(refs) or set(refs) != set(values):
        return
    for member, ref in zip(members, refs, strict=True):
        if set(member) == {"$ref"}:
            member["properties"] = {name: {"const": values[ref]}}
