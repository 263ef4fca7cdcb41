"""A chat whose calls wait for a person, as a web application: what waits outlives the process.

    python samples/petstore/server.py &
    SHOP_TOKEN=any-token python samples/webapp/app.py

    POST /chat                  {"text": "remove pet 7"}               200 the answer, 202 it waits
    GET  /pauses                                                       what waits
    GET  /pauses/{id}                                                  one pause, with the previews
    POST /pauses/{id}/decision  {"verdict": "approved", "revision": 1} 200; nothing is sent yet
    POST /pauses/{id}/resume                                           200 the chat goes on, 409 it waits still

`Authorization: Bearer ada` is a customer, `Bearer grace` the shop's manager. Needs the extra `inbox`.
"""

import argparse
import json
import re
import socket
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import uuid4

from starlette.applications import Starlette
from starlette.authentication import AuthCredentials, AuthenticationBackend, BaseUser, requires
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.responses import JSONResponse
from starlette.routing import Route

from toolgen import (
    ApprovalConfig,
    Caller,
    Decider,
    Decision,
    Dispatcher,
    Runtime,
    ToolCall,
    ToolgenError,
    generate,
)
from toolgen.approvals.decide import may_decide
from toolgen.errors import PauseUnknown, UsageError
from toolgen.runtime.core import host_state

PETSTORE = Path(__file__).parent.parent / "petstore"
PEOPLE = {"ada": frozenset(), "grace": frozenset({"shop-manager"}), "mallory": frozenset()}


class Person(BaseUser):
    """Whoever signed in."""

    is_authenticated = True

    def __init__(self, subject):
        self.caller = Caller(subject)  # who calls are made for
        self.decider = Decider(subject, PEOPLE[subject])  # who decides


class ToyAuthenticator(AuthenticationBackend):
    """Believes everybody.

    A real one takes the person from a session or a signed token it has verified: signature, expiry, audience.
    It gives `subject` an id that is never given to somebody else (not a name or an address), `roles` from the
    directory as they are now, and `tenant` from the account; with cookies it checks the origin of each POST.
    Nothing of this is ever read from a body: who may write that may be anyone.
    """

    async def authenticate(self, conn):
        scheme, _, name = conn.headers.get("Authorization", "").partition(" ")
        return (AuthCredentials(["person"]), Person(name)) if scheme == "Bearer" and name in PEOPLE else None


def model(said):
    """Stands for a model: the calls it asks for next, or what it answers. `said` is the conversation so far."""
    *_, last = said
    if last["role"] == "tool":
        return [], "; ".join(last["results"].values())
    wish = re.fullmatch(r"(show|remove) pet (\d+)", last["text"])
    if wish is None:
        return [], "I can show and remove pets."
    name = {"show": "getPet", "remove": "deletePet"}[wish[1]]
    return [ToolCall(f"call-{len(said)}", name, {"petId": wish[2]})], ""


async def go_on(request, said, thread, turn):
    """The model's turn, until it answers or has to wait. The conversation is kept with the pause, encrypted."""
    runtime, caller = request.app.state.runtime, request.user.caller
    while True:
        calls, answer = model(said)
        if not calls:
            return JSONResponse({"answer": answer, "thread": thread})
        done = await runtime.submit(calls, caller=caller, thread=thread, turn=turn, state=json.dumps(said).encode())
        if done.pause is not None:
            waits = {"pause": done.pause.id, "message": done.pause.message or "This waits for a person."}
            return JSONResponse({**waits, "thread": thread}, 202)
        said.append(answered(done.results))


def answered(results):
    return {"role": "tool", "results": {id: str(result) for id, result in results.items()}}


@requires("person", 401)
async def chat(request):
    body = await body_of(request)
    said = [{"role": "user", "text": str(body.get("text", ""))}]
    # A thread is the caller's own: the name of somebody else's must not lead into it.
    thread = f"{request.user.caller.subject}/{body.get('thread') or uuid4().hex}"
    return await go_on(request, said, thread, uuid4().hex)


@requires("person", 401)
async def pauses(request):
    runtime = request.app.state.runtime
    found = await runtime.in_store(runtime.store.pauses, request.user.decider.tenant, waiting=True)
    return JSONResponse([pause.to_dict() for pause in found if may_see(request.user, pause)])


@requires("person", 401)
async def pause(request):
    return JSONResponse((await seen(request)).to_dict())


@requires("person", 401)
async def decide(request):
    waiting, decision = await seen(request), Decision.from_dict(await body_of(request))
    decided = await request.app.state.runtime.decide(waiting.id, decision, decider=request.user.decider)
    return JSONResponse(decided.to_dict())


@requires("person", 401)
async def resume(request):
    """Run what was approved, with the requester's credential, and let the model read what became of it."""
    paused = await seen(request)
    results = await request.app.state.runtime.resume(paused.id, caller=request.user.caller)
    said = [*json.loads(host_state(paused)), answered(results)]
    return await go_on(request, said, paused.thread, paused.turn)


def may_see(person, pause):
    """A pause is for the one it was made for, and for whoever may decide one of its calls."""
    is_requester = person.caller.subject == pause.requester
    return is_requester or any(may_decide(call, pause, person.decider) for call in pause.calls)


async def seen(request):
    """The pause of the path. One that is others' business is not there."""
    runtime, id = request.app.state.runtime, request.path_params["id"]
    found = await runtime.in_store(runtime.store.pause, id, request.user.decider.tenant)
    if not may_see(request.user, found):
        raise PauseUnknown(f"there is no pause {id!r}")
    return found


async def body_of(request):
    try:
        body = await request.json()
    except ValueError:
        body = None
    if not isinstance(body, dict):
        raise HTTPException(400, "the body is a JSON object")
    return body


async def refused(request, error):
    """An error of toolgen: 400, 403, 404 or 409 where a pause is concerned."""
    problems = [problem.to_dict() for problem in error.problems]
    status = getattr(error, "status", 400 if isinstance(error, UsageError) else 500)
    return JSONResponse({"error": error.message, "problems": problems}, status)


def app(server, store):
    """The application: `server` is the shop's URL, `store` the database's."""

    @asynccontextmanager
    async def lifespan(app):
        toolset = generate(PETSTORE / "petstore.yaml", server=server)
        config = ApprovalConfig.load(PETSTORE / "approvals.yaml", [toolset])
        dispatcher = Dispatcher(toolset, credentials={"bearerAuth": "${env:SHOP_TOKEN}"})
        async with Runtime(dispatcher, config, store=store) as runtime:
            app.state.runtime = runtime
            yield

    routes = [
        Route("/chat", chat, methods=["POST"]),
        Route("/pauses", pauses),
        Route("/pauses/{id}", pause),
        Route("/pauses/{id}/decision", decide, methods=["POST"]),
        Route("/pauses/{id}/resume", resume, methods=["POST"]),
    ]
    return Starlette(
        routes=routes,
        lifespan=lifespan,
        middleware=[Middleware(AuthenticationMiddleware, backend=ToyAuthenticator())],
        exception_handlers={ToolgenError: refused},
    )


def main():
    import uvicorn

    options = argparse.ArgumentParser(description="A chat whose calls wait for a person.")
    options.add_argument("--port", type=int, default=8000)
    options.add_argument("--server", default="http://127.0.0.1:8765/v1", help="the shop's URL")
    options.add_argument("--store", default="sqlite:///webapp.db", help="the URL of the database")
    given = options.parse_args()
    with socket.create_server(("127.0.0.1", given.port)) as listening:
        print(f"listening on http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
        config = uvicorn.Config(app(given.server, given.store), log_level="warning")
        uvicorn.Server(config).run(sockets=[listening])


if __name__ == "__main__":
    main()
