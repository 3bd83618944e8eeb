"""The command line as users and their scripts meet it."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import click
import pytest

from dialbench.cli import cli as main_group
from dialbench.cli.options import print_files
from dialbench.errors import InputError
from dialbench.scoring.options import ScoringOptions

Command = Callable[..., Any]
QUICK = ("--limit-train", 40, "--limit-test", 10, "--metrics", "length,dist-1", "--formats", "csv")


def responses(path: Path, *texts: str) -> Path:
    lines = [
        {"id": str(i), "context": ["hello there"], "references": ["hi you"], "response": text}
        for i, text in enumerate(texts)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_help_loads_no_torch() -> None:
    script = (
        "import sys\n"
        "from dialbench.cli import main\n"
        "sys.argv = ['dialbench', '--help']\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "heavy = {'torch', 'numpy', 'scipy', 'matplotlib', 'nltk', 'gensim'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    names = "run score conventions report models corpora export metrics papers fetch doctor"
    for name in names.split():
        assert f"\n  {name}" in done.stdout


def test_run_prints_the_table_and_names_its_files(command: Command, tmp_path: Path) -> None:
    result = command(
        "run", "--models", "copy-last,unigram", "--out", tmp_path, "--progress", "none", *QUICK
    )
    assert result.code == 0
    assert "Copy last turn" in result.out
    assert "Unigram" in result.out
    assert f"wrote {tmp_path}/report/demo.csv" in result.err


def test_a_run_says_first_which_metrics_it_cannot_give(command: Command, tmp_path: Path) -> None:
    names = "length,emb-average,emb-greedy"
    result = command(
        *("run", "--models", "copy-last", "--limit-test", 10, "--metrics", names),
        *("--out", tmp_path, "--formats", "csv", "--progress", "plain"),
    )
    first = "warning: emb-average, emb-greedy will not be available: word vectors need at least"
    assert result.err.startswith(first)


def test_files_are_named_or_of_many_of_a_kind_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    print_files([tmp_path / "a.csv", *(tmp_path / f"{n}.png" for n in range(30))])
    assert capsys.readouterr().err.splitlines() == [
        f"wrote {tmp_path}/a.csv",
        f"wrote 30 files {tmp_path}/*.png",
    ]


SEEKER = """
from dialbench.adapter import Adapter, Card
from dialbench.files.folders import data_folder

class Seeker(Adapter):
    name = "seeker"
    card = Card("Seeker", "other", "answers with the data folder's name")

    def respond(self, contexts, decoding, run):
        return [data_folder(run.data).name] * len(contexts)
"""


def test_systems_look_for_their_files_in_the_folder_that_data_names(
    command: Command, tmp_path: Path
) -> None:
    plugin, data = tmp_path / "seeker.py", tmp_path / "elsewhere"
    plugin.write_text(SEEKER)
    data.mkdir()
    runs = tmp_path / "runs"
    result = command(
        *("run", "--models", "seeker,copy-last", "--plugin", plugin, "--data", data),
        *("--jobs", 2, "--out", runs, "--progress", "none", *QUICK),
    )
    assert result.code == 0, result.err
    (answers,) = runs.glob("answers/seeker*/responses.jsonl")
    lines = [json.loads(line) for line in answers.read_text().splitlines()]
    assert {line["response"] for line in lines if "response" in line} == {"elsewhere"}


def test_a_failed_system_exits_with_one(command: Command, tmp_path: Path) -> None:
    plugin = Path(__file__).parent / "plugins.py"
    result = command(
        *("run", "--models", "broken,copy-last", "--plugin", plugin),
        *("--out", tmp_path, "--progress", "none", *QUICK),
    )
    assert result.code == 1
    assert "failed: broken on demo" in result.err
    assert "Traceback" not in result.err
    assert "Copy last turn" in result.out


def test_an_interruption_exits_with_130(command: Command, tmp_path: Path) -> None:
    plugin = Path(__file__).parent / "plugins.py"
    result = command(
        *("run", "--models", "stopped", "--plugin", plugin),
        *("--out", tmp_path, "--progress", "none", *QUICK),
    )
    assert result.code == 130
    assert "goes on where" in result.err


def test_report_renders_without_computing(command: Command, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    command("run", "--models", "copy-last", "--out", runs, "--progress", "none", *QUICK)
    result = command("report", runs, "--out", tmp_path / "reports", "--formats", "md,csv")
    assert result.code == 0
    table = (tmp_path / "reports" / "demo.md").read_text()
    assert "Copy last turn" in table
    assert (tmp_path / "reports" / "demo.csv").read_bytes() == (
        runs / "report" / "demo.csv"
    ).read_bytes()


SUITE = """
summary = "mine"
paper = "paraformer"
table = "4"
[[group]]
corpus = "demo"
dataset = "DailyDialog"
[[column]]
printed = "Dist-1"
metric = "dist-1"
[[row]]
printed = "Alt"
system = "unigram"
[[row]]
printed = "Full"
system = "no-such-system"
"""


def test_a_suite_is_run_and_reported_beside_the_paper(command: Command, tmp_path: Path) -> None:
    suite, runs = tmp_path / "mine.toml", tmp_path / "runs"
    suite.write_text(SUITE)
    base = ("--limit-train", 40, "--limit-test", 10, "--formats", "csv")
    result = command("run", "--suite", suite, "--out", runs, "--progress", "plain", *base)
    assert result.code == 0
    assert "0.039" in result.out
    assert "Full (not available)" in result.out
    assert "warning: row Full is skipped: unknown model 'no-such-system'" in result.out + result.err
    assert f"wrote {runs}/report/mine.csv" in result.err
    assert "scores on demo: score: step 1/1" in result.err
    again = command("report", runs, "--suite", suite, "--out", tmp_path / "r", "--formats", "csv")
    assert again.out == result.out[result.out.index("mine (demo)") :]


def test_a_table_of_counts_needs_no_runs(command: Command, tmp_path: Path) -> None:
    result = command(
        *("report", tmp_path / "none", "--paper", "paraformer", "--table", "A.1"),
        *("--out", tmp_path, "--formats", "txt,png"),
    )
    assert result.code == 0
    assert "1,030,144" in result.out
    assert (tmp_path / "paraformer-a1.txt").read_text() in result.out
    assert not (tmp_path / "none").exists()


def test_models_tell_their_sizes(command: Command) -> None:
    listed = {item["name"]: item for item in json.loads(command("models", "--json").out)}
    assert listed["vhred"]["parameters"]["inference_parameters"] == 33_272_912 - 1_357_400
    assert listed["copy-last"]["parameters"] == {}
    small = {i["name"]: i for i in json.loads(command("models", "--preset", "quick", "--json").out)}
    assert small["vhred"]["parameters"]["parameters"] < 1_000_000
    assert (
        "29,577,776 (25,187,888 trained, 4,389,888 frozen" in command("models", "paraformer-n").out
    )


def test_systems_and_metrics_have_a_line_each_and_details_by_name(command: Command) -> None:
    for name, of in (("models", "seq2seq"), ("metrics", "dist-2")):
        listed = command(name).out.splitlines()
        assert len(listed) == len(json.loads(command(name, "--json").out))
        assert sum(line.split()[0] == of for line in listed) == 1
        assert len(command(name, of).out.splitlines()) > 5
        (only,) = json.loads(command(name, of, "--json").out)
        assert only["name"] == of
        wrong = command(name, f"{of}x")
        assert (wrong.code, f"Did you mean '{of}'?" in wrong.err) == (2, True)


def test_the_line_of_a_metric_says_what_it_is(command: Command) -> None:
    (line,) = (one for one in command("metrics").out.splitlines() if one.startswith("self-bleu "))
    assert line.split()[1:3] == ["↓", "Self-BLEU"]
    assert "no: name it to --metrics" in command("metrics", "self-bleu").out
    assert "needs: judge" in command("metrics", "ue").out
    assert all(metric["summary"] for metric in json.loads(command("metrics", "--json").out))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "--baseline, --against: one of the two is needed"),
        (("--baseline", "b.json", "--against", "."), "one of the two is needed"),
        (("--against", ".", "--update"), "leave --against out"),
        (("--against", ".", "--texts-from", "."), "leave --against out"),
    ],
)
def test_a_check_is_against_a_baseline_or_other_runs(
    command: Command, tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    refused = command("check", tmp_path, *options)
    assert (refused.code, message in refused.err) == (2, True), refused.err


def test_two_rows_of_a_run_are_compared(command: Command, tmp_path: Path) -> None:
    few = ("--limit-train", 40, "--limit-test", 30, "--metrics", "dist-1,rouge-l")
    quiet = ("--formats", "txt", "--progress", "none")
    command("run", "--models", "copy-last,most-frequent", "--out", tmp_path, *few, *quiet)
    rows = ("compare", tmp_path, "copy-last", "most-frequent")
    shown = command(*rows)
    assert shown.code == 0, shown.err
    for part in ("Copy last turn less Most frequent", "by length", "by topic", "differ most"):
        assert part in shown.out
    plain = json.loads(command(*rows, "--examples", 3, "--format", "json").out)
    assert (plain["system"], plain["base"]) == ("Copy last turn", "Most frequent response")
    assert (plain["by"], len(plain["examples"])) == ("rouge-l", 3)
    difference = plain["metrics"]["rouge-l"]
    assert difference["difference"]["value"] == pytest.approx(
        plain["wins_by_length"]["all"]["gain"], abs=1e-12
    )
    one = command(*rows, "--seeds", 1, "--format", "json").out
    assert json.loads(one)["metrics"] == plain["metrics"]
    for wrong, message in (
        (
            ("copy-last", "most-frequent", "--seeds", "1,4"),
            "--seeds: no run has seed 4. There are 1.",
        ),
        (("copy-last", "unigram"), "B: unknown row 'unigram'"),
        (("copy-last", "most-frequent", "--corpus", "demos"), "Did you mean 'demo'?"),
        (("copy-last", "most-frequent", "--by", "dist-1"), "--by: unknown metric 'dist-1'"),
    ):
        refused = command("compare", tmp_path, *wrong)
        assert (refused.code, message in refused.err) == (2, True), refused.err


def test_a_log_says_what_was_found_and_nothing_is_logged_unasked(tmp_path: Path) -> None:
    file = responses(tmp_path / "a.jsonl", "yes")
    run = [sys.executable, "-m", "dialbench"]
    score = ["score", str(file), "--metrics", "novelty", "--json"]
    quiet, loud = (
        subprocess.run([*run, *option, *score], capture_output=True, text=True, check=True)
        for option in ([], ["--log-level", "info"])
    )
    assert quiet.stdout == loud.stdout
    assert quiet.stderr == ""
    assert "INFO dialbench.scoring.resources: train: no training text" in loud.stderr


def test_papers_name_the_suites_of_each_table(command: Command) -> None:
    listed = {paper["name"]: paper for paper in json.loads(command("papers", "--json").out)}
    tables = {table["number"]: table["suites"] for table in listed["paraformer"]["tables"]}
    assert tables["1"] == ["paraformer-1"]
    assert tables["3"] == []
    assert tables["A.1"] == ["paraformer-a1"]
    dialogved = {table["number"]: table["suites"] for table in listed["dialogved"]["tables"]}
    assert dialogved["2"] == ["dialogved-2", "dialogved-2-personachat"]
    assert "dialogved-2, dialogved-2-personachat" in command("papers").out


def test_papers_print_their_tables_in_every_format(command: Command) -> None:
    table = ("papers", "--paper", "rl-transformer", "--table", "3")
    assert r"\begin{threeparttable}" in command(*table, "--format", "tex").out
    assert "RL Transformer vs CVAE" in command(*table).out
    every = command("papers", "--paper", "rl-transformer").out
    assert command(*table).out in every
    assert "d_rand=64" in every


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("papers", "--table", "1"), "--table: the paper is missing. Add --paper NAME."),
        (("papers", "--paper", "parformer"), "Did you mean 'paraformer'?"),
        (("report", "/none", "--no-printed"), "--no-printed: it needs --suite or --table"),
        (("run", "--suite", "paraformer-11"), "unknown suite 'paraformer-11'. Did you mean"),
        (("run", "--suite", "rl-1", "--models", "unigram"), "--models: a suite names its own rows"),
        (("run", "--suite", "rl-1", "--decoding", "beam:2"), "--decoding: a suite names its own"),
        (("run", "--suite", "paraformer-a1"), "there is nothing to run. Write dialbench report"),
        (("run", "--suite", "rl-1", "--data", "/none"), "/none/dailydialog: no such corpus folder"),
        (("report", "--paper", "paraformer"), "--paper, --table: a table is named by both"),
        (("report", "--paper", "parformer", "--table", "1"), "Did you mean 'paraformer'?"),
        (("report", "--paper", "paraformer", "--table", "3"), "no suite makes table 3"),
        (("report", "/none", "--suite", "paraformer-1"), "/none: there are no results"),
        (("models", "--preset", "quik"), "Did you mean 'quick'?"),
        (("papers", "--paper", "adand", "--json"), "--json: printed tables have no JSON"),
        (
            ("report", "--suite", "rl-1", "--paper", "adand", "--table", "1"),
            "--suite: a suite is of a table already. Leave --paper and --table out",
        ),
    ],
)
def test_a_mistake_with_suites_is_one_line(
    command: Command, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    out = ("--out", tmp_path) if arguments[0] in ("run", "report") else ()
    result = command(*arguments, *out)
    assert result.code == 2, result.err
    assert message in result.err
    assert "Traceback" not in result.err


def test_several_responses_reach_the_table(command: Command, tmp_path: Path) -> None:
    few = ("--limit-train", 40, "--limit-test", 10, "--formats", "csv", "--out", tmp_path)
    drawn = ("--samples", 2, "--metrics", "length,within-dist-1", "--decoding", "sample:t=1")
    result = command("run", "--models", "random-train", *few, *drawn, "--progress", "none")
    assert result.code == 0, result.err
    assert "Within-dist-1" in result.out
    assert "2 responses drawn to each context" in result.out
    (path,) = tmp_path.glob("answers/*/responses.jsonl")
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert all(len(line["alternatives"]) == 1 for line in lines)
    assert any(line["alternatives"] != [line["response"]] for line in lines)


def test_score_prints_one_object_or_a_list(command: Command, tmp_path: Path) -> None:
    one = responses(tmp_path / "one.jsonl", "a b a", "a c")
    result = command("score", one, "--metrics", "dist-1,length", "--json")
    report = json.loads(result.out)
    assert report["system"] == "one"
    assert report["metrics"]["dist-1"]["value"] == 3 / 5
    assert "tok:default" in report["metrics"]["dist-1"]["signature"]
    two = responses(tmp_path / "two.jsonl", "x")
    reports = json.loads(command("score", one, two, "--metrics", "dist-1", "--json").out)
    assert [r["system"] for r in reports] == ["one", "two"]


def test_score_prints_a_table(command: Command, tmp_path: Path) -> None:
    result = command("score", responses(tmp_path / "mine.jsonl", "a b a", "a c"))
    assert result.code == 0
    assert "mine" in result.out
    assert "0.600" in result.out


def test_score_under_a_convention(command: Command, tmp_path: Path) -> None:
    file = responses(tmp_path / "mine.jsonl", "a b a", "a c")
    report = json.loads(command("score", file, "--convention", "paraformer", "--json").out)
    assert report["convention"] == "paraformer"
    assert report["metrics"]["Dist-1"]["value"] == 3 / 5
    result = command("score", file, "--convention", "paraformer")
    assert "Dist-3" in result.out
    refused = command("score", file, "--convention", "rl", "--tokenizer", "bert")
    assert refused.code == 2
    assert "cannot be combined with --convention" in refused.err


def test_conventions_are_set_below_each_other(command: Command, tmp_path: Path) -> None:
    file = responses(tmp_path / "mine.jsonl", "hi you", "a c")
    out = command("conventions", file).out
    assert all(name in out for name in ("paraformer", "rl", "dvs2s", "dialogved", "adand"))
    reports = json.loads(command("conventions", file, "--json").out)
    assert [report["system"] for report in reports] == ["mine"] * 5


def test_score_takes_the_denominator_and_v(command: Command, tmp_path: Path) -> None:
    file = responses(tmp_path / "mine.jsonl", "a b a", "a c")
    options = ("--metrics", "dist-2,ead-1", "--denominator", "ngrams", "--vocabulary", 10)
    metrics = json.loads(command("score", file, *options, "--json").out)["metrics"]
    assert metrics["dist-2"]["value"] == 1
    assert metrics["ead-1"]["value"] == pytest.approx(3 / (10 * (1 - 0.9**5)))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("models", "transformer"),
        ("corpora", "dailydialog"),
        ("metrics", "dist-2"),
        ("papers", "rl-transformer"),
    ],
)
def test_lists_name_everything(command: Command, name: str, expected: str) -> None:
    assert expected in command(name).out
    listed = json.loads(command(name, "--json").out)
    assert expected in {item["name"] for item in listed}


def test_corpora_counts_and_audits(command: Command) -> None:
    (demo,) = json.loads(command("corpora", "demo", "--audit", "--json").out)
    assert demo["splits"]["train"]["dialogues"] == 1600
    assert demo["audit"]["exact"]["test_in_train"] == 0
    assert "dialogues that repeat" in command("corpora", "demo", "--audit").out


def refuse(what: str) -> NoReturn:
    raise InputError(what)


def test_doctor_names_what_is_missing(command: Command, tmp_path: Path) -> None:
    result = command("doctor", "--data", tmp_path)
    assert result.code == 0
    assert "ok       torch" in result.out
    assert "missing  corpus dailydialog" in result.out


@pytest.mark.parametrize(
    ("found", "line"),
    [
        (lambda: None, "missing  judge of ue: no judge: name an NLI model with --nli"),
        (lambda: SimpleNamespace(name="mine@1"), "ok       judge of ue: mine@1"),
        (lambda: refuse("it is wrong"), "missing  judge of ue: it is wrong"),
    ],
)
def test_doctor_says_who_judges(
    command: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    found: Callable[[], object],
    line: str,
) -> None:
    monkeypatch.setattr("dialbench.nli.loading.find", lambda model: found())
    monkeypatch.setattr("dialbench.doctor._broken_systems", dict)
    assert line in command("doctor", "--data", tmp_path).out


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("re", ["plain,report"]),
        ("score --me", ["plain,--metrics"]),
        ("score --out= --me", ["plain,--metrics"]),
        ("scroe --me", []),
    ],
)
def test_a_shell_completes_commands_and_options(
    command: Command, monkeypatch: pytest.MonkeyPatch, line: str, expected: list[str]
) -> None:
    monkeypatch.setenv("_DIALBENCH_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", f"dialbench {line}")
    monkeypatch.setenv("COMP_CWORD", str(len(line.split())))
    result = command()
    assert (result.code, result.out.split(), result.err) == (0, expected, "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell_is_printed_and_nothing_else(
    command: Command, monkeypatch: pytest.MonkeyPatch, shell: str
) -> None:
    monkeypatch.setenv("_DIALBENCH_COMPLETE", f"{shell}_source")
    result = command()
    assert (result.code, result.err) == (0, "")
    assert "_DIALBENCH_COMPLETE" in result.out


def _options(group: click.Group) -> Iterator[tuple[str, click.Option]]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from _options(command)
        else:
            options = (p for p in command.params if isinstance(p, click.Option))
            yield from ((f"{name} {option.opts[0]}", option) for option in options)


def test_every_option_says_what_to_pass() -> None:
    options = dict(_options(main_group))
    assert len(options) > 60
    assert [name for name, option in options.items() if not option.help] == []
    assert [name for name, option in options.items() if len(option.help or "") > 160] == []


def test_the_options_of_scoring_are_those_of_python() -> None:
    of_score = {name for name, _ in _options(main_group) if name.startswith("score --")}
    fields = {f"score --{f.name.replace('_', '-')}" for f in dataclasses.fields(ScoringOptions)}
    assert fields <= of_score
