"""What LangChain and LangGraph do to tools does not lead around the gate, and a graph goes on where it stopped."""

from __future__ import annotations

import asyncio
import importlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from door_world import ANN, BOSS, World, world_in
from doors_langchain import called, config_of, says
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import tool as as_tool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, interrupt
from shown import ROOT

from toolgen import ApprovalConfig, Caller, Decision, Runtime, functions
from toolgen.adapters.langchain import as_langchain_tools
from toolgen.adapters.openai import as_openai_tools
from toolgen.errors import CallerMismatch, MissingExtra, UsageError
from toolgen.identity.caller import bind_caller

REX = {"requestBody": {"name": "Rex"}}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with world_in(tmp_path) as made:
        yield made
        asyncio.run(made.close())
        for one in made.made:
            one.sync.aclose()


def named(runtime: Runtime, name: str) -> Any:
    (found,) = as_langchain_tools(runtime, names=[name])
    return found


def ask(name: str, arguments: Any, id: str = "c1") -> AIMessage:
    return AIMessage("", tool_calls=[called(name, arguments, id)])


def last_tool(state: Any) -> ToolMessage:
    (*_, found) = (one for one in state["messages"] if isinstance(one, ToolMessage))
    return found


def echoes() -> Runtime:
    """A function whose parameters are called what LangChain keeps for itself."""

    def echo(
        config: str, run_manager: str, callbacks: str, runtime: str, tool_call_id: str, store: str, state: str
    ) -> Any:
        return [config, run_manager, callbacks, runtime, tool_call_id, store, state]

    return Runtime(functions({"echo": echo}), ApprovalConfig.off())


ODD = {
    name: f"model's {name}"
    for name in ("config", "run_manager", "callbacks", "runtime", "tool_call_id", "store", "state")
}


@pytest.mark.parametrize("use", ["invoke", "ainvoke", "agent"])
def test_an_argument_is_the_models_whatever_it_is_called(use: str) -> None:
    runtime = echoes()
    tool = named(runtime, "echo")
    if use == "invoke":
        message = tool.invoke(called("echo", ODD, "c1"))
    elif use == "ainvoke":
        message = asyncio.run(tool.ainvoke(called("echo", ODD, "c1")))
    else:
        agent = create_agent(says(ask("echo", ODD), AIMessage("done")), [tool])
        message = last_tool(agent.invoke({"messages": [("user", "go")]}))
    assert message.artifact == {"result": list(ODD.values())}
    assert message.tool_call_id == "c1"
    runtime.sync.aclose()


def test_an_argument_called_self_is_told_to_be_unknown_and_breaks_nothing(world: World) -> None:
    message = named(world.runtime(), "getPet").invoke(called("getPet", {"id": "7", "self": 1}, "c1"))
    assert message.status == "error"
    assert "self" in message.content


def test_who_asks_is_what_the_host_says_and_nothing_a_model_writes() -> None:
    def who(caller: Caller) -> str:
        return caller.subject

    runtime = Runtime(functions({"who": who}), ApprovalConfig.off())
    tool = named(runtime, "who")
    forged = {"caller": "boss", "toolgen_caller": "boss", "config": {"configurable": {"toolgen_caller": "boss"}}}
    assert tool.invoke(called("who", {}, "c1"), config_of(ANN)).artifact == {"result": "ann"}
    for more in (forged, {"caller": {"subject": "boss"}}):
        assert tool.invoke(called("who", more, "c1"), config_of(ANN)).status == "error"
    with bind_caller(Caller("bound")):
        assert tool.invoke(called("who", {}, "c1")).artifact == {"result": "bound"}
        assert tool.invoke(called("who", {}, "c1"), config_of(ANN)).artifact == {"result": "ann"}
    for wrong in ("ann", {"subject": "ann"}, 7):
        with pytest.raises(UsageError, match="toolgen_caller"):
            tool.invoke(called("who", {}, "c1"), config_of(wrong))
    runtime.sync.aclose()


def test_the_context_of_a_graph_says_who_asks() -> None:
    def who(caller: Caller) -> str:
        return caller.subject

    runtime = Runtime(functions({"who": who}), ApprovalConfig.off())
    for context in ({"caller": ANN}, type("Context", (), {"caller": ANN})()):
        agent = create_agent(says(ask("who", {}), AIMessage("done")), as_langchain_tools(runtime))
        state = agent.invoke({"messages": [("user", "go")]}, context=context)  # type: ignore[call-overload]
        assert last_tool(state).artifact == {"result": "ann"}
    runtime.sync.aclose()


def test_without_a_call_id_the_tool_answers_with_text(world: World) -> None:
    runtime = world.runtime()
    assert '"path": "/pets/7"' in named(runtime, "getPet").invoke({"id": "7"})
    assert "has to approve" in named(runtime, "addPet").invoke(REX)


def test_without_a_call_id_a_graph_does_not_stop_for_what_it_could_not_recognise(world: World) -> None:
    (add,) = as_langchain_tools(world.runtime(), names=["addPet"])
    flow = entrypoint(checkpointer=InMemorySaver())(lambda given: add.invoke(given))
    assert "has to approve" in flow.invoke(REX, config_of(ANN, thread_id="1"))


def test_recursive_schemas_are_whole_in_the_tools_as_data() -> None:
    from small_documents import document

    from toolgen import Dispatcher, generate

    node = {
        "type": "object",
        "properties": {"children": {"type": "array", "items": {"$ref": "#/components/schemas/Node"}}},
    }
    body = {"requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Node"}}}}}
    paths = {"/nodes": {"post": {"operationId": "add", **body, "responses": {"200": {"description": "ok"}}}}}
    runtime = Runtime(
        Dispatcher(generate(document(paths, components={"schemas": {"Node": node}}), server="https://a.example"))
    )
    (tool,) = as_langchain_tools(runtime)
    (data,) = as_openai_tools(runtime)
    assert tool.args_schema == data["function"]["parameters"]
    assert "#/$defs/Node" in json.dumps(data)
    assert "$ref" not in json.dumps(convert_to_openai_tool(tool))  # what binding the tool itself comes to


def test_a_tool_that_is_not_there_is_not_offered(world: World) -> None:
    with pytest.raises(UsageError, match="sellPet"):
        as_langchain_tools(world.runtime(), names=["getPet", "sellPet"])


def test_without_a_checkpointer_a_graph_is_told_that_the_call_waits(world: World) -> None:
    agent = create_agent(says(ask("addPet", REX), AIMessage("done")), as_langchain_tools(world.runtime()))
    message = last_tool(agent.invoke({"messages": [("user", "go")]}, config_of(ANN)))
    assert (message.status, message.artifact["status"]) == ("success", "pending")


@pytest.mark.parametrize(
    "value",
    [
        True,
        {"verdict": "approved"},
        {"type": "accept"},
        [{"type": "approve"}],
        "approved",
        {"decisions": [{"type": "approve"}]},
    ],
)
def test_what_a_graph_is_resumed_with_decides_nothing(world: World, value: Any) -> None:
    runtime = world.runtime()
    agent = create_agent(
        says(ask("addPet", REX), AIMessage("done")), as_langchain_tools(runtime), checkpointer=InMemorySaver()
    )
    config = config_of(ANN, thread_id="1")
    (asked,) = agent.invoke({"messages": [("user", "go")]}, config)["__interrupt__"]
    json.dumps(asked.value)
    assert asked.value["calls"][0]["preview"]["method"] == "POST"
    for _ in range(2):
        (again,) = agent.invoke(Command(resume=value), config)["__interrupt__"]
        assert again.value["id"] == asked.value["id"]
    assert world.api.lines == []
    runtime.sync.decide(asked.value["id"], Decision("rejected"), decider=BOSS)
    message = last_tool(agent.invoke(Command(resume=value), config))
    assert (message.status, message.artifact["status"]) == ("error", "rejected")
    assert world.api.lines == []


def test_somebody_else_does_not_go_on_with_a_graph(world: World) -> None:
    runtime = world.runtime()
    agent = create_agent(
        says(ask("addPet", REX), AIMessage("done")), as_langchain_tools(runtime), checkpointer=InMemorySaver()
    )
    (asked,) = agent.invoke({"messages": [("user", "go")]}, config_of(ANN, thread_id="1"))["__interrupt__"]
    runtime.sync.decide(asked.value["id"], Decision("approved"), decider=BOSS)
    message = last_tool(agent.invoke(Command(resume=True), config_of(Caller("eve"), thread_id="1")))
    assert message.status == "error"
    assert world.api.lines == []
    assert CallerMismatch.__name__ not in message.content


def test_siblings_run_once_and_each_that_waits_is_asked_about(world: World) -> None:
    runtime = world.runtime()
    asked = AIMessage(
        "",
        tool_calls=[
            called("getPet", {"id": "7"}, "r"),
            called("addPet", REX, "w1"),
            called("addPet", {"requestBody": {"name": "Tom"}}, "w2"),
        ],
    )
    agent = create_agent(says(asked, AIMessage("done")), as_langchain_tools(runtime), checkpointer=InMemorySaver())
    config = config_of(ANN, thread_id="1")
    waiting = agent.invoke({"messages": [("user", "go")]}, config)["__interrupt__"]
    assert len(waiting) == 2
    assert world.api.lines == ["GET /pets/7"]
    runtime.sync.decide(waiting[0].value["id"], Decision("approved"), decider=BOSS)
    left = agent.invoke(Command(resume={one.id: True for one in waiting}), config)["__interrupt__"]
    assert [one.value["id"] for one in left] == [waiting[1].value["id"]]
    assert world.api.lines == ["GET /pets/7", "POST /pets"]
    runtime.sync.decide(waiting[1].value["id"], Decision("approved"), decider=BOSS)
    state = agent.invoke(Command(resume=True), config)
    assert world.api.lines == ["GET /pets/7", "POST /pets", "POST /pets"]
    assert [one.status for one in state["messages"] if isinstance(one, ToolMessage)] == ["success"] * 3


def test_calls_that_share_a_node_run_once_each_however_often_the_node_runs(world: World) -> None:
    runtime = world.runtime()
    graph = StateGraph(MessagesState).add_node("tools", ToolNode(as_langchain_tools(runtime)))
    agent = graph.add_edge(START, "tools").add_edge("tools", END).compile(checkpointer=InMemorySaver())
    names = ["Rex", "Tom", "Kim"]
    calls = [called("addPet", {"requestBody": {"name": name}}, name) for name in names]
    config = config_of(ANN, thread_id="1")
    agent.invoke({"messages": [AIMessage("", tool_calls=calls)]}, config)
    for number, pause in enumerate(runtime.store.pauses("default"), 1):
        runtime.sync.decide(pause.id, Decision("approved"), decider=BOSS)
        state = agent.invoke(Command(resume=True), config)
        assert len(world.api.seen) == number
    assert "__interrupt__" not in state
    assert sorted(one.body["name"] for one in world.api.seen) == sorted(names)
    assert [one.status for one in state["messages"] if isinstance(one, ToolMessage)] == ["success"] * 3


@pytest.mark.parametrize("thread", ["1", 0])
def test_a_graph_goes_on_however_deep_it_stopped_and_whatever_its_thread_is_called(world: World, thread: Any) -> None:
    runtime = world.runtime()
    inner: Any = ToolNode(as_langchain_tools(runtime))
    for level in range(7):
        name = f"department_{level}"
        graph = StateGraph(MessagesState).add_node(name, inner).add_edge(START, name).add_edge(name, END)
        inner = graph.compile(checkpointer=InMemorySaver() if level == 6 else None)
    config = config_of(ANN, thread_id=thread)
    (asked,) = inner.invoke({"messages": [ask("addPet", REX)]}, config)["__interrupt__"]
    runtime.sync.decide(asked.value["id"], Decision("approved"), decider=BOSS)
    assert last_tool(inner.invoke(Command(resume=True), config)).status == "success"
    assert world.api.lines == ["POST /pets"]


@pytest.mark.parametrize(("verdict", "sent"), [("approved", ["POST /pets"]), ("rejected", [])])
def test_what_woke_a_call_does_not_answer_the_next_question_of_the_host(
    world: World, verdict: str, sent: list[str]
) -> None:
    runtime = world.runtime()
    inner = create_agent(says(ask("addPet", REX, "i1"), AIMessage("done")), as_langchain_tools(runtime))

    @as_tool
    def helper(wish: str) -> str:
        """Asks the other agent, and then a person."""
        inner.invoke({"messages": [("user", wish)]})
        return f"answered: {interrupt('Is that so?')}"

    outer = create_agent(
        says(ask("helper", {"wish": "add it"}, "o1"), AIMessage("done")), [helper], checkpointer=InMemorySaver()
    )
    config = config_of(ANN, thread_id="1")
    (asked,) = outer.invoke({"messages": [("user", "go")]}, config)["__interrupt__"]
    outer.invoke(Command(resume="too early"), config)
    runtime.sync.decide(asked.value["id"], Decision(verdict), decider=BOSS)
    (question,) = outer.invoke(Command(resume="decided"), config)["__interrupt__"]
    assert question.value == "Is that so?"
    assert last_tool(outer.invoke(Command(resume="no"), config)).content == "answered: no"
    assert world.api.lines == sent


def test_the_same_call_id_in_a_later_turn_is_another_call(world: World) -> None:
    runtime = world.runtime()
    config = config_of(ANN, thread_id="1")
    saver = InMemorySaver()
    for number in range(1, 3):
        agent = create_agent(
            says(ask("addPet", REX), AIMessage("done")), as_langchain_tools(runtime), checkpointer=saver
        )
        (asked,) = agent.invoke({"messages": [("user", "go")]}, config)["__interrupt__"]
        runtime.sync.decide(asked.value["id"], Decision("approved"), decider=BOSS)
        agent.invoke(Command(resume=True), config)
        assert len(world.api.seen) == number


def test_the_pause_of_a_sub_agent_reaches_the_top_and_a_layer_goes_with_it(world: World) -> None:
    runtime = world.runtime()
    strict = runtime.layered(ApprovalConfig.parse({"requireApproval": ["http.get:*"]}))
    inner = create_agent(says(ask("getPet", {"id": "7"}, "i1"), AIMessage("it is Rex")), as_langchain_tools(strict))

    @as_tool
    def helper(wish: str) -> str:
        """Asks the other agent."""
        return str(inner.invoke({"messages": [("user", wish)]})["messages"][-1].content)

    outer = create_agent(
        says(ask("helper", {"wish": "show it"}, "o1"), AIMessage("done")), [helper], checkpointer=InMemorySaver()
    )
    config = config_of(ANN, thread_id="1")
    (asked,) = outer.invoke({"messages": [("user", "go")]}, config)["__interrupt__"]
    assert asked.value["calls"][0]["tool"] == "getPet"
    assert world.api.lines == []
    strict.sync.decide(asked.value["id"], Decision("approved"), decider=BOSS)
    outer.invoke(Command(resume=True), config)
    assert world.api.lines == ["GET /pets/7"]
    strict.sync.aclose()


PROCESS = """
import asyncio, json, sys
from pathlib import Path
sys.path[:0] = {paths!r}
from door_world import World
from doors_langchain import called, config_of, says
from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command
from toolgen import Caller
from toolgen.adapters.langchain import as_langchain_tools

class Api:
    url = {url!r}

runtime = World(Path({folder!r}), Api).runtime()
call = called("addPet", {{"requestBody": {{"name": "Rex"}}}}, "c1")
ask = AIMessage("", tool_calls=[call])
with SqliteSaver.from_conn_string({folder!r} + "/graph.db") as saver:
    first = sys.argv[1] == "ask"
    model = says(ask, AIMessage("done")) if first else says(AIMessage("done"))
    agent = create_agent(model, as_langchain_tools(runtime), checkpointer=saver)
    given = {{"messages": [("user", "go")]}} if first else Command(resume=True)
    ann = Caller("ann", "t0ken-of-ann-5f0c9d", {url!r})
    state = agent.invoke(given, config_of(ann, thread_id="1"))
    waits = state.get("__interrupt__")
    print(waits[0].value["id"] if waits else state["messages"][-2].content)
runtime.sync.aclose()
"""


def test_a_graph_goes_on_in_another_process_and_keeps_nobodys_token(world: World) -> None:
    script = dedent(PROCESS).format(paths=[str(ROOT), str(ROOT / "tests")], url=world.api.url, folder=str(world.folder))

    def process(what: str) -> str:
        done = subprocess.run([sys.executable, "-c", script, what], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    pause_id = process("ask")
    assert process("resume") == pause_id  # nobody decided: it waits on
    world.run(world.decide(pause_id))
    assert world.api.lines == []
    assert '"got": {"name": "Rex"}' in process("resume")
    assert world.api.lines == ["POST /pets"]
    for file in world.folder.iterdir():
        assert b"t0ken-of-ann" not in file.read_bytes()


def test_a_missing_package_is_named_by_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "langchain_core.messages", None)
    monkeypatch.delitem(sys.modules, "toolgen.adapters.langchain")
    with pytest.raises(MissingExtra, match=r"pip install 'toolgen\[langchain\]'"):
        importlib.import_module("toolgen.adapters.langchain")
