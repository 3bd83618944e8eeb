"""What scoring may be told: one declaration for the command line and for Python."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, get_args

from dialbench.errors import InputError, UnknownName
from dialbench.options import Help, split_outside_brackets

# As in metrics.settings, which loads numpy; the command line asks for options without.
_Denominator = Literal["tokens", "ngrams"]
_MOST_WORDS = 10**18
_PATHS = ("vectors", "data", "sentence_model", "nli", "bert_model", "mauve_model")


@dataclass(frozen=True)
class ScoringOptions:
    """Which metrics, and what they are computed with.

    Plain values only, so that they can be stored and fingerprinted: paths become strings, lists
    tuples.

    Attributes:
        metrics: names of the metrics, in the order of the columns; None for the usual ones.
        tokenizer: name of the tokeniser for responses, references and training text.
        denominator: what Distinct divides by; None: tokens, within one response n-grams.
        vectors: a file of word vectors; None trains them on the training text.
        data: the data folder, where WordNet is looked for first; None = $DIALBENCH_DATA or the
            user cache.
        vocabulary: V of ead-n; None takes the number of words of the training text.
        sentence_model: folder of a sentence-transformers model; None takes that of the extra
            `embed`.
        nli: the judge of ue: a folder or a name in the local cache of the Hub; None takes the
            embedded one.
        bert_model, mauve_model: of bertscore and mauve, likewise; None gives them no value.

    Raises:
        InputError: there is no such denominator, or the vocabulary is no number of words.
    """

    metrics: Annotated[
        Sequence[str] | None, Help("Metrics to compute, comma-separated, or `all`.", "NAMES")
    ] = None
    tokenizer: Annotated[
        str,
        Help(
            "Tokeniser of responses, references and training text.  [default: default]",
            "default|whitespace|parlai|bert|13a|intl|zh|char",
        ),
    ] = "default"
    denominator: Annotated[
        _Denominator | None,
        Help("What Distinct divides by.  [default: tokens; intra-dist-n: ngrams]"),
    ] = None
    vectors: Annotated[
        str | Path | None,
        Help("Word vectors, GloVe or word2vec.  [default: of the training text]", "FILE"),
    ] = None
    data: str | Path | None = None
    vocabulary: Annotated[
        int | None, Help("V of ead-n.  [default: number of words of the training text]", "V")
    ] = None
    sentence_model: Annotated[
        str | Path | None,
        Help("A sentence-transformers model.  [default: of the extra embed]", "FOLDER"),
    ] = None
    nli: Annotated[
        str | Path | None,
        Help("NLI model that judges ue.  [default: of the extra nli]", "FOLDER|NAME"),
    ] = None
    bert_model: Annotated[str | Path | None, Help("Encoder of bertscore.", "FOLDER|NAME")] = None
    mauve_model: Annotated[str | Path | None, Help("Language model of mauve.", "FOLDER|NAME")] = (
        None
    )

    def __post_init__(self) -> None:
        if self.metrics is not None:
            names = self.metrics
            listed = split_outside_brackets(names) if isinstance(names, str) else names
            object.__setattr__(self, "metrics", tuple(listed))
        self._check_denominator()
        self._check_vocabulary()
        for name in _PATHS:
            path = getattr(self, name)
            object.__setattr__(self, name, None if path is None else str(path))

    def _check_denominator(self) -> None:
        known = get_args(_Denominator)
        if self.denominator is not None and self.denominator not in known:
            given = str(self.denominator)
            raise UnknownName.of("denominator", given, known, where="--denominator")

    def _check_vocabulary(self) -> None:
        words = self.vocabulary
        if words is not None and not (isinstance(words, int) and 1 <= words < _MOST_WORDS):
            raise InputError(
                f"{words!r} is no number of words",
                where="--vocabulary",
                hint="Give a whole number from 1 on, of at most 18 digits.",
            )


@dataclass(frozen=True)
class TextRows:
    """References or contexts that are in memory, in place of a file of them.

    Attributes:
        name: what errors call them.
        rows: the texts for every response.
    """

    name: str
    rows: Sequence[tuple[str, ...]]


@dataclass(frozen=True)
class InputOptions:
    """What finished responses answer, where their own files do not say it.

    Attributes:
        references: files with a line for every response, or the texts themselves; several
            references to each, or files.
        contexts: a file with a line for every response, or the texts themselves.
        column: of the responses in tables.
        corpus: whose test split the responses answer, in its order or by its ids. It is read
            where neither `references` nor `contexts` are named and a file has none of its own.
    """

    references: Annotated[
        Sequence[str | Path] | str | Path | TextRows,
        Help(
            "References, a line for every response; several between tabs, or in several files.",
            "FILES",
        ),
    ] = ()
    contexts: Annotated[
        str | Path | TextRows | None,
        Help("Contexts, a line for every response; turns between tabs, __eou__ or |||.", "FILE"),
    ] = None
    column: Annotated[
        str | None,
        Help("Column of the responses in CSV and TSV files.  [default: called so]", "NAME"),
    ] = None
    corpus: Annotated[
        str | None,
        Help(
            "Corpus whose test split is answered, in its order, where files give neither"
            " references nor contexts.",
            "NAME|FILE.jsonl",
        ),
    ] = None

    @property
    def files(self) -> tuple[str | Path, ...]:
        """The files that are named."""
        named = (*self.all_references, self.contexts)
        return tuple(file for file in named if isinstance(file, str | Path))

    @property
    def all_references(self) -> tuple[str | Path | TextRows, ...]:
        """The files or texts of references."""
        given = self.references
        return (given,) if isinstance(given, str | Path | TextRows) else tuple(given)
