from __future__ import annotations

from typing import Any

import pytest
from small_documents import parameter, tool_of

from toolgen.dispatch.named import named_secrets
from toolgen.request.resolve import resolve

OBJECT = {"type": "object", "additionalProperties": True}
VALUE = "v+&/= é%41x"  # takes an encoding everywhere
HEADER = "v+&/= %41x"


def found(arguments: dict[str, Any], *parameters: Any, path: str = "/x", body: str | None = None) -> list[str]:
    operation: dict[str, Any] = {"parameters": list(parameters)}
    if body:
        operation["requestBody"] = {"content": {body: {"schema": OBJECT}}}
    return named_secrets(resolve(tool_of(operation, path=path), arguments, server="https://api.example/v1"))


@pytest.mark.parametrize(
    ("name", "where"), [("password", "query"), ("X-Api-Key", "header"), ("session", "cookie"), ("token", "path")]
)
def test_a_parameter_that_is_named_like_a_secret_holds_one(name: str, where: str) -> None:
    path = "/x/{token}" if where == "path" else "/x"
    value = {"header": HEADER, "cookie": "v-41xyzuvw", "path": "v+&= é41x"}.get(where, VALUE)
    assert found({name: value}, parameter(name, where), path=path) == [value]


@pytest.mark.parametrize("media", ["application/json", "application/x-www-form-urlencoded", "multipart/form-data"])
def test_a_field_of_a_body_that_is_named_like_a_secret_holds_one(media: str) -> None:
    assert found({"requestBody": {"note": "plain text", "clientSecret": VALUE}}, body=media) == [VALUE]


def test_every_text_below_such_a_name_is_one() -> None:
    body = {"a": [{"user": {"password": {"old": "old-value", "new": ["new-value", 1234567890, None, True]}}}]}
    assert found({"requestBody": body}, body="application/json") == ["old-value", "new-value", "1234567890"]


@pytest.mark.parametrize(
    "given", [{"q": VALUE}, {"password": "short"}, {"page_token": VALUE}, {"q": "password=hunter2hunter2"}]
)
def test_other_values_and_short_ones_are_none(given: dict[str, str]) -> None:
    assert found(given, parameter(next(iter(given)))) == []
