"""Words from probabilities, against hand-made distributions and an exhaustive search."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest
import torch

from dialbench.neural import decoding as module
from dialbench.neural.data import encode, make_batch
from dialbench.neural.decoding import beam_search, choose, decode
from dialbench.neural.devices import autocast
from dialbench.neural.model import State
from dialbench.records import Context, Decoding
from dialbench.text.vocabulary import BOS, EOS, PAD, SEP, UNK

V = 10
EVERY = ["greedy", "sample:t=0.7", "top-k:3", "top-p:0.8", "beam:3", "top-k:3+no-repeat:2"]
EVERY += ["beam:3+length:0.6+no-repeat:2"]


@pytest.fixture
def model(hashed):
    return hashed(V).eval()


def log_probabilities(model, context: int, prefix: Sequence[int]) -> torch.Tensor:
    """Of every next word, computed without a state."""
    code = torch.tensor(context)
    for token in (BOS, *prefix):
        code = model.fold(code, torch.tensor(token))
    logits = model.table[code] + model.table[(code + context) % 997]
    logits[[PAD, UNK, BOS, SEP]] = -math.inf
    return logits.log_softmax(-1)


def answers(model, questions, text, rows=None, seed=1, limit=12):
    rows = np.arange(len(questions)) if rows is None else np.array(rows)
    batch = make_batch(questions, rows, "cpu", seed, "infer")
    return decode(model, batch, Decoding.parse(text), limit)


def grid(count: int) -> torch.Tensor:
    """Evenly spread draws, so that frequencies are probabilities to 1 / count."""
    return (torch.arange(count, dtype=torch.float64) + 0.5) / count


def frequencies(probabilities: list[float], text: str, count: int = 10_000) -> list[float]:
    logits = torch.tensor(probabilities, dtype=torch.float64).log().expand(count, -1)
    chosen = choose(logits, Decoding.parse(text), grid(count))
    return (torch.bincount(chosen, minlength=len(probabilities)) / count).tolist()


class TestChoose:
    MASSES = (0.15, 0.5, 0.05, 0.3)

    def test_plain_sampling(self):
        assert frequencies(self.MASSES, "sample") == pytest.approx(self.MASSES, abs=2e-4)

    @pytest.mark.parametrize("temperature", [0.5, 2.0])
    def test_temperature(self, temperature):
        powers = [mass ** (1 / temperature) for mass in self.MASSES]
        expected = [power / sum(powers) for power in powers]
        text = f"sample:t={temperature}"
        assert frequencies(self.MASSES, text) == pytest.approx(expected, abs=2e-4)

    @pytest.mark.parametrize(
        ("p", "kept"),
        [
            (0.4, {1}),
            (0.5, {1}),
            (0.51, {1, 3}),  # the word that crosses p is kept
            (0.79, {1, 3}),
            (0.81, {1, 3, 0}),
            (1.0, {0, 1, 2, 3}),
        ],
    )
    @pytest.mark.parametrize("head", [1, 2, 1_024])
    def test_nucleus(self, monkeypatch, p, kept, head):
        monkeypatch.setattr(module, "_LIKELIEST", head)
        total = sum(self.MASSES[word] for word in kept)
        expected = [m / total if word in kept else 0.0 for word, m in enumerate(self.MASSES)]
        assert frequencies(self.MASSES, f"top-p:{p}") == pytest.approx(expected, abs=2e-4)

    def test_equal_words_share_a_nucleus_of_the_smallest_size(self):
        actual = frequencies([0.25] * 4, "top-p:0.5")
        assert sorted(actual) == pytest.approx([0, 0, 0.5, 0.5], abs=2e-4)

    @pytest.mark.parametrize("k", [1, 2, 3, 4, 100])
    def test_top_k(self, k):
        kept = sorted(self.MASSES, reverse=True)[:k]
        expected = [mass / sum(kept) if mass in kept else 0.0 for mass in self.MASSES]
        assert frequencies(self.MASSES, f"top-k:{k}") == pytest.approx(expected, abs=2e-4)

    @pytest.mark.parametrize("text", ["sample", "top-k:3", "top-p:0.99"])
    def test_extreme_draws_fall_on_words_that_can_be_chosen(self, text):
        logits = torch.tensor([[-math.inf, 0.0, -math.inf, 1.0, 0.5, -math.inf]])
        for draw in (0.0, 1 - 2**-53):
            draws = torch.tensor([draw], dtype=torch.float64)
            assert choose(logits, Decoding.parse(text), draws).item() in (1, 3, 4)


class TestOneByOne:
    def test_greedy_takes_the_best_word_until_the_end(self, model, questions):
        for row, answer in enumerate(answers(model, questions, "greedy")):
            context = model.code_of(questions.source.padded(np.array([row]))[0].tolist())
            expected = []
            while len(expected) < 12:
                word = int(log_probabilities(model, context, expected).argmax())
                if word == EOS:
                    break
                expected.append(word)
            assert answer == expected

    @pytest.mark.parametrize("size", [1, 2, 3])
    def test_what_may_not_be_repeated_gives_way_to_the_next_best(self, model, questions, size):
        actual = answers(model, questions, f"greedy+no-repeat:{size}", limit=30)
        for row, words in enumerate(actual):
            context = model.code_of([t for t in questions.source.padded(np.array([row]))[0] if t])
            expected: list[int] = []
            while len(expected) < 30:
                ranked = log_probabilities(model, context, expected).argsort(descending=True)
                best = next(w for w in ranked.tolist() if not repeats([*expected, w], size))
                if best == EOS:
                    break
                expected.append(best)
            assert words == expected

    def test_answers_are_of_several_lengths(self, model, questions):
        # else the tests below prove little
        lengths = {len(answer) for answer in answers(model, questions, "greedy")}
        assert len(lengths) > 2

    @pytest.mark.parametrize("text", ["beam:1", "top-k:1", "sample:t=1e-6", "top-p:1e-9"])
    def test_what_equals_greedy(self, model, questions, text):
        assert answers(model, questions, text) == answers(model, questions, "greedy")

    @pytest.mark.parametrize("text", EVERY)
    def test_batch_size_and_order_change_nothing(self, model, questions, text):
        together = answers(model, questions, text)
        backwards = answers(model, questions, text, range(11, -1, -1))
        assert backwards[::-1] == together
        assert [answers(model, questions, text, [row])[0] for row in range(12)] == together

    @pytest.mark.parametrize("text", EVERY)
    @pytest.mark.parametrize("drop", [True, False])
    def test_dropping_what_has_finished_changes_nothing(
        self, monkeypatch, model, questions, text, drop
    ):
        usual = answers(model, questions, text)
        monkeypatch.setattr(module, "_should_drop_finished", lambda going, total: drop)
        assert answers(model, questions, text) == usual

    @pytest.mark.parametrize("text", EVERY[1:4])
    def test_the_seed_decides(self, model, questions, text):
        assert answers(model, questions, text) == answers(model, questions, text)
        assert answers(model, questions, text) != answers(model, questions, text, seed=2)

    def test_contexts_alike_get_words_of_their_own(self, model, few_words):
        data = encode([Context(["w1 w2"], str(i)) for i in range(20)], few_words, 9)
        assert len(set(map(tuple, answers(model, data, "sample")))) > 10
        assert len(set(map(tuple, answers(model, data, "greedy")))) == 1

    @pytest.mark.parametrize("text", EVERY)
    def test_specials_are_never_written(self, model, questions, text):
        model.table[:, [PAD, UNK, BOS, SEP]] = 50.0
        for answer in answers(model, questions, text):
            assert set(answer) <= set(range(5, V))

    @pytest.mark.parametrize("text", EVERY)
    @pytest.mark.parametrize("limit", [1, 2, 7])
    def test_limit(self, model, questions, text, limit):
        model.table[:, EOS] = -50.0
        assert {len(a) for a in answers(model, questions, text, limit=limit)} == {limit}

    @pytest.mark.parametrize("text", EVERY)
    def test_empty_response_stays_empty(self, model, questions, text):
        model.table[:, EOS] = 50.0
        assert answers(model, questions, text) == [[]] * 12

    def test_it_stops_when_all_have_ended(self, model, questions):
        steps = []
        step = model.step
        model.step = lambda tokens, state: steps.append(len(tokens)) or step(tokens, state)
        longest = max(map(len, answers(model, questions, "sample", limit=200)))
        assert longest < 200
        assert len(steps) == longest + 1
        assert steps[-1] < 12


def repeats(words: Sequence[int], size: int) -> bool:
    """Whether some `size` words in a row occur twice."""
    rows = [tuple(words[i : i + size]) for i in range(len(words) - size + 1)]
    return len(set(rows)) < len(rows)


def all_hypotheses(model, context: int, limit: int) -> dict[tuple[int, ...], float]:
    """Every response of at most `limit` tokens, EOS counted, and its score."""
    scores = {}
    for length in range(limit + 1):
        for words in product(range(5, V), repeat=length):
            ends = length < limit
            total = sum(
                log_probabilities(model, context, words[:i])[word].item()
                for i, word in enumerate((*words, EOS) if ends else words)
            )
            scores[words] = total / (length + ends)
    return scores


class TestBeam:
    LIMIT = 3

    @pytest.mark.parametrize("seed", [0, 1, 2])
    def test_wide_beam_is_exhaustive(self, hashed, questions, seed):
        model = hashed(V, seed)
        batch = make_batch(questions, np.arange(4), "cpu", 1, "infer")
        actual = beam_search(model, batch, 200, self.LIMIT)
        for row, hypotheses in enumerate(actual):
            expected = all_hypotheses(model, model.code_of(self.words(batch, row)), self.LIMIT)
            assert {h.tokens: h.score for h in hypotheses} == pytest.approx(expected)
            assert hypotheses[0].tokens == max(expected, key=expected.__getitem__)

    def words(self, batch, row) -> list[int]:
        return [token for token in batch.source[row].tolist() if token != PAD]

    @pytest.mark.parametrize("width", [1, 2, 5])
    def test_n_best(self, model, questions, width):
        batch = make_batch(questions, np.arange(12), "cpu", 1, "infer")
        for row, hypotheses in enumerate(beam_search(model, batch, width, 6)):
            assert 1 <= len(hypotheses) <= width
            assert len({h.tokens for h in hypotheses}) == len(hypotheses)
            scores = [h.score for h in hypotheses]
            assert scores == sorted(scores, reverse=True)
            for h in hypotheses:
                # what is claimed is what the model says of these words
                ended = (*h.tokens, EOS) if h.length > len(h.tokens) else h.tokens
                context = model.code_of(self.words(batch, row))
                parts = [
                    log_probabilities(model, context, ended[:i])[word].item()
                    for i, word in enumerate(ended)
                ]
                assert h.length == len(ended) <= 6
                assert h.log_probability == pytest.approx(sum(parts))

    @pytest.mark.parametrize("power", [0.0, 0.6, 2.0])
    def test_length_penalty(self, model, questions, power):
        batch = make_batch(questions, np.arange(4), "cpu", 1, "infer")
        decoding = Decoding.parse(f"beam:200+length:{power}")
        for row, hypotheses in enumerate(beam_search(model, batch, 200, self.LIMIT, decoding)):
            plain = all_hypotheses(model, model.code_of(self.words(batch, row)), self.LIMIT)
            lengths = {words: len(words) + (len(words) < self.LIMIT) for words in plain}
            expected = {w: plain[w] * lengths[w] / lengths[w] ** power for w in plain}
            assert {h.tokens: h.score for h in hypotheses} == pytest.approx(expected)
            assert hypotheses[0].tokens == max(expected, key=expected.__getitem__)
            assert decode(model, batch, decoding, self.LIMIT)[row] == list(hypotheses[0].tokens)

    @pytest.mark.parametrize("size", [1, 2])
    def test_what_may_not_be_repeated_is_in_no_hypothesis(self, model, questions, size):
        batch = make_batch(questions, np.arange(4), "cpu", 1, "infer")
        decoding = Decoding.parse(f"beam:200+no-repeat:{size}")
        for row, hypotheses in enumerate(beam_search(model, batch, 200, self.LIMIT, decoding)):
            every = all_hypotheses(model, model.code_of(self.words(batch, row)), self.LIMIT)
            expected = {w: score for w, score in every.items() if not repeats(w, size)}
            assert len(expected) < len(every)
            assert {h.tokens: h.score for h in hypotheses} == pytest.approx(expected)

    def test_a_beam_finds_what_greedy_misses(self, questions, hashed):
        total = {1: 0.0, 8: 0.0}
        for seed in range(5):
            batch = make_batch(questions, np.arange(12), "cpu", 1, "infer")
            for width in total:
                actual = beam_search(hashed(V, seed), batch, width, 5)
                total[width] += sum(hypotheses[0].score for hypotheses in actual)
        assert total[8] > total[1]

    def test_ranks_by_log_probability_per_token(self, hashed, few_words):
        # two responses: EOS at once (0.4), or w0 (0.6) then EOS (0.6): 0.36 for two tokens
        model = hashed(V)
        model.table = torch.full((997, V), -1e9, dtype=torch.float64)
        data = encode([Context(["w0"], "x")], few_words, 9)
        start = model.fold(torch.tensor(model.code_of([5])), torch.tensor(BOS))
        after = model.fold(start, torch.tensor(5))
        third = model.fold(after, torch.tensor(5))
        context = model.code_of([5])
        for code, end in [(start, 0.4), (after, 0.6), (third, 1 - 1e-9)]:
            half = torch.tensor([end, 1 - end], dtype=torch.float64).log()
            model.table[code, [EOS, 5]] = half
            model.table[(code + context) % 997, [EOS, 5]] = 0.0
        batch = make_batch(data, np.array([0]), "cpu", 1, "infer")
        best, second = beam_search(model, batch, 2, 4)[0]
        assert (best.tokens, second.tokens) == ((5,), ())
        assert best.score == pytest.approx(math.log(0.36) / 2)
        assert second.score == pytest.approx(math.log(0.4))

    def test_short_improbable_hypotheses_crowd_nothing_out(self, hashed, few_words):
        # w0 w0 w0 EOS is nearly certain; EOS is the runner-up at every step before.
        model = hashed(V)
        model.table = torch.full((997, V), -1e9, dtype=torch.float64)
        data = encode([Context(["w0"], "x")], few_words, 9)
        context = model.code_of([5])
        code = torch.tensor(context)
        for word, end in [(BOS, 1e-4), (5, 1e-4), (5, 1e-4), (5, 1 - 1e-4)]:
            code = model.fold(code, torch.tensor(word))
            model.table[code, [EOS, 5]] = torch.tensor([end, 1 - end], dtype=torch.float64).log()
            model.table[(code + context) % 997, [EOS, 5]] = 0.0
        batch = make_batch(data, np.array([0]), "cpu", 1, "infer")
        assert beam_search(model, batch, 3, 6)[0][0].tokens == (5, 5, 5)


class TestState:
    def state(self) -> State:
        example = {"memory": [torch.arange(3)[:, None]], "draws": None}
        return State(example, (torch.arange(3.0), [torch.arange(3) * 10]), length=4, shared="s")

    def test_widen_reorder_keep(self):
        wide = self.state().widen(2)
        assert wide.width == 2
        assert wide.row[0].tolist() == [0, 0, 1, 1, 2, 2]
        assert wide.example["memory"][0].tolist() == [[0], [1], [2]]
        moved = wide.reorder(torch.tensor([1, 1, 3, 2, 5, 5]))
        assert moved.row[1][0].tolist() == [0, 0, 10, 10, 20, 20]
        kept = wide.keep(torch.tensor([2, 0]))
        assert kept.row[1][0].tolist() == [20, 20, 0, 0]
        assert kept.example["memory"][0].tolist() == [[2], [0]]
        assert kept.example["draws"] is None
        assert (kept.width, kept.length, kept.shared) == (2, 4, "s")


@pytest.mark.parametrize("how", ["greedy", "beam:2"])
def test_in_mixed_precision_weights_are_cast_once_an_answer(bigram, questions, how):
    model = bigram(V, 4).eval()
    with torch.no_grad():
        model.output.bias[EOS] = -torch.inf
    batch = make_batch(questions, np.arange(len(questions)), "cpu")
    casts = []
    for limit in (2, 9):
        with (
            autocast("cpu", torch.bfloat16),
            torch.profiler.profile(record_shapes=True) as profile,
        ):
            answered = decode(model, batch, Decoding.parse(how), limit)
        assert {len(words) for words in answered} == {limit}
        actual = profile.key_averages(group_by_input_shape=True)
        casts.append(
            sum(e.count for e in actual if e.key == "aten::copy_" and e.input_shapes[0] == [V, 4])
        )
    assert casts == [1, 1]
