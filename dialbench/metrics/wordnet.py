"""Synonyms from WordNet: the sets that nltk's METEOR uses, read in a fraction of the time.

nltk builds every sense of WordNet and its relations before it answers; synonyms need the
index, the irregular forms and one line of the data for each sense. A table of just these, made
from Open English WordNet, ships with the package (`dialbench/metrics/synonyms`). Made anew by

    python -m dialbench.metrics.wordnet wordnet.zip dialbench/metrics/synonyms/oewn.xz
"""

from __future__ import annotations

import hashlib
import lzma
import re
import sys
import zipfile
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from dialbench.errors import InputError
from dialbench.files.atomic import atomic_write
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
_SHIPPED = Path(__file__).parent / "synonyms" / "oewn.xz"


class _PartOfSpeech(NamedTuple):
    """What synonyms of one part of speech need.

    Attributes:
        senses: numbers of the senses of each lower-cased lemma.
        irregular: base forms of irregular forms.
        lemmas: gives the lemmas of a sense.
    """

    senses: dict[str, list[int]]
    irregular: dict[str, list[str]]
    lemmas: Callable[[int], list[str]]


class WordNet:
    """The synonyms of one WordNet.

    Args:
        path: where it is.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._known: dict[str, frozenset[str]] = {}

    @staticmethod
    def shipped() -> WordNet:
        """The one that ships with the package."""
        return SynonymTable(_SHIPPED)

    @classmethod
    def find(cls, data: Path | None) -> WordNet:
        """The first one in `data`/nltk_data, NLTK_DATA or nltk's own folders, else `shipped`."""
        for folder in nltk_folders(data):
            for name in ("wordnet.zip", "wordnet"):
                path = folder / "corpora" / name
                if path.is_file() or (path / "index.noun").is_file():
                    return WordNetFiles(path)
        return cls.shipped()

    @cached_property
    def checksum(self) -> str:
        """sha256 of the WordNet files that synonyms come from."""
        raise NotImplementedError

    @cached_property
    def parts(self) -> dict[str, _PartOfSpeech]:
        """What is known of each part of speech."""
        raise NotImplementedError

    def synonyms(self, word: str) -> frozenset[str]:
        """The one-word lemmas of all senses of `word` and of its base forms."""
        if word not in self._known:
            lemmas = (lemma for part in _ENDINGS for lemma in self._lemmas(word.lower(), part))
            self._known[word] = frozenset(lemma for lemma in lemmas if "_" not in lemma)
        return self._known[word]

    def _lemmas(self, word: str, name: str) -> Iterator[str]:
        part = self.parts[name]
        bases = part.irregular.get(word) or [
            word[: -len(old)] + new for old, new in _ENDINGS[name] if word.endswith(old)
        ]
        for form in {word, *bases}:
            for sense in part.senses.get(form, ()):
                yield from part.lemmas(sense)


class WordNetFiles(WordNet):
    """`wordnet.zip`, or the folder it unpacks to."""

    @cached_property
    def checksum(self) -> str:
        """sha256 of the files that synonyms come from."""
        digest = hashlib.sha256()
        for name in (f"{kind}{part}" for part in _ENDINGS for kind in ("index.", "data.")):
            digest.update(self._read(name))
        for part in _ENDINGS:
            digest.update(self._read(f"{part}.exc"))
        return digest.hexdigest()

    @cached_property
    def parts(self) -> dict[str, _PartOfSpeech]:
        """What is known of each part of speech."""
        try:
            return {part: self._part(part) for part in _ENDINGS}
        except (ValueError, IndexError) as error:
            raise InputError(
                f"this is no WordNet in the format of version 3 ({error})",
                where=str(self.path),
                hint="Replace it by an undamaged one, such as dialbench fetch wordnet brings.",
            ) from error

    def _part(self, part: str) -> _PartOfSpeech:
        senses = {}
        for line in self._read(f"index.{part}").decode("utf-8").splitlines():
            if not line.startswith(" "):
                fields = line.split()
                senses[fields[0]] = [int(field) for field in fields[-int(fields[2]) :]]
        data = self._read(f"data.{part}")

        def lemmas(offset: int) -> list[str]:
            line = data[offset : data.index(b"\n", offset)].decode("utf-8").split("|")[0]
            fields = line.split()
            return [_MARKER.sub("", f) for f in fields[4 : 4 + 2 * int(fields[3], 16) : 2]]

        return _PartOfSpeech(senses, _bases(self._read(f"{part}.exc").decode("utf-8")), lemmas)

    @cached_property
    def _read(self) -> Callable[[str], bytes]:
        if self.path.is_dir():
            return lambda name: read_file(self.path / name)
        try:
            archive = zipfile.ZipFile(self.path)
            return lambda name: archive.read(f"wordnet/{name}")
        except (OSError, zipfile.BadZipFile) as error:
            raise InputError(
                f"the archive cannot be read ({error})",
                where=str(self.path),
                hint="Replace it by an undamaged one, such as dialbench fetch wordnet brings.",
            ) from error


class SynonymTable(WordNet):
    """What synonyms need of a WordNet, in one packed file; they are the same as there.

    The first line holds the checksum of the WordNet. Then come, for each part of speech, irregular
    forms with their bases and senses with their lemmas, a line each, with a blank line behind.
    """

    @cached_property
    def checksum(self) -> str:
        """sha256 of the files that the table was made from."""
        return self._text.partition("\n")[0]

    @cached_property
    def parts(self) -> dict[str, _PartOfSpeech]:
        """What is known of each part of speech."""
        blocks = iter(self._text.partition("\n")[2].split("\n\n"))
        return {name: _part_of_table(next(blocks), next(blocks)) for name in _ENDINGS}

    @cached_property
    def _text(self) -> str:
        return lzma.decompress(self.path.read_bytes()).decode("utf-8")


def _part_of_table(irregular: str, senses: str) -> _PartOfSpeech:
    lemmas = [line.split() for line in senses.splitlines()]
    numbers: dict[str, list[int]] = {}
    for number, sense in enumerate(lemmas):
        for lemma in {lemma.lower() for lemma in sense}:
            numbers.setdefault(lemma, []).append(number)
    return _PartOfSpeech(numbers, _bases(irregular), lemmas.__getitem__)


def _bases(text: str) -> dict[str, list[str]]:
    """Base forms by irregular form, from lines of both."""
    return {fields[0]: fields[1:] for fields in map(str.split, text.splitlines())}


def table_of(wordnet: WordNet) -> bytes:
    """What `SynonymTable` reads; senses without a one-word lemma are left out."""
    blocks = []
    for part in wordnet.parts.values():
        numbers = {number for numbers_of_word in part.senses.values() for number in numbers_of_word}
        senses = {frozenset(part.lemmas(number)) for number in numbers}
        with_a_word = (sense for sense in senses if any("_" not in lemma for lemma in sense))
        irregular = (f"{form} {' '.join(bases)}" for form, bases in part.irregular.items())
        blocks.append("\n".join(irregular))
        blocks.append("\n".join(sorted(" ".join(sorted(sense)) for sense in with_a_word)))
    text = wordnet.checksum + "\n" + "\n\n".join(blocks)
    return lzma.compress(text.encode("utf-8"), preset=9 | lzma.PRESET_EXTREME)


WORDNET = Resource[WordNet]("wordnet", "no WordNet is given")


if __name__ == "__main__":
    atomic_write(Path(sys.argv[2]), table_of(WordNetFiles(Path(sys.argv[1]))))
