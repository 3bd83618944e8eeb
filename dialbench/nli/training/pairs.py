"""Labelled pairs of sentences: which files teach the embedded judge, which examine it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from dialbench.corpora.files import plain_or_packed, read_lines
from dialbench.errors import InputError
from dialbench.nli.judge import LABELS

_HEADER = "premise\thypothesis\tlabel"


class Pair(NamedTuple):
    """A hypothesis and what it is judged by; `label` is its place in `LABELS`."""

    premise: str
    hypothesis: str
    label: int


@dataclass(frozen=True)
class Source:
    """A file of pairs in the folder `nli` of the data folder.

    Attributes:
        name: of the file, without `.tsv`.
        title: of the collection, for the card.
        licence: as its publisher states it.
        most: pairs of it that are taught, evenly spread over the file; None: all.
        again: whether the later stages draw from it too.
    """

    name: str
    title: str
    licence: str
    most: int | None = None
    again: bool = False

    def sample(self, pairs: Sequence[Pair]) -> list[Pair]:
        """`most` of its pairs, in their order."""
        if self.most is None or self.most >= len(pairs):
            return list(pairs)
        return [pairs[i * len(pairs) // self.most] for i in range(self.most)]


_SNLI, _CAD = "CC BY-SA 4.0", "Apache-2.0"
TRAINING = (
    Source("snli_train_part", "SNLI train, 6 % of it (Bowman et al., 2015)", _SNLI, again=True),
    Source(
        "cad_revised_train",
        "counterfactually revised SNLI (Kaushik et al., 2020)",
        _CAD,
        again=True,
    ),
    Source("lingnli_train", "LingNLI (Parrish et al., 2021)", "none stated", again=True),
    Source(
        "taxinli_mnli_train_part",
        "MultiNLI train in TaxiNLI (Joshi et al., 2020)",
        "Computational Use of Data Agreement 1.0",
        again=True,
    ),
    Source(
        "semiauto_wiki_train",
        "pairs over Wikipedia (Vania et al., 2020)",
        "premises CC BY-SA 3.0, else none stated",
        most=5_000,
    ),
    Source(
        "clasp_dnli_train", "inferences from spoken dialogue (Ek et al., 2024)", "MIT", most=8_000
    ),
    Source("sick", "SICK (Marelli et al., 2014)", "CC BY-NC-SA 3.0", most=6_000),
    Source("med", "MED, monotonicity (Yanaka et al., 2019)", "CC BY-SA 4.0", most=3_000),
    Source("monli", "MoNLI, negation (Geiger et al., 2020)", "none stated", most=1_500),
    Source("mpe", "several captions as a premise (Lai et al., 2017)", "none stated"),
    Source(
        "conjnli_train_silver",
        "ConjNLI, labelled by a program (Saha et al., 2020)",
        "MIT",
        most=4_000,
    ),
)
DEVELOPMENT = Source("snli_dev", "SNLI dev", _SNLI)
HELD_OUT = (
    Source("snli_test", "SNLI test", _SNLI),
    Source("mnli_matched_dev", "MultiNLI dev, matched (Williams et al., 2018)", "by genre"),
    DEVELOPMENT,
    Source("cad_revised_test", "counterfactually revised SNLI test", _CAD),
    Source("breaking_nli", "Breaking NLI (Glockner et al., 2018)", "CC BY-SA 4.0"),
    Source("glue_diagnostic", "GLUE diagnostic set (Wang et al., 2018)", "none stated"),
    Source("conjnli_dev", "ConjNLI dev (Saha et al., 2020)", "MIT"),
    Source("semiauto_wiki_test", "pairs over Wikipedia, test", "as its training part"),
    Source("clasp_dnli_test", "inferences from spoken dialogue, test", "MIT"),
)

_SHARING = ("breaking_nli", "semiauto_wiki_test")
"""Their premises are those of collections that are taught, by construction."""
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_WORD = re.compile(r"\w+")


def read(source: Source, data: Path) -> list[Pair]:
    """The pairs of a source in the order of its file.

    Raises:
        InputError: the file is missing or damaged, or a line is no labelled pair.
    """
    path = plain_or_packed(data / "nli" / f"{source.name}.tsv")
    lines = read_lines(path)
    where, first = next(lines)
    if first != _HEADER:
        raise InputError("the header is not premise, hypothesis, label", where=where)
    return list(_pairs(lines))


def held_out_sentences(data: Path) -> frozenset[str]:
    """Premises of the held-out sets, without case and punctuation.

    Raises:
        InputError: a set cannot be read.
    """
    sets = (source for source in HELD_OUT if source.name not in _SHARING)
    return frozenset(_bare(pair.premise) for source in sets for pair in read(source, data))


def untouched(pairs: Iterable[Pair], held_out: Set[str]) -> list[Pair]:
    """The pairs of which neither a sentence of the premise nor the hypothesis is held out."""
    return [
        pair
        for pair in pairs
        if held_out.isdisjoint(map(_bare, (*_SENTENCE.split(pair.premise), *pair[:2])))
    ]


def _bare(sentence: str) -> str:
    return " ".join(_WORD.findall(sentence.lower()))


def _pairs(lines: Iterator[tuple[str, str]]) -> Iterator[Pair]:
    for where, line in lines:
        premise, _, rest = line.partition("\t")
        hypothesis, _, label = rest.partition("\t")
        if label not in LABELS:
            raise InputError(
                f"a line is premise, hypothesis and one of {', '.join(LABELS)}, apart by tabs",
                where=where,
                hint="Fetch the file again.",
            )
        yield Pair(premise, hypothesis, LABELS.index(label))
