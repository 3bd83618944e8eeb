"""Tokenisers by name, and the way back from tokens to text.

Every measure of a table sees text through one tokeniser, so that no system gains by its own
vocabulary. `default` lower-cases, separates punctuation and splits contractions as the Penn
Treebank does (`don't` -> `do n't`); `whitespace` only splits.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from dialbench.errors import UnknownName

Tokenizer = Callable[[str], list[str]]

UNKNOWN = "<unk>"
_CLITIC = r"(?:s|m|d|re|ve|ll)\b"
_TOKEN = re.compile(
    rf"{UNKNOWN}"
    r"|\w+?(?=n't\b)|n't\b"
    rf"|'{_CLITIC}"
    rf"|\w+(?:'(?!{_CLITIC})\w+)*"
    r"|[^\w\s]"
)
_QUOTES = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"'})
# DailyDialog writes many contractions as "I ’ m"; read as three words they would count as
# other words than everybody else's "I'm".
_TORN = re.compile(r"(?<=\w) ' (?=(?:s|m|d|re|ve|ll|t)\b)")
_CLOSING = set(",.!?;:)]}%") | {"..."}
_OPENING = set("([{$#")


def tokenize(text: str) -> list[str]:
    """The `default` tokens of a text: lower-case words, clitics and punctuation marks.

    `<unk>` stays one token. Text without any token gives an empty list.
    """
    text = text.translate(_QUOTES).lower()
    if " ' " in text:
        text = _TORN.sub("'", text)
    return _TOKEN.findall(text)


def detokenize(tokens: Iterable[str]) -> str:
    """Readable text of `default` tokens; `tokenize(detokenize(tokens))` gives them back."""
    pieces: list[str] = []
    glue = True
    for token in tokens:
        clitic = token == "n't" or (token[0] == "'" and len(token) > 1)
        after_word = bool(pieces) and pieces[-1][-1].isalnum()
        if not glue and token not in _CLOSING and not (clitic and after_word):
            pieces.append(" ")
        pieces.append(token)
        glue = token in _OPENING
    return "".join(pieces)


_TOKENIZERS: dict[str, Tokenizer] = {"default": tokenize, "whitespace": str.split}


def tokenizer(name: str, *, where: str = "--tokenizer") -> Tokenizer:
    """The tokeniser called `name`.

    Raises:
        UnknownName: there is none of that name.
    """
    if name not in _TOKENIZERS:
        raise UnknownName.of("tokenizer", name, _TOKENIZERS, where=where)
    return _TOKENIZERS[name]
