"""Languages without spaces, and letters with accents of their own, through `score` and `run`."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

import pytest
from sacrebleu.metrics import BLEU

from dialbench.scoring.score import plain, score
from dialbench.store.layout import Store

RESPONSES = ["我们明天去公园吧。", "好的，几点见面？", "我不知道 dialbench 2.0 是什么。"]
REFERENCES = ["明天我们一起去公园。", "好啊，我们几点见面？", "我知道什么是 dialbench 2.0。"]


@pytest.fixture
def files(tmp_path):
    """Responses and references of the same lines, as text."""

    def write(responses, references):
        for name, texts in (("ours.txt", responses), ("refs.txt", references)):
            (tmp_path / name).write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
        return tmp_path / "ours.txt", tmp_path / "refs.txt"

    return write


@pytest.mark.parametrize("tokenizer", ["13a", "intl", "zh", "char"])
def test_bleu_is_that_of_sacrebleu_with_its_tokeniser(files, tokenizer):
    path, references = files(RESPONSES, REFERENCES)
    names = ["sacrebleu-4", "length", "dist-1"]
    (report,) = score([path], references=references, metrics=names, tokenizer=tokenizer)
    bleu = report["metrics"]["sacrebleu-4"]
    expected = BLEU(tokenize=tokenizer).corpus_score(RESPONSES, [REFERENCES]).score / 100
    assert bleu["value"] == pytest.approx(expected, rel=1e-12)
    assert f"|tok:{tokenizer}|" in bleu["signature"]
    assert "case:mixed" in bleu["signature"]


def test_characters_are_counted_apart(files):
    path, references = files(["你好你", "好 a"], ["你", "好"])
    (report,) = score([path], references=references, metrics=["length", "dist-1"], tokenizer="char")
    assert report["metrics"]["length"]["value"] == 2.5
    assert report["metrics"]["dist-1"]["value"] == 3 / 5


@pytest.mark.parametrize("tokenizer", ["default", "whitespace", "zh"])
def test_accents_of_their_own_change_no_value(files, tokenizer):
    words = ["Zoë likes the café là-bas", "où est le café, Zoë ?", "déjà vu"]
    references = ["Zoë aime le café", "le café est là", "déjà lu"]
    names = ["length", "dist-1", "bleu-2", "rouge-l", "f1", "chrf", "compression-ratio"]
    composed, decomposed = (
        score(paths[:1], references=paths[1], metrics=names, tokenizer=tokenizer)
        for paths in (
            files(words, references),
            files(words, [unicodedata.normalize("NFD", text) for text in references]),
        )
    )
    assert decomposed == composed


def test_a_run_has_the_tokeniser_it_is_given(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [
        {"id": str(n), "context": ["你好吗"], "references": [reference], "response": response}
        for n, (response, reference) in enumerate(zip(RESPONSES, REFERENCES, strict=True))
    ]
    Path("test.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    options = ("--corpus", "test.jsonl", "--metrics", "sacrebleu-4,length", "--progress", "none")
    for tokenizer in ("zh", "default"):
        result = command(
            *("run", "--models", "file[path=test.jsonl]", "--tokenizer", tokenizer, *options)
        )
        assert result.code == 0, result.err
        (profile,) = Path("results/runs").glob("answers/*/profile.json")
        assert json.loads(profile.read_text())["tokenizer"] == tokenizer
        (result,) = Store(Path("results/runs")).results()
        (expected,) = score(["test.jsonl"], metrics=list(result.scores), tokenizer=tokenizer)
        assert {name: plain(score) for name, score in result.scores.items()} == expected["metrics"]
