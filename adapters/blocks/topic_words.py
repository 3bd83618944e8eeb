"""Words of a message's topic, attended to and given extra probability (Xing et al., 2017)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from dialbench.adapter import Run
from dialbench.neural.adapter import NeuralAdapter, NeuralConfig
from dialbench.neural.data import Batch
from dialbench.neural.model import (
    DialogueModel,
    Losses,
    State,
    WordOutput,
    precise_answers,
    word_loss,
)
from dialbench.neural.randomness import seed_of
from dialbench.records import Split
from dialbench.text.vocabulary import PAD, Vocabulary

from ..text_models import twitter_lda
from ..text_models.topical_words import topical_words
from ..text_models.twitter_lda import Messages, Topics
from .embedding import CORPUS, WordStart, WordTable
from .recurrent import AdditiveAttention

_WORDS_PER_TOPIC = 10


@dataclass(frozen=True)
class TopicWordsConfig(WordTable, WordStart, NeuralConfig):
    """The topic model, and how its words are preferred.

    Attributes:
        lda_topics: T; the paper has 200 for 5 million pairs.
        topic_words: the most topic words that a message gets.
        sweeps: of Gibbs sampling.
        bounded: whether tanh bounds the scores of words.
    """

    lda_topics: int = 50
    topic_words: int = 100
    sweeps: int = 1_000
    bounded: bool = False

    positive: ClassVar[tuple[str, ...]] = ("lda_topics", "topic_words", "sweeps")


class TopicWords(nn.Module):
    """The fitted topic model as buffers that are not trained.

    Args:
        topics: the fitted topic model over V words.
        count: K, the most words of a topic.
    """

    logs: Tensor
    prior: Tensor
    of_words: Tensor
    numbers: Tensor
    rows: Tensor

    def __init__(self, topics: Topics, count: int) -> None:
        super().__init__()
        numbers = np.full((len(topics.messages), count), PAD)  # PAD behind the last
        for row, words in enumerate(topics.best(count)):
            numbers[row, : len(words)] = words
        distinct, rows = np.unique(numbers, return_inverse=True)
        self.distinct = len(distinct)
        logs, of_words = topics.logs.copy(), topics.of_words.copy()
        logs[topics.words.sum(0) + topics.background == 0] = 0.0  # words that tell nothing
        of_words[PAD] = 0.0
        fixed = {
            "logs": logs.astype(np.float32),  # (V, T) log-probabilities of words, by topic
            "prior": topics.prior.astype(np.float32),  # (T,)
            "of_words": of_words.astype(np.float32),  # (V, T) p(topic | word), 0 for PAD
            "numbers": numbers,  # (T, K) the words of each topic
            "rows": rows.reshape(numbers.shape),  # (T, K) their places among the distinct ones
        }
        for name, value in fixed.items():
            self.register_buffer(name, torch.from_numpy(value), persistent=False)

    def infer(self, source: Tensor) -> Tensor:
        """(B, S) tokens -> (B,) the likeliest topic of each message."""
        return (self.prior + self.logs[source].sum(1)).argmax(-1)


class TopicAwareModel(DialogueModel):
    """A model that attends to topic words and adds their scores to those of all words.

    Attributes:
        output: from a readout to Psi_V, the scores of all V words.
    """

    fixed_tables: ClassVar[tuple[str, ...]] = ("topics.of_words",)
    output: WordOutput

    def add_topic_parts(
        self, config: TopicWordsConfig, topics: Topics, asked: int, hidden: int
    ) -> None:
        """Adds attention to topic words and their scores.

        Args:
            config: sizes.
            topics: the fitted topic model.
            asked: size of the query of attention, the decoder's state and the message's.
            hidden: of that attention.
        """
        readout = self.output.in_features
        self.topics = TopicWords(topics, config.topic_words)
        self.topic_attention = AdditiveAttention(config.lda_topics, asked, hidden)
        self.bonus = nn.Embedding(self.topics.distinct, readout + 1)
        bound = readout**-0.5
        nn.init.uniform_(self.bonus.weight, -bound, bound)  # as that of the output
        self.bounded = config.bounded

    @torch.no_grad()
    def start_bonus(self, config: TopicWordsConfig) -> None:
        """Starts Psi_K with the maps and biases of Psi_V where those start from the corpus.

        Scores of 0 beside log-frequencies would give topic words nearly all of the probability.
        """
        words, rows = self.topics.numbers.flatten(), self.topics.rows.flatten()  # (T * K,)
        if config.output_start == CORPUS:
            self.bonus.weight[rows, :-1] = self.output.weight[words]
        if config.output_bias == "unigram":
            self.bonus.weight[rows, -1] = self.output.bias[words]

    def topic_state(self, batch: Batch, message: Tensor) -> dict[str, Tensor]:
        """What the decoder needs of each example: its topic words, and h_T (B, n) for the query."""
        topic = self.topics.infer(batch.source)
        numbers = self.topics.numbers[topic]  # (B, K)
        words = self.topics.of_words[numbers].to(message.dtype)  # (B, K, T)
        return {
            "message": message,
            "numbers": numbers,
            "words": words,
            "word_keys": self.topic_attention.key(words),  # (B, K, hidden)
            "bonus": self.bonus(self.topics.rows[topic]),  # (B, K, k + 1)
        }

    def topic_context(self, query: Tensor, state: State) -> Tensor:
        """o, (B, W, T), for states (B, W, h); 0 where a message has no topic words."""
        example = state.example
        message = example["message"][:, None].expand(-1, query.shape[1], -1)
        is_word = example["numbers"].ne(PAD)  # (B, K)
        seen = is_word | ~is_word.any(1, keepdim=True)  # a softmax over nothing is NaN
        queries = torch.cat([query, message], -1)
        return self.topic_attention(example["words"], example["word_keys"], queries, seen)  # type: ignore[no-any-return]

    def scores(self, readouts: Tensor, state: State) -> Tensor:
        """(B, W, k) readouts -> logits (B, W, V), log(exp Psi_V + exp Psi_K) at topic words."""
        with precise_answers(self):
            return self._scores(readouts, state)

    def _scores(self, readouts: Tensor, state: State) -> Tensor:
        numbers, bonus = state.example["numbers"], state.example["bonus"]
        every = self._bound(self.output(readouts))  # Psi_V, (B, W, V)
        readouts = readouts if self.training else readouts.to(bonus.dtype)
        bonus_scores = readouts @ bonus[..., :-1].transpose(1, 2) + bonus[:, None, :, -1]
        word_numbers = numbers[:, None].expand(-1, readouts.shape[1], -1)  # (B, W, K)
        # bfloat16 is too coarse for a difference and its exponential, and on a CPU autocast leaves
        # logaddexp in the precision that it is given.
        precision = torch.promote_types(every.dtype, torch.float32)
        # Psi_K - Psi_V, (B, W, K)
        ahead = self._bound(bonus_scores).to(precision) - every.gather(2, word_numbers)
        # log(exp Psi_V + exp Psi_K) - Psi_V = log(1 + exp(Psi_K - Psi_V)), (B, W, K)
        gained = torch.logaddexp(ahead, torch.zeros_like(ahead))
        gained = gained.masked_fill(word_numbers.eq(PAD), 0.0)
        return every.scatter_add(2, word_numbers, gained.to(every.dtype))

    def _bound(self, scores: Tensor) -> Tensor:
        return scores.tanh() if self.bounded else scores

    def logits(self, batch: Batch) -> Tensor:
        """(B, T, V) with teacher forcing."""
        raise NotImplementedError

    def loss(self, batch: Batch, step: int) -> Losses:
        """Negative log-likelihood, mean over real target tokens."""
        return word_loss(self.logits(batch), nn.Identity(), batch)


def messages(train: Split, vocabulary: Vocabulary) -> Messages:
    """Every turn of the training dialogues once, of its words those that are topical."""
    return Messages.of(_messages(train, vocabulary))


def _messages(train: Split, vocabulary: Vocabulary) -> Iterator[tuple[int, list[int]]]:
    topical = set(topical_words(vocabulary, len(vocabulary)))
    dialogues: dict[str, dict[str, None]] = {}
    for example in train:
        turns = (*example.context, *example.references[:1])
        dialogues.setdefault(example.dialogue_id, {}).update(dict.fromkeys(turns))
    for number, distinct in enumerate(dialogues.values()):
        for turn in distinct:
            yield number, [n for n in vocabulary.read(turn) if n in topical]


class TopicAdapter(NeuralAdapter):
    """Base of the systems with topic words: fits a topic model, then trains the model."""

    config: TopicWordsConfig
    topics: Topics | None = None

    def fitted_or_stand_in_topics(self, size: int) -> Topics:
        """The fitted topics; before that, meaningless ones over `size` words."""
        return self.topics or Topics.stand_in(self.config.lda_topics, size)

    def fit(self, train: Split, valid: Split, run: Run) -> None:
        """Fits the topics, then trains the model; both go on where a killed run left them."""
        vocabulary = self.known_words(train)
        kept = run.folder / "topics.safetensors"
        if not kept.exists():
            c, seed = self.config, seed_of(run.seed, "topics")
            read = messages(train, vocabulary)
            twitter_lda.fit(read, c.lda_topics, len(vocabulary), c.sweeps, seed).save(kept)
        self.topics = Topics.load(kept)
        super().fit(train, valid, run)

    def start_weights(self, model: DialogueModel) -> None:
        """Lets topic words start as likely as their frequencies say."""
        super().start_weights(model)
        if isinstance(model, TopicAwareModel):
            model.start_bonus(self.config)

    def save_vocabulary(self, folder: Path) -> None:
        """Writes vocabulary.json and topics.safetensors."""
        super().save_vocabulary(folder)
        if self.topics is not None:
            self.topics.save(folder / "topics.safetensors")

    def load_vocabulary(self, folder: Path) -> None:
        """Reads what `save_vocabulary` wrote."""
        super().load_vocabulary(folder)
        self.topics = Topics.load(folder / "topics.safetensors")

    def facts(self) -> Mapping[str, Any]:
        """Also the most frequent words of every topic, most frequent first."""
        lists = self.topics.best(_WORDS_PER_TOPIC) if self.topics else []
        return {**super().facts(), "topics": [self.vocabulary.decode(row) for row in lists]}
