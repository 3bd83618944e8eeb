"""Splits as flat integer arrays, and the batches made from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import chain

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from numpy.typing import NDArray

from dialbench.neural.randomness import seed_of
from dialbench.records import Context, Split
from dialbench.text.tokenizer import tokenize
from dialbench.text.vocabulary import BOS, EOS, PAD, SEP, UNK, Vocabulary

Ints = NDArray[np.int64]
IGNORED = -100  # the target of rows whose prediction does not matter, as of `F.cross_entropy`

# On a CPU every shape of a bfloat16 product has a program of its own, which takes about a
# millisecond to make and a megabyte to keep. With lengths of a few steps there are few shapes.
_SOURCE_STEP, _TARGET_STEP, _TURNS_STEP, _ROWS_STEP = 8, 4, 32, 64


def _rounded_up(count: int, step: int) -> int:
    return -(-count // step) * step


@dataclass(frozen=True, eq=False)
class PackedSequences:
    """Integer sequences of different lengths in one flat array.

    They may overlap and leave gaps, as contexts cut from one dialogue do; what metrics count
    (`metrics.texts.Ragged`) never does, so that bounds serve there.

    Attributes:
        values: (total,) int32, all sequences one behind the other.
        starts, ends: (n,) where each sequence begins and ends in `values`.
    """

    values: NDArray[np.int32]
    starts: Ints
    ends: Ints

    @classmethod
    def of(cls, sequences: Sequence[Sequence[int]]) -> PackedSequences:
        """These sequences, packed."""
        lengths = np.fromiter((len(s) for s in sequences), np.int64, len(sequences))
        flat = np.fromiter(chain.from_iterable(sequences), np.int32, int(lengths.sum()))
        ends = np.cumsum(lengths)
        return cls(flat, ends - lengths, ends)

    @cached_property
    def lengths(self) -> Ints:
        """(n,) the length of each sequence."""
        return self.ends - self.starts

    @cached_property
    def longest(self) -> int:
        """The length of the longest sequence."""
        return int(self.lengths.max(initial=0))

    def take(self, rows: Ints) -> PackedSequences:
        """The sequences `rows` in a new flat array."""
        lengths = self.lengths[rows]
        ends = np.cumsum(lengths)
        index = np.arange(ends[-1] if len(ends) else 0)
        index += np.repeat(self.starts[rows] - (ends - lengths), lengths)
        return PackedSequences(self.values[index], ends - lengths, ends)

    def padded(self, rows: Ints, step: int = 1) -> Ints:
        """The sequences `rows` as a matrix (rows, columns), PAD behind their ends.

        There are as many columns as the longest of them has numbers, rounded up to a multiple of
        `step`, but not more than the longest of all sequences has.
        """
        starts, lengths = self.starts[rows], self.lengths[rows]
        size = _rounded_up(int(lengths.max(initial=0)), step)
        columns = np.arange(max(1, min(size, self.longest)))
        real = columns < lengths[:, None]
        matrix = np.full(real.shape, PAD, np.int64)
        matrix[real] = self.values[(starts[:, None] + columns)[real]]
        return matrix


@dataclass(frozen=True, eq=False)
class Encoded:
    """The examples of a split as numbers.

    Attributes:
        ids: (n,) example ids.
        turns: tokens of every distinct turn.
        contexts: for each example the numbers of its context turns, oldest first; a context
            without turns holds an empty one.
        source: for each example the context's tokens, turns joined by SEP, latest tokens kept.
        target: for each example the response's tokens and EOS; empty where there is none.
        limit: how many tokens of a context are kept.
        dialogues: (n,) the number of each example's dialogue, from 0; None when answering.
    """

    ids: NDArray[np.object_]
    turns: PackedSequences
    contexts: PackedSequences
    source: PackedSequences
    target: PackedSequences
    limit: int = 1 << 30
    dialogues: Ints | None = None

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, eq=False)
class Turns:
    """The context turns of a batch, each distinct one once.

    Attributes:
        tokens: (U, W) tokens of the distinct turns, PAD behind them; as U is rounded up, the last
            rows may hold no turn.
        contexts: (B, N) rows of `tokens`, oldest turn first, -1 behind the last.
    """

    tokens: torch.Tensor
    contexts: torch.Tensor


@dataclass(frozen=True, eq=False)
class Batch:
    """Examples padded to one length.

    Attributes:
        ids: B example ids.
        source: (B, S) context tokens, PAD = 0 behind them.
        target: (B, T) response tokens with EOS, PAD behind them; (B, 0) when answering.
        real: (R,) indices of the tokens that are no PAD in the flattened (B * T) target, ascending.
        seed: with `ids` and `purpose` the seed of everything random in this batch; None in
            training, which uses the global generator.
        purpose: "valid" or "infer", so that their random streams differ.
        origin: the split and its rows that the batch was cut from.
    """

    ids: tuple[str, ...]
    source: torch.Tensor
    target: torch.Tensor
    real: torch.Tensor
    seed: int | None = None
    purpose: str = ""
    origin: tuple[Encoded, Ints] | None = None

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def turns(self) -> Turns:
        """The context turns one by one, computed at first use."""
        if self.origin is None:
            raise ValueError("only a batch cut from a split knows its turns")
        return Turns(*(on_device(a, self.source.device) for a in _turns(*self.origin)))

    @cached_property
    def predictions(self) -> tuple[torch.Tensor, torch.Tensor]:
        """The rows of the flattened (B * T) target to predict, and their words, (R',) each.

        R' is R rounded up to a multiple of 64; what is added repeats row 0, with IGNORED for its
        word.
        """
        more = -len(self.real) % _ROWS_STEP
        words = self.target.flatten().index_select(0, self.real)  # (R,)
        return F.pad(self.real, (0, more)), F.pad(words, (0, more), value=IGNORED)

    @property
    def inputs(self) -> torch.Tensor:
        """(B, T) decoder inputs: BOS and the response without its last token."""
        return F.pad(self.target[:, :-1], (1, 0), value=BOS)


@lru_cache(maxsize=4)
def build_vocabulary(train: Split, size: int, min_count: int = 1) -> Vocabulary:
    """The `size` most frequent words of the training dialogues.

    Rarer ones than `min_count` become UNK, which would otherwise hardly occur in training and
    then be badly predicted wherever a new word stands. Cached for the next system of the run.
    """
    counts = count_words(train)
    known = {word: times for word, times in counts.items() if times >= min_count}
    return Vocabulary.from_counts(known, size)


def count_words(train: Split) -> Counter[str]:
    """The count of each word in the training dialogues, every turn counted once."""
    turns: Counter[str] = Counter()
    seen: set[str] = set()
    for example in train:
        turns.update(example.references[:1])
        if example.dialogue_id not in seen:
            seen.add(example.dialogue_id)
            turns.update(example.context)
    counts: Counter[str] = Counter()
    for text, times in turns.items():
        for word in tokenize(text):
            counts[word] += times
    return counts


def encode(
    contexts: Sequence[Context],
    vocabulary: Vocabulary,
    context_tokens: int,
    responses: Sequence[str] = (),
    response_tokens: int = 0,
) -> Encoded:
    """Turns texts into numbers, each distinct turn once.

    Args:
        contexts: n contexts.
        vocabulary: gives the numbers.
        context_tokens: how many tokens of a context are kept, counted from its end; a separator
            between two turns is one.
        responses: n responses to learn from, or none when answering.
        response_tokens: how many tokens of a response are kept, EOS not counted.
    """
    numbers: dict[str, int] = {}
    contexts_or_empty = [context or ("",) for context in contexts]
    for text in chain(chain.from_iterable(contexts_or_empty), responses):
        numbers.setdefault(text, len(numbers))
    turns = PackedSequences.of([vocabulary.read(text) for text in numbers])
    turn_numbers = PackedSequences.of(
        [[numbers[turn] for turn in context] for context in contexts_or_empty]
    )
    return Encoded(
        np.array([context.id for context in contexts], dtype=object),
        turns,
        turn_numbers,
        _join(turns, turn_numbers, context_tokens),
        _targets(turns, np.array([numbers[r] for r in responses], np.int64), response_tokens),
        context_tokens,
    )


@lru_cache(maxsize=4)
def encode_split(
    split: Split, vocabulary: Vocabulary, context_tokens: int, response_tokens: int
) -> Encoded:
    """`encode` for examples with their first reference as response; cached for the next system."""
    data = encode(
        [example.as_context() for example in split],
        vocabulary,
        context_tokens,
        [example.references[0] for example in split],
        response_tokens,
    )
    numbers: dict[str, int] = {}
    dialogues = [numbers.setdefault(example.dialogue_id, len(numbers)) for example in split]
    return replace(data, dialogues=np.array(dialogues, np.int64))


def with_shuffled_contexts(data: Encoded) -> Encoded:
    """The same responses, each with the context of the example half a split away.

    Examples of one dialogue are neighbours, so hardly any context is of the same dialogue.
    """
    others = np.roll(np.arange(len(data)), len(data) // 2)
    source, contexts = data.source.take(others), data.contexts.take(others)
    return replace(data, source=source, contexts=contexts)


def _join(turns: PackedSequences, contexts: PackedSequences, limit: int) -> PackedSequences:
    closed = PackedSequences(
        np.insert(turns.values, turns.ends, SEP).astype(np.int32),
        turns.starts + np.arange(len(turns.starts)),
        turns.ends + np.arange(len(turns.ends)) + 1,
    )
    joined = closed.take(contexts.values.astype(np.int64))
    bounds = np.concatenate([[0], joined.ends])
    starts, ends = bounds[contexts.starts], bounds[contexts.ends]
    ends = np.maximum(ends - 1, starts)  # no SEP behind the last turn
    # An empty context still needs one token to attend to.
    values = np.append(joined.values, np.int32(UNK))
    empty = ends == starts
    starts = np.where(empty, len(values) - 1, np.maximum(starts, ends - limit))
    return PackedSequences(values, starts, np.where(empty, len(values), ends))


def _targets(turns: PackedSequences, rows: Ints, limit: int) -> PackedSequences:
    if not len(rows):
        return PackedSequences(np.zeros(0, np.int32), np.zeros(0, np.int64), np.zeros(0, np.int64))
    cut = PackedSequences(turns.values, turns.starts, np.minimum(turns.ends, turns.starts + limit))
    selected = cut.take(rows)
    shift = np.arange(len(rows))
    values = np.insert(selected.values, selected.ends, EOS).astype(np.int32)
    return PackedSequences(values, selected.starts + shift, selected.ends + shift + 1)


def make_batch(
    data: Encoded, rows: Ints, device: str, seed: int | None = None, purpose: str = ""
) -> Batch:
    """The examples `rows` as a batch on `device`."""
    responses, none = data.target, np.zeros((len(rows), 0), np.int64)
    target = responses.padded(rows, _TARGET_STEP) if len(responses.starts) else none
    # Computed on the CPU, since asking a GPU would wait for it.
    real = np.flatnonzero(target != PAD)
    ids = tuple(data.ids[rows])
    arrays = data.source.padded(rows, _SOURCE_STEP), target, real
    source, targets, places = (on_device(array, device) for array in arrays)
    return Batch(ids, source, targets, places, seed, purpose, (data, rows))


def on_device(array: Ints, device: str | torch.device) -> torch.Tensor:
    """The array as a tensor there; a GPU copies it while the CPU goes on."""
    tensor = torch.from_numpy(array)
    if torch.device(device).type == "cuda":
        tensor = tensor.pin_memory()
    return tensor.to(device, non_blocking=True)


def _turns(data: Encoded, rows: Ints) -> tuple[Ints, Ints]:
    # The matrices of `Turns`. Each context is cut as `source` is, where a separator between two
    # turns counts as a token: systems that read turn by turn see the very words that others see.
    chosen = data.contexts.take(rows)
    starts, ends = data.turns.starts[chosen.values], data.turns.ends[chosen.values]
    cumulative = np.cumsum(ends - starts + 1)  # tokens up to each turn, separators counted
    later = np.repeat(cumulative[chosen.ends - 1], chosen.lengths) - cumulative
    kept = later < data.limit
    pairs = np.stack([chosen.values, np.maximum(starts, ends - (data.limit - later))], 1)[kept]
    distinct, inverse = np.unique(pairs, axis=0, return_inverse=True)
    turns = PackedSequences(data.turns.values, distinct[:, 1], data.turns.ends[distinct[:, 0]])
    last = np.cumsum(kept, dtype=np.int64)[chosen.ends - 1]
    # Numbered from 1, so that what pads the contexts becomes -1.
    numbers = (inverse.reshape(-1) + 1).astype(np.int32)
    contexts = PackedSequences(numbers, np.append(0, last[:-1]), last)
    tokens = turns.padded(np.arange(len(distinct)), _TARGET_STEP)
    more = -len(tokens) % _TURNS_STEP  # turns without words, of no context
    tokens = np.pad(tokens, ((0, more), (0, 0)), constant_values=PAD)
    return tokens, contexts.padded(np.arange(len(rows))) - 1


_POOL = 128


def training_rows(
    data: Encoded, batch_size: int, seed: int, number: int, *, whole_dialogues: bool = False
) -> list[Ints]:
    """The batches of a pass as row numbers: shuffled, of similar lengths within a batch.

    Examples are shuffled, sorted by length inside pools of 128 batches, and the batches shuffled
    again, so that little is padded and every pass (`number`, from 1) is another order. Within
    contexts of about one length, responses run from short to long and then from long to short, so
    that a batch across two such lengths still holds similar responses.

    With `whole_dialogues` the examples of a dialogue stay together, in their order, and what is
    shuffled and sorted, by the mean length of the responses, are dialogues; one may go on in the
    next batch. More is padded, and what the contexts of a batch share is read once.
    """
    random = np.random.default_rng(seed_of(seed, "order", number))
    sort = _sorted_dialogues if whole_dialogues else _sorted_examples
    order = sort(data, _POOL * batch_size, random)
    batches = np.split(order, np.arange(batch_size, len(order), batch_size))
    return [batches[i] for i in random.permutation(len(batches))]


def _sorted_examples(data: Encoded, pool_size: int, random: np.random.Generator) -> Ints:
    order = random.permutation(len(data))
    pool = np.arange(len(data)) // pool_size
    source, target = data.source.lengths[order], data.target.lengths[order]
    tier = source // 8
    return order[np.lexsort((np.where(tier % 2, -target, target), tier, pool))]


def _sorted_dialogues(data: Encoded, pool_size: int, random: np.random.Generator) -> Ints:
    if data.dialogues is None:
        raise ValueError("only a split to learn from knows its dialogues")
    sizes = np.bincount(data.dialogues)
    mean_target = np.bincount(data.dialogues, data.target.lengths) / sizes
    dialogues = random.permutation(len(sizes))
    pool = np.cumsum(sizes[dialogues]) // pool_size
    dialogues = dialogues[np.lexsort((mean_target[dialogues], pool))]
    rank = np.empty_like(dialogues)  # of each dialogue in that order
    rank[dialogues] = np.arange(len(dialogues))
    return np.argsort(rank[data.dialogues], kind="stable")


def update_rows(
    data: Encoded,
    batch_size: int,
    seed: int,
    first: int,
    count: int,
    *,
    whole_dialogues: bool = False,
) -> Iterator[Ints]:
    """The batches of the updates `first` (from 0) to `first + count - 1`, pass after pass."""
    batches_per_pass = -(-len(data) // batch_size)
    while count > 0:
        number, start = divmod(first, batches_per_pass)
        batches = training_rows(data, batch_size, seed, number + 1, whole_dialogues=whole_dialogues)
        rows = batches[start : start + count]
        yield from rows
        first, count = first + len(rows), count - len(rows)


def answering_rows(data: Encoded, batch_size: int) -> Iterator[Ints]:
    """Batches by falling context length, so that running out of memory shows at once."""
    order = np.argsort(-data.source.lengths, kind="stable")
    for start in range(0, len(order), batch_size):
        yield order[start : start + batch_size]
