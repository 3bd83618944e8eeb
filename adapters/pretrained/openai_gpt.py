"""OpenAI's first GPT, a checkpoint of the transformers library, as weights of our LIC.

It has no token that ends a text or begins one, so that all specials are new: their vectors are
drawn from N(0, 0.02^2), as in the code of LIC.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from dialbench.text.vocabulary import PAD, SPECIALS

from ..blocks.sequences import Around
from .checkpoint import Checkpoint
from .own import PretrainedWeights, words_of

_STD = 0.02
# Of the library -> ours, behind the number of the layer.
_NAMES = {
    "attn.c_proj": "attention.output",
    "ln_1": "around_attention.norm",
    "mlp.c_fc": "feed_forward.first",
    "mlp.c_proj": "feed_forward.second",
    "ln_2": "around_feed_forward.norm",
}
_JOINED = ("attention.query", "attention.key", "attention.value")


def weights_of(checkpoint: Checkpoint) -> PretrainedWeights:
    """The weights of an OpenAI GPT.

    Raises:
        InputError: its activation is not GELU.
    """
    from transformers import OpenAIGPTLMHeadModel

    c = checkpoint.config
    if c.afn != "gelu":
        raise checkpoint.error(f"has another activation than gelu ({c.afn})")
    library = checkpoint.read_model(OpenAIGPTLMHeadModel.from_pretrained).state_dict()
    specials = torch.randn(len(SPECIALS), c.n_embd) * _STD
    specials[PAD] = 0.0
    tensors = {
        "embedding.weight": torch.cat([specials, library["transformer.tokens_embed.weight"]]),
        "positions.weight": library["transformer.positions_embed.weight"],
    }
    for number in range(c.n_layer):
        layer = _layer(library, f"transformer.h.{number}.")
        tensors |= {f"layers.{number}.{name}": tensor for name, tensor in layer.items()}
    sizes = {
        "layers": c.n_layer,
        "heads": c.n_head,
        "embedding": c.n_embd,
        "dropout": c.resid_pdrop,
        "norm": "post",
        "tied": True,
    }
    words = words_of(checkpoint, Around(), c.n_positions)
    return PretrainedWeights(sizes, words, tensors, norm_eps=c.layer_norm_epsilon)


def _layer(library: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    # A layer's tensors; its maps are (inputs, outputs), those of a torch.nn.Linear the other way.
    tensors = {}
    for leaf in ("weight", "bias"):
        for theirs, ours in _NAMES.items():
            tensors[f"{ours}.{leaf}"] = library[f"{prefix}{theirs}.{leaf}"].t()
        parts = library[f"{prefix}attn.c_attn.{leaf}"].t().chunk(3)
        for ours, part in zip(_JOINED, parts, strict=True):
            tensors[f"{ours}.{leaf}"] = part
    return tensors
