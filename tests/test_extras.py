"""The core without its extras: what it does all the same, and what it says of the rest."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from dialbench.errors import InputError
from dialbench.extras import (
    EXTRAS,
    PURPOSES,
    explain_import_error,
    install_command,
    require_installed,
)

ROOT = Path(__file__).resolve().parent.parent
LIGHT = """
import contextlib, io, json, sys
from importlib.machinery import PathFinder

actual, hidden = PathFinder.find_spec, set(json.loads(sys.argv[1]))
PathFinder.find_spec = (
    lambda name, *rest: None if name.partition(".")[0] in hidden else actual(name, *rest)
)

from dialbench.cli import main

results = []
for line in json.loads(sys.argv[2]):
    sys.argv = ["dialbench", *line.split()]
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as ended:
            results.append([ended.code, out.getvalue(), err.getvalue()])
print(json.dumps(results))
"""
RESPONSES = "results/runs/answers/{}/responses.jsonl"


def light(folder: Path, *lines: str) -> list[tuple[int, str, str]]:
    """Exit code, output and messages of commands where no extra is installed."""
    hidden = json.dumps([*EXTRAS, "tokenizers", "lexicalrichness", "textblob"])
    done = subprocess.run(
        [sys.executable, "-c", LIGHT, hidden, json.dumps(lines)],
        capture_output=True,
        text=True,
        cwd=folder,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [tuple(result) for result in json.loads(done.stdout)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Responses of a row without training, made where no extra is installed."""
    folder = tmp_path_factory.mktemp("light")
    few = "--limit-test 20 --jobs 1 --progress none --formats txt"
    ((code, out, err),) = light(folder, f"run --models copy-last,copy-reference {few}")
    assert code == 0, err
    assert "Not available: UE, UE (soft) (no judge: " in out
    return folder


def _responses(folder: Path, system: str) -> str:
    (file,) = folder.glob(RESPONSES.format(f"{system}*"))
    return str(file.relative_to(folder))


def test_the_core_scores_reports_and_checks(folder: Path) -> None:
    lines = {
        f"score {_responses(folder, 'copy-last')} --format txt": "pip install 'dialbench[nli]'",
        "report results/runs --out reports --formats txt,tex": "wrote reports/demo.tex",
        "check results/runs --baseline numbers.json --update": "The baseline now holds",
        "check results/runs --baseline numbers.json": "everything is as in the baseline",
        "cite results/runs": "dialbench",
    }
    for (code, out, err), expected in zip(light(folder, *lines), lines.values(), strict=True):
        assert code == 0, err
        assert expected in out + err


def test_what_needs_an_extra_says_so_in_one_line(folder: Path) -> None:
    mine = _responses(folder, "copy-last")
    commands = {
        "run --models seq2seq": "train",
        "run --models copy-last --device cuda --out other --progress none": "train",
        "chat transformer": "train",
        "nli train": "train",
        f"score {mine} --metrics ue --nli {folder}": "train",
        f"score {mine} --metrics emb-sentence --sentence-model {folder}": "embed",
        f"score {mine} --metrics bertscore --bert-model {folder}": "bertscore",
        f"score {mine} --metrics mauve --mauve-model {folder}": "mauve",
    }
    for (code, _, err), (line, extra) in zip(
        light(folder, *commands), commands.items(), strict=True
    ):
        *warnings, last = err.splitlines()
        assert code == 2, line
        assert last.startswith("Error: "), line
        assert last.endswith(f"Run: {install_command(extra)}"), last
        assert all(warning.startswith("warning: ") for warning in warnings), line


def test_listings_say_once_what_brings_what_is_missing(folder: Path) -> None:
    listed, examined = light(folder, "models", f"doctor --data {folder}/none")
    assert listed[0] == examined[0] == 0
    assert "copy-last" in listed[1]
    assert re.fullmatch(
        rf"warning: .*\bseq2seq, .*{re.escape(install_command('train'))}\n", listed[2]
    )
    missing = [line for line in examined[1].splitlines() if line.startswith("missing")]
    assert missing[: len(EXTRAS)] == [
        f"missing  {module}, for {PURPOSES[extra]}: {install_command(extra)}"
        for module, extra in EXTRAS.items()
    ]
    command = r"(pip install 'dialbench\[\w+\]'|`dialbench fetch [\w+-]+`\.|--data DIR)$"
    assert all(re.search(command, line) for line in missing), missing


def test_every_optional_package_is_in_the_extra_that_is_named() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras: dict[str, list[str]] = project["optional-dependencies"]
    names = {extra: {_name(package) for package in extras[extra]} for extra in extras}
    core = set(map(_name, project["dependencies"]))
    renamed = {"mauve": "mauve-text", "sklearn": "scikit-learn"}
    for module, extra in EXTRAS.items():
        package = renamed.get(module) or _name(module)
        assert package in names[extra]
        assert package not in core
    assert set(PURPOSES) == set(EXTRAS.values())
    assert all(f"dialbench[{extra}]" in install_command(extra) for extra in names)


def _name(requirement: str) -> str:
    name = re.match(r"[\w.-]+", requirement)
    assert name
    return re.sub(r"[-_.]+", "-", name[0]).lower()


def test_another_module_that_is_missing_is_not_explained_away() -> None:
    assert explain_import_error(ModuleNotFoundError(name="no_such_module")) is None
    assert explain_import_error(ModuleNotFoundError(name="torch.no_such_part")) is None


def test_what_is_installed_is_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    require_installed("torch", "gensim")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"--nli: it needs torch, .*'dialbench\[train\]'"):
        require_installed("torch", where="--nli")
