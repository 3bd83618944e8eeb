"""iVAE_MI: its implicit distributions, critic, three steps and size (docs/systems.md)."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from dialbench_adapters.ivae_mi import (
    IVAEMI,
    AlternatingTrainer,
    BatchNorm,
    ImplicitNetwork,
    IVAEConfig,
    IVAEModel,
    bounded_exp,
)

from dialbench.adapter import Run
from dialbench.errors import InputError
from dialbench.neural.data import make_batch
from dialbench.neural.decoding import decode
from dialbench.neural.model import count_for_responses, count_parameters
from dialbench.records import Decoding
from dialbench.systems import Registry

pytestmark = pytest.mark.usefixtures("one_thread")


class TestSize:
    def test_of_the_code(self):
        with torch.device("meta"):
            model = IVAEModel(IVAEConfig(), 10_005)
        e, h, z, V = 200, 300, 200, 10_005

        def gru(inputs: int, hidden: int) -> int:
            return 3 * hidden * (inputs + hidden + 2)

        def stack(inputs: int, hidden: int, outputs: int) -> int:
            norms = 2 * 2 * hidden
            return (inputs + 1) * hidden + (hidden + 1) * hidden + norms + (hidden + 1) * outputs

        prior = stack(h, z, 2 * z) + stack(z, z, z)
        posterior = stack(3 * h, z, 2 * z) + stack(z, z, z)
        critic = stack(h + z, 2 * h, 1)
        decoder = gru(e, h + z) + (h + z + 1) * V
        total = e * V + 2 * gru(e, h) + gru(2 * h + 2, h) + prior + posterior + critic + decoder
        assert count_parameters(model) == {
            "parameters": total,
            "trained_parameters": total,
            "random_parameters": 0,
        }
        assert count_for_responses(model) == total - posterior - critic

    def test_the_decoder_starts_from_both(self, ready):
        with torch.device("meta"):
            model = IVAEModel(IVAEConfig(), 100)
        assert model.output.in_features == 500
        model, batch = ready("ivae-mi")
        (first,) = model.start(batch).row
        assert first.shape == (8, 6 + 12)
        assert torch.equal(first[:, 6:], model.read(batch))

    @pytest.mark.parametrize("option", ["first", "all"])
    def test_the_decoder_reads_both_beside_every_word_where_it_is_asked_to(self, ready, option):
        model, batch = ready(f"ivae-mi[decoder_context={option}]")
        state = model.start(batch)
        # as if the decoder had forgotten all that it started from
        blank = replace(state, row=[torch.zeros_like(layer) for layer in state.row])
        same = batch.inputs[:1].expand(8, -1)
        apart = model.hidden(blank, same).std(0).amax().item()
        assert (apart == 0) is (option == "first")

    @pytest.mark.parametrize("options", ["latent=0", "critic_steps=0", "nets_rate=0", "dropout=1"])
    def test_what_cannot_be_built(self, options):
        with pytest.raises(InputError, match=options.split("=")[0]):
            Registry().parse(f"ivae-mi[{options}]")


class TestLatent:
    def test_noise_gives_samples(self):
        torch.manual_seed(1)
        network = ImplicitNetwork(5, 4)
        x = torch.randn(6, 5)
        one, other = network(x, torch.randn(6, 4)), network(x, torch.randn(6, 4))
        assert (one - other).abs().amax(1).min() > 1e-4

    def test_is_drawn_by_the_example_alone(self, ready, rows_of):
        model, batch = ready("ivae-mi")
        (whole,) = model.start(batch).row
        (part,) = model.start(rows_of(batch, torch.tensor([5, 2]))).row
        assert torch.allclose(part, whole[[5, 2]])
        assert not torch.allclose(model.start(replace(batch, seed=6)).row[0], whole)

    def test_responding_reads_no_response(self, ready):
        model, batch = ready("ivae-mi")
        blind = replace(batch, target=batch.target[:, :0], real=batch.real[:0])
        assert decode(model, batch, Decoding(), 8) == decode(model, blind, Decoding(), 8)

    def test_one_example_can_be_learnt_from_and_responded_to(self, ready, rows_of):
        model, batch = ready("ivae-mi")
        one = rows_of(batch, torch.tensor([3]))
        assert torch.allclose(model.logits(one), model.logits(batch)[3:4, : one.target.shape[1]])
        norm = BatchNorm(4).train()
        with torch.no_grad():
            norm.running_mean.fill_(2.0)
        x = torch.randn(1, 4)
        assert torch.allclose(norm(x), (x - 2.0) / math.sqrt(1 + 1e-5))
        assert (norm.running_mean == 2.0).all()
        model.train()
        assert model.loss(one, 0).total.isfinite()

    def test_knows_who_speaks(self, ready):
        model, batch = ready("ivae-mi")
        seen = []
        model.context.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
        model.read(batch)
        floor = seen[0].vectors[..., -2:]
        for row, real in enumerate(seen[0].real):
            turns = int(real.sum())
            # the last turn is the other's, the one before the responder's, and so on
            expected = [
                [0.0, 1.0] if (turns - 1 - k) % 2 == 0 else [1.0, 0.0] for k in range(turns)
            ]
            assert floor[row, :turns].tolist() == expected


class TestCritic:
    def test_at_its_optimum_for_equal_distributions_the_gap_is_minus_one(self, ready):
        model, batch = ready("ivae-mi")
        for parameter in model.critic.parameters():
            parameter.data.zero_()  # nu = 0 everywhere
        c, both = model.features(batch)
        assert model.gap(c, both, batch).item() == pytest.approx(-1.0)

    def test_of_equal_distributions_no_critic_finds_more(self, ready):
        """E[nu] - E[exp nu] <= -1 for one and the same sample, whatever nu is."""
        model, batch = ready("ivae-mi")
        c, _ = model.features(batch)
        for seed in range(5):
            torch.manual_seed(seed)
            nu = model.judge(torch.randn(8, 6, dtype=c.dtype), c)
            assert (nu.mean() - bounded_exp(nu).mean()).item() <= -1.0

    def test_overflows_nowhere_and_keeps_its_slope(self, ready):
        nu = torch.tensor([-3.0, 0.0, 9.9, 10.0, 11.0, 1e6], requires_grad=True)
        values = bounded_exp(nu)
        values.sum().backward()
        top = math.exp(10)
        known = [math.exp(-3), 1.0, math.exp(9.9), top, 2 * top, top * (1e6 - 9)]
        assert values.tolist() == pytest.approx(known, rel=1e-5)
        slopes = [math.exp(-3), 1.0, math.exp(9.9), top, top, top]
        assert nu.grad.tolist() == pytest.approx(slopes, rel=1e-5)
        model, batch = ready("ivae-mi")
        model.critic[-1].bias.data.fill_(1e6)
        assert model.gap(*model.features(batch), batch).isfinite()

    def test_learns_a_known_divergence(self, ready):
        """KL(N(1, 1) || N(0, 1)) = 1/2 in each of the first two dimensions."""
        model, _ = ready("ivae-mi", precision="float32")
        torch.manual_seed(1)
        critic = model.critic.train()
        adam = torch.optim.Adam(critic.parameters(), lr=3e-3)
        shift = torch.tensor([1.0, 1.0, 0.0, 0.0, 0.0, 0.0])
        c = torch.zeros(512, 12)

        def gap() -> torch.Tensor:
            z = torch.cat([torch.randn(256, 6) + shift, torch.randn(256, 6)])
            nu_q, nu_p = model.judge(z, c).chunk(2)
            return nu_q.mean() - bounded_exp(nu_p).mean()

        for _ in range(600):
            adam.zero_grad()
            (-gap()).backward()
            adam.step()
        with torch.no_grad():
            estimate = sum(gap().item() for _ in range(40)) / 40 + 1
        assert estimate == pytest.approx(1.0, abs=0.25)


@pytest.fixture
def trainer(build, eight, tmp_path):
    def trainer(**options) -> AlternatingTrainer:
        adapter = build("ivae-mi", **options)
        adapter.vocabulary = adapter.known_words(eight)
        data = adapter._encode(eight)
        run = Run(1, folder=tmp_path)
        return adapter.trainer(adapter._new_model(run), data, data, run)

    return trainer


class TestSteps:
    @pytest.mark.parametrize("optimiser", ["sgd", "adam"])
    @pytest.mark.parametrize("step", [0, 1, 2])
    def test_each_changes_its_own_parameters_alone(self, trainer, monkeypatch, step, optimiser):
        made = trainer(optimiser=optimiser, nets_rate=1e-2, critic_rate=1e-2, warmup=0)
        take = AlternatingTrainer._step_of
        monkeypatch.setattr(
            AlternatingTrainer,
            "_step_of",
            lambda self, number, *rest: take(self, number, *rest) if number == step else None,
        )
        made.model.train()
        before = {name: p.detach().clone() for name, p in made.model.named_parameters()}
        made._update(torch.arange(8).numpy())
        changed = {
            name.split(".")[0]
            for name, p in made.model.named_parameters()
            if not torch.equal(p, before[name])
        }
        words = {"embedding", "encoder", "context", "posterior", "decoder", "output"}
        assert changed == (words, {"prior", "posterior"}, {"critic"})[step]

    def test_nothing_is_left_for_the_next_step(self, trainer):
        made = trainer()
        made.model.train()
        made._update(torch.arange(8).numpy())
        assert all(p.grad is None for p in made.model.parameters())

    def test_the_critic_is_asked_as_often_as_the_option_says(self, trainer, monkeypatch):
        made, steps = trainer(critic_steps=3), []
        monkeypatch.setattr(AlternatingTrainer, "_step_of", lambda self, n, *rest: steps.append(n))
        made.model.train()
        made._update(torch.arange(8).numpy())
        assert steps == [0, 1, 2, 2, 2]

    def test_the_critic_reads_what_responding_reads(self, trainer, monkeypatch):
        """Contexts without dropout, by the encoders that the words have just changed."""
        made, read = trainer(dropout=0.5, optimiser="sgd", learning_rate=0.5, warmup=0), []
        model, gap = made.model.train(), IVAEModel.gap

        def record(model, c, both, batch):
            read.append((c, both))
            return gap(model, c, both, batch)

        monkeypatch.setattr(IVAEModel, "gap", record)
        made._update(torch.arange(8).numpy())
        assert model.training
        assert model.dropout.training
        batch = make_batch(made.train, torch.arange(8).numpy(), "cpu")
        expected = model.eval().features(batch)
        assert len(read) == 1 + made.config.critic_steps
        for features in read:
            for one, other in zip(features, expected, strict=True):
                assert torch.equal(one, other)

    def test_gradients_of_encoder_and_decoder_alone_are_clipped(self, trainer):
        made = trainer(optimiser="sgd", clip=1e-3, dropout=0.0)
        model = made.model.train()
        before = {name: p.detach().clone() for name, p in model.named_parameters()}
        batch = make_batch(made.train, torch.arange(8).numpy(), "cpu")
        made._step_of(0, model.loss(batch, 0).total, 1.0)
        squares = {"posterior": 0.0, "others": 0.0}
        for name, parameter in model.named_parameters():
            part = "posterior" if name.startswith("posterior") else "others"
            squares[part] += ((parameter.detach() - before[name]) ** 2).sum().item()
        assert math.sqrt(squares["others"]) == pytest.approx(1e-3, rel=1e-3)
        assert math.sqrt(squares["posterior"]) > 2e-3

    def test_one_example_teaches_the_words_alone(self, trainer):
        """Normalised over its two samples alone, the critic sees neither them nor the context."""
        made = trainer(optimiser="sgd", nets_rate=1e-2, critic_rate=1e-2, warmup=0)
        model = made.model.train()
        z, c = torch.randn(2, 6).double(), torch.randn(1, 12).double()
        near, far = (model.judge(z * size, c.repeat(2, 1)) for size in (100.0, 1e4))
        assert torch.allclose(near, far, atol=1e-2)
        before = {name: p.detach().clone() for name, p in model.named_parameters()}
        made._update(torch.tensor([3]).numpy())
        changed = {
            name.split(".")[0]
            for name, p in model.named_parameters()
            if not torch.equal(p, before[name])
        }
        assert changed == {"embedding", "encoder", "context", "posterior", "decoder", "output"}
        made._update(torch.tensor([3, 4]).numpy())
        assert not torch.equal(model.critic[0].weight, before["critic.0.weight"])

    def test_rate_of_the_code(self, trainer):
        made = trainer(optimiser="sgd", warmup=0, schedule="constant", learning_rate=1.0)
        made.history.step = 5
        rates = []
        for epoch in (0, 9, 10, 25):
            made.history.epoch = epoch
            rates.append(made.rate())
        assert rates == pytest.approx([1.0, 1.0, 0.6, 0.36])

    def test_what_falls_every_ten_epochs_is_the_rate_of_the_words_alone(self, trainer, monkeypatch):
        made = trainer(optimiser="sgd", warmup=0, schedule="constant", learning_rate=1.0)
        taken: list[float] = []
        monkeypatch.setattr(
            AlternatingTrainer, "_step_of", lambda self, n, loss, rate: taken.append(rate)
        )
        made.model.train()
        made.history.epoch = 25
        made._update(torch.arange(8).numpy())
        nets, critic = made.config.nets_rate, made.config.critic_rate
        assert taken == pytest.approx([0.36, nets, *[critic] * made.config.critic_steps])

    @pytest.mark.parametrize("optimiser", ["sgd", "adam"])
    def test_a_resumed_training_run_ends_as_an_uninterrupted_one(
        self, build, eight, tmp_path, optimiser
    ):
        options = {"optimiser": optimiser, "learning_rate": 0.05, "nets_rate": 1e-3}
        weights = []
        for name, stops in (("whole", (4,)), ("parts", (2, 4))):
            (tmp_path / name).mkdir()
            for epochs in stops:
                adapter = build("ivae-mi", **options, epochs=epochs, patience=9)
                adapter.fit(eight, eight, Run(1, folder=tmp_path / name))
            weights.append(adapter.model.state_dict())
        assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])

    def test_words_move_the_posterior_by_its_share(self, trainer):
        moved = {}
        for share in (1.0, 0.1):
            made = trainer(
                optimiser="sgd", learning_rate=0.1, warmup=0, dropout=0.0, posterior_share=share
            )
            before = [p.detach().clone() for p in made.model.parameters()]
            batch = make_batch(made.train, torch.arange(8).numpy(), "cpu")
            made.model.train()
            torch.manual_seed(1)  # the same noise
            made._step_of(0, made.model.loss(batch, 0).total, 0.1)
            moved[share] = {
                name: p.detach() - old
                for (name, p), old in zip(made.model.named_parameters(), before, strict=True)
            }
        for name, whole in moved[1.0].items():
            share = 0.1 if name.startswith("posterior") else 1.0
            assert torch.allclose(moved[0.1][name], share * whole, rtol=1e-3, atol=1e-6), name
        assert moved[1.0]["posterior.generator.6.weight"].abs().max() > 1e-4

    def test_validates_by_what_the_prior_gives(self, ready):
        model, batch = ready("ivae-mi")
        losses = model.loss(batch, 0)
        assert torch.equal(losses.total, model.answering_loss(batch).total)
        assert not torch.equal(losses.parts["posterior_nll"], losses.parts["nll"])

    def test_defaults_are_the_codes(self):
        config = IVAEConfig()
        assert config.posterior_share == 1.0
        assert (config.learning_rate, config.nets_rate, config.critic_rate) == (1.0, 5e-5, 1e-5)
        assert (config.critic_steps, config.batch_size, config.clip) == (5, 32, 1.0)


@pytest.mark.parametrize("decoding", ["greedy", "top-k:5", "beam:3"])
def test_responses_depend_on_no_batch_and_survive_saving(build, eight, asked, tmp_path, decoding):
    adapter, how = build("ivae-mi"), Decoding.parse(decoding)
    adapter.fit(eight, eight, Run(2, folder=tmp_path))
    responses = adapter.respond(asked, how, Run(2))
    assert adapter.respond(asked[::-1], how, Run(2))[::-1] == responses
    assert [adapter.respond([one], how, Run(2))[0] for one in asked] == responses
    (tmp_path / "saved").mkdir()
    adapter.save(tmp_path / "saved")
    loaded = IVAEMI.load(tmp_path / "saved", adapter.config)
    assert loaded.respond(asked, how, Run(2)) == responses


def test_learns_eight_pairs(build, eight, asked, tmp_path):
    options = {"optimiser": "adam", "learning_rate": 2e-2, "nets_rate": 1e-3, "dropout": 0.0}
    adapter = build("ivae-mi", **options, epochs=60, patience=60, embedding=32, hidden=32)
    adapter.fit(eight, eight, Run(1, folder=tmp_path))
    losses = [row["train_nll"] for row in adapter.curve()]
    assert losses[-1] < 0.3 * losses[0]


@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("option", ["first", "all"])
def test_cached_steps_equal_one_pass(ready, width, option, check_cached_equals_whole):
    check_cached_equals_whole(*ready(f"ivae-mi[decoder_context={option}]"), width)
