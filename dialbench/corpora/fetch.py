"""Checksummed downloads: resumable, verified before they take their place, never unasked.

Nothing else in the suite reaches for the network, and this does only for `dialbench fetch`.
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
"""Called with the bytes had so far and the whole size, None where the server does not tell."""

_BLOCK = 1 << 18
_DIGITS = 19
_RETRIED = {408, 425, 429, 500, 502, 503, 504}


@dataclass(frozen=True)
class Patience:
    """How long to try: seconds a connection may be silent, attempts, seconds before the second.

    The pause doubles with every attempt.
    """

    timeout: float = 30.0
    attempts: int = 5
    pause: float = 1.0


PATIENT = Patience()


def silent(had: int, size: int | None) -> None:
    """The progress that tells nobody."""


class _Interrupted(Exception):
    """The transfer broke off in a way that another attempt may mend."""


def fetch(
    url: str,
    target: Path,
    *,
    sha256: str,
    progress: Progress = silent,
    patience: Patience = PATIENT,
) -> Path:
    """Downloads `url` to `target`, unless a file of that checksum is there already.

    The bytes gather in `target` + ".part"; if the transfer breaks off for good, that file stays
    and the next call goes on from it.

    Args:
        url: an http or https address.
        target: the file to make; its folder is made too.
        sha256: 64 hex digits that the content must have.
        progress: told how far it is.
        patience: timeouts and retries.

    Returns:
        `target`.

    Raises:
        InputError: the address cannot be had or its content is not what was expected.
        StorageError: the disk refused.
    """
    expected = checked_sha256(sha256)
    with disk_errors(target):
        if target.is_file() and sha256_of(target) == expected:
            return target
        part = gather(url, target, progress=progress, patience=patience)
        settle(part, target, expected, origin=url)
    return target


def gather(
    url: str, target: Path, *, progress: Progress = silent, patience: Patience = PATIENT
) -> Path:
    """Downloads `url` to `target` + ".part", UNVERIFIED, going on from what is there.

    Raises:
        InputError: the address cannot be had.
    """
    if urlsplit(url).scheme not in ("http", "https"):
        raise InputError("only http and https addresses can be fetched", where=url)
    part = part_of(target)
    part.parent.mkdir(parents=True, exist_ok=True)
    for attempt in range(patience.attempts):
        if attempt:
            time.sleep(patience.pause * 2 ** (attempt - 1))
        try:
            _transfer(url, part, progress, patience.timeout)
            return part
        except _Interrupted as error:
            reason = str(error)
    raise InputError(
        f"the transfer broke off {patience.attempts} times ({reason})",
        where=url,
        hint="Run the same command again: it goes on where it stopped.",
    )


def part_of(target: Path) -> Path:
    """Where the bytes of `target` gather until they are verified."""
    return target.with_name(f"{target.name}.part")


def settle(part: Path, target: Path, sha256: str, *, origin: str) -> None:
    """Lets a verified file take its place in one step; a wrong one is removed.

    Args:
        part: the finished file.
        target: the place to take.
        sha256: what its content must have.
        origin: where it came from, for the message.

    Raises:
        InputError: the checksum is another one.
    """
    got = sha256_of(part)
    if got != sha256:
        part.unlink()
        raise InputError(
            f"wrong checksum: expected {sha256}, got {got}",
            where=origin,
            hint="The file changed or was damaged on its way; it has been removed.",
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


def checked_sha256(text: str, *, where: str = "--sha256") -> str:
    """A sha256 in lower case.

    Raises:
        InputError: it is not 64 hex digits.
    """
    if not re.fullmatch(r"[0-9a-fA-F]{64}", text.strip()):
        raise InputError(f"{text!r} is not a sha256", where=where, hint="Write 64 hex digits.")
    return text.strip().lower()


def _transfer(url: str, part: Path, progress: Progress, timeout: float) -> None:
    had = part.stat().st_size if part.exists() else 0
    response = _open(url, had, timeout)
    if response is None:
        return
    with closing(response):
        start = _start_of(response, had)
        length = response.headers.get("Content-Length", "")
        size = start + int(length) if length.isdecimal() and len(length) < _DIGITS else None
        with part.open("r+b" if part.exists() else "wb") as file:
            file.truncate(start)
            had = file.seek(start)
            progress(had, size)
            for block in _blocks(response):
                file.write(block)
                had += len(block)
                progress(had, size)
    if size is not None and had < size:
        raise _Interrupted(f"{had:,} of {size:,} bytes came")


def _open(url: str, had: int, timeout: float) -> http.client.HTTPResponse | None:
    """The response from byte `had` on; None if the server says that there is no more."""
    headers = {"User-Agent": "dialbench", "Accept-Encoding": "identity"}
    if had:
        headers["Range"] = f"bytes={had}-"
    request = urllib.request.Request(url, headers=headers)  # noqa: S310 - only http(s), see fetch
    try:
        response: http.client.HTTPResponse = _opener().open(request, timeout=timeout)
        return response
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 416 and had:
            return None
        if error.code in _RETRIED:
            raise _Interrupted(_answer(error)) from None
        raise InputError(
            f"the server answered {_answer(error)}",
            where=url,
            hint="Check the address, or get the file by other means and put it into the data "
            "folder.",
        ) from None
    except (urllib.error.URLError, http.client.HTTPException, OSError) as error:
        raise _Interrupted(first_line(error)) from None


def _answer(error: urllib.error.HTTPError) -> str:
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


def _start_of(response: http.client.HTTPResponse, had: int) -> int:
    """Where the bytes that follow belong: `had` if the server goes on there, else 0."""
    if response.status != 206:
        return 0
    match = re.match(r"bytes (\d+)-", response.headers.get("Content-Range", ""))
    if match is None or match[1] != str(had):
        raise InputError(
            "the server sent another part than was asked for",
            where=response.url,
            hint="Remove the .part file and run the same command again.",
        )
    return had


def _blocks(response: http.client.HTTPResponse) -> Iterator[bytes]:
    try:
        while block := response.read(_BLOCK):
            yield block
    except (http.client.HTTPException, OSError) as error:
        raise _Interrupted(first_line(error)) from None
