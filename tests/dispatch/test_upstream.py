from __future__ import annotations

from typing import Any

import pytest
from small_documents import document, made, parameter

from toolgen.dispatch.upstream import Upstream, upstream
from toolgen.errors import AddressRefused, CredentialsError, ServerError, ToolgenError, UsageError
from toolgen.identity.caller import Caller
from toolgen.identity.origin import Origin
from toolgen.tools.model import Leaf, Toolset

SCHEMES = {"user": {"type": "http", "scheme": "bearer"}}


def toolset(server: Any = "https://api.example/v1", own: Any = None, **leaf: Any) -> Toolset:
    operation: dict[str, Any] = {
        "operationId": "op",
        "security": [{"user": []}],
        "parameters": [parameter("q")],
        "responses": {"200": {"description": "ok"}},
    }
    if own:
        operation["servers"] = own
    servers = [{"url": server} if isinstance(server, str) else server]
    found = made(
        document({"/x": {"get": operation}}, servers=servers, components={"securitySchemes": SCHEMES}), api="small"
    )
    if not leaf:
        return found
    (tool,) = found.tools
    request = tool.request.model_copy(update={"header": (Leaf(**leaf),)})
    return found.model_copy(update={"tools": (tool.model_copy(update={"request": request}),)})


def url(found: Upstream) -> str:
    return found.resolve(found.toolset.tools[0], {}, None).url


REGION = {"url": "https://{region}.example/v1", "variables": {"region": {"default": "eu", "enum": ["eu", "us"]}}}


@pytest.mark.parametrize(
    ("given", "options", "expected"),
    [
        ("https://api.example/v1", {}, "https://api.example/v1/x"),
        ("https://api.example/v1", {"server": "http://127.0.0.1:8080"}, "http://127.0.0.1:8080/x"),
        (REGION, {}, "https://eu.example/v1/x"),
        (REGION, {"server_variables": {"region": "us"}}, "https://us.example/v1/x"),
        (REGION, {"server_variables": {"region": "us"}, "server": "https://other.example"}, "https://other.example/x"),
    ],
)
def test_a_request_goes_to_the_server_and_its_credentials_are_for_that_origin(
    given: Any, options: dict[str, Any], expected: str
) -> None:
    found = upstream(toolset(given), **options)
    assert url(found) == expected
    assert found.credentials.origin == Origin.of(expected)


def test_variables_go_to_the_servers_that_have_them() -> None:
    own = [{"url": "https://{shard}.other.example", "variables": {"shard": {"default": "s1"}}}]
    found = upstream(toolset(REGION, own), server_variables={"region": "us", "shard": "s2"})
    assert url(found) == "https://s2.other.example/x"
    assert found.credentials.origin == Origin("https", "us.example", 443)


@pytest.mark.parametrize(
    ("given", "options", "error", "said"),
    [
        (REGION, {"server_variables": {"regoin": "us"}}, UsageError, "did you mean 'region'"),
        ("https://api.example", {"server": "//api.example"}, ServerError, "no http"),
        ("https://api.example", {"server": "file:///etc"}, ServerError, "no http"),
        ("https://api.example", {"server": "https://user@api.example"}, ServerError, "no http"),
    ],
)
def test_servers_and_variables_that_are_none_are_errors_at_once(
    given: Any, options: dict[str, Any], error: type[ToolgenError], said: str
) -> None:
    with pytest.raises(error, match=said):
        upstream(toolset(given), **options)


@pytest.mark.parametrize(
    ("given", "options", "host", "opened"),
    [
        ("http://127.0.0.1:80", {}, "127.0.0.1", True),
        ("https://api.example", {}, "127.0.0.1", False),
        ("https://api.example", {"server": "http://127.0.0.1"}, "127.0.0.1", True),
        ("http://127.0.0.1", {"server": "https://api.example"}, "127.0.0.1", False),
        ("https://api.example", {"allow_private": ["127.0.0.1"]}, "127.0.0.1", True),
    ],
)
def test_a_literal_address_is_open_where_the_operator_wrote_it(
    given: str, options: dict[str, Any], host: str, opened: bool
) -> None:
    found = upstream(toolset(given), **options)
    if opened:
        assert found.allowed.check(host, [host], 80) == [host]
    else:
        with pytest.raises(AddressRefused):
            found.allowed.check(host, [host], 80)


def test_what_listens_on_another_port_of_the_operator_s_machine_is_not_open() -> None:
    found = upstream(toolset("http://127.0.0.1:8080", [{"url": "http://127.0.0.1:22"}]))
    assert found.allowed.check("127.0.0.1", ["127.0.0.1"], 8080) == ["127.0.0.1"]
    with pytest.raises(AddressRefused):
        found.allowed.check("127.0.0.1", ["127.0.0.1"], 22)


def test_a_server_variable_may_be_a_number_and_must_be_allowed() -> None:
    server = {"url": "https://api.example:{port}", "variables": {"port": {"default": "443", "enum": ["443", "8443"]}}}
    assert url(upstream(toolset(server), server_variables={"port": 8443})) == "https://api.example:8443/x"  # type: ignore[dict-item]
    with pytest.raises(ServerError):
        upstream(toolset(server), server_variables={"port": "22"})


def test_the_address_of_an_operation_s_own_server_is_not_open() -> None:
    found = upstream(toolset("https://api.example", [{"url": "http://10.0.0.1"}]))
    with pytest.raises(AddressRefused):
        found.allowed.check("10.0.0.1", ["10.0.0.1"])


@pytest.mark.parametrize("value", ["${caller:token}", "u ${caller:userId}"])
def test_references_to_the_caller_in_a_toolset_can_be_switched_off(value: str) -> None:
    given = toolset(name="X-User", value=value)
    assert upstream(given).resolve(given.tools[0], {}, Caller("u")).deferred
    with pytest.raises(CredentialsError, match="op: header X-User"):
        upstream(given, caller_references=False)


def test_no_secret_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("S", "s3cr3t-value")
    assert "s3cr3t-value" not in repr(upstream(toolset(), credentials={"user": "${env:S}"}))
