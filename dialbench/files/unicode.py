"""Text that no file takes as it is."""

from __future__ import annotations


def unicode_text(text: str) -> str:
    """`text` with a question mark for each half of a surrogate pair.

    Bytes of a file name that are no UTF-8 are such halves.
    """
    return text.encode("utf-8", "replace").decode("utf-8")
