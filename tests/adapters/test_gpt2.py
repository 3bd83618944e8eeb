"""GPT-2: its size, what it reads and learns, and real checkpoints (docs/systems.md)."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest
import torch
from dialbench_adapters.blocks.causal import CausalModel, CausalSizes
from dialbench_adapters.gpt2 import GPT2, GPT2Config
from dialbench_adapters.hf import HF

from dialbench.adapter import Progress, Run
from dialbench.errors import InputError
from dialbench.neural.decoding import decode
from dialbench.neural.model import count_parameters
from dialbench.neural.training import Trainer
from dialbench.records import Context, Decoding
from dialbench.systems import Registry
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
        ["heads=3", "layers=0", "dropout=1", "tuning_rate=0", "tune=false", "positions=41"],
    )
    def test_what_cannot_be_built(self, options):
        with pytest.raises(InputError, match=options.split("=")[0]):
            Registry().parse(f"gpt2[{options}]")

    def test_the_title_says_what_it_is(self):
        assert GPT2.title(GPT2Config()) == "GPT-2 (small, from scratch)" == GPT2.card.title
        assert GPT2.title(GPT2Config(weights="folder")) == "GPT-2"
        assert GPT2.title(GPT2Config(weights="folder", tune=False)) == "GPT-2 (zero-shot)"


@pytest.fixture
def made(ready):
    return ready("gpt2")


def in_words(rows, row: int) -> list[int]:
    return [word for word in rows[row].tolist() if word != PAD]


def one_sequence(model, context: list[int], response: list[int]) -> torch.Tensor:
    """(T, V) logits at the response, from a pass over one sequence that nothing pads."""
    tokens = [EOS if word == SEP else word for word in context] + [EOS] + response[:-1]
    size = len(tokens)
    seen = torch.ones(1, size, dtype=torch.bool)
    x, _ = model.read(torch.tensor([tokens]), torch.arange(size)[None], seen, last=size)
    return model.output(x[0, len(context) :])


class TestSequence:
    def test_context_and_response_form_one_sequence(self, made):
        model, batch = made
        actual = model.logits(batch)
        for row in range(8):
            context, response = in_words(batch.source, row), in_words(batch.target, row)
            expected = one_sequence(model, context, response)
            assert torch.allclose(actual[row, : len(response)], expected, rtol=0, atol=1e-10)

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

        def read(tokens, places, *rest, **options):
            seen.append((tokens, places.expand(tokens.shape)))
            return plain(tokens, places, *rest, **options)

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
        wide = 0.02 * 3**0.5  # n = 256 in place of 768
        narrow = wide / 12**0.5
        for name, weight in model.named_parameters():
            if weight.dim() == 2:
                adds = "attention.output" in name or "feed_forward.second" in name
                expected = narrow if adds else wide
                assert weight.std().item() == pytest.approx(expected, rel=0.02), name
            elif "norm" not in name:
                assert not weight.any(), name

    def test_learns_eight_pairs_by_heart(self, ready, learn):
        model, batch = ready("gpt2", embedding=32, precision="float32")
        assert learn(model, batch, range(100)).total.item() < 0.1
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


@pytest.fixture(scope="module")
def tuned(tiny, build, eight, tmp_path_factory):
    adapter = build(f"gpt2[weights={tiny('gpt2')}]", tuning_epochs=3)
    adapter.fit(eight, eight, Run(2, folder=tmp_path_factory.mktemp("run")))
    return adapter


class TestPretrained:
    """What hf does not show already: see test_hf.py for the model and its sequences."""

    @pytest.mark.parametrize("decoding", ["greedy", "beam:3"])
    def test_answers_depend_on_no_batch_and_survive_saving(self, tuned, decoding, asked, tmp_path):
        how, run = Decoding.parse(decoding), Run(2)
        answers = tuned.respond(asked, how, run)
        assert any(answers)
        assert tuned.respond(asked[::-1], how, run)[::-1] == answers
        tuned.save(tmp_path)
        loaded = GPT2.load(tmp_path, replace(tuned.config, answer_batch=100))
        assert loaded.respond(asked, how, run) == answers

    def test_is_tuned_with_its_own_rates(self, tiny, build, eight, tmp_path, monkeypatch):
        made = []

        class Spy(Trainer):
            def __init__(self, *args, **options):
                super().__init__(*args, **options)
                made.append(self)

        monkeypatch.setattr("dialbench_adapters.pretrained.tuning.Trainer", Spy)
        adapter = build(f"gpt2[weights={tiny('gpt2')}]", tuning_epochs=1)
        adapter.fit(eight, eight, Run(2, folder=tmp_path))
        (trainer,) = made
        (group,) = trainer.optimiser.param_groups
        assert isinstance(trainer.optimiser, torch.optim.AdamW)
        assert group["weight_decay"] == 0.01
        assert (trainer.config.learning_rate, trainer.config.warmup) == (5e-5, 500)
        assert group["lr"] == 5e-5 * 2 / 500  # two batches of four into the warm-up
        assert adapter.history.epoch == 1
        assert GPT2Config().tuning().epochs == 5

    def test_starts_at_the_pretrained_weights(self, tiny, build, eight, tmp_path):
        from transformers import GPT2LMHeadModel

        adapter = build(f"gpt2[weights={tiny('gpt2')}]", tuning_epochs=1, tuning_rate=1e-12)
        adapter.fit(eight, eight, Run(2, folder=tmp_path))
        expected = GPT2LMHeadModel.from_pretrained(tiny("gpt2")).state_dict()
        actual = adapter.model.library.state_dict()
        assert actual.keys() == expected.keys()
        for name, tensor in actual.items():
            assert torch.allclose(tensor.float(), expected[name], atol=1e-8), name

    def test_the_rows_note_names_the_corpus_of_the_paper(self, tiny, build, eight, tmp_path):
        class Notes(Progress):
            def warn(self, text):
                texts.append(text)

        texts = []
        run = Run(2, folder=tmp_path, progress=Notes())
        build(f"gpt2[weights={tiny('gpt2')}]", tuning_epochs=1).fit(eight, eight, run)
        (note,) = texts
        assert "fine-tuned on this corpus" in note
        assert "DailyDialog only" in note
        build(f"gpt2[weights={tiny('gpt2')},tune=false]").fit(eight, eight, run)
        assert len(texts) == 1

    def test_another_kind_of_model(self, tiny):
        with pytest.raises(InputError, match="is a llama, no gpt2") as caught:
            GPT2.inspect(GPT2Config(weights=str(tiny("llama"))), ())
        assert "\n" not in caught.value.message

    def test_its_fingerprint_holds_the_weights(self, tiny):
        config = GPT2Config(weights=str(tiny("gpt2")), context_tokens=20, response_tokens=20)
        assert GPT2.inspect(config, ()) == HF.inspect(config, ())
        assert GPT2.inspect(GPT2Config(), ()) == {}
