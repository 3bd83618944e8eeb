"""Plots learning curves: the loss after each epoch, and the KL of latent variables."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

from dialbench.records import Decoding, Result
from dialbench.reporting.plots.canvas import (
    BLUE,
    GREY,
    ORANGE,
    PALE,
    VERMILION,
    halo,
    panels,
    style,
)
from dialbench.reporting.plots.values import panel_title
from dialbench.reporting.tables.rows import SeedGroup, seed_groups
from dialbench.text.cleaning import clean, slug

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DASHES = ("-", "-.", ":")
_LOSS = {"loss": ""}
_OUTLIER_FACTOR = 1.5
_LONG = 2
_MARGIN = 0.05
_DECADE = 10
_ROOM_FOR_NAMES = 0.12


def training_curves(results: Iterable[Result]) -> dict[str, Figure]:
    """Per corpus, one panel per system: values after each epoch, one line a seed.

    Every panel repeats the validation values of the other systems in grey. The point is the
    epoch whose checkpoint gave the responses.

    Returns:
        Figures by file stem: `CORPUS-training` with the losses, and `CORPUS-training-kl` with the
        Kullback-Leibler divergences of the systems that have any; a corpus without curves has
        none.
    """
    figures = {}
    with style():
        for corpus, groups in _trained(results).items():
            fig = _curves(groups, "loss (nats a word)", [_LOSS] * len(groups))
            _cut_outliers(fig, groups)
            fig.set_label(f"Loss after every epoch ({clean(corpus)})")
            figures[slug(f"{corpus}-training")] = fig
            latent = [group for group in groups if _kl_parts(group)]
            if latent:
                title = "KL divergence (nats a response)"
                parts = [_kl_parts(group) for group in latent]
                fig = _curves(latent, title, parts)
                fig.set_label(f"{title}, after every epoch ({clean(corpus)})")
                _logarithmic(fig)
                figures[slug(f"{corpus}-training-kl")] = fig
    return figures


def _trained(results: Iterable[Result]) -> dict[str, list[SeedGroup]]:
    """The training runs with a curve by corpus, grouped by their settings."""
    training_runs: dict[str, dict[str, Result]] = {}
    for result in results:
        if result.curve:
            # The decoding has no influence on training.
            job = dataclasses.replace(result.job, decoding=Decoding(), answering={})
            undecoded = dataclasses.replace(result, job=job)
            training_runs.setdefault(job.corpus, {})[job.training_fingerprint] = undecoded
    return {corpus: seed_groups(runs.values()) for corpus, runs in training_runs.items()}


def _kl_parts(group: SeedGroup) -> dict[str, str]:
    """The divergences that a curve holds, each with the name of its latent variable."""
    keys = [key.removeprefix("valid_") for key in group.results[0].curve[0]]
    return {
        key: key.removeprefix("kl").removesuffix("_per_example").strip("_")
        for key in keys
        if key.startswith("kl") and key.endswith("_per_example")
    }


def _curves(groups: Sequence[SeedGroup], title: str, parts: Sequence[dict[str, str]]) -> Figure:
    fig, axes = panels(len(groups), sharey=True)
    usual = _usual_epochs(groups)
    for panel, group, keys in zip(axes, groups, parts, strict=True):
        others = [pair for pair in zip(groups, parts, strict=True) if pair[0] is not group]
        if others:
            panel.plot(*_joined(others), color=PALE, linewidth=0.8)
        for number, (key, name) in enumerate(keys.items()):
            dashes = _DASHES[number % len(_DASHES)]
            _draw(panel, group, f"train_{key}", color=ORANGE, linewidth=1.2, linestyle="--")
            _draw(panel, group, f"valid_{key}", color=BLUE, linewidth=1.5, linestyle=dashes)
            _mark_best_epoch(panel, group, f"valid_{key}")
            highest = all(_last_value(group, key) >= _last_value(group, other) for other in keys)
            _write_name(panel, group, f"valid_{key}", name, above=highest)
        last = max(usual, _epochs(group))
        panel.set_xlim(1 - _MARGIN * last, last + _MARGIN * last)
        if last > usual:
            _write_corner(panel, f"to epoch {last:g}")
        elif not any(_points(r, f"valid_{key}") for r in group.results for key in keys):
            _write_corner(panel, "trained by other losses")
        panel.set_title(panel_title(group.label), loc="left")
        panel.locator_params(axis="x", integer=True, nbins=5)
    fig.supxlabel("epoch", fontsize=9)
    fig.supylabel(title, fontsize=9)
    _legend(fig, several=len(groups) > 1)
    return fig


def _epochs(group: SeedGroup) -> float:
    """The last epoch of any of its training runs."""
    return max(epoch["epoch"] for result in group.results for epoch in _trained_epochs(result))


def _usual_epochs(groups: Sequence[SeedGroup]) -> float:
    """The last epoch of those that train at most twice as long as most do.

    One that trains for far more would press all others into a corner; it has an axis of its own.
    """
    epochs = [_epochs(group) for group in groups]
    return max(last for last in epochs if last <= _LONG * median(epochs))


def _joined(
    pairs: Iterable[tuple[SeedGroup, dict[str, str]]],
) -> tuple[list[float], list[float]]:
    """Epochs and validation values of several training runs as one line with gaps."""
    epochs: list[float] = []
    values: list[float] = []
    for result, key in ((r, key) for group, keys in pairs for r in group.results for key in keys):
        points = _points(result, f"valid_{key}")
        epochs += [*(epoch for epoch, _ in points), math.nan]
        values += [*(value for _, value in points), math.nan]
    return epochs[:-1], values[:-1]


def _cut_outliers(fig: Figure, groups: Sequence[SeedGroup]) -> None:
    """Cuts losses far above the validation losses that systems come down to off the panels.

    While its weight is small the KL can be a hundred nats a response, and everything else would
    be one flat line.
    """
    results = [result for group in groups for result in group.results]
    validation = [[loss for _, loss in _points(result, "valid_loss")] for result in results]
    limit = _OUTLIER_FACTOR * max(
        (min(losses) for losses in validation if losses), default=math.inf
    )
    training = [loss for result in results for _, loss in _points(result, "train_loss")]
    every = [*training, *(loss for losses in validation for loss in losses)]
    if max(every, default=-math.inf) > limit:
        near = [loss for loss in every if loss <= limit]
        margin = 0.05 * (max(near) - min(near))
        fig.axes[0].set_ylim(min(near) - margin, max(near) + margin)


def _logarithmic(fig: Figure) -> None:
    """Divergences of a latent variable in use and of a collapsed one lie powers of ten apart."""
    for panel in fig.axes:
        panel.set_yscale("log")
        panel.margins(y=_ROOM_FOR_NAMES)
        panel.yaxis.set_major_formatter("{x:g}")
        low, high = panel.get_ylim()
        if high / low > _DECADE:
            panel.yaxis.set_minor_formatter("")
        else:  # there may be no power of ten to name
            panel.yaxis.set_minor_formatter("{x:g}")
            panel.tick_params(axis="y", which="minor", labelsize=7)


def _draw(axes: Any, group: SeedGroup, key: str, **look: Any) -> None:
    for result in group.results:
        points = _points(result, key)
        axes.plot([epoch for epoch, _ in points], [value for _, value in points], **look)


def _mark_best_epoch(axes: Any, group: SeedGroup, key: str) -> None:
    for result in group.results:
        losses, values = _points(result, "valid_loss"), dict(_points(result, key))
        lowest = min(losses, key=lambda point: point[1], default=(math.nan, math.nan))[0]
        best = result.facts.get("best_epoch", lowest)
        if best not in dict(losses):
            # What was measured behind training, of weights of an earlier epoch.
            kept = [row.get("valid_loss") for row in result.curve if row["epoch"] == best]
            best = next((epoch for epoch, loss in losses if [loss] == kept), math.nan)
        if best in values:
            axes.plot(best, values[best], "o", color=VERMILION, markersize=4)


def _last_value(group: SeedGroup, key: str) -> float:
    points = _points(group.results[0], f"valid_{key}")
    return points[-1][1] if points else math.nan


def _write_name(axes: Any, group: SeedGroup, key: str, name: str, *, above: bool) -> None:
    points = _points(group.results[0], key)
    if name and points:
        up = 5 if above else -11
        where = {"xytext": (0, up), "textcoords": "offset points", "ha": "right"}
        axes.annotate(name, points[-1], fontsize=7, color=BLUE, path_effects=halo(), **where)


def _write_corner(axes: Any, text: str) -> None:
    where = {"transform": axes.transAxes, "ha": "right", "va": "top"}
    axes.text(1, 1, text, fontsize=7, color=GREY, path_effects=halo(), **where)


def _points(result: Result, key: str) -> list[tuple[float, float]]:
    rows = _trained_epochs(result)
    points = [(row["epoch"], row.get(key, math.nan)) for row in rows]
    return [(epoch, value) for epoch, value in points if math.isfinite(value)]


def _trained_epochs(result: Result) -> Sequence[Mapping[str, float]]:
    """The epochs of a curve without a measurement behind them, which has no training losses."""
    trained = [row for row in result.curve if any(key.startswith("train_") for key in row)]
    return trained or result.curve


def _legend(fig: Figure, *, several: bool) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=BLUE, linewidth=1.5, label="validation"),
        Line2D([], [], color=ORANGE, linewidth=1.2, linestyle="--", label="training"),
        Line2D([], [], color=VERMILION, marker="o", markersize=4, linewidth=0, label="best epoch"),
        Line2D([], [], color=PALE, linewidth=1.5, label="other systems, validation"),
    ]
    shown = handles if several else handles[:3]
    columns = 4 if fig.get_figwidth() > _WIDE_LEGEND else 2
    fig.legend(handles=shown, loc="outside upper center", ncols=columns, frameon=False)


_WIDE_LEGEND = 7.0  # inches of the legend on one line
