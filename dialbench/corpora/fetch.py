"""Downloads with a checksum: resumed after an interruption, verified before they are renamed.

Nothing else in dialbench uses the network, and this only for `dialbench fetch`.
"""

from __future__ import annotations

import http.client
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from dialbench.errors import InputError, StorageError, first_line
from dialbench.files.checksum import sha256_of

Progress = Callable[[int, int | None], None]
"""Called with the bytes received so far and the whole size; None if the server does not tell."""

_BLOCK = 1 << 18
_MAX_DIGITS = 19
_RETRIED_STATUSES = {408, 425, 429, 500, 502, 503, 504}


@dataclass(frozen=True)
class RetryPolicy:
    """How long a download is tried.

    Attributes:
        timeout: seconds that a connection may send nothing.
        attempts: at most.
        pause: seconds before the second attempt, doubled before every further one.
    """

    timeout: float = 30.0
    attempts: int = 5
    pause: float = 1.0


DEFAULT_RETRIES = RetryPolicy()


def no_progress(received: int, size: int | None) -> None:
    """Reports to nobody."""


class _Interrupted(Exception):
    """The transfer broke off in a way that another attempt may fix."""


def fetch(
    url: str,
    target: Path,
    *,
    sha256: str,
    progress: Progress = no_progress,
    retries: RetryPolicy = DEFAULT_RETRIES,
) -> Path:
    """Downloads `url` to `target`, unless a file of that checksum is there already.

    Bytes are written to `target` + ".part"; if the transfer fails for good, that file stays and
    the next call resumes it.

    Args:
        url: an http or https address.
        target: the file to make; its folder is made too.
        sha256: 64 hex digits that the content must have.
        progress: called as bytes arrive.
        retries: timeouts and retries.

    Returns:
        `target`.

    Raises:
        InputError: the download fails or its checksum is wrong.
        StorageError: the disk refused.
    """
    expected = check_sha256(sha256)
    with disk_errors(target):
        if target.is_file() and sha256_of(target) == expected:
            return target
        part = download_part(url, target, progress=progress, retries=retries)
        move_verified(part, target, expected, origin=url)
    return target


def download_part(
    url: str,
    target: Path,
    *,
    progress: Progress = no_progress,
    retries: RetryPolicy = DEFAULT_RETRIES,
) -> Path:
    """Downloads `url` to `target` + ".part", UNVERIFIED, resuming what is there.

    Raises:
        InputError: the download fails.
    """
    if urlsplit(url).scheme not in ("http", "https"):
        raise InputError("only http and https addresses can be fetched", where=url)
    part = part_path(target)
    part.parent.mkdir(parents=True, exist_ok=True)
    for attempt in range(retries.attempts):
        if attempt:
            time.sleep(retries.pause * 2 ** (attempt - 1))
        try:
            _transfer(url, part, progress, retries.timeout)
            return part
        except _Interrupted as error:
            reason = str(error)
    raise InputError(
        f"the transfer broke off {retries.attempts} times ({reason})",
        where=url,
        hint="Run the same command again: it goes on where it stopped.",
    )


def part_path(target: Path) -> Path:
    """The file that holds the bytes of `target` until they are verified."""
    return target.with_name(f"{target.name}.part")


def move_verified(part: Path, target: Path, sha256: str, *, origin: str) -> None:
    """Renames a file to its target if its checksum is right, else removes it.

    Args:
        part: the finished file.
        target: its final path.
        sha256: what its content must have.
        origin: where it came from, for the message.

    Raises:
        InputError: the checksum is wrong.
    """
    actual = sha256_of(part)
    if actual != sha256:
        part.unlink()
        raise InputError(
            f"wrong checksum: expected {sha256}, got {actual}",
            where=origin,
            hint="It changed at its source or was damaged on its way. It was removed: try again.",
        )
    part.replace(target)


@contextmanager
def disk_errors(target: Path) -> Iterator[None]:
    """Turns what the disk refuses into a StorageError that names `target`."""
    try:
        yield
    except OSError as error:
        raise StorageError(
            f"cannot be written ({error.strerror or error})",
            where=str(target),
            hint="Free the disk or choose another folder with --data DIR.",
        ) from None


def check_sha256(text: str, *, where: str = "--sha256") -> str:
    """A sha256 in lower case.

    Raises:
        InputError: it is not 64 hex digits.
    """
    if not re.fullmatch(r"[0-9a-fA-F]{64}", text.strip()):
        raise InputError(
            f"{text!r} is no SHA-256 checksum", where=where, hint="Write its 64 hex digits."
        )
    return text.strip().lower()


def _transfer(url: str, part: Path, progress: Progress, timeout: float) -> None:
    received = part.stat().st_size if part.exists() else 0
    response = _open(url, received, timeout)
    if response is None:
        return
    with closing(response):
        start = _start_of_body(response, received)
        length = response.headers.get("Content-Length", "")
        size = start + int(length) if length.isdecimal() and len(length) < _MAX_DIGITS else None
        with part.open("r+b" if part.exists() else "wb") as file:
            file.truncate(start)
            received = file.seek(start)
            progress(received, size)
            for block in _blocks(response):
                file.write(block)
                received += len(block)
                progress(received, size)
    if size is not None and received < size:
        raise _Interrupted(f"{received:,} of {size:,} bytes received")


def _open(url: str, received: int, timeout: float) -> http.client.HTTPResponse | None:
    """The response from byte `received` on; None if the server says that there is no more."""
    headers = {"User-Agent": "dialbench", "Accept-Encoding": "identity"}
    if received:
        headers["Range"] = f"bytes={received}-"
    request = urllib.request.Request(url, headers=headers)  # noqa: S310 - only http(s), see fetch
    try:
        response: http.client.HTTPResponse = _opener().open(request, timeout=timeout)
        return response
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 416 and received:
            return None
        if error.code in _RETRIED_STATUSES:
            raise _Interrupted(_status_text(error)) from None
        raise InputError(
            f"the server answered {_status_text(error)}",
            where=url,
            hint="Check the address, or get the file by other means and put it into the data "
            "folder.",
        ) from None
    except (urllib.error.URLError, http.client.HTTPException, OSError) as error:
        raise _Interrupted(first_line(error)) from None


def _status_text(error: urllib.error.HTTPError) -> str:
    return " ".join(f"{error.code} {error.reason}".split())


def _opener() -> urllib.request.OpenerDirector:
    """An opener that follows redirections to http and https only, never to files or ftp."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler,
        urllib.request.UnknownHandler,
        urllib.request.HTTPHandler,
        urllib.request.HTTPSHandler,
        urllib.request.HTTPDefaultErrorHandler,
        urllib.request.HTTPRedirectHandler,
        urllib.request.HTTPErrorProcessor,
    ):
        opener.add_handler(handler())
    return opener


def _start_of_body(response: http.client.HTTPResponse, received: int) -> int:
    """Where the bytes that follow belong: `received` if the server resumes there, else 0."""
    if response.status != 206:
        return 0
    match = re.match(r"bytes (\d+)-", response.headers.get("Content-Range", ""))
    if match is None or match[1] != str(received):
        raise InputError(
            "the server sent another part than was asked for",
            where=response.url,
            hint="Remove the .part file and run the same command again.",
        )
    return received


def _blocks(response: http.client.HTTPResponse) -> Iterator[bytes]:
    try:
        while block := response.read(_BLOCK):
            yield block
    except (http.client.HTTPException, OSError) as error:
        raise _Interrupted(first_line(error)) from None
