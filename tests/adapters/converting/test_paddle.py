"""Tensors in PaddlePaddle's two layouts."""

from __future__ import annotations

import pickle
import struct
from contextlib import suppress

import numpy as np
import pytest
from dialbench_adapters.pretrained.paddle import read_tensors

from dialbench.errors import InputError

from .archives import FLOAT, record, write_dygraph, write_variables

TENSORS = {
    "Model/A_0.w_0": np.arange(6, dtype="<f4").reshape(2, 3),
    "Model/A_0/B_0.b_0": np.array([0.5], dtype="<f4"),
    "Model/wide": np.ones((1, 300), dtype="<f4"),
}


def refused(path, said):
    with pytest.raises(InputError, match=said) as error:
        read_tensors(path)
    assert "\n" not in error.value.message
    assert str(path) in error.value.message


@pytest.mark.parametrize("packed", [False, True])
def test_one_file_for_everything(tmp_path, packed):
    path = tmp_path / "model.pdparams"
    write_dygraph(path, TENSORS, packed=packed)
    tensors = read_tensors(path)
    assert tensors.keys() == TENSORS.keys()
    for name, array in TENSORS.items():
        assert np.array_equal(tensors[name].numpy(), array)


def test_a_file_a_tensor(tmp_path):
    write_variables(tmp_path, TENSORS)
    tensors = read_tensors(tmp_path / "Model")
    assert tensors.keys() == TENSORS.keys()
    for name, array in TENSORS.items():
        assert np.array_equal(tensors[name].numpy(), array)


@pytest.mark.parametrize(
    ("kind", "dtype"), [(1, "<i2"), (2, "<i4"), (3, "<i8"), (4, "<f2"), (5, "<f4"), (6, "<f8")]
)
def test_every_type(tmp_path, kind, dtype):
    array = np.array([[1, -2, 3]], dtype=dtype)
    write_dygraph(tmp_path / "a.pdparams", {"x": array}, kind=kind)
    assert np.array_equal(read_tensors(tmp_path / "a.pdparams")["x"].numpy(), array)


def test_what_is_cut_anywhere_is_one_line(tmp_path):
    whole = tmp_path / "whole.pdparams"
    write_dygraph(whole, {"x": np.ones((2, 2), dtype="<f4")})
    data = whole.read_bytes()
    for size in range(len(data)):
        path = tmp_path / "cut.pdparams"
        path.write_bytes(data[:size])
        refused(path, "ends too early|damaged")


def test_what_is_damaged_is_one_line(tmp_path):
    """Any byte of the frame changed: refused, or read as other numbers, never a traceback."""
    whole = tmp_path / "whole.pdparams"
    write_dygraph(whole, {"x": np.ones((2, 2), dtype="<f4")})
    data = bytearray(whole.read_bytes())
    for place in range(256, len(data)):
        for value in (0x00, 0x7F, 0xFF):
            path = tmp_path / "changed.pdparams"
            path.write_bytes(data[:place] + bytes([value]) + data[place + 1 :])
            with suppress(InputError):
                read_tensors(path)


def test_a_pickle_is_never_opened(tmp_path):
    path = tmp_path / "new.pdparams"
    path.write_bytes(pickle.dumps({"x": np.ones(2)}))
    refused(path, "is a pickle")


def test_what_else_is_refused(tmp_path):
    path = tmp_path / "a.pdparams"
    write_dygraph(path, {"x": np.ones(2, dtype="<f4")})
    path.write_bytes(path.read_bytes() + b"\0")
    refused(path, "behind the last tensor")
    write_dygraph(path, {"x": np.ones(2, dtype="<f4")}, kind=22)
    refused(path, "of type 22")
    path.write_bytes(b"\0" * 256 + b"NUMB" + b"\0" * 8)
    refused(path, "no TNUM")
    path.write_bytes(struct.pack("<I", 1) + b"\0" * 8)
    folder = tmp_path / "one"
    folder.mkdir()
    (folder / "x").write_bytes(struct.pack("<IQ", 1, 0) + record(np.ones(1, "<f4"), FLOAT))
    with pytest.raises(InputError, match="of version 1"):
        read_tensors(folder)
    with pytest.raises(InputError, match="cannot be read"):
        read_tensors(tmp_path / "nowhere")
