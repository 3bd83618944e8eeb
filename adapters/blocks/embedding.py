"""Words and positions as vectors (docs/systems.md)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor, nn

from dialbench.errors import InputError
from dialbench.neural.data import Encoded
from dialbench.neural.model import DialogueModel, WordOutput
from dialbench.neural.words import log_unigram, word_vectors
from dialbench.records import Context
from dialbench.text.vectors import Vectors, load
from dialbench.text.vocabulary import BOS, PAD, SPECIALS, UNK, Vocabulary

CORPUS = "corpus"
_UNCOVERED_STD = 0.01  # code of SVT
# Of the words' std, for what is added to them (positions, turns, speakers): else it hides the words
# until both are learnt.
BESIDE_WORDS = 0.25


@dataclass(frozen=True)
class WordStart:
    """Where words start from.

    Attributes:
        vectors: what word vectors start from in place of random ones: a GloVe or word2vec text
            file of their size, or `corpus`, vectors made from the training split.
        output_start: whether the output map starts from vectors made from the training split too.
        output_bias: whether its biases start at the words' log-frequencies in the responses.
    """

    vectors: str = ""
    output_start: Literal["random", "corpus"] = "random"
    output_bias: Literal["zero", "unigram"] = "zero"


@dataclass(frozen=True)
class WordTable:
    """How words become vectors.

    Attributes:
        embedding: n, size of word vectors.
        word_spread: their standard deviation at the start, unless a file gives them; larger ones
            stand out against positions, and the context is read sooner.
    """

    embedding: int = 300
    word_spread: float = 0.1

    positive: ClassVar[tuple[str, ...]] = ("embedding", "word_spread")


class WordAdapter:
    """A mixin of systems whose model has word tables, one of them called `embedding`.

    It stands before `NeuralAdapter`; `WordTable` and `WordStart` before `NeuralConfig`.
    """

    config: Any
    vocabulary: Vocabulary
    examples: Encoded | None

    @classmethod
    def inspect(
        cls, config: Any, contexts: Sequence[Context], data: Path | None = None
    ) -> Mapping[str, Any]:
        """The checksum of the vectors to start from."""
        return inspect_vectors(config.vectors, config.embedding)

    def start_weights(self, model: DialogueModel) -> None:
        """Lets the words start from what is known of them."""
        start_words(model, self.config, self.vocabulary, self.examples)


def inspect_vectors(path: str, size: int) -> Mapping[str, Any]:
    """The checksum of the file that the option `vectors` names, if it names one.

    Raises:
        InputError: it cannot be read, or its vectors are of another size.
    """
    if path in ("", CORPUS):
        return {}
    vectors = _vectors(path)
    if vectors.matrix.shape[1] != size:
        raise InputError(
            f"the vectors in {path} have size {vectors.matrix.shape[1]}, but embedding={size}",
            where="--models",
            hint=f"Write embedding={vectors.matrix.shape[1]}.",
        )
    return {"vectors": vectors.checksum}


def start_words(
    model: nn.Module, config: WordStart, vocabulary: Vocabulary, examples: Encoded | None
) -> None:
    """Lets word tables and output maps start from what is known of the words.

    Args:
        model: freshly built.
        config: from what.
        vocabulary: V words.
        examples: the training split; None leaves everything but a file's vectors as it is.
    """
    V = len(vocabulary)
    for part in model.modules():
        if isinstance(part, WordEmbedding):
            if config.vectors == CORPUS and examples is not None:
                vectors = part.init_std * word_vectors(examples, V, part.embedding_dim)  # (V, n)
                # A word without neighbours has a zero vector, which counts as none.
                part.start_from(vectors.to(part.weight), vectors.any(1))
            elif config.vectors not in ("", CORPUS):
                part.start_from(*_of_file(config.vectors, vocabulary))
        elif isinstance(part, WordOutput) and examples is not None:
            if config.output_start == "corpus":
                part.start_from(word_vectors(examples, V, part.in_features))
            if config.output_bias == "unigram":
                part.bias.data.copy_(log_unigram(examples, V))


def _of_file(path: str, vocabulary: Vocabulary) -> tuple[Tensor, Tensor]:
    """The vectors of the vocabulary's words (V, n), and which have one (V,)."""
    vectors = _vectors(path)
    # -1 for a word that is not in the file
    rows = [vectors.rows.get(word, -1) for word in vocabulary.words]
    # (V, n), 0 where there is none
    matrix = np.where(np.array(rows)[:, None] < 0, 0.0, vectors.matrix[rows])
    return torch.from_numpy(matrix), torch.tensor(rows).ge(0)


@lru_cache(maxsize=1)
def _vectors(path: str) -> Vectors:
    return load(Path(path), where="--models")


class WordEmbedding(nn.Embedding):
    """V word vectors of size n from N(0, init_std^2); PAD is zero and stays so."""

    def __init__(self, vocabulary: int, size: int, init_std: float) -> None:
        super().__init__(vocabulary, size, padding_idx=PAD)
        self.init_std = init_std
        nn.init.normal_(self.weight, 0.0, init_std)
        with torch.no_grad():
            self.weight[PAD].zero_()

    @torch.no_grad()
    def start_from(self, vectors: Tensor, has_vector: Tensor) -> None:
        """Takes over these vectors.

        Words without one shrink to N(0, 0.01^2) (code of SVT); BOS, EOS, SEP and UNK, which no
        file knows, stay as they are: the decoder reads BOS first, and SEP divides turns.

        Args:
            vectors: (V, n).
            has_vector: (V,) True where a word has one.
        """
        # PAD stays zero, whatever a file says of it.
        has_vector = has_vector.index_fill(0, torch.tensor([PAD]), False)
        self.weight[len(SPECIALS) :] *= _UNCOVERED_STD / self.init_std  # std init_std -> 0.01
        self.weight[has_vector] = vectors[has_vector].to(self.weight)


def normal_table(rows: int, size: int, std: float) -> nn.Embedding:
    """A table of what is no word, from N(0, std^2)."""
    table = nn.Embedding(rows, size)
    nn.init.normal_(table.weight, 0.0, std)
    return table


def drop_words(inputs: Tensor, rate: float) -> Tensor:
    """Tokens (B, T), separators of turns among them, each replaced by UNK with chance `rate`.

    BOS and PAD stay.
    """
    dropped = torch.rand(inputs.shape, device=inputs.device).lt(rate)  # (B, T)
    return inputs.masked_fill(dropped & inputs.ne(BOS) & inputs.ne(PAD), UNK)


# Sines and cosines have a mean square of 1/2; words of the same bring the sum to the unit
# variance that PaRaFormer's stds presume. Words of std 0.1 would be a seventh of it, and the
# encoder then learns late to distinguish contexts.
STD_BESIDE_POSITIONS = 0.5**0.5


class Positions(nn.Module):
    """Sinusoidal positions: half sine, half cosine, wavelengths from 2 pi to 10000 * 2 pi."""

    table: Tensor

    def __init__(self, size: int, longest: int) -> None:
        super().__init__()
        half = (size + 1) // 2  # n/2, rounded up where n is odd
        # 1 / 10000^(i / (n/2 - 1))
        rates = torch.exp(-math.log(10_000.0) * torch.arange(half) / max(1, half - 1))
        angles = torch.arange(longest)[:, None] * rates  # (positions, n/2)
        table = torch.cat([angles.sin(), angles.cos()], -1)[:, :size]
        self.register_buffer("table", table, persistent=False)  # computed anew, so not saved

    def forward(self, embedded: Tensor, first: int = 0) -> Tensor:
        """(B, T, n) embedded words at positions first .. first + T - 1, positions added."""
        return embedded + self.table[first : first + embedded.shape[1]]  # (B, T, n) + (T, n)
