"""Topics of short messages: Twitter-LDA, fitted by collapsed Gibbs sampling.

Zhao et al., "Comparing Twitter and Traditional Media Using Topic Models" (2011). Every
dialogue has shares of T topics, every message one topic, and every word of it comes from that
topic or from a background that all messages share. Dirichlet priors alpha and beta, and gamma for
how often words are the background's.

Messages are drawn in blocks: each of a block is drawn given all messages outside it, and within
the block the words side by side that stand at the same place. With blocks of one message this is
the collapsed sampler itself; with larger ones it is its parallel approximation (AD-LDA).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from dialbench.neural import checkpoint
from dialbench.neural.data import Ints, PackedSequences
from dialbench.text.vocabulary import SPECIALS

Floats = NDArray[np.float64]
_GAMMA = 20.0  # pseudo-count of words drawn from topics, and of words drawn from the background
_BETA = 0.01  # pseudo-count of each word in each source
_ALPHA_SUM = 50.0  # T alpha: pseudo-count of all topics in a dialogue together
# Sampling alike words of one block side by side is off by at most the block's share of them.
_BLOCKS = 16


@dataclass(frozen=True, eq=False)
class Messages:
    """Messages as numbers of words, and whose they are.

    Attributes:
        words: the words of each message; none is empty.
        dialogues: (M,) the dialogue of each message, from 0.
    """

    words: PackedSequences
    dialogues: Ints

    @classmethod
    def of(cls, messages: Iterable[tuple[int, Sequence[int]]]) -> Messages:
        """From pairs of a dialogue and the words of one of its messages; empty ones are dropped."""
        kept = [(dialogue, words) for dialogue, words in messages if words]
        dialogues = np.array([dialogue for dialogue, _ in kept], np.int64)
        return cls(PackedSequences.of([words for _, words in kept]), dialogues)

    def __len__(self) -> int:
        return len(self.dialogues)


@dataclass(frozen=True, eq=False)
class Topics:
    """What was learnt: how often each word was drawn from each source.

    Attributes:
        words: (T, V) occurrences of each word in each topic.
        background: (V,) occurrences in the background.
        messages: (T,) messages of each topic.
    """

    words: Floats
    background: Floats
    messages: Floats

    @classmethod
    def stand_in(cls, topics: int, vocabulary: int) -> Topics:
        """Words dealt out in turn: what a model is built with before any topics are known."""
        words = np.zeros((topics, vocabulary))
        numbers = np.arange(len(SPECIALS), vocabulary)
        words[numbers % topics, numbers] = 1.0
        return cls(words, np.zeros(vocabulary), np.ones(topics))

    @cached_property
    def logs(self) -> Floats:
        """(V, T) log-probabilities of a word in a message of each topic, from either source."""
        # p(w | z), (T, V)
        topic_share = (self.words + _BETA) / (self.words + _BETA).sum(1, keepdims=True)
        # p(w | B), (V,)
        background_share = (self.background + _BETA) / (self.background + _BETA).sum()
        from_topics, from_background = self.words.sum() + _GAMMA, self.background.sum() + _GAMMA
        weighted = from_topics * topic_share + from_background * background_share  # (T, V)
        logs: Floats = np.log(weighted / (from_topics + from_background)).T
        return logs

    @cached_property
    def prior(self) -> Floats:
        """(T,) log-probabilities of the topic of a message of which nothing is known."""
        shares = self.messages + _ALPHA_SUM / len(self.messages)  # n_z + alpha
        logs: Floats = np.log(shares / shares.sum())
        return logs

    @cached_property
    def of_words(self) -> Floats:
        """(V, T) p(topic | word), rows that sum to 1."""
        joint = (self.words + _BETA).T  # n_zw + beta, (V, T)
        shares: Floats = joint / joint.sum(1, keepdims=True)
        return shares

    def best(self, count: int) -> list[list[int]]:
        """For each topic the numbers of its `count` most frequent words, most frequent first.

        Left out are universal words, which were drawn from the background at least as often as
        from all topics.
        """
        universal = self.background >= self.words.sum(0)  # (V,)
        ranked = np.where(universal, 0.0, self.words)
        order = np.argsort(-ranked, axis=1, kind="stable")[:, :count]  # (T, count)
        return [[int(w) for w in row if ranked[z, w] > 0] for z, row in enumerate(order)]

    def save(self, path: Path) -> None:
        """Writes what `load` reads."""
        checkpoint.write(path, {name: torch.from_numpy(value) for name, value in self._fields()})

    @classmethod
    def load(cls, path: Path) -> Topics:
        """What `save` wrote.

        Raises:
            StorageError: the file is damaged.
        """
        tensors, _ = checkpoint.read(path)
        return cls(*(tensors[name].numpy() for name in ("words", "background", "messages")))

    def _fields(self) -> Iterator[tuple[str, Floats]]:
        yield from (("words", self.words), ("background", self.background))
        yield "messages", self.messages


class Sampler:
    """The state of the chain: a topic for each message, a source for each word, and their counts.

    Args:
        messages: M of them.
        topics: T.
        vocabulary: V.
        seed: from which everything drawn derives.
        block: messages drawn side by side.

    Attributes:
        topic: (M,) the topic of each message.
        from_topic: (tokens,) whether each word comes from the topic of its message.
    """

    def __init__(
        self, messages: Messages, topics: int, vocabulary: int, seed: int, block: int
    ) -> None:
        self.messages, self.T, self.V, self.block = messages, topics, vocabulary, block
        self.random = np.random.default_rng(seed)
        self.alpha = _ALPHA_SUM / topics
        self.topic = self.random.integers(topics, size=len(messages))
        self.from_topic = self.random.random(len(messages.words.values)) < 0.5
        dialogues = int(messages.dialogues.max(initial=-1)) + 1
        self.shares = np.zeros((dialogues, topics))  # messages of each topic in each dialogue
        # n_zw, (V, T): how often word w is drawn from topic z
        self.words = np.zeros((vocabulary, topics))
        self.background = np.zeros(vocabulary)  # n_Bw, (V,)
        self._count(_Block.of(messages, np.arange(len(messages))), 1.0)

    def sweep(self) -> None:
        """Draws every message and word once."""
        order = self.random.permutation(len(self.messages))
        for start in range(0, len(order), self.block):
            block = _Block.of(self.messages, order[start : start + self.block])
            self._count(block, -1.0)  # what is drawn anew must not count for itself
            self.topic[block.rows] = self._draw_topics(block)
            self._count(block, 1.0)
            self._draw_sources(block)

    def topics(self) -> Topics:
        """What the chain has counted."""
        return Topics(self.words.T.copy(), self.background.copy(), self.shares.sum(0))

    def _count(self, block: _Block, sign: float) -> None:
        topic = self.topic[block.rows]
        np.add.at(self.shares, (block.dialogues, topic), sign)
        self._count_words(block.words, topic[block.members], self.from_topic[block.positions], sign)

    def _count_words(self, words: Ints, z: Ints, is_topic: NDArray[np.bool_], sign: float) -> None:
        np.add.at(self.words, (words[is_topic], z[is_topic]), sign)
        np.add.at(self.background, words[~is_topic], sign)

    def _draw_topics(self, block: _Block) -> Ints:
        # p(z | rest) of each message, its words' sources as they are: the words drawn from z come
        # one after the other, so that each counts for those behind it.
        is_topic = self.from_topic[block.positions]
        words, members = block.words[is_topic], block.members[is_topic]
        earlier = _ranks(members * self.V + words)  # the same word of the same message
        before = _ranks(members)  # any word of the same message
        totals = self.words.sum(0) + self.V * _BETA  # n_z + V beta, (T,)
        gained = np.log(self.words[words] + _BETA + earlier[:, None])  # (words drawn from z, T)
        gained -= np.log(totals + before[:, None])
        logs = np.log(self.shares[block.dialogues] + self.alpha)  # (B, T)
        if len(words):
            starts = np.flatnonzero(np.diff(members, prepend=-1))  # the first word of each message
            logs[members[starts]] += np.add.reduceat(gained, starts)
        return _draw(logs, self.random)

    def _draw_sources(self, block: _Block) -> None:
        # The first words of all messages side by side, then the second ones, ...
        topic = self.topic[block.rows]
        for column in block.columns:
            words, z = block.words[column], topic[block.members[column]]
            positions = block.positions[column]
            self._count_words(words, z, self.from_topic[positions], -1.0)
            totals, shared = self.words.sum(0), self.background.sum()
            from_topic = (self.words[words, z] + _BETA) / (totals[z] + self.V * _BETA)  # p(w | z)
            # proportional to p(topic) p(w | z)
            from_topic *= totals.sum() + _GAMMA
            from_all = (self.background[words] + _BETA) / (shared + self.V * _BETA)  # p(w | B)
            from_all *= shared + _GAMMA  # proportional to p(background) p(w | B)
            draws = self.random.random(len(words)) * (from_topic + from_all)
            self.from_topic[positions] = draws < from_topic
            self._count_words(words, z, self.from_topic[positions], 1.0)


@dataclass(frozen=True, eq=False)
class _Block:
    """Some messages, their words one behind the other.

    Attributes:
        rows: (B,) which messages.
        dialogues: (B,) whose they are.
        words: (W,) their words.
        positions: (W,) where these stand among the words of all messages.
        members: (W,) the number in this block of each word's message.
        columns: for each place in a message, which of the W words stand there.
    """

    rows: Ints
    dialogues: Ints
    words: Ints
    positions: Ints
    members: Ints
    columns: list[Ints]

    @classmethod
    def of(cls, messages: Messages, rows: Ints) -> _Block:
        starts, lengths = messages.words.starts[rows], messages.words.lengths[rows]
        members = np.repeat(np.arange(len(rows)), lengths)
        # place in its message
        column = np.arange(len(members)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        positions = np.repeat(starts, lengths) + column
        order = np.argsort(column, kind="stable")
        columns = np.split(order, np.cumsum(np.bincount(column))[:-1]) if len(order) else []
        words = messages.words.values[positions].astype(np.int64)
        return cls(rows, messages.dialogues[rows], words, positions, members, columns)


def _ranks(keys: Ints) -> Ints:
    """For each key, the number of equal ones before it."""
    order = np.argsort(keys, kind="stable")
    sorted_keys = keys[order]
    first = np.flatnonzero(np.diff(sorted_keys, prepend=-1))
    # where each key's run of equals begins
    runs = np.repeat(first, np.diff(first, append=len(keys)))
    ranks = np.empty(len(keys), np.int64)
    ranks[order] = np.arange(len(keys)) - runs
    return ranks


def _draw(logs: Floats, random: np.random.Generator) -> Ints:
    """A column for each row of (B, T) unnormalised log-probabilities."""
    cumulative = np.exp(logs - logs.max(1, keepdims=True)).cumsum(1)  # (B, T)
    target = random.random(len(cumulative)) * cumulative[:, -1]
    columns: Ints = (cumulative <= target[:, None]).sum(1)
    return columns


def fit(messages: Messages, topics: int, vocabulary: int, sweeps: int, seed: int) -> Topics:
    """The topics of the messages after `sweeps` sweeps.

    Args:
        messages: training messages.
        topics: T.
        vocabulary: V.
        sweeps: how often everything is drawn.
        seed: the same gives the same topics.
    """
    sampler = Sampler(messages, topics, vocabulary, seed, max(1, -(-len(messages) // _BLOCKS)))
    for _ in range(sweeps):
        sampler.sweep()
    return sampler.topics()
