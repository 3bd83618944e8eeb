from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

import dialbench
from dialbench.errors import InputError, UnknownName
from dialbench.metrics.entailment import NO_JUDGE
from dialbench.metrics.formulas import FORMULAS
from dialbench.metrics.registry import DEFAULT, WITHIN
from dialbench.metrics.semantic import EmbeddingSentence, SentenceModel
from dialbench.records import Example, Split
from dialbench.reporting.options import ReportOptions
from dialbench.scoring.evaluation import score_responses
from dialbench.scoring.options import InputOptions, ScoringOptions
from dialbench.scoring.resources import build_metrics
from dialbench.scoring.score import metrics_for, score, scoring_key
from dialbench.scoring.shards import merge, write
from dialbench.scoring.sources import Sources
from dialbench.scoring.table import score_report
from dialbench.stats.folds import blocks, dialogue_numbers, groups
from dialbench.stats.intervals import mean_interval

from .conftest import PAIRS, WORDS, example, written

TALLIED = (
    *("different", "dist-1", "dist-2", "dist-3", "ead-1", "ead-2"),
    *("bleu-1", "bleu-4", "sacrebleu-4", "bleu-coco-4"),
)
FREE = ("length", "dist-1", "dist-2", "mtld", "mattr", "mattr-4")
TRAIN = Split("train", [example(i) for i in range(60)])
WORDS_OF_TRAIN = {w for e in TRAIN for turn in (*e.context, *e.references) for w in turn.split()}


@pytest.fixture
def vectors(tmp_path):
    rows = np.random.default_rng(0).normal(size=(len(WORDS), 4))
    lines = [f"{w} {' '.join(map(str, row))}\n" for w, row in zip(WORDS, rows, strict=True)]
    path = tmp_path / "vectors.txt"
    path.write_text("".join(lines), encoding="utf-8")
    return path


def free_metrics():
    return build_metrics(ScoringOptions(metrics=FREE))


def test_files_become_plain_values(tmp_path, vectors):
    files = [written(tmp_path / "one.jsonl", PAIRS), written(tmp_path / "two.jsonl", PAIRS[:40])]
    one, two = score(files, vectors=vectors, corpus="lake")
    assert json.loads(json.dumps(one)) == one
    assert (one["system"], one["corpus"], two["system"]) == ("one", "lake", "two")
    assert list(one["metrics"]) == list(DEFAULT)
    dist = one["metrics"]["dist-1"]
    tokens = [w for _, response in PAIRS for w in response.split()]
    assert dist["value"] == len(set(tokens)) / len(tokens)
    assert set(dist) == {"value", "signature", "n", "interval"}
    assert dist["n"] == 90
    assert dist["interval"][0] < dist["value"] < dist["interval"][1]
    ue = one["metrics"]["ue"]
    assert (ue["value"], ue["interval"], ue["reason"]) == (None, None, NO_JUDGE)
    assert one["metrics"]["emb-greedy"]["value"] > 0
    assert one["metrics"]["emb-greedy"]["signature"].startswith("emb-greedy|vectors:vectors.txt@")


def test_intervals_groups_and_values_per_response():
    scores = score_responses(iter(PAIRS), free_metrics())
    ids = [e.dialogue_id for e, _ in PAIRS]
    lengths = np.array([len(response.split()) for _, response in PAIRS], dtype=float)
    length = scores["length"]
    np.testing.assert_array_equal(length.per_response, lengths)
    assert length.interval == mean_interval(lengths, dialogue_numbers(ids), (0.0, math.inf))
    parts = {False: groups(ids), True: blocks(ids)}
    np.testing.assert_allclose(length.shares, np.bincount(parts[False]) / len(ids))
    anew = [metric for metric in free_metrics() if metric.name != "mtld"]
    for metric in anew:
        name, of = metric.name, parts[metric.ordered]
        without = [pair for pair, part in zip(PAIRS, of, strict=True) if part != 4]
        again = score_responses(without, [metric])
        actual, share = scores[name], scores[name].shares[4]
        expected = (actual.value - (1 - share) * again[name].value) / share
        assert actual.parts[4] == pytest.approx(expected, rel=1e-9)
    assert scores["dist-1"].per_response is None


def test_tallies_give_the_value_itself():
    """What swaps are computed from has to give the printed value where nothing is swapped."""
    settings = ScoringOptions(TALLIED, vocabulary=5000)
    for name, actual in score_responses(iter(PAIRS), build_metrics(settings)).items():
        tally = actual.tally
        kinds = [len(np.unique(codes)) for codes in tally.codes]
        numbers = np.append(tally.sums.sum(axis=0), kinds).astype(float)
        value = FORMULAS[tally.formula](numbers[None], *tally.parameters)
        assert value[0] == pytest.approx(actual.value, rel=1e-12), name


def test_tallies_of_two_systems_are_mixed_as_their_responses_are():
    half = {e.dialogue_id for e, _ in PAIRS[: len(PAIRS) // 2]}
    other = [(e, f"{r} {r.split()[0]} again") for e, r in PAIRS]
    mixed = [a if a[0].dialogue_id in half else b for a, b in zip(PAIRS, other, strict=True)]
    settings = build_metrics(ScoringOptions(TALLIED, vocabulary=5000))
    one, two, both = (score_responses(iter(side), settings) for side in (PAIRS, other, mixed))
    first = np.arange(len(half))
    for name, actual in both.items():
        a, b = one[name].tally, two[name].tally
        sums = a.sums[first].sum(axis=0) + b.sums[len(half) :].sum(axis=0)
        kinds = [
            len(np.union1d(x[i < len(half)], y[j >= len(half)]))
            for x, i, y, j in zip(a.codes, a.owners, b.codes, b.owners, strict=True)
        ]
        numbers = np.append(sums, kinds).astype(float)[None]
        value = FORMULAS[a.formula](numbers, *a.parameters)
        assert value[0] == pytest.approx(actual.value, rel=1e-12), name


def test_left_out_examples_are_counted():
    blind = [(Example(e.id, e.dialogue_id, e.context, ()), r) for e, r in PAIRS[:30]]
    scores = score_responses(
        blind + PAIRS[30:], build_metrics(ScoringOptions(("rouge-l", "bleu-2")))
    )
    assert [scores[name].n for name in ("rouge-l", "bleu-2")] == [60, 60]
    assert np.isnan(scores["rouge-l"].per_response[:30]).all()
    none = score_responses(blind, build_metrics(ScoringOptions(("bleu-2",))))["bleu-2"]
    assert math.isnan(none.value)
    assert (none.n, none.interval, none.reason) == (0, None, "no example has a reference")


def test_a_single_response_has_values_but_no_interval(vectors):
    settings = ScoringOptions(vectors=str(vectors))
    scores = score_responses(PAIRS[:1], build_metrics(settings))
    assert scores["dist-1"].value > 0
    assert scores["dist-1"].interval is None
    assert scores["dist-1"].shares is None or not len(scores["dist-1"].shares)
    for result in scores.values():
        assert result.available or result.reason


def test_no_responses_are_an_error(tmp_path):
    with pytest.raises(InputError, match="there are no responses"):
        score_responses([], free_metrics())
    empty = written(tmp_path / "empty.jsonl", [])
    with pytest.raises(InputError, match=r"empty\.jsonl: there are no responses"):
        score([empty], metrics=["length"])


def test_wrong_names_are_answered_with_the_nearest(tmp_path):
    with pytest.raises(UnknownName, match=r"--metrics: unknown metric 'dist1'.*'dist-1'"):
        score([], metrics=["dist1"])
    with pytest.raises(UnknownName, match=r"--tokenizer: .*'bert'"):
        score([], tokenizer="berd")
    with pytest.raises(InputError, match=r"--vectors: .*none\.txt cannot be read"):
        score([], vectors=tmp_path / "none.txt")
    with pytest.raises(UnknownName, match=r"--train.*'demo'"):
        score([], train="dema")


def test_metrics_of_two_tokenisers_do_not_mix():
    mixed = [*free_metrics(), *build_metrics(ScoringOptions(("dist-3",), "bert"))]
    with pytest.raises(ValueError, match="bert, default"):
        score_responses(PAIRS, mixed)


def test_embeddings_without_vectors_say_what_to_do():
    scores = score_responses(PAIRS, build_metrics(ScoringOptions(("emb-average", "dist-1"))))
    assert math.isnan(scores["emb-average"].value)
    assert "--vectors" in scores["emb-average"].reason
    assert "--train" in scores["emb-average"].reason
    assert scores["dist-1"].available


@pytest.fixture
def any_size(monkeypatch):
    """Vectors are trained however little text there is."""
    monkeypatch.setattr("dialbench.scoring.resources.LEAST_TOKENS", 0)


@pytest.mark.usefixtures("any_size")
def test_vectors_are_trained_once_and_kept(tmp_path):
    settings = ScoringOptions(("emb-average",))
    (metric,) = build_metrics(settings, TRAIN, tmp_path)
    (kept,) = tmp_path.iterdir()
    assert kept.name.startswith("word2vec-")
    stamp = kept.stat().st_mtime_ns
    (again,) = build_metrics(settings, TRAIN, tmp_path)
    assert kept.stat().st_mtime_ns == stamp
    (fresh,) = build_metrics(settings, TRAIN)
    assert metric.signature == again.signature == fresh.signature
    results = [score_responses(PAIRS, [m])["emb-average"].value for m in (metric, again, fresh)]
    assert results[0] == results[1] == results[2] > 0


@pytest.mark.usefixtures("any_size")
def test_kept_vectors_that_are_damaged_are_an_error_not_a_missing_column(tmp_path):
    build_metrics(ScoringOptions(("emb-average",)), TRAIN, tmp_path)
    (kept,) = tmp_path.iterdir()
    kept.write_bytes(kept.read_bytes()[:-8])
    with pytest.raises(InputError, match=r"word2vec-.*Delete the file"):
        build_metrics(ScoringOptions(("emb-average",)), TRAIN, tmp_path)


@pytest.mark.usefixtures("any_size")
def test_other_text_or_tokens_are_other_vectors(tmp_path):
    build_metrics(ScoringOptions(("emb-average",)), TRAIN, tmp_path)
    build_metrics(ScoringOptions(("emb-average",)), Split("train", TRAIN[:50]), tmp_path)
    build_metrics(ScoringOptions(("emb-average",), "parlai"), TRAIN, tmp_path)
    assert len(list(tmp_path.iterdir())) == 3


def test_nothing_is_trained_when_no_metric_needs_it(tmp_path):
    build_metrics(ScoringOptions(FREE), TRAIN, tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("any_size")
def test_too_little_training_text_is_a_reason_not_a_failure():
    (metric,) = build_metrics(ScoringOptions(("emb-greedy",)), Split("train", [example(1)]))
    result = score_responses(PAIRS, [metric])["emb-greedy"]
    assert math.isnan(result.value)
    assert "no word occurs 5 times" in result.reason


def test_vectors_of_too_little_text_are_not_trained(tmp_path, monkeypatch):
    tokens = sum(len(turn.split()) for e in TRAIN for turn in (*e.context, *e.references))
    names = ScoringOptions(("emb-average", "novelty"))
    monkeypatch.setattr("dialbench.scoring.resources.LEAST_TOKENS", tokens + 1)
    average, novelty = build_metrics(names, TRAIN, tmp_path)
    assert average.missing == (
        f"word vectors need at least {tokens + 1:,} tokens of training text, here are {tokens:,}: "
        "give a file with --vectors"
    )
    assert not novelty.missing
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr("dialbench.scoring.resources.LEAST_TOKENS", tokens)
    assert not build_metrics(names, TRAIN, tmp_path)[0].missing


@pytest.mark.usefixtures("any_size")
def test_vectors_have_a_text_of_their_own():
    part = Split("train", TRAIN[:20])
    names = ScoringOptions(("emb-average", "ead-1"))
    average, adjusted = build_metrics(names, part, vector_text=TRAIN)
    assert average.signature == build_metrics(names, TRAIN)[0].signature
    assert adjusted.signature == build_metrics(names, part)[1].signature


def test_the_training_split_serves_novelty_and_the_size_of_the_vocabulary():
    names = ("ead-1", "novelty", "copy-rate")
    copied = [(e, e.references[0]) for e in TRAIN] + [(example(80), "quite new")]
    scores = score_responses(copied, build_metrics(ScoringOptions(names), TRAIN))
    assert scores["novelty"].value == pytest.approx(1 / 61)
    assert scores["copy-rate"].value == 1
    assert f"|V:{len(WORDS_OF_TRAIN)}|" in scores["ead-1"].signature
    own = build_metrics(ScoringOptions(names, vocabulary=500), TRAIN)[0]
    assert "|V:500|" in own.signature
    without = score_responses(copied, build_metrics(ScoringOptions(names)))
    assert all("--train" in score.reason for score in without.values())
    given = score_responses(copied, build_metrics(ScoringOptions(("ead-1",), vocabulary=500)))
    assert given["ead-1"].available


def test_metrics_of_whole_sentences_read_what_was_written(tmp_path):
    seen = set()

    def encode(texts):
        seen.update(texts)
        return np.ones((len(texts), 2))

    pair = (Example("e", "d", (), ("Quite, yes!",)), "It's Me.")
    model = SentenceModel(encode, "constant")
    score_responses([pair], [EmbeddingSentence("default", model)])
    assert seen == {"Quite, yes!", "It's Me."}
    with pytest.raises(InputError, match="sentence-transformers"):
        build_metrics(ScoringOptions(metrics=["vendi"], sentence_model=tmp_path))


def test_settings_are_plain_json():
    settings = ScoringOptions(("dist-1",), "bert", "ngrams", "v.txt", "data", 9, "model")
    plain = json.loads(json.dumps(asdict(settings)))
    assert ScoringOptions(**plain | {"metrics": tuple(plain["metrics"])}) == settings
    assert (
        ScoringOptions(
            metrics=["dist-1"],
            tokenizer="bert",
            denominator="ngrams",
            vectors=Path("v.txt"),
            data=Path("data"),
            vocabulary=9,
            sentence_model=Path("model"),
        )
        == settings
    )
    assert ScoringOptions() == ScoringOptions()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"denominator": "token"}, "denominator: unknown denominator 'token'. Did you mean"),
        ({"denominator": 2}, "denominator: unknown denominator '2'. Known: ngrams, tokens."),
        *(
            ({"vocabulary": words}, f"vocabulary: {words!r} is no number of words. Give a whole")
            for words in (-5, 0, "x", 2.0, 10**18)
        ),
        ({"metrics": []}, "metrics: no metric is named. Name one, or leave it out."),
        ({"metrics": ""}, "metrics: no metric is named."),
    ],
)
def test_options_that_cannot_be_used_are_refused_in_one_line(options, message):
    with pytest.raises(InputError) as error:
        dialbench.score(["a b"], **{"metrics": "dist-1,ead-1"} | options)
    assert error.value.message.startswith(message)
    assert "\n" not in error.value.message


@pytest.mark.parametrize(
    ("responses", "references", "message"),
    [
        ({}, None, "responses: there are no responses to score. Give"),
        ([["a"], []], None, "responses[1]: there is no response to this context. Give"),
        ({"x": [[], ["a"]]}, None, "x[0]: there is no response to this context. Give"),
        (5, None, "responses: int is no list of texts. Give"),
        ({"x": b"ab"}, None, "x: bytes is no list of texts. Give"),
        (["a"], 5, "references: int is no list of texts. Give"),
    ],
)
def test_what_is_no_responses_is_refused_in_one_line(responses, references, message):
    with pytest.raises(InputError) as error:
        dialbench.score(responses, references, metrics="length")
    assert error.value.message.startswith(message)
    assert "\n" not in error.value.message


def test_the_command_line_names_the_option(command, tmp_path):
    path = written(tmp_path / "x.jsonl", PAIRS[:2])
    result = command("score", path, "--metrics", "ead-1", "--vocabulary", 10**18)
    assert result.code == 2
    assert "--vocabulary: 1000000000000000000 is no number of words" in result.err


def test_the_key_follows_every_choice_that_changes_scores(vectors):
    def key(**choices):
        return json.dumps(scoring_key(build_metrics(ScoringOptions(**choices))))

    first = key()
    assert first == key()
    others = [
        key(metrics=["dist-1"]),
        key(tokenizer="bert"),
        key(denominator="ngrams"),
        key(vectors=vectors),
    ]
    assert len({first, *others}) == 5


def test_what_is_missing_is_known_before_scoring(vectors):
    missing = {m.name: m.missing for m in build_metrics(ScoringOptions()) if m.missing}
    assert set(missing) == {"ue", "ue-soft", "emb-average", "emb-greedy", "emb-extrema"}
    assert missing["ue"] == NO_JUDGE
    actual = build_metrics(ScoringOptions(("emb-average",), vectors=str(vectors)))
    assert actual[0].missing == ""


def test_the_denominator_reaches_distinct():
    values = [
        score_responses(PAIRS, build_metrics(ScoringOptions(("dist-2",), denominator=d)))["dist-2"]
        for d in ("tokens", "ngrams")
    ]
    assert values[0].value < values[1].value
    assert values[0].signature != values[1].signature


def test_metrics_within_contexts_are_scored_where_several_responses_are_given(tmp_path):
    lines = [
        {"id": "1", "response": "a b", "alternatives": ["a c", "a"]},
        {"id": "2", "response": "c"},
    ]
    path = tmp_path / "several.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    (report,) = score([path])
    assert list(report["metrics"]) == [*DEFAULT, *WITHIN]
    within, across = report["metrics"]["within-dist-1"], report["metrics"]["dist-1"]
    assert (within["value"], within["n"]) == (pytest.approx(3 / 5), 1)
    assert across["value"] == 1.0
    (shard,) = write([path], tmp_path)
    assert merge([shard])["metrics"] == report["metrics"]


def test_one_line_with_several_responses_is_enough_wherever_it_stands(tmp_path):
    one = written(tmp_path / "one.jsonl", PAIRS[:2])
    path = tmp_path / "late.jsonl"
    path.write_text('{"response": "a b"}\n{"response": "c", "alternatives": ["d"]}\n', "utf-8")
    alone, late = Sources([one, path], InputOptions()).systems
    assert metrics_for([alone]) == DEFAULT
    assert metrics_for([late]) == metrics_for([alone, late]) == (*DEFAULT, *WITHIN)


def test_a_blank_reference_is_none_in_any_format(tmp_path):
    rows = [("a", ["", "a b"]), ("a b", [" "])]
    lines = [json.dumps({"response": r, "references": refs}) for r, refs in rows]
    (tmp_path / "a.jsonl").write_text("\n".join(lines), encoding="utf-8")
    table = "response,reference 1,reference 2\na,,a b\na b, ,\n"
    (tmp_path / "b.csv").write_text(table, encoding="utf-8")
    files = [tmp_path / "a.jsonl", tmp_path / "b.csv"]
    one, two = score(files, metrics=["bleu-1", "rouge-l"])
    assert one["metrics"] == two["metrics"]
    assert one["metrics"]["rouge-l"]["n"] == 1


def test_lines_without_any_id_are_dialogues_called_by_their_numbers(tmp_path):
    bare, numbered = tmp_path / "bare.jsonl", tmp_path / "numbered.jsonl"
    lines = [{"response": response} for _, response in PAIRS]
    full = [line | {"dialogue_id": str(n)} for n, line in enumerate(lines, 1)]
    for path, rows in ((bare, lines), (numbered, full)):
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    one, other = score([bare, numbered], metrics=["length", "dist-1"])
    assert one["metrics"] == other["metrics"]


def test_what_only_other_systems_need_changes_no_value_and_no_interval():
    metrics = free_metrics()
    alone = score_responses(iter(PAIRS), metrics, comparable=False)
    for name, score_of in score_responses(iter(PAIRS), metrics).items():
        assert (alone[name].value, alone[name].interval) == (score_of.value, score_of.interval)
        assert (alone[name].parts is None) == (score_of.per_response is not None)
        assert alone[name].tally is None


def test_the_first_note_names_a_file_that_repeats_itself(tmp_path):
    constant = written(tmp_path / "constant.jsonl", [(e, "so it is .") for e, _ in PAIRS])
    varied = written(tmp_path / "varied.jsonl", PAIRS)
    files = [varied, constant]
    (actual,) = score_report(files, InputOptions(), ReportOptions(), metrics=["length"]).tables
    assert actual.notes[0] == "constant gave one response to all 90 contexts."
    assert [note for note in actual.notes if "gave" in note] == [actual.notes[0]]
