"""Judges in sizes that a test can afford, and pairs that are invented."""

from __future__ import annotations

import lzma
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dialbench.nli.judge import KNOWN, LABELS
from dialbench.nli.training.pairs import HELD_OUT, TRAINING

ROWS = [
    ("The kettle is boiling.", "The water is hot.", "entailment"),
    ("Two boys fly a kite.", "The kite is red.", "neutral"),
    ("Nobody came to the party.", "The party was crowded.", "contradiction"),
    ("Her bicycle was stolen.", "She had a bicycle.", "entailment"),
]
DIALOGUES = [
    ["Where is the boat?", "It is at the north pier. Shall we go?", "I am not ready yet."],
    ["Did you feed the parrot?", "I will fetch the seeds now.", "The seeds are in the green box."],
    ["This soup is cold.", "We can warm it for you.", "That would be kind of you."],
]


@pytest.fixture
def one_thread() -> Any:
    """As results are exact for one number of threads only."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def base() -> Path:
    """The folder of the base model."""
    from dialbench.nli.embedded import base_folder

    folder = base_folder()
    if folder is None:
        pytest.skip("the extra nli is not installed")
    return folder


@pytest.fixture
def lessons(tmp_path: Path) -> Path:
    """A data folder with a few pairs in every file, and three dialogues of each corpus."""
    data = tmp_path / "data"
    (data / "nli").mkdir(parents=True)
    for source in (*TRAINING, *HELD_OUT):
        # What is held out is not taught.
        start = "Then: " if source in TRAINING else ""
        rows = [(start + premise, hypothesis, label) for premise, hypothesis, label in ROWS]
        lines = ["premise\thypothesis\tlabel", *("\t".join(row) for row in rows)]
        with lzma.open(data / "nli" / f"{source.name}.tsv.xz", "wt", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
    for split in ("train", "validation", "test"):
        folder = data / "dailydialog" / split
        folder.mkdir(parents=True)
        text = "".join(" __eou__ ".join([*turns, "\n"]) for turns in DIALOGUES)
        (folder / f"dialogues_{split}.txt").write_text(text, encoding="utf-8")
    others = data / "empatheticdialogues"
    others.mkdir()
    said = [(i, *row) for i, turns in enumerate(DIALOGUES) for row in enumerate(turns, 1)]
    lines = [f"hit:{i},{n},proud,p,{n},{turn},5|5|5_5|5|5,\n" for i, n, turn in said]
    text = "conv_id,utterance_idx,context,prompt,speaker_idx,utterance,selfeval,tags\n"
    for split in ("train", "valid", "test"):
        (others / f"{split}.csv").write_text(text + "".join(lines), encoding="utf-8")
    return data


class Reader:
    """A judge that compares words: same, some in common, none. Counts what it is asked."""

    name = "reader@1"

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    def __call__(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray[Any, Any]:
        """Entailment for the same words, neutral for common ones, else contradiction."""
        self.asked += pairs
        rows = []
        for premise, hypothesis in pairs:
            one, other = set(premise.lower().split()), set(hypothesis.lower().split())
            label = 0 if one == other else 1 if one & other else 2
            rows.append(np.where(np.arange(3) == label, 0.8, 0.1))
        return np.array(rows, np.float32)


@pytest.fixture
def reader() -> Reader:
    return Reader()


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """`checkpoint(labels, order)`: a folder whose tiny model has learnt the three known pairs.

    The model answers in the order `order`; its config calls the places `labels`.
    """
    model, tokenizer = _learned(tmp_path_factory.mktemp("words"))

    def make(labels: Sequence[str] = LABELS, order: Sequence[int] = (0, 1, 2)) -> Path:
        from copy import deepcopy

        folder = tmp_path_factory.mktemp("tiny-nli")
        own = deepcopy(model)
        places = list(order)
        own.classifier.weight.data = own.classifier.weight.data[places].clone()
        own.classifier.bias.data = own.classifier.bias.data[places].clone()
        own.config.id2label = dict(enumerate(labels))
        own.config.label2id = {label: place for place, label in enumerate(labels)}
        own.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        return folder

    return make


def _learned(folder: Path) -> tuple[Any, Any]:
    import torch
    from tokenizers import BertWordPieceTokenizer
    from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast
    from transformers.utils import logging

    logging.disable_progress_bar()
    pieces = BertWordPieceTokenizer(lowercase=True)
    texts = [text for known in KNOWN for text in known[:2]] + ["one two three four five six seven"]
    pieces.train_from_iterator(texts * 3, 300, show_progress=False)
    pieces.save(str(folder / "tokenizer.json"))
    tokenizer = BertTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"))
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        num_labels=3,
        max_position_embeddings=64,
        initializer_range=0.2,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        model = BertForSequenceClassification(config)
        batch = tokenizer(
            [p for p, _, _ in KNOWN], [h for _, h, _ in KNOWN], padding=True, return_tensors="pt"
        )
        adam = torch.optim.Adam(model.parameters(), lr=1e-2)
        expected = torch.tensor([LABELS.index(label) for _, _, label in KNOWN])
        for _ in range(60):
            loss = model(**batch, labels=expected).loss
            adam.zero_grad()
            loss.backward()
            adam.step()
    return model.eval(), tokenizer
