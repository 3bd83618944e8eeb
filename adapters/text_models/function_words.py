"""Function words and content words of a corpus (DVS2S paper, "Dynamic Vocabulary Construction").

Function words keep a response grammatical whatever it is about; every vocabulary of DVS2S holds
them. They are the words seen often enough in training that are no noun, verb, adjective or adverb.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from dialbench.errors import InputError
from dialbench.neural.data import count_words
from dialbench.records import Split
from dialbench.text.tokenizer import tokenize
from dialbench.text.vocabulary import SPECIALS, Vocabulary

from . import tagger

Tags = Literal["auto", "nltk", "closed"]
CLOSED_NOTE = (
    "function words are those of a closed list, since nltk's tagger was not found: put it into "
    "the data folder with dialbench fetch nltk"
)

_CONTENT = {"NOUN", "VERB", "ADJ", "ADV"}
# English words of closed classes, as they stand in lower-case text with contractions split.
_CLOSED = """
a an the this that these those each every either neither some any no all both half such another
what which whose whatever whichever there
i me my mine myself you your yours yourself yourselves he him his himself she her hers herself
it its itself we us our ours ourselves they them their theirs themselves one ones oneself who whom
whoever someone somebody something anyone anybody anything everyone everybody everything nobody
none nothing
about above across after against along among around as at because before behind below beneath
beside besides between beyond by despite down during except for from if in inside into like near
of off on onto out outside over past per since than though although through throughout till to
toward towards under unless until up upon via whereas whether while with within without
and but or nor yet plus 's '
zero two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen twenty
thirty forty fifty sixty seventy eighty ninety hundred thousand million
oh ah aha hey hi hello wow oops yeah yes yep nope okay ok hmm um uh huh ugh ouch please well bye
goodbye hooray gosh
"""


@dataclass(frozen=True)
class FunctionWords:
    """The function words of a vocabulary.

    Attributes:
        words: in order of falling frequency, specials first.
        closed: whether they come from the closed list for want of a tagger.
    """

    words: tuple[str, ...]
    closed: bool = False

    @classmethod
    def of(
        cls,
        train: Split,
        vocabulary: Vocabulary,
        tags: Tags,
        count: int,
        data: Path | None = None,
    ) -> FunctionWords:
        """Finds them in a training split.

        Args:
            train: its words are counted; its responses are tagged, each distinct one once.
            vocabulary: what they are chosen from.
            tags: `nltk` requires nltk's tagger, `closed` takes our list, `auto` the tagger where
                there is one.
            count: words must occur more often than this.
            data: the data folder.

        Raises:
            InputError: `nltk` is asked for and not there.
        """
        responses = Counter(example.references[0] for example in train if example.references)
        counts = count_words(train)
        folder = tagger_folder(tags, data)
        function = (
            set(_CLOSED.split())
            if folder is None
            else _by_tags(
                tagger.Tagger.load(folder),
                ((tokenize(text), times) for text, times in responses.items()),
            )
        )
        words = (
            word
            for word in vocabulary.words[len(SPECIALS) :]
            if is_mark(word) or (word in function and counts[word] > count)
        )
        return cls((*SPECIALS, *words), folder is None and tags == "auto")


def is_mark(word: str) -> bool:
    """Whether there is no letter or digit in it: punctuation is always a function word."""
    return not any(character.isalnum() for character in word)


def tagger_folder(tags: Tags, data: Path | None = None) -> Path | None:
    """Where the tagger to be used lies; None where the closed list serves.

    Raises:
        InputError: `tags` is nltk and there is none.
    """
    folder = None if tags == "closed" else tagger.find(data)
    if folder is None and tags == "nltk":
        raise InputError(
            "nltk's tagger was not found in the data folder (--data) or $NLTK_DATA",
            where="--models tags=nltk",
            hint="Run dialbench fetch nltk, or write tags=closed.",
        )
    return folder


def identity(tags: Tags, data: Path | None = None) -> Mapping[str, Any]:
    """What function words depend on outside the corpus: the tagger's checksum, or the list.

    Raises:
        InputError: as `tagger_folder`.
    """
    folder = tagger_folder(tags, data)
    return {"tagger": "closed" if folder is None else tagger.checksum(folder)}


def _by_tags(by: tagger.Tagger, texts: Iterable[tuple[list[str], int]]) -> set[str]:
    """The words whose most frequent universal tag is none of content words'."""
    seen: dict[str, Counter[str]] = defaultdict(Counter)
    for words, times in texts:
        for word, tag in zip(words, by.tag(list(map(_written, words))), strict=True):
            seen[word][tagger.universal(tag)] += times
    return {word for word, tags in seen.items() if _most_frequent(tags) not in _CONTENT}


def _written(word: str) -> str:
    # The tagger was trained on text with capitals and takes a small "i" for a noun.
    return "I" if word == "i" else word


def _most_frequent(tags: Counter[str]) -> str:
    return min(tags, key=lambda tag: (-tags[tag], tag))
