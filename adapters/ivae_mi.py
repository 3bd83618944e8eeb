"""iVAE_MI: a latent variable whose distributions are known by their samples alone.

Fang et al., "Implicit Deep Latent Variable Models for Text Generation", baseline of the DialogVED
paper. Prior and posterior are networks that turn noise into z; neither has a density. A critic nu
learns to estimate their KL, KL(q || p) >= E_q[nu] - E_p[exp nu] + 1, for all responses of a batch
together, so that z keeps what it shares with them. Training takes three steps an update: words,
the networks of z, and five times the critic. The posterior is trained by the first two.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, cast

import torch
from torch import Tensor, nn

from dialbench.adapter import Card, Run
from dialbench.neural.adapter import NeuralAdapter, NeuralConfig
from dialbench.neural.data import Batch, Encoded, make_batch
from dialbench.neural.devices import autocast
from dialbench.neural.dropout import Dropout
from dialbench.neural.model import DialogueModel, Losses, State, WordOutput, word_loss
from dialbench.neural.training import Trainer

from .blocks.embedding import WordAdapter, WordEmbedding, WordStart, WordTable
from .blocks.hierarchical import (
    AttentionFreeDecoding,
    ContextEncoder,
    Conversation,
    UtteranceEncoder,
)
from .blocks.latent import Gaussian, latent_warnings, noise
from .blocks.recurrent import StackedGRU

_LARGEST = 10.0  # of nu, up to which its exponential is taken
_HALVING, _EVERY = 0.6, 10  # of the rate of the words' step, in epochs


@dataclass(frozen=True)
class IVAEConfig(WordTable, WordStart, NeuralConfig):
    """Sizes and rates; defaults are those of the code for DailyDialog.

    Attributes:
        hidden: h, of every GRU direction; the decoder has h + z.
        latent: z, the size of the latent variable and of the layers before it.
        dropout: on the words' vectors; half of it on the utterances'.
        decoder_context: whether the decoder knows z and the context by its first state alone, or
            reads them beside every word too.
        optimiser: of the words' step, SGD as in the code or Adam; the other two have RMSprop.
        posterior_share: of the words' rate, for the posterior in the words' step; 1 as in the code.
        nets_rate, critic_rate: of the networks of z and of the critic.
        critic_steps: of the critic, an update.
    """

    vocabulary: int = 10_000
    response_tokens: int = 40
    learning_rate: float = 1.0
    warmup: float = 0
    schedule: Literal["linear", "constant"] = "constant"
    clip: float = 1.0
    epochs: int = 100
    embedding: int = 200
    hidden: int = 300
    latent: int = 200
    dropout: float = 0.5
    decoder_context: Literal["first", "all"] = "first"
    optimiser: Literal["sgd", "adam"] = "sgd"
    posterior_share: float = 1.0
    nets_rate: float = 5e-5
    critic_rate: float = 1e-5
    critic_steps: int = 5

    positive: ClassVar[tuple[str, ...]] = (
        *("hidden", "latent", "posterior_share", "nets_rate", "critic_rate", "critic_steps"),
    )
    rates: ClassVar[tuple[str, ...]] = ("dropout",)


class BatchNorm(nn.BatchNorm1d):
    """As torch's; a batch of one example is normalised by the running statistics."""

    def forward(self, input: Tensor) -> Tensor:
        """(B, n) -> (B, n)."""
        # By its own mean a single example would become 0, whatever it says.
        if self.training and len(input) == 1:
            return nn.functional.batch_norm(
                input, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps
            )
        return super().forward(input)


def stack(inputs: int, hidden: int, outputs: int, activation: nn.Module) -> nn.Sequential:
    """Two layers of `hidden`, each normalised over the batch and activated, and a last map."""
    return nn.Sequential(
        *(nn.Linear(inputs, hidden), BatchNorm(hidden), activation),
        *(nn.Linear(hidden, hidden), BatchNorm(hidden), activation),
        nn.Linear(hidden, outputs),
    )


class ImplicitNetwork(nn.Module):
    """Samples of z: a Gaussian e that depends on the input, through a generator, z = G(e).

    Args:
        inputs: size of what it depends on.
        latent: size of e and z.
    """

    def __init__(self, inputs: int, latent: int) -> None:
        super().__init__()
        self.network = stack(inputs, latent, 2 * latent, nn.Tanh())  # mean and log-variance of e
        self.generator = stack(latent, latent, latent, nn.ReLU())  # G

    def forward(self, x: Tensor, epsilon: Tensor) -> Tensor:
        """(B, inputs) and standard normal numbers (B, z) -> z (B, z)."""
        # z = G(e) with e ~ N(mu(x), sigma^2(x)), (B, z)
        return self.generator(Gaussian.of(self.network(x)).sample(epsilon))  # type: ignore[no-any-return]


def bounded_exp(nu: Tensor) -> Tensor:
    """exp(nu), continued above 10 by its tangent, which overflows later and keeps a slope."""
    low = nu.clamp(max=_LARGEST)
    return low.exp() * (1 + nu - low)


class IVAEModel(AttentionFreeDecoding, DialogueModel):
    """A hierarchical encoder, two implicit networks, a critic and a decoder over V words."""

    variational: ClassVar[bool] = True
    training_only: ClassVar[tuple[str, ...]] = ("posterior", "critic")

    def __init__(self, config: IVAEConfig, vocabulary: int) -> None:
        super().__init__()
        e, h, z = config.embedding, config.hidden, config.latent
        self.config = config
        self.embedding = WordEmbedding(vocabulary, e, config.word_spread)
        self.encoder = UtteranceEncoder(e, h, 1, 0.0)  # words -> u_k (2h)
        self.context = ContextEncoder(2 * h + 2, h, 1, 0.0)  # [u_k; floor] -> c (h)
        self.prior = ImplicitNetwork(h, z)  # samples of p(z | c)
        self.posterior = ImplicitNetwork(3 * h, z)  # samples of q(z | x, c), from [x; c]
        self.critic = stack(h + z, 2 * h, 1, nn.LeakyReLU(0.2))  # nu(z, c)
        self.beside_words = config.decoder_context == "all"
        # starts from [z; c]
        self.decoder = StackedGRU(e + (h + z if self.beside_words else 0), h + z, 1, 0.0)
        self.output = WordOutput(h + z, vocabulary)
        self.dropout, self.utterance_dropout = Dropout(config.dropout), Dropout(config.dropout / 2)

    def utterances(self, tokens: Tensor) -> Tensor:
        """(U, W) tokens -> (U, 2h)."""
        return self.encoder.vectors(self.dropout(self.embedding(tokens)), tokens)

    def read(self, batch: Batch) -> Tensor:
        """The contexts c, (B, h)."""
        turns = batch.turns
        conversation = Conversation.gather(self.utterances(turns.tokens), turns.contexts)
        turn = torch.arange(conversation.real.shape[1], device=conversation.real.device)
        # Who speaks: the speaker of the response, or the other one; the last turn is the other's.
        other = (conversation.last[:, None] - turn) % 2 == 0  # (B, N)
        floor = torch.stack([~other, other], -1).to(conversation.vectors.dtype)  # (B, N, 2)
        vectors = self.utterance_dropout(torch.cat([conversation.vectors, floor], -1))
        return self.context(replace(conversation, vectors=vectors))  # type: ignore[no-any-return]

    def begin(self, z: Tensor, c: Tensor) -> State:
        """The decoder's first state [z; c], and the same beside every word where asked for."""
        known = torch.cat([z.to(c.dtype), c], -1)  # (B, h + z)
        return State(known if self.beside_words else None, [known])

    def start(self, batch: Batch) -> State:
        """Reads the contexts and draws z from the prior, once for all words and beams."""
        c = self.read(batch)
        return self.begin(self.prior(c, noise(batch, self.config.latent)), c)

    def features(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Features c (B, h), and [response; c] (B, 3h)."""
        c = self.read(batch)
        return c, torch.cat([self.utterances(batch.target), c], -1)

    @contextmanager
    def without_dropout(self) -> Iterator[None]:
        """A block in which `features` drops nothing."""
        layers = self.dropout, self.utterance_dropout
        modes = [layer.training for layer in layers]
        for layer in layers:
            layer.eval()
        try:
            yield
        finally:
            for layer, mode in zip(layers, modes, strict=True):
                layer.train(mode)

    def judge(self, z: Tensor, c: Tensor) -> Tensor:
        """nu(z, c), (B,)."""
        return self.critic(torch.cat([z, c], -1))[:, 0].float()  # type: ignore[no-any-return]

    def gap(self, c: Tensor, both: Tensor, batch: Batch) -> Tensor:
        """E_q[nu] - E_p[exp nu], a scalar, from features of (B, h) and (B, 3h)."""
        size = self.config.latent
        z_q = self.posterior(both, noise(batch, size))  # (B, z)
        # Noise of its own: samples of the two that share noise are not independent.
        z_p = self.prior(c, noise(replace(batch, purpose=f"{batch.purpose} prior"), size))
        # In one batch: else its normalisation would hide where the two lie apart.
        nu_q, nu_p = self.judge(torch.cat([z_q, z_p]), c.repeat(2, 1)).chunk(2)
        return nu_q.mean() - bounded_exp(nu_p).mean()

    def loss(self, batch: Batch, step: int) -> Losses:
        """Words under z of the posterior, the first step's; when validating under z of the prior.

        Then what the posterior would give and the critic's KL stand beside it.
        """
        c, both = self.features(batch)
        z = self.posterior(both, noise(batch, self.config.latent))  # (B, z)
        hidden = self.hidden(self.begin(z, c), batch.inputs)  # (B, T, h + z)
        words = word_loss(hidden, self.output, batch)
        if self.training:  # steps (b) and (c) compute the bound, from samples of their own
            return words
        kl = (self.gap(c, both, batch) + 1).clamp(min=0) * len(batch)  # the bound's own + 1
        # NLL and the critic's KL bound nothing together, since that KL is a bound from below.
        # NLL under one z of the prior bounds the response's from above (Jensen).
        answering = self.answering_loss(batch)
        parts = {"posterior_nll": words.parts["nll"], "kl": kl.detach()}
        return replace(answering, parts={**answering.parts, **parts})

    def decoder_inputs(self, tokens: Tensor, state: State) -> Tensor:
        """(B * width, T) tokens -> (B * width, T, e + n), with dropout."""
        return self.dropout(super().decoder_inputs(tokens, state))  # type: ignore[no-any-return]

    def parameters_by_step(
        self,
    ) -> tuple[list[nn.Parameter], list[nn.Parameter], list[nn.Parameter]]:
        """What the three steps change: words, networks of z, critic; the posterior is in two."""
        nets = [*self.prior.parameters(), *self.posterior.parameters()]
        critic = [*self.critic.parameters()]
        # Words reach the posterior through z, so that step (a) trains it too; the prior they do
        # not.
        own = {id(p) for p in [*nets, *critic]}
        words = [p for p in self.parameters() if id(p) not in own]
        return [*words, *self.posterior.parameters()], nets, critic


class Optimisers:
    """Several optimisers with one state, as the training loop keeps it."""

    def __init__(self, *members: torch.optim.Optimizer) -> None:
        self.members = members
        sizes = [sum(len(g["params"]) for g in member.param_groups) for member in members]
        self._firsts = [sum(sizes[:i]) for i in range(len(sizes))]

    def state_dict(self) -> dict[str, Any]:
        """The states of all parameters, those of later members numbered behind."""
        states = {
            first + number: state
            for first, member in zip(self._firsts, self.members, strict=True)
            for number, state in member.state_dict()["state"].items()
        }
        return {"state": states}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Takes over what `state_dict` gave."""
        lasts = [*self._firsts[1:], 1 << 60]
        for first, last, member in zip(self._firsts, lasts, self.members, strict=True):
            member_state = {n - first: s for n, s in state["state"].items() if first <= n < last}
            member.load_state_dict({**member.state_dict(), "state": member_state})


class AlternatingTrainer(Trainer):
    """Three steps an update: words, networks of z, critic."""

    model: IVAEModel
    config: IVAEConfig

    def __init__(
        self, model: IVAEModel, train: Encoded, valid: Encoded, config: IVAEConfig, run: Run
    ) -> None:
        super().__init__(model, train, valid, config, run)
        self.parameters = model.parameters_by_step()
        words, nets, critic = self.parameters
        first: type[Any] = torch.optim.SGD if config.optimiser == "sgd" else torch.optim.Adam
        posterior = [*model.posterior.parameters()]
        self._coders = words[: -len(posterior)]
        self.optimiser = cast(
            torch.optim.Optimizer,
            Optimisers(
                first(
                    [
                        {"params": self._coders, "share": 1.0},
                        {"params": posterior, "share": config.posterior_share},
                    ],
                    lr=config.learning_rate,
                ),
                torch.optim.RMSprop([{"params": nets, "share": 1.0}], lr=config.nets_rate),
                torch.optim.RMSprop([{"params": critic, "share": 1.0}], lr=config.critic_rate),
            ),
        )

    def rate(self) -> float:
        """As of any training; with SGD times 0.6 every ten epochs, as in the code."""
        steps = self.history.epoch // _EVERY if self.config.optimiser == "sgd" else 0
        return super().rate() * _HALVING**steps

    def _update(self, rows: Any) -> Losses:
        batch = make_batch(self.train, rows, self.run.device)
        self.history.step += 1
        with autocast(self.run.device, self.dtype):
            losses = self.model.loss(batch, self.history.step)
        # (a) words, by z of the posterior
        self._step_of(0, losses.objective(*self.average_batch), self.rate())
        # Of a single example the critic's batch normalisation would make +1 and -1 of the two
        # samples, however far apart they lie and whatever the context is.
        if len(batch) > 1:
            self._learn_divergence(batch)
        return losses

    def _learn_divergence(self, batch: Batch) -> None:
        # Encoders learn from the words alone. As in the code, they read anew what (a) has changed
        # them for, and without dropout, as when responding.
        with torch.no_grad(), autocast(self.run.device, self.dtype), self.model.without_dropout():
            features = self.model.features(batch)
        # c (B, h), [x; c] (B, 3h)
        c, both = (feature.to(self.parameters[0][0].dtype) for feature in features)
        # Warm-up and schedule are of all three rates; what falls every ten epochs is (a)'s alone.
        share = super().rate() / self.config.learning_rate
        # (b) the networks of z: a smaller KL, as far as the critic sees it
        self._step_of(1, self.model.gap(c, both, batch), share * self.config.nets_rate)
        for _ in range(self.config.critic_steps):
            # (c) the critic: a larger bound
            self._step_of(2, -self.model.gap(c, both, batch), share * self.config.critic_rate)

    def _step_of(self, number: int, loss: Tensor, rate: float) -> None:
        optimiser = cast(Optimisers, self.optimiser).members[number]
        torch.autograd.backward(loss)
        if number == 0:  # and there not the posterior, as in the code
            torch.nn.utils.clip_grad_norm_(self._coders, self.config.clip)
        for group in optimiser.param_groups:
            group["lr"] = rate * group["share"]
        optimiser.step()
        self.model.zero_grad(set_to_none=True)  # of what the step does not change too


class IVAEMI(WordAdapter, NeuralAdapter):
    """iVAE_MI."""

    name = "ivae-mi"
    version = 4
    card = Card(
        title="iVAE_MI",
        family="variational",
        summary="a hierarchical encoder-decoder whose latent variable has samples, but no density",
        paper="Fang et al., Implicit Deep Latent Variable Models for Text Generation",
        year=2019,
    )
    Config = IVAEConfig
    config: IVAEConfig

    def build_model(self, size: int) -> DialogueModel:
        """The untrained model."""
        return IVAEModel(self.config, size)

    def trainer(self, model: DialogueModel, train: Encoded, valid: Encoded, run: Run) -> Trainer:
        """Three steps an update."""
        return AlternatingTrainer(cast(IVAEModel, model), train, valid, self.config, run)

    def warnings(self) -> list[str]:
        """A latent variable that carries nothing, as far as the critic sees it."""
        return latent_warnings(self.history, ["kl"], 0)
