"""Counts the parameters of systems, which are built but not trained for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from dialbench.adapter import Adapter
from dialbench.errors import InputError
from dialbench.presets.preset import load as load_preset
from dialbench.records import Cell, Column, Row, Table
from dialbench.reporting.tables.text_table import MINUS
from dialbench.systems import Registry

if TYPE_CHECKING:
    from dialbench.neural.model import DialogueModel
    from dialbench.papers.tables import PrintedCount
    from dialbench.suites.suite import CountedPart, CountSuite

_COLUMNS = (
    Column("ours", "ours", digits=0, direction="none"),
    Column("printed", "printed", digits=0, direction="none"),
    Column("difference", "diff.", digits=0, direction="none"),
    Column("random", "of ours random", digits=0, direction="none"),
)


def parameter_counts(adapter: Adapter) -> dict[str, int]:
    """The parameters of a system's model: all, trained, random (frozen), used for responses.

    Returns:
        `parameters`, `trained_parameters`, `random_parameters` and `inference_parameters`;
        nothing for a system without a model of ours.
    """
    from dialbench.neural.model import count_for_responses, count_parameters

    model = _model(adapter)
    if model is None:
        return {}
    return {**count_parameters(model), "inference_parameters": count_for_responses(model)}


def parameter_table(suite: CountSuite) -> Table:
    """Our counts beside those that a paper printed, at the paper's sizes.

    Raises:
        InputError: there is no such system, or no such part of its model.
    """
    printed = suite.printed_table()
    rows = {row.component: row for row in printed.rows}
    sizes = ", ".join(f"{key}={getattr(printed, key)}" for key in ("n", "d_r", "d_qkv", "d_ff"))
    notes = (
        *(
            f"{p.printed}: {p.module} of {p.system}; {rows[p.printed].formula}."
            for p in suite.parts
        ),
        f"Printed: {printed.label} of {suite.paper}, with {sizes}.",
        *printed.notes,
    )
    caption = f"{suite.summary}, beside {printed.table} of {suite.paper}"
    count_rows = tuple(_row(part, rows[part.printed]) for part in suite.parts)
    return Table(suite.name, caption, _COLUMNS, count_rows, notes)


def _row(part: CountedPart, printed: PrintedCount) -> Row:
    from dialbench.neural.model import count_parameters

    (system,) = Registry().parse(part.system)
    model = _model(system.build(load_preset("paper").system))
    try:
        if model is None:
            raise AttributeError(f"{part.system} has no model")
        counts = count_parameters(model.get_submodule(part.module))
    except AttributeError as error:
        raise InputError(str(error), where=f"part {part.printed}") from None
    ours = counts["parameters"]
    numbers: Mapping[str, int] = {
        "ours": ours,
        "printed": printed.value,
        "difference": ours - printed.value,
        "random": counts["random_parameters"],
    }
    cells = {
        name: Cell(number, text=f"{number:,}".replace("-", MINUS))
        for name, number in numbers.items()
    }
    return Row(part.printed, cells)


def _model(adapter: Adapter) -> DialogueModel | None:
    """The model of the largest vocabulary its options allow, without any values in it."""
    import torch

    from dialbench.neural.adapter import NeuralAdapter

    if not isinstance(adapter, NeuralAdapter):
        return None
    with torch.device("meta"):
        return adapter.build_model(adapter.config.vocabulary)
