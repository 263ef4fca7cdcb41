"""`toolgen call --dry-run`: the request, the gate's word, the credential and the contract's verdict. Nothing is sent."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from toolgen.cli.called import Contract as Mode
from toolgen.cli.output import Format, Page, print_json, write
from toolgen.errors import ContractError, DispatchRefused, MissingExtra, ToolgenError

if TYPE_CHECKING:
    from toolgen.dispatch.http import Dispatcher
    from toolgen.identity.caller import Caller
    from toolgen.policy.gate import Gate
    from toolgen.policy.outcomes import ToolCall, ToolOutcome
    from toolgen.request.contract import Contract
    from toolgen.request.model import ResolvedRequest

_OUTCOMES = {"allowed": ("runs", "green"), "gated": ("waits for a person", "yellow"), "denied": ("is denied", "red")}
Fact = tuple[str, str, str]  # label, text, style


@dataclass(frozen=True, slots=True)
class _Credential:
    """What one security scheme would fill, and with which references; never the text around these."""

    scheme: str
    location: str
    name: str
    references: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.scheme}: {self.location} {self.name} from {' '.join(self.references) or 'files'}"

    def to_dict(self) -> dict[str, Any]:
        place = {"scheme": self.scheme, "in": self.location, "name": self.name}
        return {**place, "references": list(self.references)}


@dataclass(frozen=True, slots=True)
class DryRun:
    """One call as it would be made. `contract` None is the default: enforced where openapi-core is installed."""

    dispatcher: Dispatcher
    gate: Gate
    asked: ToolCall
    caller: Caller
    contract: Mode | None
    ungated: bool

    def show(self, format_: Format) -> None:
        """Print it.

        Raises RequestError where no request can be made, MissingExtra where a contract that was asked for cannot
        be checked, and typer.Exit where one is enforced and broken.
        """
        request = self.dispatcher.resolve(str(self.asked.name), self.asked.arguments, caller=self.caller)
        outcome = None if self.ungated else self.gate.classify([self.asked]).calls[0].result
        credentials, missing = _credentials(self.dispatcher, request)
        checked, unchecked = self._checked(request)
        preview = request.preview()
        if format_ is Format.json:
            found: dict[str, Any] = {"sent": False, "request": preview.to_dict(), "gate": _gate(outcome)}
            found["credentials"] = [one.to_dict() for one in credentials]
            found |= {"missingCredentials": missing} if missing else {}
            print_json({**found, "contract": _contract(checked, unchecked)}, sys.stdout)
        else:
            facts = [*_gate_facts(outcome), *_credential_facts(credentials, missing)]
            facts += _contract_facts(checked, unchecked)
            page = Page(sys.stdout)
            page.verbatim(str(preview).rstrip("\n"))
            page.line()
            page.facts([*facts, ("sent", "nothing: this is a dry run", "bold")])
            page.print()
        if checked is not None and self.contract in (None, Mode.enforce):
            _enforce(checked, format_)

    def _checked(self, request: ResolvedRequest) -> tuple[Contract | None, str]:
        """The second opinion, or why there is none."""
        if self.contract is Mode.off:
            return None, "--contract off"
        from toolgen.request.contract import check

        try:
            return check(request), ""
        except MissingExtra:
            if self.contract is not None:
                raise
            return None, "pip install 'toolgen[contract]'"


def _enforce(checked: Contract, format_: Format) -> None:
    from toolgen.request.contract import enforce

    try:
        enforce(checked)
    except ContractError as error:
        if format_ is Format.text:
            write(f"error: {error.message}\n", sys.stderr)
        raise typer.Exit(ToolgenError.exit_code) from None


def _credentials(dispatcher: Dispatcher, request: ResolvedRequest) -> tuple[list[_Credential], str]:
    """The credentials a request would get, unresolved; or why it would get none and be refused."""
    bound = dispatcher.upstreams[request.tool.home.api].credentials
    try:
        chosen = bound.choose(request.tool.request.security, request.origin)
    except DispatchRefused as error:
        return [], error.message
    return [
        _Credential(one.scheme, one.location, one.name, tuple(map(str, one.references))) for one in chosen.bindings
    ], ""


def _credential_facts(credentials: list[_Credential], missing: str) -> list[Fact]:
    if missing:
        return [("credentials", f"missing, so that the call would be refused: {missing}", "red")]
    return [("credentials", str(one), "") for one in credentials] or [("credentials", "none", "")]


def _gate(outcome: ToolOutcome | None) -> dict[str, Any]:
    if outcome is None:
        return {"outcome": "off"}
    found = {"outcome": outcome.outcome.name, "pattern": outcome.reason, "where": outcome.where}
    rule = outcome.terms.rule if outcome.terms else None
    return found | ({"rule": str(rule.match)} if rule is not None else {})


def _gate_facts(outcome: ToolOutcome | None) -> list[Fact]:
    if outcome is None:
        return [("gate", "off (--no-gate): it runs, and nobody is asked", "red")]
    words, style = _OUTCOMES[outcome.outcome.name]
    why = "no pattern speaks of it" if outcome.reason == outcome.where else f"{outcome.where} is {outcome.reason}"
    rule = outcome.terms.rule if outcome.terms else None
    return [("gate", f"{words}: {why}", style), *([("rule", str(rule.match), "")] if rule is not None else [])]


def _contract(checked: Contract | None, unchecked: str) -> dict[str, Any]:
    if checked is None:
        return {"status": "unchecked", "message": unchecked}
    return {
        "status": checked.status,
        "source": checked.source,
        "problems": [one.to_dict() for one in checked.problems],
        "leftOut": [one.to_dict() for one in checked.left_out],
    }


def _contract_facts(checked: Contract | None, unchecked: str) -> list[Fact]:
    if checked is None:
        return [("contract", f"unchecked: {unchecked}", "yellow")]
    style = {"ok": "green", "partial": "", "failed": "red", "unchecked": "red"}[checked.status]
    facts = [("contract", f"{checked.status}, against the {checked.source}", style)]
    facts += [("", str(one), "red") for one in checked.problems]
    return facts + [("", f"not looked at: {one}", "dim") for one in checked.left_out]
