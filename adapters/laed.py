"""LAED: M discrete actions of K values, learnt by an autoencoder and then chosen from the context.

Baseline "LAED" of the AdaND paper after Zhao et al., the variant AE-ED of its code, as the data
are pairs without next turns (docs/systems.md). In its first updates an autoencoder of responses
learns which actions y there are: its recognition network gives q(y|x), and its regulariser keeps
the average of q over a batch, not each q, close to uniform. Then the autoencoder is frozen, and an
encoder-decoder learns to answer under argmax q, and a policy p(y|c) to choose y from the context.
The recogniser, reading the words as expected, must find the action again (the attribute loss).
Responses sample y from the policy.

Losses weigh what they weigh in that code: that of the words is a mean over tokens, those of policy
and attributes are means over the batch and the M variables, the regulariser over the M variables.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from dialbench.adapter import Card, Run
from dialbench.neural.adapter import NeuralAdapter, NeuralConfig
from dialbench.neural.data import Batch, Encoded
from dialbench.neural.dropout import Dropout
from dialbench.neural.model import DialogueModel, Losses, State, WordOutput, word_loss
from dialbench.neural.randomness import uniforms
from dialbench.neural.training import History, Trainer
from dialbench.text.vocabulary import PAD

from .blocks.embedding import WordAdapter, WordEmbedding, WordStart, WordTable
from .blocks.hierarchical import ContextEncoder, Conversation
from .blocks.latent import COLLAPSED, precise
from .blocks.recurrent import RecurrentEncoder, StackedGRU


@dataclass(frozen=True)
class LAEDConfig(WordTable, WordStart, NeuralConfig):
    """Sizes and the two stages; defaults are those of LAED's scripts for dialogue.

    How much is read and written, and the patience, are those of all systems of the AdaND paper.

    Attributes:
        hidden: of every GRU; half of it for each direction of the one that reads utterances.
        actions: M, variables of an action.
        values: K, values of each variable.
        autoencoder_updates: how many the first stage takes; `epochs` and `patience` count from
            the first epoch with updates of the second, and no earlier epoch's weights are kept.
        attribute_weight: of the attribute loss.
        dropout: on word vectors and before the output; never on what the recogniser reads.
    """

    context_tokens: int = 50
    response_tokens: int = 50
    embedding: int = 200
    learning_rate: float = 1e-3
    batch_size: int = 30
    warmup: float = 0
    clip: float = 3.0
    patience: int = 5
    hidden: int = 512
    actions: int = 3
    values: int = 5
    autoencoder_updates: int = 4_000
    attribute_weight: float = 0.1
    dropout: float = 0.3

    positive: ClassVar[tuple[str, ...]] = ("actions", "autoencoder_updates")
    not_negative: ClassVar[tuple[str, ...]] = ("attribute_weight",)
    rates: ClassVar[tuple[str, ...]] = ("dropout",)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.hidden < 2 or self.values < 2:
            raise ValueError("hidden and values must be at least 2")


def imbalance(q: Tensor) -> Tensor:
    """KL of the batch's average of (B, M, K) distributions from uniform, mean over M, in nats."""
    mean = q.mean(0)  # the batch's average of q, (M, K)
    off: Tensor = torch.special.xlogy(mean, mean * q.shape[-1]).sum(-1).mean()
    return off


def mutual_information(q: Tensor) -> Tensor:
    """H(mean q) - mean H(q) of (B, M, K) distributions, mean over M: in [0, log K] nats."""
    shared: Tensor = torch.special.entr(q.mean(0)) - torch.special.entr(q).mean(0)  # (M, K)
    return shared.sum(-1).mean()


@contextmanager
def frozen(module: nn.Module) -> Iterator[None]:
    """A block in which the module's weights get no gradient, but gradients pass through it."""
    weights = list(module.parameters())
    for weight in weights:
        weight.requires_grad_(False)
    try:
        yield
    finally:
        for weight in weights:
            weight.requires_grad_(True)


class Reader(nn.Module):
    """A GRU encoder: its state after the last real vector represents the sequence."""

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.gru = StackedGRU(inputs, hidden, 1, 0.0)

    def forward(self, vectors: Tensor, real: Tensor) -> Tensor:
        """(B, S, inputs), `real` (B, S) -> (B, hidden)."""
        states, _ = self.gru(vectors)  # (B, S, hidden)
        last = (real.sum(1) - 1).clamp(min=0)  # (B,) place of the last real vector
        # the state after the last real vector, (B, hidden)
        return states[torch.arange(len(states), device=last.device), last]  # type: ignore[no-any-return]


class AttentiveReader(nn.Module):
    """A bidirectional GRU over words, whose outputs are averaged with weights of their own.

    Args:
        inputs: size of the word vectors.
        hidden: of each direction.
    """

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.encoder = RecurrentEncoder(inputs, hidden, 1, 0.0)
        self.key = nn.Linear(2 * hidden, hidden)
        self.query = nn.Linear(hidden, 1, bias=False)  # a bias would change no weight

    def forward(self, vectors: Tensor, real: Tensor) -> Tensor:
        """(U, W, inputs), `real` (U, W) -> (U, 2 * hidden)."""
        states, _ = self.encoder.read(vectors, real)  # (U, W, 2 * hidden)
        scores = self.query(self.key(states).tanh()).squeeze(-1)  # v' tanh(W h_t + b), (U, W)
        # Not minus infinity, of which a row without words would make NaN; states are zero on PAD.
        least = torch.finfo(scores.dtype).min
        weights = scores.masked_fill(~real, least).softmax(-1)  # (U, W)
        return (weights[:, None] @ states).squeeze(1)  # type: ignore[no-any-return]


class Writer(nn.Module):
    """A GRU decoder that starts from an action and, when responding, the context."""

    def __init__(self, config: LAEDConfig, vocabulary: int) -> None:
        super().__init__()
        self.action = nn.Linear(config.actions * config.values, config.hidden)  # W of s_0 = c + W y
        self.gru = StackedGRU(config.embedding, config.hidden, 1, 0.0)
        self.dropout = Dropout(config.dropout)
        self.output = WordOutput(config.hidden, vocabulary)

    def begin(self, y: Tensor) -> Tensor:
        """(B, M, K) -> (B, hidden)."""
        return self.action(y.flatten(1))  # type: ignore[no-any-return]

    def forward(self, embedded: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """(N, T, e) from (N, hidden): what the output reads (N, T, hidden), and the state after."""
        tops, (after,) = self.gru(self.dropout(embedded), [state])  # (N, T, hidden), (N, hidden)
        return self.dropout(tops), after


class Autoencoder(nn.Module):
    """Stage one: a response becomes an action and is written again from that alone."""

    def __init__(self, config: LAEDConfig, vocabulary: int) -> None:
        super().__init__()
        self.sizes = config.actions, config.values
        self.embedding = WordEmbedding(vocabulary, config.embedding, config.word_spread)
        self.reader = Reader(config.embedding, config.hidden)
        # M variables of K values
        self.actions = nn.Linear(config.hidden, config.actions * config.values)
        self.writer = Writer(config, vocabulary)

    def recognise(self, vectors: Tensor, real: Tensor) -> Tensor:
        """Logits of q(y | x), (B, M, K), from word vectors (B, T, e).

        Without dropout, so that a response has the same action whenever it is read. In LAED's code
        the recogniser's dropout would act between the layers of its GRU, which has one.
        """
        return self.actions(self.reader(vectors, real)).unflatten(-1, self.sizes)  # type: ignore[no-any-return]

    def of(self, batch: Batch) -> Tensor:
        """`recognise` for the batch's responses."""
        return self.recognise(self.embedding(batch.target), batch.target.ne(PAD))


class LAEDModel(DialogueModel):
    """The autoencoder, and the encoder-decoder that answers.

    The parts of its loss are in nats and summed over the batch: "policy", -log p(y|c) of the action
    found in the response, and "attribute" are sums over the M variables, "information" a mean.
    "nll" and "policy" together, the criterion, bound -log p(x|c) from above, as p(x|c) holds this
    action beside all others.
    """

    criterion: ClassVar[tuple[str, ...]] = ("nll", "policy")
    training_only: ClassVar[tuple[str, ...]] = ("autoencoder",)
    variational: ClassVar[bool] = True

    def __init__(self, config: LAEDConfig, vocabulary: int) -> None:
        super().__init__()
        e, h = config.embedding, config.hidden
        self.config = config
        self.autoencoder = Autoencoder(config, vocabulary)
        self.embedding = WordEmbedding(vocabulary, e, config.word_spread)
        self.utterance = AttentiveReader(e, h // 2)
        self.context = ContextEncoder(2 * (h // 2), h, 1, 0.0)
        self.policy = nn.Sequential(
            nn.Linear(h, h), nn.Tanh(), nn.Linear(h, config.actions * config.values)
        )
        self.writer = Writer(config, vocabulary)
        self.dropout = Dropout(config.dropout)

    def read(self, batch: Batch) -> Tensor:
        """The contexts c, (B, h)."""
        turns = batch.turns
        vectors = self.dropout(self.embedding(turns.tokens))  # (U, W, e), each utterance once
        utterances = self.utterance(vectors, turns.tokens.ne(PAD))  # (U, h)
        return self.context(Conversation.gather(utterances, turns.contexts))  # type: ignore[no-any-return]

    def choices(self, c: Tensor) -> Tensor:
        """Logits of the policy p(y | c), (B, M, K)."""
        return self.policy(c).unflatten(-1, self.autoencoder.sizes)  # type: ignore[no-any-return]

    def sample(self, c: Tensor, batch: Batch) -> Tensor:
        """One-hot y (B, M, K) from the policy, by example id."""
        shares = self.choices(c).double().softmax(-1)  # p(y | c), (B, M, K)
        draws = uniforms(batch.seed or 0, f"{batch.purpose} action", batch.ids, shares.shape[1])
        # inverse of the cumulative distribution at a uniform number
        cumulative = shares.cumsum(-1)  # (B, M, K)
        target = draws.to(c.device)[:, :, None] * cumulative[:, :, -1:]  # (B, M, 1)
        chosen = torch.searchsorted(cumulative, target, right=True).squeeze(-1)  # (B, M)
        return F.one_hot(chosen, shares.shape[-1]).to(c.dtype)

    def start(self, batch: Batch) -> State:
        """Reads the contexts and draws their actions, once for all words and beams."""
        c = self.read(batch)
        return State(row=c + self.writer.begin(self.sample(c, batch)))  # s_0 = c + W y

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """(B * width,) tokens -> logits (B * width, V)."""
        # (B * width, 1, h), (B * width, h)
        tops, after = self.writer(self.embedding(tokens[:, None]), state.row)
        return self.writer.output(tops[:, 0]), replace(state, row=after, length=state.length + 1)

    def logits(self, batch: Batch) -> Tensor:
        """(B, T, V) with teacher forcing, from where answering starts."""
        return self._teacher_forced(batch, self.start(batch).row)

    def _teacher_forced(self, batch: Batch, state: Tensor) -> Tensor:
        tops, _ = self.writer(self.embedding(batch.inputs), state)
        return self.writer.output(tops)  # type: ignore[no-any-return]

    def loss(self, batch: Batch, step: int) -> Losses:
        """That of the stage of this update; validation is always about answering."""
        if self.training and step < self.config.autoencoder_updates:
            return self._autoencode(batch)
        return self._answer(batch)

    def _autoencode(self, batch: Batch) -> Losses:
        auto = self.autoencoder
        logits = auto.of(batch)  # (B, M, K)
        # Differences of logarithms near their least want more than bfloat16's 8 bits.
        q = precise(logits).softmax(-1)  # q(y | x), (B, M, K)
        y = F.gumbel_softmax(logits)  # a sample of q(y | x), (B, M, K)
        tops, _ = auto.writer(auto.embedding(batch.inputs), auto.writer.begin(y))
        words = word_loss(tops, auto.writer.output, batch)
        none = words.total.new_zeros(())
        information = mutual_information(q) * len(batch)
        parts = {"policy": none, "attribute": none, "information": information}
        return _sum(words, imbalance(q), parts)  # L_1 = NLL + 1/M sum_m KL(mean q_m || uniform)

    def _answer(self, batch: Batch) -> Losses:
        auto, c = self.autoencoder, self.read(batch)
        with torch.no_grad():
            q = auto.of(batch)  # logits, (B, M, K)
        y = q.argmax(-1)  # (B, M)
        state = c + self.writer.begin(F.one_hot(y, q.shape[-1]).to(c.dtype))  # s_0 = c + W y
        logits = self._teacher_forced(batch, state)  # (B, T, V)
        words = word_loss(logits, nn.Identity(), batch)
        policy = _nll(self.choices(c), y)  # -sum log p(y_m | c)
        with frozen(auto):
            # expected word vectors, (B, T, e)
            expected = logits.softmax(-1) @ auto.embedding.weight
            # -sum log q(y_m | expected words)
            attribute = _nll(auto.recognise(expected, batch.target.ne(PAD)), y)
        information = mutual_information(precise(q).softmax(-1)) * len(batch)
        parts = {"policy": policy, "attribute": attribute, "information": information}
        # L_2 = NLL - 1/M sum log p(y_m | c) - 0.1/M sum log q(y_m | x~), means over the batch
        further = (policy + self.config.attribute_weight * attribute) / y.numel()
        return _sum(words, further, parts)


def _nll(logits: Tensor, y: Tensor) -> Tensor:
    """Negative log-likelihood of (B, M) values under (B, M, K), summed."""
    return F.cross_entropy(logits.flatten(0, 1), y.flatten(), reduction="sum")


def _sum(words: Losses, further: Tensor, parts: dict[str, Tensor]) -> Losses:
    """Words per token, and what is a mean over the examples."""
    detached = {name: part.detach() for name, part in parts.items()}
    parts = {**words.parts, **detached}
    return replace(words, total=words.total + further, by_example=further, parts=parts)


class LAEDTrainer(Trainer):
    """Trains through the first stage and then as long as any system."""

    config: LAEDConfig

    def fit(self) -> History:
        """Losses of before the second stage say nothing of responses, and leave the curve."""
        history = super().fit()
        for row in history.curve[: self._first]:
            for key in ("train_loss", "train_nll", "valid_loss", "valid_nll"):
                del row[key]
        return history

    @property
    def epochs(self) -> int:
        """The config's, behind the epochs that the first stage takes whole."""
        return self._first + self.config.epochs

    @property
    def constant_rate_updates(self) -> int:
        """Those of the first stage, since the second is what answers."""
        return self.config.autoencoder_updates

    @property
    def _first(self) -> int:
        return self.config.autoencoder_updates // self.epoch_length

    @property
    def untrained(self) -> bool:
        """As of `Trainer`; the first stage learns no responses."""
        return self.history.step <= self.config.autoencoder_updates

    def _finish(self, number: int, row: dict[str, float]) -> None:
        if number == self._first + 1:
            # Losses of before are of no responses: the first epoch that learns them has no rival.
            self.history.best_loss = math.inf
        super()._finish(number, row)

    def _should_continue(self) -> bool:
        # Patience begins with the first epoch that learns responses.
        return self.history.epoch <= self._first or super()._should_continue()


class LAED(WordAdapter, NeuralAdapter):
    """Latent actions from an autoencoder."""

    name = "laed"
    version = 6
    card = Card(
        title="LAED",
        family="variational",
        summary="an encoder-decoder that first chooses among discrete actions it has learnt",
        paper="Zhao, Lee and Eskénazi, Unsupervised Discrete Sentence Representation Learning for"
        " Interpretable Neural Dialog Generation",
        year=2018,
    )
    Config = LAEDConfig
    config: LAEDConfig

    def build_model(self, size: int) -> DialogueModel:
        """The untrained model."""
        return LAEDModel(self.config, size)

    def trainer(self, model: DialogueModel, train: Encoded, valid: Encoded, run: Run) -> Trainer:
        """Training in two stages."""
        return LAEDTrainer(model, train, valid, self.config, run)

    def warnings(self) -> list[str]:
        """Actions that carry nothing."""
        history = self.history
        if not history.best_epoch:
            return []
        nats = history.best["valid_information_per_example"]
        if nats < COLLAPSED:
            return [
                f"actions and responses share {nats:.3f} nat of at most"
                f" {math.log(self.config.values):.2f}: the actions carry nothing"
            ]
        return []
