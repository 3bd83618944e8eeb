"""The display says what happens, once, on its own stream, and never hangs."""

from __future__ import annotations

import io
import re
import threading

import pytest

from dialbench.adapter import Progress
from dialbench.running.agenda import Agenda
from dialbench.running.progress import Board, JobProgress
from dialbench.scoring.meter import Meter

NAME = "paraformer-n[layout=full] on demo"


class Terminal(io.StringIO):
    """A stream that takes itself for a terminal."""

    def isatty(self) -> bool:
        return True


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def lines(stream: io.StringIO) -> list[str]:
    return stream.getvalue().splitlines()


def test_plain_has_a_line_for_each_stage_and_epoch() -> None:
    stream = io.StringIO()
    with Board("plain", stream) as board:
        progress = JobProgress(board, NAME)
        for epoch in (1, 2):
            for step in (1, 2, 3):
                progress.update(
                    "train", epoch=epoch, epochs=2, step=step, steps=3, loss=3 / step, rate=99.6
                )
        for step in (1, 5):
            progress.update("respond", step=step, steps=5)
        board.done(NAME, 3725.4)
    assert lines(stream) == [
        f"{NAME}: train",
        f"{NAME}: train: epoch 1/2, step 3/3, loss 1.0000, rate 100/s",
        f"{NAME}: train: epoch 2/2, step 3/3, loss 1.0000, rate 100/s",
        f"{NAME}: respond",
        f"{NAME}: respond: step 5/5",
        f"{NAME}: done in 1:02:05",
    ]


def test_plain_keeps_jobs_apart() -> None:
    stream = io.StringIO()
    with Board("plain", stream) as board:
        first, second = JobProgress(board, "a"), JobProgress(board, "b")
        first.update("train", epoch=1)
        second.update("train", epoch=1)
        first.update("train", epoch=2)
        board.failed("b", "ValueError:\n  no data")
    assert lines(stream) == [
        "a: train",
        "b: train",
        "a: train: epoch 1",
        "b: train: epoch 1",
        "b: failed: ValueError: no data",
    ]


def test_a_warning_is_shown_once_and_kept() -> None:
    stream = io.StringIO()
    with Board("plain", stream) as board:
        progress = JobProgress(board, "a")
        for text in ("half\nprecision", "half precision", "slow"):
            progress.warn(text)
        board.say("by the way")
    assert isinstance(progress, Progress)
    assert progress.notes == ["half precision", "slow"]
    assert lines(stream) == ["a: warning: half precision", "a: warning: slow", "by the way"]


@pytest.mark.parametrize("stream", [io.StringIO(), Terminal()])
def test_none_says_nothing_and_keeps_warnings(stream: io.StringIO) -> None:
    with Board("none", stream) as board:
        progress = JobProgress(board, "a")
        progress.update("train", epoch=1)
        progress.warn("slow")
        board.done("a", 1)
        board.failed("b", "gone")
        assert stream.getvalue() == ""
        board.warn("its file has changed")
    assert stream.getvalue().strip().endswith("warning: its file has changed")
    assert progress.notes == ["slow"]


def test_rich_is_plain_without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Board("rich", io.StringIO()).mode == "plain"
    monkeypatch.setenv("TERM", "xterm")
    assert Board("rich", Terminal()).mode == "rich"
    monkeypatch.setenv("TERM", "dumb")
    assert Board("rich", Terminal()).mode == "plain"


def test_progress_goes_to_the_error_stream(capsys: pytest.CaptureFixture[str]) -> None:
    with Board("plain") as board:
        board.done("a", 1)
    assert capsys.readouterr() == ("", "a: done in 0:01\n")


def rich_board(
    monkeypatch: pytest.MonkeyPatch, clock: Clock, stream: io.StringIO | None = None
) -> Board:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    return Board("rich", stream or Terminal(), clock)


def shown(board: Board) -> list[list[str]]:
    """The cells of the live table as drawn, line by line, empty ones left out."""
    from rich.console import Console

    stream = io.StringIO()
    Console(file=stream, width=120).print(board._screen())
    return [re.split(r"\s{2,}", line.strip()) for line in lines(stream)]


def test_the_table_shows_running_jobs_with_brackets_and_time_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock()
    board = rich_board(monkeypatch, clock)
    progress = JobProgress(board, NAME)
    progress.update("train", epoch=1, epochs=4, step=1, steps=10, loss=2.34567, rate=12.4)
    clock.now = 60.0
    progress.update("train", epoch=2, epochs=4, step=1, steps=10, loss=1.5, rate=12.4)
    heading, row = shown(board)
    assert " ".join(heading).split() == ["system", "stage", "epoch", "step", "loss", "rate", "ETA"]
    # One epoch took a minute; 2.9 of four are left.
    assert row == [NAME, "train", "2/4", "1/10", "1.5000", "12/s", "2:54"]
    board.done(NAME, 60)
    assert shown(board) == []


def test_time_left_starts_anew_with_each_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    board = rich_board(monkeypatch, clock)
    progress = JobProgress(board, "a")
    progress.update("train", epoch=1, epochs=1, step=1, steps=2)
    clock.now = 100.0
    progress.update("respond", step=500, steps=1000)
    assert shown(board)[1] == ["a", "respond", "500/1000"]
    clock.now = 110.0
    progress.update("respond", step=600, steps=1000)
    assert shown(board)[1] == ["a", "respond", "600/1000", "0:40"]


def test_rich_prints_outcomes_as_they_are_and_cleans_up(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    with rich_board(monkeypatch, Clock(), stream) as board:
        progress = JobProgress(board, NAME)
        progress.update("train", epoch=1)
        progress.warn("[bold]slow[/bold]")
        board.failed(NAME, "no [data]")
    text = stream.getvalue()
    assert f"{NAME}: warning: [bold]slow[/bold]" in text
    assert f"{NAME}: failed: no [data]" in text
    assert text.count("\x1b[?25l") == text.count("\x1b[?25h") == 1


def test_drawing_does_not_wait_for_who_is_printing(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[bool] = []

    class Slow(Terminal):
        """Lets another thread draw the table in the middle of a line about a finished job."""

        def write(self, text: str) -> int:
            if "done in" in text:
                drawer = threading.Thread(target=board._screen, daemon=True)
                drawer.start()
                drawer.join(timeout=10)
                drawn.append(not drawer.is_alive())
            return super().write(text)

    with rich_board(monkeypatch, Clock(), Slow()) as board:
        JobProgress(board, "a").update("train", epoch=1)
        JobProgress(board, "b").update("train", epoch=1)
        board.done("a", 1)
    assert drawn == [True]


def test_threads_can_share_a_board() -> None:
    stream = io.StringIO()
    with Board("plain", stream) as board:

        def work(label: str) -> None:
            progress = JobProgress(board, label)
            for epoch in range(1, 51):
                progress.update("train", epoch=epoch, epochs=50)
            board.done(label, 1)

        threads = [threading.Thread(target=work, args=(str(number),)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for number in range(4):
        own = [line for line in lines(stream) if line.startswith(f"{number}: ")]
        epochs = [f"{number}: train: epoch {epoch}/50" for epoch in range(1, 51)]
        assert own == [f"{number}: train", *epochs, f"{number}: done in 0:01"]


HOSTILE = "\x1b]0;owned\x07\x1b[2Ja\rb\x9b31m \u202ec\u200b\x00"


@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
def test_nothing_from_outside_steers_the_terminal(stream: type[io.StringIO]) -> None:
    """Labels, stages, warnings and reasons come from systems, files and servers."""
    shown = stream()
    with Board("rich", shown) as board:
        progress = JobProgress(board, HOSTILE)
        progress.update(HOSTILE, step=1, steps=2)
        progress.warn(HOSTILE)
        board.say(HOSTILE)
        board.failed(HOSTILE, HOSTILE)
        board.done(HOSTILE, 1.0)
    text = shown.getvalue()
    for part in ("\x1b]0", "\x1b[2Ja", "\x07", "\x9b", "\u202e", "\u200b", "\x00", "a\rb"):
        assert part not in text
    assert progress.notes == ["]0;owned[2Ja b31m c"]


class Closed(io.StringIO):
    def write(self, text: str) -> int:
        raise BrokenPipeError(32, "Broken pipe")


def test_nobody_who_reads_is_no_reason_to_stop() -> None:
    with Board("plain", Closed()) as board:
        JobProgress(board, NAME).update("train", epoch=1, epochs=2)
        board.done(NAME, 1.0)


def test_the_screen_says_how_far_the_whole_run_is(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    board = rich_board(monkeypatch, clock)
    board.expect(Agenda({"a": True, "b": True, "c": True, "panel": False}))
    board.update("a", "train", {})
    assert shown(board)[0] == ["0 of 4 done"]
    clock.now = 60.0
    board.done("a", 60.0)
    board.update("b", "train", {})
    clock.now = 80.0
    # A system takes a minute: 40 s of b are left and all of c; the panel's time is not known.
    assert shown(board)[0] == ["1 of 4 done"]
    board.done("panel", 2.0)
    assert shown(board)[0] == ["2 of 4 done, about 1:40 left"]
    board.done("report", 5.0)
    assert shown(board)[0] == ["2 of 4 done, about 1:40 left"]


def test_jobs_at_once_share_the_time_that_is_left() -> None:
    agenda = Agenda(dict.fromkeys("abcde", True), at_once=2)
    assert agenda.remaining({}) is None
    agenda.finish("a", 30.0)
    agenda.finish("b", 50.0)
    assert agenda.remaining({"c": 10.0, "d": 100.0}) == (30.0 + 0.0 + 40.0) / 2


def test_plain_counts_jobs_and_repeats_a_long_stage_every_minute() -> None:
    stream, clock = io.StringIO(), Clock()
    with Board("plain", stream, clock) as board:
        board.expect(Agenda({"a": True, "b": True}))
        for clock.now in (0.0, 30.0, 59.0, 61.0, 90.0):
            board.update("a", "respond", {"step": clock.now, "steps": 100})
        board.done("a", 90.0)
        board.failed("b", "gone")
    assert lines(stream) == [
        "a: respond",
        "a: respond: step 61/100",
        "a: respond: step 90/100",
        "a: done in 1:30 (1 of 2 done, about 1:30 left)",
        "b: failed: gone (2 of 2 done)",
    ]


def test_pairs_that_the_judge_has_read_are_a_part_of_a_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock()
    board = rich_board(monkeypatch, clock)
    meter = Meter(JobProgress(board, "scores"))
    meter.begin(4)
    steps = meter.over("ab")
    next(steps)
    clock.now = 30.0
    meter.judged(4096, 8192)
    assert shown(board)[1] == ["scores", "score", "0/4 (judged 4,096/8,192)", "3:30"]
    next(steps)
    assert shown(board)[1][2] == "1/4"


def test_a_block_is_a_job_until_it_is_left() -> None:
    stream, clock = io.StringIO(), Clock()
    with Board("plain", stream, clock) as board:
        with board.job("report") as progress:
            progress.update("write", step=1)
            clock.now = 7.0
        with pytest.raises(ValueError, match="gone"), board.job("scores"):
            raise ValueError("gone")
    assert lines(stream) == [
        "report: write",
        "report: write: step 1",
        "report: done in 0:07",
    ]
