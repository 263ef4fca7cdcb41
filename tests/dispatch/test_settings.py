"""What `Http` takes, in Python and in a toolgen.yaml, and that it tells every fault at once."""

from __future__ import annotations

import math
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from pydantic.alias_generators import to_camel

from toolgen.dispatch.settings import ClientCertificate, Http
from toolgen.errors import ConfigError, ToolgenError, UsageError

PASSWORD = "pr0xy-pass"


def told(error: ToolgenError) -> dict[str, str]:
    return {problem.where: problem.message for problem in error.problems}


def test_the_defaults_bound_everything() -> None:
    http = Http()
    assert (http.total, http.retries, http.max_retry_after) == (60, 2, 30)
    assert (http.max_answer_bytes, http.max_result_chars) == (10_000_000, 40_000)
    assert all(getattr(http, one.name) is not None for one in fields(Http) if one.metadata)


def test_a_file_says_the_same_as_python(tmp_path: Path) -> None:
    pem = tmp_path / "ca.pem"
    pem.write_text("x")
    mapping = {
        "connect": 1,
        "maxRetryAfter": 0,
        "retries": 0,
        "proxy": f"http://me:{PASSWORD}@proxy.example:3128",
        "caBundle": str(pem),
        "clientCertificate": {"certificate": str(pem), "key": str(pem), "password": "${env:KEY_PASSWORD}"},
        "maxResultChars": 5000,
        "streamSeconds": 0.5,
        "total": None,
    }
    assert Http.parse(mapping, "http") == Http(
        connect=1,
        max_retry_after=0,
        retries=0,
        proxy=f"http://me:{PASSWORD}@proxy.example:3128",
        ca_bundle=str(pem),
        client_certificate=ClientCertificate(str(pem), str(pem), "${env:KEY_PASSWORD}"),
        max_result_chars=5000,
        stream_seconds=0.5,
    )
    assert Http.parse({}, "http") == Http()


@pytest.mark.parametrize("name", [one.name for one in fields(Http) if one.metadata])
@pytest.mark.parametrize("value", [-1, math.nan, math.inf, 10**12, True, "5"])
def test_each_number_has_bounds_and_is_a_number(name: str, value: Any) -> None:
    with pytest.raises(UsageError) as caught:
        Http(**{name: value})
    assert list(told(caught.value)) == [name]
    with pytest.raises(ConfigError) as parsed:
        Http.parse({to_camel(name): value}, "apis.petstore.http")
    assert told(parsed.value) == {f"apis.petstore.http.{to_camel(name)}": told(caught.value)[name]}


@pytest.mark.parametrize(("name", "value"), [("total", 0), ("connect", 0.0), ("retries", 1.5), ("stream_events", 0)])
def test_no_time_is_zero_and_no_count_has_a_fraction(name: str, value: Any) -> None:
    with pytest.raises(UsageError):
        Http(**{name: value})


def test_all_problems_are_told_at_once_with_the_nearest_key() -> None:
    mapping = {
        "total": "1",
        "retrys": 1,
        "proxy": "proxy",
        "caBundle": "/no/such.pem",
        "clientCertificate": {"cert": 1},
    }
    with pytest.raises(ConfigError) as caught:
        Http.parse(mapping, "http")
    found = told(caught.value)
    assert list(found) == [f"http.{key}" for key in ("total", "retrys", "proxy", "caBundle", "clientCertificate.cert")]
    assert found["http.retrys"] == "unknown key; did you mean 'retries'?"
    assert found["http.caBundle"] == "there is no file '/no/such.pem'"
    with pytest.raises(UsageError) as in_python:
        Http(total=0, retries=-1, proxy="")
    assert list(told(in_python.value)) == ["total", "retries", "proxy"]


@pytest.mark.parametrize("value", [None, [], "30"])
def test_what_is_no_mapping_is_refused(value: Any) -> None:
    for given, place in ((value, "http"), ({"clientCertificate": value or []}, "http.clientCertificate")):
        with pytest.raises(ConfigError) as caught:
            Http.parse(given, "http")
        assert list(told(caught.value)) == [place] * len(caught.value.problems)


@pytest.mark.parametrize("password", [PASSWORD, "${caller:token}", "${vault:x}", 7])
def test_a_password_is_a_reference_and_a_literal_one_is_not_shown(tmp_path: Path, password: Any) -> None:
    pem = tmp_path / "c.pem"
    pem.write_text("x")
    with pytest.raises(ConfigError) as caught:
        Http.parse({"clientCertificate": {"certificate": str(pem), "password": password}}, "http")
    (problem,) = caught.value.problems
    assert problem.message.startswith("password: ")
    assert PASSWORD not in str(caught.value)


@pytest.mark.parametrize("path", ["certificate", "key"])
def test_a_client_certificate_names_files_that_are_there(tmp_path: Path, path: str) -> None:
    pem = tmp_path / "c.pem"
    pem.write_text("x")
    certificate = replace(ClientCertificate(str(pem), str(pem)), **{path: str(tmp_path / "none.pem")})
    with pytest.raises(UsageError, match=f"{path}: there is no file"):
        Http(client_certificate=certificate)


@pytest.mark.parametrize(
    "proxy",
    [
        "socks5://h:1",
        "proxy.example:3128",
        "http://",
        "http://h:0",
        "http://h:99999",
        "http://h x",
        f"ftp://u:{PASSWORD}@h",
        f"http://u:{PASSWORD}@\n",
        7,
    ],
)
def test_a_proxy_is_an_http_url_and_never_shown(proxy: Any) -> None:
    with pytest.raises(UsageError) as caught:
        Http(proxy=proxy)
    assert list(told(caught.value)) == ["proxy"]
    assert PASSWORD not in str(caught.value)


def test_neither_a_proxy_nor_a_password_is_in_a_repr(tmp_path: Path) -> None:
    pem = tmp_path / "c.pem"
    pem.write_text("x")
    certificate = ClientCertificate(str(pem), password="${env:KEY_PASSWORD}")
    http = Http(proxy=f"http://me:{PASSWORD}@proxy.example:3128", client_certificate=certificate)
    assert PASSWORD not in repr(http)
    assert "KEY_PASSWORD" not in repr(http)
