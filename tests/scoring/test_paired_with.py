"""`score --paired-with`: every metric's difference from another file, and its tests."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from dialbench.errors import InputError
from dialbench.records import Example
from dialbench.scoring.score import score

from .conftest import PAIRS, example, written


def test_every_metric_with_its_test(tmp_path):
    base = written(tmp_path / "base.jsonl", PAIRS)
    longer = [(e, response + " and then some more") for e, response in PAIRS]
    file = written(tmp_path / "longer.jsonl", longer)
    (report,) = score([file], metrics=["length", "dist-1"], paired_with=base)
    assert report["paired_with"] == "base"
    length, dist = report["compared"]["length"], report["compared"]["dist-1"]
    assert length["difference"]["value"] == pytest.approx(4.0)
    assert length["p"] < 1e-6
    assert length["superiority"]["value"] == 1.0
    assert length["dialogues"] == dist["dialogues"] == 30
    scores = [score([path], metrics=["dist-1"])[0]["metrics"]["dist-1"] for path in (file, base)]
    expected = scores[0]["value"] - scores[1]["value"]
    assert dist["difference"]["value"] == pytest.approx(expected)
    assert "randomisation" in dist["test"]
    json.dumps(report, allow_nan=False)


def test_a_system_does_not_differ_from_itself(tmp_path):
    base = written(tmp_path / "base.jsonl", PAIRS)
    (report,) = score([base], metrics=["length", "dist-1"], paired_with=base)
    for compared in report["compared"].values():
        assert (compared["difference"]["value"], compared["p"]) == (0.0, 1.0)


def test_every_file_is_counted_once_and_none_where_one_does_not_fit(tmp_path, monkeypatch):
    from dialbench.adapter import Progress
    from dialbench.metrics.lexical import Mtld

    counted, steps = [], []
    statistics = Mtld.statistics

    class Steps(Progress):
        def update(self, stage, **numbers):
            steps.append((numbers["step"], numbers["steps"]))

    def count(metric, texts):
        counted.append(len(texts))
        return statistics(metric, texts)

    monkeypatch.setattr(Mtld, "statistics", count)
    paths = [written(tmp_path / f"{name}.jsonl", PAIRS) for name in ("one", "two", "base")]
    score(paths[:2], metrics=["mtld"], paired_with=paths[2], progress=Steps())
    assert counted == [len(PAIRS)] * 3
    assert steps[-1] == (3, 3)
    few = written(tmp_path / "few.jsonl", PAIRS[:7])
    with pytest.raises(InputError, match=f"it has {len(PAIRS)} responses where"):
        score([paths[0], few], metrics=["mtld"], paired_with=paths[2])
    assert len(counted) == 3


def test_other_contexts_are_named(tmp_path):
    file = written(tmp_path / "file.jsonl", PAIRS)
    swapped = written(tmp_path / "swapped.jsonl", [*PAIRS[:5], *PAIRS[:4:-1]])
    with pytest.raises(InputError, match=r"swapped\.jsonl:6: it answers another context"):
        score([file], metrics=["length"], paired_with=swapped)
    blind = tmp_path / "blind.txt"
    blind.write_text("\n".join(response for _, response in PAIRS), encoding="utf-8")
    for ours, theirs, what in (
        (file, blind, r"blind\.txt:1: it gives no context, unlike .*file\.jsonl:1\."),
        (blind, file, r"file\.jsonl:1: it gives a context, unlike .*blind\.txt:1\."),
    ):
        with pytest.raises(InputError, match=what):
            score([ours], metrics=["length"], paired_with=theirs)
    few = written(tmp_path / "few.jsonl", PAIRS[:7])
    with pytest.raises(InputError, match=r"few\.jsonl: it has 7 responses where"):
        score([file], metrics=["length"], paired_with=few)


def test_other_examples_are_named_where_contexts_do_not_tell(tmp_path):
    def file(name, *lines):
        path = tmp_path / f"{name}.jsonl"
        path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
        return path

    first, second = (
        {"id": id, "references": [f"to {id}", "yes"], "response": f"by {id}"} for id in "ab"
    )
    ours = file("ours", first, second)
    for name, lines, what in (
        ("ids", (second, first), "1: its id is not that of"),
        ("dialogues", (first, second | {"dialogue_id": "x"}), "2: its dialogue_id is not that"),
        ("said", (first, second | {"references": ["no"]}), "2: its references are not those"),
        ("fewer", (first, second | {"references": []}), "2: its references are not those of"),
    ):
        other = file(name, *lines)
        with pytest.raises(InputError, match=rf"{name}\.jsonl:{what}.*jsonl:{what[0]}\. "):
            score([ours], metrics=["length"], paired_with=other)
    turned = [line | {"references": line["references"][::-1]} for line in (first, second)]
    bare = [{"references": line["references"], "response": "so"} for line in turned]
    for other in (file("turned", *turned), file("bare", *bare)):
        score([ours], metrics=["length"], paired_with=other)


@pytest.mark.parametrize("metric", ["rouge-l", "bleu-2"])
def test_without_pairs_there_is_a_reason_and_no_p(command, tmp_path, metric):
    file = written(tmp_path / "file.jsonl", PAIRS[:9])
    blind = [(Example(e.id, e.dialogue_id, e.context, ()), r) for e, r in PAIRS[:9]]
    base = written(tmp_path / "base.jsonl", blind)
    expected = {
        (file, base): f"no example has a reference in {base}",
        (base, file): f"no example has a reference in {base}",
        (base, base): "no example has a reference",
    }
    for (one, other), reason in expected.items():
        (report,) = score([one], metrics=[metric, "length"], paired_with=other)
        actual = report["compared"][metric]
        assert (actual["difference"]["value"], actual["p"], actual["wilcoxon"]) == (None,) * 3
        assert actual["reason"] == reason
        assert "reason" not in report["compared"]["length"]
    result = command("score", file, "--metrics", metric, "--paired-with", base).out
    table = result[result.index("file less base") :]
    (row,) = (line for line in table.splitlines() if line.startswith(("ROUGE-L ", "BLEU-2 ")))
    assert row.split()[1:-1] == ["–"] * 6
    assert f"{row.split()[0]}: no example has a reference in {base}" in table


def test_values_of_other_examples_are_no_pair(tmp_path):
    texts = (("a b", "", "c"), ("", "a b", ""))
    examples = [example(i) for i in range(3)]
    ours, theirs = (
        written(tmp_path / f"{n}.jsonl", list(zip(examples, side, strict=True)))
        for n, side in enumerate(texts)
    )
    (report,) = score([ours], metrics=["intra-dist-1"], paired_with=theirs)
    actual = report["compared"]["intra-dist-1"]
    assert (actual["difference"], actual["p"]) == ({"value": 0.0, "interval": None}, None)
    assert actual["reason"] == "too few parts of the set have a value in both, which tests need"


def test_a_metric_that_parts_of_a_set_do_not_have_says_why_there_is_no_test(tmp_path, monkeypatch):
    from dialbench.metrics.lexical import Mtld

    monkeypatch.setattr(Mtld, "jackknife_values", lambda *a: np.full(len(a[-1]), math.nan))
    base = written(tmp_path / "base.jsonl", PAIRS)
    (report,) = score([base], metrics=["mtld"], paired_with=base)
    actual = report["compared"]["mtld"]
    assert (actual["difference"]["value"], actual["p"]) == (0.0, None)
    assert "which tests need" in actual["reason"]


def bare(path, pairs, *, ids, gap=False):
    """A file without dialogues; with ids, or with a blank line after the first."""
    lines = [
        {"context": e.context, "references": e.references, "response": response}
        | ({"id": e.id} if ids else {})
        for e, response in pairs
    ]
    texts = list(map(json.dumps, lines))
    path.write_text("\n".join([*texts[:1], *[""] * gap, *texts[1:]]), encoding="utf-8")
    return path


def test_groups_of_dialogues_are_the_same_whether_files_give_ids_or_not(tmp_path):
    metrics = ["ent-1", "dist-2"]
    other = [(e, f"{response.rsplit(' ', 1)[0]} then") for e, response in PAIRS]
    files = {
        (ids, gap): bare(tmp_path / f"{ids}{gap}.jsonl", PAIRS, ids=ids, gap=gap)
        for ids, gap in ((True, False), (False, False), (False, True))
    }
    named, plain = (bare(tmp_path / f"o{ids}.jsonl", other, ids=ids) for ids in (True, False))

    def compared(file, base):
        return score([file], metrics=metrics, paired_with=base)[0]["compared"]

    with_ids, without = compared(files[True, False], named), compared(files[False, False], plain)
    assert compared(files[False, False], named) == with_ids
    assert compared(files[True, False], plain) == with_ids
    assert compared(files[False, True], plain) == without
