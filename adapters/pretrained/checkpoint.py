"""Checkpoints of the transformers library that write: decoder-only or encoder-decoder."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from functools import cached_property
from typing import Any, Self

from dialbench.files.pretrained import Pretrained
from dialbench.text.untokenized import untokenized
from dialbench.text.vocabulary import SPECIALS, Vocabulary

_CAUSAL = {"attention_mask", "logits_to_keep", "past_key_values", "position_ids"}
_SEQ2SEQ = {"attention_mask", "encoder_outputs", "decoder_input_ids", "past_key_values"}


class Checkpoint(Pretrained):
    """A checkpoint of a model that writes."""

    @classmethod
    def open(cls, weights: str) -> Checkpoint:
        """The checkpoint in a folder, or under a name in the local cache of the Hub.

        Raises:
            InputError: a file is missing, it asks for code of its own, or its architecture is not
                supported.
        """
        self = cls.locate(weights)
        if not self.model_class:
            raise self.error("is neither decoder-only nor encoder-decoder", "Choose another model.")
        return self

    @classmethod
    def locate(cls, weights: str) -> Self:
        """As `find`, for the option `weights`."""
        return cls.find(weights, where="--models", subject=f"weights={weights}")

    @cached_property
    def config(self) -> Any:
        """The library's configuration object."""
        from transformers import AutoConfig

        return self.read(AutoConfig.from_pretrained)

    @property
    def seq2seq(self) -> bool:
        """Whether an encoder reads and a decoder writes."""
        return bool(self.config.is_encoder_decoder)

    @cached_property
    def model_class(self) -> Any:
        """The library's class that computes it; None if it is of no kind that can be used."""
        from transformers.models.auto import modeling_auto

        kinds = (
            modeling_auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING
            if self.seq2seq
            else modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING
        )
        model_class: Any = kinds.get(type(self.config), None)
        if model_class is None or getattr(model_class, "_is_stateful", False):
            return None
        parameters = inspect.signature(model_class.forward).parameters.keys()
        heads = self.config.architectures or [model_class.__name__]
        fits = any(name == model_class.__name__ or name.endswith("Model") for name in heads)
        return (
            model_class if fits and parameters >= (_SEQ2SEQ if self.seq2seq else _CAUSAL) else None
        )

    @property
    def positions(self) -> int | None:
        """The longest sequence, or None where nothing bounds it."""
        c = self.config
        slides = getattr(c, "use_sliding_window", True)
        window = getattr(c, "sliding_window", None) if slides else None
        bounds = (getattr(c, "max_position_embeddings", None), window)
        return min((bound for bound in bounds if bound), default=None)

    @cached_property
    def tokenizer(self) -> Any:
        """The library's tokenizer, all of whose numbers the model knows."""
        tokenizer = self.read_tokenizer()
        if not 0 < max(tokenizer.get_vocab().values(), default=0) < self.size:
            raise self.error("has a tokenizer that does not fit its model")
        return tokenizer

    @property
    def size(self) -> int:
        """How many tokens the model knows."""
        return int(self.config.vocab_size)

    @property
    def end(self) -> int:
        """The number of the token that ends a text."""
        ends = [self.tokenizer.eos_token_id, self.config.eos_token_id]
        for end in ends:
            number = end[0] if isinstance(end, list) and end else end
            if isinstance(number, int) and 0 <= number < self.size:
                return number
        raise self.error("has no end-of-text token")

    @cached_property
    def affixes(self) -> tuple[list[int], list[int]]:
        """What the tokenizer itself puts in front of a text, and behind it."""
        bare = self.tokenizer.encode("a", add_special_tokens=False)
        full = self.tokenizer.encode("a")
        spare = len(full) - len(bare)
        start = next((i for i in range(spare + 1) if full[i : i + len(bare)] == bare), 0)
        return full[:start], full[start + len(bare) :]

    def model(self) -> Any:
        """The pretrained model in float32.

        Raises:
            InputError: the weights are damaged or incomplete.
        """
        return self.read_model(self.model_class.from_pretrained)


class SubwordVocabulary(Vocabulary):
    """The tokens of a checkpoint behind the suite's specials: number n of its own is n + 5.

    Texts are read as people write them, in their own case.

    Args:
        checkpoint: whose tokenizer is asked.
    """

    def __init__(self, checkpoint: Checkpoint) -> None:
        super().__init__([str(number) for number in range(checkpoint.size)])
        self.tokenizer = checkpoint.tokenizer

    def read(self, text: str) -> list[int]:
        """Numbers of the tokens of a text."""
        text = untokenized(text)
        numbers = self.tokenizer.encode(text, add_special_tokens=False, verbose=False)
        return [number + len(SPECIALS) for number in numbers]

    def decode(self, numbers: Iterable[int]) -> list[str]:
        """The text up to EOS in one piece and one line; nothing if it is empty."""
        words = [int(word) for word in super().decode(numbers)]
        text = self.tokenizer.decode(
            words, skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
        line = " ".join(text.split())
        return [line] if line else []

    def never(self) -> list[int]:
        """The checkpoint's own numbers that mean no text, its end of text among them."""
        known = set(self.tokenizer.get_vocab().values())
        unknown = set(range(len(self) - len(SPECIALS))) - known
        return sorted(unknown | set(self.tokenizer.all_special_ids))
