"""What people and machines read of a comparison."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from rich.console import Console

from dialbench.checking.compare import compare
from dialbench.checking.findings import Comparison
from dialbench.checking.snapshot import as_baseline
from dialbench.checking.to_junit import to_junit
from dialbench.checking.to_markdown import to_markdown
from dialbench.checking.to_rich import RichSummary
from dialbench.checking.wording import summarise
from dialbench.store import baselines
from dialbench.store.baselines import Baseline, Entry

Make = Callable[..., Entry]
Snap = Callable[..., Baseline]
HOSTILE = "[bold]<script>alert(1)</script> | `x` @all \x1b[31m\x00"


def terminal(comparison: Comparison, width: int = 200, *, updated: bool = False) -> list[str]:
    file = io.StringIO()
    words = summarise(comparison, public=False, updated=updated)
    shown = RichSummary(words, "base.json", updated=updated)
    Console(file=file, width=width, soft_wrap=True).print(shown)
    return file.getvalue().splitlines()


@pytest.fixture
def broken(entry: Make, snapshot: Snap) -> Comparison:
    """Two rows of which one moved, because an option changed."""
    old = [entry("good"), entry("bad", texts=("yes", "no", "i do"))]
    cell = {"dist-1": 0.625, "bleu-1": 0.25}
    new = [entry("good"), entry("bad", texts=("yes", "nay", "i do"), config={"epochs": 3})]
    new[1] = new[1].model_copy(update={"scores": entry(scores=cell).scores})
    return compare(snapshot(*old), snapshot(*new, torch="2.7.0"))


def test_the_first_lines_say_what_moved_and_why(broken: Comparison) -> None:
    lines = terminal(broken)
    assert lines[0] == "FAILED base.json: 1 of 4 cells moved; 1 of 6 responses changed"
    assert lines[1] == "  cause    settings: epochs 2 -> 3 (bad on demo, greedy, quick, seed 1)"
    assert lines[2] == "  cause    library: torch 2.6.0 -> 2.7.0"
    text = "\n".join(lines)
    (cell,) = (line for line in lines if "dist-1" in line)
    assert cell.split()[-6:] == ["dist-1", "0.5", "0.625", "+0.125", "std", "unknown"]
    assert '- "no"' in text
    assert '+ "nay"' in text
    assert "--update" in lines[-1]


def test_a_difference_without_a_cause_says_so(entry: Make, snapshot: Snap) -> None:
    comparison = compare(snapshot(entry()), snapshot(entry(texts=("yes", "no", "I do"))))
    assert "no cause is visible" in terminal(comparison)[1]


def test_what_passes_is_told_in_one_line(entry: Make, snapshot: Snap) -> None:
    lines = terminal(compare(snapshot(entry()), snapshot(entry())))
    assert lines[0] == (
        "OK base.json: everything is as in the baseline (1 row, 2 cells, 3 responses)"
    )
    assert len(lines) == 2


def test_only_the_first_ten_responses_and_the_furthest_cells_are_shown(
    entry: Make, snapshot: Snap
) -> None:
    names = [f"m-{number}" for number in range(50)]
    rows = [f"r-{number}" for number in range(6)]
    old = [entry(row, scores=dict.fromkeys(names, 1.0)) for row in rows]
    values = {name: 1.0 + number for number, name in enumerate(names, start=1)}
    new = [entry(row, scores=values, texts=("a", "b", "c")) for row in rows]
    words = summarise(compare(snapshot(*old), snapshot(*new)), public=False)
    assert (len(words.cells), words.more_cells) == (40, 260)
    assert words.cells[0][1] == "m-49"
    assert (len(words.responses), words.more_responses) == (10, 8)


def test_values_are_shown_with_the_digits_that_tell_them_apart(entry: Make, snapshot: Snap) -> None:
    old, new = entry(scores={"dist-1": 0.3}), entry(scores={"dist-1": 0.1 + 0.2})
    words = summarise(compare(snapshot(old), snapshot(new)), public=False)
    assert words.cells[0][2:4] == ("0.29999999999999999", "0.30000000000000004")


def test_what_cannot_be_seen_is_made_visible(entry: Make, snapshot: Snap) -> None:
    old, new = entry(texts=("a b", "", "")), entry(texts=("a  b", "", ""))
    words = summarise(compare(snapshot(old), snapshot(new)), public=False)
    assert words.responses[0][1:] == ('"a·b"', '"a··b"')


def test_long_texts_are_cut_around_the_change(entry: Make, snapshot: Snap) -> None:
    start, end = "far " * 100, " away" * 100
    old, new = (entry(texts=(f"{start}{word}{end}",)) for word in ("here", "there"))
    words = summarise(compare(snapshot(old), snapshot(new)), public=False)
    _, before, after = words.responses[0]
    assert " here " in before
    assert " there " in after
    assert max(len(before), len(after)) < 130


def test_hostile_text_does_nothing_anywhere(entry: Make, snapshot: Snap) -> None:
    comparison = compare(snapshot(entry()), snapshot(entry(texts=(HOSTILE, "no", "i do"))))
    shown = "\n".join(terminal(comparison))
    assert "[bold]" in shown
    assert "\x1b[31m" not in shown
    markdown = to_markdown(summarise(comparison, public=True), "base.json")
    assert "<script>" not in markdown
    assert "\\@all" in markdown
    suite = ElementTree.fromstring(to_junit(comparison, "base.json"))  # noqa: S314
    assert "alert(1)" in str(suite.findtext(".//failure"))


def test_texts_of_a_local_run_are_shown_in_the_terminal_alone(entry: Make, snapshot: Snap) -> None:
    old, local, new = entry(kept=False), entry(), entry(texts=("yes", "secret", "i do"))
    comparison = compare(snapshot(old), snapshot(new), snapshot(local))
    assert "secret" in "\n".join(terminal(comparison))
    assert "secret" not in to_markdown(summarise(comparison, public=True), "b")
    assert "secret" not in to_junit(comparison, "b")
    assert "sha256" in to_junit(comparison, "b")


def test_markdown_has_a_table_of_what_moved(broken: Comparison) -> None:
    lines = to_markdown(summarise(broken, public=True), "base.json").splitlines()
    assert lines[0].startswith("**base.json: numbers moved** - 1 of 4 cells moved")
    assert "| row | metric | baseline | run | moved by | deviations |" in lines
    assert any("| dist-1 | 0.5 | 0.625 | +0.125 |" in line for line in lines)


def test_junit_has_a_case_for_every_row(broken: Comparison) -> None:
    suite = ElementTree.fromstring(to_junit(broken, "base.json"))  # noqa: S314
    assert suite.attrib == {"name": "base.json", "tests": "3", "failures": "1"}
    names = [case.get("name", "") for case in suite]
    assert [name.split()[0] for name in names] == ["columns", "good", "bad"]
    (failure,) = suite.iter("failure")
    assert failure.get("message") == "1 cell, 1 response"
    assert "epochs 2 -> 3" in str(failure.text)


def test_an_update_says_what_to_do_next(broken: Comparison) -> None:
    lines = terminal(broken, updated=True)
    assert lines[0].startswith("UPDATED base.json: 1 of 4 cells moved")
    assert "commit it" in lines[-1]


# The command


@pytest.fixture
def holding(monkeypatch: pytest.MonkeyPatch, entry: Make, snapshot: Snap) -> Callable[..., None]:
    """Says what the runs folder holds."""

    def set(*entries: Any) -> None:
        monkeypatch.setattr(
            "dialbench.checking.check.take_snapshot", lambda runs: snapshot(*entries)
        )

    return set


def test_exit_codes_and_files(
    command: Callable[..., Any], holding: Callable[..., None], entry: Make, tmp_path: Path
) -> None:
    base, junit, markdown = (tmp_path / name for name in ("b.json", "j.xml", "m.md"))
    holding(entry())
    absent = command("check", "runs", "--baseline", base)
    assert (absent.code, absent.err.count("\n")) == (2, 1)
    assert command("check", "runs", "--baseline", base, "--update").code == 0
    assert command("check", "runs", "--baseline", base).code == 0
    holding(entry(scores={"dist-1": 0.5, "bleu-1": 0.5}))
    files = ("--junit", junit, "--markdown", markdown)
    failed = command("check", "runs", "--baseline", base, *files)
    assert failed.code == 1
    assert failed.out.startswith("FAILED")
    assert "bleu-1" in junit.read_text(encoding="utf-8")
    assert "bleu-1" in markdown.read_text(encoding="utf-8")
    assert command("check", "runs", "--baseline", base, "--update").code == 0
    assert command("check", "runs", "--baseline", base).code == 0
    base.write_text(base.read_text(encoding="utf-8").replace("0.5", "0.6", 1), encoding="utf-8")
    spoilt = command("check", "runs", "--baseline", base)
    assert (spoilt.code, spoilt.err.count("\n")) == (2, 1)
    assert "changed by hand" in spoilt.err


def test_no_output_takes_the_place_of_another_file(
    command: Callable[..., Any], holding: Callable[..., None], entry: Make, tmp_path: Path
) -> None:
    base, new = tmp_path / "b.json", tmp_path / "new"
    holding(entry())
    assert command("check", "runs", "--baseline", base, "--update").code == 0
    before = base.read_bytes()
    for files, lost in (
        (("--markdown", base), "--baseline"),
        (("--junit", base), "--baseline"),
        (("--markdown", new, "--junit", new), "--markdown"),
    ):
        refused = command("check", "runs", "--baseline", base, *files)
        assert (refused.code, refused.out, refused.err.count("\n")) == (2, "", 1)
        assert f"it would overwrite {lost}. Name another file." in refused.err
        assert base.read_bytes() == before
        assert not new.exists()


def test_an_update_of_a_baseline_changed_by_hand_is_refused(
    command: Callable[..., Any],
    holding: Callable[..., None],
    entry: Make,
    snapshot: Snap,
    tmp_path: Path,
) -> None:
    base = tmp_path / "b.json"
    baselines.write(base, snapshot(entry()))
    holding(entry())
    spoilt = base.read_text(encoding="utf-8").replace("0.5", "0.6", 1)
    base.write_text(spoilt, encoding="utf-8")
    assert command("check", "runs", "--baseline", base, "--update").code == 2
    assert base.read_text(encoding="utf-8") == spoilt


def test_texts_are_kept_only_when_something_is_written(command: Callable[..., Any]) -> None:
    result = command("check", "runs", "--baseline", "b.json", "--keep-texts")
    assert result.code == 2
    assert "--update" in result.err


def test_some_seeds_are_checked_as_the_option_says(
    command: Callable[..., Any],
    holding: Callable[..., None],
    entry: Make,
    snapshot: Snap,
    tmp_path: Path,
) -> None:
    base = tmp_path / "b.json"
    baselines.write(base, snapshot(entry(seed=1), entry(seed=2)))
    holding(entry(seed=1))
    assert command("check", "runs", "--baseline", base).code == 1
    assert command("check", "runs", "--baseline", base, "--seeds", "1").code == 0
    unknown = command("check", "runs", "--baseline", base, "--seeds", "1,3")
    assert (unknown.code, unknown.err.count("\n")) == (2, 1)
    assert "the baseline holds no results of seed 3" in unknown.err
    assert command("check", "runs", "--baseline", base, "--seeds", "1", "--update").code == 2


def test_a_folder_without_results_is_a_mistake(command: Callable[..., Any], tmp_path: Path) -> None:
    result = command("check", tmp_path, "--baseline", tmp_path / "b.json")
    assert result.code == 2
    assert "there are no results" in result.err


def test_texts_of_other_runs_are_shown_here_and_published_only_where_that_is_allowed(
    entry: Make, snapshot: Snap
) -> None:
    for corpus, is_public in (("demo", True), ("dailydialog", False)):
        old, new = (
            snapshot(one.model_copy(update={"job": one.job.model_copy(update={"corpus": corpus})}))
            for one in (entry(), entry(texts=("yes", "nay", "i do")))
        )
        comparison = compare(as_baseline(old, Path("old runs")), new, old)
        assert '- "no"' in "\n".join(terminal(comparison))
        public = to_markdown(summarise(comparison, public=True), "old runs")
        assert ("nay" in public) is is_public
        assert "compared with the runs of old runs" in public
        assert "--update" not in public


def test_of_responses_that_differ_at_the_end_the_end_is_shown(entry: Make, snapshot: Snap) -> None:
    long = "word " * 60
    old, new = (entry(texts=("yes", "no", f"{long}{end}")) for end in ("", "at last"))
    lines = terminal(compare(snapshot(old), snapshot(new)))
    assert any("at last" in line for line in lines)
