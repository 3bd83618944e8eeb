"""Word vectors: read from GloVe and word2vec text files, or trained on a corpus."""

from __future__ import annotations

import hashlib
import json
import math
from array import array
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dialbench.errors import InputError, first_line
from dialbench.files.atomic import atomic_write
from dialbench.files.lines import PACKED, not_utf8, raw_lines, require_file
from dialbench.files.loads import loads

_MAX_DIGITS = 19
_FORM = "Each line is a word and its numbers, separated by single spaces."


class Vectors:
    """Words and their vectors.

    Args:
        words: (words,) none twice.
        matrix: (words, size) float32.
        name: how signatures call them.
    """

    def __init__(self, words: Sequence[str], matrix: NDArray[np.float32], name: str) -> None:
        if matrix.shape[0] != len(words):
            raise ValueError(f"{len(words)} words and {matrix.shape[0]} vectors")
        self.words = tuple(words)
        self.matrix = matrix
        self.name = name

    @cached_property
    def rows(self) -> dict[str, int]:
        """The row of each word."""
        return {word: row for row, word in enumerate(self.words)}

    @cached_property
    def checksum(self) -> str:
        """sha256 (64 hex digits) of words and values, the same for every file format."""
        digest = hashlib.sha256("\n".join(self.words).encode("utf-8"))
        digest.update(np.ascontiguousarray(self.matrix, dtype="<f4").data)
        return digest.hexdigest()


def load(path: Path, *, where: str = "") -> Vectors:
    """Reads GloVe text, word2vec text (with or without header) or what `save` wrote.

    Text may be packed (.xz, .gz). A word that stands twice keeps its first vector; a word may
    hold spaces, as some of GloVe's do.

    Args:
        path: the file.
        where: the argument that named it, for the error when it cannot be opened.

    Raises:
        InputError: naming file and line: not readable, a line of another size, not a number,
            not finite, or no vectors at all.
    """
    if path.suffix == ".safetensors":
        return _load_saved(path)
    return _parse(raw_lines(path, where=where), path)


def save(vectors: Vectors, path: Path) -> None:
    """Writes the vectors so that `load` reads them back exactly; whole or not at all.

    Raises:
        StorageError: the disk refuses.
    """
    from safetensors.numpy import save as packed

    words = json.dumps(vectors.words, ensure_ascii=False)
    content = packed({"matrix": vectors.matrix}, {"name": vectors.name, "words": words})
    atomic_write(path, content)


def train(
    token_lists: Iterable[Sequence[str]],
    *,
    size: int = 200,
    window: int = 5,
    min_count: int = 5,
    seed: int,
    name: str = "word2vec",
) -> Vectors:
    """Skip-gram word2vec (Mikolov et al., 2013) as gensim trains it, 5 epochs, one thread.

    The same token lists and seed give the same bits in every process.

    Args:
        token_lists: one list of tokens for each text.
        size: dimensions.
        window: words to either side that count as context.
        min_count: rarer words get no vector.
        seed: from which initial values and samples derive.
        name: how signatures call the vectors.

    Raises:
        InputError: no word occurs `min_count` times.
    """
    from gensim.models import Word2Vec

    texts = [list(tokens) for tokens in token_lists]
    model = Word2Vec(
        vector_size=size, window=window, min_count=min_count, sg=1, seed=seed, workers=1
    )
    model.build_vocab(texts)
    if not len(model.wv):
        raise InputError(f"no word occurs {min_count} times, so no word vectors can be trained")
    model.train(texts, total_examples=model.corpus_count, epochs=model.epochs)
    return Vectors(model.wv.index_to_key, model.wv.vectors, name)


def _load_saved(path: Path) -> Vectors:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(require_file(path), framework="numpy") as file:
            facts = file.metadata()
            words, matrix = loads(facts["words"]), file.get_tensor("matrix")
        _check_saved(words, matrix)
        return Vectors(words, matrix, facts["name"])
    except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
        what = f"these are no saved word vectors ({first_line(error)})"
        raise InputError(what, where=str(path), hint="Delete the file; it is made anew.") from None


def _check_saved(words: Any, matrix: NDArray[Any]) -> None:
    if not (isinstance(words, list) and all(isinstance(word, str) for word in words)):
        raise ValueError("its words are not a list of strings")
    "".join(words).encode("utf-8")
    if len(set(words)) < len(words):
        raise ValueError("a word stands twice in it")
    if matrix.ndim != 2 or matrix.dtype != np.float32 or 0 in matrix.shape:
        raise ValueError("its matrix is not (words, size) of float32")
    if not np.isfinite(matrix).all():
        raise ValueError("a number in it is not finite")


def _parse(lines: Iterable[tuple[int, bytes]], path: Path) -> Vectors:
    words: dict[str, None] = {}
    values = array("f")
    size = line_number = declared = 0
    for line_number, raw in lines:
        where = f"{path}:{line_number}"
        fields = _decode(raw, where).rstrip(" \r\n").split(" ")
        if line_number == 1 and len(fields) == 2 and all(map(_is_count, fields)):
            declared, size = map(int, fields)
            continue
        size = size or len(fields) - 1
        word, numbers = _split_fields(fields, size, where)
        if word not in words:
            words[word] = None
            values.extend(_numbers(numbers, where))
    if declared and declared != line_number - 1:
        what = f"the first line promises {declared} vectors, but {line_number - 1} follow"
        raise InputError(what, where=str(path), hint="Fetch or unpack it again.")
    if not words:
        raise InputError("there are no word vectors in this file", where=str(path), hint=_FORM)
    name = path.name.removesuffix(path.suffix) if path.suffix in PACKED else path.name
    return Vectors(list(words), np.asarray(values, np.float32).reshape(-1, size), name)


def _decode(raw: bytes, where: str) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(not_utf8(error), where=where, hint=_FORM) from None


def _split_fields(fields: list[str], size: int, where: str) -> tuple[str, list[str]]:
    """The word, which may hold spaces, and its `size` numbers."""
    extra = len(fields) - 1 - size
    if extra < 0 or size == 0 or (extra > 0 and _is_number(fields[extra])):
        what = f"{len(fields) - 1} numbers where {size or 'some'} are expected"
        raise InputError(what, where=where, hint=_FORM)
    return " ".join(fields[: extra + 1]), fields[extra + 1 :]


def _numbers(fields: list[str], where: str) -> array[float]:
    try:
        numbers = array("f", map(float, fields))
    except ValueError as error:
        raise InputError(str(error), where=where, hint=_FORM) from None
    if not all(map(math.isfinite, numbers)):
        what = "a number is not finite, or beyond what float32 holds"
        raise InputError(what, where=where, hint=_FORM)
    return numbers


def _is_count(text: str) -> bool:
    return text.isdecimal() and len(text) < _MAX_DIGITS


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
