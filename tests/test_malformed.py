"""Whatever a file holds, a command reads it or says in one line what is wrong with it.

Every format has a valid file and a command that reads it. What generates the cases spoils the file:
bytes are cut, changed, doubled or put in, and values are replaced by others that no file should
hold. The command must end with 0 (some changes do no harm) or with 2 and one line; what is hopeless
must end with 2. The cases are the same in every run; DIALBENCH_CASES multiplies their number.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import json
import lzma
import os
import re
import signal
import struct
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from safetensors.numpy import save

from dialbench.cli import main
from dialbench.corpora.sources import Member, unpack
from dialbench.errors import InputError

TIMES = int(os.environ.get("DIALBENCH_CASES", "1"))

# What no value should be; each is put in the place of values, and most are wrong everywhere.
VALUES = [
    *("[" * 5000, "[" * 500 + "]" * 500, '{"a":' * 500 + "1" + "}" * 500, "9" * 5000),
    *("-1", "0", "1.5", "1e999", "-1e999", "NaN", "Infinity", "1e39", "18446744073709551616"),
    *("true", "null", "{}", "[]", '""', '"x"', r'"\ud800"', r'"\u0000"', r'"\u001b[2J"', "'", '"'),
    *("2026-01-01", "inf", "nan", "[[1]]", '[""]', '{"a": 1}', '" "', '"\u202e"'),
]
# What no format is, whatever stood there before.
HOPELESS = [b"\xff\xfe\0", b"[" * 100_000, b'{"a":' * 50_000, b"\0" * 64, b"\x80", b"]"]
_SCALAR = re.compile(rb'"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?|true|false|null')
_PIECES = st.one_of(
    st.binary(max_size=12),
    st.sampled_from([b"\0", b"\r", b"\n", b"\xef\xbb\xbf", b"\xed\xa0\x80", b",", b"\xff", b" "]),
)


@st.composite
def spoilt(draw: st.DrawFn, whole: bytes) -> bytes:
    """The file with one to three of its bytes or values changed."""
    content = whole
    for _ in range(draw(st.integers(1, 3))):
        content = draw(_changes)(draw, content)
    return content


def _cut(draw: st.DrawFn, content: bytes) -> bytes:
    start, end = sorted(draw(st.tuples(*[st.integers(0, len(content))] * 2)))
    return content[:start] + content[end:]


def _end(draw: st.DrawFn, content: bytes) -> bytes:
    return content[: draw(st.integers(0, len(content)))]


def _put_in(draw: st.DrawFn, content: bytes) -> bytes:
    place = draw(st.integers(0, len(content)))
    return content[:place] + draw(_PIECES) + content[place + draw(st.integers(0, 3)) :]


def _double(draw: st.DrawFn, content: bytes) -> bytes:
    start, end = sorted(draw(st.tuples(*[st.integers(0, len(content))] * 2)))
    return content[:end] + content[start:]


def _replace(draw: st.DrawFn, content: bytes) -> bytes:
    values = list(_SCALAR.finditer(content))
    if not values:
        return content
    value = draw(st.sampled_from(values))
    new = draw(st.sampled_from(VALUES)).encode("utf-8")
    return content[: value.start()] + new + content[value.end() :]


_changes = st.sampled_from([_cut, _end, _put_in, _double, _replace, _replace, _replace])


@dataclass(frozen=True)
class Format:
    """A kind of file: a valid one, where it goes, and what reads it.

    Attributes:
        share: of the cases.
        packed: puts spoilt content into the file as it stands on the disk.
    """

    whole: bytes
    path: Path
    command: tuple[object, ...]
    share: int = 200
    packed: Callable[[bytes], bytes] = bytes


def run(*arguments: object) -> tuple[int, str, str]:
    """The command line in this process: exit code and both streams."""
    out, err = io.StringIO(), io.StringIO()
    before = signal.getsignal(signal.SIGTERM)
    with (
        mock.patch("sys.argv", ["dialbench", *map(str, arguments)]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        pytest.raises(SystemExit) as ended,
    ):
        main()
    signal.signal(signal.SIGTERM, before)
    return int(ended.value.code or 0), out.getvalue(), err.getvalue()


RESPONSES = b"".join(
    json.dumps(
        {"id": str(i), "dialogue_id": str(i // 2), "context": ["hello", "you"]}
        | {"references": ["hi b"], "response": "a b c", "alternatives": ["a"]}
    ).encode()
    + b"\n"
    for i in range(4)
)
TEXTS = {
    "r.txt": b"a b c\n\nhi\nho\n",
    "r.csv": b"id,context,reference_1,response\n1,a __eou__ b,hi,a b c\n2,b,ho,hi\n",
    "r.tsv": b"id\tdialogue_id\tprediction\n1\t1\ta b c\n2\t1\thi\n",
}
PUBLISHED = {
    "avsd": ("dstc7_avsd_plato/dial.test", b"a man sits\twho is it ? __eou__ him\tme | you\n"),
    "dailydialog++": (
        "dailydialog_plusplus/test.json",
        b'{"id": 0, "context": ["hello", "you"], "positive_responses": ["hi", "ho"]}\n',
    ),
    "dailydialog-multiref": (
        "dailydialog_multiref/multireftest.json",
        b'{"dialogue": [{"text": "hello", "responses": ["hi", "ho"]}, {"text": "hi"}]}\n',
    ),
    "dailydialog-plato": ("dailydialog_plato/dial.test", b"a\tb\na __eou__ b\tc\nd\te\n"),
    "personachat": (
        "personachat/test_original.json",
        b'[{"speaker persona": ["i fish ."], "dialogue": ["hello", "hi you", "well"]}]',
    ),
}
CORPUS = (
    b"".join(
        json.dumps({"id": i, "split": split, "turns": ["hello", "hi you", "well"]}).encode() + b"\n"
        for i, split in enumerate(("train", "valid", "test") * 2)
    )
    + b'{"id": "e", "dialogue_id": "d", "context": ["a"], "references": ["b", "c"]}\n'
)
VOTES = (
    b"judge,example,criterion,system,against,verdict\n"
    b"1,1,fluency,PaRaFormer_N,Seq2seq,win\n1,2,fluency,PaRaFormer_N,Seq2seq,tie\n"
    b"2,1,fluency,PaRaFormer_N,Seq2seq,loss\n2,2,fluency,PaRaFormer_N,Seq2seq,win\n"
)
VOTE_LINES = b"".join(
    json.dumps(
        dict(zip(VOTES.decode().split("\n")[0].split(","), line.split(","), strict=True))
    ).encode()
    + b"\n"
    for line in VOTES.decode().splitlines()[1:]
)
VECTORS = b"5 2\na 1 2.5\nb 0 -1\nc 1e-3 1\nhi 1 2\nyou 3 4\n"
PRESET = (
    b'summary = "mine"\nseeds = [1, 2]\ncontext_turns = 3\nlimit_train = 9\n[system]\nepochs = 1\n'
    b'learning_rate = 0.5\nnorm = "pre"\ntied = true\n'
)
SUITE = (
    b'summary = "mine"\npaper = "paraformer"\ntable = "4"\nseeds = [1]\n'
    b'[[group]]\ncorpus = "demo"\ndataset = "DailyDialog"\nsettings = {quick = {epochs = 1}}\n'
    b'[[column]]\nprinted = "Dist-1"\nmetric = "dist-1"\npercent = true\n'
    b'[[row]]\nprinted = "Alt"\nsystem = "unigram"\ndecoding = "beam:2"\n'
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a finished run, its baseline, a shard, and files that are in order."""
    folder = tmp_path_factory.mktemp("malformed")
    (folder / "own.jsonl").write_bytes(
        b"".join(
            json.dumps({"id": i, "turns": ["hello", "hi you", "well"]}).encode() + b"\n"
            for i in range(20)
        )
    )
    (folder / "fine.jsonl").write_bytes(RESPONSES)
    runs = ("--corpus", folder / "own.jsonl", "--out", folder / "runs", "--device", "cpu")
    few = ("--metrics", "length,dist-1", "--formats", "csv", "--progress", "none", "--jobs", 1)
    assert run("run", "--models", "unigram", *runs, *few)[0] == 0
    update = ("--baseline", folder / "fine.json", "--update")
    assert run("check", folder / "runs", *update)[0] == 0
    counted = ("--metrics", "length,dist-1,bleu-2", "--shards", folder / "shards")
    assert run("score", folder / "fine.jsonl", *counted)[0] == 0
    return folder


def _tensors(whole: bytes) -> tuple[bytes, bytes]:
    (size,) = struct.unpack("<Q", whole[:8])
    return whole[8 : 8 + size], whole[8 + size :]


def _formats(folder: Path) -> Iterator[tuple[str, Format]]:
    bad, fine, out = folder / "bad", folder / "fine.jsonl", ("--out", folder / "out")
    bad.mkdir(exist_ok=True)
    score = ("--metrics", "length,dist-1,intra-dist-1,within-dist-1")
    for name, pack in {"": bytes, ".xz": lzma.compress, ".gz": gzip.compress}.items():
        path = bad / f"r.jsonl{name}"
        yield f"responses{name}", Format(RESPONSES, path, ("score", path, *score), packed=pack)
    path = bad / "damaged.jsonl.xz"
    yield "xz", Format(lzma.compress(RESPONSES), path, ("score", path, *score), 60)
    path = bad / "damaged.jsonl.gz"
    yield "gz", Format(gzip.compress(RESPONSES), path, ("score", path, *score), 60)
    for name, whole in TEXTS.items():
        path = bad / name
        yield name, Format(whole, path, ("score", path, "--metrics", "length,bleu-1"), 80)
    four = bad / "four.txt"
    four.write_bytes(TEXTS["r.txt"])
    for option, whole in {"references": b"hi\tho\nb\n\na\n", "contexts": b"a\tb\nb\n\na\n"}.items():
        path = bad / f"{option}.txt"
        few = ("--metrics", "length,bleu-1")
        yield option, Format(whole, path, ("score", four, f"--{option}", path, *few), 40)
    path = bad / "answers.txt"
    row = ("run", "--models", f"file[path={path}]", "--corpus", folder / "own.jsonl")
    few = ("--metrics", "length", "--formats", "csv", "--progress", "none", "--jobs", 1)
    whole = b"hi you\n" * 40
    yield "answers", Format(whole, path, (*row, *few, "--out", folder / "rows"), 20)
    path = bad / "c.jsonl"
    yield "corpus", Format(CORPUS, path, ("corpora", path, "--audit"))
    for name, (place, whole) in PUBLISHED.items():
        path = bad / "data" / place
        path.parent.mkdir(parents=True, exist_ok=True)
        yield name, Format(whole, path, ("corpora", name, "--audit", "--data", bad / "data"), 60)
    table = ("report", "--paper", "paraformer", "--table", 3, *out, "--formats", "txt")
    for name, whole in {"v.csv": VOTES, "v.jsonl": VOTE_LINES}.items():
        path = bad / name
        yield name, Format(whole, path, (*table, "--judgements", path), 60)
    vectors = ("score", fine, "--metrics", "emb-average,emb-greedy", "--vectors")
    yield "vectors", Format(VECTORS, bad / "v.txt", (*vectors, bad / "v.txt"))
    saved = save(
        {"matrix": np.ones((3, 2), np.float32)}, {"name": "n", "words": '["a", "b", "hi"]'}
    )
    head, body = _tensors(saved)
    path = bad / "v.safetensors"
    whole_head = Format(
        head, path, (*vectors, path), packed=lambda head: struct.pack("<Q", len(head)) + head + body
    )
    yield "header", whole_head
    yield "tensors", Format(saved, path, (*vectors, path), 60)
    (shard,) = folder.glob("shards/*.shard")
    path = bad / "s.shard"
    yield "shard", Format(shard.read_bytes(), path, ("merge", path), 120)
    path = bad / "p.toml"
    small = ("--models", "transformer", "--corpus", bad / "none.jsonl", *out)
    yield "preset", Format(PRESET, path, ("run", "--preset", path, *small))
    path = bad / "s.toml"
    yield "suite", Format(SUITE, path, ("report", bad, "--suite", path, *out))
    path = bad / "b.json"
    whole = (folder / "fine.json").read_bytes()
    yield "baseline", Format(whole, path, ("check", folder / "runs", "--baseline", path), 120)
    again = ("report", folder / "runs", *out, "--formats", "csv")
    for pattern in ("answers/*/job.json", "answers/*/scores/*/scores.json"):
        (path,) = (folder / "runs").glob(pattern)
        yield path.name, Format(path.read_bytes(), path, again, 100)
    (path,) = (folder / "runs").glob("answers/*/scores/*/scores.safetensors")
    yield path.name, Format(path.read_bytes(), path, again, 100, _with_checksum(path))


def _with_checksum(path: Path) -> Callable[[bytes], bytes]:
    """Scores whose checksum fits, whatever they are."""
    record = json.loads(path.with_suffix(".json").read_text())

    def packed(content: bytes) -> bytes:
        sha256 = hashlib.sha256(content).hexdigest()
        path.with_suffix(".json").write_text(json.dumps(record | {"arrays_sha256": sha256}))
        return content

    return packed


NAMES = [
    *("responses", "responses.xz", "responses.gz", "xz", "gz"),
    *("r.txt", "r.csv", "r.tsv", "references", "contexts", "answers", "corpus"),
    *PUBLISHED,
    *("v.csv", "v.jsonl"),
    *("vectors", "header", "tensors", "shard", "preset", "suite", "baseline"),
    *("job.json", "scores.json", "scores.safetensors"),
]


@pytest.fixture(scope="module")
def formats(folder: Path) -> dict[str, Format]:
    return dict(_formats(folder))


@contextlib.contextmanager
def _in_place(form: Format, content: bytes) -> Iterator[None]:
    """The file with this content; afterwards what stood there before, or nothing."""
    others = [form.path.with_suffix(".json")] if form.path.suffix == ".safetensors" else []
    before = {p: p.read_bytes() for p in (form.path, *others) if p.exists()}
    form.path.write_bytes(form.packed(content))
    try:
        yield
    finally:
        form.path.unlink()
        for path, old in before.items():
            path.write_bytes(old)


def _check(form: Format, content: bytes, allowed: set[int]) -> None:
    with _in_place(form, content):
        _expect(form, allowed)


def _expect(form: Format, allowed: set[int]) -> None:
    code, _, err = run(*form.command)
    assert code in allowed, (code, err, form.path)
    assert code == 0 or re.fullmatch(r"(Usage: .*\n(.*\n)*)?Error: [^\n\r]+\n", err), err
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", err), err


@pytest.mark.parametrize("name", NAMES)
def test_spoilt_files_are_read_or_refused_in_one_line(
    formats: dict[str, Format], name: str
) -> None:
    form = formats[name]

    @settings(
        max_examples=form.share * TIMES,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(spoilt(form.whole))
    def every(content: bytes) -> None:
        _check(form, content, {0, 2})

    every()


@pytest.mark.parametrize("name", NAMES)
def test_hopeless_files_are_refused(formats: dict[str, Format], name: str) -> None:
    for content in HOPELESS:
        # A bracket is a text.
        _check(formats[name], content, {0, 2} if name == "r.txt" else {2})


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _circle(path: Path) -> None:
    path.symlink_to(path.name)


_REDONE = ("job.json", "scores.json", "scores.safetensors")
"""Records of a run that is begun again where they are not there."""


@pytest.mark.parametrize("kind", [Path.mkdir, _pipe, _circle], ids=["folder", "pipe", "circle"])
@pytest.mark.parametrize("name", NAMES)
def test_what_is_no_file_is_refused(
    formats: dict[str, Format], name: str, kind: Callable[[Path], None]
) -> None:
    """Nobody waits at a pipe. A record of the run that is not there is missing, no mistake."""
    form = formats[name]
    before = form.path.read_bytes() if form.path.exists() else None
    form.path.unlink(missing_ok=True)
    kind(form.path)
    try:
        _expect(form, {0, 2} if name in _REDONE else {2})
    finally:
        form.path.rmdir() if form.path.is_dir() else form.path.unlink()
        if before is not None:
            form.path.write_bytes(before)


def test_every_format_is_named(formats: dict[str, Format]) -> None:
    assert list(formats) == NAMES
    assert sum(form.share for form in formats.values()) >= 2000


@pytest.mark.parametrize("name", NAMES)
def test_the_whole_files_are_read(formats: dict[str, Format], name: str) -> None:
    """But for presets and suites, which are asked for without a corpus or runs."""
    form = formats[name]
    _check(form, form.whole, {2} if name in ("preset", "suite") else {0})


def _packed(kind: str) -> bytes:
    file = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
            packed.writestr("in/a.txt", "hello " * 50)
        return file.getvalue()
    with tarfile.open(fileobj=file, mode=f"w:{kind}") as packed_tar:
        entry = tarfile.TarInfo("in/a.txt")
        entry.size = 300
        packed_tar.addfile(entry, io.BytesIO(b"hello " * 50))
    return file.getvalue()


@pytest.mark.parametrize("kind", ["zip", "gz", "bz2", "xz", ""])
def test_spoilt_archives_are_unpacked_or_refused(tmp_path: Path, kind: str) -> None:
    """They come from servers; nothing is ever half unpacked, and no other file appears."""
    archive, target = tmp_path / "archive", tmp_path / "out" / "a.txt"

    @settings(max_examples=60 * TIMES, derandomize=True, database=None, phases=[Phase.generate])
    @given(spoilt(_packed(kind)))
    def every(content: bytes) -> None:
        archive.write_bytes(content)
        with contextlib.suppress(InputError):
            unpack(archive, tmp_path, {"a.txt": Member("out/a.txt")})
        assert set(tmp_path.rglob("*")) <= {archive, target.parent, target}
        target.unlink(missing_ok=True)

    every()
