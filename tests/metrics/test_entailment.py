"""Utterance entailment, by judges whose verdicts are known."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dialbench.metrics import registry
from dialbench.metrics.entailment import JUDGE, Verdicts
from dialbench.metrics.guard import ANYWHERE, FUNCTION_WORDS, UNRELATED, says_something
from dialbench.metrics.registry import create
from dialbench.metrics.resource import Found
from dialbench.metrics.settings import MetricSettings
from dialbench.metrics.texts import Texts
from dialbench.records import Example
from dialbench.scoring.evaluation import score_responses
from dialbench.text.tokenizer import tokenize

NAMES = ["ue", "ue-soft", "ue-entail", "ue-neutral", "ue-contradict", "ue-p-entail", "ue-raw"]
SAID = {"yes": (0.7, 0.2, 0.1), "hm": (0.3, 0.4, 0.3), "no": (0.0, 0.4, 0.6)}


class Verbal:
    """Says what the first word of the premise tells it to.

    Args:
        vacuous: from how many of the unrelated sentences each of these responses follows.
    """

    name = "verbal@1"

    def __init__(self, vacuous=None):
        self.asked, self.asked_anywhere, self.vacuous = [], [], vacuous or {}

    def __call__(self, pairs):
        return np.array([self.said(*pair) for pair in pairs])

    def said(self, premise, response):
        if premise in UNRELATED:
            self.asked_anywhere.append((premise, response))
            follows = UNRELATED.index(premise) < self.vacuous.get(response, 0)
            return SAID["yes" if follows else "no"]
        self.asked.append((premise, response))
        return SAID[premise.split()[0].lower().strip(",")]


def texts_of(*answered):
    """Texts of (context, response)."""
    pairs = [
        (Example(str(i), str(i), tuple(c), ()), texts) for i, (c, texts) in enumerate(answered)
    ]
    return Texts.build(pairs, tokenize, verbatim=True)


def judged_by(judge):
    return MetricSettings(resources={JUDGE: Found(Verdicts(judge))} if judge else {})


def scores(judge, texts, names=NAMES):
    metrics = create(names, judged_by(judge))
    return {metric.name: metric.score(metric.statistics(texts)) for metric in metrics}


def test_the_mean_over_turns_then_over_responses():
    texts = texts_of((["yes", "yes", "hm", "no"], "gladly"), (["no"], "gladly"))
    assert scores(Verbal(), texts) == pytest.approx(
        {
            "ue": ((1 + 1 + 0 - 1) / 4 + -1) / 2,
            "ue-soft": ((0.6 + 0.6 + 0 - 0.6) / 4 - 0.6) / 2,
            "ue-entail": (2 / 4 + 0) / 2,
            "ue-neutral": (1 / 4 + 0) / 2,
            "ue-contradict": (1 / 4 + 1) / 2,
            "ue-p-entail": ((0.7 + 0.7 + 0.3) / 4 + 0) / 2,
            "ue-raw": ((1 + 1 + 0 - 1) / 4 + -1) / 2,
        }
    )


def test_an_empty_response_is_neutral_and_counted_and_nobody_is_asked():
    judge = Verbal()
    texts = texts_of((["yes"], ""), (["yes"], "  \n"), (["yes"], "gladly"))
    actual = scores(judge, texts)
    assert actual["ue"] == pytest.approx(1 / 3)
    assert actual["ue-neutral"] == pytest.approx(2 / 3)
    assert actual["ue-p-entail"] == pytest.approx(0.7 / 3)
    assert set(judge.asked) == {("yes", "gladly")}


def test_examples_without_context_are_left_out():
    texts = texts_of(
        ([], "gladly"), (["no"], "gladly"), (["", " "], "gladly"), (["", "yes"], "gladly")
    )
    (metric,) = create(["ue"], judged_by(Verbal()))
    statistics = metric.statistics(texts)
    np.testing.assert_array_equal(metric.per_response(statistics), [np.nan, -1, np.nan, 1])
    assert metric.count(statistics) == 2
    alone = metric.statistics(texts_of(([], "gladly")))
    assert math.isnan(metric.score(alone))
    assert metric.reason(alone) == "no response has a context"


def test_a_context_of_one_turn_counts_that_turn():
    for turn, value in (("yes", 1), ("hm", 0), ("no", -1)):
        assert scores(Verbal(), texts_of(([turn], "gladly")), ["ue"]) == {"ue": value}


def test_the_judge_reads_texts_as_people_write_them():
    judge = Verbal()
    scores(judge, texts_of((["Yes , it ’ s late ."], "I don ' t know !")), ["ue"])
    assert judge.asked == [("Yes, it’s late.", "I don't know!")]


def test_all_guarded_metrics_ask_once():
    judge = Verbal()
    scores(judge, texts_of((["yes", "no"], "gladly"), (["hm"], "seldom")), NAMES[:-1])
    assert len(judge.asked) == 3


def test_the_signature_names_the_judge():
    judged, without = (create(NAMES, judged_by(judge)) for judge in (Verbal(), None))
    assert all("|judge:verbal@1|tok:default|" in metric.signature for metric in judged)
    assert all("|judge:missing|" in metric.signature for metric in without)
    assert [registry.info(metric.name).direction for metric in judged] == [
        *("higher", "higher", "higher", "none", "lower", "higher", "higher")
    ]


def test_the_signature_names_the_guard():
    guards = {
        metric.name: metric.signature.split("|guard:")[1].split("|")[0]
        for metric in create(NAMES, judged_by(Verbal()))
    }
    assert guards == dict.fromkeys(NAMES, "content,copy,repetition,vacuity") | {"ue-raw": "none"}


@pytest.mark.parametrize(
    "response",
    [".", "...", "the", "<unk>", "I am.", "yes, it's the one", "i i i i", "kites, kites; Kites!"],
)
def test_what_says_nothing_is_neutral_and_nobody_is_asked(response):
    judge = Verbal()
    actual = scores(judge, texts_of((["yes", "no"], response)), NAMES[:-1])
    assert actual == dict.fromkeys(NAMES[:-1], 0.0) | {"ue-neutral": 1.0}
    assert judge.asked == []
    assert scores(judge, texts_of((["yes"], response)), ["ue-raw"]) == {"ue-raw": 1.0}
    assert len(judge.asked) == 1


def test_a_turn_said_back_is_neutral_to_all_turns():
    judge = Verbal()
    said_back = texts_of((["yes , it ’ s late .", "no , not yet"], "Yes it's LATE!"))
    assert scores(judge, said_back, ["ue-entail", "ue-neutral"]) == {
        "ue-entail": 0.0,
        "ue-neutral": 1.0,
    }
    assert judge.asked == []
    part_of_it = texts_of((["yes , it ’ s late ."], "it's late"))
    assert scores(judge, part_of_it, ["ue"]) == {"ue": 1.0}


def test_what_follows_from_anything_is_neutral_to_all_turns():
    texts = texts_of((["yes", "no"], "Somebody spoke."), (["yes", "no", "yes"], "gladly"))
    names = ["ue-entail", "ue-contradict", "ue-p-entail"]
    for count, stopped in ((0, False), (ANYWHERE - 1, False), (ANYWHERE, True), (16, True)):
        judge = Verbal({"Somebody spoke.": count})
        shares = (1 / 2, 1 / 2, 0.35) if not stopped else (0, 0, 0)
        others = (2 / 3, 1 / 3, 1.4 / 3)
        assert list(scores(judge, texts, names).values()) == pytest.approx(
            [(a + b) / 2 for a, b in zip(shares, others, strict=True)]
        )
        assert scores(judge, texts, ["ue-raw"])["ue-raw"] == pytest.approx((0 + 1 / 3) / 2)


def test_only_what_follows_from_a_turn_is_tried_elsewhere_once():
    judge = Verbal()
    scores(judge, texts_of((["hm", "no"], "gladly"), (["yes"], "often"), (["yes"], "often")))
    assert judge.asked_anywhere == [(premise, "often") for premise in UNRELATED]


def test_what_is_unrelated_is_different_turns():
    assert len(set(UNRELATED)) == len(UNRELATED) == 16 > ANYWHERE


@pytest.mark.parametrize(
    ("response", "context", "asks"),
    [
        ("kites", ("yes",), True),  # a single word that is not repeated
        ("No kites.", ("yes",), True),
        ("I do not know.", ("yes",), True),
        ("5", ("yes",), True),
        ("Это змей", ("yes",), True),
        ("kites kites", ("yes",), False),
        ("I'm sorry. I'm sorry. i'm sorry!", ("yes",), False),
        ("Red kites, red kites.", ("yes",), False),
        ("Red kites, red kites, red", ("yes",), True),
        ("Red kites fly. Red kites.", ("yes",), True),
        ("kites", ("yes", "Kites?"), False),  # said in any turn
        ("You said: my red kite is broken.", ("My red kite is broken!",), False),
        ("My red kite is", ("My red kite is broken!",), False),
        ("My red kite is broken. Where is yours?", ("Hm.", "My red kite is broken!"), False),
        (
            "How are you today? My red kite is",
            ("My red kite is broken!", "How are you today?"),
            False,
        ),
        ("My red kite is flying high", ("My red kite is broken!",), True),  # half of it is new
        ("My red kite", ("My red kite is broken!",), True),  # three words in a row are not many
        ("Is my red kite broken?", ("My red kite is broken!",), True),
        ("", (), False),
        ("don ' t you", ("yes",), False),
    ],
)
def test_which_responses_go_to_the_judge(response, context, asks):
    assert says_something(response, context) is asks


def test_function_words_are_tokens():
    assert all(tokenize(f"it {word}")[-1:] == [word] for word in FUNCTION_WORDS if word.isalpha())


def test_without_a_judge_the_reason_says_what_to_do():
    settings = MetricSettings(resources={JUDGE: Found(missing="install the extra")})
    for metric in create(NAMES, settings):
        statistics = metric.statistics(texts_of((["yes"], "gladly")))
        assert math.isnan(metric.score(statistics))
        assert metric.reason(statistics) == metric.missing == "install the extra"


def test_labels_and_probabilities_are_usual_and_the_rest_is_asked_for():
    assert registry.resources(NAMES) == {JUDGE}
    assert [name for name in registry.DEFAULT if name in NAMES] == ["ue", "ue-soft"]


def test_contexts_follow_their_responses_into_parts():
    texts = texts_of((["a"], "x"), (["b", "c"], "y"), (["d"], "z"))
    assert texts.part(1, 3).contexts == [("b", "c"), ("d",)]


def test_shares_are_bounded_by_0_and_1():
    signed = {"ue", "ue-soft", "ue-raw"}
    for metric in create(NAMES, judged_by(Verbal())):
        assert metric.bounds == ((-1, 1) if metric.name in signed else (0, 1)), metric.name


def test_what_no_response_does_has_the_interval_of_a_share():
    pairs = [(Example(str(i), str(i), ("hm",), ()), "i see a museum") for i in range(40)]
    settings = judged_by(Verbal())
    actual = score_responses(pairs, create(["ue", "ue-contradict", "ue-neutral"], settings))
    assert actual["ue"].interval is None
    low, high = actual["ue-contradict"].interval
    assert low == 0
    assert 0 < high < 0.1
    assert actual["ue-neutral"].interval == pytest.approx((1 - high, 1))
