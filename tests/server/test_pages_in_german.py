"""Every page says all that it says in its language: nothing of ours stays English by oversight."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest
from jinja2 import Environment
from support import dashboard_records as made
from support.api_caller import Server
from support.dashboard_server import PAGES, application
from support.desk import OperatorsBrowser
from support.hand_made_campaigns import HandMadeCampaigns, started
from support.slots import COMPUTED, counts, plan, slot, weekly, year_of
from werkzeug.test import TestResponse

from earshot_protocol.rules import Rule
from earshot_server.api.app import ApiSettings, create_app
from earshot_server.campaigns.slots import SlotState
from earshot_server.credentials import Credentials
from earshot_server.dashboard import languages, rendering
from earshot_server.records import CampaignState, PhaseRecord, Trouble
from earshot_server.store.database import Database

TEMPLATES = sorted((Path(rendering.__file__).parent / "templates/dashboard").glob("*.html"))
GERMAN = {"Accept-Language": "de"}
SAID = ("title", "aria-label", "placeholder", "alt", "data-label")
"""Attributes that hold text for people."""
VOID = {"meta", "link", "br", "img", "input", "hr"}
_WORD = re.compile(r"\b[a-zA-ZÀ-ž]{2,}\b")
_OURS = re.compile(r"⟦[^⟦⟧]*⟧")
NAMES = {"Earshot", "English", "Deutsch"}
PARTS = {"hint", "mistake", "wall"}
"""Parts of identifiers and classes, which templates hold as blocks."""
UNITS = {"UTC", "ms", "min", "kB", "MB", "GB", "TB"}
DATA = {*made.LABELS, "olga", "operator", "north", "nroth", "https://helper.example", "contrast-3"}
DATA |= {"spherical", "noisy-max", "bar", "office", "CSV", "JSON", "ZIP"}
"""Words of the phases and forms in these tests, and what protocols call their methods."""


class Words(HTMLParser):
    """Words of a page outside ⟦ ⟧, which are neither code nor said to be English."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: set[str] = set()
        self._open: list[tuple[str, bool]] = []
        self._depth = 0
        self.feed(page)
        assert self._depth == 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        for name in SAID:
            text = given.get(name) or ""
            while text != (text := _OURS.sub("", text)):
                pass
            self.found |= set(_WORD.findall(text))
        exempt = tag in ("code", "script") or given.get("class") in ("hex", "symbol")
        exempt = exempt or (tag != "html" and "lang" in given) or tag == "textarea"
        if tag not in VOID:
            self._open.append((tag, exempt))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        seen = not any(exempt for _, exempt in self._open)
        for piece in re.split("([⟦⟧])", data):
            self._depth += {"⟦": 1, "⟧": -1}.get(piece, 0)
            if seen and self._depth == 0:
                self.found |= set(_WORD.findall(piece))


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda template: template.name)
def test_a_template_holds_no_text_outside_its_translations(template: Path) -> None:
    tokens = Environment(autoescape=True).lex(template.read_text("utf-8"))
    held = "".join(value for _, kind, value in tokens if kind == "data")
    assert words_of(held) - NAMES - PARTS == set()


def words_of(held: str) -> set[str]:
    class Held(Words):
        def handle_endtag(self, tag: str) -> None:  # a condition may hold an element's begin
            self._open = self._open[:-1]

    return Held(held).found


# ------------------------------------------------------------------------ pages as they are shown


@pytest.fixture(autouse=True)
def marked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mark each text that has a German one, in place of the German one."""

    class Marked(dict[str, str]):
        def get(self, text: str, default: object = None) -> str:  # type: ignore[override]
            return f"⟦{text.replace(': ', '⟧: ⟦')}⟧"  # some texts are cut there

    monkeypatch.setattr(languages, "_texts", {"de": Marked(), "en": {}}.__getitem__)


def check(response: TestResponse, status: int = 200) -> str:
    """Check that each word of a page is ours and translated, or data, or said to be English."""
    assert response.status_code == status, response.text
    assert response.headers["Content-Language"] == "de"
    data = {word for text in DATA for word in _WORD.findall(f"{text} {text.capitalize()}")}
    known = data | NAMES | UNITS
    assert Words(response.text).found - known == set()
    return response.text


TROUBLED = msgspec.structs.replace(
    made.running(),
    name="north",
    refusals=dict.fromkeys(map(str, Rule), 3),
    trouble=Trouble(reason="DatabaseError", attempts=2, next_try=made.NOW + 60),
)
RECORDS: dict[str, tuple[PhaseRecord, ...]] = {
    "gathering": (made.gathering(),),
    "overdue": (msgspec.structs.replace(made.gathering(), gather_until=made.NOW - 60),),
    "running": (made.running(),),
    "in trouble": (TROUBLED,),
    "learned": (made.published_learning(10, made.NOW),),
    "without environments": (made.empty_learning(11, made.NOW),),
    "counted": (made.published_statistics(30, made.NOW),),
    "discovered": (made.published_discovery(60, made.NOW),),
    "nothing discovered": (made.empty_discovery(61, made.NOW),),
    "labelled": (made.published_labelling(70, made.NOW),),
    "failed": (made.too_few(),),
    "never started": (made.never_started(),),
    "stopped": (made.stopped(),),
    "of months": made.some_months(),
    "of nothing": (),
}


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("records", RECORDS)
def test_every_page_says_all_in_its_language(page: str, records: str) -> None:
    shown = RECORDS[records]
    name = shown[0].phase.hex() if shown else "0" * 32
    client = application(made.HandMadeArchive(shown)).test_client()
    status = 404 if "<name>" in page and not shown else 200
    check(client.get(page.replace("<name>", name), headers=GERMAN), status)


OF_WEEKS = {
    "counted": [counts((3000, 1500), (3000, 1500), 1000)] * 2,
    "missed": [SlotState.MISSED, SlotState.FAILED],
    "under way": [SlotState.RUNNING, SlotState.DUE],
    "to come": [],
}


@pytest.mark.parametrize("state", CampaignState)
@pytest.mark.parametrize("weeks", OF_WEEKS)
def test_a_campaign_s_pages_say_all_in_their_language(weeks: str, state: CampaignState) -> None:
    of = plan(2, name="north")
    slots = [msgspec.structs.replace(each, late=True) for each in year_of(of, OF_WEEKS[weeks])]
    slots += [slot(each, SlotState.PLANNED, attempts=3) for each in weekly(of)[len(slots) :]]
    campaigns = HandMadeCampaigns((started(of, state=state, reason="restored"), slots))
    app = application(made.HandMadeArchive(()), campaigns, COMPUTED.timestamp())
    page = f"/campaigns/{of.digest}"
    for path in ("/campaigns", page, f"{page}?place=0"):
        check(app.test_client().get(path, headers=GERMAN))
    check(app.test_client().get(f"/campaigns/{'0' * 64}", headers=GERMAN), 404)


@pytest.fixture
def leading(database: Database, tmp_path: Path) -> OperatorsBrowser:
    """A German browser in which an administrator is signed in, at a server with a helper."""
    credentials = Credentials.load_or_create(tmp_path, leads=True)
    keys = {"helper": "https://helper.example", "helper_key": "ab" * 32}
    app = create_app(ApiSettings(database, credentials, **keys))  # type: ignore[arg-type]
    browser = OperatorsBrowser(Server(app, credentials))
    browser.origin |= GERMAN
    assert browser.sign_in().status_code == 303
    return browser


def test_a_form_of_a_phase_and_what_follows_from_it(leading: OperatorsBrowser) -> None:
    for path in ("/", "/start", "/start?kind=statistics"):
        check(leading.get(path, **GERMAN))
    wrong = {"phones": "x", "least_phones": "y", "epsilon": "z", "since": "0"} | {"form_key": "old"}
    check(leading.post("/start", wrong), 403)
    wrong["form_key"] = leading.key()
    for kind in ("", "statistics"):
        check(leading.post("/start", wrong | {"kind": kind, "pace": "?", "summation": "?"}), 422)
    right = leading.fields(leading.get("/start")) | {"phones": "50", "cohort": "nroth"}
    seen = leading.post("/start", right | {"labels": ", ".join(made.LABELS), "do": "look"})
    assert '<li lang="en">' in check(seen)
    check(leading.post("/start", leading.fields(seen) | {"do": "start"}), 422)
    started = leading.post("/start", leading.fields(seen) | {"do": "start", "anyway": "yes"})
    phase = started.location
    for path in (phase, f"{phase}/wall", f"{phase}/stop"):
        check(leading.get(path, **GERMAN))
    key = {"form_key": leading.key()}
    check(leading.post(f"{phase}/wall", key))
    check(leading.post(f"{phase}/stop", key), 422)
    leading.post(f"{phase}/stop", key | {"reason": "olga"})
    for path in (phase, f"{phase}/stop"):
        check(leading.get(path, **GERMAN))


def test_invitations(leading: OperatorsBrowser) -> None:
    check(leading.get("/invite", **GERMAN))
    form = {"name": "north", "uses": "3", "days": "2", "cohort": "north"}
    form |= {"form_key": leading.key("/invite"), "do": "look"}
    for wrong in ({"uses": "0"}, {"days": "x"}, {"name": "!"}, {"cohort": "!"}):
        check(leading.post("/invite", form | wrong), 422)
    check(leading.post("/invite", form))
    check(leading.post("/invite", form | {"do": "sign"}))
    check(leading.post("/invite", form | {"do": "sign"}), 422)
    for path in ("/invite", "/invitations/north/revoke"):
        check(leading.get(path, **GERMAN))
    assert leading.post("/invitations/north/revoke", form).status_code == 303
    for path in ("/invite", "/invitations/north/revoke"):
        check(leading.get(path, **GERMAN))


def test_operators(leading: OperatorsBrowser) -> None:
    form = {"name": "olga", "role": "viewer", "form_key": leading.key()}
    check(leading.get("/operators", **GERMAN))
    for wrong in ({"role": "?"}, {"name": "!"}):
        check(leading.post("/operators", form | wrong), 422)
    check(leading.post("/operators", form))
    check(leading.post("/operators", form), 422)
    for path in ("/operators", "/operators/olga", "/operators/operator"):
        check(leading.get(path, **GERMAN))
    check(leading.get("/operators/nobody", **GERMAN), 404)


def test_signing_in_and_what_is_refused(server: Server) -> None:
    browser = OperatorsBrowser(server)
    browser.origin |= GERMAN
    check(browser.get("/sign-in", **GERMAN))
    check(browser.post("/sign-in", {"token": "wrong"}), 403)
    check(browser.post("/start", {"phones": "3"}), 403)
    check(browser.post("/sign-in", {"token": "x" * 5000}), 413)
    browser.origin = GERMAN
    check(browser.post("/sign-in", {"token": "x"}), 403)
    browser.base = "http://earshot.example"
    check(browser.get("/sign-in", **GERMAN), 403)
