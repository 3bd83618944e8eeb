"""Checkpoints of the transformers library: found on this machine, checked, and read.

Nothing is downloaded, no code of a checkpoint is run, and weights are read from safetensors only.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Self

from dialbench.errors import InputError, first_line
from dialbench.files.checksum import sha256_of
from dialbench.files.lines import read_file, require_plain_files
from dialbench.files.loads import loads

_CHECKSUMMED = {".json", ".jinja", ".model", ".safetensors", ".tiktoken", ".tokenizer", ".txt"}
_TOKENIZERS = (
    *("tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt"),
    *("spiece.model", "sentencepiece.bpe.model", "spm.model", "source.spm"),
    "prophetnet.tokenizer",
)
_CONFIGS = ("config.json", "tokenizer_config.json")
_PICKLED = ("*.bin", "*.pt", "*.pth", "*.ckpt")
_COMPLETE_HINT = "Name a folder with config.json, model.safetensors and the tokenizer's files."


@dataclass(frozen=True)
class Pretrained:
    """A checkpoint on this machine, of whatever architecture.

    Attributes:
        given_name: folder or name, as the user wrote it.
        where, subject: how errors begin: the argument, and what is wrong with it.
        folder: where its files lie.
    """

    given_name: str
    where: str
    subject: str
    folder: Path

    @classmethod
    def find(cls, given_name: str, *, where: str, subject: str) -> Self:
        """The checkpoint in a folder, or under a name in the local cache of the Hub.

        Raises:
            InputError: it is not there, a file is missing, or it asks for code of its own.
        """
        folder = folder_of(given_name)
        if folder is None:
            raise InputError(
                f"{subject} is neither a folder nor a model in the local cache of the Hub",
                where=where,
                hint=f"Nothing is downloaded. {_COMPLETE_HINT}",
            )
        self = cls(given_name, where, subject, folder)
        self._require_files()
        return self

    def error(self, what: str, hint: str = _COMPLETE_HINT) -> InputError:
        """The error that this checkpoint cannot be used."""
        return InputError(f"{self.subject} {what}", where=self.where, hint=hint)

    def _require_files(self) -> None:
        try:
            require_plain_files(self.folder)
        except OSError as error:
            raise self.error(f"holds {error}") from None
        for name in _CONFIGS:
            if "auto_map" in self.read_json(name):
                raise self.error(
                    f"asks in {name} for code of its own, which is never run",
                    "Choose a model that the transformers library knows.",
                )
        if not any(self.folder.glob("*.safetensors")):
            pickled = any(True for pattern in _PICKLED for _ in self.folder.glob(pattern))
            raise self.error(
                f"has no *.safetensors{' but only pickled weights' if pickled else ''}",
                _pickled_hint(self.folder) if pickled else _COMPLETE_HINT,
            )
        if not any((self.folder / name).is_file() for name in _TOKENIZERS):
            raise self.error("has no tokenizer files")

    def read_json(self, name: str) -> dict[str, Any]:
        """What is in a JSON file of the folder; nothing if it is not there and not needed.

        Raises:
            InputError: it cannot be read, or is no object.
        """
        path = self.folder / name
        if name != "config.json" and not path.exists():
            return {}
        try:
            value = loads(read_file(path))
        except (OSError, ValueError) as error:
            raise self.error(f"has no readable {name} ({first_line(error)})") from None
        if not isinstance(value, dict):
            raise self.error(f"has a {name} that is no JSON object")
        return value

    @property
    def checksum(self) -> str:
        """sha256 (64 hex digits) over names and contents of weights, tokenizer and configs."""
        return checksum_of(self.folder, self.folder.iterdir())

    def read(self, read: Callable[..., Any], **options: Any) -> Any:
        """What a `from_pretrained` of the library makes of the folder.

        Raises:
            InputError: the library cannot read it.
        """
        silence()
        options |= {"local_files_only": True, "trust_remote_code": False}
        try:
            return read(self.folder, **options)
        except Exception as error:  # whatever a library of 200 architectures may raise
            raise self.error(f"cannot be read ({first_line(error)})") from None

    def read_model(self, read: Callable[..., Any]) -> Any:
        """The model that a `from_pretrained` of the library reads, in float32.

        Raises:
            InputError: the weights are damaged or incomplete.
        """
        import torch

        options = {"use_safetensors": True, "output_loading_info": True, "dtype": torch.float32}
        model, report = self.read(read, **options)
        if report["missing_keys"]:
            raise self.error(f"lacks {', '.join(sorted(report['missing_keys']))}")
        return model

    def read_tokenizer(self) -> Any:
        """The library's tokenizer.

        Raises:
            InputError: the library cannot read it.
        """
        from transformers import AutoTokenizer

        return self.read(AutoTokenizer.from_pretrained)


def checksum_of(folder: Path, paths: Iterable[Path]) -> str:
    """sha256 (64 hex digits) over names, within the folder, and contents of a model's files."""
    digest = hashlib.sha256()
    for path in sorted(path for path in paths if path.suffix in _CHECKSUMMED):
        facts = path.stat()
        sha256 = _checksum(path.resolve(), facts.st_size, facts.st_mtime_ns)
        digest.update(f"{path.relative_to(folder).as_posix()} {sha256}\n".encode())
    return digest.hexdigest()


def _pickled_hint(folder: Path) -> str:
    return f"`dialbench convert hf {folder} NEW_FOLDER` writes them as safetensors."


def silence() -> None:
    """Keeps the transformers library from writing to the terminal while it reads a model."""
    from transformers.utils import logging

    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]


def folder_of(given_name: str) -> Path | None:
    """A folder, or that of a model in the local cache of the Hub; None if it is neither."""
    path = Path(given_name).expanduser()
    if path.is_dir():
        return path
    from huggingface_hub import snapshot_download

    try:
        # Nothing is downloaded, so there is no revision to pin.
        return Path(snapshot_download(given_name, local_files_only=True))  # nosec B615
    except (OSError, ValueError):
        return None


@lru_cache(maxsize=64)
def _checksum(path: Path, size: int, changed: int) -> str:
    # Kept as long as size and time of change stay: weights may be gigabytes.
    return sha256_of(path)
