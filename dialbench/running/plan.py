"""What to run: systems x corpora x seeds x decodings, as jobs with fingerprints."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal

from dialbench.corpora.base import load_corpus
from dialbench.corpora.corpus import Corpus, sample
from dialbench.errors import InputError
from dialbench.foreign import ask_system
from dialbench.options import split_outside_brackets, write_options
from dialbench.presets.preset import Preset
from dialbench.presets.preset import load as load_preset
from dialbench.records import Context, Decoding, Job, Split, fingerprint_of
from dialbench.suites.suite import Group, RunnableSuite, Suite, SuiteRow, TopicSuite, load_runnable
from dialbench.systems import Plugin, Registry, System


@dataclass(frozen=True)
class Request:
    """What the user asks for; the preset fills in what is None.

    Attributes:
        models: comma-separated names with options, or `all`.
        corpora: comma-separated names or files of conversations.
        preset: a name or FILE.toml.
        seeds: one training run each.
        decodings: comma-separated; a row of the table each.
        data: the folder of corpora.
        context_turns: turns that a context keeps.
        limit_train: train on so many examples, of whole dialogues drawn at random.
        limit_test: respond to the first examples only; "all" wins over a preset's limit.
        clean: leave out test dialogues that occur in train.
        samples: responses drawn to each context.
        plugins: further systems: files or classes.
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
    plugins: tuple[Plugin, ...] = ()
    suite: Suite | TopicSuite | None = None

    def __post_init__(self) -> None:
        if self.data is not None:
            object.__setattr__(self, "data", Path(self.data))
        for seed in self.seeds or ():
            _require_whole("seeds", seed)
        for name in ("context_turns", "limit_train", "limit_test", "samples"):
            value = getattr(self, name)
            if value is not None and (name, value) != ("limit_test", "all"):
                _require_whole(name, value, least=1)

    @classmethod
    def of_suite(cls, name: str, *, corpus: str | None = None, **overrides: Any) -> Request:
        """What a suite asks for.

        Args:
            name: a suite or FILE.toml.
            corpus: answers all rows on this one corpus instead.
            overrides: fields of the request that win over the suite's.

        Raises:
            InputError: there is no such suite, it is faulty, or rows are named besides.
        """
        for field, option in (("models", "--models"), ("decodings", "--decoding")):
            if field in overrides:
                hint = f"Leave {option} out."
                raise InputError("a suite names its own rows", where=option, hint=hint)
        suite = load_runnable(name)
        suite = suite.on(corpus) if corpus else suite
        settings = {key: getattr(suite, key) for key in ("preset", "seeds", "context_turns")}
        return cls(suite=suite, **{**settings, **overrides})

    @property
    def scoring(self) -> dict[str, Any]:
        """The options of scoring that follow from it, as fields of `ScoringOptions`."""
        suite = self.suite
        fields = ("metrics", "denominator", "tokenizer") if suite else ()
        return {"data": self.data, **{name: getattr(suite, name) for name in fields}}


def _require_whole(name: str, value: object, least: int | None = None) -> None:
    # Of Python's callers; the command line has parsed its own.
    where = f"--{name.replace('_', '-')}"
    if not isinstance(value, int):
        raise InputError(f"{value!r} is no whole number", where=where, hint="Give a number.")
    if least is not None and value < least:
        raise InputError(f"{value} is below {least}", where=where, hint=f"Give {least} or more.")


@dataclass(frozen=True, eq=False)
class Dataset:
    """A corpus as this plan uses it: three splits, perhaps cut short.

    Attributes:
        training: what training depends on, as JSON-like values.
        answering: what answering depends on.
        notes: warnings that belong under every table on it.
        is_trained_on: whether any system of the plan is trained on it.
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
    is_trained_on: bool = True
    samples: int = 1
    data: Path | None = None

    @cached_property
    def contexts(self) -> tuple[Context, ...]:
        """What is to be answered, as systems see it."""
        return tuple(example.as_context() for example in self.test)


@dataclass(frozen=True, eq=False)
class Task:
    """A job with what it takes to do it.

    Attributes:
        base: what must be trained before, once for all tasks that start from it; it has a row
            in the table only where the user asked for one.
    """

    job: Job
    system: System
    dataset: Dataset
    preset: Preset
    base: Task | None = None

    @property
    def responses_fingerprint(self) -> str:
        """The name of the responses: the same for all seeds where the seed changes nothing."""
        seeded = self.system.adapter.seeded(self.job.decoding)
        return (self.job if seeded else dataclasses.replace(self.job, seed=0)).fingerprint

    @property
    def label(self) -> str:
        """The row's name: the system's title with its options."""
        config = self.system.config(self.preset.system)
        title = self.system.adapter.title(config) or self.system.name
        in_title = self.system.adapter.titled_options
        left_out = in_title | self.system.adapter.speed_options
        options = {key: value for key, value in self.system.options.items() if key not in left_out}
        return f"{title} {write_options(options)}".rstrip()


@dataclass(frozen=True, eq=False)
class Plan:
    """All tasks, in the order in which the user named them."""

    tasks: tuple[Task, ...]
    datasets: tuple[Dataset, ...]
    preset: Preset
    plugins: tuple[Plugin, ...]
    skipped: dict[str, str]

    @classmethod
    def of(cls, request: Request) -> Plan:
        """Plans a request and checks every name and file.

        Raises:
            InputError: something asked for does not exist or does not fit together.
        """
        preset = load_preset(request.preset)
        registry = Registry(request.plugins)
        missing: dict[str, str] = {}
        if request.suite is None:
            planned = _jobs_of_request(request, registry, preset)
        else:
            systems, missing = systems_of(request.suite, registry)
            planned = _jobs_of_suite(request.suite, systems, request.seeds, preset)
        skipped = registry.broken | {f"row {label}": why for label, why in missing.items()}
        _check_settings(planned, registry, request, preset)
        _check_decodings(
            planned, f"--suite {request.suite.name}" if request.suite else "--decoding"
        )
        by_corpus: dict[str, list[_PlannedJob]] = {}
        for job in planned:
            by_corpus.setdefault(job.corpus, []).append(job)
        datasets = {name: _dataset(name, request, preset, jobs) for name, jobs in by_corpus.items()}
        _require_different_names(datasets)
        tasks = [_task(job, datasets[job.corpus]) for job in planned]
        distinct = {task.job.fingerprint: task for task in tasks}
        return cls(
            tuple(distinct.values()), tuple(datasets.values()), preset, request.plugins, skipped
        )


@dataclass(frozen=True)
class _PlannedJob:
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


def _jobs_of_request(request: Request, registry: Registry, preset: Preset) -> list[_PlannedJob]:
    systems = registry.parse(request.models)
    decodings = [Decoding.parse(text) for text in split_outside_brackets(request.decodings)]
    if not decodings:
        raise InputError("no decoding is named", where="--decoding", hint="Write greedy.")
    corpora = [name.strip() for name in request.corpora.split(",") if name.strip()]
    if not corpora:
        raise InputError("no corpus is named", where="--corpus", hint="Write demo.")
    return [
        _PlannedJob(system, corpus, seed, decoding, preset)
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


def preset_for_row(preset: Preset, group: Group, row: SuiteRow) -> Preset:
    """The preset with what a row of a suite needs in place of its values."""
    settings = group.settings.get(preset.name, {}) | row.settings.get(preset.name, {})
    return preset.model_copy(update={"system": {**preset.system, **settings}})


def _jobs_of_suite(
    suite: RunnableSuite, systems: Mapping[str, System], seeds: Sequence[int] | None, preset: Preset
) -> list[_PlannedJob]:
    if not systems:
        raise InputError("none of its rows can be run here", where=f"--suite {suite.name}")
    return [
        _PlannedJob(
            systems[row.name],
            group.corpus,
            seed,
            Decoding.parse(row.decoding),
            preset_for_row(preset, group, row),
        )
        for group in suite.groups
        for row in suite.rows
        if row.name in systems
        for seed in dict.fromkeys(seeds or preset.seeds)
    ]


def _check_settings(
    jobs: Iterable[_PlannedJob], registry: Registry, request: Request, preset: Preset
) -> None:
    """Refuses what a preset of the user's or a suite sets, if no system has such an option."""
    shipped = () if request.preset.endswith(".toml") else preset.system
    names = {name for job in jobs for name in job.preset.system if name not in shipped}
    where = "[system]" if request.suite is None else "[system], settings"
    registry.require_options(names, {job.system.adapter for job in jobs}, where=where)


def _check_decodings(jobs: Iterable[_PlannedJob], where: str) -> None:
    for job in jobs:
        name, adapter = job.system.name, job.system.adapter
        if not ask_system(name, "supports", partial(adapter.supports, job.decoding)):
            raise InputError(
                f"{name} cannot decode with {job.decoding}",
                where=where,
                hint="Leave that model or that decoding out.",
            )


def _limits(request: Request, preset: Preset, jobs: Sequence[_PlannedJob]) -> dict[str, int | None]:
    """How many examples of each split are used at most."""
    limit = None if request.limit_test == "all" else request.limit_test
    limits = {
        "train": request.limit_train or preset.limit_train,
        "valid": preset.limit_valid,
        "test": preset.limit_test if request.limit_test is None else limit,
    }
    if request.limit_train:
        # A tenth is enough to decide when to stop, and keeps a trial run short.
        tenth = max(100, request.limit_train // 10)
        limits["valid"] = min(tenth, limits["valid"] or tenth)
    competing = [job.system.adapter for job in jobs if job.system.adapter.ranked]
    if competing and all(adapter.finished for adapter in competing):
        # Reading further responses takes no time that a preset could save.
        limits["test"] = limit
    return limits


def _dataset(name: str, request: Request, preset: Preset, jobs: Sequence[_PlannedJob]) -> Dataset:
    is_trained_on = any(job.learns for job in jobs)
    corpus = load_corpus(
        name,
        data=request.data,
        context_turns=request.context_turns or preset.context_turns,
        clean=request.clean,
        test_only=not is_trained_on,
    )
    if is_trained_on:
        _require_training_data(corpus, jobs, f"--corpus {name}")
    limits = _limits(request, preset, jobs)
    train, valid = (sample(corpus.split(part), limits[part]) for part in ("train", "valid"))
    # The head, so that a run with a higher limit begins with the same conversations.
    test = corpus.test[: limits["test"]]
    used = {part: len(split) for part, split in (("train", train), ("valid", valid))}
    complete = len(train) == len(corpus.train) and len(valid) == len(corpus.valid)
    sampled = {} if complete else {"drawn": "dialogues"}
    several = {"samples": request.samples} if request.samples > 1 else {}
    return Dataset(
        corpus,
        train,
        valid,
        test,
        {"data": corpus.checksum_of("train", "valid"), "examples": used, **sampled},
        {"data": corpus.checksum_of("test"), "examples": len(test), **several},
        (
            *corpus.notes,
            *_limit_notes(corpus, train if is_trained_on else corpus.train, test),
            *_samples_notes(request.samples),
            *_preset_notes(preset, jobs),
        ),
        is_trained_on,
        request.samples,
        request.data,
    )


def _require_different_names(datasets: Mapping[str, Dataset]) -> None:
    """Rows of two files of one name could not be told apart."""
    files: dict[str, str] = {}
    for file, dataset in datasets.items():
        name = dataset.corpus.name
        if files.setdefault(name, file) != file:
            what = f"{files[name]} and {file} are both called {name}"
            raise InputError(what, where="--corpus", hint="Rename one of the files.")


def _require_training_data(corpus: Corpus, jobs: Iterable[_PlannedJob], where: str) -> None:
    learning = dict.fromkeys(job.system.name for job in jobs if job.learns)
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


def _preset_notes(preset: Preset, jobs: Iterable[_PlannedJob]) -> list[str]:
    """The preset's notes where a compared system was trained at its sizes."""
    learning = [job for job in jobs if job.learns and job.system.adapter.ranked]
    if not learning:
        return []
    # A system of somebody else may have none of the options that the recipe is about.
    sized = any(job.system.applicable_settings(preset.system) for job in learning)
    recipe = [f"Every trained system: {preset.recipe}"] if preset.recipe and sized else []
    return [f"Preset {preset.name}: {preset.summary}", *recipe]


def _task(planned: _PlannedJob, dataset: Dataset) -> Task:
    system, preset = planned.system, planned.preset
    config = system.config(preset.system)
    inspect = partial(system.adapter.inspect, config, dataset.contexts, dataset.data)
    files = ask_system(system.name, "inspect", inspect)
    outside = {"outside": dict(files)} if files else {}
    training = {**training_settings(system, preset), **outside, **dataset.training}
    base = _base(planned, dataset)
    if base is not None:
        # Its seed is that of this job.
        training["base"] = {"system": base.job.system, **base.job.training}
    corpus = dataset.corpus.name
    answering = dict(dataset.answering)
    job = Job(system.name, corpus, planned.seed, planned.decoding, preset.name, training, answering)
    task = Task(job, system, dataset, preset, base)
    ask_system(system.name, "title", lambda: task.label)  # now, not after others were trained
    return task


def _base(job: _PlannedJob, dataset: Dataset) -> Task | None:
    system = job.system.base(job.preset.system)
    # It only learns, so that any decoding would do.
    base = system and dataclasses.replace(job, system=system, decoding=Decoding())
    return _task(base, dataset) if base else None


def training_settings(system: System, preset: Preset) -> dict[str, Any]:
    """What a training run depends on besides its data: options and version of the code."""
    adapter = system.adapter
    options = dataclasses.asdict(system.config(preset.system))
    matters = {key: value for key, value in options.items() if key not in adapter.speed_options}
    return {"config": matters, "version": adapter.version}


def comparison_key(job: Job) -> str:
    """Jobs of one key were trained and tested on the same examples: they share a table."""
    learnt = {key: job.training.get(key) for key in ("data", "examples")}
    return fingerprint_of([job.corpus, job.preset, learnt, dict(job.answering)])
