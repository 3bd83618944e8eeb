"""BERTScore and MAUVE by pretrained models, through the libraries of their authors.

The libraries are optional, and so are the models, which must lie on this machine.
"""

from __future__ import annotations

import contextlib
import io
import math
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from dialbench.extras import EXTRAS, install_command, require_installed
from dialbench.files.pretrained import Pretrained
from dialbench.metrics.base import SHARE, Dense, MeanMetric, Metric
from dialbench.metrics.info import MetricInfo
from dialbench.metrics.overlap import NO_REFERENCES
from dialbench.metrics.resource import Resource
from dialbench.metrics.texts import Texts

Floats = NDArray[np.float64]
_BATCH, _LONGEST = 64, 1024


class LibraryModel:
    """A pretrained model that one of the libraries reads texts with.

    Attributes:
        option: the argument that names it.
        package: what its library is imported as.
        checkpoint: the model.
    """

    option: ClassVar[str]
    package: ClassVar[str]

    def __init__(self, checkpoint: Pretrained) -> None:
        self.checkpoint = checkpoint

    @classmethod
    def find(cls, named: str | None) -> Self | None:
        """The model in a folder or in the local cache of the Hub; None if none is named.

        Raises:
            InputError: it is not there, or the library is not installed.
        """
        if named is None:
            return None
        require_installed(cls.package, where=cls.option)
        return cls(Pretrained.find(named, where=f"{cls.option} {named}", subject="it"))

    @classmethod
    def missing(cls) -> str:
        """Why there is none."""
        command = install_command(EXTRAS[cls.package])
        return f"no model was named: give one with {cls.option}, after {command}"

    @property
    def name(self) -> str:
        """How signatures call it, with its revision."""
        title = Path(self.checkpoint.given_name).expanduser().name
        return f"{title}@{self.checkpoint.checksum[:12]}"


class BertModel(LibraryModel):
    """An encoder for BERTScore."""

    option, package = "--bert-model", "bert_score"

    @cached_property
    def layer(self) -> int:
        """The layer that is read: the one that the authors chose for this model, else the last."""
        from bert_score.utils import model2layers
        from transformers import AutoConfig

        chosen: int | None = model2layers.get(self.checkpoint.given_name)
        config = self.checkpoint.read(AutoConfig.from_pretrained)
        return int(chosen or config.num_hidden_layers)

    def f1(self, responses: list[str], references: list[list[str]]) -> Floats:
        """(responses,) BERTScore F1 with the best reference; no text may be empty."""
        _, _, f_scores = self._scorer.score(responses, references)
        return np.asarray(f_scores.double().numpy())

    @cached_property
    def _scorer(self) -> Any:
        from bert_score import BERTScorer

        def read(folder: Path, **_: Any) -> Any:
            return BERTScorer(
                model_type=str(folder), num_layers=self.layer, batch_size=_BATCH, device="cpu"
            )

        return self.checkpoint.read(read)


BERT = Resource[BertModel]("bert")


class BertScore(MeanMetric):
    """bertscore: F1 of BERTScore (Zhang et al., 2020), not rescaled, without idf, mean.

    Reads the texts as they were written. The best of several references. An empty response or
    reference counts 0; examples without a reference are left out.

    Args:
        tokenizer: name of the tokeniser, which decides what is empty.
        model: the encoder; None gives NaN and a reason.
    """

    verbatim: ClassVar[bool] = True

    def __init__(self, tokenizer: str, model: BertModel | None) -> None:
        source = f"{model.name},layer-{model.layer}" if model else "missing"
        recipe = f"bertscore-f1|rescaled:no|idf:no|text:verbatim|model:{source}|references:max"
        super().__init__("bertscore", recipe, tokenizer)
        self._model = model
        self.missing = "" if model else BertModel.missing()

    def values(self, texts: Texts) -> Floats:
        """(responses,) F1 with the best reference."""
        if self._model is None:
            return np.full(len(texts), np.nan)
        scores = np.where(np.diff(texts.reference_offsets) > 0, 0.0, np.nan)
        references = _filled_references(texts)
        filled = np.flatnonzero(texts.responses.lengths).tolist()
        places = [index for index in filled if references[index]]
        if places:
            responses = [texts.response_texts[index] for index in places]
            scores[places] = self._model.f1(responses, [references[index] for index in places])
        return scores

    def undefined_reason(self) -> str:
        """What is missing."""
        return self.missing or NO_REFERENCES


class MauveModel(LibraryModel):
    """A language model for MAUVE."""

    option, package = "--mauve-model", "mauve"

    def features(self, texts: Sequence[str]) -> Floats:
        """(texts, size) last hidden state of the last token of each, none of them empty."""
        from mauve.utils import featurize_tokens_from_model

        tokens = [
            self._tokenizer(text, return_tensors="pt", truncation=True, max_length=_LONGEST)
            for text in texts
        ]
        # The library draws its progress there.
        with contextlib.redirect_stderr(io.StringIO()):
            features = featurize_tokens_from_model(
                self._model, [text["input_ids"] for text in tokens], _BATCH
            )
        return np.asarray(features.double().numpy())

    @cached_property
    def _model(self) -> Any:
        from transformers import AutoModel

        return self.checkpoint.read_model(AutoModel.from_pretrained).eval()

    @cached_property
    def _tokenizer(self) -> Any:
        return self.checkpoint.read_tokenizer()


MAUVE = Resource[MauveModel]("mauve")


class Mauve(Metric[Dense]):
    """mauve: how near the responses as a set are to the first references, in (0, 1].

    Pillutla et al. (2021), with their library's settings: as many clusters as a tenth of the
    responses, scaling 5, seed 25. It moves with the number of responses and means little below a
    few thousand. Reads texts as they were written; examples without a reference, or with an
    empty text, are left out.

    Args:
        tokenizer: name of the tokeniser, which decides what is empty.
        model: the language model; None gives NaN and a reason.
    """

    bounds = SHARE
    verbatim: ClassVar[bool] = True

    def __init__(self, tokenizer: str, model: MauveModel | None) -> None:
        source = model.name if model else "missing"
        recipe = f"mauve|clusters:n/10|scale:5|seed:25|text:verbatim|model:{source}"
        super().__init__("mauve", f"{recipe}|references:first", tokenizer)
        self._model = model
        self.missing = "" if model else MauveModel.missing()

    def statistics(self, texts: Texts) -> Dense:
        """(responses, 2 size) features of response and reference, NaN where left out."""
        owned = texts.reference_offsets[:-1]
        there = np.diff(texts.reference_offsets) > 0
        there &= texts.responses.lengths > 0
        there[there] = texts.references.lengths[owned[there]] > 0
        places = np.flatnonzero(there)
        if self._model is None or not len(places):
            return Dense(np.full((len(texts), 1), np.nan))
        response_features = self._model.features(
            [texts.response_texts[index] for index in places.tolist()]
        )
        reference_features = self._model.features(
            [texts.reference_texts[first] for first in owned[places].tolist()]
        )
        features = np.full((len(texts), 2 * response_features.shape[1]), np.nan)
        features[places] = np.hstack([response_features, reference_features])
        return Dense(features)

    def score(self, statistics: Dense) -> float:
        """The library's value; the same for every order of the responses."""
        if self.reason(statistics):
            return math.nan
        from mauve import compute_mauve

        there = statistics.values[~np.isnan(statistics.values[:, 0])]
        response_features, reference_features = np.hsplit(there[np.lexsort(there.T)], 2)
        return float(
            compute_mauve(p_features=reference_features, q_features=response_features).mauve
        )

    def score_fast(self, statistics: Dense) -> float:
        """NaN: parts of a set have other clusters, so that intervals say nothing."""
        return math.nan

    def score_subsets(
        self, statistics: Dense, groups: NDArray[np.int64], included: NDArray[np.bool_]
    ) -> Floats:
        """(k,) NaN, as `score_fast`."""
        return np.full(len(included), np.nan)

    def count(self, statistics: Dense) -> int:
        """How many responses are counted."""
        return int(np.count_nonzero(~np.isnan(statistics.values[:, 0])))

    def reason(self, statistics: Dense) -> str:
        """What is missing."""
        if self.missing or self.count(statistics) > 1:
            return self.missing
        return "there are fewer than two responses with a reference"


def _filled_references(texts: Texts) -> list[list[str]]:
    """Those references of each response that have a token, as they were written."""
    filled = [
        text if length else ""
        for text, length in zip(texts.reference_texts, texts.references.lengths, strict=True)
    ]
    bounds = zip(texts.reference_offsets[:-1], texts.reference_offsets[1:], strict=True)
    return [[text for text in filled[start:stop] if text] for start, stop in bounds]


METRICS = (
    MetricInfo(
        "bertscore",
        "BERTScore",
        "Semantic",
        BertScore,
        lambda s: BertScore(s.tokenizer, s.of(BERT).value),
        resource=BERT,
    ),
    MetricInfo(
        "mauve",
        "MAUVE",
        "Semantic",
        Mauve,
        lambda s: Mauve(s.tokenizer, s.of(MAUVE).value),
        resource=MAUVE,
    ),
)
