"""Synonyms from WordNet files: the sets that nltk's METEOR uses, read in a fraction of the time.

nltk builds every sense of WordNet and its relations before it answers; synonyms need the
index, the irregular forms and one line of the data for each sense.
"""

from __future__ import annotations

import hashlib
import re
import zipfile
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path

from dialbench.errors import InputError
from dialbench.files.folders import nltk_folders
from dialbench.files.lines import read_file
from dialbench.metrics.resource import Resource

# The endings that Morphy replaces, as in WordNet's own `morph.c` and in nltk.
_ENDINGS = {
    "noun": (
        *(("s", ""), ("ses", "s"), ("ves", "f"), ("xes", "x"), ("zes", "z"), ("ches", "ch")),
        *(("shes", "sh"), ("men", "man"), ("ies", "y")),
    ),
    "verb": (
        *(("s", ""), ("ies", "y"), ("es", "e"), ("es", ""), ("ed", "e"), ("ed", "")),
        *(("ing", "e"), ("ing", "")),
    ),
    "adj": (("er", ""), ("est", ""), ("er", "e"), ("est", "e")),
    "adv": (),
}
_MARKER = re.compile(r"\([^()]*\)$")
MISSING = (
    "no WordNet was found: put wordnet.zip into nltk_data/corpora of the data folder, "
    "or set NLTK_DATA to a folder that holds corpora/wordnet.zip"
)


class WordNet:
    """The synonyms of one WordNet.

    Args:
        path: `wordnet.zip`, or the folder it unpacks to.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[str, frozenset[str]] = {}

    @classmethod
    def find(cls, data: Path | None) -> WordNet | None:
        """The first WordNet in `data`/nltk_data, NLTK_DATA or nltk's own folders, or None."""
        for folder in nltk_folders(data):
            for name in ("wordnet.zip", "wordnet"):
                path = folder / "corpora" / name
                if path.is_file() or (path / "index.noun").is_file():
                    return cls(path)
        return None

    @cached_property
    def checksum(self) -> str:
        """sha256 of the files that synonyms come from."""
        digest = hashlib.sha256()
        for name in (f"{kind}{part}" for part in _ENDINGS for kind in ("index.", "data.")):
            digest.update(self._read(name))
        for part in _ENDINGS:
            digest.update(self._read(f"{part}.exc"))
        return digest.hexdigest()

    def synonyms(self, word: str) -> frozenset[str]:
        """The one-word lemmas of all senses of `word` and of its base forms."""
        if word not in self._known:
            lemmas = (lemma for part in _ENDINGS for lemma in self._lemmas(word.lower(), part))
            self._known[word] = frozenset(lemma for lemma in lemmas if "_" not in lemma)
        return self._known[word]

    def _lemmas(self, word: str, part: str) -> Iterator[str]:
        index, irregular, data = self._parts[part]
        bases = irregular.get(word) or [
            word[: -len(old)] + new for old, new in _ENDINGS[part] if word.endswith(old)
        ]
        for form in {word, *bases}:
            for offset in index.get(form, ()):
                line = data[offset : data.index(b"\n", offset)].decode("utf-8").split("|")[0]
                fields = line.split()
                for field in fields[4 : 4 + 2 * int(fields[3], 16) : 2]:
                    yield _MARKER.sub("", field)

    @cached_property
    def _parts(self) -> dict[str, _Part]:
        try:
            return {part: self._part(part) for part in _ENDINGS}
        except (ValueError, IndexError) as error:
            raise InputError(
                f"this is no WordNet in the format of version 3 ({error})",
                where=str(self._path),
                hint="Replace the file.",
            ) from error

    def _part(self, part: str) -> _Part:
        index = {}
        for line in self._read(f"index.{part}").decode("utf-8").splitlines():
            if not line.startswith(" "):
                fields = line.split()
                index[fields[0]] = [int(field) for field in fields[-int(fields[2]) :]]
        lines = self._read(f"{part}.exc").decode("utf-8").splitlines()
        irregular = {fields[0]: fields[1:] for fields in map(str.split, lines)}
        return index, irregular, self._read(f"data.{part}")

    @cached_property
    def _read(self) -> Callable[[str], bytes]:
        if self._path.is_dir():
            return lambda name: read_file(self._path / name)
        try:
            archive = zipfile.ZipFile(self._path)
            return lambda name: archive.read(f"wordnet/{name}")
        except (OSError, zipfile.BadZipFile) as error:
            raise InputError(
                f"the archive cannot be read ({error})",
                where=str(self._path),
                hint="Replace the file.",
            ) from error


_Part = tuple[dict[str, list[int]], dict[str, list[str]], bytes]


WORDNET = Resource[WordNet]("wordnet")
