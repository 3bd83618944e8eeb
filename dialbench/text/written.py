"""Text as people write it, for systems that were trained on such text elsewhere."""

from __future__ import annotations

import re

# "I ’ m", "don ' t": the apostrophe that a tokeniser set apart.
_TORN = re.compile(r"(?<=\w) (['’]) (?=(?:s|m|d|re|ve|ll|t)\b)", re.IGNORECASE)
# A mark in front of a gap only: ":)" and ".5" stay what they are.
_LOOSE = re.compile(r"(?<=\S) +(?=(?:\.\.\.|[,.!?;:)\]}%])(?:\s|$))")
_OPENED = re.compile(r"(?<![^\s(\[{])([(\[{$]) +(?=\S)")


def written(text: str) -> str:
    """The text without the gaps that a corpus' own tokeniser left; case and words stay.

    DailyDialog has `Hey , it ’ s me !` where people write `Hey, it’s me!`; text without such gaps
    comes back as it is, but for blanks and line breaks, which become single spaces.
    """
    text = _TORN.sub(r"\1", " ".join(text.split()))
    return _OPENED.sub(r"\1", _LOOSE.sub("", text))
