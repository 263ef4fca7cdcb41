"""toolgen.yaml: several APIs, each with what `toolgen generate` and `toolgen call` would be told on the command line."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolgen.cli import calling
from toolgen.cli.jobs import Job, header_problem, limit_problem, prefix_problem
from toolgen.errors import ConfigError, Problem, SourceError, UsageError, did_you_mean

if TYPE_CHECKING:
    from toolgen.dispatch.settings import Http

CONFIG_NAME = "toolgen.yaml"
_FUNCTION = re.compile(r"(?!\d)\w+(\.(?!\d)\w+)*:(?!\d)\w+")


@dataclass(frozen=True, slots=True)
class Config:
    """A toolgen.yaml that was read: its APIs, the settings under `http:` (None: there are none), and the
    `module:function` that says who uses the command line (None: the user of the operating system)."""

    path: Path
    jobs: tuple[Job, ...]
    http: Http | None
    authenticator: str | None = None
    content: bytes = field(default=b"", repr=False)

    def placed(self, problems: Iterable[Problem]) -> list[Problem]:
        """The problems with the file and the line of their place in it."""
        from toolgen.tools.files.lines import Lines

        lines = Lines(self.content)
        return [replace(one, line=lines.of(one.where), file=str(self.path)) for one in problems]


def read_config(path: Path) -> Config:
    """A toolgen.yaml. Raises ConfigError with every problem of the file."""
    from toolgen.openapi.source import Limits, Loader

    try:
        read = Loader(limits=Limits(bytes=4 * 1024 * 1024)).load(path)
    except SourceError as error:
        # Only the first line: what follows quotes the file, which may hold the value of a header.
        found = [replace(problem, message=problem.message.partition("\n")[0]) for problem in error.problems]
        raise ConfigError(error.message, found) from None
    checked = _Checked()
    jobs = checked.jobs(read.tree, path.parent)
    checked.same_output(jobs, path)
    http = checked.http(read.tree, path.parent)
    config = Config(path, tuple(jobs), http, checked.authenticator(read.tree), read.content)
    if checked.problems:
        found = config.placed(checked.problems)
        raise ConfigError(f"{path} has {len(found)} problem{'s' if len(found) > 1 else ''}", found)
    return config


class _Checked:
    """Reads the file's values and collects what is wrong with them."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def add(self, place: tuple[str | int, ...], message: str, hint: str = "") -> None:
        from toolgen.tools.files.places import written

        self.problems.append(Problem(message, written(place), hint=hint))

    def jobs(self, tree: Any, folder: Path) -> list[Job]:
        top = self._mapping((), tree, {"apis": None, "http": None, "authenticator": None})
        if "apis" not in top:
            if "authenticator" in top:
                return []  # whoever only decides has no API
            self.add((), "`apis` is missing", "write apis: {petstore: {spec: petstore.yaml}}")
            return []
        if not isinstance(top["apis"], dict) or not top["apis"]:
            self.add(("apis",), "expected a mapping of names to APIs", "write petstore: {spec: petstore.yaml}")
            return []
        return [job for name, value in top["apis"].items() if (job := self._job(name, value, folder))]

    def http(self, tree: Any, folder: Path) -> Http | None:
        """The settings of sending, if the file has any."""
        return calling.http(self, tree["http"], folder) if isinstance(tree, dict) and "http" in tree else None

    def authenticator(self, tree: Any) -> str | None:
        """The function that says who uses the command line, if the file names one."""
        if not isinstance(tree, dict) or "authenticator" not in tree:
            return None
        named = tree["authenticator"]
        if not isinstance(named, str) or not _FUNCTION.fullmatch(named):
            self.add(("authenticator",), "expected module:function", "write authenticator: shop.people:who")
            return None
        return named

    def _job(self, name: str, value: Any, folder: Path) -> Job | None:
        from toolgen.tools.naming import API_NAME, RESERVED_SOURCES

        place = ("apis", name)
        if not API_NAME.fullmatch(name) or name in RESERVED_SOURCES:
            self.add(place, "no name for an API", "it takes [a-z][a-z0-9-]*, at most 32, and no source's name")
        found = self._mapping(place, value, _KEYS)
        before = len(self.problems)
        read = {key: _KEYS[key](self, (*place, key), found[key]) for key in found}
        if isinstance(value, dict) and "spec" not in value:
            self.add(place, "`spec` is missing: the path or URL of the OpenAPI document")
        for key in ("spec", "output"):
            if read.get(key) == "-":
                self.add((*place, key), "standard input and output are for the command line")
        if problem := prefix_problem(read.get("namePrefix", ""), read.get("nameLimit")):
            self.add((*place, "namePrefix"), problem)
        if len(self.problems) > before or "spec" not in read:
            return None
        is_url = "://" in read["spec"]
        if read.get("specHeaders") and not is_url:
            self.add((*place, "specHeaders"), "only a document read from a URL is asked for with headers")
        fields = {_FIELDS.get(key, key): item for key, item in read.items()}
        fields["spec"] = read["spec"] if is_url else str(folder / read["spec"])
        fields["output"] = str(folder / read["output"]) if "output" in read else None
        fields["allow_roots"] = tuple(str(folder / root) for root in read.get("allowRoots", ()))
        fields["credentials"] = calling.in_folder(read.get("credentials", {}), folder)
        return Job(api=name, folder=folder, **fields)

    def same_output(self, jobs: list[Job], path: Path) -> None:
        """Two APIs that would be written to one file, or to the config or a document."""
        taken = {os.path.realpath(path): "this file"}
        taken |= {os.path.realpath(job.spec): f"the document of {job.api}" for job in jobs if not job.is_url}
        for job in jobs:
            if job.target in taken:
                place = ("apis", str(job.api), *(("output",) if job.output else ()))
                self.add(place, f"would be written over {taken[job.target]}")
            taken.setdefault(job.target, f"the toolset of {job.api}")

    def _mapping(self, place: tuple[str | int, ...], value: Any, known: Mapping[str, Any]) -> dict[str, Any]:
        if not isinstance(value, dict):
            self.add(place, f"expected a mapping, this is {_kind(value)}")
            return {}
        for key in value:
            if key not in known:
                near = did_you_mean(key, known)
                self.add((*place, key), f"unknown key{near or '; known are ' + ', '.join(known)}")
        return {key: item for key, item in value.items() if key in known}

    def text(self, place: tuple[str | int, ...], value: Any) -> str:
        if not isinstance(value, str) or not value:
            self.add(place, f"expected text, this is {_kind(value)}")
            return ""
        if "${" in value:
            self.add(place, "`${...}` is not replaced here; only the values of specHeaders and credentials may hold it")
        return value

    def flag(self, place: tuple[str | int, ...], value: Any) -> bool:
        if not isinstance(value, bool):
            self.add(place, f"expected true or false, this is {_kind(value)}")
        return value is True

    def length(self, place: tuple[str | int, ...], value: Any) -> int:
        if type(value) is not int or not 8 <= value <= 64:
            self.add(place, "expected a number from 8 to 64")
            return 64
        return value

    def texts(self, place: tuple[str | int, ...], value: Any) -> tuple[str, ...]:
        if not isinstance(value, list):
            self.add(place, f"expected a list, this is {_kind(value)}")
            return ()
        return tuple(self.text((*place, index), item) for index, item in enumerate(value))

    def filters(self, place: tuple[str | int, ...], value: Any) -> tuple[str, ...]:
        from toolgen.tools.selection import Filter

        found = self.texts(place, value)
        for index, text in enumerate(found):
            try:
                _ = Filter.parse(text) if text else None
            except UsageError as error:
                self.add((*place, index), error.message)
        return found

    def headers(self, place: tuple[str | int, ...], value: Any) -> dict[str, str]:
        if not isinstance(value, dict):
            self.add(place, f"expected a mapping of names to texts, this is {_kind(value)}")
            return {}
        for name, text in value.items():
            if not isinstance(text, str):
                self.add((*place, name), f"expected text, this is {_kind(text)}")
            elif problem := header_problem(name, text):
                self.add((*place, name), problem)
        return {name: text for name, text in value.items() if isinstance(text, str)}

    def limits(self, place: tuple[str | int, ...], value: Any) -> dict[str, float]:
        if not isinstance(value, dict):
            self.add(place, f"expected a mapping of limits to numbers, this is {_kind(value)}")
            return {}
        for name, number in value.items():
            if problem := limit_problem(name, number):
                self.add((*place, name), problem)
        return value


def _kind(value: Any) -> str:
    """The kind of a value, never the value: it may be a secret in the wrong place."""
    if value is None or value == "":
        return "empty"
    names = {bool: "true or false", str: "text", list: "a list", dict: "a mapping"}
    return names.get(type(value), "a number")


_KEYS: dict[str, Callable[[_Checked, tuple[str | int, ...], Any], Any]] = {
    "spec": _Checked.text,
    "output": _Checked.text,
    "server": _Checked.text,
    "include": _Checked.filters,
    "exclude": _Checked.filters,
    "skipDeprecated": _Checked.flag,
    "namePrefix": _Checked.text,
    "nameLimit": _Checked.length,
    "allowRoots": _Checked.texts,
    "allowHosts": _Checked.texts,
    "specHeaders": _Checked.headers,
    "limits": _Checked.limits,
    "credentials": calling.credentials,
    "serverVariables": calling.server_variables,
    "allowPrivate": calling.allow_private,
    "callerReferences": _Checked.flag,
}
_FIELDS = {
    "skipDeprecated": "skip_deprecated",
    "namePrefix": "name_prefix",
    "nameLimit": "name_limit",
    "allowRoots": "allow_roots",
    "allowHosts": "allow_hosts",
    "specHeaders": "headers",
    "serverVariables": "server_variables",
    "allowPrivate": "allow_private",
    "callerReferences": "caller_references",
}
