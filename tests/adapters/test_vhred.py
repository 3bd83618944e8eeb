"""VHRED: its size, its latent variable, its loss and word drop (docs/systems.md)."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from dialbench_adapters.blocks.embedding import drop_words
from dialbench_adapters.blocks.latent import noise
from dialbench_adapters.hred import HREDModel
from dialbench_adapters.vhred import VHREDConfig, VHREDModel

from dialbench.adapter import Progress, Run
from dialbench.errors import InputError
from dialbench.neural.decoding import decode
from dialbench.neural.model import count_parameters
from dialbench.neural.training import evaluate
from dialbench.records import Decoding
from dialbench.systems import Registry
from dialbench.text.vocabulary import BOS, EOS, PAD, UNK

pytestmark = pytest.mark.usefixtures("one_thread")
SIZES = {"latent": 6, "latent_hidden": 10}


class Listener(Progress):
    def __init__(self) -> None:
        self.warnings: list[str] = []

    def warn(self, text: str) -> None:
        self.warnings.append(text)


class TestSizes:
    def test_paper(self):
        with torch.device("meta"):
            model = VHREDModel(VHREDConfig(), 20_000)
        assert count_parameters(model)["parameters"] == 33_272_912
        assert count_parameters(model.prior)["parameters"] == 833_112
        assert count_parameters(model.posterior)["parameters"] == 1_357_400
        assert count_parameters(model.bridge)["parameters"] == 525_312 + 300 * 1_024

    @pytest.mark.parametrize(
        "options",
        [
            "latent=0",
            "latent_hidden=0",
            "latent_spread=0",
            "kl_annealing=-1",
            "kl_power=0",
            "word_drop=1",
            "word_drop=-1",
        ],
    )
    def test_what_cannot_be_built(self, options):
        with pytest.raises(InputError, match=options.split("=")[0]):
            Registry().parse(f"vhred[{options}]")

    def test_defaults_are_the_papers(self):
        config = VHREDConfig()
        assert (config.latent, config.latent_hidden) == (300, 512)
        assert (config.kl_annealing, config.word_drop, config.clip) == (25_000, 0.25, 1.0)
        assert config.kl_power == 1  # a straight line


class TestLoss:
    @pytest.fixture
    def made(self, ready):
        return ready("vhred[kl_annealing=200]", **SIZES)

    def test_is_the_elbo_with_the_annealed_weight(self, made):
        model, batch = made
        parts = model.loss(batch, 0).parts
        nll, kl = parts["nll"].item(), parts["kl"].item()
        tokens = int(batch.target.ne(PAD).sum())
        assert kl > 0.01
        for step, weight in [(0, 0.0), (100, 0.5), (200, 1.0), (900, 1.0)]:
            losses = model.loss(batch, step)
            assert losses.total.item() == pytest.approx((nll + weight * kl) / tokens)
            assert (losses.tokens, losses.examples) == (tokens, 8)

    def test_by_hand_from_the_posterior(self, made):
        model, batch = made
        tokens = [[word for word in row if word not in (PAD, EOS)] for row in batch.target.tolist()]
        read = torch.cat([model.utterances(torch.tensor([words])) for words in tokens])
        context = model.context(model.conversation(batch))
        q, p = model.posterior(context, read), model.prior(context)
        z = q.mean + (q.log_variance / 2).exp() * noise(batch, 6)
        hidden = model.hidden(model.begin(context, z), batch.inputs)
        logs = model.output(hidden).log_softmax(-1).gather(-1, batch.target[:, :, None])[:, :, 0]
        losses = model.loss(batch, 0)
        assert losses.parts["nll"].item() == pytest.approx(-logs[batch.target.ne(PAD)].sum().item())
        assert losses.parts["kl"].item() == pytest.approx(q.divergence(p).sum().item())

    @pytest.mark.parametrize("system", ["vhred", "vhcr"])
    def test_the_weight_rises_by_the_power_of_the_share_that_is_over(self, ready, system):
        model, batch = ready(f"{system}[kl_annealing=100,kl_power=3]", **SIZES)
        model.eval()
        totals = {step: model.loss(batch, step) for step in (0, 50, 100)}
        start, middle, end = (losses.total.item() for losses in totals.values())
        assert (middle - start) / (end - start) == pytest.approx(1 / 8)

    def test_validation_is_the_elbo_with_weight_one(self, check_elbo):
        check_elbo("vhred[kl_annealing=100000]", "kl", **SIZES)

    def test_validation_depends_on_no_batch(self, build, eight, tmp_path):
        adapter = build("vhred", epochs=1, **SIZES)
        run = Run(1, folder=tmp_path)
        adapter.fit(eight, eight, run)
        data = adapter._encode(eight)
        actual = [
            evaluate(adapter.model, data, replace(adapter.config, batch_size=size), run, "valid")
            for size in (1, 3, 8)
        ]
        assert actual[0] == pytest.approx(actual[1], abs=1e-12)
        assert actual[0] == pytest.approx(actual[2], abs=1e-12)

    def test_gradient_of_the_divergence_reaches_both_networks_and_the_encoder(self, ready):
        model, batch = ready("vhred", seed=None, **SIZES)
        context = model.context(model.conversation(batch))
        drawn = noise(batch, 6)
        _, divergence = model.begin_with_posterior(context, model.response(batch), drawn)
        divergence.sum().backward()
        for part in (model.prior, model.posterior, model.encoder, model.context):
            assert all(p.grad.any() for p in part.parameters())
        assert model.bridge.weight.grad is None

    @pytest.mark.parametrize("taught", [True, False])
    def test_encoders_can_be_kept_from_what_the_latent_teaches(self, ready, taught):
        model, batch = ready("vhred", latent_to_encoders=taught, **SIZES)
        context = model.context(model.conversation(batch)).detach().requires_grad_()
        response = model.response(batch).detach().requires_grad_()
        state, kl = model.begin_with_posterior(context, response, noise(batch, 6))
        networks = (*model.prior.parameters(), *model.posterior.parameters())

        def taught_by(part: torch.Tensor, *learners: torch.Tensor) -> set[bool]:
            grads = torch.autograd.grad(part.sum(), learners, retain_graph=True, allow_unused=True)
            return {grad is not None and bool(grad.any()) for grad in grads}

        assert taught_by(kl, *networks) == {True}
        assert taught_by(kl, context) == taught_by(kl, response) == {taught}
        first = torch.cat(state.row)
        assert taught_by(first, response) == {taught}
        assert taught_by(first, context) == {True}

    def test_what_teaches_whom_changes_no_loss(self, ready):
        (model, batch), (other, _) = (
            ready("vhred", latent_to_encoders=taught, **SIZES) for taught in (True, False)
        )
        assert torch.equal(model.loss(batch, 9).total, other.loss(batch, 9).total)


class TestLatentVariable:
    @pytest.mark.parametrize("spread", [0.26, 1.0])
    def test_begins_with_the_spread_told(self, ready, spread):
        model, batch = ready("vhred", latent_spread=spread, hidden=64, latent=200, latent_hidden=64)
        context = model.context(model.conversation(batch))
        for actual in (model.prior(context), model.posterior(context, model.response(batch))):
            assert (actual.log_variance / 2).mean().exp().item() == pytest.approx(spread, rel=0.1)

    def test_changes_logits(self, ready):
        model, batch = ready("vhred", **SIZES)
        other = replace(batch, seed=6)
        assert (model.logits(batch) - model.logits(other)).abs().amax((1, 2)).min() > 1e-4
        assert torch.equal(model.logits(batch), model.logits(replace(batch)))

    def test_without_it_hred_is_left(self, ready):
        model, batch = ready("vhred", **SIZES)
        plain, _ = ready("hred")
        weights = model.state_dict()
        plain.load_state_dict(
            {
                name: weights[name][:, :12] if name == "bridge.weight" else weights[name]
                for name in plain.state_dict()
            }
        )
        model.bridge.weight.data[:, 12:] = 0.0
        assert isinstance(model, HREDModel)
        assert torch.allclose(model.logits(batch), plain.logits(batch))

    def test_answering_draws_from_the_prior_and_reads_no_response(self, ready):
        model, batch = ready("vhred", **SIZES)
        blind = replace(batch, target=batch.target[:, :0], real=batch.real[:0])
        context = model.context(model.conversation(batch))
        p = model.prior(context)
        z = p.mean + (p.log_variance / 2).exp() * noise(batch, 6)
        expected = torch.tanh(model.bridge(torch.cat([context, z], -1)))
        for asked in (batch, blind):
            assert torch.allclose(torch.cat(model.start(asked).row, -1), expected)

    def test_seeds_give_other_words(self, ready):
        model, batch = ready("vhred", **SIZES)
        model.bridge.weight.data *= 20.0  # so that z decides words before anything is learnt
        responses = [decode(model, replace(batch, seed=seed), Decoding(), 8) for seed in (1, 2, 1)]
        assert responses[0] == responses[2]
        assert responses[0] != responses[1]


class TestWordDrop:
    def test_rate(self):
        torch.manual_seed(1)
        inputs = torch.randint(5, 50, (500, 41))
        inputs[:, 0] = BOS
        inputs[:, 30:] = PAD
        dropped = drop_words(inputs, 0.25)
        words = inputs > UNK
        words[:, 0] = False
        hidden = dropped.eq(UNK)
        n = int(words.sum())
        assert not hidden[~words].any()
        assert torch.equal(dropped[~hidden], inputs[~hidden])
        assert abs(hidden.sum().item() / n - 0.25) < 4 * (0.25 * 0.75 / n) ** 0.5
        # token by token: rows and columns differ as much as independent draws do
        assert hidden[:, 1:30].double().mean(0).std() < 2 * (0.25 * 0.75 / 500) ** 0.5
        assert hidden[:, 1:30].double().mean(1).std() < 2 * (0.25 * 0.75 / 29) ** 0.5

    def test_happens_in_training_only(self, ready):
        def loss(rate: float, training: bool) -> float:
            model, batch = ready("vhred", word_drop=rate, recurrent_dropout=0.0, **SIZES)
            torch.manual_seed(1)
            return model.train(training).loss(batch, 0).parts["nll"].item()

        assert loss(0.0, True) == loss(0.0, False) == loss(0.9, False)
        assert loss(0.9, True) != loss(0.0, True)


class TestTraining:
    def test_collapse_is_told_also_when_resumed(self, build, eight, tmp_path):
        def heard() -> list[str]:
            adapter, listener = build("vhred", kl_annealing=0, epochs=20, **SIZES), Listener()
            adapter.fit(eight, eight, Run(1, folder=tmp_path, progress=listener))
            return listener.warnings

        first = heard()
        assert len(first) == 1
        assert first[0].endswith("below 0.1: the latent variable carries nothing")
        assert heard() == first

    def test_annealing_that_never_ended_is_told(self, build, eight, tmp_path):
        listener = Listener()
        adapter = build("vhred[kl_annealing=1000]", epochs=1, **SIZES)
        adapter.fit(eight, eight, Run(1, folder=tmp_path, progress=listener))
        assert any("before kl_annealing=1000 ended" in text for text in listener.warnings)

    @pytest.mark.parametrize(("power", "weight"), [(1, "0.50"), (2, "0.25")])
    def test_the_weight_reached_is_told_as_it_rose(self, build, eight, tmp_path, power, weight):
        listener = Listener()
        # Eight examples in batches of four are two updates an epoch.
        adapter = build(f"vhred[kl_annealing=4,kl_power={power}]", epochs=1, **SIZES)
        adapter.fit(eight, eight, Run(1, folder=tmp_path, progress=listener))
        assert any(f"the KL counted {weight} of" in text for text in listener.warnings)

    def test_is_a_function_of_the_seed(self, build, eight, tmp_path):
        def curve(folder: str, seed: int):
            adapter = build("vhred", epochs=2, **SIZES)
            adapter.fit(eight, eight, Run(seed, folder=tmp_path / folder))
            return adapter.curve()

        assert curve("a", 1) == curve("b", 1)
        assert curve("a", 1) != curve("c", 2)
