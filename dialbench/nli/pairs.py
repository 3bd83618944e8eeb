"""Labelled pairs of sentences: which files teach the embedded judge, which examine it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from dialbench.corpora.files import plain_or_packed, read_lines
from dialbench.errors import InputError

LABELS = ("entailment", "neutral", "contradiction")
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
    """

    name: str
    title: str
    licence: str


_SNLI, _CAD = "CC BY-SA 4.0", "Apache-2.0"
TRAINING = (
    Source("snli_train_part", "SNLI train, 6 % of it (Bowman et al., 2015)", _SNLI),
    Source("cad_revised_train", "counterfactually revised SNLI (Kaushik et al., 2020)", _CAD),
    Source("lingnli_train", "LingNLI (Parrish et al., 2021)", "none stated"),
    Source(
        "taxinli_mnli_train_part",
        "MultiNLI train in TaxiNLI (Joshi et al., 2020)",
        "Computational Use of Data Agreement 1.0",
    ),
    Source(
        "semiauto_wiki_train",
        "pairs over Wikipedia (Vania et al., 2020)",
        "premises CC BY-SA 3.0, else none stated",
    ),
    Source("clasp_dnli_train", "inferences from spoken dialogue (Ek et al., 2024)", "MIT"),
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
