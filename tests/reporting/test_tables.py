"""From results to rows, columns, cells and notes."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dialbench
from dialbench.records import Column, Result
from dialbench.reporting.tables.build import build
from dialbench.reporting.tables.significance import Rules


@pytest.fixture(scope="module")
def build_one(result, score):
    """The only table of results given as system -> value, or as ready results."""

    def make(*results, metrics=("m",), **more):
        ready = [r if isinstance(r, Result) else result(r[0], {"m": score(r[1])}) for r in results]
        (table,) = build(ready, metrics=metrics, **more)
        return table

    return make


def labels(table):
    return [row.label for row in table.rows]


def values(table, name="m"):
    return [row.cells[name].value for row in table.rows]


def notes_with(table, part):
    return [note for note in table.notes if part in note]


def test_a_table_for_each_corpus_in_order_of_appearance(result):
    tables = build([result("a", corpus=c) for c in ("y", "x", "y")], metrics=["m"])
    assert [table.name for table in tables] == ["y", "x"]
    assert tables[0].caption == "Automatic evaluation on y"
    assert build([], metrics=["m"]) == []


def test_values_are_kept_exactly(build_one):
    table = build_one(("a", 1 / 3), ("b", 0.7))
    assert values(table) == [1 / 3, 0.7]
    assert [row.cells["m"].best for row in table.rows] == [False, True]


def test_a_mean_that_lacks_a_training_run_says_so(build_one, result, score):
    missing = score(math.nan, reason="no reference")
    seeds = [result("a", {"m": s}, seed=n) for n, s in enumerate((score(0.1), score(0.3), missing))]
    table = build_one(*seeds, ("b", 0.5))
    assert table.rows[0].cells["m"].value == pytest.approx(0.2)
    assert notes_with(table, "of a: ") == ["m of a: the mean of 2 of 3 training runs."]


def test_seeds_become_mean_and_sample_deviation(build_one, result, score):
    seeds = [result("a", {"m": score(v)}, seed=s) for s, v in ((3, 0.3), (1, 0.1), (2, 0.5))]
    table = build_one(*seeds)
    (cell,) = (row.cells["m"] for row in table.rows)
    assert cell.value == pytest.approx(0.3)
    assert cell.deviation == pytest.approx(0.2)
    assert cell.interval is None
    assert notes_with(table, "sample standard deviation over training runs (3 for a)")


def test_one_seed_keeps_its_interval(build_one, result, score):
    table = build_one(result("a", {"m": score(0.3, interval=(0.2, 0.4))}))
    assert table.rows[0].cells["m"].interval == (0.2, 0.4)
    assert table.rows[0].cells["m"].deviation is None
    assert not notes_with(table, "±")


def test_the_same_job_twice_counts_once(build_one, result, score):
    job = result("a", {"m": score(0.3)})
    assert build_one(job, job).rows[0].cells["m"].deviation is None


def test_decoding_is_named_only_where_it_is_needed(build_one, result):
    table = build_one(
        result("a"),
        result("b"),
        result("b", decoding="beam:5"),
        result("c", decoding="top-p:0.9"),
        result("c", decoding="top-p:0.9", seed=2),
    )
    assert labels(table) == ["a", "b (greedy)", "b (beam:5)", "c (top-p:0.9)"]


def test_labels_of_results_are_used(build_one, result):
    assert labels(build_one(result("gpt2", label="GPT-2"))) == ["GPT-2"]


def test_rows_that_were_trained_differently_are_never_averaged(build_one, result, score):
    table = build_one(
        result("a", {"m": score(0.1)}, preset="quick"),
        result("a", {"m": score(0.9)}, preset="paper", seed=2),
    )
    assert labels(table) == ["a [quick]", "a [paper]"]
    assert values(table) == [0.1, 0.9]
    table = build_one(result("a", training={"lr": 1}), result("a", training={"lr": 2}))
    assert len(set(labels(table))) == 2
    table = build_one(result("a", answering={"n": 1}), result("a", answering={"n": 2}))
    assert len(set(labels(table))) == 2


def test_a_failed_job_is_a_row_of_dashes_with_its_reason(build_one, result, score):
    table = build_one(
        result("a", {"m": score(0.3)}), result("b", status="failed", reason="out of memory")
    )
    assert [row.status for row in table.rows] == ["done", "failed"]
    assert table.rows[1].cells["m"].value is None
    assert "b failed: out of memory." in table.notes
    assert not notes_with(table, "Not available")


@pytest.mark.parametrize(
    ("status", "words"), [("interrupted", "b was interrupted."), ("started", "b has not finished.")]
)
def test_a_job_that_has_not_ended_says_so(build_one, result, status, words):
    table = build_one(result("a"), result("b", status=status))
    assert table.rows[1].status == status
    assert words in table.notes


def test_a_row_with_a_failed_seed_rests_on_the_others(build_one, result, score):
    table = build_one(
        result("a", seed=1, status="failed", reason="no memory"),
        result("a", {"m": score(0.2)}, seed=2),
        result("a", {"m": score(0.4)}, seed=3),
    )
    assert table.rows[0].status == "done"
    assert values(table) == [pytest.approx(0.3)]
    assert "a (seed 1) failed: no memory." in table.notes


def test_upper_bounds_come_last_and_are_never_marked(build_one, result, score):
    parts, shares = np.linspace(0, 1, 10), [0.1] * 10
    table = build_one(
        result("oracle", {"m": score(1.0, parts=parts + 1, shares=shares)}, ranked=False),
        result("a", {"m": score(0.5, parts=parts, shares=shares)}),
        result("b", {"m": score(0.4, parts=parts - 0.5 - 1e-3 * parts, shares=shares)}),
    )
    assert labels(table) == ["a", "b", "oracle"]
    assert [row.ranked for row in table.rows] == [True, True, False]
    oracle = table.rows[2].cells["m"]
    assert (oracle.best, oracle.second, oracle.significant) == (False, False, False)
    assert table.rows[0].cells["m"].best
    assert table.rows[1].cells["m"].significant
    assert "Shown for comparison, not ranked: oracle." in table.notes


def test_a_row_over_fewer_responses_does_not_compete(build_one, result, score):
    table = build_one(
        result("tried", {"m": score(0.9, n=10)}),
        result("a", {"m": score(0.5, n=6740)}),
        result("b", {"m": score(0.4, n=6740)}),
    )
    assert labels(table) == ["a", "b", "tried"]
    assert [row.cells["m"].best for row in table.rows] == [True, False, False]
    assert "6,740 responses per system." in table.notes
    assert "tried: 10 responses only, hence not ranked." in table.notes


def test_examples_that_one_metric_leaves_out_do_not_shrink_a_row(build_one, result, score):
    table = build_one(
        result("a", {"m": score(0.5, n=90), "length": score(9.0, n=100)}),
        result("b", {"m": score(0.4, n=80), "length": score(8.0, n=100)}),
    )
    assert all(row.ranked for row in table.rows)
    assert "100 responses per system." in table.notes


def test_values_of_two_signatures_stand_in_two_columns(build_one, result, score):
    table = build_one(
        result("a", {"m": score(0.5, signature="m|v:1")}),
        result("b", {"m": score(0.9, signature="m|v:2")}),
        result("c", {"m": score(0.4, signature="m|v:1")}),
        metrics=[Column("m", "M", group="G", digits=2)],
    )
    assert [(c.name, c.title, c.signature) for c in table.columns] == [
        ("m:1", "M (1)", "m|v:1"),
        ("m:2", "M (2)", "m|v:2"),
    ]
    assert {(c.group, c.digits) for c in table.columns} == {("G", 2)}
    assert values(table, "m:1") == [0.5, None, 0.4]
    assert values(table, "m:2") == [None, 0.9, None]
    assert table.rows[0].cells["m:1"].best
    assert not table.rows[1].cells["m:2"].best
    assert "M (1): m|v:1." in table.notes
    assert "M (2): m|v:2." in table.notes
    assert notes_with(table, "M (2) of a, c (scored under another signature)")


def test_an_unavailable_value_opens_no_second_column(build_one, result, score):
    table = build_one(
        result("a", {"m": score(0.5, signature="m|model:x")}),
        result("b", {"m": score(math.nan, signature="m|model:none", reason="no model")}),
    )
    assert [column.name for column in table.columns] == ["m"]
    assert table.rows[1].cells["m"].value is None
    assert table.rows[1].cells["m"].reason == "no model"
    assert "Not available: m of b (no model)." in table.notes


def test_reasons_that_hold_for_all_are_said_once(build_one, result, score):
    gone = {name: score(math.nan, reason="no word vectors") for name in ("emb-average", "ue")}
    table = build_one(result("a", gone), result("b", gone), metrics=["emb-average", "ue", "dist-1"])
    assert notes_with(table, "Not available") == [
        "Not available: Average, UE (no word vectors).",
        "Not available: Dist-1 (not scored).",
    ]


def test_metrics_of_one_family_stand_together(build_one, result):
    table = build_one(result("a"), metrics=["bleu-1", "dist-1", "bleu-2", "length", "dist-2"])
    assert [column.title for column in table.columns] == [
        "BLEU-1",
        "BLEU-2",
        "Dist-1",
        "Dist-2",
        "Length",
    ]
    assert [column.group for column in table.columns] == [
        *["Overlap"] * 2,
        *["Diversity"] * 2,
        "Lexical",
    ]


def test_length_has_no_best_and_unknown_metrics_are_printed_plainly(build_one, result, score):
    table = build_one(
        result("a", {"length": score(9.0), "mine": score(1.0)}),
        result("b", {"length": score(8.0), "mine": score(2.0)}),
        metrics=["length", "mine"],
    )
    assert not any(row.cells["length"].best for row in table.rows)
    assert table.rows[1].cells["mine"].best
    assert table.columns[1].title == "mine"


def test_notes_name_the_test_of_every_column(build_one, result, score):
    generator = np.random.default_rng(0)

    def scores(level):
        noise = generator.normal(0, 0.01, 40)
        return {
            "dist-1": score(level, parts=level + noise[:10], shares=[0.1] * 10),
            "bleu-1": score(level, per_response=level + noise),
            "mtld": score(level),
        }

    table = build_one(
        result("a", scores(0.5)),
        result("b", scores(0.1)),
        metrics=["dist-1", "bleu-1", "mtld"],
        rules=Rules(0.05, "holm"),
    )
    assert notes_with(table, "two-sided p < 0.05, corrected within each column after Holm")
    assert "Dist-1: jackknife t-test over 10 groups of dialogues." in table.notes
    assert "BLEU-1: paired t-test over responses." in table.notes
    assert "MTLD: no test for b." in table.notes
    assert "Tests generalise to new conversations, not to new training runs." in table.notes
    assert [row.cells["dist-1"].significant for row in table.rows] == [False, True]


def test_several_runs_are_tested_over_runs_and_dialogues(build_one, result, score):
    generator = np.random.default_rng(0)

    def measured(level):
        parts = level + generator.normal(0, 0.05, 20)
        return score(float(parts.mean()), parts=parts, shares=[0.05] * 20)

    results = [
        result(name, {"m": measured(level)}, seed=seed)
        for name, level in (("a", 0.5), ("b", 0.3))
        for seed in (1, 2, 3)
    ]
    table = build_one(*results)
    assert table.rows[1].cells["m"].significant
    assert "m: t-test over training runs and dialogues, both taken as random." in table.notes
    assert not notes_with(table, "not to new training runs")
    assert "±: sample standard deviation over training runs (3 for a, b)." in table.notes


def test_notes_of_results_name_who_they_hold_for(build_one, result, score):
    done = {"m": score(0.5)}
    table = build_one(
        result("a", done, notes=("limited run", "stopped early")),
        result("b", done, notes=("limited run",)),
        result("c", status="failed"),
        corpus_notes={"demo": ["Invented conversations."], "other": ["Not shown."]},
    )
    assert "limited run." in table.notes
    assert "a: stopped early." in table.notes
    assert "Invented conversations." in table.notes
    assert not notes_with(table, "Not shown")


def test_notes_of_some_seeds_name_them(build_one, result, score):
    notes = {1: ("slow", "odd", "odd"), 2: ("slow", "late"), 3: ("slow", "late")}
    table = build_one(
        *(
            result("a", {"m": score(0.5)}, seed=n, notes=corpus_results)
            for n, corpus_results in notes.items()
        )
    )
    assert {"slow.", "a (seed 1): odd.", "a (seeds 2, 3): late."} <= set(table.notes)


def test_notes_of_all_seeds_that_finished_name_none(build_one, result, score):
    table = build_one(
        result("a", seed=1, status="failed", reason="no memory"),
        result("a", {"m": score(0.2)}, seed=2, notes=("slow",)),
        result("a", {"m": score(0.4)}, seed=3, notes=("slow",)),
        result("b", seed=1, status="failed", reason="no memory"),
        result("b", seed=2, status="failed", reason="no disk"),
    )
    assert {"slow.", "b (seed 1) failed: no memory.", "b (seed 2) failed: no disk."} <= set(
        table.notes
    )


def test_the_same_results_give_the_same_table(make_systems):
    from dataclasses import asdict

    first, second = (build(make_systems(seeds=(1, 2)), metrics=["dist-2", "ue"]) for _ in range(2))
    assert [asdict(table) for table in first] == [asdict(table) for table in second]


def test_a_corpus_where_everything_failed_still_has_its_table(build_one, result):
    table = build_one(
        result("a", status="failed", reason="x"), result("b", status="failed", reason="y")
    )
    assert labels(table) == ["a", "b"]
    assert table.notes == ("a failed: x.", "b failed: y.")


def repeating(score, different, value, n=300):
    return {"m": score(value, n=n), "different": score(different / n, n=n)}


def test_a_system_that_repeats_itself_is_not_the_best_of_anything(build_one, result, score):
    table = build_one(
        result("a", repeating(score, 1, 1.0)),
        result("b", repeating(score, 14, 0.9)),
        result("c", repeating(score, 15, 0.5)),
        result("d", repeating(score, 200, 0.4)),
        result("e", repeating(score, 100, 0.3)),
        result("panel", repeating(score, 1, 1.0), ranked=False),
    )
    cells = [row.cells["m"] for row in table.rows]
    assert [cell.best for cell in cells] == [False, False, True, False, False, False]
    assert [cell.second for cell in cells] == [False, False, False, True, False, False]
    assert table.notes[:3] == (
        "a gave one response to all 300 contexts.",
        "b gave 14 different responses to 300 contexts.",
        "Systems with one response to all contexts, or with fewer than 5 % different ones, "
        "are not marked best.",
    )
    assert not notes_with(table, "panel gave")


def test_one_seed_that_repeats_itself_is_enough_and_is_named(build_one, result, score):
    kinds = {("a", 1): 1, ("a", 2): 90, ("a", 3): 1, ("b", 1): 90, ("c", 1): 90}
    table = build_one(
        *(
            result(name, repeating(score, count, 0.9 if name == "a" else 0.1), seed=seed)
            for (name, seed), count in kinds.items()
        )
    )
    assert [row.cells["m"].best for row in table.rows] == [False, True, True]
    assert table.notes[0] == "a (seeds 1, 3) gave one response to all 300 contexts."


@pytest.mark.parametrize(("contexts", "noted"), [(4, False), (5, True), (20, True)])
def test_one_response_to_few_contexts_counts_from_five_on(
    build_one, result, score, contexts, noted
):
    table = build_one(
        result("a", repeating(score, 1, 0.9, n=contexts)),
        result("b", repeating(score, 2, 0.1, n=contexts)),
    )
    assert table.rows[0].cells["m"].best != noted
    assert bool(notes_with(table, f"a gave one response to all {contexts} contexts.")) == noted


def test_two_responses_to_few_contexts_are_no_repetition(build_one, result, score):
    table = build_one(
        result("a", repeating(score, 2, 0.9, n=19)), result("b", repeating(score, 9, 0.1, n=19))
    )
    assert table.rows[0].cells["m"].best
    assert not notes_with(table, "gave")


def test_responses_without_dialogues_of_several_are_told(build_one, result, score):
    def rows(dialogues):
        values = np.random.default_rng(3).normal(size=(2, 20))
        return (
            result(name, {"m": score(v.mean(), per_response=v, dialogues=np.array(dialogues))})
            for name, v in zip("ab", values, strict=True)
        )

    alone = "Every response is taken as a dialogue of its own"
    assert notes_with(build_one(*rows(np.arange(20.0))), alone)
    assert not notes_with(build_one(*rows(np.arange(20.0) // 2)), alone)
    few = "7 dialogues: too few for tests to find most differences."
    assert few in build_one(*rows(np.arange(20.0) // 3)).notes
    assert not notes_with(build_one(*rows(np.arange(20.0) // 2)), "too few")


def test_tests_of_single_runs_among_several_are_told(build_one, result, score):
    def run(name, seed):
        # c is the best, whichever run of the others it is compared with.
        values = np.random.default_rng(seed).normal(ord(name), 0.1, size=20)
        parts = {"parts": values, "shares": np.full(20, 0.05)}
        return result(name, {"m": score(values.mean(), per_response=values, **parts)}, seed=seed)

    mixed = "Tests that are not over training runs generalise to new conversations only."
    (note,) = notes_with(build_one(run("a", 1), run("a", 2), run("b", 3), run("c", 4)), mixed)
    assert "few runs (a) find large differences alone" in note
    assert not notes_with(build_one(run("a", 1), run("a", 2), run("b", 3)), mixed)


def test_metrics_that_saturate_are_not_ranked(build_one, result, score):
    names = ("intra-dist-1", "mattr-4", "mattr")
    table = build_one(
        *(result(s, {name: score(v) for name in names}) for s, v in (("a", 0.9), ("b", 1.0))),
        metrics=names,
    )
    assert {n for n in names if table.rows[1].cells[n].best} == {"mattr"}
    assert "Intra-dist-1, MATTR-4: not ranked (close to 1 for nearly any text)." in table.notes


@pytest.mark.parametrize(
    ("values", "noted"),
    [((0.5004, 0.5001, 0.1), True), ((0.9, 0.5004, 0.5001), True), ((0.9, 0.5, 0.4), False)],
)
def test_ranks_finer_than_the_print_are_told(build_one, values, noted):
    table = build_one(*zip("abc", values, strict=True))
    assert ("Ranks are taken before rounding." in table.notes) == noted


def test_many_rows_that_failed_hide_no_other_note(result, score):
    failed = [result(f"f{n}", {}, status="failed", reason=f"fault {n}") for n in range(12)]
    seeds = [result("twice", {}, status="failed", reason="no", seed=n) for n in (1, 2)]
    (table,) = build([*seeds, *failed, result("a", {"m": score(0.5)})], metrics=["m"])
    notes = list(table.notes)
    assert notes[:3] == ["twice failed: no.", "f0 failed: fault 0.", "f1 failed: fault 1."]
    assert notes[3].endswith("responses per system.")


def test_what_must_be_known_stands_before_how_it_was_counted(build_one, result, score):
    table = build_one(
        result("a", repeating(score, 90, 0.5), notes=("limited run",)),
        result("b", status="failed", reason="no memory"),
        metrics=["m", "different"],
    )
    assert table.notes == (
        "b failed: no memory.",
        "300 responses per system.",
        "limited run.",
        "m: m|v:1.",
        "Different: m|v:1.",
        f"Computed by dialbench {dialbench.__version__}.",
    )
