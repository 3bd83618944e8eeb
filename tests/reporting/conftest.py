"""Results of invented systems, as the store would hand them to a report."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from dialbench.records import Cell, Column, Decoding, Job, Result, Row, Score, Table
from dialbench.reporting.tables.build import build

SYSTEMS = (
    "Seq2Seq",
    "HRED",
    "VHRED",
    "VHCR",
    "Transformer",
    "CVAE",
    "SVT",
    "GPT-2",
    "RL Transformer",
    "PaRaFormer-N",
    "PaRaFormer-K",
)
METRICS = (
    "length",
    "mtld",
    "mattr",
    "dist-1",
    "dist-2",
    "dist-3",
    "ead-1",
    "bleu-1",
    "bleu-2",
    "rouge-l",
    "emb-average",
    "emb-greedy",
    "emb-extrema",
    "ue",
)
HOSTILE = [
    "<script>alert(1)</script>",
    r"\input{/etc/passwd}",
    "a_b%$#&~^{}",
    "a | b\nc\r\nd",
    "=cmd()",
    "+1",
    "-1",
    "@SUM(1)",
    "*bold* _it_ `code` [link](x) ![i](y)",
    '" onmouseover="x',
    "[b]red[/b]",
    "--- ,, '' `` ?` << >>",
    "a\x00b\x1b[31m\u202ec",
    "Ünïcode Łódź 中文 🙂",
    "$x$ $$y$$ \\(z\\)",
    "&lt;b&gt; &amp;",
    "\\\\ [2pt] *",
]
PLAIN = (Column("m", "M"),)


def table_of(labels=("a", "b"), *cells, columns=PLAIN, **more):
    rows = [
        Row(label, {c.name: (cells[i] if i < len(cells) else Cell(0.5)) for c in columns})
        for i, label in enumerate(labels)
    ]
    return Table(more.pop("name", "t"), more.pop("caption", "C"), columns, tuple(rows), **more)


def make_result(system: str = "a", scores: dict[str, Score] | None = None, **more: Any) -> Result:
    """A finished result; `more` names fields of the job or of the result."""
    fields = {"corpus": "demo", "seed": 1, "decoding": "greedy", "preset": "quick"}
    job = {name: more.pop(name, default) for name, default in fields.items()}
    job["decoding"] = Decoding.parse(job["decoding"])
    extra = {name: more.pop(name) for name in ("training", "answering") if name in more}
    return Result(Job(system, **job, **extra), more.pop("status", "done"), scores or {}, **more)


def make_score(value: float, n: int = 100, signature: str = "m|v:1", **more: Any) -> Score:
    """A score; sequences become arrays."""
    arrays = {
        name: np.asarray(more.pop(name), dtype=float)
        for name in ("per_response", "parts", "shares")
        if name in more
    }
    return Score(value, n, signature, **arrays, **more)


def measured(name: str, values: np.ndarray) -> Score:
    """A score as a metric gives it: corpus metrics have groups, the others responses."""
    mean = float(values.mean())
    reach = 2 * float(values.std()) / len(values) ** 0.5
    signature = f"{name}|scope:corpus|tok:default|v:1"
    interval = (mean - reach, mean + reach)
    if name.startswith(("dist", "ead", "mtld", "mattr")):
        parts = values.reshape(10, -1).mean(axis=1)
        return Score(
            mean, len(values), signature, parts=parts, shares=np.full(10, 0.1), interval=interval
        )
    return Score(mean, len(values), signature, per_response=values, interval=interval)


def make_study(systems: Sequence[str] = SYSTEMS, seeds: Sequence[int] = (1,)) -> list[Result]:
    """Results of several systems that really differ, with learning curves."""
    generator = np.random.default_rng(0)
    results = []
    for rank, system in enumerate(systems):
        for seed in seeds:
            scores = {}
            for place, name in enumerate(METRICS):
                level = 0.1 + 0.05 * place + 0.02 * ((rank * (place + 1)) % 11)
                scale = {"length": 30.0, "mtld": 100.0}.get(name, 1.0)
                noise = generator.normal(0, 0.15, size=300)
                scores[name] = measured(name, scale * (level + noise))
            epochs = 8 + rank % 5
            curve = [
                {
                    "epoch": float(epoch),
                    "train_loss": 2.5 + 3 * 0.7**epoch + 0.1 * rank - 0.03 * epoch,
                    "valid_loss": 3.0 + 2.6 * 0.72**epoch + 0.1 * rank + 0.01 * epoch,
                }
                for epoch in range(1, epochs + 1)
            ]
            results.append(make_result(system, scores, seed=seed, curve=curve))
    return results


@pytest.fixture(scope="session")
def result():
    """Makes one result; see `make_result`."""
    return make_result


@pytest.fixture(scope="session")
def score():
    """Makes one score; see `make_score`."""
    return make_score


@pytest.fixture(scope="session")
def make_systems():
    """Makes the results of several systems; see `make_study`."""
    return make_study


@pytest.fixture(scope="session")
def study() -> list[Result]:
    """Eleven systems, an upper bound, and one that failed."""
    reference = make_study(["copy-reference"])[0]
    oracle = make_result("copy-reference", dict(reference.scores), ranked=False)
    failed = make_result("Broken", status="failed", reason="the loss is not finite in epoch 3")
    return [oracle, *make_study(), failed]


@pytest.fixture(scope="session")
def table(study):
    return build(study, metrics=METRICS)[0]


@pytest.fixture(scope="session")
def pdflatex(tmp_path_factory):
    """`pdflatex(table, document)`: exit status and log, by default of the preamble it names."""
    program = shutil.which("pdflatex")
    if program is None:
        pytest.skip("pdflatex is not installed: apt-get install texlive-latex-extra")
    if not subprocess.run(["kpsewhich", "siunitx.sty"], capture_output=True, check=False).stdout:
        pytest.skip("siunitx is not installed: apt-get install texlive-science")
    folder = tmp_path_factory.mktemp("latex")

    def compile_(text, document=""):
        (folder / "this-file.tex").write_text(text, encoding="utf-8")
        preamble = [line[2:] for line in text.splitlines() if line.startswith("% ")]
        (folder / "main.tex").write_text(document or "\n".join(preamble), encoding="utf-8")
        command = [program, "-no-shell-escape", "-interaction=nonstopmode", "-halt-on-error"]
        run = subprocess.run([*command, "main.tex"], cwd=folder, capture_output=True, check=False)
        return run.returncode, run.stdout.decode("utf-8", "replace")

    return compile_
