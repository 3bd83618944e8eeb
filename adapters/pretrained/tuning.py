"""Adapters over a pretrained checkpoint: fine-tuned on the corpus, or asked as it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

from dialbench.adapter import Adapter, Run
from dialbench.errors import SystemFailed
from dialbench.neural.adapter import NeuralAdapter, NeuralConfig
from dialbench.neural.model import DialogueModel
from dialbench.neural.training import Trainer
from dialbench.records import Context, Split

from ..blocks.embedding import inspect_vectors, start_words
from .checkpoint import Checkpoint, SubwordVocabulary
from .model import pretrained
from .pickled import as_safetensors


@dataclass(frozen=True)
class TuningConfig(NeuralConfig):
    """Which checkpoint, and how it is fine-tuned.

    Attributes:
        weights: folder of a checkpoint (config.json, model.safetensors, tokenizer files) or the
            name of one in the local cache of the Hub; nothing is downloaded. Its sizes, words and
            dropout hold, and the options below in place of their namesakes.
        tune: whether it is fine-tuned on the corpus, or asked as it is (zero-shot).
        tuning_rate, tuning_warmup, tuning_epochs: as learning_rate, warmup and epochs.
        tuning_decay: the rate of decoupled weight decay.
    """

    weights: str = ""
    tune: bool = True
    tuning_rate: float = 5e-5
    tuning_warmup: float = 500
    tuning_epochs: int = 5
    tuning_decay: float = 0.01

    positive: ClassVar[tuple[str, ...]] = ("tuning_rate", "tuning_epochs")
    not_negative: ClassVar[tuple[str, ...]] = ("tuning_warmup", "tuning_decay")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.weights and not self.tune:
            raise ValueError("tune=false needs weights=FOLDER")

    def tuning(self) -> Self:
        """The config with the rates of fine-tuning in place of those from scratch."""
        return replace(
            self,
            learning_rate=self.tuning_rate,
            warmup=self.tuning_warmup,
            epochs=self.tuning_epochs,
        )


class TunedAdapter(NeuralAdapter):
    """A system that is a pretrained checkpoint wherever `weights` names one.

    Without `weights` it is a small one of its kind, trained from scratch: then its config also has
    `WordStart` and `embedding`, and the card's title is "NAME (small, from scratch)".

    Attributes:
        architectures: what checkpoints that fit call themselves; any if empty.
    """

    Config = TuningConfig
    config: Any
    architectures: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def title(cls, config: Any) -> str:
        """What tables call the system with this config."""
        if not config.weights:
            return cls.card.title
        name = cls.card.title.removesuffix(" (small, from scratch)")
        return name if config.tune else f"{name} (zero-shot)"

    @classmethod
    def inspect(
        cls, config: Any, contexts: Sequence[Context], data: Path | None = None
    ) -> Mapping[str, Any]:
        """The checksum of the checkpoint's files, or of the word vectors to start from."""
        if not config.weights:
            return inspect_vectors(config.vectors, config.embedding)
        return {"weights": cls.open(config).checksum}

    @classmethod
    def positions_needed(cls, checkpoint: Checkpoint, config: Any) -> int:
        """How many positions the longest context and response take."""
        front, behind = map(len, checkpoint.affixes)
        context, response = front + config.context_tokens, config.response_tokens + 1
        if checkpoint.seq2seq:
            return int(max(context + behind, front + response))
        return int(context + response)

    @classmethod
    def learns(cls, config: TuningConfig) -> bool:
        """Not where the checkpoint is asked as it is."""
        return config.tune

    @classmethod
    def open(cls, config: TuningConfig) -> Checkpoint:
        """The checkpoint that `weights` names.

        Raises:
            InputError: it cannot be used, or has too few positions.
        """
        checkpoint = cls.find_checkpoint(config.weights)
        kind = checkpoint.config.model_type
        if cls.architectures and kind not in cls.architectures:
            hint = "Use hf for other models."
            raise checkpoint.error(f"is a {kind}, no {cls.architectures[-1]}", hint)
        needed, positions = cls.positions_needed(checkpoint, config), checkpoint.positions
        if positions is not None and needed > positions:
            raise checkpoint.error(
                f"has {positions} positions, too few for {config.context_tokens} of a context and "
                f"{config.response_tokens} of a response",
                "Lower context_tokens or response_tokens.",
            )
        return checkpoint

    @classmethod
    def find_checkpoint(cls, weights: str) -> Checkpoint:
        """The checkpoint in a folder, or under a name in the local cache of the Hub.

        Raises:
            InputError: a file is missing, or it is of no kind that can be used.
        """
        return Checkpoint.open(weights)

    @classmethod
    def convert(cls, source: Path, folder: Path) -> None:
        """Writes a checkpoint with pickled weights anew, as safetensors."""
        as_safetensors(source, folder)

    def build_model(self, size: int) -> DialogueModel:
        """The checkpoint's model with its pretrained weights."""
        return pretrained(self.open(self.config))

    def start_weights(self, model: DialogueModel) -> None:
        """Lets the words of a model from scratch start from what is known of them."""
        if not self.config.weights:
            start_words(model, self.config, self.vocabulary, self.examples)

    def fit(self, train: Split, valid: Split, run: Run) -> None:
        """Fine-tunes, from the last finished epoch in `run.folder`, or takes it as it is."""
        if not self.config.weights:
            return super().fit(train, valid, run)
        self.vocabulary = SubwordVocabulary(self.open(self.config))
        model = self._new_model(run)
        if self.config.tune:
            if not len(train) or not len(valid):
                raise SystemFailed("there are no examples to learn from", where="training")
            data = self._encode(train), self._encode(valid)
            config, decay = self.config.tuning(), self.config.tuning_decay
            self.history = Trainer(model, *data, config, run, weight_decay=decay).fit()
        self.report_warnings(run)
        return None

    def save(self, folder: Path) -> None:
        """Writes what was learned; a checkpoint asked as it is stays where it is."""
        if self.config.tune:
            super().save(folder)
        else:
            Adapter.save(self, folder)

    @classmethod
    def load(cls, folder: Path, config: Any = None) -> NeuralAdapter:
        """The system that `save` wrote; tokenizer and configs are read from `weights` again."""
        self = cls(config)
        if self.config.tune:
            self = super().load(folder, config)  # type: ignore[assignment]
        else:
            self._new_model(Run(0))
        if self.config.weights:
            self.vocabulary = SubwordVocabulary(cls.open(self.config))
        return self
