"""Which metrics, and what they need: words and their vectors, models, programs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from dialbench.corpora.training_text import turns_of
from dialbench.errors import InputError
from dialbench.files.folders import data_folder
from dialbench.files.pretrained import folder_of
from dialbench.metrics import registry
from dialbench.metrics.base import Metric
from dialbench.metrics.libraries import BertModel, MauveModel
from dialbench.metrics.meteor15 import MeteorProgram
from dialbench.metrics.novelty import Training
from dialbench.metrics.semantic import SentenceModel
from dialbench.metrics.settings import MetricSettings
from dialbench.metrics.wordnet import WordNet
from dialbench.records import Split, fingerprint_of
from dialbench.scoring.options import ScoringOptions
from dialbench.text import vectors as word_vectors
from dialbench.text.tokenizer import tokenizer as find_tokenizer
from dialbench.text.vectors import Vectors

LEAST_TOKENS = 100_000
"""Vectors of less text make any two responses nearly equal (docs/metrics.md)."""

_RESOURCES = {
    "vectors": "vectors",
    "sentence_model": "sentences",
    "nli": "judge",
    "bert_model": "bert",
    "mauve_model": "mauve",
}
# Also by the name of a model in the local cache of the Hub.
_CACHED = ("nli", "bert_model", "mauve_model")
_TRAINING: dict[str, Any] = {"size": 200, "window": 5, "min_count": 5, "seed": 1}
_NO_VECTORS = (
    "no word vectors: give a file with --vectors, or training text to learn them from with --train"
)
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

    Raises:
        UnknownName: there is no metric or tokeniser of that name.
        InputError: the file of vectors, WordNet, the sentence model or the judge cannot be used.
    """
    tokenize = find_tokenizer(options.tokenizer)
    names = usual_metrics() if options.metrics is None else options.metrics
    needed = registry.needs(names)
    _require_present(options, needed)
    resources: dict[str, Any] = {"vocabulary": options.vocabulary}
    if "vectors" in needed:
        text = train if vector_text is None else vector_text
        found = _vectors(options, _tokens(text, tokenize), cache)
        resources |= zip(("vectors", "missing_vectors"), found, strict=True)
    if "train" in needed:
        token_lists = _tokens(train, tokenize)
        training = Training(token_lists) if token_lists else None
        reason = _NO_TRAINING if train is None else "the corpus has no training text"
        resources |= {"training": training, "missing_training": reason}
    if "sentences" in needed:
        folder = options.sentence_model
        resources["sentences"] = SentenceModel.find(Path(folder) if folder else None)
    if "judge" in needed:
        resources |= _judge(_text(options.nli), judged)
    if "bert" in needed:
        resources["bert"] = BertModel.find(_text(options.bert_model))
    if "mauve" in needed:
        resources["mauve"] = MauveModel.find(_text(options.mauve_model))
    data = data_folder(Path(options.data) if options.data else None)
    if "wordnet" in needed:
        resources["wordnet"] = WordNet.find(data)
    if "meteor" in needed:
        resources["meteor"] = MeteorProgram.find(data)
    return registry.create(
        names,
        MetricSettings(options.tokenizer, options.denominator, **resources),
    )


def _require_present(options: ScoringOptions, needed: Collection[str]) -> None:
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


def _judge(model: str | None, judged: Path | None) -> dict[str, Any]:
    """The judge, which remembers what it said, or why there is none."""
    from dialbench.nli.cache import CachedJudge
    from dialbench.nli.embedded import MISSING
    from dialbench.nli.loading import find

    judge = find(model)
    return {"judge": judge and CachedJudge(judge, judged), "missing_judge": MISSING}


def _tokens(split: Split | None, tokenize: Callable[[str], list[str]]) -> list[list[str]] | None:
    return None if split is None else [tokenize(turn) for turn in turns_of(split)]


def _vectors(
    options: ScoringOptions, token_lists: list[list[str]] | None, cache: Path | None
) -> tuple[Vectors | None, str]:
    """The word vectors, or None and why there are none."""
    if options.vectors is not None:
        return word_vectors.load(Path(options.vectors), where="--vectors"), ""
    if token_lists is None:
        return None, _NO_VECTORS
    if (count := sum(map(len, token_lists))) < LEAST_TOKENS:
        return None, (
            f"word vectors need at least {LEAST_TOKENS:,} tokens of training text, here are "
            f"{count:,}: give a file with --vectors"
        )
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
