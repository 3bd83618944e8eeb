"""What survives an interruption, and what is asked for once."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time

import pytest
from dialbench_adapters.chat.ledger import Ledger, StoredReply

from dialbench.errors import StorageError, SystemFailed
from dialbench.records import Context
from dialbench.text.untokenized import untokenized

from .conftest import ECHOES, MANY, options


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


class TestSeeds:
    @pytest.mark.parametrize("jobs", ["1", "2"])
    def test_greedy_answers_of_several_seeds_are_asked_for_once(
        self, jobs, serve, command, tmp_path
    ):
        server, out = serve(), tmp_path / "runs"
        run = ["run", *options(server, out), "--jobs", jobs]
        result = command(*run, "--seeds", "1,2,3")
        assert result.code == 0, result.err
        assert len(server.bodies) == 20
        assert len({path.read_bytes() for path in out.glob("answers/*/responses.jsonl")}) == 1
        assert len(list(out.glob("answers/*/responses.jsonl"))) == 3
        assert command(*run, "--seeds", "1,2,3,4").code == 0
        assert len(server.bodies) == 20
        assert command(*run, "--seeds", "1,2", "--overwrite", "always").code == 0
        assert len(server.bodies) == 40
        assert command(*run, "--seeds", "1,2", "--decoding", "sample").code == 0
        assert len(server.bodies) == 80
