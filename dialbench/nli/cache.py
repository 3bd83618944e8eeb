"""Judgements kept by their content, so that no pair is judged twice by the same judge."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dialbench.errors import StorageError
from dialbench.files.atomic import atomic_write, storage_errors
from dialbench.files.lines import read_file
from dialbench.nli.judge import LABELS, Judge

_log = logging.getLogger(__name__)
_PORTION = 4096
"""Pairs judged between two savings."""
_KEY_BYTES = 16


class CachedJudge:
    """A judge that remembers, over systems and corpora and, given a folder, over runs.

    Args:
        judge: who is asked for what is not known yet.
        folder: of the file of what is known; None remembers while it lives.
        judged: is told how many of the new pairs are judged, and how many there are.
    """

    def __init__(
        self,
        judge: Judge,
        folder: Path | None = None,
        judged: Callable[[int, int], None] = lambda done, pairs: None,
    ) -> None:
        self.name = judge.name
        self._judged = judged
        self._judge = judge
        digest = hashlib.sha256(judge.name.encode("utf-8")).hexdigest()
        self._file = folder / f"{digest[:16]}.safetensors" if folder else None
        self._known: dict[bytes, NDArray[np.float32]] = {}
        self._read()

    def __call__(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        """(pairs, 3) probabilities of entailment, neutral and contradiction.

        Raises:
            StorageError: the disk refuses.
        """
        keys = [_key(*pair) for pair in pairs]
        asked = dict(zip(keys, pairs, strict=True))
        # By length, so that the judge pads little in whichever portion.
        new = sorted(
            (key for key in asked if key not in self._known),
            key=lambda key: len(asked[key][0]) + len(asked[key][1]),
        )
        _log.info("%s: %d pairs, of which %d are new", self.name, len(pairs), len(new))
        for start in range(0, len(new), _PORTION):
            self._judged(start, len(new))
            portion = new[start : start + _PORTION]
            probabilities = self._judge([asked[key] for key in portion])
            self._known.update(zip(portion, probabilities, strict=True))
            self._write()
        values = [self._known[key] for key in keys]
        return np.array(values, np.float32).reshape(len(keys), len(LABELS))

    def _write(self) -> None:
        if self._file is None:
            return
        from safetensors.numpy import save

        keys = np.frombuffer(b"".join(self._known), np.uint8).reshape(-1, _KEY_BYTES)
        values = np.array(list(self._known.values()))
        arrays = {"keys": keys, "probabilities": values}
        atomic_write(self._file, save(arrays, metadata={"judge": self.name}))

    def _read(self) -> None:
        if self._file is None or not self._file.exists():
            return
        from safetensors import SafetensorError
        from safetensors.numpy import load

        with storage_errors(self._file):
            data = read_file(self._file)
        try:
            arrays = load(data)
            keys, values = arrays["keys"], arrays["probabilities"]
            if keys.shape != (len(values), _KEY_BYTES) or values.shape[1:] != (len(LABELS),):
                raise ValueError
        except (SafetensorError, KeyError, ValueError):
            raise StorageError(
                "this cache of NLI probabilities is damaged",
                where=str(self._file),
                hint="Delete it.",
            ) from None
        self._known = dict(zip(map(bytes, keys), values, strict=True))


def _key(premise: str, hypothesis: str) -> bytes:
    text = f"{premise}\0{hypothesis}".encode("utf-8", "surrogatepass")
    return hashlib.sha256(text).digest()[:_KEY_BYTES]
