"""A loopback endpoint, and what asks it."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from dialbench_adapters.chat import client as chat
from dialbench_adapters.endpoint import Endpoint, EndpointConfig

from dialbench.adapter import Progress, Run
from dialbench.records import Context, Decoding

KEY = "sk-never-to-be-seen-0123456789"


MANY = [Context([f"turn {number}"], f"id-{number}") for number in range(12)]


@dataclass
class Server:
    """A loopback endpoint that repeats the last message; `script` decides otherwise.

    Attributes:
        script: given (number of the request, its body), a (status, headers, text) or None.
        bodies, headers, paths: of all requests, in order of arrival.
        most: how many were under way at once.
        pause: seconds that each request takes.
    """

    script: Callable[[int, dict[str, Any]], tuple[int, dict[str, str], str] | None] | None = None
    pause: float = 0.0
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    most: int = 0
    url: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)
    now: int = 0
    by_hand: Callable[[int], Callable[[BaseHTTPRequestHandler], None] | None] | None = None

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        body = json.loads(handler.rfile.read(int(handler.headers["Content-Length"])))
        with self.lock:
            self.bodies.append(body)
            self.headers.append(dict(handler.headers.items()))
            self.paths.append(handler.path)
            number = len(self.bodies)
            self.now += 1
            self.most = max(self.most, self.now)
        if self.by_hand and (write := self.by_hand(number)):
            write(handler)
            return
        time.sleep(self.pause)
        scripted = self.script(number, body) if self.script else None
        status, headers, text = scripted or (200, {}, reply(body["messages"][-1]["content"]))
        with self.lock:
            self.now -= 1
        handler.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(text.encode()))}.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(text.encode())


def reply(text: str, **more: Any) -> str:
    choice = {"message": {"role": "assistant", "content": text}}
    return json.dumps({"model": "served-7b", "choices": [choice], **more})


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    running: list[ThreadingHTTPServer] = []

    def start(script=None, pause: float = 0.0, by_hand=None) -> Server:
        server = Server(script, pause, by_hand=by_hand)

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                # The client gives up where a test wants it to.
                with suppress(BrokenPipeError, ConnectionResetError):
                    server.answer(self)

            def log_message(self, *_):
                pass

        http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        http.daemon_threads = True
        threading.Thread(target=http.serve_forever, args=(0.02,), daemon=True).start()
        server.url = f"http://127.0.0.1:{http.server_address[1]}/v1"
        running.append(http)
        return server

    yield start
    for http in running:
        http.shutdown()
        http.server_close()


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """No key of the machine's own, and short waits."""
    for name in ("DIALBENCH_ENDPOINT_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(chat, "FIRST_WAIT", 0.01)


class Notes(Progress):
    def __init__(self):
        self.said: list[str] = []

    def warn(self, text):
        self.said.append(text)


@pytest.fixture
def ask(tmp_path):
    """The answers of an endpoint, in a folder of its own."""

    def ask(server: Server, contexts=MANY, decoding: str = "greedy", seed: int = 1, **options: Any):
        config = EndpointConfig(**{"url": server.url, "model": "m", **options})
        adapter = Endpoint(config)
        run = Run(seed, folder=tmp_path, progress=Notes())
        return adapter.respond(contexts, Decoding.parse(decoding), run)

    return ask


ECHOES = [context[-1] for context in MANY]


def options(server: Server, out: Path, **more: str) -> list[str]:
    extra = "".join(f",{key}={value}" for key, value in more.items())
    return [
        *("--models", f"endpoint[url={server.url},model=m{extra}]", "--limit-train", "30"),
        *("--limit-test", "20", "--metrics", "length", "--formats", "txt,csv"),
        *("--progress", "plain", "--device", "cpu", "--out", str(out)),
    ]
