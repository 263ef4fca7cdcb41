"""Toolset files that change while they are served: what is taken, what is void, what is told."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from toolgen import Caller, Dispatcher, Runtime, ToolCall, generate, load_toolset
from toolgen.cli import serve
from toolgen.cli.reloading import Files, stamp
from toolgen.cli.serving import Serving

FILE = Path("petstore.tools.yaml")
ADA = Caller("ada")
REX = {"requestBody": {"name": "Rex", "species": "dog"}}


class Watched:
    """A runtime over the file, and what was told of it."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self.toolset = generate("petstore.yaml", server="http://127.0.0.1:9")
        self.toolset.save(FILE)
        loaded = load_toolset(FILE)
        self.runtime = Runtime(Dispatcher(loaded, credentials={"bearerAuth": "${env:SHOP_TOKEN}"}), background=False)
        self.changes = 0
        self.seen = ""

    async def _changed(self) -> None:
        self.changes += 1

    @property
    def tools(self) -> set[str]:
        (source,) = self.runtime.known
        return {tool.name for tool in source.toolset.tools}

    @asynccontextmanager
    async def watching(self, *others: Path) -> AsyncIterator[None]:
        files = Files(self.runtime, {FILE: "petstore"}, {path: stamp(path) for path in (FILE, *others)}, self._changed)
        task = asyncio.create_task(files.watch())
        try:
            yield
        finally:
            task.cancel()
            await self.runtime.aclose()

    async def told(self, text: str) -> None:
        """Wait until it was said on stderr."""
        async with asyncio.timeout(10):
            while text not in self.seen:
                await asyncio.sleep(0.02)
                self.seen += self._capsys.readouterr().err


@pytest.fixture
def watched(folder: Path, capsys: pytest.CaptureFixture[str]) -> Watched:
    return Watched(capsys)


def test_a_changed_toolset_is_taken_and_what_waits_for_a_tool_that_changed_is_void(watched):
    async def use() -> None:
        async with watched.watching():
            void = await watched.runtime.submit([ToolCall("1", "createPet", REX)], caller=ADA)
            kept = await watched.runtime.submit([ToolCall("2", "deletePet", {"petId": "7"})], caller=ADA)
            tools = [
                tool.model_copy(update={"parameters": {**tool.parameters, "minProperties": 1}})
                if tool.name == "createPet"
                else tool
                for tool in watched.toolset.tools
                if tool.name != "getStock"
            ]
            watched.toolset.model_copy(update={"tools": tuple(tools)}).save(FILE)
            await watched.told("was read again: 9 tools; 1 pause void")
            assert watched.changes == 1
            assert "getStock" not in watched.tools
            states = [watched.runtime.store.pause(one.pause.id, "default").calls[0].state for one in (void, kept)]
            assert states == ["cancelled", "pending"]

    asyncio.run(use())


def test_a_file_that_cannot_be_read_leaves_the_tools_as_they_are(watched):
    async def use() -> None:
        before, good = watched.tools, FILE.read_text(encoding="utf-8")
        async with watched.watching():
            for text in ("tools: [", "", None, "toolgen: 1\n"):
                FILE.unlink() if text is None else FILE.write_text(text, encoding="utf-8")
                await watched.told("petstore.tools.yaml was not taken; the old tools stay")
                assert (watched.tools, watched.changes) == (before, 0)
                watched.seen = ""
            FILE.write_text(good, encoding="utf-8")
            await watched.told("was read again: 10 tools")
            assert (watched.tools, watched.changes) == (before, 1)

    asyncio.run(use())


def test_a_file_of_another_api_is_not_taken(watched):
    async def use() -> None:
        async with watched.watching():
            generate("petstore.yaml", api="other").save("other.tools.yaml")
            os.replace("other.tools.yaml", FILE)
            await watched.told("is of the API 'other' now, and was of 'petstore'")
            assert watched.changes == 0

    asyncio.run(use())


def test_a_changed_approval_config_is_told_to_count_from_the_next_start(watched):
    config = Path("approvals.yaml")
    config.write_text("unmatched: allow\n", encoding="utf-8")

    async def use() -> None:
        async with watched.watching(config):
            config.write_text("unmatched: deny\n", encoding="utf-8")
            await watched.told("approvals.yaml has changed: it counts from the next start")

    asyncio.run(use())


def test_a_file_that_changes_while_the_server_starts_is_seen_as_changed(watched, toolgen, monkeypatch):
    started, read = [], serve._read

    def read_and_changed(*given: Any) -> Any:
        found = read(*given)
        FILE.write_text(f"{FILE.read_text()}\n# more\n")
        return found

    monkeypatch.setattr(serve, "_read", read_and_changed)
    monkeypatch.setattr(Serving, "run", lambda self, *_: started.append(self))
    assert toolgen("serve", str(FILE)).exit_code == 0
    assert set(started[0].stamps) == {FILE}
    assert started[0].stamps[FILE] != stamp(FILE)
