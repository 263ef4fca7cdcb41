"""Who uses a command line: the user of the operating system, or whom the `authenticator` of a toolgen.yaml gives.

Never an option: whoever could say so would be anybody.
"""

from __future__ import annotations

import getpass
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolgen.cli.config import CONFIG_NAME, read_config
from toolgen.errors import DecisionForbidden, ToolgenError, UsageError

if TYPE_CHECKING:
    from toolgen.approvals.model import Decider

TenantOption = Annotated[
    str | None,
    typer.Option("--tenant", metavar="NAME", help="Whose. Default: the authenticator's, else default."),
]
WhoOption = Annotated[
    str | None,
    typer.Option("--config", metavar="FILE", help=f"Its authenticator says who you are. Default: {CONFIG_NAME}."),
]


def person(config: str | None, tenant: str | None = None) -> Decider:
    """Who is here, by the authenticator of the config or of the current folder's; without one, the user of the system.

    The user of the system has no roles and is of whatever tenant they say. Raises UsageError for an authenticator
    that fails, ConfigError, and DecisionForbidden for another tenant than the authenticator's.
    """
    from toolgen.approvals.model import Decider
    from toolgen.identity.caller import DEFAULT_TENANT

    if tenant == "":
        raise UsageError("--tenant needs a name")
    named = _authenticator(config)
    if named is None:
        return Decider(login(), tenant=DEFAULT_TENANT if tenant is None else tenant)
    found = _checked(named, _asked(named))
    if tenant not in (None, found.tenant):
        raise DecisionForbidden(f"--tenant {tenant!r}: {found.subject!r} is of the tenant {found.tenant!r}")
    return found


def login() -> str:
    """The login name of the operating system's user, whatever the environment says of it."""
    try:
        import pwd

        return pwd.getpwuid(os.getuid()).pw_name
    except (ImportError, KeyError):
        try:
            return getpass.getuser()
        except (KeyError, OSError, ImportError):
            raise UsageError("this process has no login name, which is who calls") from None


def _authenticator(config: str | None) -> str | None:
    if config is None and not Path(CONFIG_NAME).exists():
        return None
    return read_config(Path(config or CONFIG_NAME)).authenticator


def _asked(named: str) -> Any:
    """What the function gives. A message of another's error may hold a token, so that only its kind is told."""
    import asyncio
    import inspect

    function = _function(named)

    async def awaited(found: Any) -> Any:
        return await found

    try:
        found = function()
        return asyncio.run(awaited(found)) if inspect.isawaitable(found) else found
    except ToolgenError as error:
        raise UsageError(f"the authenticator {named} does not know who you are: {error.message}") from None
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever it is, nobody is known
        raise UsageError(f"the authenticator {named} failed: {type(error).__name__}; nothing was done") from None


def _function(named: str) -> Any:
    """The function of `module:function`, found as Python finds modules: not in the current folder.

    Whoever unpacked a folder would otherwise run its code by looking at what waits.
    """
    from importlib import import_module

    name, _, function = named.partition(":")
    try:
        found: Any = vars(import_module(name)).get(function)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the same
        missing = (error.name or "") if isinstance(error, ModuleNotFoundError) else ""
        if missing and f"{name}.".startswith(f"{missing}."):
            said = f"there is no module {missing!r}: install it, or name its folder in PYTHONPATH"
            raise UsageError(f"the authenticator {named}: {said}") from None
        raise UsageError(f"the authenticator {named} cannot be imported: {type(error).__name__}") from None
    if not callable(found):
        raise UsageError(f"the authenticator {named}: {name} has no function {function!r}")
    return found


def _checked(named: str, found: Any) -> Decider:
    """The Decider that was given. Raises UsageError for anything that would not be one person of one tenant."""
    from toolgen.approvals.model import SYSTEM, Decider

    if not isinstance(found, Decider):
        raise UsageError(f"the authenticator {named} gave no toolgen.Decider")
    given: dict[str, Any] = {"subject": found.subject, "tenant": found.tenant}  # whatever its type checker said
    for name, text in given.items():
        if not isinstance(text, str) or not text.strip() or not text.isprintable() or text.startswith(SYSTEM):
            raise UsageError(f"the authenticator {named} gave a {name} that is no name")
    roles: Any = found.roles
    if not isinstance(roles, frozenset) or not all(isinstance(role, str) for role in roles):
        raise UsageError(f"the authenticator {named} gave roles that are no frozenset of names")
    return found
