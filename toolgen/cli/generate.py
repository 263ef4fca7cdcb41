"""`toolgen generate`: the command line, and the jobs it stands for."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from toolgen.cli.config import CONFIG_NAME, read_config
from toolgen.cli.jobs import Job, header_problem, limit_problem, prefix_problem
from toolgen.cli.output import Format
from toolgen.errors import UsageError, did_you_mean

TARGETS = "openai|openai-responses|openai-strict|anthropic|gemini|mcp|json|markdown"
SHORT_HELP = "Turn an OpenAPI document into a toolset file."
HELP = """\b
Example: toolgen generate petstore.yaml --exclude tag:admin
         toolgen generate petstore.yaml --target anthropic -o tools.json
         toolgen generate https://petstore.example/openapi.json --api petstore

Turn an OpenAPI document (2.0, 3.0, 3.1, 3.2; JSON or YAML) into a toolset file, and report what became of each
operation. A file that was edited by hand is not overwritten; without --force the edits are shown instead.

SPEC is a path, an http(s) URL, or - for standard input. Without SPEC the APIs in toolgen.yaml are generated: all of
them, or the one that --api names. Whatever fails, nothing is written then.

A FILTER is 'GET /pets/*' (* within a segment, ** over segments), '/pets/**', 'tag:pets' or 'operationId:listPets'.

\b
Exit codes: 0 written (--check: nothing would change)
            1 problems: the document cannot be read, no operation is left,
              --strict or --check found something, the file was edited by
              hand or cannot be written
            2 wrong usage, or a toolgen.yaml with problems
            130 interrupted
"""


def generate(
    spec: Annotated[str | None, typer.Argument(metavar="SPEC", help="Path, URL or - (default: toolgen.yaml).")] = None,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="Where to write; - is stdout. Default: API.tools.yaml."),
    ] = None,
    api: Annotated[
        str | None, typer.Option(metavar="NAME", help="Name of the API. Default: from the title, or the file's name.")
    ] = None,
    server: Annotated[
        str | None, typer.Option(metavar="URL", help="Replaces the document's server. Default: its first one.")
    ] = None,
    include: Annotated[
        list[str] | None, typer.Option(metavar="FILTER", help="Take only these operations. Default: all.")
    ] = None,
    exclude: Annotated[
        list[str] | None, typer.Option(metavar="FILTER", help="Leave these operations out. Default: none.")
    ] = None,
    skip_deprecated: Annotated[bool, typer.Option("--skip-deprecated", help="Leave deprecated ones out.")] = False,
    name_limit: Annotated[
        int | None, typer.Option(min=8, max=64, metavar="N", help="Longest tool name, prefix included. Default: 64.")
    ] = None,
    name_prefix: Annotated[
        str | None, typer.Option(metavar="P", help="Put in front of every tool name. Default: nothing.")
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            metavar=TARGETS, help="Write tools for this target instead of a toolset, to API.TARGET.json or .md."
        ),
    ] = None,
    format_: Annotated[
        Format, typer.Option("--format", help="The report: text for people, json for programs.")
    ] = Format.text,
    allow_root: Annotated[
        list[str] | None,
        typer.Option(metavar="DIR", help="References may read files here too. Default: the document's folder only."),
    ] = None,
    allow_host: Annotated[
        list[str] | None, typer.Option(metavar="HOST", help="References may be fetched from here. Default: nowhere.")
    ] = None,
    spec_header: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="Sent when SPEC is fetched, to its origin only, never shown; VALUE may hold ${env:NAME}.",
        ),
    ] = None,
    limit: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=N",
            help="What is read at most: bytes, nesting, nodes, seconds, redirects, documents. Default: bytes=67108864, nesting=200, nodes=20000000, seconds=30, redirects=5, documents=500.",
        ),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Write only if every operation is ok.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite; edits made by hand are dropped.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Write nothing; exit 1 if the file would change.")] = False,
    config: Annotated[
        str | None, typer.Option(metavar="FILE", help=f"The file to read without SPEC. Default: {CONFIG_NAME}.")
    ] = None,
) -> None:
    """Turn an OpenAPI document into a toolset file."""
    single: dict[str, Any] = {
        "output": output,
        "server": server,
        "include": include,
        "exclude": exclude,
        "skip_deprecated": skip_deprecated,
        "name_limit": name_limit,
        "name_prefix": name_prefix,
        "allow_root": allow_root,
        "allow_host": allow_host,
        "spec_header": spec_header,
        "limit": limit,
    }
    _check_options(target, output, check)
    jobs = _configured(single, api, config) if spec is None else [_job(spec, single, api, config)]
    from toolgen.cli.run import Options, run

    options = Options(target, format_, strict=strict, force=force, check=check, configured=spec is None)
    if code := run(jobs, options):
        raise typer.Exit(code)


def _check_options(target: str | None, output: str | None, check: bool) -> None:
    known = TARGETS.split("|")
    if target is not None and target not in known:
        raise UsageError(f"--target {target!r} is none of {', '.join(known)}{did_you_mean(target, known)}")
    if check and output == "-":
        raise UsageError("--check compares with a file; -o - writes none")
    if output == "":
        raise UsageError("-o needs the name of a file, or - for stdout")


def _configured(single: dict[str, Any], api: str | None, config: str | None) -> list[Job]:
    """The jobs of toolgen.yaml."""
    given = [f"--{name.replace('_', '-')}" for name, value in single.items() if value]
    if given:
        raise UsageError(f"without SPEC everything comes from {CONFIG_NAME}; {', '.join(given)} cannot stand here")
    path = Path(config or CONFIG_NAME)
    if config is None and not path.exists():
        raise UsageError(f"give SPEC, a path or URL of an OpenAPI document; there is no {CONFIG_NAME} here either")
    jobs = list(read_config(path).jobs)
    if not jobs:
        raise UsageError(f"{path} has no `apis`: give SPEC, a path or URL of an OpenAPI document")
    if api is None:
        return jobs
    chosen = [job for job in jobs if job.api == api]
    if not chosen:
        raise UsageError(f"{path} has no API {api!r}{did_you_mean(api, [str(job.api) for job in jobs])}")
    return chosen


def _job(spec: str, single: dict[str, Any], api: str | None, config: str | None) -> Job:
    """The job the command line describes."""
    if config is not None:
        raise UsageError("--config is for generating without SPEC")
    if problem := prefix_problem(single["name_prefix"] or "", single["name_limit"]):
        raise UsageError(f"--name-prefix {single['name_prefix']!r}: {problem}")
    job = Job(
        spec=spec,
        api=api,
        server=single["server"],
        include=tuple(single["include"]) if single["include"] else None,
        exclude=tuple(single["exclude"] or ()),
        skip_deprecated=single["skip_deprecated"],
        name_prefix=single["name_prefix"] or "",
        name_limit=single["name_limit"],
        allow_roots=tuple(single["allow_root"] or ()),
        allow_hosts=tuple(single["allow_host"] or ()),
        headers=_headers(single["spec_header"] or []),
        limits=_limits(single["limit"] or []),
        output=single["output"],
    )
    if job.headers and not job.is_url:
        raise UsageError("--spec-header is for a document that is read from a URL")
    return job


def _limits(given: list[str]) -> dict[str, float]:
    """NAME=N as a mapping. Raises UsageError for a name or number that is none."""
    found: dict[str, float] = {}
    for text in given:
        name, _, value = text.partition("=")
        try:
            found[name] = float(value) if "." in value else int(value)
        except ValueError:
            raise UsageError(f"--limit {text!r}: write NAME=NUMBER, as in bytes=100000000") from None
        if problem := limit_problem(name, found[name]):
            raise UsageError(f"--limit {text!r}: {problem}")
    return found


def _headers(given: list[str]) -> dict[str, str]:
    """NAME=VALUE as a mapping; no message quotes a value."""
    found: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals:
            raise UsageError("--spec-header takes NAME=VALUE; one has no '='")
        if problem := header_problem(name.strip(), value):
            raise UsageError(f"--spec-header {name.strip()[:60]!r}: {problem}")
        found[name.strip()] = value
    return found
