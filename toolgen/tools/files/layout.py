"""Plain data -> the bytes of a file: stable, and readable in a diff.

The YAML reads the same with YAML 1.1 and YAML 1.2 readers: what either would take for something
other than text is quoted, and there are no anchors.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import cache
from typing import Any

from toolgen.errors import Problem, ToolsetError
from toolgen.tools.files.places import Place, written

_FLOW_WIDTH = 120
_NO_WIDTH = 2**31 - 1  # nothing is folded
# Text that YAML 1.2 takes for a number and PyYAML's YAML 1.1 resolvers do not, and 1.1's short booleans.
_QUOTED_TOO = re.compile(
    r"(?:[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|0o[0-7]+|0x[0-9a-fA-F]+|[yYnN])\Z"
)
# Line breaks of one YAML version or another: escaped, since a reader may turn them into `\n`.
_ODD_BREAKS = re.compile("[\r\x85\u2028\u2029]")


def render_json(data: Any) -> bytes:
    """JSON with two spaces of indent and a newline at the end."""
    from pydantic_core import PydanticSerializationError, to_json

    try:
        return to_json(data, indent=2) + b"\n"  # many times as fast as json with an indent
    except PydanticSerializationError:
        pass  # also what is nested deeper than it goes
    try:
        return json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False).encode() + b"\n"
    except (ValueError, RecursionError) as error:
        raise _cannot(data, error) from None


def render_yaml(data: Any) -> bytes:
    """Block style YAML; a short collection of scalars stands on one line, long text is a literal block."""
    import yaml

    try:
        text = yaml.dump(data, Dumper=_dumper(), allow_unicode=True, sort_keys=False, width=_NO_WIDTH)
        return str(text).encode()
    except (UnicodeEncodeError, RecursionError) as error:
        raise _cannot(data, error) from None


@cache
def _dumper() -> Any:
    import yaml

    base: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)

    class Dumper(base):  # type: ignore[misc]
        """Writes dict, list, str, int, float, bool and None."""

        def ignore_aliases(self, data: Any) -> bool:
            return True

        def represent(self, data: Any) -> None:
            root = self.represent_data(data)
            root.flow_style = False
            self.serialize(root)

    def text(dumper: Any, data: str) -> Any:
        style = None
        if _ODD_BREAKS.search(data):
            style = '"'
        elif "\n" in data:
            style = "|"
        return yaml.ScalarNode("tag:yaml.org,2002:str", data, style=style)

    def mapping(dumper: Any, data: dict[str, Any]) -> Any:
        pairs = [(dumper.represent_data(key), dumper.represent_data(value)) for key, value in data.items()]
        flow = fits(node for pair in pairs for node in pair)
        return yaml.MappingNode("tag:yaml.org,2002:map", pairs, flow_style=flow)

    def sequence(dumper: Any, data: list[Any]) -> Any:
        nodes = [dumper.represent_data(item) for item in data]
        return yaml.SequenceNode("tag:yaml.org,2002:seq", nodes, flow_style=fits(nodes))

    def fits(nodes: Iterable[Any]) -> bool:
        length = 0
        for node in nodes:
            if type(node) is not yaml.ScalarNode or node.style is not None:
                return False
            length += len(node.value) + 2
        return length <= _FLOW_WIDTH

    Dumper.add_representer(str, text)
    Dumper.add_representer(dict, mapping)
    Dumper.add_representer(list, sequence)
    Dumper.add_implicit_resolver("tag:yaml.org,2002:float", _QUOTED_TOO, list("-+.0123456789yYnN"))
    return Dumper


def _cannot(data: Any, error: Exception) -> ToolsetError:
    message = "the toolset cannot be written"
    if isinstance(error, RecursionError):
        return ToolsetError(f"{message}: it is nested too deep")
    place = _surrogate(data)
    if place is None:
        return ToolsetError(f"{message}: {error}")
    hint = "replace it with the character that was meant"
    return ToolsetError(message, [Problem("half of a surrogate pair is no text", written(place), hint=hint)])


def _surrogate(data: Any) -> Place | None:
    """Where text stands that UTF-8 cannot hold."""
    waiting: list[tuple[Place, Any]] = [((), data)]
    while waiting:
        place, here = waiting.pop()
        if isinstance(here, dict):
            waiting.extend((place, key) for key in here)
            waiting.extend(((*place, _printable(key)), value) for key, value in here.items())
        elif isinstance(here, list):
            waiting.extend(((*place, index), value) for index, value in enumerate(here))
        elif isinstance(here, str) and here != _printable(here):
            return place
    return None


def _printable(text: str) -> str:
    return text.encode(errors="replace").decode()
