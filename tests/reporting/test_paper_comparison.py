"""Ours beside the printed numbers: order, cells, agreement and what is said below."""

from __future__ import annotations

import csv
import math

import pytest

from dialbench.records import Score
from dialbench.reporting.format_names import TABLES
from dialbench.reporting.formats.render import render
from dialbench.reporting.tables.paper_comparison import (
    STARS,
    TAU,
    Pair,
    compare_with_paper,
    rank_correlation,
    reproduced_stars,
)
from dialbench.reporting.tables.significance import Rules
from dialbench.suites.suite import load_suite


@pytest.fixture
def suite():
    return load_suite("paraformer-4")


@pytest.fixture
def compare_values(suite, result, score):
    """The table of `suite` from values of dist-1 and dist-2 by label; Seq_2 cannot be run."""

    def make(values, missing=None, **more):
        rows = {
            label: [result(label, {"dist-1": score(one), "dist-2": score(two)}, **more)]
            for label, (one, two) in values.items()
        }
        return compare_with_paper(suite, suite.groups[0], rows, missing or {}, Rules(0.05)).table

    return make


OURS = {"Full": (0.02, 0.3), "Alt": (0.04, 0.1), "Seq_1": (0.03, 0.2)}


def test_rows_columns_and_groups_are_the_papers(compare_values):
    table = compare_values(OURS, {"Seq_2": "no such system"})
    assert [row.label for row in table.rows] == ["Alt", "Full", "Seq_1", "Seq_2", TAU, STARS]
    assert [c.title for c in table.columns] == ["ours", "printed", "diff."] * 4
    groups = [column.group for column in table.columns]
    assert groups == [name for name in ("Dist-1", "Dist-2", "Dist-3", "UE") for _ in range(3)]
    assert [row.status for row in table.rows[:4]] == ["done"] * 3 + ["not available"]


def test_a_cell_is_ours_the_printed_one_and_the_difference(compare_values):
    cells = compare_values(OURS).rows[1].cells
    assert cells["dist-1"].value == 0.02
    printed = cells["dist-1:printed"]
    assert (printed.value, printed.text, printed.significant) == (0.018, "0.018", True)
    difference = cells["dist-1:difference"]
    assert difference.value == pytest.approx(0.002)
    assert difference.text == "+0.002"
    assert cells["dist-2:difference"].text == "+0.229"


def test_what_is_missing_stays_visible_with_its_reason(suite, result, score):
    columns = tuple(
        column.model_copy(update={"absent": "nobody judges"} if column.metric == "ue-raw" else {})
        for column in suite.columns
    )
    suite = suite.model_copy(update={"columns": columns})
    rows = {"Alt": [result("Alt", {"dist-1": score(0.04), "dist-2": score(0.1)})]}
    missing = {"Seq_2": "no such system"}
    table = compare_with_paper(suite, suite.groups[0], rows, missing, Rules(0.05)).table
    full, absent = table.rows[1], table.rows[3]
    assert (full.status, absent.status) == ("not run", "not available")
    assert full.cells["dist-1"].value is None
    assert full.cells["dist-1:printed"].value == 0.018
    assert full.cells["dist-1:difference"].value is None
    assert "Seq_2: not available (no such system)." in table.notes
    assert "Full: not run." in table.notes
    assert any("UE: no value of ours (nobody judges)" in note for note in table.notes)
    assert any("of different judges" in note for note in table.notes)
    assert table.rows[0].cells["ue-raw"].value is None
    assert table.rows[0].cells["ue-raw:printed"].value == 0.085


def test_what_holds_for_several_columns_is_said_once(suite, result, score):
    columns = tuple(c.model_copy(update={"note": "of another tokeniser"}) for c in suite.columns)
    suite = suite.model_copy(update={"columns": columns})
    rows = {"Alt": [result("Alt", {"dist-1": score(0.04), "dist-2": score(0.1)})]}
    notes = compare_with_paper(suite, suite.groups[0], rows, {}, Rules(0.05)).table.notes
    (note,) = (note for note in notes if "another tokeniser" in note)
    assert note == f"{', '.join(column.heading for column in columns)}: of another tokeniser."


def test_agreement_stands_below_the_rows(compare_values):
    # Dist-1, ours Alt > Seq_1 > Full as printed; Dist-2 the other way round.
    tau, stars = compare_values(OURS).rows[4:]
    assert (tau.ranked, stars.ranked) == (False, False)
    assert [row.summary for row in compare_values(OURS).rows] == [False] * 4 + [True] * 2
    assert render(compare_values(OURS), "html").count(" data-summary>") == 2
    assert tau.cells["dist-1:difference"].text == "1.00 (3)"
    assert tau.cells["dist-2:difference"].text == "−1.00 (3)"
    # Full and Seq_2 are starred in Dist-1, Full and Seq_1 in Dist-2; Seq_2 was not run.
    assert stars.cells["dist-1:difference"].text == "1 of 1"
    assert stars.cells["dist-2:difference"].text == "0 of 2"


def test_a_failed_row_says_so(compare_values):
    table = compare_values(
        {"Alt": (0.04, 0.1), "Full": (0.02, 0.3)}, status="failed", reason="out of memory"
    )
    assert [row.status for row in table.rows[:2]] == ["failed", "failed"]
    assert "Alt failed: out of memory." in table.notes


def test_seeds_become_mean_and_deviation(suite, result, score):
    seeds = [result("a", {"dist-1": score(v)}, seed=s) for s, v in ((2, 0.06), (1, 0.02))]
    table = compare_with_paper(suite, suite.groups[0], {"Alt": seeds}, {}, Rules()).table
    cell = table.rows[0].cells["dist-1"]
    assert cell.value == pytest.approx(0.04)
    assert cell.deviation == pytest.approx(math.sqrt(2) * 0.02)
    assert table.rows[0].cells["dist-1:difference"].text == "+0.001"


def test_a_row_that_repeats_itself_is_named_before_the_paper(suite, result, score):
    kinds = {"Alt": 1, "Full": 90}
    rows = {
        name: [result(name, {"dist-1": score(0.1), "different": score(count / 300, n=300)})]
        for name, count in kinds.items()
    }
    notes = compare_with_paper(suite, suite.groups[0], rows, {}, Rules()).table.notes
    assert notes[0] == "Alt gave one response to all 300 contexts."
    assert notes[2].startswith("Printed: ")
    assert len(set(notes)) == len(notes)


def test_settings_of_the_preset_are_told(compare_values):
    assert "Settings in place of those of preset quick: layers=4." in compare_values(OURS).notes
    assert not any("In place of" in note for note in compare_values(OURS, preset="paper").notes)


def test_another_corpus_does_not_compare(suite, result, score):
    other = suite.on("demo")
    rows = {"Alt": [result("a", {"dist-1": score(0.1)})]}
    table = compare_with_paper(other, other.groups[0], rows, {}, Rules()).table
    assert any("the values are not comparable" in note for note in table.notes)
    assert not any(
        "neither values" in note
        for note in compare_with_paper(suite, suite.groups[0], rows, {}, Rules()).table.notes
    )


def test_values_under_two_signatures_stand_apart(suite, result, score):
    rows = {
        "Alt": [result("a", {"dist-1": score(0.1, signature="tok:x")})],
        "Full": [result("b", {"dist-1": score(0.2, signature="tok:y")})],
    }
    table = compare_with_paper(suite, suite.groups[0], rows, {}, Rules()).table
    assert [c.name for c in table.columns][:6] == [
        f"dist-1:{n}{part}" for n in (1, 2) for part in ("", ":printed", ":difference")
    ]
    assert table.rows[0].cells["dist-1:1:difference"].value == pytest.approx(0.061)
    assert table.rows[0].cells["dist-1:2:difference"].value is None


def test_our_values_have_the_papers_digits(result, score):
    suite = load_suite("rl-1")
    rows = {"SVT": [result("svt", {"length": score(10.2), "mtld": score(1 / 3)})]}
    table = compare_with_paper(suite, suite.groups[0], rows, {}, Rules()).table
    assert {c.name: c.digits for c in table.columns}["length"] == 3
    assert table.rows[2].cells["length:difference"].text == "−0.044"


@pytest.mark.parametrize("format", TABLES)
def test_every_format_shows_it(compare_values, format):
    text = render(compare_values(OURS), format)
    for part in ("Dist-1", "printed", "0.018", "Alt"):
        assert part.replace("Dist-1", "dist-1" if format == "csv" else "Dist-1") in text


def test_csv_keeps_the_numbers(compare_values):
    lines = csv.DictReader(render(compare_values(OURS), "csv").splitlines())
    cells_of = {(line["system"], line["metric"]): line["value"] for line in lines}
    assert cells_of["Full", "dist-1:printed"] == "0.018"
    assert cells_of[TAU, "dist-2:difference"] == "-1.0"
    assert cells_of[STARS, "dist-1:difference"] == "1.0"
    assert cells_of["Seq_2", "dist-1"] == ""


class TestAgreement:
    def test_rows_without_ours_do_not_count(self):
        pairs = [Pair(1, 10), Pair(None, 15), Pair(2, 20), Pair(3, 5)]
        # (1,2) agrees, (1,3) and (2,3) do not.
        assert rank_correlation(pairs) == (pytest.approx(-1 / 3), 3)

    def test_ties_are_corrected_for(self):
        value, count = rank_correlation([Pair(1, 1), Pair(1, 2), Pair(2, 3)])
        assert (value, count) == (pytest.approx(2 / math.sqrt(6)), 3)

    def test_one_row_has_no_order(self):
        value, count = rank_correlation([Pair(1, 1), Pair(None, 2)])
        assert math.isnan(value)
        assert count == 1


class TestStarred:
    def test_signs_against_the_printed_best(self):
        pairs = [Pair(0.5, 0.9), Pair(0.4, 0.1, True), Pair(0.6, 0.2, True), Pair(0.1, 0.8)]
        assert reproduced_stars(pairs, "higher") == (1, 2)

    def test_where_lower_is_better_the_best_is_the_lowest(self):
        pairs = [Pair(0.5, 0.1), Pair(0.6, 0.9, True), Pair(0.4, 0.8, True)]
        assert reproduced_stars(pairs, "lower") == (1, 2)

    def test_an_equal_value_has_no_sign(self):
        assert reproduced_stars([Pair(0.5, 0.9), Pair(0.5, 0.1, True)], "higher") == (0, 1)

    def test_without_the_best_nothing_compares(self):
        pairs = [Pair(None, 0.9), Pair(0.4, 0.1, True), Pair(0.5, 0.8)]
        assert reproduced_stars(pairs, "higher") == (0, 0)

    def test_starred_rows_without_ours_do_not_count(self):
        pairs = [Pair(0.5, 0.9), Pair(None, 0.1, True), Pair(0.4, 0.2, True)]
        assert reproduced_stars(pairs, "higher") == (1, 1)

    def test_several_best_values(self):
        best = [Pair(0.5, 0.9), Pair(0.3, 0.9), Pair(None, 0.9)]
        assert reproduced_stars([*best, Pair(0.4, 0.1, True)], "higher") == (0, 1)
        assert reproduced_stars([*best, Pair(0.2, 0.1, True)], "higher") == (1, 1)

    @pytest.mark.parametrize("direction", ["higher", "none"])
    def test_nothing_starred(self, direction):
        assert reproduced_stars([Pair(0.5, 0.9), Pair(0.4, 0.1)], direction) == (0, 0)
        assert reproduced_stars([], direction) == (0, 0)


def test_what_the_paper_prints_in_percent_is_compared_as_a_fraction(result, score):
    suite = load_suite("dvs2s-5")
    cells_of = {
        "0 content words": [result("a", {"emb-average": score(0.25)})],
        "100 content words": [result("b", {"emb-average": score(0.3)})],
    }
    table = compare_with_paper(suite, suite.groups[0], cells_of, {}, Rules()).table
    cells = table.rows[0].cells  # printed: 23.43
    assert cells["emb-average"].value == 0.25
    assert cells["emb-average:printed"].value == pytest.approx(0.2343)
    assert cells["emb-average:difference"].value == pytest.approx(0.0157)
    shown = render(table, "txt")
    first = next(line for line in shown.splitlines() if line.startswith("0 content words"))
    assert "25.00" in first
    assert "23.43" in first
    assert "+1.57" in first
    assert table.rows[6].cells["emb-average:difference"].text == "1.00 (2)"


def test_a_metric_of_the_run_stands_beside_the_printed_one(result):
    suite = load_suite("dvs2s-4")
    assert suite.metrics == ("word-recall",)
    cells_of = {
        f"{words} content words": [result(label, {"word-recall": Score(recall, 0, "word-recall")})]
        for words, label, recall in ((0, "a", 0.5), (100, "b", 0.75))
    } | {"1000 content words": [result("c", {})]}
    table = compare_with_paper(suite, suite.groups[0], cells_of, {}, Rules()).table
    recalls = [row.cells["word-recall"] for row in table.rows[:3]]
    assert [cell.value for cell in recalls] == [0.5, 0.75, None]
    assert recalls[2].reason == "not scored"
    assert table.rows[0].cells["word-recall:difference"].value == pytest.approx(0.5 - 0.6302)


class TestShares:
    SUITE = load_suite("dvs2s-speed")

    def cells(self, **results):
        table = compare_with_paper(self.SUITE, self.SUITE.groups[0], results, {}, Rules()).table
        assert [row.label for row in table.rows[:2]] == ["S2SA", "DVS2S"]
        return [row.cells for row in table.rows[:2]]

    @pytest.fixture
    def timed(self, result):
        def timed(name, seconds, **more):
            signature = "seconds-per-word|device:cpu"
            return result(name, {"seconds-per-word": Score(seconds, 0, signature)}, **more)

        return timed

    def test_values_are_shares_of_one_row(self, timed):
        printed_values = [timed("s2sa", 0.1, seed=1), timed("s2sa", 0.3, seed=2)]
        whole, part = self.cells(S2SA=printed_values, DVS2S=[timed("dvs2s", 0.05)])
        assert whole["seconds-per-word"].value == pytest.approx(1.0)
        assert part["seconds-per-word"].value == pytest.approx(0.25)
        assert part["seconds-per-word:difference"].value == pytest.approx(0.25 - 0.6)

    def test_a_seed_without_a_value_does_not_count(self, timed):
        printed_values = [timed("s2sa", math.nan, seed=1), timed("s2sa", 0.3, seed=2)]
        _, part = self.cells(S2SA=printed_values, DVS2S=[timed("dvs2s", 0.15)])
        assert part["seconds-per-word"].value == pytest.approx(0.5)

    def test_without_that_row_there_is_no_share(self, timed):
        _, part = self.cells(DVS2S=[timed("dvs2s", 0.05)])
        assert part["seconds-per-word"].value is None
        assert part["seconds-per-word"].reason == "there is no value of S2SA"
