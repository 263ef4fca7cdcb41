"""Which operations become tools: `METHOD /path`, `tag:NAME`, `operationId:NAME`.

In a path `*` stands for any run of characters within a segment and `**` for any run of segments;
in a tag, an operationId and a method `*` stands for any run. Everything else is literal.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from toolgen.errors import UsageError

_FORM = re.compile(r"([A-Za-z*!#$%&'+.^_`|~-]+)\s+(/\S*|\*\*?)")
_HINT = "write 'GET /pets/*', '/pets/**', 'tag:pets' or 'operationId:listPets'"


@dataclass(frozen=True, slots=True)
class Filter:
    """One entry of `include` or `exclude`. Raises UsageError if the text is none of the forms."""

    text: str
    method: re.Pattern[str] | None = None
    path: re.Pattern[str] | None = None
    tag: re.Pattern[str] | None = None
    operation_id: re.Pattern[str] | None = None

    @classmethod
    def parse(cls, text: str) -> Filter:
        stripped = text.strip()
        for prefix, key in (("tag:", "tag"), ("operationId:", "operation_id")):
            if stripped.startswith(prefix) and len(stripped) > len(prefix):
                return cls(text, **{key: _word(stripped[len(prefix) :].strip())})
        if stripped.startswith("/"):
            return cls(text, path=_path(stripped))
        match = _FORM.fullmatch(stripped)
        if match is None:
            raise UsageError(f"the filter {text!r} is none of the forms there are: {_HINT}")
        return cls(text, method=_word(match[1].lower()), path=_path(match[2]))

    def matches(self, method: str, path: str, tags: Sequence[str], operation_id: str | None) -> bool:
        """Whether the operation with this endpoint, these tags and this id is meant."""
        if self.tag is not None:
            return any(self.tag.fullmatch(tag) for tag in tags or ("General",))
        if self.operation_id is not None:
            return operation_id is not None and self.operation_id.fullmatch(operation_id) is not None
        if self.method is not None and not self.method.fullmatch(method):
            return False
        return self.path is not None and self.path.fullmatch(path) is not None


class Selection:
    """`include` (None means everything, an empty list nothing) less `exclude`; remembers what matched nothing."""

    def __init__(self, include: Sequence[str] | None, exclude: Sequence[str] | None) -> None:
        for given in (include, exclude):
            if isinstance(given, str):
                raise UsageError(f"include and exclude are lists of filters, this is the text {given!r}")
            for text in given or ():
                if not isinstance(text, str):
                    raise UsageError(f"a filter is text, this is {text!r}: {_HINT}")
        self.include = None if include is None else [Filter.parse(text) for text in include]
        self.exclude = [Filter.parse(text) for text in exclude or ()]
        self._used: set[int] = set()

    @property
    def is_set(self) -> bool:
        """Whether any filter was given."""
        return self.include is not None or bool(self.exclude)

    def takes(self, method: str, path: str, tags: Sequence[str], operation_id: str | None) -> bool:
        """Whether the operation is selected."""
        asked = (method, path, tags, operation_id)
        # Every filter is asked, so that the ones that match nothing are known.
        included = [f for f in self.include or () if f.matches(*asked)]
        excluded = [f for f in self.exclude if f.matches(*asked)]
        self._used.update(map(id, included + excluded))
        return (self.include is None or bool(included)) and not excluded

    def unused(self) -> list[str]:
        """The filters that matched no operation so far."""
        return [f.text for f in [*(self.include or ()), *self.exclude] if id(f) not in self._used]


def _word(text: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, re.split(r"\*+", text))), re.DOTALL)


def _path(text: str) -> re.Pattern[str]:
    pieces = []
    for part in re.split(r"(/\*\*(?=/|$)|^\*\*$|^\*$|\*+)", text):
        if part == "/**":
            pieces.append("(?:/.*)?")
        elif part in ("**", "*") and text == part:
            pieces.append(".*")
        elif part.startswith("*"):
            pieces.append("[^/]*")
        else:
            pieces.append(re.escape(part))
    return re.compile("".join(pieces), re.DOTALL)
