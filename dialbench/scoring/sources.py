"""Finished responses of files or from memory, each with the examples that its lines answer."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from dialbench.corpora.base import load_corpus
from dialbench.corpora.corpus import Corpus
from dialbench.errors import InputError
from dialbench.files.lines import STDIN
from dialbench.files.outputs import Kind, has_columns, read_outputs, read_texts, stem
from dialbench.files.responses import ResponseLine, with_ids
from dialbench.records import ExampleResponses
from dialbench.scoring.options import InputOptions, TextRows
from dialbench.text.alignment import align
from dialbench.text.wording import count_of

Files = Sequence[str | Path] | Mapping[str, str | Path | Sequence[ResponseLine]]
"""Files of responses, one a system; or by the name of the system a file or its lines in memory."""


@dataclass(frozen=True)
class Source:
    """The responses of a system.

    Attributes:
        system: what it is called: by default the stem of the file's name, or its path where stems
            are equal.
        path: the file, or what errors call it.
        lines: reads its lines, with the contexts and references that were given for all files.
        notes: what its table says below.
    """

    system: str
    path: Path
    lines: Callable[[], Iterable[ResponseLine]]
    notes: tuple[str, ...] = ()

    def responses(self) -> Iterator[ExampleResponses]:
        """Examples and responses, with ids as `with_ids` gives them."""
        return with_ids(self.lines())

    def examples_checksum(self) -> str:
        """Names the examples that are answered: equal ones in the same order have the same."""
        digest = hashlib.sha256()
        for line in self.lines():
            example = [line.context, line.dialogue_id, sorted(line.references)]
            digest.update(json.dumps(example).encode("ascii") + b"\n")
        return digest.hexdigest()


class Sources:
    """Responses, one source a system.

    Args:
        files: in any format of `dialbench.files.outputs`; `-` is standard input.
        options: references, contexts and corpus of those that name none.
        data: the folder of corpora.

    Attributes:
        systems: a source for each.
        corpus: the corpus of the options where it was read, else None.

    Raises:
        InputError: a file or option cannot be used, or files and options do not fit together.
    """

    def __init__(self, files: Files, options: InputOptions, data: str | Path | None = None) -> None:
        self._options, self._data = options, data
        self.corpus: Corpus | None = None
        named = _named(files)
        paths = [Path(file) for _, file in named if isinstance(file, str | Path)]
        _require_one_stdin([*paths, *map(Path, options.files)])
        if options.column and len(paths) == len(named) and not any(map(has_columns, paths)):
            raise InputError(
                "none of the files is a table",
                where=f"--column {options.column}",
                hint="Name tables FILE.csv or FILE.tsv, or leave --column out.",
            )
        given = _given_texts(options)
        # What is given line by line counts, whatever corpus is named.
        self._by_corpus = options.corpus is not None and given is None
        self.systems = [self._source(*pair) for pair in named]
        if given is not None:
            self.systems = _with_texts(self.systems, given)

    def _source(self, system: str, file: str | Path | Sequence[ResponseLine]) -> Source:
        path = Path(file if isinstance(file, str | Path) else system)
        column = self._options.column if has_columns(path) else None

        def read() -> Iterable[ResponseLine]:
            return read_outputs(path, column) if isinstance(file, str | Path) else file

        # A file is read again and again, so that nothing need be kept; standard input never is,
        # not even where a file is called "-".
        if path != STDIN and path.is_file() and not (self._by_corpus and _is_bare(read())):
            return Source(system, path, read)
        kept = list(read())
        if self._by_corpus and _is_bare(kept):
            return _of_corpus(system, kept, self._corpus(), path)
        return Source(system, path, lambda: kept)

    def _corpus(self) -> Corpus:
        if self.corpus is None:
            data = None if self._data is None else Path(self._data)
            self.corpus = load_corpus(self._options.corpus or "", data=data, test_only=True)
        return self.corpus


def _require_one_stdin(paths: Iterable[Path]) -> None:
    if sum(path == STDIN for path in paths) > 1:
        raise InputError(
            "standard input can be read only once",
            where="-",
            hint="Write all but one of them to files.",
        )


def _named(files: Files) -> list[tuple[str, str | Path | Sequence[ResponseLine]]]:
    """What each system is called, with its responses."""
    if isinstance(files, Mapping):
        return list(files.items())
    paths = [Path(file) for file in files]
    counts = Counter(stem(path) for path in dict.fromkeys(paths))
    return [(name if counts[name := stem(path)] == 1 else str(path), path) for path in paths]


_Texts = tuple[tuple[str, ...], tuple[str, ...]]
"""Context and references of an example; empty where none are given."""


def _given_texts(options: InputOptions) -> list[_Texts] | None:
    """What options name for each example by files or texts; None where they name none."""
    references = [_rows_of(file, "references") for file in options.all_references]
    contexts = None if options.contexts is None else _rows_of(options.contexts, "contexts")
    columns = references if contexts is None else [*references, contexts]
    if not columns:
        return None
    (first, size), *others = ((column.name, len(column.rows)) for column in columns)
    for path, count in others:
        if count != size:
            raise InputError(
                f"it has {count:,} lines where {first} has {size:,}",
                where=path,
                hint="Give one line for every response, in the same order.",
            )
    return [
        (
            contexts.rows[number] if contexts else (),
            tuple(chain.from_iterable(column.rows[number] for column in references)),
        )
        for number in range(size)
    ]


def _rows_of(file: str | Path | TextRows, kind: Kind) -> TextRows:
    if isinstance(file, TextRows):
        return file
    return TextRows(str(file), read_texts(Path(file), kind))


def _with_texts(sources: Sequence[Source], given: Sequence[_Texts]) -> list[Source]:
    """The sources with the contexts and references of their places.

    All of them answer the same examples, so that files without ids or dialogues get those that
    another one bears.
    """
    systems = [_placed(list(source.lines()), given, source.path) for source in sources]
    for name in ("id", "dialogue_id"):
        bearing = [any(getattr(line, name) is not None for line in lines) for lines in systems]
        if True in bearing:
            known = [getattr(line, name) for line in systems[bearing.index(True)]]
            systems = [
                lines if bears else filled(lines, name, known)
                for lines, bears in zip(systems, bearing, strict=True)
            ]
    return [
        dataclasses.replace(source, lines=partial(list, lines))
        for source, lines in zip(sources, systems, strict=True)
    ]


def _placed(
    lines: Sequence[ResponseLine], given: Sequence[_Texts], path: Path
) -> list[ResponseLine]:
    if len(lines) != len(given):
        raise InputError(
            f"{len(lines):,} responses for {len(given):,} lines of --references or --contexts",
            where=str(path),
            hint="Give one response for every line, in order; an empty line is an empty response.",
        )
    return [
        dataclasses.replace(
            line, context=context or line.context, references=references or line.references
        )
        for line, (context, references) in zip(lines, given, strict=True)
    ]


def filled(lines: Iterable[ResponseLine], name: str, values: Iterable[Any]) -> list[ResponseLine]:
    """The lines with one field replaced, each by the value of its place."""
    pairs = zip(lines, values, strict=True)
    return [dataclasses.replace(line, **{name: value}) for line, value in pairs]


def _of_corpus(system: str, lines: Sequence[ResponseLine], corpus: Corpus, path: Path) -> Source:
    """The lines with the examples of the test split that they answer, in its order."""
    examples = list(corpus.test)
    matched, unused = align(lines, [example.as_context() for example in examples], path)
    kept = [
        dataclasses.replace(
            line,
            id=example.id,
            dialogue_id=example.dialogue_id,
            context=example.context,
            references=example.references,
        )
        for line, example in zip(matched, examples, strict=True)
    ]
    verb = "answers" if unused == 1 else "answer"
    left = f"{count_of(unused, 'response')} of its file {verb} no example of {corpus.name}"
    return Source(system, path, lambda: kept, (left,) if unused else ())


def _is_bare(lines: Iterable[ResponseLine]) -> bool:
    """Whether no line says what it answers."""
    return not any(line.context or line.references for line in lines)
