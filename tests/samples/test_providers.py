"""The loops for model providers run offline as they stand, with the providers' own clients."""

from __future__ import annotations

import subprocess
import sys

import pytest
from shown import ROOT

REX = '{"id": "7", "name": "Rex", "species": "dog", "status": "available", "price": 120.5}'


@pytest.mark.parametrize(
    ("name", "options", "answer", "first", "second"),
    [
        ("openai_loop", ["--yes"], "", "call_1_0", "call_1_1"),
        ("anthropic_loop", [], "n", "toolu_1_0", "toolu_1_1"),
    ],
)
def test_a_loop_asks_a_person_and_tells_the_model(
    name: str, options: list[str], answer: str, first: str, second: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", str(ROOT / f"samples/providers/{name}.py"), *options],
        capture_output=True,
        text=True,
        input=f"{answer}\n",
        timeout=60,
    )
    assert done.stderr == ""
    lines = done.stdout.replace("approve? [y/N] ", "").splitlines()
    assert lines[0] == "Deletes a pet for good (deletePet)."
    assert lines[1].strip().startswith("DELETE http://127.0.0.1:")
    assert lines[2] == "Rex is sold and gone."
    assert REX in lines
    assert f'{first}: etag: "1"' in lines
    assert [line for line in lines if line.startswith(second)] == [
        f"{second}: HTTP 204"
        if options
        else f"{second}: deletePet was rejected by a reviewer; nothing was sent. Do not call it again with these arguments."
    ]
