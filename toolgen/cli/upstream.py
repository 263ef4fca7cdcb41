"""A toolset with its server, credentials and gate, as the options of a command and a toolgen.yaml say."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolgen.cli import call_options as options
from toolgen.cli.config import CONFIG_NAME
from toolgen.cli.output import write
from toolgen.errors import Problem, UsageError, did_you_mean

if TYPE_CHECKING:
    from toolgen.cli.config import Config
    from toolgen.cli.jobs import Job
    from toolgen.dispatch.http import ContractMode, Dispatcher
    from toolgen.tools.model import Toolset

ApprovalsOption = Annotated[
    str | None,
    typer.Option("--approvals", metavar="CONFIG", help="An approval config. Default: reads run, writes wait."),
]
ServerOption = Annotated[
    str | None, typer.Option("--server", metavar="URL", help="Replaces every server. Default: the toolset's.")
]
VariableOption = Annotated[
    list[str] | None,
    typer.Option("--server-variable", metavar="NAME=VALUE", help="A variable of the server's URL. Default: its own."),
]
CredentialOption = Annotated[
    list[str] | None,
    typer.Option(
        "--credential",
        metavar="SCHEME=REF",
        help="A credential by security scheme; SCHEME@ORIGIN=REF for another origin. Default: toolgen.yaml's.",
    ),
]
PrivateOption = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-private",
        metavar="RANGE",
        help="Private addresses that may be called, as in 10.0.0.0/8. Default: none.",
    ),
]
ConfigOption = Annotated[
    str | None, typer.Option("--config", metavar="FILE", help=f"Credentials and settings. Default: {CONFIG_NAME}.")
]


@dataclass(frozen=True, slots=True)
class Upstream:
    """What the options say of where a toolset's calls go, as they were given."""

    server: str | None
    server_variable: list[str] | None
    credential: list[str] | None
    allow_private: list[str] | None
    config: str | None

    def dispatcher(self, toolset: Toolset, path: Path, contract: ContractMode = "off") -> Dispatcher:
        """A dispatcher of the toolset that was loaded from a path.

        Raises UsageError, ConfigError and CredentialsError for what the options or the toolgen.yaml have wrong.
        """
        from toolgen.dispatch.http import Dispatcher

        given: dict[str, Any] = {
            "credentials": options.credentials(self.credential, toolset),
            "server_variables": options.pairs("--server-variable", self.server_variable),
            "allow_private": options.private_ranges(self.allow_private),
        }
        settings = _settings(toolset, path, self.config, given)
        return Dispatcher(toolset, server=self.server, contract=contract, **settings)


def dispatchers(
    found: Sequence[tuple[Toolset, Path]],
    *,
    server: list[str] | None,
    server_variable: list[str] | None,
    credential: list[str] | None,
    allow_private: list[str] | None,
    config: str | None,
) -> list[Dispatcher]:
    """A dispatcher for each toolset and the path it was loaded from. Of several, the options name the API.

    Raises like `Upstream.dispatcher`, and UsageError for two toolsets of one API, or an option that names none.
    """
    apis = [toolset.api for toolset, _ in found]
    twice = next((api for api in apis if apis.count(api) > 1), None)
    if twice is not None:
        raise UsageError(f"two toolsets are of the API {twice!r}: `toolgen generate --api NAME` gives one another name")
    servers = options.by_api("--server", server, apis, "=", "API=URL")
    variables = options.by_api("--server-variable", server_variable, apis, ".", "API.NAME=VALUE")
    bound = options.by_api("--credential", credential, apis, ".", "API.SCHEME=REF")
    made: list[Dispatcher] = []
    for toolset, path in found:
        api = toolset.api
        if len(servers[api]) > 1:
            raise UsageError(f"--server is there twice for {api}")
        one = next(iter(servers[api]), None)
        made.append(Upstream(one, variables[api], bound[api], allow_private, config).dispatcher(toolset, path))
    return made


def _settings(toolset: Toolset, path: Path, config: str | None, given: dict[str, Any]) -> dict[str, Any]:
    """What the dispatcher is given: the options, over what a toolgen.yaml says of this toolset."""
    from toolgen.cli.config import read_config

    if config is None and not Path(CONFIG_NAME).exists():
        return given
    read = read_config(Path(config or CONFIG_NAME))
    job = _job(read, toolset, path, by_name=config is not None)
    if job is None:
        write(f"note: no API of {read.path} is used: none has this file (--config uses it)\n", sys.stderr)
        return given
    _check_credentials(read, job, toolset)
    return {
        "http": read.http,
        "caller_references": job.caller_references,
        "credentials": options.merged(job.credentials, given["credentials"]),
        "server_variables": {**job.server_variables, **given["server_variables"]},
        "allow_private": (*job.allow_private, *given["allow_private"]),
    }


def _job(read: Config, toolset: Toolset, path: Path, *, by_name: bool) -> Job | None:
    """The entry of the API: that of the toolset's file; by the API's name only in a config that was named.

    A file that merely claims the name of an API gets no credentials from whatever toolgen.yaml lies around.
    """
    found = next((job for job in read.jobs if job.target == str(path.resolve())), None)
    if found is None and by_name:
        found = next((job for job in read.jobs if job.api == toolset.api), None)
        if found is None:
            near = did_you_mean(toolset.api, [str(job.api) for job in read.jobs])
            raise UsageError(f"{read.path} has no API {toolset.api!r}{near}, and none whose file is {path}")
    return found


def _check_credentials(read: Config, job: Job, toolset: Toolset) -> None:
    """Raise ConfigError for credentials that this toolset's security schemes do not take, with their lines."""
    from toolgen.errors import ConfigError, CredentialsError
    from toolgen.identity.credentials import Credentials

    where = f"apis.{job.api}.credentials"
    try:
        Credentials.load(
            job.credentials,
            api=toolset.api,
            schemes=toolset.security_schemes,
            origin=None,
            caller_references=job.caller_references,
            where=where,
        )
    except CredentialsError as error:
        problems: list[Problem] = read.placed(error.problems)
        raise ConfigError(f"{read.path}: {error.message}", problems) from None
