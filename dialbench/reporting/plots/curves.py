"""Learning curves: the loss after each epoch, and the divergence of latent variables."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from dialbench.records import Decoding, Result
from dialbench.reporting.plots.canvas import BLUE, ORANGE, PALE, VERMILION, halo, panels, style
from dialbench.reporting.plots.values import shortened
from dialbench.reporting.tables.rows import Line, lines
from dialbench.text.cleaning import clean, slug

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PARTS = ("-", "-.", ":")
_LOSS = {"loss": ""}
_FAR = 1.5


def training_curves(results: Iterable[Result]) -> dict[str, Figure]:
    """Per corpus, one panel per system: values after each epoch, one line a seed.

    Every panel repeats the validation values of the other systems in grey. The point is the
    epoch whose weights answer.

    Returns:
        Figures by file stem: `CORPUS-training` with the losses, and `CORPUS-training-kl` with the
        Kullback-Leibler divergences of the systems that have any; a corpus without curves has
        none.
    """
    figures = {}
    with style():
        for corpus, members in _trained(results).items():
            drawn = _curves(members, "loss", [_LOSS] * len(members))
            _cut_outliers(drawn, members)
            drawn.set_label(f"Loss after every epoch ({clean(corpus)})")
            figures[slug(f"{corpus}-training")] = drawn
            latent = [line for line in members if _kl_parts(line)]
            if latent:
                title = "KL divergence (nats a response)"
                parts = [_kl_parts(line) for line in latent]
                drawn = _curves(latent, title, parts)
                drawn.set_label(f"{title}, after every epoch ({clean(corpus)})")
                _logarithmic(drawn)
                figures[slug(f"{corpus}-training-kl")] = drawn
    return figures


def _trained(results: Iterable[Result]) -> dict[str, list[Line]]:
    """The trainings with a curve by corpus, one line a recipe."""
    trainings: dict[str, dict[str, Result]] = {}
    for result in results:
        if result.curve:
            # However a trained system answers, it learned in the same way.
            job = dataclasses.replace(result.job, decoding=Decoding(), answering={})
            learned = dataclasses.replace(result, job=job)
            trainings.setdefault(job.corpus, {})[job.training_fingerprint] = learned
    return {corpus: lines(of.values()) for corpus, of in trainings.items()}


def _kl_parts(line: Line) -> dict[str, str]:
    """The divergences that a curve holds, each with the name of its latent variable."""
    keys = [key.removeprefix("valid_") for key in line.results[0].curve[0]]
    return {
        key: key.removeprefix("kl").removesuffix("_per_example").strip("_")
        for key in keys
        if key.startswith("kl") and key.endswith("_per_example")
    }


def _curves(members: Sequence[Line], title: str, parts: Sequence[dict[str, str]]) -> Figure:
    drawn, axes = panels(len(members), sharex=True, sharey=True)
    for panel, line, own in zip(axes, members, parts, strict=True):
        for other, theirs in zip(members, parts, strict=True):
            for key in theirs if other is not line else ():
                _draw(panel, other, f"valid_{key}", color=PALE, linewidth=0.8)
        for place, (key, name) in enumerate(own.items()):
            dashes = _PARTS[place % len(_PARTS)]
            _draw(panel, line, f"train_{key}", color=ORANGE, linewidth=1.2, linestyle="--")
            _draw(panel, line, f"valid_{key}", color=BLUE, linewidth=1.5, linestyle=dashes)
            _kept(panel, line, f"valid_{key}")
            highest = all(_last(line, key) >= _last(line, other) for other in own)
            _name(panel, line, f"valid_{key}", name, above=highest)
        panel.set_title(shortened(line.label), loc="left")
        panel.locator_params(axis="x", integer=True, nbins=5)
    drawn.supxlabel("epoch", fontsize=9)
    drawn.supylabel(title, fontsize=9)
    _legend(drawn, several=len(members) > 1)
    return drawn


def _cut_outliers(drawn: Figure, members: Sequence[Line]) -> None:
    """Lets losses far above all validation losses leave the panels.

    While the KL hardly counts yet it can be a hundred nats a response, and everything else would
    be one flat line.
    """
    results = [result for line in members for result in line.results]
    losses = {
        key: [loss for result in results for _, loss in _points(result, key)]
        for key in ("train_loss", "valid_loss")
    }
    limit = _FAR * max(losses["valid_loss"], default=math.inf)
    if max(losses["train_loss"], default=-math.inf) > limit:
        near = [loss for of in losses.values() for loss in of if loss <= limit]
        margin = 0.05 * (max(near) - min(near))
        drawn.axes[0].set_ylim(min(near) - margin, max(near) + margin)


def _logarithmic(drawn: Figure) -> None:
    """Divergences of a latent variable in use and of a collapsed one lie powers of ten apart."""
    for panel in drawn.axes:
        panel.set_yscale("log")
        panel.yaxis.set_major_formatter("{x:g}")
        panel.yaxis.set_minor_formatter("")


def _draw(axes: Any, line: Line, key: str, **look: Any) -> None:
    for result in line.results:
        points = _points(result, key)
        axes.plot([epoch for epoch, _ in points], [value for _, value in points], **look)


def _kept(axes: Any, line: Line, key: str) -> None:
    for result in line.results:
        losses, values = _points(result, "valid_loss"), dict(_points(result, key))
        lowest = min(losses, key=lambda point: point[1], default=(math.nan, math.nan))[0]
        best = result.facts.get("best_epoch", lowest)
        if best in values:
            axes.plot(best, values[best], "o", color=VERMILION, markersize=4)


def _last(line: Line, key: str) -> float:
    points = _points(line.results[0], f"valid_{key}")
    return points[-1][1] if points else math.nan


def _name(axes: Any, line: Line, key: str, name: str, *, above: bool) -> None:
    points = _points(line.results[0], key)
    if name and points:
        up = 5 if above else -11
        where = {"xytext": (0, up), "textcoords": "offset points", "ha": "right"}
        axes.annotate(name, points[-1], fontsize=7, color=BLUE, path_effects=halo(), **where)


def _points(result: Result, key: str) -> list[tuple[float, float]]:
    found = [(epoch["epoch"], epoch.get(key, math.nan)) for epoch in result.curve]
    return [(epoch, value) for epoch, value in found if math.isfinite(value)]


def _legend(drawn: Figure, *, several: bool) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=BLUE, linewidth=1.5, label="validation"),
        Line2D([], [], color=ORANGE, linewidth=1.2, linestyle="--", label="training"),
        Line2D([], [], color=VERMILION, marker="o", markersize=4, linewidth=0, label="best epoch"),
        Line2D([], [], color=PALE, linewidth=1.5, label="other systems, validation"),
    ]
    shown = handles if several else handles[:3]
    columns = 4 if drawn.get_figwidth() > _WIDE else 2
    drawn.legend(handles=shown, loc="outside upper center", ncols=columns, frameon=False)


# Inches that the legend takes on one line.
_WIDE = 7.0
