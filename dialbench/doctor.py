"""Whether this machine is ready for a run: packages, device, corpora, models."""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from dialbench.errors import DialbenchError, InputError
from dialbench.extras import EXTRAS, PURPOSES, are_installed, install_command
from dialbench.metrics.entailment import NO_JUDGE
from dialbench.systems import Registry

_CORE = ("numpy", "scipy", "nltk", "safetensors")


def doctor(data: Path | None = None) -> tuple[str, bool]:
    """What is installed and found here, and whether the demo run can work.

    Returns:
        Lines for people, and False if an installed system is broken. Each line of something
        missing ends with what brings it.
    """
    lines = [f"python {platform.python_version()} on {platform.platform()}"]
    lines.extend([*_package_lines(), *_corpus_lines(data), _wordnet_line(data), _judge_line()])
    broken = _broken_systems()
    lines.extend(f"broken   system {name}: {reason}" for name, reason in broken.items())
    return "\n".join(lines), not broken


def _package_lines() -> Iterable[str]:
    yield from (f"ok       {name} {importlib.metadata.version(name)}" for name in _CORE)
    distributions = importlib.metadata.packages_distributions()
    for module, extra in EXTRAS.items():
        if are_installed(module):
            name = distributions[module][0]
            yield f"ok       {name} {importlib.metadata.version(name)}"
        else:
            yield f"missing  {module}, for {PURPOSES[extra]}: {install_command(extra)}"
    if are_installed("torch"):
        yield from _device_lines()


def _broken_systems() -> dict[str, str]:
    if not are_installed("torch"):  # most would need it; that has its line
        return {}
    registry = Registry()
    for name in registry.names():
        with suppress(InputError):
            registry.get(name)
    return registry.broken


def _device_lines() -> Iterable[str]:
    from dialbench.neural.devices import describe, dtype_of, resolve

    device = resolve("auto")
    facts = describe(device, dtype_of("auto", device))
    yield f"ok       device {facts['device']}, {facts['dtype']}, {facts['threads']} threads"


def _corpus_lines(data: Path | None) -> Iterable[str]:
    from dialbench.corpora import base
    from dialbench.files.folders import data_folder

    folder = data_folder(data)
    if folder.is_dir():
        yield f"ok       data folder {folder}"
    else:
        yield f"missing  data folder {folder}: name one with --data DIR"
    for name in base.names():
        try:
            corpus = base.load_corpus(name, data=data)
        except DialbenchError as error:
            yield f"missing  corpus {name}: {error.message}"
        else:
            sizes = "/".join(f"{len(corpus.split(s)):,}" for s in ("train", "valid", "test"))
            yield f"ok       corpus {name}: {sizes} examples"


def _wordnet_line(data: Path | None) -> str:
    from dialbench.files.folders import data_folder
    from dialbench.metrics.wordnet import WordNet

    wordnet = WordNet.find(data_folder(data))
    return f"ok       WordNet {wordnet.checksum[:12]} ({wordnet.path})"


def _judge_line() -> str:
    if not are_installed("torch", "transformers"):
        return f"missing  judge of ue: {NO_JUDGE}"
    from dialbench.nli.loading import find

    try:
        judge = find(None)
    except DialbenchError as error:
        return f"missing  judge of ue: {error.message}"
    return f"ok       judge of ue: {judge.name}" if judge else f"missing  judge of ue: {NO_JUDGE}"
