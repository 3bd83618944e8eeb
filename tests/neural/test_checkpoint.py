"""Tensors and numbers on disk."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from dialbench.errors import StorageError
from dialbench.neural import checkpoint


def test_what_is_written_is_read(tmp_path):
    tensors = {
        "a": torch.randn(3, 4).t(),  # not contiguous
        "b": torch.tensor(7),
        "c": torch.zeros(0, 2, dtype=torch.bfloat16),
        "d": torch.randn(2, requires_grad=True),
    }
    numbers = {"loss": math.inf, "curve": [{"x": 0.1}], "word": "naïve"}
    checkpoint.write(tmp_path / "x.safetensors", tensors, numbers)
    actual, header = checkpoint.read(tmp_path / "x.safetensors")
    assert header == numbers
    assert actual.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert actual[name].dtype == tensor.dtype
        assert torch.equal(actual[name], tensor.detach())


@pytest.mark.parametrize("optimiser", [torch.optim.Adam, torch.optim.Adadelta])
def test_an_optimisers_state_survives(tmp_path, optimiser):
    def trained(resume: bool) -> list[float]:
        torch.manual_seed(1)
        layer = nn.Linear(3, 2)
        rule = optimiser(layer.parameters(), lr=0.1)
        for step in range(6):
            if resume and step == 3:
                state = checkpoint.flatten("adam.", rule.state_dict()["state"])
                checkpoint.write(tmp_path / "x", state)
                tensors, _ = checkpoint.read(tmp_path / "x")
                fresh = optimiser(layer.parameters(), lr=0.1)
                given = fresh.state_dict()
                given["state"] = checkpoint.unflatten("adam.", tensors)
                fresh.load_state_dict(given)
                rule = fresh
            rule.zero_grad()
            layer(torch.arange(3.0) + step).square().sum().backward()
            rule.step()
        return layer.weight.tolist()

    assert trained(resume=True) == trained(resume=False)


def test_missing_file(tmp_path):
    with pytest.raises(StorageError, match="cannot be read"):
        checkpoint.read(tmp_path / "nothing.safetensors")


def test_another_models_tensors(tmp_path):
    path = tmp_path / "model.safetensors"
    for tensors in [{"weight": torch.zeros(9, 9), "bias": torch.zeros(2)}, {}]:
        with pytest.raises(StorageError, match="another model") as caught:
            checkpoint.restore(nn.Linear(3, 2), tensors, path)
        assert caught.value.where == str(path)
