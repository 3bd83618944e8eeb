"""TA-Seq2Seq of LSTMs: the attentive Seq2Seq that also attends to words of the context's topic.

Baseline "TA-Seq2Seq" of the AdaND paper (section 4.1): topic words, attention to them and their
bonus as in `ta_seq2seq`, on the parts of `seq2seq_lstm`. The decoder's first layer also reads o_i,
for which the state before asks together with the context's summed final state; so training goes
word by word, where its parent reads a response at once. Attention to the context stays behind the
decoder and is not fed back.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from dialbench.adapter import Card
from dialbench.neural.data import Batch
from dialbench.neural.model import DialogueModel, State

from .blocks.lstm import Conditioning, ForwardLSTM, Parts
from .blocks.topic_words import TopicAdapter, TopicAwareModel, TopicWordsConfig
from .seq2seq_lstm import LSTMAdapter, LSTMConfig, LSTMModel
from .text_models.twitter_lda import Topics


@dataclass(frozen=True)
class TASeq2SeqLSTMConfig(LSTMConfig, TopicWordsConfig):
    """The options of `TopicWordsConfig` and `LSTMConfig`."""


class TASeq2SeqLSTMModel(TopicAwareModel, LSTMModel):
    """Seq2Seq of LSTMs, attention to topic words, and their bonus."""

    def __init__(self, config: TASeq2SeqLSTMConfig, vocabulary: int, topics: Topics) -> None:
        super().__init__(config, vocabulary)
        e, h, T = config.embedding, config.hidden, config.lda_topics
        more = (self.cell(1, h) for _ in range(config.recurrent_layers - 1))
        # its first layer reads [E[y]; o_i]
        self.decoder = ForwardLSTM([self.cell(1, e + T), *more], config.dropout)
        self.add_topic_parts(config, topics, 2 * h, h)  # queries [s_(i-1); h_T]

    def state(
        self, batch: Batch, memory: Tensor, states: list[Parts], conditioning: Conditioning
    ) -> State:
        """As of its parent; also the topic words of each context, h_T (B, h)."""
        state = super().state(batch, memory, states, conditioning)
        return replace(state, example={**state.example, **self.topic_state(batch, states[-1][0])})

    def write(self, x: Tensor, state: State) -> tuple[Tensor, list[Parts]]:
        """As of its parent, o_i beside every word."""
        examples, tops, states = len(state.example["numbers"]), [], state.row["states"]  # B
        for word in x.unbind(1):  # (N, e)
            before = states[-1][0]  # s_(i-1), (N, h)
            # o_i, (N, T)
            topic_context = self.topic_context(
                before.view(examples, -1, before.shape[-1]), state
            ).flatten(0, 1)
            read = torch.cat([word, topic_context], -1)[:, None]  # (N, 1, e + T)
            # s_i, (N, 1, h)
            top, states = self.decoder(read, states, state.row["fixed"], state.shared)
            tops.append(top)
        return torch.cat(tops, 1), states

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """(B * width,) tokens -> logits (B * width, V)."""
        readout, state = self.advance(tokens[:, None], state)
        beams = readout.view(len(state.example["numbers"]), -1, readout.shape[-1])  # (B, W, h)
        return self.scores(beams, state).flatten(0, 1), state

    def logits(self, batch: Batch) -> Tensor:
        """(B, T, V) with teacher forcing."""
        state = self.start(batch)
        return self.scores(self.advance(batch.inputs, state)[0], state)


class TASeq2SeqLSTM(TopicAdapter, LSTMAdapter):
    """The topic aware sequence-to-sequence model of LSTMs."""

    name = "ta-seq2seq-lstm"
    version = 3
    card = Card(
        title="TA-Seq2Seq (LSTM)",
        family="recurrent",
        summary="Seq2Seq of LSTMs with attention to words of the context's topic, which it prefers"
        " to say",
        paper="Cai et al., Adaptive Parameterization for Neural Dialogue Generation",
        year=2019,
    )
    Config = TASeq2SeqLSTMConfig
    config: TASeq2SeqLSTMConfig

    def build_model(self, size: int) -> DialogueModel:
        """The untrained model."""
        return TASeq2SeqLSTMModel(self.config, size, self.fitted_or_stand_in_topics(size))
