"""Which metrics, and what they need: words and their vectors, models, programs."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from dialbench.corpora.training_text import turns_of
from dialbench.errors import InputError
from dialbench.extras import are_installed, install_command, require_installed
from dialbench.files.folders import data_folder
from dialbench.files.pretrained import folder_of
from dialbench.metrics import registry
from dialbench.metrics.base import Metric
from dialbench.metrics.embedding import VECTORS
from dialbench.metrics.entailment import JUDGE, NO_JUDGE, Verdicts
from dialbench.metrics.libraries import BERT, MAUVE, BertModel, MauveModel
from dialbench.metrics.meteor15 import METEOR, MeteorProgram
from dialbench.metrics.resource import Found, Resource
from dialbench.metrics.semantic import SENTENCES, SentenceModel
from dialbench.metrics.settings import MetricSettings
from dialbench.metrics.training import TRAINING, Training
from dialbench.metrics.wordnet import WORDNET, WordNet
from dialbench.records import Split, fingerprint_of
from dialbench.scoring.meter import Meter
from dialbench.scoring.options import ScoringOptions
from dialbench.text import vectors as word_vectors
from dialbench.text.tokenizer import tokenizer as find_tokenizer
from dialbench.text.vectors import Vectors

_log = logging.getLogger(__name__)
LEAST_TOKENS = 100_000
"""Vectors of less text make any two responses nearly equal (docs/metrics.md)."""

_RESOURCES: Mapping[str, Resource[Any]] = {
    "vectors": VECTORS,
    "sentence_model": SENTENCES,
    "nli": JUDGE,
    "bert_model": BERT,
    "mauve_model": MAUVE,
}
# Also by the name of a model in the local cache of the Hub.
_CACHED = ("nli", "bert_model", "mauve_model")
_TRAINING: dict[str, Any] = {"size": 200, "window": 5, "min_count": 5, "seed": 1}
_NO_VECTORS = (
    "no word vectors: give a file with --vectors, or training text to learn them from with --train"
)
_NO_GENSIM = f"no word vectors: give a file with --vectors, or {install_command('embed')}"
_NO_TRAINING = "no training text: give a corpus or file with --train"


def usual_metrics(samples: int = 1) -> tuple[str, ...]:
    """The metrics of a run that names none; with several samples also those within contexts."""
    return (*registry.DEFAULT, *registry.WITHIN) if samples > 1 else registry.DEFAULT


def build_metrics(
    options: ScoringOptions,
    train: Split | None = None,
    cache: Path | None = None,
    judged: Path | None = None,
    vector_text: Split | None = None,
    meter: Meter | None = None,
) -> list[Metric[Any]]:
    """The metrics of the options, with the resources they need.

    Resources are loaded or trained only if a metric needs them. A metric whose resource is
    missing is made all the same; its value is NaN with a reason.

    Args:
        options: what to compute, metrics of responses alone.
        train: the training split, for novelty and the V of ead-n.
        cache: folder for trained vectors, under a name derived from text and parameters.
        judged: folder for what the judge said, so that no pair is judged twice.
        vector_text: what word vectors are trained on where no file is given (skip-gram, 200
            dimensions), if not on `train`.
        meter: shows how far the judge is.

    Raises:
        UnknownName: there is no metric or tokeniser of that name.
        InputError: the file of vectors, WordNet, the sentence model or the judge cannot be used.
    """
    names = usual_metrics() if options.metrics is None else options.metrics
    tokenize = find_tokenizer(options.tokenizer)
    search = _Search(options, tokenize, train, cache, judged, vector_text, meter or Meter())
    needed = registry.resources(names)
    _require_present(options, needed)
    found = {resource: _FINDERS[resource](search) for resource in needed}
    for resource, one in found.items():
        _log.info("%s: %s", resource.name, one.missing or "present")
    settings = MetricSettings(options.tokenizer, options.denominator, options.vocabulary, found)
    return registry.create(names, settings)


@dataclass(frozen=True)
class _Search:
    """Where resources are looked for: the arguments of `build_metrics` and the tokeniser."""

    options: ScoringOptions
    tokenize: Callable[[str], list[str]]
    train: Split | None
    cache: Path | None
    judged: Path | None
    vector_text: Split | None
    meter: Meter

    @property
    def data(self) -> Path:
        """The data folder."""
        return data_folder(_path(self.options.data))

    def tokens(self, split: Split | None) -> list[list[str]] | None:
        """The turns of a split; None without one."""
        return None if split is None else list(map(self.tokenize, turns_of(split)))


def _path(path: str | Path | None) -> Path | None:
    return Path(path) if path else None


def _require_present(options: ScoringOptions, needed: Collection[Resource[Any]]) -> None:
    """A file or model that no metric needs is not read, but a slip in its name is told."""
    for field, resource in _RESOURCES.items():
        name = _text(getattr(options, field))
        if name is None or resource in needed or Path(name).expanduser().exists():
            continue
        if field in _CACHED and folder_of(name) is not None:
            continue
        where = f"--{field.replace('_', '-')}"
        raise InputError(f"there is no {name}", where=where, hint="Check the path.")


def _text(path: str | Path | None) -> str | None:
    return None if path is None else str(path)


def _training(search: _Search) -> Found[Training]:
    token_lists = search.tokens(search.train)
    reason = _NO_TRAINING if token_lists is None else "the corpus has no training text"
    return Found(Training(token_lists) if token_lists else None, reason)


def _judge(search: _Search) -> Found[Verdicts]:
    """The judge, which remembers what it said."""
    named = _text(search.options.nli)
    if named is not None:
        require_installed("torch", "transformers", where=f"--nli {named}")
    elif not are_installed("torch", "transformers"):
        return Found(missing=NO_JUDGE)
    from dialbench.nli.cache import CachedJudge
    from dialbench.nli.loading import find

    judge = find(named)
    if judge is None:
        return Found(missing=NO_JUDGE)
    return Found(Verdicts(CachedJudge(judge, search.judged, search.meter.judged)))


def _vectors(search: _Search) -> Found[Vectors]:
    options = search.options
    if options.vectors is not None:
        return Found(word_vectors.load(Path(options.vectors), where="--vectors"))
    text = search.train if search.vector_text is None else search.vector_text
    token_lists = search.tokens(text)
    if token_lists is None:
        return Found(missing=_NO_VECTORS)
    if not are_installed("gensim"):
        return Found(missing=_NO_GENSIM)
    if (count := sum(map(len, token_lists))) < LEAST_TOKENS:
        return Found(
            missing=f"word vectors need at least {LEAST_TOKENS:,} tokens of training text, here "
            f"are {count:,}: give a file with --vectors"
        )
    path = search.cache and search.cache / f"word2vec-{_key(token_lists)[:16]}.safetensors"
    if path and path.exists():
        return Found(word_vectors.load(path))
    try:
        vectors = word_vectors.train(token_lists, **_TRAINING)
    except InputError as error:
        return Found(missing=error.message)
    if path:
        word_vectors.save(vectors, path)
    return Found(vectors)


_FINDERS: Mapping[Resource[Any], Callable[[_Search], Found[Any]]] = {
    VECTORS: _vectors,
    TRAINING: _training,
    JUDGE: _judge,
    SENTENCES: lambda search: Found(SentenceModel.find(_path(search.options.sentence_model))),
    BERT: lambda search: Found(BertModel.find(_text(search.options.bert_model))),
    MAUVE: lambda search: Found(MauveModel.find(_text(search.options.mauve_model))),
    WORDNET: lambda search: Found(WordNet.find(search.data)),
    METEOR: lambda search: Found(MeteorProgram.find(search.data)),
}
"""How each resource is found; a metric that needs another one adds it here."""


def _key(token_lists: Iterable[Sequence[str]]) -> str:
    """Names what vectors trained on these tokens depend on."""
    digest = hashlib.sha256()
    for tokens in token_lists:
        digest.update("\t".join(tokens).encode("utf-8") + b"\n")
    return fingerprint_of({"text": digest.hexdigest(), **_TRAINING, "gensim": version("gensim")})
