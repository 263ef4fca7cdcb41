"""The catalogue reads well, and text of a document can do nothing in it."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from toolgen.tools.export import export
from toolgen.tools.export.escaping import Anchors, code, prose
from toolgen.tools.model import (
    Annotations,
    Body,
    DocumentInfo,
    Endpoint,
    Leaf,
    RequestTemplate,
    Response,
    Tool,
    Toolset,
)

EVIL = (
    "<script>alert(1)</script> <img src=x onerror=alert(1)> ![i](http://h.test/i.png) [l](javascript:alert(1)) | a | b |"
    " **bold** `code` ~~s~~ &lt; https://h.test www.h.test a@h.test <http://h.test> \\| \\\\ $x$ [^1] "
)


def catalogue(text: str, name: str = "send", **fields: Any) -> str:
    hints = Annotations(
        title=text, read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=True
    )
    body = {
        "type": "object",
        "properties": {text: {"type": "string", "description": text}, "tag": {"$ref": "#/$defs/Tag"}},
        "required": ["tag"],
    }
    parameters = {
        "type": "object",
        "properties": {"id": {"type": "integer", "description": text}, "requestBody": {"$ref": "#/$defs/Pet"}},
        "required": ["id"],
    }
    request = RequestTemplate(
        path=(Leaf(name="id", value="{{ id }}"),),
        body=Body(value="{{ requestBody }}", media_type="application/json"),
    )
    tool = Tool(
        name=name,
        description=text,
        group=text,
        endpoint=Endpoint(method="put", path="/pets/{id}"),
        annotations=hints,
        parameters=parameters,
        request=request,
        response=Response(media_types=("application/json", text), schema={"$ref": "#/$defs/Pet"}, headers=("ETag",)),
        **fields,
    )
    schemas = {
        "Pet": {"allOf": [{"$ref": "#/$defs/Base"}, body]},
        "Base": {"properties": {"base": {"enum": [text, 1]}}},
    }
    schemas["Tag"] = {"type": "array", "items": {"type": ["string", "null"]}}
    found = Toolset(api="pets", document=DocumentInfo(title=text, version=text), schemas=schemas, tools=(tool,))
    return str(export(found, "markdown").data)


def html_of(text: str) -> str:
    return MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render(text)


def shape(html: str) -> list[str]:
    """The tags of a page without text; the anchors we make ourselves are left out."""
    return [tag for tag in re.findall(r"</?\w+", html) if tag not in ("<code", "</code")]


def test_a_reader_finds_everything() -> None:
    page = catalogue("Pets")
    for part in (
        "# Pets",
        "- [`send`](#send)",
        "## Pets",
        "### `send`",
        "`PUT /pets/{id}`",
        "| `id` | path | integer | yes |",
    ):
        assert part in page, part
    assert "| `tag` | `Tag` | yes |" in page
    assert '| `base` | `"Pets"`, `1` | no |' in page
    assert "Answers with `application/json`, `Pets`: `Pet`. Headers: `ETag`." in page


def test_deprecated_tools_say_so() -> None:
    assert "(deprecated)" in catalogue("Pets", deprecated=True)


@pytest.mark.parametrize(
    "text", [EVIL, "# h", "- l", "1. n", "> q", "a\n\n# b\n\n---\n\n| x |", "```\ncode", "=== x", "\u202eevil\x00"]
)
def test_text_of_the_document_makes_no_markup(text: str) -> None:
    page, plain = html_of(catalogue(text)), html_of(catalogue("x"))
    assert "<script" not in page
    assert "<img" not in page
    assert re.findall(r'<a href="([^"]*)"', page) == ["#send"]
    assert [t for t in shape(page) if t not in ("<p", "</p")] == [t for t in shape(plain) if t not in ("<p", "</p")]


@settings(deadline=None)
@given(st.text(alphabet="ab|`*_[]()<>!#&\\~$\n\t -+=1.:/@w\u202e\x00\"'{}", max_size=40))
def test_any_text_stays_in_its_cell(text: str) -> None:
    table = f"| a | b | c |\n| --- | --- | --- |\n| {code('x', cell=True)} | {prose(text, cell=True)} | {code(text, cell=True)} |\n"
    html = html_of(table)
    assert html.count("<td") == 3
    assert set(shape(html)) <= {f"{c}{t}" for c in ("<", "</") for t in ("table", "thead", "tbody", "tr", "th", "td")}


@settings(deadline=None)
@given(st.text(alphabet="ab|`*_[]()<>!#&\\~$\n -+=1.:/@w", max_size=40))
def test_prose_reads_as_it_was_written(text: str) -> None:
    html = html_of(prose(text))
    shown = re.sub(r"</?(?:p|code)>", "", html).replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", '"')
    assert shown.replace("&amp;", "&").split() == text.split()


def test_addresses_are_not_live() -> None:
    for text in ("https://h.test/x", "www.h.test", "a@h.test", "HTTP://h.test", "mailto:a", "see:https://h.test"):
        assert prose(text) == f"`{text}`"


def test_a_code_span_holds_backticks() -> None:
    assert code("a`b") == "``a`b``"
    assert code("`") == "`` ` ``"
    assert code("") == ""


def test_headings_that_repeat_get_numbers() -> None:
    anchors = Anchors()
    assert [anchors.add(text) for text in ("Pets", "pets", "List all, now!", "pets")] == [
        "pets",
        "pets-1",
        "list-all-now",
        "pets-2",
    ]
