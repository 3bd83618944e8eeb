"""Trained systems of a runs folder, asked for responses outside of a run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from dialbench.adapter import Adapter, Run
from dialbench.errors import InputError
from dialbench.records import Context, Decoding, Job
from dialbench.running.options import resolved_device
from dialbench.store.layout import Store
from dialbench.systems import Plugin, Registry, System


@dataclass(frozen=True)
class TrainedSystem:
    """A system as a run trained it.

    Attributes:
        name: what `--models` calls it.
        job: what it was trained for.
        adapter: the system with its weights.
        device: a torch device name, already resolved.
        data: the data folder that the user named.
    """

    name: str
    job: Job
    adapter: Adapter
    device: str = "cpu"
    data: Path | None = None

    def respond(
        self, contexts: Sequence[Sequence[str]], decoding: Decoding | str = "greedy"
    ) -> list[str]:
        """Responds to each context.

        Args:
            contexts: turns, oldest first; a `Context` has an id, which seeds what is drawn for it.
                Others are called by their number.
            decoding: as `--decoding` takes it.

        Returns:
            A response for each context, in order.

        Raises:
            InputError: the decoding is unknown or not for this system, or a context has no turn.
        """
        chosen = decoding if isinstance(decoding, Decoding) else Decoding.parse(decoding)
        self.require_decoding(chosen)
        asked = [_as_context(context, number) for number, context in enumerate(contexts)]
        with TemporaryDirectory() as folder:
            run = Run(self.job.seed, self.device, Path(folder), data=self.data)
            return self.adapter.respond(asked, chosen, run)

    def require_decoding(self, decoding: Decoding) -> None:
        """Checks that the system can choose its words by `decoding`.

        Raises:
            InputError: it cannot.
        """
        if not self.adapter.supports(decoding):
            raise InputError(f"{self.name} cannot respond with {decoding}", where="decoding")


def load(
    runs: Path | str,
    system: str,
    *,
    corpus: str | None = None,
    seed: int | None = None,
    device: str = "auto",
    data: Path | None = None,
    plugins: Iterable[Plugin] = (),
) -> TrainedSystem:
    """Loads a trained system.

    Args:
        runs: the folder that `run` wrote to.
        system: its name, with options as in `--models`.
        corpus: what it was trained on; needed where there are several.
        seed: of its training; by default the lowest.
        device: auto, cpu or cuda.
        data: the data folder, for systems that read files of it.
        plugins: further systems: files or classes.

    Raises:
        InputError: there is no such system, it is not trained, or several trainings fit.
        StorageError: a file is damaged.
    """
    named, *others = Registry(plugins).parse(system, where="system")
    if others:
        raise InputError(
            f"{system} is more than one system", where="system", hint="Give one system."
        )
    store = Store(Path(runs))
    job = _training_of(named.name, store, corpus, seed)
    config = System(named.name, named.adapter, {}).config(job.training["config"])
    if job.training["version"] != named.adapter.version:
        raise InputError(
            f"{named.name} was trained by version {job.training['version']} of its code, which is"
            f" {named.adapter.version} now",
            where=str(runs),
            hint="Train it again.",
        )
    folder = store.trained(job)
    if folder is None:
        raise InputError(f"{named.name} is not trained", where=str(runs))
    adapter = named.adapter.load(folder, config)
    return TrainedSystem(named.name, job, adapter, resolved_device(device), data)


def _training_of(name: str, store: Store, corpus: str | None, seed: int | None) -> Job:
    """A job with the only training of a system that fits; of several seeds the lowest."""
    trained = [job for job in store.jobs() if store.trained_record(job)]
    of_name = [job for job in trained if job.system == name and corpus in (None, job.corpus)]
    fitting = [job for job in of_name if seed in (None, job.seed)]
    if not fitting:
        on = f" on {corpus}" if corpus else ""
        under = f" with seed {seed}" if of_name else ""
        known = {str(job.seed) for job in of_name} or {job.system for job in trained}
        kind = "Its seeds" if of_name else "Trained there"
        hint = f"{kind}: {', '.join(sorted(known))}." if known else "Name a folder of `run`."
        raise InputError(f"{name} is not trained{on}{under}", where=str(store.root), hint=hint)
    lowest = min(job.seed for job in fitting)
    different = {job.training_fingerprint: job for job in fitting if job.seed == lowest}
    if len(different) > 1:
        corpora = sorted({job.corpus for job in different.values()})
        hint = f"Name one of the corpora {', '.join(corpora)}." if len(corpora) > 1 else ""
        raise InputError(
            f"{name} was trained with {len(different)} different settings or data sets",
            where=str(store.root),
            hint=hint or "Give a runs folder that holds only one of them.",
        )
    return next(iter(different.values()))


def _as_context(turns: Sequence[str], number: int) -> Context:
    if isinstance(turns, str) or not turns:
        raise InputError("a context is a list of at least one turn", where=f"context {number + 1}")
    return turns if isinstance(turns, Context) else Context(turns, str(number))
