"""Which measures, and what they need: words and their vectors, models, programs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from dialbench.corpora.base import data_folder
from dialbench.corpora.training_text import turns_of
from dialbench.errors import InputError
from dialbench.metrics import registry
from dialbench.metrics.base import Metric
from dialbench.metrics.diversity import Denominator
from dialbench.metrics.libraries import BertModel, MauveModel
from dialbench.metrics.meteor15 import MeteorProgram
from dialbench.metrics.novelty import Training
from dialbench.metrics.semantic import SentenceModel
from dialbench.metrics.settings import MetricSettings
from dialbench.metrics.system import SYSTEM_METRICS
from dialbench.metrics.wordnet import WordNet
from dialbench.records import Split, fingerprint_of
from dialbench.text import vectors as word_vectors
from dialbench.text.tokenizer import tokenizer as find_tokenizer
from dialbench.text.vectors import Vectors

LEAST_TOKENS = 100_000
"""Vectors of less text make any two responses nearly equal (docs/metrics.md)."""

_TRAINING: dict[str, Any] = {"size": 200, "window": 5, "min_count": 5, "seed": 1}
_NO_VECTORS = (
    "no word vectors: give a file with --vectors, or training text to learn them from with --train"
)
_NO_TRAINING = "no training text: give a corpus or file with --train"


@dataclass(frozen=True)
class ScoringSettings:
    """What is measured and how; plain values only, so that it can be stored and fingerprinted.

    Attributes:
        metrics: names of the measures, in the order of the columns.
        tokenizer: name of the tokeniser for responses, references and training text.
        denominator: what Distinct divides by; None: tokens, within one response n-grams.
        vectors: a file of word vectors; None trains them on the training split.
        data: the data folder, where WordNet is looked for first; None = $DIALBENCH_DATA or the
            user cache.
        vocabulary: V of ead-n; None takes the number of words of the training split.
        sentence_model: folder of a sentence-transformers model; None takes that of the extra
            `offline`.
        nli: the judge of ue: a folder or a name in the local cache of the Hub; None takes the
            embedded one.
        bert_model, mauve_model: of bertscore and mauve, likewise; None gives them no value.
    """

    metrics: tuple[str, ...] = registry.DEFAULT
    tokenizer: str = "default"
    denominator: Denominator | None = None
    vectors: str | None = None
    data: str | None = None
    vocabulary: int | None = None
    sentence_model: str | None = None
    nli: str | None = None
    bert_model: str | None = None
    mauve_model: str | None = None

    @classmethod
    def of(
        cls,
        *,
        metrics: Iterable[str] | None = None,
        tokenizer: str = "default",
        denominator: Denominator | None = None,
        vectors: str | Path | None = None,
        data: str | Path | None = None,
        vocabulary: int | None = None,
        sentence_model: str | Path | None = None,
        nli: str | Path | None = None,
        bert_model: str | Path | None = None,
        mauve_model: str | Path | None = None,
        samples: int = 1,
    ) -> ScoringSettings:
        """The settings in what users write: paths of either kind, None for the usual measures.

        These include those within contexts if several responses (`samples`) were drawn to each.
        """
        usual = (*registry.DEFAULT, *registry.WITHIN) if samples > 1 else registry.DEFAULT
        return cls(
            usual if metrics is None else tuple(metrics),
            tokenizer,
            denominator,
            _text(vectors),
            _text(data),
            vocabulary,
            *map(_text, (sentence_model, nli, bert_model, mauve_model)),
        )

    def of_responses(self) -> ScoringSettings:
        """The same without the measures that a run tells beside the responses."""
        measured = tuple(name for name in self.metrics if name not in SYSTEM_METRICS)
        return replace(self, metrics=measured)


def _text(path: str | Path | None) -> str | None:
    return None if path is None else str(path)


def build_metrics(
    settings: ScoringSettings,
    train: Split | None = None,
    cache: Path | None = None,
    judged: Path | None = None,
    vector_text: Split | None = None,
) -> list[Metric[Any]]:
    """The measures of the settings, with the resources they need.

    Resources are loaded or trained only if a measure needs them. A measure whose resource is
    missing is made all the same; its value is NaN with a reason.

    Args:
        settings: what to measure.
        train: the training split, for novelty and the V of ead-n.
        cache: folder for trained vectors, under a name derived from text and parameters.
        judged: folder for what the judge said, so that no pair is judged twice.
        vector_text: what word vectors are trained on where no file is given (skip-gram, 200
            dimensions), if not on `train`.

    Raises:
        UnknownName: there is no measure or tokeniser of that name.
        InputError: the file of vectors, WordNet, the sentence model or the judge cannot be used.
    """
    tokenize = find_tokenizer(settings.tokenizer)
    needed = registry.needs(settings.metrics)
    resources: dict[str, Any] = {"vocabulary": settings.vocabulary}
    if "vectors" in needed:
        text = train if vector_text is None else vector_text
        found = _vectors(settings, _tokens(text, tokenize), cache)
        resources |= zip(("vectors", "missing_vectors"), found, strict=True)
    if "train" in needed:
        token_lists = _tokens(train, tokenize)
        training = Training(token_lists) if token_lists else None
        reason = _NO_TRAINING if train is None else "the corpus has no training text"
        resources |= {"training": training, "missing_training": reason}
    if "sentences" in needed:
        folder = settings.sentence_model
        resources["sentences"] = SentenceModel.find(Path(folder) if folder else None)
    if "judge" in needed:
        resources |= _judge(settings.nli, judged)
    if "bert" in needed:
        resources["bert"] = BertModel.find(settings.bert_model)
    if "mauve" in needed:
        resources["mauve"] = MauveModel.find(settings.mauve_model)
    data = data_folder(Path(settings.data) if settings.data else None)
    if "wordnet" in needed:
        resources["wordnet"] = WordNet.find(data)
    if "meteor" in needed:
        resources["meteor"] = MeteorProgram.find(data)
    return registry.create(
        settings.metrics,
        MetricSettings(settings.tokenizer, settings.denominator, **resources),
    )


def _judge(model: str | None, judged: Path | None) -> dict[str, Any]:
    """The judge, which remembers what it said, or why there is none."""
    from dialbench.nli.cache import Remembering
    from dialbench.nli.embedded import MISSING
    from dialbench.nli.loading import find

    judge = find(model)
    return {"judge": judge and Remembering(judge, judged), "missing_judge": MISSING}


def _tokens(split: Split | None, tokenize: Callable[[str], list[str]]) -> list[list[str]] | None:
    return None if split is None else [tokenize(turn) for turn in turns_of(split)]


def _vectors(
    settings: ScoringSettings, token_lists: list[list[str]] | None, cache: Path | None
) -> tuple[Vectors | None, str]:
    """The word vectors, or None and why there are none."""
    if settings.vectors is not None:
        return word_vectors.load(Path(settings.vectors), where="--vectors"), ""
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
