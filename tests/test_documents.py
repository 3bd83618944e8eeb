"""What the documents show works as it stands there."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dialbench.cli import listings

ROOT = Path(__file__).resolve().parent.parent
FEW = ["--limit-train", 60, "--limit-test", 20, "--metrics", "length,dist-1", "--formats", "txt"]
QUIET = ["--device", "cpu", "--progress", "none"]


def blocks(document: str, language: str) -> list[str]:
    """The code blocks of a document that are marked with this language ("": not at all)."""
    text = (ROOT / document).read_text(encoding="utf-8")
    actual = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [code for mark, code in actual if mark == language]


def commands(document: str) -> list[list[str]]:
    lines = [line for block in blocks(document, "") for line in block.splitlines()]
    return [shlex.split(line, comments=True) for line in lines if line.startswith("dialbench run")]


def pages() -> list[Path]:
    """Every document of the checkout."""
    return [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/**/*.md")]


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"(?m)^#+ (.*)$", page.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_pages_and_headings(page: Path) -> None:
    for link in re.findall(r"\]\((?!https?:)([^)\s]+)\)", page.read_text(encoding="utf-8")):
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_paths_in_documents_exist(page: Path) -> None:
    if page.name == "CHANGELOG.md" or page.parent.name == "findings":
        return  # of the day they were written
    path = re.compile(r"`((?:dialbench|adapters|tests|benchmarks|docs|reports)/[^`\s]*)`")
    for name in path.findall(page.read_text(encoding="utf-8")):
        assert any(ROOT.glob(name.rstrip("/"))), name


def test_source_files_name_only_pages_that_exist() -> None:
    """A page is named from the root, `docs/metrics.md`; a bare `metrics.md` leads nowhere."""
    page = re.compile(r"(?:docs|benchmarks)/[\w./-]+?\.md\b|(?<![\w./-])(?:models|metrics)\.md\b")
    for folder in ("dialbench", "adapters", "tests", "benchmarks"):
        for file in {*(ROOT / folder).rglob("*.py"), *(ROOT / folder).rglob("*.toml")}:
            if file != Path(__file__).resolve():
                named = page.findall(file.read_text(encoding="utf-8"))
                assert all((ROOT / name).is_file() for name in named), (file, named)


def test_every_finding_has_its_date_and_its_row_in_the_index() -> None:
    folder = ROOT / "docs/findings"
    index = (folder / "README.md").read_text(encoding="utf-8")
    for page in set(folder.glob("*.md")) - {folder / "README.md"}:
        text = page.read_text(encoding="utf-8")
        date, heading = page.name[:10], text.splitlines()[0].removeprefix("# ")
        assert f"\n- Date: {date}" in text, page.name
        (row,) = (row for row in index.splitlines() if f"[page]({page.name})" in row)
        assert row.startswith(f"| {date} | {heading} |")
        assert ("\n> " in text) == (not row.endswith("|  |")), f"superseded or not: {page.name}"


PARTS = (
    "Idea.",
    "Equations.",
    "Against its parent.",
    "Open in the paper, chosen here.",
    "At `paper`.",
)


def test_every_system_has_its_section_and_its_row_with_its_size() -> None:
    text = (ROOT / "docs/systems.md").read_text(encoding="utf-8")
    systems, broken = listings.systems((), "paper")
    assert not broken
    sections = dict(re.findall(r"^## `([\w-]+)`\n(.*?)(?=^#|\Z)", text, re.MULTILINE | re.DOTALL))
    assert set(sections) == {system["name"] for system in systems}
    for system in systems:
        name, size = system["name"], system["parameters"].get("parameters")
        assert re.findall(r"(?m)^\*\*(.*?)\*\*", sections[name]) == list(PARTS), name
        (row,) = re.findall(rf"(?m)^\| \[`{name}`\]\(#{name}\) \|.*$", text)
        assert row.endswith(f"| {size:,} |" if size else "| |"), row


@pytest.mark.parametrize("document", ["README.md", "docs/adding-an-adapter.md"])
def test_the_worked_example_makes_a_row(
    document: str,
    command: Callable[..., Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (code,) = (code for code in blocks(document, "python") if "class Echo" in code)
    (line,) = (line for line in commands(document) if "echo.py" in line)
    monkeypatch.chdir(tmp_path)
    Path("echo.py").write_text(code, encoding="utf-8")
    line[line.index("--models") + 1] = "echo,copy-last"
    result = command(*line[1:], *FEW, *QUIET)
    assert result.code == 0, result.err
    (table,) = Path("results/runs/report").glob("*.txt")
    rows = table.read_text(encoding="utf-8").splitlines()
    echo, last = (next(row for row in rows if row.startswith(n)) for n in ("echo", "Copy last"))
    assert echo.split()[1:] == last.split()[3:]


def test_finished_responses_become_the_row_that_the_document_shows(
    command: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = commands("docs/adding-an-adapter.md")
    (line,) = (line for line in lines if any("file[path=" in word for word in line))
    monkeypatch.chdir(tmp_path)
    assert command("run", "--models", "copy-last", *FEW, "--limit-test", 100, *QUIET).code == 0
    (actual,) = Path("results/runs").glob("answers/*/responses.jsonl")
    theirs = [json.loads(row) for row in actual.read_text(encoding="utf-8").splitlines()]
    text = "".join(json.dumps({"id": row["id"], "response": "yes !"}) + "\n" for row in theirs)
    Path("theirs.jsonl").write_text(text, encoding="utf-8")
    result = command(*line[1:], *FEW[:2], *FEW[4:], *QUIET)
    assert result.code == 0, result.err
    assert "Their model" in result.out
    assert "responses of theirs.jsonl, made elsewhere" in result.out


def test_every_pinned_package_but_torch_has_checksums() -> None:
    pinned = re.findall(r"(?m)^[\w.-]+==\S+", (ROOT / "constraints.txt").read_text())
    lock = (ROOT / "requirements.lock").read_text()
    locked = {
        head: re.findall(r"--hash=sha256:[0-9a-f]{64}(?![0-9a-f])", rest)
        for head, rest in re.findall(r"(?m)^(\S+==\S+) \\\n((?: +--hash=.*\n?)+)", lock)
    }
    assert all(locked.values())
    plain = {
        f"{re.sub(r'[-_.]+', '-', n).lower()}=={v}" for n, v in (p.split("==") for p in pinned)
    }
    assert plain - set(locked) == {name for name in plain if name.startswith("torch==")}
    assert set(locked) <= plain
