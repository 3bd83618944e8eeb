"""TA-Seq2Seq: S2SA that also attends to words of the message's topic, and prefers to say them.

Xing et al., "Topic Aware Neural Response Generation", baseline "TA-S2S" of the DVS2S paper and
"TA-Seq2Seq" of the AdaND paper (models.md C3). Twitter-LDA, fitted on the training dialogues,
gives a message the topic that its words make likeliest, and the topic's words k_j, each as its
distribution over topics. Against its parent: the decoder also reads o_i = sum_j a_ij k_j, where
a_ij ~ exp(mlp(s_(i-1), k_j, h_T)); and p(w) = (exp Psi_V(w) + [w among the k_j] exp Psi_K(w)) / Z,
where Psi_V and Psi_K read what S2SA's output reads. So without topic words S2SA is left.

The paper bounds both scores by tanh, which cannot make a peaked choice among thousands of words;
`bounded` brings that back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from dialbench.adapter import Card, Run
from dialbench.neural.data import Batch, build_vocabulary
from dialbench.neural.model import DialogueModel, Losses, State, word_loss
from dialbench.neural.randomness import seed_of
from dialbench.records import Split
from dialbench.text.vocabulary import PAD, Vocabulary

from .blocks import twitter_lda
from .blocks.recurrent import AdditiveAttention, RecurrentDecoderCell
from .blocks.topics import topical_words
from .blocks.twitter_lda import Messages, Topics
from .s2sa import MessageAdapter, S2SAConfig, S2SAModel

_TOLD = 10


@dataclass(frozen=True)
class TASeq2SeqConfig(S2SAConfig):
    """The topic model, and what `S2SAConfig` says.

    Attributes:
        lda_topics: T; the paper has 200 for 5 million pairs.
        topic_words: the most topic words that a message gets.
        sweeps: of Gibbs sampling.
        bounded: whether tanh bounds the scores of words.
    """

    clip: float = 1.0
    lda_topics: int = 50
    topic_words: int = 100
    sweeps: int = 1_000
    bounded: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self.demand_positive("lda_topics", "topic_words", "sweeps")


class TopicWords(nn.Module):
    """What is fixed once the topic model is: buffers that are not trained.

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


class TASeq2SeqModel(S2SAModel):
    """S2SA, attention to topic words, and their bonus."""

    def __init__(self, config: TASeq2SeqConfig, vocabulary: int, topics: Topics) -> None:
        super().__init__(config, vocabulary)
        e, h, T = config.embedding, config.hidden, config.lda_topics
        layers, dropout = config.recurrent_layers, config.recurrent_dropout
        self.topics = TopicWords(topics, config.topic_words)
        self.topic_attention = AdditiveAttention(T, 3 * h, h)
        self.decoder = RecurrentDecoderCell(e + 2 * h + T, h, layers, dropout)
        self.bonus = nn.Embedding(self.topics.distinct, self.readout_size(config) + 1)
        bound = self.readout_size(config) ** -0.5
        nn.init.uniform_(self.bonus.weight, -bound, bound)  # as that of the output
        self.bounded = config.bounded

    def begin(self, batch: Batch, memory: Tensor, last: Tensor) -> State:
        """Where decoding starts: also the topic words of each message."""
        state = super().begin(batch, memory, last)
        topic = self.topics.infer(batch.source)
        numbers = self.topics.numbers[topic]  # (B, K)
        words = self.topics.of_words[numbers].to(memory.dtype)  # (B, K, T)
        example = {
            **state.example,
            "message": last[-1],  # h_T (B, 2h)
            "numbers": numbers,
            "words": words,
            "word_keys": self.topic_attention.key(words),  # (B, K, h)
            "bonus": self.bonus(self.topics.rows[topic]),  # (B, K, k + 1)
        }
        return replace(state, example=example)

    def about(self, query: Tensor, state: State) -> Tensor:
        """o, (B, W, T), for states (B, W, h); 0 where a message has no topic words."""
        example = state.example
        told = example["message"][:, None].expand(-1, query.shape[1], -1)
        there = example["numbers"].ne(PAD)
        seen = there | ~there.any(1, keepdim=True)  # as a softmax of nothing is no number
        asked = torch.cat([query, told], -1)
        return self.topic_attention(example["words"], example["word_keys"], asked, seen)  # type: ignore[no-any-return]

    def advance(self, embedded: Tensor, state: State) -> tuple[Tensor, State]:
        """One word further: its vector (N, e) -> the readout (N, k) and the new state."""
        example, states = state.example, state.row
        query = states[-1].view(len(example["memory"]), -1, states[-1].shape[-1])  # (B, W, h)
        mixed = self.attention(example["memory"], example["keys"], query, example["seen"])
        mixed, about = mixed.flatten(0, 1), self.about(query, state).flatten(0, 1)
        states = self.decoder(torch.cat([embedded, mixed, about], -1), states)
        state = replace(state, row=states, length=state.length + 1)
        return self.readout(embedded, states[-1], mixed), state

    def scores(self, readouts: Tensor, state: State) -> Tensor:
        """(B, W, k) readouts -> logits (B, W, V), log(exp Psi_V + exp Psi_K) at topic words."""
        numbers, bonus = state.example["numbers"], state.example["bonus"]
        every = self._bound(self.output(readouts))  # Psi_V
        topical = readouts @ bonus[..., :-1].transpose(1, 2) + bonus[:, None, :, -1]
        places = numbers[:, None].expand(-1, readouts.shape[1], -1)  # (B, W, K)
        ahead = self._bound(topical) - every.gather(2, places)  # Psi_K - Psi_V
        gained = torch.logaddexp(ahead, torch.zeros_like(ahead))
        return every.scatter_add(2, places, gained.masked_fill(places.eq(PAD), 0.0))

    def _bound(self, scores: Tensor) -> Tensor:
        return scores.tanh() if self.bounded else scores

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """(B * width,) tokens -> logits (B * width, V)."""
        readout, state = self.advance(self.embed(tokens), state)
        beams = readout.view(len(state.example["numbers"]), -1, readout.shape[-1])
        return self.scores(beams, state).flatten(0, 1), state

    def logits(self, batch: Batch) -> Tensor:
        """(B, T, V) under the true response."""
        state = self.start(batch)
        return self.scores(self.under(state, batch.inputs), state)

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


class TASeq2Seq(MessageAdapter):
    """The topic aware sequence-to-sequence model."""

    name = "ta-seq2seq"
    version = 2
    card = Card(
        title="TA-Seq2Seq",
        family="recurrent",
        summary="S2SA with attention to words of the message's topic, which it prefers to say",
        paper="Xing et al., Topic Aware Neural Response Generation",
        year=2017,
    )
    Config = TASeq2SeqConfig
    config: TASeq2SeqConfig
    topics: Topics | None = None

    def build_model(self, size: int) -> DialogueModel:
        """The untrained model; before topics are fitted, with some that mean nothing."""
        topics = self.topics or Topics.stand_in(self.config.lda_topics, size)
        return TASeq2SeqModel(self.config, size, topics)

    def fit(self, train: Split, valid: Split, run: Run) -> None:
        """Fits the topics, then trains the model; both go on where a killed run left them."""
        vocabulary = build_vocabulary(train, self.config.vocabulary)
        kept = run.folder / "topics.safetensors"
        if not kept.exists():
            c, seed = self.config, seed_of(run.seed, "topics")
            read = messages(train, vocabulary)
            twitter_lda.fit(read, c.lda_topics, len(vocabulary), c.sweeps, seed).save(kept)
        self.topics = Topics.load(kept)
        super().fit(train, valid, run)

    def save_words(self, folder: Path) -> None:
        """Writes vocabulary.json and topics.safetensors."""
        super().save_words(folder)
        if self.topics is not None:
            self.topics.save(folder / "topics.safetensors")

    def load_words(self, folder: Path) -> None:
        """Reads what `save_words` wrote."""
        super().load_words(folder)
        self.topics = Topics.load(folder / "topics.safetensors")

    def facts(self) -> Mapping[str, Any]:
        """Also the most frequent words of every topic, most frequent first."""
        lists = self.topics.best(_TOLD) if self.topics else []
        return {**super().facts(), "topics": [self.vocabulary.decode(row) for row in lists]}
