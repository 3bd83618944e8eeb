"""Checkpoints of the transformers library: what they read, learn, answer, and what is refused."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from dialbench_adapters.hf import HF, HFConfig
from dialbench_adapters.pretrained.checkpoint import Checkpoint, SubwordVocabulary
from dialbench_adapters.pretrained.model import pretrained

from dialbench.adapter import Run
from dialbench.errors import InputError
from dialbench.neural import checkpoint as files
from dialbench.neural.data import encode, make_batch
from dialbench.neural.decoding import beam_search, decode
from dialbench.records import Context, Decoding
from dialbench.systems import Registry
from dialbench.text.vocabulary import BOS, EOS, PAD, SEP, UNK

pytestmark = pytest.mark.usefixtures("one_thread")

CAUSAL = ["gpt2", "llama", "qwen2"]
SEQ2SEQ = ["t5", "bart", "blenderbot"]
KINDS = CAUSAL + SEQ2SEQ
# A turn without any token included.
CONTEXTS = [
    Context(["Over there", "Is it open ?", "it opens at seven"], "a"),
    Context(["seven"], "b"),
    Context(["", "call their office, call their office!"], "c"),
    Context([], "d"),
]
RESPONSES = ["I think", "call their office", "Yes", ""]


@pytest.fixture(scope="session")
def models(tiny):
    """Checkpoint, model in float64 and eval mode, and tokens, by kind."""

    def open(kind: str):
        if kind not in kept:
            checkpoint = Checkpoint.open(str(tiny(kind)))
            model = pretrained(checkpoint).double().eval()
            kept[kind] = checkpoint, model, SubwordVocabulary(checkpoint)
        return kept[kind]

    kept = {}
    return open


def as_batch(pieces, rows=range(4)):
    data = encode(CONTEXTS, pieces, 20, RESPONSES, 20)
    return make_batch(data, np.array(rows), "cpu", 5, "infer")


def columns(checkpoint) -> list[int]:
    """For each number of the checkpoint its place in our logits."""
    return [EOS if n == checkpoint.end else n + 5 for n in range(checkpoint.size)]


def by_the_library(kind: str, folder: Path, context, response: str) -> torch.Tensor:
    """(T, V) log-probabilities of one response, asked of the library alone, nothing padded."""
    from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    end = [tokenizer.eos_token_id]

    def bare(text):
        return tokenizer.encode(text.replace(" ?", "?"), add_special_tokens=False)

    turns = [bare(turn) for turn in context or [""]]
    answer = bare(response)
    joined = [n for turn in turns for n in [*end, *turn]][1:]
    joined = joined[-20:] or end  # the latest are kept; nothing at all is an end
    if kind in CAUSAL:
        model = AutoModelForCausalLM.from_pretrained(folder).double().eval()
        front = [tokenizer.bos_token_id] if kind == "llama" else []
        logits = model(torch.tensor([[*front, *joined, *end, *answer]])).logits[0]
        logits = logits[-len(answer) - 1 :]
    else:
        model = AutoModelForSeq2SeqLM.from_pretrained(folder).double().eval()
        front = [tokenizer.bos_token_id] if kind == "bart" else []
        start = [model.config.decoder_start_token_id, *front]
        source = torch.tensor([[*front, *joined, *end]])
        logits = model(source, decoder_input_ids=torch.tensor([[*start, *answer]])).logits[0]
        logits = logits[-len(answer) - 1 :]
    chosen = logits.log_softmax(-1)[range(len(answer) + 1), [*answer, *end]]
    return logits, chosen


@pytest.mark.parametrize("kind", KINDS)
class TestModel:
    def test_logits_and_loss_are_those_of_the_library(self, kind, tiny, models):
        checkpoint, model, pieces = models(kind)
        to_suite = model.logits(as_batch(pieces))
        for row in range(4):
            checkpoint_ids, chosen = by_the_library(kind, tiny(kind), CONTEXTS[row], RESPONSES[row])
            actual = to_suite[row, : len(checkpoint_ids)][:, columns(checkpoint)]
            silent = [n for n in pieces.never() if n != checkpoint.end]
            assert torch.isinf(actual[:, silent]).all()
            actual[:, silent] = checkpoint_ids[:, silent]
            assert torch.allclose(actual, checkpoint_ids, rtol=0, atol=1e-9)
            loss = model.loss(as_batch(pieces, [row]), 0)
            assert loss.total.item() == pytest.approx(-chosen.mean().item(), rel=1e-9)
            assert loss.tokens == len(chosen)

    def test_padding_changes_nothing(self, kind, models):
        _, model, pieces = models(kind)
        together = model.logits(as_batch(pieces))
        for row in range(4):
            batch = as_batch(pieces, [row])
            size = batch.target.shape[1]
            alone = model.logits(batch)[0]
            assert torch.allclose(together[row, :size], alone, rtol=0, atol=1e-9)

    @pytest.mark.parametrize("width", [1, 3])
    def test_steps_are_the_whole_pass(self, kind, width, models):
        _, model, pieces = models(kind)
        batch = as_batch(pieces)
        whole, inputs = model.logits(batch), batch.inputs
        with torch.no_grad():
            state = model.start(batch).widen(width)
            for place in range(inputs.shape[1]):
                logits, state = model.step(inputs[:, place].repeat_interleave(width), state)
                real = batch.target[:, place].ne(PAD)
                actual = logits.unflatten(0, (4, width))
                for beam in range(width):
                    expected = whole[real, place]
                    assert torch.allclose(actual[real, beam], expected, rtol=0, atol=1e-9)
                state = state.reorder(torch.arange(4 * width).view(4, width).flip(1).flatten())

    def test_what_is_no_text_takes_no_probability(self, kind, models):
        checkpoint, model, pieces = models(kind)
        mass = model.logits(as_batch(pieces)).softmax(-1)
        assert not mass[:, :, [PAD, UNK, BOS, SEP]].any()
        specials = [n + 5 for n in checkpoint.tokenizer.all_special_ids]
        beyond = [5 + n for n in range(len(checkpoint.tokenizer), checkpoint.size)]
        assert len(beyond) == 4
        assert not mass[:, :, specials + beyond].any()
        text = sorted(set(range(5, mass.shape[-1])) - set(specials) - set(beyond))
        assert mass[:, :, [EOS, *text]].all()

    def test_beams_are_scored_by_the_model(self, kind, models):
        _, model, pieces = models(kind)
        batch = as_batch(pieces)
        for row, actual in enumerate(beam_search(model, batch, 3, 6)):
            best = actual[0]
            ended = best.length == len(best.tokens) + 1
            words = [*best.tokens, EOS] if ended else list(best.tokens)
            target = torch.tensor([words])
            asked = replace(as_batch(pieces, [row]), target=target, real=torch.arange(len(words)))
            logits = model.logits(asked)[0].log_softmax(-1)
            expected = logits[range(len(words)), words].sum().item()
            assert best.log_probability == pytest.approx(expected, abs=1e-8)

    def test_weights_are_kept_once_and_come_back(self, kind, tiny, models, tmp_path):
        checkpoint, model, pieces = models(kind)
        path = tmp_path / "model.safetensors"
        files.write(path, model.state_dict())
        tensors, _ = files.read(path)
        other = pretrained(checkpoint).double().eval()
        with torch.no_grad():
            for weight in other.parameters():
                weight.zero_()
        files.restore(other, tensors, path)
        batch = as_batch(pieces)
        assert torch.equal(other.logits(batch), model.logits(batch))
        numbers = sum(weight.numel() for weight in model.parameters())
        assert sum(t.numel() for t in tensors.values()) <= numbers + checkpoint.size

    def test_learns_pairs_by_heart(self, kind, models, learn):
        checkpoint, _, pieces = models(kind)
        torch.manual_seed(1)
        model, batch = pretrained(checkpoint).eval(), as_batch(pieces)
        assert learn(model, batch, range(120), rate=5e-3).total.item() < 0.1
        answers = [" ".join(pieces.decode(one)) for one in decode(model, batch, Decoding(), 20)]
        assert answers == RESPONSES


class TestPieces:
    def test_text_is_read_as_people_write_it(self, models):
        checkpoint, _, pieces = models("gpt2")
        expected = checkpoint.tokenizer.encode("Hey, it’s ME! (really)")
        assert pieces.read("Hey , it ’ s ME ! ( really )") == [n + 5 for n in expected]

    @pytest.mark.parametrize("kind", ["gpt2", "bart"])
    def test_text_goes_there_and_back(self, kind, models):
        _, _, pieces = models(kind)
        for text in ["Is the bakery open?", "Zürich costs £5 ☃", "I don't."]:
            assert pieces.decode([*pieces.read(text), EOS, 9]) == [text]
        assert pieces.decode([EOS, 9]) == []
        assert pieces.decode(pieces.read(" \n ")) == []

    def test_an_answer_is_one_line_without_marks_of_the_model(self, models):
        checkpoint, _, pieces = models("bart")
        numbers = checkpoint.tokenizer.encode("it opens\n at  seven.")
        assert pieces.decode([n + 5 for n in numbers]) == ["it opens at seven."]


@pytest.fixture(scope="module")
def tuned(tiny, build, eight, tmp_path_factory):
    def fit(kind: str):
        if kind not in kept:
            options = {"tuning_epochs": 3, "tuning_rate": 3e-3, "tuning_warmup": 1}
            adapter = build(f"hf[weights={tiny(kind)}]", **options)
            adapter.fit(eight, eight, Run(2, folder=tmp_path_factory.mktemp("run")))
            kept[kind] = adapter
        return kept[kind]

    kept = {}
    return fit


class TestAdapter:
    @pytest.mark.parametrize("kind", ["llama", "bart"])
    def test_answers_depend_on_no_batch_and_survive_saving(self, kind, tuned, asked, tmp_path):
        adapter, run = tuned(kind), Run(2)
        adapter.save(tmp_path)
        loaded = HF.load(tmp_path, replace(adapter.config, answer_batch=100))
        for decoding in ("greedy", "sample", "top-p:0.9", "beam:3"):
            how = Decoding.parse(decoding)
            answers = adapter.respond(asked, how, run)
            assert any(answers)
            assert adapter.respond(asked[::-1], how, run)[::-1] == answers
            assert [adapter.respond([one], how, run)[0] for one in asked] == answers
            assert loaded.respond(asked, how, run) == answers

    def test_an_interrupted_tuning_goes_on(self, tiny, build, eight, tmp_path):
        def fit(epochs: int, folder: str):
            adapter = build(f"hf[weights={tiny('qwen2')}]", tuning_epochs=epochs)
            adapter.fit(eight, eight, Run(2, folder=tmp_path / folder))
            return adapter

        for name in ("whole", "broken"):
            (tmp_path / name).mkdir()
        whole = fit(3, "whole")
        fit(1, "broken")
        assert fit(3, "broken").curve() == whole.curve()

    @pytest.mark.parametrize("kind", ["gpt2", "t5"])
    def test_zero_shot_is_the_checkpoint_as_it_is(self, kind, tiny, build, models, asked, tmp_path):
        adapter = build(f"hf[weights={tiny(kind)},tune=false]")
        run = Run(2, folder=tmp_path)
        adapter.fit(None, None, run)
        adapter.save(tmp_path)
        assert [path.name for path in tmp_path.iterdir()] == ["state.json"]
        assert not adapter.curve()
        assert adapter.facts()["epochs"] == 0
        answers = HF.load(tmp_path, adapter.config).respond(asked, Decoding(), run)
        _, model, pieces = models(kind)
        for context, answer in zip(asked, answers, strict=True):
            batch = make_batch(encode([context], pieces, 30), np.arange(1), "cpu")
            assert [answer] == (pieces.decode(decode(model, batch, Decoding(), 10)[0]) or [""])

    def test_answers_are_those_of_the_librarys_own_search(self, tiny, models, asked):
        checkpoint, model, pieces = models("bart")
        library = checkpoint.model().double().eval()
        unwanted = [[n] for n in pieces.never() if n != checkpoint.end]
        for context in asked:
            batch = make_batch(encode([context], pieces, 20), np.arange(1), "cpu")
            source, seen = model._source(batch)
            (expected,) = library.generate(
                source,
                attention_mask=seen,
                decoder_input_ids=torch.tensor([model.head]),
                max_new_tokens=8,
                do_sample=False,
                num_beams=1,
                bad_words_ids=unwanted,
                forced_eos_token_id=None,
            )
            (actual,) = decode(model, batch, Decoding(), 8)
            answer = [n - 5 for n in actual]
            assert expected.tolist()[len(model.head) :][: len(answer)] == answer

    def test_the_title_says_what_it_is(self):
        assert HF.title(HFConfig(weights="/models/small/")) == "small (fine-tuned)"
        assert HF.title(HFConfig(weights="a/b", tune=False)) == "b (zero-shot)"


class TestRun:
    def test_the_row_and_its_fingerprint(self, tiny, tmp_path):
        from dialbench.running.plan import Plan, Request

        folder = tmp_path / "mine"
        shutil.copytree(tiny("gpt2"), folder)

        def task():
            models = f"hf[weights={folder},tune=false,context_tokens=20,response_tokens=20]"
            request = Request(models, limit_train=20, limit_test=5)
            return Plan.of(request).tasks[0]

        first = task()
        assert first.label == "mine (zero-shot) [context_tokens=20,response_tokens=20]"
        assert task().job.training_fingerprint == first.job.training_fingerprint
        (folder / "README.md").write_text("not part of the model")
        assert task().job.training_fingerprint == first.job.training_fingerprint
        path = folder / "model.safetensors"
        changed = bytearray(path.read_bytes())
        changed[-1] ^= 1
        path.write_bytes(changed)
        second = task()
        assert second.job.training_fingerprint != first.job.training_fingerprint
        (folder / "tokenizer_config.json").write_text("{}")
        assert task().job.training_fingerprint != second.job.training_fingerprint

    def test_one_row_from_the_command_line(self, tiny, command, tmp_path):
        models = f"hf[weights={tiny('t5')},tuning_epochs=1,response_tokens=8]"
        arguments = ["run", "--models", models, "--limit-train", 20, "--limit-test", 5]
        rest = ["--metrics", "length", "--formats", "txt", "--progress", "none", "--device", "cpu"]
        result = command(*arguments, *rest, "--out", tmp_path)
        assert result.code == 0, result.err
        assert "tiny-t5 (fine-tuned)" in result.out


def refused(weights, match: str, **options) -> str:
    with pytest.raises(InputError, match=match) as caught:
        HF.inspect(HFConfig(weights=str(weights), **options), ())
    assert "\n" not in caught.value.message
    assert caught.value.hint
    assert str(weights) in caught.value.message
    return caught.value.message


def changed(folder: Path, name: str, **values) -> None:
    path = folder / name
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


class TestRefused:
    @pytest.fixture
    def copy(self, tiny, tmp_path) -> Path:
        folder = tmp_path / "copy"
        shutil.copytree(tiny("llama"), folder)
        return folder

    def test_no_folder_named(self):
        with pytest.raises(InputError, match="weights=FOLDER"):
            Registry().parse("hf")
        assert "hf" not in [system.name for system in Registry().parse("all")]

    def test_missing_folder(self, tmp_path):
        refused(tmp_path / "nowhere", "neither a folder nor")

    def test_no_config(self, copy):
        (copy / "config.json").unlink()
        refused(copy, r"no readable config\.json")

    @pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model.safetensors"])
    def test_a_pipe_is_not_waited_for(self, copy, name):
        (copy / name).unlink(missing_ok=True)
        os.mkfifo(copy / name)
        refused(copy, f"holds {name}, which is not a plain file")

    def test_config_that_is_no_json(self, copy):
        (copy / "config.json").write_text("{")
        refused(copy, r"no readable config\.json")
        (copy / "config.json").write_text("[]")
        refused(copy, "no JSON object")

    @pytest.mark.parametrize("name", ["config.json", "tokenizer_config.json"])
    def test_code_of_its_own(self, copy, name):
        changed(copy, name, auto_map={"AutoModel": "evil.Evil"})
        (copy / "evil.py").write_text("raise SystemExit('was run')")
        refused(copy, f"asks in {name} for code of its own")

    def test_unknown_architecture(self, copy):
        changed(copy, "config.json", model_type="no-such-type")
        refused(copy, "no-such-type")

    @pytest.mark.parametrize("kind", ["bert", "mamba", "vit"])
    def test_unsupported_architecture(self, copy, kind):
        changed(copy, "config.json", model_type=kind, architectures=["BertForMaskedLM"])
        refused(copy, "neither decoder-only nor encoder-decoder")

    def test_pickled_weights(self, copy):
        (copy / "model.safetensors").unlink()
        refused(copy, "has no .*safetensors")
        (copy / "pytorch_model.bin").write_bytes(b"never opened")
        refused(copy, "only pickled weights")

    def test_missing_tokenizer(self, copy):
        (copy / "tokenizer.json").unlink()
        refused(copy, "no tokenizer files")

    def test_damaged_tokenizer(self, copy):
        (copy / "tokenizer.json").write_text("{}")
        refused(copy, "cannot be read|does not fit")

    def test_tokenizer_of_a_larger_model(self, copy):
        changed(copy, "config.json", vocab_size=100)
        refused(copy, "does not fit its model")

    def test_too_few_positions(self, copy):
        # one for the start token and one for the end of the context
        refused(copy, "64 positions", context_tokens=43, response_tokens=20)
        HF.inspect(HFConfig(weights=str(copy), context_tokens=42, response_tokens=20), ())

    def test_damaged_weights(self, copy, tmp_path):
        path = copy / "model.safetensors"
        path.write_bytes(path.read_bytes()[:-100])
        config = HFConfig(weights=str(copy), context_tokens=9, response_tokens=9, tune=False)
        with pytest.raises(InputError, match="cannot be read") as caught:
            HF(config).fit((), (), Run(1, folder=tmp_path))
        assert "\n" not in caught.value.message

    def test_weights_that_lack_some(self, copy, tmp_path):
        from safetensors.torch import load_file, save_file

        tensors = load_file(copy / "model.safetensors")
        tensors.pop("model.norm.weight")
        save_file(tensors, copy / "model.safetensors", {"format": "pt"})
        config = HFConfig(weights=str(copy), context_tokens=9, response_tokens=9, tune=False)
        with pytest.raises(InputError, match=r"lacks model\.norm\.weight"):
            HF(config).fit((), (), Run(1, folder=tmp_path))


OFFLINE = """
import socket
def refuse(*_): raise AssertionError("a connection was tried")
socket.socket.connect = socket.getaddrinfo = refuse
from dialbench_adapters.hf import HF, HFConfig
from dialbench.adapter import Run
config = HFConfig(weights="somebody/tiny", context_tokens=20, response_tokens=20, tune=False)
print(len(HF.inspect(config, ())["weights"]))
adapter = HF(config)
adapter.fit(None, None, Run(1))
print(len(adapter.vocabulary))
"""


def test_a_name_in_the_cache_is_read_without_a_connection(tiny, models, tmp_path):
    entry = tmp_path / "hub" / "models--somebody--tiny"
    (entry / "refs").mkdir(parents=True)
    (entry / "refs" / "main").write_text("a" * 40)
    shutil.copytree(tiny("bart"), entry / "snapshots" / ("a" * 40))
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", OFFLINE],
        env={**os.environ, "HF_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.stderr == ""
    assert done.stdout.split() == ["64", str(models("bart")[0].size + 5)]


def test_naming_the_adapter_loads_no_transformers():
    code = "import sys, dialbench_adapters.hf; assert 'transformers' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
