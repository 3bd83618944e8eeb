"""The pages on Python show what Python gives: docs/python.md and the notebook, run as they are."""

from __future__ import annotations

import ast
import doctest
import json
import re
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).resolve().parents[1] / "docs"
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


@pytest.fixture(autouse=True)
def _empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_the_page_is_a_doctest() -> None:
    text = (DOCS / "python.md").read_text(encoding="utf-8")
    code = "\n".join(re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    page = doctest.DocTestParser().get_doctest(code, {"__name__": "page"}, "python.md", None, 0)
    failures: list[str] = []
    actual = doctest.DocTestRunner(optionflags=FLAGS).run(page, out=failures.append)
    assert actual.attempted > 20
    assert not failures, "".join(failures)


def cells() -> Iterator[dict[str, Any]]:
    notebook = json.loads((DOCS / "python.ipynb").read_text(encoding="utf-8"))
    return (cell for cell in notebook["cells"] if cell["cell_type"] == "code")


def showing(cell: dict[str, Any]) -> list[ast.stmt]:
    """The statements of a cell, the last of which hands its value to `show`."""
    *statements, last = ast.parse("".join(cell["source"])).body
    if isinstance(last, ast.Expr):
        last = ast.parse(f"show({ast.unparse(last)})").body[0]
    return [*statements, last]


def rows(html: str) -> list[str]:
    """The words that the rows of a table show."""
    (body,) = re.findall(r"<tbody>(.*?)</tbody>", html, re.DOTALL)
    return re.sub(r"<[^>]+>", " ", body).split()


def test_the_notebook_shows_what_its_cells_give(tmp_path: Path) -> None:
    script, values = tmp_path / "notebook.py", list[Any]()
    statements = [statement for cell in cells() for statement in showing(cell)]
    script.write_text(ast.unparse(ast.Module(statements, [])), encoding="utf-8")
    runpy.run_path(str(script), {"show": values.append})
    outputs = [output["data"] for cell in cells() for output in cell["outputs"]]
    assert len(outputs) == len(values) > 5
    for shown, value in zip(outputs, values, strict=True):
        assert "".join(shown["text/plain"]).split() == repr(value).split()
        if type(value).__module__.startswith("dialbench"):
            assert rows("".join(shown["text/html"])) == rows(value._repr_html_())
