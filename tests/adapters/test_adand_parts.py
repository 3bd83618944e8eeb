"""The cells and topics of AdaND, against matrices built in full (AdaND, 3.1-3.3)."""

from __future__ import annotations

import math

import pytest
import torch
from dialbench_adapters.adand import TopicInferrer, kl_weight
from dialbench_adapters.blocks.adaptive import (
    BothCell,
    ContextCell,
    PaperBothCell,
    PaperContextCell,
    PaperTopicCell,
    TopicCell,
)
from dialbench_adapters.blocks.lstm import Conditioning
from dialbench_adapters.text_models.topical_words import STOP_WORDS, topical_words
from torch import nn

from dialbench.text.vocabulary import EOS, PAD, SEP, Vocabulary

pytestmark = pytest.mark.usefixtures("one_thread")
N, T, IN, H, R, K = 3, 4, 5, 6, 3, 4


def shaken(module: nn.Module) -> nn.Module:
    """In float64 and eval mode, every number moved, so that none is zero or one by its start."""
    torch.manual_seed(7)
    module = module.double().eval()
    for weights in module.parameters():
        weights.data += 0.4 * torch.randn_like(weights)
    return module


def parameters_of(cell: nn.Module) -> int:
    return sum(weights.numel() for weights in cell.parameters())


def random(*shape: int, seed: int = 1) -> torch.Tensor:
    draw = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=draw, dtype=torch.float64)


def run(cell: nn.Module, x: torch.Tensor, given: Conditioning) -> list[tuple[torch.Tensor, ...]]:
    """The states after each step over (D, T, N, in)."""
    per_conversation, packed_weights, state = (
        cell.per_conversation(given),
        cell.packed_weights(),
        cell.zeros(x[0]),
    )
    after = []
    for at in zip(*(part.unbind(1) for part in cell.input_terms(x, per_conversation)), strict=True):
        state = cell(at, state, per_conversation, packed_weights, None)
        after.append(state)
    return after


def norm(x: torch.Tensor, layer: nn.Module, way: int) -> torch.Tensor:
    spread = (x.var(-1, correction=0, keepdim=True) + 1e-5).sqrt()
    return (x - x.mean(-1, keepdim=True)) / spread * layer.gain[way] + layer.bias[way]


def lstm(
    cell: nn.Module, way: int, read: torch.Tensor, kept: torch.Tensor, c: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """(h, c) of one conversation from what its weights make of input and state."""
    gates = norm(read, cell.input_norm, way) + norm(kept, cell.recurrent_norm, way)
    i, f, o, g = gates.chunk(4, -1)
    c = norm(f.sigmoid() * c + i.sigmoid() * g.tanh(), cell.cell_norm, way)
    return o.sigmoid() * c.tanh(), c


class Explicit:
    """One conversation through a cell whose matrices are built in full."""

    def __init__(self, cell: nn.Module, way: int, zeta: torch.Tensor, theta: torch.Tensor) -> None:
        self.cell, self.way, self.zeta, self.theta = cell, way, zeta, theta
        self.h = self.c = torch.zeros(H, dtype=torch.float64)
        self.xi = self.xi_cell = torch.zeros(R, dtype=torch.float64)
        self.matrices: list[torch.Tensor] = []

    def of(self, factors: nn.Module, s: torch.Tensor) -> torch.Tensor:
        """W = A diag(s) C."""
        return factors.last[self.way].T @ torch.diag(s) @ factors.first[self.way].T

    def topical(self, factors: nn.Module) -> torch.Tensor:
        moved = factors.theta[self.way].T @ self.theta + factors.theta_bias[self.way]
        return self.of(factors, factors.scales[self.way].T @ moved)

    def beside(self) -> None:
        """One step of the small LSTM."""
        small = self.cell.beside
        read = small.context[self.way].T @ self.zeta + small.input[self.way].T @ self.h
        kept = small.recurrent[self.way].T @ self.xi
        self.xi, self.xi_cell = lstm(small, self.way, read, kept, self.xi_cell)

    def gate(self, gate: nn.Module, x: torch.Tensor) -> torch.Tensor:
        terms = zip(gate.maps, gate.biases, (x, self.theta, self.xi), strict=True)
        return sum(
            norm(map[self.way].T @ y + bias[self.way, 0], self.cell.gate_norm, self.way)
            for map, bias, y in terms
        ).sigmoid()

    def products(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        cell = self.cell
        if isinstance(cell, TopicCell):
            w, u = self.topical(cell.input), self.topical(cell.recurrent)
            self.matrices.append(w)
            return w @ x, u @ self.h
        self.beside()
        w, u = self.of(cell.input, self.xi), self.of(cell.recurrent, self.xi)
        self.matrices.append(w)
        if not isinstance(cell, BothCell):
            return w @ x, u @ self.h
        read, kept = self.gate(cell.input_gate, x), self.gate(cell.recurrent_gate, self.h)
        wt, ut = self.topical(cell.topic_input), self.topical(cell.topic_recurrent)
        return (
            read * (wt @ x) + (1 - read) * (w @ x),
            kept * (ut @ self.h) + (1 - kept) * (u @ self.h),
        )

    def step(self, x: torch.Tensor) -> torch.Tensor:
        read, kept = self.products(x)
        self.h, self.c = lstm(self.cell, self.way, read, kept, self.c)
        return self.h


CELLS = {
    "context": lambda d: ContextCell(d, IN, H, 0.1, R),
    "topic": lambda d: TopicCell(d, IN, H, 0.1, R, K),
    "both": lambda d: BothCell(d, IN, H, 0.1, R, K),
}


class TestCells:
    GIVEN = Conditioning(random(N, H, seed=2), random(N, K, seed=3).softmax(-1))

    @pytest.mark.parametrize("directions", [1, 2])
    @pytest.mark.parametrize("name", CELLS)
    def test_factored_products_equal_matrices_built_in_full(self, name, directions):
        cell = shaken(CELLS[name](directions))
        x = random(directions, T, N, IN)
        actual = run(cell, x, self.GIVEN)
        for way in range(directions):
            for n in range(N):
                one = Explicit(cell, way, self.GIVEN.context[n], self.GIVEN.topics[n])
                for t in range(T):
                    assert torch.allclose(actual[t][0][way, n], one.step(x[way, t, n]))
                same = [torch.equal(one.matrices[0], w) for w in one.matrices[1:]]
                # Topics make one set of weights for a conversation, its context one a step.
                assert all(same) if name == "topic" else not any(same)

    @pytest.mark.parametrize(("open", "pure"), [(40.0, TopicCell), (-40.0, ContextCell)])
    def test_an_open_or_closed_gate_leaves_one_of_the_two(self, open, pure):
        cell = shaken(CELLS["both"](1))
        cell.gate_norm.gain.data.zero_()
        cell.gate_norm.bias.data.fill_(open)
        alone = shaken(CELLS["topic" if pure is TopicCell else "context"](1))
        weights = cell.state_dict()
        if pure is TopicCell:
            moved = ("topic_input.", "input."), ("topic_recurrent.", "recurrent.")
            kept = {n: w for n, w in weights.items() if not n.startswith(("input.", "recurrent."))}
            for old, new in moved:
                kept = {n.replace(old, new): w for n, w in kept.items()}
            weights = kept
        alone.load_state_dict({name: weights[name] for name in alone.state_dict()})
        x = random(1, T, N, IN)
        for both, one in zip(run(cell, x, self.GIVEN), run(alone, x, self.GIVEN), strict=True):
            assert torch.allclose(both[0], one[0])

    def test_topics_start_without_a_say(self):
        cell = TopicCell(1, IN, H, 0.1, R, K).double()
        s = cell.input.scale(self.GIVEN.topics)
        assert torch.allclose(s, torch.full_like(s, 0.1))

    @pytest.mark.parametrize("name", CELLS)
    def test_no_matrix_is_built(self, name):
        """Nothing in a step is as large as a matrix for each conversation."""
        cell = CELLS[name](1)
        seen: list[int] = []

        class Watch(torch.overrides.TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                out = func(*args, **(kwargs or {}))
                if isinstance(out, torch.Tensor) and func is not nn.Parameter:
                    seen.append(out.numel())
                return out

        count = 50
        given = Conditioning(torch.randn(count, H), torch.randn(count, K).softmax(-1))
        with Watch():
            run(cell, torch.randn(1, 1, count, IN), given)
        assert max(seen) < count * 4 * H * min(IN, H)


VOCABULARY = Vocabulary(["the", "river", "!", "boat", "it", "sail", "3", "n't", "wind"])


PAPER = {
    "context": lambda d: PaperContextCell(d, IN, H, R),
    "topic": lambda d: PaperTopicCell(d, IN, H, K),
    "both": lambda d: PaperBothCell(d, IN, H, R, K),
}


class TestPaperCells:
    GIVEN = TestCells.GIVEN

    @staticmethod
    def matrix(factors: nn.Module, way: int, s: torch.Tensor) -> torch.Tensor:
        """W = U diag(s) V', over [x; h]."""
        columns = torch.cat([factors.of_input[way], factors.of_state[way]])
        return factors.last[way].T @ torch.diag(s) @ columns.T

    @pytest.mark.parametrize("directions", [1, 2])
    @pytest.mark.parametrize("name", PAPER)
    def test_equal_the_equations_with_matrices_built_in_full(self, name, directions):
        cell = shaken(PAPER[name](directions))
        x = random(directions, T, N, IN)
        actual = run(cell, x, self.GIVEN)
        for way in range(directions):
            for n in range(N):
                zeta, theta = self.GIVEN.context[n], self.GIVEN.topics[n]
                h, c = (torch.zeros(H, dtype=torch.float64) for _ in range(2))
                xi, xi_cell = (torch.zeros(R, dtype=torch.float64) for _ in range(2))
                for t in range(T):
                    if name != "topic":
                        phi = cell.beside
                        gates = phi.input[way].T @ torch.cat([zeta, h]) + phi.recurrent[way].T @ xi
                        gates = gates + phi.input_bias[way] + phi.recurrent_bias[way]
                        i, f, o, g = gates.chunk(4)
                        xi_cell = f.sigmoid() * xi_cell + i.sigmoid() * g.tanh()
                        xi = o.sigmoid() * xi_cell.tanh()
                        w = self.matrix(cell.local, way, xi)
                    if name == "topic":
                        w = self.matrix(cell.topical, way, theta)
                    elif name == "both":
                        psi = cell.gate[way].T @ torch.cat([xi, theta]) + cell.gate_bias[way, 0]
                        psi = psi.sigmoid()[:, None]
                        w = psi * w + (1 - psi) * self.matrix(cell.topical, way, theta)
                    i, f, o, g = (w @ torch.cat([x[way, t, n], h]) + cell.bias[way, 0]).chunk(4)
                    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
                    h = o.sigmoid() * c.tanh()
                    assert torch.allclose(actual[t][0][way, n], h)

    def test_sizes_of_the_papers_matrices(self):
        """U: 4h x K, V: (h + x) x K, beside them the gates' biases."""
        assert parameters_of(PaperTopicCell(1, 300, 300, 5)) == 1_200 * 5 + 600 * 5 + 1_200
        beside = 4 * 600 * (600 + 600) + 2 * 4 * 600
        context = 1_200 * 600 + 600 * 600 + 1_200 + beside
        assert parameters_of(PaperContextCell(1, 300, 300, 600)) == context

    @pytest.mark.parametrize("name", ["adand", "adand-context", "adand-topic"])
    def test_every_layer_has_them(self, ready, name):
        model, _ = ready(f"{name}[cell=paper]")
        kinds = {type(cell) for part in (model.encoder, model.decoder) for cell in part.cells}
        assert kinds <= {PaperBothCell, PaperContextCell, PaperTopicCell}
        assert len(kinds) == 1


class TestTopicalWords:
    def test_are_the_commonest_that_say_what_it_is_about(self):
        words = [VOCABULARY.words[n] for n in topical_words(VOCABULARY, 3)]
        assert words == ["river", "boat", "sail"]
        assert len(topical_words(VOCABULARY, 99)) == 4

    def test_stop_words_are_ones_the_tokenizer_can_give(self):
        assert all(word == word.lower() and word.isalpha() for word in STOP_WORDS)


class TestInferrer:
    @pytest.fixture
    def topics(self) -> TopicInferrer:
        numbers = topical_words(VOCABULARY, 3)
        return shaken(TopicInferrer(numbers, len(VOCABULARY), K, 5, 8, 0.1))

    def test_bag_counts_topical_words_in_any_order(self, topics):
        boat, river, sail = (VOCABULARY.encode([w])[0] for w in ("boat", "river", "sail"))
        other = VOCABULARY.encode(["wind"])[0]  # beyond the three commonest
        source = torch.tensor([[boat, SEP, river, boat, PAD], [5, other, 7, PAD, PAD]])
        target = torch.tensor([[sail, river, EOS], [EOS, PAD, PAD]])
        assert topics.bag(source).tolist() == [[1, 2, 0], [0, 0, 0]]
        assert topics.bag(source, target).tolist() == [[2, 2, 1], [0, 0, 0]]
        assert torch.equal(topics.bag(source.flip(1)), topics.bag(source))

    def test_theta_sums_to_one(self, topics):
        theta = topics.theta(random(9, 5))
        assert theta.shape == (9, K)
        assert torch.allclose(theta.sum(-1), torch.ones(9, dtype=torch.float64))
        assert theta.min() > 0

    def test_words_by_hand(self, topics):
        nu, bag = random(2, 5), torch.tensor([[1.0, 0.0, 2.0], [0.0, 0.0, 0.0]]).double()
        theta = topics.theta(nu)

        def normed(x: torch.Tensor) -> torch.Tensor:
            return (x - x.mean(-1, keepdim=True)) / (
                x.var(-1, correction=0, keepdim=True) + 1e-5
            ).sqrt()

        scores = normed(theta @ topics.topics) @ normed(topics.words).T
        logs = scores.log_softmax(-1)
        actual = topics.words_nll(bag, nu)
        assert actual[0].item() == pytest.approx(-(logs[0, 0] + 2 * logs[0, 2]).item())
        assert actual[1].item() == 0.0

    def test_plane_puts_words_of_one_kind_together(self):
        numbers = list(range(5, 25))
        topics = TopicInferrer(numbers, 40, K, 5, 8, 0.1).double()
        kinds = torch.eye(8, dtype=torch.float64)[:2].repeat_interleave(10, 0)
        topics.words.data = 5 * kinds + 0.1 * random(20, 8)
        [one, two] = topics.plane([numbers[:10], numbers[10:]])
        a, b = (torch.tensor(spots, dtype=torch.float64) for spots in (one, two))
        within = max(torch.cdist(spots, spots).max() for spots in (a, b))
        assert torch.cdist(a, b).min() > within
        assert topics.plane([numbers[:10], numbers[10:]]) == [one, two]

    def test_few_words_make_no_plane(self, topics):
        assert topics.plane([topics.numbers[:2], topics.numbers[2:]]) == []

    def test_closeness_falls_as_topics_part(self, topics):
        topics.topics.data = torch.eye(K, 8, dtype=torch.float64)
        own = math.acos(1 - 1e-5)
        mean = (K * own + K * (K - 1) * math.pi / 2) / K**2
        squares = (K * own**2 + K * (K - 1) * (math.pi / 2) ** 2) / K**2
        apart = topics.closeness()
        assert apart.item() == pytest.approx(squares - mean**2 - mean)
        topics.topics.data[1] += 0.9 * topics.topics.data[0]
        near = topics.closeness()
        assert near > apart
        near.backward()
        assert topics.topics.grad.isfinite().all()

    def test_lists_hold_the_likeliest_topical_words(self, topics):
        scores = topics.topics @ topics.words.T
        for row, actual in zip(scores.tolist(), topics.lists(2), strict=True):
            best = sorted(range(3), key=lambda i: -row[i])[:2]
            assert actual == [topics.numbers[i] for i in best]

    def test_weight_of_the_divergence(self):
        for step in (0, 1_000, 3_500, 5_000, 6_999):
            assert kl_weight(step, 7_000) == pytest.approx(
                (math.tanh((step - 3_500) / 1_000) + 1) / 2
            )
        assert kl_weight(3_500, 7_000) == 0.5
        assert kl_weight(7_000, 7_000) == kl_weight(0, 0) == 1.0
