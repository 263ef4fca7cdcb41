"""Stands for a model provider: speaks the three wire formats, whole and streamed, and says what a script says.

    POST /v1/chat/completions    POST /v1/responses    POST /v1/messages

A step of the script is a text, or calls as (name, arguments); arguments may be text, for what models write that is
no JSON. When the script is over it says "Done."
"""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Scripted(ThreadingHTTPServer):
    """The server. `requests` are (path, body) as they came; `cut` ends every answer as a limit would."""

    daemon_threads = True

    def __init__(self, script=(), port=0, cut=False):
        super().__init__(("127.0.0.1", port), Handler)
        self.script, self.requests, self.cut, self.said = list(script), [], cut, 0

    @property
    def url(self):
        """What a client takes as `base_url`, without `/v1`."""
        return f"http://127.0.0.1:{self.server_port}"

    def step(self):
        """What is said next, with a number of its own."""
        self.said += 1
        return self.said, (self.script.pop(0) if self.script else "Done.")


def chat(number, step, cut):
    """A chat completion, and the same as chunks."""
    message = {"role": "assistant", "content": step if isinstance(step, str) else None}
    calls = [] if isinstance(step, str) else step
    if calls:
        message["tool_calls"] = [
            {"id": f"call_{number}_{i}", "type": "function", "function": {"name": name, "arguments": text(given)}}
            for i, (name, given) in enumerate(calls)
        ]
    reason = "length" if cut else "tool_calls" if calls else "stop"
    head = {"id": f"chatcmpl-{number}", "created": 0, "model": "scripted"}
    choice = {"index": 0, "message": message, "finish_reason": reason, "logprobs": None}
    whole = {**head, "object": "chat.completion", "choices": [choice]}

    def chunk(delta, reason=None):
        choice = {"index": 0, "delta": delta, "finish_reason": reason, "logprobs": None}
        return {**head, "object": "chat.completion.chunk", "choices": [choice]}

    chunks = [chunk({"role": "assistant", "content": message["content"] or ""})]
    for i, call in enumerate(message.get("tool_calls", ())):
        written = call["function"]["arguments"]
        chunks.append(chunk({"tool_calls": [{"index": i, **call, "function": {**call["function"], "arguments": ""}}]}))
        pieces = (written[:5], written[5:])
        chunks += [chunk({"tool_calls": [{"index": i, "function": {"arguments": piece}}]}) for piece in pieces]
    return whole, [(None, one) for one in [*chunks, chunk({}, reason)]] + [(None, "[DONE]")]


def responses(number, step, cut):
    """A response of the Responses API, and the same as events."""
    status = "incomplete" if cut else "completed"
    if isinstance(step, str):
        content = [{"type": "output_text", "text": step, "annotations": []}]
        items = [{"type": "message", "id": f"msg_{number}", "role": "assistant", "status": status, "content": content}]
    else:
        items = [
            {
                "type": "function_call",
                "id": f"fc_{number}_{i}",
                "call_id": f"call_{number}_{i}",
                "name": name,
                "arguments": text(given),
                "status": status,
            }
            for i, (name, given) in enumerate(step)
        ]
    response = {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": 0,
        "model": "scripted",
        "status": status,
        "output": items,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }
    events = [{"type": "response.created", "response": {**response, "status": "in_progress", "output": []}}]
    for i, item in enumerate(items):
        events.append({"type": "response.output_item.added", "output_index": i, "item": item})
        events.append({"type": "response.output_item.done", "output_index": i, "item": item})
    events.append({"type": f"response.{status}", "response": response})
    numbered = [{**event, "sequence_number": i} for i, event in enumerate(events)]
    return response, [(event["type"], event) for event in numbered]


def messages(number, step, cut):
    """A message of the Messages API, and the same as events."""
    if isinstance(step, str):
        content = [{"type": "text", "text": step}]
    else:
        content = [
            {"type": "tool_use", "id": f"toolu_{number}_{i}", "name": name, "input": given}
            for i, (name, given) in enumerate(step)
        ]
    reason = "max_tokens" if cut else "end_turn" if isinstance(step, str) else "tool_use"
    usage = {"input_tokens": 1, "output_tokens": 1}
    head = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": "scripted", "usage": usage}
    whole = {**head, "content": content, "stop_reason": reason, "stop_sequence": None}
    events = [{"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}}]
    for i, block in enumerate(content):
        is_text = block["type"] == "text"
        empty = {**block, "text": ""} if is_text else {**block, "input": {}}
        written = block["text"] if is_text else text(block["input"])
        events.append({"type": "content_block_start", "index": i, "content_block": empty})
        for piece in (written[:5], written[5:]):
            kind = ("text_delta", "text") if is_text else ("input_json_delta", "partial_json")
            events.append({"type": "content_block_delta", "index": i, "delta": {"type": kind[0], kind[1]: piece}})
        events.append({"type": "content_block_stop", "index": i})
    delta = {"stop_reason": reason, "stop_sequence": None}
    events += [{"type": "message_delta", "delta": delta, "usage": usage}, {"type": "message_stop"}]
    return whole, [(event["type"], event) for event in events]


def text(given):
    return given if isinstance(given, str) else json.dumps(given)


FORMATS = {"/v1/chat/completions": chat, "/v1/responses": responses, "/v1/messages": messages}


class Handler(BaseHTTPRequestHandler):
    """One request of a client."""

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        path = self.path.partition("?")[0]
        self.server.requests.append((path, body))
        whole, events = FORMATS[path](*self.server.step(), self.server.cut)
        if not body.get("stream"):
            return self.answer("application/json", json.dumps(whole))
        lines = []
        for name, event in events:
            lines += [f"event: {name}\n"] if name else []
            lines.append(f"data: {text(event)}\n\n")
        return self.answer("text/event-stream", "".join(lines))

    def answer(self, kind, said):
        data = said.encode()
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


@contextmanager
def scripted(script=(), **more):
    """The server, running until the block ends."""
    server = Scripted(script, **more)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
