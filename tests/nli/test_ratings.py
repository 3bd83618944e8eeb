"""How far judgements follow what people think of responses."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dialbench.metrics.guard import UNRELATED
from dialbench.nli.training.ratings import agreement, read_rated

CONTEXT = "Where is the boat ?|||At the north pier ."
RESPONSES = ["The boat is red .", ".", "A parrot !", "At the north pier ."]


class Words:
    """Entails what shares a word with the premise, and a full stop; all is new to strangers."""

    name = "words@1"

    def __call__(self, pairs):
        shared = [
            hypothesis == "." or (premise not in UNRELATED and share_a_word(premise, hypothesis))
            for premise, hypothesis in pairs
        ]
        return np.where(np.array(shared)[:, None], [0.8, 0.1, 0.1], [0.1, 0.8, 0.1])


def share_a_word(one, other):
    return bool(set(one.lower().split()) & set(other.lower().split()))


@pytest.fixture
def data(tmp_path):
    grade = tmp_path / "released_outputs" / "grade_human"
    for folder in ("eval_data", "human_score"):
        (grade / folder / "dailydialog" / "ranker").mkdir(parents=True)
    texts = {"ctx": [CONTEXT] * 4, "hyp": RESPONSES}
    for name, lines in texts.items():
        path = grade / "eval_data" / "dailydialog" / "ranker" / f"human_{name}.txt"
        path.write_text("\n".join(lines) + "\n")
    scores = grade / "human_score" / "dailydialog" / "ranker" / "human_score.txt"
    scores.write_text("5.0\n1.0\n2.0\n1.5\n")
    folder = tmp_path / "released_outputs" / "dailydialog_multirefeval"
    folder.mkdir()
    (folder / "mturk_rating_processed_output.csv").write_text(
        "model,human_average_rating,response,context\n"
        'human,4.5,"well , yes",Shall we go ?||||Soon .\n'
        "cvae,1.0,no,Shall we go ?||||Soon .\n"
    )
    return tmp_path


def test_sets_are_read_as_their_publishers_write_them(data):
    grade, multiref = read_rated(data)
    assert grade.title == "GRADE-DailyDialog"
    assert [response for _, response in grade.answered] == RESPONSES
    assert grade.answered[0][0].context == ("Where is the boat ?", "At the north pier .")
    assert grade.ratings == (5.0, 1.0, 2.0, 1.5)
    assert multiref.answered[0][0].context == ("Shall we go ?", "Soon .")
    assert multiref.answered[0][1] == "well , yes"
    assert multiref.ratings == (4.5, 1.0)


def test_a_folder_without_ratings_has_none(tmp_path):
    assert read_rated(tmp_path) == []


def test_agreement_is_the_correlation_of_ranks(data):
    actual = {one.metric: one for one in agreement(Words(), read_rated(data)[0])}
    ranks = [4, 1, 3, 2]
    # The guard stops the full stop and the copy; without it both are entailed by every turn.
    assert actual["ue"].count == 4
    assert actual["ue"].rho == pytest.approx(np.corrcoef([4, 2, 2, 2], ranks)[0, 1])
    assert actual["ue-raw"].rho == pytest.approx(np.corrcoef([3, 3, 1, 3], ranks)[0, 1])
    assert 0 < actual["ue"].p < 1


def test_equal_values_agree_with_nothing(data):
    class Flat:
        name = "flat@1"

        def __call__(self, pairs):
            return np.tile([0.0, 1.0, 0.0], (len(pairs), 1))

    actual = agreement(Flat(), read_rated(data)[0])
    assert all(math.isnan(one.rho) and math.isnan(one.p) for one in actual)
