"""Tables as PDF, where TeX is installed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from dialbench.errors import InputError
from dialbench.reporting.formats.to_latex import PREAMBLE

_PROGRAM = "pdflatex"
_OPTIONS = ("-no-shell-escape", "-interaction=nonstopmode", "-halt-on-error")
_INSTALL = "Install it (Debian: texlive-latex-extra, texlive-science), or leave --standalone out."
_TOO_LARGE = re.compile(r"Float too large for page by ([\d.]+)pt")
_MISSING = re.compile(r"File `([^']+)' not found")


def check() -> None:
    """Makes sure that tables can be typeset.

    Raises:
        InputError: pdflatex is not installed.
    """
    if shutil.which(_PROGRAM) is None:
        raise InputError(f"{_PROGRAM} is not installed", where="--standalone", hint=_INSTALL)


def pdf(table: str) -> bytes:
    """The text of `to_latex` as a PDF of one page; the same table gives the same bytes.

    Raises:
        InputError: pdflatex is not installed, lacks a package or refuses the table.
    """
    check()
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "this-file.tex").write_text(table, encoding="utf-8")
        log = _compile(folder, _document())
        # TeX never breaks a float: what does not fit into the page would be lost.
        if missing := [float(points) for points in _TOO_LARGE.findall(log)]:
            log = _compile(folder, _document(longer=max(missing)))
        pdf_file = Path(folder) / "table.pdf"
        if not pdf_file.is_file():
            raise InputError(
                f"{_PROGRAM} refuses: {_reason(log)}", where="--standalone", hint=_INSTALL
            )
        return pdf_file.read_bytes()


def _document(longer: float = 0) -> str:
    """The document around the table, without page number, date and name of the program.

    Args:
        longer: points by which the page is longer than usual.
    """
    preamble = re.sub(r"(?m)^% ", "", PREAMBLE)
    return preamble.replace(
        r"\begin{document}",
        rf"\geometry{{paperheight=\dimexpr\paperheight+{longer}pt\relax}}"
        r"\pagestyle{empty}\pdfinfoomitdate=1 \pdfsuppressptexinfo=-1 \pdftrailerid{}"
        "\n" + r"\begin{document}",
    )


def _compile(folder: str, document: str) -> str:
    (Path(folder) / "table.tex").write_text(document, encoding="utf-8")
    # Without the variables, the time of the run would be in the file.
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "0", "FORCE_SOURCE_DATE": "1"}
    # S603: the program is our own choice, and so is every argument.
    run = subprocess.run(  # noqa: S603
        [_PROGRAM, *_OPTIONS, "table.tex"],
        cwd=folder,
        env=environment,
        capture_output=True,
        check=False,
    )
    return run.stdout.decode("utf-8", "replace")


def _reason(log: str) -> str:
    """Why there is no PDF, in one line."""
    if missing := _MISSING.search(log):
        return f"{missing[1]} is not installed"
    return next((line for line in log.splitlines() if line.startswith("!")), "no reason given")
