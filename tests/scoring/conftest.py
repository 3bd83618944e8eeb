"""Invented examples and responses, and files of them."""

from __future__ import annotations

import json

import numpy as np

from dialbench.records import Example

SENTENCE = "tea is warm so we sit by the lake and hear a bird sing"
WORDS = SENTENCE.split()


def text(seed, length=7):
    return " ".join(np.random.default_rng(seed).choice(WORDS, length))


def example(i):
    return Example(f"e{i}", f"d{i // 3}", (text(i + 500),), (text(i + 1000), text(i + 2000)))


PAIRS = [(example(i), text(i, 3 + i % 6)) for i in range(90)]


def written(path, pairs):
    lines = [
        {"id": e.id, "dialogue_id": e.dialogue_id, "context": e.context}
        | {"references": e.references, "response": response}
        for e, response in pairs
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path
