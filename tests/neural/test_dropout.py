"""Dropout with masks of our own."""

from __future__ import annotations

import pytest
import torch

from dialbench.neural.dropout import Dropout


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_rate_and_scale(rate):
    torch.manual_seed(1)
    dropped = Dropout(rate)(torch.full((400, 250), 3.0))
    # 100,000 independent elements: five standard deviations
    tolerance = 5 * (rate * (1 - rate) / 100_000) ** 0.5
    assert dropped.eq(0).double().mean().item() == pytest.approx(rate, abs=tolerance)
    kept = dropped[dropped != 0]
    assert torch.allclose(kept, torch.full_like(kept, 3.0 / (1 - rate)))


@pytest.mark.parametrize("axis", [0, 1])
def test_rows_and_columns_are_independent(axis):
    torch.manual_seed(1)
    counts = Dropout(0.5)(torch.ones(2_000, 2_000)).eq(0).sum(axis).double()
    # binomial of 2,000: its variance is 500, known here to about 3 %
    assert counts.var().item() == pytest.approx(500, rel=0.15)


def test_eval_and_rate_zero_change_nothing():
    x = torch.randn(4, 5)
    assert Dropout(0.5).eval()(x) is x
    assert Dropout(0.0)(x) is x


def test_is_a_function_of_the_torch_seed():
    layer, x = Dropout(0.3), torch.ones(100)
    torch.manual_seed(5)
    first, second = layer(x), layer(x)
    torch.manual_seed(5)
    again = layer(x)
    assert torch.equal(first, again)
    assert not torch.equal(first, second)


def test_gradient_is_the_factor():
    x = torch.ones(50, dtype=torch.float64, requires_grad=True)
    dropped = Dropout(0.4)(x)
    dropped.sum().backward()
    assert x.grad is not None
    assert torch.equal(x.grad, dropped.detach())
    assert sorted(set(x.grad.tolist())) == pytest.approx([0.0, 1 / 0.6])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(), (3,), (2, 0, 4), (5, 7, 3)])
def test_shape_and_dtype_stay(shape, dtype):
    dropped = Dropout(0.5)(torch.ones(shape, dtype=dtype))
    assert dropped.shape == shape
    assert dropped.dtype == dtype
