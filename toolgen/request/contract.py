"""A second opinion on a resolved request: openapi-core reads its bytes against a document of one operation.

openapi-core shares no code with what made the request: it takes URL, headers and body apart by OpenAPI's
rules and validates what it finds. It needs the extra `contract`. The host and credentials are not looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from toolgen.errors import ContractError, MissingExtra, Problem
from toolgen.openapi.references import escape
from toolgen.openapi.source import Document
from toolgen.request.contract_app import Application, application
from toolgen.request.contract_document import OneOperation, one_operation
from toolgen.request.contract_parts import Described, from_document, from_tool
from toolgen.request.contract_wire import Wire, read_request
from toolgen.request.model import ResolvedRequest
from toolgen.request.pertool import PerTool
from toolgen.tools.model import Tool

Status = Literal["ok", "partial", "failed", "unchecked"]
Source = Literal["document", "toolset"]
_MOST_PROBLEMS: Final = 20


@dataclass(frozen=True, slots=True)
class Contract:
    """What openapi-core says of one request.

    `ok`: everything was looked at and is as described. `partial`: the same, apart from what `left_out` names.
    `failed`: `problems` say where and which rule. `unchecked`: there is no opinion, `left_out` says why.
    `where` of both is a pointer such as `/query/limit` or `/body/tags/0`; neither holds a value of the request.
    `source` is what the request was checked against.
    """

    status: Status
    source: Source
    problems: tuple[Problem, ...] = ()
    left_out: tuple[Problem, ...] = ()


class Contracts:
    """Checks requests against a document, or without one against the toolsets of their tools.

    The document is a mapping as `toolgen.openapi.source` loads it, or its Document, whose references into files
    beside it are read once, when a tool of theirs is first checked; nothing is ever fetched. What was built for
    a tool is kept as long as the tool is.
    """

    def __init__(self, document: Document | Mapping[str, Any] | None = None) -> None:
        self.document = document
        self.source: Source = "toolset" if document is None else "document"
        self._describe = from_tool if document is None else from_document(document)
        self._prepared = PerTool(self._prepare)

    def check(self, request: ResolvedRequest) -> Contract:
        """What openapi-core says of the request. Raises MissingExtra without the extra `contract`."""
        _require_extra()
        prepared = self._prepared(request.tool)
        if isinstance(prepared, str):
            return Contract("unchecked", self.source, left_out=(Problem(prepared),))
        operation, app = prepared
        try:
            wire = read_request(request, operation)
            problems = [*wire.problems, *_problems(app, wire)][:_MOST_PROBLEMS]
        except Exception as error:  # noqa: BLE001 (whatever openapi-core stumbles over, there is no opinion then)
            why = f"openapi-core could not read the request ({type(error).__name__})"
            return Contract("unchecked", self.source, left_out=(*operation.left_out, Problem(why)))
        left_out = (*operation.left_out, *wire.left_out)
        status: Status = "failed" if problems else "partial" if left_out else "ok"
        return Contract(status, self.source, tuple(problems), left_out)

    def _prepare(self, tool: Tool) -> tuple[OneOperation, Application] | str:
        """The document of one operation and what checks against it, or why there is none."""
        try:
            described: Described | str = self._describe(tool)
            if isinstance(described, str):
                return described
            operation = one_operation(described)
            return operation, application(operation)
        except Exception as error:  # noqa: BLE001 (as above: a document it cannot be built from is no opinion)
            return f"the operation could not be described to openapi-core ({type(error).__name__})"


_of_toolsets = Contracts()
_of_document: list[Contracts] = []  # the last one: a program checks against one document


def check(request: ResolvedRequest, *, document: Document | Mapping[str, Any] | None = None) -> Contract:
    """What openapi-core says of a request; see Contracts, whose last document is kept.

    Raises MissingExtra where openapi-core is not installed.
    """
    if document is None:
        return _of_toolsets.check(request)
    if not _of_document or _of_document[0].document is not document:
        _of_document[:] = [Contracts(document)]
    return _of_document[0].check(request)


def enforce(contract: Contract) -> None:
    """Let a request pass that is as described, as far as can be told.

    Raises ContractError for `failed` and `unchecked`: an opinion that is not there is no consent.
    """
    if contract.status == "failed":
        message = f"the request is not what the {contract.source} describes; nothing was sent"
        raise ContractError(message, contract.problems)
    if contract.status == "unchecked":
        message = f"the request could not be checked against the {contract.source}; nothing was sent"
        raise ContractError(message, contract.left_out)


def _require_extra() -> None:
    try:
        import openapi_core  # noqa: F401
    except ImportError:
        raise MissingExtra(
            "checking a request against its document needs openapi-core: pip install 'toolgen[contract]'"
        ) from None


def _problems(app: Application, wire: Wire) -> Iterator[Problem]:
    """Every error openapi-core finds, apart from those about what it cannot read."""
    from openapi_core.exceptions import OpenAPIError

    for error in app.errors(wire):
        if not isinstance(error, OpenAPIError):
            raise error
        location, name = getattr(error, "location", ""), getattr(error, "name", "")
        where = f"/{location}/{escape(name)}" if location else "/body"
        if (location or "body", name) in wire.unreadable:
            continue
        yield from _told(error, where)


def _told(error: Exception, where: str) -> Iterator[Problem]:
    """An error of openapi-core in our words, without any value of the request: its own messages quote them."""
    from openapi_core.casting.schemas.exceptions import CastError
    from openapi_core.templating.media_types.exceptions import MediaTypeNotFound
    from openapi_core.validation.request.exceptions import MissingParameterError, MissingRequestBodyError
    from openapi_core.validation.schemas.exceptions import InvalidSchemaValue

    cause = error.__cause__ if error.__cause__ is not None else error
    if isinstance(cause, InvalidSchemaValue):
        for fault in cause.schema_errors:
            yield Problem(_rule(fault), where + _below(fault))
    elif isinstance(error, MissingParameterError | MissingRequestBodyError):
        yield Problem("required: it is not there", where)
    elif isinstance(cause, MediaTypeNotFound):
        yield Problem("its media type is not declared", where)
    elif isinstance(cause, CastError):
        kind = cause.type if isinstance(cause.type, str) else "the type that is declared"
        yield Problem(f"type: it cannot be read as {kind}", where)
    else:
        yield Problem(f"it cannot be read as its style or media type says ({type(cause).__name__})", where)


def _rule(fault: Any) -> str:
    """The keyword a value does not satisfy, with what the schema says where that is short and no value."""
    rule, said = str(fault.validator), fault.validator_value
    if rule in ("type", "format") and isinstance(said, str):
        return f"{rule}: expected {said}"
    if rule == "required" and isinstance(said, list) and isinstance(fault.instance, dict):
        return "required: " + ", ".join(repr(name) for name in said if name not in fault.instance)
    return f"{rule}: the value does not satisfy it" if rule != "None" else "no value is allowed there"


def _below(fault: Any) -> str:
    """Where in the value, as a JSON pointer; a key the schema does not name could be anything and is `*`."""
    named = set(map(str, fault.absolute_schema_path))
    tokens = (t if isinstance(t, int) or t in named else "*" for t in fault.absolute_path)
    return "".join(f"/{escape(str(token))}" for token in tokens)
