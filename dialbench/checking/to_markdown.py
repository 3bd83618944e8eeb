"""Writes a comparison with a baseline as the text of a pull-request comment."""

from __future__ import annotations

from collections.abc import Iterable

from dialbench.checking.wording import HEADS, Summary
from dialbench.reporting.formats.to_markdown import escape, table_row


def to_markdown(summary: Summary, title: str, *, updated: bool = False) -> str:
    """Verdict, causes and problems, a table of cells, the first responses.

    Args:
        summary: the comparison in words, in its public form.
        title: what was compared.
        updated: whether the baseline was written anew.
    """
    verdict = "updated" if updated else "as before" if summary.ok else "numbers moved"
    lines = [
        f"**{escape(title)}: {verdict}** - {escape(summary.headline)}",
        "",
        *_list("Cause: ", summary.why),
        *_list("", summary.problems),
        "",
        *_cells(summary),
        *_responses(summary),
        *_list("", summary.notes),
        "",
        escape(summary.next),
    ]
    return "\n".join(lines).rstrip("\n") + "\n"


def _list(start: str, lines: Iterable[str]) -> list[str]:
    return [f"- {start}{escape(line)}" for line in lines]


def _cells(summary: Summary) -> list[str]:
    if not summary.cells:
        return []
    rows = [table_row([escape(text) for text in line]) for line in summary.cells]
    more = [f"and {summary.more_cells:,} more", ""] if summary.more_cells else []
    rules = table_row([":---", ":---", "---:", "---:", "---:", ":---"])
    return [table_row(list(HEADS)), rules, *rows, "", *more]


def _responses(summary: Summary) -> list[str]:
    if not summary.responses:
        return []
    lines = [
        f"- {escape(where)}<br>before: {escape(old)}<br>now: {escape(new)}"
        for where, old, new in summary.responses
    ]
    more = [f"- and {summary.more_responses:,} more"] if summary.more_responses else []
    return ["The first responses that changed:", "", *lines, *more, ""]
