"""Doors for programs that make HTTP requests themselves: httpx2, async, and httpx, plain, over the gated transport."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import httpx2
from door_world import ANN, Got, World
from doors_plain import got_of

from toolgen import Caller, Runtime
from toolgen.adapters.answers import answer
from toolgen.adapters.transport import GatedTransport
from toolgen.errors import ApprovalPending, CallRefused

Request = tuple[str, str, Any]


class TransportDoor:
    """`httpx2.AsyncClient(transport=GatedTransport(runtime))`; what waited is asked for by making it again."""

    amends = False

    def __init__(self, world: World) -> None:
        self.world = world
        self.runtime: Runtime = world.runtime()

    async def open(self) -> None:
        """Nothing is opened before it is used."""

    def raw(self, name: str, arguments: Any) -> Request:
        """What a generated client makes of a call, which checks nothing."""
        url = self.world.api.url
        known: dict[str, tuple[str, str]] = {
            "getPet": ("GET", f"{url}/pets/{arguments.get('id')}"),
            "addPet": ("POST", f"{url}/pets"),
            "editPet": ("PUT", f"{url}/pets/{arguments.get('id')}"),
            "clear": ("DELETE", f"{url}/pets"),
            "getMine": ("GET", f"{url}/mine"),
        }
        return (*known.get(name, ("POST", "http://nobody.example/")), arguments.get("requestBody"))

    async def sent(self, request: Request, caller: Caller | None) -> Any:
        method, url, body = request
        async with httpx2.AsyncClient(transport=GatedTransport(self.runtime, caller=caller)) as client:
            return await client.request(method, url, json=body)

    async def asked(self, request: Request, caller: Caller | None) -> Got:
        try:
            response = await self.sent(request, caller)
        except ApprovalPending as error:
            return Got("pending", error.message, None, error.pause.id, request)
        except CallRefused as error:
            return got_of(answer(error.result), request)
        assert response.status_code == 200
        return Got("ok", response.text, response.json(), None, request)

    async def ask(self, *calls: tuple[str, Any]) -> list[Got]:
        return [await self.asked(self.raw(name, arguments), ANN) for name, arguments in calls]

    async def anonymous(self, name: str, arguments: Any) -> Got:
        return await self.asked(self.raw(name, arguments), None)

    async def later(self, got: list[Got]) -> list[Got]:
        return [await self.asked(one.again, ANN) for one in got]

    async def restart(self) -> None:
        await self.runtime.aclose()
        self.runtime = self.world.runtime()

    async def close(self) -> None:
        await self.runtime.aclose()


class PlainTransportDoor(TransportDoor):
    """`httpx.Client(transport=GatedTransport(runtime))`."""

    async def sent(self, request: Request, caller: Caller | None) -> Any:
        method, url, body = request

        def made() -> Any:
            with httpx.Client(transport=GatedTransport(self.runtime, caller=caller)) as client:  # type: ignore[arg-type]
                return client.request(method, url, json=body)

        response = await asyncio.to_thread(made)
        assert type(response) is httpx.Response
        return response

    async def restart(self) -> None:
        await asyncio.to_thread(self.runtime.sync.aclose)
        await super().restart()

    async def close(self) -> None:
        await asyncio.to_thread(self.runtime.sync.aclose)
        await super().close()
