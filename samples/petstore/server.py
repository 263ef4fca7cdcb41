"""The API of petstore.yaml on this machine, with three pets in memory, to try calls on.

    python samples/petstore/server.py                    listens on http://127.0.0.1:8765/v1 until it is interrupted
    python samples/petstore/server.py --run 'COMMAND'    runs a shell command with its URL in $PETSTORE, and ends

Any bearer token will do; a request without one is answered 401.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

PORT = 8765
Answer = tuple[int, Any, dict[str, str]]  # status, JSON body (None: none), headers


def shop() -> dict[str, dict[str, Any]]:
    """The pets by id, as they are when the shop opens."""
    pets: list[dict[str, Any]] = [
        {"name": "Rex", "species": "dog", "status": "available", "price": 120.5},
        {"name": "Tom", "species": "cat", "status": "available", "price": 60},
        {"name": "Kiki", "species": "bird", "status": "sold"},
    ]
    return {str(number): {"id": str(number), **pet} for number, pet in enumerate(pets, 7)}


class Petstore(ThreadingHTTPServer):
    """The shop. `requests` are the request lines it got, in order."""

    daemon_threads = True

    def __init__(self, port: int = PORT) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.pets, self.requests = shop(), list[str]()

    @property
    def url(self) -> str:
        """The server's URL, as a document has it."""
        return f"http://127.0.0.1:{self.server_port}/v1"

    def answer(self, method: str, path: str, query: dict[str, list[str]], body: Any) -> Answer:
        """What the API answers."""
        if path == "/pets":
            return self._add(body, query) if method == "POST" else self._page(query)
        if path == "/pets/mine":
            return 200, [pet for pet in self.pets.values() if pet["status"] == "sold"], {}
        if path == "/stock":
            states = [pet["status"] for pet in self.pets.values()]
            return 200, {state: states.count(state) for state in sorted(set(states))}, {"Deprecation": "@1767225600"}
        if re.fullmatch(r"/owners/[^/]+/orders", path):
            return 200, [{"id": 9007199254740993, "petId": "9", "state": "paid"}], {}
        found = re.fullmatch(r"/pets/([^/]+)(/photos)?", path)
        pet = self.pets.get(unquote(found[1])) if found else None
        if found is None or pet is None:
            return problem(404, "There is no such thing", f"Nothing is at {path}.")
        if found[2]:
            return 201, {"id": "1", "url": f"{self.url}{path}/1"}, {}
        return self._one(method, pet, body)

    def _page(self, query: dict[str, list[str]]) -> Answer:
        limit, start = int(query.get("limit", ["20"])[0]), int(query.get("cursor", ["0"])[0])
        wanted = query.get("status", ["available"])[0]
        species = query.get("species", [])
        fit = [p for p in self.pets.values() if p["status"] == wanted and (not species or p["species"] in species)]
        more = {"next": str(start + limit)} if start + limit < len(fit) else {}
        return 200, {"pets": fit[start : start + limit], **more}, {}

    def _add(self, body: Any, query: dict[str, list[str]]) -> Answer:
        number = str(max(map(int, self.pets), default=0) + 1)
        pet = {"id": number, "status": "available", **body}
        if query.get("dryRun") != ["true"]:
            self.pets[number] = pet
        return 201, pet, {"Location": f"/v1/pets/{number}"}

    def _one(self, method: str, pet: dict[str, Any], body: Any) -> Answer:
        if method == "DELETE":
            if pet["status"] == "sold":
                return problem(409, "The pet is sold", "A pet that somebody has ordered cannot be removed.")
            del self.pets[pet["id"]]
            return 204, None, {}
        if method in ("PUT", "PATCH"):
            kept = pet if method == "PATCH" else {"id": pet["id"], "status": pet["status"]}
            pet = {key: value for key, value in {**kept, **body}.items() if value is not None}
            self.pets[pet["id"]] = pet
        return 200, pet, {"ETag": '"1"'}


class Handler(BaseHTTPRequestHandler):
    """One request."""

    server: Petstore
    protocol_version = "HTTP/1.1"

    def _handle(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        content = self.rfile.read(length)
        url = urlsplit(self.path)
        self.server.requests.append(f"{self.command} {self.path}")
        if not re.match(r"Bearer \S", self.headers.get("Authorization", "")):
            answer = problem(401, "Who are you?", "The token is missing.")
        elif not url.path.startswith("/v1/"):
            answer = problem(404, "There is no such thing", "The API is below /v1.")
        else:
            data = json.loads(content) if content and "json" in self.headers.get("Content-Type", "") else None
            answer = self.server.answer(self.command, url.path.removeprefix("/v1"), parse_qs(url.query), data)
        self._send(*answer)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _handle  # noqa: N815 (the names that http.server calls)

    def _send(self, status: int, body: Any, headers: dict[str, str]) -> None:
        content = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if body is not None:
            self.send_header("Content-Type", "application/problem+json" if status >= 400 else "application/json")
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Say nothing: what is sent is the caller's to show."""


def problem(status: int, title: str, detail: str) -> Answer:
    """An error (RFC 9457)."""
    return status, {"title": title, "status": status, "detail": detail}, {}


@contextmanager
def running(port: int = 0) -> Iterator[Petstore]:
    """The shop, open in a thread; port 0 is any that is free."""
    with Petstore(port) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def main(arguments: list[str]) -> int:
    """Serve, or serve while a command runs; the exit code."""
    if arguments[:1] == ["--run"]:
        with running() as server:
            environ = {**os.environ, "PETSTORE": server.url}
            return subprocess.run(arguments[1], shell=True, env=environ, check=False).returncode
    with Petstore() as server:
        print(f"listening on {server.url}", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return 0
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
