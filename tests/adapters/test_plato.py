"""PLATO: its masks, its latent values, its candidates and losses (docs/systems.md)."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from dialbench_adapters.blocks.latent import bag_nll
from dialbench_adapters.plato import (
    Candidates,
    LatentPlatoConfig,
    Plato,
    PlatoConfig,
    PlatoNoLatent,
    positions,
    repeated,
)

from dialbench.adapter import Run
from dialbench.errors import InputError
from dialbench.neural.decoding import decode
from dialbench.neural.model import count_for_responses, count_parameters
from dialbench.neural.randomness import uniforms
from dialbench.records import Decoding
from dialbench.systems import Registry
from dialbench.text.vocabulary import PAD, SEP

pytestmark = pytest.mark.usefixtures("one_thread")


class TestSizes:
    def test_of_the_released_models(self):
        sizes = {"layers": 12, "heads": 12, "embedding": 768, "context_tokens": 511}
        n, V = 768, 30_522
        layer = 12 * n * n + 13 * n
        plain = 12 * layer + n * (V + 512 + 16 + 2) + 2 * n
        with torch.device("meta"):
            small = PlatoNoLatent(PlatoConfig(**sizes)).build_model(V)
            whole = Plato(LatentPlatoConfig(**sizes)).build_model(V)
        # 4 maps with biases, a feed-forward network of 4 n, two norms of 2 n
        assert count_parameters(small)["parameters"] == plain == 108_903_936
        added = 20 * n + n + 20 * n + n * V + n + 1
        assert count_parameters(whole)["parameters"] == plain + added
        assert count_for_responses(whole) == plain + added - 20 * n - n * V

    def test_without_latent_there_is_nothing_of_it(self, ready):
        names = ready("plato-no-latent")[0].state_dict().keys()
        latent = ready("plato")[0].state_dict().keys() - names
        parts = {name.split(".")[0] for name in latent}
        assert parts == {"values", "mask", "recognition", "bag", "coherence"}

    @pytest.mark.parametrize("options", ["values=0", "temperature=0", "heads=3", "dropout=1"])
    def test_what_cannot_be_built(self, options):
        with pytest.raises(InputError, match=options.split("=")[0]):
            Registry().parse(f"plato[{options}]")


class TestPositions:
    def test_begin_anew_in_every_turn_and_count_turns_back(self):
        tokens = torch.tensor([[9, 9, SEP, 8, SEP, 7, 7, SEP], [9, SEP, 8, 7, SEP, PAD, PAD, PAD]])
        places, turns, roles = positions(tokens)
        assert places[0].tolist() == [0, 1, 2, 0, 1, 0, 1, 2]
        assert turns[0].tolist() == [3, 3, 3, 2, 2, 1, 1, 1]
        assert roles[0].tolist() == [1, 1, 1, 0, 0, 1, 1, 1]
        assert turns[1, :5].tolist() == [2, 2, 1, 1, 1]
        assert places[1, :5].tolist() == [0, 1, 0, 1, 2]

    def test_the_response_is_turn_0_of_role_0(self, ready):
        model, batch = ready("plato-no-latent")
        before = model.response(batch.inputs)
        model.turns.weight.data[1:] = 0.0
        model.roles.weight.data[1:] = 0.0
        assert torch.equal(model.response(batch.inputs), before)
        model.turns.weight.data[0] += torch.arange(16)
        assert not torch.allclose(model.response(batch.inputs), before)
        model.turns.weight.data[0] -= torch.arange(16)
        model.roles.weight.data[0] += torch.arange(16)
        assert not torch.allclose(model.response(batch.inputs), before)

    @pytest.mark.parametrize("system", ["plato-no-latent", "plato"])
    def test_they_and_words_enter_the_stack_as_large_as_is_asked_for(self, ready, system):
        plain, batch = ready(system)
        larger, _ = ready(f"{system}[embedding_gain=3]")
        for read in (
            lambda model: model.context(batch)[0],
            lambda model: model.response(batch.inputs),
        ):
            torch.testing.assert_close(read(larger), 3 * read(plain))

    def test_many_turns_share_the_last_row(self):
        _, turns, roles = positions(torch.tensor([[7, SEP] * 30]))
        assert turns.max() == 15
        assert set(roles[0].tolist()) == {0, 1}


class TestPass:
    def test_the_context_ignores_the_response(self, ready):
        model, batch = ready("plato")
        context, seen = model.context(batch)
        head = model.values.weight[:8]
        outputs = [
            model.write(context, seen, model.response(inputs), head)[1]
            for inputs in (batch.inputs, batch.inputs.flip(1))
        ]
        assert torch.equal(*outputs)

    def test_reads_the_context_both_ways(self, ready):
        model, batch = ready("plato-no-latent")
        context, seen = model.context(batch)
        before, _ = model.run(context, seen[:, None, None])
        changed = context.clone()
        last = seen.sum(1) - 1
        changed[torch.arange(8), last] += 1.0
        after, _ = model.run(changed, seen[:, None, None])
        assert (before - after)[:, 0].abs().amax(-1).min() > 1e-6

    @pytest.mark.parametrize("norm", ["post", "pre"])
    def test_the_second_pass_reads_the_response_both_ways(self, ready, norm):
        model, batch = ready(f"plato[norm={norm}]")
        read = [*model.context(batch)]
        before = model.understand(*read, model.response(batch.inputs), batch.target.ne(PAD))
        changed = batch.inputs.clone()
        ends = batch.target.ne(PAD).sum(1) - 1
        changed[torch.arange(8), ends] = 7
        after = model.understand(*read, model.response(changed), batch.target.ne(PAD))
        moved = (before - after).abs().amax(-1)
        assert (moved > 1e-6).tolist() == batch.inputs[torch.arange(8), ends].ne(7).tolist()


class TestLatent:
    def test_posterior_sums_to_one(self, ready):
        model, batch = ready("plato")
        read = model.understand(
            *model.context(batch), model.response(batch.inputs), batch.target.ne(PAD)
        )
        q = model.recognition(read).softmax(-1)
        assert q.shape == (8, 20)
        assert torch.allclose(q.sum(1), torch.ones(8, dtype=q.dtype))

    def test_is_mixed_in_training(self, ready):
        model, batch = ready("plato")
        logs = torch.randn(8, 20, generator=torch.Generator().manual_seed(1)).log_softmax(-1)
        mixed = model.train()._mix(logs, batch)
        assert torch.allclose(mixed.sum(1), torch.ones(8))
        assert (mixed > 0).all()
        assert mixed.amax(1).min() < 1

    def test_mixes_values_as_often_as_they_are_likely(self, ready):
        model, batch = ready("plato[temperature=0.01]")
        model.train()
        p = torch.tensor([0.5, 0.3, 0.2])
        torch.manual_seed(1)
        mixed = model._mix(p.log().expand(20_000, -1), batch)
        counts = mixed.argmax(1).bincount(minlength=3) / 20_000
        # five standard deviations of a binomial share
        assert (counts - p).abs().max() < 5 * 0.5 / math.sqrt(20_000)

    def test_outside_training_one_is_drawn_from_the_posterior_by_example_id(self, ready, rows_of):
        model, batch = ready("plato[values=3]")
        p = torch.tensor([[0.5, 0.3, 0.2], [0.1, 0.0, 0.9]]).repeat(4, 1)
        n, counts = 500, torch.zeros(2, 3)
        for seed in range(n):
            drawn = model._mix(p.log(), replace(batch, seed=seed))
            assert torch.equal(drawn.sum(1), torch.ones(8))
            assert drawn.eq(0).sum() == 16
            counts += drawn.view(4, 2, 3).sum(0)
        # four standard deviations of a binomial share
        assert (
            (counts / (4 * n) - p[:2]).abs() <= 4 * (p[:2] * (1 - p[:2]) / (4 * n)).sqrt()
        ).all()
        few = torch.tensor([3, 1])
        assert torch.equal(
            model._mix(p[few].log(), rows_of(batch, few)), model._mix(p.log(), batch)[few]
        )

    def test_drawn_by_example_id_alone(self, ready, rows_of):
        model, batch = ready("plato")
        drawn = model.draw(batch)
        assert torch.equal(model.draw(rows_of(batch, torch.tensor([3, 1]))), drawn[[3, 1]])
        assert not torch.equal(model.draw(replace(batch, seed=6)), drawn)


class TestLoss:
    def parts(self, model, batch):
        """Its parts, an example at a time, and the total."""
        context, seen = model.context(batch)
        shares = uniforms(5, "infer latent", batch.ids, 1)
        sums = dict.fromkeys(("nll", "kl", "information", "bow", "selection"), 0.0)
        posteriors = []
        for row in range(8):
            other = (row + 1) % 8
            one = (context[row : row + 1], seen[row : row + 1])

            def read(of, one=one):
                real = batch.target[of] != PAD
                inputs = batch.inputs[of][real][None]
                return model.understand(*one, model.response(inputs), real[real][None])

            logs = model.recognition(read(row)).log_softmax(-1)[0]
            posteriors.append(logs.exp())
            sums["kl"] += (logs.exp() * (logs + math.log(20))).sum().item()
            right = torch.sigmoid(model.coherence(read(row))).item()
            wrong = torch.sigmoid(model.coherence(read(other))).item()
            sums["selection"] -= math.log(right) + math.log(1 - wrong)
            words = batch.target[row][batch.target[row] != PAD]
            z = int(logs.exp().cumsum(0).lt(shares[row]).sum())
            head = model.values.weight[z][None]
            inputs = batch.inputs[row : row + 1, : len(words)]
            hidden, first = model.write(*one, model.response(inputs), head)
            log_p = model.output(hidden)[0].log_softmax(-1)
            sums["nll"] -= sum(log_p[t, w].item() for t, w in enumerate(words))
            sums["bow"] += bag_nll(model.bag(first), words[None]).sum().item()
        q = torch.stack(posteriors)
        entropies = -(q * q.log()).sum(1), -(q.mean(0) * q.mean(0).log()).sum()
        sums["information"] = 8 * entropies[1].item() - entropies[0].sum().item()
        return sums

    @pytest.mark.parametrize(("balance", "selection"), [(0.0, 1.0), (2.0, 1.0), (0.0, 10.0)])
    def test_by_hand(self, ready, balance, selection):
        model, batch = ready(f"plato[balance={balance},selection={selection}]")
        losses, expected = model.loss(batch, 0), self.parts(model, batch)
        assert {name: value.item() for name, value in losses.parts.items()} == pytest.approx(
            expected, rel=1e-5
        )
        total = expected["nll"] + expected["bow"] + selection * expected["selection"]
        total += balance * (expected["kl"] - expected["information"])
        assert losses.total.item() == pytest.approx(total / losses.tokens, rel=1e-5)

    def test_the_bag_has_no_order(self, ready):
        model, batch = ready("plato")
        _, first = model.write(
            *model.context(batch), model.response(batch.inputs), model.values.weight[:8]
        )
        bags = model.bag(first)
        turned = batch.target.flip(1)
        assert bag_nll(bags, batch.target).sum().item() == pytest.approx(
            bag_nll(bags, turned).sum().item()
        )

    def test_what_says_the_same_is_no_wrong_response(self, ready, rows_of):
        model, batch = ready("plato")
        alike = rows_of(batch, torch.tensor([2, 2, 2]))
        assert model.loss(alike, 0).parts["selection"].item() == 0.0
        # one example alone has no wrong response either
        assert model.loss(rows_of(batch, torch.tensor([2])), 0).parts["selection"].item() == 0.0
        assert model.loss(rows_of(batch, torch.tensor([2, 3])), 0).parts["selection"].item() > 0.0


class TestBound:
    """NLL + KL(q || uniform) with z from q is on average E_q[NLL] + KL >= -log p(r | c)."""

    def costs(self, model, batch):
        """The NLL of each response under each value, (8, 20)."""
        context, seen = model.context(batch)
        response = model.response(batch.inputs)
        columns = []
        for vector in model.values.weight:
            hidden, _ = model.write(context, seen, response, vector.expand(8, -1))
            logs = model.output(hidden).log_softmax(-1)
            of_words = logs.gather(2, batch.target[:, :, None])[:, :, 0]
            columns.append(-of_words.masked_fill(batch.target.eq(PAD), 0.0).sum(1))
        return torch.stack(columns, 1)

    @pytest.fixture
    def soft(self, ready):
        """A posterior that hardly prefers a value, and of those the best for each response."""
        model, batch = ready("plato")
        with torch.no_grad():
            read = model.understand(
                *model.context(batch), model.response(batch.inputs), batch.target.ne(PAD)
            )
            best = F.one_hot(self.costs(model, batch).argmin(1), 20).double()
            model.recognition.weight.copy_(torch.linalg.lstsq(read, 0.1 * best).solution.T)
        return model, batch, (0.1 * best).softmax(-1)

    @torch.no_grad()
    def test_is_what_validation_estimates(self, soft):
        model, batch, q = soft
        costs = self.costs(model, batch)
        kl = (q * (q * 20).log()).sum(1)
        bound = ((q * costs).sum(1) + kl).mean().item()
        exact = (math.log(20) - (-costs).logsumexp(1)).mean().item()
        # What lies below it counts the likeliest value alone.
        assert (costs.amin(1) + kl).mean().item() < exact < bound
        estimates = []
        for seed in range(300):
            parts = model.loss(replace(batch, seed=seed), 0).parts
            estimates.append((parts["nll"] + parts["kl"]).item() / 8)
        noise = torch.tensor(estimates).std().item() / math.sqrt(300)
        assert sum(estimates) / 300 == pytest.approx(bound, abs=4 * noise)

    @torch.no_grad()
    def test_is_the_same_in_any_batches(self, soft, rows_of):
        model, batch, _ = soft
        whole = model.loss(batch, 0).parts
        alone = [model.loss(rows_of(batch, torch.tensor([row])), 0).parts for row in range(8)]
        for part in model.criterion:
            total = sum(parts[part].item() for parts in alone)
            assert total == pytest.approx(whole[part].item(), rel=1e-5)


class TestCandidates:
    def test_one_for_each_value_and_the_most_coherent_wins(self, ready, build, eight):
        model, batch = ready("plato")
        model.values.weight.data.mul_(30)  # so that each value says something of its own
        adapter = build("plato")
        wide = repeated(batch, 20)
        assert len(wide) == len(set(wide.ids)) == 160
        candidates = decode(Candidates(model), wide, Decoding(), 10)
        answers = adapter.answer(model, batch, Decoding())
        for row in range(8):
            of_context = candidates[row * 20 : row * 20 + 20]
            assert len({tuple(words) for words in of_context}) > 2
            scores = model.scores(repeated(batch, 20), candidates)[row * 20 : row * 20 + 20]
            assert answers[row] == of_context[int(scores.argmax())]

    def test_each_is_written_behind_its_value(self, ready):
        model, batch = ready("plato")
        model.values.weight.data.mul_(30)
        candidates = decode(Candidates(model), repeated(batch, 20), Decoding(), 10)
        for number in (0, 7, 19):
            head = model.values.weight[number].expand(8, -1)
            state, tokens = model.begin(batch, head), torch.full((8,), 2)
            logits, _ = model.step(tokens, state)
            firsts = [words[0] if words else 3 for words in candidates[number::20]]
            logits[:, 1] = -torch.inf
            assert logits.argmax(-1).tolist() == firsts

    def test_scores_read_no_latent_value(self, ready):
        model, batch = ready("plato")
        before = model.scores(batch, [[7, 8], [9]] * 4)
        model.values.weight.data.add_(1.0)
        assert torch.equal(model.scores(batch, [[7, 8], [9]] * 4), before)
        padded = model.scores(batch, [[7, 8], [9]] * 3 + [[7, 8, 9, 9, 9], [9]])
        assert torch.allclose(padded[:6], before[:6], rtol=0, atol=1e-6)

    @pytest.mark.parametrize("decoding", ["greedy", "top-k:5", "beam:2"])
    def test_depend_on_no_batch_and_survive_saving(self, build, eight, asked, tmp_path, decoding):
        adapter, how, run = build("plato[values=3]"), Decoding.parse(decoding), Run(2)
        adapter.fit(eight, eight, Run(2, folder=tmp_path))
        responses = adapter.respond(asked, how, run)
        assert adapter.respond(asked[::-1], how, run)[::-1] == responses
        assert [adapter.respond([one], how, run)[0] for one in asked] == responses
        (tmp_path / "saved").mkdir()
        adapter.save(tmp_path / "saved")
        loaded = Plato.load(tmp_path / "saved", adapter.config)
        assert loaded.respond(asked, how, run) == responses
