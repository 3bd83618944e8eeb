"""Tables as PDF: what stands in them, that their bytes repeat, and what is said without TeX."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace

import pytest

from dialbench.errors import InputError
from dialbench.records import Cell, Column, Row, Table
from dialbench.reporting.formats import typeset
from dialbench.reporting.formats.render import render
from dialbench.reporting.options import ReportOptions
from dialbench.reporting.report import write

COLUMNS = (Column("m", "M"), Column("d", "diff.", direction="none"))
TABLE = Table(
    "t",
    "A caption",
    COLUMNS,
    (
        Row("a_b", {"m": Cell(12345.6789, best=True), "d": Cell(0.574, text="+0.574")}),
        Row("c", {"m": Cell(-0.25, second=True, significant=True), "d": Cell()}),
    ),
    ("Said below.",),
)


@pytest.fixture
def tex():
    if shutil.which("pdflatex") is None:
        pytest.skip("pdflatex is not installed: apt-get install texlive-latex-extra")
    if not subprocess.run(["kpsewhich", "siunitx.sty"], capture_output=True, check=False).stdout:
        pytest.skip("siunitx is not installed: apt-get install texlive-science")


@pytest.fixture
def words_of(tex):
    """`words_of(path)`: the words on the pages of a PDF."""
    if shutil.which("pdftotext") is None:
        pytest.skip("pdftotext is not installed: apt-get install poppler-utils")

    def words_of(path):
        table_text = subprocess.run(
            ["pdftotext", "-layout", path, "-"], capture_output=True, check=True
        )
        return table_text.stdout.decode("utf-8").split()

    return words_of


def test_the_page_reads_as_the_table(words_of, tmp_path):
    (path,) = write([TABLE], [], tmp_path, ReportOptions((), standalone=True))
    assert path.name == "t.pdf"
    words = words_of(path)
    for word in ("a_b", "12345.679", "+0.574", "−0.250", "caption.", "below."):
        assert any(word in words_found for words_found in words), (word, words)


def test_however_many_notes_there_are_all_can_be_read(words_of, tmp_path):
    notes = tuple(f"This is note{number}, which says what the others do." for number in range(250))
    (path,) = write([replace(TABLE, notes=notes)], [], tmp_path, ReportOptions((), standalone=True))
    words = words_of(path)
    assert all(f"note{number}," in words for number in range(250))


@pytest.mark.usefixtures("tex")
def test_the_same_table_has_the_same_bytes():
    first, second = (typeset.pdf(render(TABLE, "tex")) for _ in range(2))
    assert first == second
    assert b"CreationDate" not in first


@pytest.mark.usefixtures("tex")
def test_a_missing_package_is_named(monkeypatch):
    preamble = typeset.PREAMBLE.replace("siunitx", "no-such-package")
    monkeypatch.setattr(typeset, "PREAMBLE", preamble)
    with pytest.raises(InputError, match=r"no-such-package\.sty is not installed. Install it"):
        typeset.pdf(render(TABLE, "tex"))


def test_without_tex_nothing_is_written_and_it_is_said(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match="--standalone: pdflatex is not installed"):
        write([TABLE], [], tmp_path, ReportOptions(["md"], standalone=True))
    assert not list(tmp_path.iterdir())
