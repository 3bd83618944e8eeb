from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from dialbench.corpora.fetch import RetryPolicy, fetch
from dialbench.errors import InputError, StorageError

CONTENT = bytes(range(256)) * 4096
SHA256 = hashlib.sha256(CONTENT).hexdigest()
QUICK = RetryPolicy(timeout=2.0, attempts=3, pause=0.01)


@dataclass
class Behaviour:
    """How the test server misbehaves, and what it was asked."""

    content: bytes = CONTENT
    break_after: list[int] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    ranges: bool = True
    tells_length: bool = True
    length: str = ""
    no_progress: bool = False
    location: str = ""
    wrong_start: bool = False
    asked: list[str | None] = field(default_factory=list)


class _Handler(BaseHTTPRequestHandler):
    behaviour: Behaviour
    done: threading.Event

    def do_GET(self) -> None:
        how = self.behaviour
        expected = self.headers.get("Range")
        how.asked.append(expected)
        if how.no_progress:
            self.done.wait(10)
            return
        if how.location:
            self._head(302, {"Location": how.location})
        elif how.statuses:
            self._head(how.statuses.pop(0), {"Content-Length": "0"})
        else:
            self._send(int(expected.removeprefix("bytes=").rstrip("-")) if expected else 0)

    def _send(self, start: int) -> None:
        how = self.behaviour
        start = start if how.ranges else 0
        if start and start >= len(how.content):
            self._head(416, {"Content-Range": f"bytes */{len(how.content)}"})
            return
        body = how.content[start:]
        headers = {"Content-Length": str(len(body))} if how.tells_length else {}
        if how.length:
            headers["Content-Length"] = how.length
        if start:
            first = start - how.wrong_start
            headers["Content-Range"] = f"bytes {first}-{len(how.content) - 1}/{len(how.content)}"
        self._head(206 if start else 200, headers)
        # A client that gave up closes first; that is what some tests provoke.
        with suppress(BrokenPipeError, ConnectionResetError):
            self.wfile.write(body[: how.break_after.pop(0)] if how.break_after else body)

    def _head(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, Behaviour]]:
    """A loopback server: its address and its behaviour."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    behaviour, done = Behaviour(), threading.Event()
    handler = type("Handler", (_Handler,), {"behaviour": behaviour, "done": done})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{running.server_address[1]}/corpus.bin", behaviour
        done.set()
        running.shutdown()
        thread.join()


def _fails(url: str, target: Path, sha256: str = SHA256) -> str:
    with pytest.raises(InputError) as caught:
        fetch(url, target, sha256=sha256, retries=QUICK)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_download_arrives_whole(server, tmp_path: Path) -> None:
    url, behaviour = server
    target = tmp_path / "deep" / "er" / "corpus.bin"
    steps: list[tuple[int, int | None]] = []
    progress = lambda had, size: steps.append((had, size))  # noqa: E731
    assert fetch(url, target, sha256=SHA256.upper(), progress=progress, retries=QUICK) == target
    assert target.read_bytes() == CONTENT
    assert os.listdir(target.parent) == ["corpus.bin"]
    assert steps[0] == (0, len(CONTENT))
    assert steps[-1] == (len(CONTENT), len(CONTENT))
    assert steps == sorted(steps)
    assert behaviour.asked == [None]


def test_what_is_there_is_not_downloaded_again(server, tmp_path: Path) -> None:
    url, behaviour = server
    target = tmp_path / "corpus.bin"
    target.write_bytes(CONTENT)
    fetch(url, target, sha256=SHA256, retries=QUICK)
    assert behaviour.asked == []
    target.write_bytes(b"damaged")
    fetch(url, target, sha256=SHA256, retries=QUICK)
    assert target.read_bytes() == CONTENT


def test_a_broken_connection_is_resumed_where_it_broke(server, tmp_path: Path) -> None:
    url, behaviour = server
    behaviour.break_after = [1000, 500]
    fetch(url, tmp_path / "corpus.bin", sha256=SHA256, retries=QUICK)
    assert (tmp_path / "corpus.bin").read_bytes() == CONTENT
    assert behaviour.asked == [None, "bytes=1000-", "bytes=1500-"]


def test_after_giving_up_the_next_call_goes_on(server, tmp_path: Path) -> None:
    url, behaviour = server
    behaviour.break_after = [1000, 0, 0]
    message = _fails(url, tmp_path / "corpus.bin")
    assert f"broke off 3 times (1,000 of {len(CONTENT):,} bytes received)" in message
    assert os.listdir(tmp_path) == ["corpus.bin.part"]
    assert (tmp_path / "corpus.bin.part").read_bytes() == CONTENT[:1000]
    fetch(url, tmp_path / "corpus.bin", sha256=SHA256, retries=QUICK)
    assert behaviour.asked[-1] == "bytes=1000-"
    assert (tmp_path / "corpus.bin").read_bytes() == CONTENT


def test_a_server_without_ranges_starts_over(server, tmp_path: Path) -> None:
    url, behaviour = server
    behaviour.ranges = False
    (tmp_path / "corpus.bin.part").write_bytes(b"x" * (len(CONTENT) + 10))
    fetch(url, tmp_path / "corpus.bin", sha256=SHA256, retries=QUICK)
    assert (tmp_path / "corpus.bin").read_bytes() == CONTENT


def test_a_part_that_was_complete_already_is_taken(server, tmp_path: Path) -> None:
    url, _ = server
    (tmp_path / "corpus.bin.part").write_bytes(CONTENT)
    fetch(url, tmp_path / "corpus.bin", sha256=SHA256, retries=QUICK)
    assert (tmp_path / "corpus.bin").read_bytes() == CONTENT


def test_a_wrong_checksum_leaves_nothing_behind(server, tmp_path: Path) -> None:
    url, behaviour = server
    behaviour.content = b"not what was promised"
    got = hashlib.sha256(behaviour.content).hexdigest()
    assert f"wrong checksum: expected {SHA256}, got {got}" in _fails(url, tmp_path / "corpus.bin")
    assert os.listdir(tmp_path) == []


def test_a_wrong_checksum_leaves_the_old_file_alone(server, tmp_path: Path) -> None:
    url, behaviour = server
    behaviour.content = b"not what was promised"
    (tmp_path / "corpus.bin").write_bytes(b"old")
    _fails(url, tmp_path / "corpus.bin")
    assert (tmp_path / "corpus.bin").read_bytes() == b"old"


def test_a_stale_part_is_found_out(server, tmp_path: Path) -> None:
    url, _ = server
    (tmp_path / "corpus.bin.part").write_bytes(b"other bytes")
    assert "wrong checksum" in _fails(url, tmp_path / "corpus.bin")
    fetch(url, tmp_path / "corpus.bin", sha256=SHA256, retries=QUICK)


@pytest.mark.parametrize("length", ["9" * 5000, "-1", "x", "٣"])
def test_a_length_that_is_none_counts_as_none(server, tmp_path: Path, length: str) -> None:
    url, behaviour = server
    behaviour.length = length.encode().decode("latin-1")
    sizes: list[int | None] = []
    progress = lambda had, size: sizes.append(size)  # noqa: E731
    fetch(url, tmp_path / "a", sha256=SHA256, progress=progress, retries=QUICK)
    assert set(sizes) == {None}


def test_without_a_length_the_checksum_decides(server, tmp_path: Path) -> None:
    url, behaviour = server
    behaviour.tells_length = False
    steps: list[int | None] = []
    target = tmp_path / "corpus.bin"
    progress = lambda had, size: steps.append(size)  # noqa: E731
    fetch(url, target, sha256=SHA256, progress=progress, retries=QUICK)
    assert set(steps) == {None}
    behaviour.break_after = [10]
    target.unlink()
    assert "wrong checksum" in _fails(url, target)


@pytest.mark.parametrize("status", [403, 404, 410])
def test_a_refusal_is_not_tried_again(server, tmp_path: Path, status: int) -> None:
    url, behaviour = server
    behaviour.statuses = [status] * 5
    assert f"{url}: the server answered {status} " in _fails(url, tmp_path / "corpus.bin")
    assert len(behaviour.asked) == 1
    assert os.listdir(tmp_path) == []


def test_a_busy_server_is_tried_again(server, tmp_path: Path) -> None:
    url, behaviour = server
    behaviour.statuses = [503, 429]
    fetch(url, tmp_path / "corpus.bin", sha256=SHA256, retries=QUICK)
    behaviour.statuses = [503] * 3
    assert "(503 Service Unavailable)" in _fails(url, tmp_path / "other.bin")


def test_a_silent_server_times_out(server, tmp_path: Path) -> None:
    url, behaviour = server
    behaviour.no_progress = True
    retries = RetryPolicy(timeout=0.1, attempts=2, pause=0.01)
    with pytest.raises(InputError, match=r"broke off 2 times \(timed out\)"):
        fetch(url, tmp_path / "corpus.bin", sha256=SHA256, retries=retries)


def test_nobody_listens(tmp_path: Path) -> None:
    assert "Connection refused" in _fails("http://127.0.0.1:9/x", tmp_path / "x")


def test_a_server_that_sends_another_part(server, tmp_path: Path) -> None:
    url, behaviour = server
    behaviour.wrong_start = True
    (tmp_path / "corpus.bin.part").write_bytes(CONTENT[:100])
    assert "another part than was asked for" in _fails(url, tmp_path / "corpus.bin")
    assert (tmp_path / "corpus.bin.part").read_bytes() == CONTENT[:100]


@pytest.mark.parametrize("url", ["ftp://example.org/x", "file:///etc/hostname", "data:,x", "x"])
def test_only_the_web_is_fetched_from(tmp_path: Path, url: str) -> None:
    assert "only http and https" in _fails(url, tmp_path / "x")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("location", ["file:///etc/hostname", "ftp://127.0.0.1/x"])
def test_redirections_lead_nowhere_else(server, tmp_path: Path, location: str) -> None:
    url, behaviour = server
    behaviour.location = location
    _fails(url, tmp_path / "x")
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("sha256", ["", "abc", "g" * 64, "a" * 63])
def test_a_checksum_must_be_one(tmp_path: Path, sha256: str) -> None:
    assert "is no SHA-256 checksum" in _fails("http://127.0.0.1:9/x", tmp_path / "x", sha256)


def test_a_target_that_cannot_be_written(server, tmp_path: Path) -> None:
    url, _ = server
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StorageError, match="cannot be written"):
        fetch(url, tmp_path / "file" / "corpus.bin", sha256=SHA256, retries=QUICK)
