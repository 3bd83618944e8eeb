"""Topical words: the frequent words of a vocabulary that are no stop words."""

from __future__ import annotations

from itertools import islice

from dialbench.text.vocabulary import SPECIALS, Vocabulary

# Words that say how a sentence is built and not what it is about.
_STOP = """
a about above across after afterwards again against ago ah all almost alone along already also
although always am among an and another any anybody anyhow anyone anything anyway anywhere are
aren around as at away back be became because become been before behind being below beside
besides between beyond both but by can cannot could couldn d did didn do does doesn doing don
done down during each either else enough er even ever every everybody everyone everything
everywhere except few for from further get gets getting go goes going gone gonna got had hadn
half has hasn have haven having he hello hence her here hers herself hey hi him himself his hm
hmm how however i if in indeed instead into is isn it its itself just least less let ll m
many may maybe me might mine more moreover most much must my myself n near neither never
nevertheless next no nobody none nor not nothing now nowhere o of off often oh ok okay on once
one ones only onto or other others otherwise ought our ours ourselves out over own per perhaps
please quite rather re really s same shall she should shouldn since so some somebody somehow
someone something sometimes somewhere still such t than thank thanks that the their theirs them
themselves then there therefore these they this those though through thus till to together too
toward towards uh um under until unto up upon us ve very want was wasn we well were weren what
whatever when whenever where wherever whether which while who whoever whom whose why will with
within without won would wouldn ye yeah yes yet you your yours yourself yourselves
"""
STOP_WORDS = frozenset(_STOP.split())


def topical_words(vocabulary: Vocabulary, count: int) -> list[int]:
    """The numbers of the `count` most frequent words that are topical: letters, no stop word.

    As in the released code; that words are also stemmed, as the paper says, does not show in the
    topics that it prints.
    """
    words = enumerate(vocabulary.words[len(SPECIALS) :], len(SPECIALS))
    topical = (n for n, word in words if word.isalpha() and word not in STOP_WORDS)
    return list(islice(topical, count))
