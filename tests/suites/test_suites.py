"""Suites as data: what ships is whole, and what is faulty is named by file and key."""

from __future__ import annotations

from pathlib import Path

import pytest

from dialbench.errors import InputError
from dialbench.presets import preset as presets
from dialbench.running.plan import Request, preset_for_row, systems_of
from dialbench.suites.suite import (
    CountSuite,
    Suite,
    load_runnable,
    load_suite,
    suite_for,
    suite_names,
)
from dialbench.systems import Registry

TABLES = [name for name in suite_names() if name not in ("paraformer-a1", "adand-4")]
MINE = """
summary = "mine"
paper = "paraformer"
table = "4"
[[group]]
corpus = "demo"
dataset = "DailyDialog"
[[column]]
printed = "Dist-1"
metric = "dist-1"
[[row]]
printed = "Alt"
system = "unigram"
[[row]]
label = "My system"
system = "copy-last"
"""


def writer(text: str, path: Path):
    """Writes a text with a change to a file, and gives its path."""

    def write(before: str = "", after: str = "") -> str:
        assert before in text
        path.write_text(text.replace(before, after, 1) if before else text + after)
        return str(path)

    return write


@pytest.fixture
def write_mine(tmp_path: Path):
    return writer(MINE, tmp_path / "mine.toml")


@pytest.fixture
def write_more(tmp_path: Path):
    return writer(MORE, tmp_path / "more.toml")


def load(name: str) -> Suite:
    suite = load_suite(name)
    assert isinstance(suite, Suite)
    return suite


def test_there_is_one_for_every_table_that_can_be_made_again() -> None:
    assert set(suite_names()) == {
        *(f"paraformer-{n}" for n in (1, 2, 4, 5, 6, 7)),
        *(f"rl-{n}" for n in (1, 4, 5)),
        *(f"dvs2s-{n}" for n in (1, 4, 5, "speed")),
        *(f"adand-{n}" for n in (1, 3, 4)),
        *(f"dialogved-{n}" for n in ("2", "2-personachat", "3", "4", "5")),
        "paraformer-a1",
    }


@pytest.mark.parametrize("name", TABLES)
def test_rows_and_columns_are_the_papers_in_its_order(name: str) -> None:
    suite = load(name)
    table = suite.printed_table()
    printed = [row.printed for row in suite.rows if row.printed]
    for group in suite.groups:
        assert printed == [row.system for row in table.rows if row.dataset in ("", group.dataset)]
    assert list(dict.fromkeys(c.printed for c in suite.columns)) == list(table.columns)


@pytest.mark.parametrize("name", [*TABLES, "adand-4"])
def test_every_row_is_a_system_with_options_that_fit(name: str) -> None:
    suite = load_runnable(name)
    systems, missing = systems_of(suite, Registry())
    assert systems.keys() == {row.name for row in suite.rows if row.system}
    assert missing.keys() == {row.name for row in suite.rows if row.absent}
    jobs = [(systems[r.name].name, r.decoding) for r in suite.rows if r.name in systems]
    assert len(jobs) == len(set(jobs))
    for group in suite.groups:
        for preset in presets.names():
            for row in suite.rows:
                if row.name in systems:
                    settings = preset_for_row(presets.load(preset), group, row).system
                    config = systems[row.name].config(settings)
                    expected = group.settings.get(preset, {}) | row.settings.get(preset, {})
                    assert all(getattr(config, key) == value for key, value in expected.items())


@pytest.mark.parametrize("name", TABLES)
def test_distinct_divides_as_the_papers_convention_does(name: str) -> None:
    from dialbench.scoring.conventions import CONVENTIONS

    suite = load(name)
    (convention,) = (c for name, c in CONVENTIONS.items() if suite.paper.startswith(name))
    assert (suite.denominator or "tokens") == convention.denominator
    assert Request.of_suite(name).scoring["denominator"] == suite.denominator


def test_paraformers_rows_differ_in_the_tables_own_options_alone() -> None:
    """What a label of a grid says is what its row is trained with."""
    for name, table in (("paraformer-5", "5"), ("paraformer-6", "6")):
        suite = load(name)
        systems, _ = systems_of(suite, Registry())
        for row in suite.printed_table().rows:
            config = systems[row.system].config({})
            for key, value in (row.model_extra or {}).items():
                assert getattr(config, key.lower()) == value, (table, row.system)


def test_sizes_of_rl_5_are_the_printed_ones() -> None:
    suite = load("rl-5")
    systems, _ = systems_of(suite, Registry())
    quick = presets.load("quick").system
    for row in suite.printed_table().rows:
        assert systems[row.system].config(quick).d_rand == (row.model_extra or {})["d_rand"]


@pytest.mark.parametrize("preset", ["quick", "small", "paper"])
def test_layouts_differ_at_every_preset(preset: str) -> None:
    from dialbench_adapters.paraformer import randomized_layers

    suite = load("paraformer-4")
    systems, _ = systems_of(suite, Registry())
    group = suite.groups[0]
    configs = [
        systems[row.name].config(preset_for_row(presets.load(preset), group, row).system)
        for row in suite.rows
        if row.system
    ]
    layouts = {tuple(randomized_layers(c.layout, c.layers, c.alt_first)) for c in configs}
    assert len(layouts) == 4


def test_the_cvae_of_dvs2s_1_has_its_own_sizes_where_others_share_theirs() -> None:
    suite = load("dvs2s-1")
    systems, _ = systems_of(suite, Registry())
    paper, (group,) = presets.load("paper"), suite.groups
    configs = {
        row.name: systems[row.name].config(preset_for_row(paper, group, row).system)
        for row in suite.rows
    }
    assert (configs["S2SA"].embedding, configs["S2SA"].hidden) == (300, 512)
    assert (configs["CVAE"].embedding, configs["CVAE"].hidden) == (200, 300)
    assert (configs["S2SA"].vectors, configs["CVAE"].vectors) == ("", "corpus")


def test_the_rl_papers_sizes_hold_at_preset_paper() -> None:
    suite = load("rl-1")
    systems, _ = systems_of(suite, Registry())
    row = next(row for row in suite.rows if row.name == "RL Transformer")
    for group, size in zip(suite.groups, (64, 256), strict=True):
        config = systems[row.name].config(preset_for_row(presets.load("paper"), group, row).system)
        assert (config.layers, config.attention, config.learning_rate) == (4, size, 1.5e-4)
        assert (config.d_rand, config.output_link) == (512, "X")
        assert config.norm == "post"  # section 3.1
    assert suite.context_turns == 4


def test_a_file_of_ones_own_may_add_rows(write_mine) -> None:
    suite = load(write_mine())
    assert (suite.name, suite.metrics) == ("mine", ("dist-1",))
    assert [row.name for row in suite.rows] == ["Alt", "My system"]


MORE = """
extends = "paraformer-4"
summary = "mine too"
[[row]]
label = "My system"
system = "copy-last"
"""


def test_a_file_may_continue_one_that_ships(write_more) -> None:
    base, suite = load("paraformer-4"), load(write_more('"mine too"', '"mine too"\nseeds = [1, 2]'))
    assert [row.name for row in suite.rows] == [*(row.name for row in base.rows), "My system"]
    assert (suite.name, suite.summary, suite.seeds) == ("more", "mine too", (1, 2))
    unchanged = {"name", "summary", "seeds", "rows"}
    assert suite.model_dump(exclude=unchanged) == base.model_dump(exclude=unchanged)


def test_what_a_file_says_itself_replaces_what_it_continues(write_more) -> None:
    base = load("paraformer-4")
    group = '[[group]]\ncorpus = "demo"\ndataset = "DailyDialog"\n'
    column = '[[column]]\nprinted = "Dist-1"\nmetric = "ead-1"\n'
    suite = load(write_more(after=f"{group}{column}"))
    assert [group.corpus for group in suite.groups] == ["demo"]
    assert suite.columns[:-1] == base.columns
    assert suite.columns[-1].metric == "ead-1"


def test_a_presets_file_is_looked_for_beside_the_suites(write_more, monkeypatch, tmp_path) -> None:
    path = write_more('"mine too"', '"mine too"\npreset = "former/small.toml"')
    (Path(path).parent / "former").mkdir()
    (Path(path).parent / "former" / "small.toml").write_text("summary = 'as it was'\nseeds = [1]\n")
    (elsewhere := tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(elsewhere)
    preset = presets.load(load(path).preset)
    assert (preset.name, preset.summary) == ("small", "as it was")


FAULTS_OF_MORE = {
    "unknown suite": (
        '"paraformer-4"',
        '"paraformer-44"',
        "more.toml:extends: unknown suite 'paraformer-44'. Did you mean 'paraformer-4'?",
    ),
    "no name": ('"paraformer-4"', "4", "more.toml:extends: unknown suite '4'"),
    "a fault of its own": (
        'system = "copy-last"',
        "",
        "more.toml:row[0]: a row needs either `system` or `absent`",
    ),
    "a wrong decoding": (
        'system = "copy-last"',
        'system = "copy-last"\ndecoding = "gredy"',
        "more.toml:row[0].decoding: unknown decoding 'gredy'",
    ),
    "rows that do not fit another table": (
        '"mine too"',
        '"mine too"\ntable = "5"',
        "more.toml:extends.row[0].printed: unknown printed row",
    ),
    "a preset's file that is not there": (
        '"mine too"',
        '"mine too"\npreset = "gone.toml"',
        "more.toml:preset: the preset",
    ),
    "an unknown preset": (
        '"mine too"',
        '"mine too"\npreset = "quik"',
        "more.toml:preset: unknown preset 'quik'. Did you mean 'quick'?",
    ),
    "twice": ('"My system"', '"Alt"', "more.toml:row: 'Alt' occurs twice"),
}


@pytest.mark.parametrize("case", FAULTS_OF_MORE)
def test_a_fault_counts_rows_as_the_file_does(write_more, case: str) -> None:
    before, after, message = FAULTS_OF_MORE[case]
    with pytest.raises(InputError) as caught:
        load_suite(write_more(before, after))
    assert message in caught.value.message


def test_another_corpus_is_remembered_as_such() -> None:
    groups = load("rl-1").on("demo").groups
    assert [group.corpus for group in groups] == ["demo", "demo"]
    assert [group.instead_of for group in groups] == ["dailydialog", "empatheticdialogues"]


FAULTS = {
    "unknown paper": ('"paraformer"', '"parformer"', "Did you mean 'paraformer'?"),
    "unknown table": ('table = "4"', 'table = "44"', "unknown table of paraformer '44'"),
    "unknown row": (
        'printed = "Alt"',
        'printed = "Alternate"',
        "mine.toml:row[0].printed: unknown printed row 'Alternate'. Did you mean 'Alt'?",
    ),
    "unknown column": (
        'printed = "Dist-1"',
        'printed = "Dist1"',
        "mine.toml:column[0].printed: unknown printed column 'Dist1'. Did you mean 'Dist-1'?",
    ),
    "unknown metric": (
        '"dist-1"',
        '"dist-4"',
        "mine.toml:column[0].metric: unknown metric 'dist-4'. Did you mean 'dist-",
    ),
    "share of no row": (
        'metric = "dist-1"',
        'metric = "dist-1"\nshare_of = "Alternate"',
        "mine.toml:column[0].share_of: unknown row 'Alternate'. Did you mean 'Alt'?",
    ),
    "unknown dataset": (
        '"DailyDialog"',
        '"DailyDialogue"',
        "mine.toml:group[0].dataset: unknown dataset 'DailyDialogue'. Did you mean 'DailyDialog'?",
    ),
    "unknown key": ("corpus =", "corpora =", "mine.toml:group[0].corpus: Field required."),
    "unknown decoding": (
        'system = "unigram"',
        'system = "unigram"\ndecoding = "gredy"',
        "mine.toml:row[0].decoding: unknown decoding 'gredy'. Did you mean 'greedy'?",
    ),
    "no label": ('label = "My system"', "", "mine.toml:row[1]: a row needs a name: `printed`"),
    "neither system nor reason": (
        'system = "copy-last"',
        "",
        "mine.toml:row[1]: a row needs either `system` or `absent`",
    ),
    "twice": ('label = "My system"', 'label = "Alt"', "mine.toml:row: 'Alt' occurs twice"),
    "no rows": (
        MINE[MINE.index("[[row]]") :],
        "",
        "mine.toml:row: Field required",
    ),
    "no TOML": ("[[group]]", "[[group]", "mine.toml: this is not TOML"),
    "a table of counts": ('table = "4"', 'table = "A.1"', "Table A.1 of paraformer has no columns"),
}


@pytest.mark.parametrize("case", FAULTS)
def test_a_fault_names_the_file_and_the_key(write_mine, case: str) -> None:
    before, after, message = FAULTS[case]
    with pytest.raises(InputError) as caught:
        load_suite(write_mine(before, after))
    assert message.rstrip(".") in caught.value.message
    assert "\n" not in caught.value.message


def test_rows_of_topics_are_checked_too(tmp_path) -> None:
    path = tmp_path / "topics.toml"
    path.write_text(
        'kind = "topic words"\nsummary = "s"\npaper = "adand"\ntable = "4"\n'
        '[[group]]\ncorpus = "demo"\ndataset = "AdaND mix"\n'
        '[[row]]\nlabel = "a"\nsystem = "adand"\n'
    )
    with pytest.raises(InputError, match=r"group\[0\]\.dataset: .* Did you mean 'AdaND mixture'"):
        load_suite(str(path))


def test_a_wrong_name_gets_a_near_match() -> None:
    with pytest.raises(
        InputError, match=r"--suite: unknown suite 'paraformer1'\. Did you mean 'para"
    ):
        load_suite("paraformer1")


def test_counts_cannot_be_run() -> None:
    assert isinstance(load_suite("paraformer-a1"), CountSuite)
    with pytest.raises(InputError, match=r"there is nothing to run\. Write dialbench report"):
        load_runnable("paraformer-a1")


def test_suites_are_found_by_what_they_stand_beside() -> None:
    assert suite_for("paraformer", "1") == "paraformer-1"
    assert suite_for("rl_transformer", "4") == "rl-4"
    with pytest.raises(InputError, match=r"table 3 of paraformer \(human evaluation\)"):
        suite_for("paraformer", "3")


@pytest.mark.parametrize("key", ["row", "column"])
@pytest.mark.parametrize("value", ["5", "'x'", "{a = 1}", "true"])
def test_what_continues_a_suite_is_a_list(tmp_path: Path, key: str, value: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(f"extends = 'paraformer-1'\n{key} = {value}\n")
    with pytest.raises(InputError, match=rf"mine\.toml:{key}: not a list"):
        load_suite(str(path))


def test_a_misspelt_preset_of_settings_is_told(write_mine):
    for part in ("[[group]]", "[[row]]"):
        path = write_mine(part, f"{part}\nsettings = {{ quik = {{ hidden = 3 }} }}")
        with pytest.raises(InputError, match=r"unknown preset 'quik'\. Did you mean 'quick'"):
            load_suite(path)
    load_suite(write_mine("[[row]]", "[[row]]\nsettings = { mine = { hidden = 3 } }"))
