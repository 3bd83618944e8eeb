"""LIC: its shared layers, its sources and its losses (docs/systems.md)."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from dialbench_adapters.lic import LIC, LICConfig, Source
from dialbench_adapters.transformer import causal_mask

from dialbench.adapter import Run
from dialbench.errors import InputError
from dialbench.neural.model import count_parameters
from dialbench.records import Decoding
from dialbench.systems import Registry
from dialbench.text.vocabulary import BOS, EOS, PAD, SEP, SPECIALS

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
        nll, smooth = sum(words) / len(words), sum(uniform) / len(uniform)
        context, count = self.read_on(model, batch)
        going_on = context / count
        losses = model.loss(batch, 0)
        expected = (1 - smoothing) * nll + smoothing * smooth + weight * going_on
        assert losses.total.item() == pytest.approx(expected)
        assert losses.parts["nll"].item() == pytest.approx(sum(words))

    @staticmethod
    def read_on(model, batch) -> tuple[float, int]:
        """The NLL of the tokens behind the first of each context, and their number."""
        logs = model.output(model.encode(batch)).log_softmax(-1)
        nll = [
            -logs[row, place, EOS if word == SEP else word].item()
            for row, source in enumerate(batch.source.tolist())
            for place, word in enumerate(source[1:])
            if word != PAD
        ]
        return sum(nll), len(nll)

    @torch.no_grad()
    def test_every_token_of_a_context_weighs_alike(self, ready, rows_of):
        """Also of a short context, which shares its batch with short ones alone."""
        model, batch = ready("lic")
        plain, _ = ready("lic[context_weight=0]")
        tokens = self.read_on(model, batch)[1] / 8
        lengths = set()
        for rows in ([0], [1], [6], [2, 7], [0, 1, 3]):
            part = rows_of(batch, torch.tensor(rows))
            added = model.loss(part, 0).objective(10.0, 4.0)
            added = (added - plain.loss(part, 0).objective(10.0, 4.0)).item()
            nll, count = self.read_on(model, part)
            lengths.add(count / len(rows))
            # a half, and 4 examples a batch
            assert added == pytest.approx(0.5 * nll / (4 * tokens))
        assert max(lengths) > 2 * min(lengths)

    @torch.no_grad()
    def test_what_is_told_is_a_mean_over_the_tokens_of_contexts(self, ready, rows_of):
        model, batch = ready("lic")
        nll, count = self.read_on(model, batch)
        for size in (8, 3, 1):
            parts = [rows_of(batch, rows) for rows in torch.arange(8).split(size)]
            told = sum(model.loss(part, 0).parts["context_nll"].item() for part in parts) / 8
            assert told == pytest.approx(nll / count)

    def test_contexts_of_one_word_have_nothing_to_go_on_with(self, ready):
        model, batch = ready("lic")
        short = replace(batch, source=batch.source[:, :1])
        assert model.context_loss(model.encode(short), short).item() == 0.0
        assert model.loss(short, 0).total.isfinite()


class TestCheckpoint:
    """Weights of OpenAI's GPT, saved by the transformers library."""

    @pytest.fixture
    def zero_shot(self, tiny, build, eight):
        adapter = build(f"lic[weights={tiny('openai-gpt')},tune=false]")
        adapter.fit(eight, eight, Run(1))
        return adapter

    def test_without_a_context_the_same_logits(self, tiny, zero_shot):
        """The library is given words times sqrt(n), as LIC reads them."""
        from transformers import OpenAIGPTLMHeadModel

        library = OpenAIGPTLMHeadModel.from_pretrained(tiny("openai-gpt")).double().eval()
        model, shift = zero_shot.model.double().eval(), len(SPECIALS)
        tokens = torch.randint(4, 60, (3, 9), generator=torch.Generator().manual_seed(1))
        with torch.no_grad():
            vectors = library.transformer.tokens_embed(tokens) * 32**0.5
            expected = library(inputs_embeds=vectors).logits
            x = model.embed(tokens + shift)
            actual = model.output(model.run(x, causal_mask(x))[0])[..., shift:]
        texts = [n for n in range(4, 60) if actual[0, 0, n] > -1e20]
        assert len(texts) > 50
        assert torch.allclose(actual[..., texts], expected[..., texts], rtol=0, atol=1e-4)

    def test_a_response_attends_to_itself_and_to_the_context(self, tiny, zero_shot, batch_of):
        """The library's own maps, the mean of both attentions."""
        from transformers import OpenAIGPTLMHeadModel

        library = OpenAIGPTLMHeadModel.from_pretrained(tiny("openai-gpt")).double().eval()
        model = zero_shot.model.double().eval()
        block, layer = library.transformer.h[0], model.layers[0]
        x, y = torch.randn(2, 5, 32).double(), torch.randn(2, 7, 32).double()

        def attend(asking, asked, causal):
            query = block.attn.c_attn(asking).split(32, -1)[0].view(2, 5, 4, 8).transpose(1, 2)
            _, keys, values = block.attn.c_attn(asked).split(32, -1)
            keys, values = (part.view(2, -1, 4, 8).transpose(1, 2) for part in (keys, values))
            scores = query @ keys.transpose(2, 3) / 8**0.5
            if causal:
                seen = torch.ones(5, 5, dtype=torch.bool).tril()
                scores = scores.masked_fill(~seen, -torch.inf)
            mixed = (scores.softmax(-1) @ values).transpose(1, 2).reshape(2, 5, 32)
            return block.attn.c_proj(mixed)

        with torch.no_grad():
            both = (attend(x, x, causal=True) + attend(x, y, causal=False)) / 2
            expected = block.ln_1(x + both)
            expected = block.ln_2(expected + block.mlp(expected))
            seen = torch.ones(2, 1, 1, 7, dtype=torch.bool)
            source = Source(layer.attention.keys_values(y, None), seen)
            actual, _ = layer.attend(x, None, causal_mask(x), [source])
        assert torch.allclose(actual, expected, rtol=0, atol=1e-10)

    def test_specials_are_new(self, tiny, zero_shot):
        vectors = zero_shot.model.embedding.weight[: len(SPECIALS)]
        assert vectors[PAD].abs().max() == 0
        assert 0.01 < vectors[1:].std() < 0.03
        logits = zero_shot.model.output(torch.randn(1, 32).double())
        assert logits[0, [PAD, BOS, SEP]].max() < -1e20 < logits[0, EOS]

    def test_is_tuned_and_survives_saving(self, tiny, build, eight, asked, tmp_path):
        rates = {"tuning_epochs": 6, "tuning_rate": 5e-3, "tuning_warmup": 1}
        adapter = build(f"lic[weights={tiny('openai-gpt')}]", **rates)
        adapter.fit(eight, eight, Run(2, folder=tmp_path))
        losses = [row["train_nll"] for row in adapter.curve()]
        assert losses[-1] < losses[0]
        responses = adapter.respond(asked, Decoding.parse("beam:2"), Run(2))
        (tmp_path / "saved").mkdir()
        adapter.save(tmp_path / "saved")
        loaded = LIC.load(tmp_path / "saved", adapter.config)
        assert loaded.respond(asked, Decoding.parse("beam:2"), Run(2)) == responses
        assert LIC.title(adapter.config) == "LIC"
        assert LIC.title(LICConfig()) == "LIC (small, from scratch)"

    def test_what_does_not_fit(self, tiny, build, eight, tmp_path):
        import json
        import shutil

        with pytest.raises(InputError, match="is a gpt2, no openai-gpt"):
            build(f"lic[weights={tiny('gpt2')}]").fit(eight, eight, Run(1))
        with pytest.raises(InputError, match="has 64 positions, too few"):
            build(f"lic[weights={tiny('openai-gpt')}]", context_tokens=64).fit(eight, eight, Run(1))
        folder = tmp_path / "relu"
        shutil.copytree(tiny("openai-gpt"), folder)
        facts = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(facts | {"afn": "relu"}))
        with pytest.raises(InputError, match=r"another activation than gelu \(relu\)"):
            build(f"lic[weights={folder}]").fit(eight, eight, Run(1))

    def test_reads_the_word_pieces_of_the_released_one(self, tiny, build, eight, asked, tmp_path):
        """Its tokenizer is lower-case byte pairs that end words with </w>, and knows no end."""
        import json
        import shutil

        from transformers import OpenAIGPTTokenizer

        letters = "abcdefghijklmnopqrstuvwxyz.,?'"
        pieces = ["<unk>", *letters, *(f"{letter}</w>" for letter in letters), "it</w>"]
        numbers = {piece: number for number, piece in enumerate(pieces)}
        (tmp_path / "vocab.json").write_text(json.dumps(numbers))
        (tmp_path / "merges.txt").write_text("#version: 0.2\ni t</w>\n")
        folder = tmp_path / "released"
        shutil.copytree(tiny("openai-gpt"), folder)
        for file in (folder / "tokenizer.json", folder / "tokenizer_config.json"):
            file.unlink()
        files = str(tmp_path / "vocab.json"), str(tmp_path / "merges.txt")
        OpenAIGPTTokenizer(*files).save_pretrained(folder)
        adapter = build(f"lic[weights={folder},tune=false]", response_tokens=6)
        adapter.fit(eight, eight, Run(1))
        assert adapter.vocabulary.decode(adapter.vocabulary.read("It opens")) == ["it opens"]
        assert len(adapter.respond(asked, Decoding(), Run(1))) == 8
