"""Sizes of systems, counted on models that were built but never filled."""

from __future__ import annotations

import pytest

from dialbench.errors import InputError
from dialbench.presets.preset import load as load_preset
from dialbench.reproduction.parameters import parameter_counts, parameter_table
from dialbench.suites.suite import CountSuite, load_suite
from dialbench.systems import Registry


def counts(name: str, preset: str | None = None) -> dict[str, int]:
    (system,) = Registry().parse(name)
    return parameter_counts(system.build(load_preset(preset).system if preset else {}))


@pytest.mark.parametrize(
    ("name", "total", "random", "spare"),
    [
        ("seq2seq", 29_196_192, 0, 0),
        ("transformer", 29_576_576, 0, 0),
        ("paraformer-n", 29_576_576, 4_389_888, 0),
        ("paraformer-n[layout=full]", 29_576_576, 8_779_776, 0),
        ("rl-transformer", 45_894_368, 13_172_736, 0),
        ("gpt2", 9_924_608, 0, 0),
        ("prophetnet", 12_890_624, 0, 0),
        # the bag of words: 64 + 256 -> 256
        ("dialogved", 13_104_768, 0, 321 * 256),
        ("s2sa", 174_695_920, 0, 0),
        ("s2sa-mmi", 2 * 174_695_920, 0, 0),
        ("dvs2s[vocabulary=20000]", 166_345_920, 0, 0),
        ("seq2seq-lstm", 23_524_400, 0, 0),
        # all of it but the cells, six adaptive ones, and the encoder of the context with its table
        ("adand-context", 18_470_000 + 4 * 764_440 + 2 * 802_840 + 9_621_600, 0, 0),
        # the posterior: 3159 -> 512 -> 128 -> 64 -> 3159 -> twice 64; what tells topics
        (
            "adand",
            47_745_035,
            0,
            3160 * 512 + 513 * 128 + 129 * 64 + 65 * 3159 + 3160 * 128 + 300 * (3159 + 5),
        ),
        # the posterior 600 -> 128 and the bag of words
        ("cvae-lstm", 32_158_056, 0, 76_928 + 8_166_000),
        # the autoencoder
        ("laed", 34_515_550, 0, 16_469_295),
        # the encoder of responses, the posterior and the bag of words
        ("cvae", 45_515_000, 0, 8_315_688 + 878_168 + 6_020_000),
        # the posterior's attention, two norms and network, and the bag of words
        ("svt", 43_815_512, 0, 153_600 + 1_200 + 724_568 + 12_020_000),
        # the posterior: maps of 512 + 1024 -> 512 -> 512 -> 600
        ("vhred", 33_272_912, 0, 1536 * 512 + 512 + 512 * 513 + 600 * 513),
        # the same of 300 more, and the vector in the place of dropped utterances
        ("vhcr", 40_477_352, 0, 1836 * 512 + 512 + 512 * 513 + 600 * 513 + 1024),
    ],
)
def test_counts_of_the_papers_sizes(name: str, total: int, random: int, spare: int) -> None:
    assert counts(name) == {
        "parameters": total,
        "trained_parameters": total - random,
        "random_parameters": random,
        "inference_parameters": total - spare,
    }


def test_a_preset_makes_them_smaller() -> None:
    assert counts("transformer", "quick")["parameters"] < 1_000_000


def test_what_has_no_model_has_no_count() -> None:
    assert counts("copy-last") == {}


def test_appendix_a1_follows_exactly() -> None:
    suite = load_suite("paraformer-a1")
    assert isinstance(suite, CountSuite)
    table = parameter_table(suite)
    counts = {row.label: [cell.value for cell in row.cells.values()] for row in table.rows}
    assert counts == {
        "RL attention": [1_030_144, 1_030_144, 0, 526_336],
        "PaRa attention": [153_600, 153_600, 0, 115_200],
        "RL feed-forward": [1_321_148, 1_321_148, 0, 616_448],
        "PaRa feed-forward": [1_231_148, 1_231_148, 0, 616_448],
    }
    assert {row.component: row.frozen_part for row in suite.printed_table().rows} == {
        label: random for label, (*_, random) in counts.items()
    }
    assert any("Equation 12" in note and "does not describe" in note for note in table.notes)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"module": "encoder.0.attension"}, "part RL attention: .*attension"),
        ({"system": "copy-last"}, "part RL attention: copy-last has no model"),
        ({"system": "transfomer"}, "Did you mean 'transformer'"),
    ],
)
def test_a_part_that_is_not_there_is_named(change: dict[str, str], message: str) -> None:
    suite = load_suite("paraformer-a1")
    assert isinstance(suite, CountSuite)
    first = suite.parts[0].model_copy(update=change)
    with pytest.raises(InputError, match=message):
        parameter_table(suite.model_copy(update={"parts": (first,)}))
