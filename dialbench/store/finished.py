"""The folder of a trained system: `trained.json`, and in `system` what the system wrote.

A runs folder has one for each training run; `push` copies it, with a card, to be passed on.
"""

from __future__ import annotations

import shutil
from pathlib import Path, PurePosixPath

from dialbench.files.atomic import storage_errors
from dialbench.files.checksum import sha256_of
from dialbench.store.schema import TrainedRecord, damage_error, read_record

TRAINED, SYSTEM, CARD = "trained.json", "system", "README.md"


def is_finished(folder: Path) -> bool:
    """Whether it is the folder of a trained system, damaged or not."""
    return (folder / TRAINED).is_file()


def read_finished(folder: Path) -> TrainedRecord:
    """What is known of the trained system in a folder from wherever.

    Raises:
        StorageError: its record is damaged.
    """
    path = folder / TRAINED
    record = read_record(path, TrainedRecord)
    if record.training_fingerprint != record.job.job().training_fingerprint:
        raise damage_error(path, "the job does not match its fingerprint")
    for name in record.files:
        parts = PurePosixPath(name).parts
        if PurePosixPath(name).is_absolute() or not parts or ".." in parts:
            raise damage_error(path, f"{name!r} is no file of a system")
    return record


def verified_system(folder: Path, record: TrainedRecord, hint: str) -> Path:
    """The folder that `Adapter.load` reads, every file compared with its checksum.

    Raises:
        StorageError: a file is damaged or missing; `hint` says what to do then.
    """
    for name, sha256 in record.files.items():
        verify(folder / SYSTEM / name, sha256, hint)
    return folder / SYSTEM


def copy_finished(source: Path, target: Path, hint: str) -> TrainedRecord:
    """Copies the files of a trained system that its record names, checked, into an empty folder.

    Raises:
        StorageError: a file is damaged or missing, or the disk refuses.
    """
    record = read_finished(source)
    system = verified_system(source, record, hint)
    (target / SYSTEM).mkdir()
    for name in record.files:
        path = target / SYSTEM / name
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(system / name, path)
    shutil.copyfile(source / TRAINED, target / TRAINED)
    if (source / CARD).is_file():
        shutil.copyfile(source / CARD, target / CARD)
    return record


def verify(path: Path, sha256: str, hint: str) -> None:
    """Checks that a file is as it was written.

    Raises:
        StorageError: it is not.
    """
    if not path.is_file():
        raise damage_error(path, "it is missing", hint)
    if checksum(path) != sha256:
        raise damage_error(path, "its checksum does not match", hint)


def checksum(path: Path) -> str:
    """sha256 of a file.

    Raises:
        StorageError: the disk refuses.
    """
    with storage_errors(path):
        return sha256_of(path)
