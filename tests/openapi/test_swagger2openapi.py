"""Our reading of Swagger 2.0 beside that of npm's swagger2openapi: the same tools, or a difference with a reason."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from toolgen import Toolset, generate

PACKAGE = "swagger2openapi@7.0.8"
FIXTURES = Path(__file__).parent / "swagger2"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def encoding(*, explode: bool) -> dict[str, Any]:
    """How a form field's array is sent, as a toolset has it."""
    rest = {"contentType": None, "allowReserved": False, "headers": {}, "binary": False}
    return {"style": "form", "explode": explode, **rest}


# Fixture -> place in the toolset -> (ours, theirs, why they differ)
KNOWN: dict[str, dict[str, tuple[Any, Any, str]]] = {
    "bodies": {
        "tools.replacePet.response.mediaTypes[0]": (
            "application/vnd.pet+json",
            "application/json",
            "what an operation produces counts for a shared response too; it converts that once, with the document's",
        ),
    },
    "collections": {
        "server": (
            "https://collections.test",
            "//collections.test",
            "a file has no scheme that a server could take over, and one without any cannot be called",
        ),
        "tools.form.request.body.encoding.csv": (
            encoding(explode=False),
            None,
            "it loses collectionFormat in forms, and repeats what is to be joined by commas",
        ),
        "tools.form.request.body.encoding.multi": (
            encoding(explode=True),
            None,
            "it loses collectionFormat in forms; here the default means the same",
        ),
        "tools.query.request.query[5].explode": (
            False,
            True,
            "tsv has no counterpart: it repeats the parameter, we send commas, and both of us say so",
        ),
    },
    "security": {
        "server": (
            "http://security.test:8443/",
            "http://security.test:8443",
            "it drops a base path of `/` from the document's server and keeps it in an operation's; we keep both",
        ),
    },
}


@pytest.fixture(scope="module")
def npm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for the package; it is installed by the first test that needs it."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed: our reading of Swagger 2.0 is not compared with swagger2openapi")
    return tmp_path_factory.mktemp("npm")


@pytest.fixture
def convert(npm: Path, machine_environ: dict[str, str], tmp_path: Path) -> Any:
    """Swagger 2.0 file -> OpenAPI 3.0 file."""
    program = npm / "node_modules" / ".bin" / "swagger2openapi"

    def run(*command: str) -> None:
        done = subprocess.run(command, env=machine_environ, cwd=npm, capture_output=True, text=True, timeout=240)
        assert done.returncode == 0, done.stderr

    def converted(source: Path) -> Path:
        if not program.exists():
            run("npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(npm), PACKAGE)
        made = tmp_path / f"{source.stem}.json"
        run(str(program), "--warnOnly", "--outfile", str(made), str(source))
        return made

    return converted


def plain(made: Toolset) -> dict[str, Any]:
    """What a toolset says, tools by name, without what tells the two documents apart."""
    whole = made.model_dump(by_alias=True, mode="json")
    del whole["document"], whole["generated"]
    whole["tools"] = {tool["name"]: tool for tool in whole["tools"]}
    return whole


def differences(ours: Any, theirs: Any, place: str = "") -> Iterator[tuple[str, Any, Any]]:
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in sorted({*ours, *theirs}):
            yield from differences(ours.get(key), theirs.get(key), f"{place}.{key}" if place else key)
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for index, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
            yield from differences(mine, other, f"{place}[{index}]")
    elif ours != theirs:
        yield place, ours, theirs


@pytest.mark.parametrize("source", sorted(FIXTURES.glob("*.yaml")), ids=lambda path: path.stem)
def test_both_readings_of_swagger_2_give_the_same_tools(source: Path, convert: Any) -> None:
    found = {
        place: (ours, theirs)
        for place, ours, theirs in differences(plain(generate(source)), plain(generate(convert(source))))
    }
    assert found == {place: (ours, theirs) for place, (ours, theirs, _) in KNOWN.get(source.stem, {}).items()}
