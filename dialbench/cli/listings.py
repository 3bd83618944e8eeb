"""What there is, as data and as text: systems, papers, corpora, metrics."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from dialbench.adapter import Adapter, Card
from dialbench.errors import InputError, UnknownName
from dialbench.presets.preset import load as load_preset
from dialbench.systems import Registry, System


def systems(
    plugins: Sequence[Path] = (), preset: str = "paper", names: Sequence[str] = ()
) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Systems with their cards, their parameters under a preset and their options.

    Args:
        plugins: files with further systems.
        preset: whose sizes are counted.
        names: of the systems; by default all that can be loaded.

    Returns:
        The systems, and what could not be loaded with its reason.

    Raises:
        InputError: there is no such system or preset, one of its values does not fit a system, or a
            plug-in cannot be loaded.
    """
    settings = load_preset(preset).system
    registry = Registry(plugins)
    if preset.endswith(".toml"):
        registry.require_options(settings, (), where="[system]")
    adapters = {name: registry.get(name) for name in names} or _adapters(registry)
    rows = [_system(System(name, one, {}), settings) for name, one in adapters.items()]
    return rows, {} if names else registry.broken


def cards(plugins: Sequence[Path] = ()) -> tuple[dict[str, Card], dict[str, str]]:
    """The card of every system by its name, and what could not be loaded with its reason.

    Raises:
        InputError: a plug-in cannot be loaded.
    """
    registry = Registry(plugins)
    adapters = _adapters(registry)
    return {name: adapter.card for name, adapter in adapters.items()}, registry.broken


def cards_text(cards: Mapping[str, Card]) -> str:
    """The systems for people, a line each."""
    return _columns(
        (name, f"{card.summary} ({card.year})" if card.year else card.summary)
        for name, card in cards.items()
    )


def _columns(rows: Iterable[tuple[str, ...]]) -> str:
    """Rows of texts as lines, all but the last text of a row padded to one width a column."""
    listed = list(rows)
    widths = [max(map(len, texts)) for texts in zip(*listed, strict=True)][:-1]
    return "\n".join(
        "  ".join([*(text.ljust(width) for text, width in zip(row, widths, strict=False)), row[-1]])
        for row in listed
    )


def _adapters(registry: Registry) -> dict[str, type[Adapter]]:
    """Every system that can be loaded, by name."""
    adapters = {}
    for name in registry.names():
        with suppress(InputError):
            adapters[name] = registry.get(name)
    return adapters


def _system(system: System, settings: Mapping[str, Any]) -> dict[str, Any]:
    adapter = system.adapter
    system.applicable_settings(settings)
    options = {f.name: f.default for f in dataclasses.fields(adapter.Config)}
    return {
        "name": system.name,
        **dataclasses.asdict(adapter.card),
        "ranked": adapter.ranked,
        "parameters": _parameters(system, settings),
        "options": options,
    }


def _parameters(system: System, settings: Mapping[str, Any]) -> dict[str, int]:
    from dialbench.reproduction.parameters import parameter_counts

    try:
        return parameter_counts(system.build(settings))
    except Exception:  # a system that needs options, or a plug-in's mistake, hides no other
        return {}


def systems_text(rows: Iterable[Mapping[str, Any]]) -> str:
    """All details of systems for people."""
    return "\n\n".join(map(_system_text, rows))


def _system_text(system: Mapping[str, Any]) -> str:
    facts = {
        "title": system["title"],
        "paper": f"{system['paper']}, {system['year']}" if system["paper"] else "",
        "family": system["family"] + (", pretrained" if system["pretrained"] else ""),
        "parameters": _parameters_text(system["parameters"]),
    }
    lines = [f"{system['name']}: {system['summary']}"]
    lines += [f"  {key}: {value}" for key, value in facts.items() if value]
    options = [f"    {key}={value}" for key, value in system["options"].items()]
    return "\n".join([*lines, *(["  options, with their defaults:"] if options else []), *options])


def _parameters_text(counts: Mapping[str, int]) -> str:
    if not counts:
        return ""
    kinds = {"trained": "trained", "random": "frozen", "inference": "used for responses"}
    parts = [f"{counts[f'{key}_parameters']:,} {description}" for key, description in kinds.items()]
    return f"{counts['parameters']:,} ({', '.join(parts)})"


def papers() -> list[dict[str, Any]]:
    """Every paper with its tables, the suites that make them again, and what was left out."""
    from dialbench.papers import tables as printed
    from dialbench.suites.suite import load_suite, suite_names

    tables = [(load_suite(name).printed_table(), name) for name in suite_names()]
    made: dict[tuple[str, str], list[str]] = {}
    for table, name in tables:
        made.setdefault((table.paper, table.table), []).append(name)
    found = []
    for paper in map(printed.load_paper, printed.names()):
        value = paper.model_dump(mode="json")
        for entry in value["tables"]:
            entry["suites"] = made.get((entry["paper"], entry["number"]), [])
        found.append(value)
    return found


def papers_text(papers: Iterable[Mapping[str, Any]]) -> str:
    """The papers for people."""
    lines = []
    for paper in papers:
        lines.append(f"{paper['name']}: {paper['title']}")
        rows = [(t["number"], ", ".join(t["suites"]), t["caption"]) for t in paper["tables"]]
        rows += [(p["number"], "", f"not here: {p['reason']}") for p in paper["left_out"]]
        width = max(len(suites) for _, suites, _ in rows)
        lines += [
            f"  {number:<8}  {suites:<{width}}  {description}"
            for number, suites, description in rows
        ]
    return "\n".join(lines)


def printed_tables(paper: str, number: str | None, format: str) -> list[str]:
    """The tables of a paper as it printed them, one text each.

    Args:
        paper: its name.
        number: of one table; None takes all that are here.
        format: as of our tables.

    Raises:
        UnknownName: there is no such paper, table or format.
    """
    from dialbench.papers.tables import load_paper, load_table
    from dialbench.reporting.formats.render import render
    from dialbench.reporting.tables.printed import as_printed

    numbers = [entry.number for entry in load_paper(paper).tables] if number is None else [number]
    return [render(as_printed(load_table(paper, one)), format) for one in numbers]


def corpora(
    names: Sequence[str], data: Path | None = None, *, audit: bool = False
) -> list[dict[str, Any]]:
    """The named corpora counted, or all of ours by their cards.

    Args:
        names: known names or files; empty lists what there is without reading it.
        data: the folder of corpora.
        audit: also count dialogues that occur twice.

    Raises:
        InputError: a corpus cannot be read.
    """
    from dialbench.corpora import base

    if not names and not audit:
        return [dataclasses.asdict(base.card(name)) for name in base.names()]
    return [_corpus(name, data, audit) for name in names or base.names()]


def _corpus(name: str, data: Path | None, audit: bool) -> dict[str, Any]:
    from dialbench.corpora.audit import audit as audit_corpus
    from dialbench.corpora.audit import describe
    from dialbench.corpora.base import load_corpus

    corpus = load_corpus(name, data=data, where="corpora")
    found = {
        "title": corpus.title,
        "licence": corpus.licence,
        "citation": corpus.card.citation,
        "checksum": corpus.checksum,
        "notes": list(corpus.notes),
        **dataclasses.asdict(describe(corpus)),
    }
    if audit:
        counted = dataclasses.asdict(audit_corpus(corpus))
        found["audit"] = {key: counted[key] for key in ("exact", "normalised")}
    return found


def corpora_text(cards: Iterable[Mapping[str, Any]]) -> str:
    """The corpora for people."""
    lines = []
    for corpus in cards:
        if "splits" not in corpus:
            lines.append(f"{corpus['name']:<20} {corpus['summary']} ({corpus['licence']})")
            continue
        lines.append(f"{corpus['title']} ({corpus['licence']}), data {corpus['checksum'][:12]}")
        heads = ("dialogues", "turns", "examples", "mean_turns", "tokens", "vocabulary")
        if corpus["citation"]:
            lines.append(f"  {corpus['citation']}")
        lines.append(f"  {'':<6}" + "".join(f"{head:>12}" for head in heads))
        for split, facts in corpus["splits"].items():
            cells = [f"{facts[head]:,.1f}".removesuffix(".0") for head in heads]
            lines.append(f"  {split:<6}" + "".join(f"{cell:>12}" for cell in cells))
        if corpus["coverage"] is not None:
            lines.append(f"  test tokens among the 20,000 training words: {corpus['coverage']:.2%}")
        lines.extend(_audit_lines(corpus.get("audit", {})))
        lines.extend(f"  note: {note}" for note in corpus["notes"])
    return "\n".join(lines)


_PAIRS = (("test", "train"), ("valid", "train"), ("test", "valid"))


def _audit_lines(audit: Mapping[str, Mapping[str, Any]]) -> Iterable[str]:
    names = {
        "exact": "turn for turn",
        "normalised": "case, spaces and punctuation ignored",
    }
    for kind, overlap in audit.items():
        inside = ", ".join(f"{split} {n:,}" for split, n in overlap["inside"].items())
        yield f"  dialogues that repeat an earlier one ({names[kind]}): {inside}"
        pairs = [(a, b) for a, b in _PAIRS if overlap[f"{a}_in_{b}"] is not None]
        if pairs:
            shared = (f"{a} in {b} {overlap[f'{a}_in_{b}']:,}" for a, b in pairs)
            yield f"  dialogues of a split that are also in another: {', '.join(shared)}"


def metrics(names: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Metrics with what they are, their title, direction, signature and what they need.

    Args:
        names: of the metrics; by default all.

    Raises:
        UnknownName: there is no such metric.
    """
    from dialbench.metrics import registry
    from dialbench.metrics.system import SYSTEM_METRICS

    every = [*registry.names(), *SYSTEM_METRICS]
    for name in names:
        if name not in every:
            raise UnknownName.of("metric", name, every, where="metrics")
    return [_metric(name) for name in names or every]


def _metric(name: str) -> dict[str, Any]:
    from dialbench.metrics import registry
    from dialbench.metrics.settings import MetricSettings
    from dialbench.metrics.system import SystemMetric

    info = registry.declared(name)
    if isinstance(info, SystemMetric):
        signature, text, needs = info.signature, info.recipe, ["run"]
    else:
        (metric,) = registry.create([name], MetricSettings())
        info, signature = registry.info(name), metric.signature
        text = (inspect.getdoc(metric) or info.title).partition("\n\nArgs:")[0]
        needs = sorted(resource.name for resource in registry.resources([name]))
    first, _, rest = text.partition("\n")
    return {
        "name": name,
        "title": info.title,
        "group": info.group,
        "direction": info.direction,
        "summary": first.partition(": ")[2] or first,
        "description": rest.strip(),
        "needs": needs,
        "default": name in registry.DEFAULT,
        "signature": signature,
    }


_BETTER = {"higher": "↑", "lower": "↓", "none": " "}


def metrics_text(rows: Iterable[Mapping[str, Any]]) -> str:
    """The metrics for people, a line each; the arrow points to better values."""
    return _columns((m["name"], _BETTER[m["direction"]], m["title"], m["summary"]) for m in rows)


def metric_details(rows: Iterable[Mapping[str, Any]]) -> str:
    """All details of metrics for people."""
    return "\n\n".join(map(_metric_text, rows))


def _metric_text(metric: Mapping[str, Any]) -> str:
    better = {"higher": "higher is better", "lower": "lower is better", "none": "neither is better"}
    facts = {
        "column": f"{metric['title']}, among {metric['group']}",
        "values": better[metric["direction"]],
        "needs": ", ".join(metric["needs"]),
        "by default": "yes" if metric["default"] else "no: name it to --metrics",
        "signature": metric["signature"],
    }
    lines = [f"{metric['name']}: {metric['summary']}"]
    lines += [f"  {key}: {value}" for key, value in facts.items() if value]
    lines += [f"  {line}".rstrip() for line in metric["description"].splitlines()]
    return "\n".join(lines)
