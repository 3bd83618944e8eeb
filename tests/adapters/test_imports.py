"""What a system may import of the harness."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ALLOWED = {"adapter", "neural", "text", "files", "records", "errors"}
"""The contract, and what every system shares; nothing of plans, corpora, metrics or reports."""
SYSTEMS = Path(__file__).resolve().parents[2] / "adapters"


def _imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_systems_see_the_contract_and_the_neural_core_alone() -> None:
    files = sorted(SYSTEMS.rglob("*.py"))
    assert len(files) > 40
    imported = {
        (str(file.relative_to(SYSTEMS)), name.split(".")[1])
        for file in files
        for name in _imported(ast.parse(file.read_text(encoding="utf-8")))
        if name.startswith("dialbench.")
    }
    assert {(file, room) for file, room in imported if room not in ALLOWED} == set()
    assert {room for _, room in imported} == ALLOWED
