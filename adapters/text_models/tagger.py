"""Parts of speech: nltk's averaged perceptron, run from its own JSON files.

The features are those that the weights were trained with, so the tags are those of
`nltk.pos_tag`; nltk itself is not needed, and reads these files from folders of its own only.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dialbench.errors import InputError
from dialbench.files.folders import data_folder, nltk_folders
from dialbench.files.lines import read_file
from dialbench.files.loads import loads

NAME = "averaged_perceptron_tagger_eng"
_PARTS = ("classes", "tagdict", "weights")
_OUTSIDE = (["-START-", "-START2-"], ["-END-", "-END2-"])

# Penn Treebank tags as the universal tag set has them (Petrov et al., 2012); the rest are marks.
_UNIVERSAL = {
    "ADJ": "JJ JJR JJS",
    "ADP": "IN",
    "ADV": "RB RBR RBS WRB",
    "CONJ": "CC",
    "DET": "DT EX PDT WDT",
    "NOUN": "NN NNP NNPS NNS",
    "NUM": "CD",
    "PRON": "PRP PRP$ WP WP$",
    "PRT": "POS RP TO",
    "VERB": "MD VB VBD VBG VBN VBP VBZ",
    "X": "FW LS SYM UH",
}
_UNIVERSAL_OF = {tag: name for name, tags in _UNIVERSAL.items() for tag in tags.split()}


def universal(tag: str) -> str:
    """The universal tag of a Penn Treebank tag; "." for punctuation."""
    return _UNIVERSAL_OF.get(tag, ".")


def find(data: Path | None) -> Path | None:
    """The first folder with the tagger's files: data folder, $NLTK_DATA, nltk's own; or None."""
    for folder in nltk_folders(data_folder(data)):
        path = folder / "taggers" / NAME
        if all(_file(path, part).is_file() for part in _PARTS):
            return path
    return None


def checksum(folder: Path) -> str:
    """sha256 (64 hex digits) of the tagger's files."""
    digest = hashlib.sha256()
    for part in _PARTS:
        digest.update(read_file(_file(folder, part)))
    return digest.hexdigest()


def _file(folder: Path, part: str) -> Path:
    return folder / f"{NAME}.{part}.json"


class Tagger:
    """Tags the words of a text.

    Args:
        classes: the tags there are.
        tagdict: words that always have the same tag.
        weights: for each feature what it says for each tag.
    """

    def __init__(
        self,
        classes: Sequence[str],
        tagdict: Mapping[str, str],
        weights: Mapping[str, Mapping[str, float]],
    ) -> None:
        self.classes, self.tagdict, self.weights = tuple(classes), tagdict, weights

    @classmethod
    def load(cls, folder: Path) -> Tagger:
        """The tagger whose JSON files lie in `folder`.

        Raises:
            InputError: a file cannot be read or holds something else.
        """
        classes, tagdict, weights = (_read(_file(folder, part)) for part in _PARTS)
        if not (_strings(classes) and isinstance(tagdict, dict) and isinstance(weights, dict)):
            raise _damaged(folder, "not a tagger's JSON")
        values = [value for tag_weights in weights.values() for value in dict(tag_weights).values()]
        if not (_strings(tagdict.values()) and all(isinstance(v, int | float) for v in values)):
            raise _damaged(folder, "not a tagger's JSON")
        return cls(classes, tagdict, weights)

    def tag(self, words: Sequence[str]) -> list[str]:
        """The Penn Treebank tag of each word of a sentence."""
        start, end = _OUTSIDE
        around = [*start, *map(_normal, words), *end]
        before, last = start
        tags = []
        for index, word in enumerate(words):
            tag = self.tagdict.get(word) or self._best(_features(index, word, around, before, last))
            tags.append(tag)
            before, last = tag, before
        return tags

    def _best(self, features: Sequence[str]) -> str:
        scores: dict[str, float] = defaultdict(float)
        for feature in features:
            for tag, weight in self.weights.get(feature, {}).items():
                scores[tag] += weight
        return max(self.classes, key=lambda tag: (scores[tag], tag))


def _features(index: int, word: str, around: Sequence[str], before: str, last: str) -> list[str]:
    # `before` and `last` are the tags of the word before and of the one before that.
    two_back, back, here, then, two_on = around[index : index + 5]
    return [
        "bias",
        f"i suffix {word[-3:]}",
        f"i pref1 {word[:1]}",
        f"i-1 tag {before}",
        f"i-2 tag {last}",
        f"i tag+i-2 tag {before} {last}",
        f"i word {here}",
        f"i-1 tag+i word {before} {here}",
        f"i-1 word {back}",
        f"i-1 suffix {back[-3:]}",
        f"i-2 word {two_back}",
        f"i+1 word {then}",
        f"i+1 suffix {then[-3:]}",
        f"i+2 word {two_on}",
    ]


def _normal(word: str) -> str:
    if "-" in word and word[0] != "-":
        return "!HYPHEN"
    if word.isdigit() and len(word) == 4:
        return "!YEAR"
    return "!DIGITS" if word[:1].isdigit() else word.lower()


def _read(path: Path) -> Any:
    try:
        return loads(read_file(path))
    except (OSError, ValueError) as error:
        raise _damaged(path, str(error)) from None


def _strings(values: Any) -> bool:
    return all(isinstance(value, str) for value in values)


def _damaged(path: Path, reason: str) -> InputError:
    return InputError(
        f"the tagger cannot be read ({reason})",
        where=str(path),
        hint="Replace its files, or write tags=closed.",
    )
