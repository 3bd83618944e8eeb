"""Colours, type and files of all plots; the same figure always gives the same bytes.

The label of a figure is its caption on the page, and the title in its file.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito (2008): distinct with every common kind of colour blindness.
BLUE, SKY, ORANGE, VERMILION = "#0072B2", "#56B4E9", "#E69F00", "#D55E00"
GREEN, PURPLE = "#009E73", "#CC79A7"
INK, GREY, PALE = "#222222", "#777777", "#CCCCCC"

# Lengths without a common factor, so that a pair repeats only after 35 lines.
_COLOURS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, INK)
_LOOKS = (("-", "o"), ("--", "s"), ("-.", "^"), (":", "D"), ((0, (6, 1.5)), "v"))

_STYLE: dict[str, Any] = {
    "figure.dpi": 100,
    "savefig.dpi": 200,
    "figure.constrained_layout.use": True,
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.labelcolor": INK,
    "axes.edgecolor": GREY,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.unicode_minus": True,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "text.color": INK,
    "text.parse_math": False,
    # Publishers refuse the bitmap-like Type 3 fonts that are the default.
    "pdf.fonttype": 42,
}

_METADATA: dict[str, dict[str, None]] = {
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}


@contextmanager
def style() -> Iterator[None]:
    """The same style on every machine, whatever the user's matplotlibrc says."""
    import matplotlib.style

    with matplotlib.style.context(["default", _STYLE]):
        yield


def figure(width: float, height: float, **shape: Any) -> tuple[Figure, Any]:
    """An empty figure of that many inches and its axes; to be called within `style`."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    fig = Figure(figsize=(width, height))
    FigureCanvasAgg(fig)
    return fig, fig.subplots(**shape)


def panels(count: int, **shape: Any) -> tuple[Figure, list[Any]]:
    """A figure of so many small panels, at most four in a row; to be called within `style`."""
    across = min(4, count)
    down = math.ceil(count / across)
    size = max(1.9 * across, 3.4), 1.5 * down + 1.1
    fig, axes = figure(*size, nrows=down, ncols=across, squeeze=False, **shape)
    every = list(axes.flat)
    for panel in every[count:]:
        panel.set_axis_off()
    # Above a gap in the last row, the panel has to show the numbers of the axis.
    for panel in every[max(count - across, 0) : count]:
        panel.tick_params(axis="x", labelbottom=True)
    return fig, every[:count]


def series(number: int) -> dict[str, Any]:
    """The style of line `number`, distinct from the others in colour and in grey."""
    dashes, marker = _LOOKS[number % len(_LOOKS)]
    colour = _COLOURS[number % len(_COLOURS)]
    return {"color": colour, "linestyle": dashes, "marker": marker, "linewidth": 1.3}


def encode(fig: Figure, format: str) -> bytes:
    """The figure as a file of one of `PLOTS`, without dates and versions."""
    file = io.BytesIO()
    with style(), _laid_out(fig):
        title = {"Title": str(fig.get_label())}
        fig.savefig(file, format=format, metadata=_METADATA[format] | title)
    return file.getvalue()


def svg(fig: Figure) -> bytes:
    """The figure as SVG without a background, its text as text; leaves the figure unchanged."""
    from matplotlib import rc_context

    file = io.BytesIO()
    with (
        style(),
        rc_context({"svg.fonttype": "none", "svg.hashsalt": "dialbench"}),
        _without_halos(fig),
        _laid_out(fig),
    ):
        fig.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    return file.getvalue()


@contextmanager
def _laid_out(fig: Figure) -> Iterator[None]:
    """Lays the figure out once for all its files; that takes longer than drawing one of them."""
    from matplotlib import rc_context

    if fig.get_layout_engine() is not None:
        fig.draw_without_rendering()
    # Else matplotlib takes the style's engine again after each file.
    with rc_context({"figure.constrained_layout.use": False}):
        fig.set_layout_engine(None)
        yield


@contextmanager
def _without_halos(fig: Figure) -> Iterator[None]:
    """Takes off halos, with which text becomes outlines of ten times the size."""
    from matplotlib.text import Text

    effects = {text: text.get_path_effects() for text in fig.findobj(Text)}
    for text in effects:
        text.set_path_effects([])
    try:
        yield
    finally:
        for text, path_effects in effects.items():
            text.set_path_effects(path_effects)


def halo() -> list[Any]:
    """Path effects that keep text readable across lines."""
    from matplotlib.patheffects import withStroke

    return [withStroke(linewidth=2.5, foreground="white")]


def grid(axes: Axes, axis: Literal["both", "x", "y"] = "both") -> None:
    """Pale lines behind the data."""
    axes.set_axisbelow(True)
    axes.grid(axis=axis, color=PALE, linewidth=0.6)
