"""What all plots share: colours, type, and files that are the same byte for byte every time."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = ("png", "pdf")

# Okabe and Ito (2008): distinct with every common kind of colour blindness.
BLUE, SKY, ORANGE, VERMILION = "#0072B2", "#56B4E9", "#E69F00", "#D55E00"
INK, GREY, PALE = "#222222", "#777777", "#CCCCCC"

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
    """Draws and saves alike on every machine, whatever the user's matplotlibrc says."""
    import matplotlib.style

    with matplotlib.style.context(["default", _STYLE]):
        yield


def figure(width: float, height: float, **shape: Any) -> tuple[Figure, Any]:
    """An empty figure of that many inches and its axes; to be called within `style`."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(width, height))
    FigureCanvasAgg(drawn)
    return drawn, drawn.subplots(**shape)


def encode(drawn: Figure, format: str) -> bytes:
    """The figure as a file of one of `FORMATS`, without dates and versions."""
    file = io.BytesIO()
    with style():
        drawn.savefig(file, format=format, metadata=_METADATA[format])
    return file.getvalue()


def halo() -> list[Any]:
    """Path effects that keep text readable across lines."""
    from matplotlib.patheffects import withStroke

    return [withStroke(linewidth=2.5, foreground="white")]


def grid(axes: Axes, axis: Literal["both", "x", "y"] = "both") -> None:
    """Pale lines behind the data."""
    axes.set_axisbelow(True)
    axes.grid(axis=axis, color=PALE, linewidth=0.6)
