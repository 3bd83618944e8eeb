"""The tokenisers of sacreBLEU (Post 2018), token for token; all of them keep case.

`13a` and `intl` are those of the scripts mteval-v13a and -v14. `zh` and `char` are for languages
that put no spaces between words.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Iterable
from functools import cache
from itertools import groupby

Steps = Iterable[tuple[re.Pattern[str], str]]


def tokenize_13a(text: str) -> list[str]:
    """The tokens of mteval-v13a, sacreBLEU's default."""
    text = text.replace("<skipped>", "").replace("-\n", "").replace("\n", " ")
    for name, character in _ENTITIES:
        text = text.replace(name, character)
    return _split(f" {text} ", _STEPS_13A)


def tokenize_intl(text: str) -> list[str]:
    """The tokens of mteval-v14: Unicode punctuation and symbols apart, not between digits."""
    return _split(text, _steps_intl())


def tokenize_zh(text: str) -> list[str]:
    """Chinese characters and full-width marks, each a token; what lies between as in 13a."""
    return _split(_CHINESE.sub(r" \g<0> ", text.strip()), _STEPS_13A)


def tokenize_char(text: str) -> list[str]:
    """Every character but white space."""
    return list("".join(text.split()))


def _split(text: str, steps: Steps) -> list[str]:
    for pattern, replacement in steps:
        text = pattern.sub(replacement, text)
    return text.split()


_ENTITIES = (("&quot;", '"'), ("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">"))
_STEPS_13A = (
    (re.compile(r"([{-~\[-` -&(-+:-@/])"), r" \1 "),
    (re.compile(r"([^0-9])([.,])"), r"\1 \2 "),
    (re.compile(r"([.,])([^0-9])"), r" \1 \2"),
    (re.compile(r"([0-9])(-)"), r"\1 \2 "),
)
# U+2001 to U+2A6D stands where Extension B (U+20000 to U+2A6D6) was meant: sacreBLEU writes it with
# four digits. So arrows and curly quotes stand apart, ideographs of Extension B do not.
_CHINESE = re.compile(
    "[\u2001-\u2a6d\u2e80-\u2fdf\u2ff0-\u303f\u3100-\u312f\u31a0-\u31bf\u31c0-\u31ef\u3200-\u4db5"
    "\u4e00-\u9fbb\uf900-\ufa2d\ufa30-\ufa6a\ufa70-\ufad9\ufe10-\ufe1f\ufe30-\ufe4f\uff00-\uffef]"
)


@cache
def _steps_intl() -> Steps:
    ranges = {"N": "", "P": "", "S": ""}
    for kind, codes in groupby(range(sys.maxunicode + 1), _kind):
        if kind in ranges:
            first, *others = codes
            ranges[kind] += f"\\U{first:08x}-\\U{(others or [first])[-1]:08x}"
    number, mark, symbol = ranges.values()
    return (
        (re.compile(f"([^{number}])([{mark}])"), r"\1 \2 "),
        (re.compile(f"([{mark}])([^{number}])"), r" \1 \2"),
        (re.compile(f"([{symbol}])"), r" \1 "),
    )


def _kind(code: int) -> str:
    """The first letter of a character's category: L for letters, N for numbers, ..."""
    return unicodedata.category(chr(code))[0]
