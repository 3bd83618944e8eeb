"""What scripts and notebooks call: the main lines of the command line, on Python's objects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dialbench import bench
from dialbench.adapter import Adapter
from dialbench.errors import InputError
from dialbench.options import sort_options
from dialbench.records import Split
from dialbench.reporting.format_names import FORMATS
from dialbench.reporting.options import ReportOptions
from dialbench.reporting.results import Differences, Results
from dialbench.reporting.tables.rows import SeedGroup, seed_groups
from dialbench.running.options import RunOptions
from dialbench.running.plan import Request
from dialbench.scoring.options import InputOptions, ScoringOptions
from dialbench.systems import Plugin, adapters_of

if TYPE_CHECKING:
    from dialbench.scoring.memory import Outputs, Texts

Model = str | Path | type[Adapter]


def run(
    models: Model | Iterable[Model] | None = None,
    corpus: str | Path | Iterable[str | Path] | None = None,
    *,
    suite: str | None = None,
    out: Path | str = "results/runs",
    formats: Sequence[str] = FORMATS,
    **options: Any,
) -> Results:
    """Trains, answers, scores, tests and reports; does only what is not done yet.

    Args:
        models: systems: names with options as in `--models`, subclasses of `Adapter`, paths of
            files with such (.py), or paths of finished responses. None: all that are registered.
        corpus: names or files of conversations; None: the demo corpus.
        suite: the rows of a paper's table, in place of models.
        out: the runs folder; tables and plots go to its folder `report`.
        formats: of tables, plots and page.
        options: fields of `Request` (preset, seeds, decodings, data, context_turns, limit_train,
            limit_test, clean, samples, plugins), of `RunOptions` (device, jobs, deadline,
            overwrite, answers_only, progress) and of `ScoringOptions` (metrics, tokenizer, ...).

    Returns:
        The results, with the tables and files of the report; a failed system is a failed result,
        not an exception.

    Raises:
        DialbenchError: the request cannot be met, or the disk refuses.
        TypeError: there is no option of a name in `options`.
    """
    asked, chosen, how = sort_options(options, Request, ScoringOptions, RunOptions)
    for values, name in ((asked, "plugins"), (how, "tracker")):
        if name in values:
            values[name] = tuple(_several(values[name]))
    if "preset" in asked:
        asked["preset"] = str(asked["preset"])
    if models is not None:
        asked["models"], plugins = _systems(_several(models))
        asked["plugins"] = (*asked.get("plugins", ()), *plugins)
        _require_one_process(plugins, how.get("jobs", 1))
    if corpus is not None:
        asked["corpora"] = ",".join(_listed(one, "corpus", ",") for one in _several(corpus))
    if "decodings" in asked:
        asked["decodings"] = ",".join(map(str, _several(asked["decodings"])))
    if asked.get("seeds") is not None:
        asked["seeds"] = tuple(_several(asked["seeds"]))
    if suite is not None:
        request = Request.of_suite(suite, corpus=asked.pop("corpora", None), **asked)
    else:
        request = Request(**asked)
    scoring = ScoringOptions(**request.scoring | chosen)
    return bench.run(request, out=out, scoring=scoring, formats=formats, **how)


def score(
    responses: Outputs | Sequence[Path] | Mapping[str, Outputs],
    references: str | Path | Sequence[Path] | Texts | None = None,
    *,
    contexts: str | Path | Texts | None = None,
    train: Split | str | Path | None = None,
    out: Path | str | None = None,
    **options: Any,
) -> Results:
    """Scores finished responses.

    Args:
        responses: a list of texts (or of lists, where several answer one context), a DataFrame
            with a column of them, a path, several paths, or any of these by the name of a system.
            A DataFrame's columns are called as those of a CSV file.
        references: for each response a text, or several, or paths of files with a line for each.
        contexts: for each response the turns before it, oldest first, or a path.
        train: training text for novelty, ead-n and word vectors: a split, corpus or file.
        out: where tables, plots and page go; None writes nothing.
        options: fields of `InputOptions` (column, corpus), of `ScoringOptions` (metrics,
            tokenizer, vectors, nli, ...) and of `ReportOptions` (baseline, alpha, correction, ...).
            Without `metrics` those of a run.

    Returns:
        The results and their table.

    Raises:
        InputError: a file, text or argument cannot be used.
        TypeError: there is no option of a name in `options`.
    """
    from dialbench.scoring.memory import files_of, rows_of
    from dialbench.scoring.table import score_report

    named, chosen, shown = sort_options(options, InputOptions, ScoringOptions, ReportOptions)
    if references is not None:
        named["references"] = rows_of(references, "references")
    if contexts is not None:
        named["contexts"] = rows_of(contexts, "contexts")
    return score_report(
        files_of(responses, named.get("column")),
        InputOptions(**named),
        ReportOptions(**shown),
        out=None if out is None else Path(out),
        comparable=True,
        train=train,
        **chosen,
    )


def compare(a: Results, b: Results) -> Differences:
    """How one system differs from another that answered the same contexts, in every metric.

    Args:
        a: the results of one row, over all its seeds: `results["seq2seq"]`.
        b: those of the row it is compared with.

    Returns:
        Differences of `a` less `b`, each with its 95 % interval and the p that tables decide by.

    Raises:
        InputError: `a` or `b` has several rows or is not finished, or they do not answer the same
            examples.
    """
    from dialbench.scoring.paired import compare_results

    ours, base = _only_row(a, "a"), _only_row(b, "b")
    return Differences(ours.label, base.label, compare_results(ours.results, base.results))


def _only_row(results: object, where: str) -> SeedGroup:
    if not isinstance(results, Results):
        what = f"it is no Results but {type(results).__name__}"
        raise InputError(what, where=where, hint="Give what run or score returned.")
    groups = seed_groups(results.results)
    if len(groups) == 1:
        return groups[0]
    labels = ", ".join(group.label for group in groups)
    what = f"it has {len(groups)} rows: {labels}" if groups else "it has no results"
    raise InputError(what, where=where, hint="Choose one: results[NAME].")


def _several(value: Any) -> list[Any]:
    return list(value) if isinstance(value, Iterable) and not isinstance(value, str) else [value]


def _listed(value: str | Path, where: str, separators: str) -> str:
    """A name or path as it stands in a list, which a path with its separators cannot."""
    text = str(value)
    if isinstance(value, Path) and (set(separators) & set(text) or text != text.strip()):
        what = f"its name cannot stand in a list: {text!r}"
        raise InputError(what, where=where, hint="Rename it.")
    return text


def _systems(models: Iterable[Any]) -> tuple[str, tuple[Plugin, ...]]:
    """The systems as `--models` names them, and the plug-ins that define some."""
    names: list[str] = []
    plugins: list[Plugin] = []
    for model in models:
        if isinstance(model, type):
            plugins.append(model)
            names.append(getattr(model, "name", ""))
        elif not isinstance(model, str | Path):
            what = f"{model!r} is neither a name, a path nor a class"
            raise InputError(what, where="models", hint="Give the class, not an object of it.")
        elif Path(model).suffix == ".py":
            plugins.append(Path(model))
            names += [adapter.name for adapter in adapters_of(Path(model))]
        else:
            text = _listed(model, "models", ",[]")
            names.append(f"file[path={text}]" if isinstance(model, Path) else text)
    return ",".join(names), tuple(plugins)


def _require_one_process(plugins: Iterable[Plugin], jobs: int | None) -> None:
    """Other processes cannot import a class of this session."""
    for plugin in plugins:
        if jobs != 1 and isinstance(plugin, type) and plugin.__module__ == "__main__":
            hint = f"Leave jobs out, or put {plugin.__name__} into a file and name that."
            raise InputError("other processes cannot import the class", where="models", hint=hint)
