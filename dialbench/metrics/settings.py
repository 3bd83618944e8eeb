"""What metrics are built from: the tokeniser, choices, and resources such as vectors or a judge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dialbench.metrics.diversity import Denominator
    from dialbench.metrics.entailment import Judge, Verdicts
    from dialbench.metrics.libraries import BertModel, MauveModel
    from dialbench.metrics.meteor15 import MeteorProgram
    from dialbench.metrics.novelty import Training
    from dialbench.metrics.semantic import SentenceModel
    from dialbench.metrics.wordnet import WordNet
    from dialbench.text.vectors import Vectors


@dataclass(frozen=True)
class MetricSettings:
    """What metrics are built from.

    Attributes:
        tokenizer: name of the tokeniser that the texts go through.
        denominator: what Distinct divides by; None: tokens, within one response n-grams.
        wordnet: where synonyms come from.
        meteor: the program of METEOR 1.5.
        vectors: word vectors of the embedding metrics.
        missing_vectors: why there are none.
        training: the training split, for novelty and the V of ead-n.
        missing_training: why there is none.
        vocabulary: V of ead-n; None takes the number of words of the training split.
        sentences: the sentence model.
        bert: the encoder of BERTScore.
        mauve: the language model of MAUVE.
        judge: the NLI model.
        missing_judge: why there is none.
    """

    tokenizer: str = "default"
    denominator: Denominator | None = None
    wordnet: WordNet | None = None
    meteor: MeteorProgram | None = None
    vectors: Vectors | None = None
    missing_vectors: str = "no word vectors were given"
    training: Training | None = None
    missing_training: str = "no training text was given"
    vocabulary: int | None = None
    sentences: SentenceModel | None = None
    bert: BertModel | None = None
    mauve: MauveModel | None = None
    judge: Judge | None = None
    missing_judge: str = "no NLI model was given"

    @property
    def kinds(self) -> int | None:
        """V of ead-n; None where neither it nor training text was given."""
        if self.vocabulary is not None or self.training is None:
            return self.vocabulary
        return self.training.kinds

    @property
    def choices(self) -> Mapping[str, Any]:
        """What builds a metric anew where its resources are not needed: fields and their values."""
        return {
            "tokenizer": self.tokenizer,
            "denominator": self.denominator,
            "vocabulary": self.kinds,
        }

    @cached_property
    def verdicts(self) -> Verdicts | None:
        """Of the judge, for all metrics that read them."""
        from dialbench.metrics.entailment import Verdicts

        return Verdicts(self.judge) if self.judge else None
