"""The calls of scripts and notebooks: run, score and compare on Python's own objects."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pandas as pd
import pytest

import dialbench
from dialbench.adapter import Adapter
from dialbench.errors import DialbenchError, InputError, UnknownName, naming_arguments
from dialbench.reporting.results import Differences, Results
from dialbench.scoring.score import score as score_files

FEW = {
    "limit_train": 60,
    "limit_test": 20,
    "device": "cpu",
    "formats": (),
    "metrics": "length,dist-1",
}
COLUMNS = ["system", "corpus", "seed", "metric", "value", "low", "high", "n", "signature"]

OURS = [
    "i like tea a lot",
    "no",
    "see you on monday then",
    "",
    "who knows",
    "the train is late again",
]
THEIRS = ["i do not know", "i do not know", "see you", "i do not know", "why", "the train is late"]
REFERENCES = [
    "i like tea",
    "no thanks",
    "see you monday",
    "yes",
    "nobody knows",
    "it is late again",
]
CONTEXTS = [
    ["do you like tea ?"],
    ["sugar ?"],
    ["bye", "when ?"],
    ["ready ?"],
    ["why ?"],
    ["late ?"],
]
METRICS = ("length", "dist-1", "bleu-2", "rouge-l")
MANY = {
    name: [f"{text} {n} x" if n else text for n in range(4) for text in texts]
    for name, texts in (("ours", OURS), ("theirs", THEIRS))
}


class Echo(Adapter):
    name = "echo"

    def respond(self, contexts, decoding, run):
        return [context[-1] for context in contexts]


SHOUT = """
from dialbench.adapter import Adapter

class Shout(Adapter):
    name = "shout"

    def respond(self, contexts, decoding, run):
        return ["hey !"] * len(contexts)
"""


def values(results: Results) -> dict[str, dict[str, float]]:
    return {
        r.job.system: {name: score.value for name, score in r.scores.items()}
        for r in results.results
    }


class TestRun:
    def test_names_classes_and_paths_are_rows(self, tmp_path):
        plugin, theirs = tmp_path / "shout.py", tmp_path / "theirs.txt"
        plugin.write_text(SHOUT, encoding="utf-8")
        theirs.write_text("yes !\n" * 20, encoding="utf-8")
        models = ["copy-last", Echo, plugin, theirs]
        results = dialbench.run(models, "demo", out=tmp_path / "runs", **FEW)
        scores = values(results)
        assert list(scores) == ["copy-last", "echo", "shout", f"file[path={theirs}]"]
        assert scores["echo"] == scores["copy-last"]
        assert scores["shout"]["length"] == 2
        assert not results.failed

    def test_one_model_needs_no_list_and_the_demo_corpus_no_name(self, tmp_path):
        results = dialbench.run(Echo, out=tmp_path, **FEW)
        (table,) = results.tables
        assert [row.label for row in table.rows] == ["echo"]
        assert results.results[0].job.corpus == "demo"

    def test_a_file_of_conversations_is_a_corpus(self, tmp_path):
        corpus = tmp_path / "test.jsonl"
        corpus.write_text(json.dumps({"id": "a", "turns": ["hello", "hi", "bye"]}))
        results = dialbench.run(Echo, corpus, out=tmp_path / "runs", **FEW)
        assert results.results[0].scores["length"].n == 2

    def test_a_class_of_this_session_stays_in_its_process(self, tmp_path, monkeypatch):
        monkeypatch.setattr(Echo, "__module__", "__main__")
        with pytest.raises(InputError, match=r"models: other processes .* put Echo into a file"):
            dialbench.run(Echo, out=tmp_path, **FEW, jobs=2)

    @pytest.mark.parametrize(
        ("models", "message"),
        [
            ("copy-lost", "^models: unknown model 'copy-lost'. Did you mean 'copy-last'"),
            ([Echo()], "^models: .* is neither a name, a path nor a class. Give the class"),
            ([int], r"^models: class int is no system \(it is no subclass of Adapter\)"),
            ([Adapter], r"^models: class Adapter is no system \(Adapter.name is not a string"),
            ([Path("none.py")], "^plugins: none.py cannot be loaded"),
        ],
    )
    def test_what_is_no_system_is_told_by_the_name_of_the_argument(self, models, message):
        with pytest.raises(InputError, match=message):
            dialbench.run(models)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"seeds": "1,2"}, "^seeds: '1,2' is no whole number. Give a number"),
            ({"seeds": ["1"]}, "^seeds: "),
            ({"limit_test": "10"}, "^limit_test: '10' is no whole number. Give a number"),
            ({"limit_test": [10]}, r"^limit_test: \[10\] is no whole number"),
            ({"samples": "all"}, "^samples: 'all' is no whole number"),
            ({"limit_train": -1}, "^limit_train: -1 is below 1"),
            ({"samples": 0}, "^samples: 0 is below 1"),
            ({"jobs": 0}, "^jobs: 0 is below 1"),
            ({"overwrite": "maybe"}, "^overwrite: unknown value 'maybe'. Known: always"),
            ({"jobs": "2"}, "^jobs: '2' is no number. Give a number"),
            ({"deadline": "60"}, "^deadline: '60' is no number"),
            ({"progress": "loud"}, "^progress: unknown value 'loud'"),
            ({"tracker": "none"}, "^tracker: unknown tracker 'none'"),
            ({"plugins": "none.py"}, r"^plugins: none.py cannot be loaded"),
            ({"preset": Path("none.toml")}, "^preset: "),
            ({"formats": "nd"}, "^formats: unknown format 'nd'"),
            (
                {"corpus": Path("a,b.jsonl")},
                "^corpus: its name cannot stand in a list: 'a,b.jsonl'",
            ),
        ],
    )
    def test_a_value_that_the_command_line_would_refuse_is_refused(
        self, options, message, tmp_path
    ):
        with pytest.raises(InputError, match=message):
            dialbench.run(Echo, out=tmp_path / "runs", **FEW | options)
        assert not (tmp_path / "runs").exists()

    def test_one_seed_needs_no_list_and_decodings_may_be_one(self, tmp_path):
        options = FEW | {"seeds": 2, "decodings": ["greedy", "beam:2"]}
        results = dialbench.run("copy-last", out=tmp_path, **options).results
        assert {result.job.seed for result in results} == {2}

    def test_other_arguments_are_named_too(self, tmp_path):
        with pytest.raises(UnknownName, match=r"^metrics: unknown metric 'dist1'"):
            dialbench.run(Echo, out=tmp_path, **FEW | {"metrics": ["dist1"]})
        with pytest.raises(InputError, match=r"^deadline: -1 seconds"):
            dialbench.run(Echo, deadline=-1)
        with pytest.raises(UnknownName, match=r"^decodings: unknown decoding"):
            dialbench.run(Echo, decodings="greedly")
        with pytest.raises(TypeError, match=r"unknown option 'limit_tests'. .*'limit_test'"):
            dialbench.run(Echo, limit_tests=3)
        with pytest.raises(InputError, match=r"^models: a suite names its own rows. Leave models"):
            dialbench.run(Echo, suite="paraformer-1")


class TestScore:
    @pytest.fixture
    def expected(self, tmp_path):
        """What `score` says of the same texts in a file."""
        rows = zip(OURS, REFERENCES, CONTEXTS, strict=True)
        lines = [{"response": a, "references": [b], "context": c} for a, b, c in rows]
        path = tmp_path / "ours.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        (report,) = score_files([path], metrics=METRICS)
        return {name: cell["value"] for name, cell in report["metrics"].items()}

    def test_lists_are_scored_as_files_are(self, expected):
        actual = values(dialbench.score(OURS, REFERENCES, contexts=CONTEXTS, metrics=METRICS))
        assert actual == {"responses": {**expected, "different": 1.0}}

    def test_columns_and_tables_of_pandas_too(self, expected):
        frame = pd.DataFrame({"Response": OURS, "reference": REFERENCES, "history": CONTEXTS})
        frame.loc[3, "Response"] = None
        for results in (
            dialbench.score(frame, metrics=METRICS),
            dialbench.score({"ours": frame}, metrics=METRICS),
            dialbench.score(frame["Response"], frame["reference"], metrics=METRICS),
            dialbench.score(frame, column="Response", metrics=METRICS),
        ):
            ((_, actual),) = values(results).items()
            assert {name: actual[name] for name in METRICS} == expected

    def test_several_systems_stand_in_one_table(self, tmp_path):
        path = tmp_path / "theirs.txt"
        path.write_text("\n".join(THEIRS), encoding="utf-8")
        systems = {"ours": OURS, "theirs": path}
        results = dialbench.score(systems, REFERENCES, metrics="rouge-l", baseline="theirs")
        (table,) = results.tables
        assert [row.label for row in table.rows] == ["ours", "theirs"]
        assert table.baseline == "theirs"

    def test_several_references_and_responses_to_a_context(self):
        references = [("i like tea", "tea is fine"), "no\tyes", ["a"], [], "b", "c"]
        responses = [(text, "or not") for text in OURS]
        results = dialbench.score(responses, references, metrics=["bleu-1", "within-dist-1"])
        (scores,) = (result.scores for result in results.results)
        assert scores["bleu-1"].n == 5
        assert scores["within-dist-1"].available

    def test_a_report_is_written_where_it_is_asked_for(self, tmp_path):
        results = dialbench.score(OURS, metrics="length", out=tmp_path, formats=["csv"])
        assert results.files == (tmp_path / "scores.csv",)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (([b"yes"],), r"^responses\[0\]: bytes is no text. Give strings"),
            ((["a", ["b", 3]],), r"^responses\[1\]: 3 is no text"),
            ((["\ud800"],), r"^responses\[0\]: '\\ud800' is no text"),
            ((OURS, REFERENCES[:5]), "6 responses for 5 lines of references or contexts"),
            (
                (pd.DataFrame({"x": ["a"], "y": ["b"]}),),
                "no column is named responses",
            ),
            (([],), "there are no responses"),
        ],
    )
    def test_what_is_no_text_is_told_with_its_place(self, arguments, message):
        with pytest.raises(InputError, match=message):
            dialbench.score(*arguments, metrics="length")

    def test_arguments_are_named_without_dashes(self):
        with pytest.raises(UnknownName, match=r"^tokenizer: .*'bert'"):
            dialbench.score(OURS, tokenizer="berd")
        with pytest.raises(UnknownName, match=r"^baseline: unknown system 'they'"):
            dialbench.score({"them": OURS, "us": OURS}, metrics="length", baseline="they")
        with pytest.raises(TypeError, match=r"unknown option 'tokeniser'.*'tokenizer'"):
            dialbench.score(OURS, tokeniser="bert")


class TestResults:
    @pytest.fixture
    def results(self):
        return dialbench.score(MANY, REFERENCES * 4, metrics=METRICS)

    def test_a_frame_has_a_row_a_value(self, results):
        frame = results.to_frame()
        assert list(frame.columns) == [*COLUMNS, "decoding", "reason"]
        assert len(frame) == 2 * (len(METRICS) + 1)
        (row,) = frame[(frame.system == "ours") & (frame.metric == "length")].to_dict("records")
        score = results.results[0].scores["length"]
        assert (row["value"], row["low"], row["high"]) == (score.value, *score.interval)
        assert (row["n"], row["signature"]) == (score.n, score.signature)
        assert row["corpus"] is None
        assert pd.isna(row["seed"])

    def test_a_value_that_is_missing_has_a_reason(self):
        frame = dialbench.score(OURS, metrics="bleu-2").to_frame().set_index("metric")
        assert math.isnan(frame.value["bleu-2"])
        assert frame.reason["bleu-2"]

    def test_runs_have_their_corpus_seed_and_decoding(self, tmp_path):
        results = dialbench.run(Echo, out=tmp_path, seeds=(1, 2), **FEW)
        frame = results.to_frame()
        assert list(frame.seed.unique()) == [1, 2]
        assert set(frame.corpus) == {"demo"}
        assert set(frame.decoding) == {"greedy"}
        assert len(results["echo"].results) == 2

    def test_rows_and_corpora_are_chosen_by_name(self, results):
        assert [result.job.system for result in results["theirs"].results] == ["theirs"]
        assert [row.label for table in results["ours"].tables for row in table.rows] == ["ours"]
        with pytest.raises(UnknownName, match=r"unknown row 'hours'. Did you mean 'ours'"):
            results["hours"]
        with pytest.raises(UnknownName, match=r"unknown corpus 'demo'"):
            results.on("demo")

    def test_a_notebook_shows_the_table_and_a_terminal_its_text(self, results):
        shown = results._repr_html_()
        assert "<table" in shown
        assert "theirs" in shown
        assert "|tok:" not in shown
        assert "ours" in str(results)
        assert repr(results) == "<Results of ours, theirs>"

    def test_names_cannot_write_html(self):
        shown = dialbench.score({"<script>": OURS}, metrics="length")._repr_html_()
        assert "<script>" not in shown

    def test_without_pandas_the_frame_says_what_to_install(self, results, monkeypatch):
        monkeypatch.setattr("dialbench.extras.are_installed", lambda *modules: False)
        with pytest.raises(InputError, match=re.escape("pip install 'dialbench[pandas]'")):
            results.to_frame()


class TestCompare:
    def test_differences_are_those_of_paired_files(self, tmp_path):
        for name, texts in (("ours", OURS), ("theirs", THEIRS)):
            rows = zip(texts, REFERENCES, strict=True)
            lines = (json.dumps({"response": a, "references": [b]}) + "\n" for a, b in rows)
            (tmp_path / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
        ours, theirs = tmp_path / "ours.jsonl", tmp_path / "theirs.jsonl"
        (report,) = score_files([ours], metrics=METRICS, paired_with=theirs)
        both = dialbench.score({"ours": OURS, "theirs": THEIRS}, REFERENCES, metrics=METRICS)
        apart = [dialbench.score(t, REFERENCES, metrics=METRICS) for t in (OURS, THEIRS)]
        for a, b in ((both["ours"], both["theirs"]), apart):
            actual = dialbench.compare(a, b)
            assert {name: actual.metrics[name] for name in METRICS} == report["compared"]

    def test_differences_become_a_frame_and_a_table(self):
        both = dialbench.score(MANY, REFERENCES * 4, metrics=METRICS)
        actual = dialbench.compare(both["ours"], both["theirs"])
        assert isinstance(actual, Differences)
        frame = actual.to_frame().set_index("metric")
        lengths = [sum(len(t.split()) for t in texts) / 24 for texts in MANY.values()]
        assert frame.difference["length"] == pytest.approx(lengths[0] - lengths[1])
        assert frame.low["length"] < frame.difference["length"] < frame.high["length"]
        assert 0 < frame.p["length"] < 1
        assert "<table" in actual._repr_html_()
        assert str(actual).startswith("ours less theirs")
        assert repr(actual) == "<Differences between ours and theirs>"

    def test_one_row_is_compared_with_one_row(self):
        both = dialbench.score({"ours": OURS, "theirs": THEIRS}, metrics="length")
        with pytest.raises(InputError, match=r"^b: it has 2 rows: ours, theirs. Choose one"):
            dialbench.compare(both["ours"], both)

    def test_results_are_compared_and_nothing_else(self):
        ours = dialbench.score(OURS, metrics="length")
        with pytest.raises(InputError, match=r"^b: it is no Results but str"):
            dialbench.compare(ours, "theirs")

    def test_other_contexts_are_not_compared(self):
        ours = dialbench.score(OURS, REFERENCES, metrics="length")
        theirs = dialbench.score(THEIRS, REFERENCES[::-1], metrics="length")
        with pytest.raises(InputError, match="do not answer the same examples"):
            dialbench.compare(ours, theirs)


def test_errors_keep_their_kind_and_cause():
    def refuse():
        raise UnknownName("no such --no-printed", where="--limit-test", hint="Try --plugin.")

    with pytest.raises(UnknownName) as error:
        naming_arguments(refuse)()
    assert str(error.value) == "limit_test: no such printed=False. Try plugins."

    def command():
        raise DialbenchError("it is missing", hint="Run dialbench fetch nltk --sha256 HEX.")

    with pytest.raises(DialbenchError, match="nltk --sha256 HEX"):
        naming_arguments(command)()
