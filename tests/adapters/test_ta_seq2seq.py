"""TA-Seq2Seq: its size, its topic words, and what they do to the next word (docs/systems.md)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from dialbench_adapters.blocks.topic_words import messages
from dialbench_adapters.s2sa import S2SAConfig, S2SAModel
from dialbench_adapters.ta_seq2seq import TASeq2SeqConfig, TASeq2SeqModel
from dialbench_adapters.text_models.twitter_lda import Topics

from dialbench.adapter import Run
from dialbench.errors import InputError, StorageError
from dialbench.neural.data import build_vocabulary, encode, make_batch
from dialbench.neural.model import count_parameters
from dialbench.records import Decoding, Example, Split
from dialbench.systems import Registry
from dialbench.text.vocabulary import PAD

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture
def made(ready):
    return ready("ta-seq2seq")


def without_topic_words(model: TASeq2SeqModel) -> None:
    model.topics.numbers.zero_()


class TestSizes:
    def test_paper(self):
        V, T, K, e, h = 1_000, 50, 100, 620, 1_024
        with torch.device("meta"):
            model = TASeq2SeqModel(TASeq2SeqConfig(), V, Topics.stand_in(T, V))
            plain = count_parameters(S2SAModel(S2SAConfig(), V))["parameters"]
        distinct = V - 5 + 1  # every word but the specials is some topic's, and one row for none
        attention = h * (h + T + 2 * h) + h
        bonus = distinct * (e + 3 * h + 1)
        wider = 3 * h * T  # what the decoder reads of o
        assert K * T > V
        actual = count_parameters(model)
        assert actual["trained_parameters"] == plain + attention + bonus + wider
        assert actual["parameters"] == actual["trained_parameters"] + V * T  # p(topic | word)
        assert actual["random_parameters"] == 0

    @pytest.mark.parametrize("option", ["lda_topics=0", "topic_words=0", "sweeps=0"])
    def test_what_cannot_be_built(self, option):
        with pytest.raises(InputError, match=option.split("=")[0]):
            Registry().parse(f"ta-seq2seq[{option}]")


class TestOutput:
    def test_is_the_joint_choice_of_both_scores(self, made):
        model, batch = made
        state = model.start(batch)
        readouts = torch.randn(8, 3, model.output.in_features, dtype=torch.float64)
        actual = model.scores(readouts, state).softmax(-1)
        assert torch.allclose(actual.sum(-1), torch.ones(8, 3, dtype=torch.float64))
        topics = model.topics.infer(batch.source)
        for row, topic in enumerate(topics.tolist()):
            words = model.topics.numbers[topic]
            mass = model.output(readouts[row]).exp()
            for word, place in zip(words.tolist(), model.topics.rows[topic], strict=True):
                if word != PAD:
                    *weights, bias = model.bonus.weight[place].tolist()
                    weights = torch.tensor(weights, dtype=torch.float64)
                    mass[:, word] += (readouts[row] @ weights + bias).exp()
            assert torch.allclose(actual[row], mass / mass.sum(-1, keepdim=True))

    def test_words_of_other_topics_get_no_bonus(self, made):
        model, batch = made
        state = model.start(batch)
        readouts = torch.randn(8, 1, model.output.in_features, dtype=torch.float64)
        gained = (model.scores(readouts, state) - model.output(readouts))[:, 0].abs() > 1e-12
        for row, words in zip(gained, state.example["numbers"], strict=True):
            assert set(row.nonzero().flatten().tolist()) == set(words.tolist()) - {PAD}

    def test_a_higher_bonus_raises_the_mass_of_topic_words(self, made):
        model, batch = made
        words = model.start(batch).example["numbers"]
        there = words.ne(PAD)

        def mass() -> torch.Tensor:
            shares = model.logits(batch)[:, 0].softmax(-1).gather(1, words)
            return shares.masked_fill(~there, 0.0).sum(1)

        before = mass()
        model.bonus.weight.data[:, -1] += 1.0
        assert (mass() > before).tolist() == there.any(1).tolist()
        assert there.any()

    def test_bfloat16_rounds_what_a_bonus_gains_once(self, ready):
        """Its slope is the share of the bonus in the word's mass, exp Psi_K of exp Psi_V + K."""
        model, batch = ready("ta-seq2seq", precision="float32")
        state, random = model.train().start(batch), torch.Generator().manual_seed(1)
        words = state.example["numbers"]
        readouts = torch.zeros(8, 1, model.output.in_features, dtype=torch.bfloat16)
        shape = *words.shape, readouts.shape[-1] + 1
        bonus = (4 * torch.randn(shape, generator=random)).bfloat16().requires_grad_()
        biases = 4 * torch.randn(model.output.out_features, generator=random)
        model.output.bias.data.copy_(biases.bfloat16())
        state = replace(state, example={**state.example, "bonus": bonus})
        with torch.autocast("cpu", torch.bfloat16):
            scores = model.scores(readouts, state)
        scores.sum().backward()
        share = (bonus[..., -1].double() - model.output.bias[words].double()).sigmoid()
        actual, real = bonus.grad[..., -1].double(), words.ne(PAD)
        assert torch.allclose(actual[real], share[real], rtol=2**-8, atol=0)

    def test_bounded_scores_lie_within_one(self, ready):
        model, batch = ready("ta-seq2seq[bounded=true]")
        model.output.weight.data *= 100.0
        logits = model.logits(batch)
        assert logits.min() >= -1.0
        assert logits.max() <= np.log(2 * np.e)


class TestTopicWords:
    def test_without_any_s2sa_is_left(self, ready):
        model, batch = ready("ta-seq2seq")
        plain, _ = ready("s2sa")
        without_topic_words(model)
        model.topics.of_words.zero_()
        weights = model.state_dict()
        width = plain.decoder.cells[0].input_size
        name = "decoder.cells.0.weight_ih"
        weights[name] = weights[name][:, :width]
        plain.load_state_dict({key: weights[key] for key in plain.state_dict()})
        state = model.start(batch)
        assert not model.topic_context(state.row[-1][:, None], state).any()
        assert torch.allclose(model.logits(batch), plain.logits(batch))

    def test_attention_over_them_sums_to_one_and_leaves_out_what_is_not_there(self, made):
        model, batch = made
        model.topics.numbers[:, 4:] = PAD
        state = model.start(batch)
        example, query = state.example, state.row[-1][:, None]
        asked = torch.cat([query, example["message"][:, None]], -1)
        seen = example["numbers"].ne(PAD)
        weights = model.topic_attention.weights(example["word_keys"], asked, seen)
        assert torch.allclose(weights.sum(-1), torch.ones(8, 1, dtype=torch.float64))
        assert not weights[:, 0, 4:].any()
        mixed = weights @ model.topics.of_words[example["numbers"]].double()
        assert torch.allclose(model.topic_context(query, state), mixed)

    def test_topic_is_the_likeliest_by_the_words_of_the_message(self, made):
        model, batch = made
        for row, words in enumerate(batch.source.tolist()):
            real = [word for word in words if word > 4]
            chances = model.topics.prior + sum(model.topics.logs[word] for word in real)
            assert model.topics.infer(batch.source)[row] == chances.argmax()

    def test_response_does_not_decide_the_topic(self, made):
        model, batch = made
        blind = replace(batch, target=batch.target[:, :0], real=batch.real[:0])
        actual = model.start(blind).example["numbers"]
        assert torch.equal(actual, model.start(batch).example["numbers"])


class TestMessages:
    def test_every_turn_of_a_dialogue_once(self):
        train = Split(
            "train",
            [
                Example("1", "x", ("Green tea?",), ("Yes, the green one.",)),
                Example("2", "x", ("Green tea?", "Yes, the green one."), ("Boiling water!",)),
                Example("3", "y", ("Green tea?",), ("No.",)),
                Example("4", "y", ("Green tea?", "No."), ("Then tea with water and sugar.",)),
            ],
        )
        words = build_vocabulary(train, 100)
        actual = messages(train, words)
        assert actual.dialogues.tolist() == [0, 0, 0, 1, 1]
        bounds = zip(actual.words.starts, actual.words.ends, strict=True)
        responses = [" ".join(words.decode(actual.words.values[a:b])) for a, b in bounds]
        assert responses == ["green tea", "green", "boiling water", "green tea", "tea water sugar"]


class TestTraining:
    @pytest.mark.parametrize("system", ["ta-seq2seq", "ta-seq2seq-lstm"])
    def test_topic_words_start_twice_as_likely_as_without_a_bonus(
        self, build, eight, asked, tmp_path, system
    ):
        """Not with all of the probability, as scores of 0 have beside log-frequencies."""
        start = {"output_start": "corpus", "output_bias": "unigram", "learning_rate": 1e-12}
        adapter = build(system, epochs=1, **start)
        adapter.fit(eight, eight, Run(1, folder=tmp_path))
        model = adapter.model.eval()
        words = encode(asked, adapter.vocabulary, 30)
        state = model.start(make_batch(words, np.arange(len(asked)), "cpu"))
        readouts = torch.randn(len(asked), 1, model.output.in_features, dtype=torch.float64)
        gained = (model.scores(readouts, state) - model.output(readouts))[:, 0]
        is_topic_word = torch.zeros_like(gained, dtype=torch.bool)
        is_topic_word.scatter_(1, state.example["numbers"], value=True)
        is_topic_word[:, PAD] = False
        assert is_topic_word.any()
        assert torch.allclose(gained, np.log(2.0) * is_topic_word.double(), atol=1e-6)

    def test_topics_are_kept_and_told(self, build, eight, asked, tmp_path):
        adapter, run = build("ta-seq2seq", epochs=1), Run(1, folder=tmp_path)
        adapter.fit(eight, eight, run)
        assert len(adapter.facts()["topics"]) == 4
        saved = tmp_path / "saved"
        saved.mkdir()
        adapter.save(saved)
        loaded = type(adapter).load(saved, adapter.config)
        assert torch.equal(loaded.model.topics.numbers, adapter.model.topics.numbers)
        answers = adapter.respond(asked, Decoding(), run)
        assert loaded.respond(asked, Decoding(), run) == answers
        (saved / "topics.safetensors").write_bytes(b"nothing")
        with pytest.raises(StorageError, match="cannot be read"):
            type(adapter).load(saved, adapter.config)

    def test_a_resumed_training_ends_in_the_same_bits(self, build, eight, tmp_path):
        def weights(folder: str, *epochs: int):
            for last in epochs:
                adapter = build("ta-seq2seq[optimiser=adam]", epochs=last)
                adapter.fit(eight, eight, Run(1, folder=tmp_path / folder))
            return adapter.model.state_dict()

        for folder in ("whole", "halves"):
            (tmp_path / folder).mkdir()
        whole, halves = weights("whole", 2), weights("halves", 1, 2)
        assert all(torch.equal(whole[name], halves[name]) for name in whole)

    def test_eight_pairs_are_learnt_by_heart(self, ready, learn):
        model, batch = ready("ta-seq2seq", embedding=32, hidden=32, precision="float32")
        assert learn(model, batch, range(150)).total.item() < 0.1
