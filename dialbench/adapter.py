"""What a system must be able to do.

A system needs only `respond`; an echo is five lines:

    from dialbench.adapter import Adapter
    class Echo(Adapter):
        name = "echo"
        def respond(self, contexts, decoding, run):
            return [context[-1] for context in contexts]
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

from dialbench.errors import InputError
from dialbench.files.lines import read_file
from dialbench.files.loads import loads
from dialbench.records import Context, Decoding, Split


class Progress:
    """Where a system reports its progress; this class ignores it."""

    def update(self, stage: str, **numbers: float) -> None:
        """Reports how far `stage` ("train", "respond", ...) is: epoch, step, steps, loss, rate."""

    def epoch(self, losses: Mapping[str, float]) -> None:
        """Reports the losses of a finished epoch, a row of what `Adapter.curve` will give."""

    def warn(self, text: str) -> None:
        """Adds a warning to the notes of every table with this system."""

    def cut_short(self, text: str) -> None:
        """As `warn`: training ended early, and a run without a deadline will complete it."""
        self.warn(text)


@dataclass(frozen=True)
class Run:
    """The settings of one training run or of one round of responses.

    Attributes:
        seed: of everything random.
        device: a torch device name, already resolved ("cpu", "cuda").
        folder: the system's own durable folder; what it leaves there survives a kill.
        settings: the preset's values for systems (sizes, epochs, ...), by config field name.
        progress: where to report.
        base: the trained system that this one starts from, as `Adapter.starts_from` asked.
        data: the data folder that the user named, for files that no corpus is (`data_folder` of
            `dialbench.files.folders` takes it); None: $DIALBENCH_DATA or the user cache.
        deadline: when training must end, as `time.time` counts; None for never.
    """

    seed: int
    device: str = "cpu"
    folder: Path = Path()
    settings: Mapping[str, Any] = field(default_factory=dict)
    progress: Progress = field(default_factory=Progress)
    base: Adapter | None = None
    data: Path | None = None
    deadline: float | None = None

    @property
    def overdue(self) -> bool:
        """Whether training must end now."""
        return self.deadline is not None and time.time() >= self.deadline


def deadline_of_first(deadline: float | None, parts: int) -> float | None:
    """The end of the first of `parts` equal shares of the time until `deadline`; None for never."""
    if deadline is None:
        return None
    now = time.time()
    return now + max(0.0, deadline - now) / parts


@dataclass(frozen=True)
class Card:
    """What is known of a system before it runs; shown by `dialbench models`."""

    title: str
    family: Literal["sanity", "recurrent", "transformer", "variational", "pretrained", "other"]
    summary: str
    paper: str = ""
    year: int = 0
    pretrained: bool = False


@dataclass(frozen=True)
class NoOptions:
    """The options of a system that has none."""


class Adapter:
    """A response-generation system under test.

    Class attributes:
        name: how `--models` calls it.
        card: what it is and where it comes from.
        Config: a frozen dataclass; every field is an option `name[field=value]`, its default
            the paper's value.
        version: raised when a change of the code changes the system's responses.
        ranked: False for what tables show for comparison only, without marks and below the others:
            the sanity panel and its upper bound.
        oracle: True only where contexts must carry their references.
        finished: True only where the responses are there before the run, so that no preset needs
            to limit how many are asked for.
        speed_options: options that change how fast it responds, never what.
        titled_options: options that `title` contains, so that the row's name does not repeat them.
    """

    name: ClassVar[str] = ""
    card: ClassVar[Card] = Card("", "other", "")
    Config: ClassVar[type] = NoOptions
    version: ClassVar[int] = 1
    ranked: ClassVar[bool] = True
    oracle: ClassVar[bool] = False
    finished: ClassVar[bool] = False
    speed_options: ClassVar[frozenset[str]] = frozenset()
    titled_options: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, config: Any = None) -> None:
        self.config = self.Config() if config is None else config

    def fit(self, train: Split, valid: Split, run: Run) -> None:
        """Learns from the training split; by default there is nothing to learn.

        Files under `run.folder` survive an interruption, so a long training run can resume.
        """

    def respond(self, contexts: Sequence[Context], decoding: Decoding, run: Run) -> list[str]:
        """One response for each context, in order; an empty string is a valid response."""
        raise NotImplementedError(f"{type(self).__name__} does not define respond")

    def save(self, folder: Path) -> None:
        """Writes what `load` needs: safetensors and JSON, never pickle."""
        state = json.dumps(self.state(), ensure_ascii=False)
        (folder / "state.json").write_text(state, encoding="utf-8")

    @classmethod
    def load(cls, folder: Path, config: Any = None) -> Adapter:
        """The system that `save` wrote."""
        self = cls(config)
        self.set_state(loads(read_file(folder / "state.json")))
        return self

    @classmethod
    def title(cls, config: Any) -> str:
        """How tables call the system under these options."""
        return cls.card.title

    @classmethod
    def inspect(
        cls, config: Any, contexts: Sequence[Context], data: Path | None = None
    ) -> Mapping[str, Any]:
        """Looks at the files that the options name, before anything is trained.

        Args:
            config: the full configuration.
            contexts: those to respond to.
            data: as of `Run`.

        Returns:
            Their checksums, as JSON-like values: other contents are other results.

        Raises:
            InputError: something that it needs is missing or does not fit.
        """
        return {}

    @classmethod
    def convert(cls, source: Path, folder: Path) -> None:
        """Writes weights that another program saved as the system's option `weights` reads them.

        Args:
            source: the folder of the other program's files.
            folder: empty.

        Raises:
            InputError: the system reads no such weights, or they are damaged or another model's.
        """
        raise InputError(f"{cls.name} has no weights to convert", where="convert")

    @classmethod
    def learns(cls, config: Any) -> bool:
        """Whether `fit` takes anything from the training split; it does where it is overridden."""
        return cls.fit is not Adapter.fit

    @classmethod
    def supports(cls, decoding: Decoding) -> bool:
        """Whether the system can respond with this decoding; those that draw no words ignore it."""
        return True

    @classmethod
    def seeded(cls, decoding: Decoding) -> bool:
        """Whether the seed may change the responses.

        Where it does not, a system that costs money or time is asked under one seed only, and the
        others have the same responses.
        """
        return True

    @classmethod
    def starts_from(cls, config: Any) -> type[Adapter] | None:
        """The system whose training must precede this one's; by default there is none.

        It is trained with the options that both know, once for all that start from it, and
        `fit` finds it as `run.base`.
        """
        return None

    def circumstances(self, run: Run) -> Mapping[str, Any]:
        """What may decide near-ties in low precision: device, dtype, threads, batch size."""
        return {"device": "cpu"}

    def curve(self) -> Sequence[Mapping[str, float]]:
        """Losses by epoch: epoch, train_loss, valid_loss and further parts; empty if untrained."""
        return ()

    def state(self) -> Any:
        """What was learned, as a JSON value; for systems without tensors."""
        return None

    def set_state(self, state: Any) -> None:
        """Restores what `state` returned."""

    def facts(self) -> Mapping[str, Any]:
        """Facts about the trained system for readers, e.g. parameter counts."""
        return {}
