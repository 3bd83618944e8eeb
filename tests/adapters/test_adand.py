"""AdaND: its sizes, its weights made for each conversation, its topics (AdaND, 3.1-3.3)."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from dialbench_adapters.adand import BothModel, TopicConfig, TopicInferrer, kl_weight
from dialbench_adapters.blocks.adaptive import (
    BothCell,
    ContextCell,
    PaperBothCell,
    PaperContextCell,
    PaperTopicCell,
    TopicCell,
)
from dialbench_adapters.blocks.latent import Gaussian
from dialbench_adapters.blocks.lstm import Conditioning
from dialbench_adapters.text_models.topical_words import STOP_WORDS, topical_words
from torch import nn

from dialbench.adapter import Progress, Run
from dialbench.errors import InputError
from dialbench.neural.decoding import decode
from dialbench.neural.model import count_for_responses, count_parameters
from dialbench.records import Decoding
from dialbench.systems import Registry
from dialbench.text.vocabulary import EOS, PAD, SEP, Vocabulary

pytestmark = pytest.mark.usefixtures("one_thread")
SYSTEMS = ["adand-context", "adand-topic", "adand"]
TOPICAL = ["adand-topic", "adand"]
N, T, IN, H, R, K = 3, 4, 5, 6, 3, 4


class Listener(Progress):
    def __init__(self) -> None:
        self.warnings: list[str] = []

    def warn(self, text: str) -> None:
        self.warnings.append(text)


def size(model: nn.Module) -> int:
    return count_parameters(model)["parameters"]


class TestSizes:
    def test_cells(self):
        for reads, both, context, topic in (
            (300, 2_198_580, 764_440, 390_740),
            (600, 2_635_380, 802_840, 429_140),
        ):
            assert size(BothCell(1, reads, 300, 0.1, 128, 5)) == both
            assert size(ContextCell(1, reads, 300, 0.1, 128)) == context
            assert size(TopicCell(1, reads, 300, 0.1, 128, 5)) == topic

    @pytest.mark.parametrize(
        ("words", "whole", "topics"),
        # The code counts four specials as topical words that never occur.
        [(3_163, 47_751_875, 5_595_195), (3_159, 47_745_035, 5_588_355)],
    )
    def test_paper(self, words, whole, topics):
        config = TopicConfig(topical_words=words)
        with torch.device("meta"):
            model = BothModel(config, 20_000, list(range(5, 5 + words)))
        assert size(model) == whole
        assert size(model.encoder) + size(model.decoder) == 14_065_080
        assert size(model.context_encoder) + size(model.context_embedding) == 9_621_600
        assert size(model.topics) + size(model.posterior) == topics
        # the posterior, and what only tells topics: a vector of each topic and topical word
        vectors = 300 * (5 + words)
        assert whole - count_for_responses(model) == size(model.posterior) + vectors

    @pytest.mark.parametrize("name", SYSTEMS)
    def test_grow_linearly_in_the_rank(self, name):
        def parameters(rank: int) -> int:
            cells = {
                "adand": lambda: BothCell(1, 60, 60, 0.1, rank, 5),
                "adand-context": lambda: ContextCell(1, 60, 60, 0.1, rank),
                "adand-topic": lambda: TopicCell(1, 60, 60, 0.1, rank, 5),
            }
            return size(cells[name]())

        # The small LSTM of rank R beside has 4 R^2 recurrent numbers of its own.
        own = 0 if name == "adand-topic" else 4
        first, second, third = (parameters(r) - own * r * r for r in (8, 16, 24))
        assert second - first == third - second > 0

    def test_defaults_are_the_papers_and_the_codes(self):
        c = TopicConfig()
        assert (c.rank, c.topics, c.topical_words, c.latent) == (128, 5, 3_159, 64)
        assert (c.topic_annealing, c.diversity, c.topic_draw) == (3_500, 0.1, "sample")
        assert c.topic_rate == c.learning_rate == 1e-3

    @pytest.mark.parametrize(
        "option",
        [
            "rank=0",
            "topics=1",
            "topical_words=0",
            "latent=0",
            "topic_annealing=-1",
            "topic_rate=0",
            "diversity=-1.0",
            "cell=own",
        ],
    )
    def test_what_cannot_be_built(self, option):
        with pytest.raises(InputError, match=option.split("=")[0]):
            Registry().parse(f"adand[{option}]")


def shaken(module: nn.Module) -> nn.Module:
    """In float64 and eval mode, every number moved, so that none is zero or one by its start."""
    torch.manual_seed(7)
    module = module.double().eval()
    for weights in module.parameters():
        weights.data += 0.4 * torch.randn_like(weights)
    return module


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
        assert size(PaperTopicCell(1, 300, 300, 5)) == 1_200 * 5 + 600 * 5 + 1_200
        beside = 4 * 600 * (600 + 600) + 2 * 4 * 600
        context = 1_200 * 600 + 600 * 600 + 1_200 + beside
        assert size(PaperContextCell(1, 300, 300, 600)) == context

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


class TestLoss:
    @pytest.fixture(params=TOPICAL)
    def made(self, request, ready):
        return ready(request.param, topic_annealing=100, dropout=0.0, context_drop=0.0)

    def test_weighs_its_parts(self, made):
        model, batch = made
        for step in (0, 30, 50, 100):
            losses = model.loss(batch, step)
            nll, topical_nll, kl = (losses.parts[n].item() for n in ("nll", "topical_words", "kl"))
            apart = 0.1 * model.topics.closeness().item()
            topics = (topical_nll + kl_weight(step, 100) * kl) / 8 + apart
            assert losses.total.item() == pytest.approx(nll / losses.tokens + topics)
            assert kl > 0
            assert topical_nll > 0

    def test_topics_learn_from_posterior_of_context_and_response(self, made):
        model, batch = made
        q = model.posterior(model.topics.bag(batch.source, batch.target))
        p = model.topics.prior(model.topics.bag(batch.source))
        assert isinstance(q, Gaussian)
        kl = model.loss(batch, 0).parts["kl"].item()
        ratio = q.log_variance - p.log_variance
        by_hand = (ratio.exp() + (q.mean - p.mean) ** 2 / p.log_variance.exp() - 1 - ratio) / 2
        assert kl == pytest.approx(by_hand.sum().item())

    def test_responses_teach_no_topics_and_topics_no_weights(self, made):
        """The two updates of the code touch no weight in common."""
        model, batch = made
        inferrer = [p for part in (model.topics, model.posterior) for p in part.parameters()]
        others = [p for p in model.parameters() if all(p is not q for q in inferrer)]
        losses = model.loss(batch, 100)
        words = torch.autograd.grad(losses.total, others)
        response = model.conditioning(batch)
        alone = torch.autograd.grad(
            nn.functional.cross_entropy(
                model.output(model.hidden(batch, response)).flatten(0, 1),
                batch.target.flatten(),
                ignore_index=PAD,
            ),
            others + inferrer,
            allow_unused=True,
        )
        for ours, theirs in zip(words, alone[: len(others)], strict=True):
            assert torch.allclose(ours, theirs)
        assert all(gradient is None for gradient in alone[len(others) :])

    @pytest.mark.parametrize("scale", [1e-3, 1e3])
    def test_neither_update_chokes_the_other(self, build, eight, tmp_path, monkeypatch, scale):
        """However large the gradient of the topics, the rest learns the same."""

        def learnt(folder: str) -> dict[str, torch.Tensor]:
            adapter = build("adand-topic", epochs=1, batch_size=8)  # one update
            adapter.fit(eight, eight, Run(1, folder=tmp_path / folder))
            return adapter.model.state_dict()

        plain = learnt("plain")
        words_nll = TopicInferrer.words_nll
        monkeypatch.setattr(TopicInferrer, "words_nll", lambda *given: scale * words_nll(*given))
        scaled = learnt("scaled")
        moved = [name for name in plain if not torch.equal(plain[name], scaled[name])]
        assert moved
        assert all(name.startswith(("topics.", "posterior.")) for name in moved)

    def test_answering_reads_no_response(self, made):
        model, batch = made
        blind = replace(batch, target=batch.target[:, :0], real=batch.real[:0])
        responses = [decode(model, given, Decoding(), 8) for given in (batch, blind)]
        assert responses[0] == responses[1]


@pytest.mark.parametrize("system", SYSTEMS)
def test_bfloat16_gives_about_the_same_losses(ready, system):
    model, batch = ready(system, precision="float32")
    exact = model.loss(batch, 50).parts
    with torch.autocast("cpu", dtype=torch.bfloat16):
        coarse = model.loss(batch, 50).parts
        assert len(decode(model, batch, Decoding("beam", 3), 5)) == 8
    # bfloat16 keeps 8 bits; what topics learn from is computed in full.
    assert coarse["nll"].item() == pytest.approx(exact["nll"].item(), rel=0.02)
    for name in exact.keys() - {"nll"}:
        assert coarse[name].item() == pytest.approx(exact[name].item(), rel=1e-5)


class TestDraw:
    def test_theta_is_drawn_by_the_seed_or_the_mean(self, ready):
        model, batch = ready("adand-topic")
        drawn = [model.conditioning(replace(batch, seed=seed)).topics for seed in (1, 2, 1)]
        assert torch.equal(drawn[0], drawn[2])
        assert not torch.allclose(drawn[0], drawn[1])
        model, batch = ready("adand-topic[topic_draw=mean]")
        drawn = [model.conditioning(replace(batch, seed=seed)).topics for seed in (1, 2)]
        assert torch.equal(drawn[0], drawn[1])
        p = model.topics.prior(model.topics.bag(batch.source))
        assert torch.allclose(drawn[0], model.topics.theta(p.mean))

    def test_zeta_is_the_last_layers_state(self, ready):
        model, batch = ready("adand-context")
        x = model.context_embedding(batch.source)
        _, states = model.context_encoder(x, batch.source.ne(PAD), Conditioning())
        assert torch.allclose(model.conditioning(batch).context, states[-1][0])


class TestTraining:
    def test_eight_pairs_are_learnt_by_heart(self, ready, learn):
        sizes = {"embedding": 32, "hidden": 32, "rank": 16, "recurrent_layers": 1}
        quiet = {"dropout": 0.0, "context_drop": 0.0, "precision": "float32"}
        model, batch = ready("adand", **sizes, **quiet)
        losses = learn(model, batch, range(100))
        assert losses.parts["nll"].item() / losses.tokens < 0.1

    @pytest.mark.parametrize("system", TOPICAL)
    def test_what_infers_topics_has_a_rate_of_its_own(self, build, eight, tmp_path, system):
        adapter, run = build(system, topic_rate=1e-3, epochs=1), Run(1, folder=tmp_path)
        adapter.fit(eight, eight, run)
        data, model = adapter._encode(eight), adapter.model
        groups = adapter.trainer(model, data, data, run).optimiser.param_groups
        scales = {id(p): group["rate_scale"] for group in groups for p in group["params"]}
        slow = [*model.posterior.parameters(), *model.topics.prior.parameters()]
        slow += model.topics.shares.parameters()
        assert {scales[id(p)] for p in slow} == {0.2}
        assert sum(scale == 0.2 for scale in scales.values()) == len(slow)
        assert set(scales) == {id(p) for p in model.parameters()}

    def test_one_rate_by_default(self, ready, build, eight):
        adapter = build("adand", learning_rate=1e-3)
        model, _ = ready("adand", learning_rate=1e-3)
        (group,) = adapter.trainer(model, None, None, Run(1)).optimiser.param_groups
        assert group["rate_scale"] == 1.0

    def test_killed_and_resumed_ends_in_the_same_weights(self, build, eight, tmp_path):
        def train(folder, *epochs):
            for last in epochs:
                adapter = build("adand", epochs=last)
                adapter.fit(eight, eight, Run(1, folder=tmp_path / folder))
            return adapter.model.state_dict()

        whole, halves = train("whole", 2), train("halves", 1, 2)
        assert all(torch.equal(whole[name], halves[name]) for name in whole)

    def test_topic_words_are_a_fact(self, build, eight, tmp_path):
        adapter = build("adand-topic[topics=3]", epochs=1)
        adapter.fit(eight, eight, Run(1, folder=tmp_path))
        lists = adapter.facts()["topics"]
        topical = {adapter.vocabulary.words[n] for n in topical_words(adapter.vocabulary, 3_159)}
        assert [len(words) for words in lists] == [10, 10, 10]
        assert all(len(set(words)) == 10 and set(words) <= topical for words in lists)

    def test_saved_and_loaded_answers_alike(self, build, eight, asked, tmp_path):
        adapter = build("adand", epochs=1)
        adapter.fit(eight, eight, Run(1, folder=tmp_path))
        adapter.save(tmp_path)
        loaded = type(adapter).load(tmp_path, adapter.config)
        for decoding in (Decoding(), Decoding("beam", 3)):
            answers = [a.respond(asked, decoding, Run(1)) for a in (adapter, loaded)]
            assert answers[0] == answers[1]
        for fact in ("topics", "topic_places"):
            assert loaded.facts()[fact] == adapter.facts()[fact]

    def test_annealing_that_never_ended_is_told(self, build, eight, tmp_path):
        listener = Listener()
        adapter = build("adand-topic", epochs=1, topic_annealing=1_000)
        adapter.fit(eight, eight, Run(1, folder=tmp_path, progress=listener))
        assert any("before topic_annealing=1000 ended" in text for text in listener.warnings)

    def test_vectors_start_all_tables_and_topical_words(self, build, eight, tmp_path):
        file = tmp_path / "own.txt"
        file.write_text(
            "".join(
                f"{w} {' '.join([str(i)] * 16)}\n" for i, w in enumerate(("bakery", "umbrella"), 1)
            )
        )
        adapter = build("adand", epochs=1, vectors=str(file))
        from dialbench.neural.data import build_vocabulary

        adapter.vocabulary = build_vocabulary(eight, 100)
        model = adapter._new_model(Run(1))
        (bakery,) = adapter.vocabulary.encode(["bakery"])
        for table in (model.embedding, model.response_embedding, model.context_embedding):
            assert table.weight[bakery].eq(1.0).all()
        assert model.topics.words[model.topics.numbers.index(bakery)].eq(1.0).all()
