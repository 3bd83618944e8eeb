"""Topic words as tables, and where a report puts them."""

from __future__ import annotations

import pytest

from dialbench.reporting.formats.render import render
from dialbench.reporting.options import ReportOptions
from dialbench.reporting.plots.topic_maps import topic_maps
from dialbench.reporting.report import write
from dialbench.reporting.tables.topics import topic_words

WORDS = [["boat", "sail", "wind"], ["bread", "oven"]]


@pytest.fixture
def topic_result(result):
    """Makes a result of a system that tells its topics."""

    def topic_result(**more):
        return result("adand", facts={"topics": WORDS, **more.pop("facts", {})}, **more)

    return topic_result


def rows(table) -> dict[str, list[str]]:
    return {row.label: [cell.text for cell in row.cells.values()] for row in table.rows}


class TestTables:
    def test_a_row_a_topic_in_the_order_of_words(self, topic_result, result):
        [table] = topic_words([topic_result(label="AdaND"), result("plain")])
        assert rows(table) == {"AdaND, topic 1": WORDS[0], "AdaND, topic 2": WORDS[1]}
        assert [column.title for column in table.columns] == ["1", "2", "3"]

    def test_decodings_of_one_training_have_one_set_of_topics(self, topic_result):
        [table] = topic_words([topic_result(decoding="greedy"), topic_result(decoding="beam:5")])
        assert len(table.rows) == 2

    def test_a_table_for_each_corpus(self, topic_result):
        tables = topic_words(
            [
                topic_result(corpus="demo"),
                topic_result(corpus="own"),
                topic_result(corpus="demo", seed=2),
            ]
        )
        assert [table.name for table in tables] == ["demo-topics", "own-topics"]
        assert [len(table.rows) for table in tables] == [4, 2]

    def test_rows_called_alike_are_told_apart(self, topic_result):
        one, two = (
            topic_result(seed=1, facts={"topics": WORDS[:1]}),
            topic_result(seed=2, facts={"topics": WORDS[:1]}),
        )
        [table] = topic_words([one, two])
        assert list(rows(table)) == ["adand, seed 1, topic 1", "adand, seed 2, topic 1"]
        other = topic_result(seed=2, facts={"topics": WORDS[:1]}, training={"rank": 9})
        [table] = topic_words([one, two, other])
        first, *rest = rows(table)
        assert first == "adand, seed 1, topic 1"
        marks = [result.job.training_fingerprint[:6] for result in (two, other)]
        assert rest == [f"adand [{mark}], seed 2, topic 1" for mark in marks]

    def test_failed_jobs_and_systems_without_topics_give_none(self, topic_result, result):
        others = [
            topic_result(facts={"topics": topics}) for topics in ([], 5, "ab", ["ab"], [[]], [[1]])
        ]
        assert topic_words([topic_result(status="failed"), result(), *others]) == []


class TestFormats:
    def test_every_word_is_read_in_every_format_for_people(self, topic_result):
        [table] = topic_words([topic_result(facts={"topics": [["r_1", "a&b", "sail"]]})])
        for format, words in {
            "txt": ("r_1", "a&b", "sail"),
            "md": (r"r\_1", "a&amp;b", "sail"),
            "html": ("r_1", "a&amp;b", "sail"),
            "tex": (r"r\_1", r"a\&b", "sail"),
        }.items():
            text = render(table, format)
            assert all(word in text for word in words), format

    def test_a_report_holds_them_beside_its_tables(self, topic_result, tmp_path):
        files = write([], [topic_result()], tmp_path, ReportOptions(["txt", "csv", "html"]))
        assert sorted(path.name for path in files) == ["demo-topics.txt", "report.html"]
        assert "boat" in (tmp_path / "demo-topics.txt").read_text(encoding="utf-8")
        page = (tmp_path / "report.html").read_text(encoding="utf-8")
        assert "Topics learnt on demo" in page
        assert "<td>boat</td>" in page

    def test_a_table_of_that_name_keeps_its_name(self, topic_result, tmp_path):
        [positions] = topic_words([topic_result(facts={"topics": [["other"]]})])
        files = write([positions], [topic_result()], tmp_path, ReportOptions(["txt"]))
        assert [path.name for path in files] == ["demo-topics.txt", "demo-topics-2.txt"]
        assert "other" in files[0].read_text(encoding="utf-8")


PLACES = [[(0.0, 1.0), (2.0, 1.5), (1.0, 0.0)], [(-3.0, 2.0), (-2.0, -1.0)]]


class TestMaps:
    def test_every_word_stands_at_its_place(self, topic_result):
        maps = topic_maps(
            [topic_result(label="A (b)", facts={"topic_places": PLACES}), topic_result(seed=2)]
        )
        assert list(maps) == ["demo-topics-A-b"]
        [axes] = maps["demo-topics-A-b"].axes
        line_points = [list(zip(*line.get_data(), strict=True)) for line in axes.lines]
        assert line_points == PLACES
        named = {note.get_text(): note.xy for note in axes.texts if note.get_text()}
        flat = [word for words in WORDS for word in words]
        assert named == dict(
            zip(flat, [point for points in PLACES for point in points], strict=True)
        )

    def test_topics_differ_in_more_than_colour(self, topic_result):
        [line_points] = topic_maps([topic_result(facts={"topic_places": PLACES})]).values()
        looks = {(line.get_color(), line.get_marker()) for line in line_points.axes[0].lines}
        assert len({colour for colour, _ in looks}) == len({marker for _, marker in looks}) == 2
