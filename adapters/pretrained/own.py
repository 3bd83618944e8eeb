"""Checkpoints as weights of our own models, which then work in the suite's numbers throughout.

Tables of words have a row for each special of the suite, in front of the checkpoint's own rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from dialbench.neural.model import DialogueModel, belongs
from dialbench.text.vocabulary import BOS, PAD, SEP, SPECIALS, UNK

from ..blocks.sequences import Around, Words
from .checkpoint import Checkpoint, SubwordVocabulary
from .converted import ConvertedCheckpoint, is_converted


@dataclass(frozen=True)
class PretrainedWeights:
    """What a model of ours takes over from a checkpoint.

    Attributes:
        sizes: the options that it decides.
        words: the numbers that the model works with.
        tensors: under our names.
        fresh: parts of the model that may be missing, which then stay as they are.
        norm_eps: of layer normalisation.
    """

    sizes: Mapping[str, Any]
    words: Words
    tensors: Mapping[str, Tensor]
    fresh: tuple[str, ...] = ()
    norm_eps: float = 1e-5

    def give(self, model: nn.Module, checkpoint: Checkpoint) -> None:
        """Sets the weights of a new model of these sizes and words.

        Raises:
            InputError: weights are missing, left over or of another shape.
        """
        own = model.state_dict()
        optional = {name for name in own if belongs(name, self.fresh)}
        if missing := own.keys() - optional - self.tensors.keys():
            raise checkpoint.error(f"lacks {some(missing)}")
        if surplus := self.tensors.keys() - own.keys():
            raise checkpoint.error(f"has {some(surplus)}, which are no part of this system")
        for name, tensor in self.tensors.items():
            if tensor.shape != own[name].shape:
                shapes = f"{tuple(tensor.shape)}, not {tuple(own[name].shape)}"
                raise checkpoint.error(f"has a {name} of shape {shapes}")
        model.load_state_dict({**own, **self.tensors})
        for module in model.modules():
            if isinstance(module, nn.LayerNorm):
                module.eps = self.norm_eps


def some(names: set[str] | Sequence[str], most: int = 4) -> str:
    """The first of the names, and how many more there are."""
    ordered = sorted(names)
    more = f" and {len(ordered) - most} more" if len(ordered) > most else ""
    return ", ".join(ordered[:most]) + more


def with_specials(table: Tensor, specials: Sequence[int]) -> Tensor:
    """(V, n) -> (5 + V, n): copies of the rows `specials` in front, as those of the suite's own."""
    return torch.cat([table[list(specials)], table])


def around_of(checkpoint: Checkpoint) -> Around:
    """What the tokenizer puts around a text, in the suite's numbers."""
    front, behind = checkpoint.affixes
    shift = len(SPECIALS)
    return Around(tuple(n + shift for n in front), tuple(n + shift for n in behind))


def words_of(
    checkpoint: Checkpoint, around: Around, positions: int, ends: Sequence[int] = ()
) -> Words:
    """The numbers of a model with the words of a checkpoint.

    Args:
        checkpoint: its words.
        around: as of `Words`.
        positions: as of `Words`.
        ends: the checkpoint's own numbers that EOS stands for.
    """
    never = sorted({*SubwordVocabulary(checkpoint).never(), *ends})
    unused = (PAD, UNK, BOS, SEP, *(number + len(SPECIALS) for number in never))
    return Words(len(SPECIALS) + checkpoint.size, unused, around, positions)


# Tables with a row a word.
_OF_WORDS = ("embedding.weight", "bag.weight")


def converted_weights(checkpoint: ConvertedCheckpoint) -> PretrainedWeights:
    """The weights of a converted checkpoint."""
    c, tensors = checkpoint.config, checkpoint.tensors()
    for name in set(_OF_WORDS) & tensors.keys():
        tensors[name] = with_specials(tensors[name], c.specials)
    around = around_of(checkpoint)
    words = words_of(checkpoint, around, c.positions, ends=[checkpoint.end])
    return PretrainedWeights(c.sizes, words, tensors, norm_eps=c.norm_eps)


class OwnModel:
    """A mixin of systems whose model is ours with pretrained weights too; before `TunedAdapter`.

    Attributes:
        Model: what is built, of a config and `Words`.
        front: what stands in front of every context, from scratch.
    """

    name: ClassVar[str]
    Config: ClassVar[type]
    Model: ClassVar[type[Any]]
    front: ClassVar[tuple[int, ...]] = ()
    config: Any
    open: Callable[[Any], Checkpoint]

    @classmethod
    def pretrained_weights(cls, checkpoint: Checkpoint) -> PretrainedWeights:
        """The weights of a checkpoint that `open` opened.

        Raises:
            InputError: they cannot be read, or are not of a model like ours.
        """
        raise NotImplementedError

    @classmethod
    def find_checkpoint(cls, weights: str) -> Checkpoint:
        """As `TunedAdapter`; converted ones too, and those that the library cannot write with."""
        return (ConvertedCheckpoint if is_converted(weights) else Checkpoint).locate(weights)

    @classmethod
    def positions_needed(cls, checkpoint: Checkpoint, config: Any) -> int:
        """How many rows the tables of positions need."""
        return int(config.positions)

    def build_model(self, size: int) -> DialogueModel:
        """The untrained model, or the pretrained one."""
        c = self.config
        model: DialogueModel
        if not c.weights:
            model = self.Model(c, Words(size, (PAD, BOS, SEP), Around(self.front), c.positions))
            return model
        checkpoint = self.open(c)
        weights = self.pretrained_weights(checkpoint)
        try:
            config = replace(c, **weights.sizes)
        except (TypeError, ValueError) as error:
            raise checkpoint.error(f"has sizes that do not fit ({error})") from None
        model = self.Model(config, weights.words)
        weights.give(model, checkpoint)
        return model
