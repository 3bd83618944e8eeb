"""GPT-2: its size, what it reads and learns, and real checkpoints (models.md A8)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from dialbench_adapters.blocks.causal import CausalModel, CausalSizes
from dialbench_adapters.gpt2 import GPT2, BytePairs, GPT2Config, pretrained_model

from dialbench.adapter import Registry, Run
from dialbench.errors import InputError
from dialbench.neural.data import encode, make_batch
from dialbench.neural.decoding import decode
from dialbench.neural.model import count_parameters
from dialbench.neural.training import Trainer
from dialbench.records import Context, Decoding
from dialbench.text.tokenizer import tokenize
from dialbench.text.vocabulary import BOS, EOS, PAD, SEP, UNK

pytestmark = pytest.mark.usefixtures("one_thread")

DECODINGS = ["greedy", "sample", "top-k:5", "top-p:0.9", "beam:3"]


class TestSize:
    def test_from_scratch(self):
        with torch.device("meta"):
            model = GPT2().build_model(20_000)
        assert count_parameters(model) == {
            "parameters": 9_924_608,
            "trained_parameters": 9_924_608,
            "random_parameters": 0,
        }

    def test_of_the_stack_at_the_size_of_the_real_one(self):
        with torch.device("meta"):
            model = CausalModel(CausalSizes(12, 12, 768, 1_024, 0.1), 50_257, ())
        assert count_parameters(model)["parameters"] == 124_439_808

    @pytest.mark.parametrize(
        "options",
        ["heads=3", "layers=0", "dropout=1", "tuning_rate=0", "tuning_epochs=0", "positions=41"],
    )
    def test_what_cannot_be_built(self, options):
        with pytest.raises(InputError, match=options.split("=")[0]):
            Registry().parse(f"gpt2[{options}]")

    def test_the_title_says_what_it_is(self):
        assert GPT2.title(GPT2Config()) == "GPT-2 (small, from scratch)" == GPT2.card.title
        assert GPT2.title(GPT2Config(weights="folder")) == "GPT-2"


@pytest.fixture
def made(ready):
    return ready("gpt2")


def in_words(rows, row: int) -> list[int]:
    return [word for word in rows[row].tolist() if word != PAD]


def one_sequence(model, context: list[int], response: list[int]) -> torch.Tensor:
    """(T, V) logits at the response, from a pass over one sequence that nothing pads."""
    tokens = [EOS if word == SEP else word for word in context] + [EOS] + response[:-1]
    size = len(tokens)
    mask = torch.ones(size, size, dtype=torch.bool).tril()
    x, _ = model.read(torch.tensor([tokens]), torch.arange(size)[None], mask)
    return model.output(x[0, len(context) :])


class TestSequence:
    def test_context_and_response_form_one_sequence(self, made):
        model, batch = made
        found = model.logits(batch)
        for row in range(8):
            context, response = in_words(batch.source, row), in_words(batch.target, row)
            expected = one_sequence(model, context, response)
            assert torch.allclose(found[row, : len(response)], expected, rtol=0, atol=1e-10)

    def test_loss_is_on_the_response_and_its_end_only(self, made):
        model, batch = made
        logs = [
            one_sequence(model, in_words(batch.source, row), words).log_softmax(-1)[
                range(len(words)), words
            ]
            for row in range(8)
            for words in [in_words(batch.target, row)]
        ]
        assert all(in_words(batch.target, row)[-1] == EOS for row in range(8))
        losses = model.loss(batch, 0)
        together = torch.cat(logs)
        assert losses.tokens == len(together) == int(batch.target.ne(PAD).sum())
        assert losses.total.item() == pytest.approx(-together.mean().item(), rel=1e-12)

    def test_positions_go_on_behind_the_context(self, made, monkeypatch):
        model, batch = made
        seen, plain = [], model.read

        def read(tokens, places, *rest):
            seen.append((tokens, places.expand(tokens.shape)))
            return plain(tokens, places, *rest)

        monkeypatch.setattr(model, "read", read)
        lengths = batch.source.ne(PAD).sum(1)
        assert len(set(lengths.tolist())) > 3
        state = model.start(batch).widen(2)
        _, state = model.step(torch.full((16,), BOS), state)
        model.step(torch.full((16,), 7), state)
        for count, (_, places) in enumerate(seen[1:]):
            assert torch.equal(places[:, 0], lengths.repeat_interleave(2) + count)

    def test_a_long_context_keeps_its_end(self, build, eight):
        adapter = build("gpt2", positions=20, response_tokens=10, context_tokens=30)
        assert adapter.config.context_tokens == 9
        assert build("gpt2", positions=20, context_tokens=5).config.context_tokens == 5
        assert GPT2().config.context_tokens == 256 - 40 - 1

    def test_the_longest_sequence_fits(self, build, eight, tmp_path):
        adapter = build("gpt2", positions=20, response_tokens=10, epochs=1)
        long = [Context([" ".join(["the"] * 50)], "long")]
        adapter.fit(eight, eight, Run(1, folder=tmp_path))
        for decoding in DECODINGS:
            (answer,) = adapter.respond(long, Decoding.parse(decoding), Run(1))
            assert len(tokenize(answer)) <= 10


class TestModel:
    def test_what_is_no_word_takes_no_probability(self, made):
        model, batch = made
        mass = model.logits(batch).softmax(-1)
        assert not mass[:, :, [PAD, BOS, SEP]].any()
        assert mass[:, :, [UNK, EOS]].all()

    def test_output_is_tied(self, made):
        model, _ = made
        hidden = torch.randn(3, 16, dtype=torch.float64)
        expected = hidden @ model.embedding.weight.T
        words = [UNK, EOS, *range(5, len(expected[0]))]
        assert torch.allclose(model.output(hidden)[:, words], expected[:, words])
        assert "output.weight" not in dict(model.named_parameters())

    def test_starts_at_the_spread_of_the_original(self):
        torch.manual_seed(1)
        model = GPT2().build_model(2_000)
        narrow = 0.02 / 12**0.5
        for name, weight in model.named_parameters():
            if weight.dim() == 2:
                adds = "attention.output" in name or "feed_forward.second" in name
                expected = narrow if adds else 0.02
                assert weight.std().item() == pytest.approx(expected, rel=0.02), name
            elif "norm" not in name:
                assert not weight.any(), name

    def test_learns_eight_pairs_by_heart(self, ready):
        model, batch = ready("gpt2", embedding=32, precision="float32")
        adam = torch.optim.Adam(model.parameters(), lr=1e-2)
        for step in range(100):
            adam.zero_grad()
            losses = model.loss(batch, step)
            losses.total.backward()
            adam.step()
        assert losses.total.item() < 0.1
        expected = [
            [word for word in row if word not in (PAD, EOS)] for row in batch.target.tolist()
        ]
        # each answer ends at its EOS, long before the limit
        assert decode(model, batch, Decoding(), 30) == expected


@pytest.fixture(scope="module")
def fitted(build, eight, tmp_path_factory):
    adapter = build("gpt2")
    adapter.fit(eight, eight, Run(2, folder=tmp_path_factory.mktemp("run")))
    return adapter


@pytest.mark.parametrize("decoding", DECODINGS)
def test_answers_depend_on_no_batch_and_survive_saving(fitted, decoding, asked, tmp_path):
    how, run = Decoding.parse(decoding), Run(2)
    answers = fitted.respond(asked, how, run)
    assert fitted.respond(asked[::-1], how, run)[::-1] == answers
    assert [fitted.respond([one], how, run)[0] for one in asked] == answers
    fitted.save(tmp_path)
    loaded = GPT2.load(tmp_path, replace(fitted.config, answer_batch=100))
    assert loaded.respond(asked, how, run) == answers


def test_from_scratch_needs_no_transformers_library(build):
    code = (
        "import sys, socket; sys.modules['transformers'] = None; socket.socket.connect = None;"
        "from dialbench_adapters.gpt2 import GPT2; GPT2().build_model(50)"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


OFFLINE = """
import socket, sys
def refuse(*_): raise AssertionError("a connection was tried")
socket.socket.connect = socket.getaddrinfo = refuse
from dialbench_adapters.gpt2 import BytePairs, GPT2Config, pretrained_model
config = GPT2Config(weights="somebody/tiny", context_tokens=20, response_tokens=20)
print(len(BytePairs(config.weights)), pretrained_model(config).output.out_features)
"""


TALK = ["Is the bakery open?", "it opens at seven.", "call their office.", "over there, i think."]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory) -> Path:
    """A tiny GPT-2 with a byte-pair tokeniser, as the real one is published."""
    from tokenizers import ByteLevelBPETokenizer
    from transformers import GPT2Config as Sizes
    from transformers import GPT2LMHeadModel, PreTrainedTokenizerFast

    folder = tmp_path_factory.mktemp("tiny")
    pairs = ByteLevelBPETokenizer()
    # The real one's end of text is its last token; here it lies among the others.
    pairs.train_from_iterator(TALK, 300, special_tokens=["<|endoftext|>"], show_progress=False)
    end = "<|endoftext|>"
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=pairs._tokenizer, bos_token=end, eos_token=end, unk_token=end
    )
    tokenizer.save_pretrained(folder)
    number = tokenizer.eos_token_id
    torch.manual_seed(1)
    sizes = Sizes(
        vocab_size=len(tokenizer),
        n_positions=64,
        n_embd=32,
        n_layer=2,
        n_head=4,
        initializer_range=0.3,  # far from nothing, so that a wrong place shows
        bos_token_id=number,
        eos_token_id=number,
    )
    GPT2LMHeadModel(sizes).save_pretrained(folder, safe_serialization=True)
    return folder


@pytest.fixture(scope="module")
def tuned(checkpoint, build, eight, tmp_path_factory):
    adapter = build(f"gpt2[weights={checkpoint}]", tuning_epochs=3)
    adapter.fit(eight, eight, Run(2, folder=tmp_path_factory.mktemp("run")))
    return adapter


class TestPretrained:
    def test_logits_are_those_of_the_library(self, checkpoint, eight):
        from transformers import AutoTokenizer, GPT2LMHeadModel

        config = GPT2Config(weights=str(checkpoint), context_tokens=20, response_tokens=20)
        model = pretrained_model(config).double().eval()
        theirs = GPT2LMHeadModel.from_pretrained(checkpoint).double().eval()
        tokenizer = AutoTokenizer.from_pretrained(checkpoint)
        end, pairs = tokenizer.eos_token_id, BytePairs(str(checkpoint))
        contexts = [Context(["over there", "is it open"], "a"), Context(["seven"], "b")]
        responses = ["i think", "call their office"]
        data = encode(contexts, pairs, 20, responses, 20)
        batch = make_batch(data, np.arange(2), "cpu")
        ours = model.logits(batch)
        columns = [EOS if n == end else 5 + n - (n > end) for n in range(len(tokenizer))]
        for row, (context, response) in enumerate(zip(contexts, responses, strict=True)):
            turns = [[*tokenizer.encode(turn), end] for turn in context]
            answer = tokenizer.encode(response)
            tokens = [*(n for turn in turns for n in turn), *answer]
            expected = theirs(torch.tensor([tokens])).logits[0, -len(answer) - 1 :]
            found = ours[row, : len(answer) + 1][:, columns]
            assert torch.allclose(found, expected, rtol=0, atol=1e-9)
            losses = expected.log_softmax(-1)[range(len(answer) + 1), [*answer, end]]
            alone = model.loss(make_batch(data, np.array([row]), "cpu"), 0)
            assert alone.total.item() == pytest.approx(-losses.mean().item())

    def test_text_goes_there_and_back(self, checkpoint):
        pairs = BytePairs(str(checkpoint))
        for text in [*TALK, "zürich costs £5 ☃", "i don't."]:
            words = tokenize(text)
            numbers = pairs.encode(words)
            assert min(numbers) > SEP
            assert tokenize("".join(pairs.decode([*numbers, EOS, 9]))) == words
        assert pairs.decode([EOS, 9]) == []
        assert pairs.encode([]) == []

    def test_words_are_the_checkpoints(self, checkpoint):
        config = GPT2Config(weights=str(checkpoint), context_tokens=20, response_tokens=20)
        model, pairs = pretrained_model(config), BytePairs(str(checkpoint))
        assert model.output.out_features == len(pairs)
        # the suite's specials are four rows more than the checkpoint has
        n, V = 32, len(pairs)
        assert count_parameters(model)["parameters"] == (
            V * n + 64 * n + 2 * (12 * n * n + 13 * n) + 2 * n
        )
        assert len(pairs) == len(pairs.tokenizer) + 4

    @pytest.mark.parametrize("decoding", ["greedy", "top-p:0.9", "beam:3"])
    def test_answers_depend_on_no_batch_and_survive_saving(self, tuned, decoding, asked, tmp_path):
        how, run = Decoding.parse(decoding), Run(2)
        answers = tuned.respond(asked, how, run)
        assert any(answers)
        assert tuned.respond(asked[::-1], how, run)[::-1] == answers
        assert [tuned.respond([one], how, run)[0] for one in asked] == answers
        tuned.save(tmp_path)
        loaded = GPT2.load(tmp_path, replace(tuned.config, answer_batch=100))
        assert loaded.respond(asked, how, run) == answers

    def test_is_tuned_with_its_own_rates(self, checkpoint, build, eight, tmp_path, monkeypatch):
        made = []

        class Spy(Trainer):
            def __init__(self, *args, **options):
                super().__init__(*args, **options)
                made.append(self)

        monkeypatch.setattr("dialbench_adapters.gpt2.Trainer", Spy)
        adapter = build(f"gpt2[weights={checkpoint}]", tuning_epochs=1)
        adapter.fit(eight, eight, Run(2, folder=tmp_path))
        (trainer,) = made
        (group,) = trainer.optimiser.param_groups
        assert isinstance(trainer.optimiser, torch.optim.AdamW)
        assert group["weight_decay"] == 0.01
        assert (trainer.config.learning_rate, trainer.config.warmup) == (5e-5, 500)
        assert group["lr"] == 5e-5 * 2 / 500  # two batches of four into the warm-up
        assert adapter.history.epoch == 1
        assert GPT2Config().tuning().epochs == 5

    def test_starts_at_the_pretrained_weights(self, checkpoint, build, eight, tmp_path):
        adapter = build(f"gpt2[weights={checkpoint}]", tuning_epochs=1, tuning_rate=1e-12)
        adapter.fit(eight, eight, Run(2, folder=tmp_path))
        expected = pretrained_model(adapter.config).state_dict()
        for name, tensor in adapter.model.state_dict().items():
            assert torch.allclose(tensor.float(), expected[name], atol=1e-8), name

    def test_an_interrupted_tuning_goes_on(self, tuned, checkpoint, build, eight, tmp_path):
        def fitted(epochs: int):
            adapter = build(f"gpt2[weights={checkpoint}]", tuning_epochs=epochs)
            adapter.fit(eight, eight, Run(2, folder=tmp_path))
            return adapter

        fitted(1)
        resumed = fitted(3)
        assert resumed.curve() == tuned.curve()


class TestRefused:
    def refuse(self, weights, match: str, **options):
        config = GPT2Config(weights=str(weights), **options)
        with pytest.raises(InputError, match=match) as caught:
            pretrained_model(config)
        assert "\n" not in caught.value.message
        assert str(weights) in caught.value.message

    def test_missing_folder(self, tmp_path):
        self.refuse(tmp_path / "nowhere", "no pretrained GPT-2 can be read")

    def test_name_that_is_not_in_the_cache(self, tmp_path, monkeypatch):
        def connect(*args):
            raise AssertionError("a connection was tried")

        monkeypatch.setattr("socket.socket.connect", connect)
        self.refuse("nobody/no-such-model", "no pretrained GPT-2 can be read")

    def test_a_name_in_the_cache_is_read_without_a_connection(self, checkpoint, tmp_path):
        entry = tmp_path / "hub" / "models--somebody--tiny"
        (entry / "refs").mkdir(parents=True)
        (entry / "refs" / "main").write_text("a" * 40)
        shutil.copytree(checkpoint, entry / "snapshots" / ("a" * 40))
        done = subprocess.run(
            [sys.executable, "-c", OFFLINE],
            env={**os.environ, "HF_HOME": str(tmp_path)},
            capture_output=True,
            text=True,
        )
        assert done.stderr == ""
        size = str(len(BytePairs(str(checkpoint))))
        assert done.stdout.split() == [size, size]

    def test_missing_tokenizer(self, checkpoint, tmp_path):
        for name in ("config.json", "model.safetensors"):
            (tmp_path / name).write_bytes((checkpoint / name).read_bytes())
        with pytest.raises(InputError, match=f"the tokenizer of weights={tmp_path}"):
            BytePairs(str(tmp_path))

    def test_pickled_weights(self, checkpoint, tmp_path):
        (tmp_path / "config.json").write_bytes((checkpoint / "config.json").read_bytes())
        (tmp_path / "pytorch_model.bin").write_bytes(b"never opened")
        self.refuse(tmp_path, "safetensors", context_tokens=10, response_tokens=10)

    def test_no_end_of_text(self, tmp_path):
        facts = {"model_type": "gpt2", "vocab_size": 300, "eos_token_id": 50_256}
        (tmp_path / "config.json").write_text(json.dumps(facts))
        self.refuse(tmp_path, "no end-of-text")

    def test_damaged_weights(self, checkpoint, tmp_path):
        (tmp_path / "config.json").write_bytes((checkpoint / "config.json").read_bytes())
        whole = (checkpoint / "model.safetensors").read_bytes()
        (tmp_path / "model.safetensors").write_bytes(whole[:-100])
        self.refuse(tmp_path, "can be read", context_tokens=10, response_tokens=10)

    def test_weights_that_lack_some(self, checkpoint, tmp_path):
        from safetensors.torch import load_file, save_file

        (tmp_path / "config.json").write_bytes((checkpoint / "config.json").read_bytes())
        tensors = load_file(checkpoint / "model.safetensors")
        tensors.pop("transformer.h.1.mlp.c_fc.weight")
        save_file(tensors, tmp_path / "model.safetensors", {"format": "pt"})
        self.refuse(tmp_path, "lacks .*h.1.mlp.c_fc", context_tokens=10, response_tokens=10)

    def test_another_kind_of_model(self, tmp_path):
        (tmp_path / "config.json").write_text(json.dumps({"model_type": "bert"}))
        self.refuse(tmp_path, "is a bert, no gpt2")

    def test_too_few_positions(self, checkpoint):
        self.refuse(checkpoint, "64 positions", context_tokens=24, response_tokens=40)
