"""What is sent to an endpoint, and what is made of its answers."""

from __future__ import annotations

import time

import pytest
from dialbench_adapters.endpoint import Endpoint, EndpointConfig

from dialbench.adapter import Run
from dialbench.errors import InputError
from dialbench.records import Decoding
from dialbench.systems import Registry

from .conftest import ECHOES, MANY, Notes, reply


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
