"""A latent variable that pays is used: it tells what the context cannot."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from dialbench.adapter import Run
from dialbench.neural.data import build_vocabulary, encode_split, make_batch
from dialbench.records import Example, Split

pytestmark = pytest.mark.usefixtures("one_thread")
WORDS = ["red", "blue", "green", "black", "white", "brown", "grey", "north", "south", "east"]
ANSWERS, LENGTH = 8, 6


@pytest.fixture
def one_question() -> Split:
    """One context with eight answers that have nothing in common."""
    random = np.random.default_rng(0)
    answers = [" ".join(random.choice(WORDS, LENGTH)) for _ in range(ANSWERS)]
    return Split(
        "train", [Example(str(i), str(i), ("what ?",), (text,)) for i, text in enumerate(answers)]
    )


@pytest.mark.parametrize("name", ["vhred[word_drop=0]", "vhcr"])
def test_without_a_price_the_answer_is_told_through_the_latent(build, one_question, name):
    sizes = {"embedding": 32, "hidden": 32, "latent": 8, "latent_hidden": 32, "word_spread": 1.5}
    adapter = build(name, **sizes, recurrent_layers=1, kl_annealing=10**8)
    adapter.vocabulary = build_vocabulary(one_question, 100)
    model = adapter._new_model(Run(1)).train()
    batch = make_batch(
        encode_split(one_question, adapter.vocabulary, 9, 9), np.arange(ANSWERS), "cpu"
    )
    optimiser = torch.optim.Adam(model.parameters(), lr=5e-3)
    torch.manual_seed(1)
    for step in range(300):
        losses = model.loss(batch, step)
        optimiser.zero_grad()
        torch.autograd.backward(losses.total)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
    # Which of the answers it is costs whoever sees the context alone log 8 nats.
    assert float(losses.parts["nll"]) / ANSWERS < math.log(ANSWERS) / 2
    kl = sum(float(value) for key, value in losses.parts.items() if key.startswith("kl"))
    assert kl / ANSWERS > math.log(ANSWERS) / 2
