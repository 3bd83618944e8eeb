"""DVS2S and S-DVS2S: what they write with, and what each training changes (eq. 6-14)."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from dialbench_adapters.dvs2s import DVS2S, JointConfig, JointModel, JointStage
from dialbench_adapters.s2sa import S2SA, S2SAModel
from dialbench_adapters.s_dvs2s import SDVS2S, WordsStage

from dialbench.adapter import Progress, Run
from dialbench.errors import InputError, SystemFailed
from dialbench.neural.data import make_batch
from dialbench.neural.decoding import decode
from dialbench.neural.model import count_parameters
from dialbench.records import Decoding
from dialbench.running.plan import Plan, Request
from dialbench.systems import Registry, System
from dialbench.text.tokenizer import tokenize
from dialbench.text.vocabulary import EOS, PAD, SPECIALS

pytestmark = pytest.mark.usefixtures("one_thread")
OPTIONS = {
    "optimiser": "adam",
    "learning_rate": 2e-2,
    "joint_rate": 1e-2,
    "epochs": 3,
    "tags": "closed",
    "function_count": 0,
    "samples": 2,
    "valid_words": 5,
}


@pytest.fixture(scope="module")
def stages(eight, tmp_path_factory):
    """The three trainings, each from the one before: S2SA, word predictor, both jointly."""
    from .conftest import TINY

    base, made = None, {}
    for stage in (S2SA, WordsStage, JointStage):
        adapter = System(stage.name, stage, {}).build({**TINY, **OPTIONS})
        folder = tmp_path_factory.mktemp(stage.name)
        adapter.fit(eight, eight, Run(1, folder=folder, base=base))
        base = made[stage] = adapter
    return made


@pytest.fixture
def fitted(build, eight, stages):
    """A system of so many content words."""

    def fitted(name: str, words: int) -> SDVS2S:
        adapter = build(name, **OPTIONS, content_words=words)
        adapter.fit(eight, eight, Run(1, base=stages[adapter.Stage]))
        return adapter

    return fitted


def batch_of(adapter, split):
    return make_batch(adapter._encode(split), np.arange(len(split)), "cpu", 1, "infer")


@pytest.mark.parametrize(("words", "total"), [(30_000, 236_165_920), (20_000, 166_345_920)])
def test_sizes_if_every_word_had_a_row_in_the_predictor(words, total):
    with torch.device("meta"):
        model = JointModel(JointConfig(), words, [], 1_000)
    assert count_parameters(model.predictor)["parameters"] == (2 * 1024 + 1) * words
    assert count_parameters(model) == {
        "parameters": total,
        "trained_parameters": total,
        "random_parameters": 0,
    }


@pytest.mark.parametrize(
    "option",
    [
        *("samples=0", "joint_rate=0", "valid_words=-1", "content_words=-1", "function_count=-1"),
        "missing_word=no",
    ],
)
def test_what_cannot_be_built(option):
    with pytest.raises(InputError, match=option.split("=")[0]):
        Registry().parse(f"dvs2s[{option}]")


class TestVocabularies:
    @pytest.mark.parametrize("name", ["s-dvs2s", "dvs2s"])
    @pytest.mark.parametrize("decoding", ["greedy", "sample", "top-k:9", "top-p:0.9", "beam:4"])
    def test_every_word_of_an_answer_is_in_the_vocabulary(self, fitted, eight, name, decoding):
        adapter = fitted(name, 3)
        batch, model = batch_of(adapter, eight), adapter.model.eval()
        held = model.vocabularies(batch).tolist()
        answers = decode(model, batch, Decoding.parse(decoding), 10)
        assert all(set(words) <= set(own) for words, own in zip(answers, held, strict=True))
        assert any(answers)
        # Each has a vocabulary of its own.
        assert len({tuple(own) for own in held}) > 1

    def test_function_words_are_always_in_and_never_predicted(self, fitted, eight):
        adapter = fitted("dvs2s", 3)
        function = adapter.function_numbers
        words = set(adapter.function_words)
        assert words >= {*SPECIALS, ".", "?", ",", "she", "it", "at"}
        assert words.isdisjoint({"soup", "opens", "always", "new", "is"})
        assert adapter.model.predictor.odds.out_features == len(adapter.vocabulary) - len(function)
        for held in adapter.model.vocabularies(batch_of(adapter, eight)).tolist():
            assert len(held) == len(set(held)) == len(function) + 3
            assert set(held) >= set(function)

    def test_with_no_content_words_only_function_words_are_written(self, fitted, asked):
        adapter = fitted("dvs2s", 0)
        for decoding in ("sample", "beam:4"):
            answers = adapter.respond(asked, Decoding.parse(decoding), Run(1))
            written = {word for answer in answers for word in tokenize(answer)}
            assert written
            assert written <= set(adapter.function_words)

    def test_with_all_content_words_it_is_s2sa(self, fitted, eight):
        adapter = fitted("dvs2s", 10_000)
        plain = S2SAModel(adapter.config, len(adapter.vocabulary)).double().eval()
        weights = adapter.model.state_dict()
        plain.load_state_dict({name: weights[name] for name in plain.state_dict()})
        batch = batch_of(adapter, eight)
        assert torch.allclose(adapter.model.eval().logits(batch), plain.logits(batch))
        for decoding in map(Decoding.parse, ("greedy", "sample", "beam:4")):
            assert decode(adapter.model, batch, decoding, 10) == decode(plain, batch, decoding, 10)
        # and the joint loss is that of S2SA, as no word is missing
        ours, theirs = adapter.model.loss(batch, 0), plain.loss(batch, 0)
        assert ours.total.item() == pytest.approx(theirs.total.item())
        assert float(ours.parts["missing"]) == 0

    @pytest.mark.parametrize("width", [1, 3])
    def test_cached_steps_equal_one_pass(self, fitted, eight, width, check_cached_equals_whole):
        adapter = fitted("dvs2s", 3)
        check_cached_equals_whole(adapter.model.eval(), batch_of(adapter, eight), width)

    def test_probabilities_within_are_those_of_s2sa_shared_out_anew(self, fitted, eight):
        adapter = fitted("dvs2s", 3)
        batch = batch_of(adapter, eight)
        within = adapter.model.eval().logits(batch).softmax(-1)
        adapter.model.words = 10_000
        whole = adapter.model.logits(batch).softmax(-1)
        kept = whole * within.gt(0)
        assert torch.allclose(within, kept / kept.sum(-1, keepdim=True))

    def test_answers_depend_on_no_batch_and_survive_saving(self, fitted, asked, tmp_path):
        adapter, how = fitted("dvs2s", 4), Decoding.parse("beam:3")
        answers = adapter.respond(asked, how, Run(1))
        assert [adapter.respond([one], how, Run(1))[0] for one in asked] == answers
        adapter.save(tmp_path)
        assert DVS2S.load(tmp_path, adapter.config).respond(asked, how, Run(1)) == answers
        listed = json.loads((tmp_path / "function_words.json").read_text(encoding="utf-8"))
        assert tuple(listed) == adapter.function_words

    def test_a_damaged_list_of_function_words_is_told(self, fitted, tmp_path):
        adapter = fitted("dvs2s", 4)
        adapter.save(tmp_path)
        (tmp_path / "function_words.json").write_text('{"the": 1}')
        with pytest.raises(InputError, match=r"function_words\.json.*not a list of strings"):
            DVS2S.load(tmp_path, adapter.config)


class TestTraining:
    def test_the_predictor_learns_alone(self, stages):
        before, after = (stages[s].model.state_dict() for s in (S2SA, WordsStage))
        for name, weight in before.items():
            assert torch.equal(after[name], weight)
        losses = [row["valid_words"] for row in stages[WordsStage].curve()]
        assert losses[-1] < losses[0]

    def test_then_everything_learns(self, stages):
        before, after = (stages[s].model.state_dict() for s in (WordsStage, JointStage))
        moved = {
            name for name, w in before.items() if name in after and not torch.equal(after[name], w)
        }
        assert moved == set(before)
        assert stages[JointStage].model.baseline < 0
        assert {"valid_missing_per_example", "train_missing_per_example"} < set(
            stages[JointStage].curve()[0]
        )

    def test_the_loss_of_the_predictor_is_that_of_each_content_word(self, stages, eight):
        adapter = stages[WordsStage]
        batch = batch_of(adapter, eight)
        model = adapter.model
        beta = model.predictor(model.encode(batch)[1][-1]).sigmoid().detach()
        content = model.predictor.content.tolist()
        logs = [
            torch.log(beta[row, place] if word in target else 1 - beta[row, place])
            for row, target in enumerate(batch.target.tolist())
            for place, word in enumerate(content)
        ]
        losses = model.loss(batch, 0)
        assert losses.total.item() == pytest.approx(-float(sum(logs)) / len(batch.real))

    def test_joint_training_has_a_rate_of_its_own(self, stages, eight, tmp_path):
        adapter = stages[JointStage]
        data = adapter._encode(eight)
        trainer = adapter.trainer(adapter.model, data, data, Run(1, folder=tmp_path))
        assert trainer.config.learning_rate == 1e-2
        assert stages[WordsStage].training_config().learning_rate == 2e-2

    def test_a_resumed_joint_training_ends_in_the_same_bits(self, build, eight, stages, tmp_path):
        again = JointStage(stages[JointStage].config)
        run = Run(1, folder=tmp_path, base=stages[WordsStage])
        short = JointStage(type(again.config)(**{**vars(again.config), "epochs": 2}))
        short.fit(eight, eight, run)
        again.fit(eight, eight, run)
        whole = stages[JointStage]
        assert again.curve() == whole.curve()
        for name, weight in whole.model.state_dict().items():
            assert torch.equal(weight, again.model.state_dict()[name])

    def test_eight_pairs_and_their_words_are_learnt_jointly(self, build, eight, stages, learn):
        sizes = {"embedding": 32, "hidden": 32, "precision": "float32"}
        adapter = build("dvs2s", **{**OPTIONS, **sizes, "samples": 4}, content_words=12)
        known = stages[JointStage]
        adapter.vocabulary, adapter.function_words = known.vocabulary, known.function_words
        model, batch = adapter._new_model(Run(1)), batch_of(adapter, eight)
        before = model.eval().loss(batch, 0).parts["missing"]
        learn(model.train(), batch, range(120))
        assert model.eval().loss(batch, 0).parts["missing"] < before / 2
        model.words = 10_000
        expected = [[w for w in row if w not in (PAD, EOS)] for row in batch.target.tolist()]
        assert decode(model, batch, Decoding(), 10) == expected

    def test_bfloat16_moves_costs_by_no_more_than_its_precision(self, ready):
        model, batch = ready("dvs2s[content_words=9]", precision="float32")
        with torch.no_grad():
            plain = model.loss(batch, 0)
            with torch.autocast("cpu", torch.bfloat16):
                coarse = model.loss(batch, 0)
        assert coarse.total.dtype == torch.float32
        assert coarse.parts["missing"] == plain.parts["missing"]
        assert coarse.total.item() == pytest.approx(plain.total.item(), rel=2**-7)

    @pytest.mark.parametrize("kind", [WordsStage, JointStage, SDVS2S, DVS2S])
    def test_without_the_training_before_it_cannot_learn(self, kind, eight, tmp_path):
        with pytest.raises(SystemFailed, match="to start from"):
            kind().fit(eight, eight, Run(1, folder=tmp_path))

    def test_the_closed_list_is_noted_where_there_is_no_tagger(
        self, eight, stages, tmp_path, monkeypatch
    ):
        from dialbench_adapters.text_models import tagger

        texts = []

        class Noted(Progress):
            def warn(self, text: str) -> None:
                texts.append(text)

        monkeypatch.setattr(tagger, "find", lambda data: None)
        config = type(stages[WordsStage].config)(
            **{**vars(stages[WordsStage].config), "tags": "auto", "epochs": 1}
        )
        run = Run(1, folder=tmp_path, base=stages[S2SA], progress=Noted())
        WordsStage(config).fit(eight, eight, run)
        [text] = [text for text in texts if "closed list" in text]
        assert "dialbench fetch nltk" in text


class TestLikelihood:
    @pytest.mark.parametrize(("name", "words"), [("s-dvs2s", 3), ("dvs2s", 3), ("dvs2s", 10_000)])
    def test_the_loss_told_is_of_responses_within_their_vocabularies(
        self, fitted, eight, name, words
    ):
        adapter = fitted(name, words)
        batch = batch_of(adapter, eight)
        with torch.no_grad():
            logs = adapter.model.eval().logits(batch).log_softmax(-1)
        own = logs.gather(2, batch.target[:, :, None])[:, :, 0][batch.target.ne(PAD)]
        floor = -np.log(len(adapter.vocabulary))
        expected = -own.masked_fill(own.isinf(), floor).mean().item()
        assert adapter.history.best["valid_loss"] == pytest.approx(expected)
        assert adapter.curve()[-1] == adapter.history.best

    def test_a_predictor_tells_none(self, stages):
        facts, curve = stages[WordsStage].facts(), stages[WordsStage].curve()
        assert "context_gain" not in facts
        assert not any(key.endswith(("loss", "nll")) for row in curve for key in row)

    def test_its_context_gain_is_that_of_its_responses(self, fitted, eight):
        adapter = fitted("s-dvs2s", 10_000)
        plain = S2SAModel(adapter.config, len(adapter.vocabulary)).double().eval()
        weights = adapter.model.state_dict()
        plain.load_state_dict({name: weights[name] for name in plain.state_dict()})
        half = len(eight) // 2
        mixed = [
            replace(own, context=other.context)
            for own, other in zip(eight, [*eight[half:], *eight[:half]], strict=True)
        ]
        right, wrong = (
            plain.loss(batch_of(adapter, type(eight)("valid", examples)), 0).total.item()
            for examples in (eight[:], mixed)
        )
        assert adapter.facts()["context_gain"] == pytest.approx(wrong - right)


class TestCoverage:
    def test_it_grows_with_the_vocabulary_to_everything_known(self, fitted, eight):
        sizes = [0, 1, 3, 6, 12, 10_000]
        actual = [fitted("dvs2s", words).coverage(eight, Run(1)) for words in sizes]
        recalls = [coverage.recall for coverage in actual]
        assert recalls == sorted(recalls)
        assert 0 < recalls[0] < recalls[-1] == actual[-1].recall_known == 1.0

    def test_words_not_known_can_never_be_covered(self, build, eight, stages):
        adapter = build("dvs2s", **OPTIONS, content_words=10_000)
        adapter.fit(eight, eight, Run(1, base=stages[JointStage]))
        (one,) = eight[:1]
        other = type(one)("x", "x", one.context, ("It opens at zebra.",))
        coverage = adapter.coverage(type(eight)("valid", [other]), Run(1))
        assert coverage.recall == pytest.approx(4 / 5)
        assert coverage.recall_known == 1.0

    def test_it_is_a_fact_and_ends_the_curve(self, fitted, eight, stages):
        adapter = fitted("s-dvs2s", 3)
        coverage = adapter.coverage(eight, Run(1))
        facts, last = adapter.facts(), adapter.curve()[-1]
        assert facts["valid_word_recall"] == last["valid_word_recall"] == coverage.recall
        assert facts["content_words"] == 3
        assert facts["function_words"] == len(adapter.function_words)
        assert "valid_word_recall" not in stages[WordsStage].curve()[-1]


def test_rows_of_several_sizes_share_one_training():
    models = "s2sa,s-dvs2s,dvs2s,dvs2s[content_words=0],dvs2s[content_words=50]"
    plan = Plan.of(Request(models=models, limit_train=20, limit_test=2))
    s2sa, apart, *joint = plan.tasks
    assert len({task.job.training_fingerprint for task in joint}) == 3
    assert len({task.base.job.training_fingerprint for task in joint}) == 1
    below = joint[0].base.base
    assert below.job.training_fingerprint == apart.base.job.training_fingerprint
    assert below.base.job.training_fingerprint == s2sa.job.training_fingerprint
