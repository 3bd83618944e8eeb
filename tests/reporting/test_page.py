"""The page on paper: what it holds, what it escapes, what its policy allows, how large it gets."""

from __future__ import annotations

import base64
import dataclasses
import gzip
import hashlib
import json
import re
from html.parser import HTMLParser

import numpy as np

from dialbench.records import Cell, Column, Example, Responses, Row, Score, Table
from dialbench.reporting.options import ReportOptions
from dialbench.reporting.page.content import findings, licence, section, settings
from dialbench.reporting.page.conversations import Conversations, SystemResponses, gather, pack
from dialbench.reporting.page.drawing import drawing
from dialbench.reporting.page.render import page
from dialbench.reporting.report import write
from dialbench.reporting.tables.build import build
from dialbench.text.cleaning import visible

HOSTILE = "</script><script>window.ran=1</script><img src=x onerror='window.ran=1'> & \u2028 \u202e"


def unpacked(data):
    return json.loads(gzip.decompress(base64.b64decode(data)))


def system_responses(label, texts, ranked=True, **values):
    arrays = {name: np.asarray(array, dtype=float) for name, array in values.items()}
    return SystemResponses(label, ranked, 1, 1, texts, arrays)


def examples(dialogues=3, turns=4):
    """Every turn but the first answers those before it."""
    turn_texts = [[f"turn {d} {t}" for t in range(turns)] for d in range(dialogues)]
    return [
        Example(f"e{d}-{t}", f"d{d}", tuple(turn_texts[d][:t]), (turn_texts[d][t],))
        for d in range(dialogues)
        for t in range(1, turns)
    ]


def conversations(*systems, title="demo"):
    few = examples()
    return Conversations(
        title, few, systems or [system_responses("a", [f"answer {n}" for n in range(len(few))])]
    )


class _Outline(HTMLParser):
    """Elements by name with their attributes and texts."""

    VOID = ("meta", "input", "br", "img", "link")

    def __init__(self, html):
        super().__init__()
        self.elements, self._open = [], []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        element = (tag, dict(attrs), [])
        self.elements.append(element)
        if tag not in self.VOID:
            self._open.append(element)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs), []))

    def handle_endtag(self, tag):
        assert self._open.pop()[0] == tag

    def handle_data(self, data):
        for element in self._open:
            element[2].append(data)

    def all(self, tag):
        return [(attrs, "".join(texts)) for name, attrs, texts in self.elements if name == tag]


def render_page(tables=(), results=(), drawings=(), conversations=None, **more):
    return page(tables, tables, results, drawings, conversations, **more)


# What stands there.


def test_marks_are_shown_without_scripts_too(study, table):
    html = render_page([table], study)
    (classes,) = re.findall(r'<body class="([^"]*)">', html)
    hidden = re.findall(r"body:not\(\.(show-[a-z]+)\)", html)
    assert set(hidden) == set(classes.split())


def test_every_table_stands_on_the_page_with_its_notes_and_signatures(study, table):
    html = _Outline(render_page([table, table], study))
    captions = [text for _, text in html.all("caption")]
    assert captions.count(table.caption) == 2
    items = [text for _, text in html.all("li")]
    for note in table.notes:
        assert items.count(note) == 2
    folded = "".join(text for _, text in html.all("details") if text.strip().startswith("Sign"))
    assert f"{table.columns[0].title}: {table.columns[0].signature}." in folded


def test_cells_carry_what_sorting_and_intervals_need():
    cells = [Cell(1 / 3, (0.25, 0.5)), Cell(reason="none"), Cell(float("nan"))]
    rows = [Row(str(number), {"m": cell}) for number, cell in enumerate(cells)]
    table = Table("t", "C", (Column("m", "M"),), tuple(rows))
    first, second, third = (attrs for attrs, _ in _Outline(section(table, table).html).all("td"))
    assert float(first["data-value"]) == 1 / 3
    assert first["data-interval"] == "0.250 to 0.500"
    for without in (second, third):
        assert not {"data-value", "data-interval"} & set(without)


def test_findings_tell_the_best_and_from_whom_it_differs():
    columns = tuple(Column(name, name.upper()) for name in "xyz")
    best, star, plain = Cell(0.9, best=True), Cell(0.5, significant=True), Cell(0.8)
    rows = (
        Row("a", {"x": best, "y": best, "z": plain}),
        Row("b", {"x": star, "y": star, "z": best}),
        Row("c", {"x": star, "y": star, "z": plain}),
        Row("oracle", {"x": Cell(1.0), "y": Cell(1.0), "z": Cell(1.0)}, ranked=False),
    )
    first, second = findings(Table("t", "C", columns, rows))
    assert (first.best, first.values) == ("a", ("X 0.900", "Y 0.900"))
    assert first.verdict == "each of the 2 others differs significantly"
    assert (second.best, second.values) == ("b", ("Z 0.900",))
    assert second.verdict == "no significant difference shown from a, c"


def test_findings_of_columns_with_one_title_name_their_group():
    columns = tuple(Column(f"m@{group}", "M", group=group) for group in "XY")
    rows = (
        Row("a", {"m@X": Cell(0.9, best=True), "m@Y": Cell(0.5, best=True)}),
        Row("b", {"m@X": Cell(0.1), "m@Y": Cell(0.1)}),
    )
    (one,) = findings(Table("t", "C", columns, rows))
    assert one.values == ("X: M 0.900", "Y: M 0.500")


def test_many_that_do_not_differ_are_counted():
    cells = [Cell(0.9, best=True), Cell(0.1, significant=True), *(Cell(0.8) for _ in range(5))]
    rows = tuple(Row(str(number), {"m": cell}) for number, cell in enumerate(cells))
    (one,) = findings(Table("t", "C", (Column("m", "M"),), rows))
    assert one.verdict == "no significant difference shown from 5 of the 6 others"


def test_a_table_in_which_nothing_is_best_has_no_findings():
    assert findings(Table("t", "C", (Column("m", "M"),), (Row("a", {"m": Cell(0.5)}),))) == []


def test_settings_tell_everything_that_a_row_depends_on(result):
    training = {"config": {"hidden": 192, "betas": [0.9, 0.99]}, "examples": {"train": 40_000}}
    rows = [
        result("a", seed=seed, training=training, facts={"parameters": 1234}) for seed in (2, 1)
    ]
    (row,) = settings(rows)
    assert (row.seeds, row.trained_on, row.parameters) == ("1, 2", "40,000", "1,234")
    assert ("training.config.hidden", "192") in row.all
    assert ("training.config.betas", "0.9, 0.99") in row.all


def test_licences_tell_what_may_be_passed_on():
    assert "may be passed on" in licence("demo", texts=True)
    assert "--no-conversations" in licence("dailydialog", texts=True)
    assert licence("dailydialog", texts=False).endswith("does not let its text be published.")
    assert "of your own" in licence("own-chats", texts=True)


# Conversations.


def test_every_text_stands_once_and_reads_back():
    few = examples()
    texts = ["same"] * (len(few) - 1) + ["other"]
    plain = conversations(system_responses("a", texts, length=[2.0] * len(few))).as_json(
        range(len(few))
    )
    assert len(plain["turns"]) == len(set(plain["turns"])) == 12
    for number, example in enumerate(few):
        for key in ("context", "references"):
            numbers = plain["contexts" if key == "context" else key][number]
            assert tuple(plain["turns"][turn] for turn in numbers) == getattr(example, key)
    (system,) = plain["systems"]
    assert system["texts"] == ["same", "other"]
    assert [system["texts"][number] for number in system["responses"]] == texts


def test_values_are_hundredths_or_counts_and_gaps_stay_gaps():
    few = len(examples())
    shares = [0.126, float("nan"), *[1.0] * (few - 2)]
    plain = conversations(
        system_responses("a", ["x"] * few, length=[7.0] * few, meteor=shares),
        system_responses("b", ["x"] * few),
    ).as_json([0, 1, 2])
    digits = [(one["name"], one["title"], one["digits"]) for one in plain["measures"]]
    assert digits == [("length", "Length", 0), ("meteor", "METEOR", 2)]
    assert plain["systems"][0]["values"] == [[7, 7, 7], [13, None, 100]]
    assert plain["systems"][1]["values"] == [None, None]


def test_a_metric_without_any_value_is_not_shown():
    few = len(examples())
    none = [float("nan")] * few
    systems = [
        system_responses("a", ["x"] * few, meteor=none, ue=none),
        system_responses("b", ["x"] * few, ue=[0.0] * few),
    ]
    plain = conversations(*systems).as_json([0])
    assert [one["name"] for one in plain["measures"]] == ["ue"]
    assert [one["values"] for one in plain["systems"]] == [[[None]], [[0]]]


def test_answers_to_the_same_contexts_stand_together(result):
    few = examples()
    answered = {"data": "x", "examples": len(few)}
    score = Score(1.0, len(few), "s", per_response=np.ones(len(few)))
    jobs = [
        result("a", {"m": score}, seed=2, answering=answered),
        result("a", {"m": score}, seed=1, answering=answered),
        result("b", answering=answered),
        result("c", answering={"data": "y", "examples": len(few)}),
        result("d", answering=answered, status="failed"),
    ]

    def read(job):
        texts = [f"{job.system} {job.seed} {n}" for n in range(len(few))]
        return Responses(job, few, texts, 1.0, "cpu")

    first, second = gather(jobs, read)
    assert (first.has_several_seeds, second.has_several_seeds) == (True, False)
    assert [system.label for system in first.systems] == ["a", "b"]
    assert first.systems[0].texts[3] == "a 1 3"
    assert list(first.systems[0].values) == ["m"]
    assert [system.label for system in second.systems] == ["c"]


def test_typical_answers_are_the_most_frequent_ones():
    system = system_responses("a", ["x", "y", "x", "\u202ez\n", "x", "y", "w" * 500])
    assert system.different == 4
    assert system.frequent()[:2] == [("x", 3), ("y", 2)]
    assert system.frequent()[2] == ("z", 1)


def large(seed, dialogues=150, systems=4):
    many = examples(dialogues, 5)
    generator = np.random.default_rng(seed)
    words = generator.integers(3000, size=(systems, len(many), 8))
    return Conversations(
        "large",
        many,
        [
            system_responses(
                str(number),
                [" ".join(f"w{word}" for word in text) for text in texts],
                meteor=generator.random(len(many)),
            )
            for number, texts in enumerate(words)
        ],
    )


def test_a_large_store_is_sampled_by_whole_dialogues_evenly():
    everything = large(0)
    (full,) = pack([everything], 10**9)
    assert (full.shown, full.total) == (600, 600)
    room = len(full.data) // 3
    (packed,) = pack([everything], room)
    assert len(packed.data) <= room
    assert packed.total == 600
    assert 600 / 5 < packed.shown < 600 / 3
    ids = unpacked(packed.data)["ids"]
    numbers = sorted({int(id[1:].split("-")[0]) for id in ids})
    assert len(ids) == packed.shown == 4 * len(numbers)
    gaps = np.diff(numbers)
    assert gaps.max() - gaps.min() <= 1


def test_a_page_keeps_to_its_limit_and_says_what_it_left_out(table):
    everything = large(1)
    full = render_page([table], (), (), [everything])
    assert "contexts are shown" not in full
    limit = len(full.encode("utf-8")) - 20_000
    small = render_page([table], (), (), [everything], limit=limit)
    assert len(small.encode("utf-8")) <= limit
    assert re.search(r"large: \d{2,3} of 600 contexts are shown", small)


def test_where_nothing_fits_the_page_says_so(table):
    html = render_page([table], (), (), [conversations()], limit=1000)
    assert "they do not fit into the page" in html
    assert 'class="packed"' not in html


def test_without_conversations_no_text_is_on_the_page(tmp_path, result):
    few = examples()
    one = result("a", answering={"data": "x"})

    def read(job):
        return Responses(job, few, ["a secret answer"] * len(few), 1.0, "cpu")

    tables = build([one], metrics=["length"])
    (path,) = write(tables, [one], tmp_path / "with", ReportOptions(["html"]), read=read)
    text = path.read_text(encoding="utf-8")
    assert "a secret answer" in text
    (data,) = [text for attrs, text in _Outline(text).all("script") if "data-title" in attrs]
    assert unpacked(data)["turns"][0] == "turn 0 0"
    (path,) = write(tables, [one], tmp_path / "without", ReportOptions(["html"]))
    text = path.read_text(encoding="utf-8")
    assert "secret" not in text
    assert 'class="packed"' not in text
    assert "written without conversations" in text


def test_the_command_leaves_conversations_out_on_demand(command, tmp_path):
    few = ("--limit-train", 20, "--limit-test", 5, "--metrics", "length", "--formats", "html")
    quiet = ("--device", "cpu", "--progress", "none")
    ran = command("run", "--models", "copy-last", "--out", tmp_path, *few, *quiet)
    assert ran.code == 0, ran.err
    assert 'class="packed"' in (tmp_path / "report" / "report.html").read_text(encoding="utf-8")
    for option, there in ((), True), (("--no-conversations",), False):
        out = tmp_path / f"out-{there}"
        outcome = command("report", tmp_path, "--formats", "html", "--out", out, *option)
        assert outcome.code == 0, outcome.err
        assert outcome.err.strip() == f"wrote {out / 'report.html'}"
        page = (out / "report.html").read_text(encoding="utf-8")
        assert ('class="packed"' in page) is there


# Nothing from outside runs, and nothing goes out.


def hostile_page(**more):
    few = len(examples())
    table = Table(
        HOSTILE,
        HOSTILE,
        (Column("m", HOSTILE, signature=HOSTILE),),
        (Row(HOSTILE, {"m": Cell(0.5, reason=HOSTILE)}),),
        (HOSTILE,),
    )
    systems = [system_responses(HOSTILE, [HOSTILE] * few, m=[0.5] * few)]
    return render_page([table], (), (), [conversations(*systems, title=HOSTILE)], **more)


def test_hostile_text_adds_no_element():
    def count(html):
        names = [tag for tag, _, _ in _Outline(html).elements]
        return {name: names.count(name) for name in ("script", "img", "style", "iframe")}

    assert count(hostile_page()) == {"script": 2, "img": 0, "style": 1, "iframe": 0}


def test_hostile_text_is_shown_as_text():
    html = _Outline(hostile_page())
    seen = "".join(c for c in " ".join(HOSTILE.split()) if c != "\u202e").strip()
    assert any(text.strip() == seen for _, text in html.all("caption"))
    assert any(text.strip() == seen for _, text in html.all("span"))


def test_data_cannot_end_its_element():
    html = _Outline(hostile_page())
    (data,) = [text for attrs, text in html.all("script") if "data-title" in attrs]
    assert re.fullmatch(r"[A-Za-z0-9+/=]+", data)
    assert unpacked(data)["systems"][0]["texts"] == [visible(HOSTILE)]


def policy_of(html):
    (content,) = [
        attrs["content"]
        for attrs, _ in html.all("meta")
        if attrs.get("http-equiv") == "Content-Security-Policy"
    ]
    return dict(part.split(maxsplit=1) for part in content.split("; "))


def test_the_policy_allows_this_script_and_this_style_and_nothing_else(table):
    html = _Outline(render_page([table], (), (), [conversations()]))
    policy = policy_of(html)
    assert policy["default-src"] == "'none'"
    assert set(policy) == {"default-src", "script-src", "style-src", "base-uri", "form-action"}
    (style,) = [text for _, text in html.all("style")]
    (script,) = [text for attrs, text in html.all("script") if attrs.get("type") == "module"]
    for source, text in (("style-src", style), ("script-src", script)):
        digest = base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
        assert policy[source] == f"'sha256-{digest}'"


def test_the_page_needs_nothing_that_its_policy_forbids(study, table, make_systems):
    from dialbench.reporting.plots import draw as plots

    one = dataclasses.replace(table, columns=table.columns[4:5])
    figures = {
        **plots.bars(one),
        **plots.training_curves(make_systems(["a", "b"])),
        "points": plots.quality_against_diversity(table),
    }
    drawings = [drawing(name, figure) for name, figure in figures.items()]
    html = _Outline(render_page([table], study, drawings, [conversations()]))
    for tag, attrs, _ in html.elements:
        assert "style" not in attrs
        assert not [name for name in attrs if name.startswith("on")]
        assert tag not in ("link", "img", "object", "embed", "base")
        for name in ("src", "href"):
            assert attrs.get(name, "#").startswith("#")


# Drawings.


def test_drawings_are_the_same_every_time_and_keep_the_figure(make_systems):
    from dialbench.reporting.plots import canvas
    from dialbench.reporting.plots import draw as plots

    figure = plots.training_curves(make_systems(["a", "b"]))["demo-training"]
    before = canvas.encode(figure, "png")
    assert drawing("x", figure) == drawing("x", figure)
    assert canvas.encode(figure, "png") == before


def test_drawings_keep_their_text_and_look(table):
    from dialbench.reporting.plots import draw as plots

    one = dataclasses.replace(table, columns=table.columns[4:5])
    figure = plots.bars(one)["demo-dist-2"]
    html = _Outline(drawing("demo-dist-2", figure).svg)
    texts = [text for _, text in html.all("text")]
    assert {row.label for row in table.rows} <= set(texts)
    bold = [text for attrs, text in html.all("text") if attrs.get("font-weight") in ("700", "bold")]
    best = [row.cells["dist-2"].value for row in table.rows if row.cells["dist-2"].best]
    assert bold == [f"{value:.3f}" for value in best]
    assert all("font-size" in attrs for attrs, _ in html.all("text"))


def test_names_inside_drawings_are_found_and_not_shared(make_systems):
    from dialbench.reporting.plots import draw as plots

    figure = plots.training_curves(make_systems(["a", "b"]))["demo-training"]
    ids = []
    for name in ("x", "y"):
        html = _Outline(drawing(name, figure).svg)
        own = {attrs["id"] for _, attrs, _ in html.elements if "id" in attrs}
        used = {attrs["href"][1:] for _, attrs, _ in html.elements if "href" in attrs}
        clips = (attrs["clip-path"][5:-1] for _, attrs, _ in html.elements if "clip-path" in attrs)
        assert own == used | set(clips)
        ids.append(own)
    assert not ids[0] & ids[1]


def test_values_of_a_finding_stand_apart():
    columns = tuple(Column(name, name.upper()) for name in "xy")
    best, star = Cell(0.9, best=True), Cell(0.5, significant=True)
    rows = (Row("a", {"x": best, "y": best}), Row("b", {"x": star, "y": star}))
    page = render_page([Table("t", "C", columns, rows)], [])
    assert 'X 0.900</span>, <span class="value">Y 0.900' in page
