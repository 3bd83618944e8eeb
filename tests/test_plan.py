"""What is planned, and which jobs count as the same."""

from __future__ import annotations

import pytest

from dialbench.errors import InputError, UnknownName
from dialbench.plan import Plan, Request, setting_of


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
    assert setting_of(one.job) != setting_of(fewer.job)
    (batch,) = Plan.of(Request(models="transformer[answer_batch=8]")).tasks
    assert dict(batch.job.training) == dict(one.job.training)


def test_options_win_over_the_preset_and_the_preset_over_the_paper() -> None:
    (task,) = Plan.of(Request(models="transformer[layers=3]", preset="quick")).tasks
    config = task.system.config(task.preset.system)
    assert (config.layers, config.embedding, config.dropout) == (3, 64, 0.1)
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
