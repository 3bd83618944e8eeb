"""Checkpoints of the transformers library with pickled weights."""

from __future__ import annotations

import os
import shutil

import pytest
import torch
from dialbench_adapters.pretrained.pickled import unpickle

from dialbench.adapter import Run
from dialbench.errors import InputError


@pytest.fixture
def pickled(tiny, tmp_path):
    """A checkpoint as the library saved it in former times."""
    from transformers import AutoModelForCausalLM

    folder = tmp_path / "old"
    shutil.copytree(tiny("gpt2"), folder)
    weights = AutoModelForCausalLM.from_pretrained(folder).state_dict()
    (folder / "model.safetensors").unlink()
    torch.save(weights, folder / "pytorch_model.bin")
    return folder


def test_the_error_names_the_command_that_helps(pickled, command, build, eight, tiny):
    with pytest.raises(InputError, match="only pickled weights") as error:
        build(f"hf[weights={pickled},tune=false]").fit(eight, eight, Run(1))
    said = error.value.message
    _, _, hint = said.partition("`dialbench ")
    arguments = hint.split("`")[0].split()
    assert arguments[:3] == ["convert", "hf", str(pickled)]
    new = pickled.parent / "new"
    assert command(*arguments[:3], new).code == 0
    assert not list(new.glob("*.bin"))
    for system in ("hf", "gpt2"):
        adapter = build(f"{system}[weights={new},tune=false]")
        adapter.fit(eight, eight, Run(1))
        old = build(f"{system}[weights={tiny('gpt2')},tune=false]")
        old.fit(eight, eight, Run(1))
        for name, tensor in old.model.state_dict().items():
            assert torch.equal(adapter.model.state_dict()[name], tensor)


def test_several_files(pickled, command, build, eight):
    weights = torch.load(pickled / "pytorch_model.bin", weights_only=True)
    names = sorted(weights)
    (pickled / "pytorch_model.bin").unlink()
    for number, part in enumerate((names[:5], names[5:])):
        path = pickled / f"pytorch_model-0000{number + 1}-of-00002.bin"
        torch.save({name: weights[name] for name in part}, path)
    (pickled / "pytorch_model.bin.index.json").write_text("{}")
    new = pickled.parent / "new"
    assert command("convert", "gpt2", pickled, new).code == 0
    assert not (new / "pytorch_model.bin.index.json").exists()
    build(f"gpt2[weights={new},tune=false]").fit(eight, eight, Run(1))


class Evil:
    def __reduce__(self):
        return os.system, ("touch was-run",)


@pytest.mark.parametrize(
    ("saved", "said"),
    [
        (Evil(), "cannot be read without running what is in it"),
        ({"weights": Evil()}, "cannot be read without running what is in it"),
        ({"weights": 3}, "no tensors by name"),
        ([torch.ones(1)], "no tensors by name"),
    ],
)
def test_nothing_in_it_is_run(pickled, command, monkeypatch, tmp_path, saved, said):
    monkeypatch.chdir(tmp_path)
    torch.save(saved, pickled / "pytorch_model.bin")
    result = command("convert", "hf", pickled, tmp_path / "new")
    assert (result.code, said in result.err, result.err.count("\n")) == (2, True, 1)
    assert not (tmp_path / "was-run").exists()
    assert not (tmp_path / "new").exists()


def test_no_pickled_weights(tiny, command, tmp_path):
    result = command("convert", "hf", tiny("gpt2"), tmp_path / "new")
    assert (result.code, "there is no pytorch_model.bin" in result.err) == (2, True)
    assert command("convert", "nosuch", tmp_path, tmp_path / "new").code == 2


def test_no_end_of_a_damaged_file_is_a_traceback(tiny, command, tmp_path):
    old = tmp_path / "old"
    shutil.copytree(tiny("gpt2"), old)
    path = old / "pytorch_model.bin"
    torch.save({"w": torch.ones(4)}, path, _use_new_zipfile_serialization=False)
    whole = path.read_bytes()
    for end in range(1, len(whole), 7):
        path.write_bytes(whole[:end])
        with pytest.raises(InputError):
            unpickle(path)
