"""What a methods section says of tables: a paragraph of LaTeX with its BibTeX."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from dialbench.corpora import base as corpora
from dialbench.errors import InputError
from dialbench.files.loads import loads
from dialbench.records import Table
from dialbench.reporting.formats.to_latex import escape
from dialbench.reporting.tables.columns import has_value
from dialbench.reporting.tables.names import uniquely_named
from dialbench.systems import Registry
from dialbench.version import __version__

_DATA = "citations.toml"
_AUTHORS = re.compile(
    r"(?P<authors>[^,]+ et al\.|(?:[^,]+, )*[^,]+ and [^,]+|[^,]+), (?P<title>.+)"
)
_CITATION = re.compile(
    r"(?P<authors>.+?), (?P<year>\d{4}), (?P<title>[^;]+), (?P<venue>[^;,]+)(?:;|$)"
)
_YEAR = 2026
"""Of this version."""
_SHORT = 3
"""Letters of the words of a title that no key is made of."""
_Cite = Callable[[Iterable["_Entry"]], str]
_KINDS = {"booktitle": "inproceedings", "journal": "article", "publisher": "book"}


@dataclass(frozen=True, eq=False)
class _Entry:
    """A publication.

    Attributes:
        key: by which it is cited.
        fields: those of BibTeX.
        metrics: pattern of the whole names of the metrics that are its own.
        tests: pattern of a part of the notes on its tests.
    """

    key: str
    fields: Mapping[str, Any]
    metrics: str = ""
    tests: str = ""

    @property
    def bibtex(self) -> str:
        """The entry as it stands in a .bib file."""
        kind = next((kind for name, kind in _KINDS.items() if name in self.fields), "misc")
        lines = [f"  {name} = {{{value}}}," for name, value in self.fields.items()]
        return "\n".join([f"@{kind}{{{self.key},", *lines, "}"])


def methods(tables: Sequence[Table], systems: Iterable[str]) -> str:
    """The paragraph, a blank line, and the entries that it cites.

    Args:
        tables: what is described.
        systems: names of the systems in them; those whose card names a paper are cited.
    """
    sources = _publications()
    cited: dict[str, _Entry] = {}

    def cite(entries: Iterable[_Entry]) -> str:
        cited_here = {entry.key: cited.setdefault(entry.key, entry) for entry in entries}
        return rf"~\citep{{{','.join(cited_here)}}}" if cited_here else ""

    sentences = [_scored(tables, sources, cite)]
    for test in dict.fromkeys(test for table in tables for test in table.tests):
        papers = [entry for entry in sources if entry.tests and re.search(entry.tests, test)]
        statement = test.removesuffix(".").replace("*: differs", "A star marks what differs")
        sentences.append(f"{escape(statement)}{cite(papers)}.")
    titles = [escape(title) + cite([entry]) for title, entry in _system_entries(systems)]
    if titles:
        sentences.append(f"Systems of published papers: {_listed(titles)}.")
    names = [rf"\ref{{tab:{table.name}-signatures}}" for table in uniquely_named(tables)]
    sentences.append(f"Signatures of all metrics stand in Table~{_listed(names)}.")
    return "\n\n".join([" ".join(sentences), *(entry.bibtex for entry in cited.values())]) + "\n"


def _scored(tables: Sequence[Table], sources: Sequence[_Entry], cite: _Cite) -> str:
    us = f"dialbench {__version__}{cite([_ourselves()])}"
    names = dict.fromkeys(table.name for table in tables)
    corpora_ = [escape(title) + cite(entries) for title, entries in map(_corpus, names)]
    columns = {c.name: c for table in tables for c in table.columns if has_value(table, c)}
    titles: dict[tuple[_Entry, ...], list[str]] = {}
    for name, column in columns.items():
        metric = name.partition(":")[0]  # a number follows where there are several signatures
        papers = tuple(
            entry for entry in sources if entry.metrics and re.fullmatch(entry.metrics, metric)
        )
        titles.setdefault(papers, []).append(escape(column.title))
    metrics = [_listed(named) + cite(papers) for papers, named in titles.items()]
    named_metrics = f": {'; '.join(metrics)}" if metrics else ""
    return f"Responses were scored with {us} on {_listed(corpora_)}{named_metrics}."


def _publications() -> list[_Entry]:
    text = (files("dialbench.reporting") / _DATA).read_bytes()
    return [
        _Entry(key, fields, fields.pop("metrics", ""), fields.pop("tests", ""))
        for key, fields in loads(text, "TOML").items()
    ]


def _ourselves() -> _Entry:
    title = "dialbench: evaluation and benchmarking of open-domain dialogue response generation"
    fields = {"author": "{The dialbench authors}", "title": f"{{{title}}}"}
    note = f"Version {__version__}"
    return _Entry("dialbench", {**fields, "note": note, "year": _YEAR})


def _corpus(name: str) -> tuple[str, list[_Entry]]:
    """The title of a corpus, and the paper that its card names."""
    if name not in corpora.names():
        return name, []
    card = corpora.card(name)
    match = _CITATION.match(card.citation)
    return card.title, [] if match is None else [_entry(**match.groupdict())]


def _system_entries(names: Iterable[str]) -> Iterator[tuple[str, _Entry]]:
    registry = Registry()
    for name in names:
        try:
            card = registry.get(name).card
        except InputError:
            continue  # of a plug-in that is not here
        if match := _AUTHORS.fullmatch(card.paper):
            yield card.title or name, _entry(**match.groupdict(), year=str(card.year))


def _entry(authors: str, title: str, year: str, venue: str = "") -> _Entry:
    author = authors.replace(" et al.", " and others").replace(", ", " and ")
    fields = {"author": escape(author), "title": f"{{{escape(title)}}}"}
    fields |= {"booktitle": escape(venue)} if venue else {}
    word = next((word for word in re.findall(r"\w+", title) if len(word) > _SHORT), "")
    key = f"{re.split(r'[ ,]', authors)[0]}{year}{word}".lower()
    return _Entry(re.sub(r"[^a-z0-9]", "", key), {**fields, "year": year})


def _listed(items: Sequence[str]) -> str:
    return f"{', '.join(items[:-1])} and {items[-1]}" if len(items) > 1 else "".join(items)
