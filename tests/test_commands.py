"""Every command that a document shows parses, and those that need nothing from outside run.

All start from copies of a folder of runs, of a few examples each, so that little is trained. Blocks
of Python that make files for the commands below them run where they stand.
"""

from __future__ import annotations

import io
import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from dialbench.cli import cli
from dialbench.corpora.base import load_corpus
from dialbench.corpora.export import export_lines

ROOT = Path(__file__).resolve().parent.parent
FEW = [
    *("--limit-train", "60", "--limit-test", "20", "--device", "cpu"),
    *("--jobs", "1", "--progress", "none", "--formats", "txt"),
]
OUTSIDE = re.compile(
    r"dailydialog|\b(DIR|FOLDER)\b|hredf|hf\[|endpoint\[|--suite|--judgements|^fetch|^convert"
    r"|results/runs/(numbers|paraformer)|results/runs --paper|--models all|--deadline|--tracker"
)
"""What needs a corpus, a network, a model, a package, judgements or hours."""
LEARNING = ("tutorial.md", "howto-row.md", "howto-ci.md", "howto-paper.md", "faq.md")
DOCUMENTS = [
    *(ROOT / "docs" / name for name in LEARNING),
    ROOT / "README.md",
    *(page for page in sorted((ROOT / "docs").glob("*.md")) if page.name not in LEARNING),
]
RESPONSES = ["hello there", "i am fine , thanks", "see you on monday"]
REFERENCES = ["hello", "fine , and you ?", "see you then"]
CONTEXTS = ["hi", "how are you ?", "when shall we meet ?"]
TEXTS = {
    **dict.fromkeys(["A.txt", "B.txt", "D.txt"], RESPONSES),
    **dict.fromkeys(["refs.txt", "1.txt", "2.txt"], REFERENCES),
    "contexts.txt": CONTEXTS,
    "B.csv": ["response", *(f'"{text}"' for text in RESPONSES)],
    "table.toml": ['columns = ["dist-2", "bleu-2"]'],
}
"""Files of the reader's that documents name."""
COMMAND = re.compile(r"^(?:\w+=\S* )*(?:\S*/)?dialbench (.*)$")


def blocks(page: Path) -> list[tuple[str, str]]:
    """The language and the text of each block of code."""
    text = page.read_text(encoding="utf-8")
    return re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def commands(block: str) -> Iterator[list[str]]:
    """The arguments of each command of a block, in order."""
    for part in (part for line in block.splitlines() for part in line.split(" && ")):
        if match := COMMAND.match(part):
            words = shlex.split(match[1], comments=True)
            if "|" not in words:
                yield words


EVERY = [
    pytest.param(words, id=f"{page.name}: {' '.join(words)}"[:90])
    for page in DOCUMENTS
    for kind, block in blocks(page)
    if not kind
    for words in commands(block)
]


def _without_redirection(words: list[str]) -> list[str]:
    return words[: words.index("<")] if "<" in words else words


@pytest.mark.parametrize("words", EVERY)
def test_every_command_parses(words: list[str]) -> None:
    command: click.Command = cli
    context, rest = click.Context(cli), _without_redirection(words)
    while isinstance(command, click.Group):
        _, subcommand, rest = command.resolve_command(context, rest)
        assert subcommand is not None
        command = subcommand
    try:
        command.make_context("dialbench", rest)
    except click.BadParameter as error:
        if "does not exist" not in error.message:  # else a file of the reader's
            raise


@pytest.fixture(scope="module")
def stock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files and runs that documents take for granted."""
    folder = tmp_path_factory.mktemp("stock")
    for name, texts in TEXTS.items():
        (folder / name).write_text("\n".join(texts) + "\n")
    rows = [
        {"response": r, "references": [own]} for r, own in zip(RESPONSES, REFERENCES, strict=True)
    ]
    _write(folder / "C.jsonl", rows)
    test = [json.loads(line) for line in export_lines(load_corpus("demo"), "test")]
    for name in ("mine", "theirs", "part-3"):
        _write(folder / f"{name}.jsonl", [row | {"response": f"yes , {name} !"} for row in test])
    _write(
        folder / "my-chats.jsonl",
        [{"id": str(i), "turns": [*CONTEXTS, *RESPONSES]} for i in range(30)],
    )
    (folder / "results").mkdir()
    for file in (ROOT / "results").glob("*-small.*"):
        shutil.copy(file, folder / "results")
    (echo,) = (block for _, block in blocks(ROOT / "README.md") if "class Echo" in block)
    (folder / "echo.py").write_text(echo, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr("dialbench.nli.embedded._PACKAGE", "no_such_package")  # as in conftest.py
        cli.main(["run", "--models", "copy-last,seq2seq,transformer", *FEW], standalone_mode=False)
        check = ["check", "results/runs", "--baseline", "results/mine.json", "--update"]
        cli.main(check, standalone_mode=False)
    return folder


@pytest.fixture
def desk(stock: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a reader sits, with a copy of these: what one document runs is not in another's way."""
    monkeypatch.chdir(shutil.copytree(stock, tmp_path / "desk"))


def _write(file: Path, rows: list[dict[str, Any]]) -> None:
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


@pytest.mark.parametrize("page", DOCUMENTS, ids=lambda page: page.name)
def test_commands_run_as_they_stand(
    page: Path, desk: None, command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for kind, block in blocks(page):
        if kind == "python" and "class Echo" in block:
            Path("echo.py").write_text(block, encoding="utf-8")
        elif kind == "python" and page.name in LEARNING:
            subprocess.run([sys.executable, "-c", block], check=True)
        for words in commands(block) if not kind else ():
            if not OUTSIDE.search(" ".join(words)):
                _run(words, command, monkeypatch)


def _run(words: list[str], command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    typed = Path(words[-1]).read_bytes() if "<" in words else b"hello\n"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(typed)))
    line = [name for word in _without_redirection(words) for name in _expanded(word)]
    line += FEW if line[0] == "run" else []
    if not shutil.which("pdflatex"):
        line = [word for word in line if word != "--standalone"]
    result = command(*line)
    # What the lines above ran anew, or besides, is not in the baseline.
    assert result.code in ((0, 1) if line[0] == "check" else (0,)), (line, result.err)


def _expanded(word: str) -> list[str]:
    """The files of a pattern, as a shell gives them."""
    return (sorted(map(str, Path().glob(word))) if "*" in word else []) or [word]
