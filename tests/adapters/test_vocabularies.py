"""Drawn vocabularies: their costs, their gradients, the baseline (DVS2S, eq. 6-15)."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch
from dialbench_adapters.blocks.vocabularies import WordCosts, WordPredictor, log_probability
from dialbench_adapters.dvs2s import JointConfig, JointModel
from dialbench_adapters.s_dvs2s import Coverage

from dialbench.neural.data import Batch
from dialbench.text.vocabulary import EOS, PAD

pytestmark = pytest.mark.usefixtures("one_thread")
# Five specials, two function words, three content words.
FUNCTION, CONTENT = [0, 1, 2, 3, 4, 5, 7], [6, 8, 9]


def model(**options) -> JointModel:
    torch.manual_seed(2)
    config = JointConfig(embedding=4, hidden=5, **options)
    made = JointModel(config, 10, FUNCTION, 1_000).double()
    with torch.no_grad():
        made.output.weight *= 3.0
    return made


@pytest.fixture
def batch() -> Batch:
    source = torch.tensor([[6, 7, 8], [9, 5, PAD]])
    target = torch.tensor([[6, 5, 9, EOS], [8, EOS, PAD, PAD]])
    real = target.flatten().ne(PAD).nonzero().squeeze(1)
    return Batch(("a", "b"), source, target, real)


class TestPredictor:
    @pytest.fixture
    def predictor(self) -> WordPredictor:
        return WordPredictor(3, 10, FUNCTION)

    def test_only_content_words_have_rows(self, predictor):
        assert predictor.odds.weight.shape == (3, 3)
        assert predictor.content.tolist() == CONTENT

    def test_the_likeliest_come_first_and_ties_by_number(self, predictor):
        odds = torch.tensor([[0.1, 0.9, 0.5], [0.2, 0.2, 0.2]])
        numbers = predictor.numbers(predictor.best(odds, 2))
        assert numbers.tolist() == [[*FUNCTION, 8, 9], [*FUNCTION, 6, 8]]
        assert predictor.numbers(predictor.best(odds, 0)).tolist() == [FUNCTION] * 2
        assert predictor.best(odds, 99).shape == (2, 3)

    def test_it_learns_which_content_words_are_there(self, predictor):
        target = torch.tensor([[9, 9, 5, EOS], [8, 6, EOS, PAD]])
        assert predictor.contained_words(target).tolist() == [[0, 0, 1], [1, 1, 0]]

    def test_it_starts_from_how_many_responses_hold_each_word(self, predictor):
        counts = torch.zeros(10, dtype=torch.long)
        counts[[6, 8]] = torch.tensor([3, 20])
        predictor.start_from(counts, 20)
        beta = predictor(torch.randn(1, 3)).sigmoid()[0]
        expected = [3.5 / 21, 20.5 / 21, 0.5 / 21]
        assert beta.tolist() == pytest.approx(expected, rel=1e-5)


class TestCosts:
    LOGITS = torch.tensor([[[0.0, 1.0, 2.0, 3.0], [1.0, 1.0, 1.0, 1.0]]], dtype=torch.float64)
    TARGET = torch.tensor([[3, 1]])

    def test_worked_by_hand(self):
        vocabularies = torch.tensor([[[1, 1], [0, 1], [1, 1], [1, 1]]])  # {0, 2, 3} and all
        costs = WordCosts.of(self.LOGITS, self.TARGET, vocabularies)
        first = 3 - math.log(1 + math.e**2 + math.e**3)
        second = 3 - math.log(1 + math.e + math.e**2 + math.e**3)
        expected = [[first, second], [0.0, -math.log(4)]]
        assert torch.allclose(costs.logs[0], torch.tensor(expected, dtype=torch.float64))
        assert costs.missing[0].tolist() == [[False, False], [True, False]]
        assert costs.floored(4)[0].tolist() == pytest.approx(
            [first - math.log(4), second - math.log(4)]
        )

    def test_padding_costs_nothing_and_misses_nothing(self):
        everything = torch.ones(1, 4, 1)
        everything[:, PAD] = 0
        costs = WordCosts.of(self.LOGITS, torch.tensor([[3, PAD]]), everything)
        assert costs.logs[0, 1].item() == 0.0
        assert not costs.missing.any()
        assert costs.lengths.tolist() == [1]

    def test_large_logits_do_not_overflow(self):
        logits = torch.tensor([[[0.0, 1e4, -1e4, 1e4]]])
        logs = WordCosts.of(logits, torch.tensor([[3]]), torch.ones(1, 4, 1)).logs
        assert logs.item() == pytest.approx(-math.log(2))

    def test_the_probability_of_a_vocabulary_is_that_of_independent_draws(self):
        odds = torch.tensor([[0.3, -1.2, 2.0]], dtype=torch.float64)
        chosen = torch.tensor(list(product((0.0, 1.0), repeat=3)), dtype=torch.float64).T[None]
        beta = odds[0].sigmoid()
        expected = [
            math.prod(b if t else 1 - b for b, t in zip(beta.tolist(), row, strict=True))
            for row in product((0, 1), repeat=3)
        ]
        actual = log_probability(odds, chosen).exp()[0]
        assert actual.tolist() == pytest.approx(expected)
        assert sum(actual.tolist()) == pytest.approx(1.0)


def exact(made: JointModel, batch: Batch, baseline: float) -> dict[str, torch.Tensor]:
    """The gradient of eq. 13 by listing all eight vocabularies of each example, per token."""
    tokens, total = len(batch.real), torch.zeros((), dtype=torch.float64)
    for row in range(len(batch)):
        source = batch.source[row][batch.source[row].ne(PAD)][None]
        target = batch.target[row][batch.target[row].ne(PAD)][None]
        one = replace(batch, ids=("",), source=source, target=target)
        _, last = made.encode(one)
        beta = made.predictor.odds(last[-1])[0].sigmoid()
        logits = made.output(made.teacher_forced(made.start(one), one.inputs))[0]
        for chosen in product((True, False), repeat=3):
            chance = [b if t else 1 - b for b, t in zip(beta, chosen, strict=True)]
            log_chance = sum(torch.log(c) for c in chance)
            words = FUNCTION + [w for w, t in zip(CONTENT, chosen, strict=True) if t]
            if made.missing_word == "force":
                words = sorted({*words, *target[0].tolist()})
            logs, reward = torch.zeros((), dtype=torch.float64), 0.0
            for place, word in enumerate(target[0].tolist()):
                if word not in words:
                    reward += math.log(1 / 10)
                    continue
                log = logits[place, word] - logits[place, words].logsumexp(0)
                logs, reward = logs + log, reward + float(log.detach())
            advantage = reward / target.shape[1] - baseline
            total = total + log_chance.detach().exp() * (logs + advantage * log_chance)
    names = [name for name, _ in made.named_parameters()]
    gradients = torch.autograd.grad(-total / tokens, list(made.parameters()))
    return dict(zip(names, gradients, strict=True))


def drawn(made: JointModel, batch: Batch, baseline: float) -> torch.Tensor:
    """One Monte Carlo estimate of the same, all parameters in a row."""
    made.baseline = baseline
    made.zero_grad()
    made.train().loss(batch, 0).total.backward()
    return torch.cat([p.grad.flatten() for p in made.parameters()])


@pytest.mark.parametrize("missing_word", ["floor", "force"])
@pytest.mark.parametrize("baseline", [-1.5, -0.5])
def test_the_drawn_gradient_averages_to_the_listed_one(batch, missing_word, baseline):
    made = model(samples=4_000, missing_word=missing_word)
    # The baseline changes no expectation.
    expected = torch.cat([g.flatten() for g in exact(made, batch, -7.0).values()])
    torch.manual_seed(5)
    runs = torch.stack([drawn(made, batch, baseline) for _ in range(30)])
    mean, error = runs.mean(0), runs.std(0) / math.sqrt(30)
    moves = error > 1e-12
    assert torch.allclose(mean[~moves], expected[~moves], atol=1e-12)
    assert ((mean - expected)[moves] / error[moves]).abs().max() < 6.0
    # The predictor learns from the draws alone, so without them these would be zero.
    predictor = sum(p.numel() for p in made.predictor.parameters())
    assert (mean / error)[-predictor:].abs().max() > 6.0


def test_the_baseline_moves_as_equation_14_says():
    made = model()
    assert made.update(torch.tensor([[-1.0, -3.0], [-2.0, -2.0]])) == -2.0  # starts at the mean
    assert made.baseline == pytest.approx(-2.0)
    assert made.update(torch.tensor([[-4.0, -4.0]])) == pytest.approx(-2.0)
    assert made.baseline == pytest.approx(0.9 * -2.0 + 0.1 * -4.0)


def test_the_baseline_is_kept_with_the_weights():
    made, other = model(), model()
    made.baseline = -2.25
    other.load_state_dict(made.state_dict())
    assert other.baseline == -2.25


def test_vocabularies_are_drawn_by_their_chances():
    made = model(samples=20_000)
    odds = torch.tensor([[2.0, 0.0, -2.0]], dtype=torch.float64)
    share = made.draw(odds).mean(2)[0]
    beta = odds[0].sigmoid()
    assert ((share - beta).abs() < 5 * (beta * (1 - beta) / 20_000).sqrt()).all()


class TestMissingWords:
    def test_floored_they_cost_as_one_of_all_words_alike(self, batch):
        made = model().eval()
        made.words = 0
        losses = made.loss(batch, 0)
        logits = made.output(made.teacher_forced(made.start(batch), batch.inputs))
        within = logits[:, :, FUNCTION].log_softmax(-1)
        five, end = FUNCTION.index(5), FUNCTION.index(EOS)
        logs = within[0, 1, five] + within[0, 3, end] + within[1, 1, end]
        assert float(losses.parts["missing"]) == 3
        expected = -float(logs.detach()) + 3 * math.log(10)
        assert float(losses.parts["nll"]) == pytest.approx(expected)
        assert losses.total.item() == pytest.approx(expected / 6)

    def test_forced_none_is_missing_in_training_and_all_are_when_validated(self, batch):
        made = model(missing_word="force")
        with torch.no_grad():
            made.predictor.odds.bias.fill_(-50.0)
        assert float(made.train().loss(batch, 0).parts["missing"]) == 0
        made.eval().words = 0
        assert float(made.loss(batch, 0).parts["missing"]) == 3

    def test_a_missing_word_teaches_the_generator_nothing(self, batch):
        made = model()
        with torch.no_grad():
            made.predictor.odds.bias.fill_(-50.0)
        made.train().loss(batch, 0).total.backward()
        assert not made.output.weight.grad[CONTENT].any()
        assert made.output.weight.grad[FUNCTION].any()


class TestCoverage:
    def test_worked_by_hand(self):
        references = [["a", "b", "a", "z"], [], ["b"], ["z", "y"]]
        held = [{"a"}, {"a"}, {"b", "c"}, {"a"}]
        coverage = Coverage.of(references, held, {"a", "b", "c"})
        assert coverage.recall == pytest.approx((1 / 3 + 1 + 0) / 3)
        assert coverage.recall_known == pytest.approx((1 / 2 + 1) / 2)

    def test_of_nothing_there_is_none(self):
        assert np.isnan(Coverage.of([], [], set()).recall)
