"""Text from outside, made fit to be shown: on one line, visible, as a file name."""

from __future__ import annotations

import re
import unicodedata

_INVISIBLE = ("Cc", "Cf", "Cs")
_LONGEST, _SHOWN = 1_000, 100


def clean(text: str) -> str:
    """`text` on one line, composed, and without characters that cannot be seen.

    Every output does this to text from outside (tables, pages, CSV, the terminal): no escape
    sequence, no text direction and no line break of a system, a server or a file gets through.
    """
    text = unicodedata.normalize("NFC", " ".join(text.split()))
    return " ".join(visible(text).split())


def visible(text: str) -> str:
    """`text` without control and format characters and lone surrogates; line breaks stay."""
    return "".join(c for c in text if c == "\n" or unicodedata.category(c) not in _INVISIBLE)


def shortened(text: str) -> str:
    """`text` with words of more than 1,000 characters cut, which no path or name is."""
    return re.sub(rf"(\S{{{_SHOWN}}})\S{{{_LONGEST - _SHOWN},}}", r"\1…", text)


def slug(text: str) -> str:
    """`text` as the stem of a file name: letters, digits, `-`, `_`, `+` and inner dots."""
    return re.sub(r"[^\w.+]+", "-", text, flags=re.ASCII).strip("-.") or "unnamed"
