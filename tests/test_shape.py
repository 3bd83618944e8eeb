"""The code keeps its shape: short functions, few parameters, shallow classes."""

from __future__ import annotations

import ast
import importlib
import pkgutil
from collections.abc import Iterator
from inspect import isclass
from pathlib import Path
from statistics import median
from types import ModuleType

import dialbench_adapters

import dialbench

ROOT = Path(__file__).parents[1]
PACKAGES = ("dialbench", "adapters", "benchmarks")
WITHOUT_ITS_PACKAGE = "dialbench.running.tensorboard"
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


def modules() -> Iterator[ModuleType]:
    for package in (dialbench, dialbench_adapters):
        for actual in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not actual.name.endswith("__main__") and actual.name != WITHOUT_ITS_PACKAGE:
                yield importlib.import_module(actual.name)


def depth(kind: type) -> int:
    """How many classes of ours stand above each other, this one counted."""
    ours = (base for base in kind.__bases__ if base.__module__.startswith("dialbench"))
    return 1 + max(map(depth, ours), default=0)


def test_no_class_is_more_than_four_deep() -> None:
    classes = {kind for module in modules() for kind in vars(module).values() if isclass(kind)}
    ours = [kind for kind in classes if kind.__module__.startswith("dialbench")]
    assert sorted(kind.__qualname__ for kind in ours if depth(kind) > 4) == []
