"""The numbers of a paper as that paper computes them: metrics, tokens, denominators, units.

A metric of the same name differs between papers by far more than systems do, so each paper's
choices are written down here, and one set of responses can be scored under all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dialbench.corpora.training_text import training_split
from dialbench.errors import UnknownName
from dialbench.files.folders import data_folder
from dialbench.metrics.meteor15 import MeteorProgram
from dialbench.metrics.settings import Denominator
from dialbench.records import Score, Split
from dialbench.scoring.evaluation import score_responses
from dialbench.scoring.options import InputOptions, ScoringOptions
from dialbench.scoring.resources import build_metrics
from dialbench.scoring.score import plain
from dialbench.scoring.sources import Sources

_Recipe = tuple[str, Denominator]


@dataclass(frozen=True)
class PaperColumn:
    """A column of a paper's tables.

    Attributes:
        title: as printed, and which recipe it is where another may take its place.
        measure: our name of the metric that it holds.
        percent: whether the paper prints percentages.
        tokenizer: where it differs from the paper's other columns.
        without_meteor: the column in its place on a machine without METEOR 1.5.
    """

    title: str
    measure: str
    percent: bool = False
    tokenizer: str = ""
    without_meteor: PaperColumn | None = None


@dataclass(frozen=True)
class Convention:
    """What a paper measures and how.

    Attributes:
        name: what `--convention` takes.
        tokenizer: name of the tokeniser of all columns that name no other.
        denominator: what Distinct divides by.
        columns: in the paper's order.
        remarks: what is assumed, and what is left out.
    """

    name: str
    tokenizer: str
    denominator: Denominator
    columns: tuple[PaperColumn, ...]
    remarks: tuple[str, ...] = ()

    def recipe(self, column: PaperColumn) -> _Recipe:
        """Tokeniser and denominator of one of the columns."""
        return column.tokenizer or self.tokenizer, self.denominator

    def without_meteor(self) -> Convention:
        """The same on a machine without METEOR 1.5."""
        return replace(self, columns=tuple(c.without_meteor or c for c in self.columns))


CONVENTIONS = {
    convention.name: convention
    for convention in (
        Convention(
            "paraformer",
            "default",
            "tokens",
            (
                *(PaperColumn(f"Dist-{n}", f"dist-{n}") for n in (1, 2, 3)),
                PaperColumn("UE", "ue-raw"),
            ),
            (
                "The denominator is that of the RL Transformer, by the same authors.",
                "UE is that of our judge or of --nli; values of different judges do not compare.",
            ),
        ),
        Convention(
            "rl",
            "default",
            "tokens",
            (
                PaperColumn("Length", "length"),
                PaperColumn("D-1", "dist-1"),
                PaperColumn("D-2", "dist-2"),
                PaperColumn("MATTR", "mattr-4"),
                PaperColumn("MTLD", "mtld"),
                PaperColumn(
                    "METEOR 1.5",
                    "meteor-1.5",
                    without_meteor=PaperColumn("METEOR-nltk", "meteor"),
                ),
                PaperColumn("ROUGE-L", "rouge-l"),
            ),
            (
                "The paper names no implementation of METEOR: 1.5 is taken where Java and its data "
                "are, else nltk's.",
            ),
        ),
        Convention(
            "dvs2s",
            "default",
            "ngrams",
            (
                *(PaperColumn(f"BLEU-{n}", f"bleu-{n}", percent=True) for n in (1, 2, 3)),
                PaperColumn("Average", "emb-average", percent=True),
                PaperColumn("Extrema", "emb-extrema", percent=True),
                PaperColumn("Greedy", "emb-greedy", percent=True),
                *(PaperColumn(f"Distinct-{n}", f"dist-{n}") for n in (1, 2)),
            ),
            ("The paper names no implementation of BLEU; its values fall as corpus BLEU's do.",),
        ),
        Convention(
            "dialogved",
            "bert",
            "ngrams",
            (
                *(PaperColumn(f"BLEU-{n}", f"bleu-plato-{n}") for n in (1, 2)),
                *(PaperColumn(f"Distinct-{n}", f"dist-{n}") for n in (1, 2)),
                *(PaperColumn(f"BLEU-{n} (AVSD)", f"bleu-coco-{n}") for n in (1, 2, 3, 4)),
                PaperColumn("METEOR (AVSD)", "meteor-coco"),
                PaperColumn("ROUGE-L (AVSD)", "rouge-l-coco"),
                PaperColumn("CIDEr (AVSD)", "cider"),
            ),
            (
                "BLEU-1 and -2 exceed 1 for equal texts: the smoothing of its script does that.",
                "METEOR 1.5 of its AVSD table needs Java; nothing takes its place.",
            ),
        ),
        Convention(
            "adand",
            "default",
            "ngrams",
            (
                PaperColumn("BLEU", "bleu-parlai", percent=True, tokenizer="parlai"),
                PaperColumn("Average", "emb-average", percent=True),
                PaperColumn("Greedy", "emb-greedy", percent=True),
                PaperColumn("Extrema", "emb-extrema", percent=True),
                *(PaperColumn(f"Distinct-{n}", f"dist-{n}", percent=True) for n in (1, 2, 3)),
            ),
        ),
    )
}


def find(name: str, *, where: str = "--convention") -> Convention:
    """The convention of that name.

    Raises:
        UnknownName: there is none of that name.
    """
    if name not in CONVENTIONS:
        raise UnknownName.of("convention", name, CONVENTIONS, where=where)
    return CONVENTIONS[name]


def score_under(
    names: Iterable[str],
    files: Sequence[str | Path],
    *,
    inputs: InputOptions | None = None,
    train: Split | str | Path | None = None,
    cache: Path | None = None,
    **resources: Any,
) -> list[dict[str, Any]]:
    """Scores files of responses under one or more papers' conventions.

    Args:
        names: the conventions.
        files: the files; each is one system, called by the stem of its name.
        inputs: what they answer, where they do not say it.
        train: training text for word vectors where no file is given: a split, the name of a
            corpus or a file of conversations.
        cache: folder for trained word vectors.
        resources: fields of `ScoringOptions`: vectors, data, nli.

    Returns:
        For each file and convention `{"system", "convention", "metrics": {title: {"value",
        "signature", "n", "interval", "reason", "measure", "percent"}}}`. Values are fractions;
        `measure` is our name of the metric, and `percent` says that the paper prints it times 100.

    Raises:
        InputError: a file, name or argument cannot be used.
    """
    chosen = [find(name) for name in names]
    data = resources.get("data")
    # Settled before the first file, so that no column holds both.
    if MeteorProgram.find(data_folder(None if data is None else Path(data))) is None:
        chosen = [convention.without_meteor() for convention in chosen]
    split = training_split(train, data)
    built = {
        recipe: build_metrics(
            ScoringOptions(
                metrics=measures,
                tokenizer=recipe[0],
                denominator=recipe[1],
                **resources,
            ),
            split,
            cache,
        )
        for recipe, measures in _needed(chosen).items()
    }
    reports = []
    for source in Sources(files, inputs or InputOptions(), data).systems:
        scores = {
            recipe: score_responses(source.responses(), metrics)
            for recipe, metrics in built.items()
        }
        reports += [_report(source.system, convention, scores) for convention in chosen]
    return reports


def _needed(chosen: Sequence[Convention]) -> dict[_Recipe, list[str]]:
    """The metrics under each recipe, so that each is worked out once for all conventions."""
    needed: dict[_Recipe, dict[str, None]] = {}
    for convention in chosen:
        for column in convention.columns:
            needed.setdefault(convention.recipe(column), {})[column.measure] = None
    return {recipe: list(measures) for recipe, measures in needed.items()}


def _report(
    system: str, convention: Convention, scores: dict[_Recipe, dict[str, Score]]
) -> dict[str, Any]:
    metrics = {
        column.title: plain(scores[convention.recipe(column)][column.measure])
        | {"measure": column.measure, "percent": column.percent}
        for column in convention.columns
    }
    return {"system": system, "convention": convention.name, "metrics": metrics}


def remarks(names: Iterable[str]) -> Iterator[str]:
    """What the conventions assume and leave out, as notes for a table."""
    for convention in map(find, names):
        yield from (f"{convention.name}: {remark}" for remark in convention.remarks)
