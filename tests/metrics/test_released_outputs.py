"""Real responses with five references each: our values beside the peers' on the same tokens."""

from __future__ import annotations

import pytest
from lexicalrichness import LexicalRichness
from nltk.translate.meteor_score import meteor_score
from rouge_score import rouge_scorer
from sacrebleu.metrics import BLEU

from dialbench.metrics.registry import MetricSettings, create
from dialbench.text.tokenizer import tokenize


@pytest.fixture(scope="module")
def texts(texts_of, released):
    responses, references = released
    assert len(responses) == len(references) == 6740
    return texts_of(responses, references, tokenize="default")


@pytest.fixture(scope="module")
def tokens(released):
    return [tokenize(response) for response in released[0]]


def metric(name, wordnet=None):
    return create([name], MetricSettings(wordnet=wordnet))[0]


def value(name, texts):
    return metric(name).score(metric(name).statistics(texts))


@pytest.mark.parametrize("n", [1, 4])
def test_bleu_equals_sacrebleu(texts, released, tokens, n):
    joined = [" ".join(response) for response in tokens]
    streams = [[" ".join(tokenize(own[i])) for own in released[1]] for i in range(5)]
    peer = BLEU(tokenize="none", smooth_method="none", max_ngram_order=n, force=True)
    expected = peer.corpus_score(joined, streams).score / 100
    assert value(f"bleu-{n}", texts) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_distinct_equals_counting(texts, tokens, n):
    grams = {tuple(t[i : i + n]) for t in tokens for i in range(len(t) - n + 1)}
    assert value(f"dist-{n}", texts) == len(grams) / sum(map(len, tokens))


def test_lexical_richness_equals_the_library(texts, tokens):
    library = LexicalRichness([w for t in tokens for w in t], preprocessor=None, tokenizer=None)
    assert value("mtld", texts) == library.mtld(threshold=0.72)
    assert value("mattr", texts) == library.mattr(50)
    assert value("mattr-4", texts) == library.mattr(4)


def test_rouge_equals_rouge_score(texts, released, tokens):
    class Tokens:
        tokenize = staticmethod(tokenize)

    peer = rouge_scorer.RougeScorer(["rougeL"], tokenizer=Tokens())
    values = metric("rouge-l").per_response(metric("rouge-l").statistics(texts))
    for place in range(0, 6740, 20):
        expected = peer.score_multi(released[1][place], released[0][place])["rougeL"].fmeasure
        assert values[place] == pytest.approx(expected, rel=1e-12)


def test_meteor_equals_nltk(texts, released, tokens, nltk_wordnet, wordnet):
    meteor = metric("meteor", wordnet)
    values = meteor.per_response(meteor.statistics(texts))
    for place in range(0, 6740, 30):
        references = [tokenize(reference) for reference in released[1][place]]
        expected = meteor_score(references, tokens[place], wordnet=nltk_wordnet)
        assert values[place] == pytest.approx(expected, rel=0, abs=1e-12)
