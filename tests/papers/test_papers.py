"""The printed numbers: whole, readable, and the same in every form they are kept in."""

from __future__ import annotations

import pytest

from dialbench.errors import InputError, UnknownName
from dialbench.papers import tables as papers
from dialbench.papers.tables import ParameterTable, PrintedTable, TopicTable, load_paper, load_table

ENTRIES = [entry for name in papers.names() for entry in load_paper(name).tables]
SHEETS = [
    table for e in ENTRIES if isinstance(table := load_table(e.paper, e.number), PrintedTable)
]


def named(table: PrintedTable) -> str:
    return f"{table.paper}-{table.table}"


def test_every_paper_is_there() -> None:
    assert papers.names() == ["paraformer", "rl-transformer", "dvs2s", "dialogved", "adand"]
    paper = load_paper("rl_transformer")
    assert paper == load_paper("rl-transformer")
    assert paper.title.startswith("A Randomized Link Transformer")
    assert [entry.number for entry in paper.tables] == ["1", "3", "4", "5"]
    assert [part.number for part in paper.left_out] == ["2"]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.file)
def test_the_index_says_what_the_tables_say(entry: papers.IndexEntry) -> None:
    table = load_table(entry.paper, entry.number)
    assert (table.paper, table.table, table.kind) == (entry.paper, entry.number, entry.kind)
    if isinstance(table, PrintedTable):
        assert table.columns == entry.metrics
        assert len(table.rows) == entry.rows
        assert (table.p_threshold or 0) == entry.p_threshold


@pytest.mark.parametrize("table", SHEETS, ids=named)
def test_the_numbers_are_the_printed_cells(table: PrintedTable) -> None:
    for row in table.rows:
        read = [float(cell.rstrip("*%")) for cell in row.printed]
        assert list(row.values) == read
        assert list(row.star) == [cell.endswith("*") for cell in row.printed]


def test_stars_of_paraformer_never_stand_on_the_best_value() -> None:
    for number in ("1", "2", "4", "5", "6", "7"):
        table = load_table("paraformer", number)
        assert isinstance(table, PrintedTable)
        for place in range(len(table.columns)):
            best = max(row.values[place] for row in table.rows)
            assert not any(row.star[place] for row in table.rows if row.values[place] == best)


def test_rows_are_found_by_label_and_dataset() -> None:
    table = load_table("rl-transformer", "1")
    assert isinstance(table, PrintedTable)
    daily, empathetic = (
        table.row("SVT", corpus) for corpus in ("DailyDialog", "EmpatheticDialogues")
    )
    assert daily is not None
    assert empathetic is not None
    assert (daily.printed[1], empathetic.printed[1]) == ("0.032", "0.023")
    assert table.row("SVT", "PersonaChat") is None
    assert table.row("HRED", "DailyDialog") is None


def test_rows_keep_what_sets_them_apart() -> None:
    table = load_table("rl-transformer", "5")
    assert isinstance(table, PrintedTable)
    assert [row.model_extra for row in table.rows][:2] == [{"d_rand": 64}, {"d_rand": 128}]


def test_other_kinds_of_tables() -> None:
    counts, topics = load_table("paraformer", "A.1"), load_table("adand", "4")
    assert isinstance(counts, ParameterTable)
    assert isinstance(topics, TopicTable)
    for row in counts.rows:
        assert int(row.printed.replace(",", "")) == row.value
    assert {len(topic.words) for topic in topics.topics} == {10}


def test_a_figure_is_no_table() -> None:
    sheets = load_table("paraformer", "1"), load_table("dvs2s", "Figure 2")
    assert [sheet.label for sheet in sheets] == ["Table 1", "Figure 2"]


def test_the_printed_formulas_give_the_printed_counts() -> None:
    table = load_table("paraformer", "A.1")
    assert isinstance(table, ParameterTable)
    n, d_r, d, d_ff = table.n, table.d_r, table.d_qkv, table.d_ff
    assert {row.component: row.value for row in table.rows} == {
        "RL attention": 3 * n * d_r + 3 * (d_r + n) * d + d * d_r + (d_r + d) * n,
        "PaRa attention": 4 * n * d,
        "RL feed-forward": n * d_ff + d_ff + (d_ff + n) * n + n,
        "PaRa feed-forward": n * d_ff + d_ff + d_ff * n + n,
    }


@pytest.mark.parametrize(
    ("paper", "number", "message"),
    [
        ("parformer", "1", "--paper: unknown paper 'parformer'. Did you mean 'paraformer'?"),
        ("paraformer", "A1", "--table: unknown table of paraformer 'A1'. Did you mean 'A.1'?"),
    ],
)
def test_what_is_not_there_gets_a_near_match(paper: str, number: str, message: str) -> None:
    with pytest.raises(UnknownName) as caught:
        load_table(paper, number)
    assert caught.value.message == message


def test_a_row_must_be_as_wide_as_its_table() -> None:
    from dialbench.files import toml

    row = {"system": "a", "printed": ["1"], "values": [1.0], "star": [False, False]}
    sheet = {"paper": "p", "table": "1", "kind": "k", "caption": "c", "dataset": "d"}
    value = {**sheet, "columns": ["x"], "row": [row]}
    with pytest.raises(InputError, match=r"p\.toml:.*row 'a' needs one cell per column"):
        toml.check(value, PrintedTable, where="p.toml")
