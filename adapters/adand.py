"""AdaND: LSTMs whose weights are made for each conversation, from its words, its topics, or both.

The AdaND paper's systems, as in its code where the two differ (docs/systems.md). All layers and
directions of Seq2Seq (LSTM) get adaptive cells. `adand-context` makes their weights from zeta, what
a layer-normalised LSTM with a table of its own reads in the context, and from the state at every
step (eq. 5-7); `adand-topic` from theta, the shares of latent topics (eq. 8-12); `adand` mixes both
by gates (eq. 13).

The topics learn from the words of conversations alone: theta is drawn from the prior also in
training, and no gradient of the responses reaches it. The code therefore makes two updates a
batch; here they are one, as no weight belongs to both, and each part's gradient is clipped by
itself. Clipped together, the larger one, at first the responses' by a hundred times and more, would
choke the other. The code's step of annealing counts both updates, ours batches: half as many. The
paper's bag-of-words loss is not in the code, and not here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar, Literal

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from dialbench.adapter import Card, Run
from dialbench.neural.adapter import NeuralAdapter
from dialbench.neural.data import Batch, Encoded
from dialbench.neural.dropout import Dropout
from dialbench.neural.model import DialogueModel, Losses, word_loss
from dialbench.neural.training import Trainer
from dialbench.text.vocabulary import SPECIALS

from .blocks.adaptive import (
    BothCell,
    ContextCell,
    PaperBothCell,
    PaperContextCell,
    PaperTopicCell,
    TopicCell,
)
from .blocks.embedding import WordAdapter, WordEmbedding
from .blocks.latent import Gaussian, latent_warnings, noise
from .blocks.lstm import BidirectionalLSTM, Cell, Conditioning, NormedLSTMCell
from .seq2seq_lstm import LSTMAdapter, LSTMConfig, LSTMModel, LSTMTrainer
from .text_models.topical_words import topical_words

_WORDS_OF_A_TOPIC = 10
_HIDDEN = (512, 128, 64)
_SHARE_HIDDEN = 512
_FEWEST_POINTS = 5  # words that make a picture
_ANGLE_MARGIN = 1e-5  # keeps the angle of a topic with itself where arccos has a slope
_UPDATES_A_RISE = 7.0  # of `kl_weight`: 7,000 updates give the code's (step - 3500) / 1000
_PAPER = "Cai et al., Adaptive Parameterization for Neural Dialogue Generation"


@dataclass(frozen=True)
class AdaptiveConfig(LSTMConfig):
    """What every AdaND system has; defaults are those of the paper's code.

    Attributes:
        rank: R, of the factors of every weight matrix.
        cell: whether weights are made as in the paper's code or as in its equations.
    """

    rank: int = 128
    cell: Literal["code", "paper"] = "code"

    positive: ClassVar[tuple[str, ...]] = ("rank",)


@dataclass(frozen=True)
class TopicConfig(AdaptiveConfig):
    """What the systems with topics have besides.

    Attributes:
        topics: K.
        topical_words: C, the most frequent words that are no stop words; from them alone topics
            are inferred and learnt.
        latent: size of nu.
        topic_rate: learning_rate of the networks that infer topics; the vectors of topics and
            words learn at the common one. Where theirs is high, theta saturates before the vectors
            mean anything, and stays the same for all conversations.
        topic_annealing: updates over which the weight of the KL rises to 1.
        diversity: weight of the angles between topics, which are to be large and alike.
        topic_draw: whether a response draws nu from the prior or takes its mean.
    """

    topics: int = 5
    topical_words: int = 3_159
    latent: int = 64
    topic_rate: float = 1e-3
    topic_annealing: int = 3_500
    diversity: float = 0.1
    topic_draw: Literal["sample", "mean"] = "sample"

    positive: ClassVar[tuple[str, ...]] = ("topical_words", "latent", "topic_rate")
    not_negative: ClassVar[tuple[str, ...]] = ("topic_annealing", "diversity")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.topics < 2:
            raise ValueError("topics must be at least 2")


class ContextModel(LSTMModel):
    """Weights from the context."""

    config: AdaptiveConfig

    def __init__(self, config: AdaptiveConfig, vocabulary: int) -> None:
        super().__init__(config, vocabulary)
        e, h, dropout = config.embedding, config.hidden, config.dropout
        sizes = [e] + [2 * h] * (config.recurrent_layers - 1)  # what each layer reads
        self.context_embedding = WordEmbedding(vocabulary, e, config.word_spread)
        self.context_encoder = BidirectionalLSTM(
            [NormedLSTMCell(2, size, h, dropout) for size in sizes], dropout
        )

    def cell(self, directions: int, inputs: int) -> Cell:
        """A layer whose weights come from the context."""
        c = self.config
        if c.cell == "paper":
            return PaperContextCell(directions, inputs, c.hidden, c.rank)
        return ContextCell(directions, inputs, c.hidden, c.dropout, c.rank)

    def zeta(self, batch: Batch) -> Tensor:
        """(B, h): the last layer's final state, its directions summed."""
        _, states = self.read(
            batch.source, self.context_embedding, self.context_encoder, Conditioning()
        )
        return states[-1][0]  # type: ignore[no-any-return]

    def conditioning(self, batch: Batch) -> Conditioning:
        """What is said."""
        return Conditioning(context=self.zeta(batch))


def kl_weight(step: int, updates: int) -> float:
    """The weight of the KL at update `step`: along a tanh, 1/2 at half of `updates`, then 1."""
    if step >= updates:
        return 1.0
    return (math.tanh(_UPDATES_A_RISE * (step / updates - 0.5)) + 1) / 2


def _full_precision(x: Tensor) -> torch.autocast:
    # bfloat16 is too coarse for exponentials and sums over a conversation, and little is saved.
    return torch.autocast(x.device.type, enabled=False)


def _network(sizes: tuple[int, ...], dropout: float) -> nn.Sequential:
    """Linear layers with tanh behind each, dropout before the tanh of all but the last."""
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(sizes):
        layers += [nn.Linear(inputs, outputs), Dropout(dropout), nn.Tanh()]
    del layers[-2]
    return nn.Sequential(*layers)


class BagGaussian(nn.Module):
    """A normal distribution of nu from a bag of words.

    Args:
        words: C, size of the bag.
        latent: size of nu.
        dropout: inside its network.
    """

    def __init__(self, words: int, latent: int, dropout: float) -> None:
        super().__init__()
        self.network = _network((words, *_HIDDEN, words), dropout)
        self.mean = nn.Linear(words, latent)
        self.log_variance = nn.Linear(words, latent)

    def forward(self, bag: Tensor) -> Gaussian:
        """(B, C) counts -> nu of (B, latent)."""
        with _full_precision(bag):
            hidden = self.network(bag)  # (B, C)
            return Gaussian.of(torch.cat([self.mean(hidden), self.log_variance(hidden)], -1))


class TopicInferrer(nn.Module):
    """The topics and how they are inferred.

    Args:
        numbers: the C topical words, by their number in the vocabulary.
        vocabulary: V.
        topics: K.
        latent: size of nu.
        embedding: H, size of the space of topics and topical words.
        dropout: inside the networks.
    """

    topical_index: Tensor

    def __init__(
        self,
        numbers: list[int],
        vocabulary: int,
        topics: int,
        latent: int,
        embedding: int,
        dropout: float,
    ) -> None:
        super().__init__()
        count = len(numbers)  # C
        self.numbers = numbers
        topical_index = torch.full((vocabulary,), count)
        topical_index[torch.tensor(numbers)] = torch.arange(count)
        self.register_buffer(
            "topical_index", topical_index, persistent=False
        )  # C for words that are not topical
        self.prior = BagGaussian(count, latent, dropout)
        self.shares = _network((latent, _SHARE_HIDDEN, topics), dropout)
        self.topics = nn.Parameter(torch.empty(topics, embedding))  # Lambda
        self.words = nn.Parameter(torch.empty(count, embedding))  # F
        for matrix in (self.topics, self.words):
            nn.init.uniform_(matrix, -(embedding**-0.5), embedding**-0.5)

    def bag(self, *tokens: Tensor) -> Tensor:
        """How often each topical word stands in (B, S) tokens, together (B, C)."""
        indices = self.topical_index[torch.cat(tokens, 1)]  # (B, S), C where not topical
        count = len(self.numbers)
        # the last for words that are not topical
        bag = self.words.new_zeros(len(indices), count + 1)
        return bag.scatter_add_(1, indices, torch.ones_like(indices, dtype=bag.dtype))[:, :count]

    def theta(self, nu: Tensor) -> Tensor:
        """(B, latent) -> shares of the topics (B, K), which sum to 1."""
        with _full_precision(nu):
            shares = self.shares(nu)  # (B, K)
            # theta = softmax(LN(tanh MLP(nu)))
            return F.layer_norm(shares, shares.shape[-1:]).softmax(-1)

    def word_logs(self, theta: Tensor) -> Tensor:
        """(B, K) -> log-probabilities of the topical words (B, C): a product of experts."""
        size = self.topics.shape[-1:]
        with _full_precision(theta):
            mixed = F.layer_norm(theta @ self.topics, size)  # LN(theta Lambda), (B, H)
            # log softmax(LN(theta Lambda) LN(F)')
            return (mixed @ F.layer_norm(self.words, size).T).log_softmax(-1)

    def words_nll(self, bag: Tensor, nu: Tensor) -> Tensor:
        """Negative log-likelihood (B,) of the words (B, C) under nu (B, latent)."""
        return -(bag * self.word_logs(self.theta(nu))).sum(-1)

    def closeness(self) -> Tensor:
        """Variance minus mean of the angles between all pairs of topics."""
        unit = F.normalize(self.topics, dim=-1)  # (K, H), of length 1
        # (K, K)
        margin = _ANGLE_MARGIN * torch.eye(len(unit), dtype=unit.dtype, device=unit.device)
        # arccos |cos| of all pairs, (K, K)
        angles = ((unit @ unit.T).abs() - margin).clamp(max=1 - _ANGLE_MARGIN).arccos()
        return angles.var(correction=0) - angles.mean()  # var - mean of the angles

    @torch.no_grad()
    def start_from(self, table: Tensor) -> None:
        """Takes the vectors of its words from a table (V, H) of all."""
        self.words.copy_(table[self.numbers])

    @torch.no_grad()
    def plane(self, lists: Sequence[Sequence[int]]) -> list[list[tuple[float, float]]]:
        """Where t-SNE puts the words of `lists` in a plane (Figure 4); none of fewer than five."""
        from sklearn.manifold import TSNE

        flat = [number for numbers in lists for number in numbers]
        if len(flat) < _FEWEST_POINTS:
            return []
        vectors = self.words[
            self.topical_index[torch.tensor(flat, device=self.topical_index.device)]
        ]
        vectors = F.layer_norm(vectors, vectors.shape[-1:]).double().cpu()  # as they are compared
        # The exact method, so that the number of threads changes nothing.
        sought = TSNE(perplexity=min(30, (len(flat) - 1) / 3), method="exact", random_state=0)
        spots = iter(
            [(round(x, 4), round(y, 4)) for x, y in sought.fit_transform(vectors).tolist()]
        )
        return [[next(spots) for _ in numbers] for numbers in lists]

    def lists(self, count: int) -> list[list[int]]:
        """For each topic the numbers in the vocabulary of its `count` likeliest words."""
        best = (self.topics @ self.words.T).topk(min(count, len(self.numbers))).indices
        return [[self.numbers[i] for i in row] for row in best.tolist()]


class TopicModel(LSTMModel):
    """Weights from the topics.

    Args:
        config: sizes.
        vocabulary: V.
        numbers: the topical words, by their number in the vocabulary.
    """

    # The vectors of topics and words tell what theta means; no response reads them.
    training_only: ClassVar[tuple[str, ...]] = ("posterior", "topics.topics", "topics.words")
    separately_clipped: ClassVar[tuple[str, ...]] = ("posterior", "topics")
    inferring: ClassVar[tuple[str, ...]] = ("posterior", "topics.prior", "topics.shares")
    config: TopicConfig

    def __init__(self, config: TopicConfig, vocabulary: int, numbers: list[int]) -> None:
        super().__init__(config, vocabulary)
        c = config
        sizes = c.topics, c.latent, c.embedding
        self.topics = TopicInferrer(numbers, vocabulary, *sizes, c.dropout)
        self.posterior = BagGaussian(len(numbers), c.latent, c.dropout)

    def cell(self, directions: int, inputs: int) -> Cell:
        """A layer whose weights come from the topics."""
        c = self.config
        if c.cell == "paper":
            return PaperTopicCell(directions, inputs, c.hidden, c.topics)
        return TopicCell(directions, inputs, c.hidden, c.dropout, c.rank, c.topics)

    def prior(self, batch: Batch) -> Gaussian:
        """As the contexts give nu."""
        return self.topics.prior(self.topics.bag(batch.source))  # type: ignore[no-any-return]

    def theta(self, prior: Gaussian, batch: Batch) -> Tensor:
        """(B, K) of nu drawn from the prior; responses send no gradient further back."""
        nu = prior.mean
        if self.training or self.config.topic_draw == "sample":
            nu = prior.sample(noise(batch, self.config.latent))  # nu ~ p(nu | context), (B, z)
        # No gradient of responses reaches theta, as in AdaND's code.
        return self.topics.theta(nu).detach()

    def known(self, batch: Batch, theta: Tensor) -> Conditioning:
        """The conditioning of the cells."""
        return Conditioning(topics=theta)

    def conditioning(self, batch: Batch) -> Conditioning:
        """As `known`, theta from the contexts."""
        return self.known(batch, self.theta(self.prior(batch), batch))

    def loss(self, batch: Batch, step: int) -> Losses:
        """Words of the response, and beside them what the topics learn from."""
        c = self.config
        prior = self.prior(batch)  # p(nu | context)
        conditioning = self.known(batch, self.theta(prior, batch))
        # -log p(Y | X, theta)
        words = word_loss(self.hidden(batch, conditioning), self.output, batch)
        bag = self.topics.bag(batch.source, batch.target)  # (B, C)
        posterior = self.posterior(bag)  # q(nu | context, response)
        topical_nll = self.topics.words_nll(bag, posterior.sample(noise(batch, c.latent)))  # (B,)
        divergence = posterior.divergence(prior)  # KL(q || p), (B,)
        learnt = topical_nll + kl_weight(step, c.topic_annealing) * divergence  # (B,)
        learnt = learnt + c.diversity * self.topics.closeness()  # and the angles of the topics
        sums = {"topical_words": topical_nll.sum().detach(), "kl": divergence.sum().detach()}
        parts, topics = {**words.parts, **sums}, learnt.mean()
        return replace(words, total=words.total + topics, by_example=topics, parts=parts)


class BothModel(TopicModel, ContextModel):
    """Weights from topics and context."""

    config: TopicConfig

    def cell(self, directions: int, inputs: int) -> Cell:
        """A layer whose weights come from both."""
        c = self.config
        if c.cell == "paper":
            return PaperBothCell(directions, inputs, c.hidden, c.rank, c.topics)
        return BothCell(directions, inputs, c.hidden, c.dropout, c.rank, c.topics)

    def known(self, batch: Batch, theta: Tensor) -> Conditioning:
        """What is said and what it is about."""
        return Conditioning(self.zeta(batch), theta)


class AdaNDContext(LSTMAdapter):
    """AdaND with weights from the context."""

    name = "adand-context"
    card = Card(
        title="AdaND (context)",
        family="recurrent",
        summary="an LSTM encoder-decoder whose weights are made from the context, step by step",
        paper=_PAPER,
        year=2019,
    )
    Config = AdaptiveConfig
    config: AdaptiveConfig

    def build_model(self, size: int) -> DialogueModel:
        """The untrained model."""
        return ContextModel(self.config, size)


class LatentTopicAdapter(WordAdapter, NeuralAdapter):
    """What the systems with latent topics share."""

    version = 4
    Config = TopicConfig
    config: TopicConfig
    Model: ClassVar[type[TopicModel]] = TopicModel

    def build_model(self, size: int) -> DialogueModel:
        """The untrained model; before there are words, the first stand for the topical ones."""
        count = self.config.topical_words
        numbers = topical_words(self.vocabulary, count)
        anything = range(len(SPECIALS), min(len(SPECIALS) + count, size))
        return self.Model(self.config, size, numbers or list(anything))

    def start_weights(self, model: DialogueModel) -> None:
        """Lets the vectors of topical words start from those of the vocabulary."""
        super().start_weights(model)
        if self.config.vectors and isinstance(model, TopicModel):
            model.topics.start_from(model.embedding.weight)

    def trainer(self, model: DialogueModel, train: Encoded, valid: Encoded, run: Run) -> Trainer:
        """As of Seq2Seq (LSTM), with a rate of its own for what infers topics."""
        scale = self.config.topic_rate / self.config.learning_rate
        scales = dict.fromkeys(self.Model.inferring, scale)
        return LSTMTrainer(model, train, valid, self.config, run, scales)

    def warnings(self) -> list[str]:
        """A topic variable that carries nothing, or whose KL never had its full weight."""
        updates = self.config.topic_annealing
        return latent_warnings(self.history, ["kl"], updates, kl_weight, "topic_annealing")

    def facts(self) -> Mapping[str, Any]:
        """Also the likeliest words of every topic, likeliest first, and where they lie."""
        facts = super().facts()
        if not isinstance(self.model, TopicModel):
            return facts
        lists = self.model.topics.lists(_WORDS_OF_A_TOPIC)
        words = [self.vocabulary.decode(numbers) for numbers in lists]
        return {**facts, "topics": words, "topic_places": self.model.topics.plane(lists)}


class AdaNDTopic(LatentTopicAdapter):
    """AdaND with weights from latent topics."""

    name = "adand-topic"
    card = Card(
        title="AdaND (topic)",
        family="variational",
        summary="an LSTM encoder-decoder whose weights are made from the conversation's topics",
        paper=_PAPER,
        year=2019,
    )


class AdaND(LatentTopicAdapter):
    """AdaND with weights from both."""

    name = "adand"
    card = Card(
        title="AdaND (both)",
        family="variational",
        summary="an LSTM encoder-decoder whose weights are made from context and topics",
        paper=_PAPER,
        year=2019,
    )
    Model = BothModel
