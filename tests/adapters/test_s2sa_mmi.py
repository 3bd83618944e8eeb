"""S2SA-MMI: what is ranked, by what, and what the reverse model reads (docs/systems.md)."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from dialbench_adapters.s2sa import S2SA
from dialbench_adapters.s2sa_mmi import S2SAMMI, best_hypothesis, reversed_pairs

from dialbench.adapter import Progress, Run
from dialbench.errors import InputError, SystemFailed
from dialbench.neural.data import encode, make_batch
from dialbench.neural.decoding import Hypothesis, beam_search
from dialbench.records import Context, Decoding
from dialbench.systems import Registry
from dialbench.text.vocabulary import EOS, PAD, SEP, UNK, Vocabulary

pytestmark = pytest.mark.usefixtures("one_thread")
OPTIONS = {"optimiser": "adam", "learning_rate": 4e-2, "epochs": 4}


@pytest.fixture(scope="module")
def forward(build, eight, tmp_path_factory) -> S2SA:
    adapter = build("s2sa", **OPTIONS)
    adapter.fit(eight, eight, Run(1, folder=tmp_path_factory.mktemp("ahead")))
    return adapter


@pytest.fixture(scope="module")
def reverse(build, eight, tmp_path_factory, forward) -> S2SAMMI:
    adapter = build("s2sa-mmi", **OPTIONS)
    adapter.fit(eight, eight, Run(1, folder=tmp_path_factory.mktemp("back"), base=forward))
    return adapter


@pytest.fixture
def trained(build, reverse):
    """The trained system under other options of ranking."""

    def trained(**options) -> S2SAMMI:
        adapter = build("s2sa-mmi", **OPTIONS, **options)
        adapter.vocabulary, adapter.model = reverse.vocabulary, reverse.model
        adapter.history = reverse.history
        return adapter

    return trained


def hypotheses(forward, asked, width):
    """What the forward model's beam search finds for the last turn of each context, as texts."""
    contexts = [Context(context[-1:], context.id) for context in asked]
    data = encode(contexts, forward.vocabulary, 30)
    batch = make_batch(data, np.arange(len(asked)), "cpu", 1, "infer")
    return beam_search(forward.model.eval(), batch, width, 10)


def tokens(adapter, texts):
    return [tuple(adapter.vocabulary.read(text)) for text in texts]


@pytest.mark.parametrize(
    ("option", "fault"),
    [("backward_weight=1.5", "backward_weight"), ("hypotheses=0", "hypotheses")],
)
def test_what_cannot_be_built(option, fault):
    with pytest.raises(InputError, match=fault):
        Registry().parse(f"s2sa-mmi[{option}]")


class TestRanking:
    FOUND = (
        Hypothesis((7, 8), -3.0, 3),  # -1.0 a token
        Hypothesis((9,), -4.0, 2),  # -2.0
        Hypothesis((), -2.5, 1),  # -2.5
    )

    @pytest.mark.parametrize(
        ("weight", "backward", "expected"),
        [
            (0.0, (-9.0, -1.0, -1.0), (7, 8)),
            (0.5, (-4.0, -2.0, -2.0), (9,)),  # -2.5, -2.0, -2.25
            (0.5, (-4.0, -3.0, -1.0), ()),  # -2.5, -2.5, -1.75
            (0.5, (-2.0, -1.0, -1.0), (7, 8)),  # equal at -1.5: the first
            (1.0, (-4.0, -3.0, -3.5), (9,)),
        ],
    )
    def test_the_score_is_the_weighted_mean_of_both(self, weight, backward, expected):
        assert best_hypothesis(self.FOUND, backward, weight) == expected

    def test_without_a_hypothesis_the_response_is_empty(self):
        assert best_hypothesis((), (), 0.5) == ()

    def test_without_the_reverse_model_it_is_the_best_of_s2sa(self, trained, forward, asked):
        adapter = trained(backward_weight=0.0)
        answers = tokens(adapter, adapter.respond(asked, Decoding.parse("mmi:6"), Run(1)))
        assert answers == [actual[0].tokens for actual in hypotheses(forward, asked, 6)]

    def test_it_chooses_among_distinct_hypotheses_and_not_always_the_first(
        self, trained, forward, asked
    ):
        adapter = trained(backward_weight=1.0)
        actual = [[h.tokens for h in each] for each in hypotheses(forward, asked, 6)]
        assert all(len(set(each)) == len(each) for each in actual)
        answers = tokens(adapter, adapter.respond(asked, Decoding.parse("beam:6"), Run(1)))
        assert all(answer in each for answer, each in zip(answers, actual, strict=True))
        assert any(answer != each[0] for answer, each in zip(answers, actual, strict=True))

    def test_answers_depend_on_no_batch_and_survive_saving(self, trained, asked, tmp_path):
        adapter, how = trained(hypotheses=4), Decoding()
        answers = adapter.respond(asked, how, Run(1))
        assert [adapter.respond([one], how, Run(1))[0] for one in asked] == answers
        folder = tmp_path / "saved"
        folder.mkdir()
        adapter.save(folder)
        assert S2SAMMI.load(folder, adapter.config).respond(asked, how, Run(1)) == answers

    def test_decodings_that_name_no_list_rank_as_many_as_the_option_says(self, trained, asked):
        texts = []

        class Noted(Progress):
            def warn(self, text: str) -> None:
                texts.append(text)

        adapter = trained(hypotheses=4)
        run = Run(1, progress=Noted())
        listed = adapter.respond(asked, Decoding.parse("mmi:4"), run)
        assert texts == []
        assert adapter.respond(asked, Decoding.parse("top-p:0.9"), run) == listed
        assert texts == [
            "S2SA-MMI ranks 4 hypotheses of beam search, where others decode with top-p:0.9"
        ]


class TestReverseModel:
    def test_it_reads_the_response_and_writes_the_message(self):
        words = Vocabulary(["a", "b", "c", "d"])
        contexts = [Context(("a b", "c")), Context(("",)), Context(("d d d d",))]
        data = encode(contexts, words, 9, ["d c", "a", ""], 9)
        back = reversed_pairs(data, 3)
        a, b, c, d = range(5, 9)
        assert back.source.padded(np.arange(3)).tolist() == [[d, c], [a, PAD], [UNK, PAD]]
        assert back.target.padded(np.arange(3)).tolist() == [
            [b, SEP, c, EOS],  # the latest three, EOS not counted
            [UNK, EOS, PAD, PAD],
            [d, d, d, EOS],
        ]

    @torch.no_grad()
    def test_a_message_costs_what_its_words_cost_one_by_one(self, ready):
        model, batch = ready("s2sa-mmi")
        responses, messages = batch.target, batch.source
        backward = model.backward_score(responses, messages)
        for row in range(len(batch)):
            response = responses[row][responses[row].ne(PAD)]
            message = messages[row][messages[row].ne(PAD)]
            given = type(batch)(("",), response[None], message[None], message)
            state, word, total = model.back.start(given), torch.tensor([2]), 0.0
            for following in message:
                logits, state = model.back.step(word, state)
                total += float(logits.log_softmax(-1)[0, following])
                word = following[None]
            assert float(backward[row]) == pytest.approx(total / len(message), rel=1e-5)

    def test_it_learns_alone(self, reverse, forward):
        adapter = reverse
        before, after = forward.model.state_dict(), adapter.model.state_dict()
        for name, weight in before.items():
            assert torch.equal(after[f"ahead.{name}"], weight)
            assert not torch.equal(after[f"back.{name}"], weight)
        losses = [row["train_message"] for row in adapter.curve()[:-1]]
        assert losses[-1] < 0.8 * losses[0]

    def test_a_response_learnt_by_heart_tells_its_own_message(self, ready, learn, eight, build):
        model, batch = ready("s2sa-mmi", embedding=32, hidden=32, precision="float32")
        data = reversed_pairs(batch.origin[0], 10)
        back = make_batch(data, np.arange(8), "cpu")
        learn(model, back, range(50))
        with torch.no_grad():
            scores = torch.stack(
                [model.backward_score(back.source[i].expand(8, -1), back.target) for i in range(8)]
            )
        assert scores.argmax(1).tolist() == list(range(8))

    def test_its_responses_are_as_likely_as_those_of_s2sa(self, forward, reverse):
        first, last = reverse.history.curve[0], reverse.history.best
        assert "valid_message" in first
        assert "valid_loss" not in first
        assert last["valid_loss"] == forward.history.best["valid_loss"]
        assert reverse.history.context_gain == forward.history.context_gain is not None

    def test_without_s2sa_it_cannot_learn(self, build, eight, tmp_path):
        with pytest.raises(SystemFailed, match="no trained S2SA to start from"):
            build("s2sa-mmi").fit(eight, eight, Run(1, folder=tmp_path))
