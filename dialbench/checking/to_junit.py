"""A comparison with a baseline as JUnit XML: one test case a row, one for the columns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from dialbench.checking.findings import Comparison
from dialbench.checking.wording import counts_of, row_lines, words_of

_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def checked_to_junit(found: Comparison, title: str) -> str:
    """One test suite called `title`; texts that may not be published are left out."""
    cases = len(found.rows) + 1
    failed = len(found.failing) + bool(found.columns)
    suite = Element("testsuite", name=_legal(title), tests=str(cases), failures=str(failed))
    words = words_of(found, public=True)
    _case(suite, title, "columns", "; ".join(found.columns), words.why)
    for row in found.rows:
        lines = [] if row.ok else [*row_lines(row, public=True), *words.why]
        _case(suite, title, row.name, counts_of(row), lines)
    indent(suite)
    return tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def _case(suite: Element, title: str, name: str, failure: str, lines: Sequence[str]) -> None:
    case = SubElement(suite, "testcase", classname=_legal(title), name=_legal(name))
    if failure:
        told = SubElement(case, "failure", message=_legal(failure), type="regression")
        told.text = _legal("\n".join(dict.fromkeys(lines)))


def _legal(text: str) -> str:
    return _NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}", text)
