"""How a run is done: one declaration for the command line and for Python."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, get_args

from dialbench.errors import InputError, UnknownName
from dialbench.extras import are_installed, require_installed
from dialbench.options import Help

Overwrite = Literal["never", "missing", "always"]
Mode = Literal["rich", "plain", "none"]


@dataclass(frozen=True)
class RunOptions:
    """Where and how far jobs are run, and how that is shown.

    Attributes:
        device: auto, cpu or cuda.
        jobs: how many go on at once, each in a process of its own that shares the cores with the
            others; 1 stays in this process, None takes what suits the machine.
        deadline: seconds after which training stops; each system answers with its best epoch.
        overwrite: `missing` does what is not finished, `always` begins anew, `never` leaves alone
            whatever was ever begun.
        answers_only: stop before scoring, which needs more packages than training does.
        progress: rich, plain or none.
        tracker: trackers that are told losses and scores, by name.
    """

    device: Annotated[str, Help("Where to train and answer.  [default: auto]", "auto|cpu|cuda")] = (
        "auto"
    )
    jobs: Annotated[
        int | None,
        Help(
            "Jobs to run at once, a process each.  [default: on a CPU one a core, at most 4]", "N"
        ),
    ] = 1
    deadline: Annotated[
        float | None,
        Help("Stop training after so many seconds and answer with the best epochs.", "SECONDS"),
    ] = None
    overwrite: Annotated[
        Overwrite,
        Help(
            "Which jobs to run again: none ever started, the unfinished, or all."
            "  [default: missing]"
        ),
    ] = "missing"
    answers_only: Annotated[bool, Help("Train and respond; score nothing.")] = False
    progress: Annotated[Mode, Help("How to show progress.  [default: rich]")] = "none"

    tracker: Annotated[
        Sequence[str],
        Help("Also tell losses and scores to tensorboard, or another tracker.", "NAMES"),
    ] = ()

    def __post_init__(self) -> None:
        for name, kinds in (("jobs", int), ("deadline", int | float)):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, kinds)):
                raise InputError(
                    f"{value!r} is no number", where=f"--{name}", hint="Give a number."
                )
        if self.progress not in get_args(Mode):
            raise UnknownName.of("value", self.progress, get_args(Mode), where="--progress")
        if self.jobs is not None and self.jobs < 1:
            raise InputError(f"{self.jobs} is below 1", where="--jobs", hint="Give 1 or more.")
        if self.overwrite not in get_args(Overwrite):
            raise UnknownName.of("value", self.overwrite, get_args(Overwrite), where="--overwrite")
        if self.deadline is not None and not 0 <= self.deadline < math.inf:
            raise InputError(
                f"{self.deadline:g} seconds are none", where="--deadline", hint="Give 0 or more."
            )


def resolved_device(name: str) -> str:
    """The torch device that `--device` names; a CPU without torch, which few rows need not.

    Raises:
        InputError: there is no such device.
    """
    if name == "cpu" or (name == "auto" and not are_installed("torch")):
        return "cpu"
    require_installed("torch", where=f"--device {name}")
    from dialbench.neural.devices import resolve

    return resolve(name)
