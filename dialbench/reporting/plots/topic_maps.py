"""Where the likeliest words of topics lie: one picture a trained system that tells it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from dialbench.records import Result
from dialbench.reporting.plots import labels
from dialbench.reporting.plots.canvas import figure, series, style
from dialbench.reporting.tables.topics import told
from dialbench.text.cleaning import clean, slug

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def topic_maps(results: Iterable[Result]) -> dict[str, Figure]:
    """The words of all topics in a plane, where t-SNE put them (the AdaND paper's Figure 4).

    Which words are neighbours says something; how far apart the others are does not.

    Args:
        results: what the store knows of each job; places are the fact "topic_places", (x, y) of
            each word of the fact "topics".

    Returns:
        Figures by the file stem `CORPUS-topics-SYSTEM`.
    """
    return {
        slug(f"{corpus}-topics-{label}"): _map(
            f"{clean(label)} ({clean(corpus)})", result.facts["topics"], places
        )
        for corpus, trained in told(results).items()
        for label, result in trained.items()
        if (places := result.facts.get("topic_places"))
    }


def _map(
    whose: str, topics: Sequence[Sequence[str]], places: Sequence[Sequence[Sequence[float]]]
) -> Figure:
    points, colours = [], []
    with style():
        drawn, axes = figure(6.5, 5.5)
        drawn.set_label(f"Words of the topics of {whose}")
        for number, (words, spots) in enumerate(zip(topics, places, strict=True)):
            look = series(number) | {"linestyle": ""}
            axes.plot(*zip(*spots, strict=True), **look, label=f"topic {number + 1}")
            points += [
                labels.Point(clean(word), x, y, x, x, y, y)
                for word, (x, y) in zip(words, spots, strict=True)
            ]
            colours += [look["color"]] * len(words)
        axes.margins(0.12)
        axes.set_xticks(())
        axes.set_yticks(())
        axes.set_xlabel("t-SNE: only who is near whom says something")
        drawn.legend(loc="outside upper center", ncols=5, frameon=False)
        for note, colour in zip(labels.write(axes, points), colours, strict=True):
            note.set_color(colour)
    return drawn
