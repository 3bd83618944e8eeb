"""RL Transformer: what is random, what the links carry, when is drawn (paper, 3.2, 3.3)."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from dialbench_adapters.blocks.randomized import RandomLinear, RandomWeights
from dialbench_adapters.rl_transformer import (
    RandomLinkAttention,
    RandomLinkFeedForward,
    RLTransformerConfig,
    RLTransformerModel,
)

from dialbench.adapter import Run
from dialbench.errors import InputError
from dialbench.neural.model import count_parameters
from dialbench.neural.randomness import generator
from dialbench.neural.training import Trainer
from dialbench.records import Context, Decoding
from dialbench.systems import Registry

pytestmark = pytest.mark.usefixtures("one_thread")

SMALL = {"d_rand": 20}
NETWORKS = ("encoder attention", "encoder feed_forward", "decoder attention")
NETWORKS += ("decoder cross_attention", "decoder feed_forward")


def tensors(model, kind: str) -> dict[str, torch.Tensor]:
    """Copies of the random or of the trained tensors of a model."""
    random = {
        f"{name}.{part}"
        for name, module in model.named_modules()
        if isinstance(module, RandomLinear)
        for part, _ in module.named_buffers()
    }
    return {
        name: value.clone()
        for name, value in model.state_dict().items()
        if (name in random) == (kind == "random")
    }


def unchanged(before, after) -> set[bool]:
    assert before.keys() == after.keys()
    return {torch.equal(before[name], after[name]) for name in before}


def counted(**options) -> dict[str, int]:
    with torch.device("meta"):
        model = RLTransformerModel(RLTransformerConfig(**options), 20_000)
    counts = count_parameters(model)
    assert model.random.numbers == counts["random_parameters"]
    return counts


class TestSizes:
    def test_of_the_paraformer_paper(self):
        assert counted() == {
            "parameters": 45_894_368,
            "trained_parameters": 32_721_632,
            "random_parameters": 13_172_736,
        }
        assert counted(output_link="X")["parameters"] == 46_823_168

    @pytest.mark.parametrize(
        ("attention", "size", "random"),
        [(64, 32_958_048, 8_388_608), (256, 39_750_240, 9_568_256)],
    )
    def test_of_its_own_paper(self, attention, size, random):
        counts = counted(layers=4, attention=attention, output_link="X")
        assert (counts["parameters"], counts["random_parameters"]) == (size, random)

    @pytest.mark.parametrize(
        ("attention", "link", "size"),
        [
            (64, "X", 893_072),
            (64, "Z", 822_272),
            (128, "X", 1_081_744),
            (128, "Z", 1_030_144),
            (256, "X", 1_459_088),
            (256, "Z", 1_445_888),
        ],
    )
    def test_of_an_attention_network(self, attention, link, size):
        network = RandomLinkAttention(RLTransformerConfig(attention=attention, output_link=link))
        assert count_parameters(network)["parameters"] == size

    def test_of_a_feed_forward_network(self):
        network = RandomLinkFeedForward(RLTransformerConfig())
        assert count_parameters(network)["parameters"] == 1_321_148
        assert count_parameters(network)["random_parameters"] == 300 * 2_048 + 2_048

    @pytest.mark.parametrize("d_rand", [64, 128, 256, 1024])
    def test_general_formula(self, d_rand):
        n, d, r, f, V = 300, 128, d_rand, 2_048, 20_000
        attention = 3 * n * r + d * r + 3 * (n + r) * d + (d + r) * n
        linked = n * f + f + (f + n) * n + n
        ordinary = n * f + f + f * n + n
        norms = 5 * 2 * n
        total = V * n + 6 * (3 * attention + linked + ordinary + norms) + n * V + V
        assert counted(d_rand=d_rand)["parameters"] == total

    def test_what_cannot_be_built(self):
        with pytest.raises(InputError, match="d_rand"):
            Registry().parse("rl-transformer[d_rand=0]")


def randomized(model) -> dict[str, int]:
    """How many random tensors each network has, the same in every layer."""
    actual = {}
    for network in NETWORKS:
        side, part = network.split()
        counts = {
            sum(1 for m in getattr(layer, part).modules() if isinstance(m, RandomLinear))
            for layer in getattr(model, side)
        }
        assert len(counts) == 1
        actual[network] = counts.pop()
    return actual


WHOLE = dict(zip(NETWORKS, (4, 1, 4, 4, 0), strict=True))


class TestAblations:
    @pytest.mark.parametrize(
        ("option", "changed"),
        [
            ("d_rand=20", {}),
            ("rlsa_encoder=false", {"encoder attention": 0}),
            ("rlsa_decoder=false", {"decoder attention": 0}),
            ("rlsa_cross=false", {"decoder cross_attention": 0}),
            ("rlff_encoder=false", {"encoder feed_forward": 0}),
            ("rlff_decoder=true", {"decoder feed_forward": 1}),
            ("links=false", {}),
            ("output_link=X", {}),
            ("draws=normal", {}),
            ("draws=uniform", {}),
        ],
    )
    def test_changes_the_named_networks_only(self, ready, option, changed):
        model, _ = ready(f"rl-transformer[{option}]")
        assert randomized(model) == {**WHOLE, **changed}

    def test_an_ablated_network_is_the_transformers(self):
        parts = ["rlsa_encoder", "rlsa_decoder", "rlsa_cross", "rlff_encoder"]
        counts = counted(**dict.fromkeys(parts, False))
        assert counts["parameters"] == 29_576_576
        assert counts["random_parameters"] == 0

    def test_without_links_only_the_random_part_is_mapped_on(self):
        n, d, r, f = 300, 128, 512, 2_048
        attention = 3 * n * r + d * r + 3 * r * d + r * n
        ordinary = n * f + f + f * n + n
        layers = 3 * attention + 2 * ordinary + 5 * 2 * n
        assert counted(links=False)["parameters"] == 20_000 * 601 + 6 * layers


def matrix(linear) -> np.ndarray:
    weight = linear.weight.detach().numpy()
    return weight if isinstance(linear, RandomLinear) else weight.T


def linked_by_hand(map, x: np.ndarray, link: np.ndarray, links: bool) -> np.ndarray:
    hidden = x @ matrix(map.random)
    both = np.concatenate([link, hidden], 1) if links else hidden
    return both @ matrix(map.trained)


def attention_by_hand(layer, x: np.ndarray, y: np.ndarray, config) -> np.ndarray:
    """(T, n) asks (S, n), head after head."""
    query, key, value = (
        linked_by_hand(map, side, side, config.links)
        for map, side in ((layer.query, x), (layer.key, y), (layer.value, y))
    )
    size = config.attention // config.heads
    heads = []
    for head in range(config.heads):
        part = slice(head * size, (head + 1) * size)
        shares = np.exp(query[:, part] @ key[:, part].T / math.sqrt(size))
        heads.append(shares / shares.sum(1, keepdims=True) @ value[:, part])
    Z = np.concatenate(heads, 1)
    return linked_by_hand(layer.output, Z, x if config.output_link == "X" else Z, config.links)


def drawn(network):
    """The network in float64 with all its random maps drawn."""
    RandomWeights(network).redraw(1, "test")
    return network.double().eval()


def tiny(**options) -> RLTransformerConfig:
    sizes = {"embedding": 10, "attention": 6, "heads": 3, "d_rand": 7, "feed_forward": 9}
    return RLTransformerConfig(**{**sizes, **options})


@pytest.fixture(params=[(4, 5), (14, 15)], ids=["few-rows", "more-rows-than-inputs"])
def sides(request) -> tuple[torch.Tensor, torch.Tensor]:
    random = torch.Generator().manual_seed(2)
    made = [torch.randn(1, n, 10, generator=random, dtype=torch.float64) for n in request.param]
    return made[0], made[1]


class TestNetworks:
    @pytest.mark.parametrize("link", ["X", "Z"])
    @pytest.mark.parametrize("links", [True, False])
    def test_attention_equals_the_formula(self, sides, link, links):
        x, y = sides  # of unequal lengths: a link to the other side would not fit
        config = tiny(output_link=link, links=links)
        torch.manual_seed(1)
        layer = drawn(RandomLinkAttention(config))
        actual = layer(x, layer.keys_values(y, None), None, None)[0].detach().numpy()
        expected = attention_by_hand(layer, x[0].numpy(), y[0].numpy(), config)
        np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-12)

    @pytest.mark.parametrize("links", [True, False])
    def test_feed_forward_equals_the_formula(self, sides, links):
        layer = drawn(RandomLinkFeedForward(tiny(links=links)))
        x = sides[0][0].numpy()
        hidden = np.maximum(x @ matrix(layer.first) + layer.first.bias.numpy(), 0)
        both = np.concatenate([hidden, x], 1) if links else hidden
        expected = both @ matrix(layer.second) + layer.second.bias.detach().numpy()
        actual = layer(sides[0], None)[0].detach().numpy()
        np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-12)

    @pytest.mark.parametrize("links", [True, False])
    def test_without_links_the_input_comes_through_the_random_map_alone(self, sides, links):
        layer = drawn(RandomLinkAttention(tiny(links=links)))
        layer.query.random.weight.zero_()
        assert bool(layer.query(sides[0]).any()) is links


def draws_of(how: str) -> dict[str, torch.Tensor]:
    """All draws of eight epochs by kind of tensor, at the paper's sizes."""
    model = RLTransformerModel(RLTransformerConfig(layers=1, draws=how), 20)
    draws: dict[str, list[torch.Tensor]] = {}
    for epoch in range(8):
        model.begin_epoch(1, epoch)
        for name, tensor in tensors(model, "random").items():
            draws.setdefault(name.split(".", 2)[2], []).append(tensor.flatten())
    return {kind: torch.cat(parts) for kind, parts in draws.items()}


ATTENTION = [f"{kind}.random.weight" for kind in ("query", "key", "value")]
FEED_FORWARD = ["feed_forward.first.weight", "feed_forward.first.bias"]


class TestDraws:
    def test_xavier(self):
        actual = draws_of("xavier")
        stds = {
            f"{network}.{name}": 0.0496
            for network in ("attention", "cross_attention")
            for name in ATTENTION
        }
        root = (2 / (128 + 512)) ** 0.5
        stds |= {f"{n}.output.random.weight": root for n in ("attention", "cross_attention")}
        for name, std_or_bounds in stds.items():
            numbers = actual.pop(name)
            assert numbers.std().item() == pytest.approx(std_or_bounds, rel=0.005), name
            assert abs(numbers.mean().item()) < 5 * std_or_bounds / len(numbers) ** 0.5
            # a normal number lies beyond two deviations in 4.6 % of all cases
            beyond = (numbers.abs() > 2 * std_or_bounds).double().mean().item()
            assert beyond == pytest.approx(0.0455, rel=0.05)
        for name in FEED_FORWARD:
            numbers = actual.pop(name)
            assert numbers.abs().max().item() == pytest.approx(0.0715, abs=5e-5), name
            assert numbers.std().item() == pytest.approx(0.0715 / 3**0.5, rel=0.01)
            assert abs(numbers.mean().item()) < 5 * 0.0413 / len(numbers) ** 0.5
        assert actual == {}

    def test_the_spread_follows_the_sizes(self):
        config = RLTransformerConfig(embedding=96, d_rand=32, feed_forward=54)
        assert config.attention_scale(96) == 0.125
        assert config.feed_forward_scale() == pytest.approx((-(0.08**0.5), 0.08**0.5))

    @pytest.mark.parametrize("draws", ["xavier", "normal", "uniform"])
    def test_draw_scale_scales_whatever_is_drawn(self, draws):
        whole, tenth = (RLTransformerConfig(draws=draws, draw_scale=s) for s in (1.0, 0.1))
        assert tenth.attention_scale(300) == pytest.approx(
            np.multiply(0.1, whole.attention_scale(300))
        )
        assert tenth.feed_forward_scale() == pytest.approx(
            np.multiply(0.1, whole.feed_forward_scale())
        )

    def test_normal(self):
        for name, numbers in draws_of("normal").items():
            assert numbers.std().item() == pytest.approx(0.1, rel=0.02), name
            assert abs(numbers.mean().item()) < 5 * 0.1 / len(numbers) ** 0.5

    def test_uniform(self):
        for name, numbers in draws_of("uniform").items():
            assert 0 <= numbers.min().item() < 1e-5, name
            assert 0.01 - 1e-5 < numbers.max().item() <= 0.01
            assert numbers.mean().item() == pytest.approx(0.005, rel=0.01)

    def test_a_uniform_draw_comes_from_the_same_generator(self):
        maps = torch.nn.ModuleList(
            [
                RandomLinear(20, 30, bias=False, std_or_bounds=0.5),
                RandomLinear(4, 9, bias=True, std_or_bounds=(-2.0, 1.0)),
            ]
        )
        RandomWeights(maps).redraw(1, "train", 4)
        random = generator(1, "train", 4)
        torch.empty(600).normal_(generator=random)
        expected = torch.rand(45, generator=random) * 3.0 - 2.0
        assert torch.allclose(maps[1].weight.flatten(), expected[:36])
        assert torch.allclose(maps[1].bias, expected[36:])


class TestTraining:
    def test_gradient_passes_through_but_not_into(self, ready):
        model, batch = ready("rl-transformer", seed=None, **SMALL)
        model.train().loss(batch, 0).total.backward()
        assert all(not t.requires_grad and t.grad is None for t in model.buffers())
        for name in ("attention.output.trained", "feed_forward.second"):
            for side in ("encoder", "decoder"):
                assert model.get_parameter(f"{side}.0.{name}.weight").grad.any()
        assert model.embedding.weight.grad.any()

    def test_earlier_layers_learn_through_random_maps_alone(self, ready):
        model, batch = ready("rl-transformer[links=false]", seed=None, **SMALL)
        for layer in model.encoder:
            for around in (layer.around_attention, layer.around_feed_forward):
                around.forward = lambda x, inner: inner(x)
        model.train().loss(batch, 0).total.backward()
        assert model.get_parameter("encoder.0.attention.value.trained.weight").grad.any()

    def test_changes_only_what_is_trained(self, ready, build, encoded, tmp_path):
        model, _ = ready("rl-transformer", **SMALL)
        config = build("rl-transformer", epochs=1, **SMALL).config
        trainer = Trainer(model, encoded, encoded, config, Run(1, folder=tmp_path))
        held = {id(p) for group in trainer.optimiser.param_groups for p in group["params"]}
        assert held == {id(p) for p in model.parameters()}
        model.begin_epoch(1, 1)
        random, trained = tensors(model, "random"), tensors(model, "trained")
        trainer.fit()
        assert unchanged(random, tensors(model, "random")) == {True}
        assert unchanged(trained, tensors(model, "trained")) == {False}

    @pytest.fixture
    def encoded(self, eight):
        from dialbench.neural.data import build_vocabulary, encode_split

        return encode_split(eight, build_vocabulary(eight, 100), 30, 10)

    def test_an_epoch_changes_every_random_tensor_and_nothing_else(self, ready):
        model, _ = ready("rl-transformer", **SMALL)
        model.begin_epoch(1, 1)
        random, trained = tensors(model, "random"), tensors(model, "trained")
        model.begin_epoch(1, 2)
        assert unchanged(random, tensors(model, "random")) == {False}
        assert unchanged(trained, tensors(model, "trained")) == {True}
        model.begin_epoch(1, 1)
        assert unchanged(random, tensors(model, "random")) == {True}


@pytest.fixture(scope="module")
def fitted(build, eight, tmp_path_factory):
    def fitted(options: str = "d_rand=20"):
        adapter = build(f"rl-transformer[{options}]", d_rand=20)
        adapter.fit(eight, eight, Run(1, folder=tmp_path_factory.mktemp("run")))
        return adapter

    return fitted


class TestInference:
    @pytest.mark.parametrize("link", ["X", "Z"])
    def test_each_context_has_its_own_weights(self, ready, link):
        model, batch = ready(f"rl-transformer[output_link={link}]", **SMALL)
        together = model.logits(batch)
        own = replace(batch, seed=None)
        for row, id in enumerate(batch.ids):
            model.random.redraw(5, "infer", id)
            # what was drawn for it, put into place as an epoch's weights are
            expected = model.logits(own)[row]
            assert torch.allclose(together[row], expected, rtol=0, atol=1e-10)

    @pytest.mark.parametrize("options", ["output_link=X", "output_link=Z", "links=false"])
    def test_step_by_step_as_at_once_under_one_draw_for_all(self, ready, options):
        model, batch = ready(f"rl-transformer[{options},redraw_at_inference=per_batch]", **SMALL)
        expected = model.logits(batch)
        assert (expected - model.logits(replace(batch, seed=None))).abs().max() > 1e-3
        state = model.start(batch)
        for place in range(batch.inputs.shape[1]):
            logits, state = model.step(batch.inputs[:, place], state)
            assert torch.allclose(logits, expected[:, place], rtol=0, atol=1e-10)

    def test_the_id_decides(self, ready):
        model, batch = ready("rl-transformer", **SMALL)
        rows = torch.tensor([2, 2, 2])
        alike = replace(
            batch, source=batch.source[rows], target=batch.target[rows], ids=("a", "a", "b")
        )
        one, again, other = model.logits(alike)
        assert torch.equal(one, again)
        assert (one - other).abs().max() > 1e-3

    @pytest.mark.parametrize("decoding", ["greedy", "top-p:0.9", "beam:3"])
    def test_answers_depend_on_no_batch_and_survive_saving(self, fitted, asked, tmp_path, decoding):
        adapter, how, run = fitted(), Decoding.parse(decoding), Run(2)
        answers = adapter.respond(asked, how, run)
        assert adapter.respond(asked[::-1], how, run)[::-1] == answers
        assert [adapter.respond([one], how, run)[0] for one in asked] == answers
        adapter.save(tmp_path)
        loaded = type(adapter).load(tmp_path, replace(adapter.config, answer_batch=100))
        for kind in ("random", "trained"):
            assert unchanged(tensors(adapter.model, kind), tensors(loaded.model, kind)) == {True}
        assert loaded.respond(asked, how, run) == answers

    @pytest.mark.parametrize("when", ["per_context", "per_batch", "none"])
    def test_runs_differ_unless_nothing_is_drawn(self, fitted, when):
        # Without links the draws decide more, so that few words suffice to see them.
        adapter = fitted(f"redraw_at_inference={when},links=false")
        asked = [Context(["Is the bakery open?"], f"asked-{i}") for i in range(12)]
        one, two = (adapter.respond(asked, Decoding(), Run(seed)) for seed in (1, 2))
        assert (one == two) is (when == "none")
        assert adapter.respond(asked, Decoding(), Run(1)) == one
