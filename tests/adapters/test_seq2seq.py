"""Seq2seq: its size, its encoder and its attention (docs/systems.md)."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from dialbench_adapters.blocks.recurrent import AdditiveAttention, RecurrentEncoder
from dialbench_adapters.seq2seq import Seq2SeqConfig, Seq2SeqModel
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from dialbench.errors import InputError
from dialbench.neural.model import count_parameters
from dialbench.systems import Registry
from dialbench.text.vocabulary import PAD, SEP

pytestmark = pytest.mark.usefixtures("one_thread")


def test_sizes():
    with torch.device("meta"):
        model = Seq2SeqModel(Seq2SeqConfig(), 20_000)
    parts = {name: count_parameters(part)["parameters"] for name, part in model.named_children()}
    assert parts == {
        "embedding": 6_000_000,
        "encoder": 7_225_344,
        "bridge": 524_800,
        "attention": 786_944,
        "decoder": 2_823_168 + 1_575_936,
        "output": 10_260_000,
    }
    assert count_parameters(model)["parameters"] == 29_196_192


@pytest.mark.parametrize("options", ["hidden=0", "recurrent_layers=0", "recurrent_dropout=1.0"])
def test_what_cannot_be_built(options):
    with pytest.raises(InputError, match=options.split("=")[0]):
        Registry().parse(f"seq2seq[{options}]")


class TestEncoder:
    TOKENS = torch.tensor([[5, 6, 7, 8, 9], [5, 6, PAD, PAD, PAD], [9, 8, 7, PAD, PAD]])

    @pytest.fixture
    def embedded(self) -> torch.Tensor:
        random = torch.Generator().manual_seed(3)
        return torch.randn(3, 5, 4, generator=random, dtype=torch.float64)

    @pytest.mark.parametrize("layers", [1, 2, 3])
    def test_equals_a_packed_bidirectional_gru(self, embedded, layers):
        torch.manual_seed(1)
        encoder = RecurrentEncoder(4, 6, layers, 0.0).double()
        known = torch.nn.GRU(4, 6, layers, batch_first=True, bidirectional=True).double()
        for suffix, ours in [("", encoder.ahead), ("_reverse", encoder.back)]:
            for name, value in ours.named_parameters():
                layer, kind = name.split(".")
                theirs = kind.replace("_l0", f"_l{layer}{suffix}")
                known.get_parameter(theirs).data.copy_(value)
        lengths = self.TOKENS.ne(PAD).sum(1)
        packed = pack_padded_sequence(embedded, lengths, batch_first=True, enforce_sorted=False)
        outputs, last = known(packed)
        expected, _ = pad_packed_sequence(outputs, batch_first=True)

        actual, states = encoder(embedded, self.TOKENS)
        assert torch.allclose(actual, expected)
        both = last.view(layers, 2, 3, 6)
        assert torch.allclose(states, torch.cat([both[:, 0], both[:, 1]], -1))

    def test_padding_changes_no_state(self, embedded):
        torch.manual_seed(1)
        encoder = RecurrentEncoder(4, 6, 2, 0.0).double()
        outputs, last = encoder(embedded, self.TOKENS)
        alone, last_alone = encoder(embedded[1:2, :2], self.TOKENS[1:2, :2])
        assert torch.allclose(outputs[1, :2], alone[0])
        assert torch.allclose(last[:, 1], last_alone[:, 0])
        assert not outputs[1, 2:].any()

    def test_dropout_lies_between_the_layers(self, embedded):
        torch.manual_seed(1)
        one = RecurrentEncoder(4, 6, 1, 0.5).double()
        two = RecurrentEncoder(4, 6, 2, 0.5).double()
        assert torch.equal(one(embedded, self.TOKENS)[0], one(embedded, self.TOKENS)[0])
        assert not torch.equal(two(embedded, self.TOKENS)[0], two(embedded, self.TOKENS)[0])


def test_signals_keep_their_size_through_the_layers():
    torch.manual_seed(1)
    gru = RecurrentEncoder(64, 64, 1, 0.0).ahead[0]
    for gate in gru.weight_hh_l0.detach().chunk(3):
        assert torch.allclose(gate @ gate.T, torch.eye(64), atol=1e-5)
    for gate in gru.weight_ih_l0.detach().chunk(3):
        x = torch.randn(1_000, 64)
        assert (x @ gate.T).std().item() == pytest.approx(1.0, rel=0.05)
    assert not gru.bias_hh_l0.any()
    assert not gru.bias_ih_l0.any()


class TestAttention:
    @pytest.fixture
    def attention(self) -> AdditiveAttention:
        torch.manual_seed(1)
        return AdditiveAttention(6, 5, 4).double()

    def test_weights_sum_to_one_and_are_zero_on_pad(self, attention):
        seen = torch.tensor([[1, 1, 1, 1], [1, 0, 0, 0], [1, 1, 0, 0]]).bool()
        keys = attention.key(torch.randn(3, 4, 6, dtype=torch.float64))
        weights = attention.weights(keys, torch.randn(3, 2, 5, dtype=torch.float64), seen)
        assert weights.shape == (3, 2, 4)
        assert torch.allclose(weights.sum(-1), torch.ones(3, 2, dtype=torch.float64))
        assert not weights.masked_select(~seen[:, None].expand(3, 2, 4)).any()
        assert weights.masked_select(seen[:, None].expand(3, 2, 4)).min() > 0

    def test_equals_the_formula(self, attention):
        memory = torch.randn(1, 3, 6, dtype=torch.float64)
        query = torch.randn(1, 1, 5, dtype=torch.float64)
        seen = torch.ones(1, 3, dtype=torch.bool)
        actual = attention(memory, attention.key(memory), query, seen)

        w_h, w_s, v = (
            m.weight.detach().numpy() for m in (attention.key, attention.query, attention.score)
        )
        h, s = memory[0].numpy(), query[0, 0].numpy()
        energy = [(v @ np.tanh(w_h @ h_j + w_s @ s)).item() for h_j in h]
        shares = np.exp(energy) / np.exp(energy).sum()
        np.testing.assert_allclose(actual[0, 0].detach().numpy(), shares @ h)


class TestModel:
    def test_each_layer_starts_from_its_encoder_layer(self, ready):
        model, batch = ready("seq2seq")
        _, last = model.encoder(model.embedding(batch.source), batch.source)
        state = model.start(batch)
        for layer in range(2):
            expected = torch.tanh(last[layer] @ model.bridge.weight.T + model.bridge.bias)
            assert torch.allclose(state.row[layer], expected)

    def test_context_vector_enters_the_decoder_not_the_output(self, ready):
        model, batch = ready("seq2seq")
        assert model.decoder.cells[0].input_size == 16 + 2 * 12
        assert model.output.in_features == 12
        # the query is the top state before the step
        state = model.start(batch)
        example = state.example
        query = state.row[-1][:, None]
        mixed = model.attention(example["memory"], example["keys"], query, example["seen"])
        x = torch.cat([model.embedding(batch.inputs[:, 0]), mixed[:, 0]], -1)
        low = model.decoder.cells[0](x, state.row[0])
        top = model.decoder.cells[1](low, state.row[1])
        assert torch.allclose(model.logits(batch)[:, 0], model.output(top))

    def test_turns_do_not_run_together(self, ready):
        model, batch = ready("seq2seq")
        row = batch.source[1:2]
        assert SEP in row
        other = torch.where(row == SEP, 5, row)
        assert not torch.allclose(*(model.encoder(model.embedding(r), r)[1] for r in (row, other)))
