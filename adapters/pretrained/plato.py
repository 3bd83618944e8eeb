"""PLATO as its authors released it: tensors of PaddlePaddle and BERT's word pieces.

Its maps are (inputs, outputs), where those of torch.nn.Linear are the other way.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from dialbench.errors import InputError, first_line
from dialbench.files.lines import read_file, require_file
from dialbench.files.loads import loads

from .conversion import Archive, Change, only_file, read_pieces, third
from .paddle import read_tensors

_ROOT = "Model/UnifiedTransformer_0"
# Of ours -> its own, one after another.
_NAMES = [
    (r"^embedding\.", f"{_ROOT}/Embedder_0/Embedding_0."),
    (r"^places\.", f"{_ROOT}/Embedder_0/Embedding_1."),
    (r"^roles\.", f"{_ROOT}/Embedder_0/Embedding_2."),
    (r"^turns\.", f"{_ROOT}/Embedder_0/Embedding_3."),
    (r"^norm\.", f"{_ROOT}/LayerNorm_0."),
    (r"^layers\.(\d+)\.", rf"{_ROOT}/TransformerBlock_\1/"),
    (r"/attention\.(query|key|value)\.", "/MultiheadAttention_0/FC_0."),
    (r"/attention\.output\.", "/MultiheadAttention_0/FC_1."),
    (r"/around_attention\.norm\.", "/LayerNorm_0."),
    (r"/feed_forward\.first\.", "/FeedForward_0/FC_0."),
    (r"/feed_forward\.second\.", "/FeedForward_0/FC_1."),
    (r"/around_feed_forward\.norm\.", "/LayerNorm_1."),
    (r"^values\.weight$", f"{_ROOT}.latent_embeddings"),
    (r"^mask$", f"{_ROOT}.mask_embed"),
    (r"^recognition\.", f"{_ROOT}.post_network/FC_0."),
    (r"^coherence\.", f"{_ROOT}.discriminator/FC_0."),
    (r"^bag\.", f"{_ROOT}.bow_predictor/FC_0."),
    (r"\.weight$", ".w_0"),
    (r"\.bias$", ".b_0"),
]
_PARTS = (("query", third(0)), ("key", third(1)), ("value", third(2)))


def _transposed(cut: Change) -> Change:
    return lambda tensor: cut(tensor.t())


_CHANGES: list[tuple[str, Change]] = [
    *((rf".*\.attention\.{part}\..*", _transposed(cut)) for part, cut in _PARTS),
    (r".*\.(output|first|second)\.weight|(recognition|coherence|bag)\.weight", Tensor.t),
    (r"mask", Tensor.flatten),
]
_HEAD_SIZE = 64  # of the released models, which say nothing of their heads


def read(source: Path, *, latent: bool) -> Archive:
    """The archive in a folder with one vocab.txt and one *.pdparams, or with a folder Model.

    Args:
        source: the folder.
        latent: whether it must have latent values, or none.

    Raises:
        InputError: a file is missing, damaged or of another model.
    """
    whole = source / "Model"
    path = whole if whole.is_dir() else only_file(source, "*.pdparams")
    tensors = read_tensors(path)
    values = tensors.get(f"{_ROOT}.latent_embeddings")
    if latent != (values is not None):
        other = "-no-latent" if latent else ""
        hint = f"Use `dialbench convert plato{other}`."
        raise InputError("it is of the other kind of PLATO", where=str(path), hint=hint)
    return Archive(
        path=path,
        tensors=tensors,
        names=_NAMES,
        changes=_CHANGES,
        ignored=rf"{_ROOT}\.sequence_mask",
        sizes=_sizes(tensors, source) | ({} if values is None else {"values": len(values)}),
        positions=_rows(tensors, "Embedder_0/Embedding_1.w_0"),
        pieces=read_pieces(only_file(source, "vocab.txt")),
        roles={
            "pad_token": "[PAD]",
            "bos_token": "[unused0]",
            "eos_token": "[unused1]",
            "unk_token": "[UNK]",
            "cls_token": "[CLS]",
            "sep_token": "[SEP]",
            "mask_token": "[MASK]",
        },
        specials=("[PAD]", "[UNK]", "[unused0]", "[unused1]", "[unused1]"),
        norm_eps=1e-12,
    )


def _rows(tensors: Mapping[str, Tensor], name: str) -> int:
    table = tensors.get(f"{_ROOT}/{name}")
    return 1 if table is None else len(table)


def _sizes(tensors: Mapping[str, Tensor], source: Path) -> dict[str, Any]:
    blocks = {name.split("/")[2] for name in tensors if "/TransformerBlock_" in name}
    vectors = tensors.get(f"{_ROOT}/Embedder_0/Embedding_0.w_0")
    width = 0 if vectors is None else vectors.shape[-1]
    options = _options(source / "hparams.json")
    sizes = {
        "layers": len(blocks) or 1,
        "heads": options.get("num_heads", max(1, width // _HEAD_SIZE)),
        "embedding": width or _HEAD_SIZE,
    }
    return sizes | {"dropout": options.get("dropout", 0.1), "norm": "post", "tied": True}


def _options(path: Path) -> dict[str, Any]:
    # The options of the model; the released pre-trained archives have no such file.
    if not path.exists():
        return {}
    try:
        return dict(loads(read_file(require_file(path)))["Model"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        what = f"it has no options of a Model ({first_line(error)})"
        raise InputError(what, where=str(path), hint="Fetch it again.") from None
