"""dialbench: train, run, score and compare open-domain dialogue response generators."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from dialbench.errors import naming_arguments
from dialbench.version import __version__

__all__ = [
    "__version__",
    "check",
    "compare",
    "load",
    "load_adapter",
    "load_corpus",
    "report",
    "run",
    "score",
]

# Loaded when first used: torch and pandas take seconds, and `dialbench --help` needs neither.
_MODULES = {
    "check": "dialbench.checking.check",
    "compare": "dialbench.api",
    "load": "dialbench.running.trained",
    "load_adapter": "dialbench.systems",
    "load_corpus": "dialbench.corpora.base",
    "report": "dialbench.reports",
    "run": "dialbench.api",
    "score": "dialbench.api",
}

if TYPE_CHECKING:
    from dialbench.api import compare, run, score
    from dialbench.checking.check import check
    from dialbench.corpora.base import load_corpus
    from dialbench.reports import report
    from dialbench.running.trained import load
    from dialbench.systems import load_adapter
else:  # Unseen by type checkers, which would accept any name otherwise.

    def __getattr__(name: str) -> object:
        if name not in _MODULES:
            raise AttributeError(f"module 'dialbench' has no attribute {name!r}")
        function = naming_arguments(getattr(import_module(_MODULES[name]), name))
        return globals().setdefault(name, function)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
