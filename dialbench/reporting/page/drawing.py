"""Turns plots into SVG elements that take the page's font and colours."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from dialbench.reporting.plots import canvas

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dialbench.reporting.plots.draw import Part

_LINK = re.compile(r"url\(#([^)]+)\)")
_FONT = re.compile(r"(?:(?P<weight>bold|\d00) )?(?P<size>[\d.]+px) ")


_WIDEST = 8.0  # inches of a plot that stays readable at half the width of the page


@dataclass(frozen=True)
class Drawing:
    """A plot on the page.

    Attributes:
        caption: what it shows.
        svg: an `svg` element as HTML.
        part: of the page in which it stands.
        wide: whether it needs a line of its own.
    """

    caption: str
    svg: str
    part: Part = "plots"
    wide: bool = False


def drawing(name: str, figure: Figure, part: Part = "plots") -> Drawing:
    """The figure for a page whose content-security policy forbids style attributes.

    Its text takes the page's font; its caption is its label. Ids of its parts are unique on the
    page as long as its `name` is.
    """
    # S314: written by matplotlib in this very process.
    root = ElementTree.fromstring(canvas.svg(figure))  # noqa: S314  # nosec B314
    for parent in list(root.iter()):
        for child in list(parent):
            if _local(child.tag) in ("metadata", "style"):
                parent.remove(child)
    # matplotlib's ids depend on the last digits of coordinates.
    used = dict.fromkeys(value for element in root.iter() for value in _references(element))
    names = {id: f"{name}-{number}" for number, id in enumerate(used)}
    for element in root.iter():
        _dress(element, names)
    size = {key: root.attrib[key] for key in ("viewBox", "width", "height")}
    caption = str(figure.get_label())
    root.attrib = {**size, "role": "img", "aria-label": caption, "stroke-linejoin": "round"}
    svg = ElementTree.tostring(root, encoding="unicode")
    return Drawing(caption, svg, part, wide=figure.get_figwidth() > _WIDEST)


def _dress(element: Element, names: Mapping[str, str]) -> None:
    """Replaces style attributes by presentation attributes, and ids by `names`."""
    element.tag = _local(element.tag)
    attributes = {_local(name): value for name, value in element.attrib.items()}
    attributes |= dict(_presentation(attributes.pop("style", "")))
    if (id := attributes.pop("id", "")) in names:
        attributes["id"] = names[id]
    if "href" in attributes:
        attributes["href"] = f"#{names[attributes['href'][1:]]}"
    element.attrib = {
        name: _LINK.sub(lambda link: f"url(#{names[link[1]]})", value)
        for name, value in attributes.items()
    }
    element.tail = None


def _presentation(style: str) -> Iterator[tuple[str, str]]:
    for declaration in filter(str.strip, style.split(";")):
        name, _, value = (part.strip() for part in declaration.partition(":"))
        if name == "font" and (font := _FONT.match(value)):
            yield "font-size", font["size"]
            yield "font-weight", font["weight"] or "normal"
        elif name not in ("font", "font-family"):
            yield name, value


def _references(element: Element) -> Iterator[str]:
    for name, value in element.attrib.items():
        if _local(name) == "href":
            yield value.removeprefix("#")
        yield from _LINK.findall(value)


def _local(name: str) -> str:
    return name.rpartition("}")[2]
