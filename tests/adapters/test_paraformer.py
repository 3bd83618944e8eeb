"""PaRaFormer: which weights are random, when they are drawn, and how (paper, section 3, A.1)."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from dialbench_adapters.blocks.randomized import RandomLinear, RandomWeights
from dialbench_adapters.paraformer import (
    KaimingConfig,
    NormalConfig,
    PaRaFormerModel,
    randomized_layers,
)

from dialbench.adapter import Progress, Run
from dialbench.neural.data import build_vocabulary, encode_split
from dialbench.neural.model import count_parameters
from dialbench.neural.randomness import generator
from dialbench.neural.training import Trainer, evaluate
from dialbench.records import Context, Decoding
from dialbench.systems import Registry

pytestmark = pytest.mark.usefixtures("one_thread")
P, R = True, False


def random_tensors(model) -> dict[str, torch.Tensor]:
    maps = {name: m for name, m in model.named_modules() if isinstance(m, RandomLinear)}
    return {
        f"{name}.{kind}": tensor.clone()
        for name, module in maps.items()
        for kind, tensor in module.named_buffers()
    }


def trained_tensors(model) -> dict[str, torch.Tensor]:
    return {name: p.detach().clone() for name, p in model.named_parameters()}


def same(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> list[bool]:
    assert a.keys() == b.keys()
    return [torch.equal(a[name], b[name]) for name in a]


def numbers(drawn) -> list[torch.Tensor]:
    return [part for weights in drawn for part in weights if part is not None]


def equal(one, other) -> bool:
    pairs = zip(numbers(one), numbers(other), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)


class TestLayout:
    @pytest.mark.parametrize(
        ("layout", "six", "four"),
        [
            ("alt", [P, R, P, R, P, R], [P, R, P, R]),
            ("full", [P] * 6, [P] * 4),
            ("seq-1", [P, P, P, R, R, R], [P, P, R, R]),
            ("seq-2", [R, R, R, P, P, P], [R, R, P, P]),
        ],
    )
    def test_in_model(self, build, layout, six, four):
        assert randomized_layers(layout, 6) == six
        model = build(f"paraformer-k[layout={layout},layers=4]").build_model(20)
        for side in (model.encoder, model.decoder):
            actual = []
            for layer in side:
                own = layer.attention
                maps = [own.query, own.key, own.value, layer.feed_forward.first]
                kinds = {isinstance(m, RandomLinear) for m in maps}
                assert len(kinds) == 1
                actual.append(kinds.pop())
                rest = [own.output, layer.feed_forward.second]
                assert not any(isinstance(m, RandomLinear) for m in rest)
            assert actual == four
        for layer in model.decoder:
            assert not any(isinstance(m, RandomLinear) for m in layer.cross_attention.modules())

    def test_alt_may_begin_with_a_regular_layer(self, build):
        assert randomized_layers("alt", 6, "R") == [R, P, R, P, R, P]
        model = build("paraformer-n[alt_first=R]").build_model(20)
        assert {name.split(".")[1] for name in random_tensors(model)} == {"1"}

    def test_only_the_first_feed_forward_map_has_a_bias(self, ready):
        model, _ = ready("paraformer-k[layout=full]")
        biased = {name.split(".", 2)[2] for name in random_tensors(model) if name.endswith("bias")}
        assert biased == {"feed_forward.first.bias"}


class TestSizes:
    @pytest.mark.parametrize("config", [NormalConfig, KaimingConfig])
    @pytest.mark.parametrize(
        ("layout", "random", "trained"),
        [
            ("alt", 4_389_888, 25_186_688),
            ("seq-1", 4_389_888, 25_186_688),
            ("seq-2", 4_389_888, 25_186_688),
            ("full", 8_779_776, 20_796_800),
        ],
    )
    def test_paper(self, config, layout, random, trained):
        with torch.device("meta"):
            model = PaRaFormerModel(config(layout=layout), 20_000)
        assert count_parameters(model) == {
            "parameters": 29_576_576,
            "trained_parameters": trained,
            "random_parameters": random,
        }
        assert model.random.numbers == random

    def test_a_layer(self):
        with torch.device("meta"):
            model = PaRaFormerModel(KaimingConfig(), 100)
        for layer in (model.encoder[0], model.decoder[0]):
            assert count_parameters(layer.attention)["random_parameters"] == 115_200
            assert count_parameters(layer.feed_forward)["random_parameters"] == 616_448
            assert count_parameters(layer)["random_parameters"] == 731_648

    def test_facts(self, build, ready):
        adapter = build("paraformer-k")
        adapter.model, _ = ready("paraformer-k")
        assert adapter.facts()["random_parameters"] == 2 * (3 * 16 * 8 + 16 * 24 + 24)


SPREADS = [
    ("paraformer-n", 0.01, 0.05),
    ("paraformer-n[sigma_sa=0.5,sigma_ff=0.01]", 0.5, 0.01),
    ("paraformer-k", 2.5 / 300**0.5, 1.5 / 300**0.5),
    ("paraformer-k[gamma_sa=1.5,gamma_ff=3.5]", 1.5 / 300**0.5, 3.5 / 300**0.5),
]


class TestSpread:
    @pytest.mark.parametrize(("system", "attention", "feed_forward"), SPREADS)
    def test_of_every_kind_of_tensor(self, system, attention, feed_forward):
        adapter = Registry().parse(system)[0].build({"layers": 2, "layout": "full"})
        model = adapter.build_model(20)
        draws: dict[str, list[torch.Tensor]] = {}
        for epoch in range(12):
            model.begin_epoch(1, epoch)
            for name, tensor in random_tensors(model).items():
                draws.setdefault(name.split(".", 2)[2], []).append(tensor.flatten())
        expected = {f"attention.{name}.weight": attention for name in ("query", "key", "value")}
        expected |= {f"feed_forward.first.{kind}": feed_forward for kind in ("weight", "bias")}
        assert draws.keys() == expected.keys()
        for name, std_or_bounds in expected.items():
            numbers = torch.cat(draws[name])
            assert numbers.std().item() == pytest.approx(std_or_bounds, rel=0.02), name
            # the mean of so many lies within five of its standard errors
            assert abs(numbers.mean().item()) < 5 * std_or_bounds / len(numbers) ** 0.5, name

    def test_fan_in_is_the_embedding_size(self):
        config = KaimingConfig(embedding=64, gamma_sa=2.0, gamma_ff=4.0)
        assert config.stds() == (0.25, 0.5)

    @pytest.mark.parametrize(
        "options", [{"layers": 1, "layout": "seq-1"}, {"layers": 1, "alt_first": "R"}]
    )
    def test_a_paraformer_has_a_random_layer(self, options):
        with pytest.raises(ValueError, match=r"layers=1 and alt_first=\w randomize no layer"):
            NormalConfig(**options)

    @pytest.mark.parametrize("option", ["sigma_sa", "sigma_ff"])
    def test_no_spread_is_negative(self, option):
        with pytest.raises(ValueError, match=f"{option} must be at least 0"):
            NormalConfig(**{option: -0.1})
        with pytest.raises(ValueError, match="gamma_ff must be at least 0"):
            KaimingConfig(gamma_ff=-0.1)

    @pytest.mark.parametrize("size", [48, 300])
    def test_sigma_is_worth_the_same_at_every_width(self, size):
        """A sum over n inputs is std_or_bounds as over the paper's 300."""
        of_attention, of_feed_forward = NormalConfig(embedding=size).stds()
        assert of_attention * size**0.5 == pytest.approx(0.01 * 300**0.5)
        assert of_feed_forward * size**0.5 == pytest.approx(0.05 * 300**0.5)

    @pytest.mark.parametrize("system", ["paraformer-n", "paraformer-k", "rl-transformer"])
    def test_draws_move_a_model_less_behind_smaller_maps(self, ready, system):
        def moved(start: float) -> float:
            model, batch = ready(f"{system}[behind_random={start}]")
            draws = [model.hidden(replace(batch, seed=seed)).detach() for seed in range(6)]
            return float(torch.stack(draws).std(0).mean())

        assert moved(0.25) < 0.7 * moved(1.0)

    def test_of_every_few_updates(self, ready):
        model, batch = ready("paraformer-k[redraw_every=step,redraw_updates=3]", seed=None)
        model.train()
        seen = []
        for step in range(7):
            model.loss(batch, step)
            seen.append(next(iter(random_tensors(model).values())))
        new = [not torch.equal(one, other) for one, other in pairwise(seen)]
        assert new == [False, False, True, False, False, True]

    @pytest.mark.parametrize(
        ("system", "std_or_bounds"),
        [("paraformer-n", 0.03), ("paraformer-k", 6.25), ("paraformer-n[sigma_sa=0.5]", 75.0)],
    )
    def test_of_attention_scores(self, system, std_or_bounds):
        adapter = Registry().parse(system)[0].build({"layers": 1, "feed_forward": 8})
        attention = adapter.build_model(20).encoder[0].attention
        random = torch.Generator().manual_seed(1)
        x, y = (torch.randn(1, 300, 300, generator=random) for _ in range(2))
        query, (key, _) = attention._split(attention.query(x)), attention.keys_values(y, None)
        scores = query @ key.transpose(-1, -2) / 32**0.5
        assert scores.std().item() == pytest.approx(std_or_bounds, rel=0.05)


class TestFrozen:
    def test_gradient_passes_through_but_not_into(self, ready):
        model, batch = ready("paraformer-k[layout=full]", seed=None)
        model.train().loss(batch, 0).total.backward()
        assert all(not t.requires_grad and t.grad is None for _, t in model.named_buffers())
        for name in ("attention.output.weight", "feed_forward.second.weight"):
            for side in ("encoder", "decoder"):
                assert model.get_parameter(f"{side}.0.{name}").grad.any()
        assert model.embedding.weight.grad.any()

    def test_earlier_layers_learn_through_random_ones(self, ready):
        model, batch = ready("paraformer-k[layout=seq-2]", seed=None)
        # without their residuals, later layers are reached through their random maps alone
        for layer in model.encoder:
            for around in (layer.around_attention, layer.around_feed_forward):
                around.forward = lambda x, inner: inner(x)
        model.train().loss(batch, 0).total.backward()
        assert model.get_parameter("encoder.0.attention.query.weight").grad.any()

    def test_training_changes_only_what_is_trained(self, ready, build, eight, tmp_path):
        model, _ = ready("paraformer-n")
        config = build("paraformer-n", epochs=1).config
        vocabulary = build_vocabulary(eight, 100)
        data = encode_split(eight, vocabulary, 30, 10)
        trainer = Trainer(model, data, data, config, Run(1, folder=tmp_path))
        held = {id(p) for group in trainer.optimiser.param_groups for p in group["params"]}
        assert held == {id(p) for p in model.parameters()}
        assert not held & {id(t) for t in model.buffers()}
        model.begin_epoch(1, 1)
        random, trained = random_tensors(model), trained_tensors(model)
        trainer.fit()
        assert all(same(random, random_tensors(model)))
        assert not any(same(trained, trained_tensors(model)))


class TestRedraw:
    def test_an_epoch_changes_every_random_tensor_and_nothing_else(self, ready):
        model, _ = ready("paraformer-k")
        model.begin_epoch(1, 1)
        random, trained = random_tensors(model), trained_tensors(model)
        model.begin_epoch(1, 2)
        assert not any(same(random, random_tensors(model)))
        assert all(same(trained, trained_tensors(model)))
        for key, expected in [((1, 1), True), ((2, 1), False)]:
            model.begin_epoch(*key)
            assert set(same(random, random_tensors(model))) == {expected}

    def test_train_and_eval_switches_draw_nothing(self, ready):
        model, batch = ready("paraformer-k", seed=None)
        before = random_tensors(model)
        model.train().loss(batch, 0)
        model.eval().loss(batch, 1)
        assert all(same(before, random_tensors(model)))

    def test_every_map_has_numbers_of_its_own(self, ready):
        model, _ = ready("paraformer-n[layout=full]")
        places = []
        for m in model.modules():
            if isinstance(m, RandomLinear):
                places.append(m.index)
        assert places == list(range(len(model.random.maps)))

    def test_a_draw_comes_from_one_generator_in_the_order_of_the_layers(self):
        maps = torch.nn.ModuleList(
            [
                RandomLinear(20, 30, bias=True, std_or_bounds=0.5),
                torch.nn.Linear(2, 2),
                RandomLinear(5, 40, bias=False, std_or_bounds=3.0),
            ]
        )
        weights = RandomWeights(maps)
        weights.redraw(1, "train", 4)
        random = generator(1, "train", 4)
        first = 0.5 * torch.randn(630, generator=random)
        second = 3.0 * torch.randn(200, generator=random)
        assert torch.allclose(maps[0].weight, first[:600].view(20, 30))
        assert torch.allclose(maps[0].bias, first[600:])
        assert torch.allclose(maps[2].weight, second.view(5, 40))
        x = torch.randn(2, 3, 20)
        for row in range(2):
            expected = x[row] @ first[:600].view(20, 30) + first[600:]
            assert torch.allclose(maps[0](x)[row], expected, atol=1e-5)

    def test_every_step_draws_where_asked_for(self, ready):
        model, batch = ready("paraformer-k[redraw_every=step]", seed=None)
        model.begin_epoch(1, 1)
        seen = [random_tensors(model)]
        for step in range(2):
            model.train().loss(batch, step)
            seen.append(random_tensors(model))
        assert not any(same(seen[0], seen[1]))
        assert not any(same(seen[1], seen[2]))
        model.eval().loss(batch, 2)
        assert all(same(seen[2], random_tensors(model)))
        for seed, expected in [(1, True), (2, False)]:
            model.begin_epoch(seed, 2)
            model.train().loss(batch, 0)
            assert set(same(seen[1], random_tensors(model))) == {expected}


class Stop(Exception):
    pass


class StopInSecondEpoch(Progress):
    def update(self, stage, **numbers):
        if numbers.get("epoch") == 2:
            raise Stop


@pytest.mark.parametrize("every", ["epoch", "step"])
def test_a_resumed_training_draws_the_same(build, eight, tmp_path, every):
    def fitted(folder: str, progress: Progress | None = None):
        adapter = build(f"paraformer-k[redraw_every={every},dropout=0.2]", precision="float32")
        adapter.fit(eight, eight, Run(1, "cpu", tmp_path / folder, {}, progress or Progress()))
        return adapter

    whole = fitted("whole")
    with pytest.raises(Stop):
        fitted("broken", StopInSecondEpoch())
    resumed = fitted("broken")
    assert resumed.curve() == whole.curve()
    assert all(same(resumed.model.state_dict(), whole.model.state_dict()))


class TestValidation:
    @pytest.fixture
    def spied(self, monkeypatch) -> list[tuple[int, str, tuple[str, ...]]]:
        calls, plain = [], RandomWeights.draw_each

        def draw_each(self, seed, purpose, ids, *where):
            calls.append((seed, purpose, tuple(ids)))
            return plain(self, seed, purpose, ids, *where)

        monkeypatch.setattr(RandomWeights, "draw_each", draw_each)
        return calls

    def test_draws_for_each_context_and_logs_the_fixed_loss_too(
        self, build, eight, tmp_path, spied
    ):
        adapter = build("paraformer-k", epochs=3, patience=3)
        run = Run(7, folder=tmp_path)
        adapter.fit(eight, eight, run)
        assert {call[:2] for call in spied} == {(7, "valid")}
        ids = sorted(example.id for example in eight)
        drawn_for = sorted(id for call in spied for id in call[2])
        assert drawn_for == sorted(ids * 4)  # the fourth time with exchanged contexts

        row = adapter.curve()[adapter.history.best_epoch - 1]
        assert row["valid_fixed_loss"] != row["valid_loss"]
        data, config = encode_split(eight, adapter.vocabulary, 30, 10), adapter.config
        for purpose, key in [("valid", "valid_loss"), (None, "valid_fixed_loss")]:
            loss = evaluate(adapter.model, data, config, run, purpose)["loss"]
            assert loss == pytest.approx(row[key], rel=1e-12)

    def test_ordinary_systems_log_no_fixed_loss(self, build, eight, tmp_path):
        adapter = build("transformer", epochs=1)
        adapter.fit(eight, eight, Run(7, folder=tmp_path))
        assert "valid_fixed_loss" not in adapter.curve()[0]


class TestInference:
    def test_each_context_has_its_own_weights(self, ready):
        model, batch = ready("paraformer-k[layout=full]")
        together = model.logits(batch)
        own = replace(batch, seed=None)
        for row, id in enumerate(batch.ids):
            model.random.redraw(5, "infer", id)
            # what was drawn for it, put into place as an epoch's weights are
            expected = model.logits(own)[row]
            assert torch.allclose(together[row], expected, rtol=0, atol=1e-10)

    def test_the_id_decides(self, ready):
        model, batch = ready("paraformer-k")
        rows = torch.tensor([2, 2, 2])
        alike = replace(batch, source=batch.source[rows], target=batch.target[rows])
        one, again, other = model.logits(replace(alike, ids=("a", "a", "b")))
        assert torch.equal(one, again)
        assert (one - other).abs().max() > 1e-3
        valid = model.logits(replace(alike, ids=("a", "a", "b"), purpose="valid"))
        assert (valid[0] - one).abs().max() > 1e-3

    def test_threads_draw_the_same(self, ready):
        model, batch = ready("paraformer-k")
        one = model.random.draw_each(1, "infer", batch.ids)
        torch.set_num_threads(4)
        assert equal(model.random.draw_each(1, "infer", batch.ids), one)
        for row, id in enumerate(batch.ids):
            assert equal(
                [[part[row] for part in numbers(one)]], [numbers(model.random.draw(1, "infer", id))]
            )

    def test_weights_of_one_map_lie_together(self, ready):
        model, batch = ready("paraformer-k")
        state = model.start(batch)
        for drawn in (state, state.keep(torch.tensor([2, 0]))):
            # Otherwise every step of decoding copies them all, to multiply them at once.
            assert all(part.is_contiguous() for part in numbers(drawn.example["draws"]))

    def test_one_draw_for_a_batch(self, ready):
        model, batch = ready("paraformer-k[redraw_at_inference=per_batch]")
        drawn = model.draws(batch)
        assert sum(part.numel() for part in numbers(drawn)) == model.random.numbers
        assert equal(drawn, model.draws(batch))
        together = model.logits(batch)
        model.random.redraw(5, "infer", "batch", *batch.ids)
        assert torch.allclose(together, model.logits(replace(batch, seed=None)), atol=1e-10)
        state = model.start(batch).widen(2).keep(torch.tensor([3, 1]))
        assert equal(state.shared, drawn)
        logits, _ = model.step(torch.full((4,), 2), state)
        assert torch.allclose(logits, together[[3, 3, 1, 1], 0], atol=1e-10)

    @pytest.mark.parametrize("when", ["per_context", "per_batch"])
    def test_without_a_random_map_nothing_is_drawn(self, ready, when):
        nothing = "rlsa_encoder=no,rlsa_decoder=no,rlsa_cross=no,rlff_encoder=no"
        model, batch = ready(f"rl-transformer[redraw_at_inference={when},{nothing}]")
        assert model.random.numbers == 0
        state = model.start(batch).keep(torch.tensor([3, 1]))
        logits, _ = model.step(torch.full((2,), 2), state)
        assert torch.allclose(logits, model.logits(batch)[[3, 1], 0], atol=1e-10)

    def test_no_draw(self, ready):
        model, batch = ready("paraformer-k[redraw_at_inference=none]")
        assert model.draws(batch) is None
        assert torch.equal(model.logits(batch), model.logits(replace(batch, seed=None)))

    @pytest.mark.parametrize("when", ["per_context", "per_batch", "none"])
    @pytest.mark.parametrize("decoding", ["greedy", "beam:3"])
    def test_runs_differ_unless_nothing_is_drawn(self, build, eight, tmp_path, when, decoding):
        adapter = build(f"paraformer-k[redraw_at_inference={when},layout=full]")
        adapter.fit(eight, eight, Run(1, folder=tmp_path))
        asked = [Context(["Is the bakery open?"], f"asked-{i}") for i in range(12)]
        how = Decoding.parse(decoding)
        one, two = (adapter.respond(asked, how, Run(seed)) for seed in (1, 2))
        assert (one == two) is (when == "none")
        assert adapter.respond(asked, how, Run(1)) == one
        if when == "per_context":
            assert len(set(one)) > 2
            assert [adapter.respond([context], how, Run(1))[0] for context in asked] == one

    def test_draws_are_cast_once_for_mixed_precision(self, ready):
        model, batch = ready("paraformer-k", precision="float32")
        assert {w.dtype for w, _ in model.draws(batch)} == {torch.float32}
        with torch.autocast("cpu", torch.bfloat16):
            assert {w.dtype for w, _ in model.draws(batch)} == {torch.bfloat16}
            half = model.logits(batch)
        assert torch.allclose(half.float(), model.logits(batch), atol=0.1)


def test_saved_random_tensors_give_the_same_logits(build, eight, tmp_path):
    adapter = build("paraformer-n[layout=full]")
    adapter.fit(eight, eight, Run(1, folder=tmp_path))
    adapter.save(tmp_path / "saved")
    loaded = type(adapter).load(tmp_path / "saved", adapter.config)
    assert all(same(random_tensors(adapter.model), random_tensors(loaded.model)))
    assert all(same(trained_tensors(adapter.model), trained_tensors(loaded.model)))
