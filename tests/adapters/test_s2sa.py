"""S2SA: its size, what it reads, how it is trained (DVS2S, eq. 1-7)."""

from __future__ import annotations

import itertools
from itertools import product

import numpy as np
import pytest
import torch
from dialbench_adapters.s2sa import AdaDeltaTrainer, S2SAConfig, S2SAModel
from torch.nn.functional import pad

from dialbench.adapter import Run
from dialbench.errors import InputError
from dialbench.neural.data import build_vocabulary, encode_split, make_batch, training_rows
from dialbench.neural.decoding import beam_search, decode
from dialbench.neural.model import count_parameters
from dialbench.records import Context, Decoding, Example, Split
from dialbench.systems import Registry
from dialbench.text.vocabulary import EOS, PAD, UNK

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize(("words", "total"), [(30_000, 174_695_920), (20_000, 125_365_920)])
def test_sizes(words, total):
    with torch.device("meta"):
        model = S2SAModel(S2SAConfig(), words)
    parts = {name: count_parameters(part)["parameters"] for name, part in model.named_children()}
    assert parts == {
        "embedding": 620 * words,
        "response_embedding": 620 * words,
        "encoder": 10_113_024,
        "decoder": 11_347_968,
        "attention": 3_146_752,
        "bridge": 2_098_176,
        "output": (620 + 3 * 1024) * words + words,
    }
    assert count_parameters(model)["parameters"] == total


@pytest.mark.parametrize(
    ("option", "fault"), [("optimiser=sgd", "adadelta"), ("reads=nothing", "message")]
)
def test_what_cannot_be_built(option, fault):
    with pytest.raises(InputError, match=fault):
        Registry().parse(f"s2sa[{option}]")


class TestModel:
    def test_words_are_predicted_from_the_word_before_the_state_and_the_context(self, ready):
        model, batch = ready("s2sa")
        state = model.start(batch)
        example, before = state.example, state.row[-1]
        weights = model.attention.weights(example["keys"], before[:, None], example["seen"])
        mixed = (weights @ example["memory"])[:, 0]
        word = model.response_embedding(batch.inputs[:, 0])
        after = model.decoder.cells[0](torch.cat([word, mixed], -1), before)
        readout = torch.cat([word, after, mixed], -1)
        expected = readout @ model.output.weight.T + model.output.bias
        assert torch.allclose(model.logits(batch)[:, 0], expected)

    def test_decoding_starts_from_the_final_state_of_each_direction(self, ready):
        model, batch = ready("s2sa")
        (ahead,), (back,) = model.encoder.ahead, model.encoder.back
        row = batch.source[1, : int(batch.source[1].ne(PAD).sum())]
        words = model.embedding(row)[None]
        last = torch.cat([ahead(words)[1][0], back(words.flip(1))[1][0]], -1)
        expected = torch.tanh(last @ model.bridge.weight.T + model.bridge.bias)
        assert torch.allclose(model.start(batch).row[0][1], expected[0])

    def test_messages_and_responses_have_tables_of_their_own(self, ready):
        model, batch = ready("s2sa")
        before = model.logits(batch), model.encode(batch)[0]
        with torch.no_grad():
            model.response_embedding.weight[batch.inputs[0, 1]] += 1.0
        assert not torch.allclose(model.logits(batch)[0, 1], before[0][0, 1])
        assert torch.equal(model.encode(batch)[0], before[1])


class TestMessages:
    LONG = Split("train", [Example("a", "a", ("Is it far?", "Two stops."), ("Then we walk.",))])

    def test_only_the_last_turn_is_learnt_from(self, build):
        for reads, expected in [("message", "two stops ."), ("context", "is it far ? two stops .")]:
            adapter = build(f"s2sa[reads={reads}]")
            adapter.vocabulary = build_vocabulary(self.LONG, 100)
            (source,) = adapter._encode(self.LONG).source.padded(np.array([0]))
            assert " ".join(adapter.vocabulary.decode(source)) == expected

    @pytest.mark.parametrize(("reads", "same"), [("message", True), ("context", False)])
    def test_only_the_last_turn_is_answered(self, build, eight, tmp_path, reads, same):
        adapter = build(f"s2sa[reads={reads},optimiser=adam]", epochs=6, learning_rate=2e-2)
        adapter.fit(eight, eight, Run(1, folder=tmp_path))
        turns = ["Our train leaves at nine.", "Is it new?", "The soup is cold.", "Yes."]
        contexts = [Context((turn, "Then hurry!"), turn) for turn in turns]
        answers = adapter.respond(contexts, Decoding.parse("sample"), Run(1))
        short = [Context(context[-1:], context.id) for context in contexts]
        assert (adapter.respond(short, Decoding.parse("sample"), Run(1)) == answers) == same


class TestBeam:
    @pytest.fixture
    def small(self, build, eight):
        """A model of four words, whose responses of up to three can all be listed."""
        adapter = build("s2sa", vocabulary=4)
        adapter.vocabulary = build_vocabulary(eight, 4)
        model = adapter._new_model(Run(3)).eval()
        with torch.no_grad():
            model.output.weight *= 8.0
        data = encode_split(eight, adapter.vocabulary, 30, 3)
        return model, make_batch(data, np.arange(8), "cpu", 1, "infer")

    def test_a_beam_of_one_is_greedy(self, small):
        model, batch = small
        assert decode(model, batch, Decoding.parse("beam:1"), 3) == decode(
            model, batch, Decoding(), 3
        )

    def test_a_wider_beam_finds_nothing_worse_and_a_wide_one_the_best_of_all(self, small):
        # No law, as scores are per token: a long hypothesis may push a short one out.
        model, batch = small
        widths = [
            [actual[0].score for actual in beam_search(model, batch, width, 3)]
            for width in (1, 2, 5, 20, 200)
        ]
        for narrow, wide in itertools.pairwise(widths):
            assert all(a <= b + 1e-9 for a, b in zip(narrow, wide, strict=True))
        assert widths[0] != widths[-1]
        assert widths[-1] == pytest.approx(self._best(model, batch))

    @staticmethod
    def _best(model, batch) -> list[float]:
        """The highest log probability a token of any response, each scored in one pass."""
        texts = [
            [*words, EOS][:3] for size in range(4) for words in product(range(5, 9), repeat=size)
        ]
        texts = [list(text) for text in dict.fromkeys(map(tuple, texts))]
        targets = torch.tensor([text + [PAD] * (3 - len(text)) for text in texts])
        actual = []
        for row in range(len(batch)):
            source = batch.source[row].expand(len(texts), -1)
            given = make_batch(*batch.origin, "cpu")
            given = type(given)(("",) * len(texts), source, targets, targets.new_zeros(0))
            logits = model.logits(given).detach()
            logits[..., [0, UNK, 2, 4]] = -torch.inf
            logs = logits.log_softmax(-1).gather(2, targets[:, :, None])[..., 0]
            logs = logs.masked_fill(targets.eq(PAD), 0.0)
            actual.append(float((logs.sum(1) / targets.ne(PAD).sum(1)).max()))
        return actual


class TestAdaDelta:
    @pytest.fixture
    def trainer(self, build, eight, tmp_path) -> AdaDeltaTrainer:
        adapter = build("s2sa", learning_rate=1.0, epochs=9)
        adapter.vocabulary = build_vocabulary(eight, 100)
        run = Run(1, folder=tmp_path)
        data = adapter._encode(eight)
        return adapter.trainer(adapter._new_model(run), data, data, run)

    @pytest.mark.parametrize(
        ("losses", "rate", "goes_on"),
        [
            ([], 1.0, True),
            ([3.0, 2.0, 2.0], 1.0, True),
            ([3.0, 2.0, 2.5], 0.5, True),
            ([3.0, 2.0, 2.5, 2.4, 2.6], 0.25, True),
            ([3.0, 2.0, 2.5, 2.6], 0.25, False),
            ([3.0] * 9, 1.0, False),
        ],
    )
    def test_the_rate_is_halved_and_training_ends(self, trainer, losses, rate, goes_on):
        trainer.history.curve = [{"valid_loss": loss} for loss in losses]
        trainer.history.epoch = len(losses)
        assert trainer.rate() == rate
        assert trainer._should_continue() is goes_on

    def test_an_update_is_that_of_the_paper(self, trainer):
        """Zeiler, 2012, algorithm 1, with rho = 0.95 and eps = 1e-6."""
        squares = steps = 0.0
        for rows in training_rows(trainer.train, 4, 1, 1):
            name, weight = "bridge.weight", trainer.model.bridge.weight
            before = weight.detach().clone()
            self._gradients(trainer, rows)
            gradient = weight.grad.clone()
            trainer.optimiser.zero_grad()
            squares = 0.95 * squares + 0.05 * gradient**2
            step = -((steps + 1e-6) ** 0.5) / ((squares + 1e-6) ** 0.5) * gradient
            steps = 0.95 * steps + 0.05 * step**2
            trainer._update(rows)
            after = dict(trainer.model.named_parameters())[name].detach()
            assert torch.allclose(after, before + step, rtol=1e-9, atol=0)

    @staticmethod
    def _gradients(trainer, rows) -> None:
        losses = trainer.model.loss(make_batch(trainer.train, rows, "cpu"), 0)
        losses.objective(*trainer.average_batch).backward()
        torch.nn.utils.clip_grad_norm_(trainer.model.parameters(), trainer.config.clip)

    def test_a_resumed_training_ends_in_the_same_bits(self, build, eight, tmp_path):
        whole = build("s2sa", learning_rate=1.0, epochs=4)
        whole.fit(eight, eight, Run(1, folder=tmp_path))
        broken = tmp_path / "broken"
        broken.mkdir()
        build("s2sa", learning_rate=1.0, epochs=2).fit(eight, eight, Run(1, folder=broken))
        again = build("s2sa", learning_rate=1.0, epochs=4)
        again.fit(eight, eight, Run(1, folder=broken))
        assert again.curve() == whole.curve()
        for name, weight in whole.model.state_dict().items():
            assert torch.equal(weight, again.model.state_dict()[name])


def test_padding_the_message_changes_no_state(ready):
    model, batch = ready("s2sa")
    longer = pad(batch.source, (0, 3), value=PAD)
    memory, last = model.encoder(model.embedding(longer), longer)
    assert torch.allclose(last, model.encode(batch)[1])
    assert not memory[:, batch.source.shape[1] :].any()
