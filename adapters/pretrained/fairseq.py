"""DialogVED as its authors released it: a checkpoint of fairseq 0.9 and a list of word pieces.

Facts from its code: positions are counted from the number of the padding (1), so that row 2 is the
first; keys and values of z alternate by head; tables of relative distances are shared by all
layers, and saved with each of them.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dialbench.errors import InputError

from .conversion import Archive, Change, only_file, read_pieces, third
from .pickled import require_tensors, unpickle

# Of ours -> its own, one after another; what stands in a layer keeps its number.
_NAMES = [
    (r"^embedding\.", "encoder.embed_tokens."),
    (r"^(en|de)coder_positions\.", r"\1coder.embed_ap_token."),
    (r"^turns\.", "encoder.embed_ap_sentence."),
    (r"^roles\.", "encoder.embed_ap_role."),
    (r"^token_distances\.table\.", "encoder.embed_rp_token.relative_attention_bias."),
    (r"^turn_distances\.table\.", "encoder.embed_rp_sentence.relative_attention_bias."),
    (r"^streams\.", "decoder.ngram_input_embed."),
    (r"^encoder_norm\.", "encoder.layer_norm."),
    (r"^decoder_norm\.", "decoder.emb_layer_norm."),
    (r"^(en|de)coder\.(\d+)\.", r"\1coder.layers.\2."),
    (r"^(decoder\.layers\.\d+)\.attention\.(query|key|value)\.", r"\1.ngram_self_attn.in_proj_"),
    (r"^(decoder\.layers\.\d+)\.attention\.", r"\1.ngram_self_attn."),
    (r"\.cross_attention\.", ".encoder_attn."),
    (r"\.attention\.", ".self_attn."),
    (r"\.(q|k|v)(uery|ey|alue)\.", r".\1_proj."),
    (r"\.output\.", ".out_proj."),
    (r"\.relative\.table\.", ".relative_linear."),
    (r"\.feed_forward\.first\.", ".fc1."),
    (r"\.feed_forward\.second\.", ".fc2."),
    (r"\.around_attention\.norm\.", ".self_attn_layer_norm."),
    (r"\.around_cross\.norm\.", ".encoder_attn_layer_norm."),
    (r"\.around_feed_forward\.norm\.", ".final_layer_norm."),
    (r"^latent\.feature\.", "encoder.vae_fc1."),
    (r"^latent\.gaussian\.", "encoder.vae_fc2."),
    (r"^latent\.bag\.", "encoder.vae_fc3."),
    (r"^latent\.memory\.", "decoder.vae_transform."),
]
# The first entries of every dictionary.
_FIRST = ("<s>", "[PAD]", "</s>", "[UNK]")
_PADDING = 1
_IGNORED = "|".join(
    [
        r"(en|de)coder\.version",
        r"decoder\.embed_tokens\.weight",
        r"encoder\.layers\.\d+\.(embed_relative_positions|self_attn\.embed)_(token|sentence)\..*",
        r"encoder\.mask_lm_fc1\..*",  # pre-training alone
    ]
)
_HALVES = {
    "layers": "layers",
    "attention_heads": "heads",
    "embed_dim": "embedding",
    "ffn_embed_dim": "feed_forward",
}
_REST = {
    "dropout": "dropout",
    "ngram": "ngram",
    "num_buckets": "buckets",
    "relative_max_distance": "max_distance",
}
_POSITIONS = {
    "turn_ape": "encoder.embed_ap_sentence.weight",
    "role_ape": "encoder.embed_ap_role.weight",
    "token_rpe": "encoder.embed_rp_token.relative_attention_bias.weight",
    "turn_rpe": "encoder.embed_rp_sentence.relative_attention_bias.weight",
}
# What our model takes for granted.
_FIXED = {
    "activation_fn": "gelu",
    "no_scale_embedding": True,
    "share_all_embeddings": True,
    "max_distance_source_token": 128,
    "max_distance_source_sentence": 16,
}


def read(source: Path, *, latent: bool) -> Archive:
    """The archive in a folder with one *.pt and one vocab.txt (or dict.txt).

    Args:
        source: the folder.
        latent: whether it must have a latent variable, or none.

    Raises:
        InputError: a file is missing, damaged or of another model.
    """
    path = only_file(source, "*.pt")
    saved = unpickle(path)
    if not isinstance(saved, dict) or not isinstance(saved.get("args"), argparse.Namespace):
        raise _error(path, "it is no checkpoint of fairseq with its args")
    tensors = require_tensors(saved.get("model"), path)
    if latent != ("decoder.vae_transform.weight" in tensors):
        other = "-no-latent" if latent else ""
        raise _error(path, f"it is one for `dialbench convert dialogved{other}`")
    if shared := _unshared(tensors):
        raise _error(path, shared)
    sizes = _sizes(vars(saved["args"]), path) | _latent_sizes(tensors)
    sizes |= {option: True for option, name in _POSITIONS.items() if name in tensors}
    listed = read_pieces(only_file(source, "vocab.txt", "dict.txt"))
    rows = [len(t) for name, t in tensors.items() if name.endswith(".embed_ap_token.weight")]
    positions = max(rows, default=_PADDING) - _PADDING
    return Archive(
        path=path,
        tensors=tensors,
        names=_NAMES,
        changes=_changes(sizes["heads"], positions),
        ignored=_IGNORED,
        sizes=sizes,
        positions=positions,
        pieces=[*_FIRST, *(piece for piece in listed if piece not in _FIRST)],
        roles={
            "bos_token": "<s>",
            "pad_token": "[PAD]",
            "eos_token": "</s>",
            "unk_token": "[UNK]",
            "cls_token": "[CLS]",
            "sep_token": "[SEP]",
            "mask_token": "[MASK]",
        },
        specials=("[PAD]", "[UNK]", "</s>", "</s>", "[SEP]"),
        template="[CLS] $A </s>",
    )


def _error(path: Path, what: str) -> InputError:
    hint = "Name the folder of a DialogVED as its authors released it."
    return InputError(what, where=str(path), hint=hint)


def _unshared(tensors: Mapping[str, Tensor]) -> str:
    # What is wrong if the decoder has words of its own.
    name = "{}.embed_tokens.weight"
    encoder, decoder = (tensors.get(name.format(half)) for half in ("encoder", "decoder"))
    alike = encoder is None or decoder is None or torch.equal(encoder, decoder)
    return "" if alike else "its encoder and decoder have different vectors of words"


def _sizes(options: Mapping[str, Any], path: Path) -> dict[str, Any]:
    names = [f"{half}coder_{name}" for half in ("en", "de") for name in _HALVES] + [*_REST]
    if missing := [name for name in names if name not in options]:
        raise _error(path, f"its args lack {', '.join(missing)}")
    for name in _HALVES:
        if options[f"encoder_{name}"] != options[f"decoder_{name}"]:
            raise _error(path, f"encoder_{name} and decoder_{name} differ in its args")
    for name, value in _FIXED.items():
        if options.get(name, value) != value:
            raise _error(path, f"{name} is {options[name]!r} in its args, not {value!r}")
    sizes = {ours: options[f"encoder_{name}"] for name, ours in _HALVES.items()}
    sizes |= {ours: options[name] for name, ours in _REST.items()}
    return sizes | {"norm": "post", "tied": True}


def _latent_sizes(tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    memory, bag = (
        tensors.get(name) for name in ("decoder.vae_transform.weight", "encoder.vae_fc3.weight")
    )
    if memory is None:
        return {}
    P = memory.shape[-1]
    alone = bag is not None and bag.shape[-1] == P
    return {"latent": P, "bag_reads": "z" if alone else "z_and_context"}


def _changes(heads: int, positions: int) -> list[tuple[str, Change]]:
    return [
        (r"(en|de)coder_positions\.weight", _places(positions)),
        (r"latent\.memory\..*", _keys_then_values(heads)),
        *(
            (rf"decoder\.\d+\.attention\.{part}\..*", third(number))
            for number, part in enumerate(("query", "key", "value"))
        ),
    ]


def _places(rows: int) -> Change:
    def cut(table: Tensor) -> Tensor:
        table = table[_PADDING:]
        # What lies beyond the last position of the smaller table is read as that.
        return torch.cat([table, table[-1:].expand(rows - len(table), -1)])

    return cut


def _keys_then_values(heads: int) -> Change:
    # (H 2 d/H, ...), key and value of a head side by side -> (2 H d/H, ...)
    return lambda rows: rows.reshape(heads, 2, -1, *rows.shape[1:]).transpose(0, 1).flatten(0, 2)
