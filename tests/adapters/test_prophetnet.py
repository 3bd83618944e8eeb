"""ProphetNet: streams, buckets, loss, size, and real checkpoints (docs/systems.md)."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from dialbench_adapters.blocks.nstream import bucket_of, streams_of
from dialbench_adapters.blocks.sequences import Around, Words
from dialbench_adapters.pretrained.prophetnet import rename
from dialbench_adapters.prophetnet import (
    ProphetNet,
    ProphetNetConfig,
    ProphetNetModel,
)

from dialbench.adapter import Run
from dialbench.errors import InputError
from dialbench.neural.data import Batch
from dialbench.neural.model import count_parameters
from dialbench.records import Decoding
from dialbench.systems import Registry
from dialbench.text.vocabulary import BOS, EOS, PAD, SEP, SPECIALS

pytestmark = pytest.mark.usefixtures("one_thread")

DECODINGS = ["greedy", "top-k:5", "beam:3"]


def test_the_first_buckets_hold_a_distance_each_and_the_others_powers():
    index = bucket_of(torch.arange(300), 32, 128).tolist()
    assert index[:16] == list(range(16))
    for distance in range(16, 128):
        power = 16 + int(math.log(distance / 16) / math.log(8) * 16 + 1e-6)
        assert index[distance] == min(power, 31)
    assert set(index[128:]) == {31}
    assert bucket_of(torch.tensor([-1, -50]), 32, 128).tolist() == [0, 0]


def test_buckets_of_both_ways_are_apart():
    index = bucket_of(torch.tensor([0, 1, 7, 200, -1, -7, -200]), 32, 128, both_ways=True)
    assert index.tolist() == [0, 1, 7, 15, 17, 23, 31]


def test_each_stream_sees_what_is_as_many_words_behind():
    plan = streams_of(4, 0, 2, (32, 128), 1, torch.device("cpu"))
    seen = plan.unseen.eq(0).int().view(3, 4, 6).tolist()  # streams, rows; z, keys, itself
    main = [[1, 1, 0, 0, 0, 0], [1, 1, 1, 0, 0, 0], [1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 0]]
    first = [[0, 1, 0, 0, 0, 1], [0, 1, 1, 0, 0, 1], [0, 1, 1, 1, 0, 1], [0, 1, 1, 1, 1, 1]]
    second = [[0, 1, 0, 0, 0, 1], [0, 1, 0, 0, 0, 1], [0, 1, 1, 0, 0, 1], [0, 1, 1, 1, 0, 1]]
    assert seen == [main, first, second]
    distances = plan.index.view(3, 4, 5)
    assert distances[0, 3].tolist() == [3, 2, 1, 0, 0]
    assert distances[2, 3].tolist() == [4, 3, 2, 1, 0]


@pytest.mark.parametrize("system", ["prophetnet", "dialogved"])
def test_words_enter_encoder_and_decoder_as_large_as_is_asked_for(ready, system):
    plain, batch = ready(system)
    larger, _ = ready(f"{system}[embedding_gain=3]")
    for model in (plain, larger):  # the layers give back what they read
        model.encoder, model.encoder_end = torch.nn.ModuleList(), torch.nn.Identity()
    torch.testing.assert_close(larger.encode(batch)[0], 3 * plain.encode(batch)[0])
    inputs = (batch.inputs, 0, 2)
    torch.testing.assert_close(larger.embed(*inputs), 3 * plain.embed(*inputs))


class TestSize:
    def test_of_the_released_model(self):
        sizes = {"layers": 12, "heads": 16, "embedding": 1_024, "feed_forward": 4_096}
        config = ProphetNetConfig(**sizes, context_tokens=508)  # a table of 512 positions
        with torch.device("meta"):
            model = ProphetNet(config).build_model(30_522)
        n, ff = 1_024, 4_096
        attention, feed_forward = 4 * n * (n + 1), ff * (n + 1) + n * (ff + 1)
        encoder = attention + feed_forward + 2 * 2 * n
        decoder = 2 * attention + feed_forward + 3 * 2 * n + 32 * 16 * (n + 1)
        tables = n * (30_522 + 2 * 512 + 2) + 2 * 2 * n
        assert count_parameters(model)["parameters"] == 12 * (encoder + decoder) + tables
        assert 390e6 < 12 * (encoder + decoder) + tables < 392e6

    @pytest.mark.parametrize(
        "options", ["heads=3", "layers=0", "dropout=1", "ngram=0", "buckets=5", "tune=false"]
    )
    def test_what_cannot_be_built(self, options):
        with pytest.raises(InputError, match=options.split("=")[0]):
            Registry().parse(f"prophetnet[{options}]")

    def test_the_title_says_what_it_is(self):
        assert ProphetNet.title(ProphetNetConfig()) == "ProphetNet (small, from scratch)"
        assert ProphetNet.title(ProphetNetConfig(weights="folder")) == "ProphetNet"


def streams(model, batch) -> torch.Tensor:
    """(B, K, T, V) with teacher forcing."""
    return model.output(model.read(batch.inputs, model.start(batch), model.config.ngram)[0])


class TestStreams:
    @pytest.mark.parametrize("norm", ["post", "pre"])
    def test_neither_stream_sees_the_word_that_it_predicts(self, ready, norm):
        model, batch = ready("prophetnet", norm=norm)
        changed = batch.target.clone()
        changed[:, 3] = torch.where(changed[:, 3] == 7, 8, 7)
        before, after = streams(model, batch), streams(model, replace(batch, target=changed))
        moved = (before - after).abs().amax((0, 3)) > 1e-9
        # word 3 is read in row 4, by stream 1 at once and by stream 2 a row later
        size = moved.shape[1]
        assert moved[0].tolist() == [row >= 4 for row in range(size)]
        assert moved[1].tolist() == [row >= 5 for row in range(size)]

    def test_streams_do_not_depend_on_how_many_there_are(self, ready):
        model, batch = ready("prophetnet[ngram=3]")
        state = model.start(batch)
        alone, together = model.read(batch.inputs, state, 1)[0], streams(model, batch)
        assert torch.allclose(model.output(alone[:, 0]), together[:, 0])
        assert torch.allclose(model.logits(batch), together[:, 0])

    def test_differ_by_their_vectors_and_by_what_they_read(self, ready):
        model, batch = ready("prophetnet")
        one = streams(model, batch)
        assert not torch.allclose(one[:, 0, 0], one[:, 1, 0])
        model.streams.weight.data[0] = model.streams.weight.data[1]
        one = streams(model, batch)
        assert torch.allclose(one[:, 0, 0], one[:, 1, 0])  # both read the start alone
        assert not torch.allclose(one[:, 0, 1], one[:, 1, 1])


class TestLoss:
    def test_of_one_stream_is_that_of_the_next_word(self, ready):
        model, batch = ready("prophetnet[ngram=1,label_smoothing=0]")
        logs = model.logits(batch).log_softmax(-1).gather(-1, batch.target[:, :, None])[:, :, 0]
        nll = -logs[batch.target.ne(PAD)].mean().item()
        assert model.loss(batch, 0).total.item() == pytest.approx(nll)

    @pytest.mark.parametrize("smoothing", [0.0, 0.1])
    def test_by_hand(self, ready, smoothing):
        model, batch = ready(f"prophetnet[label_smoothing={smoothing}]")
        logs = streams(model, batch).log_softmax(-1)
        usable = [w for w in range(logs.shape[-1]) if w not in (PAD, BOS, SEP)]
        sums, total = [0.0, 0.0], 0.0
        for k in range(2):
            for b, target in enumerate(batch.target.tolist()):
                for t, word in enumerate(target):
                    if word == PAD or t < k:
                        continue  # the first word is no second one of anything
                    sums[k] -= logs[b, k, t, word].item()
                    uniform = -logs[b, k, t, usable].mean().item()
                    total += (1 - smoothing) * -logs[b, k, t, word].item() + smoothing * uniform
        losses = model.loss(batch, 0)
        assert losses.parts["nll"].item() == pytest.approx(sums[0])
        assert losses.parts["future_nll"].item() == pytest.approx(sums[1])
        assert losses.total.item() == pytest.approx(total / (2 * losses.tokens))


@pytest.fixture(scope="module")
def made(tiny, build, eight):
    folder = tiny("prophetnet")
    adapter = build(f"prophetnet[weights={folder},tune=false]")
    adapter.fit(eight, eight, Run(1))
    return folder, adapter


class TestCheckpoint:
    """The library's own steps with its cache are compared, one word after another.

    Its pass over a whole response confuses rows and heads of the predicting streams' relative
    biases, so that it disagrees with its own steps; without biases it is right.
    """

    def library(self, folder):
        from transformers import ProphetNetForConditionalGeneration

        return ProphetNetForConditionalGeneration.from_pretrained(folder).double().eval()

    def test_the_same_logits(self, made, batch_of):
        folder, adapter = made
        batch = batch_of(adapter)
        library, shift = self.library(folder), len(SPECIALS)
        model = adapter.model.eval()
        end = library.config.eos_token_id
        # tokens of the checkpoint: our numbers less the five specials, the end behind them
        source = [
            [w - shift if w >= shift else end for w in row if w] for row in batch.source.tolist()
        ]
        with torch.no_grad():
            state = model.start(batch)
            tokens = torch.full((8,), BOS)
            ours = []
            words = torch.randint(shift + 4, 60, (8, 6), generator=torch.Generator().manual_seed(1))
            for step in range(6):
                logits, state = model.step(tokens, state)
                ours.append(logits)
                tokens = words[:, step]
            for row in range(8):
                encoded = library.prophetnet.encoder(input_ids=torch.tensor([source[row] + [end]]))
                past, read = None, [library.config.decoder_start_token_id, *(words[row] - shift)]
                for step in range(6):
                    given = torch.tensor([[int(read[step])]])
                    said = library(
                        encoder_outputs=encoded, decoder_input_ids=given, past_key_values=past,
                        use_cache=True,
                    )  # fmt: skip
                    past, expected = said.past_key_values, said.logits[0, 0]
                    actual = ours[step][row]
                    texts = [n for n in range(4, 60) if actual[n + shift] > -1e20]
                    assert len(texts) > 20
                    assert torch.allclose(
                        actual[[n + shift for n in texts]], expected[texts], rtol=0, atol=1e-4
                    )
                    assert actual[EOS].item() == pytest.approx(expected[end].item(), abs=1e-4)

    def test_without_relative_biases_whole_passes_of_both_streams_are_the_same(self, made):
        library = self.library(made[0]).float()  # in float64 its masks add up to infinity
        for layer in library.prophetnet.decoder.layers:
            for weight in layer.self_attn.relative_pos_embeddings.parameters():
                weight.data.zero_()
        c = library.config
        sizes = {"layers": 2, "heads": 4, "embedding": 32, "feed_forward": 48}
        words = Words(c.vocab_size, (), Around(), 64)
        model = ProphetNetModel(ProphetNetConfig(**sizes), words).eval()
        model.load_state_dict(rename(library.state_dict()))
        random = torch.Generator().manual_seed(1)
        source = torch.randint(3, c.vocab_size, (3, 7), generator=random)
        source[1, 5:] = 0
        target = torch.randint(3, c.vocab_size, (3, 9), generator=random)
        batch = Batch(("a", "b", "c"), source, target, torch.arange(27))
        ours = model.output(model.read(target, model.start(batch), 2)[0])
        theirs = library(
            input_ids=source, attention_mask=source.ne(0).long(), decoder_input_ids=target
        )
        assert torch.allclose(ours[:, 0], theirs.logits, rtol=0, atol=1e-4)
        assert torch.allclose(ours[:, 1], theirs.logits_ngram[:, 0], rtol=0, atol=1e-4)

    def test_reads_the_end_behind_a_context(self, made, batch_of):
        _, adapter = made
        assert len(adapter.model.around.behind) == 1
        assert adapter.model.around.front == ()

    @pytest.mark.parametrize("decoding", DECODINGS)
    def test_is_tuned_and_survives_saving(self, tiny, build, eight, asked, tmp_path, decoding):
        rates = {"tuning_epochs": 6, "tuning_rate": 5e-3, "tuning_warmup": 1}
        adapter = build(f"prophetnet[weights={tiny('prophetnet')}]", **rates)
        adapter.fit(eight, eight, Run(2, folder=tmp_path))
        losses = [row["train_nll"] for row in adapter.curve()]
        assert losses[-1] < losses[0]
        responses = adapter.respond(asked, Decoding.parse(decoding), Run(2))
        assert [adapter.respond([one], Decoding.parse(decoding), Run(2))[0] for one in asked] == (
            responses
        )
        (tmp_path / "saved").mkdir()
        adapter.save(tmp_path / "saved")
        loaded = ProphetNet.load(tmp_path / "saved", adapter.config)
        assert loaded.respond(asked, Decoding.parse(decoding), Run(2)) == responses

    def test_another_architecture_is_refused(self, tiny, build, eight):
        with pytest.raises(InputError, match="is a bart, no prophetnet"):
            build(f"prophetnet[weights={tiny('bart')}]").fit(eight, eight, Run(1))

    def test_unlike_halves_are_refused(self, tiny, build, eight, tmp_path):
        import json
        import shutil

        folder = tmp_path / "unlike"
        shutil.copytree(tiny("prophetnet"), folder)
        facts = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(facts | {"decoder_ffn_dim": 96}))
        with pytest.raises(InputError, match="two unlike halves"):
            build(f"prophetnet[weights={folder},tune=false]").fit(eight, eight, Run(1))


def test_smoothing_asks_nothing_of_what_is_no_word(ready):
    model, batch = ready("prophetnet[label_smoothing=0.5]")
    assert model.loss(batch, 0).total.isfinite()
    assert F.softmax(model.logits(batch), -1)[..., [PAD, BOS, SEP]].max() == 0


def test_reads_the_word_pieces_of_the_released_one(tiny, build, eight, asked, tmp_path):
    """Its tokenizer is a list of word pieces in a file of its own name."""
    import json
    import shutil

    from transformers import ProphetNetTokenizer

    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklmnopqrstuvwxyz.,?'"]
    pieces += [f"##{letter}" for letter in "abcdefghijklmnopqrstuvwxyz"]
    (tmp_path / "words.txt").write_text("\n".join(pieces) + "\n")
    folder = tmp_path / "released"
    shutil.copytree(tiny("prophetnet"), folder)
    for file in (folder / "tokenizer.json", folder / "tokenizer_config.json"):
        file.unlink()
    ProphetNetTokenizer(str(tmp_path / "words.txt")).save_pretrained(folder)
    assert (folder / "prophetnet.tokenizer").is_file()
    facts = json.loads((folder / "config.json").read_text())
    ends = {"eos_token_id": 3, "decoder_start_token_id": 3}
    (folder / "config.json").write_text(json.dumps(facts | ends))
    adapter = build(f"prophetnet[weights={folder},tune=false]", response_tokens=12)
    before = adapter.inspect(adapter.config, asked)
    adapter.fit(eight, eight, Run(1))
    # the separator behind a context, and between two turns
    assert adapter.model.around.behind == (3 + len(SPECIALS),)
    assert adapter.vocabulary.decode(adapter.vocabulary.read("it opens")) == ["it opens"]
    assert len(adapter.respond(asked, Decoding(), Run(1))) == 8
    with (folder / "prophetnet.tokenizer").open("a") as file:
        file.write("##!\n")
    assert adapter.inspect(adapter.config, asked) != before
