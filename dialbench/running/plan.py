"""What to run: systems x corpora x seeds x decodings, as jobs with fingerprints."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from dialbench.corpora.base import load_corpus
from dialbench.corpora.corpus import Corpus, sample
from dialbench.errors import InputError
from dialbench.options import split_outside_brackets, write_options
from dialbench.presets.preset import Preset
from dialbench.presets.preset import load as load_preset
from dialbench.records import Context, Decoding, Job, Split, fingerprint_of
from dialbench.suites.suite import Group, RunnableSuite, Suite, SuiteRow, TopicSuite
from dialbench.suites.suite import load_runnable as load_suite
from dialbench.systems import Registry, System


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
        limit_train: learn from so many examples, of whole dialogues drawn at random.
        limit_test: answer only the first examples; "all" wins over a preset's limit.
        clean: leave out test dialogues that occur in train.
        samples: responses drawn to each context.
        plugins: files with further systems.
        suite: the rows of a paper's table, in place of models, corpora and decodings.
    """

    models: str = "all"
    corpora: str = "demo"
    preset: str = "quick"
    seeds: tuple[int, ...] | None = None
    decodings: str = "greedy"
    data: Path | None = None
    context_turns: int | None = None
    limit_train: int | None = None
    limit_test: int | Literal["all"] | None = None
    clean: bool = False
    samples: int = 1
    plugins: tuple[Path, ...] = ()
    suite: Suite | TopicSuite | None = None

    @classmethod
    def of_suite(cls, name: str, *, corpus: str | None = None, **given: Any) -> Request:
        """What a suite asks for.

        Args:
            name: a suite or FILE.toml.
            corpus: answers all rows on this one corpus instead.
            given: fields of the request that win over the suite's.

        Raises:
            InputError: there is no such suite, or it is faulty.
        """
        suite = load_suite(name)
        suite = suite.on(corpus) if corpus else suite
        own = {key: getattr(suite, key) for key in ("preset", "seeds", "context_turns")}
        return cls(suite=suite, **{**own, **given})

    @property
    def scoring(self) -> dict[str, Any]:
        """The options of scoring that follow from it, as fields of `ScoringOptions`."""
        suite = self.suite
        own = {"metrics": suite.metrics, "denominator": suite.denominator} if suite else {}
        return {"data": self.data, **own}


@dataclass(frozen=True, eq=False)
class Dataset:
    """A corpus as this plan uses it: three splits, perhaps cut short.

    Attributes:
        training: what training depends on, as JSON-like values.
        answering: what answering depends on.
        notes: warnings that belong under every table on it.
        learnt_from: whether any system of the plan learns from it.
        samples: responses to be drawn to each context.
        data: the data folder that the user named.
    """

    corpus: Corpus
    train: Split
    valid: Split
    test: Split
    training: dict[str, Any]
    answering: dict[str, Any]
    notes: tuple[str, ...]
    learnt_from: bool = True
    samples: int = 1
    data: Path | None = None

    @cached_property
    def contexts(self) -> tuple[Context, ...]:
        """What is to be answered, as systems see it."""
        return tuple(example.blind() for example in self.test)


@dataclass(frozen=True, eq=False)
class Task:
    """A job with what it takes to do it.

    Attributes:
        base: what must be trained before, once for all tasks that start from it; it has a row
            of its own only where the user asked for one.
    """

    job: Job
    system: System
    dataset: Dataset
    preset: Preset
    base: Task | None = None

    @property
    def answers_fingerprint(self) -> str:
        """Names the responses: those of all seeds are the same where none plays a part."""
        seeded = self.system.adapter.seeded(self.job.decoding)
        return (self.job if seeded else dataclasses.replace(self.job, seed=0)).fingerprint

    @property
    def label(self) -> str:
        """The row's name: the system's title with its options."""
        config = self.system.config(self.preset.system)
        title = self.system.adapter.title(config) or self.system.name
        told = self.system.adapter.titled_options
        options = {key: value for key, value in self.system.options.items() if key not in told}
        return f"{title} {write_options(options)}".rstrip()


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
        missing: dict[str, str] = {}
        if request.suite is None:
            wanted = _product(request, registry, preset)
        else:
            systems, missing = systems_of(request.suite, registry)
            wanted = _rows_of(request.suite, systems, request.seeds, preset)
        skipped = registry.broken | {f"row {label}": why for label, why in missing.items()}
        _check_decodings(wanted, f"--suite {request.suite.name}" if request.suite else "--decoding")
        rows: dict[str, list[_Wanted]] = {}
        for row in wanted:
            rows.setdefault(row.corpus, []).append(row)
        datasets = {name: _dataset(name, request, preset, own) for name, own in rows.items()}
        planned = (_task(row, datasets[row.corpus]) for row in wanted)
        tasks = {task.job.fingerprint: task for task in planned}
        return cls(tuple(tasks.values()), tuple(datasets.values()), preset, skipped)


@dataclass(frozen=True)
class _Wanted:
    """A job before its corpus is read."""

    system: System
    corpus: str
    seed: int
    decoding: Decoding
    preset: Preset

    @property
    def learns(self) -> bool:
        """Whether it takes anything from the training split."""
        return self.system.adapter.learns(self.system.config(self.preset.system))


def _product(request: Request, registry: Registry, preset: Preset) -> list[_Wanted]:
    systems = registry.parse(request.models)
    decodings = [Decoding.parse(text) for text in split_outside_brackets(request.decodings)]
    if not decodings:
        raise InputError("no decoding is named", where="--decoding", hint="Write greedy.")
    corpora = [name.strip() for name in request.corpora.split(",") if name.strip()]
    if not corpora:
        raise InputError("no corpus is named", where="--corpus")
    return [
        _Wanted(system, corpus, seed, decoding, preset)
        for corpus in corpora
        for system in systems
        for seed in dict.fromkeys(request.seeds or preset.seeds)
        for decoding in decodings
    ]


def systems_of(
    suite: RunnableSuite, registry: Registry
) -> tuple[dict[str, System], dict[str, str]]:
    """The systems of a suite's rows, and the reasons of those that are not here, by label.

    Raises:
        InputError: a row's options do not fit its system.
    """
    systems, missing = {}, {row.name: row.absent for row in suite.rows if row.absent}
    for row in (row for row in suite.rows if row.system):
        where = f"{suite.name}, row {row.name}"
        try:
            registry.get(row.system.partition("[")[0].strip())
        except InputError as error:
            missing[row.name] = error.what
        else:
            (systems[row.name],) = registry.parse(row.system, where=where)
    return systems, missing


def under(preset: Preset, group: Group, row: SuiteRow) -> Preset:
    """The preset with what a row of a suite needs in place of its values."""
    settings = group.settings.get(preset.name, {}) | row.settings.get(preset.name, {})
    return preset.model_copy(update={"system": {**preset.system, **settings}})


def _rows_of(
    suite: RunnableSuite, systems: Mapping[str, System], seeds: Sequence[int] | None, preset: Preset
) -> list[_Wanted]:
    if not systems:
        raise InputError("none of its rows can be run here", where=f"--suite {suite.name}")
    return [
        _Wanted(
            systems[row.name],
            group.corpus,
            seed,
            Decoding.parse(row.decoding),
            under(preset, group, row),
        )
        for group in suite.groups
        for row in suite.rows
        if row.name in systems
        for seed in dict.fromkeys(seeds or preset.seeds)
    ]


def _check_decodings(wanted: Iterable[_Wanted], where: str) -> None:
    for row in wanted:
        if not row.system.adapter.supports(row.decoding):
            raise InputError(
                f"{row.system.name} cannot decode with {row.decoding}",
                where=where,
                hint="Leave that model or that decoding out.",
            )


def _limits(request: Request, preset: Preset, rows: Sequence[_Wanted]) -> dict[str, int | None]:
    """How many examples of each split are used at most."""
    asked = None if request.limit_test == "all" else request.limit_test
    limits = {
        "train": request.limit_train or preset.limit_train,
        "valid": preset.limit_valid,
        "test": preset.limit_test if request.limit_test is None else asked,
    }
    if request.limit_train:
        # A tenth is enough to decide when to stop, and keeps a trial run short.
        tenth = max(100, request.limit_train // 10)
        limits["valid"] = min(tenth, limits["valid"] or tenth)
    competing = [row.system.adapter for row in rows if row.system.adapter.ranked]
    if competing and all(adapter.finished for adapter in competing):
        # Reading further responses takes no time that a preset could save.
        limits["test"] = asked
    return limits


def _dataset(name: str, request: Request, preset: Preset, rows: Sequence[_Wanted]) -> Dataset:
    learnt_from = any(row.learns for row in rows)
    corpus = load_corpus(
        name,
        data=request.data,
        context_turns=request.context_turns or preset.context_turns,
        clean=request.clean,
        test_only=not learnt_from,
    )
    if learnt_from:
        _require_training_data(corpus, rows, f"--corpus {name}")
    limits = _limits(request, preset, rows)
    train, valid = (sample(corpus.split(part), limits[part]) for part in ("train", "valid"))
    test = corpus.test[: limits["test"]]
    learnt = {part: len(split) for part, split in (("train", train), ("valid", valid))}
    whole = len(train) == len(corpus.train) and len(valid) == len(corpus.valid)
    drawn = {} if whole else {"drawn": "dialogues"}
    several = {"samples": request.samples} if request.samples > 1 else {}
    return Dataset(
        corpus,
        train,
        valid,
        test,
        {"data": corpus.checksum_of("train", "valid"), "examples": learnt, **drawn},
        {"data": corpus.checksum_of("test"), "examples": len(test), **several},
        (
            *corpus.notes,
            *_limit_notes(corpus, train if learnt_from else corpus.train, test),
            *_samples_notes(request.samples),
            *_preset_notes(preset, rows),
        ),
        learnt_from,
        request.samples,
        request.data,
    )


def _require_training_data(corpus: Corpus, rows: Iterable[_Wanted], where: str) -> None:
    learning = dict.fromkeys(row.system.name for row in rows if row.learns)
    missing = [split for split in ("train", "valid") if not corpus.items[split]]
    if missing:
        raise InputError(
            f"there is no {' and no '.join(missing)} split to train {', '.join(learning)} on",
            where=where,
            hint="Only finished responses and systems that train nothing can be run on it.",
        )


def _limit_notes(corpus: Corpus, train: Split, test: Split) -> list[str]:
    used = [
        ("trained on {} examples, of dialogues drawn at random", train, corpus.train),
        ("answered the first {} examples", test, corpus.test),
    ]
    parts = [
        text.format(f"{len(part):,} of {len(whole):,}")
        for text, part, whole in used
        if len(part) < len(whole)
    ]
    return [f"{corpus.title}, limited run: {'; '.join(parts)}"] if parts else []


def _samples_notes(samples: int) -> list[str]:
    if samples == 1:
        return []
    return [f"{samples} responses drawn to each context; columns not within contexts: the first"]


def _preset_notes(preset: Preset, rows: Iterable[_Wanted]) -> list[str]:
    """What the preset means for those that compete; finished ones know nothing of its sizes."""
    learning = any(row.learns and row.system.adapter.ranked for row in rows)
    recipe = [f"Every trained system: {preset.recipe}"] if preset.recipe else []
    return [f"Preset {preset.name}: {preset.summary}", *recipe] if learning else []


def _task(row: _Wanted, dataset: Dataset) -> Task:
    system, preset = row.system, row.preset
    found = system.adapter.inspect(system.config(preset.system), dataset.contexts, dataset.data)
    outside = {"outside": dict(found)} if found else {}
    training = {**recipe(system, preset), **outside, **dataset.training}
    base = _base(row, dataset)
    if base is not None:
        # Its seed is this job's own.
        training["base"] = {"system": base.job.system, **base.job.training}
    corpus = dataset.corpus.name
    answering = dict(dataset.answering)
    job = Job(system.name, corpus, row.seed, row.decoding, preset.name, training, answering)
    return Task(job, system, dataset, preset, base)


def _base(row: _Wanted, dataset: Dataset) -> Task | None:
    system = row.system.base(row.preset.system)
    # It only learns, so that any decoding would do.
    wanted = system and dataclasses.replace(row, system=system, decoding=Decoding())
    return _task(wanted, dataset) if wanted else None


def recipe(system: System, preset: Preset) -> dict[str, Any]:
    """What a training depends on besides its data: the options and the version of the code."""
    adapter = system.adapter
    options = dataclasses.asdict(system.config(preset.system))
    matters = {key: value for key, value in options.items() if key not in adapter.speed_options}
    return {"config": matters, "version": adapter.version}


def setting_of(job: Job) -> str:
    """Jobs of one setting learnt from and answered the same examples: they share a table."""
    learnt = {key: job.training.get(key) for key in ("data", "examples")}
    return fingerprint_of([job.corpus, job.preset, learnt, dict(job.answering)])
