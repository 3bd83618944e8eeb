"""Writes a comparison with a baseline as JUnit XML: a test case a row, one for the columns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from dialbench.checking.findings import Comparison
from dialbench.checking.wording import counts_of, row_lines, summarise

_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def to_junit(comparison: Comparison, title: str) -> str:
    """One test suite called `title`; texts that may not be published are left out."""
    cases = len(comparison.rows) + 1
    failed = len(comparison.failing) + bool(comparison.columns)
    suite = Element("testsuite", name=_legal_xml(title), tests=str(cases), failures=str(failed))
    summary = summarise(comparison, public=True)
    _case(suite, title, "columns", "; ".join(comparison.columns), summary.why)
    for row in comparison.rows:
        lines = [] if row.ok else [*row_lines(row, public=True), *summary.why]
        _case(suite, title, row.name, counts_of(row), lines)
    indent(suite)
    return tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def _case(suite: Element, title: str, name: str, failure: str, lines: Sequence[str]) -> None:
    case = SubElement(suite, "testcase", classname=_legal_xml(title), name=_legal_xml(name))
    if failure:
        failed = SubElement(case, "failure", message=_legal_xml(failure), type="regression")
        failed.text = _legal_xml("\n".join(dict.fromkeys(lines)))


def _legal_xml(text: str) -> str:
    return _NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}", text)
