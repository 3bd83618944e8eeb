"""Checkpoints of the transformers library: found here, checked, and read.

Nothing is downloaded, no code of a checkpoint is run, and weights are read from safetensors only.
"""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from dialbench.errors import InputError
from dialbench.files.folders import checkpoint_folder
from dialbench.text.vocabulary import SPECIALS, Vocabulary
from dialbench.text.written import written

_READ = {".json", ".jinja", ".model", ".safetensors", ".tiktoken", ".txt"}
_TOKENIZERS = (
    *("tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt"),
    *("spiece.model", "sentencepiece.bpe.model", "spm.model", "source.spm"),
)
_CONFIGS = ("config.json", "tokenizer_config.json")
_PICKLED = ("*.bin", "*.pt", "*.pth", "*.ckpt")
_COMPLETE = "Name a folder with config.json, model.safetensors and the tokenizer's files."
_CAUSAL = {"attention_mask", "logits_to_keep", "past_key_values", "position_ids"}
_SEQ2SEQ = {"attention_mask", "encoder_outputs", "decoder_input_ids", "past_key_values"}


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint on this machine.

    Attributes:
        weights: what the user named.
        folder: where its files lie.
    """

    weights: str
    folder: Path

    @classmethod
    def open(cls, weights: str) -> Checkpoint:
        """The checkpoint in a folder, or under a name in the local cache of the Hub.

        Raises:
            InputError: a file is missing, it asks for code of its own, or its architecture is not
                supported.
        """
        self = cls(weights, _folder(weights))
        self._demand_files()
        if not self.model_class:
            raise self.error("is neither decoder-only nor encoder-decoder", "Choose another model.")
        return self

    def error(self, what: str, hint: str = "") -> InputError:
        """The error that this checkpoint cannot be used."""
        return InputError(f"weights={self.weights} {what}", where="--models", hint=hint)

    def _demand_files(self) -> None:
        for name in _CONFIGS:
            if "auto_map" in self._json(name, needed=name == "config.json"):
                raise self.error(
                    f"asks in {name} for code of its own, which is never run",
                    "Choose a model that the transformers library knows.",
                )
        if not any(self.folder.glob("*.safetensors")):
            pickled = any(True for pattern in _PICKLED for _ in self.folder.glob(pattern))
            raise self.error(
                f"has no *.safetensors{' but only pickled weights' if pickled else ''}",
                "Save it again with save_pretrained." if pickled else _COMPLETE,
            )
        if not any((self.folder / name).is_file() for name in _TOKENIZERS):
            raise self.error("has no tokenizer files", _COMPLETE)

    def _json(self, name: str, *, needed: bool) -> dict[str, Any]:
        path = self.folder / name
        if not needed and not path.exists():
            return {}
        try:
            value = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise self.error(f"has no readable {name} ({_first(error)})", _COMPLETE) from None
        if not isinstance(value, dict):
            raise self.error(f"has a {name} that is no JSON object", _COMPLETE)
        return value

    @property
    def checksum(self) -> str:
        """sha256 (64 hex digits) over names and contents of weights, tokenizer and configs."""
        files = sorted(path for path in self.folder.iterdir() if path.suffix in _READ)
        digest = hashlib.sha256()
        for path in files:
            facts = path.stat()
            sha256 = _checksum(path.resolve(), facts.st_size, facts.st_mtime_ns)
            digest.update(f"{path.name} {sha256}\n".encode())
        return digest.hexdigest()

    @cached_property
    def config(self) -> Any:
        """The library's configuration object."""
        from transformers import AutoConfig

        return self._read(AutoConfig.from_pretrained)

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
        found: Any = kinds.get(type(self.config), None)
        if found is None or getattr(found, "_is_stateful", False):
            return None
        takes = inspect.signature(found.forward).parameters.keys()
        heads = self.config.architectures or [found.__name__]
        fits = any(name == found.__name__ or name.endswith("Model") for name in heads)
        return found if fits and takes >= (_SEQ2SEQ if self.seq2seq else _CAUSAL) else None

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
        from transformers import AutoTokenizer

        tokenizer = self._read(AutoTokenizer.from_pretrained)
        if not 0 < max(tokenizer.get_vocab().values(), default=0) < self.size:
            raise self.error("has a tokenizer that does not fit its model", _COMPLETE)
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
    def around(self) -> tuple[list[int], list[int]]:
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
        import torch

        options = {"use_safetensors": True, "output_loading_info": True, "dtype": torch.float32}
        model, report = self._read(self.model_class.from_pretrained, **options)
        if report["missing_keys"]:
            raise self.error(f"lacks {', '.join(sorted(report['missing_keys']))}")
        return model

    def _read(self, read: Callable[..., Any], **options: Any) -> Any:
        from transformers.utils import logging

        logging.set_verbosity_error()  # type: ignore[no-untyped-call]
        logging.disable_progress_bar()  # type: ignore[no-untyped-call]
        options |= {"local_files_only": True, "trust_remote_code": False}
        try:
            return read(self.folder, **options)
        except Exception as error:  # whatever a library of 200 architectures may raise
            raise self.error(f"cannot be read ({_first(error)})", _COMPLETE) from None


class Pieces(Vocabulary):
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
        text = written(text)
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
        """The checkpoint's own numbers that stand for no text, its end of text among them."""
        known = set(self.tokenizer.get_vocab().values())
        unknown = set(range(len(self) - len(SPECIALS))) - known
        return sorted(unknown | set(self.tokenizer.all_special_ids))


def _folder(weights: str) -> Path:
    folder = checkpoint_folder(weights)
    if folder is None:
        raise InputError(
            f"weights={weights} is neither a folder nor a model in the local cache of the Hub",
            where="--models",
            hint=f"Nothing is downloaded. {_COMPLETE}",
        )
    return folder


@lru_cache(maxsize=64)
def _checksum(path: Path, size: int, changed: int) -> str:
    # Kept as long as size and time of change stay: weights may be gigabytes.
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _first(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".") if lines else type(error).__name__
