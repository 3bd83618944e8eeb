"""A judge by what the user names: a model on this machine, or the one that comes with the suite."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dialbench.errors import InputError
from dialbench.files.folders import checkpoint_folder
from dialbench.nli import embedded
from dialbench.nli.judge import LONGEST, Classifier, Judge, demand_sane, order_of

_OPTION = "--nli"
_COMPLETE = "Name a folder with config.json, model.safetensors and the tokenizer's files."


def find(model: str | None) -> Judge | None:
    """The judge called `model`, after it got three plain pairs right.

    Args:
        model: the folder of a sequence classifier of the transformers library or a CrossEncoder
            of sentence-transformers, a name in the local cache of the Hub, or a folder that
            `dialbench nli train` wrote; None takes the embedded judge.

    Returns:
        None if none is named and the extra `offline` is not installed.

    Raises:
        InputError: it cannot be used, or gets one of the three pairs wrong.
    """
    if model is None:
        base = embedded.base_folder()
        judge = None if base is None else embedded.load(base, embedded.WEIGHTS)
    else:
        judge = _named(model)
    if judge is not None:
        demand_sane(judge, where=f"{_OPTION} {model}" if model else "the embedded judge")
    return judge


def _named(model: str) -> Judge:
    folder = _folder(model)
    weights = folder / embedded.WEIGHTS.name
    if not weights.is_file():
        return _Loader(model, folder).load()
    base = embedded.base_folder()
    if base is None:
        raise InputError(
            "it adapts a base that is not here",
            where=f"{_OPTION} {model}",
            hint="Install dialbench[offline].",
        )
    return embedded.load(base, weights)


def _folder(model: str) -> Path:
    folder = checkpoint_folder(model)
    if folder is None:
        raise InputError(
            "is neither a folder nor a model in the local cache of the Hub",
            where=f"{_OPTION} {model}",
            hint=f"Nothing is downloaded. {_COMPLETE}",
        )
    return folder


class _Loader:
    """Reads a checkpoint without running code of its own or unpickling anything."""

    def __init__(self, model: str, folder: Path) -> None:
        self.folder, self.where = folder, f"{_OPTION} {model}"
        self.title = Path(model).expanduser().name if Path(model).is_dir() else model

    def load(self) -> Judge:
        """The judge of the folder.

        Raises:
            InputError: a file is missing or damaged, or it is no NLI model.
        """
        self._demand_plain()
        from transformers import AutoModelForSequenceClassification, AutoTokenizer

        model, report = self._read(
            AutoModelForSequenceClassification.from_pretrained,
            use_safetensors=True,
            output_loading_info=True,
        )
        if report["missing_keys"]:
            raise self._error(f"it lacks {', '.join(sorted(report['missing_keys']))}")
        tokenizer = self._read(AutoTokenizer.from_pretrained)
        order = order_of(model.config.id2label, where=self.where)
        positions = getattr(model.config, "max_position_embeddings", None) or LONGEST
        longest = min(LONGEST, positions, tokenizer.model_max_length)
        model.float().eval()

        def logits(**batch: Any) -> Any:
            return model(**batch).logits

        return Classifier(logits, tokenizer, order, self._name(), longest)

    def _demand_plain(self) -> None:
        if not (self.folder / "config.json").exists():
            raise self._error("there is no config.json")
        for path in self.folder.glob("*config.json"):
            name = path.name
            try:
                own_code = "auto_map" in json.loads(path.read_text(encoding="utf-8"))
            except (OSError, ValueError, TypeError):
                raise self._error(f"{name} cannot be read") from None
            if own_code:
                raise self._error(f"it asks in {name} for code of its own, which is never run")
        if not any(self.folder.glob("*.safetensors")):
            raise self._error("there are no weights as *.safetensors")

    def _name(self) -> str:
        digest = hashlib.sha256()
        for path in sorted(self.folder.glob("*")):
            if path.suffix in {".json", ".model", ".safetensors", ".txt"}:
                with path.open("rb") as file:
                    digest.update(hashlib.file_digest(file, "sha256").digest())
        return f"{self.title}@{digest.hexdigest()[:12]}"

    def _read(self, read: Callable[..., Any], **options: Any) -> Any:
        from transformers.utils import logging

        logging.set_verbosity_error()  # type: ignore[no-untyped-call]
        logging.disable_progress_bar()  # type: ignore[no-untyped-call]
        options |= {"local_files_only": True, "trust_remote_code": False}
        try:
            return read(self.folder, **options)
        except Exception as error:  # whatever a library of 200 architectures may raise
            first = next(iter(str(error).strip().splitlines()), type(error).__name__)
            raise self._error(f"it cannot be read ({first.rstrip('.')})") from None

    def _error(self, what: str) -> InputError:
        return InputError(what, where=self.where, hint=_COMPLETE)
