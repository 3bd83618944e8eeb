"""S2SA-MMI: the hypotheses of S2SA's beam search, re-ranked by how well they predict the message.

Baseline "S2SA-MMI" of the DVS2S paper after Li et al. (MMI-bidi). A second S2SA is
trained to write the message from the response. Of the hypotheses r of a message m the one with the
highest (1 - lambda) log p(r | m) / |r| + lambda log p(m | r) / |m| is the response, EOS counted in
both lengths: summed, |r| would decide. The code of MMI weighs both sums alike, hence lambda = 0.5.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, ClassVar, cast

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from dialbench.adapter import Adapter, Card, Run
from dialbench.neural.data import Batch, Encoded, PackedSequences
from dialbench.neural.decoding import Hypothesis, beam_search
from dialbench.neural.model import DialogueModel, Losses, State
from dialbench.records import Context, Decoding, Split
from dialbench.text.vocabulary import EOS, PAD, UNK

from .blocks.bases import append_epoch, rename_losses, require_trained_base, weights_of_base
from .s2sa import S2SA, MessageAdapter, S2SAConfig, S2SAModel


@dataclass(frozen=True)
class S2SAMMIConfig(S2SAConfig):
    """How hypotheses are ranked; further options as of `S2SAConfig`.

    Attributes:
        backward_weight: lambda, the share of log p(m | r) in the score; 0 is S2SA's own ranking.
        hypotheses: how many are ranked where the decoding does not say it (beam and mmi do).
    """

    backward_weight: float = 0.5  # lambda, as in the code of MMI
    hypotheses: int = 20  # the beam of DVS2S, "Experiment Setup"
    answer_batch: int = 16  # the second model reads every hypothesis

    positive: ClassVar[tuple[str, ...]] = ("hypotheses",)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.0 <= self.backward_weight <= 1.0:
            raise ValueError("backward_weight must lie between 0 and 1")


class S2SAMMIModel(DialogueModel):
    """Two S2SA: message -> response, which is given, and response -> message, which learns."""

    def __init__(self, config: S2SAConfig, vocabulary: int) -> None:
        super().__init__()
        self.ahead = S2SAModel(config, vocabulary)  # p(r | m), of the trained S2SA
        self.back = S2SAModel(config, vocabulary)  # p(m | r), which is trained here

    def loss(self, batch: Batch, step: int) -> Losses:
        """Negative log-likelihood of messages, for a batch of responses and their messages."""
        return self.back.loss(batch, step)

    def start(self, batch: Batch) -> State:
        """Reads the messages."""
        return self.ahead.start(batch)

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """(B * width,) tokens -> logits (B * width, V) of the response."""
        return self.ahead.step(tokens, state)

    def backward_score(self, response: Tensor, message: Tensor) -> Tensor:
        """Log p(m | r) / |m| of (N, S) messages m given (N, T) responses r, EOS counted, (N,)."""
        # The second model reads the response and writes the message.
        batch = Batch(("",) * len(response), response, message, message.new_zeros(0))
        logits = self.back.logits(batch).float()  # (N, S, V)
        # -log p(m_t | r), (N, S)
        lost = F.cross_entropy(logits.transpose(1, 2), message, ignore_index=PAD, reduction="none")
        return -lost.sum(1) / message.ne(PAD).sum(1)  # log p(m | r) / |m|, (N,)


class S2SAMMI(MessageAdapter):
    """S2SA re-ranked by maximum mutual information."""

    name = "s2sa-mmi"
    card = Card(
        title="S2SA-MMI",
        family="recurrent",
        summary="S2SA's hypotheses, re-ranked by how well they predict the message",
        paper="Li et al., A Diversity-Promoting Objective Function for Neural Conversation Models",
        year=2016,
    )
    version = 3
    Config = S2SAMMIConfig
    config: S2SAMMIConfig

    @classmethod
    def starts_from(cls, config: Any) -> type[Adapter] | None:
        """S2SA, which writes the hypotheses."""
        return S2SA

    @classmethod
    def supports(cls, decoding: Decoding) -> bool:
        """Every decoding; `mmi` and `beam` set the number of hypotheses."""
        return True

    def build_model(self, size: int) -> DialogueModel:
        """The untrained model."""
        return S2SAMMIModel(self.config, size)

    def fit(self, train: Split, valid: Split, run: Run) -> None:
        """Trains the model from response to message; the losses of responses are S2SA's."""
        base = require_trained_base(self.name, run.base, S2SA)
        super().fit(train, valid, run)
        # losses of messages, not of responses
        history = replace(self.history, curve=rename_losses(self.history.curve, "message"))
        losses = base.history.best.items()
        self.history = append_epoch(history, {k: v for k, v in losses if k.startswith("valid_")})

    def report_warnings(self, run: Run) -> None:
        """Warns of nothing: the context use of the backward model is not that of the responses."""

    def _new_model(self, run: Run) -> DialogueModel:
        model = cast(S2SAMMIModel, super()._new_model(run))
        # Without a base, as where speed is measured, weights stay random.
        if isinstance(run.base, S2SA):
            model.ahead.load_state_dict(weights_of_base(run.base, self))
        return model

    def _encode(self, split: Split) -> Encoded:
        return reversed_pairs(super()._encode(split), self.config.response_tokens)

    def respond(self, contexts: Sequence[Context], decoding: Decoding, run: Run) -> list[str]:
        """Answers the last turn of each context with the best of its hypotheses."""
        if decoding.method not in _N_BEST_METHODS:
            run.progress.warn(
                f"{self.card.title} ranks {self.config.hypotheses} hypotheses of beam search,"
                f" where others decode with {decoding}"
            )
        return super().respond(contexts, decoding, run)

    def answer(self, model: DialogueModel, batch: Batch, decoding: Decoding) -> list[list[int]]:
        """The best hypothesis of each message."""
        width = (
            int(decoding.value) if decoding.method in _N_BEST_METHODS else self.config.hypotheses
        )
        limit = self.config.response_tokens
        n_best = beam_search(model, batch, width, limit, decoding)  # of log p(r | m) / |r|
        backward_scores = self._backward_scores(cast(S2SAMMIModel, model), batch, n_best)
        return [
            list(best_hypothesis(hypotheses, backward, self.config.backward_weight))
            for hypotheses, backward in zip(n_best, backward_scores, strict=True)
        ]

    @torch.no_grad()
    def _backward_scores(
        self, model: S2SAMMIModel, batch: Batch, n_best: list[list[Hypothesis]]
    ) -> list[list[float]]:
        """Log p(m | r) / |m| of every hypothesis."""
        counts = list(map(len, n_best))
        responses = PackedSequences.of(
            [_as_source(h.tokens) for hypotheses in n_best for h in hypotheses]
        )
        texts = [[word for word in row if word != PAD] for row in batch.source.tolist()]
        messages = PackedSequences.of(
            [_as_target(text, self.config.response_tokens) for text in texts]
        )
        device = batch.source.device
        scores = model.backward_score(
            torch.from_numpy(responses.padded(np.arange(sum(counts)))).to(device),  # (N, T)
            # (N, S), each message once for each of its hypotheses
            torch.from_numpy(messages.padded(np.repeat(np.arange(len(batch)), counts))).to(device),
        )
        values = iter(scores.tolist())  # one for each hypothesis, message after message
        return [list(islice(values, count)) for count in counts]


_N_BEST_METHODS = ("beam", "mmi")


def reversed_pairs(data: Encoded, limit: int) -> Encoded:
    """Swaps the direction of pairs: responses become the source, contexts the target.

    Args:
        data: contexts and responses.
        limit: how many tokens of a context are written, the latest, EOS not counted.
    """
    responses, contexts = _lists(data.target), _lists(data.source)
    source = PackedSequences.of([_as_source(words[:-1]) for words in responses])
    return replace(
        data, source=source, target=PackedSequences.of([_as_target(c, limit) for c in contexts])
    )


def _lists(sequences: PackedSequences) -> list[list[int]]:
    bounds = zip(sequences.starts, sequences.ends, strict=True)
    return [sequences.values[start:end].tolist() for start, end in bounds]


def _as_source(words: Sequence[int]) -> Sequence[int]:
    return words or [UNK]  # as an empty context has it


def _as_target(words: Sequence[int], limit: int) -> list[int]:
    return [*words[-limit:], EOS]  # what is too long loses its beginning, as contexts do


def best_hypothesis(
    hypotheses: Sequence[Hypothesis], backward: Sequence[float], weight: float
) -> tuple[int, ...]:
    """The tokens of the best hypothesis; an empty response where there is none.

    Args:
        hypotheses: of one message.
        backward: log p(m | r) / |m| of each.
        weight: lambda.
    """
    scored = [
        # (1 - lambda) log p(r|m) / |r| + lambda log p(m|r) / |m|
        ((1 - weight) * hypothesis.score + weight * score, -rank)
        for rank, (hypothesis, score) in enumerate(zip(hypotheses, backward, strict=True))
    ]
    # Of equal scores max takes the larger -rank: the one that S2SA itself prefers.
    return hypotheses[-max(scored)[1]].tokens if scored else ()
