"""Texts to numbers to batches."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dialbench.neural.data import (
    IGNORED,
    Encoded,
    PackedSequences,
    answering_rows,
    build_vocabulary,
    encode,
    encode_split,
    make_batch,
    training_rows,
    update_rows,
)
from dialbench.records import Context, Example, Split
from dialbench.text.vocabulary import BOS, EOS, PAD, SEP, UNK, Vocabulary

WORDS = Vocabulary(["a", "b", "c", "d", "e", "f"])
A, B, C, D, E, F = range(5, 11)

sequences = st.lists(st.lists(st.integers(1, 9), max_size=5), max_size=6)


def lists(ragged: PackedSequences) -> list[list[int]]:
    bounds = zip(ragged.starts, ragged.ends, strict=True)
    return [ragged.values[start:end].tolist() for start, end in bounds]


def source_of(*turns: str, limit: int = 100) -> list[int]:
    return lists(encode([Context(turns)], WORDS, limit).source)[0]


def target_of(response: str, limit: int = 100) -> list[int]:
    return lists(encode([Context(["a"])], WORDS, 9, [response], limit).target)[0]


class TestRagged:
    @given(sequences)
    def test_holds_its_sequences(self, given):
        ragged = PackedSequences.of(given)
        assert lists(ragged) == given
        assert ragged.lengths.tolist() == [len(s) for s in given]

    @given(sequences, st.data())
    def test_take_and_padded(self, given, chosen):
        rows = chosen.draw(
            st.lists(st.integers(0, len(given) - 1), max_size=8) if given else st.just([])
        )
        rows = np.array(rows, np.int64)
        ragged = PackedSequences.of(given)
        expected = [given[row] for row in rows]
        assert lists(ragged.take(rows)) == expected
        width = max(1, *map(len, expected), 0) if expected else 1
        padded = ragged.padded(rows)
        assert padded.shape == (len(rows), width)
        assert padded.tolist() == [s + [PAD] * (width - len(s)) for s in expected]

    def test_sequences_that_share_values(self):
        ragged = PackedSequences(
            np.array([1, 2, 3, 4], np.int32), np.array([0, 1]), np.array([3, 4])
        )
        assert ragged.padded(np.array([1, 0])).tolist() == [[2, 3, 4], [1, 2, 3]]
        assert lists(ragged.take(np.array([1, 1]))) == [[2, 3, 4], [2, 3, 4]]


class TestEncode:
    def test_turns_are_joined_by_sep(self):
        assert source_of("a b", "c", "d e") == [A, B, SEP, C, SEP, D, E]

    def test_context_is_cut_at_its_beginning(self):
        assert source_of("a b", "c", "d e", limit=4) == [C, SEP, D, E]
        assert source_of("a b", "c", "d e", limit=2) == [D, E]

    def test_response_is_cut_at_its_end_and_eos_is_last(self):
        assert target_of("a b c") == [A, B, C, EOS]
        assert target_of("a b c", limit=2) == [A, B, EOS]

    def test_empty_texts(self):
        assert target_of("") == [EOS]
        assert source_of() == [UNK]
        assert source_of("") == [UNK]
        assert source_of("a", "", "b") == [A, SEP, SEP, B]

    def test_empty_context_beside_others(self):
        encoded = encode([Context(["a"]), Context([]), Context(["b", "c"])], WORDS, 9)
        assert lists(encoded.source) == [[A], [UNK], [B, SEP, C]]

    def test_unknown_words(self):
        assert source_of("a zebra") == [A, UNK]

    def test_nothing_to_answer(self):
        encoded = encode([], WORDS, 9)
        assert len(encoded) == 0
        assert list(answering_rows(encoded, 4)) == []

    def test_each_distinct_turn_is_tokenised_once(self, monkeypatch):
        seen = []
        heard = "dialbench.text.vocabulary.tokenize"
        monkeypatch.setattr(heard, lambda text: seen.append(text) or text.split())
        contexts = [Context(["a", "b"]), Context(["a", "b", "c"]), Context(["b"])]
        encoded = encode(contexts, WORDS, 9, ["c", "d", "c"], 9)
        assert sorted(seen) == ["a", "b", "c", "d"]
        assert lists(encoded.turns) == [[A], [B], [C], [D]]
        assert lists(encoded.contexts) == [[0, 1], [0, 1, 2], [1]]
        assert lists(encoded.target) == [[C, EOS], [D, EOS], [C, EOS]]

    def test_split_is_encoded_with_its_first_references(self, train):
        vocabulary = build_vocabulary(train, 100)
        encoded = encode_split(train, vocabulary, 50, 20)
        assert encode_split(train, vocabulary, 50, 20) is encoded
        assert encoded.ids.tolist() == [example.id for example in train]
        words = vocabulary.decode(lists(encoded.target)[1])
        assert words == ["good", "."]


class TestVocabulary:
    def test_every_turn_counts_once(self):
        turns = ("red red red", "blue blue", "green red", "blue")
        examples = [
            Example(f"{i}", "x", turns[max(0, i - 2) : i], (turns[i], "yellow yellow yellow"))
            for i in range(1, 4)
        ]
        again = Example("y", "y", ("green green green green", "white"), ("black",))
        vocabulary = build_vocabulary(Split("train", [*examples, again]), 4)
        # green 5, red 4, blue 3; black and white 1, the first of the alphabet is kept
        assert vocabulary.words[5:] == ("green", "red", "blue", "black")

    def test_rare_words_are_left_to_unk(self):
        turns = ("red red", "blue", "green blue")
        examples = [Example("1", "x", turns[:2], (turns[2],))]
        vocabulary = build_vocabulary(Split("train", examples), 4, 2)
        assert vocabulary.words[5:] == ("blue", "red")
        assert vocabulary.read("green") == [UNK]

    def test_is_built_once_for_a_split(self, train):
        assert build_vocabulary(train, 30) is build_vocabulary(train, 30)


def of_lengths(source, target) -> Encoded:
    nothing = PackedSequences.of([])
    ids = np.array([str(i) for i in range(len(source))], dtype=object)
    made = [
        PackedSequences.of([[A] * length for length in lengths]) for lengths in (source, target)
    ]
    return Encoded(ids, nothing, nothing, *made)


class TestTrainingRows:
    @pytest.fixture
    def encoded(self) -> Encoded:
        random = np.random.default_rng(0)
        source = random.gamma(2.0, 25.0, 9_001).astype(int) + 1
        return of_lengths(source, random.gamma(2.0, 8.0, 9_001).astype(int) + 1)

    def test_every_example_once(self, encoded):
        batches = training_rows(encoded, 32, 1, 1)
        assert sorted(np.concatenate(batches)) == list(range(9_001))
        assert sorted(map(len, batches)) == [9_001 % 32] + [32] * (9_001 // 32)

    def test_is_a_function_of_seed_and_epoch(self, encoded):
        def order(seed: int, epoch: int) -> list[int]:
            return np.concatenate(training_rows(encoded, 32, seed, epoch)).tolist()

        assert order(1, 1) == order(1, 1)
        assert len({tuple(order(*key)) for key in [(1, 1), (1, 2), (2, 1)]}) == 3

    def test_every_epoch_puts_other_examples_together(self, encoded):
        def together(epoch: int) -> set[frozenset[int]]:
            return {frozenset(rows.tolist()) for rows in training_rows(encoded, 32, 1, epoch)}

        assert len(together(1) & together(2)) < 3

    def test_less_than_a_quarter_is_padded(self, encoded):
        def padding(batches: list[np.ndarray]) -> float:
            both = (encoded.source.lengths, encoded.target.lengths)
            padded = sum(len(rows) * n[rows].max() for n in both for rows in batches)
            return padded / sum(n.sum() for n in both) - 1

        assert padding(training_rows(encoded, 32, 1, 1)) < 0.25
        unsorted = np.split(np.arange(9_001), np.arange(32, 9_001, 32))
        assert padding(unsorted) > 1.0

    def test_lengths_come_in_no_order(self, encoded):
        means = [encoded.source.lengths[rows].mean() for rows in training_rows(encoded, 32, 1, 1)]
        ranks = np.corrcoef(np.arange(len(means)), means)[0, 1]
        assert abs(ranks) < 0.2


class TestWholeDialogues:
    @pytest.fixture
    def encoded(self) -> Encoded:
        random = np.random.default_rng(0)
        dialogues = np.repeat(np.arange(600), random.integers(1, 20, 600))
        mean = random.gamma(2.0, 8.0, 600).astype(int)[dialogues]
        target = mean + random.integers(1, 9, len(dialogues))
        return replace(of_lengths([9] * len(dialogues), target), dialogues=dialogues)

    def test_every_example_once_and_as_many_a_batch(self, encoded):
        batches = training_rows(encoded, 32, 1, 1, whole_dialogues=True)
        assert sorted(np.concatenate(batches)) == list(range(len(encoded)))
        alone = training_rows(encoded, 32, 1, 1)
        assert sorted(map(len, batches)) == sorted(map(len, alone))

    def test_the_examples_of_a_dialogue_are_neighbours_in_their_order(self, encoded):
        pieces = {}  # by dialogue, the runs of neighbouring rows that batches have of it
        for rows in training_rows(encoded, 32, 1, 1, whole_dialogues=True):
            borders = np.flatnonzero(np.diff(encoded.dialogues[rows])) + 1
            for run in np.split(rows, borders):
                assert run.tolist() == list(range(run[0], run[0] + len(run)))
                pieces.setdefault(int(encoded.dialogues[run[0]]), []).append(run)
        assert len(pieces) == 600
        # 32 examples end a batch, not a dialogue: at most one goes on from each batch to the next
        assert sum(len(runs) - 1 for runs in pieces.values()) < len(encoded) / 32

    def test_every_pass_puts_other_dialogues_together(self, encoded):
        def first(seed: int, number: int) -> list[int]:
            return training_rows(encoded, 32, seed, number, whole_dialogues=True)[0].tolist()

        assert first(1, 1) == first(1, 1)
        assert len({tuple(first(*key)) for key in [(1, 1), (1, 2), (2, 1)]}) == 3

    def test_updates_follow_the_passes(self, encoded):
        every = [
            rows.tolist()
            for number in (1, 2)
            for rows in training_rows(encoded, 32, 1, number, whole_dialogues=True)
        ]
        asked = update_rows(encoded, 32, 1, 3, len(every) - 5, whole_dialogues=True)
        assert [rows.tolist() for rows in asked] == every[3:-2]

    def test_needs_a_split_to_learn_from(self):
        with pytest.raises(ValueError, match="dialogues"):
            training_rows(of_lengths([3], [2]), 32, 1, 1, whole_dialogues=True)


def test_answering_rows_fall_in_length():
    encoded = of_lengths([3, 9, 5, 9, 1], [])
    assert [rows.tolist() for rows in answering_rows(encoded, 2)] == [[1, 3], [2, 0], [4]]


class TestBatch:
    @pytest.fixture
    def encoded(self) -> Encoded:
        contexts = [Context(["a"], "one"), Context(["b", "c"], "two"), Context(["d"], "three")]
        return encode(contexts, WORDS, 9, ["e f", "", "f"], 9)

    def test_inputs_targets_and_real(self, encoded):
        batch = make_batch(encoded, np.array([1, 0]), "cpu", 7, "valid")
        assert batch.ids == ("two", "one")
        assert len(batch) == 2
        assert (batch.seed, batch.purpose) == (7, "valid")
        assert batch.source.tolist() == [[B, SEP, C], [A, PAD, PAD]]
        assert batch.target.tolist() == [[EOS, PAD, PAD], [E, F, EOS]]
        assert batch.inputs.tolist() == [[BOS, EOS, PAD], [BOS, E, F]]
        assert batch.real.tolist() == [0, 3, 4, 5]
        assert batch.source.dtype == batch.target.dtype == batch.real.dtype == torch.int64

    def test_without_responses(self, questions):
        batch = make_batch(questions, np.array([0, 1, 2]), "cpu")
        assert batch.target.shape == (3, 0)
        assert batch.real.shape == (0,)
        assert batch.seed is None


class TestFewShapes:
    """On a CPU every shape of a product costs time once and memory for good."""

    def test_columns_are_rounded_up_but_not_beyond_the_longest_sequence(self):
        packed = PackedSequences.of([[1] * n for n in (1, 3, 4, 5, 9, 0)])
        for rows, columns in [([0], 4), ([1, 2], 4), ([3], 8), ([4], 9), ([5], 1)]:
            matrix = packed.padded(np.array(rows), 4)
            assert matrix.shape == (len(rows), columns)
            assert (matrix != PAD).sum(1).tolist() == packed.lengths[rows].tolist()

    def test_batches_of_many_lengths_have_few_shapes(self):
        random = np.random.default_rng(0)
        source, target = random.integers(1, 97, 4_000), random.integers(1, 42, 4_000)
        encoded = of_lengths(source, target)
        batches = [make_batch(encoded, np.arange(i, i + 32), "cpu") for i in range(0, 4_000, 32)]
        assert {b.source.shape[1] % 8 for b in batches} == {0}
        # 41 is the longest
        assert {b.target.shape[1] for b in batches} <= {*range(4, 41, 4), 41}
        assert {len(b.predictions[0]) % 64 for b in batches} == {0}

    def test_predictions_are_the_real_words_and_what_is_ignored(self):
        contexts = [Context(["a"], "one"), Context(["b"], "two")]
        batch = make_batch(encode(contexts, WORDS, 9, ["e f", "f"], 9), np.array([0, 1]), "cpu")
        rows, words = batch.predictions
        assert len(rows) == len(words) == 64
        assert rows[:5].tolist() == batch.real.tolist()
        assert words[:5].tolist() == [E, F, EOS, F, EOS]
        assert not rows[5:].any()
        assert words[5:].eq(IGNORED).all()


class TestUpdateRows:
    def test_passes_follow_each_other(self):
        encoded = of_lengths([3] * 20, [2] * 20)
        passes = [training_rows(encoded, 8, 1, number) for number in (1, 2, 3)]
        every = [rows.tolist() for rows in (*passes[0], *passes[1], *passes[2])]
        actual = [rows.tolist() for rows in update_rows(encoded, 8, 1, 2, 5)]
        assert actual == every[2:7]


class TestTurns:
    """Systems that read turn by turn see the very words that others see."""

    @pytest.mark.parametrize("limit", [1, 2, 3, 7, 20])
    def test_words_are_those_of_the_context_as_one_string(self, limit):
        random = np.random.default_rng(limit)
        texts = [" ".join(random.choice(list("abcd"), random.integers(1, 9))) for _ in range(6)]
        contexts = [
            Context(random.choice(texts, random.integers(1, 6)).tolist(), str(i)) for i in range(40)
        ]
        batch = make_batch(encode(contexts, WORDS, limit), np.arange(40), "cpu")
        turns = batch.turns
        for row, source, context in zip(turns.contexts, batch.source, contexts, strict=True):
            kept = [turns.tokens[turn] for turn in row if turn >= 0]
            joined = [t for turn in kept for t in (*turn[turn.ne(PAD)].tolist(), SEP)][:-1]
            whole = source[source.ne(PAD)].tolist()
            assert joined == whole[whole[0] == SEP :]
            assert len(kept) <= len(context)
            assert row[: len(kept)].ge(0).all()
