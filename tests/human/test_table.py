"""The papers' tables of human judgements from invented ones, worked out by hand."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import sem, ttest_ind, ttest_rel

from dialbench.errors import InputError
from dialbench.human.judgements import Judgement, read_judgements
from dialbench.human.table import human_table, human_table_report
from dialbench.papers.tables import PrintedTable, load_table
from dialbench.records import Row, Table
from dialbench.reporting.format_names import TABLES
from dialbench.reporting.formats.render import render
from dialbench.reporting.options import ReportOptions

VALUES = {"w": 1.0, "t": 0.0, "l": -1.0}
# Three judges, four examples: 6 wins, 5 ties, 1 loss. By example the judges agree in 1, 0, 1 and
# 1/3 of their pairs, 7/12 on average; by chance in (36 + 25 + 1)/144 of them.
FOUR = ("www", "wtl", "ttt", "wwt")
FOUR_KAPPA = (7 / 12 - 62 / 144) / (1 - 62 / 144)


def judgements(
    items: Sequence[str], system: str, against: str = "", criterion: str = ""
) -> list[Judgement]:
    """One letter or digit a judge, "-" where a judge has not judged; one string an example."""
    return [
        Judgement(f"v:{item}", f"j{judge}", f"e{item}", criterion, system, against, value)
        for item, letters in enumerate(items)
        for judge, letter in enumerate(letters)
        if letter != "-"
        for value in [VALUES[letter] if against else float(letter)]
    ]


def table_of(paper: str, number: str, *ratings: list[Judgement], **options: Any) -> Table:
    printed_table = load_table(paper, number)
    assert isinstance(printed_table, PrintedTable)
    return human_table(
        printed_table,
        [judgement for part in ratings for judgement in part],
        ReportOptions(**options),
    )


def row(table: Table, label: str) -> Row:
    (result_row,) = (row for row in table.rows if row.label == label)
    return result_row


def numbers(row: Row, *columns: str) -> list[float | None]:
    return [row.cells[column].value for column in columns]


def test_shares_and_kappa_stand_beside_the_printed_ones() -> None:
    table = table_of("paraformer", "3", judgements(FOUR, "PaRaFormer_N", "Seq2seq", "Fluency"))
    first = table.rows[0]
    assert first.label == "PaRaFormer_N vs Seq2seq"
    ours = numbers(first, "Fluency_Win", "Fluency_Tie", "Fluency_Loss", "Fluency_kappa")
    assert ours == pytest.approx([6 / 12, 5 / 12, 1 / 12, FOUR_KAPPA])
    printed_cells = [
        first.cells[f"Fluency_{part} printed"] for part in ("Win", "Tie", "Loss", "kappa")
    ]
    assert [cell.text for cell in printed_cells] == ["37", "39", "24", "0.44"]
    assert [cell.value for cell in printed_cells] == pytest.approx([0.37, 0.39, 0.24, 0.44])
    assert first.cells["Diversity_Win"].reason == "not judged"
    assert [r.status for r in table.rows] == ["done"] + ["not judged"] * 18
    assert table.notes[0].startswith("Ours: 12 judgements by 3 judges on 4 examples.")
    printed = load_table("paraformer", "3")
    assert isinstance(printed, PrintedTable)
    assert [r.label for r in table.rows] == [r.system for r in printed.rows]
    assert [c.name for c in table.columns[::2]] == list(printed.columns)


def test_alpha_of_all_judgements_of_a_criterion_lets_judges_take_turns() -> None:
    # Pairs on one example: ww, wl, ll. Of six judgements three are wins; 2/6 of the ordered pairs
    # differ, by chance 18/30 would. The last example has one judgement, which says nothing.
    one = judgements(["ww-", "w-l"], "PaRaFormer_N", "Seq2seq", "Fluency")
    other = judgements(["-ll", "w--"], "PaRaFormer_N", "CVAE", "Fluency")
    lonely = judgements(["w--"], "PaRaFormer_N", "CVAE", "Diversity")
    notes = table_of("paraformer", "3", one, other, lonely).notes
    (note,) = (note for note in notes if "alpha (ordinal)" in note)
    start = f"Krippendorff's alpha (ordinal) of all judgements: Fluency {1 - (1 / 3) / 0.6:.3f} ("
    assert note.lower().startswith(start.lower())
    assert "diversity" not in note.lower()


def test_names_are_compared_without_case_and_punctuation_and_in_either_order() -> None:
    ours = judgements(FOUR, "seq2seq", "paraformer-n", "fluency")
    first = table_of("paraformer", "3", ours).rows[0]
    assert numbers(first, "Fluency_Win", "Fluency_Loss") == pytest.approx([1 / 12, 6 / 12])


def test_aspects_stand_side_by_side_as_printed() -> None:
    fluent = judgements(FOUR, "RL Transformer", "CVAE", "Fluency")
    diverse = judgements(["ll", "ww"], "RL Transformer", "CVAE", "Diversity")
    table = table_of("rl-transformer", "3", fluent, diverse)
    result_row = row(table, "RL Transformer vs CVAE")
    assert numbers(result_row, "Win@Fluency", "Win@Coherence", "Win@Diversity") == [0.5, None, 0.5]
    assert result_row.cells["Kappa@Diversity"].value == pytest.approx(1.0)
    assert result_row.cells["Win printed@Diversity"].text == "39"


def test_where_the_paper_says_so_judges_who_differ_make_a_tie() -> None:
    result_row = row(table_of("adand", "2", judgements(FOUR, "AdaND", "CVAE")), "AdaND vs CVAE")
    assert numbers(result_row, "Win", "Loss", "Tie") == [0.25, 0.0, 0.75]
    assert result_row.cells["Kappa"].value == pytest.approx(FOUR_KAPPA)
    # Wilson's interval from the textbook's formula; the variance of four items, estimated with
    # three degrees of freedom, is that of three whose share is known.
    n, z = 3, 1.959964
    centre, reach = 0.25 + z**2 / (2 * n), z * math.sqrt(0.25 * 0.75 / n + z**2 / (4 * n**2))
    ends = [(centre - reach) / (1 + z**2 / n), (centre + reach) / (1 + z**2 / n)]
    assert result_row.cells["Win"].interval == pytest.approx(ends, rel=1e-5)
    assert "| AdaND vs CVAE | 25.00 | 36.98 |" in render(
        table_of("adand", "2", judgements(FOUR, "AdaND", "CVAE")), "md"
    )


def test_rows_that_are_criteria_have_their_pairs_in_columns() -> None:
    # Equal on 3 of 4; the first judge says win, tie, loss on 2, 1, 1, the second on 1, 2, 1.
    kappa = (3 / 4 - 5 / 16) / (1 - 5 / 16)
    fluent = judgements(["ww", "wt", "ll", "tt"], "DialogVED", "PLATO", "fluency")
    unanimous = judgements(["ww", "ww"], "DialogVED", "PLATO", "Overall")
    table = table_of("dialogved", "6", fluent, unanimous)
    result_row = row(table, "Fluency")
    assert numbers(result_row, "group1_Win", "group1_Lose", "group2_Win") == [3 / 8, 2 / 8, None]
    assert numbers(row(table, "Overall"), "group1_Win") == [1.0]
    assert f"group1: DialogVED vs PLATO, average kappa {kappa:.3f}." in table.notes


def test_ratings_give_shares_kappa_and_a_mean() -> None:
    # Of six ratings 1, 4 and 1; pairs agree on one example of three; by chance in 18/36.
    result_row = row(table_of("dvs2s", "2", judgements(["01", "11", "21"], "S2SA")), "S2SA")
    ours = numbers(result_row, "share_0", "share_1", "share_2", "Kappa", "mean")
    assert ours == pytest.approx([1 / 6, 4 / 6, 1 / 6, (1 / 3 - 1 / 2) / (1 / 2), 1.0])
    # Three examples are too few to tell how far their mean would move; eight are enough.
    assert result_row.cells["mean"].interval is None
    assert "mean printed" not in result_row.cells
    cell = row(table_of("dvs2s", "2", *rated(S2SA=RATED)), "S2SA").cells["mean"]
    average, reach = np.mean(means(RATED)), 2.364624 * sem(means(RATED))
    assert cell.interval == pytest.approx([average - reach, average + reach])


# Three judges rate eight examples that differ more than the systems do. S2SA is behind DVS2S by a
# third or two on every example, CVAE by as much on some and ahead on others.
RATED = ("222", "221", "211", "222", "111", "110", "100", "222")
BEHIND = ("221", "211", "210", "211", "110", "100", "000", "221")
CLOSE = ("222", "211", "211", "221", "211", "100", "100", "221")


def means(items: Sequence[str]) -> list[float]:
    return [sum(map(int, item)) / len(item) for item in items]


def rated(**systems: Sequence[str]) -> list[list[Judgement]]:
    return [judgements(items, system.replace("_", "-")) for system, items in systems.items()]


def marked(table: Table) -> dict[str, str]:
    """The systems whose mean has a mark: B for best, S for second best, a star."""
    cells = {row.label: row.cells["mean"] for row in table.rows}
    marks = {n: "B" * c.best + "S" * c.second + "*" * c.significant for n, c in cells.items()}
    return {label: mark for label, mark in marks.items() if mark}


def on_means(table: Table) -> list[str]:
    return [note for note in table.notes if note.startswith(("*", "Mean", "Shown"))]


STAR = "*: differs from the best of its column (two-sided p < 0.01, {})."
FREE = STAR.format("not corrected for several comparisons")
PAIRED = (
    "Mean: paired t-test over the mean ratings of the examples on which both systems were "
    "rated ({})."
)


def test_a_star_says_that_the_mean_ratings_of_the_same_examples_differ() -> None:
    best, behind, close = means(RATED), means(BEHIND), means(CLOSE)
    assert ttest_rel(best, behind).pvalue < 0.001
    assert ttest_ind(best, behind).pvalue > 0.1
    assert 0.1 < ttest_rel(best, close).pvalue < 1
    table = table_of("dvs2s", "2", *rated(S2SA=BEHIND, CVAE=CLOSE, DVS2S=RATED))
    assert marked(table) == {"S2SA": "*", "CVAE": "S", "DVS2S": "B"}
    assert on_means(table) == [FREE, PAIRED.format("8")]
    assert all(
        not (cell.best or cell.second or cell.significant)
        for row in table.rows
        for name, cell in row.cells.items()
        if name != "mean"
    )
    message = "Printed: t-test DVS2S against each baseline (p < 0.01), no value starred."
    assert message in table.notes
    shown = render(table, "md").splitlines()
    (line,) = (line for line in shown if line.startswith("| S2SA |"))
    assert line.endswith(r"| 1.00\* |")
    (line,) = (line for line in shown if line.startswith("| DVS2S |"))
    assert line.endswith("| **1.38** |")


def test_several_judges_of_an_example_are_one_value() -> None:
    # Six examples, on each of which the judges agree: 18 pairs of ratings are 6 of examples.
    best, other = ("222", "222", "222", "222", "111", "111"), ("111",) * 6
    of_judgements = [[float(c) for c in "".join(items)] for items in (best, other)]
    assert ttest_rel(of_judgements[0], of_judgements[1]).pvalue < 0.001
    assert 0.01 < ttest_rel(means(best), means(other)).pvalue < 0.05
    ratings = rated(DVS2S=best, S2SA=other)
    assert marked(table_of("dvs2s", "2", *ratings)) == {"DVS2S": "B"}
    loose = table_of("dvs2s", "2", *ratings, alpha=0.05)
    assert marked(loose) == {"DVS2S": "B", "S2SA": "*"}
    assert any("p < 0.05" in note for note in on_means(loose))


def test_examples_on_which_one_system_was_rated_are_no_part_of_the_test() -> None:
    # On the first four S2SA is behind by 2/3 or 1/3; four more of its own would hide that.
    gaps = [a - b for a, b in zip(means(RATED[:4]), means(BEHIND[:4]), strict=True)]
    assert gaps == pytest.approx([1 / 3, 1 / 3, 1 / 3, 2 / 3])
    # Their mean, 5/12, is five standard errors: p of t(3).
    assert ttest_rel(means(RATED[:4]), means(BEHIND[:4])).pvalue == pytest.approx(0.0154, abs=1e-4)
    rated_alone = ["---"] * 4 + ["000", "222", "000", "222"]
    halves = [*BEHIND[:4], *rated_alone]
    table = table_of("dvs2s", "2", *rated(DVS2S=RATED[:4], S2SA=halves, CVAE=CLOSE[:3]), alpha=0.02)
    assert marked(table) == {"DVS2S": "B", "CVAE": "S", "S2SA": "*"}
    assert PAIRED.format("3 to 4") in table.notes


@pytest.mark.parametrize(("common", "message"), [(1, "1 example"), (0, "0 examples")])
def test_fewer_than_two_common_examples_allow_no_test(common: int, message: str) -> None:
    alone = [*BEHIND[:common], *["---"] * (8 - common), "000", "001", "000"]
    table = table_of("dvs2s", "2", *rated(DVS2S=RATED, S2SA=alone))
    assert marked(table) == {"DVS2S": "B"}
    assert on_means(table) == [
        f"Mean: no test for S2SA ({message} in common with DVS2S, a test needs 2)."
    ]
    three = rated(DVS2S=RATED, S2SA=alone, CVAE=BEHIND)
    table = table_of("dvs2s", "2", *three, correction="holm")
    # One test was made: Holm has nothing to correct it for.
    assert marked(table) == {"DVS2S": "B", "CVAE": "S*"}
    assert on_means(table)[0] == STAR.format("corrected within each column after Holm")


def test_equal_ratings_have_no_star() -> None:
    table = table_of("dvs2s", "2", *rated(DVS2S=RATED, S_DVS2S=RATED, S2SA=BEHIND))
    assert marked(table) == {"DVS2S": "B", "S-DVS2S": "B", "S2SA": "S*"}
    table = table_of("dvs2s", "2", *rated(DVS2S=RATED, S_DVS2S=RATED))
    assert marked(table) == {"DVS2S": "B", "S-DVS2S": "B"}
    assert on_means(table) == []
    # As good on every example that both share, though not in the table.
    table = table_of("dvs2s", "2", *rated(DVS2S=[*RATED, "222"], S_DVS2S=RATED))
    assert marked(table) == {"DVS2S": "B"}
    assert on_means(table) == [FREE, PAIRED.format("8")]


def test_holm_corrects_for_the_comparisons_with_the_best() -> None:
    # Two p between 0.005 and 0.01.
    best, single = ("222",) * 8, ("222", "221", "221", "221", "211", "211", "211", "222")
    p = ttest_rel(means(best), means(single)).pvalue
    assert 0.005 < p < 0.01
    ratings = rated(DVS2S=best, S2SA=single, CVAE=single)
    assert marked(table_of("dvs2s", "2", *ratings)) == {"DVS2S": "B", "S2SA": "S*", "CVAE": "S*"}
    table = table_of("dvs2s", "2", *ratings, correction="holm")
    assert marked(table) == {"DVS2S": "B", "S2SA": "S", "CVAE": "S"}


def test_who_is_better_on_the_common_examples_has_no_star_for_being_worse() -> None:
    # DVS2S leads in the table by examples that S2SA was not rated on.
    table = table_of("dvs2s", "2", *rated(DVS2S=[*BEHIND, *["222"] * 9], S2SA=RATED))
    assert marked(table) == {"DVS2S": "B"}
    assert (
        "Mean: no star for S2SA (on the examples in common with DVS2S it is "
        in (on_means(table)[-1])
    )


def test_the_same_difference_everywhere_is_as_sure_as_there_are_examples() -> None:
    for count, mark in ((2, {}), (8, {"S2SA": "*"})):
        table = table_of("dvs2s", "2", *rated(DVS2S=["222"] * count, S2SA=["221"] * count))
        assert marked(table) == {"DVS2S": "B"} | mark


def test_systems_of_ones_own_are_shown_and_not_compared() -> None:
    table = table_of("dvs2s", "2", *rated(DVS2S=CLOSE, S2SA=BEHIND, Mine=RATED))
    assert marked(table)["DVS2S"] == "B"
    assert "Mine" not in marked(table)
    assert "Shown for comparison, not ranked: Mine." in table.notes
    table = table_of("dvs2s", "2", *rated(DVS2S=CLOSE, Mine=RATED))
    assert marked(table) == {}
    assert "Mean: no test (fewer than two of the paper's systems were rated)." in table.notes


def test_pairs_of_systems_have_no_marks() -> None:
    table = table_of(
        "adand", "2", judgements(FOUR, "AdaND", "CVAE"), judgements(FOUR, "AdaND", "LAED")
    )
    cells = [cell for row in table.rows for cell in row.cells.values()]
    assert not any(cell.best or cell.second or cell.significant for cell in cells)
    assert on_means(table) == []


def test_a_level_of_significance_that_is_none_is_a_mistake() -> None:
    with pytest.raises(InputError, match="2 is no level of significance"):
        table_of("dvs2s", "2", *rated(DVS2S=RATED), alpha=2)


def test_a_rating_beyond_the_scale_is_named_with_its_line() -> None:
    with pytest.raises(InputError, match=r"v:1: rating 3 is not on the scale 0, 1, 2"):
        table_of("dvs2s", "2", judgements(["01", "13"], "S2SA"))


def test_judges_may_take_turns_but_every_example_needs_as_many() -> None:
    turns = judgements(["ww--", "--ll", "-wt-", "t--t"], "AdaND", "LAED")
    table = table_of("adand", "2", turns)
    # Equal on 3 of 4 examples; of eight verdicts 3 wins, 3 ties and 2 losses.
    chance = (9 + 9 + 4) / 64
    result_row = row(table, "AdaND vs LAED").cells["Kappa"].value
    assert result_row == pytest.approx((3 / 4 - chance) / (1 - chance))
    table = table_of("adand", "2", [*turns, *judgements(["--w"], "AdaND", "LAED")])
    assert row(table, "AdaND vs LAED").cells["Kappa"].value is None
    assert any("AdaND vs LAED: no kappa (Fleiss" in note for note in table.notes)


def test_pairs_that_only_the_file_knows_stand_below() -> None:
    my_judgements = judgements(["w", "l"], "Mine", "PaRaFormer_K", "Coherence")
    turned = judgements(["w", "w"], "paraformer_k", "mine", "Fluency")
    other = judgements(["w"], "Mine", "CVAE", "Politeness")
    table = table_of("paraformer", "3", my_judgements, turned, other)
    last = table.rows[-1]
    assert (last.label, last.ranked, len(table.rows)) == ("Mine vs PaRaFormer_K", False, 20)
    assert numbers(last, "Coherence_Win", "Fluency_Win", "Fluency_Loss") == [0.5, 0.0, 1.0]
    assert last.cells["Coherence_Win printed"].value is None
    assert "1 judgement on other systems or by other criteria left out." in table.notes
    sides = table_of(
        "rl-transformer",
        "3",
        judgements(["w"], "Mine", "RL Transformer", "Coherence"),
        judgements(["w"], "RL Transformer", "Mine", "Fluency"),
    )
    assert [r.label for r in sides.rows[3:]] == ["Mine vs RL Transformer"]
    assert numbers(sides.rows[3], "Win@Coherence", "Win@Fluency") == [1.0, 0.0]
    rated = table_of("dvs2s", "2", judgements(["2"], "Mine"), judgements(["w"], "S2SA", "Mine"))
    assert [r.label for r in rated.rows[6:]] == ["Mine"]


def test_without_the_printed_values_the_table_has_the_papers_columns() -> None:
    table = table_of("adand", "2", judgements(FOUR, "AdaND", "CVAE"), printed=False)
    assert [c.title for c in table.columns] == ["Win", "Loss", "Tie", "Kappa"]
    assert not any("Printed" in note for note in table.notes)


def test_judgements_of_something_else_are_a_mistake() -> None:
    with pytest.raises(InputError, match="no judgement belongs to table 2 of adand"):
        table_of("adand", "2", judgements(FOUR, "AdaND", "CVAE", "Fluency"))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "judgements.csv"
    names = ("judge", "example", "criterion", "system", "against", "verdict")
    words: Mapping[float, str] = {1.0: "win", 0.0: "tie", -1.0: "loss"}
    lines = io.StringIO()
    writer = csv.writer(lines)
    writer.writerow(names)
    for v in judgements(FOUR, "<b>Mine</b>", "Seq2seq"):
        writer.writerow((v.judge, v.example, v.criterion, v.system, v.against, words[v.value]))
    for v in judgements(FOUR, "AdaND", "Seq2seq"):
        writer.writerow((v.judge, v.example, v.criterion, v.system, v.against, words[v.value]))
    path.write_text(lines.getvalue())
    return path


def test_the_command_writes_every_format(
    command: Callable[..., Any], file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    printed_table = (
        "report",
        "--paper",
        "adand",
        "--table",
        "2",
        "--judgements",
        file,
        "--out",
        out,
    )
    result = command(*printed_table, "--formats", ",".join([*TABLES, "png"]))
    assert result.code == 0, result.err
    assert "AdaND vs Seq2Seq" in result.out
    assert {path.name for path in out.iterdir()} == {
        "report.html",
        *(f"adand-2.{format}" for format in TABLES if format != "html"),
    }
    assert "<b>Mine" not in (out / "report.html").read_text(encoding="utf-8")
    assert len(read_judgements(file)) == 24


def test_the_command_writes_stars_and_why_there_is_none(
    command: Callable[..., Any], tmp_path: Path
) -> None:
    path, out = tmp_path / "ratings.csv", tmp_path / "out"
    ratings = [v for part in rated(DVS2S=RATED, S2SA=BEHIND, CVAE=["112"]) for v in part]
    lines = (f"{v.judge},{v.example},{v.system},{v.value:g}" for v in ratings)
    path.write_text("\n".join(["judge,example,system,verdict", *lines]))
    printed_table = (
        "report",
        "--paper",
        "dvs2s",
        "--table",
        "2",
        "--judgements",
        path,
        "--out",
        out,
    )
    result = command(*printed_table, "--formats", "txt,html")
    assert result.code == 0, result.err
    text = (out / "dvs2s-2.txt").read_text(encoding="utf-8").splitlines()
    ends = {line.split()[0]: line.split()[-1] for line in text if line.startswith(("DV", "S2SA "))}
    assert ends == {"DVS2S": "1.38¹", "S2SA": "1.00*"}
    assert "Mean: no test for CVAE (1 example in common with DVS2S, a test needs 2)." in text
    strict = human_table_report("dvs2s", "2", path, out, ReportOptions(["txt"], 1e-6, "holm"))
    assert marked(strict[0][0]) == {"DVS2S": "B", "CVAE": "S"}
    assert "p < 1e-06, corrected within each column" in (out / "dvs2s-2.txt").read_text("utf-8")
    assert "no significant difference shown from CVAE" in (out / "report.html").read_text("utf-8")


def test_the_file_that_the_document_shows_can_be_read(tmp_path: Path) -> None:
    text = (Path(__file__).resolve().parents[2] / "docs/reports.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"```\n(judge,.*?)```", text, re.DOTALL)
    path = tmp_path / "judgements.csv"
    path.write_text(shown, encoding="utf-8")
    first = table_of("paraformer", "3", read_judgements(path)).rows[0]
    assert numbers(first, "Fluency_Win", "Fluency_Tie") == [0.5, 0.5]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "judgements stand beside a table of a paper"),
        (("--paper", "adand"), "a table is named by both"),
        (("--paper", "adand", "--table", "1"), "not of human judgements"),
        (("--paper", "adand", "--table", "4"), "not of human judgements"),
        (("--paper", "adand", "--table", "2", "--corpus", "demo"), "without --suite"),
        (("--paper", "paraformer", "--table", "3"), "no judgement belongs to table 3"),
    ],
)
def test_mistakes_in_the_command_are_told_in_one_line(
    command: Callable[..., Any], file: Path, options: Sequence[str], message: str
) -> None:
    result = command("report", "--judgements", file, *options)
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert message in result.err


def test_judgements_are_not_replaced_by_their_table(
    command: Callable[..., Any], file: Path, tmp_path: Path
) -> None:
    path = tmp_path / "adand-2.csv"
    path.write_bytes(file.read_bytes())
    table = ("report", "--paper", "adand", "--table", "2", "--judgements", path)
    result = command(*table, "--out", tmp_path)
    assert (result.code, "the report might overwrite it" in result.err) == (2, True)
    assert path.read_bytes() == file.read_bytes()
    shown = command(*table, "--out", tmp_path / "out", "--transpose", "--notes", "none").out
    assert shown.splitlines()[2].startswith("Metric")
