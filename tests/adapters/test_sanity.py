"""The sanity panel: what each of these systems must answer is known without running them."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dialbench.adapter import Adapter, Run
from dialbench.errors import InputError
from dialbench.records import Context, Decoding, Example, Split
from dialbench.systems import Registry
from dialbench.text.tokenizer import tokenize

NAMES = ["copy-last", "copy-reference", "most-frequent", "random-train", "retrieval", "unigram"]
LEARNERS = ["most-frequent", "random-train", "retrieval", "unigram"]
GREEDY = Decoding()


def split(*pairs: tuple[str, str]) -> Split:
    """A split of examples; turns of a context are separated by a bar."""
    return Split(
        "train",
        [
            Example(f"t-{number}", "d", tuple(context.split("|")), (response,))
            for number, (context, response) in enumerate(pairs)
        ],
    )


def fitted(name: str, train: Split, seed: int = 1, **options: float) -> Adapter:
    kind = Registry().get(name)
    adapter = kind(kind.Config(**options))
    adapter.fit(train, train, Run(seed))
    return adapter


def ask(adapter: Adapter, contexts: list[Context], seed: int = 1) -> list[str]:
    return adapter.respond(contexts, GREEDY, Run(seed))


def asked(*turns: str, id: str = "q", references: tuple[str, ...] = ()) -> Context:
    return Context(turns, id, references)


SMALL = split(
    ("is the bakery open?", "Yes, until six."),
    ("is the bakery open?|yes, until six.", "Thank you!"),
    ("which bus goes to the harbour?", "The number nine."),
    ("which bus goes to the harbour?|the number nine.", "thank  you !"),
    ("do you like herring?", "No, never."),
    ("do you like herring?|no, never.", "Me neither."),
)
MANY = [asked("is this", "a bakery?", id=f"q-{number}") for number in range(300)]


# All of them


@pytest.mark.parametrize("name", NAMES)
def test_every_card_tells_what_the_system_is(name: str) -> None:
    kind = Registry().get(name)
    assert kind.name == name
    assert kind.card.family == "sanity"
    assert kind.card.title
    assert kind.card.summary
    assert (kind.ranked, kind.oracle) == (False, name == "copy-reference")


@pytest.mark.parametrize("name", NAMES)
def test_a_saved_system_answers_the_same(name: str, tmp_path: Path) -> None:
    adapter = fitted(name, SMALL)
    adapter.save(tmp_path)
    json.loads((tmp_path / "state.json").read_text(encoding="utf-8"))
    again = type(adapter).load(tmp_path, adapter.config)
    assert ask(again, MANY) == ask(adapter, MANY)
    again.save(tmp_path / "..")
    assert (tmp_path / "../state.json").read_bytes() == (tmp_path / "state.json").read_bytes()


@pytest.mark.parametrize("name", NAMES)
def test_answers_do_not_depend_on_order_or_company(name: str) -> None:
    adapter = fitted(name, SMALL)
    answers = ask(adapter, MANY)
    assert ask(adapter, MANY[::-1]) == answers[::-1]
    assert [ask(adapter, [context])[0] for context in MANY[:20]] == answers[:20]
    assert ask(adapter, []) == []


@pytest.mark.parametrize("name", NAMES)
def test_an_empty_context_is_answered(name: str) -> None:
    (answer,) = ask(fitted(name, SMALL), [Context((), "q")])
    assert isinstance(answer, str)


@pytest.mark.parametrize("name", LEARNERS)
def test_a_corpus_without_training_responses_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="the corpus has no training responses"):
        fitted(name, Split("train", []))


def test_the_panel_needs_nothing_but_torch_and_numpy() -> None:
    code = """
import sys
class Closed:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in CLOSED:
            raise ImportError(name)
CLOSED = {"safetensors", "pydantic", "rich", "click", "scipy", "pandas", "nltk", "gensim"}
sys.meta_path.insert(0, Closed())
from dialbench_adapters.retrieval import Retrieval
light = ["copy_last", "copy_reference", "most_frequent", "random_train", "unigram"]
for name in light:
    __import__(f"dialbench_adapters.{name}")
"""
    subprocess.run([sys.executable, "-c", code], check=True)


# One by one


def test_copy_last_repeats_the_last_turn() -> None:
    adapter = Registry().get("copy-last")()
    contexts = [asked("Hello.", "How ARE you?"), asked("Bye."), Context(())]
    assert ask(adapter, contexts) == ["How ARE you?", "Bye.", ""]


def test_copy_reference_gives_the_first_reference() -> None:
    adapter = Registry().get("copy-reference")()
    contexts = [asked("hi", references=("Hello!", "Hi.")), asked("hi")]
    assert ask(adapter, contexts) == ["Hello!", ""]


def test_most_frequent_counts_tokens_and_answers_as_first_written() -> None:
    assert ask(fitted("most-frequent", SMALL), MANY[:2]) == ["Thank you!", "Thank you!"]


def test_most_frequent_prefers_the_first_of_equals() -> None:
    train = split(("a", "b!"), ("a", "c."), ("a", "C ."), ("a", "B !"))
    assert ask(fitted("most-frequent", train), MANY[:1]) == ["b!"]


def test_random_train_draws_every_training_response_equally_often() -> None:
    train = split(("a", "one"), ("a", "two"), ("a", "two"), ("a", "three"))
    contexts = [asked("x", id=str(number)) for number in range(4000)]
    counts = Counter(ask(fitted("random-train", train), contexts))
    # Five standard deviations of a binomial count.
    for response, share in {"one": 0.25, "two": 0.5, "three": 0.25}.items():
        assert abs(counts[response] - 4000 * share) < 5 * math.sqrt(4000 * share * (1 - share))


@pytest.mark.parametrize("name", ["random-train", "unigram"])
def test_draws_derive_from_seed_and_id_alone(name: str) -> None:
    adapter = fitted(name, SMALL)
    answers = ask(adapter, MANY)
    others = [asked("quite another context", id=context.id) for context in MANY]
    assert adapter.respond(others, Decoding("beam", 5), Run(1)) == answers
    assert ask(adapter, MANY, seed=2) != answers
    assert len(set(answers)) > 3


def test_unigram_has_the_words_and_lengths_of_training() -> None:
    train = split(("a", "x x x y"), ("a", "z"), ("a", "z"), ("a", "z"))
    contexts = [asked("x", id=str(number)) for number in range(4000)]
    answers = [tokenize(answer) for answer in ask(fitted("unigram", train), contexts)]
    lengths = Counter(map(len, answers))
    assert set(lengths) == {1, 4}
    assert abs(lengths[4] - 1000) < 5 * math.sqrt(4000 * 0.25 * 0.75)
    words = Counter(word for tokens in answers for word in tokens)
    total = sum(words.values())
    for word, share in {"x": 3 / 7, "y": 1 / 7, "z": 3 / 7}.items():
        assert abs(words[word] - total * share) < 5 * math.sqrt(total * share * (1 - share))


# Retrieval


def test_retrieval_finds_the_context_with_the_rarest_shared_words() -> None:
    contexts = [
        asked("fresh herring?"),
        asked("which bus, please?"),
        asked("do you like the harbour?", "no, never."),
    ]
    answers = ["No, never.", "The number nine.", "Me neither."]
    assert ask(fitted("retrieval", SMALL), contexts) == answers


def test_retrieval_weighs_the_last_turn_more() -> None:
    train = split(("apples|pears", "one"), ("pears|apples", "two"))
    adapter = fitted("retrieval", train)
    assert ask(adapter, [asked("apples", "pears"), asked("pears", "apples")]) == ["one", "two"]
    alike = fitted("retrieval", train, last_turn=1.0)
    assert ask(alike, [asked("pears", "apples")]) == ["one"]


def test_retrieval_gives_the_first_of_equals() -> None:
    train = split(("x", "other"), ("a b", "first"), ("b a", "second"), ("a b", "third"))
    assert ask(fitted("retrieval", train), [asked("b a"), asked("nothing known")]) == [
        "first",
        "other",
    ]


@pytest.mark.parametrize("option", [0.0, -1.0, math.nan, math.inf])
def test_retrieval_refuses_a_senseless_weight(option: float) -> None:
    with pytest.raises(InputError, match=r"last_turn.*(must be above 0|is not a finite number)"):
        Registry().parse(f"retrieval[last_turn={option}]")


def naive_cosines(train: Split, query: Context, last_turn: float) -> list[float]:
    """The definition, word by word, in double precision."""
    document_counts: Counter[str] = Counter()
    for example in train:
        document_counts.update({word for turn in example.context for word in tokenize(turn)})

    def vector(turns: tuple[str, ...]) -> dict[str, float]:
        weights: dict[str, float] = {}
        for place, turn in enumerate(turns):
            for word in tokenize(turn):
                if word in document_counts:
                    count = last_turn if place == len(turns) - 1 else 1.0
                    idf = math.log((1 + len(train)) / (1 + document_counts[word])) + 1
                    weights[word] = weights.get(word, 0.0) + count * idf
        return weights

    def cosine(left: dict[str, float], right: dict[str, float]) -> float:
        norms = math.hypot(*left.values()) * math.hypot(*right.values())
        dot = sum(weight * right.get(word, 0.0) for word, weight in left.items())
        return dot / norms if norms else 0.0

    target = vector(tuple(query))
    return [cosine(vector(example.context), target) for example in train]


def test_retrieval_agrees_with_its_definition() -> None:
    random = np.random.default_rng(7)
    words = [f"w{number}" for number in range(40)]

    def turns() -> tuple[str, ...]:
        weights = 1 / np.arange(1, 41)
        return tuple(
            " ".join(random.choice(words, size=random.integers(0, 7), p=weights / weights.sum()))
            for _ in range(random.integers(1, 5))
        )

    train = Split("train", [Example(str(n), "d", turns(), (f"answer {n}",)) for n in range(150)])
    queries = [Context((*turns(), "unknown w3"), str(n)) for n in range(300)]
    answers = ask(fitted("retrieval", train, last_turn=2.5), queries)
    for query, answer in zip(queries, answers, strict=True):
        cosines = naive_cosines(train, query, 2.5)
        best = max(cosines)
        first = next(row for row, cosine in enumerate(cosines) if cosine > best - 1e-9)
        assert answer == f"answer {first}"


def test_retrieval_reports_how_far_it_is() -> None:
    reported: list[Any] = []
    run = Run(1)
    run.progress.update = lambda stage, **numbers: reported.append((stage, numbers))  # type: ignore[method-assign]
    fitted("retrieval", SMALL).respond(MANY, GREEDY, run)
    assert reported[-1] == ("respond", {"step": 300, "steps": 300})
    assert len(reported) == 2
