"""VHCR: its size, its two latent variables and utterance drop (docs/systems.md)."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from dialbench_adapters.blocks.hierarchical import Conversation
from dialbench_adapters.blocks.latent import noise
from dialbench_adapters.vhcr import VHCRConfig, VHCRModel
from torch.distributions import Normal, kl_divergence

from dialbench.errors import InputError
from dialbench.neural.model import count_parameters
from dialbench.systems import Registry
from dialbench.text.vocabulary import PAD

pytestmark = pytest.mark.usefixtures("one_thread")
SIZES = {"latent": 6, "latent_hidden": 10}


@pytest.fixture
def made(ready):
    return ready("vhcr[kl_annealing=200]", **SIZES)


class TestSizes:
    def test_paper(self):
        with torch.device("meta"):
            model = VHCRModel(VHCRConfig(), 20_000)
        parts = {name: count_parameters(m)["parameters"] for name, m in model.named_children()}
        assert parts["inference"] == 4_724_736
        assert parts["conversation_posterior"] == 1_095_256
        assert parts["context_bridge"] == 308_224
        assert model.unk_utterance.shape == (1_024,)
        assert model.context.gru.layers[0].input_size == 1_324
        assert count_parameters(model)["parameters"] == 40_477_352

    @pytest.mark.parametrize("options", ["utterance_drop=1", "utterance_drop=-0.1", "latent=0"])
    def test_what_cannot_be_built(self, options):
        with pytest.raises(InputError, match=options.split("=")[0]):
            Registry().parse(f"vhcr[{options}]")

    def test_defaults_are_the_papers(self):
        config = VHCRConfig()
        assert (config.latent, config.latent_hidden) == (300, 512)
        assert (config.kl_annealing, config.utterance_drop, config.clip) == (25_000, 0.25, 1.0)
        assert not hasattr(config, "word_drop")


class TestLoss:
    def test_is_the_elbo_with_the_annealed_weight(self, made):
        model, batch = made
        parts = {name: value.item() for name, value in model.loss(batch, 0).parts.items()}
        assert parts.keys() == {"nll", "kl_conversation", "kl_sentence"}
        assert min(parts.values()) > 0.01
        assert set(model.criterion) == parts.keys()
        divergence = parts["kl_conversation"] + parts["kl_sentence"]
        tokens = int(batch.target.ne(PAD).sum())
        for step, weight in [(0, 0.0), (100, 0.5), (200, 1.0), (900, 1.0)]:
            total = model.loss(batch, step).total.item()
            assert total == pytest.approx((parts["nll"] + weight * divergence) / tokens)

    def test_by_hand(self, made):
        model, batch = made
        first, second = noise(batch, 12).chunk(2, -1)
        turns, response = model.conversation(batch), model.response(batch)
        nll = kl_conversation = kl_sentence = 0.0
        for row in range(8):
            said = turns.vectors[row][turns.real[row]]
            whole = torch.cat([said, response[row : row + 1]])
            outputs, _ = model.inference.read(
                whole[None], torch.ones(1, len(whole), dtype=torch.bool)
            )
            summary = torch.cat([outputs[0, -1, :12], outputs[0, 0, 12:]])[None]
            q = model.conversation_posterior(summary)
            spread = (q.log_variance / 2).exp()
            standard = Normal(torch.zeros_like(spread), torch.ones_like(spread))
            kl_conversation += kl_divergence(Normal(q.mean, spread), standard).sum().item()
            conv = q.mean + spread * first[row]
            given = torch.cat([said, conv.expand(len(said), -1)], -1)[None]
            start = list(torch.tanh(model.context_bridge(conv)).chunk(2, -1))
            top, _ = model.context.gru(given, start)
            c = top[:, -1]
            posterior = model.posterior(torch.cat([c, conv, response[row : row + 1]], -1))
            prior = model.prior(torch.cat([c, conv], -1))
            kl_sentence += posterior.divergence(prior).item()
            z = posterior.sample(second[row])
            state = model.begin(torch.cat([c, conv, z], -1))
            logs = model.output(model.hidden(state, batch.inputs[row : row + 1])).log_softmax(-1)
            for place, word in enumerate(batch.target[row].tolist()):
                nll -= logs[0, place, word].item() if word != PAD else 0.0
        parts = model.loss(batch, 0).parts
        assert parts["nll"].item() == pytest.approx(nll)
        assert parts["kl_conversation"].item() == pytest.approx(kl_conversation)
        assert parts["kl_sentence"].item() == pytest.approx(kl_sentence)

    def test_the_divergences_can_be_kept_from_the_encoders(self, ready):
        sizes = {**SIZES, "recurrent_dropout": 0.0, "kl_annealing": 1}
        actual = {}
        for taught in (True, False):
            model, batch = ready("vhcr", latent_to_encoders=taught, **sizes)
            names, weights = zip(*model.named_parameters(), strict=True)
            totals = [model.loss(batch, step).total for step in (0, 1)]
            words, both = (
                torch.autograd.grad(total, weights, materialize_grads=True) for total in totals
            )
            moved = [n for n, a, b in zip(names, words, both, strict=True) if not a.allclose(b)]
            actual[taught] = {name.partition(".")[0] for name in moved}
        networks = {"prior", "posterior", "inference", "conversation_posterior"}
        assert actual[False] == networks
        assert actual[True] > networks | {"encoder", "context"}

    def test_the_divergence_of_z_still_teaches_what_z_conv_is_drawn_from(self, ready):
        model, batch = ready("vhcr", latent_to_encoders=False, **SIZES)
        conv = torch.randn(8, SIZES["latent"], dtype=torch.float64, requires_grad=True)
        summary = model.summary(model.conversation(batch), conv)
        of_sentence = noise(batch, 2 * SIZES["latent"]).chunk(2, -1)[1]
        _, of_z = model.begin_with_posterior(summary, model.response(batch), of_sentence)
        (gradient,) = torch.autograd.grad(of_z.sum(), conv)
        assert gradient.abs().amax(-1).min() > 1e-6

    def test_validation_is_the_elbo_with_weight_one(self, check_elbo):
        check_elbo("vhcr[kl_annealing=100000]", "kl_conversation", "kl_sentence", **SIZES)


class TestUtteranceDrop:
    @staticmethod
    def record(model: VHCRModel) -> tuple[list[Conversation], list[torch.Tensor]]:
        """What the context GRU and the inference GRU are given from now on."""
        to_context: list[Conversation] = []
        to_inference: list[torch.Tensor] = []
        model.context.register_forward_hook(lambda _, given, __: to_context.append(given[0]))
        read = model.inference.read
        model.inference.read = lambda x, real: to_inference.append(x) or read(x, real)
        return to_context, to_inference

    def test_leaves_the_inference_untouched(self, ready):
        model, batch = ready("vhcr", utterance_drop=0.99, recurrent_dropout=0.0, **SIZES)
        vectors = model.conversation(batch)
        whole = vectors.append(model.response(batch)).vectors
        to_context, to_inference = self.record(model)
        torch.manual_seed(1)
        model.train().loss(batch, 0)
        assert torch.equal(to_inference[0], whole)
        seen = to_context[0].vectors[:, :, : 2 * 12]
        dropped = seen.eq(model.unk_utterance).all(-1)
        assert dropped.sum() >= 12
        assert not dropped[~vectors.real].any()
        assert torch.equal(seen[~dropped], vectors.vectors[~dropped])

    def test_happens_in_training_only(self, ready):
        model, batch = ready("vhcr", utterance_drop=0.99, **SIZES)
        to_context, _ = self.record(model)
        model.loss(batch, 0)
        model.start(batch)
        for given in to_context:
            assert torch.equal(given.vectors[:, :, :24], model.conversation(batch).vectors)

    def test_at_rate_zero_the_vector_in_its_stead_serves_nothing(self, ready):
        model, batch = ready("vhcr", utterance_drop=0.0, **SIZES)
        model.train().loss(batch, 0).total.backward()
        grad = model.unk_utterance.grad
        assert grad is None or not grad.any()


class TestAnswering:
    def test_reads_no_response(self, made):
        model, batch = made
        blind = replace(batch, target=batch.target[:, :0], real=batch.real[:0])
        both = [torch.cat(model.start(asked).row, -1) for asked in (batch, blind)]
        assert torch.equal(*both)

    def test_z_conv_is_drawn_given_the_context_then_z_from_its_prior(self, made):
        model, batch = made
        first, second = noise(batch, 12).chunk(2, -1)
        turns = model.conversation(batch)
        conv = model.infer(turns).sample(first)
        c = model.summary(turns, conv)
        z = model.prior(c).sample(second)
        expected = torch.tanh(model.bridge(torch.cat([c, z], -1)))
        assert torch.allclose(torch.cat(model.start(batch).row, -1), expected)

    def test_inference_depends_on_what_it_reads(self, made):
        model, batch = made
        turns = model.conversation(batch)
        with_response = model.infer(turns.append(model.response(batch)))
        assert (with_response.mean - model.infer(turns).mean).abs().amax(-1).min() > 1e-6

    @pytest.mark.parametrize("where", ["context input", "context start", "prior", "decoder start"])
    def test_z_conv_reaches(self, made, where):
        model, batch = made
        turns = model.conversation(batch)

        def found(size: float) -> torch.Tensor:
            conv = torch.full((8, 6), size, dtype=torch.float64)
            if where == "context input":
                return model.context(turns.with_features(conv))
            c = model.summary(turns, conv)
            if where == "context start":
                model.context.gru.layers[0].weight_ih_l0.data[:, 24:] = 0.0
                return model.summary(turns, conv)[:, :12]
            if where == "prior":
                c = torch.cat([model.summary(turns, conv * 0)[:, :12], conv], -1)
                return model.prior(c).mean
            return torch.cat(model.begin(c, torch.zeros_like(conv)).row, -1)

        assert (found(1.0) - found(-1.0)).abs().amax(-1).min() > 1e-5

    @pytest.mark.parametrize(("where", "places"), [("first", 5), ("all", 6)])
    def test_z_conv_enters_as_quietly_as_told(self, ready, where, places):
        model, batch = ready(f"vhcr[decoder_context={where}]", latent_spread=1.0, **SIZES)
        quiet, _ = ready(f"vhcr[decoder_context={where}]", latent_spread=0.01, **SIZES)
        assert len(model.of_conversation()) == places
        for less, usual in zip(quiet.of_conversation(), model.of_conversation(), strict=True):
            assert torch.allclose(less, usual * 0.01)

        def moved(model: VHCRModel) -> torch.Tensor:
            turns = model.conversation(batch)
            loud = [model.summary(turns, torch.full((8, 6), x).double()) for x in (1.0, -1.0)]
            return (loud[0] - loud[1])[:, :12].abs().amax()

        assert moved(quiet) < 0.05 * moved(model)

    def test_z_conv_changes_logits(self, made):
        model, batch = made
        before = model.logits(batch)
        model.conversation_posterior.layers[-1].bias.data[:6] += 1.0
        assert (model.logits(batch) - before).abs().amax((1, 2)).min() > 1e-4
