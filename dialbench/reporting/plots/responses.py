"""Plots of what systems said: how soon their n-grams come again, and how long they speak."""

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
_FEWEST, _POINTS = 10, 24
_BINS = 30
# Inches: what stands above and below the axes, a name in height.
_AROUND, _NAME = 0.7, 0.135
_SHOWN = 0.99


@dataclass(frozen=True)
class _Said:
    """The tokens of what one row said."""

    label: str
    texts: Ragged


_SHOWS = {
    **{f"rarefied-{n}": f"Distinct-{n} of equally many words of every system" for n in _ORDERS},
    "lengths": "Lengths of the responses; the outline is that of the references",
}


def of_responses(sets: Iterable[Conversations]) -> Iterator[tuple[str, Figure]]:
    """What the responses to each set of contexts look like, of several seeds the first.

    Yields:
        Figures with their file stems: `SET-rarefied-1` and `-2`, the Distinct-n to be expected of
        so many n-grams drawn without replacement (exactly, from the hypergeometric
        distribution); `SET-lengths`, how many tokens the responses have beside the references.
    """
    tokenize = tokenizer(_TOKENIZER)
    for one in sets:
        first = "; of several seeds the first" if one.of_several else ""
        said = [_Said(s.label, Ragged.build(map(tokenize, s.texts))) for s in one.systems]
        wanted = (text for example in one.examples for text in example.references)
        references = Ragged.build(map(tokenize, wanted))
        with style():
            drawn = [
                *((f"rarefied-{n}", _rarefaction(said, n)) for n in _ORDERS),
                ("lengths", _lengths(said, references)),
            ]
        for kind, made in drawn:
            made.set_label(f"{_SHOWS[kind]}{first} ({clean(one.title)})")
            yield slug(f"{one.title}-{kind}"), made


def rarefied(texts: Ragged, n: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The expected Distinct-n of ever more of the n-grams, up to all of them.

    Returns:
        (points,) how many n-grams are drawn, and (points,) the values; nothing where there are
        fewer than 10 n-grams.
    """
    total = int(ngram_counts(texts, n).sum())
    if total < _FEWEST:
        return np.empty(0, np.int64), np.empty(0)
    sizes = np.unique(np.geomspace(_FEWEST, total, _POINTS).round().astype(np.int64))
    values = [RarefiedDistinct(n, _TOKENIZER, int(size)).score(texts) for size in sizes]
    return sizes, np.array(values)


def _rarefaction(said: Sequence[_Said], n: int) -> Figure:
    height = max(3.4, _AROUND + _NAME * len(said))
    drawn, axes = figure(6.0, height)
    ends = []
    for number, one in enumerate(said):
        sizes, values = rarefied(one.texts, n)
        look = series(number)
        axes.plot(sizes, values, **look, markevery=[-1] if len(sizes) else [], markersize=5)
        if len(sizes):
            ends.append(labels.End(shortened(one.label), sizes[-1], values[-1], look["color"]))
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.minorticks_off()
    axes.set_ylim(-0.02, 1.02)
    axes.set_xlabel(f"{'tokens' if n == 1 else f'{n}-grams'} drawn")
    axes.set_ylabel(f"expected Distinct-{n}")
    grid(axes)
    labels.column(axes, ends, _NAME / (height - _AROUND))
    return drawn


def _lengths(said: Sequence[_Said], references: Ragged) -> Figure:
    lengths = [one.texts.lengths for one in said]
    edges = _edges([*lengths, references.lengths])
    drawn, axes = panels(len(said), sharex=True)
    for panel, one, of in zip(axes, said, lengths, strict=True):
        _bars(panel, of, edges)
        panel.stairs(_shares(references.lengths, edges), edges, color=INK, linewidth=0.9)
        panel.set_title(f"{shortened(one.label)}\nmean {of.mean():.1f}", loc="left")
        panel.locator_params(axis="y", nbins=3)
    drawn.supxlabel(f"tokens (from {edges[-2] + 0.5:g} on together)", fontsize=9)
    drawn.supylabel("share of responses", fontsize=9)
    _legend(drawn)
    return drawn


def _bars(axes: Any, lengths: NDArray[np.int64], edges: NDArray[np.float64]) -> None:
    axes.stairs(_shares(lengths, edges), edges, fill=True, color=SKY)


def _edges(lengths: Sequence[NDArray[np.int64]]) -> NDArray[np.float64]:
    """Borders of equal bins, the last of which takes what is longer than nearly all."""
    longest = max((float(np.quantile(of, _SHOWN)) for of in lengths if len(of)), default=1.0)
    width = max(1, int(np.ceil(longest / _BINS)))
    return np.arange(0.0, longest + 2 * width, width) - 0.5


def _shares(lengths: NDArray[np.int64], edges: NDArray[np.float64]) -> NDArray[np.float64]:
    counts = np.histogram(np.minimum(lengths, edges[-1] - 0.5), edges)[0]
    return counts / max(len(lengths), 1)


def _legend(drawn: Figure) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles = [
        Patch(color=SKY, label="responses"),
        Line2D([], [], color=INK, linewidth=0.9, label="references"),
    ]
    drawn.legend(handles=handles, loc="outside upper center", ncols=2, frameon=False)
