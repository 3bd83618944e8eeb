"""SVT: its size, its latent variables, its bags of words and its start (docs/systems.md)."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from dialbench_adapters.blocks.latent import Gaussian
from dialbench_adapters.svt import SVTConfig, SVTModel
from dialbench_adapters.transformer import TransformerConfig, TransformerModel

from dialbench.adapter import Run
from dialbench.errors import InputError
from dialbench.neural.decoding import decode
from dialbench.neural.model import count_for_responses, count_parameters, word_loss
from dialbench.records import Decoding
from dialbench.systems import Registry
from dialbench.text.vocabulary import BOS, EOS, PAD

pytestmark = pytest.mark.usefixtures("one_thread")
SCRATCH = "svt[start=scratch]"


def with_later_words(batch, place: int):
    """The batch with another word at `place` and no change before."""
    target = batch.target.clone()
    target[:, place] = torch.where(target[:, place] == 7, 8, 7)
    return replace(batch, target=target, real=target.flatten().ne(PAD).nonzero()[:, 0])


def inferred(model, batch) -> Gaussian:
    """The posterior under the true response."""
    memory, seen = model.encode(batch.source, None)
    keys_values = model.first.cross_attention.keys_values(memory, None)
    real = batch.target.ne(PAD)[:, None, None]
    return model.posterior(model._embed(batch.inputs), model.first, keys_values, (real, seen))


class TestSizes:
    def test_paper(self):
        with torch.device("meta"):
            model = SVTModel(SVTConfig(), 20_000)
        assert count_parameters(model)["parameters"] == 43_815_512
        assert count_parameters(model.bag)["parameters"] == 12_020_000
        assert count_parameters(model.posterior.attention)["parameters"] == 153_600
        assert count_parameters(model.first.prior)["parameters"] == 724_568
        branch = 153_600 + 724_568 + 2 * 600
        assert count_for_responses(model) == 43_815_512 - 12_020_000 - branch

    def test_layers_after_the_first_are_the_transformers(self):
        with torch.device("meta"):
            model = SVTModel(SVTConfig(), 50)
            plain = TransformerModel(TransformerConfig(), 50)
        assert len(model.decoder) == 6
        for ours, theirs in zip(list(model.decoder)[1:], list(plain.decoder)[1:], strict=True):
            assert type(ours) is type(theirs)
            assert count_parameters(ours) == count_parameters(theirs)

    @pytest.mark.parametrize("options", ["latent=0", "latent_hidden=0", "kappa=-1"])
    def test_what_cannot_be_built(self, options):
        with pytest.raises(InputError, match=options.split("=")[0]):
            Registry().parse(f"svt[{options}]")

    def test_defaults_are_the_papers_and_the_codes(self):
        config = SVTConfig()
        assert (config.latent, config.latent_hidden) == (300, 512)
        assert (config.kappa, config.kl_annealing) == (0.6, 12_000)


class TestLatentVariables:
    def test_posterior_sees_later_words_and_prior_does_not(self, ready):
        model, batch = ready(SCRATCH)
        changed = with_later_words(batch, 2)  # which is the input at position 3
        longer = batch.target[:, 3].ne(PAD)
        means = [inferred(model, given).mean[longer, :3] for given in (batch, changed)]
        assert (means[0] - means[1]).abs().amax(-1).min() > 1e-6
        logits = [model.logits(given)[:, :3] for given in (batch, changed)]
        assert torch.equal(*logits)

    def test_words_do_not_know_later_ones_but_through_z(self, ready, monkeypatch):
        model, batch = ready(SCRATCH)
        shape = (8, batch.target.shape[1], 6)
        random = torch.Generator().manual_seed(1)
        fixed = torch.randn(*shape, generator=random, dtype=torch.float64)
        same = Gaussian(fixed, torch.full(shape, -50.0, dtype=torch.float64))
        monkeypatch.setattr(model.posterior, "forward", lambda *_: same)
        actual = []
        monkeypatch.setattr(
            "dialbench_adapters.svt.word_loss",
            lambda hidden, output, given: actual.append(hidden) or word_loss(hidden, output, given),
        )
        for given in (batch, with_later_words(batch, 2)):
            model.loss(given, 0)
        assert torch.allclose(actual[0][:, :3], actual[1][:, :3], rtol=0, atol=1e-12)
        assert (actual[0][:, 3] - actual[1][:, 3]).abs().amax(-1).min() > 1e-6

    def test_posterior_by_hand(self, ready):
        # post-norm: LN(x + attention over all real positions), LN(. + attention to the context)
        model, batch = ready(SCRATCH)
        posterior, layer = model.posterior, model.first
        actual = inferred(model, batch)
        for row in range(8):
            length = int(batch.target[row].ne(PAD).sum())
            source = batch.source[row][batch.source[row] != PAD][None]
            x = model._embed(batch.inputs[row : row + 1, :length])
            own = posterior.attention.keys_values(x, None)
            attended = posterior.attention(x, own, None, None)
            x = posterior.around_attention.norm(x + attended)
            memory, _ = model.encode(source, None)
            context = layer.cross_attention.keys_values(memory, None)
            attended = layer.cross_attention(x, context, None, None)
            expected = posterior.network(posterior.around_cross.norm(x + attended))
            assert torch.allclose(actual.mean[row, :length], expected.mean[0])

    def test_answers_come_from_the_prior_even_where_the_response_is_given(self, ready):
        model, batch = ready(SCRATCH)
        logits, loss = model.logits(batch), model.loss(batch, 0).total
        for weights in model.posterior.parameters():
            weights.data += 0.1
        assert torch.equal(model.logits(batch), logits)
        assert model.loss(batch, 0).total != loss

    def test_prior_of_a_step_is_that_of_its_state(self, ready):
        model, batch = ready(SCRATCH)
        layer = model.first
        drawn = model.draws(batch)
        assert drawn.shape == (8, 11, 6)
        memory, seen = model.encode(batch.source, None)
        keys_values = layer.cross_attention.keys_values(memory, None)
        x = model._embed(batch.inputs)
        causal = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()
        read, _ = layer.read(x, None, keys_values, (causal, seen), None)
        p = layer.prior(read)
        z = p.mean + (p.log_variance / 2).exp() * drawn[:, : x.shape[1]]
        fed = layer.feed_forward(torch.cat([read, z], -1), None)
        expected = layer.norm(layer.around_feed_forward.norm(read + fed))
        actual, _ = layer(x, None, keys_values, (causal, seen), drawn)
        assert torch.allclose(actual, expected)

    def test_seeds_give_other_words(self, ready):
        model, batch = ready(SCRATCH)
        model.first.prior.layers[-1].bias.data[6:] = 4.0  # so that z decides words from the start
        responses = [decode(model, replace(batch, seed=seed), Decoding(), 8) for seed in (1, 2, 1)]
        assert responses[0] == responses[2]
        assert responses[0] != responses[1]

    def test_positions_have_noise_of_their_own(self, ready):
        model, batch = ready(SCRATCH)
        numbers = model.draws(batch).flatten().tolist()
        assert len(set(numbers)) == len(numbers)
        backwards = replace(batch, ids=batch.ids[::-1])
        assert torch.equal(model.draws(backwards).flip(0), model.draws(batch))


class TestLoss:
    def test_of_a_batch_is_that_of_its_examples_one_by_one(self, ready):
        # alone, an example has no PAD at all
        model, batch = ready(SCRATCH, kl_annealing=100)
        parts = {"nll": 0.0, "kl": 0.0, "bow": 0.0}
        for row in range(8):
            target = batch.target[row][batch.target[row] != PAD][None]
            source = batch.source[row][batch.source[row] != PAD][None]
            real = torch.arange(target.shape[1])
            one = replace(batch, ids=(batch.ids[row],), source=source, target=target, real=real)
            for name, value in model.loss(one, 0).parts.items():
                parts[name] += value.item()
        losses = model.loss(batch, 30)
        assert {name: value.item() for name, value in losses.parts.items()} == pytest.approx(parts)
        tokens = int(batch.target.ne(PAD).sum())
        weight = 0.6 * (math.tanh(6 * 0.3 - 3) + 1)
        total = (parts["nll"] + weight * parts["kl"] + parts["bow"]) / tokens
        assert losses.total.item() == pytest.approx(total)
        assert (losses.tokens, losses.examples) == (tokens, 8)

    def test_z_is_a_sample_of_the_posterior(self, ready, monkeypatch):
        model, batch = ready(SCRATCH)
        drawn = model.draws(batch)[:, : batch.target.shape[1]]
        wide = Gaussian(torch.ones_like(drawn), torch.full_like(drawn, math.log(4.0)))
        sharp = Gaussian(1 + 2 * drawn, torch.full_like(drawn, -80.0))
        actual = []
        for posterior in (wide, sharp):
            monkeypatch.setattr(model.posterior, "forward", lambda *_, given=posterior: given)
            actual.append(model.loss(batch, 0).parts)
        for name in ("nll", "bow"):
            assert actual[0][name].item() == pytest.approx(actual[1][name].item())

    def test_bags_hold_the_words_from_their_position_on(self, ready):
        model, batch = ready(SCRATCH)
        size = batch.target.shape[1]
        states = torch.randn(8, size, 22, dtype=torch.float64)
        logs = model.bag(states).log_softmax(-1)
        expected = []
        for row, words in enumerate(batch.target.tolist()):
            tokens = [word for word in words if word != PAD]
            for t in range(len(tokens)):
                ahead = [-logs[row, t, word].item() for word in tokens[t:]]
                expected.append(sum(ahead) / len(ahead))
            assert expected[-1] == pytest.approx(-logs[row, len(tokens) - 1, EOS].item())
        assert model.bags(states, batch).tolist() == pytest.approx(expected)

    def test_eight_pairs_are_learnt_by_heart(self, ready, learn):
        sizes = {"embedding": 32, "attention": 32, "feed_forward": 64}
        model, batch = ready(SCRATCH, **sizes, precision="float32", kappa=0.0)
        losses = learn(model, batch, range(80))
        assert losses.parts["nll"].item() / losses.tokens < 0.1

    def test_validation_is_the_elbo_with_weight_one(self, check_elbo):
        check_elbo(SCRATCH, "kl")


class TestStart:
    def test_without_z_the_post_norm_model_is_the_transformer(self, ready, monkeypatch):
        plain, batch = ready("transformer")
        for layer in plain.decoder:  # as training leaves it
            torch.nn.init.normal_(layer.around_feed_forward.norm.weight, 1.0, 0.3)
            torch.nn.init.normal_(layer.around_feed_forward.norm.bias, 0.0, 0.3)
        model, _ = ready(SCRATCH)
        model.start_from(plain.state_dict())
        model.first.prior.layers[-1].weight.data.zero_()
        model.first.prior.layers[-1].bias.data.zero_()
        zeros = torch.zeros(8, 11, 6, dtype=torch.float64)
        monkeypatch.setattr(model, "draws", lambda _: zeros)
        # up to the 1e-5 that a second norm puts under the root again
        assert torch.allclose(model.logits(batch), plain.logits(batch), rtol=1e-4, atol=1e-4)

    def test_without_z_the_pre_norm_model_is_the_transformer(self, ready):
        plain, batch = ready("transformer", norm="pre")
        model, _ = ready(SCRATCH, norm="pre")
        model.start_from(plain.state_dict())
        wide = model.first.feed_forward.first.weight.detach()
        wide[:, 16:] = 0.0  # of z
        assert torch.allclose(model.logits(batch), plain.logits(batch), rtol=0, atol=1e-12)

    @pytest.mark.parametrize("norm", ["post", "pre"])
    def test_takes_all_weights_and_copies_the_attention(self, ready, norm):
        plain, _ = ready("transformer", norm=norm)
        model, _ = ready(SCRATCH, norm=norm)
        before = {name: value.clone() for name, value in model.state_dict().items()}
        model.start_from(plain.state_dict())
        after, given = model.state_dict(), plain.state_dict()
        wide = "decoder.0.feed_forward.first.weight"
        moved = "decoder.0.around_feed_forward.norm."
        for name, value in given.items():
            if name == wide:
                assert torch.equal(after[name][:, :16], value)
                assert torch.equal(after[name][:, 16:], before[name][:, 16:])
            elif name.startswith(moved) and norm == "post":
                assert torch.equal(after[name.replace(moved, "decoder.0.norm.")], value)
                assert torch.equal(after[name], before[name])
            else:
                assert torch.equal(after[name], value)
        for name in ("attention.query.weight", "around_cross.norm.bias"):
            assert torch.equal(after[f"posterior.{name}"], given[f"decoder.0.{name}"])
        assert torch.equal(after["bag.weight"], before["bag.weight"])

    def test_trains_and_answers_from_a_base(self, build, eight, asked, tmp_path):
        base = build("transformer", epochs=1)
        base.fit(eight, eight, Run(1, folder=tmp_path / "base"))
        adapter = build("svt", epochs=1)
        adapter.fit(eight, eight, Run(1, folder=tmp_path / "svt", base=base))
        adapter.save(tmp_path)
        again = type(adapter).load(tmp_path, adapter.config)
        assert again.respond(asked, Decoding(), Run(1)) == adapter.respond(
            asked, Decoding(), Run(1)
        )
        assert {"nll", "kl_per_example", "bow_per_example"} <= {
            name.removeprefix("valid_") for name in adapter.curve()[0]
        }


def test_both_systems_start_from_one_training():
    cvae, svt = Registry().parse("cvae,svt")
    assert cvae.base({}) == svt.base({})


def test_decoding_starts_with_bos(ready):
    model, batch = ready(SCRATCH)
    logits, _ = model.step(torch.full((8,), BOS), model.start(batch))
    assert torch.allclose(logits, model.logits(batch)[:, 0])
