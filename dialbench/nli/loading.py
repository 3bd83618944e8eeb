"""A judge by what the user names: a model on this machine, or the one that comes with dialbench."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dialbench.errors import InputError
from dialbench.files.pretrained import Pretrained
from dialbench.nli import embedded
from dialbench.nli.judge import LONGEST, Classifier, Judge, order_of, require_sane

_OPTION = "--nli"


def find(model: str | None) -> Judge | None:
    """The judge called `model`, after it got three plain pairs right.

    Args:
        model: the folder of a sequence classifier of the transformers library or a CrossEncoder
            of sentence-transformers, a name in the local cache of the Hub, or a folder that
            `dialbench nli train` wrote; None takes the embedded judge.

    Returns:
        None if none is named and the extra `nli` is not installed.

    Raises:
        InputError: it cannot be used, or gets one of the three pairs wrong.
    """
    if model is None:
        base = embedded.base_folder()
        judge = None if base is None else embedded.load(base, embedded.WEIGHTS)
    else:
        judge = _named(model)
    if judge is not None:
        require_sane(judge, where=f"{_OPTION} {model}" if model else "the embedded judge")
    return judge


def _named(model: str) -> Judge:
    where = f"{_OPTION} {model}"
    adaptation = Path(model).expanduser() / embedded.WEIGHTS.name
    if not adaptation.is_file():
        return _classifier(Pretrained.find(model, where=where, subject="it"), where)
    base = embedded.base_folder()
    if base is None:
        raise InputError("it adapts a base that is not here", where=where, hint=embedded.HINT)
    return embedded.load(base, adaptation)


def _classifier(checkpoint: Pretrained, where: str) -> Judge:
    from transformers import AutoModelForSequenceClassification

    model = checkpoint.read_model(AutoModelForSequenceClassification.from_pretrained).eval()
    tokenizer = checkpoint.read_tokenizer()
    positions = getattr(model.config, "max_position_embeddings", None) or LONGEST

    def logits(**batch: Any) -> Any:
        return model(**batch).logits

    return Classifier(
        logits,
        tokenizer,
        order_of(model.config.id2label, where=where),
        f"{_title(checkpoint)}@{checkpoint.checksum[:12]}",
        longest=min(LONGEST, positions, tokenizer.model_max_length),
    )


def _title(checkpoint: Pretrained) -> str:
    # A folder's place says nothing about the model; its name does.
    is_folder = Path(checkpoint.given_name).expanduser().is_dir()
    return checkpoint.folder.name if is_folder else checkpoint.given_name
