"""Systems are found by name, told their options, and a broken one does not break the others."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, Literal

import pytest

from dialbench.adapter import Adapter, NoOptions, Run
from dialbench.errors import InputError, UnknownName
from dialbench.options import parse_options, split_outside_brackets
from dialbench.records import Context, Decoding, Split
from dialbench.systems import GROUP, Registry, System

PACKAGE = """
from dataclasses import dataclass
from dialbench.adapter import Adapter

@dataclass(frozen=True)
class Options:
    size: int = 4
    rate: float = 0.5

class Good(Adapter):
    name = "good"
    Config = Options

not_a_system = 7
"""
POINTS = {
    "good": "third_party_package:Good",
    "gone": "third_party_package:Missing",
    "number": "third_party_package:not_a_system",
    "absent": "no_such_package:Anything",
}


@pytest.fixture
def points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package that registers one good system and three broken ones."""
    (tmp_path / "third_party_package.py").write_text(PACKAGE)
    monkeypatch.syspath_prepend(tmp_path)
    known = [EntryPoint(name, value, GROUP) for name, value in POINTS.items()]
    monkeypatch.setattr(
        importlib.metadata, "entry_points", lambda group: known if group == GROUP else []
    )
    yield
    monkeypatch.delitem(__import__("sys").modules, "third_party_package", raising=False)


@pytest.fixture
def plugin(tmp_path: Path) -> Callable[[str], Path]:
    def write(code: str, name: str = "my plug-in.py") -> Path:
        (tmp_path / name).write_text(code)
        return tmp_path / name

    return write


ECHO = """
from dialbench.adapter import Adapter
class Echo(Adapter):
    name = "echo"
    def respond(self, contexts, decoding, run):
        return [context[-1] for context in contexts]
"""


# The least adapter


def test_an_echo_needs_only_respond(tmp_path: Path, plugin: Callable[[str], Path]) -> None:
    (system,) = Registry([plugin(ECHO)]).parse("echo")
    adapter = system.build({"size": 7})
    empty = Split("train", [])
    adapter.fit(empty, empty, Run(1))
    adapter.save(tmp_path)
    again = system.adapter.load(tmp_path)
    assert again.respond([Context(("hi", "ho"))], Decoding(), Run(1)) == ["ho"]
    assert dict(again.facts()) == {}
    assert adapter.config == NoOptions()


def test_what_an_adapter_learned_is_kept_as_json(tmp_path: Path) -> None:
    class Parrot(Adapter):
        word = ""

        def state(self) -> Any:
            return {"word": self.word}

        def set_state(self, state: Any) -> None:
            self.word = state["word"]

    parrot = Parrot()
    parrot.word = "Grüße"
    parrot.save(tmp_path)
    assert (tmp_path / "state.json").read_bytes() == '{"word": "Grüße"}'.encode()
    again = Parrot.load(tmp_path)
    assert isinstance(again, Parrot)
    assert again.word == "Grüße"


def test_an_adapter_without_respond_says_so() -> None:
    class Silent(Adapter):
        name = "silent"

    with pytest.raises(NotImplementedError, match="Silent does not define respond"):
        Silent().respond([], Decoding(), Run(1))


# Discovery


@pytest.mark.usefixtures("points")
def test_a_registered_system_is_found() -> None:
    registry = Registry()
    assert registry.get("good").name == "good"
    assert registry.names() == ["absent", "gone", "good", "number"]


@pytest.mark.usefixtures("points")
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("gone", "AttributeError"),
        ("number", "third_party_package:not_a_system is not an Adapter"),
        ("absent", "No module named 'no_such_package'"),
    ],
)
def test_a_broken_system_asked_for_by_name_is_an_error(name: str, reason: str) -> None:
    registry = Registry()
    with pytest.raises(InputError) as error:
        registry.parse(f"good,{name}")
    assert error.value.message.startswith(f"--models: model {name!r} cannot be loaded (")
    assert reason in error.value.message
    assert reason in registry.broken[name]


@pytest.mark.usefixtures("points")
def test_all_skips_broken_systems_and_names_them() -> None:
    registry = Registry()
    assert [system.name for system in registry.parse("all")] == ["good"]
    assert sorted(registry.broken) == ["absent", "gone", "number"]
    assert registry.names() == ["good"]


@pytest.mark.usefixtures("points")
def test_a_misspelt_system_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match=r"--models: unknown model 'goood'\. Did you mean 'good'"):
        Registry().parse("goood")
    with pytest.raises(UnknownName, match="Known: absent, gone, good, number"):
        Registry().parse("xyz")


def test_the_systems_of_the_house_are_registered() -> None:
    names = Registry().names()
    assert {"copy-last", "copy-reference", "retrieval", "unigram"} <= set(names)


# Plug-in files


def test_a_plugin_joins_the_registry(plugin: Callable[[str], Path]) -> None:
    registry = Registry([plugin(ECHO)])
    assert "echo" in registry.names()
    assert registry.get("echo").name == "echo"
    assert registry.broken == {}


@pytest.mark.parametrize("name", ["copy-last", "echo"])
def test_no_two_systems_have_one_name(plugin: Callable[..., Path], name: str) -> None:
    """Responses are kept by name: those of one would pass for those of the other."""
    first, second = plugin(ECHO, "a.py"), plugin(ECHO.replace('"echo"', f'"{name}"'), "b.py")
    message = rf"--plugin .*b\.py: another system is called {name} too"
    with pytest.raises(InputError, match=message):
        Registry([first, second])
    assert "echo" in Registry([first, first]).names()


def test_several_plugins_and_systems_in_one(plugin: Callable[..., Path]) -> None:
    both = ECHO + "class Loud(Echo):\n    name = 'loud'\n"
    other = "from dialbench.adapter import Adapter\nclass Other(Adapter):\n    name = 'other'\n"
    registry = Registry([plugin(both, "a.py"), plugin(other, "b.py")])
    assert {"echo", "loud", "other"} <= set(registry.names())


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("def broken(:\n", "SyntaxError"),
        ("import no_such_package\n", "ModuleNotFoundError: No module named 'no_such_package'"),
        ("1 / 0\n", "ZeroDivisionError"),
        ("raise SystemExit(0)\n", "SystemExit: 0"),
        ("class Odd(BaseException): pass\nraise Odd('two\\nlines')\n", "(Odd: two)"),
        ("from dialbench.adapter import Adapter\n", "it defines no Adapter subclass with a name"),
        ("from dialbench.adapter import Adapter\nclass A(Adapter): pass\n", "with a name"),
        (ECHO + "    name = 5\n", "Echo.name is not a string"),
        (ECHO + "    name = 'a,b'\n", "Echo.name is not a string without blanks, commas"),
        (ECHO + "    card = 'Echo'\n", "Echo.card is not a Card"),
        (ECHO + "    Config = 5\n", "Echo.Config is not a dataclass"),
    ],
)
def test_a_broken_plugin_ends_the_command(
    plugin: Callable[..., Path], code: str, reason: str
) -> None:
    """Whoever names a file wants its systems: going on without them would be another run."""
    broken, fine = plugin(code, "broken.py"), plugin(ECHO, "fine.py")
    with pytest.raises(InputError) as error:
        Registry([fine, broken])
    assert error.value.message.startswith(f"--plugin: {broken} cannot be loaded (")
    assert reason in error.value.message
    assert "\n" not in error.value.message


@pytest.mark.parametrize("name", ["missing.py", "text.txt", "."])
def test_a_plugin_that_is_no_python_file(tmp_path: Path, name: str) -> None:
    (tmp_path / "text.txt").write_text("hello")
    with pytest.raises(InputError, match="is not a Python file"):
        Registry([tmp_path / name])


# Options


@dataclass(frozen=True)
class Config:
    size: int = 4
    rate: float = 0.5
    tied: bool = False
    layout: Literal["near", "full"] = "near"
    limit: int | None = None
    note: str = ""

    def __post_init__(self) -> None:
        if self.size < 1:
            raise ValueError("size must be at least 1")


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("", {}),
        ("size=8", {"size": 8}),
        (" rate = 1e-3 , size = 8 ", {"size": 8, "rate": 0.001}),
        ("tied=yes,layout=full", {"tied": True, "layout": "full"}),
        ("tied=Off", {"tied": False}),
        ("limit=none,note=a=b", {"limit": None, "note": "a=b"}),
        ("limit=3", {"limit": 3}),
    ],
)
def test_options_are_read_by_the_types_of_the_config(text: str, options: dict[str, Any]) -> None:
    read = parse_options(Config, text, where="here")
    assert read == options
    assert [type(value) for value in read.values()] == [type(v) for v in options.values()]
    order = ["size", "rate", "tied", "layout", "limit", "note"]
    assert list(read) == sorted(read, key=order.index)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sise=8", "here: unknown option 'sise'. Did you mean 'size'?"),
        ("size", "here: option 'size' has no value. Write size=VALUE."),
        ("size=1,size=2", "here: option 'size' is given twice. Write size=VALUE."),
        ("size=big", "here size: 'big' is not a whole number"),
        ("size=1.5", "here size: '1.5' is not a whole number"),
        ("rate=", "here rate: '' is not a finite number"),
        ("tied=maybe", "here tied: 'maybe' is neither true nor false"),
        ("layout=ful", "here layout: unknown value 'ful'. Did you mean 'full'?"),
        ("limit=x", "here limit: 'x' is not a whole number"),
    ],
)
def test_a_wrong_option_is_named(text: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        parse_options(Config, text, where="here")
    assert error.value.message == message


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", []),
        (" a , ,b,", ["a", "b"]),
        ("a[x=1,y=2],b", ["a[x=1,y=2]", "b"]),
        ("a,b[x=1],c[y=2,z=3]", ["a", "b[x=1]", "c[y=2,z=3]"]),
    ],
)
def test_commas_inside_brackets_do_not_separate(text: str, parts: list[str]) -> None:
    assert split_outside_brackets(text) == parts


@pytest.mark.usefixtures("points")
def test_a_system_has_one_name_however_its_options_are_written() -> None:
    systems = Registry().parse("good[rate=0.10,size=8], good[ size=8 , rate=1e-1 ],good,good[]")
    assert [system.name for system in systems] == ["good[size=8,rate=0.1]", "good"]


@pytest.mark.usefixtures("points")
def test_options_win_over_settings_and_settings_over_defaults() -> None:
    (system,) = Registry().parse("good[size=8]")
    config = system.config({"size": 1, "rate": 0.9, "unknown_to_this_system": 1})
    assert (config.size, config.rate) == (8, 0.9)
    assert system.build({}).config == system.config({})
    assert system.config({}).rate == 0.5


@pytest.mark.usefixtures("points")
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("good[sise=8]", "--models good: unknown option 'sise'. Did you mean 'size'?"),
        ("good[size=x]", "--models good size: 'x' is not a whole number"),
        ("good[size=8", "--models: 'good[size=8' is not a model name. Write name"),
        ("go od", "--models: 'go od' is not a model name. Write name"),
        ("", "--models: no model is named. Known: all, "),
        (" , ", "--models: no model is named. Known: all, "),
    ],
)
def test_a_wrong_list_of_systems_is_named(text: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        Registry().parse(text)
    assert error.value.message.startswith(message)


def test_a_value_that_the_config_refuses_is_an_error_of_the_user(
    plugin: Callable[[str], Path],
) -> None:
    code = ECHO + (
        "from dataclasses import dataclass\n"
        "@dataclass(frozen=True)\nclass Config:\n    size: int = 1\n"
        "    def __post_init__(self):\n"
        "        if self.size < 1:\n            raise ValueError('size must be positive')\n"
        "Echo.Config = Config\n"
    )
    with pytest.raises(InputError) as error:
        Registry([plugin(code)]).parse("echo[size=0]")
    assert error.value.message == "--models: echo[size=0]: size must be positive"


# Settings of presets and suites


@dataclass(frozen=True)
class Sized:
    norm: Literal["pre", "post"] = "pre"
    epochs: int = 3
    rate: float = 0.1
    name: str = ""
    tied: bool = False
    limit: int | None = None


class Built(Adapter):
    name = "built"
    Config = Sized


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("norm", value) for value in ("sideways", True, 1, ["pre"])),
        *(("epochs", value) for value in (True, 1.5, "x", [], {}, date(2026, 1, 1), 10**18, "")),
        *(("rate", value) for value in (True, "x", [0.1], math.inf, -math.inf, math.nan, 10**400)),
        *(("tied", value) for value in (2, 0.5, "maybe")),
        *(("limit", value) for value in (1.5, "x", math.inf)),
        ("name", ["a"]),
    ],
)
def test_a_setting_is_checked_as_an_option_is(key: str, value: object) -> None:
    with pytest.raises(InputError, match=rf"^\[system\] {key} of built: ") as error:
        System("built", Built, {}).config({key: value})
    assert len(error.value.message) < 200 or value == 10**400


def test_settings_that_fit_are_taken_as_they_are() -> None:
    values = {"norm": "post", "epochs": 2, "rate": 1, "tied": True, "limit": 5, "other": []}
    config = System("built", Built, {}).config(values)
    assert dataclasses.asdict(config) | {"other": []} == values | {"name": ""}
    assert isinstance(config.rate, int)  # fingerprints tell 1 from 1.0


@pytest.mark.parametrize("value", ["inf", "-inf", "nan", "1e999"])
def test_an_option_is_finite(value: str) -> None:
    with pytest.raises(InputError, match="is not a finite number"):
        parse_options(Sized, f"rate={value}", where="here")


def test_commas_are_counted_once() -> None:
    """Of 200,000 commas each used to be compared with all that follow."""
    assert split_outside_brackets("," * 200_000 + "a[b=1,c=2] ,d") == ["a[b=1,c=2]", "d"]
    assert split_outside_brackets("[" * 100_000 + ",a") == ["[" * 100_000, "a"]
