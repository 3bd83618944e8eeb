"""What to run: systems x corpora x seeds x decodings, as jobs with fingerprints."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dialbench.adapter import Registry, System, split_outside_brackets
from dialbench.corpora.base import Corpus, load_corpus
from dialbench.errors import InputError
from dialbench.presets import Preset
from dialbench.presets import load as load_preset
from dialbench.records import Decoding, Job, Split, fingerprint_of


@dataclass(frozen=True)
class Request:
    """What a user asks for; whatever is None comes from the preset.

    Attributes:
        models: comma-separated names with options, or `all`.
        corpora: comma-separated names or files of conversations.
        preset: a name or FILE.toml.
        seeds: one training each.
        decodings: comma-separated; a row of the table each.
        data: the folder of corpora.
        context_turns: turns that a context keeps.
        limit_train, limit_test: use only the first examples of a split.
        clean: leave out test dialogues that occur in train.
        plugins: files with further systems.
    """

    models: str = "all"
    corpora: str = "demo"
    preset: str = "quick"
    seeds: tuple[int, ...] | None = None
    decodings: str = "greedy"
    data: Path | None = None
    context_turns: int | None = None
    limit_train: int | None = None
    limit_test: int | None = None
    clean: bool = False
    plugins: tuple[Path, ...] = ()


@dataclass(frozen=True, eq=False)
class Dataset:
    """A corpus as this plan uses it: three splits, perhaps cut short.

    Attributes:
        training: what training depends on, as JSON-like values.
        answering: what answering depends on.
        notes: warnings that belong under every table on it.
    """

    corpus: Corpus
    train: Split
    valid: Split
    test: Split
    training: dict[str, Any]
    answering: dict[str, Any]
    notes: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Task:
    """A job with what it takes to do it."""

    job: Job
    system: System
    dataset: Dataset
    preset: Preset

    @property
    def label(self) -> str:
        """The row's name: the system's title with its options."""
        config = self.system.config(self.preset.system)
        title = self.system.adapter.title(config) or self.system.name
        options = self.system.name.partition("[")[1:]
        return title + (f" {''.join(options)}" if options[0] else "")


@dataclass(frozen=True, eq=False)
class Plan:
    """Everything to be done, in the order of the user's words."""

    tasks: tuple[Task, ...]
    datasets: tuple[Dataset, ...]
    preset: Preset
    skipped: dict[str, str]

    @classmethod
    def of(cls, request: Request) -> Plan:
        """The plan for a request, with every name and file checked.

        Raises:
            InputError: something asked for does not exist or does not fit together.
        """
        preset = load_preset(request.preset)
        registry = Registry(request.plugins)
        systems = registry.parse(request.models)
        decodings = [Decoding.parse(text) for text in split_outside_brackets(request.decodings)]
        _check_decodings(systems, decodings)
        names = [name for name in request.corpora.split(",") if name.strip()]
        if not names:
            raise InputError("no corpus is named", where="--corpus")
        datasets = tuple(_dataset(name.strip(), request, preset) for name in names)
        seeds = dict.fromkeys(request.seeds or preset.seeds)
        tasks = [
            _task(system, dataset, seed, decoding, preset)
            for dataset in datasets
            for system in systems
            for seed in seeds
            for decoding in decodings
        ]
        return cls(tuple(tasks), datasets, preset, registry.broken)


def _check_decodings(systems: Sequence[System], decodings: Sequence[Decoding]) -> None:
    if not decodings:
        raise InputError("no decoding is named", where="--decoding", hint="Write greedy.")
    for decoding in decodings:
        for system in systems:
            if not system.adapter.supports(decoding):
                raise InputError(
                    f"{system.name} cannot decode with {decoding}",
                    where="--decoding",
                    hint="Leave that model or that decoding out.",
                )


def _dataset(name: str, request: Request, preset: Preset) -> Dataset:
    turns = request.context_turns or preset.context_turns
    corpus = load_corpus(name, data=request.data, context_turns=turns, clean=request.clean)
    limits = {
        "train": request.limit_train or preset.limit_train,
        "valid": preset.limit_valid,
        "test": request.limit_test or preset.limit_test,
    }
    if request.limit_train:
        # A tenth is enough to decide when to stop, and keeps a trial run short.
        tenth = max(100, request.limit_train // 10)
        limits["valid"] = min(tenth, limits["valid"] or tenth)
    train, valid, test = (corpus.split(part)[: limits[part]] for part in limits)
    learnt = {part: len(split) for part, split in (("train", train), ("valid", valid))}
    return Dataset(
        corpus,
        train,
        valid,
        test,
        {"data": corpus.checksum_of("train", "valid"), "examples": learnt},
        {"data": corpus.checksum_of("test"), "examples": len(test)},
        (*corpus.notes, *_limit_notes(corpus, train, test), _preset_note(preset)),
    )


def _limit_notes(corpus: Corpus, train: Split, test: Split) -> list[str]:
    used = [("trained on", train, corpus.train), ("answered", test, corpus.test)]
    parts = [
        f"{verb} the first {len(part):,} of {len(whole):,} examples"
        for verb, part, whole in used
        if len(part) < len(whole)
    ]
    return [f"{corpus.title}, limited run: {'; '.join(parts)}"] if parts else []


def _preset_note(preset: Preset) -> str:
    return f"Preset {preset.name}: {preset.summary}"


def _task(system: System, dataset: Dataset, seed: int, decoding: Decoding, preset: Preset) -> Task:
    adapter = system.adapter
    config = dataclasses.asdict(system.config(preset.system))
    matters = {key: value for key, value in config.items() if key not in adapter.speed_options}
    training = {"config": matters, "version": adapter.version, **dataset.training}
    corpus = dataset.corpus.name
    job = Job(system.name, corpus, seed, decoding, preset.name, training, dict(dataset.answering))
    return Task(job, system, dataset, preset)


def setting_of(job: Job) -> str:
    """Jobs of one setting learnt from and answered the same examples: they share a table."""
    learnt = {key: job.training.get(key) for key in ("data", "examples")}
    return fingerprint_of([job.corpus, job.preset, learnt, dict(job.answering)])
