"""TA-Seq2Seq: S2SA that also attends to words of the message's topic, and prefers to say them.

Xing et al., "Topic Aware Neural Response Generation", baseline "TA-S2S" of the DVS2S paper and
"TA-Seq2Seq" of the AdaND paper (section 4.1). Twitter-LDA, fitted on the training dialogues,
gives a message the topic that its words make likeliest, and the topic's words k_j, each as its
distribution over topics. Against its parent: the decoder also reads o_i = sum_j a_ij k_j, where
a_ij ~ exp(mlp(s_(i-1), k_j, h_T)); and p(w) = (exp Psi_V(w) + [w among the k_j] exp Psi_K(w)) / Z,
where Psi_V and Psi_K read what S2SA's output reads. So without topic words S2SA is left.

The paper bounds both scores by tanh, which cannot make a peaked choice among thousands of words;
`bounded` brings that back.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from dialbench.adapter import Card
from dialbench.neural.data import Batch
from dialbench.neural.model import DialogueModel, State

from .blocks.recurrent import RecurrentDecoderCell
from .blocks.topic_words import TopicAdapter, TopicAwareModel, TopicWordsConfig
from .s2sa import MessageAdapter, S2SAConfig, S2SAModel
from .text_models.twitter_lda import Topics


@dataclass(frozen=True)
class TASeq2SeqConfig(S2SAConfig, TopicWordsConfig):
    """The options of `TopicWordsConfig` and `S2SAConfig`."""

    clip: float = 1.0


class TASeq2SeqModel(TopicAwareModel, S2SAModel):
    """S2SA, attention to topic words, and their bonus."""

    def __init__(self, config: TASeq2SeqConfig, vocabulary: int, topics: Topics) -> None:
        super().__init__(config, vocabulary)
        e, h, T = config.embedding, config.hidden, config.lda_topics
        layers, dropout = config.recurrent_layers, config.recurrent_dropout
        # reads [E[y]; c_i; o_i]
        self.decoder = RecurrentDecoderCell(e + 2 * h + T, h, layers, dropout)
        self.add_topic_parts(config, topics, 3 * h, h)  # queries [s_(i-1); h_T]

    def begin(self, batch: Batch, memory: Tensor, last: Tensor) -> State:
        """Where decoding starts: also the topic words of each message, h_T (B, 2h)."""
        state = super().begin(batch, memory, last)
        return replace(state, example={**state.example, **self.topic_state(batch, last[-1])})

    def advance(self, embedded: Tensor, state: State) -> tuple[Tensor, State]:
        """One word further: its vector (N, e) -> the readout (N, k) and the new state."""
        example, states = state.example, state.row
        # s_(i-1), (B, W, h)
        query = states[-1].view(len(example["memory"]), -1, states[-1].shape[-1])
        attended = self.attention(example["memory"], example["keys"], query, example["seen"])
        # c_i (N, 2h), o_i (N, T)
        attended, topic_context = (
            attended.flatten(0, 1),
            self.topic_context(query, state).flatten(0, 1),
        )
        states = self.decoder(torch.cat([embedded, attended, topic_context], -1), states)  # s_i
        state = replace(state, row=states, length=state.length + 1)
        return self.readout(embedded, states[-1], attended), state

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """(B * width,) tokens -> logits (B * width, V)."""
        readout, state = self.advance(self.embed(tokens), state)
        beams = readout.view(len(state.example["numbers"]), -1, readout.shape[-1])  # (B, W, k)
        return self.scores(beams, state).flatten(0, 1), state  # Psi_V and Psi_K

    def logits(self, batch: Batch) -> Tensor:
        """(B, T, V) with teacher forcing."""
        state = self.start(batch)
        # (B, T, k) readouts: where beams stand in `step`, the words of a response stand here.
        return self.scores(self.teacher_forced(state, batch.inputs), state)


class TASeq2Seq(TopicAdapter, MessageAdapter):
    """The topic aware sequence-to-sequence model."""

    name = "ta-seq2seq"
    version = 4
    card = Card(
        title="TA-Seq2Seq",
        family="recurrent",
        summary="S2SA with attention to words of the message's topic, which it prefers to say",
        paper="Xing et al., Topic Aware Neural Response Generation",
        year=2017,
    )
    Config = TASeq2SeqConfig
    config: TASeq2SeqConfig

    def build_model(self, size: int) -> DialogueModel:
        """The untrained model."""
        return TASeq2SeqModel(self.config, size, self.fitted_or_stand_in_topics(size))
