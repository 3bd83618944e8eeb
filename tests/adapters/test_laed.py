"""LAED: its size, its actions and its two stages (docs/systems.md)."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from dialbench_adapters.laed import (
    AttentiveReader,
    LAEDConfig,
    LAEDModel,
    frozen,
    imbalance,
    mutual_information,
)
from dialbench_adapters.seq2seq_lstm import LSTMConfig

from dialbench.adapter import Run
from dialbench.errors import InputError, SystemFailed
from dialbench.neural import training as training_loop
from dialbench.neural.data import build_vocabulary, encode, make_batch
from dialbench.neural.decoding import decode
from dialbench.neural.model import count_for_responses, count_parameters
from dialbench.neural.training import Trainer
from dialbench.records import Context, Decoding
from dialbench.systems import Registry
from dialbench.text.vocabulary import PAD

pytestmark = pytest.mark.usefixtures("one_thread")


def gru(inputs: int, hidden: int) -> int:
    return 3 * (inputs * hidden + hidden**2 + 2 * hidden)


class TestConfig:
    def test_sizes(self):
        with torch.device("meta"):
            model = LAEDModel(LAEDConfig(), 20_000)
        writer = 16 * 512 + gru(200, 512) + 513 * 20_000
        autoencoder = 4_000_000 + gru(200, 512) + 513 * 15 + writer
        utterance = 2 * gru(200, 256) + 513 * 256 + 256
        answering = 4_000_000 + utterance + gru(512, 512) + 513 * 512 + 513 * 15 + writer
        assert count_parameters(model.autoencoder)["parameters"] == autoencoder
        assert count_parameters(model)["parameters"] == autoencoder + answering
        assert count_for_responses(model) == answering

    def test_defaults_are_those_of_its_scripts(self):
        c = LAEDConfig()
        assert (c.actions, c.values, c.embedding, c.hidden) == (3, 5, 200, 512)
        assert (c.autoencoder_updates, c.attribute_weight) == (4_000, 0.1)
        assert (c.learning_rate, c.batch_size, c.clip, c.dropout) == (1e-3, 30, 3.0, 0.3)

    def test_lengths_and_patience_are_those_of_its_peers(self):
        c, peer = LAEDConfig(), LSTMConfig()
        actual = c.context_tokens, c.response_tokens, c.patience
        assert actual == (50, 50, 5)
        assert actual == (peer.context_tokens, peer.response_tokens, peer.patience)

    @pytest.mark.parametrize(
        "option",
        ["actions=0", "values=1", "hidden=1", "autoencoder_updates=0", "attribute_weight=-1.0"],
    )
    def test_what_cannot_be_built(self, option):
        with pytest.raises(InputError, match=option.split("=")[0]):
            Registry().parse(f"laed[{option}]")


class TestMeasures:
    def test_regulariser_is_about_the_average_alone(self):
        sharp = F.one_hot(torch.arange(10) % 5, 5).double()[:, None]
        assert imbalance(sharp).item() == pytest.approx(0.0, abs=1e-12)
        flat = torch.full((10, 3, 5), 0.2, dtype=torch.float64)
        assert imbalance(flat).item() == pytest.approx(0.0, abs=1e-12)
        same = F.one_hot(torch.zeros(10, 3, dtype=torch.long), 5).double()
        assert imbalance(same).item() == pytest.approx(math.log(5))
        halves = torch.tensor([[[1.0, 0.0]], [[0.5, 0.5]]])
        expected = 0.75 * math.log(1.5) + 0.25 * math.log(0.5)
        assert imbalance(halves).item() == pytest.approx(expected)

    def test_mutual_information(self):
        sharp = F.one_hot(torch.arange(10) % 5, 5).double()[:, None].expand(-1, 3, -1)
        assert mutual_information(sharp).item() == pytest.approx(math.log(5))
        for q in (torch.ones(10, 3, 5) / 5, F.one_hot(torch.zeros(10, 3, dtype=torch.long), 5)):
            assert mutual_information(q.double()).item() == pytest.approx(0.0, abs=1e-12)
        torch.manual_seed(1)
        actual = mutual_information(torch.randn(50, 3, 5).softmax(-1)).item()
        assert 0 < actual < math.log(5)


class TestContext:
    """Of a context of several turns as much is read as of one string, turn by turn."""

    WORDS = ("bakery", "umbrella", "tram", "chess", "soup", "north", "train", "hat")

    @pytest.fixture
    def cut(self, eight):
        vocabulary = build_vocabulary(eight, 100)

        def cut(turns: list[list[str]], limit: int):
            contexts = [Context(context, str(i)) for i, context in enumerate(turns)]
            return make_batch(encode(contexts, vocabulary, limit), np.arange(len(turns)), "cpu")

        return cut

    @pytest.fixture
    def reads(self, build, eight, tmp_path):
        """A trained system with the limit of its defaults, and what it hears and answers."""
        limit = LAEDConfig().context_tokens
        adapter = build("laed[autoencoder_updates=2]", context_tokens=limit)
        run = Run(1, folder=tmp_path)
        adapter.fit(eight, eight, run)

        def reads(*turns: str):
            contexts = [Context(turns, "one")]
            data = encode(contexts, adapter.vocabulary, limit)
            batch = make_batch(data, np.arange(1), "cpu", 1, "infer")
            with torch.no_grad():
                heard = adapter.model.eval().read(batch)
            return heard, adapter.respond(contexts, Decoding(), run)

        return reads

    def test_a_long_context_is_its_last_50_tokens(self, reads):
        words = self.WORDS * 8
        long = " ".join(words[:30]), " ".join(words[3:33]), " ".join(words[5:20])
        # 15 words, a separator, 30 words, a separator: three words of the first turn are left
        short = " ".join(words[27:30]), *long[1:]
        heard, texts = reads(*long)
        assert torch.equal(heard, reads(*short)[0])
        assert texts == reads(*short)[1]
        assert not torch.equal(heard, reads(" ".join(words[28:30]), *long[1:])[0])

    def test_turns_beyond_the_limit_are_not_there(self, reads):
        last = " ".join(["hat", "soup"] * 24 + ["tram"])
        heard, tokens = reads("our train leaves at nine .", "then hurry !", last)  # 49 words
        assert torch.equal(heard, reads(last)[0])
        assert tokens == reads(last)[1]
        assert not torch.equal(heard, reads("hurry !", last.removeprefix("hat "))[0])


class TestAttentiveReader:
    @pytest.fixture
    def reader(self):
        torch.manual_seed(1)
        return AttentiveReader(4, 3).double()

    def test_is_a_mean_of_both_directions_with_weights_of_its_own(self, reader):
        vectors = torch.randn(1, 5, 4, dtype=torch.float64)
        real = torch.ones(1, 5, dtype=torch.bool)
        states, _ = reader.encoder.read(vectors, real)
        keys = torch.tanh(states[0] @ reader.key.weight.T + reader.key.bias)
        scores = [math.exp((key * reader.query.weight[0]).sum().item()) for key in keys]
        expected = sum(s / sum(scores) * state for s, state in zip(scores, states[0], strict=True))
        assert torch.allclose(reader(vectors, real)[0], expected)
        reader.query.weight.data.zero_()
        assert torch.allclose(reader(vectors, real)[0], states[0].mean(0))

    def test_padding_changes_nothing(self, reader):
        vectors = torch.randn(2, 5, 4, dtype=torch.float64)
        real = torch.tensor([[True] * 5, [True] * 2 + [False] * 3])
        alone = reader(vectors[1:, :2], real[1:, :2])
        assert torch.allclose(reader(vectors, real)[1:], alone)


class TestAnswering:
    @pytest.fixture
    def made(self, ready):
        return ready("laed")

    def test_action_is_one_hot_and_drawn_from_the_policy(self, made):
        model, batch = made
        c = model.read(batch)
        # the policy is a bias alone, so that every example has the same known shares
        model.policy[-1].weight.data.zero_()
        shares = model.choices(c)[0].softmax(-1)
        counts = torch.zeros_like(shares)
        for seed in range(400):
            y = model.sample(c, replace(batch, seed=seed))
            assert y.shape == (8, 3, 5)
            assert y.sum(-1).eq(1).all()
            assert y.eq(1).sum(-1).eq(1).all()
            counts += y.sum(0)
        n = 400 * 8
        assert ((counts / n - shares).abs() < 4 * (shares * (1 - shares) / n).sqrt()).all()

    def test_action_reaches_the_words(self, made):
        model, batch = made
        other = replace(batch, seed=6)
        y = [model.sample(model.read(b), b) for b in (batch, other)]
        moved = (y[0] != y[1]).flatten(1).any(1)
        assert moved.any()
        changed = (model.logits(batch) - model.logits(other)).abs().amax((1, 2)) > 1e-9
        assert torch.equal(changed, moved)

    def test_same_seed_same_words(self, made):
        model, batch = made
        model.writer.action.weight.data *= 20.0  # so that actions decide words before any is learnt
        responses = [decode(model, replace(batch, seed=s), Decoding(), 8) for s in (1, 2, 1)]
        assert responses[0] == responses[2]
        assert responses[0] != responses[1]

    def test_reads_no_response(self, made):
        model, batch = made
        blind = replace(batch, target=batch.target[:, :0], real=batch.real[:0])
        responses = [decode(model, given, Decoding(), 8) for given in (batch, blind)]
        assert responses[0] == responses[1]

    @pytest.mark.parametrize("width", [1, 3])
    def test_cached_steps_equal_one_pass(self, made, width, check_cached_equals_whole):
        check_cached_equals_whole(*made, width)

    def test_padding_changes_nothing(self, made):
        model, batch = made
        target = F.pad(batch.target, (0, 3), value=PAD)
        real = target.flatten().ne(PAD).nonzero().squeeze(1)
        for training in (False, True):
            model.train(training)
            parts = []
            for given in (batch, replace(batch, target=target, real=real)):
                torch.manual_seed(1)
                model.dropout.rate = model.writer.dropout.rate = 0.0
                model.autoencoder.writer.dropout.rate = 0.0
                parts.append({n: p.item() for n, p in model.loss(given, 0).parts.items()})
            assert parts[0] == pytest.approx(parts[1])


class TestStages:
    def grads(self, model, batch, step: int) -> set[str]:
        model.train().zero_grad()
        model.loss(batch, step).total.backward()
        return {name for name, p in model.named_parameters() if p.grad is not None and p.grad.any()}

    def test_each_stage_teaches_its_own_part_alone(self, ready):
        model, batch = ready("laed[autoencoder_updates=10]", seed=None)
        names = {name for name, _ in model.named_parameters()}
        first = {name for name in names if name.startswith("autoencoder.")}
        assert self.grads(model, batch, 9) == first
        assert self.grads(model, batch, 10) == names - first

    def test_autoencoder_stands_still_after_the_switch(self, ready):
        model, batch = ready("laed[autoencoder_updates=3]", seed=None)
        adam = torch.optim.Adam(model.parameters(), lr=1e-2)
        kept = {}
        for step in range(6):
            if step == 3:
                kept = {n: w.clone() for n, w in model.state_dict().items()}
            adam.zero_grad()
            model.train().loss(batch, step).total.backward()
            adam.step()
        for name, value in model.state_dict().items():
            assert torch.equal(value, kept[name]) is name.startswith("autoencoder.")

    def test_frozen_weights_pass_gradients_on(self):
        layer = torch.nn.Linear(2, 2)
        x = torch.ones(1, 2, requires_grad=True)
        with frozen(layer):
            layer(x).sum().backward()
        assert x.grad is not None
        assert layer.weight.grad is None
        assert all(p.requires_grad for p in layer.parameters())

    def test_losses_of_answering_by_hand(self, ready):
        model, batch = ready("laed[attribute_weight=0.3]")
        auto, c, real = model.autoencoder, model.read(batch), batch.target.ne(PAD)
        y = auto.of(batch).argmax(-1)
        state = c + model.writer.action(F.one_hot(y, 5).double().flatten(1))
        logits = model.writer.output(model.writer.gru(model.embedding(batch.inputs), [state])[0])
        logs = logits.log_softmax(-1)
        nll = -logs.gather(-1, batch.target[:, :, None])[:, :, 0][real].sum()
        policy = -model.choices(c).log_softmax(-1).gather(-1, y[:, :, None]).sum()
        expected = logs.exp() @ auto.embedding.weight
        found_again = auto.recognise(expected, real).log_softmax(-1)
        attribute = -found_again.gather(-1, y[:, :, None]).sum()
        losses = model.loss(batch, 0)
        assert losses.parts["nll"].item() == pytest.approx(nll.item())
        assert losses.parts["policy"].item() == pytest.approx(policy.item())
        assert losses.parts["attribute"].item() == pytest.approx(attribute.item())
        total = nll / losses.tokens + (policy + 0.3 * attribute) / (8 * 3)
        assert losses.total.item() == pytest.approx(total.item())

    def test_loss_of_the_autoencoder_by_hand(self, ready, monkeypatch):
        model, batch = ready("laed", seed=None)
        auto = model.autoencoder
        auto.writer.dropout.rate = 0.0
        monkeypatch.setattr(F, "gumbel_softmax", lambda logits: logits.softmax(-1))
        q = auto.of(batch).softmax(-1)
        state = auto.writer.action(q.flatten(1))
        logits = auto.writer.output(auto.writer.gru(auto.embedding(batch.inputs), [state])[0])
        nll = F.cross_entropy(logits.flatten(0, 1), batch.target.flatten(), ignore_index=PAD)
        losses = model.train().loss(batch, 0)
        assert losses.total.item() == pytest.approx((nll + imbalance(q)).item())

    @pytest.fixture
    def flat(self, ready):
        """One that expects every word, action and attribute alike: its losses are logarithms."""
        model, batch = ready("laed[attribute_weight=0.1]", seed=None)
        auto = model.autoencoder
        for layer in (model.writer.output, auto.writer.output, model.policy[-1], auto.actions):
            layer.weight.data.zero_()
            layer.bias.data.zero_()
        return model, batch

    @pytest.mark.parametrize("length", [1, 4, 9])
    def test_weights_are_those_of_the_code_however_long_responses_are(self, flat, length):
        model, batch = flat
        target = batch.target[:, :length]
        real = target.flatten().ne(PAD).nonzero().squeeze(1)
        batch = replace(batch, target=target, real=real)
        words = math.log(model.writer.output.out_features)
        losses = model.train().loss(batch, model.config.autoencoder_updates)
        assert losses.total.item() == pytest.approx(words + 1.1 * math.log(5))
        for part in ("policy", "attribute"):
            assert losses.parts[part].item() == pytest.approx(8 * 3 * math.log(5))
        assert model.loss(batch, 0).total.item() == pytest.approx(words)
        model.autoencoder.actions.bias.data[::5] = 50.0  # the first value of every variable
        assert model.loss(batch, 0).total.item() == pytest.approx(words + math.log(5))

    def test_validation_counts_the_whole_policy(self, check_elbo):
        check_elbo("laed[autoencoder_updates=1]", "policy")

    def test_an_action_is_the_same_whenever_its_response_is_read(self, ready):
        model, batch = ready("laed", seed=None, dropout=0.9)
        auto = model.autoencoder
        auto.actions.weight.data *= 10.0
        first = model.config.autoencoder_updates
        read = {training: auto.train(training).of(batch) for training in (False, True)}
        assert torch.equal(read[False], auto.of(batch))
        assert torch.equal(read[False], read[True])
        assert read[True].argmax(-1).unique().numel() > 1
        model.dropout.rate = model.writer.dropout.rate = 0.0  # of what answers
        calm, parts = model.eval().loss(batch, 0).parts, model.train().loss(batch, first).parts
        for part in ("policy", "attribute", "information"):
            assert parts[part].item() == pytest.approx(calm[part].item())


class Killed(Exception):
    pass


class TestKeptEpoch:
    """Validation losses of the first stage, here the lowest, decide nothing."""

    OPTIONS: ClassVar = {"autoencoder_updates": 4, "epochs": 4, "patience": 2}  # two epochs, four

    @pytest.fixture
    def losing(self, monkeypatch):
        """Lets validation give these losses, an epoch each."""
        measured = training_loop.evaluate

        def losing(*losses):
            told = iter(losses)

            def evaluate(*given, answering=False):
                row = measured(*given, answering=answering)
                return row if answering else {**row, "loss": next(told)}

            monkeypatch.setattr(training_loop, "evaluate", evaluate)

        return losing

    @pytest.fixture
    def fit(self, build, eight, tmp_path):
        def fit(folder="run", **run):
            (tmp_path / folder).mkdir(exist_ok=True)
            adapter = build("laed", **self.OPTIONS)
            adapter.fit(eight, eight, Run(1, folder=tmp_path / folder, **run))
            return adapter

        return fit

    @pytest.mark.parametrize(
        ("losses", "best", "last"),
        [
            ((1, 1, 9, 8, 7, 6), 6, 6),
            ((1, 2, 9, 10, 11), 3, 5),
            ((2, 1, 9, 10, 8, 9), 5, 6),
        ],
    )
    def test_is_one_that_answers(self, losing, fit, losses, best, last):
        losing(*losses)
        adapter = fit()
        history = adapter.history
        assert (history.best_epoch, history.epoch) == (best, last)
        assert history.best_loss == losses[best - 1] == history.best["valid_loss"]
        learnt = adapter.model.writer.output.weight
        assert not torch.equal(learnt, adapter._new_model(Run(1)).writer.output.weight)

    def test_is_the_same_however_often_training_was_killed(self, losing, fit, monkeypatch):
        losses, save = (1, 1, 9, 8, 10, 11), Trainer._save
        losing(*losses)
        whole = fit("whole")
        assert whole.history.best_epoch == 4
        losing(*losses)

        def save_and_die(self):
            save(self)
            raise Killed

        with monkeypatch.context() as patched:
            patched.setattr(Trainer, "_save", save_and_die)
            for _ in losses:
                with pytest.raises(Killed):
                    fit("parts")
        parts = fit("parts")
        assert parts.history == whole.history
        expected = whole.model.state_dict()
        for name, value in parts.model.state_dict().items():
            assert torch.equal(value, expected[name])

    @pytest.mark.parametrize("updates", [3, 4, 5])
    def test_what_a_deadline_left_no_time_to_answer_is_none(self, fit, monkeypatch, updates):
        monkeypatch.setitem(self.OPTIONS, "autoencoder_updates", 3)  # the third epoch's second
        taken, take = [], Trainer._update

        def update(self, rows):
            taken.append(rows)
            return take(self, rows)

        monkeypatch.setattr(Trainer, "_update", update)
        monkeypatch.setattr(Run, "overdue", property(lambda run: len(taken) >= updates))
        if updates <= 3:
            with pytest.raises(SystemFailed, match="before the end of the first epoch"):
                fit(deadline=100.0)
        else:
            history = fit(deadline=100.0).history
            assert (history.step, history.best["epoch"] > 1) == (updates, True)


class TestTraining:
    def test_learns_eight_pairs(self, ready, learn):
        sizes = {"embedding": 32, "hidden": 32}
        model, batch = ready(
            "laed[autoencoder_updates=60]", **sizes, dropout=0.0, precision="float32"
        )
        losses = learn(model.train(), batch, range(200))
        assert losses.parts["nll"].item() / losses.tokens < 0.1
        assert losses.parts["information"].item() / 8 > 0.5
        assert losses.parts["policy"].item() / 8 < 0.5

    # Eight pairs in batches of four are two updates an epoch.
    @pytest.mark.parametrize(("first", "epochs"), [(2, 4), (3, 4), (9, 7), (10, 8)])
    def test_epochs_count_from_where_answers_are_learnt(
        self, build, eight, tmp_path, first, epochs
    ):
        adapter = build(f"laed[autoencoder_updates={first}]", epochs=3)
        adapter.fit(eight, eight, Run(1, folder=tmp_path))
        assert adapter.history.epoch == epochs
        rows = [row for row in adapter.curve() if "valid_nll" in row]
        assert [row["epoch"] for row in rows] == list(range(epochs - 2, epochs + 1))
        assert rows[-1]["valid_nll"] < rows[0]["valid_nll"]

    def test_first_stage_wears_out_no_patience(self, build, eight, tmp_path):
        adapter = build("laed[autoencoder_updates=10]", epochs=2, patience=1)
        adapter.fit(eight, eight, Run(1, folder=tmp_path))
        assert adapter.history.epoch > 5

    def test_killed_and_resumed_ends_in_the_same_weights(self, build, eight, tmp_path):
        def train(folder, *epochs):
            for last in epochs:
                adapter = build("laed[autoencoder_updates=3]", epochs=last)
                adapter.fit(eight, eight, Run(1, folder=tmp_path / folder))
            return adapter.model.state_dict()

        whole, halves = train("whole", 2), train("halves", 1, 2)
        assert all(torch.equal(whole[name], halves[name]) for name in whole)

    def test_answers_depend_on_no_batch_and_survive_saving(self, build, eight, asked, tmp_path):
        adapter, run = build("laed[autoencoder_updates=2]"), Run(2, folder=tmp_path)
        adapter.fit(eight, eight, run)
        answers = adapter.respond(asked, Decoding(), run)
        assert adapter.respond(asked[::-1], Decoding(), run)[::-1] == answers
        assert [adapter.respond([one], Decoding(), run)[0] for one in asked] == answers
        adapter.save(tmp_path)
        loaded = type(adapter).load(tmp_path, adapter.config)
        assert loaded.respond(asked, Decoding(), run) == answers
