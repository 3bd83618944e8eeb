"""Models of the transformers library behind the suite's loss, start and step.

Decoder-only: turn_1 EOS turn_2 EOS ... response EOS, with the tokenizer's own start token in
front where it has one. Encoder-decoder: the encoder reads turn_1 SEP turn_2 SEP ... turn_n between
what the tokenizer itself puts around a text, SEP being its separator, else its EOS; the decoder
starts with the config's start token and what the tokenizer puts in front of a text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from dialbench.neural.data import Batch
from dialbench.neural.model import DialogueModel, Losses, State, word_loss
from dialbench.text.vocabulary import EOS, PAD, SPECIALS

from ..blocks.attention import KeysValues
from ..blocks.causal import DecoderOnlyModel
from .checkpoint import Checkpoint, SubwordVocabulary


def pretrained(checkpoint: Checkpoint) -> DialogueModel:
    """The model of a checkpoint with its pretrained weights.

    Raises:
        InputError: its weights cannot be read.
    """
    return PretrainedSeq2Seq(checkpoint) if checkpoint.seq2seq else PretrainedCausal(checkpoint)


class TokenMapping(nn.Module):
    """Between the suite's numbers and those of a checkpoint."""

    checkpoint_ids: Tensor
    never: Tensor

    def __init__(self, checkpoint: Checkpoint) -> None:
        super().__init__()
        tokenizer, end = checkpoint.tokenizer, checkpoint.end
        checkpoint_tokens = list(range(checkpoint.size))
        separator = tokenizer.sep_token_id
        separator = end if separator is None or not checkpoint.seq2seq else separator
        # PAD is masked, and UNK stands where a context has no token at all.
        table = torch.tensor([end, end, end, end, separator, *checkpoint_tokens])
        self.register_buffer("checkpoint_ids", table, persistent=False)
        self.end = end
        never = torch.zeros(len(checkpoint_tokens))
        never[SubwordVocabulary(checkpoint).never()] = -torch.inf
        never[end] = -torch.inf  # it is EOS and nothing else
        self.register_buffer("never", never, persistent=False)

    def forward(self, tokens: Tensor) -> Tensor:
        """Numbers of the suite -> numbers of the checkpoint."""
        return self.checkpoint_ids[tokens]

    def to_suite(self, logits: Tensor) -> Tensor:
        """(N, V) logits of the checkpoint -> (N, 5 + V) of the suite."""
        front = logits.new_full((len(logits), len(SPECIALS)), -torch.inf)
        front[:, EOS] = logits[:, self.end]
        return torch.cat([front, logits + self.never], 1)


class _Output(nn.Module):
    """Logits of the checkpoint as logits of the suite."""

    def __init__(self, numbers: TokenMapping) -> None:
        super().__init__()
        self._numbers = [numbers]  # in a list, so that it is not this module's too

    def forward(self, logits: Tensor) -> Tensor:
        return self._numbers[0].to_suite(logits)


class _PretrainedModel(DialogueModel):
    """What both kinds share.

    Args:
        checkpoint: whose model it is.
    """

    def __init__(self, checkpoint: Checkpoint) -> None:
        super().__init__()
        self.library: Any = checkpoint.model()
        self.numbers = TokenMapping(checkpoint)
        self.register_state_dict_post_hook(_drop_tied)  # type: ignore[no-untyped-call]
        self.register_load_state_dict_pre_hook(_restore_tied)  # type: ignore[no-untyped-call]

    def hidden(self, batch: Batch) -> Tensor:
        """(B, T, V) the checkpoint's own logits with teacher forcing."""
        raise NotImplementedError

    def logits(self, batch: Batch) -> Tensor:
        """(B, T, 5 + V) with teacher forcing."""
        checkpoint_logits = self.hidden(batch)
        return self.numbers.to_suite(checkpoint_logits.flatten(0, 1)).view(
            *checkpoint_logits.shape[:2], -1
        )

    def loss(self, batch: Batch, step: int) -> Losses:
        """Negative log-likelihood, mean over the response's tokens and its EOS."""
        # In the checkpoint's own numbers, since ours would copy the logits of a large vocabulary.
        translated = replace(batch, target=self.numbers(batch.target))
        return word_loss(self.hidden(batch), nn.Identity(), translated)


class PretrainedCausal(_PretrainedModel, DecoderOnlyModel):
    """A decoder-only model."""

    hidden = DecoderOnlyModel.hidden

    def __init__(self, checkpoint: Checkpoint) -> None:
        super().__init__(checkpoint)
        self.output = _Output(self.numbers)
        self.front, _ = checkpoint.affixes

    def read(
        self,
        tokens: Tensor,
        positions: Tensor,
        seen: Tensor,
        past: Sequence[KeysValues] | None = None,
        last: int = 1,
    ) -> tuple[Tensor, list[KeysValues]]:
        """As `DecoderOnlyModel.read`: (N, last, V) the checkpoint's own logits."""
        from transformers import DynamicCache

        size = len(self.front)
        numbers, positions = self.numbers(tokens), positions.expand(tokens.shape) + size
        if past is None and size:
            front = torch.tensor(self.front, device=tokens.device).expand(len(tokens), size)
            numbers = torch.cat([front, numbers], 1)
            positions = torch.cat(
                [torch.arange(size, device=front.device).expand_as(front), positions], 1
            )
        cache = DynamicCache(past)
        output = self.library(
            input_ids=numbers,
            attention_mask=F.pad(seen, (size, 0), value=True).long(),
            position_ids=positions,
            past_key_values=cache,
            use_cache=True,
            logits_to_keep=last,
        )
        return output.logits[:, -last:], _cached(cache)


class PretrainedSeq2Seq(_PretrainedModel):
    """An encoder-decoder model."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        super().__init__(checkpoint)
        self.front, self.behind = checkpoint.affixes
        starts = (self.library.config, self.library.generation_config)
        candidates = [getattr(facts, "decoder_start_token_id", None) for facts in starts]
        start = next((number for number in candidates if number is not None), None)
        if start is None:
            raise checkpoint.error("has no decoder_start_token_id in its config.json")
        self.head = [start, *self.front]

    def hidden(self, batch: Batch) -> Tensor:
        """(B, T, V) the checkpoint's own logits with teacher forcing."""
        tokens, seen = self._source(batch)
        head = self._rows(self.head, len(batch))
        inputs = torch.cat([head, self.numbers(batch.inputs[:, 1:])], 1)
        output = self.library(input_ids=tokens, attention_mask=seen, decoder_input_ids=inputs)
        logits: Tensor = output.logits[:, len(self.head) - 1 :]
        return logits

    def start(self, batch: Batch) -> State:
        """Encodes the contexts."""
        tokens, seen = self._source(batch)
        memory = self.library.get_encoder()(input_ids=tokens, attention_mask=seen)
        return State({"memory": memory.last_hidden_state, "seen": seen})

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """(B * width,) tokens -> logits (B * width, 5 + V)."""
        from transformers import DynamicCache, EncoderDecoderCache
        from transformers.modeling_outputs import BaseModelOutput

        memory, seen = (
            state.example[key].repeat_interleave(state.width, 0) for key in ("memory", "seen")
        )
        first = state.length == 0
        inputs = self._rows(self.head, len(tokens)) if first else self.numbers(tokens)[:, None]
        past = ((), ()) if first else state.row
        cache = EncoderDecoderCache(*(DynamicCache(part or None) for part in past))
        output = self.library(
            encoder_outputs=BaseModelOutput(last_hidden_state=memory),
            attention_mask=seen,
            decoder_input_ids=inputs,
            past_key_values=cache,
            use_cache=True,
        )
        row = _cached(cache.self_attention_cache), _cached(cache.cross_attention_cache)
        logits = self.numbers.to_suite(output.logits[:, -1])
        return logits, replace(state, row=row, length=state.length + 1)

    def _source(self, batch: Batch) -> tuple[Tensor, Tensor]:
        # (B, front + S + behind) the checkpoint's own numbers, and 1 where they are real.
        front, behind = (self._rows(part, len(batch)) for part in (self.front, self.behind))
        real = batch.source.ne(PAD)
        tokens = F.pad(self.numbers(batch.source), (0, len(self.behind)))
        ends = real.sum(1, keepdim=True) + torch.arange(len(self.behind), device=tokens.device)
        tokens = torch.cat([front, tokens.scatter(1, ends, behind)], 1)
        length = real.sum(1, keepdim=True) + len(self.front) + len(self.behind)
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        return tokens, (positions < length).long()

    def _rows(self, numbers: Sequence[int], count: int) -> Tensor:
        device = self.numbers.checkpoint_ids.device
        return torch.tensor(numbers, dtype=torch.long, device=device).expand(count, len(numbers))


def _cached(cache: Any) -> list[KeysValues]:
    return [(layer.keys, layer.values) for layer in cache.layers]


def _drop_tied(module: nn.Module, state: dict[str, Tensor], prefix: str, facts: Any) -> None:
    # Tied weights are kept once: a safetensors file holds no tensor twice.
    for name, first in _tied(state).items():
        if name != first:
            del state[name]


def _restore_tied(module: nn.Module, state: dict[str, Tensor], *facts: Any) -> None:
    # The names that `_drop_tied` left out.
    parameters = [*module.named_parameters(remove_duplicate=False)]
    for name, first in _tied(dict(parameters)).items():
        if first in state:
            state.setdefault(name, state[first])


def _tied(tensors: Mapping[str, Tensor]) -> dict[str, str]:
    # For each name the first one of the same tensor.
    first: dict[tuple[int, torch.Size], str] = {}
    return {name: first.setdefault((t.data_ptr(), t.shape), name) for name, t in tensors.items()}
