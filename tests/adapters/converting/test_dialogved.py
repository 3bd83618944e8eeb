"""A DialogVED of fairseq, converted: the weights of a ProphetNet, and what is new in it."""

from __future__ import annotations

import argparse
import os

import pytest
import torch
from dialbench_adapters.dialogved import DialogVED, DialogVEDNoLatent
from dialbench_adapters.pretrained.prophetnet import rename

from dialbench.adapter import Run
from dialbench.errors import InputError
from dialbench.records import Decoding
from dialbench.text.vocabulary import BOS, EOS, SEP, SPECIALS

from .archives import DIALOGVED_PIECES, dialogved_tensors, write_dialogved, write_pieces

pytestmark = pytest.mark.usefixtures("one_thread")

SIZES = {"layers": 2, "attention_heads": 4, "embed_dim": 32, "ffn_embed_dim": 48}
V, P, HEADS = len(DIALOGVED_PIECES), 6, 4
END, SEPARATOR, CLS = 2, 5, 4


@pytest.fixture(scope="module")
def library():
    """The tensors of a ProphetNet, drawn by the transformers library."""
    from transformers import ProphetNetConfig, ProphetNetForConditionalGeneration

    halves = {
        f"{half}_{name}": value
        for half in ("encoder", "decoder")
        for name, value in (("ffn_dim", 48),)
    }
    halves |= {f"num_{half}_layers": 2 for half in ("encoder", "decoder")}
    halves |= {f"num_{half}_attention_heads": 4 for half in ("encoder", "decoder")}
    with torch.random.fork_rng():
        torch.manual_seed(3)
        config = ProphetNetConfig(
            vocab_size=V, hidden_size=32, max_position_embeddings=64, init_std=0.3, **halves
        )
        return ProphetNetForConditionalGeneration(config).state_dict()


@pytest.fixture
def archive(library, tmp_path):
    """Writes an archive with these tensors more, or less, and gives its folder."""

    def write(P=P, more=None, less=(), **options):
        with torch.random.fork_rng():
            torch.manual_seed(4)
            tensors = dialogved_tensors(library, P, HEADS) | (more or {})
        for name in less:
            del tensors[name]
        write_dialogved(tmp_path / "in", tensors, SIZES, **options)
        return tmp_path / "in", tensors

    return write


def converted(system, source):
    out = source.parent / "out"
    out.mkdir()
    system.convert(source, out)
    return out


def test_every_weight_of_a_prophetnet_is_in_its_place(library, archive, build):
    source, _ = archive(P=0)
    out = converted(DialogVEDNoLatent, source)
    model = build(f"dialogved-no-latent[weights={out},tune=false]").build_model(0)
    own, expected = model.state_dict(), rename(library)
    assert own.keys() == expected.keys()
    shift = len(SPECIALS)
    for name, tensor in expected.items():
        if name == "embedding.weight":
            assert torch.equal(own[name][shift:], tensor)
            rows = {BOS: END, EOS: END, SEP: SEPARATOR}
            for special, row in rows.items():
                assert torch.equal(own[name][special], tensor[row])
        elif name == "decoder_positions.weight":
            # of three rows fewer: what lies beyond the last is read as that
            assert torch.equal(own[name][:-3], tensor[:-3])
            assert torch.equal(own[name][-3:], tensor[-4].expand(3, -1))
        else:
            assert torch.equal(own[name], tensor), name


def test_reads_contexts_as_its_authors_do(archive, build, eight, asked):
    source, _ = archive()
    adapter = build(f"dialogved[weights={converted(DialogVED, source)},tune=false]")
    adapter.fit(eight, eight, Run(1))
    around, shift = adapter.model.around, len(SPECIALS)
    assert (around.front, around.behind) == ((CLS + shift,), (END + shift,))
    assert adapter.vocabulary.decode(adapter.vocabulary.read("It opens.")) == ["it opens."]
    assert adapter.title(adapter.config) == "DialogVED (zero-shot)"
    assert len(adapter.respond(asked, Decoding(), Run(1))) == 8


def test_the_latent_part(archive, build):
    source, tensors = archive()
    model = build(f"dialogved[weights={converted(DialogVED, source)},tune=false]").build_model(0)
    assert (model.config.latent, model.config.bag_reads) == (P, "z_and_context")
    latent = model.latent.double()
    theirs = {name: tensor.double() for name, tensor in tensors.items()}
    summary, z = torch.randn(3, 32).double(), torch.randn(3, P).double()

    def linear(name, x):
        return x @ theirs[f"{name}.weight"].T + theirs[f"{name}.bias"]

    feature, q = latent(summary)
    expected = torch.tanh(linear("encoder.vae_fc1", summary))
    assert torch.allclose(feature, expected)
    mean, log_variance = linear("encoder.vae_fc2", expected).chunk(2, -1)
    assert torch.allclose(q.mean, mean)
    assert torch.allclose(q.log_variance, log_variance)
    bag = torch.tanh(linear("encoder.vae_fc3", torch.cat([z, expected], 1)))
    assert torch.allclose(latent.bag_feature(z, feature), bag)
    # each head has its key and its value side by side
    both = linear("decoder.vae_transform", z).view(3 * HEADS, 1, 2 * 8)
    keys, values = latent.keys_values(z, HEADS)
    assert torch.allclose(keys.flatten(0, 1), both[..., :8])
    assert torch.allclose(values.flatten(0, 1), both[..., 8:])


def test_a_bag_of_z_alone(archive, build):
    less = {"encoder.vae_fc3.weight": torch.randn(32, P)}
    out = converted(DialogVED, archive(more=less)[0])
    model = build(f"dialogved[weights={out},tune=false]").build_model(0)
    assert model.config.bag_reads == "z"
    assert torch.equal(model.latent.bag.weight, less["encoder.vae_fc3.weight"])


def test_position_options(archive, build):
    bias = "relative_attention_bias"
    more = {
        "encoder.embed_ap_sentence.weight": torch.randn(32, 32),
        "encoder.embed_ap_role.weight": torch.randn(4, 32),
        f"encoder.embed_rp_token.{bias}.weight": torch.randn(32 * HEADS, 32),
        f"encoder.embed_rp_token.{bias}.bias": torch.randn(32 * HEADS),
    }
    # saved once more with every layer that shares it
    for place in ("embed_relative_positions_token", "self_attn.embed_token"):
        for leaf in ("weight", "bias"):
            name = f"encoder.layers.1.{place}.{bias}.{leaf}"
            more[name] = more[f"encoder.embed_rp_token.{bias}.{leaf}"]
    out = converted(DialogVED, archive(more=more)[0])
    model = build(f"dialogved[weights={out},tune=false]").build_model(0)
    assert torch.equal(model.turns.weight, more["encoder.embed_ap_sentence.weight"])
    assert torch.equal(model.roles.weight, more["encoder.embed_ap_role.weight"])
    table = more[f"encoder.embed_rp_token.{bias}.weight"]
    assert torch.equal(model.token_distances.table.weight, table)
    assert model.turn_distances is None
    # what it lacks may be asked for, and is learnt
    model = build(f"dialogved[weights={out},tune=false,turn_rpe=true]").build_model(0)
    assert model.turn_distances is not None


def test_half_precision_and_dict_txt(archive, build, library):
    source, _ = archive(P=0)
    saved = torch.load(source / "dialogved_large.pt", weights_only=False)
    saved["model"] = {name: tensor.half() for name, tensor in saved["model"].items()}
    torch.save(saved, source / "dialogved_large.pt")
    (source / "vocab.txt").unlink()
    counted = [f"{piece} 12" for piece in DIALOGVED_PIECES[4:]]
    write_pieces(source, counted, "dict.txt")
    out = converted(DialogVEDNoLatent, source)
    model = build(f"dialogved-no-latent[weights={out},tune=false]").build_model(0)
    assert model.encoder_norm.weight.dtype == torch.float32
    assert len(model.embedding.weight) == V + len(SPECIALS)


def test_is_tuned_and_survives_saving(archive, build, eight, asked, tmp_path):
    out = converted(DialogVED, archive()[0])
    adapter = build(f"dialogved[weights={out}]", tuning_epochs=2, tuning_rate=5e-3)
    adapter.fit(eight, eight, Run(2, folder=tmp_path))
    responses = adapter.respond(asked, Decoding(), Run(2))
    (tmp_path / "saved").mkdir()
    adapter.save(tmp_path / "saved")
    loaded = DialogVED.load(tmp_path / "saved", adapter.config)
    assert loaded.respond(asked, Decoding(), Run(2)) == responses
    assert adapter.title(adapter.config) == "DialogVED"


class Evil:
    def __reduce__(self):
        return os.system, ("touch was-run",)


class TestRefused:
    def refused(self, source, said, system=DialogVED):
        out = source / "out"
        out.mkdir(exist_ok=True)
        with pytest.raises(InputError, match=said) as error:
            system.convert(source, out)
        assert "\n" not in error.value.message
        assert str(source) in error.value.message

    def test_names_and_shapes(self, archive):
        source, _ = archive(less=["decoder.layers.1.fc2.bias", "encoder.vae_fc1.weight"])
        self.refused(source, r"lacks decoder\.layers\.1\.fc2\.bias, encoder\.vae_fc1\.weight")
        source, _ = archive(more={"decoder.extra": torch.ones(1)})
        self.refused(source, r"has decoder\.extra, for which")
        source, _ = archive(
            more={"decoder.layers.0.ngram_self_attn.in_proj_weight": torch.ones(9, 5)}
        )
        self.refused(source, r"in_proj_weight is of shape \(9, 5\), of which \(32, 32\)")
        source, _ = archive(more={"decoder.vae_transform.weight": torch.ones(63, P)})
        self.refused(source, r"vae_transform\.weight is of shape \(63, 6\)")
        source, _ = archive(more={"decoder.embed_tokens.weight": torch.ones(V, 32)})
        self.refused(source, "different vectors of words")

    def test_the_other_kind(self, archive):
        self.refused(archive()[0], "`dialbench convert dialogved`", DialogVEDNoLatent)
        self.refused(archive(P=0)[0], "`dialbench convert dialogved-no-latent`")

    def test_options_that_ours_does_not_have(self, archive):
        self.refused(archive(activation_fn="relu")[0], "activation_fn is 'relu'")
        self.refused(archive(decoder_layers=3)[0], "encoder_layers and decoder_layers differ")
        self.refused(archive(encoder_attention_heads=3, decoder_attention_heads=3)[0], "do not fit")

    @pytest.mark.parametrize(
        ("saved", "said"),
        [
            ({"model": {}}, "no checkpoint of fairseq with its args"),
            ([1, 2], "no checkpoint of fairseq"),
            ({"args": argparse.Namespace(), "model": {}}, "dialbench convert dialogved-no-latent"),
            ({"args": argparse.Namespace(), "model": {"a": 3}}, "no tensors by name"),
            ({"args": argparse.Namespace(), "model": None}, "no tensors by name"),
            ({"args": Evil(), "model": {}}, "cannot be read without running"),
        ],
    )
    def test_what_is_no_checkpoint(self, tmp_path, monkeypatch, saved, said):
        monkeypatch.chdir(tmp_path)
        source = tmp_path / "in"
        write_pieces(source, DIALOGVED_PIECES)
        torch.save(saved, source / "a.pt")
        self.refused(source, said)
        assert not (tmp_path / "was-run").exists()

    def test_args_that_lack_some(self, tmp_path):
        write_pieces(tmp_path, DIALOGVED_PIECES)
        tensors = {"decoder.vae_transform.weight": torch.ones(2, 2)}
        saved = {"args": argparse.Namespace(encoder_layers=2), "model": tensors}
        torch.save(saved, tmp_path / "a.pt")
        self.refused(tmp_path, "its args lack encoder_attention_heads")

    def test_damaged_files(self, archive):
        source, _ = archive()
        path = source / "dialogved_large.pt"
        data = path.read_bytes()
        for damaged in (b"", b"no pickle", data[: len(data) // 2], b"\x80\x02" + data[:50]):
            path.write_bytes(damaged)
            self.refused(source, "cannot be read without running")
        (source / "b.pt").write_bytes(b"")
        self.refused(source, r"2 files \*\.pt")
