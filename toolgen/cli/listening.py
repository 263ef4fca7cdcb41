"""Where an MCP server listens for HTTP, and who may speak to it."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import signal
import socket
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from toolgen.cli.output import write
from toolgen.errors import ToolgenError, UsageError

if TYPE_CHECKING:
    import uvicorn

    from toolgen.adapters.mcp_server import McpServer
    from toolgen.approvals.model import Decider

_CLOSE: Final = 2  # seconds that connections have to close


@dataclass(frozen=True, slots=True)
class Listening:
    """What the options say of it, as they were given."""

    host: str
    port: int
    verifier: str | None
    audience: str | None
    issuer: str | None
    hosts: tuple[str, ...]
    origins: tuple[str, ...]

    def check(self) -> None:
        """Raise UsageError for options that cannot stand together."""
        if self.verifier is None and not is_loopback(self.host):
            raise UsageError(f"--host {self.host}: others than this machine need --verifier, which says who they are")
        if self.verifier is not None and "://" in self.verifier and self.audience is None:
            raise UsageError("--verifier URL needs --audience: tokens that are for others must not count here")
        named = "--audience" if self.audience is not None else "--issuer" if self.issuer is not None else None
        if named is not None and (self.verifier is None or "://" not in self.verifier):
            raise UsageError(f"{named} is for a --verifier that is a URL")

    async def serve(self, server: McpServer, who: Decider, stop: asyncio.Event) -> None:
        """Listen until `stop`. Raises ToolgenError for a port it cannot have."""
        import uvicorn

        from toolgen.adapters.mcp_http import LoopbackToken, http_app, verifier_of

        with self._socket() as listener:
            port = listener.getsockname()[1]
            if self.verifier is None:
                verifier: Any = LoopbackToken(who)
                told = f"token    {verifier.token}\n"
            else:
                verifier = verifier_of(self.verifier, audience=self.audience, issuer=self.issuer)
                told = ""
            app = http_app(
                server,
                verifier=verifier,
                host=self.host,
                port=port,
                allowed_hosts=self.hosts,
                allowed_origins=self.origins,
            )
            shown = f"[{self.host}]" if ":" in self.host else self.host
            settings: dict[str, Any] = {"log_config": None, "access_log": False, "server_header": False}
            running = _server(uvicorn.Config(app, timeout_graceful_shutdown=_CLOSE, **settings))
            write(f"serving  http://{shown}:{port}/mcp\n{told}", sys.stderr)
            ends = asyncio.create_task(_ended(stop, running))
            await running.serve(sockets=[listener])
            ends.cancel()

    def _socket(self) -> socket.socket:
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        try:
            return socket.create_server((self.host, self.port), family=family)
        except OSError as error:
            raise ToolgenError(f"{self.host}:{self.port} cannot be listened on: {error.strerror or error}") from None


def _server(config: uvicorn.Config) -> uvicorn.Server:
    """A server that leaves signals to the command: it would end the process by the signal it got."""
    import uvicorn

    class Server(uvicorn.Server):
        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

    return Server(config)


async def _ended(stop: asyncio.Event, running: uvicorn.Server) -> None:
    await stop.wait()
    running.handle_exit(signal.SIGTERM, None)  # by which streams that are open are ended, too


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach what listens on this host."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
