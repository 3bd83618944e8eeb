"""Corpora by name: which there are, where their files lie, and how they are loaded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import cast

from dialbench.corpora.contents import Card, Contents
from dialbench.corpora.corpus import Corpus, examples_of
from dialbench.corpora.files import SPLITS
from dialbench.corpora.overlap import normalised, without_dialogues_of
from dialbench.errors import InputError, UnknownName
from dialbench.files.folders import data_folder

_MODULES = {
    "avsd": "dialbench.corpora.avsd",
    "dailydialog": "dialbench.corpora.dailydialog",
    "dailydialog++": "dialbench.corpora.dailydialog_plusplus",
    "dailydialog-multiref": "dialbench.corpora.dailydialog_multiref",
    "dailydialog-plato": "dialbench.corpora.dailydialog_plato",
    "demo": "dialbench.corpora.demo",
    "empatheticdialogues": "dialbench.corpora.empatheticdialogues",
    "personachat": "dialbench.corpora.personachat",
}


def names() -> list[str]:
    """The names of all corpora that ship with dialbench, in alphabetical order."""
    return sorted(_MODULES)


def card(name: str, *, where: str = "--corpus") -> Card:
    """What is known of the corpus called `name` without reading it.

    Raises:
        UnknownName: there is none of that name.
    """
    if name not in _MODULES:
        raise UnknownName.of("corpus", name, _MODULES, where=where)
    return cast(Card, import_module(_MODULES[name]).CARD)


def load_corpus(
    name: str,
    *,
    data: Path | None = None,
    context_turns: int = 5,
    clean: bool = False,
    test_only: bool = False,
    where: str = "--corpus",
) -> Corpus:
    """Reads a corpus.

    Args:
        name: a known name, a `FILE.jsonl`, or a folder holding train, valid and test.jsonl.
        data: the folder of all corpora; None = $DIALBENCH_DATA or the user cache.
        context_turns: how many of the latest turns a context keeps, at least 1.
        clean: leave out test dialogues that, case, spaces and punctuation ignored, are in train.
        test_only: nothing is trained on it: dialogues of a single file that name no split are all
            for the test.
        where: the argument that `name` came from, for error messages.

    Raises:
        InputError: a file is missing or faulty, or a split that is there would have no example.
        UnknownName: there is no such corpus.
    """
    if context_turns < 1:
        raise InputError(f"a context needs at least 1 turn, not {context_turns}", where=where)
    known, contents = _read(name, data, where, test_only=test_only)
    remarks = [*_size_differences(known, contents), *contents.all_notes()]
    corpus = Corpus(known, contents.items, context_turns, tuple(remarks))
    if clean:
        corpus = _without_training_dialogues(corpus)
    optional = {"train", "valid"} if test_only else contents.absent - {"test"}
    for split in (split for split in SPLITS if split not in optional):
        if not any(True for item in corpus.items[split] for _ in examples_of(item, 1)):
            raise InputError(
                f"its {split} split has no example",
                where=f"{where} {name}",
                hint=_hint_without_example(name, split, where, clean=clean),
            )
    return corpus


def _hint_without_example(name: str, split: str, where: str, *, clean: bool) -> str:
    if clean and split == "test":
        return "Leave --clean out or give other test dialogues."
    if name in _MODULES:
        return "Fetch it again."
    if Path(name).is_dir():
        return f"Write dialogues of two turns or more into its file of the {split} split."
    marked, more = 'Mark lines with "split": "train", "valid" or "test"', "give more dialogues"
    if where == "--corpus" and split != "test":
        return f"{marked}, {more}, or run only rows that learn nothing."
    return f"{marked}, or {more} of two turns or more."


def name_of(name: str) -> str:
    """What results call the corpus that `load_corpus(name)` reads; nothing is read.

    Raises:
        UnknownName: it is neither a known corpus nor named as a file or folder of one.
    """
    if name in _MODULES:
        return name
    if not _is_own(name):
        raise UnknownName.of("corpus", name, _MODULES, where="--corpus")
    from dialbench.corpora import jsonl  # which loads pydantic

    return jsonl.card(Path(name), reserved=names()).name


def _is_own(name: str) -> bool:
    """Whether it names a file or folder of somebody's own conversations."""
    return name.endswith((".jsonl", ".jsonl.xz")) or Path(name).is_dir()


def _read(name: str, data: Path | None, where: str, *, test_only: bool) -> tuple[Card, Contents]:
    if name in _MODULES:
        read = cast(Callable[[Path], Contents], import_module(_MODULES[name]).read)
        known = card(name)
        return known, read(data_folder(data) / (known.folder or name))
    path = Path(name)
    if _is_own(name):
        from dialbench.corpora import jsonl  # which loads pydantic

        return jsonl.card(path, reserved=names()), jsonl.read(path, test_only=test_only)
    if len(path.parts) > 1 or path.exists():
        raise InputError(
            "is neither a FILE.jsonl nor a folder holding train.jsonl, valid.jsonl and test.jsonl",
            where=f"{where} {name}",
            hint=f"Known corpora: {', '.join(names())}.",
        )
    raise UnknownName.of("corpus", name, _MODULES, where=where)


def _size_differences(known: Card, contents: Contents) -> Iterator[str]:
    for split, official in known.official.items():
        items = contents.items[split]
        examples = (example for item in items for example in examples_of(item, 1))
        n = len(items) if known.unit == "dialogues" else sum(1 for _ in examples)
        if split in contents.absent:
            yield f"no {split} split here; the official release has {official:,} {known.unit}"
        elif n != official:
            yield f"{split} has {n:,} {known.unit}, the official release {official:,}"
    if known.official and "train" in contents.absent:
        yield "only systems that train nothing can be run on it"


def _without_training_dialogues(corpus: Corpus) -> Corpus:
    test = corpus.items["test"]
    if not corpus.items["train"]:
        remark = "not cleaned of training dialogues, as there is no train split to compare with"
        return replace(corpus, remarks=(*corpus.remarks, remark))
    is_new = without_dialogues_of(corpus.dialogues("test"), corpus.dialogues("train"), normalised)
    kept = [item for item, new in zip(test, is_new, strict=True) if new]
    remark = (
        f"{len(test) - len(kept):,} of {len(test):,} test dialogues left out because they occur "
        "in train (case, spaces and punctuation ignored)"
    )
    items = {**corpus.items, "test": kept}
    return replace(corpus, items=items, remarks=(*corpus.remarks, remark))
