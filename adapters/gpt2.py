"""GPT-2: one decoder-only stack over context and response (models.md A8).

Radford et al., "Language Models are Unsupervised Multitask Learners". Without weights a small
stack is trained from scratch over the suite's words; it must not be taken for GPT-2, and its
title says so. With `weights` the pretrained model is fine-tuned: its byte pairs are the words,
and its end-of-text token is EOS. Texts reach it as every system reads them, in lower case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dialbench.adapter import Card, Run
from dialbench.errors import InputError, SystemFailed
from dialbench.neural.adapter import NeuralAdapter, NeuralConfig
from dialbench.neural.model import DialogueModel
from dialbench.neural.training import Trainer
from dialbench.records import Split
from dialbench.text.tokenizer import detokenize
from dialbench.text.vocabulary import BOS, EOS, PAD, SEP, SPECIALS, UNK, Vocabulary

from .blocks.causal import CausalModel, CausalSizes


@dataclass(frozen=True)
class GPT2Config(NeuralConfig):
    """Sizes and rates from scratch, and how pretrained weights are fine-tuned.

    Attributes:
        layers, heads, embedding: of the stack from scratch; `embedding` is n.
        positions: the longest sequence from scratch; longer contexts lose their beginning.
        dropout: on embeddings, attention weights and sub-network outputs.
        weights: folder of a pretrained GPT-2 (config.json, model.safetensors, tokenizer files)
            or the name of one in the local cache of the Hub; nothing is downloaded. From then
            on its sizes hold, and the four options below in place of their namesakes.
        tuning_rate, tuning_warmup, tuning_epochs: as learning_rate, warmup and epochs.
        tuning_decay: the rate of decoupled weight decay.
    """

    learning_rate: float = 3e-4
    warmup: int = 2_000
    layers: int = 6
    heads: int = 8
    embedding: int = 256
    positions: int = 256
    dropout: float = 0.1
    weights: str = ""
    tuning_rate: float = 5e-5
    tuning_warmup: int = 500
    tuning_epochs: int = 5
    tuning_decay: float = 0.01

    def __post_init__(self) -> None:
        super().__post_init__()
        self.demand_positive("layers", "heads", "embedding", "tuning_rate", "tuning_epochs")
        self.demand_rate("dropout")
        if self.embedding % self.heads:
            raise ValueError(f"embedding={self.embedding} is no multiple of heads={self.heads}")
        if self.room(self.positions) <= 0:
            raise ValueError(f"positions={self.positions} leave no room for a context")

    def room(self, positions: int) -> int:
        """How many of so many positions a context may take: the response needs the rest."""
        return positions - self.response_tokens - 1

    def tuning(self) -> GPT2Config:
        """The config with the rates of fine-tuning in place of those from scratch."""
        return replace(
            self,
            learning_rate=self.tuning_rate,
            warmup=self.tuning_warmup,
            epochs=self.tuning_epochs,
        )


class GPT2(NeuralAdapter):
    """GPT-2, or a small model of its kind."""

    name = "gpt2"
    card = Card(
        title="GPT-2 (small, from scratch)",
        family="transformer",
        summary="a decoder-only stack; with weights=FOLDER the pretrained GPT-2, fine-tuned",
        paper="Radford et al., Language Models are Unsupervised Multitask Learners",
        year=2019,
    )
    Config = GPT2Config
    config: GPT2Config

    def __init__(self, config: Any = None) -> None:
        super().__init__(config)
        c = self.config
        if not c.weights:
            self.config = replace(c, context_tokens=min(c.context_tokens, c.room(c.positions)))

    @classmethod
    def title(cls, config: GPT2Config) -> str:
        """What tables call the system with this config."""
        return "GPT-2" if config.weights else cls.card.title

    def build_model(self, size: int) -> DialogueModel:
        """The untrained model, or the pretrained one."""
        c = self.config
        if c.weights:
            return pretrained_model(c)
        sizes = CausalSizes(c.layers, c.heads, c.embedding, c.positions, c.dropout)
        return CausalModel(sizes, size, unused=(PAD, BOS, SEP))

    def fit(self, train: Split, valid: Split, run: Run) -> None:
        """Trains or fine-tunes; resumes from the last finished epoch in `run.folder`."""
        if not self.config.weights:
            return super().fit(train, valid, run)
        if not len(train) or not len(valid):
            raise SystemFailed("there are no examples to learn from", where="training")
        self.vocabulary = BytePairs(self.config.weights)
        data = self._encode(train), self._encode(valid)
        tuning, decay = self.config.tuning(), self.config.tuning_decay
        model = self._fresh_model(run)
        self.history = Trainer(model, *data, tuning, run, weight_decay=decay).fit()
        return None

    @classmethod
    def load(cls, folder: Path, config: Any = None) -> NeuralAdapter:
        """The system that `save` wrote; the byte pairs are read from `weights` again."""
        self = super().load(folder, config)
        if self.config.weights:  # type: ignore[attr-defined]
            self.vocabulary = BytePairs(self.config.weights)  # type: ignore[attr-defined]
        return self


class BytePairs(Vocabulary):
    """The tokens of a pretrained GPT-2 behind the suite's specials, its end of text as EOS.

    Words of this vocabulary are the pretrained numbers, written out.

    Args:
        weights: as in `GPT2Config`.
    """

    def __init__(self, weights: str) -> None:
        from transformers import AutoTokenizer

        facts = _facts(weights)
        self.tokenizer: Any = _local(weights, AutoTokenizer.from_pretrained)
        if len(self.tokenizer) != facts.vocab_size:  # the library makes up what is missing
            raise InputError(
                f"the tokenizer of weights={weights} has {len(self.tokenizer)} tokens, "
                f"its model {facts.vocab_size}",
                where="--models",
                hint="Put the tokenizer's files into the folder.",
            )
        super().__init__([str(n) for n in range(facts.vocab_size) if n != facts.eos_token_id])

    def encode(self, tokens: Iterable[str]) -> list[int]:
        """Numbers of the byte pairs of the text that the tokens make."""
        numbers = self.tokenizer.encode(detokenize(tokens), add_special_tokens=False)
        return super().encode(map(str, numbers))

    def decode(self, numbers: Iterable[int]) -> list[str]:
        """The text up to EOS in one piece; nothing if it is empty."""
        pairs = [int(word) for word in super().decode(numbers)]
        text: str = self.tokenizer.decode(pairs, clean_up_tokenization_spaces=False)
        return [text.strip()] if text.strip() else []


def pretrained_model(config: GPT2Config) -> CausalModel:
    """The pretrained stack, its word vectors in the order of `BytePairs`.

    Raises:
        InputError: `config.weights` cannot be read, is no GPT-2 or has too few positions.
    """
    from transformers import GPT2LMHeadModel
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()  # type: ignore[no-untyped-call]
    weights = config.weights
    facts = _facts(weights)
    if config.context_tokens > config.room(facts.n_positions):
        raise InputError(
            f"weights={weights} has {facts.n_positions} positions, too few for "
            f"{config.context_tokens} of a context and {config.response_tokens} of a response",
            where="--models",
            hint="Lower context_tokens or response_tokens.",
        )
    read, report = _local(
        weights, GPT2LMHeadModel.from_pretrained, use_safetensors=True, output_loading_info=True
    )
    if report["missing_keys"]:
        missing = ", ".join(sorted(report["missing_keys"]))
        raise InputError(f"weights={weights} lacks {missing}", where="--models")
    sizes = CausalSizes(
        facts.n_layer, facts.n_head, facts.n_embd, facts.n_positions, config.dropout
    )
    model = CausalModel(sizes, facts.vocab_size - 1 + len(SPECIALS), (PAD, UNK, BOS, SEP))
    with torch.no_grad():
        _copy(read.transformer.state_dict(), model, int(facts.eos_token_id))
    return model


def _facts(weights: str) -> Any:
    # The sizes of a checkpoint, known to be a GPT-2.
    from transformers import AutoConfig

    facts = _local(weights, AutoConfig.from_pretrained)
    if facts.model_type != "gpt2":
        raise InputError(f"weights={weights} is a {facts.model_type}, no gpt2", where="--models")
    if not 0 <= facts.eos_token_id < facts.vocab_size:
        raise InputError(f"weights={weights} has no end-of-text token", where="--models")
    return facts


def _local(weights: str, read: Callable[..., Any], **options: Any) -> Any:
    from safetensors import SafetensorError

    try:
        return read(weights, local_files_only=True, trust_remote_code=False, **options)
    except (OSError, ValueError, SafetensorError) as error:
        reason = str(error).strip().partition("\n")[0].rstrip(".")
        raise InputError(
            f"no pretrained GPT-2 can be read from weights={weights} ({reason})",
            where="--models",
            hint="Name a folder with config.json, model.safetensors and the tokenizer's files.",
        ) from None


def _copy(given: dict[str, Tensor], model: CausalModel, end: int) -> None:
    words = given["wte.weight"]
    model.embedding.weight.zero_()
    model.embedding.weight[EOS] = words[end]
    model.embedding.weight[len(SPECIALS) :] = torch.cat([words[:end], words[end + 1 :]])
    model.positions.weight.copy_(given["wpe.weight"])
    model.norm.load_state_dict({kind: given[f"ln_f.{kind}"] for kind in ("weight", "bias")})
    for number, layer in enumerate(model.layers):
        for name, tensor in _of_layer(given, f"h.{number}.").items():
            layer.get_parameter(name).copy_(tensor)


def _of_layer(given: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    # The checkpoint's maps are (in, out), and query, key and value lie side by side.
    found = {}
    for kind in ("weight", "bias"):
        for ours, theirs in _NAMES.items():
            found[f"{ours}.{kind}"] = given[f"{prefix}{theirs}.{kind}"]
        joined = given[f"{prefix}attn.c_attn.{kind}"].chunk(3, -1)
        parts = zip(("query", "key", "value"), joined, strict=True)
        found |= {f"attention.{name}.{kind}": part for name, part in parts}
    return {name: part.mT if part.dim() == 2 else part for name, part in found.items()}


_NAMES = {
    "around_attention.norm": "ln_1",
    "attention.output": "attn.c_proj",
    "around_feed_forward.norm": "ln_2",
    "feed_forward.first": "mlp.c_fc",
    "feed_forward.second": "mlp.c_proj",
}
