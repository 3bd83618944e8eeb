"""Twitter-LDA against enumeration, against plain LDA, and on talk whose topics are known."""

from __future__ import annotations

from collections import Counter
from itertools import product
from math import lgamma

import numpy as np
import pytest
from dialbench_adapters.text_models.twitter_lda import Messages, Sampler, Topics, fit

V, T = 4, 2
SMALL = [(0, [0, 0, 1]), (0, [1, 2]), (1, [3])]


def rising(prior: float, sizes: int, counts) -> float:
    """Log-probability of a sequence with these counts under a symmetric Dirichlet prior."""
    whole = lgamma(sizes * prior) - lgamma(sizes * prior + sum(counts))
    return whole + sum(lgamma(prior + n) - lgamma(prior) for n in counts)


def joint(topics, own) -> float:
    """log p(topics, sources, words) of the small messages, from the model's definition."""
    total, place = 0.0, 0
    drawn: dict[object, Counter] = {}
    for (_, words), topic in zip(SMALL, topics, strict=True):
        for word in words:
            drawn.setdefault(topic if own[place] else "all", Counter())[word] += 1
            place += 1
    for counts in drawn.values():
        total += rising(0.01, V, [counts[word] for word in range(V)])
    for dialogue in (0, 1):
        mine = [t for (d, _), t in zip(SMALL, topics, strict=True) if d == dialogue]
        total += rising(50 / T, T, [mine.count(t) for t in range(T)])
    return total + rising(20.0, 2, [sum(own), len(own) - sum(own)])


def test_blocks_of_one_message_draw_from_the_posterior():
    states = [(t, o) for t in product(range(T), repeat=3) for o in product((0, 1), repeat=6)]
    logs = np.array([joint(*state) for state in states])
    mass = np.exp(logs - logs.max())
    expected = dict(zip(states, mass / mass.sum(), strict=True))
    sampler = Sampler(Messages.of(SMALL), T, V, seed=3, block=1)
    actual: Counter = Counter()
    sweeps = 3_000
    for sweep in range(sweeps + 100):
        sampler.sweep()
        if sweep >= 100:
            actual[tuple(sampler.topic.tolist()), tuple(map(int, sampler.from_topic))] += 1
    for key in (
        lambda t, o: (t[0] == t[1], t[1] == t[2]),
        lambda t, o: o[0] + o[1],
        lambda t, o: (o[2], o[3]),
        lambda t, o: (o[5], t[0] == t[2]),
    ):
        wanted: Counter = Counter()
        got: Counter = Counter()
        for state in states:
            wanted[key(*state)] += expected[state]
            got[key(*state)] += actual[state] / sweeps
        # Neighbouring sweeps depend on each other: as exact as a tenth as many draws would be.
        for value, share in wanted.items():
            assert abs(got[value] - share) < 4 * (share * (1 - share) / (sweeps / 10)) ** 0.5


@pytest.fixture(scope="module")
def talk() -> tuple[Messages, np.ndarray]:
    """Three topics of eight words each and a background of eight, which is half of what is said."""
    random = np.random.default_rng(1)
    pairs, truth = [], []
    for dialogue in range(60):
        topic = dialogue % 3
        for _ in range(6):
            own = random.random(7) < 0.5
            words = np.where(own, 8 * (topic + 1), 0) + random.integers(8, size=7)
            pairs.append((dialogue, words.tolist()))
            truth.append(topic)
    return Messages.of(pairs), np.array(truth)


def groups(lists) -> set[frozenset[int]]:
    return {frozenset(words) for words in lists}


BLOCKS = {frozenset(range(8 * k, 8 * k + 8)) for k in (1, 2, 3)}


def test_known_topics_are_found_and_the_background_is_in_none(talk):
    topics = fit(talk[0], 3, 32, 60, seed=1)
    assert groups(topics.best(8)) == BLOCKS
    assert groups(topics.best(100)) == BLOCKS  # universal words are left out
    assert all(len(words) == 3 for words in topics.best(3))
    assert topics.words.sum() + topics.background.sum() == 60 * 6 * 7
    assert topics.messages.sum() == 360


def test_topics_are_those_of_plain_lda_over_the_topical_words(talk):
    lda = pytest.importorskip("sklearn.decomposition").LatentDirichletAllocation
    bags = np.zeros((60, 32))
    messages = talk[0]
    for row, start, end in zip(
        messages.dialogues, messages.words.starts, messages.words.ends, strict=True
    ):
        np.add.at(bags[row], messages.words.values[start:end], 1)
    plain = lda(3, random_state=1, max_iter=20).fit(bags[:, 8:])
    expected = groups((np.argsort(-row)[:8] + 8).tolist() for row in plain.components_)
    actual = groups(fit(messages, 3, 32, 60, seed=2).best(8))
    nearest = {max(expected, key=topic.intersection) for topic in actual}
    assert nearest == expected
    assert all(max(len(topic & other) for other in expected) >= 7 for topic in actual)


def test_messages_take_the_topic_they_are_about(talk):
    messages, truth = talk
    topics = fit(messages, 3, 32, 60, seed=1)
    bags = np.zeros((len(messages), 32))
    rows = np.repeat(np.arange(len(messages)), messages.words.lengths)
    np.add.at(bags, (rows, messages.words.values), 1)
    actual = (topics.prior + bags @ topics.logs).argmax(1)
    named = [int(np.bincount(actual[truth == k]).argmax()) for k in range(3)]
    assert sorted(named) == [0, 1, 2]
    assert (np.array(named)[truth] == actual).mean() > 0.95


def test_counts_stay_those_of_the_state(talk):
    messages, _ = talk
    sampler = Sampler(messages, 3, 32, seed=1, block=50)
    for _ in range(3):
        sampler.sweep()
    z = np.repeat(sampler.topic, messages.words.lengths)
    words, background = np.zeros((3, 32)), np.zeros(32)
    for word, topic, own in zip(messages.words.values, z, sampler.from_topic, strict=True):
        if own:
            words[topic, word] += 1
        else:
            background[word] += 1
    topics = sampler.topics()
    assert np.array_equal(topics.words, words)
    assert np.array_equal(topics.background, background)
    assert np.array_equal(topics.messages, np.bincount(sampler.topic, minlength=3))


def test_probabilities(talk):
    topics = fit(talk[0], 3, 32, 5, seed=1)
    assert np.exp(topics.logs).sum(0) == pytest.approx(np.ones(3))
    assert np.exp(topics.prior).sum() == pytest.approx(1.0)
    assert topics.of_words.sum(1) == pytest.approx(np.ones(32))


def test_the_seed_decides(talk, tmp_path):
    first, again, other = (fit(talk[0], 3, 32, 2, seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(first.words, again.words)
    assert not np.array_equal(first.words, other.words)
    first.save(tmp_path / "topics.safetensors")
    loaded = Topics.load(tmp_path / "topics.safetensors")
    for name in ("words", "background", "messages"):
        assert np.array_equal(getattr(loaded, name), getattr(first, name))


def test_nothing_to_read():
    topics = fit(Messages.of([(0, [])]), 3, 32, 2, seed=1)
    assert topics.best(5) == [[], [], []]
    assert np.isfinite(topics.logs).all()
