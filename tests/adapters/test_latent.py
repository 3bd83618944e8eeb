"""Gaussian latent variables: divergence, noise, annealing, warnings (docs/systems.md)."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from dialbench_adapters.blocks.latent import (
    Gaussian,
    GaussianNetwork,
    add_bag_of_words,
    annealing_weight,
    bag_nll,
    elbo,
    latent_warnings,
    noise,
    tanh_weight,
)
from torch.distributions import Normal, kl_divergence

from dialbench.neural.model import Losses
from dialbench.neural.training import History

pytestmark = pytest.mark.usefixtures("one_thread")


def gaussian(seed: int, size: int = 5) -> Gaussian:
    random = torch.Generator().manual_seed(seed)
    mean, log_variance = torch.randn(2, 3, size, generator=random, dtype=torch.float64)
    return Gaussian(mean, log_variance)


def known(g: Gaussian) -> Normal:
    return Normal(g.mean, (g.log_variance / 2).exp())


class TestGaussian:
    def test_equal_ones_do_not_diverge(self):
        assert gaussian(1).divergence(gaussian(1)).tolist() == [0.0] * 3

    def test_divergence_by_hand(self):
        # one dimension, N(1, 4) from N(0, 1): (4 + 1 - 1 - ln 4) / 2
        q = Gaussian(torch.ones(1, 1), torch.full((1, 1), math.log(4.0)))
        standard = Gaussian.standard(q)
        assert q.divergence(standard).item() == pytest.approx((4 - math.log(4)) / 2)
        assert standard.divergence(q).item() == pytest.approx((0.25 + 0.25 - 1 + math.log(4)) / 2)

    def test_divergence_equals_that_of_torch(self):
        q, p = gaussian(1), gaussian(2)
        assert torch.allclose(q.divergence(p), kl_divergence(known(q), known(p)).sum(-1))

    def test_divergence_equals_monte_carlo(self):
        q, p = gaussian(1, 3), gaussian(2, 3)
        random = torch.Generator().manual_seed(3)
        drawn = torch.randn(400_000, 1, 3, generator=random, dtype=torch.float64)
        z = q.sample(drawn)
        ratios = (known(q).log_prob(z) - known(p).log_prob(z)).sum(-1)  # (draws, 3)
        errors = ratios.std(0) / len(ratios) ** 0.5
        assert ((ratios.mean(0) - q.divergence(p)).abs() < 4 * errors).all()

    def test_samples_have_mean_and_spread(self):
        q = Gaussian(torch.tensor([[2.0]]), torch.tensor([[math.log(9.0)]]))
        assert q.sample(torch.tensor([[-1.0]])).item() == pytest.approx(-1.0)


class TestNetwork:
    @pytest.fixture
    def network(self) -> GaussianNetwork:
        torch.manual_seed(1)
        return GaussianNetwork(5, 7, 4).double()

    def test_three_layers_with_tanh_between(self, network):
        x = torch.randn(6, 5, dtype=torch.float64)
        first, second, third = (m for m in network.layers if isinstance(m, torch.nn.Linear))
        low = torch.tanh(x @ first.weight.T + first.bias)
        high = torch.tanh(low @ second.weight.T + second.bias)
        out = high @ third.weight.T + third.bias
        actual = network(x[:, :2], x[:, 2:])
        assert torch.allclose(actual.mean, out[:, :4])
        assert torch.allclose(actual.log_variance, out[:, 4:])
        assert (actual.mean < 0).any()
        assert (actual.log_variance < 0).any()

    @pytest.mark.parametrize("spread", [0.26, 1.0])
    def test_of_states_prior_and_posterior_begin_about_as_far_apart_as_samples_lie(self, spread):
        torch.manual_seed(1)
        prior, posterior = (GaussianNetwork.of_states(64, 64, 32, spread) for _ in range(2))
        states = torch.randn(256, 64).tanh()
        p, q = prior(states), posterior(states)
        assert (0.5 * p.log_variance).exp().mean().item() == pytest.approx(spread, rel=0.05)
        assert 0.1 < q.divergence(p).mean().item() / 32 < 1.5  # nats a dimension

    @pytest.mark.parametrize("sign", [-1.0, 1.0])
    def test_log_variance_is_clamped(self, network, sign):
        network.layers[-1].bias.data.fill_(sign * 100.0)
        actual = network(torch.zeros(1, 5, dtype=torch.float64))
        assert actual.log_variance.tolist() == [[sign * 10.0] * 4]
        assert (sign * actual.mean).min() > 90.0


class TestNoise:
    def test_belongs_to_seed_purpose_and_example(self, ready):
        _, batch = ready("vhred")
        whole = noise(batch, 6)
        assert whole.shape == (8, 6)
        assert torch.equal(noise(replace(batch, ids=batch.ids[::-1]), 6).flip(0), whole)
        others = [replace(batch, seed=6), replace(batch, purpose="valid")]
        assert not any(torch.isclose(noise(other, 6), whole).any() for other in others)

    def test_of_training_comes_from_the_global_generator(self, ready):
        _, batch = ready("vhred", seed=None)
        torch.manual_seed(4)
        first = noise(batch, 6)
        assert not torch.isclose(noise(batch, 6), first).any()
        torch.manual_seed(4)
        assert torch.equal(noise(batch, 6), first)


def test_annealing():
    assert [annealing_weight(step, 200) for step in (0, 50, 100, 200, 900)] == [0, 0.25, 0.5, 1, 1]
    assert annealing_weight(0, 0) == 1


def test_annealing_along_a_power():
    actual = [annealing_weight(step, 200, 4.0) for step in (0, 50, 100, 200, 900)]
    assert actual == [0, 1 / 256, 1 / 16, 1, 1]
    assert annealing_weight(0, 0, 4.0) == 1


def test_annealing_along_a_tanh():
    assert tanh_weight(0, 200) == pytest.approx(0.00495, abs=1e-5)  # tanh(-3) + 1
    assert tanh_weight(50, 200) == pytest.approx(1 + math.tanh(-1.5))
    assert [tanh_weight(step, 200) for step in (100, 150, 200, 900)] == [1] * 4
    assert tanh_weight(0, 0) == 1


class TestBag:
    def test_by_hand(self):
        # one bag in which the words 1, 2 and 3 have the shares 1/8, 2/8 and 4/8
        logits = torch.tensor([[0.0, 0.0, math.log(2.0), math.log(4.0)]], dtype=torch.float64)
        actual = bag_nll(logits, torch.tensor([[3, 1, 3, 0, 0]]))
        assert actual[0].tolist() == pytest.approx([math.log(2), math.log(8), math.log(2), 0, 0])

    def test_order_does_not_matter(self):
        torch.manual_seed(1)
        logits, target = torch.randn(4, 9), torch.randint(1, 9, (4, 6))
        target[2:, 4:] = 0
        shuffled = target.clone()
        shuffled[:, :4] = target[:, torch.tensor([2, 0, 3, 1])]
        sums = [bag_nll(logits, words).sum(1) for words in (target, shuffled)]
        assert torch.allclose(*sums)

    def test_beside_words_and_mean_divergence(self):
        words = Losses(torch.tensor(2.0), {"nll": torch.tensor(20.0)}, 10, 4)
        actual = add_bag_of_words(words, torch.tensor([1.0, 2.0, 6.0]), torch.tensor(5.0), 0.5)
        assert actual.total.item() == pytest.approx(2.0 + 0.5 * 3.0 + 0.5)
        assert {name: value.item() for name, value in actual.parts.items()} == {
            "nll": 20.0,
            "kl": 9.0,
            "bow": 5.0,
        }
        assert (actual.tokens, actual.examples) == (10, 4)


def test_words_and_divergences_are_divided_by_the_same_number():
    words = Losses(torch.tensor(2.0), {"nll": torch.tensor(20.0)}, 10, 4)
    divergences = {"one": torch.full((4,), 3.0), "two": torch.full((4,), 1.0)}
    actual = elbo(words, divergences, 0.5)
    assert actual.total.item() == pytest.approx((20 + 0.5 * (12 + 4)) / 10)
    assert {name: value.item() for name, value in actual.parts.items()} == {
        "nll": 20.0,
        "one": 12.0,
        "two": 4.0,
    }
    assert (actual.tokens, actual.examples) == (10, 4)


class TestWarnings:
    @staticmethod
    def history(*nats: float, best: int, step: int = 400) -> History:
        curve = [{"epoch": i + 1.0, "valid_kl_per_example": kl} for i, kl in enumerate(nats)]
        return History(len(nats), step, best, 1.0, curve)

    def test_of_a_latent_variable_that_carries_nothing(self):
        history = self.history(3.0, 0.04, 3.0, 3.0, best=2)
        [text] = latent_warnings(history, ["kl"], 200)
        assert text == (
            "kl is 0.040 nat an example, below 0.1: the latent variable carries nothing"
        )

    def test_speak_of_the_weights_kept(self):
        assert latent_warnings(self.history(0.04, 0.2, 0.04, best=2), ["kl"], 200) == []

    def test_of_weights_from_before_the_end_of_annealing(self):
        history = self.history(3.0, 3.0, 3.0, 3.0, best=1)
        [text] = latent_warnings(history, ["kl"], 200)
        assert "update 100, before kl_annealing=200 ended" in text
        assert "0.50 of its full weight" in text
        assert latent_warnings(history, ["kl"], 100) == []

    def test_follow_how_the_weight_rose(self):
        history = self.history(3.0, 3.0, 3.0, 3.0, best=1)
        [text] = latent_warnings(history, ["kl"], 400, tanh_weight)
        assert "counted 0.09 of its full weight" in text  # update 100: tanh(-1.5) + 1
        assert latent_warnings(history, ["kl"], 200, tanh_weight) == []

    def test_nothing_was_trained(self):
        assert latent_warnings(History(), ["kl"], 200) == []
