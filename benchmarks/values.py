"""Valid arguments for a tool, made from its input schema and the same for a seed.

Three sets where they differ: what is required, everything, and edge values: empty and long texts, spaces,
delimiters, other scripts, large integers, floats.
"""

from __future__ import annotations

import base64
import random
import string
from collections.abc import Iterator, Mapping
from typing import Any

import jsonschema_rs
from _regex import NoValue, text_of

DEEPEST = 5
TRIES = 6
ANYWHERE = (
    "",
    "a b",
    "a&b=c",
    "1+1",
    "100%",
    "#1?",
    "x/y",
    "é ü",
    "日本語",
    "😀",
    "a,b;c",
    "%2F",
    "{x}",
    "'\"<>",
    "\\",
)
EDGE = {
    "path": ("a b", "a&b=c", "1+1", "100%", "1#?", "é ü", "日本語", "a:b@c", "x'y"),
    "header": ("a b", "a&b=c", "1+1", "100%", "#1?", "x/y"),
}
FORMATS = {
    "date": "2024-02-29",
    "date-time": "2024-02-29T12:30:00Z",
    "time": "12:30:00Z",
    "duration": "P1DT2H",
    "email": "a.b@mail.example",
    "idn-email": "a.b@mail.example",
    "hostname": "host.example",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uri": "https://host.example/a?b=c",
    "url": "https://host.example/a?b=c",
    "uri-reference": "/a?b=c",
    "iri": "https://host.example/a",
    "uuid": "3fa85f64-5717-4562-b3fc-2c963f66afa6",
    "byte": "aGVsbG8=",
    "json-pointer": "/a/b",
    "regex": "a+",
}
FILE = {"filename": 'a "b".txt', "contentType": "text/x-b"}  # as tools take a file with its name
FILE_KEYS = {*FILE, "data"}
OTHERS = "x-others"  # see Maker._others


def argument_sets(
    schema: dict[str, Any], places: Mapping[str, str], seed: str
) -> Iterator[tuple[str, dict[str, Any] | None]]:
    """(name of the set, arguments) of the sets that differ; None where no valid arguments were found."""
    validator = jsonschema_rs.Draft202012Validator(schema, offline=True)
    seen: list[dict[str, Any]] = []
    for name in ("required", "all", "edge"):
        made = None
        for attempt in range(TRIES):
            maker = Maker(schema.get("$defs", {}), random.Random(f"{seed} {name} {attempt}"), name, attempt)
            try:
                made = {key: maker.value(below, places[key], 0) for key, below in maker.chosen(schema, places)}
            except (NoValue, RecursionError):
                continue
            if attempt >= 3:  # what cannot be made is left out where it need not be there
                wrong = {error.instance_path[0] for error in validator.iter_errors(made) if error.instance_path}
                made = {
                    key: value for key, value in made.items() if key not in wrong or key in schema.get("required", ())
                }
            if validator.is_valid(made):
                break
            made = None
        if made is None:
            yield name, None
        elif made not in seen:
            seen.append(made)
            yield name, made


class Maker:
    """Makes values of schemas; from attempt to attempt it keeps to what is simpler."""

    def __init__(self, definitions: Mapping[str, Any], chance: random.Random, name: str, attempt: int) -> None:
        self.definitions, self.chance = definitions, chance
        self.edge = name == "edge" and attempt < 3
        self.full = name != "required"
        self.deepest = DEEPEST if attempt == 0 else max(1, DEEPEST - attempt)
        self.attempt = attempt

    def chosen(self, schema: dict[str, Any], places: Mapping[str, str]) -> list[tuple[str, Any]]:
        needed = schema.get("required", ())
        return [(k, v) for k, v in schema.get("properties", {}).items() if k in places and (self.full or k in needed)]

    def value(self, schema: Any, place: str, depth: int) -> Any:
        """A value of the schema. Raises NoValue."""
        if not isinstance(schema, dict):
            if schema is False:
                raise NoValue
            schema = {}
        flat = self.flat(schema)
        if "const" in flat:
            return flat["const"]
        if isinstance(flat.get("enum"), list):
            values = [v for v in flat["enum"] if self._fits(v, flat)] or flat["enum"]
            return self.chance.choice([v for v in values if v is not None] or values)
        if self.edge and "null" in flat.get("type", "") and self._rarely(place, depth):
            return None
        kind = self._kind(flat)
        return getattr(self, f"_{kind}")(flat, place, depth)

    def flat(self, schema: dict[str, Any], depth: int = 0) -> dict[str, Any]:
        """References, `allOf` and one alternative each written out."""
        if depth > 30:
            raise NoValue
        here = {k: v for k, v in schema.items() if k not in ("$ref", "allOf", "anyOf", "oneOf")}
        members: list[Any] = []
        if "$ref" in schema:
            members.append(self.definitions.get(schema["$ref"].removeprefix("#/$defs/"), {}))
        members += schema.get("allOf", ())
        for key in ("anyOf", "oneOf"):
            options = [
                o
                for o in schema.get(key, ())
                if o is not False and not (isinstance(o, dict) and o.get("type") == "null")
            ]
            if options:
                members.append(options[self.attempt % len(options)] if self.attempt else self.chance.choice(options))
        for member in members:
            if isinstance(member, dict):
                here = _merged(here, self.flat(member, depth + 1))
        if self.attempt >= 2 and "properties" in here:
            here[OTHERS] = self._others(schema.get("oneOf", ()), here, depth)
        return here

    def _others(self, options: Any, chosen: dict[str, Any], depth: int) -> dict[str, Any]:
        """Properties of the other alternatives with a value none of them takes: exactly one alternative fits then."""
        found: dict[str, Any] = dict(chosen.get(OTHERS, {}))
        for option in options if len(options) < 30 else ():
            flat = self.flat(option, depth + 20) if isinstance(option, dict) else {}
            for name, schema in flat.get("properties", {}).items():
                if name not in chosen["properties"] and isinstance(schema, dict) and "type" in schema:
                    found[name] = [] if schema["type"] != "array" else 0
        return found

    def _rarely(self, place: str, depth: int) -> bool:
        """Whether to give null or nothing: seldom where the wire has none, or most sets would be lost to that rule."""
        if place == "path":
            return False
        return self.chance.random() < (0.2 if place == "body" and depth else 0.03)

    def _fits(self, value: Any, flat: dict[str, Any]) -> bool:
        kinds = flat.get("type")
        return kinds is None or _type_of(value) in ([kinds] if isinstance(kinds, str) else kinds)

    def _kind(self, flat: dict[str, Any]) -> str:
        kinds = flat.get("type")
        if isinstance(kinds, list):
            kinds = [kind for kind in kinds if kind != "null"] or ["null"]
            kinds = self.chance.choice(kinds)
        if kinds is None:
            kinds = (
                "object"
                if "properties" in flat or "additionalProperties" in flat
                else "array"
                if "items" in flat
                else "string"
            )
        return str(kinds)

    def _null(self, flat: dict[str, Any], place: str, depth: int) -> None:
        return None

    def _boolean(self, flat: dict[str, Any], place: str, depth: int) -> bool:
        return self.chance.random() < 0.5

    def _integer(self, flat: dict[str, Any], place: str, depth: int) -> int:
        low, high = self._range(flat)
        step = flat.get("multipleOf", 1)
        step = int(step) if step >= 1 else 1
        if self.edge and low is None and high is None and flat.get("format") not in ("int32", "int64"):
            return self.chance.choice([0, -1, 2**53 + 1, 10**20]) * step
        if self.edge and low is None and high is None:
            return self.chance.choice([0, -1, 2**31 - 1]) // step * step
        start = low if low is not None else (high - 50 if high is not None and high < 1 else 1)
        stop = high if high is not None else start + 100
        first = -(-int(-(-start // 1)) // step) * step
        return min(first + step * self.chance.randrange(0, 5), int(stop // step) * step)

    def _number(self, flat: dict[str, Any], place: str, depth: int) -> float | int:
        low, high = self._range(flat, 0.25)
        if "multipleOf" in flat:
            step = flat["multipleOf"]
            return -(-(low or 0) // step) * step if low is not None else step
        if self.edge and low is None and high is None:
            return self.chance.choice([0.1, -1.5e-7, 1.5, 2.0, 1e22, 12345.678])
        start = low if low is not None else (high - 1 if high is not None else 1)
        stop = high if high is not None else start + 10
        return start if stop - start <= 0.5 else start + 0.5

    @staticmethod
    def _range(flat: dict[str, Any], gap: float = 1) -> tuple[Any, Any]:
        lows = [flat["minimum"]] if "minimum" in flat else []
        lows += [flat["exclusiveMinimum"] + gap] if "exclusiveMinimum" in flat else []
        highs = [flat["maximum"]] if "maximum" in flat else []
        highs += [flat["exclusiveMaximum"] - gap] if "exclusiveMaximum" in flat else []
        return (max(lows) if lows else None), (min(highs) if highs else None)

    def _string(self, flat: dict[str, Any], place: str, depth: int) -> str:
        shortest, longest = flat.get("minLength", 0), flat.get("maxLength", 10**9)
        if flat.get("contentEncoding") == "base64":
            return base64.b64encode(bytes([0, 255, 13, 10, 45, 45]) if self.edge else b"hello").decode()
        if "pattern" in flat:
            return self._matching(flat["pattern"], shortest, longest)
        if flat.get("format") in FORMATS:
            return FORMATS[flat["format"]][:longest]
        word = "".join(self.chance.choices(string.ascii_lowercase, k=6))
        if self.edge:
            word = self.chance.choice(EDGE.get(place, ANYWHERE))
        if len(word) < shortest:
            word += "".join(self.chance.choices(string.ascii_letters, k=min(shortest, 10**5) - len(word)))
        return word[:longest].strip() if place in EDGE else word[:longest]

    def _matching(self, pattern: str, shortest: int, longest: int) -> str:
        for number in range(20):
            text = text_of(pattern, self.chance, number)
            if shortest <= len(text) <= longest:
                return text
        raise NoValue

    def _array(self, flat: dict[str, Any], place: str, depth: int) -> list[Any]:
        least, most = flat.get("minItems", 0), flat.get("maxItems", 10**6)
        wanted = max(least, 1 if depth < self.deepest else 0)
        if self.full and depth < self.deepest and least < 2:
            wanted = max(wanted, self.chance.choice([1, 2, 2, 3]))
        made: list[Any] = []
        if self.edge and least == 0 and self._rarely(place, depth):
            return made
        first = list(flat.get("prefixItems", ()))
        for index in range(min(wanted, most, 50) if least <= 50 else least):
            item = self.value(first[index] if index < len(first) else flat.get("items", {}), place, depth + 1)
            if not flat.get("uniqueItems") or item not in made:
                made.append(item)
        return made

    def _object(self, flat: dict[str, Any], place: str, depth: int) -> dict[str, Any]:
        properties, needed = flat.get("properties", {}), flat.get("required", ())
        full = (self.full and depth < self.deepest) or (place == "path" and depth == 0)  # a path takes no empty one
        names = [n for n in properties if n in needed or full]
        made = {}
        for name in [*names, *(n for n in needed if n not in properties)]:
            try:
                below = properties.get(name, flat.get("additionalProperties", {}))
                made[name] = (
                    FILE[name] if set(properties) == FILE_KEYS and name in FILE else self.value(below, place, depth + 1)
                )
            except NoValue:
                if name in needed:
                    raise
        extra = flat.get("additionalProperties")
        few = flat.get("minProperties", 0) - len(made)
        if (isinstance(extra, dict) and depth < self.deepest and self.full) or few > 0:
            for number in range(max(1, few)):
                made[f"key{number}"] = self.value(extra if isinstance(extra, dict) else {}, place, depth + 1)
        if place == "body" and extra is not False:
            made |= flat.get(OTHERS, {})
        return dict(list(made.items())[: flat.get("maxProperties", 10**6)])


def _merged(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Both schemas at once, as far as a maker of values needs it; the validator has the last word."""
    out = {**other, **one}
    if "properties" in one and "properties" in other:
        shared = {
            k: {"allOf": [other["properties"][k], v]} for k, v in one["properties"].items() if k in other["properties"]
        }
        out["properties"] = {**other["properties"], **one["properties"], **shared}
    if "required" in one and "required" in other:
        out["required"] = list(dict.fromkeys([*other["required"], *one["required"]]))
    for key, pick in (
        ("minLength", max),
        ("minimum", max),
        ("minItems", max),
        ("maxLength", min),
        ("maximum", min),
        ("maxItems", min),
    ):
        if key in one and key in other:
            out[key] = pick(one[key], other[key])
    if isinstance(one.get("enum"), list) and isinstance(other.get("enum"), list):
        out["enum"] = [value for value in one["enum"] if value in other["enum"]] or one["enum"]
    return out


def _type_of(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    names = {str: "string", int: "integer", float: "number", list: "array", dict: "object", type(None): "null"}
    return names[type(value)]
