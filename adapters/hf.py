"""Any pretrained causal or encoder-decoder checkpoint of the transformers library as a system.

Fine-tuned on the corpus, or asked as it is. The architecture is read from the checkpoint's
config.json; see `pretrained/model.py` for the sequences it reads and writes.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from dialbench.adapter import Card

from .pretrained.tuning import TunedAdapter, TuningConfig


@dataclass(frozen=True)
class HFConfig(TuningConfig):
    """As `TuningConfig`; `weights` must be named."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.weights:
            raise ValueError("name a checkpoint with weights=FOLDER")


class HF(TunedAdapter):
    """A checkpoint of the transformers library."""

    name = "hf"
    card = Card(
        title="",
        family="pretrained",
        summary="any causal or encoder-decoder checkpoint of the transformers library",
        pretrained=True,
    )
    Config = HFConfig
    titled_options: ClassVar[frozenset[str]] = frozenset({"weights", "tune"})

    @classmethod
    def title(cls, config: HFConfig) -> str:
        """The checkpoint's folder, and whether it was fine-tuned."""
        name = Path(config.weights).expanduser().name
        return f"{name} ({'fine-tuned' if config.tune else 'zero-shot'})"
