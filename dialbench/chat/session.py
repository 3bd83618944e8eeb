"""A conversation of one person with several systems, each with a history of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dialbench.chat.transcript import responses_in
from dialbench.errors import InputError
from dialbench.files.responses import write_responses
from dialbench.records import Context, Decoding
from dialbench.running.trained import TrainedSystem
from dialbench.text.cleaning import slug


@dataclass
class Session:
    """What was said so far.

    Attributes:
        systems: those that respond, each under a name of its own.
        decoding: how they choose their words.
        turns: by system, the person's turns and its own in alternation, oldest first.
    """

    systems: Sequence[TrainedSystem]
    decoding: Decoding = field(default_factory=Decoding)
    turns: dict[str, list[str]] = field(init=False)

    def __post_init__(self) -> None:
        names = [system.name for system in self.systems]
        if repeated := sorted({name for name in names if names.count(name) > 1}):
            raise InputError(f"{repeated[0]} is named twice", where="SYSTEM")
        self.use(self.decoding)
        self.reset()

    def use(self, decoding: Decoding) -> None:
        """Lets all systems choose their words by `decoding` from now on.

        Raises:
            InputError: one of them cannot.
        """
        for system in self.systems:
            system.require_decoding(decoding)
        self.decoding = decoding

    def reset(self) -> None:
        """Forgets all turns."""
        self.turns = {system.name: [] for system in self.systems}

    def undo(self) -> None:
        """Forgets the person's last turn and the responses to it."""
        for turns in self.turns.values():
            del turns[-2:]

    def say(self, text: str) -> dict[str, str]:
        """The responses of all systems to a turn of the person, by name.

        If one fails, nothing is added to any history.
        """
        responses = {}
        for system in self.systems:
            turns = [*self.turns[system.name], text]
            context = Context(turns, f"chat-{len(turns)}")
            (responses[system.name],) = system.respond([context], self.decoding)
        for name, response in responses.items():
            self.turns[name] += [text, response]
        return responses

    def save(self, path: Path) -> list[Path]:
        """Writes the responses with their contexts as `score` reads them.

        Args:
            path: of the file; with several systems, each has one with its name in it.

        Returns:
            The files.

        Raises:
            InputError: nothing was said yet, or the name is not that of a file of JSON lines.
            StorageError: the disk refuses.
        """
        if path.suffix != ".jsonl":
            raise InputError("it is not called FILE.jsonl", where=str(path), hint="Name it so.")
        if not any(self.turns.values()):
            hint = "Say something first; what was saved before stays as it is."
            raise InputError("nothing was said that could be saved", where=str(path), hint=hint)
        several = len(self.systems) > 1
        paths = []
        for name, turns in self.turns.items():
            file = path.with_stem(f"{path.stem}-{slug(name)}") if several else path
            write_responses(file, responses_in("chat", turns, every=2))
            paths.append(file)
        return paths
