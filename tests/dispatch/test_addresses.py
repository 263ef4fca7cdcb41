from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolgen.dispatch.addresses import Allowed, literal
from toolgen.errors import AddressRefused, UsageError

CLOSED = {
    "10.0.0.1": "private",
    "172.16.0.1": "private",
    "172.31.255.255": "private",
    "192.168.1.1": "private",
    "fc00::1": "private",
    "fdff::1": "private",
    "127.0.0.1": "loopback",
    "127.255.255.254": "loopback",
    "::1": "loopback",
    "169.254.1.1": "link-local",
    "fe80::1": "link-local",
    "fe80::1%eth0": "link-local",
    "febf::1": "link-local",
    "fec0::1": "site-local",
    "100.64.0.1": "shared",
    "100.127.255.255": "shared",
    "0.0.0.0": "unspecified",
    "0.1.2.3": "unspecified",
    "::": "unspecified",
    "192.0.2.1": "for documentation",
    "198.51.100.1": "for documentation",
    "203.0.113.1": "for documentation",
    "2001:db8::1": "for documentation",
    "3fff::1": "for documentation",
    "198.18.0.1": "for benchmarks",
    "198.19.255.255": "for benchmarks",
    "2001:2::1": "for benchmarks",
    "224.0.0.1": "multicast",
    "239.255.255.255": "multicast",
    "ff02::1": "multicast",
    "255.255.255.255": "broadcast",
    "240.0.0.1": "reserved",
    "192.0.0.1": "reserved",
    "2001:20::1": "reserved",
    "100::1": "reserved",
    "4000::1": "reserved",
    "5f00::1": "reserved",
    "::ffff:10.0.0.1": "private",
    "::ffff:127.0.0.1": "loopback",
    "::ffff:169.254.169.254": "cloud metadata",
    "::10.0.0.1": "private",
    "::8.8.8.8": "an IPv4 address in IPv6",
    "2002:a00:1::": "private",
    "2002:808:808::": "an IPv4 address in IPv6",
    "64:ff9b::10.0.0.1": "private",
    "64:ff9b::169.254.169.254": "cloud metadata",
    "64:ff9b:1::10.0.0.1": "private",
    "64:ff9b:1::8.8.8.8": "an IPv4 address in IPv6",
    "2001:0:808:808::f5ff:fffe": "private",  # Teredo, the client is 10.0.0.1
    "169.254.169.254": "cloud metadata",
    "169.254.170.2": "cloud metadata",
    "169.254.170.23": "cloud metadata",
    "100.100.100.200": "cloud metadata",
    "192.0.0.192": "cloud metadata",
    "168.63.129.16": "cloud metadata",
    "fd00:ec2::254": "cloud metadata",
    "fd20:ce::254": "cloud metadata",
}
PUBLIC = ["8.8.8.8", "1.1.1.1", "172.32.0.1", "100.128.0.1", "2606:4700::1", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8"]


def is_open(address: str, *ranges: str, host: str = "api.example", servers: tuple[str, ...] = ()) -> bool:
    try:
        Allowed(servers, ranges).check(host, [address])
    except AddressRefused:
        return False
    return True


@pytest.mark.parametrize(("address", "kind"), CLOSED.items())
def test_an_address_that_is_not_public_is_refused_by_its_kind_and_the_refusal_names_the_setting(
    address: str, kind: str
) -> None:
    with pytest.raises(AddressRefused) as caught:
        Allowed().check("api.example", [address])
    for told in (f"({kind}", "api.example", "allow_private=[", "--allow-private ", "allowPrivate in toolgen.yaml"):
        assert told in str(caught.value)


def test_public_addresses_are_open_and_come_back_in_order_each_once() -> None:
    assert Allowed().check("api.example", [*PUBLIC, *PUBLIC]) == PUBLIC


def test_one_address_that_is_not_open_refuses_the_host() -> None:
    with pytest.raises(AddressRefused):
        Allowed().check("api.example", ["8.8.8.8", "10.0.0.1"])


@given(st.ip_addresses())
def test_nothing_is_open_that_the_standard_library_knows_as_special(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    judged = getattr(address, "ipv4_mapped", None) or address
    if is_open(str(address)):
        assert judged.is_global
        assert not judged.is_multicast


@given(st.ip_addresses(v=4))
def test_an_ipv4_address_is_as_open_mapped_as_it_is_plain_and_no_other_form_opens_it(
    address: ipaddress.IPv4Address,
) -> None:
    plain = is_open(str(address))
    assert is_open(f"::ffff:{address}") == plain
    assert is_open(f"64:ff9b::{address}") == plain
    assert not is_open(f"::{address}")
    assert not is_open(str(ipaddress.IPv6Address((0x2002 << 112) | (int(address) << 80))))


@pytest.mark.parametrize(
    ("server", "host", "address", "open_"),
    [
        ("10.0.0.5", "10.0.0.5", "10.0.0.5", True),
        ("::1", "::1", "::1", True),
        ("0.0.0.0", "0.0.0.0", "0.0.0.0", True),
        ("10.0.0.5", "10.0.0.6", "10.0.0.6", False),
        ("10.0.0.5", "10.0.0.5", "10.0.0.6", False),
        ("10.0.0.5", "other.example", "10.0.0.5", False),
        ("localhost", "localhost", "127.0.0.1", True),
        ("localhost", "localhost", "::1", True),
        ("LocalHost.", "localhost", "::1", True),
        ("localhost", "LOCALHOST.", "127.0.0.1", True),
        ("localhost", "localhost", "10.0.0.1", False),
        ("localhost", "localhost", "169.254.169.254", False),
        ("localhost", "127.0.0.1", "127.0.0.1", False),
        ("127.0.0.1", "localhost", "127.0.0.1", False),
        ("localhost", "other.example", "127.0.0.1", False),
        ("intern.example", "intern.example", "10.0.0.1", False),
        ("169.254.169.254", "169.254.169.254", "169.254.169.254", False),
        ("169.254.9.9", "169.254.9.9", "169.254.9.9", False),
        ("fd00:ec2::254", "fd00:ec2::254", "fd00:ec2::254", False),
        ("64:ff9b::169.254.169.254", "64:ff9b::a9fe:a9fe", "64:ff9b::a9fe:a9fe", False),
        ("0x7f.1", "127.0.0.1", "127.0.0.1", False),
    ],
)
def test_the_operators_own_server_opens_its_literal_address_or_loopback_for_that_host_only(
    server: str, host: str, address: str, open_: bool
) -> None:
    assert is_open(address, host=host, servers=(server,)) is open_


@pytest.mark.parametrize(
    ("entry", "address", "open_"),
    [
        ("10.0.0.0/8", "10.9.9.9", True),
        ("10.0.0.0/8", "::ffff:10.9.9.9", True),
        ("10.0.0.0/8", "64:ff9b::10.9.9.9", True),
        ("10.0.0.0/8", "192.168.0.1", False),
        ("10.0.0.0/8", "2002:a00:1::", False),
        ("2002::/16", "2002:a00:1::", False),
        ("2002::/16", "2002:808:808::", True),
        ("2001::/32", "2001:0:808:808::f5ff:fffe", False),
        ("2001::/32", "2001:0:a00:1::f7f7:f7f7", False),
        ("2001::/32", "2001:0:808:808::f7f7:f7f7", True),
        ("::/96", "::10.0.0.1", False),
        ("127.0.0.1", "127.0.0.1", True),
        ("127.0.0.1", "127.0.0.2", False),
        ("fd00::/8", "fd12::1", True),
        ("0.0.0.0/0", "10.0.0.1", True),
        ("0.0.0.0/0", "169.254.1.1", False),
        ("0.0.0.0/0", "169.254.169.254", False),
        ("169.0.0.0/8", "169.254.1.1", False),
        ("169.254.0.0/16", "169.254.1.1", True),
        ("169.254.0.0/16", "169.254.169.254", False),
        ("169.254.169.254", "169.254.169.254", True),
        ("169.254.169.254/32", "::ffff:169.254.169.254", True),
        ("100.64.0.0/10", "100.64.0.1", True),
        ("100.64.0.0/10", "100.100.100.200", False),
        ("168.63.0.0/16", "168.63.129.16", False),
        ("::/0", "fe80::1", False),
        ("fe80::/10", "fe80::1", True),
        ("fd00::/8", "fd00:ec2::254", False),
        ("fd00:ec2::254", "fd00:ec2::254", True),
    ],
)
def test_an_entry_opens_its_range_but_metadata_only_by_name_and_link_local_only_from_inside(
    entry: str, address: str, open_: bool
) -> None:
    assert is_open(address, entry) is open_


@pytest.mark.parametrize(
    "host",
    [
        *["0x7f.1", "0x7f000001", "2130706433", "127.1", "127.0.0.01", "0177.0.0.1", "127.0.0.1.", "1.2.3.4.5"],
        *["fe80::1%eth0", "::1%25lo", "127.0.0.%31", "[::1]", "::ffff:0x7f.1", "1::2::3", "a.example.0x7F", "\n.127"],
    ],
)
def test_an_odd_spelling_of_an_address_is_refused_before_it_is_resolved(host: str) -> None:
    with pytest.raises(AddressRefused, match="usual spelling"):
        literal(host)


@pytest.mark.parametrize("host", ["api.example", "localhost", "xn--bcher-kva.example", "0x7f.1.example", "a1", "cafe"])
def test_a_name_is_no_literal_address(host: str) -> None:
    assert literal(host) is None


@pytest.mark.parametrize(
    ("host", "open_"),
    [
        ("10.0.0.1", False),
        ("::ffff:7f00:1", False),
        ("169.254.169.254", False),
        ("localhost", False),
        ("LOCALHOST.", False),
        ("api.localhost", False),
        ("0x7f.1", False),
        ("8.8.8.8", True),
        ("intern.example", True),
        ("notlocalhost", True),
    ],
)
def test_a_host_is_judged_by_itself_where_somebody_else_resolves_it(host: str, open_: bool) -> None:
    if open_:
        Allowed().check_host(host)
    else:
        with pytest.raises(AddressRefused):
            Allowed().check_host(host)


def test_localhost_as_the_operators_server_is_open_where_somebody_else_resolves_it() -> None:
    Allowed(["localhost"]).check_host("localhost")


def test_all_entries_that_are_no_ranges_are_told_at_once() -> None:
    wrong = ["10.0.0.0/33", "10.0.0.1/8", "intern.example", "10.0.0.0/255.0.0.0", "::ffff:10.0.0.0/104", "fe80::1%lo"]
    with pytest.raises(UsageError) as caught:
        Allowed((), ["10.0.0.0/8", *wrong, 7])  # type: ignore[list-item]
    assert [problem.where for problem in caught.value.problems] == [f"allow_private[{n}]" for n in range(1, 8)]
    assert "did you mean '10.0.0.0/8'?" in str(caught.value)


def test_a_single_text_is_not_taken_for_a_list_of_ranges() -> None:
    with pytest.raises(UsageError, match="is a list"):
        Allowed((), "10.0.0.0/8")
