"""Seq2Seq of LSTMs with attention behind the decoder.

Baseline "Seq2Seq" of the AdaND paper, laid out as in its code (section 4.3). A 2-layer
bidirectional LSTM reads the context; the final states of its two directions are summed and start
a 2-layer LSTM, whose current top state asks "general" attention. What attention gives is not fed
to the next step, so training runs over a whole response at once. Tables of words are separate.

As in the code, a tenth of the context's tokens, separators of turns among them, become UNK in
training, and AMSGrad trains with a weight decay of 3e-7. The paper says 3e-5, which as an addend to
the gradient is heavy on gains and word vectors. It validates twice an epoch and stops after ten
validations without gain; here five whole epochs stand for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from dialbench.adapter import Card, Run
from dialbench.neural.adapter import NeuralAdapter, NeuralConfig
from dialbench.neural.data import Batch, Encoded
from dialbench.neural.dropout import Dropout
from dialbench.neural.model import DialogueModel, Losses, State, WordOutput, word_loss
from dialbench.neural.training import Trainer
from dialbench.text.vocabulary import PAD

from .blocks.embedding import (
    WordAdapter,
    WordEmbedding,
    WordStart,
    WordTable,
    drop_words,
)
from .blocks.lstm import (
    BidirectionalLSTM,
    Cell,
    Conditioning,
    ForwardLSTM,
    GeneralAttention,
    LSTMCell,
    Parts,
)


@dataclass(frozen=True)
class LSTMConfig(WordTable, WordStart, NeuralConfig):
    """What every LSTM system of the AdaND paper has; defaults are the paper's or its code's.

    Attributes:
        hidden: h, of every direction.
        recurrent_layers: stacked layers on both sides.
        dropout: on word vectors, between layers and before the output.
        context_drop: chance of a context token, separators of turns among them, to become UNK in
            training.
        weight_decay: times the weights, added to the gradient.
    """

    # AdaND, section 4.3; clip, context_drop and weight_decay as in its code
    context_tokens: int = 50
    response_tokens: int = 50
    learning_rate: float = 1e-3
    batch_size: int = 128
    warmup: float = 0
    clip: float = 0.1
    patience: int = 5
    hidden: int = 300
    recurrent_layers: int = 2
    dropout: float = 0.1
    context_drop: float = 0.1
    weight_decay: float = 3e-7

    positive: ClassVar[tuple[str, ...]] = ("hidden", "recurrent_layers")
    not_negative: ClassVar[tuple[str, ...]] = ("weight_decay",)
    rates: ClassVar[tuple[str, ...]] = ("dropout", "context_drop")


class LSTMModel(DialogueModel):
    """Encoder, decoder and attention over V words; what its cells are and know may vary."""

    def __init__(self, config: LSTMConfig, vocabulary: int) -> None:
        super().__init__()
        self.config = config
        e, h, dropout = config.embedding, config.hidden, config.dropout
        more = range(config.recurrent_layers - 1)
        self.embedding = WordEmbedding(vocabulary, e, config.word_spread)  # of the context's words
        self.encoder = BidirectionalLSTM(  # AdaND, eq. 4
            [self.cell(2, e), *(self.cell(2, 2 * h) for _ in more)], dropout
        )
        # of the response's words
        self.response_embedding = WordEmbedding(vocabulary, e, config.word_spread)
        # one direction
        self.decoder = ForwardLSTM([self.cell(1, e), *(self.cell(1, h) for _ in more)], dropout)
        self.attention: nn.Module = GeneralAttention(2 * h, h)  # asks h_j (2h) with s_t (h)
        self.output = WordOutput(h, vocabulary)  # p(y_t | s), eq. 2
        self.dropout = Dropout(dropout)

    def cell(self, directions: int, inputs: int) -> Cell:
        """A layer of the encoder (two directions) or the decoder (one)."""
        return LSTMCell(directions, inputs, self.config.hidden)

    def conditioning(self, batch: Batch) -> Conditioning:
        """The conditioning of the cells; none here."""
        return Conditioning()

    def read(
        self, source: Tensor, table: nn.Module, encoder: nn.Module, conditioning: Conditioning
    ) -> Tensor:
        """Outputs and final states of a bidirectional encoder that reads (B, S) tokens."""
        words = drop_words(source, self.config.context_drop) if self.training else source  # (B, S)
        return encoder(self.dropout(table(words)), source.ne(PAD), conditioning)  # type: ignore[no-any-return]

    def start(self, batch: Batch) -> State:
        """Reads the contexts."""
        return self.begin(batch, self.conditioning(batch))

    def begin(self, batch: Batch, conditioning: Conditioning) -> State:
        """As `start`, from what is known of the conversations."""
        # h_j (B, S, 2h)
        memory, states = self.read(batch.source, self.embedding, self.encoder, conditioning)
        return self.state(batch, memory, states, conditioning)

    def state(
        self, batch: Batch, memory: Tensor, states: list[Parts], conditioning: Conditioning
    ) -> State:
        """Where writing begins: with outputs (B, S, 2h) of the encoder to attend to.

        Args:
            batch: the contexts.
            memory: those outputs.
            states: of every layer of the decoder, (B, part) each.
            conditioning: what its cells know of the conversations.
        """
        example = {"memory": memory, "seen": batch.source.ne(PAD)}  # (B, S, 2h), (B, S)
        # (B, size) each
        row = {"states": states, "fixed": self.decoder.per_conversation(conditioning)}
        return State(example, row, shared=self.decoder.packed_weights())

    def advance(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """(N, T) tokens -> (N, T, h), and the state behind them; beams share their memory."""
        example, row = state.example, state.row
        # s_t, (N, T, h)
        tops, states = self.write(self.dropout(self.response_embedding(tokens)), state)
        examples = len(example["memory"])
        queries = tops.reshape(examples, -1, tops.shape[-1])  # (B, W * T, h)
        # s~_t = tanh(W_c [s_t; sum_j a_tj h_j]) with a_tj = softmax_j(s_t W h_j)
        attended = self.attention(queries, example["memory"], example["seen"])
        after = replace(state, row={**row, "states": states}, length=state.length + 1)
        return self.dropout(attended).view_as(tops), after  # (N, T, h)

    def write(self, x: Tensor, state: State) -> tuple[Tensor, list[Parts]]:
        """(N, T, e) words -> (N, T, h) top states, and the states of all layers behind them."""
        row = state.row
        return self.decoder(x, row["states"], row["fixed"], state.shared)  # type: ignore[no-any-return]

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """(B * width,) tokens -> logits (B * width, V)."""
        tops, state = self.advance(tokens[:, None], state)  # (B * width, 1, h)
        return self.output(tops[:, 0]), state

    def hidden(self, batch: Batch, conditioning: Conditioning) -> Tensor:
        """(B, T, h) what the output reads with teacher forcing."""
        return self.advance(batch.inputs, self.begin(batch, conditioning))[0]

    def logits(self, batch: Batch) -> Tensor:
        """(B, T, V) with teacher forcing, under the conditioning that answering has."""
        return self.output(self.hidden(batch, self.conditioning(batch)))  # type: ignore[no-any-return]

    def loss(self, batch: Batch, step: int) -> Losses:
        """Negative log-likelihood, mean over real target tokens."""
        return word_loss(self.hidden(batch, self.conditioning(batch)), self.output, batch)


class LSTMTrainer(Trainer):
    """Trains by AMSGrad with weight decay in the gradient.

    Args:
        model, train, valid, config, run: as of `Trainer`.
        scales: by a part of the model, how many times the rate it learns at; 1 where not named.
    """

    def __init__(
        self,
        model: DialogueModel,
        train: Encoded,
        valid: Encoded,
        config: LSTMConfig,
        run: Run,
        scales: Mapping[str, float] | None = None,
    ) -> None:
        super().__init__(model, train, valid, config, run)
        self.optimiser = torch.optim.Adam(
            _groups(model, scales or {}),
            lr=config.learning_rate,
            weight_decay=config.weight_decay,
            # AdaND's code
            amsgrad=True,
            fused=True,
        )


def _groups(model: nn.Module, scales: Mapping[str, float]) -> list[dict[str, Any]]:
    groups: dict[float, list[nn.Parameter]] = {}
    for name, parameter in model.named_parameters():
        scale = next((scales[part] for part in scales if name.startswith(f"{part}.")), 1.0)
        groups.setdefault(scale, []).append(parameter)
    return [{"params": parameters, "rate_scale": scale} for scale, parameters in groups.items()]


class LSTMAdapter(WordAdapter, NeuralAdapter):
    """What the LSTM systems share."""

    config: LSTMConfig

    def trainer(self, model: DialogueModel, train: Encoded, valid: Encoded, run: Run) -> Trainer:
        """Adam as the AdaND paper's code has it."""
        return LSTMTrainer(model, train, valid, self.config, run)


class Seq2SeqLSTM(LSTMAdapter):
    """Seq2Seq of LSTMs."""

    name = "seq2seq-lstm"
    card = Card(
        title="Seq2Seq (LSTM)",
        family="recurrent",
        summary="LSTM encoder-decoder with attention behind the decoder",
        paper="Cai et al., Adaptive Parameterization for Neural Dialogue Generation",
        year=2019,
    )
    Config = LSTMConfig
    config: LSTMConfig

    def build_model(self, size: int) -> DialogueModel:
        """The untrained model."""
        return LSTMModel(self.config, size)
