"""What a system must be able to do, and how systems are found.

A system needs only `respond`; an echo is five lines:

    from dialbench.adapter import Adapter
    class Echo(Adapter):
        name = "echo"
        def respond(self, contexts, decoding, run):
            return [context[-1] for context in contexts]

Systems are found through the entry-point group `dialbench.adapters` or in a plug-in file.
"""

from __future__ import annotations

import dataclasses
import importlib.metadata
import importlib.util
import json
import math
import re
import sys
import time
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

from dialbench.errors import InputError, UnknownName, first_line
from dialbench.files.loads import loads
from dialbench.records import Context, Decoding, Split

GROUP = "dialbench.adapters"
_UNKNOWN = object()
_BEYOND = {int: 10**18, float: math.inf}


class Progress:
    """Where a system reports what it is doing; this one says nothing."""

    def update(self, stage: str, **numbers: float) -> None:
        """Tells how far `stage` ("train", "respond", ...) is: epoch, step, steps, loss, rate."""

    def warn(self, text: str) -> None:
        """Tells something that belongs into the notes of every table with this system."""


@dataclass(frozen=True)
class Run:
    """The circumstances of one training or answering.

    Attributes:
        seed: from which everything random derives.
        device: a torch device name, already resolved ("cpu", "cuda").
        folder: the system's own durable folder; what it leaves there survives a kill.
        settings: the preset's values for systems (sizes, epochs, ...), by config field name.
        progress: where to report.
        base: the trained system that this one starts from, as `Adapter.starts_from` asked.
        deadline: when training must end, as `time.time` counts; None for never.
    """

    seed: int
    device: str = "cpu"
    folder: Path = Path()
    settings: Mapping[str, Any] = field(default_factory=dict)
    progress: Progress = field(default_factory=Progress)
    base: Adapter | None = None
    deadline: float | None = None

    @property
    def overdue(self) -> bool:
        """Whether training must end now."""
        return self.deadline is not None and time.time() >= self.deadline


def first_share(deadline: float | None, parts: int) -> float | None:
    """When the first of so many must end that share the time until `deadline`; None for never."""
    if deadline is None:
        return None
    now = time.time()
    return now + max(0.0, deadline - now) / parts


@dataclass(frozen=True)
class Card:
    """What is known of a system before it runs; shown by `dialbench models`."""

    title: str
    family: Literal["sanity", "recurrent", "transformer", "variational", "pretrained", "other"]
    summary: str
    paper: str = ""
    year: int = 0
    pretrained: bool = False


@dataclass(frozen=True)
class NoOptions:
    """The options of a system that has none."""


class Adapter:
    """A response-generation system under test.

    Class attributes:
        name: how `--models` calls it.
        card: what it is and where it comes from.
        Config: a frozen dataclass; every field is an option `name[field=value]`, its default
            the paper's value.
        version: raised when a change of the code changes what the system answers.
        ranked: False for what tables show for comparison only, without marks and below the others:
            the sanity panel and its upper bound.
        oracle: True only where contexts must carry their references.
        finished: True only where the responses are there before the run, so that no preset needs
            to limit how many are asked for.
        speed_options: options that change how fast it answers, never what.
        titled_options: options that `title` tells, so that the row's name does not repeat them.
    """

    name: ClassVar[str] = ""
    card: ClassVar[Card] = Card("", "other", "")
    Config: ClassVar[type] = NoOptions
    version: ClassVar[int] = 1
    ranked: ClassVar[bool] = True
    oracle: ClassVar[bool] = False
    finished: ClassVar[bool] = False
    speed_options: ClassVar[frozenset[str]] = frozenset()
    titled_options: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, config: Any = None) -> None:
        self.config = self.Config() if config is None else config

    def fit(self, train: Split, valid: Split, run: Run) -> None:
        """Learns from the training split; by default there is nothing to learn.

        Whatever is written under `run.folder` is there again after an interruption, so a long
        training resumes from it.
        """

    def respond(self, contexts: Sequence[Context], decoding: Decoding, run: Run) -> list[str]:
        """One response for each context, in order; an empty string is a valid response."""
        raise NotImplementedError(f"{type(self).__name__} does not say how to respond")

    def save(self, folder: Path) -> None:
        """Writes what `load` needs: safetensors and JSON, never pickle."""
        state = json.dumps(self.state(), ensure_ascii=False)
        (folder / "state.json").write_text(state, encoding="utf-8")

    @classmethod
    def load(cls, folder: Path, config: Any = None) -> Adapter:
        """The system that `save` wrote."""
        self = cls(config)
        self.set_state(loads((folder / "state.json").read_bytes()))
        return self

    @classmethod
    def title(cls, config: Any) -> str:
        """How tables call the system under these options."""
        return cls.card.title

    @classmethod
    def inspect(cls, config: Any, contexts: Sequence[Context]) -> Mapping[str, Any]:
        """Looks at the files that the options name, before anything is trained.

        Args:
            config: the full configuration.
            contexts: what will have to be answered.

        Returns:
            Their checksums, as JSON-like values: other contents are other results.

        Raises:
            InputError: something that it needs is missing or does not fit.
        """
        return {}

    @classmethod
    def learns(cls, config: Any) -> bool:
        """Whether `fit` takes anything from the training split; it does where it is overridden."""
        return cls.fit is not Adapter.fit

    @classmethod
    def supports(cls, decoding: Decoding) -> bool:
        """Whether the system can answer with this decoding; what draws no words ignores it."""
        return True

    @classmethod
    def seeded(cls, decoding: Decoding) -> bool:
        """Whether the seed may change what it answers.

        Where it does not, a system that costs money or time is asked under one seed only, and the
        others have the same responses.
        """
        return True

    @classmethod
    def starts_from(cls, config: Any) -> type[Adapter] | None:
        """The system whose training must precede this one's; by default there is none.

        It is trained with the options that both know, once for all that start from it, and
        `fit` finds it as `run.base`.
        """
        return None

    def circumstances(self, run: Run) -> Mapping[str, Any]:
        """What low-precision near-ties may depend on: device, dtype, threads, batch size."""
        return {"device": "cpu"}

    def curve(self) -> Sequence[Mapping[str, float]]:
        """Losses by epoch: epoch, train_loss, valid_loss and further parts; empty if untrained."""
        return ()

    def state(self) -> Any:
        """What was learned, as a JSON value; for systems without tensors."""
        return None

    def set_state(self, state: Any) -> None:
        """Takes back what `state` gave."""

    def facts(self) -> Mapping[str, Any]:
        """What a reader may want to know of the trained system, e.g. parameter counts."""
        return {}


@dataclass(frozen=True)
class System:
    """A system as the user named it: the adapter class and its options.

    `name` is canonical: options in the order of the config's fields, defaults left in only
    where the user wrote them.
    """

    name: str
    adapter: type[Adapter]
    options: Mapping[str, Any]

    def base(self, settings: Mapping[str, Any]) -> System | None:
        """The system that this one starts from under `settings`, or None.

        Options that both know are this one's. Those that `settings` or the defaults give anyway
        are left unwritten, so that it is the system which users name without them.
        """
        config = self.config(settings)
        adapter = self.adapter.starts_from(config)
        if adapter is None:
            return None
        options = {
            f.name: value
            for f in dataclasses.fields(adapter.Config)
            if f.name not in adapter.speed_options
            and (value := getattr(config, f.name, _UNKNOWN)) is not _UNKNOWN
            and value != settings.get(f.name, f.default)
        }
        return System(adapter.name + write_options(options), adapter, options)

    def build(self, settings: Mapping[str, Any]) -> Adapter:
        """A fresh, untrained adapter; options win over `settings`, settings over defaults."""
        return self.adapter(self.config(settings))

    def config(self, settings: Mapping[str, Any]) -> Any:
        """The full configuration; `settings` that the config does not know do not concern it.

        Raises:
            InputError: a value is not of its option's type, or they do not fit together.
        """
        try:
            return self.adapter.Config(**{**self.concerned(settings), **self.options})
        except ValueError as error:
            raise InputError(f"{self.name}: {error}", where="--models") from None

    def concerned(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """The settings that are options of this system, as its config takes them.

        Raises:
            InputError: a value is not of its option's type.
        """
        kinds = typing.get_type_hints(self.adapter.Config)
        return {
            key: _checked(kinds[key], value, f"[system] {key} of {self.adapter.name}")
            for key, value in settings.items()
            if key in kinds
        }


class Registry:
    """Every system that can be named, loaded only when asked for.

    Args:
        plugins: plug-in files whose `Adapter` subclasses join the registry.

    Attributes:
        broken: registered systems that could not be loaded, name -> reason; reported, then skipped.

    Raises:
        InputError: a plug-in file cannot be loaded.
    """

    def __init__(self, plugins: Iterable[Path] = ()) -> None:
        points = importlib.metadata.entry_points(group=GROUP)
        self._points = {point.name: point for point in points}
        self._classes: dict[str, type[Adapter]] = {}
        self.broken: dict[str, str] = {}
        for path in plugins:
            self._add_plugin(Path(path))

    def names(self) -> list[str]:
        """All names, systems that failed to load left out."""
        return sorted((set(self._points) | set(self._classes)) - set(self.broken))

    def get(self, name: str, *, where: str = "--models") -> type[Adapter]:
        """The adapter class called `name`.

        Raises:
            UnknownName: there is none, with the nearest name.
            InputError: it exists but cannot be imported.
        """
        if name not in self._classes:
            if name not in self._points:
                raise UnknownName.of("model", name, self.names(), where=where)
            try:
                loaded = self._points[name].load()
                if not (isinstance(loaded, type) and issubclass(loaded, Adapter)):
                    raise TypeError(f"{self._points[name].value} is not an Adapter")
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # a package may call exit() where it is imported
                reason = f"{type(error).__name__}: {first_line(error)}"
                self.broken[name] = reason
                raise InputError(
                    f"model {name!r} cannot be loaded ({reason})",
                    where=where,
                    hint="Mend or uninstall the package that registers it.",
                ) from error
            self._classes[name] = loaded
        return self._classes[name]

    def parse(self, text: str, *, where: str = "--models") -> list[System]:
        """Systems of a comma-separated list such as `all` or `seq2seq,paraformer-n[layout=full]`.

        `all` leaves out systems that need options; those that cannot be loaded are noted in
        `broken` and skipped.

        Raises:
            InputError: a name or option is unknown, a value does not fit, or nothing is named.
        """
        systems: dict[str, System] = {}
        for item in split_outside_brackets(text):
            for system in self._all() if item == "all" else [self._system(item, where)]:
                systems.setdefault(system.name, system)
        if not systems:
            raise InputError(
                "no model is named", where=where, hint=f"Known: all, {', '.join(self.names())}."
            )
        return list(systems.values())

    def _all(self) -> list[System]:
        systems = []
        for name in self.names():
            try:
                system = System(name, self.get(name), {})
                system.config({})
            except InputError:
                continue
            systems.append(system)
        return systems

    def _system(self, text: str, where: str) -> System:
        match = re.fullmatch(r"\s*([^\[\]\s]+)\s*(?:\[(.*)\])?\s*", text, re.DOTALL)
        if match is None:
            raise InputError(
                f"{text!r} is not a model name", where=where, hint="Write name[option=value,...]."
            )
        adapter = self.get(match[1], where=where)
        options = parse_options(adapter.Config, match[2] or "", where=f"{where} {match[1]}")
        name = match[1] + write_options(options)
        system = System(name, adapter, options)
        system.config({})
        return system

    def _add_plugin(self, path: Path) -> None:
        try:
            found = list(_adapters_of(path))
            if not found:
                raise TypeError("it defines no Adapter subclass with a name")
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # it is code, which may raise whatever it likes
            raise InputError(
                f"{path} cannot be loaded ({type(error).__name__}: {first_line(error)})",
                where="--plugin",
                hint="Fix the file or leave it out.",
            ) from error
        for adapter in found:
            self._classes[adapter.name] = adapter


def _adapters_of(path: Path) -> Iterable[type[Adapter]]:
    module_name = f"dialbench_plugin_{re.sub(r'[^0-9a-zA-Z]', '_', path.stem)}"
    spec = importlib.util.spec_from_file_location(module_name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise FileNotFoundError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    spec.loader.exec_module(module)
    for value in vars(module).values():
        if not (isinstance(value, type) and issubclass(value, Adapter)):
            continue
        if value.name and value.__module__ == module_name:
            yield value


def split_outside_brackets(text: str) -> list[str]:
    """Parts of a comma-separated list; commas inside `[...]` do not separate."""
    parts = re.findall(r"(?:\[[^\[\]]*\]|[^,])+", text)
    return [part.strip() for part in parts if part.strip()]


def parse_options(config: type, text: str, *, where: str) -> dict[str, Any]:
    """Reads `key=value,...` as fields of a config dataclass, in the order of its fields.

    Raises:
        InputError: a key is unknown or written twice, or a value is not of the field's type.
    """
    kinds = typing.get_type_hints(config)
    order = [f.name for f in dataclasses.fields(config)]
    options: dict[str, Any] = {}
    for item in split_outside_brackets(text):
        key, sign, value = (part.strip() for part in item.partition("="))
        if key not in order:
            raise UnknownName.of("option", key, order, where=where)
        if not sign or key in options:
            fault = "is given twice" if sign else "has no value"
            raise InputError(f"option {key!r} {fault}", where=where, hint=f"Write {key}=VALUE.")
        options[key] = _coerce(kinds[key], value, f"{where} {key}")
    return {key: options[key] for key in order if key in options}


def write_options(options: Mapping[str, Any]) -> str:
    """`[key=value,...]` as users write it; nothing where there are no options."""
    written = ",".join(f"{key}={_plain(value)}" for key, value in options.items())
    return f"[{written}]" if written else ""


def _checked(kind: Any, value: Any, where: str) -> Any:
    """The value of a preset or a suite, if the command line would take it for this option."""
    if not isinstance(value, bool | int | float | str):
        kind_of_value = type(value).__name__
        raise InputError(f"a {kind_of_value} is no value of an option", where=where)
    read = _coerce(kind, _plain(value), where)
    # A whole number that stands for a float stays one: fingerprints tell 1 from 1.0.
    return value if isinstance(read, float) and read == value else read


def _coerce(kind: Any, text: str, where: str) -> Any:
    origin = typing.get_origin(kind)
    if origin is Literal:
        choices = {str(choice): choice for choice in typing.get_args(kind)}
        if text not in choices:
            raise UnknownName.of("value", text, choices, where=where)
        return choices[text]
    if origin in (typing.Union, types.UnionType):
        inner = [arg for arg in typing.get_args(kind) if arg is not type(None)]
        return None if text.lower() == "none" else _coerce(inner[0], text, where)
    if kind is bool:
        if text.lower() not in ("true", "false", "yes", "no", "on", "off", "1", "0"):
            raise InputError(f"{text!r} is neither true nor false", where=where)
        return text.lower() in ("true", "yes", "on", "1")
    if kind in (int, float):
        return _number(kind, text, where)
    return text


def _number(kind: type[int] | type[float], text: str, where: str) -> float:
    name = "a whole number" if kind is int else "a finite number"
    try:
        number = kind(text)
    except ValueError:
        raise InputError(f"{text!r} is not {name}", where=where) from None
    if not abs(number) < _BEYOND[kind]:
        size = " of at most 18 digits" if kind is int else ""
        raise InputError(f"{text!r} is not {name}{size}", where=where)
    return number


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value).removesuffix(".0") if isinstance(value, float) else str(value)
