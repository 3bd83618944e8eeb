"""Checkpoints that `dialbench convert` made of another program's.

config.json says which system it is of, its sizes, and what the specials begin as;
model.safetensors has the weights under our names, a row a word of the checkpoint's own;
tokenizer.json and tokenizer_config.json are a tokenizer of the transformers library.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from dialbench.errors import first_line
from dialbench.files.lines import read_file
from dialbench.files.loads import loads

from .checkpoint import Checkpoint

_VERSION = 1
_CONFIG, _WEIGHTS = "config.json", "model.safetensors"
_HINT = "Convert it again with `dialbench convert`."


@dataclass(frozen=True)
class ConvertedConfig:
    """What config.json says.

    Attributes:
        model_type: the system's name.
        sizes: options of the system that the weights decide.
        vocab_size: V.
        positions: rows of the tables of positions.
        specials: numbers of the tokens that PAD, UNK, BOS, EOS and SEP begin as.
        norm_eps: of layer normalisation.
        dialbench: version of this format.
    """

    model_type: str
    sizes: Mapping[str, Any]
    vocab_size: int
    positions: int
    specials: Sequence[int]
    norm_eps: float = 1e-5
    dialbench: int = _VERSION


class ConvertedCheckpoint(Checkpoint):
    """A checkpoint under our names."""

    @cached_property
    def config(self) -> ConvertedConfig:
        """Its configuration.

        Raises:
            InputError: it is of another version, or damaged.
        """
        facts = self.read_json(_CONFIG)
        if facts["dialbench"] != _VERSION:
            raise self.error(f"was converted by another version ({facts['dialbench']})", _HINT)
        names = [field.name for field in dataclasses.fields(ConvertedConfig)]
        if sorted(facts) != sorted(names) or len(facts["specials"]) != 5:
            raise self.error(f"has a damaged {_CONFIG}", _HINT)
        return ConvertedConfig(**facts)

    @property
    def positions(self) -> int:
        """Rows of the tables of positions."""
        return self.config.positions

    @property
    def end(self) -> int:
        """The number of the token that ends a text."""
        return self.config.specials[3]

    def tensors(self) -> dict[str, Tensor]:
        """The weights under our names.

        Raises:
            InputError: they are damaged.
        """
        try:
            return load_file(self.folder / _WEIGHTS)
        except (SafetensorError, OSError, ValueError) as error:
            raise self.error(f"cannot be read ({first_line(error)})", _HINT) from None


def is_converted(weights: str) -> bool:
    """Whether the option `weights` names the folder of a converted checkpoint."""
    try:
        facts = loads(read_file(Path(weights).expanduser() / _CONFIG))
    except (OSError, ValueError):
        return False
    return isinstance(facts, dict) and "dialbench" in facts


def write(folder: Path, config: ConvertedConfig, tensors: Mapping[str, Tensor]) -> None:
    """Writes everything but the tokenizer."""
    text = json.dumps(dataclasses.asdict(config), indent=2)
    (folder / _CONFIG).write_text(text, encoding="utf-8")
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, folder / _WEIGHTS)


def write_word_pieces(
    folder: Path, pieces: Sequence[str], roles: Mapping[str, str], template: str = "$A"
) -> None:
    """Writes a lower-casing tokenizer of BERT's kind.

    Args:
        folder: where to.
        pieces: in the order of their numbers.
        roles: special tokens by what they are: `pad_token`, `eos_token` and so on.
        template: what it puts around a text, `$A`.
    """
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    numbers = {piece: number for number, piece in enumerate(pieces)}
    words = Tokenizer(models.WordPiece(numbers, unk_token=roles["unk_token"]))
    words.normalizer = normalizers.BertNormalizer(lowercase=True)
    words.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    words.decoder = decoders.WordPiece()
    around = [(token, numbers[token]) for token in template.split() if token != "$A"]
    words.post_processor = processors.TemplateProcessing(single=template, special_tokens=around)
    tokenizer: Any = PreTrainedTokenizerFast(tokenizer_object=words, **roles)  # type: ignore[no-untyped-call]
    tokenizer.save_pretrained(folder)
