"""The adapter of every trained system: from texts to batches, to a model, and back to texts."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch

from dialbench.adapter import Adapter, Run
from dialbench.errors import InputError, SystemFailed
from dialbench.files.lines import read_file
from dialbench.files.loads import loads
from dialbench.neural import checkpoint
from dialbench.neural.data import (
    Batch,
    Encoded,
    answering_rows,
    build_vocabulary,
    encode,
    encode_split,
    make_batch,
)
from dialbench.neural.decoding import decode
from dialbench.neural.devices import Precision, autocast, describe, dtype_of
from dialbench.neural.model import DialogueModel, count_parameters
from dialbench.neural.randomness import seed_of
from dialbench.neural.training import History, Schedule, Trainer, context_ignored_warning
from dialbench.records import Context, Decoding, Split
from dialbench.text.tokenizer import detokenize
from dialbench.text.vocabulary import SPECIALS, Vocabulary

_LIMITS: Mapping[str, tuple[str, Callable[[float], bool]]] = {
    "positive": ("above 0", lambda value: value > 0),
    "not_negative": ("at least 0", lambda value: value >= 0),
    "rates": ("at least 0 and below 1", lambda value: 0 <= value < 1),
}


@dataclass(frozen=True)
class NeuralConfig:
    """Options of every trained system; defaults are the papers' values (docs/systems.md).

    Attributes:
        vocabulary: how many words are known.
        min_count: words that occur less often in the training dialogues are not known.
        context_tokens, response_tokens: what is longer is cut (contexts at their beginning).
        learning_rate, batch_size, clip (global norm): of Adam.
        warmup: updates over which the rate rises, or if below 1, their share of those planned.
        schedule: whether the rate then falls in a straight line to 0 over the updates planned.
        epochs: the most there can be.
        epoch_updates: the most updates of an epoch, after which weights are validated, kept and,
            where they are random, drawn anew; the next epoch goes on with examples not yet seen.
            0 for a pass over the training split.
        patience: epochs without a better validation loss before training stops.
        precision: of matrix products.
        answer_batch: contexts answered at once; changes speed, not texts, but where each batch
            draws weights of its own (`redraw_at_inference=per_batch`).

    Class attributes, to which every subclass adds its own:
        positive, not_negative: options that must be above 0, or at least 0.
        rates: options that are the rate of a dropout.
        of_all_heads: the option that is divided among `heads`, if there is one.
        whole_dialogues: whether a batch holds dialogues as they are; an option of systems that read
            turn by turn.

    Raises:
        ValueError: an option is outside its limits.
    """

    vocabulary: int = 20_000
    min_count: int = 1
    context_tokens: int = 256
    response_tokens: int = 40
    learning_rate: float = 6e-4
    batch_size: int = 32
    warmup: float = 4_000
    schedule: Schedule = "linear"
    clip: float = 5.0
    epochs: int = 30
    epoch_updates: int = 0
    patience: int = 4
    precision: Precision = "auto"
    answer_batch: int = 64

    positive: ClassVar[tuple[str, ...]] = (
        *("vocabulary", "min_count", "context_tokens", "response_tokens", "batch_size"),
        *("epochs", "learning_rate", "clip", "patience", "answer_batch"),
    )
    not_negative: ClassVar[tuple[str, ...]] = ("warmup", "epoch_updates")
    rates: ClassVar[tuple[str, ...]] = ()
    of_all_heads: ClassVar[str] = ""
    whole_dialogues: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for limit, (wording, holds) in _LIMITS.items():
            for kind in type(self).__mro__:
                for name in vars(kind).get(limit, ()):
                    if not holds(getattr(self, name)):
                        raise ValueError(f"{name} must be {wording}")
        if name := self.of_all_heads:
            size, heads = getattr(self, name), getattr(self, "heads", 1)
            if size % heads:
                raise ValueError(f"{name}={size} is no multiple of heads={heads}")


class NeuralAdapter(Adapter):
    """A system that is a `DialogueModel` over the words of its training split.

    Attributes:
        vocabulary: the words it knows.
        model: once it is trained or loaded.
        history: of its training.
        examples: what it learns from, where it learns.
    """

    version = 2
    Config: ClassVar[type] = NeuralConfig
    speed_options: ClassVar[frozenset[str]] = frozenset({"answer_batch"})
    config: NeuralConfig

    def __init__(self, config: Any = None) -> None:
        super().__init__(config)
        self.vocabulary = Vocabulary([])
        self.model: DialogueModel | None = None
        self.history = History()
        self.examples: Encoded | None = None

    def build_model(self, size: int) -> DialogueModel:
        """The untrained model for a vocabulary of `size`, specials included."""
        raise NotImplementedError

    @classmethod
    def supports(cls, decoding: Decoding) -> bool:
        """Every decoding but re-ranking by a reverse model."""
        return decoding.method != "mmi"

    def fit(self, train: Split, valid: Split, run: Run) -> None:
        """Trains the model; resumes from the last finished epoch in `run.folder`."""
        if not len(train) or not len(valid):
            raise SystemFailed("there are no examples to learn from", where="training")
        self.vocabulary = self.known_words(train)
        self.examples = self._encode(train)
        model = self._new_model(run)
        self.history = self.trainer(model, self.examples, self._encode(valid), run).fit()
        self.report_warnings(run)

    def known_words(self, train: Split) -> Vocabulary:
        """The vocabulary of this system."""
        return build_vocabulary(train, self.config.vocabulary, self.config.min_count)

    def trainer(self, model: DialogueModel, train: Encoded, valid: Encoded, run: Run) -> Trainer:
        """What trains the model."""
        return Trainer(model, train, valid, self.config, run)

    def warnings(self) -> list[str]:
        """Notes for every table with this system, once `history` is complete."""
        return []

    def report_warnings(self, run: Run) -> None:
        """Reports `warnings`, and whether the model ignores its context."""
        for text in [*context_ignored_warning(self.history), *self.warnings()]:
            run.progress.warn(text)

    def _new_model(self, run: Run) -> DialogueModel:
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed_of(run.seed, "weights"))
            self.model = self._built()
        model = self.model.to(run.device)
        self.start_weights(model)
        return model

    def _built(self) -> DialogueModel:
        """A model for the known words, as precise as the options say."""
        model = self.build_model(len(self.vocabulary))
        return model.double() if self.config.precision == "float64" else model

    def start_weights(self, model: DialogueModel) -> None:
        """Sets weights of a new model that are not to stay random; by default none."""

    def _encode(self, split: Split) -> Encoded:
        config = self.config
        return encode_split(split, self.vocabulary, config.context_tokens, config.response_tokens)

    def respond(self, contexts: Sequence[Context], decoding: Decoding, run: Run) -> list[str]:
        """Answers all contexts in batches of similar length; order and texts are kept."""
        model = self._ready(run)
        data = encode(contexts, self.vocabulary, self.config.context_tokens)
        texts = np.empty(len(data), dtype=object)
        done = 0
        for rows in answering_rows(data, self.config.answer_batch):
            batch = make_batch(data, rows, run.device, run.seed, "infer")
            with autocast(run.device, dtype_of(self.config.precision, run.device)):
                responses = self.answer(model, batch, decoding)
            texts[rows] = [detokenize(self.vocabulary.decode(tokens)) for tokens in responses]
            done += len(rows)
            run.progress.update("respond", step=done, steps=len(data))
        return list(texts)

    def answer(self, model: DialogueModel, batch: Batch, decoding: Decoding) -> list[list[int]]:
        """The token numbers of one response for each context of the batch."""
        return decode(model, batch, decoding, self.config.response_tokens)

    def _ready(self, run: Run) -> DialogueModel:
        if self.model is None:
            raise SystemFailed("it was neither trained nor loaded", where=self.name)
        return self.model.to(run.device).eval()

    def save(self, folder: Path) -> None:
        """Writes model.safetensors and vocabulary.json."""
        if self.model is None:
            raise SystemFailed("it was not trained", where=self.name)
        checkpoint.write(folder / "model.safetensors", self.model.state_dict(), vars(self.history))
        self.save_vocabulary(folder)

    def save_vocabulary(self, folder: Path) -> None:
        """Writes what must be known of the words before the model can be built."""
        write_words(folder / "vocabulary.json", self.vocabulary.words[len(SPECIALS) :])

    def load_vocabulary(self, folder: Path) -> None:
        """Reads what `save_vocabulary` wrote.

        Raises:
            InputError: it is not there or damaged.
        """
        self.vocabulary = Vocabulary(read_words(folder / "vocabulary.json"))

    @classmethod
    def load(cls, folder: Path, config: Any = None) -> NeuralAdapter:
        """The system that `save` wrote, with the config it was trained with."""
        self = cls(config)
        self.load_vocabulary(folder)
        tensors, numbers = checkpoint.read(folder / "model.safetensors")
        self.history = History(**numbers)
        self.model = self._built()
        checkpoint.restore(self.model, tensors, folder / "model.safetensors")
        return self

    def facts(self) -> Mapping[str, Any]:
        """Parameter counts, the epoch kept, the context's gain, the vocabulary's size.

        After training on a GPU also the most bytes of its memory that were in use, `peak_memory`.
        """
        counts = {} if self.model is None else count_parameters(self.model)
        gain = self.history.context_gain
        return {
            **counts,
            **({} if gain is None else {"context_gain": gain}),
            **self._peak_memory(),
            "vocabulary": len(self.vocabulary),
            "best_epoch": self.history.best_epoch,
            "epochs": self.history.epoch,
        }

    def _peak_memory(self) -> Mapping[str, int]:
        device = None if self.model is None else next(self.model.parameters()).device
        if device is None or device.type != "cuda":
            return {}
        return {"peak_memory": torch.cuda.max_memory_allocated(device)}

    def circumstances(self, run: Run) -> Mapping[str, Any]:
        """Device, dtype, threads and batch size, which low-precision near-ties may depend on."""
        dtype = dtype_of(self.config.precision, run.device)
        return {**describe(run.device, dtype), "batch_size": self.config.answer_batch}

    def curve(self) -> Sequence[Mapping[str, float]]:
        """Losses by epoch."""
        return self.history.curve


def read_words(path: Path) -> list[str]:
    """A list of words, none twice, from a JSON file.

    Raises:
        InputError: it is not there, or something else.
    """
    try:
        words = loads(read_file(path))
        if not (isinstance(words, list) and all(isinstance(word, str) for word in words)):
            raise ValueError("it is not a list of strings")
        if len(set(words)) != len(words):
            raise ValueError("a word stands twice in it")
    except (OSError, ValueError) as error:
        raise InputError(f"no words can be read ({error})", where=str(path)) from None
    return words


def write_words(path: Path, words: Sequence[str]) -> None:
    """Writes what `read_words` reads."""
    path.write_text(json.dumps(words, ensure_ascii=False), encoding="utf-8")
