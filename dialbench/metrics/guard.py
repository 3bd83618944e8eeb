"""Responses that follow from everything: they say nothing, nothing new, or what is always true.

NLI models call a full stop, an article or a turn said back entailed by nearly everything, and none
of them was trained on such hypotheses. "Someone said something." does follow from every turn, and
answers none. So a response counts as neutral to every turn when it

1. has no content word: all its words are function words, or it has none;
2. copies its context: it is one of the turns, or two thirds of its content words stand in runs of
   four words or more that it shares with a turn;
3. says one thing, a word or a phrase, several times over and nothing else; or
4. follows, for the judge, from `ANYWHERE` or more of the sentences `UNRELATED` to any context.

The first three need no judge. The fourth is asked where a response follows from a turn. Words are
`default` tokens with a letter or a digit, so case, gaps and punctuation do not matter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dialbench.text.tokenizer import UNKNOWN, tokenize

GUARD = "content,copy,repetition,vacuity"
"""What the guard looks at, for a signature."""
UNRELATED = (
    "Could you tell me how to get to the museum?",
    "My sister is learning to play the cello.",
    "How much do these shoes cost?",
    "That dress looks wonderful on you!",
    "Have you finished the report for Mr Baker?",
    "Let's cook something together tonight.",
    "You should see a doctor about that cough.",
    "They sold their car and bought two bicycles.",
    "Would you mind turning the music down?",
    "Please sign here and keep the blue copy.",
    "My grandfather used to be a fisherman.",
    "Happy birthday! I brought you some flowers.",
    "Where did you spend your holidays?",
    "Sorry, we don't accept credit cards.",
    "Really?",
    "Good morning, Mrs Green.",
)
"""Turns of everyday talk about different things, of our own writing.

Of forty such, the sixteen from which what is true of all talk follows most often, and turns of
people least often, with the embedded judge.
"""
ANYWHERE = 3
"""What follows from so many of `UNRELATED` follows from anything.

Of 400 turns of people, 2 % do, and their `ue` is 0.181; with 2 it would be 0.151. With 4, "There is
a problem." would pass, with 0.249.
"""
_RUN = 4
_COPIED = 2 / 3

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
        False if the response has no content word, only repeats a word or a phrase, or copies its
        context.
    """
    words = list(_words(response))
    if FUNCTION_WORDS.issuperset(words) or _repeats(words):
        return False
    return not _copies(words, context)


def _copies(words: list[str], context: Sequence[str]) -> bool:
    """Whether they are a turn, or most of what has content is in runs of words of one."""
    turns = [list(_words(turn)) for turn in context]
    said = {run for turn in turns for _, run in _runs(turn)}
    copied = {place for start, run in _runs(words) if run in said for place in _places(start)}
    content = {place for place, word in enumerate(words) if word not in FUNCTION_WORDS}
    return words in turns or len(copied & content) >= _COPIED * len(content)


def _runs(words: list[str]) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Where each run of `_RUN` words starts, and the run."""
    starts = range(len(words) - _RUN + 1)
    return ((start, tuple(words[start : start + _RUN])) for start in starts)


def _places(start: int) -> range:
    return range(start, start + _RUN)


def _repeats(words: Sequence[str]) -> bool:
    """Whether the words are one sequence of words, twice or more."""
    count = len(words)
    sizes = (size for size in range(1, count // 2 + 1) if count % size == 0)
    # Moved by the length of what is repeated, they are the same.
    return any(words[size:] == words[:-size] for size in sizes)


def _words(text: str) -> Iterator[str]:
    return (t for t in tokenize(text) if t == UNKNOWN or any(map(str.isalnum, t)))
