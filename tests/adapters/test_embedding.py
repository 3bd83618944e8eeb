"""Word vectors that networks start from."""

from __future__ import annotations

import pytest
import torch
from dialbench_adapters.blocks.embedding import WordEmbedding

from dialbench.adapter import Run
from dialbench.errors import InputError
from dialbench.neural.data import build_vocabulary
from dialbench.neural.model import WordOutput
from dialbench.neural.words import log_unigram, word_vectors
from dialbench.text.vocabulary import PAD

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
    table = WordEmbedding(1_000, 2, 0.7)
    before = table.weight.detach().clone()
    there = torch.arange(1_000).eq(6)
    table.start_from(torch.tensor([1.0, 2.0]).expand(1_000, 2), there)
    weight = table.weight.detach()
    assert weight[6].tolist() == [1, 2]
    assert not weight[PAD].any()
    assert weight[7:].std().item() == pytest.approx(0.01, rel=0.1)
    # BOS starts every answer, and SEP divides turns: a file's silence on them says nothing.
    assert torch.equal(weight[:5], before[:5])


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_system_over_words_starts_from_them(system, build, eight, file):
    adapter = build(system, vectors=str(file), embedding=9)
    adapter.vocabulary = words = build_vocabulary(eight, 300)
    table = adapter._new_model(Run(1)).embedding.weight.detach()
    assert table[words.encode(["soup"])[0]].tolist() == list(range(1, 10))
    assert table[words.encode(["hurry"])[0]].tolist() == list(range(9, 0, -1))
    assert table[words.encode(["train"])[0]].abs().max() < 0.05


@pytest.mark.parametrize(
    "system", [*SYSTEMS, "gpt2", "prophetnet[tied=false]", "seq2seq-lstm", "laed", "cvae-rnn"]
)
def test_every_system_starts_from_what_the_training_split_tells(system, build, eight):
    options = {"vectors": "corpus", "output_start": "corpus", "output_bias": "unigram"}
    adapter = build(system, **options)
    adapter.vocabulary = build_vocabulary(eight, 300)
    adapter.examples = adapter._encode(eight)
    model, V = adapter._new_model(Run(1)), len(adapter.vocabulary)
    word = adapter.vocabulary.encode(["chess"])[0]
    table = model.embedding.weight.detach()[word]
    made = word_vectors(adapter.examples, V, len(table))[word].to(table)
    assert made.any()
    assert torch.allclose(table, made * model.embedding.init_std)
    for output in (part for part in model.modules() if isinstance(part, WordOutput)):
        row = output.weight.detach()[word]
        expected = word_vectors(adapter.examples, V, len(row))[word].to(row)
        assert torch.cosine_similarity(row, expected, 0) == pytest.approx(1.0)
        assert torch.equal(output.bias.detach(), log_unigram(adapter.examples, V).to(row))


def test_both_tables_of_a_system_with_two_start_from_them(build, eight, file):
    adapter = build("s2sa", vectors=str(file), embedding=9)
    adapter.vocabulary = words = build_vocabulary(eight, 300)
    model = adapter._new_model(Run(1))
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
