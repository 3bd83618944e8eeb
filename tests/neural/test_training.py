"""Training: exact resume, early stopping, schedule, clipping, and what goes wrong."""

from __future__ import annotations

import itertools
import math
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from dialbench.adapter import Progress, Run
from dialbench.errors import StorageError, SystemFailed
from dialbench.neural.data import build_vocabulary, encode, encode_split, make_batch
from dialbench.neural.model import Losses, count_parameters, word_loss
from dialbench.neural.training import Trainer, evaluate
from dialbench.records import Context, Split
from dialbench.text.vocabulary import PAD, Vocabulary


class Stop(Exception):
    pass


class StopIn(Progress):
    """Breaks off while an epoch runs, as a kill would."""

    def __init__(self, number: int) -> None:
        self.number = number

    def update(self, stage: str, **numbers: float) -> None:
        if stage == "train" and numbers["epoch"] == self.number:
            raise Stop


class Listener(Progress):
    def __init__(self) -> None:
        self.updates = []

    def update(self, stage: str, **numbers: float) -> None:
        self.updates.append((stage, numbers))


class Warnings(Progress):
    def __init__(self) -> None:
        self.texts = []

    def warn(self, text: str) -> None:
        self.texts.append(text)


@pytest.fixture
def fit(toy, train, valid, tmp_path):
    """Fits a toy in a folder of its own, or in one that was begun."""

    def fit(folder="run", seed=3, progress=None, deadline=None, **options):
        reports = progress or Progress()
        run = Run(seed, folder=tmp_path / folder, progress=reports, deadline=deadline)
        adapter = toy(toy.Config(**options))
        adapter.fit(train, valid, run)
        return adapter

    return fit


def weights(adapter) -> dict[str, list]:
    return {name: tensor.tolist() for name, tensor in adapter.model.state_dict().items()}


class TestResume:
    @pytest.mark.parametrize("precision", ["float64", "float32", "bfloat16"])
    @pytest.mark.parametrize("epoch", [1, 2, 4])
    def test_goes_on_as_if_undisturbed(self, fit, epoch, precision):
        undisturbed = fit("whole", precision=precision)
        with pytest.raises(Stop):
            fit("broken", progress=StopIn(epoch), precision=precision)
        resumed = fit("broken", precision=precision)
        assert weights(resumed) == weights(undisturbed)
        assert resumed.curve() == undisturbed.curve()

    def test_after_a_kill(self, fit, tmp_path):
        script = """
import os, runpy, signal, sys, torch
from pathlib import Path
from dialbench.adapter import Progress, Run
torch.set_num_threads(1)
toys = runpy.run_path(sys.argv[1])
class Kill(Progress):
    def update(self, stage, **numbers):
        if numbers.get("epoch") == 3:
            os.kill(os.getpid(), signal.SIGKILL)
run = Run(3, folder=Path(sys.argv[2]), progress=Kill())
toys["Toy"]().fit(toys["talk"]("train", 12), toys["talk"]("valid", 5), run)
"""
        conftest = Path(__file__).with_name("conftest.py")
        command = [sys.executable, "-c", script, str(conftest), str(tmp_path / "killed")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == -signal.SIGKILL, done.stderr
        listener = Listener()
        resumed, undisturbed = fit("killed", progress=listener), fit("whole")
        assert [numbers["epoch"] for _, numbers in listener.updates] == [3, 4]
        assert weights(resumed) == weights(undisturbed)
        assert resumed.curve() == undisturbed.curve()

    def test_a_finished_training_is_not_repeated(self, fit):
        first, listener = fit(), Listener()
        again = fit(progress=listener)
        assert listener.updates == []
        assert weights(again) == weights(first)
        assert again.facts() == first.facts()

    def test_more_epochs_go_on_from_the_last(self, fit):
        fit(epochs=2)
        listener = Listener()
        longer = fit(epochs=4, progress=listener)
        assert {numbers["epoch"] for _, numbers in listener.updates} == {3, 4}
        assert weights(longer) == weights(fit("whole", epochs=4))

    def test_seeds_differ(self, fit):
        assert weights(fit("a", seed=1)) != weights(fit("b", seed=2))
        assert weights(fit("c", seed=1)) == weights(fit("d", seed=1))

    @pytest.mark.parametrize("damage", [lambda b: b[: len(b) // 2], lambda b: b"", lambda b: b"x"])
    @pytest.mark.parametrize("name", ["last.safetensors", "best.safetensors"])
    def test_damaged_checkpoint(self, fit, tmp_path, name, damage):
        fit(epochs=2)
        path = tmp_path / "run" / name
        path.write_bytes(damage(path.read_bytes()))
        with pytest.raises(StorageError, match="cannot be read") as caught:
            fit(epochs=2)
        assert caught.value.where == str(path)
        assert "Delete it" in caught.value.hint

    def test_checkpoint_of_another_model(self, fit, tmp_path):
        fit(vocabulary=10)
        with pytest.raises(StorageError, match="belongs to another model") as caught:
            fit(vocabulary=20)
        assert caught.value.where == str(tmp_path / "run" / "last.safetensors")

    def test_global_generators_are_left_alone(self, fit):
        torch.manual_seed(11)
        np.random.seed(11)
        before, before_numpy = torch.get_rng_state(), np.random.get_state()[1].tolist()
        fit()
        assert torch.equal(torch.get_rng_state(), before)
        assert np.random.get_state()[1].tolist() == before_numpy


class TestEpochs:
    def test_loss_falls(self, fit):
        losses = [row["valid_loss"] for row in fit(epochs=6).curve()]
        assert losses[-1] < 0.7 * losses[0]

    def test_curve(self, fit):
        curve = fit().curve()
        assert [row["epoch"] for row in curve] == [1, 2, 3, 4]
        assert set(curve[0]) == {"epoch", "train_loss", "train_nll", "valid_loss", "valid_nll"}
        assert all(row["valid_loss"] == row["valid_nll"] for row in curve)

    def test_stops_early_and_keeps_the_best_epoch(self, fit, valid):
        adapter = fit(epochs=60, patience=3, learning_rate=0.5)
        losses = [row["valid_loss"] for row in adapter.curve()]
        best = int(np.argmin(losses))
        assert len(losses) == best + 1 + 3 < 60
        facts = adapter.facts()
        assert (facts["best_epoch"], facts["epochs"]) == (best + 1, len(losses))
        config = adapter.config
        data = encode_split(valid, adapter.vocabulary, config.context_tokens, 8)
        now = evaluate(adapter.model, data, config, Run(3), "valid")
        assert now["loss"] == losses[best]

    def test_epochs_of_some_updates_go_on_with_other_examples(self, fit, monkeypatch, bigram):
        seen, plain = [], bigram.loss

        def loss(self, batch, step):
            if self.training:
                seen.extend(batch.ids)
            return plain(self, batch, step)

        monkeypatch.setattr(bigram, "loss", loss)
        adapter = fit(epochs=2, epoch_updates=2)
        assert adapter.history.step == 4
        assert [row["epoch"] for row in adapter.curve()] == [1, 2]
        assert len(set(seen)) == len(seen) >= 28  # of 36, in batches of 8 but for one

    def test_a_break_between_such_epochs_changes_nothing(self, fit):
        with pytest.raises(Stop):
            fit("broken", progress=StopIn(3), epochs=4, epoch_updates=3)
        resumed = fit("broken", epochs=4, epoch_updates=3)  # its second pass begins amid an epoch
        assert weights(resumed) == weights(fit("whole", epochs=4, epoch_updates=3))

    def test_an_epoch_is_a_pass_at_most(self, fit):
        assert fit(epochs=2, epoch_updates=94).history.step == 10

    def test_every_epoch_is_announced(self, fit, monkeypatch, toy, bigram):
        begun = []
        monkeypatch.setattr(bigram, "begin_epoch", lambda self, *key: begun.append(key))
        fit(seed=9)
        assert begun == [(9, 1), (9, 2), (9, 3), (9, 4)]

    def test_progress(self, fit):
        listener = Listener()
        adapter = fit(epochs=2, progress=listener)
        stage, last = listener.updates[-1]
        assert stage == "train"
        assert (last["epoch"], last["epochs"], last["step"], last["steps"]) == (2, 2, 5, 5)
        assert last["loss"] == adapter.history.curve[-1]["train_loss"]
        assert last["rate"] > 0

    def test_an_empty_split(self, toy, train, run):
        with pytest.raises(SystemFailed, match="no examples"):
            toy().fit(train, train[:0], run)


@pytest.fixture
def seen_at_update(monkeypatch):
    """(learning rate, global norm of the gradient) of every update."""
    seen, plain = [], torch.optim.Adam.step

    def step(self, *args):
        group = self.param_groups[0]
        norms = [parameter.grad.norm() for parameter in group["params"]]
        seen.append((group["lr"], torch.stack(norms).norm().item()))
        return plain(self, *args)

    monkeypatch.setattr(torch.optim.Adam, "step", step)
    return seen


class TestUpdates:
    def test_warm_up_is_linear_then_constant(self, fit, seen_at_update):
        fit(epochs=2, warmup=4, learning_rate=0.1)
        rates = [rate for rate, _ in seen_at_update]
        assert rates == pytest.approx([0.025, 0.05, 0.075] + [0.1] * 7)

    @pytest.mark.parametrize("warmup", [4, 0.4])
    def test_the_rate_falls_to_zero_over_the_updates_planned(self, fit, seen_at_update, warmup):
        fit(epochs=2, warmup=warmup, schedule="linear", learning_rate=0.7)
        rates = [rate for rate, _ in seen_at_update]
        rising = [0.175, 0.35, 0.525, 0.7]  # ten updates; after the last it would be 0
        assert rates == pytest.approx([*rising, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1])

    def test_every_token_weighs_alike(self, toy, train, run):
        """Also of short responses, which share their batch with short ones alone."""
        data = encode_split(train, build_vocabulary(train, 40), 12, 8)
        trainer = Trainer(toy().build_model(45).double(), data, data, toy.Config(), run)
        one = torch.tensor(1.0)
        weights = {
            tokens: float(Losses(one, {}, tokens, 8).objective(*trainer.average_batch)) / tokens
            for tokens in (16, 80)
        }
        assert weights[16] == pytest.approx(weights[80])
        a_batch = 8 * data.target.lengths.mean()
        assert weights[16] == pytest.approx(1 / a_batch)

    def test_what_is_a_mean_over_examples_weighs_every_example_alike(self):
        losses = Losses(torch.tensor(5.0), {}, 40, 4, by_example=torch.tensor(2.0))
        # 3 a token, 40 of 100 tokens; 2 an example, 4 of 8 examples
        assert float(losses.objective(100.0, 8.0)) == pytest.approx(3 * 0.4 + 2 * 0.5)

    def test_warm_up_goes_on_after_a_break(self, fit, seen_at_update):
        with pytest.raises(Stop):
            fit(progress=StopIn(2), warmup=20, learning_rate=0.2)
        seen_at_update.clear()
        fit(warmup=20, learning_rate=0.2)
        rates = [rate for rate, _ in seen_at_update]
        assert rates == pytest.approx([0.01 * step for step in range(6, 21)])

    def test_without_warm_up(self, fit, seen_at_update):
        fit(epochs=1, warmup=0, learning_rate=0.1)
        assert {rate for rate, _ in seen_at_update} == {0.1}

    def test_groups_learn_at_rates_of_their_own(self, fit, toy, monkeypatch):
        class Halved(Trainer):
            def __init__(self, *given):
                super().__init__(*given)
                slow, *others = self.model.parameters()
                groups = [{"params": others}, {"params": [slow], "rate_scale": 0.5}]
                self.optimiser = torch.optim.Adam(groups, fused=True)

        seen, plain = [], torch.optim.Adam.step

        def step(self, *given):
            seen.append(tuple(group["lr"] for group in self.param_groups))
            return plain(self, *given)

        monkeypatch.setattr(torch.optim.Adam, "step", step)
        monkeypatch.setattr(
            toy, "trainer", lambda self, *given: Halved(*given[:3], self.config, given[3])
        )
        with pytest.raises(Stop):
            fit(progress=StopIn(2), warmup=20, learning_rate=0.2)
        seen.clear()
        resumed = fit(warmup=20, learning_rate=0.2)
        assert [pair[0] for pair in seen] == pytest.approx([0.01 * n for n in range(6, 21)])
        assert all(halved == rate / 2 for rate, halved in seen)
        assert weights(resumed) == weights(fit("whole", warmup=20, learning_rate=0.2))

    def test_global_norm_is_clipped(self, fit, seen_at_update):
        fit("free", epochs=1, clip=1e9)
        free = [norm for _, norm in seen_at_update]
        seen_at_update.clear()
        clip = sorted(free)[len(free) // 2]
        fit("clipped", epochs=1, clip=clip)
        clipped = [norm for _, norm in seen_at_update]
        assert max(clipped) <= clip * (1 + 1e-5)
        assert clipped[0] == pytest.approx(min(free[0], clip), rel=1e-5)  # torch adds 1e-6

    def test_frozen_parameters_are_not_the_optimisers(self, bigram, toy, train, run):
        model = bigram(20)
        model.words.weight.requires_grad_(False)
        data = encode_split(train, build_vocabulary(train, 15), 12, 8)
        trainer = Trainer(model, data, data, toy.Config(), run)
        given = trainer.optimiser.param_groups[0]["params"]
        assert {id(p) for p in given} == {id(p) for p in model.output.parameters()}
        counts = {"parameters": 340, "trained_parameters": 180, "random_parameters": 160}
        assert count_parameters(model) == counts


class TestLoss:
    def test_is_the_mean_over_real_tokens(self):
        vocabulary = Vocabulary(["a", "b", "c"])
        data = encode([Context(["a"])] * 3, vocabulary, 9, ["a b", "", "c"], 9)
        batch = make_batch(data, np.arange(3), "cpu")
        random = torch.Generator().manual_seed(1)
        hidden = torch.randn(3, 3, 8, generator=random, dtype=torch.float64)
        losses = word_loss(hidden, nn.Identity(), batch)

        logits = hidden.numpy()
        shares = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
        targets = [(0, 0, 5), (0, 1, 6), (0, 2, 3), (1, 0, 3), (2, 0, 7), (2, 1, 3)]
        nll = [-math.log(shares[place]) for place in targets]
        assert losses.total.item() == pytest.approx(np.mean(nll))
        assert losses.parts["nll"].item() == pytest.approx(np.sum(nll))
        assert (losses.tokens, losses.examples) == (6, 3)

        hidden[batch.target.eq(PAD)] = 1e6
        assert word_loss(hidden, nn.Identity(), batch).total.item() == losses.total.item()

    @pytest.mark.parametrize("size", [1, 4, 100])
    def test_evaluation_weighs_every_token_alike(self, bigram, toy, train, run, size):
        data = encode_split(train, build_vocabulary(train, 40), 12, 8)
        torch.manual_seed(1)
        model = bigram(45).double()
        config = toy.Config(batch_size=size)
        together = make_batch(data, np.arange(len(data)), "cpu")
        expected = model.eval().loss(together, 0).total.item()
        actual = evaluate(model.train(), data, config, run, None)
        assert actual == {"loss": pytest.approx(expected), "nll": pytest.approx(expected)}

    def test_parts_beside_the_criterion_are_told_per_example(self, toy, bigram, train, run):
        class WithKl(bigram):
            criterion = ("nll", "kl")

            def loss(self, batch, step):
                losses = super().loss(batch, step)
                kl = torch.tensor(2.0 * len(batch), dtype=torch.float64)
                return replace(losses, parts={**losses.parts, "kl": kl})

        data = encode_split(train, build_vocabulary(train, 40), 12, 8)
        actual = evaluate(WithKl(45).double(), data, toy.Config(), run, None)
        per_token = 2.0 * len(data) / data.target.lengths.sum()
        assert actual["kl_per_example"] == pytest.approx(2.0)
        assert actual["loss"] == pytest.approx(actual["nll"] + per_token)


class TestContextGain:
    """What the right contexts save, against the same responses to the contexts of others."""

    def test_is_the_loss_with_the_contexts_of_others_less_the_true_one(self, fit, toy, valid):
        adapter = fit(epochs=12)
        half = len(valid) // 2
        others = [*valid[len(valid) - half :], *valid[: len(valid) - half]]
        mixed = Split(
            "mixed",
            [replace(own, context=other.context) for own, other in zip(valid, others, strict=True)],
        )
        config = adapter.config
        data = encode_split(mixed, adapter.vocabulary, config.context_tokens, 8)
        lost = evaluate(adapter.model, data, config, Run(3), "valid")["loss"]
        best = min(row["valid_loss"] for row in adapter.curve())
        assert adapter.facts()["context_gain"] == pytest.approx(lost - best, rel=1e-12)
        assert adapter.facts()["context_gain"] > 0.05

    def test_who_does_not_listen_is_told(self, fit, monkeypatch, bigram):
        def silence(self, batch):
            return torch.zeros(len(batch), 8, dtype=self.words.weight.dtype)

        monkeypatch.setattr(bigram, "context", silence)
        warnings = Warnings()
        adapter = fit(progress=warnings)
        assert adapter.facts()["context_gain"] == pytest.approx(0, abs=1e-12)
        (text,) = warnings.texts
        assert "it ignores its context" in text

    def test_who_listens_is_not(self, fit):
        warnings = Warnings()
        fit(epochs=12, progress=warnings)
        assert warnings.texts == []

    def test_is_that_of_answering_where_a_posterior_reads_the_response(
        self, fit, monkeypatch, bigram
    ):
        plain = bigram.loss

        def loss(self, batch, step):
            if self.training:
                return plain(self, batch, step)
            # As beside a posterior, which leaves nothing for the context to tell.
            hidden = torch.zeros(*batch.target.shape, 8, dtype=torch.float64)
            return word_loss(hidden, self.output, batch)

        def logits(self, batch):
            return self.output((self.words(batch.inputs) + self.context(batch)[:, None]).tanh())

        monkeypatch.setattr(bigram, "loss", loss)
        monkeypatch.setattr(bigram, "logits", logits, raising=False)
        monkeypatch.setattr(bigram, "variational", True, raising=False)
        adapter = fit(epochs=12, patience=12)
        assert adapter.facts()["context_gain"] > 0.05

    def test_one_example_has_nobody_to_exchange_with(self, toy, train, valid, run):
        adapter = toy()
        adapter.fit(train, valid[:1], run)
        assert "context_gain" not in adapter.facts()
        assert "valid_exchanged_loss" not in adapter.history.best


class TestDeadline:
    @pytest.fixture
    def after_updates(self, monkeypatch, bigram):
        """Lets the clock reach 100 at an update, counted from 1 over all trainings."""

        def arrange(number):
            plain, done = bigram.loss, []

            def loss(self, batch, step):
                done.extend([step] * self.training)
                return plain(self, batch, step)

            monkeypatch.setattr(bigram, "loss", loss)
            monkeypatch.setattr(time, "time", lambda: 100.0 if len(done) >= number else 0.0)
            return done

        return arrange

    def test_the_epoch_under_way_ends_early_and_counts(self, fit, after_updates):
        updates, warnings = after_updates(5), Warnings()
        adapter = fit(deadline=100.0, progress=warnings, batch_size=12)  # 3 updates an epoch
        assert updates == [0, 1, 2, 3, 4]
        assert [row["epoch"] for row in adapter.curve()] == [1, 2]
        stopped = "training was stopped by the deadline in epoch 2 of at most 4, after 5 updates"
        assert stopped in warnings.texts

    def test_finished_epochs_are_those_of_a_training_without_one(self, fit, after_updates):
        whole = fit("whole", batch_size=12)
        after_updates(5)
        assert fit(deadline=100.0, batch_size=12).curve()[0] == whole.curve()[0]

    def test_the_best_epoch_answers(self, fit, after_updates, valid, run):
        after_updates(5)
        adapter = fit(deadline=100.0, batch_size=12)
        data = encode_split(valid, adapter.vocabulary, 12, 8)
        loss = evaluate(adapter.model, data, adapter.config, run, "valid")["loss"]
        assert loss == min(row["valid_loss"] for row in adapter.curve())

    def test_once_it_is_over_nothing_more_is_learnt(self, fit, after_updates):
        with pytest.raises(Stop):
            fit(batch_size=12, progress=StopIn(3))
        updates, warnings = after_updates(0), Warnings()
        adapter = fit(deadline=100.0, batch_size=12, progress=warnings)
        assert updates == []
        assert adapter.facts()["epochs"] == 2
        assert any("stopped by the deadline in epoch 2" in text for text in warnings.texts)

    def test_a_training_that_ends_before_is_as_without(self, fit, after_updates):
        whole = fit("whole")
        after_updates(10_000)
        warnings = Warnings()
        assert weights(fit(deadline=100.0, progress=warnings)) == weights(whole)
        assert not any("deadline" in text for text in warnings.texts)

    @pytest.mark.parametrize("deadline", [100.0, None])
    def test_after_a_kill_before_the_best_weights_were_kept(
        self, fit, valid, run, after_updates, monkeypatch, deadline
    ):
        whole, keep = fit("whole", batch_size=12, epochs=3), Trainer._keep_best

        def killed(self):
            if self.history.epoch == 3:
                raise Stop
            keep(self)

        with monkeypatch.context() as patched:
            patched.setattr(Trainer, "_keep_best", killed)
            with pytest.raises(Stop):
                fit(batch_size=12, epochs=3)
        after_updates(0)
        adapter = fit(deadline=deadline, batch_size=12, epochs=3)
        assert adapter.curve() == whole.curve()
        assert adapter.facts()["best_epoch"] == 3
        assert weights(adapter) == weights(whole)

    @pytest.mark.parametrize("number", [1, 5, 7])
    def test_without_it_training_goes_on_as_if_never_stopped(self, fit, after_updates, number):
        whole = fit("whole", batch_size=12)
        after_updates(number)
        cut_short = fit(deadline=100.0, batch_size=12)
        assert cut_short.facts()["epochs"] < 4
        assert weights(cut_short) != weights(whole)
        again = fit(batch_size=12)
        assert weights(again) == weights(whole)
        assert again.curve() == whole.curve()

    def test_nothing_learnt(self, fit, after_updates):
        after_updates(0)
        with pytest.raises(
            SystemFailed, match=r"before the end of the first epoch\. Allow more time"
        ):
            fit(deadline=100.0)


class TestNotFinite:
    MESSAGE = "training: the loss is not finite in epoch 2. Lower learning_rate or raise warmup."

    @pytest.mark.parametrize("value", [math.nan, math.inf])
    def test_while_training(self, fit, monkeypatch, bigram, value):
        plain = bigram.loss

        def loss(self, batch, step):
            losses = plain(self, batch, step)
            factor = value if self.training and step >= 5 else 1.0
            parts = {"nll": losses.parts["nll"] * factor}
            return replace(losses, total=losses.total * factor, parts=parts)

        monkeypatch.setattr(bigram, "loss", loss)
        with pytest.raises(SystemFailed) as caught:
            fit()
        assert str(caught.value) == self.MESSAGE

    def test_in_validation(self, fit, monkeypatch, bigram):
        plain, epochs = bigram.loss, []
        monkeypatch.setattr(bigram, "begin_epoch", lambda self, seed, epoch: epochs.append(epoch))

        def loss(self, batch, step):
            losses = plain(self, batch, step)
            factor = 1.0 if self.training or len(epochs) < 2 else math.nan
            return replace(losses, parts={"nll": losses.parts["nll"] * factor})

        monkeypatch.setattr(bigram, "loss", loss)
        with pytest.raises(SystemFailed) as caught:
            fit()
        assert str(caught.value) == self.MESSAGE

    def test_a_long_epoch_is_not_finished_in_vain(self, fit, monkeypatch, bigram):
        steps = []

        def loss(self, batch, step):
            steps.append(step)
            total = sum(p.sum() for p in self.parameters()) * math.nan
            return Losses(total, {"nll": total.detach()}, 1, len(batch))

        monkeypatch.setattr(bigram, "loss", loss)
        ticks = itertools.count()
        monkeypatch.setattr(time, "monotonic", lambda: float(next(ticks)))
        with pytest.raises(SystemFailed, match="not finite in epoch 1"):
            fit()
        assert steps == [0]
