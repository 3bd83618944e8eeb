"""Trained systems in sizes that a test can afford, and the invented talk that they see."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from dialbench.adapter import Registry
from dialbench.records import Context, Example, Split

TINY = {
    "embedding": 16,
    "attention": 8,
    "heads": 2,
    "layers": 2,
    "feed_forward": 24,
    "hidden": 12,
    "vocabulary": 100,
    "context_tokens": 30,
    "response_tokens": 10,
    "batch_size": 4,
    "answer_batch": 3,
    "warmup": 10,
    "learning_rate": 5e-3,
    "epochs": 3,
    "precision": "float64",
}

_PAIRS = [
    (["Is the bakery open?"], "It opens at seven."),
    (["I lost my umbrella.", "Where?", "On the tram."], "Call their office."),
    (["Do you play chess?"], "Only with my aunt, and she always wins."),
    (["The soup is cold.", "I am sorry."], "Could you warm it up?"),
    (["Which way is north?"], "Over there."),
    (["Our train leaves at nine.", "Then hurry!"], "My bag is not packed."),
    (["Nice hat.", "Thank you.", "Is it new?"], "No, it was my father's."),
    (["Did the parcel come?"], "Yes."),
]


@pytest.fixture
def one_thread() -> Iterator[None]:
    """As results are exact for one number of threads only."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def build():
    """An untrained adapter from what `--models` takes, tiny where not told otherwise."""
    registry = Registry()

    def build(text: str, **options: Any):
        return registry.parse(text)[0].build({**TINY, **options})

    return build


@pytest.fixture(scope="session")
def eight() -> Split:
    """Eight pairs to learn by heart."""
    return Split(
        "train",
        [
            Example(f"pair-{i}", f"pair-{i}", tuple(context), (response,))
            for i, (context, response) in enumerate(_PAIRS)
        ],
    )


@pytest.fixture(scope="session")
def asked(eight) -> list[Context]:
    return [example.blind() for example in eight]


@pytest.fixture(scope="session")
def ready(build, eight):
    """An adapter with an untrained model in eval mode, its vocabulary and the eight as a batch."""
    from dialbench.adapter import Run
    from dialbench.neural.data import build_vocabulary, encode_split, make_batch

    def ready(text: str, *, seed: int | None = 5, **options: Any):
        adapter = build(text, **options)
        adapter.vocabulary = build_vocabulary(eight, adapter.config.vocabulary)
        model = adapter._fresh_model(Run(1)).eval()
        config = adapter.config
        data = encode_split(
            eight, adapter.vocabulary, config.context_tokens, config.response_tokens
        )
        return model, make_batch(data, np.arange(8), "cpu", seed, "infer")

    return ready
