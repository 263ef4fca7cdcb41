"""The keys of a toolgen.yaml that say how an API is called: checked without any value in a message."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from toolgen.errors import ConfigError, Problem, UsageError

if TYPE_CHECKING:
    from toolgen.dispatch.settings import Http

Place = tuple[str | int, ...]
_FILES = ("certificate", "key")  # of a client certificate: paths, and no references


class Checks(Protocol):
    """What collects the problems of a file."""

    problems: list[Problem]

    def add(self, place: Place, message: str, hint: str = "") -> None: ...
    def texts(self, place: Place, value: Any) -> tuple[str, ...]: ...


def credentials(checks: Checks, place: Place, value: Any) -> dict[str, Any]:
    """References by security scheme. Whether the API has these schemes its toolset says, when it is called."""
    from toolgen.identity.references import ReferenceFault, parse

    if not isinstance(value, dict):
        checks.add(place, "expected a mapping of security schemes to references", "bearerAuth: ${env:TOKEN}")
        return {}

    def walk(place: Place, value: Any) -> None:
        if isinstance(value, dict | list):
            for key, item in value.items() if isinstance(value, dict) else enumerate(value):
                walk((*place, key), item)
        elif isinstance(value, str):
            try:
                parse(value)
            except ReferenceFault as fault:
                checks.add(place, str(fault))
        else:
            checks.add(place, "expected text, a mapping or a list")

    walk(place, value)
    return value


def server_variables(checks: Checks, place: Place, value: Any) -> dict[str, str]:
    """Values of the variables in the server's URL."""
    if not isinstance(value, dict):
        checks.add(place, "expected a mapping of variables to texts", "region: eu")
        return {}
    for name, text in value.items():
        if not isinstance(text, str) or not text or "${" in text:
            checks.add((*place, name), "expected text without references", "a number is put in quotes")
    return value


def allow_private(checks: Checks, place: Place, value: Any) -> tuple[str, ...]:
    """Ranges of private addresses that may be called."""
    from toolgen.dispatch.addresses import Allowed

    before = len(checks.problems)
    found = checks.texts(place, value)
    for index, text in enumerate(found if len(checks.problems) == before else ()):
        try:
            Allowed(ranges=[text])
        except UsageError:
            checks.add((*place, index), "expected a range of addresses", "written like 10.0.0.0/8, fd00::/8, 127.0.0.1")
    return found


def http(checks: Checks, value: Any, folder: Path) -> Http | None:
    """The settings under `http:`; paths in them are relative to the folder."""
    from toolgen.dispatch.settings import Http

    if isinstance(value, dict):
        value = {**value}
        if isinstance(value.get("caBundle"), str):
            value["caBundle"] = str(folder / value["caBundle"])
        if isinstance(value.get("clientCertificate"), dict):
            value["clientCertificate"] = in_folder(value["clientCertificate"], folder)
    try:
        return Http.parse(value, "http")
    except ConfigError as error:
        checks.problems += error.problems
        return None


def in_folder(value: Any, folder: Path) -> Any:
    """Credentials, or one of them, with the paths of client certificates below the folder."""
    if not isinstance(value, Mapping):
        return value
    if not isinstance(value.get("certificate"), str):
        return {key: in_folder(item, folder) for key, item in value.items()}
    return {key: str(folder / item) if key in _FILES and isinstance(item, str) else item for key, item in value.items()}
