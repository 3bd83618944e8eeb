"""The grammar of the demo corpus, read from demo_plots.toml and demo_topics.toml.

Text is in the form of tokenised corpora: lower case, no contractions, spaces around punctuation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from dialbench.files.loads import loads

Strings = tuple[str, ...]
_FACTS = ("introduces", "needs", "unless")


@dataclass(frozen=True)
class Exchange:
    """Two turns: what one speaker says, and what the other may answer.

    Attributes:
        asks: ways to say the first turn.
        answers: ways to answer it.
        dull: answers that fit nearly everywhere and say next to nothing.
        introduces: facts that the asks may name although nobody did before.
        needs: facts that must have been said.
        unless: facts that must not have been said.
    """

    asks: Strings
    answers: Strings
    dull: Strings = ()
    introduces: frozenset[str] = frozenset()
    needs: frozenset[str] = frozenset()
    unless: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Plot:
    """A kind of conversation: fixed opening turns, exchanges in any order, a closing exchange.

    Attributes:
        name: for readers only.
        opening: for each of the first turns, ways to say it.
        middle: exchanges that may follow, each once.
        closing: exchanges one of which ends the conversation.
        date: the fact that is the day of the occasion.
    """

    name: str
    opening: tuple[Strings, ...]
    middle: tuple[Exchange, ...]
    closing: tuple[Exchange, ...]
    date: str = "day"


@dataclass(frozen=True)
class Topic:
    """The phrases of one topic; the parts of an entry are divided by ` | `.

    Attributes:
        name: the topic as people name it.
        hobby: doing it at all: infinitive | gerund.
        activities: one occasion: infinitive | past | gerund | object.
        places: where it happens, with preposition.
        likes: what is good about it, as clauses.
        dislikes: what is bad about it, as clauses.
        troubles: problem, as a clause | its cause, as a clause | its remedy, as an infinitive.
        good: good news, as a clause | how it came about, as a clause.
        bad: bad news, as a clause | how it came about, as a clause.
        items: what one may bring along.
        talks: question | answer | answer | ...
    """

    name: str
    hobby: str
    activities: Strings
    places: Strings
    likes: Strings
    dislikes: Strings
    troubles: Strings
    good: Strings
    bad: Strings
    items: Strings
    talks: Strings


@dataclass(frozen=True)
class Grammar:
    """Everything that the demo corpus is made from.

    Attributes:
        topics, plots: one of each makes a dialogue.
        dull_replies: replies that fit nearly everywhere.
        acknowledgements: openings of a question.
        feelings ... relations: what a template may name, whatever the topic.
    """

    topics: tuple[Topic, ...]
    plots: tuple[Plot, ...]
    dull_replies: frozenset[str]
    acknowledgements: Strings
    feelings: Strings
    chores: Strings
    lives: Strings
    days: Strings
    times: Strings
    prices: Strings
    women: Strings
    men: Strings
    female_relations: Strings
    male_relations: Strings
    relations: Strings


@cache
def load_grammar() -> Grammar:
    """The grammar that ships with dialbench."""
    plots, topics = _read("demo_plots.toml"), _read("demo_topics.toml")
    shared = plots.pop("exchanges")
    parts: dict[str, Any] = {
        "topics": tuple(Topic(**_tuples(fields)) for fields in topics["topics"]),
        "plots": tuple(_plot(fields, shared) for fields in plots.pop("plots")),
        "dull_replies": frozenset(plots.pop("dull_replies")),
    }
    return Grammar(**parts, **_tuples(plots))


def _read(name: str) -> dict[str, Any]:
    text = (files("dialbench.corpora") / name).read_bytes()
    return loads(text, "TOML")  # type: ignore[no-any-return]


def _tuples(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()
    }


def _plot(fields: dict[str, Any], shared: Mapping[str, dict[str, Any]]) -> Plot:
    """A plot, of whose exchanges some are named ones that several plots share."""
    for part in ("middle", "closing"):
        entries = [shared[e["shared"]] if "shared" in e else e for e in fields[part]]
        fields[part] = [_exchange(entry) for entry in entries]
    fields["opening"] = [tuple(templates) for templates in fields["opening"]]
    return Plot(**_tuples(fields))


def _exchange(fields: Mapping[str, Any]) -> Exchange:
    facts = {name: frozenset(fields.get(name, ())) for name in _FACTS}
    return Exchange(**{**_tuples(fields), **facts})
