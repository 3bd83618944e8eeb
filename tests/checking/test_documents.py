"""What docs/checking.md and the files beside it show works as it stands there."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from dialbench.checking.seed_tolerance import seed_tolerance
from dialbench.cli import cli
from dialbench.store import baselines

ROOT = Path(__file__).resolve().parents[2]
DOCS, RESULTS = ROOT / "docs", ROOT / "results"
TEXT = (DOCS / "checking.md").read_text(encoding="utf-8")
ONE_THREAD = "OMP_NUM_THREADS=1 "
WORKFLOW = (DOCS / "check-workflow.yml").read_text(encoding="utf-8")


def hook() -> dict[str, str]:
    (block,) = re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)
    ((documented,),) = (repo["hooks"] for repo in yaml.safe_load(block)["repos"])
    return dict(documented)


def steps_of(job: str) -> list[str]:
    """The shell commands of a job of the example workflow."""
    return [step["run"] for step in yaml.safe_load(WORKFLOW)["jobs"][job]["steps"] if "run" in step]


def commands() -> Iterator[list[str]]:
    runs = [step for name in ("panel", "system") for step in steps_of(name)]
    parts = hook()["entry"].removeprefix("bash -c '").removesuffix("'").split("&&")
    for line in [*TEXT.splitlines(), *runs, *(part.strip() for part in parts)]:
        command = line.removeprefix(ONE_THREAD)
        if command.startswith("dialbench "):
            yield shlex.split(command, comments=True)[1:]


def numbers() -> str:
    """The command whose numbers are committed."""
    (line,) = re.findall(r"<!-- numbers -->\n```\n(.*)\n```", TEXT)
    return str(line)


@pytest.mark.parametrize("arguments", list(commands()), ids=" ".join)
def test_every_command_can_be_given(arguments: list[str]) -> None:
    name, *rest = arguments
    cli.commands[name].make_context(name, rest)


def test_there_are_commands_in_all_three() -> None:
    assert sum(arguments[0] == "check" for arguments in commands()) == 8


MINE = """
from dialbench.adapter import Adapter

class Mine(Adapter):
    name = "mine"

    def respond(self, contexts, decoding, run):
        return [context[-1] for context in contexts]
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with a system of its own, checked out before and after a change of nothing."""
    for checkout in (".", "before", "after"):
        (tmp_path / checkout / "systems").mkdir(parents=True)
        (tmp_path / checkout / "systems" / "mine.py").write_text(MINE)
    (tmp_path / "results").mkdir()
    return tmp_path


def run_steps(job: str, folder: Path) -> dict[str, subprocess.CompletedProcess[str]]:
    """The outcome of each step of a job but the installation, by its command."""
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": programs, "GITHUB_STEP_SUMMARY": str(folder / "summary")}
    return {
        step: subprocess.run(
            ["bash", "-c", step], cwd=folder, env=environment, capture_output=True, text=True
        )
        for step in steps_of(job)
        if not step.startswith("pip install")
    }


def test_the_panel_of_the_workflow_passes_against_its_own_baseline(repository: Path) -> None:
    run, check, *_ = steps = run_steps("panel", repository)
    assert steps[run].returncode == 0, steps[run].stderr
    assert steps[check].returncode == 2  # no baseline yet
    update = [sys.executable, "-m", "dialbench", *shlex.split(check)[1:], "--update"]
    subprocess.run(update, cwd=repository, check=True, capture_output=True)
    again = run_steps("panel", repository)
    assert [step.returncode for step in again.values()] == [0, 0, 0], again
    assert "everything is as in the baseline" in (repository / "summary").read_text()


def test_the_system_of_the_workflow_is_compared_with_what_it_was(repository: Path) -> None:
    same = run_steps("system", repository)
    assert [step.returncode for step in same.values()] == [0, 0, 0, 0], same
    assert "compared with the runs of runs/before" in (repository / "summary").read_text()
    mine = repository / "after" / "systems" / "mine.py"
    mine.write_text(MINE.replace("context[-1]", "context[-1].upper()"))
    shutil.rmtree(repository / "runs" / "after")
    changed = run_steps("system", repository)
    assert [step.returncode for step in changed.values()] == [0, 0, 1, 0], changed
    _, _, check, _ = changed.values()
    assert "100 of 100 responses changed" in check.stdout
    assert "--update" not in check.stdout


def test_the_committed_numbers_are_those_of_the_command() -> None:
    arguments = shlex.split(numbers().removeprefix(f"{ONE_THREAD}dialbench run "))
    options = cli.commands["run"].make_context("run", arguments).params
    held = baselines.read(RESULTS / "demo-quick.json")
    systems = options["models"].split(",")
    expected = [(system, seed) for system in systems for seed in options["seeds"]]
    documented = [(entry.job.system, entry.job.seed) for entry in held.entries]
    assert sorted(documented) == sorted(expected)
    for entry in held.entries:
        assert (entry.job.corpus, entry.job.preset) == ("demo", options["preset"])
        assert set(entry.scores) - {"different"} == set(options["metrics"])
        assert len(held.responses_of(entry)) == options["limit_test"]
        assert entry.circumstances.get("threads", 1) == 1


def test_ci_runs_one_seed_of_the_command() -> None:
    script = (ROOT / ".ci/run").read_text(encoding="utf-8")
    (program,) = re.findall(r"awk '(.*)' docs/checking\.md", script)
    options = ["awk", program, str(DOCS / "checking.md")]
    message = subprocess.run(options, capture_output=True, text=True, check=True)
    assert message.stdout.strip() == numbers()
    assert '"$numbers --seeds 1 --out $out"' in script
    assert 'check "$out" --baseline results/demo-quick.json --seeds 1\n' in script


def test_every_committed_number_that_may_round_otherwise_varies_over_seeds() -> None:
    """What never varied may not move, which no other machine could promise."""
    held = baselines.read(RESULTS / "demo-quick.json")
    values: dict[tuple[str, str], set[float | None]] = {}
    for entry in held.entries:
        for name, score in entry.scores.items():
            if "dtype" in entry.circumstances and name != "different":
                values.setdefault((entry.job.system, name), set()).add(score.value)
    assert len(values) == 4 * 9
    assert [cell for cell, documented in values.items() if len(documented) < 2] == []


@pytest.mark.parametrize("row", re.findall(r"^\| (\d+) \| ([\d.]+) \| ([\d.]+) \|$", TEXT, re.M))
def test_the_table_of_spreads_is_what_the_rule_gives(row: tuple[str, ...]) -> None:
    seeds, *printed = int(row[0]), *row[1:]
    half = ((seeds - 1) / 2) ** 0.5
    # Standard deviation 1: the two outer values at half a root of (n - 1), the rest between.
    values = [half, -half] + [0.0] * (seeds - 2)
    documented = [f"{seed_tolerance(values, seeds, cells):.1f}" for cells in (10, 100)]
    assert documented == printed
