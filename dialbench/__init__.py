"""dialbench: train, run, score and compare open-domain dialogue response generators."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOMES = {
    "run": "dialbench.bench",
    "score": "dialbench.scoring",
    "report": "dialbench.bench",
    "check": "dialbench.checking",
    "load_corpus": "dialbench.corpora.base",
    "load_adapter": "dialbench.bench",
}
__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'dialbench' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
