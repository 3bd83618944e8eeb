"""Responses of which no judge of entailment need be asked: they say nothing, or nothing new.

NLI models call a full stop, an article or a turn said back entailed by nearly everything, and none
of them was trained on such hypotheses. So a response counts as neutral to every turn when it

1. has no content word: all its words are function words, or it has none;
2. copies a turn of its context; or
3. says one thing, a word or a phrase, several times over and nothing else.

Words are `default` tokens with a letter or a digit, so case, gaps and punctuation do not matter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dialbench.text.tokenizer import UNKNOWN, tokenize

GUARD = "content,copy,repetition"
"""What the guard looks at, for a signature."""

# The closed classes of English, as `default` tokens write them. What has senses outside of them
# (like, right, sure, need, let) is left out, so that doubtful responses go to the judge.
_DETERMINERS = """
a an the this that these those some any every each either neither another other others both all
half such much many more most few fewer less least several enough
"""
_PRONOUNS = """
i me my mine myself you your yours yourself yourselves u he him his himself she her hers herself
it its itself we us our ours ourselves they them their theirs themselves one ones oneself someone
anyone everyone somebody anybody everybody nobody something anything everything nothing none
who whom whose which what whoever whatever whichever
"""
_AUXILIARIES = """
am is are was were be been being do does did has have had having will would wo shall should sha
can could ca cannot may might must ought ai 's 'm 're 've 'll 'd s m re ve ll d n't t not
"""
_PREPOSITIONS = """
about above across after against along among around as at before behind below beneath beside
besides between beyond by despite down during except for from in inside into near of off on onto out
outside over per since than through throughout till to toward towards under until up upon via
with within without
"""
_CONJUNCTIONS = "and but or nor so yet if because although though while whereas unless whether"
_ADVERBS = """
when where why how there here then now too also very just only even still already again ever never
else quite rather really almost however maybe perhaps
"""
_INTERJECTIONS = """
oh ooh ah aha eh uh um umm uhm hm hmm mm mhm er huh wow hey hi hello bye goodbye ok okay yes yeah
yep yup no nope well please
"""
_CLASSES = (
    *(_DETERMINERS, _PRONOUNS, _AUXILIARIES, _PREPOSITIONS),
    *(_CONJUNCTIONS, _ADVERBS, _INTERJECTIONS, UNKNOWN),
)
FUNCTION_WORDS = frozenset(" ".join(_CLASSES).split())
"""Words without content of their own."""


def says_something(response: str, context: Sequence[str]) -> bool:
    """Whether a judge should be asked about a response.

    Args:
        response: as it was written.
        context: the turns before it.

    Returns:
        False if the response has no content word, only repeats a word or a phrase, or copies a turn
        of the context.
    """
    words = list(_words(response))
    if FUNCTION_WORDS.issuperset(words) or _repeats(words):
        return False
    return all(list(_words(turn)) != words for turn in context)


def _repeats(words: Sequence[str]) -> bool:
    """Whether the words are one sequence of words, twice or more."""
    count = len(words)
    sizes = (size for size in range(1, count // 2 + 1) if count % size == 0)
    # Moved by the length of what is repeated, they are the same.
    return any(words[size:] == words[:-size] for size in sizes)


def _words(text: str) -> Iterator[str]:
    return (t for t in tokenize(text) if t == UNKNOWN or any(map(str.isalnum, t)))
