"""Trained systems passed on: a folder with a card is pushed, and pulled with its checksums."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from dialbench.errors import InputError, first_line
from dialbench.extras import are_installed, install_command
from dialbench.files.atomic import atomic_write, new_folder
from dialbench.running.model_card import write_card
from dialbench.running.trained import TrainedSystem, find, load
from dialbench.store.finished import CARD, copy_finished, is_finished
from dialbench.systems import Plugin

_HINT = "Get the whole folder again."


def push(
    runs: Path,
    system: str,
    target: str,
    *,
    corpus: str | None = None,
    seed: int | None = None,
    plugins: Iterable[Plugin] = (),
    hub: bool = False,
) -> None:
    """Writes a trained system and its card to a new folder, or uploads them.

    Args:
        runs: as of `load`, like all below but `target` and `hub`.
        system: its name.
        corpus: what it was trained on.
        seed: of its training.
        plugins: further systems: files or classes.
        target: the folder, or with `hub` a repository OWNER/NAME; a new one is private.
        hub: whether to upload it to the Hugging Face Hub.

    Raises:
        InputError: there is no such system, the folder is there already, or the Hub refuses.
        StorageError: a file is damaged, or the disk refuses.
    """
    found = find(runs, system, corpus=corpus, seed=seed, plugins=plugins)

    def write(folder: Path) -> None:
        record = copy_finished(found.folder, folder, _HINT)
        atomic_write(folder / CARD, write_card(found, record))

    if not hub:
        with new_folder(Path(target)) as new:
            write(new)
        return
    with TemporaryDirectory() as temporary:
        write(Path(temporary))
        _ask_hub("create_repo", repo_id=target, private=True, exist_ok=True)
        _ask_hub("upload_folder", repo_id=target, folder_path=temporary)


def pull(
    source: str, out: Path, *, plugins: Iterable[Plugin] = (), hub: bool = False
) -> TrainedSystem:
    """Copies a pushed system to a new folder, if it is whole and can be loaded.

    Args:
        source: the folder, or with `hub` a repository OWNER/NAME.
        out: the new folder.
        plugins: as of `load`.
        hub: whether to download it from the Hugging Face Hub.

    Returns:
        The system; `load(out)` gives it again.

    Raises:
        InputError: nothing was pushed there, it cannot be loaded, or the Hub refuses.
        StorageError: a file is damaged, or the disk refuses.
    """
    folder = Path(_ask_hub("snapshot_download", repo_id=source) if hub else source)
    if not is_finished(folder):
        hint = "Name what `dialbench push` wrote."
        raise InputError("there is no trained system", where=source, hint=hint)

    with new_folder(out) as new:
        copy_finished(folder, new, _HINT)
        load(new, plugins=plugins, device="cpu")
    return load(out, plugins=plugins)


def _ask_hub(action: str, *, repo_id: str, **arguments: Any) -> Any:
    if not are_installed("huggingface_hub"):  # which comes with transformers
        what = "it needs huggingface_hub, which is not installed"
        raise InputError(what, where="--hub", hint=f"Run: {install_command('hf')}")
    from huggingface_hub import HfApi

    try:
        return getattr(HfApi(), action)(repo_id=repo_id, **arguments)
    except Exception as error:  # of the Hub, the network, or its library
        raise InputError(
            f"the Hub refused {repo_id} ({first_line(error)})",
            where="--hub",
            hint="Check the name, and log in with `hf auth login`.",
        ) from None
