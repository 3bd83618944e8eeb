"""Two models small enough to check by hand, the invented talk that they learn, and a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from dialbench.adapter import Run
from dialbench.neural.adapter import NeuralAdapter, NeuralConfig
from dialbench.neural.data import Batch, Encoded, encode
from dialbench.neural.dropout import Dropout
from dialbench.neural.model import DialogueModel, Losses, State, word_loss
from dialbench.records import Context, Example, Split
from dialbench.text.vocabulary import PAD, Vocabulary


@pytest.fixture(autouse=True, scope="package")
def one_thread() -> Iterator[None]:
    """As results are exact for one number of threads only."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


class Hashed(DialogueModel):
    """Logits that depend on the whole context and on every token before, and can be recomputed.

    A prefix is folded to one of 997 codes; each code has a row of random logits.
    """

    def __init__(self, vocabulary: int, seed: int = 0) -> None:
        super().__init__()
        random = torch.Generator().manual_seed(seed)
        self.table = 2 * torch.randn(997, vocabulary, generator=random, dtype=torch.float64)

    @staticmethod
    def fold(code: Tensor, tokens: Tensor) -> Tensor:
        return (code * 31 + tokens + 1) % 997

    def code_of(self, tokens: Sequence[int]) -> int:
        code = torch.tensor(0)
        for token in tokens:
            code = self.fold(code, torch.tensor(token))
        return int(code)

    def start(self, batch: Batch) -> State:
        code = torch.zeros(len(batch), dtype=torch.long)
        for column in batch.source.unbind(1):
            code = torch.where(column.ne(PAD), self.fold(code, column), code)
        return State(example={"context": code}, row=[code])

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        code = self.fold(state.row[0], tokens)
        # The context comes in at every step, so a state whose parts disagree shows.
        context = state.example["context"].repeat_interleave(state.width)
        mixed = self.table[code] + self.table[(code + context) % 997]
        return mixed, replace(state, row=[code], length=state.length + 1)


class Bigram(DialogueModel):
    """The next word from the word before and the mean of the context."""

    def __init__(self, vocabulary: int, size: int = 8) -> None:
        super().__init__()
        self.words = nn.Embedding(vocabulary, size, padding_idx=PAD)
        self.dropout = Dropout(0.2)
        self.output = nn.Linear(size, vocabulary)

    def context(self, batch: Batch) -> Tensor:
        real = batch.source.ne(PAD).sum(1, keepdim=True)
        return self.words(batch.source).sum(1) / real

    def loss(self, batch: Batch, step: int) -> Losses:
        hidden = self.words(batch.inputs) + self.context(batch)[:, None]
        return word_loss(self.dropout(hidden.tanh()), self.output, batch)

    def start(self, batch: Batch) -> State:
        return State(example=self.context(batch))

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        context = state.example.repeat_interleave(state.width, 0)
        hidden = (self.words(tokens) + context).tanh()
        return self.output(hidden), replace(state, length=state.length + 1)


@dataclass(frozen=True)
class ToyConfig(NeuralConfig):
    vocabulary: int = 50
    context_tokens: int = 12
    response_tokens: int = 8
    learning_rate: float = 0.05
    batch_size: int = 8
    warmup: float = 4
    schedule: Any = "constant"
    epochs: int = 4
    precision: Any = "float64"
    answer_batch: int = 4


class Toy(NeuralAdapter):
    name = "toy"
    Config = ToyConfig

    def build_model(self, size: int) -> DialogueModel:
        return Bigram(size)


_PLACES = ["harbour", "market", "library", "garden", "station", "museum"]
_TIMES = ["at noon", "after work", "tomorrow", "on Sunday", "tonight"]


def talk(name: str, dialogues: int) -> Split:
    """Dialogues of four turns: three examples each, with contexts of one to three turns."""
    examples = []
    for number in range(dialogues):
        place, time = _PLACES[number % 6], _TIMES[number % 5]
        turns = (
            f"Shall we go to the {place} {time}?",
            f"The {place}? Yes, {time}.",
            "Good.",
            f"I will wait at the {place} then, {time}.",
        )
        for turn in range(1, 4):
            examples.append(
                Example(f"{name}-{number}-{turn}", f"{name}-{number}", turns[:turn], (turns[turn],))
            )
    return Split(name, examples)


@pytest.fixture
def hashed() -> type[Hashed]:
    return Hashed


@pytest.fixture
def bigram() -> type[Bigram]:
    return Bigram


@pytest.fixture(scope="session")
def toy() -> type[Toy]:
    return Toy


@pytest.fixture(scope="session")
def train() -> Split:
    return talk("train", 12)


@pytest.fixture(scope="session")
def valid() -> Split:
    return talk("valid", 5)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(seed=3, folder=tmp_path)


@pytest.fixture(scope="session")
def contexts() -> list[Context]:
    """Twelve contexts of words w0 .. w4, of one to six tokens."""
    return [
        Context([" ".join(f"w{(i * j) % 5}" for j in range(1, 2 + i % 6))], f"example-{i}")
        for i in range(12)
    ]


@pytest.fixture(scope="session")
def few_words() -> Vocabulary:
    return Vocabulary([f"w{i}" for i in range(5)])


@pytest.fixture(scope="session")
def questions(contexts: list[Context], few_words: Vocabulary) -> Encoded:
    return encode(contexts, few_words, 20)
