"""Plots the most probable words of topics in a plane, one figure a training run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from dialbench.records import Result
from dialbench.reporting.plots import labels
from dialbench.reporting.plots.canvas import figure, series, style
from dialbench.reporting.tables.topics import results_with_topics
from dialbench.text.cleaning import clean, slug

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def topic_maps(results: Iterable[Result]) -> dict[str, Figure]:
    """The words of all topics in a plane, where t-SNE put them (the AdaND paper's Figure 4).

    Only neighbourhoods have a meaning, distances have none.

    Args:
        results: of all jobs; positions are the fact "topic_places", (x, y) of
            each word of the fact "topics".

    Returns:
        Figures by the file stem `CORPUS-topics-SYSTEM`.
    """
    return {
        slug(f"{corpus}-topics-{label}"): _map(
            f"{clean(label)} ({clean(corpus)})", result.facts["topics"], positions
        )
        for corpus, systems in results_with_topics(results).items()
        for label, result in systems.items()
        if (positions := result.facts.get("topic_places"))
    }


def _map(
    title: str, topics: Sequence[Sequence[str]], positions: Sequence[Sequence[Sequence[float]]]
) -> Figure:
    points, colours = [], []
    with style():
        fig, axes = figure(6.5, 5.5)
        fig.set_label(f"Words of the topics of {title}")
        for number, (words, coordinates) in enumerate(zip(topics, positions, strict=True)):
            look = series(number) | {"linestyle": ""}
            axes.plot(*zip(*coordinates, strict=True), **look, label=f"topic {number + 1}")
            points += [
                labels.Point(clean(word), x, y, x, x, y, y)
                for word, (x, y) in zip(words, coordinates, strict=True)
            ]
            colours += [look["color"]] * len(words)
        axes.margins(0.12)
        axes.set_xticks(())
        axes.set_yticks(())
        axes.set_xlabel("t-SNE: only neighbourhoods have a meaning")
        fig.legend(loc="outside upper center", ncols=5, frameon=False)
        for note, colour in zip(labels.write_labels(axes, points), colours, strict=True):
            note.set_color(colour)
    return fig
