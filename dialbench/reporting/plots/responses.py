"""Plots of responses: how fast their n-grams repeat, and how long they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dialbench.records import Profile, Result
from dialbench.reporting.plots import labels
from dialbench.reporting.plots.canvas import INK, SKY, figure, grid, panels, series, style
from dialbench.reporting.plots.values import panel_title, shortened
from dialbench.reporting.tables.rows import group_by_test_set, seed_groups, titles_of_test_sets
from dialbench.text.cleaning import clean, slug

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

_NAMES = {1: "tokens", 2: "2-grams"}
"""What is counted, by length of n-grams."""
_BINS = 30
# Inches: margins above and below the axes together, height of a name.
_MARGIN, _NAME = 0.7, 0.135
_SHOWN_QUANTILE = 0.99
_CAPTIONS = {
    **{
        f"rarefied-{n}": f"Distinct {what} in a random sample of so many, divided by their number"
        for n, what in _NAMES.items()
    },
    "lengths": "Lengths of the responses; the outline is that of the references",
}


def response_plots(results: Iterable[Result]) -> Iterator[tuple[str, Figure]]:
    """Plots of the responses to each test set, of several seeds the first.

    Systems without a profile are left out, and the caption says so.

    Yields:
        Figures with their file stems: `SET-rarefied-1` and `-2`, the expected share of
        distinct ones among so many n-grams drawn without replacement (Distinct-n as the table has
        it divides by tokens); `SET-lengths`, numbers of tokens of the
        responses and of the references.
    """
    test_sets = group_by_test_set(results)
    for title, group in zip(titles_of_test_sets(test_sets), test_sets, strict=True):
        rows = seed_groups(group)
        shown = {row.label: row.done[0].profile for row in rows}
        profiles = {label: profile for label, profile in shown.items() if profile}
        if not profiles:
            continue
        remark = "; of several seeds the first" if any(len(row.done) > 1 for row in rows) else ""
        if missing := [clean(label) for label in shown if label not in profiles]:
            remark += f"; not counted yet (run again): {', '.join(missing)}"
        with style():
            plots = {
                **{f"rarefied-{n}": _rarefaction(profiles, n) for n in _NAMES},
                "lengths": _lengths(profiles),
            }
        for kind, plot in plots.items():
            plot.set_label(f"{_CAPTIONS[kind]}{remark} ({clean(title)})")
            yield slug(f"{title}-{kind}"), plot


def _rarefaction(profiles: Mapping[str, Profile], n: int) -> Figure:
    height = max(3.4, _MARGIN + _NAME * len(profiles))
    fig, axes = figure(6.0, height)
    ends = []
    for number, (label, profile) in enumerate(profiles.items()):
        points = profile.rarefied[n]
        look = series(number)
        sizes, values = ([point[side] for point in points] for side in (0, 1))
        axes.plot(sizes, values, **look, markevery=[-1] if points else [], markersize=5)
        if points:
            ends.append(labels.End(shortened(label), *points[-1], look["color"]))
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.minorticks_off()
    axes.set_ylim(-0.02, 1.02)
    axes.set_xlabel(f"{_NAMES[n]} drawn")
    axes.set_ylabel(f"expected distinct {_NAMES[n]} / {_NAMES[n]} drawn")
    grid(axes)
    labels.write_column(axes, ends, _NAME / (height - _MARGIN))
    return fig


def _lengths(profiles: Mapping[str, Profile]) -> Figure:
    lengths = [_repeated(profile.lengths) for profile in profiles.values()]
    references = _repeated(next(iter(profiles.values())).reference_lengths)
    edges = _edges([*lengths, references])
    fig, axes = panels(len(profiles), sharex=True)
    for panel, label, counts in zip(axes, profiles, lengths, strict=True):
        _bars(panel, counts, edges)
        panel.stairs(_shares(references, edges), edges, color=INK, linewidth=0.9)
        panel.set_title(f"{panel_title(label)}\nmean {counts.mean():.1f}", loc="left")
        panel.locator_params(axis="y", nbins=3)
    fig.supxlabel(f"tokens (from {edges[-2] + 0.5:g} on together)", fontsize=9)
    fig.supylabel("share of responses", fontsize=9)
    _legend(fig)
    return fig


def _repeated(counts: Sequence[int]) -> NDArray[np.int64]:
    """(texts,) ascending lengths, from how many texts have each length."""
    return np.repeat(np.arange(len(counts)), np.asarray(counts, np.int64))


def _bars(axes: Any, lengths: NDArray[np.int64], edges: NDArray[np.float64]) -> None:
    axes.stairs(_shares(lengths, edges), edges, fill=True, color=SKY)


def _edges(lengths: Sequence[NDArray[np.int64]]) -> NDArray[np.float64]:
    """Edges of equal bins; the last bin also holds everything beyond.

    It begins at the highest 99 % quantile, or at twice the usual one where a system rambles.
    """
    quantiles = [np.quantile(counts, _SHOWN_QUANTILE) for counts in lengths if len(counts)]
    longest = min(max(quantiles), 2 * np.median(quantiles)) if quantiles else 1.0
    width = max(1, int(np.ceil(longest / _BINS)))
    return np.arange(0.0, longest + 2 * width, width) - 0.5


def _shares(lengths: NDArray[np.int64], edges: NDArray[np.float64]) -> NDArray[np.float64]:
    counts = np.histogram(np.minimum(lengths, edges[-1] - 0.5), edges)[0]
    return counts / max(len(lengths), 1)


def _legend(fig: Figure) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles = [
        Patch(color=SKY, label="responses"),
        Line2D([], [], color=INK, linewidth=0.9, label="references"),
    ]
    fig.legend(handles=handles, loc="outside upper center", ncols=2, frameon=False)
