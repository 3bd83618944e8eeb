"""DailyDialog++ (Sai et al., 2020): five human responses to each context, and irrelevant ones.

Layout: `{train,dev,test}.json`, one context a line, `{"context": [...], "positive_responses":
[...]}`; the files may be xz-packed. The positive responses are the references. The adversarial and
the random negative ones are not read: they are made to test metrics, not systems, and no metric
here compares a response with what should not be said. Nor is `data_positives.json`, whose contexts
belong to no split.
"""

from __future__ import annotations

from pathlib import Path

from dialbench.corpora.contents import Card, Contents, require_folder
from dialbench.corpora.files import SPLITS, read_json, split_files, texts_at

CARD = Card(
    name="dailydialog++",
    title="DailyDialog++",
    summary="contexts out of DailyDialog with five new human references each",
    licence="MIT (its dialogues are DailyDialog's, CC BY-NC-SA 4.0)",
    official={"train": 9_259, "valid": 1_028, "test": 1_142},
    notes=(
        "1,000 of its 1,142 test contexts occur in DailyDialog's training split: what is trained "
        "there has seen them",
    ),
    unit="contexts",
    citation="Sai et al., 2020, Improving Dialog Evaluation with a Multi-reference Adversarial "
    "Dataset and Large Scale Pretraining, TACL",
    folder="dailydialog_plusplus",
)
_FILES = {"train": "train.json", "valid": "dev.json", "test": "test.json"}


def read(folder: Path) -> Contents:
    """Reads the files under `folder`; ids are `<split>-<index from 0>`, a dialogue each.

    Raises:
        InputError: a file is damaged, the test file is missing, or a line lacks context or
            references.
    """
    contents = Contents()
    files = split_files(require_folder(folder, CARD.name), _FILES)
    contents.absent = frozenset(SPLITS) - files.keys()
    for split, path in files.items():
        for index, (where, value) in enumerate(read_json(path)):
            contents.add_example(
                split,
                f"{split}-{index}",
                texts_at(value, "context", where),
                texts_at(value, "positive_responses", where),
                where,
            )
    return contents
