"""AdaND: its sizes, its weights made for each conversation, its topics (AdaND, 3.1-3.3)."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from dialbench_adapters.adand import BothModel, TopicConfig, TopicInferrer, kl_weight
from dialbench_adapters.blocks.adaptive import (
    BothCell,
    ContextCell,
    TopicCell,
)
from dialbench_adapters.blocks.latent import Gaussian
from dialbench_adapters.blocks.lstm import Conditioning
from dialbench_adapters.text_models.topical_words import topical_words
from torch import nn

from dialbench.adapter import Progress, Run
from dialbench.errors import InputError
from dialbench.neural.decoding import decode
from dialbench.neural.model import count_for_responses, count_parameters
from dialbench.records import Decoding
from dialbench.systems import Registry
from dialbench.text.vocabulary import PAD

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

    @pytest.mark.parametrize("sign", [-1, 1])
    def test_log_variances_are_bounded_as_in_all_systems(self, made, sign):
        model, batch = made
        bag = model.topics.bag(batch.source, batch.target)
        for part in (model.posterior, model.topics.prior):
            part.log_variance.bias.data.fill_(sign * 2_000.0)
            assert part(bag).log_variance.eq(sign * 10.0).all()
            assert all(value.isfinite() for value in model.loss(batch, 50).parts.values())

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
