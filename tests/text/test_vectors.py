from __future__ import annotations

import gzip
import lzma
import os
import subprocess
import sys

import numpy as np
import pytest
from safetensors.numpy import save as packed

from dialbench.errors import InputError, StorageError
from dialbench.text.vectors import Vectors, load, save, train

GLOVE = "the 0.5 -1 2e-3\nat home 1 2 3\n, 0 0 1\n"
TOKENS = [f"w{i % 7} w{(i * i) % 5} w{i % 3} rare{i}".split() for i in range(60)]

PROGRAM = """
from dialbench.text.vectors import train
tokens = [f"w{i % 7} w{(i * i) % 5} w{i % 3} rare{i}".split() for i in range(60)]
print(train(tokens, size=8, seed=3).checksum)
"""


def written(tmp_path, text, name="v.txt"):
    path = tmp_path / name
    content = text.encode("utf-8") if isinstance(text, str) else text
    pack = {".xz": lzma.compress, ".gz": gzip.compress}.get(path.suffix, bytes)
    path.write_bytes(pack(content))
    return path


@pytest.mark.parametrize("name", ["v.txt", "v.txt.xz", "v.txt.gz"])
@pytest.mark.parametrize("header", ["", "3 3\n"])
def test_reads_glove_and_word2vec_text(tmp_path, name, header):
    vectors = load(written(tmp_path, header + GLOVE, name))
    assert vectors.words == ("the", "at home", ",")
    expected = np.array([[0.5, -1, 2e-3], [1, 2, 3], [0, 0, 1]], np.float32)
    np.testing.assert_array_equal(vectors.matrix, expected)
    assert vectors.matrix.dtype == np.float32
    assert vectors.name == "v.txt"
    assert vectors.rows["at home"] == 1


def test_trailing_spaces_unusual_spaces_and_repeated_words(tmp_path):
    vectors = load(written(tmp_path, "a\u00a0b 1 2 \r\nx\u0085 3 4\nx\u0085 5 6\n"))
    assert vectors.words == ("a\u00a0b", "x\u0085")
    assert vectors.matrix.tolist() == [[1, 2], [3, 4]]


def test_checksums_depend_on_content_alone(tmp_path):
    one = load(written(tmp_path, GLOVE))
    other = load(written(tmp_path, "3 3\n" + GLOVE, "w.txt.xz"))
    changed = load(written(tmp_path, GLOVE.replace("0.5", "0.6"), "c.txt"))
    assert one.checksum == other.checksum != changed.checksum
    assert len(one.checksum) == 64


@pytest.mark.parametrize(
    ("text", "where", "what"),
    [
        ("a 1 2\nb 1\n", "v.txt:2", "1 numbers where 2"),
        ("a 1 2\nb 1 2 3\n", "v.txt:2", "3 numbers where 2"),
        ("2 3\na 1 2\n", "v.txt:2", "2 numbers where 3"),
        ("a\n", "v.txt:1", "0 numbers where some"),
        ("a 1 2\nb 1 x\n", "v.txt:2", "could not convert string to float: 'x'"),
        ("a 1 nan\n", "v.txt:1", "not finite"),
        ("a 1 -inf\n", "v.txt:1", "not finite"),
        ("a 1 1e39\n", "v.txt:1", "beyond what float32 holds"),
        (f"{'9' * 5000} 1\na 1 2\n", "v.txt:2", "2 numbers where 1"),
        (b"a 1 2\nb\xff 1 2\n", "v.txt:2", "byte 2 of the line is not UTF-8"),
        ("", "v.txt", "no word vectors"),
        ("0 3\n", "v.txt", "no word vectors"),
        ("2 1\na 1\n", "v.txt", "promises 2 vectors, but 1 follow"),
    ],
)
def test_faults_name_file_and_line(tmp_path, text, where, what):
    with pytest.raises(InputError) as caught:
        load(written(tmp_path, text))
    assert caught.value.where == str(tmp_path / where)
    assert what in caught.value.what


def test_files_that_cannot_be_read_are_named(tmp_path):
    with pytest.raises(InputError, match=r"--vectors: .*none\.txt cannot be read"):
        load(tmp_path / "none.txt", where="--vectors")
    with pytest.raises(InputError, match=r"cannot be read"):
        load(tmp_path)
    damaged = tmp_path / "v.txt.xz"
    damaged.write_bytes(lzma.compress(GLOVE.encode() * 99)[:40])
    with pytest.raises(InputError, match=r"v\.txt\.xz:1: the compressed file is damaged"):
        load(damaged)


def test_what_is_saved_is_read_back_exactly(tmp_path):
    path = tmp_path / "folder" / "v.safetensors"
    vectors = Vectors(["a", "ö 😀"], np.array([[1, 1 / 3], [0, -2]], np.float32), "mine")
    save(vectors, path)
    again = load(path)
    assert (again.words, again.name, again.checksum) == (vectors.words, "mine", vectors.checksum)
    assert [p.name for p in path.parent.iterdir()] == ["v.safetensors"]


def test_saving_where_it_cannot_be_saved_leaves_nothing(tmp_path):
    blocked = tmp_path / "v.safetensors"
    blocked.mkdir()
    with pytest.raises(StorageError, match=r"v\.safetensors: is a directory"):
        save(Vectors(["a"], np.ones((1, 2), np.float32), "n"), blocked)
    assert list(tmp_path.iterdir()) == [blocked]


def test_a_damaged_saved_file_is_named(tmp_path):
    path = written(tmp_path, b"\x10\0\0\0\0\0\0\0 not a header    ", "v.safetensors")
    with pytest.raises(InputError, match=r"v\.safetensors: these are no saved word vectors"):
        load(path)


@pytest.mark.parametrize(
    ("words", "matrix", "what"),
    [
        ('["a", "b"]', [[1, 2], [3, float("nan")]], "a number in it is not finite"),
        ('["a", "b"]', [[1, 2], [3, float("inf")]], "a number in it is not finite"),
        ('["a", "b"]', [1, 2], "its matrix is not"),
        ('["a", "b"]', [[], []], "its matrix is not"),
        ("[1, 2]", [[1, 2], [3, 4]], "its words are not a list of strings"),
        ('{"a": 1, "b": 2}', [[1, 2], [3, 4]], "its words are not a list of strings"),
        ("5", [[1, 2], [3, 4]], "its words are not a list of strings"),
        ('["a", "a"]', [[1, 2], [3, 4]], "a word stands twice"),
        ('["a", "\\ud800"]', [[1, 2], [3, 4]], "half a surrogate pair"),
        ('["a"]', [[1, 2], [3, 4]], "1 words and 2 vectors"),
        ("[" * 100_000, [[1, 2], [3, 4]], "nested too deeply"),
    ],
)
def test_what_no_saving_leaves_is_refused(tmp_path, words, matrix, what):
    path = tmp_path / "v.safetensors"
    array = np.array(matrix, np.float32)
    path.write_bytes(packed({"matrix": array}, {"name": "n", "words": words}))
    with pytest.raises(
        InputError, match=r"v\.safetensors: these are no saved word vectors"
    ) as error:
        load(path)
    assert what in error.value.what


def test_training_keeps_frequent_words_only():
    vectors = train(TOKENS, size=8, seed=3)
    assert set(vectors.words) == {f"w{i}" for i in range(7)}
    assert vectors.matrix.shape == (7, 8)
    assert np.isfinite(vectors.matrix).all()


def test_training_again_gives_the_same_bits_and_another_seed_others():
    first = train(TOKENS, size=8, seed=3)
    assert train(iter(TOKENS), size=8, seed=3).checksum == first.checksum
    assert train(TOKENS, size=8, seed=4).checksum != first.checksum


def test_training_gives_the_same_bits_in_every_process():
    checksums = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert checksums == {train(TOKENS, size=8, seed=3).checksum + "\n"}


def test_training_on_too_little_text_says_so():
    with pytest.raises(InputError, match="no word occurs 5 times"):
        train([["a", "b"]], seed=1)
    with pytest.raises(InputError, match="no word occurs 5 times"):
        train([], seed=1)


def test_words_and_rows_must_agree():
    with pytest.raises(ValueError, match="1 words and 2 vectors"):
        Vectors(["a"], np.ones((2, 2), np.float32), "n")


def test_the_vectors_of_the_data_folder(data_folder):
    vectors = load(data_folder / "vectors" / "glove.twitter.27B.25d.top12k.txt.xz")
    assert vectors.matrix.shape == (11925, 25)
    assert vectors.name == "glove.twitter.27B.25d.top12k.txt"
