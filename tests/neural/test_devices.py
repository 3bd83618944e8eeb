"""Devices and precisions."""

from __future__ import annotations

import pytest
import torch

from dialbench.errors import InputError
from dialbench.neural import devices
from dialbench.neural.devices import autocast, describe, dtype_of, matrix_dtype, resolve


def test_resolve(monkeypatch):
    assert resolve("cpu") == "cpu"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert resolve("auto") == "cuda"
    assert resolve("cuda:1") == "cuda:1"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert resolve("auto") == "cpu"


@pytest.mark.parametrize("name", ["cuda", "mps", "tpu", ""])
def test_what_is_not_there(monkeypatch, name):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(InputError, match=r"--device: device .* is not available here"):
        resolve(name)


def test_precision(monkeypatch):
    assert dtype_of("float32", "cpu") == torch.float32
    assert dtype_of("float64", "cpu") == torch.float64
    assert dtype_of("bfloat16", "cpu") == torch.bfloat16
    for fast, dtype in [(True, torch.bfloat16), (False, torch.float32)]:
        monkeypatch.setattr(devices, "_cpu_multiplies_bfloat16", lambda fast=fast: fast)
        assert dtype_of("auto", "cpu") == dtype


def test_autocast_multiplies_in_bfloat16_only_where_told():
    weight, x = torch.ones(3, 3), torch.ones(2, 3)
    for dtype, expected in [(torch.bfloat16, torch.bfloat16), (torch.float32, torch.float32)]:
        with autocast("cpu", dtype):
            assert (x @ weight).dtype == expected
            assert matrix_dtype(weight) == expected
    assert matrix_dtype(weight.double()) == torch.float64


def test_description_names_what_ties_may_depend_on():
    facts = describe("cpu", torch.bfloat16)
    assert facts["dtype"] == "bfloat16"
    assert facts["device"].startswith("cpu (")
    assert facts["device"].endswith(f", {torch.backends.cpu.get_cpu_capability()})")
    assert facts["threads"] == 1
    assert facts["torch"] == torch.__version__


def test_a_cpu_is_named_by_its_model_where_the_system_tells_it(monkeypatch):
    cpu_info = "processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\nflags\t\t: fpu avx512_bf16\n"
    monkeypatch.setattr(devices, "_cpu_info", lambda: cpu_info)
    monkeypatch.setattr(devices.platform, "machine", lambda: "x86_64")
    assert describe("cpu", torch.float32)["device"].startswith("cpu (Some CPU @ 2 GHz, ")
    monkeypatch.setattr(devices, "_cpu_info", lambda: f"cpu family\t: 25\nmodel\t\t: 1\n{cpu_info}")
    assert describe("cpu", torch.float32)["device"].startswith("cpu (Some CPU @ 2 GHz 25/1, ")
    assert dtype_of("auto", "cpu") == torch.bfloat16
    monkeypatch.setattr(devices, "_cpu_info", lambda: "")
    assert "Some CPU" not in describe("cpu", torch.float32)["device"]
    assert dtype_of("auto", "cpu") == torch.float32
