"""Which response answers which context: by id, by order, or by the words of the context."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from pathlib import Path

from dialbench.errors import InputError
from dialbench.files.responses import ResponseLine
from dialbench.records import Context
from dialbench.text.tokenizer import tokenize

_ADD_HINT = "Give every response the id or the context of the example it answers."


def align(
    lines: Sequence[ResponseLine], contexts: Sequence[Context], path: Path, *, limit: str = ""
) -> tuple[list[ResponseLine], int]:
    """The line that answers each context, and how many lines are left over.

    A line answers the example with its id; without ids, lines answer the examples in order if
    there are as many, else those with the same context. Wherever a line gives a context, the turns
    it shares with the example's must hold the same words.

    Args:
        lines: of a file of responses.
        contexts: with the ids of their examples, in test order.
        path: the file, for errors.
        limit: the option that takes fewer examples, if there is one.

    Raises:
        InputError: an example has no response, or a line answers another context.
    """
    if any(line.id is not None for line in lines):
        candidates = _by_id(lines, contexts)
    elif len(lines) == len(contexts):
        candidates = list(lines)
    elif not any(line.context for line in lines):
        all_of_them = f"; the whole test split is answered with {limit} all" if limit else ""
        raise InputError(
            f"{len(lines):,} responses without id or context for {len(contexts):,} examples",
            where=str(path),
            hint=f"Give one for every example, in order{all_of_them}.",
        )
    else:
        candidates = _by_context(lines, contexts)
    matched = [line for line in candidates if line is not None]
    if len(matched) < len(contexts):
        raise _missing_error(lines, contexts, candidates, limit)
    for line, context in zip(matched, contexts, strict=True):
        _require_same_context(line, context)
    return matched, len(lines) - len(matched)


def _by_id(lines: Sequence[ResponseLine], contexts: Sequence[Context]) -> list[ResponseLine | None]:
    for line in lines:
        if line.id is None:
            raise InputError(
                "this line has no id, but others have",
                where=line.where,
                hint="Give every response its example's id, or leave all ids out.",
            )
    by_id = {line.id: line for line in lines}
    return [by_id.get(context.example) for context in contexts]


def _by_context(
    lines: Sequence[ResponseLine], contexts: Sequence[Context]
) -> list[ResponseLine | None]:
    # Examples of the same context take their lines in order.
    by_words: dict[tuple[str, ...], deque[ResponseLine]] = defaultdict(deque)
    for line in lines:
        if line.context:
            by_words[_words(line.context)].append(line)
    return [
        same.popleft() if (same := by_words.get(_words(context))) else None for context in contexts
    ]


def _words(context: Sequence[str]) -> tuple[str, ...]:
    return tuple(" ".join(tokenize(turn)) for turn in context)


def _require_same_context(line: ResponseLine, context: Context) -> None:
    shared = min(len(line.context), len(context))
    if shared and _words(line.context[-shared:]) != _words(context[-shared:]):
        by = f"the example {context.example}" if line.id is not None else "that of its place"
        raise InputError(
            f"answers another context than {by} has",
            where=line.where,
            hint="Answer the test split of the same corpus, in its order or with its ids.",
        )


def _missing_error(
    lines: Sequence[ResponseLine],
    contexts: Sequence[Context],
    candidates: Sequence[ResponseLine | None],
    limit: str,
) -> InputError:
    gap = candidates.index(None)
    count = sum(line is None for line in candidates)
    used = {id(line) for line in candidates}
    stray = next((line for line in lines if id(line) not in used), lines[-1])
    foreign = "this line answers no example, and " if id(stray) not in used else ""
    fewer = f"Add them, or answer the first {gap:,} only with {limit} {gap}."
    return InputError(
        f"{foreign}{count:,} of {len(contexts):,} examples have no response in the file, "
        f"the first being {contexts[gap].example}",
        where=stray.where,
        hint=fewer if gap and limit else _ADD_HINT,
    )
