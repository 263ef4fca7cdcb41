"""Text of documents: what no person sees is out, what is cut says so."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openapi.documents import one, tool

from toolgen.openapi.text import CUT, clean, one_line


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("plain", "plain"),
        ("  around\n", "around"),
        ("line\r\nline\tx", "line\nline\tx"),
        ("be\x07ll", "bell"),
        ("\x1b[31mred\x1b[0m", "[31mred[0m"),
        ("zero\u200bwidth", "zerowidth"),
        ("\u202eright to left", "right to left"),
        ("soft\u00adhyphen", "softhyphen"),
        ("\ufeffmark", "mark"),
        ("tag\U000e0041\U000e007f", "tag"),
        ("half \ud800", "half"),
        ("nel\x85", "nel"),
        ("فارسی\u200cها", "فارسی\u200cها"),
        ("👩\u200d💻", "👩\u200d💻"),
        ("naïve ☃", "naïve ☃"),
    ],
)
def test_what_no_person_sees_is_out_and_what_scripts_need_stays(text: str, cleaned: str) -> None:
    assert clean(text, 100) == cleaned


def test_a_cut_is_marked_and_fits() -> None:
    assert clean("a" * 50, 50) == "a" * 50
    made = clean("a" * 51, 50)
    assert made.endswith(CUT)
    assert len(made) == 50


def test_one_line_is_one_line() -> None:
    assert one_line(" a\n\n b\tc ", 20) == "a b c"


@given(st.text(), st.integers(20, 60))
def test_cleaning_is_idempotent_and_keeps_to_the_cap(text: str, cap: int) -> None:
    made = clean(text, cap)
    assert len(made) <= cap
    assert clean(made, cap) == made
    line = one_line(text, cap)
    assert len(line) <= cap
    assert "\n" not in line


def test_document_text_is_data_everywhere() -> None:
    hostile = "${env:HOME} {{ 7*7 }} {% for x in y %} ${caller:token} \u202e\u200b"
    made = tool(
        one(
            {
                "summary": hostile,
                "description": hostile,
                "operationId": hostile,
                "tags": [hostile],
                "parameters": [
                    {
                        "name": hostile,
                        "in": "query",
                        "description": hostile,
                        "schema": {"default": hostile, "enum": [hostile]},
                    }
                ],
                "requestBody": {
                    "description": hostile,
                    "content": {
                        "application/json": {"schema": {"type": "object", "title": hostile, "example": hostile}}
                    },
                },
            }
        )
    )
    (leaf,) = made.request.query
    assert leaf.name == hostile
    assert leaf.value.startswith("{{ ")
    assert "7*7" not in leaf.value
    assert made.request.body is not None
    assert made.request.body.value == "{{ requestBody }}"
    assert "49" not in made.description
    assert "{{ 7*7 }}" in made.description
    assert "\u202e" not in made.description + made.annotations.title
