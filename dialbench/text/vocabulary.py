"""The words that word models know, as numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from dialbench.text.tokenizer import tokenize

PAD, UNK, BOS, EOS, SEP = range(5)
SPECIALS = ("<pad>", "<unk>", "<bos>", "<eos>", "<sep>")


class Vocabulary:
    """Words in order of falling frequency behind the five specials (docs/systems.md).

    Args:
        words: the words without the specials, most frequent first, none twice.
    """

    def __init__(self, words: Sequence[str]) -> None:
        self.words = (*SPECIALS, *words)
        self._ids = {word: number for number, word in enumerate(self.words)}
        if len(self._ids) != len(self.words):
            raise ValueError("a word stands twice in the vocabulary")

    @classmethod
    def build(cls, texts: Iterable[Iterable[str]], size: int) -> Vocabulary:
        """The `size` most frequent words (specials not counted), ties in alphabetical order."""
        return cls.from_counts(Counter(word for text in texts for word in text), size)

    @classmethod
    def from_counts(cls, counts: Mapping[str, int], size: int) -> Vocabulary:
        """As `build`, from the number of times each word occurs."""
        words = counts.keys() - set(SPECIALS)
        return cls(sorted(words, key=lambda word: (-counts[word], word))[:size])

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: str) -> bool:
        return word in self._ids

    def read(self, text: str) -> list[int]:
        """Numbers of a text as the corpus has it."""
        return self.encode(tokenize(text))

    def encode(self, tokens: Iterable[str]) -> list[int]:
        """Numbers of the tokens; words not known become UNK."""
        ids = self._ids
        return [ids.get(token, UNK) for token in tokens]

    def decode(self, numbers: Iterable[int]) -> list[str]:
        """Words of the numbers up to EOS, specials other than UNK left out."""
        words = []
        for number in numbers:
            if number == EOS:
                break
            if number == UNK or number >= len(SPECIALS):
                words.append(self.words[number])
        return words
