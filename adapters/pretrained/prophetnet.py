"""ProphetNet checkpoints of the transformers library as weights of our own model."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from torch import Tensor

from dialbench.text.vocabulary import BOS, SPECIALS

from .checkpoint import Checkpoint
from .own import PretrainedWeights, around_of, with_specials, words_of

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


def weights_of(checkpoint: Checkpoint, *, summary: bool = False) -> PretrainedWeights:
    """The weights of a ProphetNet.

    Args:
        checkpoint: of the transformers library.
        summary: whether a token whose output stands for the context is put in front of it, if the
            tokenizer puts none there.
    """
    decided = sizes(checkpoint)
    tensors = rename(checkpoint.model().state_dict())
    offset = int(checkpoint.config.pad_token_id or 0)  # the library counts positions from there
    for name in ("encoder_positions.weight", "decoder_positions.weight"):
        tensors[name] = tensors[name][offset:]
    tensors["embedding.weight"] = with_specials(tensors["embedding.weight"], _specials(checkpoint))
    around = around_of(checkpoint)
    if summary and not around.front:
        around = replace(around, front=_summary(checkpoint))
    positions = int(checkpoint.config.max_position_embeddings) - offset
    words = words_of(checkpoint, around, positions, ends=[checkpoint.end])
    return PretrainedWeights(decided, words, tensors)


def _specials(checkpoint: Checkpoint) -> list[int]:
    # What PAD, UNK, BOS, EOS and SEP begin as.
    c, end = checkpoint.config, checkpoint.end
    start = end if c.decoder_start_token_id is None else c.decoder_start_token_id
    separator = checkpoint.tokenizer.sep_token_id
    return [c.pad_token_id or 0, end, start, end, end if separator is None else separator]


def _summary(checkpoint: Checkpoint) -> tuple[int, ...]:
    number = checkpoint.tokenizer.cls_token_id
    return (BOS if number is None else number + len(SPECIALS),)


def rename(library: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The library's tensors under our names, tied ones once."""
    return {_ours(name): value for name, value in library.items() if name not in _COPIES}


def _ours(name: str) -> str:
    for pattern, replacement in _NAMES:
        name = re.sub(pattern, replacement, name)
    return name
