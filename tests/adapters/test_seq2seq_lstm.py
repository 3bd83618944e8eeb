"""Seq2Seq of LSTMs: its size, its cells, both directions and its attention (AdaND, 4.3)."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from dialbench_adapters.blocks.lstm import (
    BidirectionalLSTM,
    Conditioning,
    ForwardLSTM,
    GeneralAttention,
    LSTMCell,
    NormedLSTMCell,
)
from dialbench_adapters.seq2seq_lstm import LSTMConfig, LSTMModel
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from dialbench.adapter import Run
from dialbench.errors import InputError
from dialbench.neural.model import count_parameters
from dialbench.systems import Registry
from dialbench.text.vocabulary import PAD

pytestmark = pytest.mark.usefixtures("one_thread")
LENGTHS = torch.tensor([5, 2, 3])
REAL = torch.arange(5) < LENGTHS[:, None]


@pytest.fixture
def embedded() -> torch.Tensor:
    random = torch.Generator().manual_seed(3)
    return torch.randn(3, 5, 4, generator=random, dtype=torch.float64)


def shaken(module: nn.Module) -> nn.Module:
    """In float64, no gain one and no bias zero any more, so that a lost one shows."""
    torch.manual_seed(7)
    module = module.double()
    for weights in module.parameters():
        weights.data += 0.3 * torch.randn_like(weights)
    return module


class TestConfig:
    def test_sizes(self):
        with torch.device("meta"):
            model = LSTMModel(LSTMConfig(), 20_000)
        parts = {name: count_parameters(m)["parameters"] for name, m in model.named_children()}
        assert parts == {
            "embedding": 6_000_000,
            "encoder": 3_609_600,
            "response_embedding": 6_000_000,
            "decoder": 1_444_800,
            "attention": 180_000 + 270_000,
            "output": 6_020_000,
            "dropout": 0,
        }
        assert count_parameters(model)["parameters"] == 23_524_400

    def test_defaults_are_the_papers_and_the_codes(self):
        c = LSTMConfig()
        assert (c.hidden, c.embedding, c.recurrent_layers, c.vocabulary) == (300, 300, 2, 20_000)
        assert (c.learning_rate, c.batch_size, c.dropout, c.context_tokens) == (1e-3, 128, 0.1, 50)
        assert (c.clip, c.context_drop, c.weight_decay) == (0.1, 0.1, 3e-7)

    @pytest.mark.parametrize(
        "option",
        ["hidden=0", "recurrent_layers=0", "dropout=1.0", "context_drop=1.0", "weight_decay=-1.0"],
    )
    def test_what_cannot_be_built(self, option):
        with pytest.raises(InputError, match=option.split("=")[0]):
            Registry().parse(f"seq2seq-lstm[{option}]")


def stack(layers: int, directions: int) -> list[LSTMCell]:
    return [LSTMCell(directions, 4 if n == 0 else 6 * directions, 6) for n in range(layers)]


def library(cells: list[LSTMCell], directions: int) -> nn.LSTM:
    """torch's LSTM with the weights of these layers."""
    known = nn.LSTM(
        4, 6, len(cells), batch_first=True, bidirectional=directions == 2, dtype=torch.float64
    )
    for layer, cell in enumerate(cells):
        for way in range(directions):
            suffix = f"l{layer}{'_reverse' * way}"
            for name, ours in (
                ("weight_ih", cell.input[way].T),
                ("weight_hh", cell.recurrent[way].T),
                ("bias_ih", cell.input_bias[way]),
                ("bias_hh", cell.recurrent_bias[way]),
            ):
                i, f, o, g = ours.chunk(4)
                known.get_parameter(f"{name}_{suffix}").data.copy_(torch.cat([i, f, g, o]))
    return known


class TestBothWays:
    @pytest.mark.parametrize("layers", [1, 2, 3])
    def test_equals_a_packed_lstm_with_directions_summed(self, embedded, layers):
        encoder = shaken(BidirectionalLSTM(stack(layers, 2), 0.0))
        known = library(list(encoder.cells), 2)
        packed = pack_padded_sequence(embedded, LENGTHS, batch_first=True, enforce_sorted=False)
        outputs, (h, c) = known(packed)
        expected, _ = pad_packed_sequence(outputs, batch_first=True)
        actual, states = encoder(embedded, REAL, Conditioning())
        assert torch.allclose(actual, expected)
        for ours, theirs in zip(zip(*states, strict=True), (h, c), strict=True):
            summed = theirs.view(layers, 2, 3, 6).sum(1)
            assert torch.allclose(torch.stack(ours), summed)

    @pytest.mark.parametrize("cell", [LSTMCell, lambda *sizes: NormedLSTMCell(*sizes, 0.1)])
    def test_padding_changes_no_state(self, embedded, cell):
        encoder = shaken(BidirectionalLSTM([cell(2, 4, 6), cell(2, 12, 6)], 0.1)).eval()
        outputs, states = encoder(embedded, REAL, Conditioning())
        alone, states_alone = encoder(embedded[1:2, :2], REAL[1:2, :2], Conditioning())
        assert torch.allclose(outputs[1, :2], alone[0])
        assert not outputs[1, 2:].any()
        for whole, single in zip(states, states_alone, strict=True):
            assert all(torch.allclose(w[1], s[0]) for w, s in zip(whole, single, strict=True))

    def test_dropout_lies_between_the_layers(self, embedded):
        for layers, same in ((1, True), (2, False)):
            encoder = shaken(BidirectionalLSTM(stack(layers, 2), 0.5))
            once, again = (encoder(embedded, REAL, Conditioning())[0] for _ in range(2))
            assert torch.equal(once, again) is same


class TestForwards:
    @pytest.mark.parametrize("layers", [1, 2])
    def test_equals_the_lstm_whole_and_step_by_step(self, embedded, layers):
        decoder = shaken(ForwardLSTM(stack(layers, 1), 0.0))
        known = library(list(decoder.cells), 1)
        first = [tuple(torch.randn(2, 3, 6, dtype=torch.float64)) for _ in range(layers)]
        h, c = (torch.stack(part) for part in zip(*first, strict=True))
        expected, (last_h, last_c) = known(embedded, (h, c))
        same = decoder.per_conversation(Conditioning()), decoder.packed_weights()
        tops, states = decoder(embedded, first, *same)
        assert torch.allclose(tops, expected)
        assert torch.allclose(torch.stack([s[0] for s in states]), last_h)
        assert torch.allclose(torch.stack([s[1] for s in states]), last_c)
        states = first
        for t in range(5):
            top, states = decoder(embedded[:, t : t + 1], states, *same)
            assert torch.allclose(top[:, 0], expected[:, t])


class TestNormedLSTM:
    def test_equals_the_formula(self, embedded):
        cell = shaken(NormedLSTMCell(2, 4, 6, 0.1)).eval()
        both = torch.stack([embedded, embedded.flip(1)])
        actual = [cell.zeros(embedded.transpose(0, 1))]
        parts = cell.input_terms(both.transpose(1, 2), ())[0]
        for t in range(5):
            actual.append(cell((parts[:, t],), actual[-1], (), (), None))

        def norm(x: torch.Tensor, layer: nn.Module, way: int) -> torch.Tensor:
            spread = (x.var(-1, correction=0, keepdim=True) + 1e-5).sqrt()
            return (x - x.mean(-1, keepdim=True)) / spread * layer.gain[way] + layer.bias[way]

        for way in range(2):
            h = c = torch.zeros(3, 6, dtype=torch.float64)
            for t in range(5):
                gates = norm(both[way, :, t] @ cell.input[way], cell.input_norm, way)
                gates = gates + norm(h @ cell.recurrent[way], cell.recurrent_norm, way)
                i, f, o, g = gates.chunk(4, -1)
                c = norm(f.sigmoid() * c + i.sigmoid() * g.tanh(), cell.cell_norm, way)
                h = o.sigmoid() * c.tanh()
                assert torch.allclose(actual[t + 1][0][way], h)
                assert torch.allclose(actual[t + 1][1][way], c)

    def test_dropout_falls_on_the_candidate_alone(self, embedded):
        cell = shaken(NormedLSTMCell(1, 4, 6, 0.4))
        masks = cell.masks(torch.zeros(1, 200, 30, 4, dtype=torch.float64))
        assert masks.shape == (1, 200, 30, 6)
        zero = masks.eq(0.0)
        assert abs(zero.double().mean().item() - 0.4) < 4 * (0.4 * 0.6 / masks.numel()) ** 0.5
        assert torch.allclose(masks[~zero], torch.tensor(1 / 0.6, dtype=torch.float64))
        assert cell.eval().masks(masks) is None
        h = c = torch.randn(1, 3, 6, dtype=torch.float64)
        gates = (torch.randn(1, 3, 24, dtype=torch.float64),)
        none = torch.zeros(1, 3, 6, dtype=torch.float64)
        _, dropped = cell(gates, (h, c), (), (), none)
        forget = (gates[0] + cell.recurrent_norm(h @ cell.recurrent)).chunk(4, -1)[1].sigmoid()
        assert torch.allclose(dropped, cell.cell_norm(forget * c))


class TestAttention:
    def test_weights_sum_to_one_and_are_zero_on_pad(self):
        attention = shaken(GeneralAttention(6, 4))
        s = torch.randn(3, 2, 4, dtype=torch.float64)
        weights = attention.weights(s, torch.randn(3, 5, 6, dtype=torch.float64), REAL)
        assert torch.allclose(weights.sum(-1), torch.ones(3, 2, dtype=torch.float64))
        assert not weights.masked_select(~REAL[:, None].expand(3, 2, 5)).any()
        assert weights.masked_select(REAL[:, None].expand(3, 2, 5)).min() > 0

    def test_equals_the_formula(self):
        attention = shaken(GeneralAttention(6, 4))
        s, memory = (torch.randn(1, n, k, dtype=torch.float64) for n, k in ((1, 4), (3, 6)))
        scores = torch.stack([s[0, 0] @ attention.query.weight.T @ h for h in memory[0]])
        mixed = (scores.softmax(0)[:, None] * memory[0]).sum(0)
        expected = torch.tanh(attention.combine.weight @ torch.cat([s[0, 0], mixed]))
        actual = attention(s, memory, torch.ones(1, 3, dtype=torch.bool))
        assert torch.allclose(actual[0, 0], expected)


class TestModel:
    def test_decoder_starts_from_summed_directions_and_feeds_no_attention_back(self, ready):
        model, batch = ready("seq2seq-lstm")
        source = model.embedding(batch.source)
        memory, states = model.encoder(source, batch.source.ne(PAD), Conditioning())
        same = model.decoder.per_conversation(Conditioning()), model.decoder.packed_weights()
        tops, _ = model.decoder(model.response_embedding(batch.inputs), states, *same)
        actual = model.attention(tops, memory, batch.source.ne(PAD))
        assert torch.allclose(model.logits(batch), model.output(actual))

    def test_tables_are_separate(self, ready):
        model, batch = ready("seq2seq-lstm")
        before = model.logits(batch)
        word = batch.target[0, 0]
        model.response_embedding.weight.data[word] += 1.0
        assert not torch.equal(model.logits(batch)[0, 1], before[0, 1])
        assert torch.equal(model.logits(batch)[0, 0], before[0, 0])

    def test_context_words_drop_in_training_only(self, ready):
        def loss(rate: float, training: bool) -> float:
            model, batch = ready("seq2seq-lstm", context_drop=rate, dropout=0.0)
            torch.manual_seed(1)
            return model.train(training).loss(batch, 0).total.item()

        assert loss(0.0, True) == loss(0.0, False) == loss(0.9, False)
        assert loss(0.9, True) != loss(0.0, True)


class TestTraining:
    def test_eight_pairs_are_learnt_by_heart(self, ready, learn):
        sizes = {"embedding": 32, "hidden": 32}
        quiet = {"dropout": 0.0, "context_drop": 0.0, "precision": "float32"}
        model, batch = ready("seq2seq-lstm", **sizes, **quiet)
        assert learn(model, batch, range(150)).total.item() < 0.1

    def test_optimiser_is_the_codes(self, build, eight, tmp_path):
        adapter = build("seq2seq-lstm[weight_decay=0.5]", epochs=1)
        adapter.fit(eight, eight, Run(1, folder=tmp_path))
        trainer = adapter.trainer(
            adapter.model, adapter._encode(eight), adapter._encode(eight), Run(1, folder=tmp_path)
        )
        (group,) = trainer.optimiser.param_groups
        assert (group["amsgrad"], group["weight_decay"], group["lr"]) == (True, 0.5, 5e-3)
        assert type(trainer.optimiser) is torch.optim.Adam  # in the gradient, not beside it

    def test_killed_and_resumed_ends_in_the_same_weights(self, build, eight, tmp_path):
        def train(folder: str, *epochs: int):
            for last in epochs:
                adapter = build("seq2seq-lstm", epochs=last)
                adapter.fit(eight, eight, Run(1, folder=tmp_path / folder))
            return adapter.model.state_dict()

        whole, halves = train("whole", 2), train("halves", 1, 2)
        assert all(torch.equal(whole[name], halves[name]) for name in whole)


def test_beams_share_the_memory_of_their_context(ready):
    model, batch = ready("seq2seq-lstm")
    state = model.start(batch)
    wide = replace(state).widen(3)
    tokens = torch.full((8,), 9)
    once, _ = model.step(tokens, state)
    thrice, _ = model.step(tokens.repeat_interleave(3), wide)
    assert torch.allclose(thrice, once.repeat_interleave(3, 0))
