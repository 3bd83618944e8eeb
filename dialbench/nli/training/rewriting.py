"""Sentences with one thing in them changed: the speaker, a number, a word for its opposite.

Each function returns None where a sentence has nothing of the kind, or where the change would not
surely give a sentence of the intended meaning.
"""

from __future__ import annotations

import random
import re

_SWAPS = {
    "i": "you",
    "i'm": "you're",
    "i've": "you've",
    "i'll": "you'll",
    "i'd": "you'd",
    "am": "are",
    "me": "you",
    "my": "your",
    "mine": "yours",
    "myself": "yourself",
}
_FIRST = re.compile(r"\b(?:I(?:'(?:m|ve|ll|d))?|am|me|my|mine|myself)(?!['\w])", re.IGNORECASE)
_SECOND = re.compile(r"\b(?:you|your|yours|yourself|we|us|our|ours)\b", re.IGNORECASE)

_NUMBERS = (
    *("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "fifteen", "twenty", "thirty", "forty", "fifty"),
)
_NUMBER = re.compile(
    rf"(?<![-:.,/\w])(?:{'|'.join(_NUMBERS)}|[1-9]\d?)\b(?![-:.,/%]\w)", re.IGNORECASE
)

_OPPOSITES = """
open closed; hot cold; warm cool; big small; large tiny; old new; tall short; long short; high low;
full empty; happy sad; rich poor; clean dirty; wet dry; dark bright; heavy light; hard soft; early
late; easy difficult; fast slow; quick slow; cheap expensive; near far; good bad; great terrible;
wonderful awful; beautiful ugly; strong weak; young old; thick thin; wide narrow; loud quiet; noisy
quiet; busy free; safe dangerous; possible impossible; true false; right wrong; same different;
first last; always never; everyone nobody; everything nothing; inside outside; indoors outdoors;
upstairs downstairs; asleep awake; alive dead; married single; healthy ill; sick healthy; lucky
unlucky; polite rude; alone together; love hate; loves hates; like dislike; likes dislikes;
buy sell; bought sold; won lost; remember forget; remembered forgot; arrive leave; arrived left;
standing sitting; sleeping running; walking sitting; smiling crying; laughing crying; morning
evening; day night; summer winter; north south; east west; man woman; boy girl; men women;
boys girls; brother sister; father mother; husband wife; black white; left right;
increase decrease; rise fall
"""
_OPPOSITE: dict[str, str] = {}
for _pair in _OPPOSITES.replace("\n", " ").split(";"):
    _one, _other = _pair.split()
    _OPPOSITE.setdefault(_one, _other)
    _OPPOSITE.setdefault(_other, _one)
_KNOWN = re.compile(rf"\b(?:{'|'.join(_OPPOSITE)})\b")
_STATE = re.compile(rf"\b(is|are|was|were|'s|'re|'m|am) ({'|'.join(_OPPOSITE)})(?=[.,]?$)")
_DENIED = re.compile(r"\b(?:not|never|no|nothing|nobody|neither)\b|n['’]t\b", re.IGNORECASE)


def swap_speaker(sentence: str) -> str | None:
    """What `I` say of myself as said of `you`: "I am late." -> "You are late."."""
    text = sentence.replace("’", "'")
    if not _FIRST.search(text) or _SECOND.search(text):
        return None
    text = re.sub(r"\bI was\b", "you were", text)
    swapped = _FIRST.sub(lambda match: _SWAPS[match[0].lower()], text)
    return swapped[0].upper() + swapped[1:]


def other_number(sentence: str, dice: random.Random) -> str | None:
    """The sentence with its only number exchanged for another one from two up."""
    (*_, match), count = [None, *_NUMBER.finditer(sentence)], len(_NUMBER.findall(sentence))
    if match is None or count != 1:
        return None
    if match[0].isdecimal():
        others = [str(n) for n in range(2, 100) if n != int(match[0])]
    else:
        others = [word for word in _NUMBERS if word != match[0].lower()]
    other = dice.choice(others)
    other = other.capitalize() if match[0][0].isupper() else other
    return sentence[: match.start()] + other + sentence[match.end() :]


def opposite(sentence: str) -> str | None:
    """The sentence with its only word that has a listed opposite exchanged for that."""
    words = _KNOWN.findall(sentence)
    if len(words) != 1 or _DENIED.search(sentence):
        return None
    return _KNOWN.sub(lambda word: _OPPOSITE[word[0]], sentence)


def denied_opposite(sentence: str) -> str | None:
    """What follows from a state at the end: "The gate is open." -> "The gate is not closed."."""
    match = _STATE.search(sentence)
    if match is None or _DENIED.search(sentence):
        return None
    return _STATE.sub(lambda state: f"{state[1]} not {_OPPOSITE[state[2]]}", sentence)
