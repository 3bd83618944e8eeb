"""What stays secret, and what never reaches a terminal."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest
from dialbench_adapters.chat import client as chat

from dialbench.errors import SystemFailed

from .conftest import KEY, MANY, options, reply

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
            result = command(
                *("run", *options(server, tmp_path / name), "--models", models),
                *("--progress", progress, "--limit-test", 2),
            )
            assert result.code == (0 if name == "model" else 1), result.err
            assert not set("\x1b\x07\x9b\u202e\u200b") & set(result.out + result.err)
            for path in tmp_path.glob(f"{name}/report/*"):
                assert not set("\x1b\x07\x9b\u202e\u200b") & set(path.read_text())


class TestKey:
    def test_is_sent_and_written_nowhere(self, serve, command, tmp_path, monkeypatch):
        monkeypatch.setenv("DIALBENCH_ENDPOINT_KEY", KEY)
        monkeypatch.setenv("OPENAI_API_KEY", "another-key-that-is-not-sent")

        def script(number, body):  # a server that tells the key wherever it can
            return 200, {"X-Key": KEY}, reply(f"your key is {KEY}", model=f"m-{KEY}")

        server, out = serve(script), tmp_path / "runs"
        result = command("run", *options(server, out))
        assert result.code == 0, result.err
        assert {headers["Authorization"] for headers in server.headers} == {f"Bearer {KEY}"}
        refusing = serve(lambda number, body: (401, {}, f"wrong key {KEY}"))
        failed = command("run", *options(refusing, out))
        assert failed.code == 1
        assert "wrong key ***" in failed.err
        leaks = [path for path in tmp_path.rglob("*") if path.is_file() and leaked(path)]
        assert not leaks
        assert KEY not in result.out + result.err + failed.out + failed.err
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
