"""Where words start from: vectors made from the training split, and how often they are said."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from dialbench.neural.data import Encoded, encode
from dialbench.neural.words import log_unigram, word_vectors
from dialbench.records import Context
from dialbench.text.vocabulary import EOS, PAD, Vocabulary

WORDS = Vocabulary(
    ["the", "a", "cat", "dog", "sleeps", "eats", "on", "monday", "friday", "we", "meet", "hush"]
)


@pytest.fixture(scope="module")
def data() -> Encoded:
    texts = [
        f"{article} {animal} {verb}"
        for article in ("the", "a")
        for animal in ("cat", "dog")
        for verb in ("sleeps", "eats")
    ]
    texts += [f"we meet on {day}" for day in ("monday", "friday")]
    contexts = [Context((turn,), str(i)) for i, turn in enumerate(texts)]
    return encode(contexts, WORDS, 20, ["hush"] * len(texts), 9)


def test_words_among_the_same_neighbours_lie_together(data: Encoded) -> None:
    vectors = F.normalize(word_vectors(data, len(WORDS), 6), dim=1)

    def alike(one: str, other: str) -> float:
        return float(vectors[WORDS.encode([one])] @ vectors[WORDS.encode([other])].T)

    assert alike("cat", "dog") > 0.9 > alike("cat", "monday")
    assert alike("monday", "friday") > 0.9 > alike("friday", "eats")


def test_lengths_and_words_without_a_neighbour(data: Encoded) -> None:
    vectors = word_vectors(data, len(WORDS), 6)
    assert vectors.shape == (len(WORDS), 6)
    alone = WORDS.encode(["hush"])[0]
    assert not vectors[[PAD, EOS, alone]].any()
    assert vectors[WORDS.encode(["cat", "meet"])].square().mean(1).tolist() == pytest.approx([1, 1])


def test_vectors_longer_than_there_are_words(data: Encoded) -> None:
    vectors = word_vectors(data, len(WORDS), 40)
    assert vectors.shape == (len(WORDS), 40)
    assert vectors.isfinite().all()


def test_made_again_they_are_the_same_and_draw_nothing(data: Encoded) -> None:
    before = torch.get_rng_state()
    one = word_vectors(data, len(WORDS), 5)
    word_vectors.cache_clear()
    assert torch.equal(word_vectors(data, len(WORDS), 5), one)
    assert torch.equal(torch.get_rng_state(), before)


def test_log_unigram_by_hand() -> None:
    contexts = [Context(("the cat",), "1"), Context(("a dog",), "2")]
    data = encode(contexts, WORDS, 9, ["we meet", "we"], 9)
    logs = log_unigram(data, len(WORDS))
    total = 5 + 0.5 * len(WORDS)  # we meet EOS we EOS
    assert logs[EOS].item() == pytest.approx(math.log(2.5 / total))
    assert logs[WORDS.encode(["we"])[0]].item() == pytest.approx(math.log(2.5 / total))
    assert logs[WORDS.encode(["cat"])[0]].item() == pytest.approx(math.log(0.5 / total))
    assert logs.exp().sum().item() == pytest.approx(1.0)
