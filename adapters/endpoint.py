"""A chat model behind an OpenAI-compatible endpoint (vLLM, llama.cpp, `transformers serve`).

The last turn of a context is the user's, the one before the assistant's, and so on in turn; a
`system` prompt stands in front where one is given. A context with an even number of turns thus
begins with the assistant; `opening` puts a user's turn before it, for chat templates that demand
one. Every response is on the disk as soon as it comes, so that a killed run asks only for the rest.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import Any, ClassVar
from urllib.parse import urlsplit

from dialbench.adapter import Adapter, Card, Run
from dialbench.errors import InputError, SystemFailed
from dialbench.neural.randomness import seed_of
from dialbench.records import Context, Decoding, fingerprint_of
from dialbench.text.untokenized import untokenized

from .chat.client import Chat
from .chat.ledger import Ledger, StoredReply

KEYS = ("DIALBENCH_ENDPOINT_KEY", "OPENAI_API_KEY")
_PATH = "/chat/completions"
_LONGEST = 86_400  # seconds, a day


@dataclass(frozen=True)
class EndpointConfig:
    """Which endpoint, and how it is asked.

    Attributes:
        url: up to the version (`http://localhost:8000/v1`) or the whole address.
        model: as the server calls it.
        system: a prompt in front of every conversation; a comma would end it.
        opening: a user's turn before contexts that would begin with the assistant.
        max_tokens: of a response; 40 words at the usual four tokens to three words.
        concurrency: requests under way at once.
        timeout: seconds that an attempt may take, to the last byte of the answer.
        attempts: how often a request is sent at most.
    """

    url: str = ""
    model: str = ""
    system: str = ""
    opening: str = ""
    max_tokens: int = 54
    concurrency: int = 4
    timeout: float = 60.0
    attempts: int = 5

    def __post_init__(self) -> None:
        if not (self.url and self.model):
            raise ValueError("name an endpoint with url=http://HOST/v1 and model=NAME")
        for name in ("max_tokens", "concurrency", "timeout", "attempts"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be above 0")
        if not self.timeout <= _LONGEST:
            raise ValueError(f"timeout must be at most {_LONGEST} seconds")
        _require_url(self.url)

    @property
    def address(self) -> str:
        """Where requests go."""
        base = self.url.rstrip("/")
        return base if base.endswith(_PATH) else base + _PATH


def _require_url(url: str) -> None:
    # Not a ValueError, which is shown together with the options: they may hold a password.
    try:
        parts = urlsplit(url)
        host = parts.hostname if parts.port != 0 else None
        (host or "").encode("idna")
    except ValueError:
        raise _refused("is no address") from None
    if parts.scheme not in ("http", "https") or not host:
        raise _refused("does not begin with http://HOST or https://HOST")
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise _refused("holds a user, a password or a query", f"The key belongs in {KEYS[0]}.")
    if any(letter <= " " or letter > "~" for letter in url):
        raise _refused("holds characters that no address has")


def _refused(what: str, hint: str = "Write url=http://HOST:PORT/v1.") -> InputError:
    return InputError(f"the url {what}", where="--models endpoint", hint=hint)


class Endpoint(Adapter):
    """A chat model that another process serves."""

    name = "endpoint"
    card = Card(
        title="",
        family="pretrained",
        summary="a chat model behind an OpenAI-compatible endpoint, with url= and model=",
        pretrained=True,
    )
    Config = EndpointConfig
    config: EndpointConfig
    speed_options: ClassVar[frozenset[str]] = frozenset({"concurrency", "timeout", "attempts"})
    titled_options: ClassVar[frozenset[str]] = speed_options | {"url", "model"}

    def __init__(self, config: Any = None) -> None:
        super().__init__(config)
        self._reported: tuple[str, ...] = ()

    @classmethod
    def title(cls, config: EndpointConfig) -> str:
        """The model's name."""
        return config.model

    @classmethod
    def supports(cls, decoding: Decoding) -> bool:
        """What a request can ask for: no beams, no re-ranking."""
        return decoding.method in ("greedy", "sample", "top-p", "top-k") and not decoding.no_repeat

    @classmethod
    def seeded(cls, decoding: Decoding) -> bool:
        """Whether a seed goes with requests: where nothing is drawn, there is none."""
        return decoding.method != "greedy"

    def circumstances(self, run: Run) -> Mapping[str, Any]:
        """The endpoint's address, and the models that the server reports."""
        return {
            "device": f"endpoint {self.config.url}",
            "url": self.config.url,
            "model": self.config.model,
            "reported": list(self._reported),
        }

    def respond(self, contexts: Sequence[Context], decoding: Decoding, run: Run) -> list[str]:
        """Responds to all contexts, `concurrency` at a time; order is kept."""
        bodies = [self.body(context, decoding, run.seed) for context in contexts]
        # Of one context greedy decoding knows but one response, however many are wanted.
        seeded = self.seeded(decoding)
        keys = [
            fingerprint_of([self.config.address, context.id if seeded else context.example, body])
            for context, body in zip(contexts, bodies, strict=True)
        ]
        asked = zip(keys, contexts, bodies, strict=True)
        with Ledger(run.folder / "answers.jsonl") as ledger:
            todo = {key: (c.id, body) for key, c, body in asked if key not in ledger.kept}
            done = len(keys) - len(todo)
            for _ in self._ask(todo, ledger, run):
                done += 1
                run.progress.update("respond", step=done, steps=len(keys))
            replies = [ledger.kept[key] for key in keys]
        self._reported = tuple(dict.fromkeys(answer.model for answer in replies if answer.model))
        run.progress.warn(self._note())
        return [answer.text for answer in replies]

    def body(self, context: Sequence[str], decoding: Decoding, seed: int) -> dict[str, Any]:
        """What is sent for a context, as a JSON object."""
        chance: dict[str, dict[str, float]] = {
            "greedy": {"temperature": 0},
            "sample": {"temperature": decoding.value},
            "top-p": {"temperature": 1, "top_p": decoding.value},
            "top-k": {"temperature": 1, "top_k": int(decoding.value)},
        }
        return {
            "model": self.config.model,
            "messages": self._messages(context),
            "max_tokens": self.config.max_tokens,
            **chance[decoding.method],
            **({"seed": self._seed(context, seed)} if self.seeded(decoding) else {}),
        }

    @staticmethod
    def _seed(context: Sequence[str], seed: int) -> int:
        # Some servers take 32 bits with a sign.
        return seed_of(seed, "words", getattr(context, "id", "")) >> 32

    def _messages(self, context: Sequence[str]) -> list[dict[str, str]]:
        turns = [untokenized(turn) for turn in context] or [""]
        if len(turns) % 2 == 0 and self.config.opening:
            turns.insert(0, self.config.opening)
        roles = ("user", "assistant")
        last = len(turns) - 1
        system = [{"role": "system", "content": self.config.system}] if self.config.system else []
        return system + [
            {"role": roles[(last - position) % 2], "content": turn}
            for position, turn in enumerate(turns)
        ]

    def _ask(
        self, todo: Mapping[str, tuple[str, dict[str, Any]]], ledger: Ledger, run: Run
    ) -> Iterator[None]:
        c, stop = self.config, Event()
        warn = run.progress.warn
        chat = Chat(c.address, _key(), c.timeout, c.attempts, run.seed, stop, warn)

        def work(key: str) -> None:
            id, body = todo[key]
            reply = chat.ask(body, id)
            ledger.add(StoredReply(key=key, text=" ".join(reply.text.split()), model=reply.model))

        return in_threads(work, list(todo), c.concurrency, stop)

    def _note(self) -> str:
        names = ", ".join(self._reported) or "no name"
        return (
            f"{self.config.model} answered at {self.config.url}; the server reports {names}, and "
            "decides itself how far it heeds seeds"
        )


def in_threads(
    work: Callable[[str], None], items: Sequence[str], count: int, stop: Event
) -> Iterator[None]:
    """Does `work` on all items in at most `count` threads, yielding as each is done.

    The first failure sets `stop`, lets what is under way come to its end, and is raised.
    """
    todo: SimpleQueue[str] = SimpleQueue()
    done: SimpleQueue[Exception | None] = SimpleQueue()
    for item in items:
        todo.put(item)

    def go_on() -> None:
        while not stop.is_set():
            try:
                work(todo.get_nowait())
            except Empty:
                return
            except Exception as error:
                done.put(error)
                return
            done.put(None)

    # Daemons, so that an interrupted process need not wait for servers.
    threads = [Thread(target=go_on, daemon=True) for _ in range(min(count, len(items)))]
    for thread in threads:
        thread.start()
    try:
        for _ in items:
            error = done.get()
            if error is not None:
                stop.set()
                for thread in threads:
                    thread.join()
                raise error
            yield
    finally:
        stop.set()


def _key() -> str:
    name = next((name for name in KEYS if os.environ.get(name, "").strip()), KEYS[0])
    key = os.environ.get(name, "").strip()
    if not all("!" <= letter <= "~" for letter in key):
        raise SystemFailed(
            "holds characters that no header can", where=f"${name}", hint="Set it again."
        )
    return key
