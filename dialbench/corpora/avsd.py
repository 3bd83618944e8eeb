"""DSTC7-AVSD (Alamri et al., 2019) in the form of PLATO: questions about a video, and answers.

Layout: `dial.{train,valid,test}`, one context a line as `caption and summary<TAB>turn __eou__
turn<TAB>reference | reference`; the files may be xz-packed. The caption and summary of the video
are no turns: systems see the dialogue alone.
"""

from __future__ import annotations

from pathlib import Path

from dialbench.corpora.contents import Card, Contents, require_folder
from dialbench.corpora.dailydialog_plato import PLATO_FILES, split_turns
from dialbench.corpora.files import SPLITS, read_fields, split_files

CARD = Card(
    name="avsd",
    title="DSTC7-AVSD",
    summary="questions and answers about a video, six references to each test context",
    licence="not stated",
    official={"train": 76_590, "valid": 17_870, "test": 1_710},
    notes=("systems see neither the video nor its caption and summary, which published ones do",),
    unit="contexts",
    citation="Alamri et al., 2019, Audio Visual Scene-Aware Dialog, CVPR; the form is that of Bao "
    "et al., 2020, PLATO, ACL",
    folder="dstc7_avsd_plato",
)
_BETWEEN_REFERENCES = " | "


def read(folder: Path) -> Contents:
    """Reads the files under `folder`; ids are `<split>-<index from 0>`, a dialogue each.

    Raises:
        InputError: a file is damaged, the test file is missing, or a line has no context or no
            reference.
    """
    contents = Contents()
    files = split_files(require_folder(folder, CARD.name), PLATO_FILES)
    contents.absent = frozenset(SPLITS) - files.keys()
    for split, path in files.items():
        for index, (where, (_, context, references)) in enumerate(read_fields(path, 3)):
            contents.add_example(
                split,
                f"{split}-{index}",
                split_turns(context),
                references.split(_BETWEEN_REFERENCES),
                where,
            )
    return contents
