"""An endpoint as a system: what is sent, what is tried again, what survives, what stays secret."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from dialbench_adapters.chat import client as chat
from dialbench_adapters.chat.ledger import Ledger, StoredReply
from dialbench_adapters.endpoint import Endpoint, EndpointConfig

from dialbench.adapter import Progress, Run
from dialbench.errors import InputError, StorageError, SystemFailed
from dialbench.records import Context, Decoding
from dialbench.systems import Registry
from dialbench.text.untokenized import untokenized

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


class TestRequest:
    @pytest.mark.parametrize(
        ("decoding", "expected"),
        [
            ("greedy", {"temperature": 0}),
            ("sample:t=0.75", {"temperature": 0.75}),
            ("top-p:0.9", {"temperature": 1, "top_p": 0.9}),
            ("top-k:40", {"temperature": 1, "top_k": 40}),
        ],
    )
    def test_decoding(self, decoding, expected, serve, ask):
        server = serve()
        ask(server, MANY[:1], decoding)
        (body,) = server.bodies
        plain = ("model", "messages", "max_tokens", "seed")
        assert {key: body[key] for key in body if key not in plain} == expected
        assert (body["model"], body["max_tokens"]) == ("m", 54)
        assert server.paths == ["/v1/chat/completions"]

    @pytest.mark.parametrize("decoding", ["beam:3", "mmi"])
    def test_what_no_endpoint_can(self, decoding):
        assert not Endpoint.supports(Decoding.parse(decoding))

    def test_turns_alternate_and_end_with_the_user(self):
        adapter = Endpoint(EndpointConfig(url="http://h", model="m"))
        messages = adapter.body(["One .", "Two", "Three"], Decoding(), 1)["messages"]
        assert [m["role"] for m in messages] == ["user", "assistant", "user"]
        assert [m["content"] for m in messages] == ["One.", "Two", "Three"]
        messages = adapter.body(["One", "Two"], Decoding(), 1)["messages"]
        assert [m["role"] for m in messages] == ["assistant", "user"]
        assert adapter.body([], Decoding(), 1)["messages"] == [{"role": "user", "content": ""}]

    def test_system_and_opening(self):
        config = EndpointConfig(url="http://h", model="m", system="Be brief.", opening="Hello.")
        messages = Endpoint(config).body(["One", "Two"], Decoding(), 1)["messages"]
        assert messages == [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Hello."},
            {"role": "assistant", "content": "One"},
            {"role": "user", "content": "Two"},
        ]
        assert len(Endpoint(config).body(["One"], Decoding(), 1)["messages"]) == 2

    def test_the_seed_is_of_the_run_and_the_example(self, serve, ask, tmp_path):
        server = serve()
        ask(server, MANY, "sample")
        seeds = {body["messages"][0]["content"]: body["seed"] for body in server.bodies}
        assert len(set(seeds.values())) == len(MANY)
        assert all(0 <= seed < 2**31 for seed in seeds.values())
        ask(server, MANY, "sample", seed=2)
        assert not set(seeds.values()) & {body["seed"] for body in server.bodies[len(MANY) :]}

    def test_the_whole_address_may_be_named(self):
        for url in ("https://h/v1", "https://h/v1/", "https://h/v1/chat/completions"):
            assert EndpointConfig(url=url, model="m").address == "https://h/v1/chat/completions"

    @pytest.mark.parametrize(
        "url",
        [
            *("ftp://host/v1", "host:8000", "http://", "file:///etc/passwd", "http://h:99999/"),
            *("http://me:secret@host/v1", "http://h/v1?key=secret", "http://h/v1#secret"),
            *("http://a..b/v1", f"http://{'a' * 64}/v1"),
            "http://me:secret@h:99999/",
        ],
    )
    def test_addresses_that_are_refused(self, url):
        with pytest.raises(InputError) as caught:
            Registry().parse(f"endpoint[url={url},model=m]")[0].build({})
        assert "secret" not in str(caught.value)
        assert "\n" not in str(caught.value)

    def test_needs_its_options(self):
        with pytest.raises(InputError, match="url=http"):
            Registry().parse("endpoint[model=m]")
        with pytest.raises(InputError, match="attempts must be above 0"):
            Registry().parse("endpoint[url=http://h,model=m,attempts=0]")
        assert "endpoint" not in [system.name for system in Registry().parse("all")]


class TestAnswers:
    def test_order_is_kept_and_no_more_than_allowed_at_once(self, serve, ask):
        slow = {"turn 0": 0.15, "turn 5": 0.1}

        def script(number, body):
            time.sleep(slow.get(body["messages"][0]["content"], 0.01))

        server = serve(script)
        assert ask(server, concurrency=3) == ECHOES
        assert server.most == 3
        order = [body["messages"][0]["content"] for body in server.bodies]
        assert sorted(order) == sorted(ECHOES)

    def test_one_at_a_time(self, serve, ask):
        server = serve(pause=0.01)
        assert ask(server, concurrency=1) == ECHOES
        assert server.most == 1

    def test_an_answer_is_one_line(self, serve, ask):
        server = serve(lambda number, body: (200, {}, reply("\n  two\n\nlines \t here ")))
        assert ask(server, MANY[:1]) == ["two lines here"]

    def test_an_answer_may_be_empty_or_no_text_at_all(self, serve, ask):
        server = serve(lambda number, body: (200, {}, reply("") if number == 1 else reply(None)))
        assert ask(server, MANY[:2]) == ["", ""]

    def test_half_a_character_is_mended(self, serve, ask):
        text = reply("x").replace('"x"', '"a\\ud83d b"')
        server = serve(lambda number, body: (200, {}, text))
        assert ask(server, MANY[:1]) == ["a? b"]

    def test_circumstances_and_note(self, serve, tmp_path):
        server, notes = serve(), Notes()
        adapter = Endpoint(EndpointConfig(url=server.url, model="m"))
        run = Run(1, folder=tmp_path, progress=notes)
        adapter.respond(MANY[:2], Decoding(), run)
        facts = adapter.circumstances(run)
        assert (facts["url"], facts["model"], facts["reported"]) == (
            server.url,
            "m",
            ["served-7b"],
        )
        (note,) = notes.said
        assert "served-7b" in note
        assert server.url in note


class TestTriedAgain:
    @pytest.mark.parametrize("status", [408, 429, 500, 503])
    def test_overloaded_servers(self, status, serve, ask):
        server = serve(lambda number, body: (status, {}, "busy") if number <= 2 else None)
        assert ask(server, MANY[:1]) == ECHOES[:1]
        assert len(server.bodies) == 3

    @pytest.mark.parametrize(
        "text",
        [
            *("not json", "{}", '{"choices": []}', '{"choices": 5}', "", "9" * 5000),
            *(
                "[" * 100_000,
                '{"choices": ' * 100_000,
                '{"choices": ' + "[" * 500 + "]" * 500 + "}",
            ),
        ],
    )
    def test_broken_answers(self, text, serve, ask):
        server = serve(lambda number, body: (200, {}, text) if number == 1 else None)
        assert ask(server, MANY[:1]) == ECHOES[:1]

    @pytest.mark.parametrize("target", ["http://[x", "http://[::1", "/\x01", "/ü", ""])
    def test_a_redirect_to_no_address_is_no_answer(self, target, serve, ask):
        server = serve(
            lambda number, body: (307, {"Location": target}, "") if number == 1 else None
        )
        assert ask(server, MANY[:1]) == ECHOES[:1]

    @pytest.mark.parametrize("endless", ["head", "body", "measured"])
    def test_a_server_that_sends_byte_after_byte_is_left(self, endless, serve, ask):
        """Each byte begins the silence anew; an attempt has one deadline."""
        ended = threading.Event()

        def trickle(handler):
            handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
            if endless == "measured":
                handler.wfile.write(b"Content-Length: 99999999\r\n")
            handler.wfile.write(b"X-Slow: " if endless == "head" else b"\r\n")
            with suppress(OSError):
                while not ended.wait(0.05):
                    handler.wfile.write(b"x")
            handler.close_connection = True

        server = serve(by_hand=lambda number: trickle if number <= 2 else None)
        try:
            assert ask(server, MANY[:1], timeout=0.4) == ECHOES[:1]
            with pytest.raises(SystemFailed, match=r"last: not done in 0\.4 seconds"):
                ask(
                    serve(by_hand=lambda number: trickle),
                    MANY[:1],
                    timeout=0.4,
                    attempts=1,
                    system="b",
                )
        finally:
            ended.set()

    @pytest.mark.parametrize(
        "asked", ["1000000000", "inf", "1e400", "Fri, 31 Dec 9999 23:59:59 GMT", "301"]
    )
    def test_no_wait_is_longer_than_five_minutes(self, asked, serve, tmp_path, monkeypatch):
        waits, notes = [], Notes()
        monkeypatch.setattr(threading.Event, "wait", spy(waits, threading.Event.wait))
        server = serve(
            lambda number, body: (429, {"Retry-After": asked}, "") if number == 1 else None
        )
        adapter = Endpoint(EndpointConfig(url=server.url, model="m"))
        adapter.respond(MANY[:1], Decoding(), Run(1, folder=tmp_path, progress=notes))
        assert waits == [300.0]
        assert "asked for a wait of" in notes.said[0]
        assert "none is longer than 300" in notes.said[0]

    @pytest.mark.parametrize("asked", ["nan", "", "Fri, 99 Dec 99999 99:99:99 GMT", "x" * 999])
    def test_a_wait_that_cannot_be_read_is_our_own(self, asked, serve, ask, monkeypatch):
        waits = []
        monkeypatch.setattr(threading.Event, "wait", spy(waits, threading.Event.wait))
        server = serve(
            lambda number, body: (429, {"Retry-After": asked}, "") if number == 1 else None
        )
        assert ask(server, MANY[:1]) == ECHOES[:1]
        assert 0.005 <= waits[0] < 0.015

    def test_silent_servers(self, serve, ask):
        def script(number, body):
            if number == 1:
                time.sleep(0.4)

        server = serve(script)
        assert ask(server, MANY[:1], timeout=0.15) == ECHOES[:1]
        assert len(server.bodies) == 2

    def test_retry_after_is_heeded(self, serve, ask, monkeypatch):
        waits = []
        monkeypatch.setattr(threading.Event, "wait", spy(waits, threading.Event.wait))
        date = formatdate(time.time() + 30, usegmt=True)
        retry_after = {1: "0.07", 2: date, 3: "soon"}
        headers = {number: {"Retry-After": text} for number, text in retry_after.items()}
        server = serve(
            lambda number, body: (429, headers[number], "") if number in headers else None
        )
        assert ask(server, MANY[:1]) == ECHOES[:1]
        assert waits[0] == 0.07
        assert 25 < waits[1] <= 30
        assert 0.02 <= waits[2] < 0.06  # no time that can be read: the third wait of our own

    def test_waits_double_with_a_jitter_of_the_seed(self, serve, ask, monkeypatch, tmp_path):
        def waits(seed: int) -> list[float]:
            seen: list[float] = []
            with monkeypatch.context() as patch:
                patch.setattr(threading.Event, "wait", spy(seen, threading.Event.wait))
                with pytest.raises(SystemFailed, match=r"no answer in 5 attempts .*503.*busy"):
                    ask(serve(lambda number, body: (503, {}, "busy")), MANY[:1], seed=seed)
            return seen

        first = waits(1)
        assert len(first) == 4
        for number, wait in enumerate(first):
            assert 0.5 <= wait / (0.01 * 2**number) < 1.5
        assert waits(1) == first
        assert waits(2) != first

    def test_nobody_there(self, serve, ask):
        server = Server(url="http://127.0.0.1:9/v1")
        with pytest.raises(SystemFailed, match="no answer in 2 attempts") as caught:
            ask(server, MANY[:1], attempts=2)
        assert "\n" not in caught.value.message


def spy(seen: list[float], plain):
    def wait(self, timeout=None):
        caller = sys._getframe(1).f_code.co_filename
        if not caller.endswith("chat/client.py"):
            return plain(self, timeout)
        seen.append(timeout)
        return False

    return wait


class TestRefused:
    @pytest.mark.parametrize("status", [400, 401, 403, 404])
    def test_the_servers_own_words_in_one_line(self, status, serve, ask):
        text = json.dumps({"error": {"message": "No such\nmodel 'm'", "code": 7}})
        server = serve(lambda number, body: (status, {}, text))
        with pytest.raises(SystemFailed) as caught:
            ask(server, concurrency=2)
        assert f"status {status}: No such model 'm'" in caught.value.message
        assert "\n" not in caught.value.message
        assert len(server.bodies) <= 2

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ('{"error": "bad day"}', "bad day"),
            ('{"message": "flat"}', "flat"),
            ("<html>\n no </html>", "<html> no </html>"),
            ("[1]", "[1]"),
            ("", "no words"),
        ],
    )
    def test_other_ways_to_say_it(self, text, expected, serve, ask):
        server = serve(lambda number, body: (400, {}, text))
        with pytest.raises(SystemFailed) as caught:
            ask(server, MANY[:1])
        assert f"status 400: {expected})" in caught.value.message

    def test_a_redirect_to_another_host_is_not_followed(self, serve, ask, monkeypatch):
        monkeypatch.setenv("DIALBENCH_ENDPOINT_KEY", KEY)
        other = serve()
        target = other.url.replace("127.0.0.1", "localhost") + "/chat/completions"
        server = serve(lambda number, body: (307, {"Location": f"{target}?key={KEY}"}, ""))
        with pytest.raises(SystemFailed, match=r"redirects .*localhost.* not followed") as caught:
            ask(server, MANY[:1])
        assert KEY not in str(caught.value)
        assert not other.bodies

    def test_a_redirect_within_the_host_is_followed(self, serve, ask):
        server = serve(
            lambda number, body: (308, {"Location": "/v2/chat"}, "") if number == 1 else None
        )
        assert ask(server, MANY[:1]) == ECHOES[:1]
        assert server.paths[1] == "/v2/chat"

    def test_a_redirect_in_circles_ends(self, serve, ask):
        server = serve(lambda number, body: (307, {"Location": "/v1/chat/completions"}, ""))
        with pytest.raises(SystemFailed, match="redirects more than"):
            ask(server, MANY[:1])
        assert len(server.bodies) == 3

    def test_a_redirect_that_would_lose_the_question(self, serve, ask):
        server = serve(lambda number, body: (302, {"Location": "/other"}, ""))
        with pytest.raises(SystemFailed, match="not followed"):
            ask(server, MANY[:1])


class TestResume:
    def test_what_is_there_is_not_asked_again(self, serve, ask):
        refuses = {"on": True}

        def script(number, body):
            if refuses["on"] and number > 5:
                return 400, {}, "enough"
            return None

        server = serve(script)
        with pytest.raises(SystemFailed):
            ask(server, concurrency=1)
        refuses["on"] = False
        assert ask(server, concurrency=1) == ECHOES
        # the sixth was refused, so it is asked for twice
        assert len(server.bodies) == len(MANY) + 1
        assert ask(server) == ECHOES
        assert len(server.bodies) == len(MANY) + 1

    def test_what_is_under_way_when_another_fails_is_kept(self, serve, ask, tmp_path):
        def script(number, body):
            if body["messages"][0]["content"] == "turn 0":
                return 400, {}, "no"
            time.sleep(0.1)
            return None

        server = serve(script)
        with pytest.raises(SystemFailed):
            ask(server, MANY[:4], concurrency=4)
        assert len((tmp_path / "answers.jsonl").read_text().splitlines()) == 3

    @pytest.mark.parametrize(
        "change",
        [
            {"decoding": "sample"},
            {"system": "Be brief."},
            {"max_tokens": 5},
            {"model": "n"},
        ],
    )
    def test_another_request_is_asked_anew(self, change, serve, ask):
        server = serve()
        ask(server, MANY[:1])
        ask(server, MANY[:1], **change)
        assert len(server.bodies) == 2

    def test_a_draw_of_another_seed_is_asked_anew(self, serve, ask):
        server = serve()
        ask(server, MANY[:1], "sample")
        ask(server, MANY[:1], "sample", seed=2)
        assert len(server.bodies) == 2

    def test_greedily_no_seed_and_no_draw_plays_a_part(self, serve, ask):
        server = serve()
        again = [Context(["turn 0"], "id-0", draw=1)]
        first = ask(server, [Context(["turn 0"], "id-0")])
        assert ask(server, again, seed=2) == first
        (body,) = server.bodies
        assert "seed" not in body

    def test_speed_is_no_part_of_a_request(self, serve, ask):
        server = serve()
        ask(server, MANY[:2])
        ask(server, MANY[:2], concurrency=1, timeout=5.0, attempts=9)
        assert len(server.bodies) == 2

    def test_a_torn_line_is_dropped(self, serve, ask, tmp_path):
        server = serve()
        ask(server, concurrency=1)
        path = tmp_path / "answers.jsonl"
        whole = path.read_bytes()
        path.write_bytes(whole[:-10])
        assert ask(server) == ECHOES
        assert len(server.bodies) == len(MANY) + 1
        assert len(path.read_bytes()) == len(whole)
        for line in path.read_text().splitlines():
            assert json.loads(line).keys() == {"key", "text", "model"}

    def test_a_damaged_line_is_named(self, tmp_path):
        path = tmp_path / "answers.jsonl"
        path.write_text('{"key": "a", "text": "b", "model": "c"}\n{"key": 5}\n')
        with pytest.raises(StorageError, match=r"answers\.jsonl:2"):
            Ledger(path)

    def test_a_full_disk_is_told(self, small_disk):
        small, large = (StoredReply(key=f"{n}", text="x" * n, model="") for n in (9, 2**21))
        with Ledger(small_disk / "a.jsonl") as ledger:
            ledger.add(small)
            with pytest.raises(StorageError, match="no space"):
                ledger.add(large)
            ledger.add(small)
        with Ledger(small_disk / "a.jsonl") as ledger:
            assert list(ledger.kept) == ["9"]

    @pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no kill -9")
    def test_killed_in_the_middle_and_run_again(self, serve, tmp_path):
        server = serve(pause=0.05)
        out = tmp_path / "runs"
        command = [sys.executable, "-m", "dialbench", "run", *options(server, out), "--seeds", "1"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until = time.monotonic() + 120
        while len(server.bodies) < 9 and time.monotonic() < until:
            time.sleep(0.01)
        process.kill()
        process.wait()
        (path,) = out.glob("trained/*/work/answers.jsonl")
        kept = path.read_bytes().count(b"\n")
        assert 5 <= kept < 20
        before = len(server.bodies)
        server.pause = 0.0
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert len(server.bodies) - before == 20 - kept
        (actual,) = out.glob("answers/*/responses.jsonl")
        lines = [json.loads(line) for line in actual.read_text().splitlines()]
        expected = [untokenized(line["context"][-1]) for line in lines]
        assert [line["response"] for line in lines] == expected


def options(server: Server, out: Path, **more: str) -> list[str]:
    extra = "".join(f",{key}={value}" for key, value in more.items())
    return [
        *("--models", f"endpoint[url={server.url},model=m{extra}]", "--limit-train", "30"),
        *("--limit-test", "20", "--metrics", "length", "--formats", "txt,csv"),
        *("--progress", "plain", "--device", "cpu", "--out", str(out)),
    ]


STEERING = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e\u200b"


class TestTerminal:
    @pytest.mark.parametrize("progress", ["plain", "rich", "none"])
    def test_nothing_of_a_server_steers_it(self, progress, serve, command, tmp_path):
        head = STEERING.encode().decode("latin-1").replace("\r", "")
        scripts = {
            "model": lambda number, body: (200, {}, reply(STEERING, model=STEERING)),
            "401": lambda number, body: (401, {}, json.dumps({"error": STEERING})),
            "503": lambda number, body: (503, {"Retry-After": "0"}, STEERING),
            "redirect": lambda number, body: (307, {"Location": f"http://other/{head}"}, ""),
        }
        for name, script in scripts.items():
            server = serve(script)
            models = f"endpoint[url={server.url},model=m,attempts=1]"
            spoken = command(
                *("run", *options(server, tmp_path / name), "--models", models),
                *("--progress", progress, "--limit-test", 2),
            )
            assert spoken.code == (0 if name == "model" else 1), spoken.err
            assert not set("\x1b\x07\x9b\u202e\u200b") & set(spoken.out + spoken.err)
            for path in tmp_path.glob(f"{name}/report/*"):
                assert not set("\x1b\x07\x9b\u202e\u200b") & set(path.read_text())


class TestSeeds:
    @pytest.mark.parametrize("jobs", ["1", "2"])
    def test_greedy_answers_of_several_seeds_are_asked_for_once(
        self, jobs, serve, command, tmp_path
    ):
        server, out = serve(), tmp_path / "runs"
        run = ["run", *options(server, out), "--jobs", jobs]
        spoken = command(*run, "--seeds", "1,2,3")
        assert spoken.code == 0, spoken.err
        assert len(server.bodies) == 20
        assert len({path.read_bytes() for path in out.glob("answers/*/responses.jsonl")}) == 1
        assert len(list(out.glob("answers/*/responses.jsonl"))) == 3
        assert command(*run, "--seeds", "1,2,3,4").code == 0
        assert len(server.bodies) == 20
        assert command(*run, "--seeds", "1,2", "--overwrite", "always").code == 0
        assert len(server.bodies) == 40
        assert command(*run, "--seeds", "1,2", "--decoding", "sample").code == 0
        assert len(server.bodies) == 80


class TestKey:
    def test_is_sent_and_written_nowhere(self, serve, command, tmp_path, monkeypatch):
        monkeypatch.setenv("DIALBENCH_ENDPOINT_KEY", KEY)
        monkeypatch.setenv("OPENAI_API_KEY", "another-key-that-is-not-sent")

        def script(number, body):  # a server that tells the key wherever it can
            return 200, {"X-Key": KEY}, reply(f"your key is {KEY}", model=f"m-{KEY}")

        server, out = serve(script), tmp_path / "runs"
        spoken = command("run", *options(server, out))
        assert spoken.code == 0, spoken.err
        assert {headers["Authorization"] for headers in server.headers} == {f"Bearer {KEY}"}
        refusing = serve(lambda number, body: (401, {}, f"wrong key {KEY}"))
        failed = command("run", *options(refusing, out))
        assert failed.code == 1
        assert "wrong key ***" in failed.err
        leaks = [path for path in tmp_path.rglob("*") if path.is_file() and leaked(path)]
        assert not leaks
        assert KEY not in spoken.out + spoken.err + failed.out + failed.err
        assert "your key is ***" in "".join(p.read_text() for p in out.rglob("responses.jsonl"))

    def test_the_second_name_serves_without_the_first(self, serve, ask, monkeypatch):
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        server = serve()
        ask(server, MANY[:1])
        assert server.headers[0]["Authorization"] == f"Bearer {KEY}"

    def test_none_is_sent_where_there_is_none(self, serve, ask):
        server = serve()
        ask(server, MANY[:1])
        assert "Authorization" not in server.headers[0]

    @pytest.mark.parametrize("key", ["two words", "line\nbreak", "schlüssel"])
    def test_no_header_can_hold_it(self, key, serve, ask, monkeypatch):
        monkeypatch.setenv("DIALBENCH_ENDPOINT_KEY", key)
        with pytest.raises(SystemFailed, match="DIALBENCH_ENDPOINT_KEY") as caught:
            ask(serve(), MANY[:1])
        assert key not in str(caught.value)

    def test_a_placeholder_is_no_secret(self, serve, ask, monkeypatch):
        monkeypatch.setenv("DIALBENCH_ENDPOINT_KEY", "EMPTY")
        server = serve(lambda number, body: (200, {}, reply("EMPTY shelves")))
        assert ask(server, MANY[:1]) == ["EMPTY shelves"]

    def test_it_does_not_show_in_the_client(self):
        client = chat.Chat("http://h", KEY, 1.0, 1, 1, threading.Event(), print)
        assert KEY not in repr(client)


def leaked(path: Path) -> bool:
    return KEY.encode() in path.read_bytes()


def test_the_row_says_what_it_was(serve, command, tmp_path):
    server = serve()
    spoken = command("run", *options(server, tmp_path, max_tokens="20"))
    assert spoken.code == 0, spoken.err
    assert "m [max_tokens=20]" in spoken.out
    assert "the server reports served-7b" in spoken.out
    (record,) = tmp_path.glob("answers/*/job.json")
    facts = json.loads(record.read_text())["answered"]["circumstances"]
    assert facts["url"] == server.url
    assert facts["reported"] == ["served-7b"]


def test_several_responses_are_asked_for_once_each_with_seeds_of_their_own(
    serve, command, tmp_path
):
    server = serve()
    drawn = *options(server, tmp_path), "--samples", "3", "--decoding", "sample"
    spoken = command("run", *drawn)
    assert spoken.code == 0, spoken.err
    assert len(server.bodies) == len({body["seed"] for body in server.bodies}) == 3 * 20
    assert command("run", *drawn).code == 0
    assert len(server.bodies) == 3 * 20


def test_an_interruption_does_not_wait_for_the_server(serve, tmp_path):
    server = serve(pause=20.0)
    # A job that a shell started in the background ignores it, and so would its children.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    command = [sys.executable, "-m", "dialbench", "run", *options(server, tmp_path / "runs")]
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env={**os.environ}, text=True
    )
    until = time.monotonic() + 120
    while not server.bodies and time.monotonic() < until:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=15)
    assert process.returncode == 130, said


def test_a_model_served_by_its_checkpoint(tiny, serve, ask, tmp_path):
    """A real model behind the endpoint: the hf adapter answers what the server is asked."""
    from dialbench_adapters.hf import HF, HFConfig

    options = {"context_tokens": 20, "response_tokens": 12, "tune": False, "precision": "float64"}
    model = HF(HFConfig(weights=str(tiny("llama")), **options))
    model.fit((), (), Run(1, folder=tmp_path))
    one = threading.Lock()

    def script(number, body):
        context = Context([message["content"] for message in body["messages"]], "x")
        with one:
            (text,) = model.respond([context], Decoding(), Run(1))
        return 200, {}, reply(text)

    contexts = [Context(["Over there", "is it open?"], "a"), Context(["call their office."], "b")]
    answers = ask(serve(script), contexts)
    assert answers == model.respond(contexts, Decoding(), Run(1))
    assert any(answers)
