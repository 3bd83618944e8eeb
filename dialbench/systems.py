"""Systems by name: the registry of adapters, and a system with its options.

Systems are found through the entry-point group `dialbench.adapters` or in a plug-in file.
"""

from __future__ import annotations

import dataclasses
import importlib.metadata
import importlib.util
import re
import sys
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dialbench.adapter import Adapter, Card
from dialbench.errors import InputError, UnknownName, first_line
from dialbench.extras import explain_import_error
from dialbench.files.atomic import new_folder
from dialbench.files.checksum import sha256_of
from dialbench.foreign import streams_kept
from dialbench.options import (
    check_option_value,
    parse_options,
    split_outside_brackets,
    write_options,
)

GROUP = "dialbench.adapters"
Plugin = Path | type[Adapter]
"""A file with further systems, or one of them."""
_PLUGIN = "dialbench_plugin_"  # what the modules of plug-in files are called
_NO_SUCH_OPTION = object()


@dataclass(frozen=True)
class System:
    """A system as the user named it: the adapter class and its options.

    `name` is canonical: options in the order of the config's fields, defaults left in only
    where the user wrote them, and without those that change nothing but speed.
    """

    name: str
    adapter: type[Adapter]
    options: Mapping[str, Any]

    @property
    def speed(self) -> dict[str, Any]:
        """The options that change nothing but speed."""
        return {k: v for k, v in self.options.items() if k in self.adapter.speed_options}

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
            and (value := getattr(config, f.name, _NO_SUCH_OPTION)) is not _NO_SUCH_OPTION
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
            return self.adapter.Config(**{**self.applicable_settings(settings), **self.options})
        except ValueError as error:
            raise InputError(f"{self.name}: {error}", where="--models") from None

    def applicable_settings(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """The settings that are options of this system, as its config takes them.

        Raises:
            InputError: a value is not of its option's type.
        """
        types_by_name = typing.get_type_hints(self.adapter.Config)
        return {
            key: check_option_value(
                types_by_name[key], value, f"[system] {key} of {self.adapter.name}"
            )
            for key, value in settings.items()
            if key in types_by_name
        }


class Registry:
    """All available systems, each loaded when first used.

    Args:
        plugins: further systems: subclasses of `Adapter`, or files with such.

    Attributes:
        broken: registered systems that could not be loaded, name -> reason; reported, then skipped.

    Raises:
        InputError: a plug-in cannot be loaded.
    """

    def __init__(self, plugins: Iterable[Plugin] = ()) -> None:
        entry_points = importlib.metadata.entry_points(group=GROUP)
        self._entry_points = {point.name: point for point in entry_points}
        self._classes: dict[str, type[Adapter]] = {}
        self.broken: dict[str, str] = {}
        for plugin in dict.fromkeys(plugins):
            new = [_checked(plugin)] if isinstance(plugin, type) else adapters_of(Path(plugin))
            where = "--models" if isinstance(plugin, type) else f"--plugin {plugin}"
            for adapter in new:
                self._add(adapter, where)

    def _add(self, adapter: type[Adapter], where: str) -> None:
        # Responses are kept by name: those of one would be taken for those of the other.
        if adapter.name in self._entry_points or adapter.name in self._classes:
            what = f"another system is called {adapter.name} too"
            raise InputError(what, where=where, hint="Give it a name of its own.")
        self._classes[adapter.name] = adapter

    def names(self) -> list[str]:
        """All names, systems that failed to load left out."""
        return sorted((set(self._entry_points) | set(self._classes)) - set(self.broken))

    def get(self, name: str, *, where: str = "--models") -> type[Adapter]:
        """The adapter class called `name`.

        Raises:
            UnknownName: there is none, with the nearest name.
            InputError: it exists but cannot be imported.
        """
        if name not in self._classes:
            if name not in self._entry_points:
                raise UnknownName.of("model", name, self.names(), where=where)
            try:
                loaded = self._entry_points[name].load()
                if not (isinstance(loaded, type) and issubclass(loaded, Adapter)):
                    raise TypeError(f"{self._entry_points[name].value} is not an Adapter")
                _require_declarations(loaded)
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # a package may call exit() where it is imported
                if isinstance(error, ModuleNotFoundError) and (
                    fault := explain_import_error(error, where=f"{where} {name}")
                ):
                    self.broken[name] = f"{fault.what}. {fault.hint}"
                    raise fault from None
                reason = f"{type(error).__name__}: {first_line(error)}"
                self.broken[name] = reason
                raise InputError(
                    f"model {name!r} cannot be loaded ({reason})",
                    where=where,
                    hint="Fix or uninstall the package that registers it.",
                ) from error
            self._classes[name] = loaded
        return self._classes[name]

    def require_options(
        self, names: Iterable[str], systems: Iterable[type[Adapter]], *, where: str
    ) -> None:
        """Checks that each name is an option of these systems or of another one.

        The others are loaded only if these do not have it.

        Raises:
            UnknownName: a name is an option of no system, with the nearest one.
        """
        known = {field.name for system in systems for field in dataclasses.fields(system.Config)}
        if not (unknown := set(names) - known):
            return
        for name in self.names():
            with suppress(InputError):
                known |= {field.name for field in dataclasses.fields(self.get(name).Config)}
        for name in sorted(unknown - known):
            raise UnknownName.of("option", name, known, where=where)

    def parse(self, text: str, *, where: str = "--models") -> list[System]:
        """Systems of a comma-separated list such as `all` or `seq2seq,paraformer-n[layout=full]`.

        `all` leaves out systems that need options; those that cannot be loaded are noted in
        `broken` and skipped.

        Raises:
            InputError: a name or option is unknown, a value does not fit, or nothing is named.
        """
        systems: dict[str, System] = {}
        for item in dict.fromkeys(split_outside_brackets(text)):
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
        named = {k: v for k, v in options.items() if k not in adapter.speed_options}
        system = System(match[1] + write_options(named), adapter, options)
        system.config({})
        return system


def skip_warnings(reasons: Mapping[str, str]) -> Iterator[str]:
    """A line for each reason why systems are left out, with their names."""
    for reason in dict.fromkeys(reasons.values()):
        names = [name for name, why in reasons.items() if why == reason]
        verb = "is" if len(names) == 1 else "are"
        yield f"{', '.join(names)} {verb} skipped: {reason}"


def _require_declarations(adapter: type[Adapter]) -> None:
    """Checks what a class says of itself, before anything relies on it."""
    faults = {
        "name is not a string without blanks, commas and brackets": not (
            isinstance(adapter.name, str) and re.fullmatch(r"[^\s,\[\]]+", adapter.name)
        ),
        "card is not a Card": not isinstance(adapter.card, Card),
        "Config is not a dataclass": not (
            isinstance(adapter.Config, type) and dataclasses.is_dataclass(adapter.Config)
        ),
    }
    for fault, is_there in faults.items():
        if is_there:
            raise TypeError(f"{adapter.__qualname__}.{fault}")


def load_adapter(name: str, plugins: Sequence[Plugin] = ()) -> type[Adapter]:
    """The adapter class of a system, by the name that `--models` takes."""
    return Registry(plugins).get(name, where="name")


def convert(system: str, source: Path, out: Path, *, plugins: Sequence[Plugin] = ()) -> None:
    """Writes weights that another program saved as the option `weights` of a system reads them.

    Args:
        system: its name.
        source: the folder of the other program's files.
        out: a new folder.
        plugins: files with further systems.

    Raises:
        InputError: the system reads no such weights, they are damaged, or `out` is there already.
    """
    adapter = Registry(plugins).get(system, where="SYSTEM")
    with new_folder(out) as folder:
        adapter.convert(source, folder)


def _checked(adapter: type[Adapter]) -> type[Adapter]:
    """A class that the user gave.

    Raises:
        InputError: it is no system.
    """
    try:
        if not issubclass(adapter, Adapter):
            raise TypeError("it is no subclass of Adapter")
        _require_declarations(adapter)
    except TypeError as error:
        what = f"class {adapter.__qualname__} is no system ({error})"
        raise InputError(what, where="--models", hint="Fix the class.") from None
    return adapter


def adapters_of(path: Path) -> list[type[Adapter]]:
    """The systems of a plug-in file, at least one.

    Raises:
        InputError: the file cannot be loaded, or holds none.
    """
    try:
        with streams_kept():
            adapters = list(_subclasses_in(path))
        if not adapters:
            raise TypeError("it defines no Adapter subclass with a name")
        for adapter in adapters:
            _require_declarations(adapter)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # it is code, which may raise whatever it likes
        raise InputError(
            f"{path} cannot be loaded ({type(error).__name__}: {first_line(error)})",
            where="--plugin",
            hint="Fix the file or leave it out.",
        ) from error
    return adapters


def source_checksum(adapter: type[Adapter]) -> str | None:
    """The checksum of the plug-in file that defines a system; None of installed systems."""
    path = getattr(sys.modules.get(adapter.__module__), "__file__", None)
    if path is None or not adapter.__module__.startswith(_PLUGIN):
        return None
    return sha256_of(Path(path))


def _subclasses_in(path: Path) -> Iterable[type[Adapter]]:
    module_name = f"{_PLUGIN}{re.sub(r'[^0-9a-zA-Z]', '_', path.stem)}"
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
