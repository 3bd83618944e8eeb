"""Word vectors that networks start from."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from dialbench_adapters.blocks.embedding import WordEmbedding

from dialbench.adapter import Run
from dialbench.errors import InputError
from dialbench.neural.data import build_vocabulary
from dialbench.text.vectors import Vectors
from dialbench.text.vocabulary import PAD, Vocabulary

SYSTEMS = [
    *("seq2seq", "s2sa", "dvs2s", "hred", "vhred", "vhcr"),
    *("transformer", "paraformer-k", "rl-transformer", "cvae[start=scratch]", "svt[start=scratch]"),
]


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "two.txt"
    path.write_text("soup 1 2 3 4 5 6 7 8 9\nhurry 9 8 7 6 5 4 3 2 1\nzebra 0 0 0 0 0 0 0 0 1\n")
    return path


def test_takes_over_what_there_is_and_shrinks_the_rest():
    torch.manual_seed(1)
    vectors = Vectors(["b", "zebra"], np.array([[1, 2], [3, 4]], np.float32), "mine")
    table = WordEmbedding(1_000, 2, 0.7)
    table.start_from(vectors, Vocabulary(["a", "b", *map(str, range(993))]))
    weight = table.weight.detach()
    assert weight[6].tolist() == [1, 2]  # b stands behind five specials and a
    assert not weight[PAD].any()
    assert weight[7:].std().item() == pytest.approx(0.01, rel=0.1)


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_system_over_words_starts_from_them(system, build, eight, file):
    adapter = build(system, vectors=str(file), embedding=9)
    adapter.vocabulary = words = build_vocabulary(eight, 300)
    table = adapter._fresh_model(Run(1)).embedding.weight.detach()
    assert table[words.encode(["soup"])[0]].tolist() == list(range(1, 10))
    assert table[words.encode(["hurry"])[0]].tolist() == list(range(9, 0, -1))
    assert table[words.encode(["train"])[0]].abs().max() < 0.05


def test_both_tables_of_a_system_with_two_start_from_them(build, eight, file):
    adapter = build("s2sa", vectors=str(file), embedding=9)
    adapter.vocabulary = words = build_vocabulary(eight, 300)
    model = adapter._fresh_model(Run(1))
    soup = words.encode(["soup"])[0]
    for table in (model.embedding, model.response_embedding):
        assert table.weight[soup].tolist() == list(range(1, 10))


def test_other_contents_are_other_results(build, file):
    adapter = build(f"transformer[vectors={file},embedding=9]")
    before = adapter.inspect(adapter.config, ())
    moved = file.rename(file.with_name("moved.txt"))
    same = build(f"transformer[vectors={moved},embedding=9]")
    assert same.inspect(same.config, ()) == before
    changed = file.with_name("changed.txt")
    changed.write_text(moved.read_text().replace("9", "8"))
    other = build(f"transformer[vectors={changed},embedding=9]")
    assert other.inspect(other.config, ()) != before


def test_another_size_is_told_with_the_way_out(build, file):
    adapter = build(f"seq2seq[vectors={file},embedding=12]")
    with pytest.raises(InputError, match=r"size 9, but embedding=12.*embedding=9"):
        adapter.inspect(adapter.config, ())


def test_a_missing_file_is_told(build, tmp_path):
    adapter = build(f"seq2seq[vectors={tmp_path / 'none.txt'}]")
    with pytest.raises(InputError, match=r"none\.txt"):
        adapter.inspect(adapter.config, ())
