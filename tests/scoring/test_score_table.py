"""`dialbench score` from files of text to the table of a paper."""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from dialbench.corpora.base import load_corpus
from dialbench.errors import InputError
from dialbench.reporting.options import ReportOptions
from dialbench.scoring.options import InputOptions
from dialbench.scoring.score import score
from dialbench.scoring.table import score_report
from dialbench.stats.significance import holm

SENTENCE = "tea is warm so we sit by the lake and hear a bird sing"
WORDS = SENTENCE.split()
COUNT = 120
METRICS = ["length", "dist-2", "bleu-2", "rouge-l", "mtld"]


def texts(seed: int, count: int = COUNT) -> list[str]:
    draw = np.random.default_rng(seed)
    return [" ".join(draw.choice(WORDS, draw.integers(3, 9))) for _ in range(count)]


REFERENCES = texts(0)


def noisy(share: float, seed: int) -> list[str]:
    """The references with words replaced at random."""
    draw = np.random.default_rng(seed)
    return [
        " ".join(draw.choice(WORDS) if draw.random() < share else word for word in text.split())
        for text in REFERENCES
    ]


def lines(path: Path, texts: list[str]) -> Path:
    path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return path


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """A good, a middling and a bad system in three formats."""
    table = tmp_path / "B.csv"
    with table.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["n", "prediction"], *enumerate(noisy(0.3, 2))])
    objects = tmp_path / "C.jsonl"
    objects.write_text("".join(json.dumps({"response": t}) + "\n" for t in noisy(0.8, 3)))
    return [lines(tmp_path / "A.txt", noisy(0.25, 1)), table, objects]


@pytest.fixture
def inputs(tmp_path: Path) -> InputOptions:
    return InputOptions(references=[lines(tmp_path / "refs.txt", REFERENCES)])


def table_of(files, inputs, **marks):
    results = score_report(files, inputs, ReportOptions(**marks), metrics=METRICS)
    (table,), written = results.tables, results.files
    assert not written
    return table


def marked(table, column: str) -> set[str]:
    return {row.label for row in table.rows if row.cells[column].significant}


def test_stars_are_those_of_the_p_of_paired_with(files, inputs):
    for baseline in ("A", "C"):
        base = next(file for file in files if file.stem == baseline)
        others = [file for file in files if file != base]
        reports = score(others, references=inputs.references, metrics=METRICS, paired_with=base)
        for correction in ("none", "holm"):
            table = table_of(files, inputs, alpha=0.05, baseline=baseline, correction=correction)
            for column in ("dist-2", "bleu-2", "rouge-l", "mtld"):
                p = [report["compared"][column]["p"] for report in reports]
                p = holm(p) if correction == "holm" else p
                expected = {r["system"] for r, one in zip(reports, p, strict=True) if one < 0.05}
                assert marked(table, column) == expected, column
            (note,) = (note for note in table.notes if note.startswith("*:"))
            assert note.startswith(f"*: differs from {baseline} (two-sided p < 0.05, ")


def test_without_a_baseline_stars_compare_with_the_best(files, inputs):
    table = table_of(files, inputs)
    assert [row.label for row in table.rows if row.cells["bleu-2"].best] == ["A"]
    reports = score(
        files[1:], references=inputs.references, metrics=["bleu-2"], paired_with=files[0]
    )
    p = {report["system"]: report["compared"]["bleu-2"]["p"] for report in reports}
    assert marked(table, "bleu-2") == {name for name, value in p.items() if value < 0.01}
    assert "*: differs from the best of its column" in " ".join(table.notes)


def test_values_are_those_of_the_same_responses_in_jsonl(files, inputs, tmp_path):
    whole = tmp_path / "whole.jsonl"
    whole.write_text(
        "".join(
            json.dumps({"response": response, "references": [reference]}) + "\n"
            for response, reference in zip(noisy(0.25, 1), REFERENCES, strict=True)
        )
    )
    (expected,) = score([whole], metrics=METRICS)
    table = table_of(files, inputs)
    row = next(row for row in table.rows if row.label == "A")
    for name, value in expected["metrics"].items():
        assert row.cells[name].value == value["value"]
        assert row.cells[name].interval == pytest.approx(value["interval"], rel=1e-12)


def test_several_references_from_tabs_files_and_lists_are_the_same(files, tmp_path):
    second = texts(9)
    pairs = list(zip(REFERENCES, second, strict=True))
    one, other = lines(tmp_path / "1.txt", REFERENCES), lines(tmp_path / "2.txt", second)
    tabs = lines(tmp_path / "tabs.txt", ["\t".join(pair) for pair in pairs])
    lists = lines(tmp_path / "lists.jsonl", [json.dumps(pair) for pair in pairs])
    actual = [
        score(files[:1], references=references, metrics=["bleu-2", "rouge-l"])
        for references in ([one, other], tabs, [lists])
    ]
    assert actual[0] == actual[1] == actual[2]
    (single,) = score(files[:1], references=one, metrics=["rouge-l"])
    several = actual[0][0]["metrics"]["rouge-l"]["value"]
    assert several > single["metrics"]["rouge-l"]["value"]


def test_rows_that_answer_other_examples_are_not_ranked(files, inputs, tmp_path):
    short = lines(tmp_path / "short.txt", texts(4, 30))
    table = table_of([files[0], files[1], short], InputOptions())
    assert {row.label: row.ranked for row in table.rows} == {"A": True, "B": True, "short": False}
    assert "it has 30 responses where" in " ".join(table.notes)
    with pytest.raises(InputError, match=r"short\.txt: it has 30 responses where .*A\.txt has 120"):
        table_of([files[0], short], InputOptions(), baseline="A")


def test_numbers_of_responses_to_a_context_have_columns_of_their_own(tmp_path):
    files = []
    for system, count in (("two", 2), ("pair", 2), ("three", 3)):
        every = [texts(10 * count + len(system) + n) for n in range(count)]
        rows = ({"response": one, "alternatives": own} for one, *own in zip(*every, strict=True))
        files.append(lines(tmp_path / f"{system}.jsonl", list(map(json.dumps, rows))))
    (table,) = score_report(
        files, InputOptions(), ReportOptions(), metrics=["within-dist-1", "dist-1"]
    ).tables
    of = {c.name: c.signature.split("|") for c in table.columns if "within" in c.name}
    assert [set(s) & {"responses:2", "responses:3"} for s in of.values()] == [
        {"responses:2"},
        {"responses:3"},
    ]
    shown = {
        name: [row.label for row in table.rows if row.cells[name].value is not None] for name in of
    }
    assert list(shown.values()) == [["two", "pair"], ["three"]]
    assert not any(row.cells["within-dist-1:2"].best for row in table.rows)
    assert "Within-dist-1 (1) of three (scored under another signature)" in " ".join(table.notes)


def test_a_corpus_gives_contexts_references_and_dialogues(tmp_path):
    examples = list(load_corpus("demo").test)
    copied = lines(tmp_path / "copied.txt", [example.references[0] for example in examples])
    (report,) = score([copied], corpus="demo", metrics=["rouge-l", "bleu-4"])
    assert report["metrics"]["rouge-l"]["value"] == pytest.approx(1.0)
    names = [example.dialogue_id for example in examples]
    table = table_of([copied, lines(tmp_path / "x.txt", names)], InputOptions(corpus="demo"))
    assert table.caption == "Automatic evaluation on demo"
    assert any("test over dialogues" in note for note in table.notes)


def test_the_table_is_that_of_a_run_of_the_same_files(command, files, tmp_path):
    examples = list(load_corpus("demo").test)
    paths = [
        lines(tmp_path / f"{name}.txt", [draw(example) for example in examples])
        for name, draw in (
            ("first", lambda e: e.references[0]),
            ("second", lambda e: e.context[-1]),
        )
    ]
    rows = ",".join(f"file[path={path}]" for path in paths)
    options = ("--corpus", "demo", "--metrics", "different,dist-2,bleu-2,rouge-l")
    command(
        *("run", "--models", rows, *options, "--out", tmp_path / "runs", "--formats", "csv"),
        *("--progress", "none"),
    )
    command("score", *paths, *options, "--out", tmp_path / "scored", "--format", "csv")
    mine, theirs = (
        (tmp_path / folder / "demo.csv").read_text() for folder in ("scored", "runs/report")
    )
    assert mine == theirs


class TestCommand:
    def test_every_format_goes_to_standard_output(self, command, files, inputs, monkeypatch):
        stream = io.TextIOWrapper(io.BytesIO("\n".join(noisy(0.5, 4)).encode()), "utf-8")
        monkeypatch.setattr("sys.stdin", stream)
        (references,) = inputs.references
        result = command(
            *("score", *files, "-", "--references", references, "--metrics", "dist-2,bleu-2"),
            *("--format", "tex,csv", "--baseline", "A", "--correction", "holm"),
        )
        assert result.code == 0
        assert r"\begin{tabular}" in result.out
        rows = list(csv.DictReader(result.out[result.out.index("table,system") :].splitlines()))
        assert {row["system"] for row in rows} == {"A", "B", "C", "stdin"}

    def test_standard_input_is_read_once_though_a_file_is_called_like_it(
        self, command, tmp_path, monkeypatch
    ):
        monkeypatch.chdir(tmp_path)
        Path("-").write_text("of the file\n", encoding="utf-8")
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"typed by hand\n")))
        result = command("score", "-", "--metrics", "length,dist-1", "--format", "csv")
        assert (result.code, "stdin" in result.out) == (0, True)

    def test_a_folder_gets_tables_plots_and_page(self, command, files, inputs, tmp_path):
        out = tmp_path / "paper"
        result = command(
            *("score", *files, "--references", inputs.references[0], "--metrics", "dist-2,bleu-1"),
            *("--out", out, "--formats", "tex,md,html,png"),
        )
        assert result.code == 0
        names = {path.name for path in out.iterdir()}
        assert {"scores.tex", "scores.md", "report.html"} <= names
        assert {"scores-quality-diversity.png", "scores-lengths.png"} <= names
        assert "A" in result.out

    @pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs TeX")
    def test_text_files_become_a_pdf(self, command, files, inputs, tmp_path):
        command(
            *("score", *files, "--references", inputs.references[0], "--metrics", "dist-2,bleu-2"),
            *("--standalone", "--out", tmp_path / "paper"),
        )
        assert {path.name for path in (tmp_path / "paper").iterdir()} == {
            "scores.tex",
            "scores-signatures.tex",
            "scores.pdf",
        }
        assert (tmp_path / "paper" / "scores.pdf").read_bytes().startswith(b"%PDF")

    @pytest.mark.parametrize(
        ("arguments", "complaint"),
        [
            (("-", "-"), "-: standard input can be read only once"),
            (("-", "--references", "-"), "-: standard input can be read only once"),
            (("A.txt", "A.txt"), "A: it is named twice"),
            (("A.txt", "--column", "x"), "--column x: none of the files is a table"),
            (("A.txt", "--references", "no.txt"), "--references: no.txt cannot be read"),
            (("A.txt", "--references", "3.txt"), "A.txt: 120 responses for 3 lines of"),
            (("A.txt", "--references", "refs.txt,3.txt"), "3.txt: it has 3 lines where refs.txt"),
            (("A.txt", "--corpus", "lake"), "--corpus: unknown corpus 'lake'"),
            (("A.txt", "--corpus", "demo"), "A.txt: 120 responses without id or context for"),
            (("A.txt", "B.csv", "--baseline", "Z"), "--baseline: unknown system 'Z'"),
            (("A.txt", "--format", "png"), "--format: png is no format to print"),
            (("A.txt", "--json", "--baseline", "A"), "--baseline: cannot be combined with --json"),
            (("A.txt", "--json", "--out", "x"), "--out: cannot be combined with --json"),
        ],
    )
    def test_mistakes_are_one_line(
        self, command, files, inputs, tmp_path, monkeypatch, arguments, complaint
    ):
        monkeypatch.chdir(tmp_path)
        lines(tmp_path / "3.txt", ["a", "b", "c"])
        result = command("score", *arguments, "--metrics", "length")
        assert result.code == 2
        assert result.err.startswith(f"Error: {complaint}")
        assert result.err.count("\n") == 1
