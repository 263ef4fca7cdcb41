"""What a model asked for in one response of its provider, and what it is answered."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from toolgen.adapters.answers import Answer, answer, answers
from toolgen.errors import LimitExceeded, SyntaxFault, UsageError
from toolgen.openapi.source.json_text import load_json
from toolgen.policy.outcomes import ToolCall
from toolgen.result import Sent, ToolResult
from toolgen.tools.export.strict_nulls import strip_strict_nulls

if TYPE_CHECKING:
    from toolgen.adapters.offered import Offer
    from toolgen.runtime.submit import Submission

CUT_OFF: Final = "the response was cut off before this call was whole: it was not run; make it again"
NO_ID: Final = "this call has no id, by which its result could be given: it was not run"
_OF_HELPERS: Final = ("parsed", "parsed_arguments", "parsed_output")


@dataclass(frozen=True)
class Turn:
    """The calls of one response.

    `calls` are what `runtime.submit` takes; `id` is the response's, so that the same response submitted again is
    recognised (`turn=`). `said` is what the provider wants back in front of the results: the model's own message.
    `faults` are calls that cannot be run as they stand, with what the model is told. `ids` are all, in order.
    """

    id: str | None
    calls: tuple[ToolCall, ...] = ()
    said: tuple[Mapping[str, Any], ...] = field(default=(), repr=False)
    faults: Mapping[str, ToolResult] = field(default_factory=dict)
    ids: tuple[str, ...] = ()

    def answers(
        self, done: Submission | None, results: Mapping[str, ToolResult] | None = None, review_url: str | None = None
    ) -> Iterator[tuple[str, Answer]]:
        """One answer for each call id, in order: of what ran or waits, and of what could not be run.

        `results` are those of the pause once it was decided (`runtime.wait`, `runtime.resume`).
        """
        found = answers(done, review_url) if done is not None else {}
        found |= {id: answer(one) for id, one in {**(results or {}), **self.faults}.items()}
        lost = ToolResult(False, Sent.not_sent, message="the call was not run")
        for id in dict.fromkeys(self.ids):
            yield id, found.get(id) or answer(lost)


@dataclass(frozen=True)
class Asked:
    """One call as a provider writes it: its arguments are JSON text, or data where the provider parsed it."""

    id: str
    name: str
    arguments: Any = field(repr=False)
    is_whole: bool = True

    def __post_init__(self) -> None:
        given: tuple[Any, Any] = self.id, self.name  # of a response, where types are a promise
        if not all(isinstance(one, str) for one in given):
            raise TypeError("the id and the name of a call are texts")


def turn_of(
    offer: Offer, asked: Iterable[Asked], *, id: str | None, said: Iterable[Mapping[str, Any]], strict: bool = False
) -> Turn:
    """The turn of the calls that were asked for."""
    calls, faults, ids = [], {}, []
    for one in asked:
        ids.append(one.id)
        if not (one.is_whole and one.id):
            faults[one.id] = ToolResult(False, Sent.not_sent, message=CUT_OFF if one.id else NO_ID)
            continue
        try:
            arguments = arguments_of(one.arguments)
        except ValueError as fault:
            said_of_it = f"the arguments of {one.name[:128]} are not valid: {fault}; it was not run"
            faults[one.id] = ToolResult(False, Sent.not_sent, message=said_of_it)
            continue
        tool = offer.tools.get(one.name)
        if strict and tool is not None:
            arguments = strip_strict_nulls(tool, arguments)
        calls.append(offer.tool_call(one.name, arguments, one.id))
    # An id that stands for several calls is answered once: nobody could say which of them it is.
    whole = tuple(call for call in calls if call.id not in faults)
    return Turn(id or None, whole, tuple(said), faults, tuple(ids))


def arguments_of(given: Any) -> dict[str, Any]:
    """The arguments a provider gives as JSON text, written once or twice, or as data. No text means none.

    Raises ValueError, for the model to read: no JSON, a key twice, NaN, no object.
    """
    found = given
    for _ in range(2):
        if isinstance(found, str):
            found = _parsed(found) if found.strip() else {}
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise ValueError("expected a JSON object")
    return found


def _parsed(text: str) -> Any:
    try:
        return load_json(text, "it")
    except LimitExceeded:
        raise ValueError("it is nested too deep") from None
    except SyntaxFault as fault:
        told = [f"{one.message.partition(chr(10))[0]} (line {one.line}, column {one.column})" for one in fault.problems]
        raise ValueError("; ".join(told) or fault.message) from None


def plain(given: Any) -> Any:
    """A response as data: an SDK's object is what it was made from."""
    dump = getattr(given, "model_dump", None)
    return dump(mode="json", exclude_unset=True) if callable(dump) else given


def sent_back(part: Mapping[str, Any]) -> dict[str, Any]:
    """A part of a response as its API takes it back: without what only the client's helpers (`parse`, `stream`) add."""
    return {key: value for key, value in part.items() if key not in _OF_HELPERS}


def events_of(response: Any) -> list[Mapping[str, Any]] | None:
    """The events of a stream that was collected, in order; None for a whole response."""
    if isinstance(response, Mapping):
        return None
    if not isinstance(response, Iterable) or isinstance(response, str | bytes):
        raise UsageError("expected a response, or the events of one in a list")
    return [event for event in map(plain, response) if isinstance(event, Mapping)]
