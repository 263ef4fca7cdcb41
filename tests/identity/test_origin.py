from __future__ import annotations

import pytest

from toolgen.identity.origin import Origin


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("https://h.example", "https://h.example:443/a?b#c"),
        ("http://h.example", "HTTP://H.EXAMPLE:80"),
        ("https://h.example", "https://h.example./"),
        ("https://h.example", "https://h.example:"),
        ("https://[::1]:8443", "https://[0:0:0:0:0:0:0:1]:8443/x"),
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080/a/../b@c"),
    ],
)
def test_path_query_case_and_the_default_port_do_not_make_another_origin(one: str, other: str) -> None:
    assert Origin.of(one) is not None
    assert Origin.of(one) == Origin.of(other)


@pytest.mark.parametrize(
    "other",
    [
        "http://h.example",
        "http://h.example:443",
        "https://h.example:8443",
        "https://a.h.example",
        "https://h.example.test",
        "https://h_example",
        "https://127.0.0.1",
    ],
)
def test_another_scheme_host_or_port_is_another_origin(other: str) -> None:
    assert Origin.of(other) is not None
    assert Origin.of(other) != Origin.of("https://h.example")


@pytest.mark.parametrize(
    "url",
    [
        "",
        "h.example",
        "/v1",
        "//h.example",
        "ftp://h.example",
        "ws://h.example",
        "file:///etc/passwd",
        "https://",
        "https:///x",
        "https://.",
        "https://a..example",
        "https://h.example:0",
        "https://h.example:99999",
        "https://h.example:x",
        "https://[fe80::1%25eth0]",
        "https://[v1.a]",
        "https://[::1",
        "https://user@h.example",
        "https://evil.test\\@h.example",
        "https://evil.test\\.h.example",
        "https://h.exa\tmple",
        "https://h.exa\nmple",
        " https://h.example",
        "https://h.example ",
        "https://h%2eexample",
        "https://münchen.example",
        "https://ⓔxample.test",
        "https://h.example\x00",
    ],
)
def test_what_could_be_read_as_two_hosts_or_none_has_no_origin(url: str) -> None:
    assert Origin.of(url) is None


@pytest.mark.parametrize(
    "text", ["https://h.example", "http://h.example:443", "https://[::1]:8443", "http://127.0.0.1:8080"]
)
def test_an_origin_is_written_as_a_url_that_has_it(text: str) -> None:
    origin = Origin.of(text)
    assert origin is not None
    assert str(origin) == text
    assert Origin.of(str(origin)) == origin
