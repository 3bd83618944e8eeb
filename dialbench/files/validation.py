"""What pydantic finds wrong with a value, for a message of one line."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pydantic import ValidationError


class Fault(NamedTuple):
    """One thing that is wrong with a value.

    Attributes:
        path: keys and indices from the whole value to what is wrong; empty for the whole value.
        message: what is wrong with it.
        kind: pydantic's name of it, such as `missing`.
    """

    path: tuple[int | str, ...]
    message: str
    kind: str

    @property
    def field(self) -> str:
        """The path with dots between its steps."""
        return ".".join(map(str, self.path))


def first_fault(error: ValidationError) -> Fault:
    """The first of the faults that pydantic found."""
    first = error.errors(include_url=False, include_input=False)[0]
    return Fault(first["loc"], first["msg"].removeprefix("Value error, "), first["type"])
