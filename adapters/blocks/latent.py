"""Gaussian latent variables (PaRaFormer paper, section 4; docs/systems.md)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from dialbench.neural.data import Batch
from dialbench.neural.model import Losses
from dialbench.neural.randomness import normals
from dialbench.neural.training import History
from dialbench.text.vocabulary import PAD

_LOG_VARIANCE = 10.0  # the largest in size, so that its exponential stays finite in the KL
COLLAPSED = 0.1  # nats an example: below, a latent variable counts as unused


@dataclass(frozen=True)
class Gaussian:
    """Normal distributions with diagonal covariance.

    Attributes:
        mean, log_variance: (B, z) or (B, T, z).
    """

    mean: Tensor
    log_variance: Tensor

    @classmethod
    def of(cls, values: Tensor) -> Gaussian:
        """From (..., 2z): means, and log-variances, which are kept in [-10, 10]."""
        mean, log_variance = precise(values).chunk(2, -1)  # (..., z) each
        return cls(mean, log_variance.clamp(-_LOG_VARIANCE, _LOG_VARIANCE))

    @classmethod
    def standard(cls, like: Gaussian) -> Gaussian:
        """N(0, I) of the same shape."""
        zero = torch.zeros_like(like.mean)
        return cls(zero, zero)

    def sample(self, noise: Tensor) -> Tensor:
        """Values, from as many standard normal numbers."""
        # mu + sigma * noise
        return self.mean + (0.5 * self.log_variance).exp() * noise.to(self.mean.dtype)

    def divergence(self, prior: Gaussian) -> Tensor:
        """KL(self || prior) in nats, (B,) or (B, T): summed over the dimensions."""
        # 1/2 sum_i (var_q / var_p - 1 - log(var_q / var_p) + (mu_q - mu_p)^2 / var_p)
        ratio = self.log_variance - prior.log_variance
        shift = (self.mean - prior.mean) ** 2 * (-prior.log_variance).exp()
        return 0.5 * (ratio.expm1() - ratio + shift).sum(-1)


class GaussianNetwork(nn.Module):
    """p(z | x) or q(z | x): three linear layers with tanh between them.

    Args:
        inputs: size of what it depends on.
        hidden: size of the two hidden layers.
        latent: size of the latent variable.
    """

    def __init__(self, inputs: int, hidden: int, latent: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(inputs, hidden),
            nn.Tanh(),
            nn.Linear(hidden, hidden),
            nn.Tanh(),
            # No activation behind it: the ReLU in the code of SVT forbids negative means.
            nn.Linear(hidden, 2 * latent),
        )

    @classmethod
    def of_states(cls, inputs: int, hidden: int, latent: int, init_std: float) -> GaussianNetwork:
        """One initialised for recurrent states, whose differences it preserves.

        Args:
            inputs: size of what it depends on.
            hidden: size of the two hidden layers.
            latent: size of the latent variable.
            init_std: standard deviation of the distribution at initialisation, per dimension.
        """
        network = cls(inputs, hidden, latent)
        linear = [layer for layer in network.layers if isinstance(layer, nn.Linear)]
        for layer in linear:
            nn.init.xavier_uniform_(layer.weight, nn.init.calculate_gain("tanh"))
            nn.init.zeros_(layer.bias)
        # Means that lie further apart than samples of one, and deviations that differ, cost a KL
        # of hundreds of nats before anything is learnt.
        means, log_variances = linear[-1].weight.detach().chunk(2)  # (z, hidden) each
        means.mul_(init_std)
        log_variances.mul_(0.1)
        nn.init.constant_(linear[-1].bias.detach()[latent:], 2 * math.log(init_std))
        return network

    def forward(self, *parts: Tensor) -> Gaussian:
        """From parts of (..., size) each."""
        return Gaussian.of(self.layers(torch.cat(parts, -1)))


def two_layers(inputs: int, hidden: int, outputs: int) -> nn.Sequential:
    """Linear layers with tanh between them, as the code of Zhao et al. has before z and bag."""
    return nn.Sequential(nn.Linear(inputs, hidden), nn.Tanh(), nn.Linear(hidden, outputs))


def precise(x: Tensor) -> Tensor:
    """Of at least single precision, for exponentials: bfloat16 is too coarse."""
    return x if x.dtype == torch.float64 else x.float()


def noise(batch: Batch, size: int) -> Tensor:
    """Standard normal numbers (B, size): by example id, or in training the global generator's."""
    device = batch.source.device
    if batch.seed is None:
        return torch.randn(len(batch), size, device=device)
    return normals(batch.seed, batch.purpose, batch.ids, size).to(device)


def annealing_weight(step: int, updates: int, power: float = 1.0) -> float:
    """The weight of the KL terms at update `step` (from 0): from 0 to 1 over `updates`.

    Args:
        step: from 0.
        updates: the first with the full weight.
        power: 1 for a straight line; above it the weight stays small for longer.
    """
    return min(1.0, step / updates) ** power if updates else 1.0  # linear for power 1


def tanh_weight(step: int, updates: int) -> float:
    """As `annealing_weight`, but tanh(6 step / updates - 3) + 1: 1 from the middle on."""
    return min(1.0, math.tanh(6 * step / updates - 3) + 1) if updates else 1.0  # code of SVT


def elbo(words: Losses, divergences: Mapping[str, Tensor], weight: float) -> Losses:
    """The negative evidence lower bound: words and weighted KL, both divided by the tokens.

    Args:
        words: negative log-likelihood of the words.
        divergences: KL by name, (B,) each.
        weight: of every KL.
    """
    sums = {name: value.sum() for name, value in divergences.items()}
    total = words.total + weight * sum(sums.values()) / words.tokens  # (NLL + w sum KL) / tokens
    parts = {**words.parts, **{name: value.detach() for name, value in sums.items()}}
    return Losses(total, parts, words.tokens, words.examples)


def bag_nll(logits: Tensor, target: Tensor) -> Tensor:
    """Negative log-likelihood of each word under a bag of words, 0 at PAD.

    Args:
        logits: (N, V), a bag each.
        target: (N, T) words of each, PAD behind them.

    Returns:
        (N, T).
    """
    logs = precise(logits).log_softmax(-1).gather(1, target)  # (N, T)
    return -logs.masked_fill(target.eq(PAD), 0.0)


def add_bag_of_words(words: Losses, divergence: Tensor, bag: Tensor, weight: float) -> Losses:
    """Words and bags of words a token, and the mean KL of a latent variable under its weight.

    Args:
        words: negative log-likelihood of the words.
        divergence: (N,), the KL of every latent variable: one a token, or one an example.
        bag: scalar, the loss of the bags of words summed over the tokens.
        weight: of the KL.
    """
    total, kl = words.total + bag / words.tokens, weight * divergence.mean()
    parts = {**words.parts, "kl": divergence.sum().detach(), "bow": bag.detach()}
    # A KL for each token is weighed as the words are; one for each example is not.
    by_example = None if len(divergence) == words.tokens else kl
    return replace(words, total=total + kl, by_example=by_example, parts=parts)


def latent_warnings(
    history: History,
    names: Sequence[str],
    updates: int,
    weight: Callable[[int, int], float] = annealing_weight,
    option: str = "kl_annealing",
) -> list[str]:
    """Warnings that the KL never reached its full weight, or that the latent variable collapsed.

    Args:
        history: of the finished training.
        names: the KL parts of the loss.
        updates: over which the KL weight rose to 1.
        weight: how it rose.
        option: what sets `updates`.
    """
    if not history.best_epoch:
        return []
    best = history.best
    update = history.step * history.best_epoch // history.epoch  # at the end of the best epoch
    warnings = []
    if (kl_weight := weight(update, updates)) < 1:
        warnings.append(
            f"the weights kept are of update {update}, before {option}={updates} ended: the KL"
            f" counted {kl_weight:.2f} of its full weight"
        )
    for name in names:
        nats = best[f"valid_{name}_per_example"]
        if nats < COLLAPSED:
            warnings.append(
                f"{name} is {nats:.3f} nat an example, below {COLLAPSED}: the latent variable"
                " carries nothing"
            )
    return warnings
