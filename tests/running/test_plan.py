"""What is planned, and which jobs count as the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dialbench.adapter import Adapter, Run
from dialbench.errors import InputError, UnknownName
from dialbench.records import Split
from dialbench.running.plan import Dataset, Plan, Request, comparison_key
from dialbench.systems import Registry


def test_every_combination_is_a_task_in_the_users_order() -> None:
    plan = Plan.of(Request(models="unigram,copy-last", seeds=(2, 1), decodings="greedy,beam:3"))
    named = [(t.job.system, t.job.seed, str(t.job.decoding)) for t in plan.tasks]
    assert named == [
        (system, seed, decoding)
        for system in ("unigram", "copy-last")
        for seed in (2, 1)
        for decoding in ("greedy", "beam:3")
    ]


def test_decoding_is_no_part_of_what_training_is_keyed_on() -> None:
    greedy, beam = Plan.of(Request(models="unigram", decodings="greedy,beam:3")).tasks
    assert greedy.job.training_fingerprint == beam.job.training_fingerprint
    assert greedy.job.fingerprint != beam.job.fingerprint


@pytest.mark.parametrize(
    "change",
    [
        {"limit_train": 50},
        {"context_turns": 2},
        {"seeds": (7,)},
        {"models": "transformer[layers=1]"},
        {"preset": "small"},
    ],
)
def test_what_changes_the_weights_changes_the_training(change: dict[str, object]) -> None:
    base = {"models": "transformer"}
    (one,) = Plan.of(Request(**base)).tasks  # type: ignore[arg-type]
    (other,) = Plan.of(Request(**{**base, **change})).tasks  # type: ignore[arg-type]
    assert one.job.training_fingerprint != other.job.training_fingerprint


def test_what_changes_only_speed_or_the_test_set_does_not_retrain() -> None:
    (one,) = Plan.of(Request(models="transformer")).tasks
    (fewer,) = Plan.of(Request(models="transformer", limit_test=5)).tasks
    assert one.job.training_fingerprint == fewer.job.training_fingerprint
    assert one.job.fingerprint != fewer.job.fingerprint
    assert comparison_key(one.job) != comparison_key(fewer.job)
    (batch,) = Plan.of(Request(models="transformer[answer_batch=8]")).tasks
    assert batch.job.fingerprint == one.job.fingerprint
    assert (batch.job.system, batch.label) == (one.job.system, one.label)
    assert batch.system.config(batch.preset.system).answer_batch == 8


def test_options_win_over_the_preset_and_the_preset_over_the_paper() -> None:
    (task,) = Plan.of(Request(models="transformer[layers=3]", preset="quick")).tasks
    config = task.system.config(task.preset.system)
    assert (config.layers, config.embedding, config.dropout) == (3, 64, 0.0)
    (paper,) = Plan.of(Request(models="transformer", preset="paper")).tasks
    config = paper.system.config(paper.preset.system)
    assert (config.layers, config.embedding, config.feed_forward) == (6, 300, 2048)


def test_a_limited_run_validates_on_little(request: pytest.FixtureRequest) -> None:
    plan = Plan.of(Request(models="copy-last", limit_train=2000, preset="small"))
    assert len(plan.datasets[0].valid) == 200


def test_labels_show_the_options() -> None:
    plan = Plan.of(Request(models="paraformer-n[layout=full],paraformer-n"))
    assert [task.label for task in plan.tasks] == ["PaRaFormer_N [layout=full]", "PaRaFormer_N"]


@pytest.mark.parametrize("field", ["models", "corpora", "decodings"])
def test_nothing_named_is_an_error(field: str) -> None:
    with pytest.raises(InputError):
        Plan.of(Request(**{field: " , "}))  # type: ignore[arg-type]


def test_a_preset_of_ones_own(tmp_path: object) -> None:
    from pathlib import Path

    path = Path(str(tmp_path)) / "mine.toml"
    path.write_text('summary = "mine"\nseeds = [4, 5]\nlimit_test = 3\n[system]\nlayers = 1\n')
    plan = Plan.of(Request(models="transformer", preset=str(path)))
    assert [task.job.seed for task in plan.tasks] == [4, 5]
    assert plan.tasks[0].job.preset == "mine"
    path.write_text("seeds = []\n")
    with pytest.raises(InputError, match=r"mine\.toml:summary: Field required"):
        Plan.of(Request(preset=str(path)))
    with pytest.raises(UnknownName, match="Did you mean 'small'"):
        Plan.of(Request(preset="smal"))


@pytest.mark.parametrize(
    ("name", "learns"),
    [
        ("copy-last", False),
        ("copy-reference", False),
        ("file[path=x.jsonl]", False),
        ("endpoint[url=http://localhost/v1,model=m]", False),
        ("hf[weights=x,tune=false]", False),
        ("hf[weights=x]", True),
        ("gpt2", True),
        ("random-train", True),
        ("retrieval", True),
        ("seq2seq", True),
        ("laed", True),
    ],
)
def test_who_learns_from_the_training_split(name: str, learns: bool) -> None:
    (system,) = Registry().parse(name)
    assert system.adapter.learns(system.config({})) == learns


class TestRowsThatLearnNothing:
    """A corpus is split and limited for those who learn; others answer all of it."""

    @pytest.fixture
    def corpus(self, tmp_path: Path) -> Path:
        path = tmp_path / "mine.jsonl"
        lines = [
            {"id": f"e{i}", "context": [f"c {i}"], "references": [f"r {i}"]} for i in range(400)
        ]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        (tmp_path / "theirs.jsonl").write_text(
            "".join(json.dumps({"id": f"e{i}", "response": "x"}) + "\n" for i in range(400))
        )
        return path

    @staticmethod
    def planned(models: str, corpus: Path | str, **more: Any) -> Dataset:
        models = models.replace("FILE", f"file[path={Path(corpus).with_name('theirs.jsonl')}]")
        (dataset,) = Plan.of(Request(models=models, corpora=str(corpus), **more)).datasets
        return dataset

    def test_finished_responses_are_scored_whole(self, corpus: Path) -> None:
        for models in ("FILE", "FILE,copy-last,copy-reference"):
            actual = self.planned(models, corpus)
            assert (len(actual.train), len(actual.valid), len(actual.test)) == (0, 0, 400)
            assert actual.notes == ()
        assert len(self.planned("FILE", corpus, limit_test=7).test) == 7

    def test_beside_one_that_learns_they_are_split_and_limited(self, corpus: Path) -> None:
        actual = self.planned("FILE,most-frequent", corpus)
        assert (len(actual.train), len(actual.valid), len(actual.test)) == (320, 40, 40)
        assert any("320 / 40 / 40" in note for note in actual.notes)
        # Nobody competes whom the preset makes small.
        assert not any("Preset" in note for note in actual.notes)
        assert any("Preset quick" in note for note in self.planned("FILE,seq2seq", corpus).notes)

    def test_the_recipe_is_said_of_systems_that_have_its_options(self, corpus: Path) -> None:
        class Counter(Adapter):
            name = "counter"

            def fit(self, train: Split, valid: Split, run: Run) -> None:
                pass

        for models, said in (("counter", False), ("counter,seq2seq", True)):
            notes = self.planned(models, corpus, plugins=(Counter,)).notes
            assert any("Preset quick" in note for note in notes)
            assert any("Every trained system" in note for note in notes) is said

    def test_all_wins_over_the_limit_of_the_preset(self, corpus: Path) -> None:
        assert len(self.planned("copy-last", corpus, limit_test="all").test) == 400
        assert len(self.planned("FILE,copy-last", corpus, limit_test="all").test) == 400

    def test_one_that_learns_needs_a_training_split(self, corpus: Path, tmp_path: Path) -> None:
        test = corpus.with_name("test.jsonl")
        corpus.rename(test)
        for name in (test, tmp_path):
            with pytest.raises(InputError) as caught:
                self.planned("copy-last,unigram,seq2seq", name)
            assert str(caught.value) == (
                f"--corpus {name}: there is no train and no valid split to train unigram, seq2seq "
                "on. Only finished responses and systems that train nothing can be run on it."
            )
        assert len(self.planned("FILE", test).test) == 400

    def test_one_that_answers_anew_is_limited_but_not_split(self, corpus: Path) -> None:
        actual = self.planned("copy-last", corpus)
        assert (len(actual.train), len(actual.test)) == (0, 300)
        assert actual.notes == ("mine, limited run: answered the first 300 of 400 examples",)

    def test_splits_that_lines_name_are_kept(self, tmp_path: Path) -> None:
        splits = ("train", "test", None)
        lines = [
            {"id": f"e{i}", "context": ["c"], "references": [f"r{i}"]}
            | ({"split": split} if (split := splits[i % 3]) else {})
            for i in range(30)
        ]
        path = tmp_path / "mine.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        actual = self.planned("copy-last", path)
        assert (len(actual.train), len(actual.test)) == (10, 20)

    def test_a_corpus_with_splits_of_its_own_is_only_limited(self) -> None:
        actual = self.planned("copy-last", "demo")
        assert (len(actual.train), len(actual.test)) == (8057, 300)
        limited = [note for note in actual.notes if "limited" in note]
        assert limited == ["Demo, limited run: answered the first 300 of 1,020 examples"]
