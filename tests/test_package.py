"""What `import dialbench` gives, and what a wheel holds."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from importlib import import_module
from inspect import unwrap
from pathlib import Path

import pytest

import dialbench

ROOT = Path(__file__).resolve().parent.parent


def run(script: str, folder: Path = ROOT) -> str:
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=folder, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_dialbench_loads_nothing_heavy() -> None:
    heavy = "{'torch', 'numpy', 'scipy', 'pandas', 'matplotlib', 'nltk', 'gensim'}"
    script = f"import sys, dialbench; dir(dialbench); print(sorted({heavy} & set(sys.modules)))"
    assert run(script).strip() == "[]"


def test_every_public_name_is_listed_and_loads() -> None:
    assert set(dialbench.__all__) <= set(dir(dialbench))
    assert all(getattr(dialbench, name) for name in dialbench.__all__)
    assert not hasattr(dialbench, "nothing")


def test_type_checkers_see_each_name_where_it_is_loaded_from() -> None:
    tree = ast.parse((ROOT / "dialbench/__init__.py").read_text(encoding="utf-8"))
    (guarded,) = (
        node for node in tree.body if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node)
    )
    imports = [node for node in guarded.body if isinstance(node, ast.ImportFrom)]
    seen = {alias.name: node.module for node in imports for alias in node.names}
    public = set(dialbench.__all__) - {"__version__"}
    assert set(seen) == public
    for name, module in seen.items():
        assert getattr(import_module(str(module)), name) is unwrap(getattr(dialbench, name))


def test_a_wheel_has_every_package_of_the_checkout() -> None:
    pytest.importorskip("setuptools")
    script = (
        "import runpy, setuptools\n"
        "setuptools.setup = lambda packages: print(*packages)\n"
        "runpy.run_path('setup.py')\n"
    )
    folders = {
        file.parent.relative_to(ROOT)
        for name in ("dialbench", "adapters")
        for file in (ROOT / name).rglob("*.py")
    }
    modules = {".".join(folder.parts) for folder in folders}
    expected = {f"dialbench_{name}" if name.startswith("adapters") else name for name in modules}
    assert set(run(script).split()) == expected


def test_the_licence_and_the_citation_are_those_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"version: {dialbench.__version__}\n" in citation
    assert f"license: {project['license']}\n" in citation
    assert all((ROOT / name).is_file() for name in project["license-files"])


def test_the_lock_file_has_every_pinned_package_but_torch() -> None:
    pins = re.compile(r"^([\w.-]+)==([^\s\\]+)", re.MULTILINE)

    def pinned(name: str) -> dict[str, str]:
        found = pins.findall((ROOT / name).read_text())
        return {package.lower().replace("_", "-"): version for package, version in found}

    constraints = pinned("constraints.txt")
    assert constraints.pop("torch")
    assert pinned("requirements.lock") == constraints
