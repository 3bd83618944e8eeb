"""Names of tables, as of their files and labels: none twice."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from dialbench.records import Table
from dialbench.text.cleaning import slug


def uniquely_named(tables: Sequence[Table], used_names: Iterable[str] = ()) -> list[Table]:
    """The tables under names that differ from each other and from `used_names`, as of files."""
    named: dict[str, Table] = {}
    used = list(used_names)
    for table in tables:
        name = unused_name(slug(table.name), [*used, *named])
        named[name] = dataclasses.replace(table, name=name)
    return list(named.values())


def unused_name(stem: str, used_names: Iterable[str]) -> str:
    """The stem, with a number behind it if a name of that kind is used already."""
    lowered = {name.lower() for name in used_names}
    number = 2
    name = stem
    while name.lower() in lowered:
        name, number = f"{stem}-{number}", number + 1
    return name
