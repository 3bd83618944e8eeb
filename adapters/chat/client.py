"""A client of OpenAI-compatible chat endpoints that waits, tries again, and keeps its key secret.

The key travels in one header to the host that the user named and nowhere else: redirects to
another host are refused, and it is blotted out of whatever a server says.
"""

from __future__ import annotations

import http.client
import json
import math
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from threading import Event, Timer
from typing import Any
from urllib.parse import SplitResult, urljoin, urlsplit

from pydantic import BaseModel, Field

from dialbench.errors import SystemFailed
from dialbench.files.loads import loads
from dialbench.files.unicode import unicode_text
from dialbench.neural.randomness import seed_of

FIRST_WAIT = 1.0  # seconds
LONGEST_WAIT = 60.0
LONGEST_ASKED = 300.0
"""Seconds that a server may ask to be left alone; more is cut down to this."""
_NO_COMPLETION = "the server's answer is no chat completion"
_LARGEST = 2**24
_RETRIED_STATUSES = {408, 425, 429}
_REDIRECT_STATUSES = {301, 302, 303, 307, 308}
_REDIRECTS = 3
_SECRET = 12  # characters


class Stopped(Exception):
    """Asking ended before this answer came."""


class _Message(BaseModel):
    content: str | None = None


class _Choice(BaseModel):
    message: _Message


class _Completion(BaseModel):
    model: str | None = None
    choices: list[_Choice] = Field(min_length=1)


@dataclass(frozen=True)
class Reply:
    """What the server answered: the text as it is, and the model that it reports."""

    text: str
    model: str


@dataclass(frozen=True)
class _Answer:
    status: int
    headers: Mapping[str, str]
    text: str


class _Transient(Exception):
    # What may be otherwise the next time; `wait` is what the server asked for, in seconds.
    def __init__(self, what: str, wait: float | None = None) -> None:
        super().__init__(what)
        self.wait = wait


@dataclass(frozen=True)
class Chat:
    """An endpoint that answers chats.

    Attributes:
        url: the address that takes requests, http or https.
        key: sent as bearer token; none if empty.
        timeout: seconds that an attempt may take, to the last byte of the answer.
        attempts: how often a request is sent at most.
        seed: from which the jitter of waiting derives.
        stop: set from outside, ends all waiting.
        warn: called with warnings for the user.
    """

    url: str
    key: str = field(repr=False)
    timeout: float
    attempts: int
    seed: int
    stop: Event
    warn: Callable[[str], None]

    def ask(self, body: Mapping[str, Any], id: str) -> Reply:
        """The answer to a request; overloaded or silent servers are asked again.

        Args:
            body: what is sent, as JSON.
            id: the example's.

        Raises:
            SystemFailed: the server refuses, or does not answer in `attempts`.
            Stopped: `stop` was set.
        """
        for attempt in range(1, self.attempts + 1):
            if self.stop.is_set():
                raise Stopped
            try:
                return self._attempt(json.dumps(body, ensure_ascii=False).encode("utf-8"))
            except _Transient as error:
                last = error
            if attempt < self.attempts and self.stop.wait(self._wait(last.wait, id, attempt)):
                raise Stopped
        raise SystemFailed(
            f"no answer in {self.attempts} attempts (last: {last})",
            where=self.url,
            hint="The same command again asks only for what is missing.",
        )

    def _wait(self, asked: float | None, id: str, attempt: int) -> float:
        if asked is not None:
            if asked > LONGEST_ASKED:
                self.warn(
                    f"{self.url} asked for a wait of {asked:,.0f} seconds; none is longer than "
                    f"{LONGEST_ASKED:.0f}"
                )
            return min(asked, LONGEST_ASKED)
        jitter = 0.5 + seed_of(self.seed, "wait", id, attempt) / 2**64
        return min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** (attempt - 1)) * jitter

    def _attempt(self, payload: bytes) -> Reply:
        url = self.url
        for _ in range(_REDIRECTS):
            answer = self._post(urlsplit(url), payload)
            if answer.status not in _REDIRECT_STATUSES:
                return self._reply(answer)
            url = self._follow(url, answer)
        raise SystemFailed(f"redirects more than {_REDIRECTS - 1} times", where=self.url)

    def _follow(self, url: str, answer: _Answer) -> str:
        try:
            target = urljoin(url, answer.headers.get("location", ""))
            same = urlsplit(target)[:2] == urlsplit(url)[:2]
        except ValueError:
            raise _Transient(_NO_COMPLETION) from None
        if answer.status in (307, 308) and same:
            return target
        shown = self._hide_key(_without_query(target))
        raise SystemFailed(
            f"redirects (status {answer.status}) to {shown}, which is not followed",
            where=self.url,
            hint="Name the final address with url=.",
        )

    def _post(self, url: SplitResult, payload: bytes) -> _Answer:
        kind = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
        connection = kind(url.hostname or "", url.port, timeout=self.timeout)
        deadline = time.monotonic() + self.timeout
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        path = (url.path or "/") + (f"?{url.query}" if url.query else "")
        try:
            connection.connect()
            with _cut_off(connection.sock, deadline):
                connection.request("POST", path, payload, headers)
                with connection.getresponse() as response:
                    text = response.read(_LARGEST).decode("utf-8", "replace")
                response_headers = {name.lower(): value for name, value in response.getheaders()}
        except (OSError, http.client.HTTPException, ValueError) as error:
            late = time.monotonic() >= deadline
            reason = f"not done in {self.timeout:g} seconds" if late else self._hide_key(str(error))
            raise _Transient(_one_line(reason) or type(error).__name__) from None
        finally:
            connection.close()
        return _Answer(response.status, response_headers, text)

    def _hide_key(self, text: str) -> str:
        return text.replace(self.key, "***") if self.key else text

    def _describe(self, answer: _Answer) -> str:
        # The server's own words, one line.
        words = self._hide_key(_one_line(_message(answer.text)))
        return f"status {answer.status}: {words[:300] or 'no words'}"

    def _reply(self, answer: _Answer) -> Reply:
        if answer.status in _RETRIED_STATUSES or answer.status >= 500:
            raise _Transient(
                self._describe(answer), _retry_after(answer.headers.get("retry-after", ""))
            )
        if answer.status != 200:
            raise SystemFailed(
                f"the server refused the request ({self._describe(answer)})",
                where=self.url,
                hint="Fix the options, or the key in DIALBENCH_ENDPOINT_KEY.",
            )
        try:
            # Twice, since JSON may hold half a surrogate pair, which no file takes.
            whole = unicode_text(
                json.dumps(loads(answer.text, lone_surrogates=True), ensure_ascii=False)
            )
            completion = _Completion.model_validate_json(whole)
        except ValueError:
            raise _Transient(f"{_NO_COMPLETION} ({self._describe(answer)})") from None
        # Placeholders such as EMPTY are no secret, but may be words of an answer.
        blot = self._hide_key if len(self.key) >= _SECRET else str
        text = completion.choices[0].message.content or ""
        return Reply(blot(text), blot(completion.model or ""))


def _message(text: str) -> str:
    # What servers put around their message differs; where none is found, all of it is shown.
    try:
        value = loads(text, lone_surrogates=True)
        error = value.get("error", value)
        return str(error.get("message", text) if isinstance(error, dict) else error)
    except (ValueError, AttributeError):
        return text


@contextmanager
def _cut_off(line: socket.socket, deadline: float) -> Iterator[None]:
    """Ends a connection at its deadline, however slowly the other side goes on sending.

    Raises:
        TimeoutError: the deadline has passed.
    """
    watch = Timer(max(0.0, deadline - time.monotonic()), _hang_up, [line])
    watch.daemon = True
    watch.start()
    try:
        yield
    finally:
        watch.cancel()
    if time.monotonic() >= deadline:
        raise TimeoutError


def _hang_up(line: socket.socket) -> None:
    with suppress(OSError):
        line.shutdown(socket.SHUT_RDWR)


def _retry_after(text: str) -> float | None:
    """Seconds that a server asks to wait; None where that cannot be read."""
    with suppress(ValueError):
        seconds = float(text)
        return None if math.isnan(seconds) else max(0.0, seconds)
    with suppress(ValueError, OverflowError, TypeError, IndexError):
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    return None


def _one_line(text: str) -> str:
    return unicode_text(" ".join(text.split()))


def _without_query(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname or ''}{parts.path}"
