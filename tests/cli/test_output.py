from __future__ import annotations

import io
import json

import pytest

from toolgen.cli.facts import goes_elsewhere
from toolgen.cli.output import Page, count, to_json, visible
from toolgen.tools.model import Server, Toolset


def printed(width: int, monkeypatch: pytest.MonkeyPatch, *rows: list[tuple[str, str]]) -> str:
    monkeypatch.setenv("COLUMNS", str(width))
    stream = io.StringIO()
    page = Page(stream)
    page.table(("tool", "endpoint", "args", "flags"), rows, indent=2)
    page.print()
    return stream.getvalue()


@pytest.mark.parametrize("char", ["\x00", "\x1b", "\x7f", "\x9b", "\u202e", "\u200b", "\ufeff", "\U000e0041", "\ud800"])
def test_hidden_characters_become_visible(char):
    assert visible(f"a{char}b").encode() == b"a" + char.encode("unicode_escape") + b"b"
    assert char not in to_json({char: char})
    assert json.loads(to_json({char: char})) == {char: char}


@pytest.mark.parametrize("text", ["plain", "two\nlines\tand a tab", "Größe 日本 👩\u200d🚀", "a\u00a0b"])
def test_what_a_person_can_read_stays(text):
    assert visible(text) == text
    assert json.loads(to_json(text)) == text


def test_no_text_makes_up_a_line_of_its_own(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    stream, text = io.StringIO(), "a\nallowed: 9 tools\tb"
    page = Page(stream)
    page.line(text)
    page.facts([(text, text, "")])
    page.table(("tool", "reason"), [[(text, ""), (text, "")]])
    page.print()
    told = "a\\nallowed: 9 tools\\tb"
    lines = ["".join(line.split()) for line in stream.getvalue().splitlines()]
    assert lines == ["".join(told.split()), "".join(told.split()) * 2, "toolreason", "".join(told.split()) * 2]


def test_a_description_keeps_its_lines(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    stream = io.StringIO()
    page = Page(stream)
    page.paragraphs("Finds pets.\n\nAll of \x1b[31mthem.")
    page.print()
    assert stream.getvalue() == "Finds pets.\n\nAll of \\x1b[31mthem.\n"


def test_markup_in_text_is_text(monkeypatch):
    assert "[red]x[/red] :smile:" in printed(
        80, monkeypatch, [("[red]x[/red] :smile:", ""), ("b", ""), ("1", ""), ("c", "")]
    )


def test_a_table_that_does_not_fit_takes_two_lines_per_row(monkeypatch):
    row = [("listPets", ""), ("GET /pets", ""), ("2", ""), ("read", "")]
    assert printed(80, monkeypatch, row) == "  tool      endpoint   args  flags\n  listPets  GET /pets  2     read\n"
    assert printed(24, monkeypatch, row) == "  listPets  read\n      GET /pets  args 2\n"


def test_counts_are_words():
    assert [count(n, "tool") for n in (0, 1, 2, 1234)] == ["0 tools", "1 tool", "2 tools", "1,234 tools"]


@pytest.mark.parametrize(
    ("own", "elsewhere"),
    [
        (None, False),
        ("https://a.example/v2", False),
        ("https://A.example:443", False),
        ("http://a.example", True),
        ("https://a.example:8443", True),
        ("https://b.example", True),
        ("https://a.example@b.example", True),
        ("https://[broken", True),
        (Server(url="https://{h}.example", variables={"h": {"default": "a"}}), False),
        (Server(url="https://{h}.example", variables={"h": {"default": "b"}}), True),
    ],
)
def test_another_origin_is_recognised(own, elsewhere):
    import toolgen

    document = {"openapi": "3.1.0", "info": {"title": "A", "version": "1"}, "paths": {"/x": {"get": {"responses": {}}}}}
    made: Toolset = toolgen.generate(document, server="https://a.example/v1")
    tool = made.tools[0]
    tool = tool.model_copy(update={"request": tool.request.model_copy(update={"server": own})})
    assert goes_elsewhere(tool, made) is elsewhere
