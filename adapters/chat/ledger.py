"""Responses that cost time or money, saved one by one so that none is requested twice."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

from pydantic import BaseModel, ConfigDict, ValidationError

from dialbench.errors import StorageError
from dialbench.files.atomic import storage_errors


class StoredReply(BaseModel):
    """One answer: the key of its request, the text, and the model that the server reported."""

    model_config = ConfigDict(strict=True, frozen=True)

    key: str
    text: str
    model: str


class Ledger:
    """A JSON-lines file that grows by whole lines; threads may share it.

    Args:
        path: the file; made if it is missing. A last line that a killed process left half
            written is dropped.

    Raises:
        StorageError: the disk refuses, or a line is damaged.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.kept: dict[str, StoredReply] = {}
        self._lock = threading.Lock()
        with storage_errors(path):
            self._file = path.open("a+b", buffering=0)
        try:
            self._read()
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._lock:
            self._file.close()

    def add(self, answer: StoredReply) -> None:
        """Keeps an answer; it is on the disk when this returns.

        Raises:
            StorageError: the disk refuses.
        """
        line = json.dumps(answer.model_dump(), ensure_ascii=False).encode("utf-8") + b"\n"
        with self._lock, storage_errors(self.path):
            before = self._file.tell()
            try:
                while line:
                    line = line[self._file.write(line) :]
                os.fsync(self._file.fileno())
            except OSError:
                self._file.truncate(before)
                raise
            self.kept[answer.key] = answer

    def _read(self) -> None:
        with storage_errors(self.path):
            self._file.seek(0)
            content = self._file.read()
            whole = content.rfind(b"\n") + 1
            self._file.truncate(whole)
            self._file.seek(whole)
        for number, line in enumerate(content[:whole].splitlines(), start=1):
            try:
                answer = StoredReply.model_validate_json(line)
            except ValidationError:
                raise StorageError(
                    "is damaged: this line is no answer",
                    where=f"{self.path}:{number}",
                    hint="Delete the line; its answer is asked for again.",
                ) from None
            self.kept[answer.key] = answer
