"""Plots responses: how fast their n-grams repeat, and how long they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dialbench.metrics.diversity import RarefiedDistinct
from dialbench.metrics.ngrams import ngram_counts
from dialbench.metrics.texts import Ragged
from dialbench.reporting.plots import labels
from dialbench.reporting.plots.canvas import INK, SKY, figure, grid, panels, series, style
from dialbench.reporting.plots.values import shortened
from dialbench.text.cleaning import clean, slug
from dialbench.text.tokenizer import tokenizer

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from dialbench.reporting.page.conversations import Conversations

_TOKENIZER = "default"
_ORDERS = (1, 2)
_MIN_NGRAMS, _MAX_POINTS = 10, 24
_BINS = 30
# Inches: margins above and below the axes together, height of a name.
_MARGIN, _NAME = 0.7, 0.135
_SHOWN_QUANTILE = 0.99


@dataclass(frozen=True)
class _SystemTokens:
    """The tokens of the responses of one row."""

    label: str
    texts: Ragged


_CAPTIONS = {
    **{
        f"rarefied-{n}": f"Distinct-{n} at the same number of words of every system"
        for n in _ORDERS
    },
    "lengths": "Lengths of the responses; the outline is that of the references",
}


def response_plots(sets: Iterable[Conversations]) -> Iterator[tuple[str, Figure]]:
    """Plots of the responses to each test set, of several seeds the first.

    Yields:
        Figures with their file stems: `SET-rarefied-1` and `-2`, the expected Distinct-n of
        so many n-grams drawn without replacement (exactly, from the hypergeometric
        distribution); `SET-lengths`, numbers of tokens of the responses and of the references.
    """
    tokenize = tokenizer(_TOKENIZER)
    for conversations in sets:
        first = "; of several seeds the first" if conversations.has_several_seeds else ""
        systems = [
            _SystemTokens(s.label, Ragged.build(map(tokenize, s.texts)))
            for s in conversations.systems
        ]
        reference_texts = (
            text for example in conversations.examples for text in example.references
        )
        references = Ragged.build(map(tokenize, reference_texts))
        with style():
            fig = [
                *((f"rarefied-{n}", _rarefaction(systems, n)) for n in _ORDERS),
                ("lengths", _lengths(systems, references)),
            ]
        for kind, plot in fig:
            plot.set_label(f"{_CAPTIONS[kind]}{first} ({clean(conversations.title)})")
            yield slug(f"{conversations.title}-{kind}"), plot


def rarefied(texts: Ragged, n: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The expected Distinct-n of growing samples of the n-grams, up to all of them.

    Returns:
        (points,) how many n-grams are drawn, and (points,) the values; nothing where there are
        fewer than 10 n-grams.
    """
    total = int(ngram_counts(texts, n).sum())
    if total < _MIN_NGRAMS:
        return np.empty(0, np.int64), np.empty(0)
    sizes = np.unique(np.geomspace(_MIN_NGRAMS, total, _MAX_POINTS).round().astype(np.int64))
    values = [RarefiedDistinct(n, _TOKENIZER, int(size)).score(texts) for size in sizes]
    return sizes, np.array(values)


def _rarefaction(systems: Sequence[_SystemTokens], n: int) -> Figure:
    height = max(3.4, _MARGIN + _NAME * len(systems))
    fig, axes = figure(6.0, height)
    ends = []
    for number, system in enumerate(systems):
        sizes, values = rarefied(system.texts, n)
        look = series(number)
        axes.plot(sizes, values, **look, markevery=[-1] if len(sizes) else [], markersize=5)
        if len(sizes):
            ends.append(labels.End(shortened(system.label), sizes[-1], values[-1], look["color"]))
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.minorticks_off()
    axes.set_ylim(-0.02, 1.02)
    axes.set_xlabel(f"{'tokens' if n == 1 else f'{n}-grams'} drawn")
    axes.set_ylabel(f"expected Distinct-{n}")
    grid(axes)
    labels.write_column(axes, ends, _NAME / (height - _MARGIN))
    return fig


def _lengths(systems: Sequence[_SystemTokens], references: Ragged) -> Figure:
    lengths = [system.texts.lengths for system in systems]
    edges = _edges([*lengths, references.lengths])
    fig, axes = panels(len(systems), sharex=True)
    for panel, system, counts in zip(axes, systems, lengths, strict=True):
        _bars(panel, counts, edges)
        panel.stairs(_shares(references.lengths, edges), edges, color=INK, linewidth=0.9)
        panel.set_title(f"{shortened(system.label)}\nmean {counts.mean():.1f}", loc="left")
        panel.locator_params(axis="y", nbins=3)
    fig.supxlabel(f"tokens (from {edges[-2] + 0.5:g} on together)", fontsize=9)
    fig.supylabel("share of responses", fontsize=9)
    _legend(fig)
    return fig


def _bars(axes: Any, lengths: NDArray[np.int64], edges: NDArray[np.float64]) -> None:
    axes.stairs(_shares(lengths, edges), edges, fill=True, color=SKY)


def _edges(lengths: Sequence[NDArray[np.int64]]) -> NDArray[np.float64]:
    """Edges of equal bins; the last bin also holds everything above the 99 % quantile."""
    longest = max(
        (float(np.quantile(counts, _SHOWN_QUANTILE)) for counts in lengths if len(counts)),
        default=1.0,
    )
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
