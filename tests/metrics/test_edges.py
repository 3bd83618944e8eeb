"""The results that docs/metrics.md states for unusual responses."""

from __future__ import annotations

import gzip
import math

import pytest

from dialbench.metrics.registry import DEFAULT

NAN = math.nan
# Judgements of contexts have tests of their own.
MEASURED = tuple(name for name in DEFAULT if not name.startswith("ue"))
REFERENCE_FREE = MEASURED[:7]
LONG = " ".join("abcdefgh"[(i * i + i // 7) % 8] for i in range(600))

# METEOR: recall 1, precision 1/2, one chunk of two matches; then ROUGE-L and embeddings.
EMOJI = (0.5 / 0.55 * (1 - 0.5 / 8), 2 / 3, NAN, 0, NAN)

# name: responses, references, values in the order of MEASURED: length, different, dist-1..3,
# mtld, mattr, bleu-1..4, meteor, rouge-l, emb-average, -greedy, -extrema.
CASES = {
    "one token": (
        ["a"],
        [("a",)],
        [1, 1, 1, 0, 0, 1, 1, 1, 0, 0, 0, 0.5, 1, 1, 1, 1],
    ),
    "all empty": (
        ["", ""],
        [("a",), ("b",)],
        [0, 0.5, NAN, NAN, NAN, NAN, NAN, *[0] * 9],
    ),
    "one empty": (
        ["a", ""],
        [("a",), ("a",)],
        [0.5, 1, 1, 0, 0, 1, 1, math.exp(-1), 0, 0, 0, 0.25, *[0.5] * 4],
    ),
    "punctuation only": (
        ["? !"],
        [("? ?",)],
        [2, 1, 1, 0.5, 0, 2, 1, 0.5, 0, 0, 0, 0.25, 0.5, NAN, 0, NAN],
    ),
    "emoji and Chinese": (
        ["你 好 😀 😀"],
        [("你 好",)],
        [4, 1, 0.75, 0.75, 0.5, 4.24, 0.75, 0.5, 6**-0.5, 0, 0, *EMOJI],
    ),
    "all identical": (
        ["a b", "a b"],
        [("a b",), ("a b",)],
        [2, 0.5, 0.5, 0.25, 0, 4, 0.5, 1, 1, 0, 0, 0.9375, 1, 1, 1, 1],
    ),
    "response equals reference": (
        ["a b c d e"],
        [("a b c d e",)],
        [5, 1, 1, 4 / 5, 3 / 5, 5, 1, 1, 1, 1, 1, 1 - 0.5 / 5**3, *[1] * 4],
    ),
    "no reference": (
        ["a b"],
        [()],
        [2, 1, 1, 0.5, 0, 2, 1, *[NAN] * 9],
    ),
    "some without reference": (
        ["a b", "c d"],
        [(), ("c d",)],
        [2, 1, 1, 0.5, 0, 4, 1, 1, 1, 0, 0, 0.9375, 1, 1, 1, 1],
    ),
    "several references": (
        ["a b"],
        [("q q q", "a b", "h")],
        [2, 1, 1, 0.5, 0, 2, 1, 1, 1, 0, 0, 0.9375, 1, 1, 1, 1],
    ),
}

MORE = (
    *("intra-dist-1", "intra-dist-2", "mattr-4"),
    *("ead-1", "ent-1", "ent-2", "self-bleu", "novelty", "generic-rate", "duplicate-rate"),
    *("cider", "bleu-parlai", "bleu-plato-1", "rouge-l-coco", "emb-sentence", "vendi"),
)
LN2, THIRDS = math.log(2), 3 * 2 ** (-2 / 3)


def adjusted(different: int, tokens: int) -> float:
    """EAD of the eight words of the tiny training split."""
    return different / (8 * (1 - (7 / 8) ** tokens))


# The same cases: values in the order of MORE.
MORE_CASES = {
    "one token": [1, NAN, 1, adjusted(1, 1), 0, NAN, NAN, 1, 0, 0, 0, 1e-9, 0, 1, 1, 1],
    "all empty": [*[NAN] * 6, 0, 0, 0, 1, 0, 0, 0, 0, 0, NAN],
    "one empty": [1, NAN, 1, adjusted(1, 1), 0, NAN, 0, 0.5, 0, 0, 0, 5e-10, 0, 0.5, 0.5, 1],
    "punctuation only": [
        *(1, 1, 1, adjusted(2, 2), LN2, 0, NAN, 1, 0, 0, 0),
        *((0.5 * 1e-36) ** 0.25, (1 + 1 + 1 + 5 / LN2) / 3, 0.5, 1, 1),
    ],
    "emoji and Chinese": [
        *(0.75, 1, 0.75, adjusted(3, 4), 1.5 * LN2, math.log(3), NAN, 1, 0, 0, 0),
        *((0.5 / 3 * 1e-24 / 2) ** 0.25, 7 / 9, 2.44 * 0.5 / 1.72, 1, 1),
    ],
    "all identical": [
        1,
        1,
        0.5,
        adjusted(2, 4),
        LN2,
        0,
        0.1**0.5,
        0,
        0,
        1,
        0,
        1e-6,
        4 / 3,
        1,
        1,
        1,
    ],
    "response equals reference": [
        *(1, 1, 1, adjusted(5, 5), math.log(5), math.log(4), NAN, 0, 0, 0, 0, 1, 4 / 3, 1, 1, 1)
    ],
    "no reference": [1, 1, 1, adjusted(2, 2), LN2, 0, NAN, 0, 0, 0, *[NAN] * 5, 1],
    "some without reference": [
        *(1, 1, 1, adjusted(4, 4), 2 * LN2, LN2, 0, 0.5, 0, 0, 0, 1e-6, 4 / 3, 1, 1, THIRDS)
    ],
    "several references": [1, 1, 1, adjusted(2, 2), LN2, 0, NAN, 0, 0, 0, 0, 1e-6, 4 / 3, 1, 1, 1],
}


LATER = (
    *("f1", "rouge-1", "rouge-2", "chrf", "self-bleu-2", "compression-ratio"),
    *("ngram-diversity", "self-repetition", "homogenization", "emb-context"),
)


def packed(text: str) -> float:
    """The compression ratio of a text."""
    return len(text.encode()) / len(gzip.compress(text.encode()))


def relevance(constant: int, a: int, b: int, c: int, *others: int) -> float:
    """Mean cosine with the turns "a b" and "c" of a text with so many a, b, c and others."""
    norm = math.hypot(constant, a, b, c, *others)
    return ((constant + a + b) / 3**0.5 + (constant + c) / 2**0.5) / norm / 2


# The same cases: values in the order of LATER. ParlAI's F1 drops "a" as an article.
LATER_CASES = {
    "one token": [0, 1, 0, 1, NAN, 1 / 21, NAN, 0, NAN, relevance(1, 1, 0, 0)],
    "all empty": [0, 0, 0, 0, 0, NAN, NAN, 0, 0, 0],
    "one empty": [0, 0.5, 0, 5 / 9, 0, 1 / 21, NAN, 0, 0, relevance(1, 1, 0, 0) / 2],
    "punctuation only": [0, 0.5, 0, 0.25, NAN, 3 / 23, NAN, 0, NAN, relevance(1, 0, 0, 0)],
    "emoji and Chinese": [
        *(2 / 3, 2 / 3, 0.5, 25 / 32, NAN),
        *(packed("你 好 😀 😀"), 3.75, 0, NAN, relevance(1, 0, 0, 0)),
    ],
    "all identical": [1, 1, 1, 1, 1, packed("a b a b"), 2.5 + 2 / 3, 0, 1, relevance(1, 1, 1, 0)],
    "response equals reference": [
        *(1, 1, 1, 1, NAN),
        *(packed("a b c d e"), 4, 0, NAN, relevance(1, 1, 1, 1, 1, 1)),
    ],
    "no reference": [*[NAN] * 5, 3 / 23, NAN, 0, NAN, relevance(1, 1, 1, 0)],
    "some without reference": [
        *(1, 1, 1, 1, 0, packed("a b c d"), 4, 0, 0),
        (relevance(1, 1, 1, 0) + relevance(1, 0, 0, 1, 1)) / 2,
    ],
    "several references": [1, 1, 1, 1, NAN, 3 / 23, NAN, 0, NAN, relevance(1, 1, 1, 0)],
}


@pytest.mark.parametrize("case", CASES)
def test_the_stated_results_of_overlap_and_repetition(texts_of, every_metric, case):
    texts = texts_of(*CASES[case][:2])
    scores = {m.name: m.score(m.statistics(texts)) for m in every_metric(*LATER)}
    stated = dict(zip(LATER, LATER_CASES[case], strict=True))
    assert scores == pytest.approx(stated, rel=1e-9, abs=1e-15, nan_ok=True)


@pytest.mark.parametrize("case", CASES)
def test_the_stated_results_of_further_metrics(texts_of, every_metric, case):
    texts = texts_of(*CASES[case][:2])
    scores = {m.name: m.score(m.statistics(texts)) for m in every_metric(*MORE)}
    stated = dict(zip(MORE, MORE_CASES[case], strict=True))
    assert scores == pytest.approx(stated, rel=1e-9, abs=1e-15, nan_ok=True)


@pytest.mark.parametrize("case", CASES)
def test_the_stated_results(texts_of, every_metric, case):
    responses, references, expected = CASES[case]
    texts = texts_of(responses, references)
    scores = {m.name: m.score(m.statistics(texts)) for m in every_metric(*MEASURED)}
    stated = dict(zip(MEASURED, expected, strict=True))
    assert scores == pytest.approx(stated, rel=1e-12, abs=1e-12, nan_ok=True)


def test_six_hundred_tokens_are_a_response_like_any_other(texts_of, every_metric):
    texts = texts_of([LONG, "a"], [(LONG, "b"), ("a",)])
    scores = {m.name: m.score(m.statistics(texts)) for m in every_metric(*MEASURED)}
    assert scores["length"] == 300.5
    assert scores["dist-1"] == 8 / 601
    assert all(0 < scores[name] < 601 for name in REFERENCE_FREE)
    for name in ("bleu-1", "bleu-4", "rouge-l", "emb-average", "emb-greedy", "emb-extrema"):
        assert scores[name] == pytest.approx(1.0, abs=1e-9)
    assert scores["meteor"] == pytest.approx((1 - 0.5 / 600**3 + 0.5) / 2)


def test_default_tokens_of_unusual_text(texts_of, every_metric):
    texts = texts_of(["!!! 😀😀", "你好。", " \n\t "], tokenize="default")
    assert texts.responses.lengths.tolist() == [5, 2, 0]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("\N{GRINNING FACE}", 1),
        ("\N{HEAVY BLACK HEART}\N{VARIATION SELECTOR-16}", 2),
        ("\N{THUMBS UP SIGN}\N{EMOJI MODIFIER FITZPATRICK TYPE-4}", 2),
        ("\N{REGIONAL INDICATOR SYMBOL LETTER D}\N{REGIONAL INDICATOR SYMBOL LETTER E}", 2),
        ("\N{MAN}\N{ZERO WIDTH JOINER}\N{WOMAN}\N{ZERO WIDTH JOINER}\N{GIRL}", 5),
        ("caf\N{LATIN SMALL LETTER E WITH ACUTE}", 1),
        ("cafe\N{COMBINING ACUTE ACCENT}s", 1),  # composed before it is split
        ("cafq\N{COMBINING ACUTE ACCENT}", 2),  # there is no such letter in one code point
        ("cafq\N{COMBINING ACUTE ACCENT}s", 3),
    ],
)
def test_each_code_point_of_an_emoji_and_each_lone_accent_is_a_token(texts_of, text, tokens):
    assert texts_of([text], tokenize="default").responses.lengths.tolist() == [tokens]
