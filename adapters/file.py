"""Finished responses as a row beside systems that are trained here.

A line of the file answers the example with its id; without ids, lines answer the examples in
order if there are as many, else those with the same context. Wherever a line gives a context, the
turns it shares with the example's must hold the same words. A file whose name ends in .txt holds
one response a line, in the order of the examples.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from dialbench.adapter import Adapter, Card, Run
from dialbench.errors import InputError, SystemFailed
from dialbench.files.checksum import sha256_of
from dialbench.files.lines import PACKED
from dialbench.files.responses import ResponseLine, read_plain, read_response_lines
from dialbench.records import Context, Decoding
from dialbench.text.tokenizer import tokenize


@dataclass(frozen=True)
class FileConfig:
    """Which responses, and how they are called.

    Attributes:
        path: a JSON-lines file as `dialbench score` reads it, or a .txt of a response a line.
        name: of the row; the file's name without its ending if empty.
    """

    path: str = ""
    name: str = ""

    def __post_init__(self) -> None:
        if not self.path:
            raise ValueError("name the responses with path=FILE.jsonl")


class File(Adapter):
    """Responses that another program gave."""

    name = "file"
    card = Card(title="", family="other", summary="finished responses, read from path=FILE.jsonl")
    Config = FileConfig
    config: FileConfig
    finished: ClassVar[bool] = True
    titled_options: ClassVar[frozenset[str]] = frozenset({"path", "name"})

    @classmethod
    def title(cls, config: FileConfig) -> str:
        """The name that was given, or the file's."""
        return config.name or _unpacked(config.path).stem

    @classmethod
    def inspect(
        cls, config: FileConfig, contexts: Sequence[Context], data: Path | None = None
    ) -> Mapping[str, Any]:
        """The file's checksum, once every context has its response."""
        _match_responses(config, contexts)
        return {"responses": sha256_of(Path(config.path))}

    def respond(self, contexts: Sequence[Context], decoding: Decoding, run: Run) -> list[str]:
        """The file's responses in the order of the contexts."""
        lines, unused = _match_responses(self.config, contexts)
        run.progress.warn(f"responses of {Path(self.config.path).name}, made elsewhere")
        if unused:
            run.progress.warn(f"{unused:,} further responses of its file answer no example here")
        return [
            _response_of_draw(line, context.draw)
            for line, context in zip(lines, contexts, strict=True)
        ]


def _response_of_draw(line: ResponseLine, draw: int) -> str:
    responses = [line.response, *line.alternatives]
    if draw >= len(responses):
        raise SystemFailed(
            f"there are {len(responses)} responses to this context, fewer than --samples",
            where=line.where,
            hint="Put further ones into 'alternatives', or ask for fewer samples.",
        )
    return responses[draw]


def _unpacked(path: str) -> Path:
    # The file's path without the ending of its packing.
    packed = Path(path)
    return packed.with_suffix("") if packed.suffix in PACKED else packed


def _match_responses(
    config: FileConfig, contexts: Sequence[Context]
) -> tuple[list[ResponseLine], int]:
    # The line of each context, and how many lines are left over.
    read = read_plain if _unpacked(config.path).suffix == ".txt" else read_response_lines
    lines = list(read(Path(config.path), where="--models file path"))
    if any(line.id is not None for line in lines):
        candidates = _by_id(lines, contexts)
    elif len(lines) == len(contexts):
        candidates = list(lines)
    elif not any(line.context for line in lines):
        raise InputError(
            f"{len(lines):,} responses without id or context for {len(contexts):,} examples",
            where=config.path,
            hint="Give one for every example, in order; the whole test split is answered with "
            "--limit-test all.",
        )
    else:
        candidates = _by_context(lines, contexts)
    matched = [line for line in candidates if line is not None]
    if len(matched) < len(contexts):
        raise _missing_error(lines, contexts, candidates)
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
) -> InputError:
    gap = candidates.index(None)
    count = sum(line is None for line in candidates)
    used = {id(line) for line in candidates}
    stray = next((line for line in lines if id(line) not in used), lines[-1])
    foreign = "this line answers no example, and " if id(stray) not in used else ""
    hint = (
        f"Add them, or answer the first {gap:,} only with --limit-test {gap}." if gap else _ADD_HINT
    )
    return InputError(
        f"{foreign}{count:,} of {len(contexts):,} examples have no response in the file, "
        f"the first being {contexts[gap].example}",
        where=stray.where,
        hint=hint,
    )


_ADD_HINT = "Give every response the id or the context of the example it answers."
