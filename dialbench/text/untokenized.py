"""Undoes the spacing of tokenised corpora, for systems trained on ordinary text."""

from __future__ import annotations

import re

# "I ’ m", "don ' t": the apostrophe that a tokeniser separated.
_SEPARATED_CLITIC = re.compile(r"(?<=\w) (['’]) (?=(?:s|m|d|re|ve|ll|t)\b)", re.IGNORECASE)
# A mark in front of a gap only: ":)" and ".5" stay what they are.
_SPACE_BEFORE_MARK = re.compile(r"(?<=\S) +(?=(?:\.\.\.|[,.!?;:)\]}%])(?:\s|$))")
_SPACE_AFTER_OPENING = re.compile(r"(?<![^\s(\[{])([(\[{$]) +(?=\S)")


def untokenized(text: str) -> str:
    """The text without the gaps that a corpus' own tokeniser left; case and words stay.

    DailyDialog has `Hey , it ’ s me !` where people write `Hey, it’s me!`; text without such gaps
    comes back as it is, but for blanks and line breaks, which become single spaces.
    """
    text = _SEPARATED_CLITIC.sub(r"\1", " ".join(text.split()))
    return _SPACE_AFTER_OPENING.sub(r"\1", _SPACE_BEFORE_MARK.sub("", text))
