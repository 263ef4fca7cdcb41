"""`Http`: how requests are sent, how long they may take, and how much of an answer is taken."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from pydantic.alias_generators import to_camel

from toolgen.errors import ConfigError, Problem, UsageError, did_you_mean
from toolgen.identity.references import ReferenceFault, parse
from toolgen.openapi.text import shown

_LONGEST: Final = 86_400  # seconds; a call that waits for more than a day waits for ever


def _seconds(default: float) -> Any:
    return field(default=default, metadata={"least": 0.001, "most": _LONGEST, "unit": "seconds"})


def _count(default: int, most: int, least: int = 1, unit: str = "") -> Any:
    return field(default=default, metadata={"least": least, "most": most, "unit": unit})


@dataclass(frozen=True, slots=True)
class ClientCertificate:
    """A certificate for mutual TLS: PEM files, and the reference to the key's password (`${env:NAME}`), if it has one."""

    certificate: str
    key: str | None = None
    password: str | None = field(default=None, repr=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class Http:
    """Settings of the dispatcher. In a toolgen.yaml the keys are the same in camelCase.

    `connect`, `read`, `write` and `pool` are the longest waits in seconds for a connection, for the next
    bytes, for room to send, and for a free connection; `total` bounds one attempt with its answer.
    `retries` is how often a read is tried again (writes never are), with waits of at most
    `max_retry_after` seconds. `proxy` is an http(s) URL that may carry `user:password@`, `ca_bundle` a PEM
    file instead of the certificates that come along. At most `max_connections` are open to an upstream,
    `max_idle` of them unused. At most `max_answer_bytes` of an answer are read, unpacked, and
    `max_result_chars` of it given to a model; an event stream ends after `stream_seconds` or
    `stream_events`.

    Raises UsageError with every value that is wrong; the message never shows the proxy.
    """

    connect: float = _seconds(10)
    read: float = _seconds(30)
    write: float = _seconds(30)
    pool: float = _seconds(10)
    total: float = _seconds(60)
    retries: int = _count(2, most=10, least=0)
    max_retry_after: float = field(default=30, metadata={"least": 0, "most": _LONGEST, "unit": "seconds"})
    proxy: str | None = field(default=None, repr=False)
    ca_bundle: str | None = None
    client_certificate: ClientCertificate | None = None
    max_connections: int = _count(100, most=10_000)
    max_idle: int = _count(20, most=10_000, least=0)
    max_answer_bytes: int = _count(10_000_000, most=1_000_000_000, unit="bytes")
    max_result_chars: int = _count(40_000, most=100_000_000, least=100, unit="characters")
    stream_seconds: float = _seconds(30)
    stream_events: int = _count(100, most=100_000, unit="events")

    def __post_init__(self) -> None:
        found = [Problem(told, one.name) for one in fields(self) for told in _faults(one, getattr(self, one.name))]
        if found:
            raise UsageError(f"Http has {_number(found)}", found)

    @classmethod
    def parse(cls, mapping: Any, where: str) -> Http:
        """The settings of a toolgen.yaml; `where` is their place in it, such as `http`.

        Raises ConfigError with every problem, each with its place.
        """
        problems: list[Problem] = []
        given = _entries(mapping, where, {to_camel(one.name): one for one in fields(cls)}, problems)
        values: dict[str, Any] = {}
        for one, value in given:
            place = f"{where}.{to_camel(one.name)}"
            if one.name == "client_certificate":
                value = _certificate(value, place, problems)
            values[one.name] = value
            problems += [Problem(told, place) for told in _faults(one, value)]
        if problems:
            raise ConfigError(f"{where} has {_number(problems)}", problems)
        return cls(**values)


def _number(found: list[Problem]) -> str:
    return f"{len(found)} problem{'s' if len(found) > 1 else ''}"


def _entries(
    mapping: Any, where: str, known: Mapping[str, Field[Any]], problems: list[Problem]
) -> Iterator[tuple[Field[Any], Any]]:
    """The entries of a mapping with the fields they are for; null is a key that is not there."""
    if not isinstance(mapping, Mapping):
        problems.append(Problem(f"expected a mapping, this is {shown(mapping)}", where))
        return
    for key, value in mapping.items():
        if not isinstance(key, str) or key not in known:
            near = did_you_mean(str(key), known)
            problems.append(Problem(f"unknown key{near or '; known are ' + ', '.join(known)}", f"{where}.{key}"))
        elif value is not None:
            yield known[key], value


def _certificate(value: Any, place: str, problems: list[Problem]) -> ClientCertificate | None:
    known = {one.name: one for one in fields(ClientCertificate)}
    before = len(problems)
    found = {one.name: given for one, given in _entries(value, place, known, problems)}
    if len(problems) == before and "certificate" not in found:
        problems.append(Problem("`certificate` is missing: the path of a PEM file", place))
    return ClientCertificate(**found) if len(problems) == before else None


def _faults(one: Field[Any], value: Any) -> Iterator[str]:
    if one.metadata:
        yield from _number_fault(value, whole=one.type == "int", **one.metadata)
    elif value is None:
        return
    elif one.name == "proxy":
        yield from _proxy_fault(value)
    elif one.name == "ca_bundle":
        yield from _file_fault(value)
    elif not isinstance(value, ClientCertificate):
        yield f"expected a ClientCertificate, this is {shown(value)}"
    else:
        yield from (f"certificate: {told}" for told in _file_fault(value.certificate))
        yield from (f"key: {told}" for told in (_file_fault(value.key) if value.key is not None else ()))
        yield from (f"password: {told}" for told in _password_fault(value.password))


def _number_fault(value: Any, *, whole: bool, least: float, most: float, unit: str) -> Iterator[str]:
    fits = type(value) is int or (not whole and type(value) is float)
    if not fits or not least <= value <= most:
        kind = "a whole number" if whole else "a number"
        yield f"expected {kind}{' of ' + unit if unit else ''} from {least:,} to {most:,}, this is {shown(value)}"


def _proxy_fault(value: Any) -> Iterator[str]:
    """Nothing of the value is shown: it may hold a password."""
    try:
        parts = urlsplit(value) if isinstance(value, str) and value.isascii() and value.isprintable() else None
        fits = parts is not None and parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        fits = False
    if not fits or " " in value:
        yield "expected an http:// or https:// URL with a host"


def _file_fault(value: Any) -> Iterator[str]:
    if not isinstance(value, str) or not value:
        yield f"expected the path of a PEM file, this is {shown(value)}"
        return
    try:
        is_file = Path(value).is_file()
    except (OSError, ValueError):
        is_file = False
    if not is_file:
        yield f"there is no file {shown(value)}"


def _password_fault(value: Any) -> Iterator[str]:
    """A literal password is refused without being shown."""
    if value is None:
        return
    try:
        held = parse(value).references if isinstance(value, str) else ()
    except ReferenceFault as fault:
        yield str(fault)
        return
    if not held or any(reference.kind not in ("env", "file") for reference in held):
        yield "expected a reference, ${env:NAME} or ${file:PATH}, and no password itself"
