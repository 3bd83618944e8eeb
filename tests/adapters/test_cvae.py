"""CVAE: its size, its latent variable, its loss and what it starts from (docs/systems.md)."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from dialbench_adapters.blocks.latent import noise, tanh_weight
from dialbench_adapters.cvae import CVAEConfig, CVAEModel
from dialbench_adapters.transformer import TransformerModel
from torch.nn.functional import pad

from dialbench.adapter import Progress, Run
from dialbench.errors import InputError, SystemFailed
from dialbench.neural.decoding import decode
from dialbench.neural.model import count_for_responses, count_parameters
from dialbench.records import Decoding, Example, Split
from dialbench.systems import Registry
from dialbench.text.vocabulary import BOS, PAD

pytestmark = pytest.mark.usefixtures("one_thread")
SCRATCH = "cvae[start=scratch]"


class Listener(Progress):
    def __init__(self) -> None:
        self.warnings: list[str] = []

    def warn(self, text: str) -> None:
        self.warnings.append(text)


def led(tokens: torch.Tensor) -> torch.Tensor:
    """Tokens with CLS, for which BOS serves, before them."""
    return pad(tokens, (1, 0), value=BOS)


@pytest.fixture(scope="module")
def base(build, eight, tmp_path_factory):
    adapter = build("transformer", epochs=1)
    adapter.fit(eight, eight, Run(1, folder=tmp_path_factory.mktemp("base")))
    return adapter


class TestSizes:
    def test_paper(self):
        with torch.device("meta"):
            model = CVAEModel(CVAEConfig(), 20_000)
        networks = [count_parameters(n)["parameters"] for n in (model.prior, model.posterior)]
        assert count_parameters(model)["parameters"] == 45_515_000
        assert count_parameters(model.response_encoder)["parameters"] == 8_315_688
        assert sum(networks) == 1_602_736
        assert count_parameters(model.bag)["parameters"] == 6_020_000
        assert count_for_responses(model) == 29_576_576 + networks[0]

    @pytest.mark.parametrize("options", ["latent_hidden=0", "kappa=-1", "kl_annealing=-1"])
    def test_what_cannot_be_built(self, options):
        with pytest.raises(InputError, match=options.split("=")[0]):
            Registry().parse(f"cvae[{options}]")

    def test_defaults_are_the_papers_and_the_codes(self):
        config = CVAEConfig()
        assert (config.latent_hidden, config.learning_rate) == (512, 6e-4)
        assert (config.kappa, config.kl_annealing, config.start) == (0.05, 12_000, "transformer")


class TestLatentVariable:
    @pytest.mark.parametrize("where", ["bos", "encoder_outputs"])
    def test_is_added_where_the_option_says(self, ready, where):
        model, batch = ready(SCRATCH, z_to=where)
        memory, seen = model.encode(batch.source, None)
        p = model.prior(memory[:, 0])
        z = p.mean + (p.log_variance / 2).exp() * noise(batch, 16)
        x = model._embed(batch.inputs)
        if where == "bos":
            x[:, 0] += z
        else:
            memory = memory + z[:, None]
        size = x.shape[1]
        causal = torch.ones(size, size, dtype=torch.bool).tril()
        for layer in model.decoder:
            x, _ = layer(
                x, None, layer.cross_attention.keys_values(memory, None), (causal, seen), None
            )
        assert torch.allclose(model.logits(batch), model.output(x))

    def test_changes_logits(self, ready):
        model, batch = ready(SCRATCH)
        other = replace(batch, seed=6)
        assert (model.logits(batch) - model.logits(other)).abs().amax((1, 2)).min() > 1e-4
        assert torch.equal(model.logits(batch), model.logits(replace(batch)))

    def test_answering_reads_no_response(self, ready):
        model, batch = ready(SCRATCH)
        blind = replace(batch, target=batch.target[:, :0], real=batch.real[:0])
        asked, unasked = (model.start(given).example["draws"] for given in (batch, blind))
        assert torch.equal(asked, unasked)
        responses = [decode(model, given, Decoding(), 8) for given in (batch, blind)]
        assert responses[0] == responses[1]

    def test_seeds_give_other_words(self, ready):
        model, batch = ready(SCRATCH)
        model.prior.layers[-1].bias.data[16:] = 4.0  # so that z decides words from the start
        responses = [decode(model, replace(batch, seed=seed), Decoding(), 8) for seed in (1, 2, 1)]
        assert responses[0] == responses[2]
        assert responses[0] != responses[1]


class TestLoss:
    def test_by_hand_from_the_posterior(self, ready):
        model, batch = ready(SCRATCH)
        reader, _ = ready("transformer")
        weights = reader.state_dict()
        for name, value in model.state_dict().items():
            if name.startswith("response_encoder."):
                weights[name.removeprefix("response_")] = value
        weights["embedding.weight"] = model.embedding.weight
        reader.load_state_dict(weights)
        response = torch.stack(
            [reader.encode(led(row[row != PAD][None]), None)[0][0, 0] for row in batch.target]
        )
        memory, seen = model.encode(batch.source, None)
        q, p = model.posterior(response, memory[:, 0]), model.prior(memory[:, 0])
        z = q.mean + (q.log_variance / 2).exp() * noise(batch, 16)
        hidden = model.teacher_forced(z, memory, seen, batch)
        logs = model.output(hidden).log_softmax(-1).gather(-1, batch.target[:, :, None])[:, :, 0]
        bags = model.bag(z).log_softmax(-1)
        words = [(row, w) for row, tokens in enumerate(batch.target.tolist()) for w in tokens if w]
        parts = model.loss(batch, 0).parts
        assert parts["nll"].item() == pytest.approx(-logs[batch.target.ne(PAD)].sum().item())
        assert parts["kl"].item() == pytest.approx(q.divergence(p).sum().item())
        assert parts["bow"].item() == pytest.approx(-sum(bags[at].item() for at in words))

    @pytest.mark.parametrize(("kappa", "step"), [(0.0, 50), (0.05, 0), (0.05, 30), (0.3, 100)])
    def test_weighs_its_parts(self, ready, kappa, step):
        model, batch = ready(SCRATCH, kappa=kappa, kl_annealing=100)
        losses = model.loss(batch, step)
        nll, kl, bow = (losses.parts[name].item() for name in ("nll", "kl", "bow"))
        assert kl > 0.01
        weighed = kappa * tanh_weight(step, 100) * kl / 8
        assert losses.total.item() == pytest.approx((nll + bow) / losses.tokens + weighed)

    def test_gradient_of_the_divergence_reaches_both_networks_and_encoders(self, ready):
        model, batch = ready(SCRATCH, seed=None)
        context = model.encode(batch.source, None)[0][:, 0]
        posterior = model.posterior(model.response(batch), context)
        posterior.divergence(model.prior(context)).sum().backward()
        for part in (model.prior, model.posterior, model.encoder, model.response_encoder):
            assert all(p.grad.any() for p in part.parameters())
        assert model.output.weight.grad is None

    def test_validation_is_the_elbo_with_weight_one(self, check_elbo):
        check_elbo(SCRATCH, "kl")

    def test_eight_pairs_are_learnt_by_heart(self, ready, learn):
        sizes = {"embedding": 32, "attention": 32}
        model, batch = ready(SCRATCH, **sizes, precision="float32", kappa=0.0)
        losses = learn(model, batch, range(80))
        assert losses.parts["nll"].item() / losses.tokens < 0.1


class TestStart:
    @pytest.mark.parametrize("norm", ["post", "pre"])
    @pytest.mark.parametrize("where", ["bos", "encoder_outputs"])
    def test_without_z_the_transformer_is_left(self, ready, monkeypatch, norm, where):
        plain, batch = ready(f"transformer[norm={norm}]")
        model, _ = ready(SCRATCH, norm=norm, z_to=where)
        model.start_from(plain.state_dict())
        model.prior.layers[-1].weight.data.zero_()
        model.prior.layers[-1].bias.data.zero_()
        zeros = torch.zeros(8, 16, dtype=torch.float64)
        monkeypatch.setattr("dialbench_adapters.cvae.noise", lambda *_: zeros)
        expected = plain.logits(replace(batch, source=led(batch.source)))
        assert torch.allclose(model.logits(batch), expected)

    def test_both_encoders_start_as_the_transformers(self, ready):
        plain, _ = ready("transformer[norm=pre]")
        assert isinstance(plain, TransformerModel)
        model, _ = ready(SCRATCH, norm="pre")
        prior = model.prior.layers[0].weight.clone()
        model.start_from(plain.state_dict())
        for name, value in plain.state_dict().items():
            if name.startswith("encoder"):
                assert torch.equal(model.get_parameter(name), value)
                assert torch.equal(model.get_parameter(f"response_{name}"), value)
        assert torch.equal(model.prior.layers[0].weight, prior)

    def test_training_begins_with_the_weights_of_the_base(self, build, eight, base, tmp_path):
        adapter = build("cvae", epochs=1, learning_rate=1e-12)
        adapter.fit(eight, eight, Run(1, folder=tmp_path, base=base))
        weights = adapter.model.state_dict()
        for name, value in base.model.state_dict().items():
            assert torch.allclose(weights[name], value, rtol=0, atol=1e-9)

    def test_needs_a_base(self, build, eight, base, tmp_path):
        with pytest.raises(SystemFailed, match="no trained Transformer to start from"):
            build("cvae").fit(eight, eight, Run(1, folder=tmp_path))
        others = Split("train", [Example("x", "x", ("Other words?",), ("Quite other ones.",))])
        with pytest.raises(SystemFailed, match="knows other words"):
            build("cvae").fit(others, others, Run(1, folder=tmp_path, base=base))

    def test_from_scratch_needs_none(self):
        named = Registry().parse("cvae,cvae[start=scratch]")
        assert [system.base({}) and system.base({}).name for system in named] == [
            "transformer",
            None,
        ]

    def test_the_base_has_the_options_that_both_know(self):
        text = "cvae[layers=3,learning_rate=0.001,answer_batch=8,kappa=1]"
        (system,) = Registry().parse(text)
        settings = {"layers": 2, "heads": 2, "learning_rate": 1e-3, "kl_annealing": 9}
        base = system.base(settings)
        assert base.name == "transformer[layers=3]"
        assert base == Registry().parse(base.name)[0]
        ours, theirs = system.config(settings), base.config(settings)
        names = {field for field in vars(theirs) if field != "answer_batch"}
        assert {n: getattr(ours, n) for n in names} == {n: getattr(theirs, n) for n in names}


class TestTraining:
    def test_collapse_is_told(self, build, eight, tmp_path):
        listener = Listener()
        adapter = build(SCRATCH, kl_annealing=0, kappa=50.0, epochs=20, patience=20)
        adapter.fit(eight, eight, Run(1, folder=tmp_path, progress=listener))
        text = listener.warnings[-1]
        assert text.endswith("below 0.1: the latent variable carries nothing")

    def test_annealing_that_never_ended_is_told(self, build, eight, tmp_path):
        listener = Listener()
        adapter = build(SCRATCH, kl_annealing=1_000, epochs=1)
        adapter.fit(eight, eight, Run(1, folder=tmp_path, progress=listener))
        [text] = listener.warnings
        assert "update 2, before kl_annealing=1000 ended" in text

    def test_is_a_function_of_the_seed(self, build, eight, tmp_path):
        def curve(folder: str, seed: int):
            adapter = build(SCRATCH, epochs=2)
            adapter.fit(eight, eight, Run(seed, folder=tmp_path / folder))
            return adapter.curve()

        assert curve("a", 1) == curve("b", 1)
        assert curve("a", 1) != curve("c", 2)
