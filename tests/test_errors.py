"""Errors are one line that says where, what, and what to do."""

from __future__ import annotations

import copy

import pytest

from dialbench.errors import DialbenchError, InputError, StorageError, SystemFailed, UnknownName


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (InputError("it is empty"), "it is empty"),
        (InputError("it is empty", where="a:1"), "a:1: it is empty"),
        (InputError("it is empty", hint="Fill it."), "it is empty. Fill it."),
        (InputError("it is empty", where="a:1", hint="Fill it."), "a:1: it is empty. Fill it."),
    ],
)
def test_the_line(error: DialbenchError, line: str) -> None:
    assert str(error) == error.message == line


def test_exit_codes() -> None:
    assert InputError("x").exit_code == StorageError("x").exit_code == 2
    assert UnknownName("x").exit_code == 2
    assert SystemFailed("x").exit_code == 1


@pytest.mark.parametrize("kind", [DialbenchError, InputError, UnknownName, StorageError])
def test_errors_survive_the_way_between_processes(kind: type[DialbenchError]) -> None:
    error = copy.copy(kind("what", where="where", hint="Hint."))
    assert type(error) is kind
    assert (error.what, error.where, error.hint) == ("what", "where", "Hint.")
    assert str(error) == "where: what. Hint."


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("seq2sec", "Did you mean 'seq2seq'?"),
        ("paraformer", "Did you mean 'paraformer-n'?"),
        ("zzz", "Known: paraformer-n, seq2seq."),
    ],
)
def test_an_unknown_name_comes_with_the_nearest_or_with_all(name: str, hint: str) -> None:
    error = UnknownName.of("model", name, ["seq2seq", "paraformer-n"], where="--models")
    assert error.message == f"--models: unknown model {name!r}. {hint}"


def test_an_unknown_name_where_nothing_is_known() -> None:
    assert UnknownName.of("corpus", "x", []).message == "unknown corpus 'x'. Known: none."
