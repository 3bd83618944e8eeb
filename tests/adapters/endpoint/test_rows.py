"""What a row of an endpoint says, and what it takes to make one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time

from dialbench.adapter import Run
from dialbench.records import Context, Decoding

from .conftest import options, reply


def test_the_row_says_what_it_was(serve, command, tmp_path):
    server = serve()
    result = command("run", *options(server, tmp_path, max_tokens="20"))
    assert result.code == 0, result.err
    assert "m [max_tokens=20]" in result.out
    assert "the server reports served-7b" in result.out
    (record,) = tmp_path.glob("answers/*/job.json")
    facts = json.loads(record.read_text())["answered"]["circumstances"]
    assert facts["url"] == server.url
    assert facts["reported"] == ["served-7b"]


def test_several_responses_are_asked_for_once_each_with_seeds_of_their_own(
    serve, command, tmp_path
):
    server = serve()
    drawn = *options(server, tmp_path), "--samples", "3", "--decoding", "sample"
    result = command("run", *drawn)
    assert result.code == 0, result.err
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
    _, errors = process.communicate(timeout=15)
    assert process.returncode == 130, errors


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
