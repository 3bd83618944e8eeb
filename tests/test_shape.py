"""The code keeps its shape: short functions, few parameters."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[1]
PACKAGES = ("dialbench", "adapters", "benchmarks")
Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions() -> Iterator[tuple[str, Function]]:
    """Every function with where it stands."""
    for path in (path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, Function):
                yield f"{path.relative_to(ROOT)}:{node.lineno} {node.name}", node


def length(node: Function) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def parameters(node: Function) -> int:
    """How many there are; `*names` and `**names` count one each, `self` and `cls` none."""
    arguments = node.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    every += [argument for argument in (arguments.vararg, arguments.kwarg) if argument]
    return sum(argument.arg not in ("self", "cls") for argument in every)


def test_no_function_has_more_than_seven_parameters() -> None:
    assert [where for where, node in functions() if parameters(node) > 7] == []


def test_functions_are_short() -> None:
    lengths = {where: length(node) for where, node in functions()}
    assert [where for where, lines in lengths.items() if lines > 80] == []
    assert median(lengths.values()) < 10
