"""Transformer: its sizes, its attention and its layers (docs/systems.md)."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from dialbench_adapters.blocks.attention import Attention, Residual
from dialbench_adapters.blocks.embedding import Positions, WordEmbedding
from dialbench_adapters.transformer import TransformerConfig, TransformerModel
from torch import nn

from dialbench.errors import InputError
from dialbench.neural.model import count_parameters
from dialbench.systems import Registry

pytestmark = pytest.mark.usefixtures("one_thread")


def counted(**options) -> int:
    with torch.device("meta"):
        model = TransformerModel(TransformerConfig(**options), 20_000)
    return count_parameters(model)["parameters"]


class TestSizes:
    def test_paper(self):
        assert counted() == 29_576_576

    def test_pre_norm_has_two_norms_more(self):
        assert counted(norm="pre") == 29_576_576 + 1_200

    def test_size_of_attention_by_head(self):
        # three times as much again in each of 18 attentions of 4 maps 300 x 128
        assert counted(d_scope="per_head") == 29_576_576 + 3 * 18 * 4 * 300 * 128

    @pytest.mark.parametrize(("attention", "size"), [(64, 22_802_784), (256, 25_567_584)])
    def test_of_the_rl_transformer_paper(self, attention, size):
        assert counted(layers=4, attention=attention) == size

    def test_parts(self):
        with torch.device("meta"):
            model = TransformerModel(TransformerConfig(), 20_000)
        layer = model.decoder[0]
        assert count_parameters(layer.attention)["parameters"] == 153_600
        assert count_parameters(layer.feed_forward)["parameters"] == 1_231_148
        assert count_parameters(model.encoder[5])["parameters"] == 1_385_948
        assert count_parameters(layer)["parameters"] == 1_540_148

    @pytest.mark.parametrize(
        "options",
        ["heads=3", "layers=0", "embedding=0", "feed_forward=-1", "dropout=1", "dropout=-0.1"],
    )
    def test_what_cannot_be_built(self, options):
        name = options.split("=")[0]
        with pytest.raises(InputError, match=name):
            Registry().parse(f"transformer[{options}]")


def attention_by_hand(layer: Attention, x, y, seen) -> np.ndarray:
    """(T, n) and (S, n), head after head."""
    maps = (layer.query, layer.key, layer.value, layer.output)
    query, key, value, output = (m.weight.detach().numpy().T for m in maps)
    size = query.shape[1] // layer.heads
    heads = []
    for head in range(layer.heads):
        part = slice(head * size, (head + 1) * size)
        q, k, v = x @ query[:, part], y @ key[:, part], y @ value[:, part]
        rows = np.zeros((len(x), size))
        for t in range(len(x)):
            places = [s for s in range(len(y)) if seen[t][s]]
            if not places:
                continue
            scores = np.array([q[t] @ k[s] / math.sqrt(size) for s in places])
            shares = np.exp(scores) / np.exp(scores).sum()
            rows[t] = sum(a * v[s] for a, s in zip(shares, places, strict=True))
        heads.append(rows)
    return np.concatenate(heads, 1) @ output


class TestAttention:
    # A rate so small that nothing is dropped, but the path of training is taken.
    @pytest.fixture(params=["eval", "train", "train without dropout"])
    def layer(self, request) -> Attention:
        torch.manual_seed(1)
        rate = 0.0 if "without" in request.param else 1e-12
        return Attention(10, 6, 3, rate).double().train(request.param != "eval")

    @pytest.fixture
    def sides(self) -> tuple[torch.Tensor, torch.Tensor]:
        random = torch.Generator().manual_seed(2)
        made = [torch.randn(2, n, 10, generator=random, dtype=torch.float64) for n in (4, 5)]
        return made[0], made[1]

    @pytest.mark.parametrize(
        "mask",
        [
            torch.ones(2, 1, 4, 5, dtype=torch.bool),
            torch.tensor([[1, 1, 1, 0, 0], [1, 0, 0, 0, 0]]).bool()[:, None, None],
            torch.tensor([[1, 1, 0, 0, 0], [0, 0, 0, 0, 0]]).bool()[:, None, None],
            torch.ones(4, 5, dtype=torch.bool).tril(),
            torch.ones(4, 5, dtype=torch.bool).tril(-1),
        ],
        ids=["all", "padding", "nothing seen", "causal", "first row sees nothing"],
    )
    def test_equals_the_formula(self, layer, sides, mask):
        x, y = sides
        actual = layer(x, layer.keys_values(y, None), mask, None)
        seen = mask.expand(2, 1, 4, 5)[:, 0].tolist()
        for row in range(2):
            expected = attention_by_hand(layer, x[row].numpy(), y[row].numpy(), seen[row])
            np.testing.assert_allclose(actual[row].detach().numpy(), expected, atol=1e-12)

    def test_a_row_that_sees_nothing_is_zero_and_has_a_gradient(self, layer, sides):
        x, y = (side.requires_grad_() for side in sides)
        mask = torch.tensor([[True] * 5, [False] * 5])[:, None, None]
        actual = layer(x, layer.keys_values(y, None), mask, None)
        assert not actual[1].any()
        actual.sum().backward()
        assert all(p.grad.isfinite().all() for p in layer.parameters())
        assert not y.grad[1].any()
        assert y.grad[0].any()

    def test_without_mask(self, layer, sides):
        x, y = sides
        keys_values = layer.keys_values(y, None)
        everything = torch.ones(4, 5, dtype=torch.bool)
        free, masked = (layer(x, keys_values, mask, None) for mask in (None, everything))
        assert torch.allclose(free, masked)

    def test_dropout_falls_on_the_weights_in_training_only(self, sides):
        x, y = sides
        torch.manual_seed(1)
        layer = Attention(10, 6, 3, 0.5).double()
        keys_values = layer.keys_values(y, None)
        assert not torch.equal(*(layer(x, keys_values, None, None) for _ in range(2)))
        layer.eval()
        assert torch.equal(*(layer(x, keys_values, None, None) for _ in range(2)))


class TestResidual:
    def test_post_norm_normalises_the_sum(self):
        x = torch.randn(2, 3, 8)
        actual = Residual(8, 0.0, "post")(x, torch.sin)
        expected = nn.functional.layer_norm(x + x.sin(), (8,))
        assert torch.allclose(actual, expected)

    def test_pre_norm_normalises_what_goes_in(self):
        x = torch.randn(2, 3, 8)
        actual = Residual(8, 0.0, "pre")(x, torch.sin)
        assert torch.allclose(actual, x + nn.functional.layer_norm(x, (8,)).sin())

    @pytest.mark.parametrize(("norm", "classes"), [("post", nn.Identity), ("pre", nn.LayerNorm)])
    def test_only_pre_norm_ends_in_a_norm(self, ready, norm, classes):
        model, _ = ready(f"transformer[norm={norm}]")
        assert isinstance(model.encoder_norm, classes)
        assert isinstance(model.decoder_norm, classes)


class TestEmbedding:
    def test_positions(self):
        table = Positions(6, 50)(torch.zeros(1, 50, 6), 0)[0]
        for place in (0, 1, 17, 49):
            for i in range(3):
                angle = place / 10_000 ** (i / 2)
                assert table[place, i].item() == pytest.approx(math.sin(angle), abs=1e-5)
                assert table[place, 3 + i].item() == pytest.approx(math.cos(angle), abs=1e-5)

    def test_positions_go_on_where_decoding_is(self):
        positions = Positions(5, 30)
        whole = positions(torch.zeros(1, 30, 5))
        assert torch.equal(positions(torch.zeros(1, 1, 5), 12)[0, 0], whole[0, 12])

    def test_words(self):
        torch.manual_seed(1)
        table = WordEmbedding(5_000, 20, 0.1).weight
        assert not table[0].any()
        assert table[1:].std().item() == pytest.approx(0.1, rel=0.02)
        assert abs(table[1:].mean().item()) < 0.002

    def test_words_and_positions_have_unit_variance_together(self):
        torch.manual_seed(1)
        model = TransformerModel(TransformerConfig(layers=1, dropout=0.0), 5_000)
        tokens = torch.arange(5, 4_997).view(32, 156)
        assert model._embed(tokens).square().mean().item() == pytest.approx(1.0, rel=0.02)

    def test_scale(self, ready):
        plain, batch = ready("transformer")
        scaled, _ = ready("transformer[scale_embeddings=true]")
        tokens = batch.source
        words = plain.embedding(tokens)
        assert torch.allclose(scaled._embed(tokens) - plain._embed(tokens), words * 3.0)
