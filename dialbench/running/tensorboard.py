"""TensorBoard as a tracker, through torch: a folder of events for each run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch.utils.tensorboard import SummaryWriter

from dialbench.text.cleaning import slug


class TensorBoard:
    """Writes events below a folder, for `tensorboard --logdir FOLDER`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._writers: dict[str, SummaryWriter] = {}

    def _writer(self, run: str) -> SummaryWriter:
        if run not in self._writers:
            self._writers[run] = SummaryWriter(str(self._folder / slug(run)))
        return self._writers[run]

    def losses(self, run: str, epoch: int, values: Mapping[str, float]) -> None:
        """Points of the curves loss/NAME."""
        writer = self._writer(run)
        for name, value in values.items():
            writer.add_scalar(f"loss/{name}", value, epoch)
        writer.flush()

    def scores(self, run: str, options: Mapping[str, Any], values: Mapping[str, float]) -> None:
        """A line of the table of hyper-parameters; undefined values are left out."""
        defined = {f"score/{name}": v for name, v in values.items() if math.isfinite(v)}
        plain = {name: v if isinstance(v, int | float) else str(v) for name, v in options.items()}
        self._writer(run).add_hparams(plain, defined, run_name=".")

    def close(self) -> None:
        """Closes every file."""
        for writer in self._writers.values():
            writer.close()
