"""From responses to scores: every measure with its value, folds, interval and signature."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dialbench.corpora.base import data_folder, load_corpus
from dialbench.errors import InputError
from dialbench.files.responses import read_responses
from dialbench.metrics import registry
from dialbench.metrics.base import Metric
from dialbench.metrics.diversity import Denominator
from dialbench.metrics.texts import Texts
from dialbench.records import Example, Score, Split, fingerprint_of
from dialbench.stats.folds import fold_numbers, groups
from dialbench.stats.intervals import jackknife
from dialbench.text import vectors as word_vectors
from dialbench.text.tokenizer import Tokenizer
from dialbench.text.tokenizer import tokenizer as find_tokenizer
from dialbench.text.vectors import Vectors

DEFAULT = registry.DEFAULT
FOLDS = 10
_TRAINING: dict[str, Any] = {"size": 200, "window": 5, "min_count": 5, "seed": 1}
_NO_VECTORS = (
    "no word vectors: give a file with --vectors, or training text to learn them from with --train"
)


@dataclass(frozen=True)
class ScoringSettings:
    """What is measured and how; plain values only, so that it can be stored and fingerprinted.

    Attributes:
        metrics: names of the measures, in the order of the columns.
        tokenizer: name of the tokeniser for responses, references and training text.
        denominator: what Distinct divides by.
        vectors: a file of word vectors; None trains them on the training split.
        data: the data folder, where WordNet is looked for first; None = $DIALBENCH_DATA or the
            user cache.
    """

    metrics: tuple[str, ...] = DEFAULT
    tokenizer: str = "default"
    denominator: Denominator = "tokens"
    vectors: str | None = None
    data: str | None = None

    @classmethod
    def of(
        cls,
        *,
        metrics: Iterable[str] | None = None,
        tokenizer: str = "default",
        denominator: Denominator = "tokens",
        vectors: str | Path | None = None,
        data: str | Path | None = None,
    ) -> ScoringSettings:
        """The settings in what users write: paths of either kind, None for all measures."""
        return cls(
            DEFAULT if metrics is None else tuple(metrics),
            tokenizer,
            denominator,
            None if vectors is None else str(vectors),
            None if data is None else str(data),
        )


def build_metrics(
    settings: ScoringSettings, train: Split | None = None, cache: Path | None = None
) -> list[Metric[Any]]:
    """The measures of the settings, with the resources they need.

    Word vectors are loaded or trained only if a measure needs them. Without a file and without
    training text the embedding measures are made all the same; their value is NaN with a reason.

    Args:
        settings: what to measure.
        train: training text for word vectors (skip-gram, 200 dimensions).
        cache: folder for trained vectors, under a name derived from text and parameters.

    Raises:
        UnknownName: there is no measure or tokeniser of that name.
        InputError: the file of vectors or WordNet cannot be used.
    """
    tokenize = find_tokenizer(settings.tokenizer)
    vectors, missing = None, ""
    if "vectors" in registry.needs(settings.metrics):
        vectors, missing = _vectors(settings, tokenize, train, cache)
    data = data_folder(Path(settings.data) if settings.data else None)
    resources = registry.MetricSettings(
        settings.tokenizer, settings.denominator, data, vectors, missing
    )
    return registry.create(settings.metrics, resources)


def scoring_key(metrics: Sequence[Metric[Any]]) -> dict[str, Any]:
    """Everything that can change the scores of the same responses, as a JSON object."""
    return {"metrics": {metric.name: metric.signature for metric in metrics}, "folds": FOLDS}


def score_responses(
    pairs: Iterable[tuple[Example, str]], metrics: Sequence[Metric[Any]]
) -> dict[str, Score]:
    """Scores a stream of examples and responses; contexts are not kept.

    Args:
        pairs: each example with the response to its context, in test order.
        metrics: the measures, all made for the same tokeniser.

    Returns:
        The score of each measure by its name.

    Raises:
        InputError: there are no responses.
    """
    texts = Texts.build(pairs, find_tokenizer(_tokenizer_of(metrics)))
    if not len(texts):
        raise InputError("there are no responses to score", hint="Give at least one.")
    parts = _Parts.of(texts.dialogues)
    return {metric.name: _score(metric, texts, parts) for metric in metrics}


def score(
    files: Iterable[str | Path],
    *,
    metrics: Iterable[str] | None = None,
    tokenizer: str = "default",
    denominator: Denominator = "tokens",
    vectors: str | Path | None = None,
    train: Split | str | Path | None = None,
    data: str | Path | None = None,
    cache: Path | None = None,
    corpus: str | None = None,
) -> list[dict[str, Any]]:
    """Scores files of responses (JSON lines) and says so in plain values.

    Args:
        files: the files; each is one system, called by the stem of its name.
        metrics: names of the measures; None = all of them.
        tokenizer: name of the tokeniser.
        denominator: what Distinct divides by.
        vectors: a file of word vectors.
        train: training text for word vectors where no file is given: a split, the name of a
            corpus or a file of conversations.
        data: the data folder, for WordNet and corpora; None = $DIALBENCH_DATA or the user cache.
        cache: folder for trained word vectors.
        corpus: what the responses answer, if known.

    Returns:
        For each file `{"system", "corpus", "metrics": {name: {"value", "signature", "n",
        "interval", "reason"}}}`; values are fractions, not rounded, None where not available,
        and only then there is a reason.

    Raises:
        InputError: a file, name or argument cannot be used.
    """
    settings = ScoringSettings.of(
        metrics=metrics, tokenizer=tokenizer, denominator=denominator, vectors=vectors, data=data
    )
    built = build_metrics(settings, _training_split(train, data), cache)
    return [_report(Path(file), built, corpus) for file in files]


@dataclass(frozen=True)
class _Parts:
    """The responses of each fold and the jackknife group of each response."""

    folds: list[NDArray[np.intp]]
    groups: NDArray[np.int64]

    @classmethod
    def of(cls, dialogues: Sequence[str]) -> _Parts:
        numbers = fold_numbers(dialogues, k=FOLDS)
        folds = [np.flatnonzero(numbers == fold) for fold in range(numbers.max() + 1)]
        return cls(folds, groups(dialogues))


def _tokenizer_of(metrics: Sequence[Metric[Any]]) -> str:
    names = sorted({metric.tokenizer for metric in metrics})
    if len(names) != 1:
        raise ValueError(f"the metrics need one tokeniser, not {', '.join(names) or 'none'}")
    return names[0]


def _score(metric: Metric[Any], texts: Texts, parts: _Parts) -> Score:
    statistics = metric.statistics(texts)
    value = metric.score(statistics)
    interval = None
    if not math.isnan(value):
        interval = jackknife(metric.replicate, statistics, parts.groups)
    return Score(
        value=value,
        n=metric.count(statistics),
        signature=metric.signature,
        per_response=metric.per_response(statistics),
        per_fold=np.array([metric.replicate(statistics[fold]) for fold in parts.folds]),
        interval=interval,
        reason=metric.reason(statistics),
    )


def _report(file: Path, metrics: Sequence[Metric[Any]], corpus: str | None) -> dict[str, Any]:
    scores = score_responses(read_responses(file), metrics)
    values = {name: _plain(score) for name, score in scores.items()}
    return {"system": _stem(file), "corpus": corpus, "metrics": values}


def _stem(file: Path) -> str:
    return file.name.removesuffix(".xz").removesuffix(".gz").removesuffix(".jsonl")


def _plain(score: Score) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "value": score.value if score.available else None,
        "signature": score.signature,
        "n": score.n,
        "interval": None if score.interval is None else list(score.interval),
    }
    return plain | ({"reason": score.reason} if score.reason else {})


def _training_split(train: Split | str | Path | None, data: str | Path | None) -> Split | None:
    if train is None or isinstance(train, Split):
        return train
    folder = None if data is None else Path(data)
    return load_corpus(str(train), data=folder, where="--train").train


def _vectors(
    settings: ScoringSettings, tokenize: Tokenizer, train: Split | None, cache: Path | None
) -> tuple[Vectors | None, str]:
    """The word vectors, or None and why there are none."""
    if settings.vectors is not None:
        return word_vectors.load(Path(settings.vectors), where="--vectors"), ""
    if train is None:
        return None, _NO_VECTORS
    token_lists = [tokenize(turn) for turn in _turns(train)]
    path = cache / f"word2vec-{_key(token_lists)[:16]}.safetensors" if cache else None
    if path and path.exists():
        return word_vectors.load(path), ""
    try:
        vectors = word_vectors.train(token_lists, **_TRAINING)
    except InputError as error:
        return None, error.message
    if path:
        word_vectors.save(vectors, path)
    return vectors, ""


def _key(token_lists: Iterable[Sequence[str]]) -> str:
    """Names what vectors trained on these tokens depend on."""
    digest = hashlib.sha256()
    for tokens in token_lists:
        digest.update("\t".join(tokens).encode("utf-8") + b"\n")
    return fingerprint_of({"text": digest.hexdigest(), **_TRAINING, "gensim": version("gensim")})


def _turns(split: Split) -> Iterator[str]:
    """Each turn of the split once: a dialogue's first context and every response to it."""
    dialogue = None
    for example in split:
        if example.dialogue_id != dialogue:
            yield from example.context
            dialogue = example.dialogue_id
        yield from example.references
