"""Templates of pages: words become text in each, and nothing that a template names is missing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from jinja2 import UndefinedError

import earshot_simulations
from earshot_protocol.privacy.mechanisms import Unit
from earshot_simulations.auditing import page as audit_page
from earshot_simulations.auditing.findings import EXACT, Bracket, Check, Finding, Technique
from earshot_simulations.reporting.drawing import Picture
from earshot_simulations.reporting.pages import page

ROOM = Path(earshot_simulations.__file__).parent
HOSTILE = "<script>alert('\"&x')</script>{{ title }}\x00\u202e"
SHOWN = "&lt;script&gt;alert(&#39;&#34;&amp;x&#39;)&lt;/script&gt;{{ title }}\ufffd\u202e"
HEAD = dict.fromkeys(("title", "kicker", "headline", "version"), HOSTILE)


def test_no_template_vouches_for_markup() -> None:
    templates = {path: path.read_text("utf-8") for path in ROOM.rglob("*.html")}
    assert len(templates) > 5
    for path, text in templates.items():
        assert not re.search(r"\|\s*safe\b|autoescape", text), path


def test_the_frame_of_a_page_holds_words_as_text() -> None:
    text = page("reporting/page.html", **HEAD, warnings=[HOSTILE], figures={HOSTILE: HOSTILE})
    assert "<script" not in text
    assert text.count(SHOWN) == 7
    assert f"<title>Earshot: {SHOWN}</title>" in text
    assert f"<div><dt>{SHOWN}</dt><dd>{SHOWN}</dd></div>" in text


def test_no_line_breaks_within_a_quantity() -> None:
    words = "100 % of 4 at ε = 2 and δ = 3 · 10⁻⁷, or ε = ∞ at δ ≤ 10⁻⁵"
    text = page("reporting/page.html", **HEAD | {"headline": words})
    whole = ("100 %", "ε = 2", "δ = 3 · 10⁻⁷,", "ε = ∞", "δ ≤ 10⁻⁵")
    shown = re.search("<h1>(.*)</h1>", text)
    assert shown is not None
    assert shown[1].replace("\N{NO-BREAK SPACE}", " ") == words
    assert [each for each in shown[1].split(" ") if "\N{NO-BREAK SPACE}" in each] == [
        each.replace(" ", "\N{NO-BREAK SPACE}") for each in whole
    ]


def test_captions_cells_and_attributes_hold_words_as_text() -> None:
    text = page(
        "sweeps/page.html",
        **HEAD,
        multiples=[
            {
                "title": HOSTILE,
                "words": HOSTILE,
                "pictures": {HOSTILE: Picture(lambda axes: None, 1.0, HOSTILE, HOSTILE)},
            }
        ],
        columns=[HOSTILE],
        means=[],
        intervals=HOSTILE,
        points=0,
        shared=[(HOSTILE, HOSTILE)],
    )
    assert "<script" not in text
    assert f'alt="{SHOWN}"' in text
    assert f"<strong>{SHOWN}</strong> {SHOWN}</figcaption>" in text
    assert f'<tr><th scope="row">{SHOWN}</th><td>{SHOWN}</td></tr>' in text


def test_an_audit_holds_words_as_text() -> None:
    method = Technique(EXACT, HOSTILE)
    measured = Bracket(0.9, 0.91)
    found = Finding(HOSTILE, Unit.PHONE, 1e-6, 1.0, 1.0, measured, method, subject="ballot-sum")
    check = Check(HOSTILE, HOSTILE, HOSTILE, True, HOSTILE, HOSTILE, subject="samplers")
    text = audit_page.render([found, check])
    assert "<script" not in text
    assert text.count(SHOWN) >= 6


def test_a_value_that_a_template_misses_is_an_error() -> None:
    with pytest.raises(UndefinedError, match="intervals"):
        page("sweeps/page.html", **HEAD, multiples=[], columns=[""], means=[], points=0, shared=[])
    row = {"title": "", "words": "", "findings": {}, "checks": [["one cell of five"]]}
    with pytest.raises(UndefinedError):
        page("auditing/page.html", **HEAD, parts=[row | {"methods": []}])
