"""Which IP addresses requests may go to: public ones, and what the operator opened.

An address is judged by every address it stands for: one of NAT64, 6to4 or Teredo also by the IPv4
address inside, an IPv4-mapped one by that alone. What is public follows IANA's special-purpose address
registries (RFC 6890), in a table of our own: the one of `ipaddress` differs between Python releases.

| address | is open to |
|---|---|
| public | everyone |
| private, loopback, reserved, ... | a literal host the operator wrote; `localhost` if they wrote that; what `allow_private` lists |
| link-local (169.254.0.0/16, fe80::/10) | an entry of `allow_private` that lies inside these |
| cloud metadata (169.254.169.254, ...) | an entry of `allow_private` that is this address alone |
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

from toolgen.errors import AddressRefused, Problem, UsageError

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_METADATA: Final = "cloud metadata"
_LINK_LOCAL: Final = "link-local"
_LOOPBACK: Final = "loopback"
# The first range that holds an address names its kind.
_KINDS: Final[tuple[tuple[str, tuple[Network, ...]], ...]] = tuple(
    (kind, tuple(map(ip_network, ranges.split())))
    for kind, ranges in (
        (
            _METADATA,
            "169.254.169.254 169.254.170.2 169.254.170.23 100.100.100.200 192.0.0.192 168.63.129.16"
            " fd00:ec2::254 fd00:ec2::23 fd20:ce::254 fd00:42::42",
        ),
        (_LOOPBACK, "127.0.0.0/8 ::1"),
        (_LINK_LOCAL, "169.254.0.0/16 fe80::/10"),
        ("private", "10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 fc00::/7"),
        ("site-local", "fec0::/10"),
        ("shared, behind a carrier's NAT", "100.64.0.0/10"),
        ("unspecified", "0.0.0.0/8 ::"),
        ("for documentation", "192.0.2.0/24 198.51.100.0/24 203.0.113.0/24 2001:db8::/32 3fff::/20"),
        ("for benchmarks", "198.18.0.0/15 2001:2::/48"),
        ("multicast", "224.0.0.0/4 ff00::/8"),
        ("broadcast", "255.255.255.255"),
        ("an IPv4 address in IPv6", "::/96 64:ff9b:1::/48 2001::/32 2002::/16"),
        ("reserved", "192.0.0.0/24 192.88.99.0/24 240.0.0.0/4 2001::/23"),
    )
)
_PUBLIC_6: Final = (IPv6Network("2000::/3"), IPv6Network("64:ff9b::/96"))
_MAPPED: Final = IPv6Network("::ffff:0:0/96")
_IPV4_IN_LAST_BITS: Final = (IPv6Network("::/96"), IPv6Network("64:ff9b::/96"), IPv6Network("64:ff9b:1::/48"))
_NUMBER_LAST = re.compile(r"(?:.*\.)?(?:[0-9]+|0[xX][0-9a-fA-F]*)\.?", re.DOTALL)
_RANGE = re.compile(r"[0-9a-fA-F.:]+(?:/[0-9]{1,3})?")
_HINT: Final = 'a range is written like "10.0.0.0/8", "fd00::/8" or "127.0.0.1"'


class Allowed:
    """The addresses requests of one toolset may go to.

    `literal_hosts` are hosts the operator wrote: that of the toolset's top-level server, or of the server
    that overrides it; never those of operations. A literal address among them is open under that
    spelling of the host and on `port` alone, `localhost` as far as it is loopback; other names earn nothing.
    `ranges` are the entries of `allow_private`: CIDR ranges or addresses.

    Raises UsageError for entries that are no ranges, all at once.
    """

    def __init__(
        self, literal_hosts: Iterable[str] = (), ranges: Sequence[str] = (), *, port: int | None = None
    ) -> None:
        self._port = port  # None: any
        self._hosts = frozenset(found for host in literal_hosts if (found := _host(host)) is not None)
        self._ranges = _networks(ranges)

    def check(self, host: str, addresses: Iterable[str], port: int | None = None) -> list[str]:
        """The addresses of a host, in order and each once. Raises AddressRefused unless all of them are open."""
        found = {text: ip_address(text) for text in addresses}
        earned = _host(host) if self._port in (None, port) else None
        refused: dict[Address, str] = {}
        for address in found.values():
            for face in _faces(address):
                kind = _kind(face)
                if kind and not self._is_listed(face, kind) and not self._is_earned(earned, address, kind):
                    refused[face] = kind
        if refused:
            raise _refusal(host, refused)
        return list(found)

    def check_host(self, host: str, port: int | None = None) -> None:
        """Check what the host says by itself: a literal address, or a name that is always this machine.

        For requests whose host is resolved elsewhere. Raises AddressRefused.
        """
        address = literal(host)
        if address is None and f".{_name(host)}".endswith(".localhost"):
            address = IPv4Address("127.0.0.1")
        if address is not None:
            self.check(host, [str(address)], port)

    def _is_earned(self, host: Address | str | None, address: Address, kind: str) -> bool:
        if host not in self._hosts or kind in (_METADATA, _LINK_LOCAL):
            return False
        return kind == _LOOPBACK if host == "localhost" else host == _plain(address)

    def _is_listed(self, face: Address, kind: str) -> bool:
        covering = [network for network in self._ranges if face in network]
        if kind == _METADATA:
            return any(network.num_addresses == 1 for network in covering)
        if kind == _LINK_LOCAL:
            return any(network.is_link_local for network in covering)
        return bool(covering)


def literal(host: str) -> Address | None:
    """The address a host of a URL spells, without brackets; None for a name.

    Raises AddressRefused for what a resolver may read as an address but RFC 3986 does not
    (`0x7f.1`, `127.1`, `2130706433`, `0177.0.0.1`), and for a zone id.
    """
    try:
        if "%" not in host:
            return ip_address(host)
    except ValueError:
        if ":" not in host and not _NUMBER_LAST.fullmatch(host):
            return None
    raise AddressRefused(
        f"the request to {host!r} was not sent: this is neither a name nor an address in its usual spelling"
        " (write it like 192.0.2.1 or [2001:db8::1])"
    )


def _host(host: str) -> Address | str | None:
    """What the host can earn: an address, `localhost`, or nothing."""
    try:
        address = literal(host)
    except AddressRefused:
        return None
    if address is not None:
        return _plain(address)
    return "localhost" if _name(host) == "localhost" else None


def _name(host: str) -> str:
    return host.lower().removesuffix(".")


def _plain(address: Address) -> Address:
    """The address without a zone; an IPv4-mapped one as IPv4, which is what a socket makes of it."""
    if isinstance(address, IPv4Address):
        return address
    return address.ipv4_mapped or IPv6Address(int(address))


def _faces(address: Address) -> Iterator[Address]:
    """The address, and the IPv4 addresses it may lead to."""
    plain = _plain(address)
    yield plain
    if isinstance(plain, IPv4Address) or plain in (IPv6Address("::"), IPv6Address("::1")):
        return
    if any(plain in network for network in _IPV4_IN_LAST_BITS):
        yield IPv4Address(int(plain) & 0xFFFFFFFF)
    if plain.sixtofour is not None:
        yield plain.sixtofour
    yield from plain.teredo or ()


def _kind(address: Address) -> str:
    """What kind of address it is; empty for a public one."""
    for kind, networks in _KINDS:
        if any(address in network for network in networks):
            return kind
    if isinstance(address, IPv6Address) and not any(address in network for network in _PUBLIC_6):
        return "reserved"
    return "" if address.is_global else "reserved"  # what a newer Python knows and the table does not


def _networks(ranges: Sequence[str]) -> tuple[Network, ...]:
    """The entries of `allow_private` as networks. Raises UsageError."""
    if isinstance(ranges, str):
        raise UsageError(f"allow_private is a list of ranges, not a text (write [{ranges!r}])")
    found: list[Network] = []
    problems: list[Problem] = []
    for position, text in enumerate(ranges):
        network = _network(text)
        if isinstance(network, str):
            problems.append(Problem(network, where=f"allow_private[{position}]", hint=_HINT))
        else:
            found.append(network)
    if problems:
        raise UsageError("allow_private has entries that are no ranges of addresses", problems)
    return tuple(found)


def _network(text: object) -> Network | str:
    """The range, or what is wrong with it."""
    if not isinstance(text, str) or not _RANGE.fullmatch(text):
        return f"{text!r} is no range of addresses"
    try:
        network = ip_network(text, strict=False)
        exact = ip_network(text.partition("/")[0])
    except ValueError:
        return f"{text!r} is no range of addresses"
    if network.network_address != exact.network_address:
        return f"{text!r} has bits behind its prefix; did you mean {str(network)!r}?"
    if isinstance(network, IPv6Network) and network.subnet_of(_MAPPED):
        return f"{text!r} is IPv4 in IPv6; write the IPv4 range"
    return network


def _refusal(host: str, refused: dict[Address, str]) -> AddressRefused:
    shown = list(refused.items())[:4]
    what = ", ".join(f"{address} ({kind})" for address, kind in shown)
    entries = ", ".join(f'"{address}"' for address, _ in shown)
    options = " ".join(f"--allow-private {address}" for address, _ in shown)
    return AddressRefused(
        f"the request to {host} was not sent: it leads to {what}, where requests do not go by themselves"
        f" (if it should, allow_private=[{entries}], {options}, or allowPrivate in toolgen.yaml allows it)"
    )
