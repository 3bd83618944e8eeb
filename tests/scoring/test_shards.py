from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from dialbench.errors import InputError
from dialbench.metrics import packed
from dialbench.metrics.packed import Shard, load, save
from dialbench.metrics.registry import names
from dialbench.scoring.options import InputOptions
from dialbench.scoring.score import score
from dialbench.scoring.shards import merge, write

WORDS = ["tea", "is", "warm", "so", "we", "sit", "by", "the", "lake", "and", "hear", "a", "bird"]
FREE = [
    name
    for name in names()
    if not name.startswith(("ue", "emb-", "vendi", "meteor", "novelty", "copy"))
]
DEMO, LAKE = InputOptions(corpus="demo"), InputOptions(corpus="lake")
ORDERED = ("mtld", "mattr", "mattr-4")


def responses(count: int, seed: int = 0) -> list[dict[str, object]]:
    draw = np.random.default_rng(seed)

    def text(most: int) -> str:
        return " ".join(draw.choice(WORDS, draw.integers(0, most)))

    return [
        {"id": f"test-{i // 3}-{i % 3 + 1}", "dialogue_id": f"test-{i // 3}", "context": [text(9)]}
        | {"references": [text(9) for _ in range(draw.integers(0, 3))], "response": text(12)}
        for i in range(count)
    ]


def written(path: Path, lines: list[dict[str, object]]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def in_shards(folder: Path, parts: list[list[dict[str, object]]], **options: object) -> list[Path]:
    folder.mkdir(exist_ok=True)
    files = [written(folder / f"part{i}.jsonl", part) for i, part in enumerate(parts) if part]
    return list(write(files, folder / "shards", **options))


def whole(folder: Path, lines: list[dict[str, object]], **options: object) -> dict[str, object]:
    (report,) = score([written(folder / "whole.jsonl", lines)], **options)
    return report["metrics"]


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_split_in_any_order_gives_the_very_same_scores(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("any")
    lines = responses(data.draw(st.integers(2, 40)), data.draw(st.integers(0, 99)))
    of = data.draw(st.lists(st.integers(0, 3), min_size=len(lines), max_size=len(lines)))
    parts = [[line for line, part in zip(lines, of, strict=True) if part == k] for k in range(4)]
    options = {"metrics": FREE, "tokenizer": "whitespace", "vocabulary": 50}
    shards = data.draw(st.permutations(in_shards(folder, parts, **options)))
    assert merge(shards)["metrics"] == whole(folder, lines, **options)


def test_examples_without_a_dialogue_merge_to_the_very_same_scores(tmp_path):
    lines = [{k: v for k, v in line.items() if k != "dialogue_id"} for line in responses(40)]
    options = {"metrics": ["length", "dist-1", "bleu-2"]}
    merged = merge(in_shards(tmp_path, [lines[:17], lines[17:20], lines[20:]], **options))
    assert merged["metrics"] == whole(tmp_path, lines, **options)


def test_a_response_without_an_id_is_refused(tmp_path):
    lines = responses(3)
    del lines[1]["id"]
    with pytest.raises(InputError, match=r"part0\.jsonl:2: this line has no id\. .* its example"):
        in_shards(tmp_path, [lines], metrics=["length"])
    assert not list(tmp_path.rglob("*.shard"))


@pytest.mark.parametrize(
    "other", [{"response": "tea"}, {"references": ["tea"]}, {"alternatives": ["tea"]}]
)
def test_shards_of_namesakes_take_places_of_their_own(tmp_path, other):
    lines = responses(4)
    for machine, last in (("a", {}), ("b", other)):
        (tmp_path / machine).mkdir()
        written(tmp_path / machine / "x.jsonl", [*lines[:-1], {**lines[-1], **last}])
    files = [tmp_path / machine / "x.jsonl" for machine in ("a", "b")]
    options = {"metrics": ["length", "bleu-1"]}
    shards = list(write(files, tmp_path, **options))
    for shard, file in zip(shards, files, strict=True):
        assert merge([shard]) == score([file], **options)[0]
    assert list(write(files, tmp_path, **options)) == shards
    assert sorted(tmp_path.glob("*.shard")) == sorted(set(shards))
    assert len(set(shards)) == 2


@pytest.mark.parametrize(
    "other", [{"metrics": ["length", "dist-1"]}, {"tokenizer": "bert"}, {"inputs": LAKE}]
)
def test_what_is_counted_otherwise_takes_a_place_of_its_own(tmp_path, other):
    file = written(tmp_path / "x.jsonl", responses(4))
    options = [{"metrics": ["length"], "inputs": DEMO} | more for more in ({}, other)]
    names = [name for chosen in options for name in write([file], tmp_path, **chosen)]
    assert len(set(names)) == 2
    assert [list(write([file], tmp_path, **chosen)) for chosen in options] == [[n] for n in names]


def test_shards_tell_together_how_many_responses_a_context_has(tmp_path):
    lines = [
        line | {"alternatives": ["so warm", "a bird"][: 1 + place % 2]}
        for place, line in enumerate(responses(24))
    ]
    options = {"metrics": ["within-dist-1", "within-self-bleu"]}
    shards = in_shards(tmp_path, [lines[::2], lines[1::2]], **options)
    merged = merge(shards)["metrics"]
    assert merged == whole(tmp_path, lines, **options)
    for scores, name in ((merge([shards[0]])["metrics"], "2"), (merged, "2-3,mean:2.5")):
        assert f"|responses:{name}|" in scores["within-dist-1"]["signature"]


def test_out_of_order_only_the_rounding_of_intervals_differs(tmp_path):
    lines = responses(60)
    np.random.default_rng(1).shuffle(lines)
    options = {"metrics": ["length", "dist-2", "bleu-2", "rouge-l"]}
    merged = merge(in_shards(tmp_path, [lines[:20], lines[20:]], **options))["metrics"]
    for name, score_of in whole(tmp_path, lines, **options).items():
        assert (merged[name]["value"], merged[name]["n"]) == (score_of["value"], score_of["n"])
        assert merged[name]["interval"] == pytest.approx(score_of["interval"], rel=1e-9)


def test_metrics_with_resources_merge_too(tmp_path, data_folder, monkeypatch):
    monkeypatch.setattr("dialbench.scoring.resources.LEAST_TOKENS", 0)
    lines = responses(30)
    train = written(
        tmp_path / "train.jsonl",
        [{"turns": [str(line["response"]) or "tea", "warm tea"]} for line in responses(90, seed=1)],
    )
    options = {
        "metrics": [
            "meteor",
            "emb-average",
            "emb-greedy",
            "novelty",
            "copy-rate",
            "ead-1",
            "ead-2",
        ],
        "train": train,
        "data": data_folder,
    }
    shards = in_shards(tmp_path, [lines[::2], lines[1::2]], **options)
    merged = merge(shards)["metrics"]
    assert merged == whole(tmp_path, lines, **options)
    assert all(actual["value"] is not None for actual in merged.values())


def test_what_is_missing_keeps_its_reason(tmp_path):
    lines = responses(9)
    options = {"metrics": ["emb-greedy", "ead-1", "novelty"]}
    merged = merge(in_shards(tmp_path, [lines[:4], lines[4:]], **options))["metrics"]
    assert merged == whole(tmp_path, lines, **options)
    assert "--train" in merged["novelty"]["reason"]


def test_the_order_of_ids_is_that_of_their_numbers(tmp_path):
    lines = responses(36)
    parts = [lines[30:], lines[:30]]  # test-10 and on stand before test-2 among strings
    merged = merge(in_shards(tmp_path, parts, metrics=ORDERED))["metrics"]
    assert merged == whole(tmp_path, lines, metrics=ORDERED)


def test_without_a_known_order_metrics_of_order_have_no_value(tmp_path):
    lines = responses(12)[::-1]
    options = {"metrics": ["mtld", "dist-1"]}
    shards = in_shards(tmp_path, [lines[:5], lines[5:]], **options)
    merged = merge(shards)["metrics"]
    assert merged["dist-1"] == whole(tmp_path, lines, **options)["dist-1"]
    assert (merged["mtld"]["value"], merged["mtld"]["interval"]) == (None, None)
    assert merged["mtld"]["reason"] == (
        f"the test order is not known: the ids in {shards[0].name} do not ascend"
    )


def test_a_shard_alone_is_in_its_own_order(tmp_path):
    lines = responses(12)[::-1]
    merged = merge(in_shards(tmp_path, [lines], metrics=["mtld"]))["metrics"]
    assert merged == whole(tmp_path, lines, metrics=["mtld"])


def test_the_whole_is_called_as_its_shards_are(tmp_path):
    lines = responses(6)
    for machine in ("a", "b"):
        (tmp_path / machine).mkdir()
    files = [
        written(tmp_path / "a" / "hred.jsonl", lines[:3]),
        written(tmp_path / "b" / "hred.jsonl", lines[3:]),
    ]
    options = {"metrics": ["length"], "inputs": InputOptions(corpus="lake")}
    shards = [path for f in files for path in write([f], tmp_path / "one folder", **options)]
    assert len(set(shards)) == 2
    assert {key: merge(shards)[key] for key in ("system", "corpus")} == {
        "system": "hred",
        "corpus": "lake",
    }
    assert merge(shards, "mine")["system"] == "mine"
    other = list(write([written(tmp_path / "x.jsonl", responses(9)[6:])], tmp_path, **options))
    assert merge([*shards, *other])["system"] == "merged"


@pytest.mark.parametrize(
    ("first", "second", "complaint"),
    [
        ({}, {"tokenizer": "bert"}, r"b/.*\.shard: length is length\|.*tok:bert.* in .*a/"),
        ({}, {"metrics": ["length", "dist-1"]}, r"dist-1 is dist-1\|.* here and None in"),
        ({"inputs": DEMO}, {"inputs": LAKE}, r"its corpus is lake, that of .* is demo"),
        ({}, {"again": True}, r"b/.*\.shard: id 'test-0-3' is also in .*a/.*\.shard"),
    ],
)
def test_shards_that_do_not_belong_together_are_refused(tmp_path, first, second, complaint):
    lines = responses(8)
    rest = lines[2 if second.pop("again", False) else 3 :]
    (a,) = in_shards(tmp_path / "a", [lines[:3]], **{"metrics": ["length"], **first})
    (b,) = in_shards(tmp_path / "b", [rest], **{"metrics": ["length"], **second})
    with pytest.raises(InputError, match=complaint):
        merge([a, b])


def test_a_shard_given_twice_is_refused(tmp_path):
    (shard,) = in_shards(tmp_path, [responses(3)], metrics=["length"])
    with pytest.raises(InputError, match=r"id 'test-0-1' is also in"):
        merge([shard, shard])


class TestFile:
    @pytest.fixture
    def shard(self, tmp_path):
        (path,) = in_shards(tmp_path, [responses(7)], metrics=["cider", "bleu-2", "dist-1"])
        return path

    def test_it_comes_back_as_it_was(self, shard, tmp_path):
        again = tmp_path / "again.shard"
        save(load(shard), again)
        assert again.read_bytes() == shard.read_bytes()

    def test_nothing_but_tokens_and_numbers_is_kept(self, shard):
        arrays = load_file(shard)
        assert all(array.dtype.kind in "iuf" for array in arrays.values())
        assert isinstance(load(shard), Shard)

    @pytest.mark.parametrize("keep", [0, 100, -1])
    def test_a_cut_file_is_named(self, shard, keep):
        shard.write_bytes(shard.read_bytes()[:keep])
        with pytest.raises(InputError, match=r"\.shard: this is no shard .*--shards"):
            load(shard)

    def test_a_changed_number_is_noticed(self, shard):
        content = bytearray(shard.read_bytes())
        content[-1] ^= 1
        shard.write_bytes(content)
        with pytest.raises(InputError, match="checksum does not match"):
            load(shard)

    def test_other_safetensors_and_missing_files_are_named(self, tmp_path):
        path = tmp_path / "other.shard"
        save_file({"x": np.zeros(2)}, path)
        with pytest.raises(InputError, match=r"other\.shard: this is no shard"):
            load(path)
        with pytest.raises(InputError, match=r"none\.shard: this is no shard"):
            load(tmp_path / "none.shard")

    def test_another_version_is_named(self, shard, monkeypatch):
        monkeypatch.setattr("dialbench.metrics.packed.VERSION", 3)
        with pytest.raises(InputError, match="version 2, this dialbench reads 3"):
            load(shard)


class TestCommand:
    def test_merge_says_what_score_says(self, command, tmp_path):
        lines = responses(20)
        files = [
            written(tmp_path / "a.jsonl", lines[:9]),
            written(tmp_path / "b.jsonl", lines[9:]),
        ]
        options = ("--metrics", "dist-2,bleu-2,mtld", "--corpus", "lake")
        result = command("score", *files, *options, "--shards", tmp_path / "out", "--json")
        merged = command("merge", *json.loads(result.out), "--json", "--system", "whole")
        expected = command("score", written(tmp_path / "whole.jsonl", lines), *options, "--json")
        assert json.loads(merged.out) == json.loads(expected.out)
        assert "Dist-2" in command("merge", *json.loads(result.out)).out

    def test_what_does_not_go_together_is_refused(self, command, tmp_path):
        file = written(tmp_path / "a.jsonl", responses(3))
        for other in (("--paired-with", file), ("--convention", "rl")):
            result = command("score", file, "--shards", tmp_path, *other)
            assert result.code == 2
            assert "cannot be combined with" in result.err


def _forged(path: Path, arrays: dict[str, Any], **header: Any) -> Path:
    """A shard with other contents and a checksum that fits."""
    shard = path.with_name("forged.shard")
    with safe_open(path, framework="numpy") as file:
        old = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        said = json.loads(file.metadata()["shard"])
    new = {**old, **arrays}
    said |= {"sha256": packed._checksum(new), **header}
    save_file(new, shard, {"shard": json.dumps(said)})
    return shard


@pytest.mark.parametrize(
    ("arrays", "header", "what"),
    [
        ({}, {"measures": {}}, "it names no metric"),
        ({"responses": np.array([-1], np.int32)}, {}, "its responses do not end where"),
        ({"owned": np.full(4, 7, np.int64)}, {}, "its references belong to no response"),
        ({"response_offsets": np.zeros(0, np.int64)}, {}, "its responses do not end where"),
        ({"responses": np.zeros((2, 2), np.int32)}, {}, "its responses is not a list of int32"),
        ({"ids": np.frombuffer(b"[1]", np.uint8)}, {}, "its header: Input should be a valid"),
        ({"words": np.frombuffer(b"[]", np.uint8)}, {}, "hold words that it does not name"),
        ({}, {"version": -1}, "version -1"),
    ],
)
def test_a_shard_that_is_whole_but_makes_no_sense_is_refused(tmp_path, arrays, header, what):
    (shard,) = in_shards(tmp_path, [responses(4)], metrics=["dist-1", "bleu-2"])
    with pytest.raises(InputError, match="this is no shard that can be read") as error:
        merge([_forged(shard, arrays, **header)])
    assert what in error.value.what


def test_overlapping_texts_are_refused(tmp_path):
    (shard,) = in_shards(tmp_path, [responses(4)], metrics=["dist-1"])
    offsets = load(shard).texts.responses.offsets.copy()
    offsets[1], offsets[2] = offsets[2] + 1, offsets[1]
    with pytest.raises(InputError, match="its responses overlap"):
        merge([_forged(shard, {"response_offsets": offsets})])


def test_a_file_name_of_any_bytes_has_its_shard(tmp_path):
    path = written(tmp_path / os.fsdecode(b"caf\xe9.jsonl"), responses(3))
    (shard,) = write([path], tmp_path / "shards", metrics=["length"])
    assert merge([shard])["system"] == "caf?"


def test_counts_that_no_metric_can_score_are_refused(tmp_path):
    (shard,) = in_shards(tmp_path, [responses(4)], metrics=["length"])
    said = load(shard).measures["length"].model_dump() | {"kind": "pairs"}
    with pytest.raises(InputError, match=r"what they counted cannot be scored \("):
        merge([_forged(shard, {}, measures={"length": said})])
