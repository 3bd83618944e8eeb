"""Tf-idf, k-means and logistic regression against scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from dialbench_adapters.text_models.domains import Domains, clusters, regression
from dialbench_adapters.text_models.tfidf import TfIdf

from dialbench.errors import StorageError
from dialbench.neural.data import PackedSequences
from dialbench.text.vocabulary import SEP, UNK


@pytest.fixture(scope="module")
def texts() -> list[list[int]]:
    """Three kinds of talk of 20 words each, which share the words 5 to 9."""
    random = np.random.default_rng(1)
    lists = []
    for row in range(90):
        own = 10 + 20 * (row % 3) + random.integers(20, size=8)
        words = np.where(random.random(8) < 0.7, own, random.integers(5, 10, size=8))
        lists.append(words.tolist())
    return lists


@pytest.fixture(scope="module")
def ragged(texts) -> PackedSequences:
    return PackedSequences.of(texts)


def dense(rows, features: int) -> np.ndarray:
    return (rows @ torch.eye(features, dtype=torch.float64)).numpy()


def theirs(texts, count=None):
    """scikit-learn's vectors, by its own n-grams of words written as letters."""
    text = pytest.importorskip("sklearn.feature_extraction.text")
    made = text.TfidfVectorizer(
        tokenizer=str.split, token_pattern=None, ngram_range=(1, 2), max_features=count
    )
    matrix = made.fit_transform(" ".join(f"w{word}" for word in words) for words in texts)
    return matrix.toarray(), list(made.get_feature_names_out())


def named(key: int) -> str:
    words = [key] if key < 1 << 32 else divmod(key, 1 << 32)
    return " ".join(f"w{word}" for word in words)


class TestTfIdf:
    def test_equals_scikit_learns(self, texts, ragged):
        expected, names = theirs(texts)
        made = TfIdf.fit(ragged, 10**6)
        order = [names.index(named(key)) for key in made.features.tolist()]
        assert len(names) == len(order)
        actual = dense(made.rows(ragged), len(order))
        assert np.allclose(actual, expected[:, order], rtol=0, atol=1e-12)

    def test_keeps_what_occurs_most_often(self, texts, ragged):
        counts: dict[str, int] = {}
        for words in texts:
            for place, word in enumerate(words):
                pair = f"w{words[place - 1]} w{word}"
                for gram in [f"w{word}"] + [pair] * (place > 0):
                    counts[gram] = counts.get(gram, 0) + 1
        actual = [counts[named(key)] for key in TfIdf.fit(ragged, 40).features.tolist()]
        assert sorted(actual) == sorted(counts.values())[-40:]

    def test_pairs_cross_neither_turns_nor_unknown_words_nor_texts(self):
        made = TfIdf.fit(PackedSequences.of([[5, SEP, 6], [6, UNK, 7, 8], [], [5]]), 100)
        assert [named(key) for key in made.features] == ["w5", "w6", "w7", "w8", "w7 w8"]

    def test_unknown_and_empty_texts_are_zero(self, ragged):
        made = TfIdf.fit(ragged, 100)
        rows = made.rows(PackedSequences.of([[99], [], [5], [98, 99]]))
        assert dense(rows, 100).any(1).tolist() == [False, False, True, False]


class TestClusters:
    def test_kinds_of_talk_are_found(self, ragged):
        pytest.importorskip("sklearn.cluster")
        from sklearn.cluster import KMeans
        from sklearn.metrics import adjusted_rand_score

        made = TfIdf.fit(ragged, 10**6)
        rows, size = made.rows(ragged), len(made.features)
        plain = KMeans(3, n_init=5, random_state=1).fit(dense(rows, size))
        tries = [clusters(rows, size, 3, seed) for seed in range(5)]
        matrix = dense(rows, size)

        def inertia(actual: np.ndarray) -> float:
            return sum(
                float(((matrix[actual == k] - matrix[actual == k].mean(0)) ** 2).sum())
                for k in set(actual.tolist())
            )

        best = min((actual.numpy() for actual in tries), key=inertia)
        assert inertia(best) <= plain.inertia_ * 1.001
        assert adjusted_rand_score(np.arange(90) % 3, best) > 0.9

    def test_ends_where_no_text_is_nearer_to_another_mean(self, ragged):
        made = TfIdf.fit(ragged, 10**6)
        rows, size = made.rows(ragged), len(made.features)
        actual, matrix = clusters(rows, size, 4, 7).numpy(), dense(rows, size)
        means = np.stack([matrix[actual == k].mean(0) for k in range(4)])
        away = ((matrix[:, None] - means) ** 2).sum(2)
        assert np.array_equal(away.argmin(1), actual)

    def test_no_more_than_there_are_distinct_texts(self):
        texts = PackedSequences.of([[5], [6], [5], [6], [5]])
        made = TfIdf.fit(texts, 10)
        actual = clusters(made.rows(texts), 2, 10, 1)
        assert actual.unique().tolist() == [0, 1]
        assert actual[0] == actual[2] == actual[4] != actual[1] == actual[3]

    def test_the_seed_decides(self, ragged):
        made = TfIdf.fit(ragged, 10**6)
        rows, size = made.rows(ragged), len(made.features)
        assert torch.equal(clusters(rows, size, 5, 1), clusters(rows, size, 5, 1))


class TestRegression:
    def test_equals_scikit_learns(self, ragged):
        linear = pytest.importorskip("sklearn.linear_model")
        made = TfIdf.fit(ragged, 10**6)
        rows, size = made.rows(ragged), len(made.features)
        labels = torch.arange(90) % 3
        table, bias = regression(rows, size, labels)
        plain = linear.LogisticRegression(tol=1e-8, max_iter=2000)
        plain.fit(dense(rows, size), labels.numpy())
        actual = (rows @ table + bias).softmax(-1)
        expected = plain.predict_proba(dense(rows, size))
        assert np.allclose(actual.numpy(), expected, rtol=0, atol=1e-4)
        assert np.allclose(table.numpy().T, plain.coef_, rtol=0, atol=1e-3)


class TestDomains:
    def test_probabilities_sum_to_one_and_follow_the_clusters(self, ragged):
        domains, actual = Domains.fit(ragged, 3, 1_000, seed=1)
        logs = domains.logs(ragged)
        assert len(domains) == 3
        assert torch.allclose(logs.exp().sum(-1), torch.ones(90, dtype=torch.float64))
        assert (logs.argmax(-1) == actual).double().mean() > 0.9

    def test_one_domain_is_certain(self, ragged):
        domains, actual = Domains.fit(ragged, 1, 1_000, seed=1)
        assert not actual.any()
        assert not domains.logs(ragged).any()

    def test_saving(self, ragged, tmp_path):
        domains, _ = Domains.fit(ragged, 3, 50, seed=1)
        path = tmp_path / "domains.safetensors"
        domains.save(path)
        assert torch.equal(Domains.load(path).logs(ragged), domains.logs(ragged))
        path.write_bytes(b"nothing")
        with pytest.raises(StorageError, match="cannot be read"):
            Domains.load(path)
