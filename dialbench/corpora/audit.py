"""What a corpus holds, and how far its splits repeat themselves and each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from dialbench.corpora.corpus import Corpus
from dialbench.corpora.files import SPLITS
from dialbench.corpora.overlap import Key, dialogues_in_both, exact, normalised, repeats
from dialbench.text.tokenizer import tokenize
from dialbench.text.vocabulary import Vocabulary

VOCABULARY_SIZE = 20_000


@dataclass(frozen=True, slots=True)
class SplitFacts:
    """Counts of one split; tokens are those of the default tokeniser over all turns.

    Attributes:
        dialogues: how many conversations.
        turns: how many turns they have together.
        examples: how many contexts with a response.
        mean_turns: turns per dialogue.
        tokens: words and punctuation marks.
        vocabulary: how many different ones.
    """

    dialogues: int
    turns: int
    examples: int
    mean_turns: float
    tokens: int
    vocabulary: int


@dataclass(frozen=True, slots=True)
class CorpusFacts:
    """Facts by split that is there.

    `coverage` is the share (0 to 1) of test tokens among the 20,000 training words; None where
    there is no training split.
    """

    name: str
    splits: Mapping[str, SplitFacts]
    coverage: float | None


@dataclass(frozen=True, slots=True)
class Overlap:
    """How often dialogues recur; None where one of the two splits is not there.

    Attributes:
        inside: by split, how many dialogues repeat an earlier one of the same split.
        test_in_train: how many test dialogues occur in train.
        valid_in_train: how many validation dialogues occur in train.
        test_in_valid: how many test dialogues occur in valid.
    """

    inside: Mapping[str, int]
    test_in_train: int | None
    valid_in_train: int | None
    test_in_valid: int | None


@dataclass(frozen=True, slots=True)
class Audit:
    """Recurring dialogues, turn for turn, and with case, spaces and punctuation ignored."""

    name: str
    exact: Overlap
    normalised: Overlap


def describe(corpus: Corpus) -> CorpusFacts:
    """Counts dialogues, turns, examples, tokens and words of every split."""
    words = {split: _count_words(corpus, split) for split in _present(corpus)}
    facts = {split: _facts(corpus, split, words[split]) for split in words}
    if "train" not in words:
        return CorpusFacts(corpus.name, facts, None)
    vocabulary = Vocabulary.from_counts(words["train"], VOCABULARY_SIZE)
    known = sum(count for word, count in words["test"].items() if word in vocabulary)
    return CorpusFacts(corpus.name, facts, known / facts["test"].tokens)


def _present(corpus: Corpus) -> list[str]:
    return [split for split in SPLITS if corpus.items[split]]


def _count_words(corpus: Corpus, split: str) -> Counter[str]:
    words: Counter[str] = Counter()
    for dialogue in corpus.dialogues(split):
        for turn in dialogue.turns:
            words.update(tokenize(turn))
    return words


def _facts(corpus: Corpus, split: str, words: Counter[str]) -> SplitFacts:
    turns = [len(dialogue.turns) for dialogue in corpus.dialogues(split)]
    return SplitFacts(
        dialogues=len(turns),
        turns=sum(turns),
        examples=len(corpus.split(split)),
        mean_turns=sum(turns) / len(turns),
        tokens=words.total(),
        vocabulary=len(words),
    )


def audit(corpus: Corpus) -> Audit:
    """Counts dialogues that recur inside a split or in another one."""
    return Audit(corpus.name, _overlap(corpus, exact), _overlap(corpus, normalised))


def _overlap(corpus: Corpus, key: Key) -> Overlap:
    present = _present(corpus)

    def shared(split: str, other: str) -> int | None:
        if not {split, other} <= set(present):
            return None
        return dialogues_in_both(corpus.dialogues(split), corpus.dialogues(other), key)

    return Overlap(
        inside={split: repeats(corpus.dialogues(split), key) for split in present},
        test_in_train=shared("test", "train"),
        valid_in_train=shared("valid", "train"),
        test_in_valid=shared("test", "valid"),
    )
