"""A comparison with a baseline as the text of a pull-request comment."""

from __future__ import annotations

from collections.abc import Iterable

from dialbench.checking.wording import HEADS, Words
from dialbench.reporting.formats.to_markdown import escape, table_row


def checked_to_markdown(words: Words, title: str, *, updated: bool = False) -> str:
    """Verdict, causes and problems, a table of cells, the first responses.

    Args:
        words: what to say, in its public form.
        title: what was compared.
        updated: whether the baseline was written anew.
    """
    verdict = "updated" if updated else "as before" if words.ok else "numbers moved"
    lines = [
        f"**{escape(title)}: {verdict}** - {escape(words.headline)}",
        "",
        *_list("Cause: ", words.why),
        *_list("", words.problems),
        "",
        *_cells(words),
        *_responses(words),
        *_list("", words.notes),
        "",
        escape(words.next),
    ]
    return "\n".join(lines).rstrip("\n") + "\n"


def _list(start: str, lines: Iterable[str]) -> list[str]:
    return [f"- {start}{escape(line)}" for line in lines]


def _cells(words: Words) -> list[str]:
    if not words.cells:
        return []
    rows = [table_row([escape(text) for text in line]) for line in words.cells]
    more = [f"and {words.more_cells:,} more", ""] if words.more_cells else []
    rules = table_row([":---", ":---", "---:", "---:", "---:", ":---"])
    return [table_row(list(HEADS)), rules, *rows, "", *more]


def _responses(words: Words) -> list[str]:
    if not words.responses:
        return []
    lines = [
        f"- {escape(where)}<br>before: {escape(old)}<br>now: {escape(new)}"
        for where, old, new in words.responses
    ]
    more = [f"- and {words.more_responses:,} more"] if words.more_responses else []
    return ["The first responses that changed:", "", *lines, *more, ""]
