"""Real responses with five references each: our values beside the peers' on the same tokens."""

from __future__ import annotations

import gzip
import math
from collections import Counter
from itertools import combinations

import pytest
from lexicalrichness import LexicalRichness
from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu
from nltk.translate.meteor_score import meteor_score
from rouge_score import rouge_scorer
from sacrebleu.metrics import BLEU, CHRF

from dialbench.metrics.registry import create
from dialbench.metrics.resource import Found
from dialbench.metrics.settings import MetricSettings
from dialbench.metrics.wordnet import WORDNET
from dialbench.text.tokenizer import tokenize, tokenize_parlai


@pytest.fixture(scope="module")
def texts(texts_of, released):
    responses, references = released
    assert len(responses) == len(references) == 6740
    return texts_of(responses, references, tokenize="default")


@pytest.fixture(scope="module")
def tokens(released):
    return [tokenize(response) for response in released[0]]


def metric(name, wordnet=None):
    return create([name], MetricSettings(resources={WORDNET: Found(wordnet)}))[0]


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


class Tokens:
    tokenize = staticmethod(tokenize)


@pytest.mark.parametrize("kind", ["1", "2", "L"])
def test_rouge_equals_rouge_score(texts, released, kind):
    name, peer_name = f"rouge-{kind.lower()}", f"rouge{kind}"
    peer = rouge_scorer.RougeScorer([peer_name], tokenizer=Tokens())
    values = metric(name).per_response(metric(name).statistics(texts))
    for place in range(0, 6740, 20):
        expected = peer.score_multi(released[1][place], released[0][place])[peer_name].fmeasure
        assert values[place] == pytest.approx(expected, rel=1e-12)


def test_token_f1_equals_counting(texts, released):
    values = metric("f1").per_response(metric("f1").statistics(texts))
    for place in range(0, 6740, 20):
        own, *others = (
            Counter(tokenize_parlai(t)) for t in (released[0][place], *released[1][place])
        )
        expected = max(
            2 * (own & other).total() / (own.total() + other.total()) for other in others
        )
        assert values[place] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name", ["default", "whitespace"])
def test_chrf_equals_sacrebleu(texts_of, released, name):
    responses, references = released[0][:400], released[1][:400]
    peer = CHRF(lowercase=name == "default")
    streams = [list(stream) for stream in zip(*references, strict=True)]
    expected = peer.corpus_score(responses, streams).score / 100
    (chrf,) = create(["chrf"], MetricSettings(name))
    actual = chrf.score(chrf.statistics(texts_of(responses, references, name)))
    assert actual == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("n", [2, 3])
def test_self_bleu_equals_nltk(texts, tokens, n):
    some, smooth = tokens[:120], SmoothingFunction(epsilon=0.1).method1
    expected = [
        sentence_bleu(some[:i] + some[i + 1 :], own, (1 / n,) * n, smooth)
        for i, own in enumerate(some)
    ]
    actual = value(f"self-bleu-{n}", texts.part(0, 120))
    assert actual == pytest.approx(math.fsum(expected) / 120, rel=1e-12)


def grams(tokens, n):
    return [tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)]


def test_repetition_equals_counting(texts, tokens):
    joined = [word for own in tokens for word in own]
    diversity = sum(len(set(grams(joined, n))) / len(grams(joined, n)) for n in (1, 2, 3, 4))
    assert value("ngram-diversity", texts) == pytest.approx(diversity, rel=1e-12)
    text = " ".join(joined).encode()
    assert value("compression-ratio", texts) == len(text) / len(gzip.compress(text))
    kinds = [set(grams(own, 4)) for own in tokens]
    having = Counter(gram for own in kinds for gram in own)
    logs = [math.log(1 + sum(having[gram] - 1 for gram in own)) for own in kinds]
    assert value("self-repetition", texts) == pytest.approx(math.fsum(logs) / 6740, rel=1e-12)


def test_homogenization_equals_rouge_score_of_all_pairs(texts, released):
    peer = rouge_scorer.RougeScorer(["rougeL"], tokenizer=Tokens())
    pairs = combinations(released[0][:100], 2)
    expected = math.fsum(peer.score(*pair)["rougeL"].fmeasure for pair in pairs) / (100 * 99 / 2)
    assert value("homogenization", texts.part(0, 100)) == pytest.approx(expected, rel=1e-12)


def test_meteor_equals_nltk(texts, released, tokens, nltk_wordnet, wordnet):
    meteor = metric("meteor", wordnet)
    values = meteor.per_response(meteor.statistics(texts))
    for place in range(0, 6740, 30):
        references = [tokenize(reference) for reference in released[1][place]]
        expected = meteor_score(references, tokens[place], wordnet=nltk_wordnet)
        assert values[place] == pytest.approx(expected, rel=0, abs=1e-12)
