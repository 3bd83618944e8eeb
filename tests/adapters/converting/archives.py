"""Tiny archives in the layouts and under the names of other programs, written without ours."""

from __future__ import annotations

import argparse
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

PIECES = [*"abcdefghijklmnopqrstuvwxyz.,?'", *(f"##{letter}" for letter in "abcdefghijklmnopqrst")]
PLATO_PIECES = ["[PAD]", "[unused0]", "[unused1]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *PIECES]
DIALOGVED_PIECES = ["<s>", "[PAD]", "</s>", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *PIECES]
FLOAT = 5  # what PaddlePaddle calls float32


def write_pieces(folder: Path, pieces: list[str], name: str = "vocab.txt") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("\n".join(pieces) + "\n", encoding="utf-8")


# PaddlePaddle


def varint(value: int) -> bytes:
    out = b""
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def record(array: np.ndarray, kind: int = FLOAT, *, packed: bool = False) -> bytes:
    sizes = b"".join(varint(n) for n in array.shape)
    if packed:
        description = b"\x12" + varint(len(sizes)) + sizes
    else:
        description = b"".join(b"\x10" + varint(n) for n in array.shape)
    description = b"\x08" + varint(kind) + description
    return struct.pack("<Ii", 0, len(description)) + description + array.tobytes()


def write_dygraph(path: Path, tensors: Mapping[str, np.ndarray], **options: Any) -> None:
    """One file, as `fluid.save_dygraph` of version 1.6."""
    parts = [b"\xaa" * 256, b"TNUM", struct.pack("<Q", len(tensors))]
    for name, array in sorted(tensors.items()):
        raw = name.encode()
        parts += [b"NAME", struct.pack("<Q", len(raw)), raw, record(array, **options)]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(parts))


def write_variables(folder: Path, tensors: Mapping[str, np.ndarray]) -> None:
    """A file a tensor, as `save_persistables` of version 1.5."""
    for name, array in tensors.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        levels = struct.pack("<QQ", 1, 8) + b"\0" * 8  # a level of detail, which weights never need
        path.write_bytes(struct.pack("<I", 0) + levels + record(array))


def plato_tensors(
    *, latent: bool = True, layers: int = 2, n: int = 16, K: int = 3, seed: int = 1
) -> dict[str, np.ndarray]:
    """A PLATO under its authors' names, maps (inputs, outputs)."""
    random = np.random.default_rng(seed)

    def draw(*shape: int) -> np.ndarray:
        return random.normal(0.0, 0.3, shape).astype("<f4")

    root, V = "Model/UnifiedTransformer_0", len(PLATO_PIECES)
    tensors = {
        f"{root}/Embedder_0/Embedding_{number}.w_0": draw(rows, n)
        for number, rows in enumerate((V, 64, 2, 16))
    }
    tensors[f"{root}.sequence_mask"] = np.tri(64, dtype="<f4")

    def norm(name: str) -> None:
        tensors[f"{name}.w_0"], tensors[f"{name}.b_0"] = 1 + draw(n), draw(n)

    def fc(name: str, inputs: int, outputs: int) -> None:
        tensors[f"{name}.w_0"], tensors[f"{name}.b_0"] = draw(inputs, outputs), draw(outputs)

    norm(f"{root}/LayerNorm_0")
    for number in range(layers):
        block = f"{root}/TransformerBlock_{number}"
        fc(f"{block}/MultiheadAttention_0/FC_0", n, 3 * n)
        fc(f"{block}/MultiheadAttention_0/FC_1", n, n)
        fc(f"{block}/FeedForward_0/FC_0", n, 4 * n)
        fc(f"{block}/FeedForward_0/FC_1", 4 * n, n)
        norm(f"{block}/LayerNorm_0")
        norm(f"{block}/LayerNorm_1")
    if latent:
        tensors[f"{root}.mask_embed"] = draw(1, 1, n)
        tensors[f"{root}.latent_embeddings"] = draw(K, n)
        tensors[f"{root}.post_network/FC_0.w_0"] = draw(n, K)
        tensors[f"{root}.bow_predictor/FC_0.w_0"] = draw(n, V)
        fc(f"{root}.discriminator/FC_0", n, 1)
    return tensors


def write_plato(folder: Path, tensors: Mapping[str, np.ndarray], heads: int = 2) -> None:
    """As the archive unpacks, with the options that its training writes beside."""
    write_pieces(folder / "Bert", PLATO_PIECES)
    write_dygraph(folder / "PLATO.pdparams", tensors)
    options = f'{{"do_train": true, "Model": {{"num_heads": {heads}, "dropout": 0.1}}}}'
    (folder / "hparams.json").write_text(options)


# fairseq


def dialogved_tensors(library: Mapping[str, Tensor], P: int, heads: int) -> dict[str, Tensor]:
    """A ProphetNet of the transformers library under the names of fairseq's DialogVED.

    Its latent part, if P is not 0, and a first row of each table of positions are new.
    """
    n = library["prophetnet.word_embeddings.weight"].shape[1]
    tensors: dict[str, Tensor] = {}
    for half in ("encoder", "decoder"):
        ours = f"prophetnet.{half}"
        tensors[f"{half}.embed_tokens.weight"] = library["prophetnet.word_embeddings.weight"]
        table = library[f"{ours}.position_embeddings.weight"]
        # one row more in front: positions are counted from the number of the padding, 1
        tensors[f"{half}.embed_ap_token.weight"] = torch.cat([torch.randn(1, n), table])
        norm = "layer_norm" if half == "encoder" else "emb_layer_norm"
        for leaf in ("weight", "bias"):
            tensors[f"{half}.{norm}.{leaf}"] = library[f"{ours}.embeddings_layer_norm.{leaf}"]
    tensors["decoder.embed_ap_token.weight"] = tensors["decoder.embed_ap_token.weight"][:-3]
    tensors["decoder.ngram_input_embed.weight"] = library[
        "prophetnet.decoder.ngram_embeddings.weight"
    ]
    for name, tensor in library.items():
        if ".layers." in name:
            _, half, _, inside = name.split(".", 3)
            _layer(tensors, half, inside, tensor)
    if P:
        shapes = {"encoder.vae_fc1": (n, n), "encoder.vae_fc2": (2 * P, n)}
        shapes |= {"encoder.vae_fc3": (n, P + n), "decoder.vae_transform": (2 * n, P)}
        for name, shape in shapes.items():
            tensors[f"{name}.weight"] = torch.randn(*shape) * 0.3
            tensors[f"{name}.bias"] = torch.randn(shape[0]) * 0.3
    tensors["encoder.mask_lm_fc1.weight"] = torch.randn(n, n)
    tensors["encoder.mask_lm_fc1.bias"] = torch.randn(n)
    return tensors


_FINAL = {
    "feed_forward_layer_norm": "final_layer_norm",
    "cross_attn_layer_norm": "encoder_attn_layer_norm",
    "feed_forward.intermediate": "fc1",
    "feed_forward.output": "fc2",
}


def _layer(tensors: dict[str, Tensor], half: str, name: str, tensor: Tensor) -> None:
    number, name = name.split(".", 1)
    module, leaf = name.rsplit(".", 1)
    start = f"{half}.layers.{number}"
    if module in _FINAL:
        module = _FINAL[module]
    elif module.startswith("self_attn.") and half == "decoder":
        part = module.split(".")[1]
        joined = ["query_proj", "key_proj", "value_proj"]
        if part in joined:
            key = f"{start}.ngram_self_attn.in_proj_{leaf}"
            size = len(tensor)
            whole = tensors.setdefault(key, torch.zeros(3 * size, *tensor.shape[1:]))
            place = joined.index(part) * size
            whole[place : place + size] = tensor
            return
        part = {"relative_pos_embeddings": "relative_linear"}.get(part, part)
        module = f"ngram_self_attn.{part}"
    else:
        module = module.replace("cross_attn.", "encoder_attn.").replace("query_proj", "q_proj")
        module = module.replace("key_proj", "k_proj").replace("value_proj", "v_proj")
    tensors[f"{start}.{module}.{leaf}"] = tensor


def write_dialogved(
    folder: Path, tensors: Mapping[str, Tensor], sizes: Mapping[str, int], **options: Any
) -> None:
    """As fairseq 0.9 saves it."""
    args = argparse.Namespace(
        arch="ngram_transformer_prophet_vae_large", activation_fn="gelu", dropout=0.1, ngram=2
    )
    for half in ("encoder", "decoder"):
        for name, value in sizes.items():
            setattr(args, f"{half}_{name}", value)
    args.num_buckets, args.relative_max_distance = 32, 128
    for name, value in options.items():
        setattr(args, name, value)
    write_pieces(folder, DIALOGVED_PIECES)
    saved = {"args": args, "model": dict(tensors), "extra_state": {"epoch": 3}}
    torch.save(saved, folder / "dialogved_large.pt")
