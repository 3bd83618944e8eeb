"""DialogVED: its latent variable, its losses, its positions, its size (docs/systems.md)."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from dialbench_adapters.blocks.latent import Gaussian, bag_nll, noise
from dialbench_adapters.blocks.sequences import Around, surround
from dialbench_adapters.dialogved import (
    CLS,
    DialogVED,
    DialogVEDConfig,
    DialogVEDNoLatent,
    divergences,
    turns_and_roles,
)
from torch import nn
from torch.nn.functional import pad

from dialbench.adapter import Run
from dialbench.errors import InputError
from dialbench.neural.decoding import decode
from dialbench.neural.model import count_for_responses, count_parameters
from dialbench.records import Decoding
from dialbench.systems import Registry
from dialbench.text.vocabulary import PAD, SEP, SPECIALS

pytestmark = pytest.mark.usefixtures("one_thread")
POSITIONS = ["turn_ape", "role_ape", "token_rpe", "turn_rpe"]


def size_of(kind: type, **options) -> int:
    sizes = {"layers": 12, "heads": 16, "embedding": 1_024, "feed_forward": 4_096}
    with torch.device("meta"):
        return count_parameters(kind(kind.Config(**sizes, **options)).build_model(30_522))[
            "parameters"
        ]


class TestSizes:
    def test_the_latent_part(self):
        H, P, plain = 1_024, 64, size_of(DialogVEDNoLatent)
        whole = H * H + H + 2 * P * (H + 1) + (P + H + 1) * H + 2 * H * (P + 1)
        assert size_of(DialogVED) - plain == whole == 2_429_056
        assert size_of(DialogVED, bag_reads="z") - plain == whole - H * H
        assert size_of(DialogVED, latent=32) - plain == whole - 32 * (2 * (H + 1) + H + 2 * H)

    def test_of_positions(self):
        plain, H, heads = size_of(DialogVEDNoLatent), 1_024, 16
        added = [32 * H, 4 * H, 32 * heads * (H + 1), 4 * heads * (H + 1)]
        for option, size in zip(POSITIONS, added, strict=True):
            assert size_of(DialogVEDNoLatent, **{option: True}) - plain == size
        assert size_of(DialogVEDNoLatent, **dict.fromkeys(POSITIONS, True)) - plain == sum(added)

    def test_the_bag_serves_training_only(self, ready):
        model, _ = ready("dialogved")
        bag = count_parameters(model.latent.bag)["parameters"]
        assert count_parameters(model)["parameters"] - count_for_responses(model) == bag > 0

    @pytest.mark.parametrize("options", ["latent=0", "free_nats=-1", "free_bits=some", "heads=3"])
    def test_what_cannot_be_built(self, options):
        with pytest.raises(InputError, match=options.split("=")[0]):
            Registry().parse(f"dialogved[{options}]")

    @pytest.mark.parametrize("size", [32, 64])
    def test_shapes(self, ready, size):
        model, batch = ready(f"dialogved[latent={size}]")
        memory, _ = model.encode(batch)
        feature, q = model.latent(memory[:, 0])
        assert q.mean.shape == q.log_variance.shape == (8, size)
        assert model.latent.bag_feature(q.mean, feature).shape == (8, 16)
        key, value = model.latent.keys_values(q.mean, 2)
        assert key.shape == value.shape == (8, 2, 1, 8)
        flat = model.latent.memory(q.mean)
        assert torch.equal(key[:, 1, 0], flat[:, 8:16])
        assert torch.equal(value[:, 0, 0], flat[:, 16:24])


def test_without_latent_is_prophetnet_with_cls_in_front(ready):
    model, batch = ready("dialogved-no-latent")
    plain, _ = ready("prophetnet[context_tokens=31]")
    longer, _ = ready("prophetnet")
    weights = model.state_dict()
    assert weights.keys() == longer.state_dict().keys()
    for name in ("encoder_positions.weight", "decoder_positions.weight"):
        weights[name] = (
            weights[name].new_zeros(35, 16).index_copy(0, torch.arange(34), weights[name])
        )
    plain.load_state_dict(weights)
    led = replace(batch, source=pad(batch.source, (1, 0), value=CLS))
    assert torch.allclose(model.logits(batch), plain.logits(led))
    assert model.loss(batch, 0).total.item() == pytest.approx(plain.loss(led, 0).total.item())


def latent_of(model, batch) -> tuple[torch.Tensor, Gaussian]:
    return model.latent(model.encode(batch)[0][:, 0])


class TestLatentVariable:
    def test_moves_what_follows_from_every_layer_but_the_last(self, ready):
        """Of the last layer nobody reads the main stream, which alone sees z (section 2.3)."""
        model, batch = ready("dialogved[layers=3]")
        state, other = model.start(batch), model.start(replace(batch, seed=6))
        expected = model.step(torch.full((8,), 7), state)[0]
        for layer, changed in enumerate(other.row):
            row = [changed if at == layer else past for at, past in enumerate(state.row)]
            moved = model.step(torch.full((8,), 7), replace(state, row=row))[0] - expected
            assert bool(moved.abs().amax(-1).min() > 1e-9) is (layer < 2)

    def test_moves_the_first_word(self, ready):
        model, batch = ready("dialogved")
        moved = (model.logits(batch) - model.logits(replace(batch, seed=6)))[:, 0]
        assert moved.abs().amax(-1).min() > 1e-6

    def test_predicting_streams_do_not_see_its_key(self, ready):
        model, batch = ready("dialogved[layers=1]")
        one, other = (model.logits(replace(batch, seed=seed)) for seed in (5, 6))
        # with one layer z could reach stream 1 only by its own attention
        assert torch.allclose(one, other, rtol=0, atol=1e-12)

    def test_is_the_same_pair_in_every_layer_and_stays_in_the_cache(self, ready):
        model, batch = ready("dialogved")
        z = latent_of(model, batch)[1].sample(noise(batch, 6))
        key, value = model.latent.keys_values(z, 2)
        state = model.start(batch)
        for step in range(3):
            for past_key, past_value in state.row:
                assert past_key.shape[2] == step + 1
                assert torch.allclose(past_key[:, :, :1], key)
                assert torch.allclose(past_value[:, :, :1], value)
            _, state = model.step(torch.full((8,), 7), state)

    def test_is_lost_behind_the_first_layer_where_the_released_code_is_asked_for(self, ready):
        # of three layers: what the last one's main stream sees goes nowhere
        model, batch = ready("dialogved[layers=3,latent_keys=first_layer]")
        first, *others = model.start(batch).row
        assert first[0].shape[2] == 1
        assert others == [None, None]
        whole, _ = ready("dialogved[layers=3]")
        whole.load_state_dict(model.state_dict())
        # learnt alike: only responding differs
        assert model.loss(batch, 0).total.item() == whole.loss(batch, 0).total.item()
        assert not torch.allclose(model.logits(batch), whole.logits(batch), rtol=0, atol=1e-6)

    @pytest.mark.parametrize("width", [1, 3])
    def test_cached_as_the_released_code(self, ready, width, check_cached_equals_whole):
        check_cached_equals_whole(*ready("dialogved[latent_keys=first_layer]"), width)

    @pytest.mark.parametrize("source", ["posterior", "prior", "mean"])
    def test_is_drawn_from_what_is_asked_for(self, ready, source):
        model, batch = ready(f"dialogved[z_at_test={source}]")
        _, q = latent_of(model, batch)
        epsilon = noise(batch, 6)
        expected = {
            "posterior": q.mean + (0.5 * q.log_variance).exp() * epsilon,
            "prior": epsilon,
            "mean": q.mean,
        }[source]
        assert torch.allclose(model._draw(q, batch), expected.to(q.mean.dtype))
        model.train()
        torch.manual_seed(1)
        drawn = model._draw(q, replace(batch, seed=None))
        torch.manual_seed(1)
        again = q.sample(torch.randn(8, 6))
        assert torch.equal(drawn, again)  # learning always draws from the posterior

    def test_seeds_give_other_words(self, ready):
        model, batch = ready("dialogved[z_at_test=prior]")
        model.latent.memory.weight.data.mul_(30)
        texts = [decode(model, replace(batch, seed=seed), Decoding(), 8) for seed in (1, 2, 1)]
        assert texts[0] == texts[2]
        assert texts[0] != texts[1]

    def test_top_1_is_greedy(self, ready):
        model, batch = ready("dialogved")
        assert decode(model, batch, Decoding("top-k", 1), 8) == decode(model, batch, Decoding(), 8)


class TestLoss:
    def test_divergence_of_the_prior_is_zero_and_costs_what_is_free(self, ready):
        model, _ = ready("dialogved[latent=6,free_nats=5]")
        nothing = Gaussian(torch.zeros(3, 6), torch.zeros(3, 6))
        assert not divergences(nothing).any()
        assert model.free(divergences(nothing)).tolist() == pytest.approx([5.0] * 3)

    def test_free_bits_by_hand(self, ready):
        dimensions = torch.tensor([[0.5, 3.0], [4.0, 2.0], [0.0, 0.1]])
        model, _ = ready("dialogved[latent=2,free_nats=5]")
        assert model.free(dimensions).tolist() == [5.5, 6.5, 5.0]
        model, _ = ready("dialogved[latent=2,free_nats=5,free_bits=per_example]")
        assert model.free(dimensions).tolist() == [0.0, 6.0, 0.0]

    def test_divergence_by_hand(self):
        q = Gaussian(torch.tensor([[1.0, -2.0]]), torch.tensor([[0.0, 1.0]]))
        expected = [0.5, 0.5 * (4 + torch.e - 1 - 1)]
        assert divergences(q)[0].tolist() == pytest.approx(expected)

    @pytest.mark.parametrize("bits", ["per_dim", "per_example"])
    def test_its_parts_by_hand(self, ready, bits):
        model, batch = ready(f"dialogved[free_bits={bits},free_nats=0.01,label_smoothing=0]")
        feature, q = latent_of(model, batch)
        z = q.sample(noise(batch, 6))
        bags = model.output(model.latent.bag_feature(z, feature))
        losses = model.loss(batch, 0)
        parts = {name: value.item() for name, value in losses.parts.items()}
        assert parts["kl"] == pytest.approx(divergences(q).sum().item())
        assert parts["bow"] == pytest.approx(bag_nll(bags, batch.target).sum().item())
        paid = model.free(divergences(q)).sum().item()
        total = parts["nll"] + parts["future_nll"] + parts["bow"] + paid
        assert losses.total.item() == pytest.approx(total / (2 * losses.tokens))

    def test_the_bag_has_no_order(self, ready, check_orderless_bag):
        check_orderless_bag(*ready("dialogved"))

    def test_the_bag_reads_what_it_is_told_to(self, ready):
        for reads, moves in (("z", False), ("z_and_context", True)):
            model, batch = ready(f"dialogved[bag_reads={reads}]")
            feature, q = latent_of(model, batch)
            one, other = (model.latent.bag_feature(q.mean, f) for f in (feature, feature + 1))
            assert torch.equal(one, other) is not moves


TWO = torch.tensor([[CLS, 9, 9, SEP, 8, SEP, 7, 7], [CLS, 9, 8, 7, PAD, PAD, PAD, PAD]])


class TestPositions:
    def test_turns_and_roles_count_back_from_the_response(self):
        turns, roles = turns_and_roles(TWO, Around((CLS,)))
        assert turns.tolist() == [[0, 4, 4, 0, 3, 0, 2, 2], [0, 2, 2, 2, 0, 0, 0, 0]]
        assert roles.tolist() == [[0, 2, 2, 0, 1, 0, 2, 2], [0, 2, 2, 2, 0, 0, 0, 0]]

    def test_many_turns_share_the_last_row(self):
        tokens = torch.tensor([[7, SEP] * 40 + [7]])
        turns, roles = turns_and_roles(tokens, Around())
        assert turns.max() == turns[0, 0] == 31
        assert set(roles[0].tolist()) == {0, 1, 2}

    @pytest.mark.parametrize("option", POSITIONS)
    def test_each_adds_its_table_alone_and_a_table_of_zeros_changes_nothing(self, ready, option):
        plain, batch = ready("dialogved-no-latent")
        model, _ = ready(f"dialogved-no-latent[{option}=true]")
        names = {"turn_ape": "turns", "role_ape": "roles"}
        table = names.get(option, option.replace("rpe", "distances"))
        added = model.state_dict().keys() - plain.state_dict().keys()
        assert {name.split(".")[0] for name in added} == {table}
        model.load_state_dict({**model.state_dict(), **plain.state_dict()})
        for weight in getattr(model, table).parameters():
            nn.init.normal_(weight, 0.0, 1.0)
        assert not torch.allclose(model.logits(batch), plain.logits(batch), rtol=0, atol=1e-6)
        for weight in getattr(model, table).parameters():
            nn.init.zeros_(weight)
        assert torch.allclose(model.logits(batch), plain.logits(batch), rtol=0, atol=1e-12)

    def test_do_not_hide_the_words_before_they_are_learnt(self, ready):
        """Else a system with them reads its context later than one without."""
        model, _ = ready("dialogved-no-latent[turn_ape=true,role_ape=true,embedding=64]")
        words = model.embedding.weight[len(SPECIALS) :].std()
        for table in (model.turns, model.roles):
            assert table.weight.std() < 0.4 * words

    def test_distances_change_no_score_before_they_are_learnt(self, ready):
        plain, batch = ready("dialogved-no-latent")
        model, _ = ready("dialogved-no-latent[token_rpe=true,turn_rpe=true]")
        model.load_state_dict({**model.state_dict(), **plain.state_dict()})
        assert torch.allclose(model.logits(batch), plain.logits(batch), rtol=0, atol=1e-12)

    def test_attention_knows_distances(self, ready):
        """The scores of one head, a bias at a time (section 2.7 and the released code)."""
        model, batch = ready("dialogved-no-latent[token_rpe=true,turn_rpe=true]")
        tokens = surround(batch.source, model.around)[1:2]
        x = model.embed_context(tokens)
        seen = tokens.ne(PAD)[:, None, None]
        plan = model.distances(tokens, seen)
        attention = model.encoder[0].attention
        keys, values = attention.keys_values(x, None)
        query = attention._split(attention.query(x, None))
        turns = tokens[0].eq(SEP).cumsum(0)
        size = int(tokens.ne(PAD).sum())
        mixed = attention.mix(x, (keys, values), seen, plan)
        for head in range(2):
            for i in range(size):
                scores = []
                for j in range(size):
                    d, far = i - j, abs(i - j)
                    bucket = far if far < 8 else 8 + int(math.log(far / 8) / math.log(16) * 8)
                    token = (16 if d < 0 else 0) + bucket
                    t = int(turns[i] - turns[j])
                    turn = (2 if t < 0 else 0) + (1 if t else 0)
                    one = model.token_distances.table(x)[0, i].view(32, 2)[token, head]
                    two = model.turn_distances.table(x)[0, i].view(4, 2)[turn, head]
                    score = query[0, head, i] @ keys[0, head, j] / 8**0.5
                    scores.append(score + one + two + one * two)
                weights = torch.stack(scores).softmax(0)
                expected = weights @ values[0, head, :size]
                assert torch.allclose(mixed[0, i, head * 8 : head * 8 + 8], expected, atol=1e-6)


def test_a_prophetnet_can_be_started_from(tiny, build, eight, asked, tmp_path):
    rates = {"tuning_epochs": 4, "tuning_rate": 5e-3, "tuning_warmup": 1}
    adapter = build(f"dialogved[weights={tiny('prophetnet')}]", **rates)
    adapter.fit(eight, eight, Run(2, folder=tmp_path))
    assert len(adapter.model.around.front) == 1
    losses = [row["train_nll"] for row in adapter.curve()]
    assert losses[-1] < losses[0]
    assert len(adapter.respond(asked, Decoding(), Run(2))) == 8
    assert DialogVED.title(DialogVEDConfig()) == "DialogVED (small, from scratch)"
    assert DialogVED.title(adapter.config) == "DialogVED (ProphetNet start)"
