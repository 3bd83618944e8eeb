"""Any NLI model of this machine as a judge."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
import torch

from dialbench.errors import InputError
from dialbench.nli.judge import KNOWN, LABELS, Classifier, order_of, require_sane
from dialbench.nli.loading import find

PAIRS = [
    *((premise, hypothesis) for premise, hypothesis, _ in KNOWN),
    ("A man runs.", "A man is reading on a field. The letter is asleep."),
    ("", "A person."),
]


def test_a_folder_judges_as_the_library_itself_does(checkpoint):
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    folder = checkpoint()
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    with torch.no_grad():
        expected = [
            model(**tokenizer(*pair, return_tensors="pt")).logits.softmax(-1)[0].numpy()
            for pair in PAIRS
        ]
    np.testing.assert_allclose(find(str(folder))(PAIRS), expected, atol=1e-6)


def test_a_cross_encoder_that_sentence_transformers_saved_judges_alike(checkpoint, tmp_path):
    from sentence_transformers import CrossEncoder

    theirs = CrossEncoder(str(checkpoint()), local_files_only=True, device="cpu")
    theirs.save_pretrained(str(tmp_path / "saved"))
    expected = theirs.predict(PAIRS, apply_softmax=True, show_progress_bar=False)
    np.testing.assert_allclose(find(str(tmp_path / "saved"))(PAIRS), expected, atol=1e-6)


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_the_order_of_the_labels_is_read_from_the_config(checkpoint, order):
    folder = checkpoint([LABELS[place].upper() for place in order], order)
    actual = find(str(folder))(PAIRS[:3])
    assert [LABELS[i] for i in actual.argmax(axis=1)] == [label for _, _, label in KNOWN]
    np.testing.assert_allclose(actual.sum(axis=1), 1, atol=1e-6)


def test_a_wrong_order_of_labels_is_refused(checkpoint):
    folder = checkpoint(("contradiction", "neutral", "entailment"))
    with pytest.raises(InputError, match=r"--nli .*contradiction, not entailment\. It is no NLI"):
        find(str(folder))


@pytest.mark.parametrize(
    "labels", [("LABEL_0", "LABEL_1", "LABEL_2"), ("entailment", "not_entailment")]
)
def test_labels_of_other_tasks_are_refused(labels):
    with pytest.raises(InputError, match=r"the labels are .*correct id2label"):
        order_of(dict(enumerate(labels)), where="--nli x")


def test_all_three_pairs_must_come_out_right(reader):
    with pytest.raises(InputError, match=r"'A person is asleep\.' neutral, not entailment"):
        require_sane(reader, where="--nli reader")


def test_long_texts_lose_their_first_words(checkpoint):
    from transformers import AutoTokenizer

    seen = []

    def logits(input_ids, **rest):
        seen.append(input_ids)
        return torch.zeros(len(input_ids), 3)

    tokenizer = AutoTokenizer.from_pretrained(checkpoint())
    judge = Classifier(logits, tokenizer, (0, 1, 2), "spy", longest=9)
    judge([("one two three four five six seven", "seven six five four three")])
    assert tokenizer.decode(seen[0][0]) == "[CLS] five six seven [SEP] five four three [SEP]"


def test_the_batch_does_not_change_a_judgement(checkpoint, monkeypatch):
    judge = find(str(checkpoint()))
    together = judge(PAIRS)
    monkeypatch.setattr("dialbench.nli.judge._BATCH_PIECES", 1)
    np.testing.assert_allclose(judge(PAIRS), together, atol=1e-6)
    assert judge([]).shape == (0, 3)


def test_the_name_changes_with_the_weights_and_not_with_the_place(checkpoint, tmp_path):
    import shutil

    one, other = checkpoint(), checkpoint(order=(0, 2, 1), labels=[LABELS[i] for i in (0, 2, 1)])
    copied = tmp_path / one.name
    shutil.copytree(one, copied)
    names = [find(str(folder)).name for folder in (one, copied, other)]
    assert names[0] == names[1]
    assert names[0].split("@")[1] != names[2].split("@")[1]
    assert names[0].startswith(f"{one.name}@")


def break_labels(folder):
    (folder / "config.json").write_text("{")


def ask_for_code(folder):
    path = folder / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"auto_map": {"A": "b.C"}}))


def pickle_weights(folder):
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def cut_weights(folder):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:100])


def lose_the_head(folder):
    from safetensors.torch import load_file, save_file

    tensors = load_file(folder / "model.safetensors")
    del tensors["classifier.weight"]
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (break_labels, "it has no readable config.json"),
        (ask_for_code, "it asks in tokenizer_config.json for code of its own"),
        (pickle_weights, "it has no .*safetensors but only pickled weights"),
        (cut_weights, r"it cannot be read \("),
        (lose_the_head, r"it lacks classifier\.weight"),
    ],
)
def test_what_cannot_be_used_is_one_line(checkpoint, spoil, said):
    folder = checkpoint()
    spoil(folder)
    with pytest.raises(InputError, match=said) as error:
        find(str(folder))
    assert f"--nli {folder}" in error.value.message
    assert "\n" not in error.value.message


def test_nothing_is_downloaded():
    with pytest.raises(InputError, match=r"--nli nobody/none: it is neither a folder .*downloaded"):
        find("nobody/none")
