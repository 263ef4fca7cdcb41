"""`toolgen serve` under the command line of the MCP Inspector, which is npm's and others': both transports and eras."""

from __future__ import annotations

import json
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from served import REX, Shop, made, over_http
from shown import petstore

INSPECTOR = "@modelcontextprotocol/inspector@2.12.0"
NODE = "22.22.0"  # the Inspector needs 22.19; npm has the program itself, whatever node is installed
ARCHITECTURES = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def npm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for the packages; they are installed by the first test that needs them."""
    if shutil.which("npm") is None or sys.platform != "linux" or platform.machine() not in ARCHITECTURES:
        pytest.skip("there is no npm, or no program of node for this machine: the MCP Inspector is not tried")
    return tmp_path_factory.mktemp("npm")


@pytest.fixture
def inspect(npm: Path, machine_environ: dict[str, str], tmp_path: Path) -> Callable[..., Any]:
    """The result of `inspector --cli ARGS`, as data."""
    node = f"node-linux-{ARCHITECTURES[platform.machine()]}"
    program = npm / "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"

    def run(*command: str) -> str:
        environ = {**machine_environ, "HOME": str(tmp_path)}
        done = subprocess.run(
            command, env=environ, cwd=npm, capture_output=True, text=True, timeout=240, stdin=subprocess.DEVNULL
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def inspected(*args: str) -> Any:
        if not program.exists():
            packages = [INSPECTOR, f"{node}@{NODE}"]
            options = ["--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(npm)]
            run("npm", "install", *options, *packages)
        started = [str(npm / "node_modules" / node / "bin/node"), str(program), "--cli"]
        return json.loads(run(*started, *args, "--quiet", "--format", "json"))["result"]

    return inspected


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    with petstore() as api:
        yield made(tmp_path, api)


def tried(shop: Shop, inspect: Callable[..., Any], where: list[str]) -> None:
    """List, call what runs, call what waits, and ask for what was approved."""

    def called(name: str, arguments: Any) -> Any:
        given = ["--tool-name", name, "--tool-args-json", json.dumps(arguments)]
        return inspect(*where, "--method", "tools/call", *given)["structuredContent"]

    listed = inspect(*where, "--method", "tools/list", "--strict")["tools"]  # no schema that clients stumble on
    (tool,) = [one for one in listed if one["name"] == "createPet"]
    assert tool["inputSchema"]["required"] == ["requestBody"]
    assert called("getPet", {"petId": "7"})["result"]["name"] == "Rex"
    waits = called("createPet", REX)
    assert waits["status"] == "pending"
    shop.approve(waits["approvalId"])
    assert called("get_approval_result", {"approvalId": waits["approvalId"]})["result"]["species"] == "dog"
    assert shop.api.requests == ["GET /v1/pets/7", "POST /v1/pets"]


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_the_inspector_uses_it_over_stdio_by_the_settings_of_the_readme(shop, inspect, era):
    settings = shop.path("mcp.json")
    settings.write_text(json.dumps({"mcpServers": {"petstore": shop.settings()}}), encoding="utf-8")
    where = ["--config", str(settings), "--server", "petstore", "--protocol-era", era]
    tried(shop, inspect, where)


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_the_inspector_uses_it_over_http_with_the_token_that_was_printed(shop, inspect, era):
    with over_http(shop) as (url, token):
        header = f"Authorization: Bearer {token}"
        where = ["--server-url", url, "--transport", "http", "--header", header, "--protocol-era", era]
        tried(shop, inspect, where)
