from __future__ import annotations

import base64
import shlex
import xml.etree.ElementTree as ET
from collections.abc import Callable
from html.parser import HTMLParser

import numpy as np
import pytest

from earshot_protocol.privacy.accounting import Release
from earshot_protocol.privacy.mechanisms import Unit
from earshot_server.dashboard.wording import byte_size, counted, whole
from earshot_simulations.phases.run import Run, command_line, headline, render
from earshot_simulations.populations import Skipped
from earshot_simulations.reporting.words import duration, percent, printable

MakeRun = Callable[..., Run]
VOID = {"meta", "link", "img", "br"}
SVG = "data:image/svg+xml;base64,"
HOSTILE = "<script>alert('\"&$x_{\udce9}\x00\u202e日本 {title} ${version} {{ version }} {% raw"


class Page(HTMLParser):
    """Checks that elements nest and close, and collects what a test asks about."""

    def __init__(self, document: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.cells: list[str] = []
        self.rows: list[list[str]] = []
        self.feed(document)
        self.close()
        assert not self.open, f"never closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len({name for name, _ in attrs}) == len(attrs), f"{tag} repeats an attribute"
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("style", "script"):
            self.words.append(data)
        if {"td", "th"} & set(self.open):
            self.rows[-1][-1] += data

    @property
    def text(self) -> str:
        return _spaced(" ".join(self.words))

    def row(self, *start: str) -> list[str]:
        (found,) = [row for row in self.rows if tuple(row[: len(start)]) == start]
        return [_spaced(cell) for cell in found]

    def pictures(self) -> list[ET.Element]:
        sources = [attrs["src"] or "" for tag, attrs in self.elements if tag == "img"]
        assert all(source.startswith(SVG) for source in sources)
        # S314: the markup was made here.
        return [ET.fromstring(base64.b64decode(source[len(SVG) :])) for source in sources]  # noqa: S314


def _spaced(text: str) -> str:
    """Return text with plain spaces in place of those at which no line breaks."""
    return text.replace("\u202f", " ").replace("\N{NO-BREAK SPACE}", " ")


def check_alone(page: Page) -> None:
    """Nothing in the page or in its pictures points anywhere else, and nothing runs."""
    for tag, attributes in page.elements:
        assert tag not in ("script", "iframe", "object", "embed", "base", "form")
        for name, value in attributes.items():
            assert not name.startswith("on")
            if name in ("src", "href", "srcset", "action", "data", "poster"):
                assert (value or "").startswith(("data:", "#"))
            if name == "style":
                assert "url(" not in (value or "")
        if tag == "img":
            assert attributes.get("alt", "").strip()
    for svg in page.pictures():
        for element in svg.iter():
            assert element.tag.rpartition("}")[2] not in ("script", "foreignObject")
            for name, value in element.attrib.items():
                if name.rpartition("}")[2] == "href":
                    assert value.startswith(("data:", "#"))
                assert "url(" not in value.replace("url(#", "")


@pytest.mark.parametrize("dimensions", [1, 2, pytest.param(16, marks=pytest.mark.slow)])
def test_report_is_whole_and_stands_alone(make_run: MakeRun, dimensions: int) -> None:
    document = render(make_run(dimensions=dimensions))
    page = Page(document)
    check_alone(page)
    assert len(page.pictures()) == 10
    assert [tag for tag, _ in page.elements].count("h1") == 1
    assert "url(" not in document.split("</style>")[0]
    assert "@import" not in document


@pytest.mark.slow
def test_report_is_the_same_every_time(make_run: MakeRun) -> None:
    assert render(make_run(dimensions=16)) == render(make_run(dimensions=16))


def test_headline_says_the_outcome(make_run: MakeRun) -> None:
    assert headline(make_run()).replace("\u202f", " ") == (
        "92 of 100 phones found 2 environments; 1 centroid of 3 stayed unnamed; a new recording "
        "gets the right name 97 % of the time; total privacy cost ε = 2.5 at δ = 10⁻⁶ per "
        "recording and ε = 302 at δ = 3 · 10⁻⁶ per phone (vacuous)."
    )


def test_two_centroids_of_one_name_are_one_environment(make_run: MakeRun) -> None:
    assert "found 1 environment;" in headline(make_run(labels=np.array([1, 1, -1])))


def test_only_everything_is_a_hundred_percent(make_run: MakeRun) -> None:
    assert "right name 99 % of" in headline(make_run(label_accuracy=0.9999))
    assert "right name 100 % of" in headline(make_run(label_accuracy=1.0))


def test_headline_of_a_failure_claims_nothing(make_run: MakeRun) -> None:
    nobody = np.full(3, -1)
    assert "no environment was found" in headline(make_run(labels=nobody))
    stopped = headline(make_run(interrupted="the server caught fire"))
    assert stopped == "The run ended early: the server caught fire."


@pytest.mark.usefixtures("no_pictures")
def test_tables_hold_the_numbers_of_the_run(make_run: MakeRun) -> None:
    page = Page(render(make_run()))
    assert page.row("park", "1") == ["park", "1", "50", "30", "97 %", "0.004"]
    assert page.row("bus", "0") == ["bus", "0", "40", "25", "93 %", "0.02"]
    assert page.row("unnamed", "2") == ["unnamed", "2", "30", "0", "–", "1"]
    assert page.row("clustering") == ["clustering", "1.5", "0", "300", "0", "–", "Lloyd"]
    assert page.row("Together") == ["Together", "2.5", "10⁻⁶", "302", "3 · 10⁻⁶", "–", ""]
    assert page.row("label vote: share keys", "94") == [
        "label vote: share keys", "94", "93", "1", "0",
    ]  # fmt: skip
    assert page.row("label vote: share keys", "1 kB") == [
        "label vote: share keys", "1 kB", "2 kB", "10 ms", "250 ms", "500 ms",
    ]  # fmt: skip
    assert page.row("discover") == ["discover", "–", "–", "–", "1.75 s", "2 s"]
    assert page.row("Total", "8 kB") == ["Total", "8 kB", "16 kB", "80 ms", "3.75 s", "6 s"]
    assert page.row("short") == ["short", "2"]
    assert "8 phones of 100 vanished" in page.text
    assert "label vote: share keys: 76" in page.text


@pytest.mark.usefixtures("no_pictures")
def test_columns_of_numbers_are_marked(make_run: MakeRun) -> None:
    document = render(make_run())
    assert '<td class="number" data-column="ε recording">' in document
    assert '<th scope="col" class="number">ε recording</th>' in document


@pytest.mark.usefixtures("no_pictures")
def test_a_promise_that_promises_nothing_is_called_so(make_run: MakeRun) -> None:
    assert "Per phone this promises nothing: ε = 302" in Page(render(make_run())).text
    small = (
        Release("vote", Unit.RECORDING, 1.0, 0.0, "m"),
        Release("vote", Unit.PHONE, 19.0, 0.0, "m"),
    )
    assert "promises nothing" not in render(make_run(privacy=small))
    sure = (
        Release("vote", Unit.RECORDING, 1.0, 1.0, "m"),
        Release("vote", Unit.PHONE, 1.0, 0.0, "m"),
    )
    assert "Per recording this promises nothing" in render(make_run(privacy=sure))


def test_hostile_text_stays_text(make_run: MakeRun) -> None:
    names = (HOSTILE, HOSTILE + "2", "$\\frac{$")
    document = render(
        make_run(
            label_names=names,
            population=HOSTILE,
            version=HOSTILE,
            interrupted=HOSTILE,
            notes=(HOSTILE,) * 5,
            skipped=(Skipped(HOSTILE, HOSTILE),),
            configuration={"data": HOSTILE, HOSTILE: HOSTILE},
            privacy=(Release(HOSTILE, Unit.RECORDING, 1.0, 0.0, HOSTILE),),
        )
    )
    document.encode("utf-8")
    assert "\x00" not in document
    page = Page(document)
    check_alone(page)
    shown = printable(HOSTILE)
    assert [shown, "1", "0", "0", "0", "–", shown] in page.rows
    assert page.words.count(shown) >= 8
    drawn = "".join("".join(svg.itertext()) for svg in page.pictures())
    assert "<script>" in drawn
    assert "$\\frac{$" in drawn


@pytest.mark.parametrize("stage", range(5))
def test_report_of_a_run_that_ended_early(cut_short: Callable[[int], Run], stage: int) -> None:
    page = Page(render(cut_short(stage)))
    check_alone(page)
    assert "The run ended early: too few phones stayed." in page.text
    assert page.text.count("the run did not get this far") == {0: 3, 1: 3, 2: 2, 3: 1, 4: 2}[stage]
    assert "Nothing was released, so nothing was spent." in page.text


def test_report_when_nothing_was_found(make_run: MakeRun) -> None:
    empty = make_run(
        local_clusters=np.full(7, -1),
        global_centroids=np.empty((0, 2), np.float32),
        centroid_votes=np.empty(0, np.int64),
        top=np.empty(0, np.int64),
        label_votes=np.empty((0, 3), np.int64),
        labels=np.empty(0, np.int64),
        notes=("The budget was too small for this data.",),
    )
    page = Page(render(empty))
    check_alone(page)
    assert "no environment was found" in page.text
    assert "The budget was too small for this data." in page.text
    assert "7 outliers" in " ".join(attributes.get("alt") or "" for _, attributes in page.elements)


@pytest.mark.slow
@pytest.mark.usefixtures("no_pictures")
def test_every_note_is_shown_once_there_are_many(make_run: MakeRun) -> None:
    notes = tuple(f"phone {number} refused" for number in range(100))
    page = Page(render(make_run(notes=notes)))
    assert all(note in page.words for note in notes)


def test_long_lists_are_cut_and_say_so(make_run: MakeRun) -> None:
    skipped = tuple(Skipped(f"{number}.wav", "short") for number in range(5000))
    first = make_run().steps[0]
    steps = (type(first)(step="x", asked=9000, answered=1, dropped=tuple(range(8999))),)
    document = render(make_run(skipped=skipped, steps=steps))
    text = Page(document).text
    assert "The first 200 of 5 000." in text
    assert "998, 999 and 7 999 more" in text
    assert len(document) < 1_000_000


@pytest.mark.slow
def test_large_runs_keep_the_report_small(make_run: MakeRun) -> None:
    random = np.random.default_rng(1)
    many = random.normal(0, 5, (60_000, 2)).astype(np.float32)
    names = tuple(f"label {number}" for number in range(200))
    run = make_run(
        points=many[:4000],
        scenes=random.integers(0, 200, 4000),
        label_names=names,
        local_centroids=many,
        local_clusters=random.integers(-1, 500, 60_000),
        global_centroids=many[:500],
        centroid_votes=np.arange(500),
        top=np.arange(400, 500),
        label_votes=random.integers(-9, 90, (100, 200)),
        labels=random.integers(0, 200, 100),
        name_p_values=tuple(random.uniform(0, 1, 100)),
        label_histogram=np.arange(200),
        true_histogram=np.arange(200),
    )
    document = render(run)
    assert len(document.encode()) < 3_000_000
    text = Page(document).text
    assert "names left out for lack of room." in text
    assert "20 000 of 60 000 drawn." in text
    assert "160 labels with fewer not shown." in text


# ----------------------------------------------------------------------------- the words


def test_command_line_repeats_the_run() -> None:
    line = command_line(
        {
            "phones": 100,
            "data": "my sounds; rm -rf",
            "budget": {"clustering": 1.0, "centroid_vote": 0.5},
            "top_local_centroids": 2,
            "json": True,
            "quiet": False,
            "out": None,
        }
    )
    assert shlex.split(line.replace("\\\n", "")) == [
        "earshot", "simulate", "--phones", "100", "--data", "my sounds; rm -rf",
        "--budget", "clustering=1.0,centroid-vote=0.5", "--top-local-centroids", "2", "--json",
    ]  # fmt: skip


def test_options_of_the_other_discovery_are_left_out() -> None:
    both = {"cells": 20, "epsilon": 2.0, "budget": {"clustering": 1.0}, "phones": 9}
    both["selection_method"] = "gumbel"
    by_sums = command_line(both | {"discovery": "secure-sum"})
    assert "--cells 20" in by_sums
    assert "--budget" not in by_sums
    chosen = both | {"discovery": "local", "epsilon": None}
    local = shlex.split(command_line(chosen).replace("\\\n", ""))
    assert local == [
        "earshot", "simulate", "--budget", "clustering=1.0", "--phones", "9",
        "--selection-method", "gumbel", "--discovery", "local",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (whole(1234567), "1\u202f234\u202f567"),
        (whole(-3), "−3"),
        (byte_size(0), "0 bytes"),
        (byte_size(999.4), "999 bytes"),
        (byte_size(999.6), "1 kB"),
        (byte_size(5_250), "5.25 kB"),
        (byte_size(3.2e15), "3.2e+03 TB"),
        (duration(0.0004), "0.4 ms"),
        (duration(0.9996), "1 s"),
        (duration(59.97), "1 min 0 s"),
        (duration(3661), "61 min 1 s"),
        (percent(-0.003), "0 %"),
        (counted(1, "phone"), "1 phone"),
        (counted(0, "phone"), "0 phones"),
        (printable("a\tb\x00c\udce9é日"), "a b\ufffdc\ufffdé日"),
    ],
)
def test_wording(written: str, expected: str) -> None:
    assert written == expected
