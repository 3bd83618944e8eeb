"""Renders the page: fills its template and allows its script and style by their hashes."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Sequence
from importlib.resources import files

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from dialbench.records import Result, Table
from dialbench.reporting.page import content
from dialbench.reporting.page.conversations import Conversations, pack
from dialbench.reporting.page.drawing import Drawing
from dialbench.text.cleaning import clean
from dialbench.version import __version__

LIMIT = 3_000_000


def page(
    tables: Sequence[Table],
    ours: Sequence[Table],
    results: Sequence[Result],
    drawings: Sequence[Drawing],
    conversations: Sequence[Conversations] | None,
    *,
    topics: Sequence[Table] = (),
    limit: int = LIMIT,
) -> str:
    """The whole page.

    Args:
        tables: what is shown.
        ours: of each table, our values alone.
        results: whose settings are listed.
        drawings: the plots.
        conversations: of each test set; None to leave them out.
        topics: tables of the words of topics.
        limit: bytes of the whole page; conversations are dropped until it holds.

    Returns:
        HTML, the same for the same arguments.
    """
    corpora = dict.fromkeys(result.job.corpus for result in results)
    fill = _filler(
        corpora=list(corpora),
        sections=list(map(content.section, tables, ours)),
        topics=list(map(content.section, topics, topics)),
        drawings=drawings,
        settings=content.settings(results),
        licences=[content.licence(corpus, texts=bool(conversations)) for corpus in corpora],
        conversations=conversations,
        version=__version__,
    )
    size = len(fill(packed=[]).encode("utf-8"))
    return fill(packed=pack(conversations or [], limit - size - _PACKED_MARKUP))


_PACKED_MARKUP = 10_000  # bytes around the packed conversations of a page


def _filler(**values: object) -> Callable[..., str]:
    style, script = _part("page.css"), _part("page.js")
    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_clean_unless_ours,
    )
    environment.filters["inside"] = Markup
    template = environment.from_string(_part("page.html.j2"))

    def fill(**more: object) -> str:
        return template.render(
            **values, **more, style=style, script=script, policy=_policy(style, script)
        )

    return fill


def _clean_unless_ours(value: object) -> object:
    return value if isinstance(value, Markup) else clean(str(value))


def _policy(style: str, script: str) -> str:
    """Nothing may be loaded or sent, and nothing runs but this script."""
    return (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"


def _part(name: str) -> str:
    return (files("dialbench.reporting.page") / name).read_text(encoding="utf-8")
