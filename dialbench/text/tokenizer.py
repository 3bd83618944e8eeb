"""Tokenisers by name, and the way back from tokens to text.

Every metric of a table sees text through one tokeniser, so that no system gains by its own
vocabulary. `default` lower-cases, separates punctuation and splits contractions as the Penn
Treebank does (`don't` -> `do n't`); `whitespace` only splits; `parlai`, `bert` and those of
sacreBLEU are what the code of some papers does. All of them compose the text first (Unicode NFC),
so that an accent written as a character of its own makes no other word.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Callable, Iterable
from itertools import chain

from dialbench.errors import UnknownName
from dialbench.text.sacrebleu_tokens import (
    tokenize_13a,
    tokenize_char,
    tokenize_intl,
    tokenize_zh,
)

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
_QUOTES = (("’", "'"), ("‘", "'"), ("“", '"'), ("”", '"'))
# DailyDialog writes many contractions as "I ’ m"; read as three words they would count as
# other words than everybody else's "I'm".
_SEPARATED_CLITIC = re.compile(r"(?<=\w) ' (?=(?:s|m|d|re|ve|ll|t)\b)")
_MAX_PIECE_LENGTH, _MAX_PIECES = 64, 1 << 18
_CLOSING = set(",.!?;:)]}%") | {"..."}
_OPENING = set("([{$#")


def composed(text: str) -> str:
    """The text in Unicode's normal form C: a letter with its accents is one character."""
    return unicodedata.normalize("NFC", text)


def tokenize(text: str) -> list[str]:
    """The `default` tokens of a text: lower-case words, clitics and punctuation marks.

    `<unk>` stays one token. Text without any token gives an empty list.
    """
    return list(chain.from_iterable(map(_TOKENS_BY_PIECE.__getitem__, _normalise(text).split())))


def _normalise(text: str) -> str:
    """The composed text in lower case with ASCII quotes and contractions in one piece."""
    text = composed(text)
    for quote, plain in _QUOTES:
        text = text.replace(quote, plain)
    text = text.lower()
    return _SEPARATED_CLITIC.sub("'", text) if " ' " in text else text


class _TokensByPiece(dict[str, tuple[str, ...]]):
    """A cache of the tokens of each piece between white space."""

    def __missing__(self, piece: str) -> tuple[str, ...]:
        tokens = tuple(_TOKEN.findall(piece))
        if len(piece) <= _MAX_PIECE_LENGTH:
            if len(self) >= _MAX_PIECES:
                self.clear()
            self[piece] = tokens
        return tokens


_TOKENS_BY_PIECE = _TokensByPiece()


def detokenize(tokens: Iterable[str]) -> str:
    """Readable text of `default` tokens.

    `tokenize(detokenize(tokens))` gives the tokens of any tokenised text back; word salad such
    as two clitics in a row may come back divided otherwise.
    """
    pieces: list[str] = []
    no_space = True
    for token in tokens:
        clitic = token == "n't" or (token[0] == "'" and len(token) > 1)
        after_word = bool(pieces) and pieces[-1][-1].isalnum()
        if not no_space and token not in _CLOSING and not (clitic and after_word):
            pieces.append(" ")
        pieces.append(token)
        no_space = token in _OPENING
    return "".join(pieces)


_PARLAI = re.compile(r"[!\"#$%&()*+,\-./:;<=>?@\[\]\\^`{|}~_']")
_ARTICLE = re.compile(r"\b(?:a|an|the)\b")


def tokenize_parlai(text: str) -> list[str]:
    """Lower-case words without ASCII punctuation and articles, as ParlAI's metrics see them."""
    return _ARTICLE.sub(" ", _PARLAI.sub(" ", composed(text).lower())).split()


def split_words(text: str) -> list[str]:
    """What stands between white space."""
    return composed(text).split()


def tokenize_bert(text: str) -> list[str]:
    """BERT's basic tokens, uncased: no accents, punctuation and CJK characters apart.

    It decomposes the text, so that nothing need be composed before. Word pieces joined again give
    the same tokens.
    """
    return "".join(map(_bert_character, unicodedata.normalize("NFD", text.lower()))).split()


def _bert_character(character: str) -> str:
    if character.isascii() and character.isalnum():
        return character
    category = unicodedata.category(character)
    if category == "Mn":
        return ""
    if category == "Zs" or character in "\t\n\r":
        return " "
    if category[0] == "C" or character == "\ufffd":
        return ""
    separate = character in string.punctuation or category[0] == "P" or _is_cjk(ord(character))
    return f" {character} " if separate else character


def _is_cjk(code: int) -> bool:
    return any(first <= code <= last for first, last in _CJK)


_CJK = (
    *((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F)),
    *((0x2B740, 0x2B81F), (0x2B820, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F)),
)


def _of_composed(tokenize: Tokenizer) -> Tokenizer:
    return lambda text: tokenize(composed(text))


_TOKENIZERS: dict[str, Tokenizer] = {
    "default": tokenize,
    "whitespace": split_words,
    "parlai": tokenize_parlai,
    "bert": tokenize_bert,
    "13a": _of_composed(tokenize_13a),
    "intl": _of_composed(tokenize_intl),
    "zh": _of_composed(tokenize_zh),
    "char": _of_composed(tokenize_char),
}

_KEEP_CASE = frozenset({"whitespace", "13a", "intl", "zh", "char"})

PIECEWISE: dict[Tokenizer, tuple[Callable[[str], str], Callable[[str], tuple[str, ...]]]] = {
    tokenize: (_normalise, _TOKENS_BY_PIECE.__getitem__),
    split_words: (composed, lambda piece: (piece,)),
}
"""Tokenisers whose tokens are those of each piece between white space, one piece after another.

For each what is done to a text before it is cut, and the tokens of a piece. Nothing of it reaches
across a control character between white space, so that texts can be joined by one.
"""


def keeps_case(name: str) -> bool:
    """Whether the tokeniser of this name leaves capital letters as they are."""
    return name in _KEEP_CASE


def tokenizer(name: str, *, where: str = "--tokenizer") -> Tokenizer:
    """The tokeniser called `name`.

    Raises:
        UnknownName: there is none of that name.
    """
    if name not in _TOKENIZERS:
        raise UnknownName.of("tokenizer", name, _TOKENIZERS, where=where)
    return _TOKENIZERS[name]
