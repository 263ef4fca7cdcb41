"""`toolgen serve`: the tools of toolsets as an MCP server, behind the gate."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolgen.cli import upstream
from toolgen.cli.output import write
from toolgen.cli.stores import KeyOption, StoreOption
from toolgen.errors import UsageError

if TYPE_CHECKING:
    from toolgen.policy.config import ApprovalConfig
    from toolgen.tools.model import Toolset

SHORT_HELP = "Serve tools to MCP clients, behind the gate."
HELP = """\b
Example: toolgen serve petstore.tools.yaml --approvals approvals.yaml \\
             --credential 'bearerAuth=${env:SHOP_TOKEN}'
         toolgen serve petstore.tools.yaml billing.tools.yaml
         toolgen serve petstore.tools.yaml --transport http --port 8000

Serve the tools of toolsets to MCP clients. Reads run, and writes wait for a person, unless --approvals says
otherwise. A call that waits is answered at once, as pending, and kept in the store: `toolgen approvals approve ID`
decides, and the client's get_approval_result runs what was approved, once. No tool decides.

Over stdio the caller is the user of this shell, as in `toolgen call`; stdout belongs to the protocol, and all else is
told on stderr. Over HTTP each request carries a bearer token: that of --verifier, whose subject is the caller, or
without one the token that is printed at the start, and then only this machine can reach it.

Of several toolsets, options name the API: --credential API.SCHEME=REF, --server-variable API.NAME=VALUE,
--server API=URL. What toolgen.yaml says counts as in `toolgen call`. A toolset's file that changes is read again, and
what waits for a tool that changed is void; one that cannot be read changes nothing. A changed approval config counts
from the next start.

\b
Exit codes: 0 ended by the client, or by SIGTERM
            1 a file or the store cannot be read, or the port cannot be had
            2 wrong usage, or a toolgen.yaml with problems
            130 interrupted
"""


class Transport(StrEnum):
    """How clients reach the server."""

    stdio = "stdio"
    http = "http"


def serve(
    toolset: Annotated[list[str], typer.Argument(metavar="TOOLSET", help="Files that `toolgen generate` wrote.")],
    approvals: upstream.ApprovalsOption = None,
    store: StoreOption = None,
    key_file: KeyOption = None,
    transport: Annotated[
        Transport, typer.Option("--transport", metavar="stdio|http", help="How clients reach it.")
    ] = Transport.stdio,
    host: Annotated[
        str | None, typer.Option("--host", metavar="ADDRESS", help="Of http. Default: 127.0.0.1.", show_default=False)
    ] = None,
    port: Annotated[
        int | None,
        typer.Option("--port", metavar="N", min=0, max=65535, help="Of http; 0 takes a free one. Default: 8000."),
    ] = None,
    verifier: Annotated[
        str | None,
        typer.Option(
            "--verifier",
            metavar="URL|MODULE:FUNCTION",
            help="Of http: a JWKS URL, or a function, that checks tokens. Default: a token is made and printed.",
        ),
    ] = None,
    audience: Annotated[
        str | None,
        typer.Option("--audience", metavar="TEXT", help="Of a JWKS URL: whom tokens must be for. Default: none."),
    ] = None,
    issuer: Annotated[
        str | None,
        typer.Option("--issuer", metavar="URL", help="Of a JWKS URL: who must have made them. Default: any."),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option("--allow-host", metavar="HOST", help="Of http: a Host header more. Default: --host's."),
    ] = None,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option("--allow-origin", metavar="URL", help="Of http: an Origin header more. Default: --host's."),
    ] = None,
    server: Annotated[
        list[str] | None, typer.Option("--server", metavar="URL", help="Replaces every server. Default: the toolset's.")
    ] = None,
    server_variable: upstream.VariableOption = None,
    credential: upstream.CredentialOption = None,
    allow_private: upstream.PrivateOption = None,
    config: upstream.ConfigOption = None,
    review_url: Annotated[
        str | None,
        typer.Option(
            "--review-url",
            metavar="URL",
            help="Where a person decides, told with what waits; {id} stands for its id. Default: none.",
        ),
    ] = None,
    lazy: Annotated[
        bool, typer.Option("--lazy", help="List three tools that search, describe and call the others.")
    ] = False,
    output_schemas: Annotated[
        bool, typer.Option("--output-schemas", help="List the schemas of what tools answer.")
    ] = False,
    list_pending: Annotated[
        bool, typer.Option("--list-pending/--no-list-pending", help="Offer a tool that lists what waits.")
    ] = True,
    elicit: Annotated[
        bool,
        typer.Option(
            "--elicit", help="Ask users through their client, where the config lets who asks approve. Default: never."
        ),
    ] = False,
) -> None:
    """Serve tools to MCP clients."""
    given: dict[str, object] = {
        "--host": host,
        "--port": port,
        "--verifier": verifier,
        "--audience": audience,
        "--issuer": issuer,
    }
    given |= {"--allow-host": allow_host or None, "--allow-origin": allow_origin or None}
    named = next((name for name, value in given.items() if value is not None), None)
    if transport is Transport.stdio and named is not None:
        raise UsageError(f"{named} is for --transport http")
    from toolgen.cli.listening import Listening
    from toolgen.cli.reloading import stamp
    from toolgen.cli.serving import Offering, Serving
    from toolgen.cli.who import person

    files = [Path(path) for path in (*toolset, *([approvals] if approvals is not None else []))]
    stamps = {path: stamp(path) for path in files}
    found, gate = _read(toolset, approvals)
    dispatchers = upstream.dispatchers(
        found,
        server=server,
        server_variable=server_variable,
        credential=credential,
        allow_private=allow_private,
        config=config,
    )
    offering = Offering(review_url, lazy=lazy, output_schemas=output_schemas, list_pending=list_pending, elicit=elicit)
    hosts, origins = tuple(allow_host or ()), tuple(allow_origin or ())
    http = Listening(host or "127.0.0.1", 8000 if port is None else port, verifier, audience, issuer, hosts, origins)
    if transport is Transport.http:
        http.check()
    watched = {Path(path): loaded.api for path, (loaded, _) in zip(toolset, found, strict=True)}
    serving = Serving(dispatchers, gate, watched, stamps, person(config), offering)
    serving.run(store, key_file, http if transport is Transport.http else None)


def _read(paths: list[str], approvals: str | None) -> tuple[list[tuple[Toolset, Path]], ApprovalConfig | None]:
    """The toolsets with their paths, and the approval config."""
    from toolgen.policy.config import ApprovalConfig
    from toolgen.tools.files import load_toolset

    found = [(load_toolset(Path(path)), Path(path)) for path in paths]
    if approvals is None:
        write("note: without --approvals reads run and writes wait\n", sys.stderr)
        return found, None
    return found, ApprovalConfig.load(approvals, [toolset for toolset, _ in found])
