"""The types that travel: what identifies a job, what decoding means, what a system may see."""

from __future__ import annotations

import copy
import hashlib
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialbench.errors import InputError, UnknownName
from dialbench.records import (
    Context,
    Decoding,
    Example,
    Job,
    Responses,
    Score,
    Split,
    fingerprint_of,
)

JOB = Job("echo", "demo", 1, Decoding(), "quick", {"epochs": 2, "data": "aa"}, {"limit": 3})


def test_the_fingerprint_is_the_sha256_of_sorted_compact_json() -> None:
    value = {"b": [1, 2.5, None], "a": "ü"}
    text = '{"a":"ü","b":[1,2.5,null]}'
    assert fingerprint_of(value) == hashlib.sha256(text.encode()).hexdigest()


@given(st.dictionaries(st.text(), st.integers(), min_size=2))
def test_the_fingerprint_does_not_see_the_order_of_keys(value: dict[str, int]) -> None:
    backwards = dict(reversed(list(value.items())))
    assert fingerprint_of(backwards) == fingerprint_of(value)


@pytest.mark.parametrize(
    ("change", "retrained"),
    [
        ({"system": "echo[x=1]"}, True),
        ({"corpus": "other"}, True),
        ({"seed": 2}, True),
        ({"training": {"epochs": 3, "data": "aa"}}, True),
        ({"decoding": Decoding("beam", 5)}, False),
        ({"answering": {"limit": 4}}, False),
    ],
)
def test_what_can_change_responses_changes_the_fingerprint(
    change: dict[str, Any], retrained: bool
) -> None:
    other = replace(JOB, **change)
    assert other.fingerprint != JOB.fingerprint
    assert (other.training_fingerprint != JOB.training_fingerprint) == retrained


def test_the_name_of_a_preset_does_not_change_the_fingerprint() -> None:
    assert replace(JOB, preset="paper").fingerprint == JOB.fingerprint


def test_fingerprints_are_the_same_in_other_processes_and_versions() -> None:
    # Kept results are found by these: a change here makes every one of them a stranger.
    bare = Job("echo", "demo", 1, Decoding(), "quick")
    trained = '{"corpus":"demo","seed":1,"system":"echo","training":{}}'
    digest = hashlib.sha256(trained.encode()).hexdigest()
    assert bare.training_fingerprint == digest
    answers = f'{{"answering":{{}},"decoding":"greedy","trained":"{digest}"}}'
    assert bare.fingerprint == hashlib.sha256(answers.encode()).hexdigest()


def test_a_job_reads_well_and_can_be_sent_to_another_process() -> None:
    assert str(replace(JOB, decoding=Decoding("beam", 5))) == "echo on demo, seed 1, beam:5"
    again = copy.copy(JOB)
    assert again == JOB
    assert again.fingerprint == JOB.fingerprint


# Contexts and splits


def test_a_system_sees_no_references_and_an_oracle_does() -> None:
    example = Example("e", "d", ("hi", "hello"), ("bye", "see you"))
    blind, opened = example.as_context(), example.as_context_with_references()
    assert tuple(blind) == tuple(opened) == ("hi", "hello")
    assert (blind.id, blind.references) == ("e", ())
    assert (opened.id, opened.references) == ("e", ("bye", "see you"))


def test_a_context_keeps_what_it_knows_between_processes() -> None:
    context = copy.copy(Context(["hi"], "e", ["bye"]))
    assert isinstance(context, Context)
    assert (context, context.id, context.references) == (("hi",), "e", ("bye",))


def test_a_split_is_a_sequence_that_slices_to_a_split() -> None:
    examples = [Example(str(number), "d", ("hi",), ()) for number in range(5)]
    split = Split("test", examples)
    assert list(split) == examples
    assert (len(split), split[2], split[-1]) == (5, examples[2], examples[4])
    part = split[1:3]
    assert isinstance(part, Split)
    assert (part.name, list(part)) == ("test", examples[1:3])
    assert repr(part) == "Split('test', 2 examples)"
    assert part != split[1:3]


# Decoding


@pytest.mark.parametrize(
    ("text", "method", "value", "written"),
    [
        ("greedy", "greedy", 0, "greedy"),
        ("sample", "sample", 1, "sample:t=1"),
        ("sample:t=0.75", "sample", 0.75, "sample:t=0.75"),
        (" sample:0.75 ", "sample", 0.75, "sample:t=0.75"),
        ("top-p:0.9", "top-p", 0.9, "top-p:0.9"),
        ("top-p:1", "top-p", 1, "top-p:1"),
        ("top-k:40", "top-k", 40, "top-k:40"),
        ("beam:5", "beam", 5, "beam:5"),
        ("mmi", "mmi", 20, "mmi"),
        ("mmi:8", "mmi", 8, "mmi:8"),
        ("beam:5+length:1", "beam", 5, "beam:5"),
        ("beam:5+no-repeat:3+length:0.6", "beam", 5, "beam:5+length:0.6+no-repeat:3"),
        ("greedy+no-repeat:3", "greedy", 0, "greedy+no-repeat:3"),
        ("top-k:1e20", "top-k", 1e20, "top-k:1e20"),
        ("beam:5+length:1e300", "beam", 5, "beam:5+length:1e300"),
        ("mmi+length:0", "mmi", 20, "mmi+length:0"),
    ],
)
def test_decodings_are_read_and_written(text: str, method: str, value: float, written: str) -> None:
    decoding = Decoding.parse(text)
    assert (decoding.method, decoding.value) == (method, value)
    assert str(decoding) == written
    assert Decoding.parse(written) == decoding


@pytest.mark.parametrize(
    "text",
    ["greedy:1", "sample:t=0", "sample:-1", "sample:inf", "sample:x", "top-p", "top-p:0",
     "top-p:1.1", "top-p:nan", "top-k", "top-k:0", "top-k:2.5", "beam:inf", "beam:-3", "mmi:0.5"],
)  # fmt: skip
def test_a_value_out_of_range_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(InputError, match=r"has no usable value\. Write it like '") as error:
        Decoding.parse(text, where="here")
    assert error.value.where == "here"
    assert repr(text) in error.value.message


@pytest.mark.parametrize(
    "text",
    ["greedy+length:0.6", "beam:5+length:-1", "beam:5+length:x", "beam:5+length:inf", "beam:5+",
     "beam:5+no-repeat", "beam:5+no-repeat:0", "beam:5+no-repeat:1.5", "top-k:5+penalty:2"],
)  # fmt: skip
def test_an_option_that_a_decoding_lacks_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"has no option .*\. Write \+no-repeat:3") as error:
        Decoding.parse(text, where="here")
    assert error.value.where == "here"


def test_an_option_given_twice_is_refused() -> None:
    with pytest.raises(InputError, match="option 'length' is given twice"):
        Decoding.parse("beam:5+length:1+length:2")


def test_an_unknown_decoding_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match=r"--decoding: unknown decoding 'gredy'\. .*'greedy'"):
        Decoding.parse("gredy")


# Responses and scores


def test_there_is_one_response_for_each_example() -> None:
    example = Example("e", "d", ("hi",), ())
    assert Responses(JOB, [example], ["yes"], 1.0, "cpu").texts == ["yes"]
    with pytest.raises(ValueError, match="2 responses for 1 examples"):
        Responses(JOB, [example], ["yes", "no"], 1.0, "cpu")


def test_alternatives_follow_the_response_to_their_example() -> None:
    one, other = Example("e", "d", ("hi",), ()), Example("f", "d", ("hi",), ())
    alone = Responses(JOB, [one, other], ["yes", "no"], 1.0, "cpu")
    assert list(alone.by_example()) == [(one, "yes"), (other, "no")]
    drawn = replace(alone, alternatives=[("a", "b"), ("c", "d")])
    assert list(drawn.by_example()) == [(one, "yes", "a", "b"), (other, "no", "c", "d")]
    with pytest.raises(ValueError, match="alternatives for 1 of the examples only"):
        replace(alone, alternatives=[("a",)])


def test_every_further_draw_has_an_id_of_its_own() -> None:
    example = Example("e", "d", ("hi",), ("hello",))
    assert [example.as_context(draw).id for draw in range(3)] == ["e", "e#1", "e#2"]
    assert example.as_context(2).references == ()
    assert (
        example.as_context_with_references(1).id,
        example.as_context_with_references(1).references,
    ) == ("e#1", ("hello",))


@pytest.mark.parametrize(
    ("value", "there"), [(0.0, True), (np.float64(1), True), (math.nan, False)]
)
def test_a_score_is_available_unless_it_is_nan(value: float, there: bool) -> None:
    assert Score(value, 3, "s").available == there
