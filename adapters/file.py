"""Finished responses as a row beside systems that are trained here.

A line of the file answers the example with its id; without ids, lines answer the examples in
order if there are as many, else those with the same context. Wherever a line gives a context, the
turns it shares with the example's must hold the same words. Text and tables are read as well, text
in the order of the examples.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from dialbench.adapter import Adapter, Card, Run
from dialbench.errors import SystemFailed
from dialbench.files.checksum import sha256_of
from dialbench.files.outputs import read_outputs, stem
from dialbench.files.responses import ResponseLine
from dialbench.records import Context, Decoding
from dialbench.text.alignment import align


@dataclass(frozen=True)
class FileConfig:
    """Which responses, and how they are called.

    Attributes:
        path: a file as `dialbench score` reads it: JSON lines, text, CSV or TSV.
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
        return config.name or stem(Path(config.path))

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
            run.progress.warn(
                f"{unused:,} responses of its file belong to no example that was asked for"
            )
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


def _match_responses(
    config: FileConfig, contexts: Sequence[Context]
) -> tuple[list[ResponseLine], int]:
    # The line of each context, and how many lines are left over.
    path = Path(config.path)
    lines = list(read_outputs(path, where="--models file path"))
    return align(lines, contexts, path, limit="--limit-test")
