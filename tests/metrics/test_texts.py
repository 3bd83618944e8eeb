from __future__ import annotations

import pickle
from itertools import chain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialbench.metrics.texts import Interner, Ragged, Texts
from dialbench.records import Example
from dialbench.text.tokenizer import split_words, tokenizer


def words_of(ragged: Ragged) -> list[list[str]]:
    words = list(ragged.words)
    return [[words[number] for number in numbers] for numbers in ragged.lists()]


def test_words_are_numbered_as_they_come_and_once():
    words = Interner()
    assert [words[word] for word in "babc"] == [0, 1, 0, 2]
    assert list(words) == ["b", "a", "c"]


def test_responses_and_references_come_back_token_for_token(texts_of):
    texts = texts_of(["x y", "", "y"], [("x", "y z"), (), ("",)])
    assert words_of(texts.responses) == [["x", "y"], [], ["y"]]
    assert words_of(texts.references) == [["x"], ["y", "z"], []]
    assert texts.owners.tolist() == [0, 0, 2]
    assert texts.dialogues == ["d0", "d0", "d1"]


@pytest.mark.parametrize("name", ["default", "whitespace", "parlai", "13a", "intl", "zh", "char"])
@given(texts=st.lists(st.text("ab \x00'smd\n.İΣ一\u0301"), max_size=6))
def test_texts_have_the_tokens_they_have_alone(texts_of, name, texts):
    actual = texts_of(texts, [(text, text) for text in texts], tokenize=name)
    assert words_of(actual.responses) == [tokenizer(name)(text) for text in texts]
    assert words_of(actual.references) == [tokenizer(name)(t) for t in texts for _ in range(2)]


def test_texts_are_read_composed():
    example = Example("1", "1", ("cafe\u0301 ?",), ("oui, cafe\u0301",))
    texts = Texts.build([(example, "e\u0301te\u0301", "a\u0300")], split_words, verbatim=True)
    assert texts.response_texts == list(texts.words)[:1] == ["été"]
    assert texts.reference_texts == ["oui, café"]
    assert texts.alternative_texts == ["à"]
    assert texts.contexts == [("café ?",)]


def test_no_responses_at_all_are_texts_too(texts_of):
    texts = texts_of([])
    assert len(texts) == 0
    assert list(texts.blocks(10)) == []


@pytest.mark.parametrize("index", [[2, 0, 2], np.array([True, False, True]), slice(1, 3), []])
def test_indexing_takes_whole_texts(texts_of, index):
    ragged = texts_of(["a b", "c", "d e f"]).responses
    index = np.array(index, dtype=np.intp) if isinstance(index, list) else index
    expected = np.array([["a", "b"], ["c"], ["d", "e", "f"]], dtype=object)[index].tolist()
    assert words_of(ragged[index]) == expected


def test_concatenation_renumbers_what_another_interner_numbered(texts_of):
    one, other = texts_of(["a b"]).responses, texts_of(["b c", "a"]).responses
    shard = pickle.loads(pickle.dumps(other))  # noqa: S301 - our own object, from another process
    merged = Ragged.concatenate([one, shard])
    assert words_of(merged) == [["a", "b"], ["b", "c"], ["a"]]
    assert merged.words is one.words


def test_blocks_cover_everything_and_keep_to_their_size(texts_of):
    responses = ["a b c", "d", "", "e f g h i j", "k l"]
    references = [("m",), ("n o", "p"), (), ("q",), ()]
    texts = texts_of(responses, references)
    blocks = list(texts.blocks(5))
    assert [len(block) for block in blocks] == [1, 2, 1, 1]
    for kind in ("responses", "references"):
        parts = [words_of(getattr(block, kind)) for block in blocks]
        assert list(chain(*parts)) == words_of(getattr(texts, kind))
    assert [block.owners.tolist() for block in blocks] == [[0], [0, 0], [0], []]


def test_best_takes_the_highest_and_skips_what_is_not_there(texts_of):
    texts = texts_of(["a"] * 4, [("r", "r"), ("r", "r"), ("r",), ()])
    best = texts.best(np.array([0.2, 0.7, np.nan, 0.1, np.nan]))
    np.testing.assert_array_equal(best, [0.7, 0.1, np.nan, np.nan])


def test_shared_work_is_done_once(texts_of):
    calls = []

    def measure(texts: Texts) -> int:
        calls.append(texts)
        return len(texts)

    texts = texts_of(["a", "b"])
    assert [texts.once(measure), texts.once(measure)] == [2, 2]
    assert len(calls) == 1
