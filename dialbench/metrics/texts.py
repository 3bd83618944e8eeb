"""Responses and references as numbers: tokenised once, for all metrics."""

from __future__ import annotations

import hashlib
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, count, islice, repeat
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from dialbench.records import ExampleResponses
from dialbench.text.tokenizer import PIECEWISE, Tokenizer, composed, split_words

T = TypeVar("T")
_BATCH = 1 << 8
"""Texts that are read at a time."""
_MARK, _BETWEEN = "\x00", " \x00 "
_ALONE = 2
"""What `ExampleResponses` hold without alternatives: an example and the response."""


class Interner(dict[str, int]):
    """Numbers words as they come: `interner[word]` is its number, new words get the next one.

    Numbers are dense from 0 and the order of the keys is the order of the numbers.
    """

    def __missing__(self, word: str) -> int:
        number = self[word] = len(self)
        return number


class Shared:
    """What several metrics need of the same texts is worked out once."""

    _made: dict[Any, Any]

    def once(self, make: Callable[..., T], *arguments: Any) -> T:
        """`make(self, *arguments)`, worked out the first time only.

        Args:
            make: a function of module level.
            arguments: arrays, which count by what they hold, or what can be hashed.
        """
        key = (make, *map(_hashable, arguments))
        if key not in self._made:
            self._made[key] = make(self, *arguments)
        return cast(T, self._made[key])


def _hashable(argument: Any) -> Any:
    if not isinstance(argument, np.ndarray):
        return argument
    digest = hashlib.blake2b(np.ascontiguousarray(argument).data).digest()
    return argument.dtype.str, argument.shape, digest


@dataclass(frozen=True)
class Ragged(Shared):
    """Texts of different lengths, one after the other.

    Attributes:
        values: (tokens,) int32 word numbers.
        offsets: (texts + 1,) int64; text i is `values[offsets[i]:offsets[i + 1]]`.
        words: what the numbers mean.
    """

    values: NDArray[np.int32]
    offsets: NDArray[np.int64]
    words: Interner
    _made: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> NDArray[np.int64]:
        """(texts,) number of tokens of each text."""
        return np.diff(self.offsets)

    def __getitem__(self, index: Any) -> Ragged:
        lengths = self.lengths[index]
        offsets = _offsets(lengths)
        shift = np.repeat(self.offsets[:-1][index] - offsets[:-1], lengths)
        return Ragged(self.values[np.arange(offsets[-1]) + shift], offsets, self.words)

    def part(self, start: int, stop: int) -> Ragged:
        """Texts `start` to `stop` (exclusive), without copying their tokens."""
        offsets = self.offsets[start : stop + 1]
        return Ragged(self.values[offsets[0] : offsets[-1]], offsets - offsets[0], self.words)

    def lists(self) -> Iterator[list[int]]:
        """The word numbers of each text as a list."""
        for start, stop in zip(self.offsets[:-1].tolist(), self.offsets[1:].tolist(), strict=True):
            yield self.values[start:stop].tolist()

    @classmethod
    def build(cls, token_lists: Iterable[list[str]]) -> Ragged:
        """The texts, numbered from scratch."""
        column = _Column(Interner())
        column.extend_pieces(token_lists)
        return column.ragged()

    @classmethod
    def concatenate(cls, parts: Sequence[Ragged]) -> Ragged:
        """All texts of `parts`, in order, numbered as the first part is.

        Parts may come from different interners (shards of several processes); words that the
        first one does not know are added to it.
        """
        words = parts[0].words
        values = np.concatenate([_renumbered(part, words) for part in parts])
        return cls(values, _offsets(np.concatenate([part.lengths for part in parts])), words)


def _offsets(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])


def _renumbered(part: Ragged, words: Interner) -> NDArray[np.int32]:
    if part.words is words:
        return part.values
    numbers = np.fromiter((words[word] for word in part.words), np.int32, len(part.words))
    return numbers[part.values]


@dataclass(frozen=True)
class Paired(Shared):
    """Responses with their references, indexed as one: statistics of metrics that need both.

    Attributes:
        responses: (responses,) texts.
        references: (references,) texts of all examples, one example after the other.
        owned: (responses,) int64, how many references each example has.
    """

    responses: Ragged
    references: Ragged
    owned: NDArray[np.int64]
    _made: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.responses)

    def __getitem__(self, index: Any) -> Paired:
        owned = self.owned[index]
        ends = np.cumsum(owned)
        first = (np.cumsum(self.owned) - self.owned)[index]
        rows = np.arange(owned.sum()) + np.repeat(first - (ends - owned), owned)
        return Paired(self.responses[index], self.references[rows], owned)

    @property
    def owners(self) -> NDArray[np.int64]:
        """(references,) the response that each reference belongs to."""
        return np.repeat(np.arange(len(self)), self.owned)

    @classmethod
    def concatenate(cls, parts: Sequence[Paired]) -> Paired:
        """All responses of `parts`, in order, numbered as the first part is."""
        return cls(
            Ragged.concatenate([part.responses for part in parts]),
            Ragged.concatenate([part.references for part in parts]),
            np.concatenate([part.owned for part in parts]),
        )


@dataclass(frozen=True)
class Texts(Shared):
    """Responses with their references, tokenised.

    Where several responses were drawn to a context, `responses` holds the first of each.

    Attributes:
        responses: (responses,) texts.
        references: (references,) texts of all examples, one example after the other.
        reference_offsets: (responses + 1,) int64; example i has the references
            `reference_offsets[i]` to `reference_offsets[i + 1]` (exclusive).
        alternatives: (alternatives,) further responses, one example after the other.
        alternative_offsets: (responses + 1,) int64; whose they are, as `reference_offsets`.
        dialogues: (responses,) the dialogue each example belongs to.
        response_texts: (responses,) the responses, composed but else as they were written; empty
            unless asked for, like all texts below.
        reference_texts: (references,) the references.
        alternative_texts: (alternatives,) the further responses.
        contexts: (responses,) the turns that were answered, oldest first.
    """

    responses: Ragged
    references: Ragged
    reference_offsets: NDArray[np.int64]
    alternatives: Ragged
    alternative_offsets: NDArray[np.int64]
    dialogues: Sequence[str]
    response_texts: Sequence[str] = ()
    reference_texts: Sequence[str] = ()
    alternative_texts: Sequence[str] = ()
    contexts: Sequence[tuple[str, ...]] = ()
    _made: dict[Any, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def build(
        cls,
        pairs: Iterable[ExampleResponses],
        tokenize: Tokenizer,
        words: Interner | None = None,
        *,
        verbatim: bool = False,
    ) -> Texts:
        """Tokenises a stream of examples and responses; nothing else of them is kept.

        Args:
            pairs: each example with the response to its context, and further ones if drawn.
            tokenize: text to tokens.
            words: numbers words; pass the one of other texts to continue its numbering.
            verbatim: keep the text of responses, references and contexts too.
        """
        words = Interner() if words is None else words
        responses, references, alternatives = (
            _Owned(words, tokenize, verbatim=verbatim) for _ in range(3)
        )
        dialogues: list[str] = []
        contexts: list[tuple[str, ...]] = []
        same: dict[str, str] = {}
        stream = iter(pairs)
        while batch := list(islice(stream, _BATCH)):
            responses.extend([pair[1] for pair in batch], repeat(1, len(batch)))
            each = [pair[0].references for pair in batch]
            references.extend(list(chain.from_iterable(each)), map(len, each))
            several = max(map(len, batch)) > _ALONE
            more = [pair[2:] for pair in batch] if several else [()] * len(batch)
            alternatives.extend(list(chain.from_iterable(more)), map(len, more))
            ids = [pair[0].dialogue_id for pair in batch]
            dialogues.extend(map(same.setdefault, ids, ids))
            if verbatim:
                contexts.extend(tuple(map(composed, pair[0].context)) for pair in batch)
        return cls(
            responses.ragged(),
            references.ragged(),
            references.offsets(),
            alternatives.ragged(),
            alternatives.offsets(),
            dialogues,
            responses.texts,
            references.texts,
            alternatives.texts,
            contexts,
        )

    def __len__(self) -> int:
        return len(self.responses)

    @property
    def words(self) -> Interner:
        """What the numbers of responses and references mean."""
        return self.responses.words

    @property
    def owners(self) -> NDArray[np.int64]:
        """(references,) the response that each reference belongs to."""
        return np.repeat(np.arange(len(self)), np.diff(self.reference_offsets))

    @property
    def paired(self) -> Paired:
        """The tokens of responses and references, without the rest."""
        return Paired(self.responses, self.references, np.diff(self.reference_offsets))

    @property
    def every_response(self) -> Ragged:
        """The responses, then all alternatives; `every_owner` says whose."""
        return Ragged.concatenate([self.responses, self.alternatives])

    @property
    def every_owner(self) -> NDArray[np.int64]:
        """(responses + alternatives,) the example that each belongs to."""
        places = np.arange(len(self))
        return np.concatenate([places, np.repeat(places, np.diff(self.alternative_offsets))])

    def part(self, start: int, stop: int) -> Texts:
        """Responses `start` to `stop` (exclusive) with all that belongs to them."""
        of_references = self.reference_offsets[start : stop + 1]
        of_alternatives = self.alternative_offsets[start : stop + 1]
        first, last = map(int, of_references[[0, -1]])
        least, most = map(int, of_alternatives[[0, -1]])
        return Texts(
            self.responses.part(start, stop),
            self.references.part(first, last),
            of_references - first,
            self.alternatives.part(least, most),
            of_alternatives - least,
            self.dialogues[start:stop],
            self.response_texts[start:stop],
            self.reference_texts[first:last],
            self.alternative_texts[least:most],
            self.contexts[start:stop],
        )

    def blocks(self, tokens: int) -> Iterator[Texts]:
        """Parts of about `tokens` tokens, references included; never less than one response."""
        ends = self.responses.offsets[1:] + self.references.offsets[self.reference_offsets[1:]]
        start = 0
        while start < len(self):
            limit = tokens + (int(ends[start - 1]) if start else 0)
            stop = max(int(np.searchsorted(ends, limit, side="right")), start + 1)
            yield self.part(start, stop)
            start = stop

    def best(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """(responses,) the highest of the (references,) scores of each response.

        NaN scores count only where a response has no other; NaN too without references.
        """
        best = np.full(len(self), np.nan)
        np.fmax.at(best, self.owners, scores)
        return best


class _Column:
    """A growing `Ragged`, kept as numbers of pieces so that each piece is tokenised once."""

    def __init__(self, words: Interner, tokenize: Tokenizer = split_words) -> None:
        self._words, self._tokenize = words, tokenize
        way: tuple[Callable[[str], str] | None, Callable[[str], tuple[str, ...]]]
        way = PIECEWISE.get(tokenize, (None, _alone))
        self._plain, self._tokens = way
        # As an interner, but without a call of Python for each new piece.
        self._pieces = defaultdict[str, int](count(1).__next__, {_MARK: 0})
        self._numbers = array("i")
        self._lengths = array("q")

    def extend(self, texts: Sequence[str]) -> None:
        """Adds texts, joined and cut at once where the mark tells where each ends."""
        plain, joined = self._plain, _BETWEEN.join(texts)
        if plain is None:
            self.extend_pieces(map(self._tokenize, texts))
        elif joined.count(_MARK) != len(texts) - 1:
            self.extend_pieces(plain(text).split() for text in texts)
        else:
            pieces = plain(joined).split()
            numbers = np.fromiter(map(self._pieces.__getitem__, pieces), np.int32, len(pieces))
            ends = np.append(np.flatnonzero(numbers == 0), len(numbers))
            self._lengths.frombytes((np.diff(ends, prepend=-1) - 1).tobytes())
            self._numbers.frombytes(numbers[numbers > 0].tobytes())

    def extend_pieces(self, lists: Iterable[list[str]]) -> None:
        """Adds texts that are cut into pieces."""
        for pieces in lists:
            self._numbers.extend(map(self._pieces.__getitem__, pieces))
            self._lengths.append(len(pieces))

    def ragged(self) -> Ragged:
        """The texts as tokens."""
        numbers = np.asarray(self._numbers, np.int32)
        used = np.bincount(numbers, minlength=len(self._pieces)) > 0
        flat, each = list[str](), array("q")
        for piece, counts in zip(self._pieces, used.tolist(), strict=True):
            tokens = self._tokens(piece) if counts else ()
            flat.extend(tokens)
            each.append(len(tokens))
        values = np.fromiter(map(self._words.__getitem__, flat), np.int32, len(flat))
        lengths = np.asarray(each, np.int64)
        bounds = _offsets(np.asarray(self._lengths, np.int64))
        if np.array_equal(lengths, used):  # a token each
            token = np.zeros(len(used), np.int32)
            token[used] = values
            return Ragged(token[numbers], bounds, self._words)
        pieces = Ragged(values, _offsets(lengths), self._words)[numbers]
        return Ragged(pieces.values, pieces.offsets[bounds], self._words)


def _alone(piece: str) -> tuple[str, ...]:
    return (piece,)


class _Owned:
    """Growing texts of examples, each of which may have none or several."""

    def __init__(self, words: Interner, tokenize: Tokenizer, *, verbatim: bool) -> None:
        self.texts: list[str] = []
        self._column = _Column(words, tokenize)
        self._owned = array("q")
        self._verbatim = verbatim

    def extend(self, texts: Sequence[str], counts: Iterable[int]) -> None:
        """Adds the texts of some examples, and how many of them each example has."""
        if texts:
            self._column.extend(texts)
        self._owned.extend(counts)
        if self._verbatim:
            self.texts.extend(map(composed, texts))

    def ragged(self) -> Ragged:
        return self._column.ragged()

    def offsets(self) -> NDArray[np.int64]:
        return _offsets(np.asarray(self._owned, np.int64))
