"""S-DVS2S: S2SA within a vocabulary of its own for each message.

Wu et al., "Neural Response Generation with Dynamic Vocabularies" (2018). Against its
parent, S2SA: from the message state h_t = [last forward; first backward] a word predictor gives
the chance that each content word is needed (eq. 8), and the response is written with all function
words and the N likeliest content words alone, whose output rows are gathered once a message
(eq. 6, 7).

The predictor learns after S2SA, with the encoder kept as it is. What is learnt does not depend on
the N that responses are written with, so rows of several N share one training.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from dialbench.adapter import Adapter, Card, Run
from dialbench.neural.adapter import NeuralAdapter, read_words, write_words
from dialbench.neural.data import Batch, Encoded, Ints, answering_rows, make_batch
from dialbench.neural.model import DialogueModel, Losses, State, precise_answers
from dialbench.neural.training import Trainer, evaluate, shuffled_context_loss
from dialbench.records import Context, Split
from dialbench.text.tokenizer import tokenize
from dialbench.text.vocabulary import SPECIALS

from .blocks.bases import (
    append_epoch,
    load_weights,
    rename_losses,
    require_trained_base,
    weights_of_base,
)
from .blocks.vocabularies import WordCosts, WordPredictor
from .s2sa import S2SA, MessageAdapter, S2SAConfig, S2SAModel
from .seq2seq import Seq2SeqModel
from .text_models.function_words import CLOSED_NOTE, FunctionWords, Tags, identity


@dataclass(frozen=True)
class FunctionWordOptions:
    """Which words are function words, which every vocabulary holds.

    Attributes:
        tags: how function words are told from content words: by nltk's tagger (an error without
            it), by a closed list of ours, or by the tagger where there is one.
        function_count: function words occur more often than this in the training dialogues.
    """

    tags: Tags = "auto"
    function_count: int = 10  # DVS2S, "Dynamic Vocabulary Construction"
    answer_batch: int = 16

    not_negative: ClassVar[tuple[str, ...]] = ("function_count",)


@dataclass(frozen=True)
class ContentWordOptions:
    """How many content words responses are written with.

    Attributes:
        content_words: N; all of them where there are fewer.
    """

    content_words: int = 1_000  # DVS2S, "Experiment Setup"

    not_negative: ClassVar[tuple[str, ...]] = ("content_words",)


@dataclass(frozen=True)
class WordsConfig(FunctionWordOptions, S2SAConfig):
    """How the word predictor is trained: as S2SA is."""


@dataclass(frozen=True)
class SDVS2SConfig(ContentWordOptions, FunctionWordOptions, S2SAConfig):
    """How the word predictor is trained, and how many words responses are written with."""


class VocabularyModel(Seq2SeqModel):
    """A model that writes with function words and the N likeliest content words.

    It stands before `S2SAModel`.

    Args:
        config: sizes.
        vocabulary: V.
        function: the numbers of the function words.
        words: N.
    """

    def __init__(
        self, config: S2SAConfig, vocabulary: int, function: Sequence[int], words: int
    ) -> None:
        super().__init__(config, vocabulary)
        self.predictor = WordPredictor(2 * config.hidden, vocabulary, function)  # eq. 8
        self.words = words

    def vocabularies(self, batch: Batch) -> Tensor:
        """The numbers of the words that each message is answered with, (B, K)."""
        _, last = self.encode(batch)  # (layers, B, 2h)
        return self._numbers(self.predictor(last[-1]))  # h_t = [last forward; first backward]

    def _numbers(self, odds: Tensor) -> Tensor:
        return self.predictor.numbers(self.predictor.best(odds, self.words))

    def start(self, batch: Batch) -> State:
        """Reads the messages and gathers the output rows of their vocabularies."""
        memory, last = self.encode(batch)  # (B, S, 2h), (layers, B, 2h)
        # (B, K): all function words, N content words
        numbers = self._numbers(self.predictor(last[-1]))
        state = self.begin(batch, memory, last)
        state.example["numbers"] = numbers  # (B, K)
        state.example["rows"] = self.output.weight[numbers]  # (B, K, k)
        state.example["biases"] = self.output.bias[numbers]  # (B, K)
        return state

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """(B * width,) tokens -> logits (B * width, V), -inf outside the vocabulary."""
        readout, state = self.advance(self.embed(tokens), state)  # (B * W, k)
        numbers, rows, biases = (state.example[key] for key in ("numbers", "rows", "biases"))
        read = readout.view(len(rows), -1, readout.shape[-1])  # (B, W, k)
        with precise_answers(self.output):
            read = read.to(rows.dtype)
            within = torch.baddbmm(biases[:, None], read, rows.transpose(1, 2))  # (B, W, K)
        # (B, W, V)
        logits = within.new_full((*within.shape[:2], self.predictor.vocabulary), -torch.inf)
        logits.scatter_(2, numbers[:, None].expand(within.shape), within)
        return logits.flatten(0, 1), state

    def logits(self, batch: Batch) -> Tensor:
        """(B, T, V) with teacher forcing, -inf outside the vocabulary."""
        state = self.start(batch)
        logits = self.output(self.teacher_forced(state, batch.inputs))  # (B, T, V)
        # True for words of T, (B, V)
        held = torch.zeros(len(batch), logits.shape[-1], dtype=torch.bool, device=logits.device)
        held.scatter_(1, state.example["numbers"], True)
        return logits.masked_fill(~held[:, None], -torch.inf)  # type: ignore[no-any-return]

    def loss(self, batch: Batch, step: int) -> Losses:
        """The loss of the responses within the vocabularies that messages are answered with.

        The part "nll" counts words outside a vocabulary as one of V alike, "missing" their number.
        """
        memory, last = self.encode(batch)
        odds = self.predictor(last[-1])  # log odds of beta, (B, C)
        chosen = self._choose(odds)  # T_s, (B, C, S)
        # (B, T, V)
        logits = self.output(self.teacher_forced(self.begin(batch, memory, last), batch.inputs))
        with torch.autocast(logits.device.type, enabled=False):  # bfloat16 is too coarse for sums
            held = self.predictor.full_mask(self._completed(chosen, batch))  # (B, V, S)
            # eq. 6 within each vocabulary
            costs = WordCosts.of(logits.to(odds.dtype), batch.target, held)
            return self._weigh(costs, odds, chosen, batch)

    def _choose(self, odds: Tensor) -> Tensor:
        """The content words of S vocabularies an example, (B, C, S) of 0 and 1."""
        best = self.predictor.best(odds, self.words)  # (B, N) places of content words
        # one vocabulary, (B, C, 1)
        return torch.zeros_like(odds).scatter_(1, best, 1.0)[:, :, None]

    def _completed(self, chosen: Tensor, batch: Batch) -> Tensor:
        """The vocabularies that responses are written with, where they hold more than `chosen`."""
        return chosen

    def _weigh(self, costs: WordCosts, odds: Tensor, chosen: Tensor, batch: Batch) -> Losses:
        samples, tokens = chosen.shape[2], len(batch.real)
        nll = -costs.floored(self.predictor.vocabulary).sum() / samples  # -log p(Y | T, X)
        parts = {"nll": nll.detach(), "missing": costs.missing.sum() / samples}
        return Losses(nll / tokens, parts, tokens, len(batch))


class SDVS2SModel(VocabularyModel, S2SAModel):
    """S2SA within a vocabulary for each message."""


class WordsModel(VocabularyModel, S2SAModel):
    """The stage in which the predictor learns alone.

    The loss is -log p(t | X), where t_j says whether content word j is in the response.
    """

    def loss(self, batch: Batch, step: int) -> Losses:
        """Binary cross-entropy over the content words; the encoder gets no gradient."""
        with torch.no_grad():  # Algorithm 1 fixes the encoder
            _, last = self.encode(batch)
        odds = self.predictor(last[-1])  # eq. 8, (B, C)
        held = self.predictor.contained_words(batch.target).to(odds.dtype)  # t_j, (B, C)
        # -sum_j log p(t_j | X), Algorithm 1
        nll = F.binary_cross_entropy_with_logits(odds, held, reduction="sum")
        tokens = len(batch.real)
        return Losses(nll / tokens, {"nll": nll.detach()}, tokens, len(batch))


class VocabularyAdapter(NeuralAdapter):
    """What all stages share: they know function words, and start from the stage before them.

    It stands before `MessageAdapter`.
    """

    version = 3
    Stage: ClassVar[type[NeuralAdapter]]

    @classmethod
    def starts_from(cls, config: Any) -> type[Adapter] | None:
        """The stage before this one."""
        return cls.Stage

    def __init__(self, config: Any = None) -> None:
        super().__init__(config)
        self.function_words: tuple[str, ...] = ()

    @property
    def function_numbers(self) -> list[int]:
        """The numbers of the function words."""
        return self.vocabulary.encode(self.function_words)

    def _new_model(self, run: Run) -> DialogueModel:
        model = super()._new_model(run)
        # Without a base, as where speed is measured, weights stay random.
        if isinstance(run.base, NeuralAdapter):
            load_weights(model, weights_of_base(run.base, self))
        return model

    def save_vocabulary(self, folder: Path) -> None:
        """Writes vocabulary.json and function_words.json."""
        super().save_vocabulary(folder)
        write_words(folder / "function_words.json", self.function_words)

    def load_vocabulary(self, folder: Path) -> None:
        """Reads what `save_vocabulary` wrote."""
        super().load_vocabulary(folder)
        self.function_words = tuple(read_words(folder / "function_words.json"))


class WordsStage(VocabularyAdapter, MessageAdapter):
    """A trained S2SA whose word predictor learns; no row of a table."""

    name = "dvs2s-words"
    card = Card("word predictor of DVS2S", "recurrent", "S2SA and a trained word predictor")
    Config = WordsConfig
    Stage = S2SA
    config: WordsConfig

    @classmethod
    def inspect(
        cls, config: Any, contexts: Sequence[Context], data: Path | None = None
    ) -> Mapping[str, Any]:
        """The checksums of the word vectors to start from and of the tagger."""
        return {**super().inspect(config, contexts, data), **identity(config.tags, data)}

    def build_model(self, size: int) -> DialogueModel:
        """The untrained model."""
        return WordsModel(self.config, size, self.function_numbers, 0)

    def fit(self, train: Split, valid: Split, run: Run) -> None:
        """Finds the function words and trains the predictor."""
        base = require_trained_base(self.name, run.base, S2SA)
        c = self.config
        function_words = FunctionWords.of(
            train, base.vocabulary, c.tags, c.function_count, run.data
        )
        self.function_words = function_words.words
        if function_words.closed:
            run.progress.warn(CLOSED_NOTE)
        super().fit(train, valid, run)
        self.history = replace(self.history, curve=rename_losses(self.history.curve, "words"))

    def report_warnings(self, run: Run) -> None:
        """Warns of nothing: its loss is not that of responses."""

    def trainer(self, model: DialogueModel, train: Encoded, valid: Encoded, run: Run) -> Trainer:
        """Training that begins where every word is as likely as in the training responses."""
        words = cast(WordsModel, model)
        counts = np.zeros(len(self.vocabulary), np.int64)  # responses that contain each word, (V,)
        for start, end in zip(train.target.starts, train.target.ends, strict=True):
            # once a response, however often it stands there
            counts[np.unique(train.target.values[start:end])] += 1
        words.predictor.start_from(torch.from_numpy(counts).to(run.device), len(train))
        return super().trainer(model, train, valid, run)


@dataclass(frozen=True)
class Coverage:
    """Word coverage recall (eq. 15): how many words of the references their vocabularies hold.

    Fractions; NaN where there is no word to cover.

    Attributes:
        recall: mean over references of the share of their distinct words that is covered.
        recall_known: the same without words that the system does not know.
    """

    recall: float
    recall_known: float

    @classmethod
    def of(
        cls,
        references: Iterable[Sequence[str]],
        vocabularies: Iterable[Container[str]],
        known: Container[str],
    ) -> Coverage:
        """Measures it; empty references are left out.

        Args:
            references: the words of each.
            vocabularies: the words allotted to each.
            known: all words of the system.
        """
        shares, shares_known = [], []
        for reference, held in zip(references, vocabularies, strict=True):
            words = set(reference)  # distinct, as in eq. 15
            covered = sum(word in held for word in words)  # eq. 15
            within = sum(word in known for word in words)  # not in eq. 15
            if words:
                shares.append(covered / len(words))
            if within:
                shares_known.append(covered / within)
        return cls(_mean(shares), _mean(shares_known))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else float("nan")


class AnsweringStage(NeuralAdapter):
    """The last stage, which learns nothing: it answers with the weights of the stage before it.

    It stands before `VocabularyAdapter`.
    """

    Stage: ClassVar[type[VocabularyAdapter]]
    config: Any  # with `ContentWordOptions`
    function_words: tuple[str, ...]

    def fit(self, train: Split, valid: Split, run: Run) -> None:
        """Takes the trained weights and computes the losses of `valid` within its vocabularies."""
        base = require_trained_base(self.name, run.base, self.Stage)
        self.vocabulary, self.function_words = base.vocabulary, base.function_words
        model, data = self._new_model(run), self._encode(valid)
        losses = evaluate(model, data, self.config, run, "valid")
        coverage = self.coverage(valid, run)
        self.history = append_epoch(
            base.history,
            {
                **{f"valid_{key}": value for key, value in losses.items()},
                **shuffled_context_loss(model, data, self.config, run),
                "valid_word_recall": coverage.recall,
                "valid_word_recall_known": coverage.recall_known,
            },
        )
        self.report_warnings(run)

    def coverage(self, split: Split, run: Run) -> Coverage:
        """Word coverage recall (eq. 15) over the responses of a split."""
        known = self.vocabulary.words
        # Every vocabulary holds EOS and the like, which are no words of a reference.
        words = ({known[i] for i in held} - set(SPECIALS) for held in self._allot(split, run))
        references = [tokenize(example.references[0]) for example in split]
        return Coverage.of(references, words, set(known))

    def _allot(self, split: Split, run: Run) -> list[Ints]:
        """The numbers of the words that each message of a split is answered with."""
        model, data = cast(VocabularyModel, self._ready(run)), self._encode(split)
        vocabularies = [np.zeros(0, np.int64)] * len(data)
        with torch.no_grad():
            for rows in answering_rows(data, self.config.batch_size):
                numbers = model.vocabularies(make_batch(data, rows, run.device)).cpu().numpy()
                for row, numbers_of_row in zip(rows, numbers, strict=True):
                    vocabularies[row] = numbers_of_row
        return vocabularies

    def facts(self) -> Mapping[str, Any]:
        """Also the size of the vocabularies, and their coverage of validation responses."""
        function, known = len(self.function_words), len(self.vocabulary)
        content = min(self.config.content_words, known - function)
        last = self.history.curve[-1] if self.history.curve else {}
        return {
            **super().facts(),
            "function_words": function,
            "content_words": content,
            "likelihood_within": f"{function + content} words a message, others as one of V",
            **{key: value for key, value in last.items() if key.startswith("valid_word_recall")},
        }


class SDVS2S(AnsweringStage, VocabularyAdapter, MessageAdapter):
    """DVS2S whose generator and word predictor were trained separately."""

    name = "s-dvs2s"
    card = Card(
        title="S-DVS2S",
        family="recurrent",
        summary="S2SA within the words that a separately trained predictor finds for each message",
        paper="Wu et al., Neural Response Generation with Dynamic Vocabularies",
        year=2018,
    )
    Config = SDVS2SConfig
    Stage = WordsStage
    config: SDVS2SConfig

    def build_model(self, size: int) -> DialogueModel:
        """The untrained model."""
        c = self.config
        return SDVS2SModel(c, size, self.function_numbers, c.content_words)
