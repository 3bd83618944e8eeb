"""Unusual responses through `dialbench score --tokenizer whitespace`, as docs/metrics.md says."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

LONG = " ".join("abcdefgh"[(i * i + i // 7) % 8] for i in range(600))
COUNTS = Counter([*LONG.split(), "a"])
LONG_ENTROPY = -sum(count / 601 * math.log(count / 601) for count in COUNTS.values())
METRICS = "length,dist-1,dist-2,bleu-2,rouge-l,ent-1,self-bleu,cider"
NO_REFERENCE = "no example has a reference"
LN2 = math.log(2)

# (response, references) in a line each; a value, or the reason why there is none, for METRICS.
CASES = {
    "empty": (
        [("", ["a"])],
        *(0, "no response has a token", "no response has a token", 0, 0),
        *("no response has a 1-gram", "there are fewer than two responses", 0),
    ),
    "one token": (
        [("a", ["a"])],
        *(1, 1, 0, 0, 1, 0, "there are fewer than two responses", 0),
    ),
    "punctuation": (
        [("? !", ["? ?"])],
        *(2, 1, 0.5, 0, 0.5, LN2, "there are fewer than two responses", 0),
    ),
    "emoji and Chinese": (
        [("你 好 😀 😀", ["你 好"])],
        *(4, 0.75, 0.75, 6**-0.5, 2 / 3, 1.5 * LN2, "there are fewer than two responses", 0),
    ),
    "600 tokens": (
        [(LONG, [LONG, "b"]), ("a", ["a"])],
        *(300.5, 8 / 601, len(set(pairwise(LONG.split()))) / 601, 1, 1, LONG_ENTROPY),
        # Nothing in common but one word, and every other order counts a tenth; the short one is
        # 599 words shorter than the other.
        (1 / 600 * 0.1**3 / (599 * 598 * 597)) ** 0.25 / 2,
        # Equal to one of two references, at 10; "a" is in both examples and weighs nothing.
        2.5,
    ),
    "equal, and all identical": (
        [("a b c d", ["a b c d"]), ("a b c d", ["a b c d"])],
        *(4, 0.5, 3 / 8, 1, 1, 2 * LN2, 1, 0),
    ),
    "several references": (
        [("a b", ["q q q", "a b", "h"])],
        *(2, 1, 0.5, 1, 1, LN2, "there are fewer than two responses", 0),
    ),
    "no reference": (
        [("a b", []), ("c", [])],
        *(1.5, 1, 1 / 3, NO_REFERENCE, NO_REFERENCE, math.log(3), 0, NO_REFERENCE),
    ),
}


def written(path: Path, lines: list[tuple[str, list[str]]]) -> Path:
    rows = [
        {"context": ["hello"], "references": references, "response": response}
        for response, references in lines
    ]
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("case", CASES)
def test_the_stated_results(command: Callable[..., Any], tmp_path: Path, case: str) -> None:
    lines, *expected = CASES[case]
    file = written(tmp_path / "edge.jsonl", lines)
    result = command("score", file, "--metrics", METRICS, "--tokenizer", "whitespace", "--json")
    actual = json.loads(result.out)["metrics"]
    assert "NaN" not in result.out
    for (name, score), expected_value in zip(actual.items(), expected, strict=True):
        if isinstance(expected_value, str):
            assert (score["value"], score["interval"]) == (None, None), name
            assert score["reason"] == expected_value, name
        else:
            assert score["value"] == pytest.approx(expected_value, rel=1e-12), name
            assert "reason" not in score


def test_a_cell_without_value_is_a_dash_with_its_reason_below(
    command: Callable[..., Any], tmp_path: Path
) -> None:
    file = written(tmp_path / "edge.jsonl", [("a b", [])])
    result = command("score", file, "--metrics", "length,bleu-1", "--tokenizer", "whitespace").out
    (row,) = (line for line in result.splitlines() if line.startswith("edge "))
    assert row.split()[1:] == ["2.0", "–"]
    assert f"Not available: BLEU-1 ({NO_REFERENCE})." in result
    assert "nan" not in result.lower()
