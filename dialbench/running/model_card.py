"""The card of a trained system: what it is, how it was trained, and its corpus' licence."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from dialbench.corpora.base import card as corpus_card
from dialbench.corpora.base import names as corpus_names
from dialbench.running.trained import FoundSystem
from dialbench.store.schema import TrainedRecord
from dialbench.text.cleaning import clean
from dialbench.version import __version__

_HEAD = """---
library_name: dialbench
tags: [dialogue, response-generation]
---
"""


def write_card(found: FoundSystem, record: TrainedRecord) -> str:
    """The card as Markdown."""
    parts = [_HEAD + _title(found), _recipe(found), _training(record), _data(found), _use(found)]
    return "\n".join(parts)


def _title(found: FoundSystem) -> str:
    card, job = found.adapter.card, found.job
    lines = [f"# {found.adapter.title(found.config) or found.name}", "", clean(card.summary)]
    if card.paper:
        lines += ["", f"After {clean(card.paper)} ({card.year})."]
    lines += ["", f"Trained by dialbench {__version__} on {job.corpus} with seed {job.seed}."]
    return "\n".join([*lines, ""])


def _recipe(found: FoundSystem) -> str:
    job = found.job
    others = {key: value for key, value in job.training.items() if key != "config"}
    rows = [("system", found.name), ("preset", job.preset), *others.items()]
    rows += sorted(job.training["config"].items())
    return _section("Recipe", _table(("option", "value"), rows))


def _training(record: TrainedRecord) -> str:
    facts = [(name.replace("_", " "), value) for name, value in record.facts.items()]
    best = int(record.facts.get("best_epoch") or 0)
    if 0 < best <= len(record.curve):
        row = record.curve[best - 1]
        losses = ((name, value) for name, value in row.items() if name != "epoch")
        facts += [(f"{name.replace('_', ' ')}, best epoch", value) for name, value in losses]
    if not record.complete:
        facts.append(("complete", "no: a deadline ended training early"))
    notes = [f"- {clean(note)}" for note in record.notes]
    return _section("Training", [*_table(("fact", "value"), facts), "", *notes])


def _data(found: FoundSystem) -> str:
    corpus = found.job.corpus
    if corpus in corpus_names():
        card = corpus_card(corpus)
        stated = f"{card.title}, whose licence is: {card.licence}."
    else:
        stated = f"{corpus}, a corpus of its owner, whose licence is not known here."
    warning = (
        "Weights may repeat sentences of what they learnt from: whoever passes them on, or uses"
        " them, has to keep to that licence."
    )
    return _section("Data and licence", [f"Trained on {stated} {warning}"])


def _use(found: FoundSystem) -> str:
    code = [
        "```python",
        "import dialbench",
        "",
        'system = dialbench.load("FOLDER")',
        'system.respond([["Is the bakery open?"]])',
        "```",
    ]
    outside = found.job.training.get("outside")
    needed = ["", "Files that its options name must be there too."] if outside else []
    return _section("Use", [*code, *needed])


def _section(title: str, lines: list[str]) -> str:
    return "\n".join([f"## {title}", "", *lines, ""])


def _table(head: tuple[str, str], rows: list[tuple[str, Any]]) -> list[str]:
    return [f"| {head[0]} | {head[1]} |", "|---|---|", *_rows(rows)]


def _rows(rows: list[tuple[str, Any]]) -> Iterator[str]:
    for name, value in rows:
        yield f"| {name} | {_cell(value)} |"


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Mapping | list):
        value = json.dumps(value, ensure_ascii=False)
    return clean(str(value)).replace("|", "\\|")
