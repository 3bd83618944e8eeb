"""What metrics must be given besides text: word vectors, training text, models, programs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Resource(Generic[T]):
    """Something that a metric needs, declared beside the first metric that does.

    `dialbench.scoring.resources` knows how each is found.

    Attributes:
        name: how listings call it.
        missing: why there is none where nobody looked for it.
    """

    name: str
    missing: str = ""


class Found(NamedTuple, Generic[T]):
    """A resource, or None and the reason why there is none."""

    value: T | None = None
    missing: str = ""
