"""A training step where no tensor is on the CPU, tried on torch's device without contents.

There, as on a GPU, tensors of two devices do not mix; and where a GPU would be waited for because
somebody asks for a value, there is an error.
"""

from __future__ import annotations

from unittest.mock import Mock

import numpy as np
import pytest
import torch
from dialbench_adapters import rl_transformer
from dialbench_adapters.blocks.recurrent import precisely

from dialbench.adapter import Run
from dialbench.neural.data import encode_split, make_batch

SYSTEMS = [
    *("seq2seq", "hred", "vhred", "vhcr", "transformer", "cvae", "svt", "gpt2"),
    *("rl-transformer", "paraformer-k", "paraformer-n[redraw_every=step]"),
    *("prophetnet", "dialogved", "plato", "lic", "ivae-mi"),
    *("s2sa", "seq2seq-lstm", "cvae-lstm", "cvae-rnn", "laed"),
]
WORDS = {"vectors": "corpus", "output_start": "corpus", "output_bias": "unigram"}


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_step_mixes_no_devices_and_waits_for_no_value(
    build, eight, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    # torch knows no mixed precision for this device.
    monkeypatch.setattr(rl_transformer, "matrix_dtype", lambda weight: weight.dtype)
    adapter = build(name, **WORDS, start="scratch", precision="float32")
    adapter.vocabulary = adapter.known_words(eight)
    config = adapter.config
    adapter.examples = encode_split(
        eight, adapter.vocabulary, config.context_tokens, config.response_tokens
    )
    model = adapter._new_model(Run(1, "meta")).train()
    model.begin_epoch(1, 1)
    losses = model.loss(make_batch(adapter.examples, np.arange(8), "meta"), 0)
    losses.objective(10.0, 8.0).backward()
    learnt = [p.grad for p in model.parameters() if p.grad is not None]
    assert learnt
    assert all(gradient.is_meta for gradient in learnt)


def test_recurrent_layers_keep_their_precision_on_a_gpu() -> None:
    # There is none here: only what is asked of the layer can be seen.
    x, state = Mock(device=torch.device("cuda")), Mock()
    asked = []

    class Layer(torch.nn.Linear):
        def forward(self, *given):
            asked.append((given, torch.is_autocast_enabled("cuda")))

    precisely(Layer(1, 1), x, state)
    assert asked == [((x.to.return_value, state.to.return_value), False)]
    x.to.assert_called_once_with(torch.float32)
