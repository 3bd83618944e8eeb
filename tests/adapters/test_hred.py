"""HRED, and what all hierarchical systems must keep (docs/systems.md)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from dialbench_adapters.blocks.hierarchical import ContextEncoder, Conversation
from dialbench_adapters.blocks.recurrent import StackedGRU
from dialbench_adapters.hred import HREDConfig, HREDModel
from torch import nn
from torch.nn.functional import pad

from dialbench.adapter import Run
from dialbench.errors import InputError
from dialbench.neural.data import Batch, Turns, encode, make_batch
from dialbench.neural.decoding import decode
from dialbench.neural.model import count_parameters
from dialbench.records import Context, Decoding
from dialbench.systems import Registry
from dialbench.text.vocabulary import EOS, PAD, Vocabulary

pytestmark = pytest.mark.usefixtures("one_thread")

SYSTEMS = [
    "hred",
    "hred[recurrent_layers=1]",
    "vhred",
    "vhcr",
    "vhcr[recurrent_layers=1]",
    "cvae-rnn",
    *(f"{name}[decoder_context=all]" for name in ("hred", "vhred", "vhcr", "cvae-rnn")),
    *(f"{name}[utterance_vector=mean]" for name in ("hred", "vhred", "vhcr", "cvae-rnn")),
]
DECODINGS = ["greedy", "sample", "top-k:5", "top-p:0.9", "beam:3"]
SIZES = {"latent": 6, "latent_hidden": 10}


def with_turns(batch: Batch, tokens: torch.Tensor, contexts: torch.Tensor) -> Batch:
    """The batch with other context turns."""
    changed = replace(batch)
    vars(changed)["turns"] = Turns(tokens, contexts)
    return changed


class TestTurns:
    WORDS = Vocabulary(["a", "b", "c", "d"])
    A, B, C, D = range(5, 9)

    def batch(self, *contexts: tuple[str, ...], limit: int = 9, rows=None) -> Batch:
        data = encode([Context(context) for context in contexts], self.WORDS, limit)
        return make_batch(data, np.array(rows or range(len(contexts))), "cpu")

    @staticmethod
    def rows(turns: Turns) -> list[list[int]]:
        """The rows up to the last turn of a context; those behind it hold no word."""
        count = int(turns.contexts.max()) + 1
        assert not turns.tokens[count:].any()
        return turns.tokens[:count].tolist()

    def test_every_distinct_turn_once(self):
        turns = self.batch(("a", "b c"), ("d",), ("b c", "a", "b c")).turns
        texts = [tuple(row) for row in self.rows(turns)]
        assert sorted(texts) == [(self.A, PAD), (self.B, self.C), (self.D, PAD)]
        read = [[texts[i] if i >= 0 else None for i in row] for row in turns.contexts.tolist()]
        a, bc, d = (self.A, PAD), (self.B, self.C), (self.D, PAD)
        assert read == [[a, bc, None], [d, None, None], [bc, a, bc]]

    def test_only_turns_of_the_batch(self):
        turns = self.batch(("a",), ("b b b b",), ("c", "d"), rows=[2, 0]).turns
        assert self.rows(turns) == [[self.A], [self.C], [self.D]]
        assert turns.contexts.tolist() == [[1, 2], [0, -1]]
        assert turns.tokens.dtype == turns.contexts.dtype == torch.int64

    def test_long_turns_keep_their_latest_tokens(self):
        assert self.rows(self.batch(("a b c d",), limit=2).turns) == [[self.C, self.D]]

    def test_a_context_without_turns_is_an_empty_turn(self):
        turns = self.batch(()).turns
        assert self.rows(turns) == [[PAD]]
        assert turns.contexts.tolist() == [[0]]

    def test_their_number_takes_few_values(self):
        def count(turns: int) -> int:
            contexts = [("a " * (i + 1),) for i in range(turns)]
            return len(self.batch(*contexts, limit=99).turns.tokens)

        assert [count(turns) for turns in (1, 2, 32, 33, 64)] == [32, 32, 32, 64, 64]

    def test_a_batch_made_by_hand_knows_none(self):
        with pytest.raises(ValueError, match="cut from a split"):
            _ = replace(self.batch(("a",)), origin=None).turns


class TestStackedGRU:
    @pytest.fixture(params=[1, 2, 3])
    def layers(self, request) -> int:
        return request.param

    def test_equals_that_of_torch_from_given_states_and_step_by_step(self, layers):
        torch.manual_seed(1)
        ours = StackedGRU(4, 6, layers, 0.0).double()
        known = nn.GRU(4, 6, layers, batch_first=True).double()
        for name, value in ours.named_parameters():
            _, layer, kind = name.split(".")
            known.get_parameter(kind.replace("_l0", f"_l{layer}")).data.copy_(value)
        x = torch.randn(3, 5, 4, dtype=torch.float64)
        first = torch.randn(layers, 3, 6, dtype=torch.float64)
        expected, last = known(x, first)
        outputs, states = ours(x, list(first))
        assert torch.allclose(outputs, expected)
        assert torch.allclose(torch.stack(states), last)
        states = list(first)
        for t in range(5):
            top, states = ours(x[:, t : t + 1], states)
            assert torch.allclose(top[:, 0], expected[:, t])
        zeros = list(torch.zeros_like(first))
        assert torch.equal(ours(x)[0], ours(x, zeros)[0])

    def test_dropout_lies_between_the_layers(self):
        torch.manual_seed(1)
        x = torch.randn(3, 5, 4)
        for layers, same in [(1, True), (2, False)]:
            gru = StackedGRU(4, 6, layers, 0.5)
            assert torch.equal(gru(x)[0], gru(x)[0]) is same


class TestConversation:
    @pytest.fixture
    def turns(self) -> Conversation:
        distinct = torch.arange(1.0, 9.0, dtype=torch.float64).view(4, 2)
        return Conversation.gather(distinct, torch.tensor([[2, 0, 3], [1, -1, -1]]))

    def test_gather(self, turns):
        assert turns.vectors.tolist() == [
            [[5.0, 6.0], [1.0, 2.0], [7.0, 8.0]],
            [[3.0, 4.0], [0.0, 0.0], [0.0, 0.0]],
        ]
        assert turns.real.tolist() == [[True, True, True], [True, False, False]]
        assert turns.last.tolist() == [2, 0]

    def test_then(self, turns):
        longer = turns.append(torch.tensor([[10.0, 11.0], [12.0, 13.0]], dtype=torch.float64))
        assert longer.vectors.tolist() == [
            [[5.0, 6.0], [1.0, 2.0], [7.0, 8.0], [10.0, 11.0]],
            [[3.0, 4.0], [12.0, 13.0], [0.0, 0.0], [0.0, 0.0]],
        ]
        assert longer.real.tolist() == [[True] * 4, [True, True, False, False]]

    def test_beside(self, turns):
        wider = turns.with_features(torch.tensor([[-1.0], [-2.0]], dtype=torch.float64))
        assert wider.vectors[0].tolist() == [[5.0, 6.0, -1.0], [1.0, 2.0, -1.0], [7.0, 8.0, -1.0]]
        assert wider.vectors[1, 0].tolist() == [3.0, 4.0, -2.0]

    def test_drop(self):
        real = torch.arange(5) < torch.randint(1, 6, (4_000, 1))
        turns = Conversation(torch.ones(4_000, 5, 2) * real[:, :, None], real)
        before = turns.vectors.clone()
        torch.manual_seed(2)
        dropped = turns.drop(torch.tensor([7.0, 8.0]), 0.25)
        assert torch.equal(turns.vectors, before)
        hidden = dropped.vectors[:, :, 0].eq(7.0)
        assert torch.equal(
            dropped.vectors[hidden], torch.tensor([7.0, 8.0]).expand(hidden.sum(), 2)
        )
        assert torch.equal(dropped.vectors[~hidden], before[~hidden])
        assert not hidden[~real].any()
        n = int(real.sum())
        assert abs(hidden.sum().item() / n - 0.25) < 4 * (0.25 * 0.75 / n) ** 0.5
        # each conversation and each place for itself
        both = (hidden[:, 0] & hidden[:, 1])[real[:, 1]].double()
        assert abs(both.mean().item() - 0.0625) < 4 * (0.0625 * 0.9375 / len(both)) ** 0.5

    def test_context_encoder_reads_to_the_last_utterance(self, turns):
        torch.manual_seed(1)
        encoder = ContextEncoder(2, 6, 2, 0.0).double()
        actual = encoder(turns)
        for row, length in enumerate([3, 1]):
            outputs, _ = encoder.gru(turns.vectors[row : row + 1, :length])
            assert torch.allclose(actual[row], outputs[0, -1])
        first = [torch.randn(2, 6, dtype=torch.float64) for _ in range(2)]
        assert (encoder(turns, first) - actual).abs().amax(1).min() > 1e-3


class TestSizes:
    def test_paper(self):
        with torch.device("meta"):
            model = HREDModel(HREDConfig(), 20_000)
        parts = {name: count_parameters(m)["parameters"] for name, m in model.named_children()}
        assert parts == {
            "embedding": 6_000_000,
            "encoder": 7_225_344,
            "context": 2_362_368 + 1_575_936,
            "bridge": 525_312,
            "decoder": 1_250_304 + 1_575_936,
            "output": 10_260_000,
        }
        assert count_parameters(model)["parameters"] == 30_775_200

    @pytest.mark.parametrize("options", ["hidden=0", "recurrent_layers=0", "recurrent_dropout=1"])
    def test_what_cannot_be_built(self, options):
        with pytest.raises(InputError, match=options.split("=")[0]):
            Registry().parse(f"hred[{options}]")

    def test_clip_is_that_of_the_family(self):
        assert HREDConfig().clip == 1.0


class TestEverySystem:
    @pytest.fixture(params=SYSTEMS)
    def system(self, request) -> str:
        return request.param

    @pytest.fixture
    def made(self, system, ready):
        return ready(system, **SIZES)

    def test_shape(self, made):
        model, batch = made
        shape = (8, batch.target.shape[1], model.output.out_features)
        assert model.logits(batch).shape == shape

    def test_causality(self, made):
        model, batch = made
        changed = batch.target.clone()
        changed[:, 4] = torch.where(changed[:, 4] == 7, 8, 7)
        before, after = model.logits(batch), model.logits(replace(batch, target=changed))
        assert torch.allclose(before[:, :5], after[:, :5], rtol=0, atol=1e-12)
        assert (before[:, 5] - after[:, 5]).abs().amax(-1).min() > 1e-6

    def test_no_attention(self, made):
        model, _ = made
        assert not [name for name, _ in model.named_modules() if "attention" in name.lower()]

    def test_padding_changes_nothing(self, made):
        model, batch = made
        turns = batch.turns
        more = pad(turns.tokens, (0, 4, 0, 3), value=PAD)
        more[-3:, :6] = 9  # utterances that nobody said
        padded = with_turns(batch, more, pad(turns.contexts, (0, 2), value=-1))
        assert torch.allclose(model.logits(padded), model.logits(batch), rtol=0, atol=1e-12)
        assert model.loss(padded, 0).total.item() == pytest.approx(
            model.loss(batch, 0).total.item(), abs=1e-12
        )

    def test_target_padding_changes_no_loss(self, made):
        model, batch = made
        target = pad(batch.target, (0, 3), value=PAD)
        real = target.flatten().ne(PAD).nonzero().squeeze(1)
        actual = model.loss(replace(batch, target=target, real=real), 0)
        expected = model.loss(batch, 0)
        for name, value in expected.parts.items():
            assert actual.parts[name].item() == pytest.approx(value.item(), abs=1e-12)

    def test_losses_depend_on_no_other_example(self, made, rows_of):
        model, batch = made
        whole = model.loss(batch, 0).parts
        each = [model.loss(rows_of(batch, torch.tensor([i])), 0).parts for i in range(8)]
        for name, value in whole.items():
            assert sum(part[name].item() for part in each) == pytest.approx(value.item())

    def test_every_word_of_the_context_counts(self, made):
        model, batch = made
        turns, before = batch.turns, model.logits(batch)
        for turn, place in turns.tokens.ne(PAD).nonzero().tolist():
            tokens = turns.tokens.clone()
            tokens[turn, place] = 9 if tokens[turn, place] != 9 else 10
            changed = model.logits(with_turns(batch, tokens, turns.contexts))
            moved = (changed - before).abs().amax((1, 2)) > 1e-10
            assert torch.equal(moved, turns.contexts.eq(turn).any(1))

    def test_order_of_utterances_counts(self, made):
        model, batch = made
        swapped = batch.turns.contexts.clone()
        row = int(swapped[:, 1].ge(0).nonzero()[0])
        swapped[row, :2] = swapped[row, :2].flip(0)
        moved = model.logits(with_turns(batch, batch.turns.tokens, swapped)) - model.logits(batch)
        assert moved.abs().amax((1, 2)).nonzero().flatten().tolist() == [row]

    def test_gradient_reaches_everything(self, system, ready):
        model, batch = ready(system, seed=None, utterance_drop=0.5, **SIZES)
        torch.manual_seed(3)
        model.train().loss(batch, 100).total.backward()
        idle = [name for name, p in model.named_parameters() if p.grad is None or not p.grad.any()]
        assert idle == []
        assert not model.embedding.weight.grad[PAD].any()

    @pytest.mark.parametrize("width", [1, 3])
    def test_cached_steps_equal_one_pass(self, made, width, check_cached_equals_whole):
        check_cached_equals_whole(*made, width)


@pytest.mark.parametrize("system", ["hred", "vhred", "vhcr", "cvae-rnn"])
def test_the_context_is_read_beside_every_word_where_it_is_asked_for(ready, system):
    for option, forgets in (("first", True), ("all", False)):
        model, batch = ready(f"{system}[decoder_context={option}]", **SIZES)
        state = model.start(batch)
        # as if the decoder had forgotten all that it started from
        blank = replace(state, row=[torch.zeros_like(layer) for layer in state.row])
        same = batch.inputs[:1].expand(8, -1)
        apart = model.hidden(blank, same).std(0).amax().item()
        assert (apart == 0) is forgets


@pytest.mark.parametrize("system", ["hred", "vhred", "vhcr", "cvae-rnn"])
def test_an_utterance_is_known_by_the_mean_over_its_words_where_it_is_asked_for(ready, system):
    model, batch = ready(f"{system}[utterance_vector=mean]", **SIZES)
    tokens = pad(batch.turns.tokens, (0, 2), value=PAD)
    read = model.eval().utterances(tokens)
    for row, vector in zip(tokens, read, strict=True):
        alone = row[row.ne(PAD)][None]
        if not alone.numel():  # no turn, but what rounds up their number
            assert not vector.any()
            continue
        outputs, last = model.encoder(model.embedding(alone), alone)
        torch.testing.assert_close(vector, outputs[0].mean(0))
        if alone.shape[1] > 1:
            assert not torch.allclose(vector, last[-1, 0], atol=1e-3)


def test_an_utterance_without_words_is_known_by_zeros(ready):
    model, _ = ready("hred[utterance_vector=mean]", **SIZES)
    assert not model.utterances(torch.full((2, 3), PAD)).any()


@pytest.mark.parametrize("system", ["hred", "vhred", "vhcr", "hred[utterance_vector=mean]"])
def test_eight_pairs_are_learnt_by_heart(ready, learn, system):
    # GloVe's spread, with which utterances differ sooner
    sizes = {**SIZES, "embedding": 32, "hidden": 64, "word_spread": 0.4}
    model, batch = ready(system, precision="float32", **sizes)
    losses = learn(model, batch, [0] * 80)  # at update 0 the KL weighs nothing
    assert losses.total.item() < 0.1
    if system.startswith("hred"):
        expected = [[w for w in row if w not in (PAD, EOS)] for row in batch.target.tolist()]
        assert decode(model, batch, Decoding(), 10) == expected


@pytest.fixture(scope="module")
def trained(build, eight, tmp_path_factory):
    adapters = {}

    def trained(system: str):
        if system not in adapters:
            adapters[system] = build(system, **SIZES)
            run = Run(2, folder=tmp_path_factory.mktemp("run"))
            adapters[system].fit(eight, eight, run)
        return adapters[system]

    return trained


@pytest.mark.parametrize("decoding", DECODINGS)
@pytest.mark.parametrize(
    "system",
    [
        "hred",
        "vhred",
        "vhcr",
        "cvae-rnn",
        "vhred[decoder_context=all]",
        "hred[utterance_vector=mean]",
    ],
)
def test_answers_depend_on_no_batch_and_survive_saving(trained, system, decoding, asked, tmp_path):
    adapter, how, run = trained(system), Decoding.parse(decoding), Run(2)
    answers = adapter.respond(asked, how, run)
    assert adapter.respond(asked[::-1], how, run)[::-1] == answers
    assert [adapter.respond([one], how, run)[0] for one in asked] == answers
    adapter.save(tmp_path)
    loaded = type(adapter).load(tmp_path, replace(adapter.config, answer_batch=100))
    assert loaded.respond(asked, how, run) == answers


@pytest.mark.parametrize("system", ["hred", "vhred", "vhcr", "cvae-rnn"])
def test_a_context_without_words_is_answered(trained, system):
    adapter = trained(system)
    odd = [Context(["Hello."], "a"), Context([], "b"), Context(["", "Well?"], "c")]
    answers = adapter.respond(odd, Decoding(), Run(2))
    assert answers == [adapter.respond([one], Decoding(), Run(2))[0] for one in odd]


@pytest.mark.parametrize("system", ["hred", "vhred", "vhcr", "cvae-rnn"])
def test_bfloat16(build, eight, asked, tmp_path, system):
    adapter = build(system, precision="bfloat16", epochs=15, patience=15, **SIZES)
    adapter.fit(eight, eight, Run(1, folder=tmp_path))
    losses = [row["train_nll"] for row in adapter.curve()]
    assert losses[-1] < 0.9 * losses[0]
    assert {p.dtype for p in adapter.model.parameters()} == {torch.float32}
    for decoding in DECODINGS:
        assert len(adapter.respond(asked, Decoding.parse(decoding), Run(1))) == 8


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_at_the_start_no_difference_between_contexts_is_lost_on_the_way(layers):
    """Else the decoder learns to write from its own words alone, and listens too late if ever."""
    torch.manual_seed(1)
    model = HREDModel(HREDConfig(embedding=64, hidden=96, recurrent_layers=layers), 200).eval()
    random = np.random.default_rng(1)
    words = Vocabulary([f"w{number}" for number in range(100)])
    texts = (" ".join(random.choice(words.words[5:], 8)) for _ in range(64))
    contexts = [Context((text, text)) for text in texts]
    batch = make_batch(encode(contexts, words, 20), np.arange(64), "cpu")
    with torch.no_grad():
        utterances = model.utterances(batch.turns.tokens)
        states = model.start(batch).row
    assert len(states) == layers
    for state in states:
        assert state.std(0).mean() > utterances.std(0).mean()


class TestHRED:
    def test_decoder_starts_from_the_state_after_the_last_utterance(self, ready):
        model, batch = ready("hred")
        turns = batch.turns
        state = model.start(batch)
        for row in range(8):
            said = [int(i) for i in turns.contexts[row] if i >= 0]
            vectors = []
            for i in said:
                words = turns.tokens[i][turns.tokens[i] != PAD][None]
                outputs, _ = model.encoder(model.embedding(words), words)
                vectors.append(torch.cat([outputs[0, -1, :12], outputs[0, 0, 12:]]))
            tops, _ = model.context.gru(torch.stack(vectors)[None])
            first = torch.tanh(model.bridge(tops[0, -1]))
            assert torch.allclose(torch.cat([layer[row] for layer in state.row]), first)

    def test_changed_words_change_states_from_their_utterance_on(self, ready):
        model, batch = ready("hred")
        turns = batch.turns
        row = int(turns.contexts.ge(0).sum(1).argmax())
        said = turns.contexts[row]
        assert said.ge(0).all()
        second = turns.tokens.clone()
        length = int(second[said[1]].ne(PAD).sum())
        second[said[1], :length] = second[said[1], :length].flip(0)
        states = []
        for tokens in (turns.tokens, second):
            conversation = model.conversation(with_turns(batch, tokens, turns.contexts))
            states.append(model.context.gru(conversation.vectors)[0][row])
        assert torch.equal(states[0][0], states[1][0])
        assert (states[0] - states[1])[1:].abs().amax(-1).min() > 1e-6

    def test_each_distinct_utterance_is_read_once(self, ready):
        model, _ = ready("hred")
        data = encode(
            [Context(["a b", "c"], "x"), Context(["a b", "c", "a b"], "y")],
            Vocabulary(["a", "b", "c"]),
            9,
        )
        read = []
        model.encoder.register_forward_hook(lambda _, given, __: read.append(given[1]))
        model.start(make_batch(data, np.array([0, 1]), "cpu"))
        assert [int(tokens.any(1).sum()) for tokens in read] == [2]

    def test_one_turn_is_a_plain_encoder_decoder(self, ready):
        model, batch = ready("hred")
        turns = batch.turns
        last = turns.contexts.gather(1, turns.contexts.ge(0).sum(1, keepdim=True) - 1)
        short = with_turns(batch, turns.tokens, last)
        vectors = model.utterances(turns.tokens[last[:, 0]])
        top, _ = model.context.gru(vectors[:, None])
        hidden, _ = model.decoder(
            model.embedding(batch.inputs),
            list(torch.tanh(model.bridge(top[:, 0])).view(8, 2, 12).unbind(1)),
        )
        assert torch.allclose(model.logits(short), model.output(hidden))

    def test_loss_is_that_of_the_logits(self, ready):
        model, batch = ready("hred")
        logs = model.logits(batch).log_softmax(-1)
        words = [
            logs[row, place, word].item()
            for row, target in enumerate(batch.target.tolist())
            for place, word in enumerate(target)
            if word != PAD
        ]
        losses = model.loss(batch, 0)
        assert losses.total.item() == pytest.approx(-sum(words) / len(words))
        assert (losses.tokens, losses.examples) == (len(words), 8)
