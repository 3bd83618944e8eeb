"""Tensors that PaddlePaddle 1.x saved, read without it.

Two layouts hold the same records. One file for everything (`fluid.save_dygraph`, 1.6): 256 bytes,
"TNUM", the count (u64), then for each tensor "NAME", the length of its name (u64), the name and a
record. Or a file a tensor, called by its name (`save_persistables`, `save_vars`): version (u32),
the levels of detail (u64) and for each its length (u64) and bytes, then a record. A record: version
(u32), length (i32) and bytes of a protobuf message with type (field 1) and sizes (field 2), and the
numbers, little-endian. Later versions pickle, and pickles are not read.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from dialbench.errors import InputError
from dialbench.files.lines import read_file, require_file

_RESERVED, _COUNT, _NAME, _PICKLE = 256, b"TNUM", b"NAME", b"\x80"
_TYPES = {
    0: torch.bool,
    1: torch.int16,
    2: torch.int32,
    3: torch.int64,
    4: torch.float16,
    5: torch.float32,
    6: torch.float64,
}
_VARINT, _BYTES = 0, 2  # wire types of protobuf


def read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors by name of one file for everything, or of a folder with a file a tensor.

    Raises:
        InputError: a file cannot be read, is damaged, or is a pickle.
    """
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.is_file())
        return {file.relative_to(path.parent).as_posix(): _of_one(file) for file in files}
    reader = _Reader.open(path)
    reader.take(_RESERVED)
    reader.expect(_COUNT)
    (count,) = reader.unpack("<Q")
    tensors = dict(reader.named() for _ in range(count))
    reader.require_end()
    return tensors


def _of_one(path: Path) -> Tensor:
    reader = _Reader.open(path)
    reader.expect_version()
    (levels,) = reader.unpack("<Q")
    for _ in range(levels):
        reader.take(reader.unpack("<Q")[0])
    tensor = reader.record()
    reader.require_end()
    return tensor


@dataclass
class _Reader:
    """Reads from the front of a file's bytes; whatever does not fit is an InputError."""

    path: Path
    data: memoryview
    place: int = 0

    @classmethod
    def open(cls, path: Path) -> _Reader:
        try:
            data = read_file(require_file(path))
        except OSError as error:
            raise InputError(f"it cannot be read ({error})", where=str(path)) from None
        reader = cls(path, memoryview(data))
        if data.startswith(_PICKLE):
            raise reader.error("it is a pickle, as later versions of PaddlePaddle write them")
        return reader

    def error(self, what: str) -> InputError:
        hint = "Name what PaddlePaddle 1.5 or 1.6 saved, as the authors of PLATO released it."
        return InputError(what, where=str(self.path), hint=hint)

    def take(self, size: int) -> memoryview:
        end = self.place + size
        if size < 0 or end > len(self.data):
            raise self.error(f"it ends too early or is damaged (byte {self.place})")
        self.place, start = end, self.place
        return self.data[start:end]

    def unpack(self, form: str) -> tuple[int, ...]:
        return struct.unpack(form, self.take(struct.calcsize(form)))

    def expect(self, mark: bytes) -> None:
        if self.take(len(mark)) != mark:
            raise self.error(f"there is no {mark.decode()} at byte {self.place - len(mark)}")

    def expect_version(self) -> None:
        (version,) = self.unpack("<I")
        if version:
            raise self.error(f"it is of version {version} at byte {self.place - 4}, not 0")

    def require_end(self) -> None:
        if self.place < len(self.data):
            raise self.error(f"something stands behind the last tensor (byte {self.place})")

    def named(self) -> tuple[str, Tensor]:
        self.expect(_NAME)
        (size,) = self.unpack("<Q")
        name = bytes(self.take(size)).decode("utf-8", "replace")
        return name, self.record()

    def record(self) -> Tensor:
        self.expect_version()
        (size,) = self.unpack("<i")
        kind, sizes = self._description(_Reader(self.path, self.take(size)))
        if kind not in _TYPES:
            raise self.error(f"numbers of type {kind} at byte {self.place} are not known")
        dtype = _TYPES[kind]
        numbers = self.take(math.prod(sizes) * dtype.itemsize)
        # A copy: the file's bytes are read-only, and may not lie where numbers of this type may.
        return torch.frombuffer(bytearray(numbers), dtype=dtype).view(sizes)

    def _description(self, message: _Reader) -> tuple[int, list[int]]:
        kind, sizes = -1, []
        for field, value in message.fields():
            if field == 1:
                kind = value
            elif field == 2:
                sizes.append(value)
        if min(sizes, default=1) < 1:
            raise self.error(f"a tensor before byte {self.place} has no numbers")
        return kind, sizes

    def fields(self) -> Iterator[tuple[int, int]]:
        """The numbers of a protobuf message, each with that of its field."""
        while self.place < len(self.data):
            field, wire = divmod(self._varint(), 8)
            if wire == _BYTES:  # several numbers of one field together
                part = _Reader(self.path, self.take(self._varint()))
                while part.place < len(part.data):
                    yield field, part._varint()
            elif wire == _VARINT:
                yield field, self._varint()
            else:
                raise self.error("a description of a tensor is damaged")

    def _varint(self) -> int:
        # Seven bits a byte, the lowest first; the highest bit of a byte says that there are more.
        value = 0
        for shift in range(0, 63, 7):
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise self.error("a description of a tensor is damaged")
