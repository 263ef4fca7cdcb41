"""What `*` means, said a second time, and texts on which two readings of it could differ."""

from __future__ import annotations

from hypothesis import strategies as st

from toolgen.openapi.endpoint import endpoint_path

# Where a path can go wrong, and where two grammars of paths could disagree.
PIECES = [
    *("/", "/", "/", "//", ".", "..", "a", "A", "b", "~", "-_", "@:", "!$&'()", "+,;=", "|", "[", "]", "?", "#", "\\"),
    *("%", "%2", "%2F", "%2f", "%5C", "%00", "%41", "%2E", "%7e", "%20", "%c3", "%C3", "%A9", "é", " ", "\n", "\0"),
    *("{", "}", "{}", "{a}", "{a b}", "{é}", "{a/b}", "{/a}", "{a/}", "{a//b}", "{?a#}", "{%2f}", "{..}", "('{a}')"),
]
NASTY_PATHS = st.lists(st.sampled_from(PIECES), max_size=7).map("".join) | st.lists(
    st.sampled_from(PIECES), max_size=7
).map(lambda pieces: "/" + "".join(pieces))


def glob_matches(pattern: str, text: str) -> bool:
    """Whether the whole text matches, found by filling a table: row by row of the pattern, each prefix of the text."""
    row = [True] + [False] * len(text)
    for char in pattern:
        below = [char == "*" and row[0]]
        for index, found in enumerate(text):
            below.append((row[index + 1] or below[index]) if char == "*" else (row[index] and char == found))
        row = below
    return row[-1]


def is_normal(path: str) -> bool:
    """Whether the one function that makes endpoints leaves a path as it is."""
    try:
        return endpoint_path(path) == path
    except ValueError:
        return False


def _key(path: str) -> str:
    try:
        return endpoint_path(path)
    except ValueError:
        return "/"


# Paths of endpoints, as made from anything a document could have.
NORMAL_PATHS = NASTY_PATHS.map(_key) | st.lists(
    st.sampled_from(["pets", "{petId}", "users('{id}')", "{name=projects/*}:run", "a.b", "v1", "%C3%A9", "~", "root:"]),
    max_size=4,
).map(lambda segments: "/" + "/".join(segments))


@st.composite
def starred(draw: st.DrawFn, text: str) -> str:
    """A pattern made of a text: up to three pieces of it, empty ones too, are each a `*`."""
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=6)))
    pieces, start = [], 0
    for begin, end in zip(cuts[::2], cuts[1::2], strict=False):
        pieces += [text[start:begin], "*"]
        start = end
    return "".join([*pieces, text[start:]])
