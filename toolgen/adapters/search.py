"""Finding tools by words: which of hundreds a model wants."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from math import log

from toolgen.adapters.offered import OfferedTool

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_a-zA-Z]+")
_NAME, _PATH, _PROSE = 4.0, 2.0, 1.0  # what a word is worth by where it stands


def search(tools: Iterable[OfferedTool], query: str, limit: int = 10) -> list[OfferedTool]:
    """The tools that have words of the query, the best first: rarer words count for more, those of names for most."""
    listed = list(tools)
    wanted = set(words(query))
    found = [(_weights(tool), tool) for tool in listed]
    spread = Counter(word for weights, _ in found for word in weights if word in wanted)
    scored = []
    for position, (weights, tool) in enumerate(found):
        score = sum(weights[word] * log(1 + len(listed) / spread[word]) for word in wanted if word in weights)
        if score:
            scored.append((-score, position, tool))
    return [tool for _, _, tool in sorted(scored, key=lambda one: one[:2])[:limit]]


def words(text: str) -> list[str]:
    """The words of a text in lower case, those of `camelCase` and `snake_case` apart, plurals as their singular."""
    return [_singular(word.lower()) for word in _WORD.findall(text)]


def _singular(word: str) -> str:
    if len(word) > 4 and word.endswith("ies"):
        return f"{word[:-3]}y"
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def _weights(tool: OfferedTool) -> dict[str, float]:
    found: dict[str, float] = {}
    endpoint = tool.api_tool.endpoint if tool.api_tool is not None else None
    path = f"{endpoint.method} {endpoint.path} {tool.api_tool.group}" if endpoint and tool.api_tool else ""
    for weight, text in ((_PROSE, tool.description), (_PATH, path), (_NAME, f"{tool.name} {tool.tool}")):
        for word in words(text):
            found[word] = max(weight, found.get(word, 0.0))
    return found
