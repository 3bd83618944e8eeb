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

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from torch import Tensor

from dialbench.adapter import Card, Run
from dialbench.neural.data import Batch, Encoded
from dialbench.neural.model import DialogueModel, Losses, word_loss
from dialbench.neural.training import Trainer
from dialbench.text.vocabulary import SPECIALS

from .blocks.adaptive import BothCell, ContextCell, TopicCell
from .blocks.adaptive_paper import PaperBothCell, PaperContextCell, PaperTopicCell
from .blocks.embedding import WordEmbedding
from .blocks.latent import Gaussian, latent_warnings, noise
from .blocks.lstm import BothWays, Cell, Given, NormedLSTMCell
from .blocks.topics import BagGaussian, TopicInferrer, kl_weight, topical_words
from .seq2seq_lstm import LSTMAdapter, LSTMConfig, LSTMModel, LSTMTrainer

_WORDS_OF_A_TOPIC = 10
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

    def __post_init__(self) -> None:
        super().__post_init__()
        self.demand_positive("rank")


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
        topic_draw: whether an answer draws nu from the prior or takes its mean.
    """

    topics: int = 5
    topical_words: int = 3_159
    latent: int = 64
    topic_rate: float = 1e-3
    topic_annealing: int = 3_500
    diversity: float = 0.1
    topic_draw: Literal["sample", "mean"] = "sample"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.demand_positive("topical_words", "latent", "topic_rate")
        if self.topics < 2:
            raise ValueError("topics must be at least 2")
        self.demand_not_negative("topic_annealing", "diversity")


class ContextModel(LSTMModel):
    """Weights from the context."""

    config: AdaptiveConfig

    def __init__(self, config: AdaptiveConfig, vocabulary: int) -> None:
        super().__init__(config, vocabulary)
        e, h, dropout = config.embedding, config.hidden, config.dropout
        sizes = [e] + [2 * h] * (config.recurrent_layers - 1)
        self.context_embedding = WordEmbedding(vocabulary, e, config.word_spread)
        self.context_encoder = BothWays(
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
        _, states = self.read(batch.source, self.context_embedding, self.context_encoder, Given())
        return states[-1][0]  # type: ignore[no-any-return]

    def given(self, batch: Batch) -> Given:
        """What is said."""
        return Given(context=self.zeta(batch))


class TopicModel(LSTMModel):
    """Weights from the topics.

    Args:
        config: sizes.
        vocabulary: V.
        numbers: the topical words, by their number in the vocabulary.
    """

    # The vectors of topics and words tell what theta means; no answer reads them.
    training_only: ClassVar[tuple[str, ...]] = ("posterior", "topics.topics", "topics.words")
    apart: ClassVar[tuple[str, ...]] = ("posterior", "topics")
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
            nu = prior.sample(noise(batch, self.config.latent))
        return self.topics.theta(nu).detach()

    def known(self, batch: Batch, theta: Tensor) -> Given:
        """What cells know of the conversations."""
        return Given(topics=theta)

    def given(self, batch: Batch) -> Given:
        """As `known`, theta from the contexts."""
        return self.known(batch, self.theta(self.prior(batch), batch))

    def loss(self, batch: Batch, step: int) -> Losses:
        """Words of the response, and beside them what the topics learn from."""
        c = self.config
        prior = self.prior(batch)
        given = self.known(batch, self.theta(prior, batch))
        words = word_loss(self.hidden(batch, given), self.output, batch)
        bag = self.topics.bag(batch.source, batch.target)
        posterior = self.posterior(bag)
        told = self.topics.words_nll(bag, posterior.sample(noise(batch, c.latent)))
        divergence = posterior.divergence(prior)
        learnt = told + kl_weight(step, c.topic_annealing) * divergence  # (B,)
        learnt = learnt + c.diversity * self.topics.closeness()
        sums = {"topical_words": told.sum().detach(), "kl": divergence.sum().detach()}
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

    def known(self, batch: Batch, theta: Tensor) -> Given:
        """What is said and what it is about."""
        return Given(self.zeta(batch), theta)


class AdaNDContext(LSTMAdapter):
    """AdaND with weights from the context."""

    name = "adand-context"
    card = Card(
        title="AdaND (context)",
        family="recurrent",
        summary="an LSTM encoder-decoder whose weights are made from the context, step by step",
        paper=_PAPER,
        year=2020,
    )
    Config = AdaptiveConfig
    config: AdaptiveConfig

    def build_model(self, size: int) -> DialogueModel:
        """The untrained model."""
        return ContextModel(self.config, size)


class AdaNDTopic(LSTMAdapter):
    """AdaND with weights from latent topics."""

    name = "adand-topic"
    card = Card(
        title="AdaND (topic)",
        family="variational",
        summary="an LSTM encoder-decoder whose weights are made from the conversation's topics",
        paper=_PAPER,
        year=2020,
    )
    version = 3
    Config = TopicConfig
    config: TopicConfig
    Model: ClassVar[type[TopicModel]] = TopicModel

    def build_model(self, size: int) -> DialogueModel:
        """The untrained model; before there are words, the first stand for the topical ones."""
        count = self.config.topical_words
        numbers = topical_words(self.vocabulary, count)
        anything = range(len(SPECIALS), min(len(SPECIALS) + count, size))
        return self.Model(self.config, size, numbers or list(anything))

    def _fresh_model(self, run: Run) -> DialogueModel:
        model = super()._fresh_model(run)
        if self.config.vectors and isinstance(model, TopicModel):
            model.topics.start_from(model.embedding.weight)
        return model

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


class AdaND(AdaNDTopic):
    """AdaND with weights from both."""

    name = "adand"
    card = Card(
        title="AdaND (both)",
        family="variational",
        summary="an LSTM encoder-decoder whose weights are made from context and topics",
        paper=_PAPER,
        year=2020,
    )
    Model = BothModel
