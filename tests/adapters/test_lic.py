"""LIC: its shared layers, its sources and its losses (docs/systems.md)."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from dialbench_adapters.lic import LIC, LICConfig, Source
from dialbench_adapters.transformer import causal_mask

from dialbench.errors import InputError
from dialbench.neural.model import count_parameters
from dialbench.systems import Registry
from dialbench.text.vocabulary import EOS, PAD, SEP

pytestmark = pytest.mark.usefixtures("one_thread")


class TestSize:
    def test_of_the_released_one(self):
        sizes = {"layers": 12, "heads": 12, "embedding": 768, "context_tokens": 511}
        with torch.device("meta"):
            model = LIC(LICConfig(**sizes)).build_model(40_478)
        n = 768
        expected = 12 * (12 * n * n + 13 * n) + n * (40_478 + 512)
        assert count_parameters(model)["parameters"] == expected
        assert 116e6 < expected < 118e6

    @pytest.mark.parametrize("options", ["context_weight=-1", "heads=3", "label_smoothing=1"])
    def test_what_cannot_be_built(self, options):
        with pytest.raises(InputError, match=options.split("=")[0]):
            Registry().parse(f"lic[{options}]")

    def test_the_output_is_tied(self, ready):
        model, _ = ready("lic")
        hidden = torch.randn(3, 16, dtype=torch.float64)
        expected = hidden @ model.embedding.weight.T
        assert torch.allclose(model.output(hidden)[:, 5:], expected[:, 5:])
        assert "output.weight" not in dict(model.named_parameters())


class TestSources:
    @pytest.mark.parametrize("norm", ["post", "pre"])
    def test_without_one_it_is_a_language_model(self, ready, norm):
        """Every layer is then the plain layer of a decoder-only stack."""
        model, batch = ready(f"lic[norm={norm}]")
        x = model.embed(batch.inputs)
        actual, _ = model.run(x, causal_mask(x))
        for layer in model.layers:
            x, _ = layer(x, None, causal_mask(x))
        assert torch.allclose(actual, model.end(x), rtol=0, atol=1e-12)

    def test_the_mean_is_over_itself_and_every_source(self, ready):
        model, batch = ready("lic")
        layer, x = model.layers[0], model.embed(batch.inputs)
        y = model.embed(batch.source)
        source = Source(layer.attention.keys_values(y, None), batch.source.ne(PAD)[:, None, None])
        own = layer.attention(x, layer.attention.keys_values(x, None), causal_mask(x), None)
        other = layer.attention(x, source.keys_values, source.seen, None)
        for count in (0, 1, 3):
            expected = layer.around_attention.norm(x + (own + count * other) / (1 + count))
            expected = layer.around_feed_forward.norm(expected + layer.feed_forward(expected, None))
            actual, _ = layer.attend(x, None, causal_mask(x), [source] * count)
            assert torch.allclose(actual, expected)

    def test_a_source_twice_as_long_by_repetition_changes_no_attention(self, ready):
        model, batch = ready("lic")
        layer, x, y = model.layers[0], model.embed(batch.inputs), model.embed(batch.source)
        seen = batch.source.ne(PAD)[:, None, None]
        once = layer.attention(x, layer.attention.keys_values(y, None), seen, None)
        twice = layer.attention(
            x,
            layer.attention.keys_values(torch.cat([y, y], 1), None),
            seen.repeat(1, 1, 1, 2),
            None,
        )
        assert torch.allclose(once, twice)

    def test_contexts_are_read_from_left_to_right(self, ready):
        model, batch = ready("lic")
        before = model.encode(batch)
        changed = batch.source.clone()
        changed[:, 3] = torch.where(changed[:, 3] == 9, 10, 9)
        after = model.encode(replace(batch, source=changed))
        assert torch.allclose(before[:, :3], after[:, :3], rtol=0, atol=1e-12)
        assert (before - after)[:, 3].abs().amax(-1).min() > 1e-6


class TestLoss:
    @pytest.mark.parametrize(("smoothing", "weight"), [(0.0, 0.0), (0.0, 0.5), (0.1, 0.5)])
    def test_parts_add(self, ready, smoothing, weight):
        model, batch = ready(f"lic[label_smoothing={smoothing},context_weight={weight}]")
        logs = model.logits(batch).log_softmax(-1)
        usable = [w for w in range(logs.shape[-1]) if w not in (0, 2, 4)]
        words, uniform = [], []
        for row, target in enumerate(batch.target.tolist()):
            for place, word in enumerate(target):
                if word != PAD:
                    words.append(-logs[row, place, word].item())
                    uniform.append(-logs[row, place, usable].mean().item())
        read = model.output(model.encode(batch)).log_softmax(-1)
        context = []
        for row, source in enumerate(batch.source.tolist()):
            for place, word in enumerate(source[1:]):
                if word != PAD:
                    context.append(-read[row, place, EOS if word == SEP else word].item())
        nll, smooth = sum(words) / len(words), sum(uniform) / len(uniform)
        going_on = sum(context) / len(context)
        losses = model.loss(batch, 0)
        expected = (1 - smoothing) * nll + smoothing * smooth + weight * going_on
        assert losses.total.item() == pytest.approx(expected)
        assert losses.parts["nll"].item() == pytest.approx(sum(words))

    def test_contexts_of_one_word_have_nothing_to_go_on_with(self, ready):
        model, batch = ready("lic")
        short = replace(batch, source=batch.source[:, :1])
        assert model.context_loss(model.encode(short), short).item() == 0.0
        assert model.loss(short, 0).total.isfinite()
