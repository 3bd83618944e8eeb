"""TA-Seq2Seq of LSTMs: its size, and what topic words change of its parent (docs/systems.md)."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from dialbench_adapters.blocks.lstm import Conditioning
from dialbench_adapters.seq2seq_lstm import LSTMConfig, LSTMModel
from dialbench_adapters.ta_seq2seq_lstm import TASeq2SeqLSTMConfig, TASeq2SeqLSTMModel
from dialbench_adapters.text_models.twitter_lda import Topics

from dialbench.adapter import Run
from dialbench.errors import InputError
from dialbench.neural.model import count_parameters
from dialbench.records import Decoding
from dialbench.systems import Registry
from dialbench.text.vocabulary import PAD

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture
def made(ready):
    return ready("ta-seq2seq-lstm")


class TestSizes:
    def test_paper(self):
        V, T, K, h = 1_000, 50, 100, 300
        with torch.device("meta"):
            model = TASeq2SeqLSTMModel(TASeq2SeqLSTMConfig(), V, Topics.stand_in(T, V))
            plain = count_parameters(LSTMModel(LSTMConfig(), V))["parameters"]
        distinct = V - 5 + 1  # every word but the specials is some topic's, and one row for none
        attention = h * (T + 2 * h) + h
        bonus = distinct * (h + 1)
        wider = 4 * h * T  # what the decoder reads of o
        assert K * T > V
        actual = count_parameters(model)
        assert actual["trained_parameters"] == plain + attention + bonus + wider
        assert actual["parameters"] == actual["trained_parameters"] + V * T  # p(topic | word)

    def test_defaults_are_those_of_its_parent(self):
        own, parent = vars(TASeq2SeqLSTMConfig()), vars(LSTMConfig())
        assert {name: own[name] for name in parent} == parent

    @pytest.mark.parametrize("option", ["lda_topics=0", "topic_words=0", "sweeps=0", "hidden=0"])
    def test_what_cannot_be_built(self, option):
        with pytest.raises(InputError, match=option.split("=")[0]):
            Registry().parse(f"ta-seq2seq-lstm[{option}]")


class TestOutput:
    def test_sums_to_one_with_a_bonus_for_topic_words_alone(self, made):
        model, batch = made
        state = model.start(batch)
        readouts, _ = model.advance(batch.inputs, state)
        actual = model.scores(readouts, state)
        gained = (actual - model.output(readouts))[:, 0].abs() > 1e-12
        for row, words in zip(gained, state.example["numbers"], strict=True):
            assert set(row.nonzero().flatten().tolist()) == set(words.tolist()) - {PAD}
        sums = actual.softmax(-1).sum(-1)
        assert torch.allclose(sums, torch.ones_like(sums))

    def test_without_topic_words_its_parent_is_left(self, ready):
        model, batch = ready("ta-seq2seq-lstm")
        plain, _ = ready("seq2seq-lstm")
        model.topics.numbers.zero_()
        model.topics.of_words.zero_()
        weights = model.state_dict()
        name = "decoder.cells.0.input"
        weights[name] = weights[name][:, : plain.decoder.cells[0].reads]
        plain.load_state_dict({key: weights[key] for key in plain.state_dict()})
        assert torch.allclose(model.logits(batch), plain.logits(batch))

    def test_topics_are_asked_for_with_the_state_before_and_that_of_the_context(self, made):
        model, batch = made
        _, states = model.encoder(
            model.embedding(batch.source), batch.source.ne(PAD), Conditioning()
        )
        state = model.start(batch)
        assert torch.allclose(state.example["message"], states[-1][0])
        words, keys = state.example["words"], state.example["word_keys"]
        seen = state.example["numbers"].ne(PAD)
        there = seen.any(1)
        first = torch.cat([states[-1][0], states[-1][0]], -1)[:, None]
        weights = model.topic_attention.weights(keys[there], first[there], seen[there])
        x = model.response_embedding(batch.inputs[:, :1])
        read = torch.cat([x[there], weights @ words[there]], -1)
        started = [tuple(part[there] for part in layer) for layer in states]
        top, _ = model.decoder(
            read,
            started,
            model.decoder.per_conversation(Conditioning()),
            model.decoder.packed_weights(),
        )
        assert torch.allclose(model.write(x, state)[0][there], top)
        assert there.any()

    def test_response_does_not_decide_the_topic(self, made):
        model, batch = made
        blind = replace(batch, target=batch.target[:, :0], real=batch.real[:0])
        actual = model.start(blind).example["numbers"]
        assert torch.equal(actual, model.start(batch).example["numbers"])


class TestTraining:
    def test_topics_are_fitted_kept_and_told(self, build, eight, asked, tmp_path):
        adapter, run = build("ta-seq2seq-lstm", epochs=1), Run(1, folder=tmp_path)
        adapter.fit(eight, eight, run)
        assert len(adapter.facts()["topics"]) == 4
        saved = tmp_path / "saved"
        saved.mkdir()
        adapter.save(saved)
        loaded = type(adapter).load(saved, adapter.config)
        assert loaded.respond(asked, Decoding(), run) == adapter.respond(asked, Decoding(), run)

    def test_eight_pairs_are_learnt_by_heart(self, ready, learn):
        quiet = {"dropout": 0.0, "context_drop": 0.0}
        model, batch = ready(
            "ta-seq2seq-lstm", embedding=32, hidden=32, precision="float32", **quiet
        )
        assert learn(model, batch, range(200)).total.item() < 0.1
