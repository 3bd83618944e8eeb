"""dialbench's own corpus: invented conversations, made by a seeded grammar in well under a second.

They share what matters for trying things out with the real corpora: many topics, several turns,
several plausible replies to the same context, a share of dull replies, and facts (names, places,
days) that are picked up turns later, so that reading the context pays. Their text is ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from random import Random
from string import Formatter
from typing import TypeVar

from dialbench.corpora.contents import Card, Contents
from dialbench.corpora.demo_grammar import Exchange, Grammar, Plot, Topic, load_grammar

T = TypeVar("T")

SIZES = {"train": 1_600, "valid": 200, "test": 200}
SEED = 1
DULL_SHARE = 0.42
"""How often an exchange that has dull answers is answered with one."""
LINKED_SHARE = 0.6
"""How often a turn that picks up a fact is preferred to one that may not."""
ACKNOWLEDGED_SHARE = 0.15
"""How often a question begins with an acknowledgement of the turn before."""

CARD = Card(
    name="demo",
    title="Demo",
    summary="invented English small talk, made by a grammar; ships with dialbench",
    licence="that of dialbench",
    publishable=True,
    official=SIZES,
    notes=("made by a grammar; its scores say nothing about real conversations",),
)

# Facts that are said together with another one, or need not have been said at all.
_FACT_OF = {"she": "name", "her": "name", "do": "did", "doing": "did", "object": "did"}
_FIRST_PERSON = {"i", "me", "my", "we", "us", "our"}
_FREE = {"topic", "hobby", "hobbying"}


def read(folder: Path) -> Contents:
    """The default demo corpus; `folder` is not looked at."""
    contents = Contents()
    for split, dialogues in generate().items():
        for index, turns in enumerate(dialogues):
            contents.add_dialogue(split, f"{split}-{index}", turns)
    return contents


def generate(
    sizes: Mapping[str, int] = SIZES, *, seed: int = SEED
) -> dict[str, list[tuple[str, ...]]]:
    """Dialogues of 4 to 8 turns by split, no dialogue twice, the same ones for the same seed."""
    random, grammar = Random(seed), load_grammar()  # noqa: S311 - not a secret
    seen: set[tuple[str, ...]] = set()
    dialogues: dict[str, list[tuple[str, ...]]] = {split: [] for split in sizes}
    for split, size in sizes.items():
        while len(dialogues[split]) < size:
            dialogue = _generate_dialogue(random, grammar)
            if dialogue not in seen:
                seen.add(dialogue)
                dialogues[split].append(dialogue)
    return dialogues


def _generate_dialogue(random: Random, grammar: Grammar) -> tuple[str, ...]:
    topic = random.choice(grammar.topics)
    plot = random.choice(grammar.plots)
    builder = _DialogueBuilder(random, grammar, _draw_facts(random, grammar, topic, plot))
    length = random.randint(max(4, len(plot.opening)), 8)
    for templates in plot.opening:
        builder.say(random.choice(builder.sayable(templates)))
    exchanges = [*plot.middle, *_questions_on(topic)]
    while length - len(builder.turns) > 2 and (exchange := builder.choose(exchanges)):
        exchanges.remove(exchange)
        builder.add_exchange(exchange)
    if closing := builder.choose(plot.closing):
        builder.add_exchange(closing, turns=length - len(builder.turns))
    return tuple(builder.turns)


class _DialogueBuilder:
    """A dialogue in the making: its turns and the facts said so far."""

    def __init__(self, random: Random, grammar: Grammar, facts: Mapping[str, str]) -> None:
        self.turns: list[str] = []
        self._random, self._grammar = random, grammar
        self._facts = facts
        self._mentioned: set[str] = set()
        # "i miss my bed" is for its owner to say; nobody else may be given those words.
        self._private = {
            name for name in ("like", "dislike") if _FIRST_PERSON & set(facts[name].split())
        }

    def choose(self, exchanges: Sequence[Exchange]) -> Exchange | None:
        """One of the exchanges that go on from here; None if there is none."""
        fitting = [exchange for exchange in exchanges if self._fits(exchange)]
        linked = [each for each in fitting if any(map(self._linked, self._asks(each)))]
        return self._pick(fitting, linked) if fitting else None

    def add_exchange(self, exchange: Exchange, turns: int = 2) -> None:
        """Says the first `turns` turns of an exchange."""
        if turns > 0:
            asks = self._asks(exchange)
            self._ask(self._pick(asks, list(filter(self._linked, asks))))
        if turns > 1:
            self._answer(exchange)

    def say(self, template: str) -> None:
        """Adds a turn and remembers its facts."""
        self.turns.append(template.format_map(self._facts))
        self._mentioned |= _facts_in(template)

    def sayable(self, answers: Sequence[str]) -> list[str]:
        """Those answers whose pronouns refer to somebody and that quote nobody wrongly."""
        return [
            answer
            for answer in answers
            if "name" not in _facts_in(answer)
            or (("name" in self._mentioned or "{name}" in answer) and not self._is_private(answer))
        ]

    def _ask(self, template: str) -> None:
        dull = self._grammar.dull_replies
        may_acknowledge = template.endswith("?") and self.turns[-1] not in dull
        if may_acknowledge and template not in dull and self._random.random() < ACKNOWLEDGED_SHARE:
            template = f"{self._random.choice(self._grammar.acknowledgements)} {template}"
        self.say(template)

    def _answer(self, exchange: Exchange) -> None:
        dull = [answer for answer in exchange.dull if answer not in self.turns]
        if dull and self._random.random() < DULL_SHARE:
            self.say(self._random.choice(dull))
            return
        answers = self.sayable(exchange.answers)
        self.say(self._pick(answers, list(filter(self._linked, answers))))

    def _pick(self, options: Sequence[T], linked: Sequence[T]) -> T:
        """One of the options, rather one of those linked to what was said before."""
        prefer = linked and self._random.random() < LINKED_SHARE
        return self._random.choice(linked if prefer else options)

    def _linked(self, template: str) -> bool:
        return bool(_facts_in(template) & self._mentioned)

    def _fits(self, exchange: Exchange) -> bool:
        fits = exchange.needs <= self._mentioned and not exchange.unless & self._mentioned
        return fits and bool(self._asks(exchange) and self.sayable(exchange.answers))

    def _asks(self, exchange: Exchange) -> list[str]:
        known = self._mentioned | exchange.introduces
        return [
            ask
            for ask in exchange.asks
            if _facts_in(ask) <= known and ask not in self.turns and not self._is_private(ask)
        ]

    def _is_private(self, template: str) -> bool:
        return bool(_facts_in(template) & self._private)


@cache
def _facts_in(template: str) -> frozenset[str]:
    names = {name for _, name, _, _ in Formatter().parse(template) if name}
    return frozenset(_FACT_OF.get(name, name) for name in names - _FREE)


@cache
def _questions_on(topic: Topic) -> tuple[Exchange, ...]:
    return tuple(
        Exchange(asks=(f"{question} ?",), answers=tuple(f"{answer} ." for answer in answers))
        for question, *answers in map(_split_entry, topic.talks)
    )


@cache
def _split_entry(entry: str) -> tuple[str, ...]:
    return tuple(entry.split(" | "))


def _draw_facts(random: Random, grammar: Grammar, topic: Topic, plot: Plot) -> dict[str, str]:
    """Everything that a template may name, drawn for one dialogue."""
    day, day2 = random.sample(grammar.days, 2)
    do, did, doing, object = _split_entry(random.choice(topic.activities))
    hobby, hobbying = _split_entry(topic.hobby)
    trouble, cause, remedy = _split_entry(random.choice(topic.troubles))
    good, how = _split_entry(random.choice(topic.good))
    bad, why = _split_entry(random.choice(topic.bad))
    facts = {
        "topic": topic.name, "hobby": hobby, "hobbying": hobbying,
        "do": do, "did": did, "doing": doing, "object": object,
        "trouble": trouble, "cause": cause, "remedy": remedy,
        "good": good, "how": how, "bad": bad, "why": why,
        "day": day, "day2": day2,
    }  # fmt: skip
    facts["date"] = facts[plot.date]
    facts |= {name: random.choice(choices) for name, choices in _choices(grammar, topic)}
    return facts | _draw_person(random, grammar)


def _choices(grammar: Grammar, topic: Topic) -> Iterator[tuple[str, Sequence[str]]]:
    yield "place", topic.places
    yield "like", topic.likes
    yield "dislike", topic.dislikes
    yield "item", topic.items
    yield "feeling", grammar.feelings
    yield "chore", grammar.chores
    yield "life", grammar.lives
    yield "time", grammar.times
    yield "price", grammar.prices


def _draw_person(random: Random, grammar: Grammar) -> dict[str, str]:
    female = random.random() < 0.5
    relations = grammar.female_relations if female else grammar.male_relations
    return {
        "name": random.choice(grammar.women if female else grammar.men),
        "she": "she" if female else "he",
        "her": "her" if female else "him",
        "relation": random.choice(relations + grammar.relations),
    }
