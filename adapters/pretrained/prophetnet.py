"""ProphetNet checkpoints of the transformers library as weights of our own model.

The model then works in the suite's numbers throughout: its word table has a row for each special
of the suite, in front of the checkpoint's own, and each begins as a copy of the row that it means.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from dialbench.text.vocabulary import BOS, PAD, SEP, SPECIALS, UNK

from ..blocks.sequences import Around
from .checkpoint import Checkpoint, SubwordVocabulary

# Of the library -> ours; what stands in a layer keeps its number.
_NAMES = [
    (r"prophetnet\.word_embeddings\.", "embedding."),
    (r"prophetnet\.(en|de)coder\.position_embeddings\.", r"\1coder_positions."),
    (r"prophetnet\.(en|de)coder\.embeddings_layer_norm\.", r"\1coder_norm."),
    (r"prophetnet\.decoder\.ngram_embeddings\.", "streams."),
    (r"prophetnet\.(en|de)coder\.layers\.(\d+)\.", r"\1coder.\2."),
    (r"\.self_attn_layer_norm\.", ".around_attention.norm."),
    (r"\.cross_attn_layer_norm\.", ".around_cross.norm."),
    (r"\.feed_forward_layer_norm\.", ".around_feed_forward.norm."),
    (r"\.self_attn\.", ".attention."),
    (r"\.cross_attn\.", ".cross_attention."),
    (r"\.(query|key|value)_proj\.", r".\1."),
    (r"\.out_proj\.", ".output."),
    (r"\.relative_pos_embeddings\.", ".relative.table."),
    (r"\.feed_forward\.intermediate\.", ".feed_forward.first."),
    (r"\.feed_forward\.output\.", ".feed_forward.second."),
]
# Tied to the word table, or the same tensor under another name.
_COPIES = (
    "lm_head.weight",
    "prophetnet.encoder.word_embeddings.weight",
    "prophetnet.decoder.word_embeddings.weight",
)


def sizes(checkpoint: Checkpoint) -> dict[str, Any]:
    """The options of a system from scratch that the checkpoint's config decides.

    Raises:
        InputError: encoder and decoder differ in size, or its activation is not GELU.
    """
    c = checkpoint.config
    encoder = (c.num_encoder_layers, c.num_encoder_attention_heads, c.encoder_ffn_dim)
    decoder = (c.num_decoder_layers, c.num_decoder_attention_heads, c.decoder_ffn_dim)
    if encoder != decoder or c.activation_function != "gelu":
        raise checkpoint.error("has two unlike halves or another activation than gelu")
    names = ("layers", "heads", "feed_forward")
    return dict(zip(names, encoder, strict=True)) | {
        "embedding": c.hidden_size,
        "dropout": c.dropout,
        "norm": "post",
        "tied": True,
        "ngram": c.ngram,
        "buckets": c.num_buckets,
        "max_distance": c.relative_max_distance,
    }


def words(checkpoint: Checkpoint) -> list[int]:
    """For each number of the suite the checkpoint's number of the row that it begins as."""
    tokenizer, c = checkpoint.tokenizer, checkpoint.config
    end = checkpoint.end
    start = end if c.decoder_start_token_id is None else c.decoder_start_token_id
    separator = end if tokenizer.sep_token_id is None else tokenizer.sep_token_id
    return [c.pad_token_id or 0, end, start, end, separator, *range(checkpoint.size)]


def around(checkpoint: Checkpoint) -> Around:
    """What the tokenizer puts around a text, in the suite's numbers."""
    front, behind = checkpoint.affixes
    shift = len(SPECIALS)
    return Around(tuple(n + shift for n in front), tuple(n + shift for n in behind))


def summary(checkpoint: Checkpoint) -> tuple[int, ...]:
    """The token, in the suite's numbers, whose output stands for a context."""
    number = checkpoint.tokenizer.cls_token_id
    return (BOS if number is None else number + len(SPECIALS),)


def never_written(checkpoint: Checkpoint) -> tuple[int, ...]:
    """The suite's numbers that take no probability."""
    own = {*SubwordVocabulary(checkpoint).never(), checkpoint.end}
    return (PAD, UNK, BOS, SEP, *(number + len(SPECIALS) for number in sorted(own)))


def positions(checkpoint: Checkpoint) -> int:
    """Rows of our tables of positions, which hold no row for padding but one in front."""
    return int(checkpoint.config.max_position_embeddings) - int(checkpoint.config.pad_token_id or 0)


def weights(checkpoint: Checkpoint) -> dict[str, Tensor]:
    """The checkpoint's weights under our names."""
    library = checkpoint.model().state_dict()
    renamed = rename(library)
    offset = int(checkpoint.config.pad_token_id or 0)  # the library counts positions from there
    for name in ("encoder_positions.weight", "decoder_positions.weight"):
        renamed[name] = renamed[name][offset:]
    rows = torch.tensor(words(checkpoint))
    renamed["embedding.weight"] = renamed["embedding.weight"][rows]
    return renamed


def rename(library: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The library's tensors under our names, tied ones once."""
    return {_ours(name): value for name, value in library.items() if name not in _COPIES}


def _ours(name: str) -> str:
    for pattern, replacement in _NAMES:
        name = re.sub(pattern, replacement, name)
    return name
