from __future__ import annotations

import math
import os
import random
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from itertools import chain, pairwise
from statistics import mean, stdev

import pytest

from dialbench.corpora.audit import audit
from dialbench.corpora.base import load_corpus
from dialbench.corpora.corpus import Corpus
from dialbench.corpora.demo import SIZES, generate
from dialbench.corpora.demo_grammar import load_grammar
from dialbench.corpora.files import SPLITS
from dialbench.records import Example
from dialbench.text.tokenizer import tokenize


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return load_corpus("demo")


@pytest.fixture(scope="module")
def dialogues(corpus: Corpus) -> list[tuple[str, ...]]:
    return [each.turns for split in SPLITS for each in corpus.dialogues(split)]


def test_sizes_and_lengths(corpus: Corpus, dialogues: list[tuple[str, ...]]) -> None:
    assert {split: len(list(corpus.dialogues(split))) for split in SPLITS} == SIZES
    assert {len(turns) for turns in dialogues} == {4, 5, 6, 7, 8}
    assert corpus.notes == (
        "Demo: made by a grammar; its scores say nothing about real conversations",
    )


def test_the_same_seed_gives_the_same_dialogues_in_another_process() -> None:
    code = "from dialbench.corpora.base import load_corpus as load; print(load('demo').checksum)"
    sums = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in ("0", "1")
    }
    assert sums == {load_corpus("demo").checksum}


def test_the_corpus_is_that_of_every_published_number() -> None:
    checksum = "daba5d494eca88c7d9418e7fad563340220e5ef1ba7cb60d0856b33fc14d97cc"
    assert load_corpus("demo").checksum == checksum


def test_seeds_differ_and_the_global_generator_is_left_alone() -> None:
    state = random.getstate()
    sizes = {"train": 40, "test": 10}
    assert generate(sizes, seed=2) == generate(sizes, seed=2)
    assert generate(sizes, seed=2) != generate(sizes, seed=3)
    assert random.getstate() == state


def test_more_dialogues_only_add(corpus: Corpus) -> None:
    few, many = generate({"train": 30}), generate({"train": 60})
    assert many["train"][:30] == few["train"]


def test_vocabulary_and_topics(dialogues: list[tuple[str, ...]]) -> None:
    words = Counter(word for turns in dialogues for turn in turns for word in tokenize(turn))
    assert len(words) >= 800
    assert sum(count >= 3 for count in words.values()) >= 800
    assert len({topic.name for topic in load_grammar().topics}) >= 20


def test_text_is_well_formed(dialogues: list[tuple[str, ...]]) -> None:
    for turn in set(chain.from_iterable(dialogues)):
        assert turn == turn.lower()
        assert turn.endswith((" .", " ?", " !")), turn
        assert "{" not in turn
        assert "  " not in turn
        assert " ".join(tokenize(turn)).replace(" 's", "'s") == turn.replace(
            "start-up", "start - up"
        )


def test_articles_fit(dialogues: list[tuple[str, ...]]) -> None:
    pairs = {pair for turns in dialogues for turn in turns for pair in pairwise(turn.split())}
    assert [word for a, word in pairs if a == "a" and word[0] in "aeio"] == []
    no_progress = {"hour"}
    starts = [word for a, word in pairs if a == "an" and word not in no_progress]
    assert [word for word in starts if word[0] not in "aeiou"] == []


def test_nobody_repeats_a_question_or_a_dull_reply_at_length(
    dialogues: list[tuple[str, ...]],
) -> None:
    repeats = sum(len(turns) - len(set(turns)) for turns in dialogues)
    assert repeats / sum(map(len, dialogues)) < 0.01


def test_a_realistic_share_of_replies_is_dull(dialogues: list[tuple[str, ...]]) -> None:
    replies = [turn for turns in dialogues for turn in turns[1:]]
    dull = load_grammar().dull_replies
    assert 0.15 <= sum(reply in dull for reply in replies) / len(replies) <= 0.25
    assert {"i do not know .", "that is great ."} <= set(replies)


def test_the_same_context_has_several_replies(corpus: Corpus) -> None:
    by_opening: dict[tuple[str, ...], list[str]] = defaultdict(list)
    by_last: dict[str, list[str]] = defaultdict(list)
    for each in corpus.train:
        by_last[each.context[-1]].append(each.references[0])
        if len(each.context) == 1:
            by_opening[each.context].append(each.references[0])
    frequent = [replies for replies in by_opening.values() if len(replies) >= 5]
    assert frequent
    assert all(len(set(replies)) >= 2 for replies in frequent)
    ambiguous = sum(len(replies) for replies in by_last.values() if len(set(replies)) > 1)
    assert ambiguous > len(corpus.train) / 2


def test_no_dialogue_occurs_twice(corpus: Corpus) -> None:
    overlap = audit(corpus).normalised
    assert overlap.inside == {"train": 0, "valid": 0, "test": 0}
    assert (overlap.test_in_train, overlap.valid_in_train, overlap.test_in_valid) == (0, 0, 0)


def test_nobody_speaks_of_another_in_the_first_person(dialogues: list[tuple[str, ...]]) -> None:
    quoted = ("some people say that", "other people say that", "i will remember that")
    for turn in chain.from_iterable(dialogues):
        if turn.startswith(quoted):
            assert not {"i", "me", "my", "we", "our"} & set(turn.split(" that ", 1)[1].split())


def _rare(examples: Iterable[Example]) -> set[str]:
    counts = Counter(word for each in examples for word in each.references[0].split())
    return set(counts) - {word for word, _ in counts.most_common(100)}


def test_facts_are_picked_up_turns_later(corpus: Corpus) -> None:
    """Rare words of a reply stand in its own early context, hardly in somebody else's."""
    rare = _rare(corpus.train)
    deep = [each for each in corpus.test if len(each.context) > 1]
    others = deep[len(deep) // 2 :] + deep[: len(deep) // 2]

    def share(pairs: Iterable[tuple[Example, Example]]) -> float:
        shared = total = 0
        for each, source in pairs:
            early = set(" ".join(source.context[:-1]).split())
            words = rare & set(each.references[0].split()) - set(each.context[-1].split())
            shared, total = shared + len(words & early), total + len(words)
        return shared / total

    assert share(zip(deep, deep, strict=True)) > 5 * share(zip(deep, others, strict=True))


def _hits(corpus: Corpus, view: Callable[[Example], Iterable[str]]) -> list[float]:
    """For each test example whether its reply, among ten, shares most with the turns in view.

    Shared words weigh by their rarity in train; a tie counts in parts. Guessing gives 0.1.
    """
    counts = Counter(word for each in corpus.train for word in set(each.references[0].split()))
    total = len(corpus.train) + 1
    others = random.Random(0)
    hits = []
    for each in corpus.test:
        rivals = [others.choice(corpus.test).references[0] for _ in range(9)]
        seen = set(" ".join(view(each)).split())
        scores = [
            sum(math.log(total / (counts[word] + 1)) for word in sorted(seen & set(reply.split())))
            for reply in (each.references[0], *rivals)
        ]
        best = [place for place, score in enumerate(scores) if score == max(scores)]
        hits.append((0 in best) / len(best))
    return hits


def _z(differences: list[float]) -> float:
    return mean(differences) / (stdev(differences) / math.sqrt(len(differences)))


def test_who_reads_the_context_finds_the_reply(corpus: Corpus) -> None:
    """The last turn beats guessing, and the whole context beats the last turn."""
    last = _hits(corpus, lambda each: each.context[-1:])
    whole = _hits(corpus, lambda each: each.context)
    assert _z([hit - 0.1 for hit in last]) > 3
    assert _z([a - b for a, b in zip(whole, last, strict=True)]) > 3
