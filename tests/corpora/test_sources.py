from __future__ import annotations

import errno
import functools
import hashlib
import io
import lzma
import os
import random
import tarfile
import threading
import zipfile
from collections.abc import Callable, Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from dialbench.corpora import sources
from dialbench.corpora.base import card, names
from dialbench.corpora.fetch import RetryPolicy
from dialbench.corpora.files import plain_or_packed
from dialbench.corpora.sources import SOURCES, Member, Source, fetch_named, unpack
from dialbench.errors import InputError, UnknownName

QUICK = RetryPolicy(timeout=2.0, attempts=2, pause=0.01)


def _sha256(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()


def _zip(path: Path, files: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, raw in files.items():
            packed.writestr(name, raw)
    return path


def _tar(path: Path, files: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as packed:
        for name, raw in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(raw)
            packed.addfile(entry, io.BytesIO(raw))
    return path


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, Path]]:
    """A folder and the address under which a loopback server offers it."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    folder = tmp_path / "served"
    folder.mkdir()
    handler = functools.partial(_Quiet, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{running.server_address[1]}", folder
        running.shutdown()
        thread.join()


@pytest.fixture
def offer(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Makes sources known under the name "toy"."""

    def offer(*known: Source) -> None:
        monkeypatch.setattr(sources, "SOURCES", {"toy": list(known)})

    return offer


def _tree(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_every_source_is_well_formed() -> None:
    assert set(SOURCES) >= set(names()) - {"demo"} | {"vectors", "nli"}
    for each in (source for known in SOURCES.values() for source in known):
        assert urlsplit(each.url).scheme == "https"
        assert each.licence
        for file in (each.path, *(member.path for member in each.members.values())):
            assert not Path(file).is_absolute()
            assert ".." not in Path(file).parts
        for sum in (each.sha256, *(member.sha256 for member in each.members.values())):
            assert sum is None or (len(sum) == 64 and int(sum, 16) >= 0)


def test_the_checksums_of_all_sources_but_one_are_known() -> None:
    unknown = {name for name, known in SOURCES.items() if not all(each.pinned for each in known)}
    assert unknown == {"adand"}


def test_the_pinned_files_are_those_the_numbers_were_made_on(data_folder: Path) -> None:
    members = [member for each in SOURCES["dailydialog"] for member in each.members.values()]
    for member in members:
        assert _sha256((data_folder / member.path).read_bytes()) == member.sha256
    assert len(members) == 3


@pytest.mark.parametrize(
    "name",
    ["avsd", "dailydialog++", "dailydialog-multiref", "dailydialog-plato", "personachat"],
)
def test_the_pinned_test_sets_are_those_that_were_counted(data_folder: Path, name: str) -> None:
    for source in SOURCES[name]:
        path = plain_or_packed(data_folder / source.path)
        if not path.is_file():
            pytest.skip(f"no {path}: set DIALBENCH_DATA to a folder that holds {name}")
        content = path.read_bytes()
        unpacked = lzma.decompress(content) if path.suffix == ".xz" else content
        assert _sha256(unpacked) == source.sha256
        assert Path(source.path).parts[0] == (card(name).folder or name)


def test_a_pinned_archive_is_unpacked_and_removed(served, offer, tmp_path: Path) -> None:
    url, folder = served
    archive = _tar(folder / "toy.tar.gz", {"x/train.csv": b"one", "x/._train.csv": b"mac"})
    source = Source(
        f"{url}/toy.tar.gz",
        "toy/toy.tar.gz",
        "ours",
        sha256=_sha256(archive.read_bytes()),
        members={"train.csv": Member("toy/train.csv")},
    )
    offer(source)
    data = tmp_path / "data"
    assert fetch_named("toy", data=data, retries=QUICK) == [data / "toy/train.csv"]
    assert _tree(data) == ["toy/train.csv"]
    assert (data / "toy/train.csv").read_bytes() == b"one"
    archive.unlink()
    assert fetch_named("toy", data=data, retries=QUICK) == [data / "toy/train.csv"]


def test_a_pinned_member_verifies_an_archive_that_is_not(served, offer, tmp_path: Path) -> None:
    url, folder = served
    _zip(folder / "toy.zip", {"__MACOSX/._a.txt": b"mac", "toy/a.txt": b"right"})
    members = {"a.txt": Member("toy/a.txt", _sha256(b"right"))}
    offer(Source(f"{url}/toy.zip", "toy/toy.zip", "ours", members=members))
    fetch_named("toy", data=tmp_path / "data", retries=QUICK)
    assert _tree(tmp_path / "data") == ["toy/a.txt"]

    # A file that was damaged later is fetched anew, and a wrong one never takes its place.
    (tmp_path / "data/toy/a.txt").write_bytes(b"damaged")
    _zip(folder / "toy.zip", {"toy/a.txt": b"wrong"})
    with pytest.raises(InputError, match=f"wrong checksum: expected {_sha256(b'right')}"):
        fetch_named("toy", data=tmp_path / "data", retries=QUICK)
    assert (tmp_path / "data/toy/a.txt").read_bytes() == b"damaged"
    assert _tree(tmp_path / "data") == ["toy/a.txt"]
    _zip(folder / "toy.zip", {"toy/a.txt": b"right"})
    fetch_named("toy", data=tmp_path / "data", retries=QUICK)
    assert (tmp_path / "data/toy/a.txt").read_bytes() == b"right"


def test_nothing_is_fetched_that_cannot_be_verified(served, offer, tmp_path: Path) -> None:
    url, folder = served
    (folder / "toy.bin").write_bytes(b"bytes")
    offer(Source(f"{url}/toy.bin", "toy/toy.bin", "ours"))
    with pytest.raises(InputError) as caught:
        fetch_named("toy", data=tmp_path / "data", retries=QUICK)
    assert f"no trustworthy checksum of {url}/toy.bin is known" in str(caught.value)
    assert "--sha256 HEX" in str(caught.value)
    assert not (tmp_path / "data").exists()

    with pytest.raises(InputError, match="wrong checksum"):
        fetch_named("toy", data=tmp_path / "data", sha256="0" * 64, retries=QUICK)
    right = _sha256(b"bytes")
    fetch_named("toy", data=tmp_path / "data", sha256=right, retries=QUICK)
    assert (tmp_path / "data/toy/toy.bin").read_bytes() == b"bytes"


def test_one_checksum_cannot_verify_several_downloads(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--sha256: dailydialog is 3 downloads"):
        fetch_named("dailydialog", data=tmp_path, sha256="0" * 64)


def test_adand_needs_a_checksum_from_the_user(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="dialbench fetch adand: no trustworthy checksum"):
        fetch_named("adand", data=tmp_path)


def test_unknown_sources_propose_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="Did you mean 'vectors'"):
        fetch_named("vector", data=tmp_path)


@pytest.mark.parametrize("pack", [_zip, _tar])
def test_no_name_inside_an_archive_becomes_a_path(tmp_path: Path, pack) -> None:
    archive = pack(
        tmp_path / "evil",
        {"../../outside.txt": b"1", "/tmp/absolute.txt": b"2", "ok/../a.txt": b"3"},  # noqa: S108
    )
    target = tmp_path / "deep" / "data"
    unpack(archive, target, {"a.txt": Member("toy/a.txt"), "outside.txt": Member("toy/o.txt")})
    assert _tree(tmp_path) == ["deep/data/toy/a.txt", "deep/data/toy/o.txt", "evil"]


def test_links_in_an_archive_are_not_followed(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "links.tar", "w") as packed:
        for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE):
            entry = tarfile.TarInfo("a.txt")
            entry.type, entry.linkname = kind, "/etc/hostname"
            packed.addfile(entry)
    with pytest.raises(InputError, match=r"holds no a\.txt"):
        unpack(tmp_path / "links.tar", tmp_path / "data", {"a.txt": Member("toy/a.txt")})
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("damage", ["cut zip", "cut tar", "garbage", "crc"])
def test_a_damaged_archive(tmp_path: Path, damage: str) -> None:
    noise = os.urandom(5000)
    path = (_tar if damage == "cut tar" else _zip)(tmp_path / "archive", {"a.txt": noise})
    raw = bytearray(path.read_bytes())
    raw[2500] ^= 0xFF
    path.write_bytes({"garbage": b"nothing", "crc": bytes(raw)}.get(damage, bytes(raw[:2000])))
    with pytest.raises(InputError, match="is no usable archive"):
        unpack(path, tmp_path / "data", {"a.txt": Member("toy/a.txt")})
    assert not (tmp_path / "data/toy/a.txt").exists()


@pytest.mark.parametrize(
    ("packing", "damage"),
    [("xz", "cut"), ("bz2", "cut"), ("gz", "cut"), ("xz", "changed"), ("bz2", "changed")],
)
def test_damage_within_a_packed_archive_is_one_line_and_leaves_nothing(
    tmp_path: Path, packing: str, damage: str
) -> None:
    archive = tmp_path / f"a.tar.{packing}"
    content = bytes(random.Random(1).choices(b"abcdefgh", k=400_000))
    with tarfile.open(archive, f"w:{packing}") as packed:
        entry = tarfile.TarInfo("a.txt")
        entry.size = len(content)
        packed.addfile(entry, io.BytesIO(content))
    whole = archive.read_bytes()
    middle = len(whole) // 2
    wrong = whole[:middle] if damage == "cut" else whole[:middle] + bytes(99) + whole[middle + 99 :]
    archive.write_bytes(wrong)
    with pytest.raises(InputError, match="is no usable archive") as error:
        unpack(archive, tmp_path, {"a.txt": Member("out/a.txt")})
    assert "\n" not in error.value.message
    assert list(tmp_path.glob("out/*")) == []


def test_a_zip_whose_files_lie_before_its_start_is_damaged(tmp_path: Path) -> None:
    archive = _zip(tmp_path / "a.zip", {"a.txt": b"hello " * 50})
    archive.write_bytes(archive.read_bytes()[30:])
    with pytest.raises(InputError, match="is no usable archive"):
        unpack(archive, tmp_path, {"a.txt": Member("a.txt")})


def test_a_refusing_disk_is_no_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = _zip(tmp_path / "a.zip", {"a.txt": b"hello"})

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("shutil.copyfileobj", full)
    with pytest.raises(OSError, match="No space left"):
        unpack(archive, tmp_path, {"a.txt": Member("a.txt")})
