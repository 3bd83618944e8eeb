"""METEOR as nltk computes it (Banerjee and Lavie, 2005), on what is known per word."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dialbench.metrics.base import SHARE, MeanMetric
from dialbench.metrics.info import MetricInfo
from dialbench.metrics.overlap import NO_REFERENCES
from dialbench.metrics.texts import Interner, Texts
from dialbench.metrics.wordnet import WORDNET, WordNet

_ALPHA, _BETA, _GAMMA = 0.9, 3.0, 0.5


class Meteor(MeanMetric):
    """meteor: nltk's METEOR (alpha 0.9, beta 3, gamma 0.5), mean over examples, in [0, 1).

    Equal to `nltk.translate.meteor_score.meteor_score` on the same tokens with the same WordNet;
    the best of several references. An empty response counts 0; examples without a reference are
    left out. It is not METEOR 1.5, and values with different WordNets do not compare: the
    signature names both.

    Args:
        tokenizer: name of the tokeniser.
        wordnet: where synonyms come from; None gives NaN and a reason.
    """

    bounds = SHARE

    def __init__(self, tokenizer: str, wordnet: WordNet | None) -> None:
        source = wordnet.checksum[:12] if wordnet else "missing"
        super().__init__(
            "meteor",
            f"meteor-nltk|alpha:0.9|beta:3|gamma:0.5|match:exact,stem,synonym"
            f"|wordnet:{source}|references:max",
            tokenizer,
        )
        self._wordnet = wordnet
        self.missing = "" if wordnet else WORDNET.missing

    def values(self, texts: Texts) -> NDArray[np.float64]:
        """(responses,) METEOR with the best reference."""
        if self._wordnet is None:
            return np.full(len(texts), np.nan)
        words = _words(texts, self._wordnet)
        references = texts.references.lists()
        scores = np.full(len(texts), np.nan)
        for position, (response, count) in enumerate(
            zip(texts.responses.lists(), np.diff(texts.reference_offsets).tolist(), strict=True)
        ):
            words_of_response = [words[number] for number in response]
            for _ in range(count):
                other = [words[number] for number in next(references)]
                scores[position] = np.fmax(scores[position], _meteor(words_of_response, other))
        return scores

    def undefined_reason(self) -> str:
        """What is missing."""
        return self.missing or NO_REFERENCES


class _Word(NamedTuple):
    """What matching needs of a word: its lower-cased form, its stem, and stems that mean it."""

    form: int
    stem: int
    synonyms: frozenset[int]


def _words(texts: Texts, wordnet: WordNet) -> list[_Word]:
    """Every word of the texts, by its number."""
    from nltk.stem.porter import PorterStemmer

    stemmer = PorterStemmer()
    forms, stems = Interner(), Interner()
    numbers = [(forms[word.lower()], stems[stemmer.stem(word)]) for word in texts.words]
    response_words = {numbers[word][1] for word in np.unique(texts.responses.values).tolist()}
    synonyms = [
        _synonyms(stem, stems, wordnet) if number in response_words else frozenset()
        for stem, number in stems.items()
    ]
    return [_Word(form, stem, synonyms[stem]) for form, stem in numbers]


def _synonyms(stem: str, stems: Interner, wordnet: WordNet) -> frozenset[int]:
    """The synonyms that are stems of the texts; others cannot match.

    Stems instead of words, on both sides, because nltk goes on with what its stem step left.
    """
    return frozenset(stems[other] for other in wordnet.synonyms(stem) if other in stems)


def _meteor(response: Sequence[_Word], reference: Sequence[_Word]) -> float:
    pairs = _align(response, reference)
    if not pairs:
        return 0.0
    precision, recall = len(pairs) / len(response), len(pairs) / len(reference)
    mean = (precision * recall) / (_ALPHA * precision + (1 - _ALPHA) * recall)
    penalty: float = _GAMMA * (_chunks(pairs) / len(pairs)) ** _BETA
    return (1 - penalty) * mean


def _align(response: Sequence[_Word], reference: Sequence[_Word]) -> list[tuple[int, int]]:
    """Pairs of places that match: first by form, what is left by stem, then by synonym."""
    left, right = list(range(len(response))), list(range(len(reference)))
    pairs = _match(left, right, [w.form for w in response], [w.form for w in reference])
    if left and right:
        pairs += _match(left, right, [w.stem for w in response], [w.stem for w in reference])
    if left and right:
        pairs += _match_synonyms(left, right, response, reference)
    return sorted(pairs)


def _match(
    left: list[int],
    right: list[int],
    response_keys: Sequence[Hashable],
    reference_keys: Sequence[Hashable],
) -> list[tuple[int, int]]:
    """Matches equal keys from the end, each with the last place still free, as nltk does.

    Matched places are taken out of `left` and `right`.
    """
    free = defaultdict(list)
    for position in right:
        free[reference_keys[position]].append(position)
    pairs = [
        (position, free[response_keys[position]].pop())
        for position in reversed(left)
        if free.get(response_keys[position])
    ]
    _remove_matched(pairs, left, right)
    return pairs


def _match_synonyms(
    left: list[int], right: list[int], response: Sequence[_Word], reference: Sequence[_Word]
) -> list[tuple[int, int]]:
    """Matches from the end with the last free place that holds a synonym."""
    free = list(right)
    stems = {reference[position].stem for position in free}
    pairs = []
    for position in reversed(left):
        synonyms = response[position].synonyms
        if synonyms.isdisjoint(stems):
            continue
        match = next((p for p in reversed(free) if reference[p].stem in synonyms), None)
        if match is not None:
            free.remove(match)
            pairs.append((position, match))
    return pairs


def _remove_matched(pairs: list[tuple[int, int]], left: list[int], right: list[int]) -> None:
    if pairs:
        used_response, used_reference = (set(places) for places in zip(*pairs, strict=True))
        left[:] = [position for position in left if position not in used_response]
        right[:] = [position for position in right if position not in used_reference]


def _chunks(pairs: Sequence[tuple[int, int]]) -> int:
    """Runs of matches that are neighbours in both texts."""
    follows = (b == (a[0] + 1, a[1] + 1) for a, b in pairwise(pairs))
    return len(pairs) - sum(follows)


METRICS = (
    MetricInfo(
        "meteor",
        "METEOR",
        "Overlap",
        Meteor,
        lambda s: Meteor(s.tokenizer, s.of(WORDNET).value),
        resource=WORDNET,
    ),
)
