"""Trackers: given everything once, and never the end of a run."""

from __future__ import annotations

import ast
import importlib.metadata
import sys
import types
from importlib.metadata import EntryPoint

import pytest

from dialbench.bench import run
from dialbench.errors import InputError, UnknownName
from dialbench.running.plan import Request
from dialbench.running.progress import Board
from dialbench.running.tracking import GROUP, TrackedDisplay, find_trackers
from dialbench.scoring.options import ScoringOptions
from dialbench.text.cleaning import slug

PACKAGE = """
class Kept:
    def __init__(self, folder):
        self.file = folder.with_suffix(".txt")
        self.events = []
    def losses(self, run, epoch, values):
        self.events.append(("losses", run, epoch, sorted(values)))
    def scores(self, run, options, values):
        self.events.append(("scores", run, options.get("epochs"), sorted(values)))
    def close(self):
        self.file.write_text("\\n".join(map(repr, self.events)))

def unreachable(folder):
    raise ConnectionError("no server\\nat that address")

class Dying(Kept):
    def losses(self, run, epoch, values):
        raise SystemExit("quota exceeded")
    def close(self):
        raise AssertionError("it should have been left alone")
"""
POINTS = {
    "kept": "tracker_package:Kept",
    "unreachable": "tracker_package:unreachable",
    "dying": "tracker_package:Dying",
    "gone": "no_such_package:Anything",
    "lost": "tracker_package:Missing",
}


@pytest.fixture(autouse=True)
def points(tmp_path_factory, monkeypatch):
    """A package that registers trackers, good and bad ones."""
    folder = tmp_path_factory.mktemp("package")
    (folder / "tracker_package.py").write_text(PACKAGE)
    monkeypatch.syspath_prepend(folder)
    actual = importlib.metadata.entry_points
    known = [EntryPoint(name, value, GROUP) for name, value in POINTS.items()]
    known.append(EntryPoint("tensorboard", "dialbench.running.tensorboard:TensorBoard", GROUP))
    monkeypatch.setattr(
        importlib.metadata,
        "entry_points",
        lambda group: known if group == GROUP else actual(group=group),
    )
    yield
    monkeypatch.delitem(sys.modules, "tracker_package", raising=False)


TRAINED = "transformer[epochs=2,embedding=16,layers=1,attention=8,feed_forward=16]"
REQUEST = Request(f"{TRAINED},copy-last", preset="quick", seeds=[1], limit_train=20, limit_test=5)
LABEL = f"{TRAINED} on demo, seed 1, greedy"
FAST = {"formats": ["md"], "scoring": ScoringOptions(metrics=["dist-1"])}


def events(out, **options):
    outcome = run(REQUEST, out=out, **FAST, **options)
    return outcome, [ast.literal_eval(line) for line in (out / "kept.txt").read_text().splitlines()]


@pytest.mark.parametrize("jobs", [1, 2])
def test_it_gets_every_epoch_and_the_scores(tmp_path, jobs):
    outcome, lines = events(tmp_path, tracker=["kept"], jobs=jobs)
    assert not outcome.failed
    (result,) = [r for r in outcome.results if r.job.system == TRAINED]
    epochs = [epoch for kind, label, epoch, _ in lines if (kind, label) == ("losses", LABEL)]
    assert epochs == [int(row["epoch"]) for row in result.curve]
    names = {name for row in result.curve for name in row} - {"epoch"}
    assert all(set(line[3]) <= names for line in lines if line[0] == "losses")
    scored = {label: values for kind, label, _, values in lines if kind == "scores"}
    assert scored.keys() == {str(r.job) for r in outcome.results}
    assert scored[LABEL] == sorted(result.scores)
    # what is done already is not given again
    assert events(tmp_path, tracker=["kept"])[1] == []


def test_what_was_answered_before_is_told_once_it_is_scored(tmp_path):
    _, lines = events(tmp_path, tracker=["kept"], answers_only=True)
    assert {kind for kind, *_ in lines} == {"losses"}
    outcome, lines = events(tmp_path, tracker=["kept"])
    assert {label for kind, label, *_ in lines if kind == "scores"} == {
        str(result.job) for result in outcome.results
    }
    assert all(values for *_, values in lines)


def test_a_failing_tracker_is_named_once_and_loses_nothing(tmp_path, capsys):
    outcome, lines = events(tmp_path, tracker=["dying", "unreachable", "kept"], progress="plain")
    assert not outcome.failed
    assert lines
    printed = capsys.readouterr().err.splitlines()
    warned = [line for line in printed if "tracker" in line]
    assert warned == [
        "warning: tracker unreachable gets nothing more (ConnectionError: no server)",
        "warning: tracker dying gets nothing more (SystemExit: quota exceeded)",
    ]


def test_none_gets_anything_unless_asked_for(tmp_path):
    run(REQUEST, out=tmp_path, **FAST)
    assert not (tmp_path / "kept.txt").exists()
    assert not (tmp_path / "tensorboard").exists()


def test_names_that_cannot_be_used(command, tmp_path):
    with pytest.raises(UnknownName, match="Did you mean 'kept'"):
        find_trackers(["keep"])
    with pytest.raises(InputError, match="Install no_such_package"):
        find_trackers(["gone"])
    with pytest.raises(InputError, match="'lost' cannot be loaded"):
        find_trackers(["lost"])
    result = command("run", "--models", "copy-last", "--tracker", "keep", "--out", tmp_path / "o")
    assert (result.code, "--tracker" in result.err) == (2, True)
    assert not (tmp_path / "o").exists()


class Writer:
    """Stands for torch's `SummaryWriter`, which needs the package tensorboard."""

    def __init__(self, folder):
        self.folder, self.lines = folder, []
        WRITERS.append(self)

    def add_scalar(self, name, value, step):
        self.lines.append((name, value, step))

    def add_hparams(self, options, values, run_name):
        assert all(isinstance(value, int | float | str) for value in options.values())
        self.lines.append((options, values, run_name))

    def flush(self):
        self.lines.append("flushed")

    def close(self):
        self.lines.append("closed")


WRITERS: list[Writer] = []


def test_tensorboard(tmp_path, monkeypatch):
    module = types.ModuleType("torch.utils.tensorboard")
    module.SummaryWriter = Writer
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", module)
    monkeypatch.delitem(sys.modules, "dialbench.running.tensorboard", raising=False)
    WRITERS.clear()
    factories = find_trackers(["tensorboard"])
    with TrackedDisplay(Board("none"), factories, tmp_path) as display:
        display.epoch(LABEL, {"epoch": 2.0, "valid_loss": 1.5})
        tracker = display._trackers["tensorboard"]
        tracker.scores(LABEL, {"epochs": 3, "tied": None}, {"bleu-4": 0.5, "ue": float("nan")})
    (writer,) = WRITERS
    folder = tmp_path / "tensorboard" / slug(LABEL)
    assert writer.folder == str(folder)
    assert writer.lines == [
        ("loss/valid_loss", 1.5, 2),
        "flushed",
        ({"epochs": 3, "tied": "None"}, {"score/bleu-4": 0.5}, "."),
        "closed",
    ]
    monkeypatch.delitem(sys.modules, "dialbench.running.tensorboard", raising=False)


def test_tensorboard_that_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    for name in ("torch.utils.tensorboard", "dialbench.running.tensorboard"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    with pytest.raises(InputError, match="Install tensorboard, or leave the tracker out"):
        find_trackers(["tensorboard"])
