"""Languages of the dashboard: how a page's is chosen, and whether all its texts are there."""

from __future__ import annotations

import json
import re
from collections import Counter
from datetime import date
from functools import partial
from pathlib import Path

import msgspec
import pytest
from markupsafe import Markup
from support import dashboard_records as made
from support.api_caller import Server
from support.dashboard_server import application
from support.dashboard_texts import TEXTS, english
from support.desk import OperatorsBrowser
from werkzeug.test import TestResponse

from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.rules import Rule
from earshot_protocol.secure_sum.interface import SummationName
from earshot_server.api import forms
from earshot_server.dashboard import languages, prospects, rendering, sentences, wording
from earshot_server.dashboard.language_choice import COOKIE
from earshot_server.dashboard.languages import ENGLISH, LANGUAGES
from earshot_server.dashboard.verdict import verdict
from earshot_server.phases.forecast import forecast
from earshot_server.records import PhaseRecord, StepRecord, Trouble

GERMAN = {"Accept-Language": "de-DE,de;q=0.9,en;q=0.8"}
SKIP = {"en": "Skip to the content", "de": "Zum Inhalt springen"}
"""A text that every page has."""
FILES = sorted(TEXTS.glob("*.json"))


def get(path: str, *records: PhaseRecord, cookie: str = "", **fields: str) -> TestResponse:
    client = application(made.HandMadeArchive(records)).test_client()
    if cookie:
        client.set_cookie(COOKIE, cookie)
    return client.get(path, headers=fields)


def language_of(response: TestResponse) -> str:
    """The language that a page is in, which all its parts must agree on."""
    assert response.status_code == 200
    named = re.search(r'<html lang="(\w+)">', response.text)
    assert named
    language = named[1]
    assert response.headers["Content-Language"] == language
    assert [each for each, text in SKIP.items() if text in response.text] == [language]
    return language


@pytest.fixture
def german(monkeypatch: pytest.MonkeyPatch) -> None:
    """All texts are of a German page."""
    monkeypatch.setattr(languages, "_of_page", lambda: "de")


# ----------------------------------------------------------------------------------- the choice


@pytest.mark.parametrize(
    ("preferred", "language"),
    [
        ("", "en"),
        ("de", "de"),
        ("de-AT", "de"),
        ("fr, de;q=0.5, en;q=0.2", "de"),
        ("en-GB, de;q=0.9", "en"),
        ("en-GB;q=0.8, DE-ch", "de"),
        ("de;q=0, fr", "en"),
        ("fr", "en"),
        ("*", "en"),
        ("de;q=nonsense, \u00e9\u00e9\u00e9, ;;;", "en"),
    ],
)
def test_a_page_is_in_the_language_that_the_browser_prefers(preferred: str, language: str) -> None:
    assert language_of(get("/", **{"Accept-Language": preferred})) == language


@pytest.mark.parametrize(
    ("asked", "kept", "language"),
    [
        ("?language=en", "de", "en"),
        ("?language=de", "", "de"),
        ("", "en", "en"),
        ("?language=fr", "en", "en"),
        ("?language=fr", "", "de"),
        ("?language=../../../etc/passwd", "DE", "de"),
        ("", "%00", "de"),
    ],
)
def test_the_address_goes_before_the_cookie_and_that_before_the_browser(
    asked: str, kept: str, language: str
) -> None:
    response = get(f"/{asked}", cookie=kept, **GERMAN)
    assert language_of(response) == language


def test_a_choice_is_kept_for_a_year_and_other_visits_keep_nothing() -> None:
    kept = get("/?language=de").headers["Set-Cookie"]
    assert kept.startswith(f"{COOKIE}=de; ")
    assert {"HttpOnly", "SameSite=Strict", "Max-Age=31536000", "Path=/"} <= set(kept.split("; "))
    assert "Secure" not in kept.split("; ")
    for path in ("/", "/?language=fr", "/phases.csv?language=de"):
        assert "Set-Cookie" not in get(path, **GERMAN).headers


def test_a_page_that_renews_itself_does_not_choose_again() -> None:
    renewed = get("/?language=de", **{"X-Requested-With": "renew.js"})
    assert language_of(renewed) == "de"
    assert "Set-Cookie" not in renewed.headers


def test_by_https_the_choice_is_sent_by_https_alone() -> None:
    client = application(made.HandMadeArchive(())).test_client()
    kept = client.get("/?language=de", base_url="https://earshot.example").headers["Set-Cookie"]
    assert "Secure" in kept.split("; ")


def test_caches_are_told_what_the_language_depends_on() -> None:
    assert {"Accept-Language", "Cookie"} <= set(get("/").vary)


def test_every_other_language_is_one_click_away() -> None:
    text = get("/statistics?language=de").text
    assert '<a href="?language=en" lang="en" hreflang="en">English</a>' in text
    assert 'hreflang="de"' not in text


def test_no_path_makes_the_link_to_another_language_leave_the_site(server: Server) -> None:
    text = OperatorsBrowser(server).get("/%5Cexample.org/a%3Fb?c=1").text
    assert '<a href="?c=1&amp;language=de"' in text
    assert "example.org" not in text


def test_the_desk_is_german_for_a_german_browser(server: Server) -> None:
    browser = OperatorsBrowser(server)
    for path in ("/sign-in", "/start", "/invite", "/operators"):
        assert language_of(browser.get(path, **GERMAN)) == "de"
        assert language_of(browser.get(path)) == "en"
        browser.sign_in()
    problem = browser.get("/no-such-page", **GERMAN)
    assert (problem.status_code, problem.headers["Content-Language"]) == (404, "de")
    assert SKIP["de"] in problem.text


def test_a_verdict_is_german_for_a_german_browser(server: Server) -> None:
    browser = OperatorsBrowser(server)
    browser.sign_in()
    form = browser.fields(browser.get("/start")) | {"phones": "2000", "epsilon": "2", "do": "look"}
    said = re.search(r"<h1>([^<]*)</h1>", browser.post("/start", form, **GERMAN).text)
    assert said
    assert re.search(r"2\u202f000 Telefone können hier .* lernen", said[1])


def test_the_api_is_english_for_a_german_browser(server: Server) -> None:
    asked = {"Authorization": f"Bearer {server.credentials.operator_token}"}
    client = server.app.test_client()
    for path in ("/v1/phases", "/v1/phases/none"):
        plain, wanted = (client.get(path, headers=asked | more) for more in ({}, GERMAN))
        assert plain.mimetype.endswith("json")
        assert (wanted.data, wanted.status_code) == (plain.data, plain.status_code)
        assert "Content-Language" not in wanted.headers


@pytest.mark.parametrize(
    "path",
    [
        "/phases.csv",
        "/spent.csv",
        "/phases/{}/parameters.csv",
        "/phases/{}/histogram.csv",
        "/phases/{}/refusals.csv",
        "/statistics/contacts/changes.csv",
    ],
)
def test_tables_for_programs_are_english(path: str) -> None:
    refused = {Rule.LARGEST_EPSILON.value: 3}
    last = msgspec.structs.replace(made.published_statistics(30, made.NOW), refusals=refused)
    records = (made.published_statistics(29, made.NOW - 86_400.0), made.running(), last)
    path = path.format(last.phase.hex())
    german, plain = get(f"{path}?language=de", *records, cookie="de", **GERMAN), get(path, *records)
    assert plain.status_code == 200
    assert german.data == plain.data
    assert "Content-Language" not in german.headers


@pytest.mark.parametrize(
    ("record", "words"),
    [
        (made.gathering(), ["Beigetreten: 64 von 200 Telefonen", "Statistikphase"]),
        (made.running(), ["Geantwortet: 131 von 190 Telefonen", "Anteil, der ausfallen darf"]),
        (
            made.published_learning(1, made.NOW),
            ["Karte von 8 Orten", "ohne Namen", "kann Rauschen sein: p = 0,"],
        ),
        (
            made.published_discovery(2, made.NOW),
            ["Karte: 7 Prototypen und 8 Zellen", ">unbekannt<", "eines Winkels von"],
        ),
        (
            made.published_labelling(3, made.NOW),
            ["keine Antwort (8 stimmen zu; nötig sind 40)", "Eine Aufnahme kostet hier mehr"],
        ),
        (made.published_statistics(4, made.NOW), ["gezählte Kontakte", "zählten ihre Kontakte"]),
        (made.too_few(), ["Diese Phase endete ohne Ergebnis", "lassen Sie mehr Ausfall zu"]),
        (made.stopped(), ["Diese Phase wurde abgebrochen"]),
        (
            msgspec.structs.replace(made.running(), refusals={Rule.PROOFS.value: 3}),
            ["3 Telefone lehnen diese Phase ab: Eingaben müssen bewiesen werden", "nötig ist"],
        ),
    ],
    ids=lambda shown: shown.parameters.kind if isinstance(shown, PhaseRecord) else "",
)
def test_a_phase_s_page_says_in_german_what_modules_say(
    record: PhaseRecord, words: list[str]
) -> None:
    text = get(f"/phases/{record.phase.hex()}", record, **GERMAN).text
    assert [each for each in words if each not in text] == []


@pytest.mark.parametrize("page", ["", "/wall"])
def test_the_name_of_an_error_is_said_to_be_english(page: str) -> None:
    total = StepRecord(4, "histogram: total", 1, 0, made.NOW, None)
    record = msgspec.structs.replace(
        made.running(),
        parameters=msgspec.structs.replace(made.COUNTING, summation=SummationName.TWO_OPERATORS),
        steps=(total,),
        helper=Trouble(3, "unreachable", made.NOW + 600),
        trouble=Trouble(2, "DatabaseError", made.NOW + 60),
    )
    text = get(f"/phases/{record.phase.hex()}{page}", record, **GERMAN).text
    assert 'ohne Erfolg gefragt (<span lang="en">unreachable</span>)' in text
    assert 'nicht fortsetzen (<span lang="en">DatabaseError</span>)' in text


def test_no_verb_agrees_with_a_number_of_phones() -> None:
    """The English texts are chosen by the number of all phones, not of those that answered."""
    for record in (made.running(answered=1), made.gathering()):
        text = get(f"/phases/{record.phase.hex()}", record, **GERMAN).text
        assert re.search(
            r"(Geantwortet|Beigetreten): <strong>\d+</strong> von \d+ Telefonen;", text
        )


def test_totals_and_changes_are_german() -> None:
    records = made.some_months()
    assert "Lernphasen" in get("/", *records, **GERMAN).text
    assert "nicht stärker verändert als das Rauschen" in get("/statistics", *records, **GERMAN).text


@pytest.mark.parametrize(
    ("typed", "english", "german"),
    [
        ("0.5", 0.5, 0.5),
        ("0,5", None, 0.5),
        ("1 000", 1000.0, 1000.0),
        ("1.000", 1.0, None),
        ("12.345.678", None, None),
        ("1,000", None, 1.0),
        ("1.000,5", None, None),
        ("1.25", 1.25, 1.25),
        ("0.125", 0.125, 0.125),
        (".5", 0.5, 0.5),
        ("1e1", None, None),
        ("1_0", None, None),
        ("１０", None, None),  # full width
        ("1,5.2", None, None),
    ],
)
def test_a_form_takes_plain_numbers_and_no_thousand_for_one(
    typed: str, english: float | None, german: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for language, days in (("en", english), ("de", german)):
        monkeypatch.setattr(languages, "_of_page", partial(str, language))
        filled = forms.Filled({"name": "", "uses": "9", "days": typed, "cohort": ""})
        found = forms.read_invite(filled)
        assert (None if found is None else found.days) == days
        assert ("days" in filled.errors) == (days is None)


# ------------------------------------------------------------------------------------ the texts


def test_there_is_a_file_for_each_language_but_english() -> None:
    assert [file.stem for file in FILES] == sorted(LANGUAGES.keys() - {ENGLISH})


@pytest.fixture(params=FILES, ids=lambda file: file.stem)
def file(request: pytest.FixtureRequest) -> Path:
    found: Path = request.param
    return found


@pytest.fixture
def texts(file: Path) -> dict[str, str]:
    found: dict[str, str] = json.loads(file.read_text("utf-8"))
    return found


def test_a_file_has_every_text_of_the_pages_and_no_other(texts: dict[str, str]) -> None:
    assert english() - texts.keys() == set(), "add these"
    assert texts.keys() - english() == set(), "remove these"


def test_a_file_is_sorted_and_has_each_text_once(file: Path, texts: dict[str, str]) -> None:
    in_order = {text: texts[text] for text in sorted(texts)}
    assert file.read_text("utf-8") == json.dumps(in_order, ensure_ascii=False, indent=2) + "\n"


@pytest.mark.parametrize(
    "part",
    [r"%\(\w+\)s|%%", r"</?\w+", r"<code>.*?</code>", r'href="[^"]*"', r"--[a-z-]+"],
    ids=["values", "tags", "code", "addresses", "options"],
)
def test_a_text_has_the_parts_of_the_english_one(texts: dict[str, str], part: str) -> None:
    for text, translated in texts.items():
        assert set(re.findall(part, translated)) == set(re.findall(part, text)), text


def test_tags_stand_as_often_as_in_english(texts: dict[str, str]) -> None:
    for text, translated in texts.items():
        tags = (Counter(re.findall(r"</?\w+", each)) for each in (translated, text))
        assert next(tags) == next(tags), text


def test_no_text_is_empty_and_every_one_can_be_filled_in(texts: dict[str, str]) -> None:
    for text, translated in texts.items():
        assert translated.strip()
        values = dict.fromkeys(re.findall(r"%\((\w+)\)s", text), "3")
        assert "%(" not in translated % values
        assert text % values


@pytest.mark.parametrize(
    ("english", "german"),
    [
        ("Phones accept up to", "Ohne andere Einstellung nehmen Telefone bis zu"),
        ("by default 5", "ohne andere Angabe 5"),
        ("phones learn only that an operator stopped", "dass jemand mit Zugang die Phase"),
        ("Anyone who sees this page can use it", "können die Einladung verwenden"),
        ("stayed: they gave", "blieben dabei und gaben"),
    ],
)
def test_what_a_german_text_promises_is_what_the_english_one_does(
    english: str, german: str
) -> None:
    texts: dict[str, str] = json.loads((TEXTS / "de.json").read_text("utf-8"))
    said = [translated for text, translated in texts.items() if english in text]
    assert said
    assert all(german in each for each in said)


# --------------------------------------------------------------------------- numbers and moments


@pytest.mark.usefixtures("german")
def test_numbers_have_a_comma() -> None:
    assert [wording.real(value) for value in (0.5, 2.4e-12, 408.7, 12_345.6)] == [
        *("0,5", "2,4 · 10⁻¹²"),
        *("409", "12\u202f346"),
    ]
    assert wording.alike(4.04, 3.0) == ("4,04", "3,00")
    assert wording.votes(-3.25) == "−3,2"
    assert wording.byte_size(1234.0) == "1,23 kB"
    assert wording.byte_size(12.0) == "12 Byte"
    assert wording.percent(0.05) == "5\u00a0%"
    assert wording.doubt(0.25) == "kann Rauschen sein: p = 0,25"
    assert wording.chance(0.0) == "< 10⁻⁶"


@pytest.mark.usefixtures("german")
def test_durations_and_distances_are_german() -> None:
    durations = [wording.duration(seconds) for seconds in (0.0066, 1.5, 11_100, 86_400 * 3 + 7200)]
    assert durations == ["6,6 ms", "1,5 s", "3 h 5 min", "3 Tage 2 h"]
    distances = {
        seconds: wording.from_now(made.NOW + seconds, made.NOW)
        for seconds in (-10, 10, -60, -3600, 7300, 86_400, -3 * 86_400)
    }
    assert list(distances.values()) == [
        *("gerade eben", "in weniger als einer Minute", "vor 1 Minute", "vor 1 Stunde"),
        *("in 2 Stunden", "in 1 Tag", "vor 3 Tagen"),
    ]


@pytest.mark.usefixtures("german")
def test_days_are_german() -> None:
    assert wording.instant(made.NOW) == "21. Sept. 2026, 14:13 UTC"
    assert ">21. Sept. 2026, 14:13 UTC</time>" in wording.moment(made.NOW)
    assert wording.window(date(2026, 1, 1), date(2026, 1, 8)) == "1. Jan. bis 7. Jan. 2026"
    assert wording.window(date(2025, 12, 30), date(2026, 3, 2)) == "30. Dez. 2025 bis 1. März 2026"
    assert wording.since(made.NOW - 7200, made.NOW) == (
        "seit dem 21. Sept. 2026, 12:13 UTC (vor 2 Stunden)"
    )


@pytest.mark.usefixtures("german")
def test_things_are_counted_and_listed_in_german() -> None:
    assert wording.counted(1, "phone") == "1 Telefon"
    assert wording.counted(12_345, "phone") == "12\u202f345 Telefone"
    assert wording.listed(["Café", "Büro", "Zug"]) == "Café, Büro und Zug"


# ------------------------------------------------------------------------------------- sentences


@pytest.mark.usefixtures("german")
def test_steps_and_kinds_have_german_names() -> None:
    kinds = (made.LEARNING, made.DISCOVERING, made.LABELLING, made.COUNTING)
    assert [sentences.kind_of_phase(each) for each in kinds] == [
        *("Lernphase", "Entdeckungsphase", "Benennungsphase", "Statistikphase")
    ]
    for parameters in kinds:
        for step in parameters.plan().steps:
            assert sentences.step(step.name) != step.name
    assert sentences.step("cells 12: share keys") == "Zellen 12: Schlüssel aufteilen"
    assert sentences.step("an unknown step") == "an unknown step"
    assert sentences.step("50% of all: share keys") == "50% of all: Schlüssel aufteilen"


def test_steps_are_called_as_in_logs_on_an_english_page() -> None:
    for parameters in (made.LEARNING, made.DISCOVERING, made.LABELLING, made.COUNTING):
        for step in parameters.plan().steps:
            assert sentences.step(step.name) == step.name


@pytest.mark.usefixtures("german")
def test_every_parameter_of_a_phase_has_a_german_name() -> None:
    known = set(languages._texts("de").values())
    records = (
        *(made.published_learning(1, made.NOW), made.published_discovery(2, made.NOW)),
        *(made.published_labelling(3, made.NOW), made.published_statistics(4, made.NOW)),
    )
    for record in records:
        words = {words for words, _, _ in sentences.parameter_rows(record)}
        assert words - known == set()


@pytest.mark.usefixtures("german")
@pytest.mark.parametrize(
    "parameters",
    [made.LEARNING, made.DISCOVERING, made.LABELLING, made.COUNTING],
    ids=lambda parameters: parameters.kind,
)
def test_a_forecast_is_german_whatever_the_kind_of_phase(
    parameters: Parameters, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing: list[str] = []
    known = languages._texts("de")

    class Known(dict[str, str]):
        def get(self, text: str, default: str) -> str:  # type: ignore[override]
            if text not in self:
                missing.append(text)
            return super().get(text, default)

    monkeypatch.setattr(languages, "_texts", lambda language: Known(known))
    asked = prospects.StartPhase(parameters=parameters)
    assert verdict(parameters)
    assert prospects.lines(asked, forecast(asked), made.NOW)
    assert missing == []


def test_words_of_a_kind_of_phase_from_outside_stay_english() -> None:
    text = languages.gettext_among(
        frozenset(), "%(crowd)s can weigh %(many)s here", crowd=3, many=2
    )
    assert text == "3 can weigh 2 here"


def test_values_in_a_text_of_a_page_are_escaped_and_printable() -> None:
    """The text may hold markup, which is ours; a value never does."""
    name = "<i>a\u202eb</i> & 'c'"
    escaped = "&lt;i&gt;a\ufffdb&lt;/i&gt; &amp; &#39;c&#39;"
    said = rendering._text("<b>%(name)s</b>", name=name)
    assert (type(said), said) == (Markup, f"<b>{escaped}</b>")
    for number, text in ((1, f"one {escaped}"), (2, f"many {escaped}")):
        assert rendering._counted_text("one %(name)s", "many %(name)s", number, name=name) == text
    assert rendering._text("%(name)s", name=Markup("<i>ours</i>")) == "<i>ours</i>"
