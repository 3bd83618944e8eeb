"""Pages of the site that are no file of docs/: made of the code, or of other documents.

A hook of mkdocs (https://www.mkdocs.org/user-guide/configuration/#hooks).
"""

from __future__ import annotations

import inspect
import math
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from os.path import normpath, relpath
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

import dialbench
from dialbench.metrics import registry
from dialbench.metrics.info import MetricInfo
from dialbench.metrics.settings import MetricSettings

ROOT = Path(__file__).resolve().parent.parent
METRICS = (ROOT / "docs/metrics.md").read_text(encoding="utf-8")
WRITTEN = tomllib.loads((ROOT / "docs/metrics.toml").read_text(encoding="utf-8"))
PROJECT = (
    *("CONTRIBUTING.md", "SECURITY.md", "THIRD_PARTY.md", "CHANGELOG.md"),
    *("benchmarks/RESULTS.md", "dialbench/nli/minilm-l6-nli.md"),
    *sorted(page.relative_to(ROOT).as_posix() for page in ROOT.glob("reports/*/*.md")),
)
LINKED = ("README.md", *PROJECT, "LICENSE", "CITATION.cff")
"""Files outside docs/ that the site has; README.md is its first page."""
CONTRACTS = {
    "adapter": ("The contract of a system", ["dialbench.adapter"]),
    "metric": ("The contract of a metric", ["dialbench.metrics.base", "dialbench.metrics.info"]),
    "records": ("The types that travel", ["dialbench.records"]),
    "results": ("What Python gets", ["dialbench.reporting.results"]),
}
"""Reference besides the functions of the package: page -> heading and modules."""
FROM_ELSEWHERE = re.compile(r"<(?:script|link|img|iframe)[^>]+(?:src|href)=.(?:https?:)?//[^>]+>")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Completes the sections of the navigation; documents that it does not name come last."""
    placed = str(config.nav)
    entries = (entry for entry in config.nav if isinstance(entry, dict))
    sections = {name: pages for entry in entries for name, pages in entry.items()}
    findings = (f"findings/{page.name}" for page in (ROOT / "docs/findings").glob("2*.md"))
    sections["Metrics"] += [f"metrics/{name}.md" for name in metric_pages()]
    sections["Findings"] += sorted(findings, reverse=True)
    sections["Reference"] += [f"reference/{name}.md" for name in ("python", *CONTRACTS)]
    sections["Project"] += [address_of(name) for name in PROJECT]
    documents = sorted(page.name for page in (ROOT / "docs").glob("*.md"))
    sections["Project"] += [name for name in documents if f"'{name}'" not in placed]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages to those of docs/."""
    pages = {f"metrics/{name}.md": text for name, text in metric_pages().items()}
    pages |= {f"reference/{name}.md": reference(*contract) for name, contract in CONTRACTS.items()}
    pages["reference/python.md"] = "# Python\n\n" + "\n\n".join(public_functions())
    pages |= {address_of(name): (ROOT / name).read_text(encoding="utf-8") for name in LINKED}
    for address, text in pages.items():
        files.append(File.generated(config, address, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Points links, which are those of the checkout, at where their files lie in the site."""
    address = page.file.src_uri
    source = source_of(address)

    def moved(link: re.Match[str]) -> str:
        path, sharp, anchor = link[1].partition("#")
        if "://" in path or (not path and address_of(source) == address):
            return link[0]
        target = address_of(normpath(f"{source}/../{path or Path(source).name}"))
        return f"]({relpath(target, f'{address}/..')}{sharp}{anchor})"

    return re.sub(r"\]\(([^)\s]+)\)", moved, markdown)


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Raises ValueError if a page would load anything from elsewhere."""
    if loads := FROM_ELSEWHERE.search(output):
        raise ValueError(f"{page.file.src_uri} loads {loads[0]}")
    return output


def address_of(name: str) -> str:
    """Where a file of the checkout lies in the site."""
    if name == "README.md":
        return "index.md"
    return name.removeprefix("docs/") if name.startswith("docs/") else f"project/{name}"


def source_of(address: str) -> str:
    """The file of the checkout whose text, and links, stand at an address of the site."""
    if address == "index.md":
        return "README.md"
    if address.startswith("project/"):
        return address.removeprefix("project/")
    return "docs/metrics.md" if address.startswith("metrics/") else f"docs/{address}"


def public_functions() -> Iterator[str]:
    """The docstring of each public name of the package, under the name it is called by."""
    for name, module in dialbench._MODULES.items():
        options = f"    options: {{heading: dialbench.{name}, toc_label: {name}}}"
        yield f"::: {module}.{name}\n{options}"


def reference(heading: str, names: Sequence[str]) -> str:
    """A page that mkdocstrings fills with the docstrings of these names."""
    return "\n\n".join([f"# {heading}", *(f"::: {name}" for name in names)])


def metric_pages() -> dict[str, str]:
    """The text of the page of each class of metrics, by the page's name, in their order."""
    families: dict[type, list[MetricInfo]] = {}
    for name in registry.names():
        families.setdefault(registry.info(name).kind, []).append(registry.info(name))
    pages = {}
    for kind, infos in families.items():
        written = WRITTEN[kind.__name__]
        name = written.get("page", infos[0].name)
        pages[name] = "\n\n".join(metric_page(name, infos, written))
    return dict(sorted(pages.items()))


def metric_page(
    name: str, infos: Sequence[MetricInfo], written: Mapping[str, Any]
) -> Iterator[str]:
    """The paragraphs of a page: what the class says, what is declared, what was written."""
    first, *details = inspect.cleandoc(infos[0].kind.__doc__ or "").split("\n\n")
    definition = first.partition(": ")[2]
    yield f"# {name}"
    yield definition[0].upper() + definition[1:]
    yield f"`` {written['formula']} ``"
    yield facts(infos)
    yield from (detail for detail in details if not detail.startswith("Args:"))
    yield from written.get("pitfalls", ())
    if "worked" in written:
        yield from worked_number(written["worked"])
    yield from map(note, written.get("notes", ()))


def facts(infos: Sequence[MetricInfo]) -> str:
    """The table of what is declared of each metric of a page, and the signatures."""
    rows, signatures = ["| name | column | better | range | needs |", "|---|---|---|---|---|"], []
    for info in infos:
        metric = info.create(MetricSettings())
        signatures.append(metric.signature)
        better = "not ranked" if info.unranked else info.direction.replace("none", "neither")
        low, high = getattr(metric, "bounds", (-math.inf, math.inf))
        needs = info.resource.name if info.resource else "nothing"
        cells = (f"`{info.name}`", info.title, better, f"{low:g} to {high:g}", needs)
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join([*rows, "", "```", *signatures, "```"])


def worked_number(example: Mapping[str, Any]) -> Iterator[str]:
    """What is given, the value, and the steps to it."""
    outcome = ("metric", "value", "steps")
    given = (f"{key}: {plain(value)}" for key, value in example.items() if key not in outcome)
    yield "## A number by hand"
    yield "```\n" + "\n".join(given) + "\n```"
    yield f"`{example['metric']}` = **{example['value']}**: {example['steps']}."


def plain(value: Any) -> str:
    """Items apart by strokes, those of one response by commas."""
    if isinstance(value, dict):
        return ", ".join(f"{key} = {item}" for key, item in value.items())
    if not isinstance(value, list):
        return str(value)
    return " / ".join(
        ", ".join(map(str, item)) if isinstance(item, list) else str(item) for item in value
    )


def note(beginning: str) -> str:
    """A paragraph of docs/metrics.md with what belongs to it, by how it begins."""
    match = re.search(rf"(?ms)^\*\*{re.escape(beginning)}\*\*.*?(?=^\*\*|^#|\Z)", METRICS)
    if match is None:
        raise ValueError(f"docs/metrics.md has no paragraph that begins with {beginning!r}")
    return match[0].strip()
