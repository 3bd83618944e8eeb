"""Where corpora, word vectors and NLI data are downloaded from, and how they reach the data folder.

The checksums of archives are those that public projects pin for the same file; the checksums of
single files were taken from the very files that dialbench's numbers were made on.
"""

from __future__ import annotations

import errno
import gzip
import lzma
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO

from dialbench.corpora.fetch import (
    DEFAULT_RETRIES,
    Progress,
    RetryPolicy,
    check_sha256,
    disk_errors,
    download_part,
    fetch,
    move_verified,
    no_progress,
    part_path,
)
from dialbench.errors import InputError, UnknownName, first_line
from dialbench.files.checksum import sha256_of
from dialbench.files.folders import data_folder

# RuntimeError: packed with a password or in a way that zipfile does not know.
_DAMAGED = (
    zipfile.BadZipFile,
    tarfile.TarError,
    gzip.BadGzipFile,
    lzma.LZMAError,
    zlib.error,
    EOFError,
    ValueError,
    RuntimeError,
)


@dataclass(frozen=True)
class Member:
    """A file inside an archive: where it goes in the data folder, and its sha256 if known."""

    path: str
    sha256: str | None = None


@dataclass(frozen=True)
class Source:
    """Something to download.

    Attributes:
        url: where it is.
        path: where the download goes in the data folder.
        licence: as its publisher states it.
        sha256: of the download; None where no trustworthy one is known.
        members: what to extract from the archive, by file name; the archive is then removed.
            Empty: the download is kept as it is.
    """

    url: str
    path: str
    licence: str
    sha256: str | None = None
    members: Mapping[str, Member] = field(default_factory=dict)

    @property
    def files(self) -> list[Member]:
        """What it leaves in the data folder."""
        return list(self.members.values()) or [Member(self.path, self.sha256)]

    @property
    def pinned(self) -> bool:
        """Whether everything that it leaves can be verified."""
        return self.sha256 is not None or all(file.sha256 for file in self.files)


def _dailydialog(split: str, sha256: str) -> Source:
    # The archives of the original distribution, in a public repository at a fixed commit.
    base = "https://raw.githubusercontent.com/kent-ai-dev/engram"
    name = f"dialogues_{split}.txt"
    return Source(
        url=f"{base}/9874fe15199f13692201faa5b530a78786192b5f/dailydialog_raw/EMNLP_dataset/{split}.zip",
        path=f"dailydialog/{split}.zip",
        licence="CC BY-NC-SA 4.0",
        members={name: Member(f"dailydialog/{split}/{name}", sha256)},
    )


def _file(url: str, path: str, licence: str, sha256: str) -> Source:
    """A single file of a public repository at a fixed commit."""
    return Source(f"https://raw.githubusercontent.com/{url}", path, licence, sha256)


_DIALOGVED = "lemuria-wchen/DialogVED/23177dfeecff831c1417fc661e75f8947fffba5d/data/finetune"
_DAILYDIALOG_PLUSPLUS = (
    "iitmnlp/DailyDialog-plusplus/4b02f9ff671e7e27d8e6b8a1925158bd5729abda/dataset"
)
_MULTIREF = "prakharguptaz/multirefeval/2a4b5440e21dba518dffd6d535dfb1450ab9c4a7/multiref-dataset"
_NLTK = "nltk/nltk_data/550b6625bcef1f2abff2ff770a5a0d272c9c6b2a/packages"
_PERSONACHAT = (
    "Patrick-Ni/KnowEE/84b0910f969e399a8cca0b1a005a03c0c3671dd3/data/preprocess_data/persona_chat"
)

# Training files of some of these are published beside, but no trustworthy checksum is known.
SOURCES: Mapping[str, Sequence[Source]] = {
    "adand": [
        Source(
            url="https://github.com/hengyicai/AdaND/raw/HEAD/data/adand_data.tar.gz",
            path="adand/adand_data.tar.gz",
            licence="not stated",
        )
    ],
    "avsd": [
        _file(
            f"{_DIALOGVED}/dstc7avsd/original_data/dial.test",
            "dstc7_avsd_plato/dial.test",
            "not stated",
            "e84f5af93beb7565a5f4ce08a43a705004d4f87bcfed39da3484b153159dc76c",
        )
    ],
    "dailydialog": [
        _dailydialog("train", "71633bd5fdb0b09dd82215b131b56432cf7329a0fe50bc8adec168713d350d1a"),
        _dailydialog(
            "validation", "2ad64701fe3a4449e7a6ee7cdc6c2a71c80f77b8a34f708ac0532395f499081c"
        ),
        _dailydialog("test", "3c323651cdfb09f7b529f850eddf96a638fc6cc9b43330b77956ab248484a1a8"),
    ],
    "dailydialog++": [
        _file(
            f"{_DAILYDIALOG_PLUSPLUS}/dev.json",
            "dailydialog_plusplus/dev.json",
            "MIT",
            "afbdee92c9ab372f599c605609676fceba517f83286d58555f0404f4364b5bfa",
        ),
        _file(
            f"{_DAILYDIALOG_PLUSPLUS}/test.json",
            "dailydialog_plusplus/test.json",
            "MIT",
            "e8202c3d4b11008a13061b15c4d8ce1f6d05baa9104a9c1f5caa5450134522fa",
        ),
    ],
    "dailydialog-multiref": [
        _file(
            f"{_MULTIREF}/multireftest.json",
            "dailydialog_multiref/multireftest.json",
            "not stated",
            "4f487bda98be4f61bcacb2aa31e24cf01a840ebb8c1331caa1deb12c493878b6",
        )
    ],
    "dailydialog-plato": [
        _file(
            f"{_DIALOGVED}/dailydialog/original_data/dial.valid",
            "dailydialog_plato/dial.valid",
            "that of DailyDialog",
            "d63b336e155d681c89545066d5858299e97234f1573959e2a0fbebf4724a2daf",
        ),
        _file(
            f"{_DIALOGVED}/dailydialog/original_data/dial.test",
            "dailydialog_plato/dial.test",
            "that of DailyDialog",
            "92bea32dca8c887e13554709d450a33567925cfd88848fc1de289d50ff0735df",
        ),
    ],
    "empatheticdialogues": [
        Source(
            url="https://dl.fbaipublicfiles.com/parlai/empatheticdialogues/empatheticdialogues.tar.gz",
            path="empatheticdialogues/empatheticdialogues.tar.gz",
            licence="CC BY-NC 4.0",
            sha256="56f234d77b7dd1f005fd365bb17769cfe346c3c84295b69bc069c8ccb83be03d",
            members={
                f"{split}.csv": Member(f"empatheticdialogues/{split}.csv")
                for split in ("train", "valid", "test")
            },
        )
    ],
    "nli": [
        Source(
            url="https://nlp.stanford.edu/projects/snli/snli_1.0.zip",
            path="nli/snli_1.0.zip",
            licence="CC BY-SA 4.0",
            sha256="afb3d70a5af5d8de0d9d81e2637e0fb8c22d1235c2749d83125ca43dab0dbd3e",
            members={
                f"snli_1.0_{split}.jsonl": Member(f"nli/snli_1.0_{split}.jsonl")
                for split in ("train", "dev", "test")
            },
        )
    ],
    "nltk": [
        Source(
            url=f"https://raw.githubusercontent.com/{_NLTK}/taggers/averaged_perceptron_tagger_eng.zip",
            path="nltk_data/taggers/averaged_perceptron_tagger_eng.zip",
            licence="MIT",
            sha256="6025f530624335c67d6547d44757b357b4e79bae030a0383e9887a92c1718f0b",
            members={
                f"averaged_perceptron_tagger_eng.{part}.json": Member(
                    f"nltk_data/taggers/averaged_perceptron_tagger_eng/"
                    f"averaged_perceptron_tagger_eng.{part}.json",
                )
                for part in ("classes", "tagdict", "weights")
            },
        )
    ],
    "personachat": [
        _file(
            f"{_PERSONACHAT}/valid_original.json",
            "personachat/valid_original.json",
            "not stated",
            "deaa9ad9e254383248066bcdd1e1422b544672393dcc299ddc0d8e6532741774",
        ),
        _file(
            f"{_PERSONACHAT}/test_original.json",
            "personachat/test_original.json",
            "not stated",
            "2b2deeff4de33f1d2538f6ff9a8c09c0b894a183e27564886d0bb9d618cd61d2",
        ),
    ],
    "vectors": [
        Source(
            url="https://nlp.stanford.edu/data/glove.6B.zip",
            path="vectors/glove.6B.zip",
            licence="PDDL 1.0",
            sha256="617afb2fe6cbd085c235baf7a465b96f4112bd7f7ccb2b2cbd649fed9cbcf2fb",
            members={"glove.6B.300d.txt": Member("vectors/glove.6B.300d.txt")},
        )
    ],
    "wordnet": [
        _file(
            f"{_NLTK}/corpora/wordnet.zip",
            "nltk_data/corpora/wordnet.zip",
            "WordNet 3.0",
            "cbda5ea6eef7f36a97a43d4a75f85e07fccbb4f23657d27b4ccbc93e2646ab59",
        )
    ],
}


def fetch_named(
    name: str,
    *,
    data: Path | None = None,
    sha256: str | None = None,
    progress: Progress = no_progress,
    retries: RetryPolicy = DEFAULT_RETRIES,
) -> list[Path]:
    """Gets everything that `name` stands for into the data folder; what is there stays.

    Args:
        name: a key of SOURCES.
        data: the data folder; None = $DIALBENCH_DATA or the user cache.
        sha256: the checksum of the download, from the user; needed where none is known.
        progress: called as bytes arrive.
        retries: timeouts and retries.

    Returns:
        The files in the data folder.

    Raises:
        UnknownName: there is no such source.
        InputError: no trustworthy checksum is known, or the download fails.
        StorageError: the disk refused.
    """
    where = f"dialbench fetch {name}"
    if name not in SOURCES:
        raise UnknownName.of("source", name, SOURCES, where="dialbench fetch")
    if sha256 is not None:
        sha256 = check_sha256(sha256)
        if len(SOURCES[name]) > 1:
            raise InputError(
                f"{name} is {len(SOURCES[name])} downloads, which one checksum cannot verify",
                where="--sha256",
                hint="Leave it out: all their checksums are known.",
            )
    folder = data_folder(data)
    files: list[Path] = []
    for source in SOURCES[name]:
        if sha256 is None and not source.pinned:
            raise InputError(
                f"no trustworthy checksum of {source.url} is known",
                where=where,
                hint="Give one that you trust with --sha256 HEX.",
            )
        with disk_errors(folder / source.path):
            _fetch_source(source, folder, sha256 or source.sha256, progress, retries)
        files.extend(folder / file.path for file in source.files)
    return files


def _fetch_source(
    source: Source, folder: Path, sha256: str | None, progress: Progress, retries: RetryPolicy
) -> None:
    if all(_is_present(folder / file.path, file.sha256) for file in source.files):
        return
    target = folder / source.path
    if sha256 is None:
        archive = download_part(source.url, target, progress=progress, retries=retries)
    else:
        archive = fetch(source.url, target, sha256=sha256, progress=progress, retries=retries)
    if source.members:
        try:
            unpack(archive, folder, source.members)
        finally:
            archive.unlink()


def _is_present(path: Path, sha256: str | None) -> bool:
    # A file without a known checksum was extracted from a verified archive.
    return path.is_file() and (sha256 is None or sha256_of(path) == sha256)


def unpack(archive: Path, folder: Path, members: Mapping[str, Member]) -> None:
    """Extracts `members` of a zip or tar archive below `folder`.

    They are found by file name alone and go where `members` says: no name inside the archive
    ever becomes a path, links are not followed, anything else is ignored.

    Raises:
        InputError: the archive is damaged, or a member is missing or has another checksum.
    """
    missing = dict(members)
    try:
        for name, content in _files_in(archive):
            if (member := missing.pop(name, None)) is not None:
                _extract(content, folder / member.path, member, f"{archive}!{name}")
    except _DAMAGED as error:
        raise _unusable_archive(archive, error) from None
    except OSError as error:
        if error.errno not in (None, errno.EINVAL):
            raise
        # What bz2 raises for damage, and zip for offsets before the file's start.
        raise _unusable_archive(archive, error) from None
    if missing:
        raise InputError(f"holds no {', '.join(missing)}", where=str(archive))


def _unusable_archive(archive: Path, error: BaseException) -> InputError:
    return InputError(
        f"is no usable archive ({first_line(error)})",
        where=str(archive),
        hint="Delete it and fetch it again.",
    )


def _extract(content: IO[bytes], target: Path, member: Member, origin: str) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    part = part_path(target)
    try:
        with part.open("wb") as file:
            shutil.copyfileobj(content, file)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    if member.sha256 is None:
        part.replace(target)
    else:
        move_verified(part, target, member.sha256, origin=origin)


def _files_in(archive: Path) -> Iterator[tuple[str, IO[bytes]]]:
    """The plain files of an archive: name without folders, content."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as packed:
            for info in packed.infolist():
                if not info.is_dir():
                    with packed.open(info) as content:
                        yield PurePosixPath(info.filename).name, content
        return
    with tarfile.open(archive) as packed_tar:
        for entry in packed_tar:
            file = packed_tar.extractfile(entry) if entry.isreg() else None
            if file is not None:
                yield PurePosixPath(entry.name).name, file
