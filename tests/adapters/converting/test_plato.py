"""PLATO's own archive, converted: the same numbers as its equations give on its own tensors."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from dialbench_adapters.plato import Plato, PlatoNoLatent
from dialbench_adapters.pretrained import converted

from dialbench.adapter import Run
from dialbench.errors import InputError
from dialbench.neural.data import Batch
from dialbench.records import Decoding
from dialbench.text.vocabulary import BOS, EOS, SEP, SPECIALS

from .archives import PLATO_PIECES, plato_tensors, write_pieces, write_plato, write_variables

pytestmark = pytest.mark.usefixtures("one_thread")

ROOT = "Model/UnifiedTransformer_0"
UNUSED_0, UNUSED_1 = 1, 2


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The archive's tensors, and the folders of the archive and of what became of it."""
    source, out = tmp_path_factory.mktemp("plato"), tmp_path_factory.mktemp("out") / "plato"
    tensors = plato_tensors()
    write_plato(source, tensors)
    out.mkdir()
    Plato.convert(source, out)
    return tensors, source, out


class Reference:
    """PLATO's equations on its authors' tensors, token by token."""

    def __init__(self, tensors, heads=2):
        self.t = {name: torch.from_numpy(array.astype("f8")) for name, array in tensors.items()}
        self.heads = heads

    def __getitem__(self, name):
        return self.t[f"{ROOT}{name}"]

    def norm(self, x, name):
        mean, variance = x.mean(-1, keepdim=True), x.var(-1, unbiased=False, keepdim=True)
        return (x - mean) / (variance + 1e-12).sqrt() * self[f"{name}.w_0"] + self[f"{name}.b_0"]

    def fc(self, x, name):
        return x @ self[f"{name}.w_0"] + self[f"{name}.b_0"]

    def embed(self, tokens, places, roles, turns):
        tables = [self[f"/Embedder_0/Embedding_{k}.w_0"] for k in range(4)]
        indices = (tokens, places, roles, turns)
        return sum(
            table[index] for table, index in zip(tables, map(torch.tensor, indices), strict=True)
        )

    def run(self, x, mask):
        """(L, n) under a mask (L, L) of what each row sees."""
        n, L = x.shape[1], len(x)
        for number in range(2):
            block = f"/TransformerBlock_{number}"
            parts = self.fc(x, f"{block}/MultiheadAttention_0/FC_0").split(n, -1)
            q, k, v = (part.view(L, self.heads, -1).transpose(0, 1) for part in parts)
            scores = q @ k.transpose(1, 2) / math.sqrt(n // self.heads)
            mixed = scores.masked_fill(~mask, -1e10).softmax(-1) @ v
            mixed = mixed.transpose(0, 1).reshape(L, n)
            mixed = self.fc(mixed, f"{block}/MultiheadAttention_0/FC_1")
            x = self.norm(x + mixed, f"{block}/LayerNorm_0")
            inner = F.gelu(self.fc(x, f"{block}/FeedForward_0/FC_0"))
            x = self.norm(x + self.fc(inner, f"{block}/FeedForward_0/FC_1"), f"{block}/LayerNorm_1")
        return x

    def sequence(self, turns, response):
        """(L, n) of context and response, and where the response begins."""
        tokens, places, roles, numbers = [], [], [], []
        for number, turn in enumerate(turns):
            back = len(turns) - number
            tokens += [*turn, UNUSED_1]
            places += range(len(turn) + 1)
            numbers += [back] * (len(turn) + 1)
            roles += [back % 2] * (len(turn) + 1)
        start = len(tokens)
        T = len(response)
        context = tokens + response, [*places, *range(T)], roles + [0] * T, numbers + [0] * T
        return self.norm(self.embed(*context), "/LayerNorm_0"), start

    def write(self, turns, response, value):
        """Logits (T, V) of a response behind a latent value, and of its bag (V,)."""
        x, start = self.sequence(turns, response)
        head = self.norm(self[".latent_embeddings"][value], "/LayerNorm_0")
        x = torch.cat([head[None], x])
        L, start = len(x), start + 1
        mask = torch.ones(L, L, dtype=torch.bool).tril()
        mask[:start, :start] = True
        x = self.run(x, mask)
        words = self["/Embedder_0/Embedding_0.w_0"]
        return x[start:] @ words.T, x[0] @ self[".bow_predictor/FC_0.w_0"]

    def understand(self, turns, response):
        """log q(z) (K,) and log odds that the response fits."""
        x, _ = self.sequence(turns, response)
        mask_embed = self.norm(self[".mask_embed"].flatten(), "/LayerNorm_0")
        x = torch.cat([mask_embed[None], x])
        summary = self.run(x, torch.ones(len(x), len(x), dtype=torch.bool))[0]
        logs = (summary @ self[".post_network/FC_0.w_0"]).log_softmax(-1)
        return logs, self.fc(summary, ".discriminator/FC_0")[0]


def model_of(build, out, **options):
    adapter = build(f"plato[weights={out},tune=false]", **options)
    return adapter, adapter.build_model(0).double().eval()


TURNS = [[9, 12, 30], [8], [22, 11, 10, 9]]
RESPONSE = [UNUSED_0, 15, 7, 33]


def batch():
    shift = len(SPECIALS)
    source = []
    for turn in TURNS:
        source += [number + shift for number in turn] + [SEP]
    target = [number + shift for number in RESPONSE[1:]] + [EOS]
    tensors = torch.tensor([source[:-1]]), torch.tensor([target])
    return Batch(("a",), *tensors, torch.arange(4))


class TestSameNumbers:
    @pytest.mark.parametrize("value", [0, 2])
    def test_words_and_bag(self, made, build, value):
        tensors, _, out = made
        _, model = model_of(build, out)
        logits, bag = Reference(tensors).write(TURNS, RESPONSE, value)
        with torch.no_grad():
            head = model.values.weight[value][None]
            hidden, first = model.write(
                *model.context(batch()), model.response(batch().inputs), head
            )
            ours, our_bag = model.output(hidden)[0], model.bag(first)[0]
        shift = len(SPECIALS)
        texts = list(range(7, len(PLATO_PIECES)))  # what is no special token
        assert torch.allclose(ours[:, [n + shift for n in texts]], logits[:, texts], atol=1e-5)
        assert torch.allclose(ours[:, EOS], logits[:, UNUSED_1], atol=1e-5)
        assert ours[:, [0, 1, BOS, SEP, *(n + shift for n in range(7))]].max() < -1e20
        assert torch.allclose(our_bag[shift:], bag, atol=1e-5)
        assert our_bag[EOS].item() == pytest.approx(bag[UNUSED_1].item(), abs=1e-5)

    def test_steps(self, made, build):
        tensors, _, out = made
        _, model = model_of(build, out)
        logits, _ = Reference(tensors).write(TURNS, RESPONSE, 1)
        with torch.no_grad():
            state = model.begin(batch(), model.values.weight[1][None])
            for place, token in enumerate([BOS, *(n + 5 for n in RESPONSE[1:])]):
                ours, state = model.step(torch.tensor([token]), state)
                assert torch.allclose(ours[0, 12:], logits[place, 7:], atol=1e-5)

    def test_posterior_and_coherence(self, made, build):
        tensors, _, out = made
        _, model = model_of(build, out)
        logs, odds = Reference(tensors).understand(TURNS, RESPONSE)
        with torch.no_grad():
            inputs = batch().inputs
            summary = model.understand(
                *model.context(batch()), model.response(inputs), inputs.ne(-1)
            )
            assert torch.allclose(model.recognition(summary)[0].log_softmax(-1), logs, atol=1e-5)
            assert model.coherence(summary).item() == pytest.approx(odds.item(), abs=1e-5)


class TestSystem:
    def test_sizes_come_from_the_archive(self, made, build, eight):
        _, _, out = made
        adapter = build(f"plato[weights={out},tune=false]", values=7, layers=5)
        adapter.fit(eight, eight, Run(1))
        assert adapter.title(adapter.config) == "PLATO (zero-shot)"
        assert adapter.model.config.values == 3
        assert len(adapter.model.layers) == 2
        assert len(adapter.vocabulary) == len(PLATO_PIECES) + 5
        assert adapter.vocabulary.decode(adapter.vocabulary.read("It opens.")) == ["it opens."]

    def test_is_tuned_and_survives_saving(self, made, build, eight, asked, tmp_path):
        _, _, out = made
        adapter = build(f"plato[weights={out}]", tuning_epochs=2, tuning_rate=5e-3)
        adapter.fit(eight, eight, Run(2, folder=tmp_path))
        responses = adapter.respond(asked, Decoding(), Run(2))
        (tmp_path / "saved").mkdir()
        adapter.save(tmp_path / "saved")
        loaded = Plato.load(tmp_path / "saved", adapter.config)
        assert loaded.respond(asked, Decoding(), Run(2)) == responses

    def test_its_fingerprint_holds_the_weights(self, made, build, asked):
        _, _, out = made
        config = build(f"plato[weights={out}]").config
        assert Plato.inspect(config, asked)["weights"] == Plato.open(config).checksum

    def test_without_latent_values(self, build, eight, asked, tmp_path):
        write_plato(tmp_path / "in", plato_tensors(latent=False))
        (tmp_path / "out").mkdir()
        PlatoNoLatent.convert(tmp_path / "in", tmp_path / "out")
        adapter = build(f"plato-no-latent[weights={tmp_path / 'out'},tune=false]")
        adapter.fit(eight, eight, Run(1))
        assert len(adapter.respond(asked, Decoding(), Run(1))) == 8
        with pytest.raises(InputError, match="is a plato-no-latent, no plato"):
            build(f"plato[weights={tmp_path / 'out'},tune=false]").fit(eight, eight, Run(1))


class TestCommand:
    def test_both_layouts_give_the_same(self, made, command, tmp_path):
        tensors, source, _ = made
        write_pieces(tmp_path / "files", PLATO_PIECES)
        write_variables(tmp_path / "files", tensors)
        (tmp_path / "files" / "hparams.json").write_text((source / "hparams.json").read_text())
        for folder, name in ((source, "one"), (tmp_path / "files", "many")):
            assert command("convert", "plato", folder, tmp_path / name).code == 0
        for path in (tmp_path / "one").iterdir():
            assert path.read_bytes() == (tmp_path / "many" / path.name).read_bytes()

    def test_what_is_there_stays(self, made, command, tmp_path):
        result = command("convert", "plato", made[1], tmp_path)
        assert (result.code, "is there already" in result.err) == (2, True)

    def test_a_system_without_weights(self, made, command, tmp_path):
        result = command("convert", "seq2seq", made[1], tmp_path / "out")
        assert result.code == 2
        assert "seq2seq has no weights to convert" in result.err


class TestRefused:
    def refused(self, folder, said, system=Plato):
        out = folder / "out"
        out.mkdir(exist_ok=True)
        with pytest.raises(InputError, match=said) as error:
            system.convert(folder, out)
        assert "\n" not in error.value.message
        assert str(folder) in error.value.message
        assert not list(out.iterdir())

    def test_missing_surplus_and_other_shapes(self, tmp_path):
        tensors = plato_tensors()
        del tensors[f"{ROOT}/TransformerBlock_1/FeedForward_0/FC_1.b_0"]
        write_plato(tmp_path, tensors)
        self.refused(
            tmp_path, r"lacks Model/UnifiedTransformer_0/TransformerBlock_1/Feed.*FC_1.b_0"
        )
        write_plato(
            tmp_path, plato_tensors() | {f"{ROOT}.predictor/FC_0.w_0": np.ones((2, 2), "<f4")}
        )
        self.refused(tmp_path, r"has Model/UnifiedTransformer_0\.predictor/FC_0\.w_0, for which")
        narrow = {
            f"{ROOT}/TransformerBlock_0/MultiheadAttention_0/FC_0.w_0": np.ones((16, 40), "<f4")
        }
        write_plato(tmp_path, plato_tensors() | narrow)
        self.refused(tmp_path, r"FC_0\.w_0 is of shape \(16, 40\), of which \(16, 16\)")

    def test_more_kinds_of_roles(self, tmp_path):
        three = {f"{ROOT}/Embedder_0/Embedding_2.w_0": np.ones((3, 16), "<f4")}
        write_plato(tmp_path, plato_tensors() | three)
        self.refused(tmp_path, r"Embedding_2\.w_0 is of shape \(3, 16\)")

    def test_the_other_kind(self, tmp_path):
        write_plato(tmp_path, plato_tensors(latent=False))
        self.refused(tmp_path, "dialbench convert plato-no-latent")
        write_plato(tmp_path, plato_tensors())
        self.refused(tmp_path, "`dialbench convert plato`", PlatoNoLatent)

    def test_files(self, tmp_path):
        self.refused(tmp_path, r"no files \*\.pdparams")
        write_plato(tmp_path, plato_tensors())
        (tmp_path / "Bert" / "vocab.txt").unlink()
        self.refused(tmp_path, r"no files vocab\.txt")
        write_pieces(tmp_path, PLATO_PIECES[1:])
        self.refused(tmp_path, r"vocabulary lacks \[PAD\]")
        write_pieces(tmp_path, [*PLATO_PIECES, "a"])
        self.refused(tmp_path, "repeats word pieces")
        write_pieces(tmp_path, PLATO_PIECES[:-1])
        self.refused(tmp_path, r"Embedding_0\.w_0 is of shape|bow_predictor")
        (tmp_path / "vocab.txt").write_bytes(b"\xff\xfe")
        self.refused(tmp_path, "no word pieces can be read")
        write_pieces(tmp_path, PLATO_PIECES)
        for text in ("{", "[]", "{}", '{"Model": 3}'):
            (tmp_path / "hparams.json").write_text(text)
            self.refused(tmp_path, "no options of a Model")
        (tmp_path / "hparams.json").write_text('{"Model": {"num_heads": 5}}')
        self.refused(tmp_path, "sizes do not fit")

    @pytest.mark.parametrize(
        ("change", "said"),
        [
            ({"dialbench": 2}, "another version"),
            ({"specials": [1]}, "damaged config.json"),
            ({"positions": 12}, "has 12 positions, too few"),
            ({"sizes": {"width": 3}}, "sizes that do not fit"),
            (
                {"sizes": {"layers": 1, "heads": 2, "embedding": 16, "values": 3}},
                "which are no part",
            ),
            ({"sizes": {"layers": 3, "heads": 2, "embedding": 16, "values": 3}}, "lacks layers.2"),
            ({"sizes": {"layers": 2, "heads": 2, "embedding": 8, "values": 3}}, "of shape"),
        ],
    )
    def test_a_converted_folder_that_was_changed(self, made, build, eight, tmp_path, change, said):
        import json
        import shutil

        folder = tmp_path / "copy"
        shutil.copytree(made[2], folder)
        facts = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(facts | change))
        with pytest.raises(InputError, match=said) as error:
            build(f"plato[weights={folder},tune=false]").fit(eight, eight, Run(1))
        assert str(folder) in error.value.message

    def test_damaged_weights(self, made, build, eight, tmp_path):
        import shutil

        folder = tmp_path / "copy"
        shutil.copytree(made[2], folder)
        path = folder / "model.safetensors"
        path.write_bytes(path.read_bytes()[:-9])
        with pytest.raises(InputError, match="cannot be read"):
            build(f"plato[weights={folder},tune=false]").fit(eight, eight, Run(1))

    def test_a_folder_of_another_system(self, tiny, build, eight):
        with pytest.raises(InputError, match="is a gpt2, no plato"):
            build(f"plato[weights={tiny('gpt2')},tune=false]").fit(eight, eight, Run(1))

    def test_nothing_is_taken_for_converted_that_is_not(self, tmp_path):
        assert not converted.is_converted(str(tmp_path))
        assert not converted.is_converted(str(tmp_path / "nowhere"))
