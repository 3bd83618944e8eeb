"""What is tried again, and what is refused."""

from __future__ import annotations

import json
import sys
import threading
import time
from contextlib import suppress
from email.utils import formatdate

import pytest
from dialbench_adapters.endpoint import Endpoint, EndpointConfig

from dialbench.adapter import Run
from dialbench.errors import SystemFailed
from dialbench.records import Decoding

from .conftest import ECHOES, KEY, MANY, Notes, Server


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


def test_what_comes_in_place_of_a_completion_is_told(serve, ask):
    server = serve(lambda number, body: (200, {}, '{"error": {"message": "overloaded"}}'))
    with pytest.raises(SystemFailed, match=r"no chat completion \(status 200: overloaded\)"):
        ask(server, MANY[:1], attempts=1)


def test_an_answer_need_not_name_a_model(serve, ask):
    text = json.dumps({"model": None, "choices": [{"message": {"content": "hi"}}]})
    server = serve(lambda number, body: (200, {}, text))
    assert ask(server, MANY[:1], attempts=1) == ["hi"]


def test_a_timeout_is_a_day_at_most():
    with pytest.raises(ValueError, match="timeout must be at most 86400 seconds"):
        EndpointConfig("http://localhost:1/v1", "m", timeout=1e10)
