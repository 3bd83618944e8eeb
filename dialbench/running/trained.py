"""Trained systems of a runs folder, asked for responses outside of a run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from dialbench.adapter import Adapter, Run
from dialbench.errors import InputError, StorageError, SystemFailed
from dialbench.foreign import reason_of, require_texts, streams_kept
from dialbench.records import Context, Decoding, Job
from dialbench.running.options import resolved_device
from dialbench.store.finished import SYSTEM, is_finished, read_finished, verified_system
from dialbench.store.layout import Store
from dialbench.systems import Plugin, Registry, System

_AGAIN_HINT = "Get the whole folder again."


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
            SystemFailed: it raises an error, or returns something else.
        """
        chosen = decoding if isinstance(decoding, Decoding) else Decoding.parse(decoding)
        self.require_decoding(chosen)
        asked = [_as_context(context, number) for number, context in enumerate(contexts)]
        with TemporaryDirectory() as folder, streams_kept():
            run = Run(self.job.seed, self.device, Path(folder), data=self.data)
            try:
                texts = self.adapter.respond(asked, chosen, run)
                require_texts(texts, len(asked))
            except (InputError, StorageError, KeyboardInterrupt):
                raise
            except BaseException as error:  # a system that calls exit() fails like any other
                raise SystemFailed(reason_of(error), where=self.name) from error
        return texts

    def require_decoding(self, decoding: Decoding) -> None:
        """Checks that the system can choose its words by `decoding`.

        Raises:
            InputError: it cannot.
        """
        if not self.adapter.supports(decoding):
            raise InputError(f"{self.name} cannot respond with {decoding}", where="decoding")


def load(
    runs: Path | str,
    system: str | None = None,
    *,
    corpus: str | None = None,
    seed: int | None = None,
    device: str = "auto",
    data: Path | None = None,
    plugins: Iterable[Plugin] = (),
) -> TrainedSystem:
    """Loads a trained system.

    Args:
        runs: the folder that `run` wrote to, or one that `push` or `pull` wrote.
        system: its name, with options as in `--models`; None: the only one that is trained there.
        corpus: what it was trained on; needed where there are several.
        seed: of its training; by default the lowest.
        device: auto, cpu or cuda.
        data: the data folder, for systems that read files of it.
        plugins: further systems: files or classes.

    Raises:
        InputError: there is no such system, it is not trained, or several trainings fit.
        StorageError: a file is damaged.
    """
    found = find(runs, system, corpus=corpus, seed=seed, plugins=plugins)
    adapter = found.adapter.load(found.folder / SYSTEM, found.config)
    return TrainedSystem(found.name, found.job, adapter, resolved_device(device), data)


@dataclass(frozen=True)
class FoundSystem:
    """A trained system on the disk, its files compared with their checksums.

    Attributes:
        name: what `--models` calls it.
        adapter, config: its class, and what it was trained with.
        job: what it was trained for.
        folder: which has its record, and the system's own files in `system`.
    """

    name: str
    adapter: type[Adapter]
    config: Any
    job: Job
    folder: Path


def find(
    runs: Path | str,
    system: str | None = None,
    *,
    corpus: str | None = None,
    seed: int | None = None,
    plugins: Iterable[Plugin] = (),
) -> FoundSystem:
    """Finds what `load` loads; arguments and errors as there."""
    root = Path(runs)
    pushed = read_finished(root) if is_finished(root) else None
    if system is None:
        system = pushed.job.system if pushed else _only_system(Store(root))
    named, *others = Registry(plugins).parse(system, where="system")
    if others:
        raise InputError(
            f"{system} is more than one system", where="system", hint="Give one system."
        )
    job = pushed.job.job() if pushed else _training_of(named.name, Store(root), corpus, seed)
    if job.system != named.name:
        raise InputError(f"it holds {job.system}, not {named.name}", where=str(root))
    config = System(named.name, named.adapter, named.speed).config(job.training["config"])
    if job.training["version"] != named.adapter.version:
        raise InputError(
            f"{named.name} was trained by version {job.training['version']} of its code, which is"
            f" {named.adapter.version} now",
            where=str(runs),
            hint="Train it again.",
        )
    _require_same_checkpoint(named.name, named.adapter, config, job)
    trained = verified_system(root, pushed, _AGAIN_HINT) if pushed else Store(root).trained(job)
    if trained is None:
        raise InputError(f"{named.name} is not trained", where=str(runs))
    return FoundSystem(named.name, named.adapter, config, job, trained.parent)


def _require_same_checkpoint(name: str, adapter: type[Adapter], config: Any, job: Job) -> None:
    # A checkpoint is read at every load; vectors and tags were read in training alone.
    known = job.training.get("outside", {}).get("weights")
    if known and adapter.inspect(config, ()).get("weights") != known:
        raise InputError(
            f"the checkpoint of {name} has changed since the run that used it",
            where=f"weights={config.weights}",
            hint="Put the former one back, or run it again.",
        )


def _only_system(store: Store) -> str:
    names = sorted({job.system for job in store.jobs() if store.trained_record(job)})
    if not names:
        hint = "Name a folder of `run`."
        raise InputError(f"no system is trained in {store.root}", where="system", hint=hint)
    if len(names) > 1:
        what = f"several systems are trained there: {', '.join(names)}"
        raise InputError(what, where="system", hint="Name one of them.")
    return names[0]


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
