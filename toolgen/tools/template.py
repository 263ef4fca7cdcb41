"""The template language of a leaf: what may stand in it, and which arguments it reads.

A leaf is a jinja2 expression over the tool's arguments. What is allowed is a list of syntax
nodes: text, a name, attribute or constant-key access, and a few filters. Loops, calls and
arithmetic are not on it, so rendering is linear and reads declared arguments only.

An argument whose key is no jinja2 name (`2fa-code`, `self`, `in`) is read as `arguments['2fa-code']`.

Around the expressions a person may write references (`tenant-${context:tenant}`). `pieces` takes them out
before jinja2 sees the text, so that no expression can make one and none is looked for in a value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING, Any

from toolgen.identity.references import Reference, ReferenceFault, parse

if TYPE_CHECKING:
    from jinja2 import Environment, nodes

FILTERS = ("default", "join", "lower", "replace", "string", "trim", "upper")
ALL_ARGUMENTS = "arguments"
# jinja2's keywords and literals, and the names it gives a meaning of its own inside templates.
RESERVED = frozenset(
    "and as block call caller context elif else endfor endif extends false False filter for from if import in "
    "include is kwargs loop macro none None not or raw recursive scoped self set super true True varargs with "
    "without".split()
) | {ALL_ARGUMENTS}

_BESIDE = "references stand in text, beside expressions: tenant-${context:tenant}-{{ id }}"
_BARE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_EXACT = re.compile(r"\{\{\s*(?:([A-Za-z_][A-Za-z0-9_]*)|arguments\['([A-Za-z0-9_-]+)'\])\s*\}\}")


class TemplateFault(ValueError):
    """A leaf says something the language does not have; the message says what, `hint` what it has."""

    def __init__(self, message: str, hint: str = "a leaf may read arguments and constants only") -> None:
        super().__init__(message)
        self.hint = hint


def leaf_of(argument: str) -> str:
    """The leaf that is exactly this argument."""
    if _BARE.fullmatch(argument) and argument not in RESERVED:
        return "{{ " + argument + " }}"
    return "{{ " + ALL_ARGUMENTS + "['" + argument + "'] }}"


def argument_of(value: Any) -> str | None:
    """The argument a leaf consists of, or None if the leaf is anything else."""
    match = _EXACT.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        return None
    name = match[1] or match[2]
    return None if match[1] in RESERVED else name


def arguments_in(value: Any) -> frozenset[str]:
    """Every argument a leaf reads; lists and mappings are searched.

    Raises TemplateFault for syntax errors and for anything the language does not have.
    """
    if isinstance(value, str):
        exact = argument_of(value)
        if exact is not None:
            return frozenset({exact})
        texts = [piece for piece in pieces(value) if isinstance(piece, str) and is_template(piece)]
        return frozenset().union(*map(_arguments_in_text, texts))
    if isinstance(value, dict):
        return frozenset().union(*map(arguments_in, value.values()))
    if isinstance(value, list | tuple):
        return frozenset().union(*map(arguments_in, value))
    return frozenset()


def is_template(text: str) -> bool:
    """Whether a text has anything jinja2 would not leave as it is."""
    return "{{" in text or "{%" in text or "{#" in text


def pieces(text: str) -> tuple[str | Reference, ...]:
    """A leaf's text as jinja2 texts and the references between them, in order; one text if there are none.

    Rendered one by one, the texts give what the whole would. Raises TemplateFault for what is no reference,
    and for one inside an expression, a comment or a raw block.
    """
    if "{" not in text or argument_of(text) is not None:
        return (text,)
    try:
        if not is_template(text):
            return parse(text).pieces
        found: list[str | Reference] = []
        for is_data, part in _segments(text):
            known = parse(part).pieces
            if not is_data and known != (part,):
                raise TemplateFault("a reference cannot stand inside `{{ }}`, a comment or a raw block", _BESIDE)
            found += known
    except ReferenceFault as fault:
        raise TemplateFault(str(fault), _BESIDE) from None
    return tuple(_joined(found)) if any(isinstance(piece, Reference) for piece in found) else (text,)


def _segments(text: str) -> Iterator[tuple[bool, str]]:
    """The text as jinja2's lexer cuts it: (whether it is plain text, the source of the segment)."""
    from jinja2 import TemplateSyntaxError

    inside: list[str] = []
    depth = 0
    try:
        for _, kind, source in environment().lex(text):
            depth += kind.endswith("_begin") - kind.endswith("_end")
            if depth or kind.endswith("_end"):
                inside.append(source)
            else:
                yield True, source
            if not depth and inside:
                yield False, "".join(inside)
                inside = []
    except TemplateSyntaxError as error:
        raise TemplateFault(f"not a template: {error.message}") from None
    if inside:
        yield False, "".join(inside)


def _joined(found: list[str | Reference]) -> Iterator[str | Reference]:
    """Neighbouring texts as one."""
    for is_text, group in groupby(found, key=lambda piece: isinstance(piece, str)):
        if is_text:
            yield "".join(map(str, group))
        else:
            yield from group


def _arguments_in_text(text: str) -> frozenset[str]:
    from jinja2 import TemplateSyntaxError

    try:
        tree = environment().parse(text)
    except TemplateSyntaxError as error:
        raise TemplateFault(f"not a template: {error.message}") from None
    return frozenset(_names(tree))


def _names(node: nodes.Node) -> Iterator[str]:
    """Walk a template's syntax tree, refusing what is not allowed, and yield the arguments read."""
    from jinja2 import nodes

    if isinstance(node, nodes.Name):
        if node.name in RESERVED:
            raise TemplateFault(f"{node.name!r} is not an argument; write {ALL_ARGUMENTS}['{node.name}'] for a key")
        yield node.name
        return
    if isinstance(node, nodes.Getattr | nodes.Getitem):
        yield from _access(node)
        return
    if isinstance(node, nodes.Filter):
        if node.name not in FILTERS:
            raise TemplateFault(f"no filter {node.name!r}; there are {', '.join(FILTERS)}")
    elif not isinstance(node, nodes.Template | nodes.Output | nodes.TemplateData | nodes.Const | nodes.Keyword):
        raise TemplateFault(f"{type(node).__name__} is not allowed in a leaf; use an argument, text or a filter")
    for child in node.iter_child_nodes():
        yield from _names(child)


def _access(node: nodes.Getattr | nodes.Getitem) -> Iterator[str]:
    from jinja2 import nodes

    key = node.attr if isinstance(node, nodes.Getattr) else getattr(node.arg, "value", None)
    if not isinstance(key, str | int) or (isinstance(key, str) and key.startswith("__")):
        raise TemplateFault("only constant keys can be read")
    if isinstance(node.node, nodes.Name) and node.node.name == ALL_ARGUMENTS:
        yield str(key)
    else:
        yield from _names(node.node)


@cache
def environment() -> Environment:
    """The sandbox leaves are parsed (and rendered) in: no globals, no loader, undefined is an error.

    Text stays as it is written, the line break at its end included. `a.items` is the member of that name, as in JSON, and never an attribute of a Python object.
    """
    from jinja2 import StrictUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Members(ImmutableSandboxedEnvironment):
        """Reads members of mappings and lists, and nothing else."""

        def getitem(self, obj: Any, argument: Any) -> Any:
            known = isinstance(obj, dict) or (isinstance(obj, list | tuple) and type(argument) is int)
            try:
                return obj[argument] if known else self.undefined(obj=obj, name=argument)
            except LookupError:
                return self.undefined(obj=obj, name=argument)

        def getattr(self, obj: Any, attribute: str) -> Any:
            return self.getitem(obj, attribute)

    made = Members(undefined=StrictUndefined, autoescape=False, keep_trailing_newline=True)
    made.globals.clear()
    made.filters = {name: made.filters[name] for name in FILTERS}
    made.tests.clear()
    return made
