"""The page in a real browser: what a reader clicks works, and nothing that a system said runs."""

from __future__ import annotations

import fcntl
import itertools
import json
import os
import select
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dialbench.records import Example, Responses, Score
from dialbench.reporting.options import ReportOptions
from dialbench.reporting.report import write
from dialbench.reporting.tables.build import build
from dialbench.text.cleaning import visible

PROGRAM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
_OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)
_FIRST_FREE = 10
_PATIENCE = 120


class Chromium:
    """One browser with one page.

    Attributes:
        events: everything that the page reported since it was opened: exceptions, console
            messages, log entries, dialogs.
    """

    def __init__(self, folder: Path) -> None:
        their_in, self._out = _pipe()
        self._in, their_out = _pipe()
        command = f'exec "$@" 3<&{their_in} 4>&{their_out}'
        self._process = subprocess.Popen(
            [
                "bash",
                "-c",
                command,
                "chromium",
                str(PROGRAM),
                *_OPTIONS,
                f"--user-data-dir={folder}",
            ],
            pass_fds=(their_in, their_out),
            stderr=subprocess.DEVNULL,
        )
        os.close(their_in)
        os.close(their_out)
        self._left, self._numbers, self._session = b"", itertools.count(1), None
        self.events: list[dict[str, Any]] = []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        attached = self.send("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.send(f"{domain}.enable")

    def open(self, page: Path, *, width: int = 1280, dark: bool = False) -> None:
        """Loads a file and waits until its conversations, if any, are there."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[scheme])
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        self.send("Emulation.setDeviceMetricsOverride", **size)
        self.events.clear()
        self.send("Page.navigate", url=page.as_uri())
        while not self.find("Page.loadEventFired"):
            self._receive()
        self.run(
            "new Promise((done) => { const look = () => document.querySelector('.packed') && "
            "document.querySelector('#browser').hidden ? setTimeout(look, 10) : done(); look(); })"
        )

    def run(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page; promises are awaited."""
        settings = {"expression": expression, "awaitPromise": True, "returnByValue": True}
        answer = self.send("Runtime.evaluate", **settings)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def find(self, *methods: str) -> list[dict[str, Any]]:
        """The events of these kinds."""
        return [event for event in self.events if event["method"] in methods]

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """The answer to one command of the protocol."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters}
        message |= {"sessionId": self._session} if self._session else {}
        os.write(self._out, json.dumps(message).encode("utf-8") + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == number:
                assert "error" not in answer, answer
                return answer["result"]

    def close(self) -> None:
        """Ends the browser."""
        self._process.kill()
        self._process.wait()
        os.close(self._in)
        os.close(self._out)

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._left:
            ready, _, _ = select.select([self._in], [], [], _PATIENCE)
            data = os.read(self._in, 1 << 16) if ready else b""
            assert data, "the browser has ended, or hangs"
            self._left += data
        message, _, self._left = self._left.partition(b"\0")
        answer = json.loads(message)
        if "method" in answer:
            self.events.append(answer)
        return answer


def _pipe() -> tuple[int, int]:
    """A pipe whose ends are none of the numbers that the browser's own get."""
    ends = os.pipe()
    moved = tuple(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, _FIRST_FREE) for end in ends)
    for end in ends:
        os.close(end)
    return moved


HOSTILE = "<img src=x onerror='window.ran=1'></script><script>window.ran=1</script>"
CONTEXTS = 24


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    if PROGRAM is None:
        pytest.skip("no Chromium on this machine: apt-get install chromium")
    started = Chromium(tmp_path_factory.mktemp("profile"))
    yield started
    started.close()


def responses_of(system: str) -> list[str]:
    """Answers that differ between the systems in every fourth context only."""
    return [
        f"{system} alone says {system * 3}" if number % 4 == 0 else f"all agree on {number}"
        for number in range(CONTEXTS)
    ]


def scores(rank: int) -> dict[str, Score]:
    """Dist-2 rises with the rank; one response of system 1 is generic, one contradicts."""
    generic, entailed = np.zeros(CONTEXTS), np.zeros(CONTEXTS)
    generic[5], entailed[7] = rank == 1, -0.5 * (rank == 1)
    return {
        "dist-2": Score(0.1 * rank, CONTEXTS, "d", interval=(0.1 * rank - 0.01, 0.1 * rank + 0.01)),
        "generic-rate": Score(generic.mean(), CONTEXTS, "g", per_response=generic),
        "ue": Score(entailed.mean(), CONTEXTS, "u", per_response=entailed),
    }


@pytest.fixture(scope="module")
def make_page(tmp_path_factory, result):
    """Writes the page of some systems' answers to the same contexts."""
    examples = [
        Example(f"e{n}", f"d{n}", (f"question {n}", HOSTILE), (f"reference {n}",))
        for n in range(CONTEXTS)
    ]

    def make(texts_of: dict[str, list[str]], **more: Any) -> Path:
        results = [
            result(system, scores(rank), ranked=system != "oracle", **more)
            for rank, system in enumerate(texts_of)
        ]
        folder = tmp_path_factory.mktemp("page")
        tables = build(results, metrics=["dist-2", "ue"])
        (path,) = write(
            tables,
            results,
            folder,
            ReportOptions(["html"]),
            read=lambda job: Responses(job, examples, texts_of[job.system], 1.0, "cpu"),
        )
        return path

    return make


@pytest.fixture(scope="module")
def plain(make_page) -> Path:
    return make_page({name: responses_of(name) for name in ("beta", "alpha", "gamma", "oracle")})


def column(browser: Chromium, place: int) -> list[str]:
    return browser.run(
        "[...document.querySelectorAll('table.dialbench tbody tr')]"
        f".map((row) => row.cells[{place}].innerText)"
    )


def click(browser: Chromium, selector: str) -> None:
    browser.run(f"document.querySelector({json.dumps(selector)}).click()")


def search(browser: Chromium, text: str) -> None:
    browser.run(
        f"{{ const box = document.querySelector('#search'); box.value = {json.dumps(text)};"
        " box.dispatchEvent(new Event('input')); }"
    )


def shown_ids(browser: Chromium) -> list[str]:
    return browser.run(
        "[...document.querySelectorAll('.conversation h3')].map((head) => head.innerText)"
    )


def text_of(browser: Chromium, selector: str) -> str:
    return browser.run(f"document.querySelector({json.dumps(selector)}).innerText")


def problems(browser: Chromium) -> list[dict[str, Any]]:
    """What the page complained about: exceptions, refused styles and scripts, missing files."""
    return browser.find(
        "Runtime.exceptionThrown",
        "Runtime.consoleAPICalled",
        "Log.entryAdded",
        "Page.javascriptDialogOpening",
    )


def test_the_page_opens_without_a_complaint(browser, plain):
    browser.open(plain)
    assert text_of(browser, "#status") == "24 of 24 contexts, page 1 of 3"
    assert not problems(browser)


def test_the_policy_does_refuse_what_the_page_does_not_contain(browser, plain):
    browser.open(plain)
    browser.run(
        "{ const element = document.createElement('script'); element.textContent = 'window.ran=1';"
        " document.body.append(element); document.body.setAttribute('style', 'color: red'); }"
    )
    browser.run("fetch('data:text/plain,x').then(() => { window.ran = 1; }, () => {})")
    assert browser.run("window.ran === undefined")
    assert browser.run("getComputedStyle(document.body).color") != "rgb(255, 0, 0)"


def test_hostile_responses_are_shown_and_never_run(browser, make_page):
    path = make_page({HOSTILE: [HOSTILE] * CONTEXTS}, label=HOSTILE, notes=(HOSTILE,))
    browser.open(path)
    search(browser, "onerror")
    cell = browser.run("document.querySelector('.conversation td.response').textContent")
    assert cell == HOSTILE
    assert browser.run("document.querySelectorAll('img, .conversation script').length") == 0
    assert browser.run("window.ran === undefined")
    assert not problems(browser)


PAYLOADS = [
    "<script>window.ran=1</script>",
    "</script><script>window.ran=1</script>",
    "</style></title></textarea></noscript><img src=x onerror=window.ran=1>",
    "--><svg onload=window.ran=1><!--",
    "]]><svg><script>window.ran=1</script></svg>",
    "<svg><animate onbegin=window.ran=1 attributeName=x dur=1s>",
    "<iframe srcdoc='<script>parent.ran=1</script>'></iframe>",
    "<a href='javascript:window.ran=1' id=list class=packed>click</a>",
    "<base href='http://127.0.0.1:9/'><link rel=stylesheet href=x>",
    "<meta http-equiv=refresh content=0>",
    "<form id=search><input name=value></form><object data=x><embed src=x>",
    '" autofocus onfocus="window.ran=1" x="',
    "' onmouseover='window.ran=1",
    "{{ 7*7 }}{% for x in y %}{# ${window.ran=1} `${window.ran=1}`",
    "\\u003cscript\\u003ewindow.ran=1\\u003c/script\\u003e &lt;script&gt;",
    "__proto__",
    "constructor",
    "\u2028window.ran=1\u2029//\x00\x1b[2J\x9b31m\x85\u202e\u2066\ufeff\u200b",
    "=1+1|cmd",
    "😀 a\u0300\u0301\u0302\u0303\u0304\u0305",
    "",
]
BUILT = "img, iframe, object, embed, base, form, link, svg animate, svg script, .conversation a"


@pytest.mark.parametrize("payload", PAYLOADS)
def test_a_payload_is_shown_wherever_it_stands_and_never_runs(
    browser, tmp_path, result, payload, make_page
):
    examples = [Example(f"{payload}{n}", "d", (payload, "hello"), (payload,)) for n in range(3)]
    text = f"{payload} marker"
    shown_label = f"{payload} label"
    job = result("a", scores(1), label=shown_label, notes=(payload,), reason=payload)
    other = result("b", scores(2), label=f"{payload} other", notes=(payload,))
    caption = [replace(table, caption=text) for table in build([job, other], metrics=["dist-2"])]
    (path,) = write(
        caption,
        [job, other],
        tmp_path,
        ReportOptions(["html"]),
        read=lambda one: Responses(one, examples, [text] * 3, 1.0, "cpu"),
    )
    browser.open(path)
    search(browser, "marker")
    cell = browser.run("document.querySelector('.conversation td.response').textContent")
    assert cell == visible(text)
    assert browser.run("document.querySelectorAll('.conversation').length") == 3
    assert browser.run(f"document.querySelectorAll({json.dumps(BUILT)}).length") == 0
    assert browser.run("document.querySelectorAll('script').length") == 2
    assert browser.run("window.ran === undefined && ({}).ran === undefined")
    assert not set("\x00\x1b\x9b\x85\u202e\u2066\u200b") & set(path.read_text(encoding="utf-8"))
    assert not problems(browser)


def test_a_click_on_a_heading_sorts_by_the_unrounded_value(browser, plain):
    browser.open(plain)
    before = column(browser, 0)
    assert before == ["beta", "alpha", "gamma", "oracle"]
    button = "table.dialbench thead tr:last-child th:nth-child({}) button".format
    click(browser, button(2))
    assert column(browser, 0) == ["gamma", "alpha", "beta", "oracle"]
    assert browser.run("document.querySelector('[aria-sort]').ariaSort") == "descending"
    click(browser, button(2))
    assert column(browser, 0) == ["beta", "alpha", "gamma", "oracle"]
    click(browser, button(1))
    assert column(browser, 0) == ["alpha", "beta", "gamma", "oracle"]
    for _ in range(2):
        click(browser, button(1))
    assert column(browser, 0) == before
    assert browser.run("document.querySelector('[aria-sort]')") is None


def test_marks_and_intervals_can_be_switched(browser, plain):
    browser.open(plain)
    weight = "getComputedStyle(document.querySelector('td strong')).fontWeight"
    interval = "getComputedStyle(document.querySelector('td[data-interval]'), '::after').content"
    assert (browser.run(weight), browser.run(interval)) == ("700", "none")
    click(browser, "#shown input[value=best]")
    click(browser, "#shown input[value=intervals]")
    assert browser.run(weight) == "400"
    assert browser.run(interval) == '"−0.010 to 0.010"'


def test_search_finds_contexts_references_and_answers(browser, plain):
    browser.open(plain)
    for query, matches in (
        ("QUESTION 17", ["e17"]),
        ("reference 3", ["e3"]),
        ("agree on 22", ["e22"]),
        ("nowhere", []),
    ):
        search(browser, query)
        assert shown_ids(browser) == matches
    search(browser, "Agree on 22")
    assert text_of(browser, "mark") == "agree on 22"


def test_only_systems_that_are_shown_are_searched(browser, plain):
    browser.open(plain)
    search(browser, "gammagamma")
    assert len(shown_ids(browser)) == 6
    click(browser, "#systems label:nth-child(3) input")
    assert shown_ids(browser) == []
    search(browser, "")
    labels = "[...document.querySelectorAll('.conversation')][0].innerText.includes('gamma')"
    assert browser.run(labels) is False


def test_systems_are_chosen_for_tables_and_conversations_at_once(browser, plain):
    browser.open(plain)
    shown_rows = (
        "[...document.querySelectorAll('table.dialbench tbody tr')]"
        ".filter((row) => !row.hidden).map((row) => row.cells[0].innerText)"
    )
    assert text_of(browser, "#chosen") == "all 4"
    click(browser, "#systems label:nth-child(3) input")
    assert browser.run(shown_rows) == ["beta", "alpha", "oracle"]
    assert text_of(browser, "#chosen") == "3 of 4"
    click(browser, "#none")
    assert browser.run(shown_rows) == []
    assert browser.run("document.querySelectorAll('.conversation tbody tr').length") == 0
    click(browser, "#every")
    assert browser.run(shown_rows) == ["beta", "alpha", "gamma", "oracle"]


def test_systems_that_respond_the_same_share_a_row(browser, make_page):
    texts = {name: ["the same"] * CONTEXTS for name in ("a", "b", "c", "d")}
    browser.open(make_page(texts | {"other": ["another"] * CONTEXTS}))
    rows = browser.run(
        "[...document.querySelector('.conversation tbody').rows]"
        ".map((row) => [row.cells[0].textContent, row.cells[1].textContent])"
    )
    assert rows == [["4 systemsabcd", "the same"], ["other", "another"]]


@pytest.mark.parametrize(
    ("name", "matches"),
    [
        ("disagree", [f"e{n}" for n in range(0, CONTEXTS, 4)]),
        ("generic", ["e5"]),
        ("contradiction", ["e7"]),
    ],
)
def test_filters(browser, plain, name, matches):
    browser.open(plain)
    click(browser, f"#filter-{name} input")
    assert shown_ids(browser) == matches


def test_filters_without_their_metric_are_left_out(browser, tmp_path, result):
    one = result("a")
    examples = [Example("e", "d", ("hello",), ("hi",))]
    (path,) = write(
        build([one], metrics=["length"]),
        [one],
        tmp_path,
        ReportOptions(["html"]),
        read=lambda job: Responses(job, examples, ["well"], 1.0, "cpu"),
    )
    browser.open(path)
    hidden = "[...document.querySelectorAll('[id^=filter-]')].map((label) => label.hidden)"
    assert browser.run(hidden) == [False, True, True]


def test_pages_of_conversations_are_turned(browser, plain):
    browser.open(plain)
    assert shown_ids(browser) == [f"e{n}" for n in range(10)]
    click(browser, "#next")
    click(browser, "#next")
    assert shown_ids(browser) == [f"e{n}" for n in range(20, 24)]
    assert browser.run("document.querySelector('#next').disabled")
    search(browser, "question 1")
    assert text_of(browser, "#status").endswith("page 1 of 2")


def test_values_stand_beside_each_answer(browser, plain):
    browser.open(plain)
    search(browser, "question 7")
    rows = browser.run(
        "[...document.querySelectorAll('.conversation tbody tr')]"
        ".map((row) => [...row.cells].map((cell) => cell.innerText))"
    )
    assert rows[1] == ["alpha", "all agree on 7", "0", "−0.50"]
    assert rows[0] == ["beta\ngamma\noracle", "all agree on 7", "0", "0.00"]


@pytest.mark.parametrize("dark", [False, True])
def test_the_theme_follows_the_reader_until_changed(browser, plain, dark):
    browser.open(plain, dark=dark)
    ground = "getComputedStyle(document.body).backgroundColor"
    colours = ["rgb(255, 255, 255)", "rgb(22, 25, 29)"]
    assert browser.run(ground) == colours[dark]
    click(browser, "#theme")
    assert browser.run(ground) == colours[not dark]


@pytest.mark.parametrize("width", [360, 1280])
def test_the_page_is_as_wide_as_the_screen(browser, plain, width):
    browser.open(plain, width=width)
    assert browser.run("document.documentElement.scrollWidth") <= width


def test_everything_can_be_reached_by_the_keyboard(browser, plain):
    browser.open(plain)
    controls = "[...document.querySelectorAll('button, input, select, summary, a')]"
    assert browser.run(f"{controls}.every((control) => control.tabIndex === 0)")
    click(browser, "#next")
    browser.run("document.querySelector('#previous').focus()")
    for kind in ("keyDown", "keyUp"):
        key = {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13, "text": "\r"}
        browser.send("Input.dispatchKeyEvent", type=kind, **key)
    assert shown_ids(browser)[0] == "e0"
