"""Operators sign in at the dashboard and change something there; nobody else does."""

from __future__ import annotations

import base64
import html
import io
import logging
import re
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path

import msgspec
import pytest
from support import dashboard_records as made
from support.api_caller import Server, body_of, problem_of
from support.desk import ACCEPT, OperatorsBrowser
from support.played_phase import PARAMETERS
from support.textbook_link import read
from werkzeug.test import TestResponse

from earshot_protocol.api import AUDIT, OPERATORS, PHASES
from earshot_protocol.environments import default_hierarchy
from earshot_protocol.phases import statistics_budget
from earshot_protocol.phases.discovery import Discovered, DiscoveryParameters
from earshot_protocol.phases.parameters import hierarchy_of
from earshot_protocol.phases.statistics import StatisticsParameters
from earshot_protocol.secure_sum.interface import SummationName
from earshot_protocol.wire import encode
from earshot_server.api.app import ApiSettings, create_app
from earshot_server.api.limits import FAILURES
from earshot_server.api.views import Audit, NewOperator, OperatorToken, Phases, PhaseView
from earshot_server.commands.phase.starting import SECURE_SUM, STATISTICS, Options, parameters_of
from earshot_server.credentials import Credentials
from earshot_server.dashboard import prospects
from earshot_server.dashboard.wording import sentence
from earshot_server.phases.places import newest
from earshot_server.phone_links import drawn
from earshot_server.processes import logs
from earshot_server.records import AuditEntry
from earshot_server.store.database import Database
from earshot_server.store.interface import PresentStep
from earshot_server.store.operators import FIRST, Role
from earshot_server.store.postgres import PostgresPhaseStore
from earshot_server.store.registry import Registry
from earshot_server.store.sessions import HOURS

HTTPS = "https://earshot.example"
STARTED = {
    "name": "Week 12",
    "labels": "home, street, office",
    "phones": "2000",
    "least_phones": "1500",
    "epsilon": "2",
    "gather_hours": "48",
    "step_hours": "12",
    "cohort": "",
}


@pytest.fixture
def browser(server: Server) -> OperatorsBrowser:
    """One in which the first operator is signed in."""
    browser = OperatorsBrowser(server)
    assert browser.sign_in().status_code == 303
    return browser


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    """All that this process logs, as the server writes it."""
    root = logging.getLogger()
    before, level, stream = root.handlers[:], root.level, io.StringIO()
    logs.configure("DEBUG", stream)
    yield stream
    root.handlers[:] = before
    root.setLevel(level)


def phases(server: Server) -> tuple[PhaseView, ...]:
    return body_of(server.read(PHASES), Phases).phases


def audit(server: Server) -> tuple[AuditEntry, ...]:
    return body_of(server.read(AUDIT), Audit).entries


def token_of(server: Server, name: str, role: Role) -> str:
    order = server.order(OPERATORS, NewOperator(name=name, role=role))
    return body_of(order, OperatorToken, 201).token


def page_of(response: TestResponse, status: int = 200) -> str:
    """The words of the page that the response must be."""
    assert response.status_code == status, response.text
    assert response.mimetype == "text/html"
    text = re.sub(r"<[^>]+>", " ", response.text)
    return re.sub(r"\s+", " ", text)


def started(browser: OperatorsBrowser, **changes: str) -> TestResponse:
    """The response to the button on the page with the verdict."""
    form = STARTED | changes | {"form_key": browser.key(), "do": "look"}
    verdict = browser.post("/start", form)
    page_of(verdict)
    return browser.post("/start", browser.fields(verdict) | {"do": "start"})


# ------------------------------------------------------------------------------------ signing in


def test_a_browser_is_led_to_the_form_and_back(server: Server) -> None:
    browser = OperatorsBrowser(server)
    there = "/phases/" + "0" * 32
    led = browser.get(there)
    assert (led.status_code, led.location) == (303, f"/sign-in?to={there}")
    assert "WWW-Authenticate" not in led.headers
    assert browser.get("/").location == "/sign-in"
    form = browser.get(led.location)
    assert browser.fields(form) == {
        "token": "",
        "to": there,
        "username": "earshot",
    }
    for address in re.findall(r'(?:href|src)="(/static/[^"]+)"', form.text):
        with browser.get(address, Accept="*/*") as file:
            assert file.status_code == 200
    signed = browser.sign_in(to=there)
    assert (signed.status_code, signed.location) == (303, there)
    assert "has no phase with this one" in page_of(browser.get(there), 404)
    assert "Signed in as operator (admin)" in page_of(browser.get("/"))


@pytest.mark.parametrize(
    "to",
    ["//evil.example", "/\\evil.example", "https://evil.example", "evil", "/\t/evil.example", ""],
)
def test_nobody_is_led_elsewhere(server: Server, to: str) -> None:
    assert OperatorsBrowser(server).sign_in(to=to).location == "/"


@pytest.mark.parametrize(("base", "name"), [
    (HTTPS, "__Host-earshot-session"), ("http://localhost", "earshot-session"),
])  # fmt: skip
def test_the_cookie_stays_with_this_site_and_this_browser(
    server: Server, base: str, name: str
) -> None:
    cookie = OperatorsBrowser(server, base).sign_in().headers["Set-Cookie"]
    assert cookie.startswith(f"{name}=")
    attributes = set(cookie.split("; ")[1:])
    assert {"HttpOnly", "SameSite=Strict", "Path=/", f"Max-Age={HOURS * 3600}"} <= attributes
    assert ("Secure" in attributes) == (base == HTTPS)
    assert not any(each.startswith("Domain") for each in attributes)


def test_a_wrong_token_is_refused_counted_and_never_logged(
    server: Server, written: io.StringIO
) -> None:
    browser = OperatorsBrowser(server)
    right = server.credentials.operator_token
    for wrong in (right[:-1], right + "x", "", "🎧"):
        said = page_of(browser.sign_in(wrong), 403)
        assert "No operator has this token" in said
        assert not wrong or wrong not in said
    for number in range(FAILURES):
        browser.sign_in(f"wrong-{number}")
    assert "Too many wrong tokens" in page_of(browser.sign_in(), 429)  # even the right one
    assert browser.get("/").location == "/sign-in"
    other = OperatorsBrowser(server, HTTPS, "192.0.2.2")
    assert other.sign_in().status_code == 303
    assert right[:-1] not in written.getvalue()
    assert "/sign-in" in written.getvalue()
    secret = other.client.get_cookie("__Host-earshot-session", "earshot.example")
    assert secret is not None
    assert secret.value not in written.getvalue()


@pytest.mark.parametrize(
    ("base", "address"),
    [
        ("http://earshot.example", "192.0.2.1"),
        ("http://earshot.example", "127.0.0.1"),  # a proxy here that says nothing of https
        ("http://localhost", "192.0.2.1"),
        ("http://127.0.0.1.evil.example", "127.0.0.1"),
    ],
)
def test_a_token_is_not_asked_for_where_others_could_read_it(
    server: Server, base: str, address: str
) -> None:
    browser = OperatorsBrowser(server, base, address)
    responses = [browser.get("/sign-in"), browser.sign_in(), browser.get("/sign-in", Host="[")]
    for response in responses:
        assert "others could read the token" in page_of(response, 403).lower()
        assert "Set-Cookie" not in response.headers
        assert 'name="token"' not in response.text


@pytest.mark.parametrize("host", ["localhost:8000", "127.0.0.1:8000", "[::1]:8000", "127.8.9.1"])
def test_on_the_own_machine_no_tls_is_needed(server: Server, host: str) -> None:
    address = "::1" if "[" in host else "127.0.0.1"
    assert OperatorsBrowser(server, f"http://{host}", address).sign_in().status_code == 303


def test_a_proxy_that_speaks_https_is_believed(database: Database, tmp_path: Path) -> None:
    server = Server.over(database, tmp_path, proxies=1)
    browser = OperatorsBrowser(server, "http://earshot.example")
    told = {"X-Forwarded-For": "192.0.2.1", "X-Forwarded-Proto": "https"}
    token = server.credentials.operator_token
    assert browser.post("/sign-in", {"token": token}, **told).status_code == 303
    assert browser.post("/sign-in", {"token": token}).status_code == 403


# ----------------------------------------------------------------------------- sessions that end


def rotated(browser: OperatorsBrowser) -> None:
    browser.server.order(f"{OPERATORS}/olga/token")


def removed(browser: OperatorsBrowser) -> None:
    admin = browser.server.bearer
    browser.server.app.test_client().delete(f"{OPERATORS}/olga", headers=admin)


def signed_out(browser: OperatorsBrowser) -> None:
    cookie = browser.client.get_cookie("earshot-session")
    assert cookie is not None
    response = browser.post("/sign-out", {"form_key": browser.key()})
    assert (response.status_code, response.location) == (303, "/sign-in")
    assert browser.client.get_cookie("earshot-session") is None
    browser.client.set_cookie("earshot-session", cookie.value)  # a thief has kept it


@pytest.mark.parametrize("end", [rotated, removed, signed_out, None])
def test_a_session_ends(
    server: Server, database: Database, end: Callable[[OperatorsBrowser], None] | None
) -> None:
    browser = OperatorsBrowser(server)
    browser.sign_in(token_of(server, "olga", Role.OPERATOR))
    key = browser.key()
    if end is None:
        database.query("UPDATE sessions SET ends = seconds_now()")
    else:
        end(browser)
    assert browser.get("/").location == "/sign-in"
    refused = browser.post("/start", STARTED | {"form_key": key, "do": "start"})
    assert "what you typed is there again" in page_of(refused, 403)
    assert phases(server) == ()


def test_a_new_sign_in_ends_the_session_before_and_forgets_those_that_are_over(
    browser: OperatorsBrowser, database: Database
) -> None:
    before = browser.client.get_cookie("earshot-session")
    assert before is not None
    browser.sign_in()
    assert database.query("SELECT count(*) FROM sessions") == [(1,)]
    database.query("UPDATE sessions SET ends = 0")
    other = OperatorsBrowser(browser.server)
    other.client.set_cookie("earshot-session", before.value)
    assert other.get("/").location == "/sign-in"
    other.sign_in()
    assert database.query("SELECT count(*) FROM sessions WHERE ends = 0") == [(0,)]


def test_the_database_has_no_secret_of_a_session(
    browser: OperatorsBrowser, database: Database
) -> None:
    cookie = browser.client.get_cookie("earshot-session")
    assert cookie is not None
    (row,) = database.query("SELECT secret_hash, token_hash FROM sessions")
    secrets = cookie.value.encode(), browser.server.credentials.operator_token.encode()
    for kept in map(bytes, row):
        assert len(kept) == 32
        for secret in secrets:
            assert secret not in kept
            assert base64.urlsafe_b64decode(secret + b"=") != kept


# ------------------------------------------------------------------------- who may change nothing


CHANGES = {
    "start": ("/start", STARTED | {"do": "start", "once": "x"}),
    "invite": ("/invite", {"uses": "5", "days": "1", "cohort": "", "do": "sign"}),
    "revoke": ("/invitations/class-7b/revoke", {"now": "yes"}),
    "stop": ("/phases/{}/stop", {"reason": "enough"}),
    "add an operator": ("/operators", {"name": "olga", "role": "admin"}),
    "rotate a token": ("/operators/operator", {"do": "rotate"}),
    "sign out": ("/sign-out", {"now": "yes"}),
}


def nothing_changed(server: Server, phase: bytes) -> None:
    assert [(each.phase, each.status) for each in phases(server)] == [(phase.hex(), "gathering")]
    assert [entry.action for entry in audit(server)] == ["start phase"]


@pytest.mark.parametrize("change", CHANGES)
def test_a_form_without_the_key_of_its_own_session_changes_nothing(
    browser: OperatorsBrowser, change: str
) -> None:
    server = browser.server
    phase = server.start(PARAMETERS)
    other = OperatorsBrowser(server)
    other.sign_in()
    path, form = CHANGES[change]
    right = browser.key()
    for key in ("", right[:-1], right + "x", right.swapcase(), other.key(), "é"):
        response = browser.post(path.format(phase.hex()), form | {"form_key": key})
        page_of(response, 403)
    page_of(browser.post(path.format(phase.hex()), form), 403)
    nothing_changed(server, phase)
    assert browser.get("/").status_code == 200  # still signed in


@pytest.mark.parametrize(
    "origin",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none"},
        {"Sec-Fetch-Site": "cross-site", "Origin": "http://localhost"},
        {"Origin": "http://evil.example"},
        {"Origin": "https://localhost"},
        {"Origin": "http://localhost:8000"},
        {"Origin": "null"},
        {},
    ],
)
@pytest.mark.parametrize("change", [*CHANGES, "sign in"])
def test_a_form_of_another_site_changes_nothing(
    browser: OperatorsBrowser, change: str, origin: dict[str, str]
) -> None:
    server = browser.server
    phase = server.start(PARAMETERS)
    token = {"token": server.credentials.operator_token}
    path, form = CHANGES.get(change, ("/sign-in", token))
    form = form | {"form_key": browser.key()}
    browser.origin = origin
    response = browser.post(path.format(phase.hex()), form)
    assert "This form comes from elsewhere" in page_of(response, 403)
    assert "Set-Cookie" not in response.headers
    nothing_changed(server, phase)


def test_a_browser_that_knows_origins_alone_is_enough(browser: OperatorsBrowser) -> None:
    browser.origin = {"Origin": "http://localhost"}
    assert started(browser).status_code == 303


@pytest.mark.parametrize("change", CHANGES)
def test_nobody_changes_anything_without_a_session(server: Server, change: str) -> None:
    phase = server.start(PARAMETERS)
    path, form = CHANGES[change]
    token = server.credentials.operator_token
    basic = "Basic " + base64.b64encode(f"{FIRST}:{token}".encode()).decode()
    for authorization in ({}, {"Authorization": basic}, {"Authorization": f"Bearer {token}"}):
        response = OperatorsBrowser(server).post(path.format(phase.hex()), form, **authorization)
        assert "You are not signed in" in page_of(response, 403)
    nothing_changed(server, phase)


def test_reading_changes_nothing_whatever_stands_in_the_address(browser: OperatorsBrowser) -> None:
    server = browser.server
    phase = server.start(PARAMETERS)
    for path, form in CHANGES.values():
        query = form | {"form_key": browser.key()}
        for method in ("GET", "HEAD"):
            browser.client.open(
                path.format(phase.hex()), method=method, query_string=query, headers=browser.origin
            )
    nothing_changed(server, phase)


def test_a_viewer_reads_and_is_offered_nothing_else(server: Server) -> None:
    phase = server.start(PARAMETERS)
    browser = OperatorsBrowser(server)
    browser.sign_in(token_of(server, "vera", Role.VIEWER))
    for path in ("/", f"/phases/{phase.hex()}"):
        shown = browser.get(path)
        assert "Signed in as vera (viewer)" in page_of(shown)
        assert not re.search(r'href="[^"]*/(start|stop|invite)"', shown.text)
    key = browser.fields(browser.get("/"))["form_key"]
    for path, form in list(CHANGES.values())[:3]:
        response = browser.get(path.format(phase.hex()))
        assert "vera has the role viewer; this needs operator" in page_of(response, 403).lower()
        page_of(browser.post(path.format(phase.hex()), form | {"form_key": key}), 403)
    assert [each.status for each in phases(server)] == ["gathering"]


def test_the_api_takes_no_session(browser: OperatorsBrowser) -> None:
    problem_of(browser.client.get(PHASES, base_url=browser.base), 401, "operator")
    refused = browser.client.post(PHASES, data=b"{}", content_type="application/json")
    problem_of(refused, 401, "operator")


# ------------------------------------------------------------------------------------- what is done


def test_the_form_is_that_of_the_recommended_phase(browser: OperatorsBrowser) -> None:
    offered = browser.fields(browser.get("/start"))
    assert (offered["epsilon"], offered["phones"], offered["step_hours"]) == ("2", "100", "24")
    assert offered["labels"].startswith("public transport, car, ")
    verdict = browser.post("/start", offered | {"do": "look"})
    assert "default phones" not in page_of(verdict).lower()
    browser.post("/start", browser.fields(verdict) | {"do": "start"})
    (view,) = phases(browser.server)
    assert isinstance(view.parameters, DiscoveryParameters)
    assert view.parameters.hierarchy  # everyday labels come with the choices of polls


def test_a_phase_is_started_once_as_the_verdict_said_under_the_operators_name(
    server: Server,
) -> None:
    browser = OperatorsBrowser(server)
    browser.sign_in(token_of(server, "olga", Role.OPERATOR))
    form = STARTED | {"form_key": browser.key(), "do": "look"}
    verdict = browser.post("/start", form)
    said = page_of(verdict)
    assert "2 000 phones" in said.replace("\u202f", " ")
    assert "Week 12" in said
    assert phases(server) == ()
    again = browser.fields(verdict) | {"do": "start"}
    for _ in range(2):  # a second click
        response = browser.post("/start", again)
        (view,) = phases(server)
        assert (response.status_code, response.location) == (303, f"/phases/{view.phase}")
    assert (view.name, view.status, view.wanted, view.least) == ("Week 12", "gathering", 2000, 1500)
    assert isinstance(view.parameters, DiscoveryParameters)
    assert view.parameters.labels == ("home", "street", "office")
    assert view.parameters.step_seconds == 12 * 3600
    newest = audit(server)[0]
    assert (newest.operator, newest.action, newest.subject) == ("olga", "start phase", view.phase)
    assert newest.detail == "discovery, 2000 phones"
    assert started(browser).location != response.location  # another page, another phase


def test_what_default_phones_refuse_is_started_only_if_the_operator_insists(
    browser: OperatorsBrowser,
) -> None:
    refused = started(browser, phones="50", least_phones="", cohort="nroth")
    said = page_of(refused, 422)
    assert "Nothing was started: tick this" in said
    assert "at least 100 is accepted" in said
    assert "cohort nroth has no phones" in said
    assert phases(browser.server) == ()
    form = browser.fields(refused) | {"do": "start", "anyway": "yes"}
    assert browser.post("/start", form).status_code == 303
    assert [each.wanted for each in phases(browser.server)] == [50]


# ---------------------------------------------------------------------------------- two operators


@pytest.fixture
def leading(database: Database, tmp_path: Path) -> OperatorsBrowser:
    """One in which the first operator is signed in at a server that has a helper."""
    credentials = Credentials.load_or_create(tmp_path, leads=True)
    settings = ApiSettings(
        database, credentials, helper="https://helper.example", helper_key="ab" * 32
    )
    app = create_app(settings)
    browser = OperatorsBrowser(Server(app, credentials))
    assert browser.sign_in().status_code == 303
    return browser


def reason(labels: tuple[str, ...], choices: tuple[tuple[str, ...], ...], phones: int) -> str:
    """What the command line says before it starts the same phase."""
    masked, split = (
        parameters_of(
            SECURE_SUM,
            Options(phones=phones, labels=labels, choices=choices, summation=summation),
        )
        for summation in (SummationName.BELL, SummationName.TWO_OPERATORS)
    )
    return sentence(prospects.proposed_summation(masked, split))


def test_where_there_is_a_helper_two_operators_are_proposed_as_on_the_command_line(
    leading: OperatorsBrowser,
) -> None:
    form = leading.get("/start")
    offered, usual = leading.fields(form), default_hierarchy()
    assert offered["summation"] == "two-operators"
    said = reason(usual.classes, tuple(usual.groups.values()), int(offered["phones"]))
    assert "visits once a sum, not 4 times; noise is" in said
    assert said in html.unescape(page_of(form))
    verdict = leading.post("/start", offered | {"do": "look"})
    told = html.unescape(page_of(verdict))
    assert said in told
    assert "these two never put their data together" in told
    assert "all others refuse: unknown_helper" in told
    assert "a default phone whose app names both operators accepts this phase" in told
    assert re.search(r"steps, [^<]+ sent by a phone</dt><dd>3</dd>", verdict.text)
    assert phases(leading.server) == ()
    started = leading.fields(verdict) | {"do": "start"}
    for _ in range(2):
        assert leading.post("/start", started).status_code == 303
    (view,) = phases(leading.server)
    assert view.parameters.summation is SummationName.TWO_OPERATORS
    assert view.parameters == msgspec.structs.replace(
        parameters_of(
            SECURE_SUM,
            Options(
                phones=int(offered["phones"]),
                labels=usual.classes,
                choices=tuple(usual.groups.values()),
                summation=SummationName.TWO_OPERATORS,
            ),
        ),
        hierarchy=view.parameters.hierarchy,
        step_seconds=86_400.0,
    )


def test_an_operator_may_choose_that_the_server_adds_up_alone(leading: OperatorsBrowser) -> None:
    form = STARTED | {"form_key": leading.key(), "do": "look", "summation": "bell"}
    verdict = leading.post("/start", form)
    told = html.unescape(page_of(verdict))
    assert reason(("home", "street", "office"), (), 2000) in told
    assert "they trust this server to follow the protocol" in told
    assert "unknown_helper" not in told
    changed = leading.post("/start", leading.fields(verdict) | {"do": "change"})
    assert leading.fields(changed)["summation"] == "bell"
    leading.post("/start", leading.fields(verdict) | {"do": "start"})
    (view,) = phases(leading.server)
    assert view.parameters.summation is SummationName.BELL


def test_a_summation_that_cannot_be_is_named_beside_its_field(leading: OperatorsBrowser) -> None:
    form = STARTED | {"form_key": leading.key(), "summation": "three", "do": "start", "once": "x"}
    response = leading.post("/start", form)
    page_of(response, 422)
    (mistake,) = re.findall(r'id="summation-mistake">([^<]*)', response.text)
    assert "Choose one of these." in mistake
    assert '<fieldset class="field wrong" id="summation"' in response.text
    assert {each: leading.fields(response)[each] for each in STARTED} == STARTED
    assert phases(leading.server) == ()


def test_a_phase_by_two_operators_needs_the_forms_key(leading: OperatorsBrowser) -> None:
    form = STARTED | {"summation": "two-operators", "do": "start", "once": "x"}
    for key in ({}, {"form_key": "wrong"}):
        refused = leading.post("/start", form | key)
        assert "This form is of an earlier session" in page_of(refused, 403)
        assert leading.fields(refused)["summation"] == "two-operators"
    elsewhere = leading.client.post("/start", data=form | {"form_key": leading.key()})
    assert elsewhere.status_code == 403
    assert phases(leading.server) == ()


def test_a_form_of_a_time_when_there_was_a_helper_starts_nothing_else(
    browser: OperatorsBrowser,
) -> None:
    assert "summation" not in browser.fields(browser.get("/start"))
    form = STARTED | {"form_key": browser.key(), "once": "x", "summation": "two-operators"}
    for what in ("look", "start"):
        refused = browser.post("/start", form | {"do": what})
        assert "this server has no helper" in page_of(refused, 422)
    assert phases(browser.server) == ()
    kept = browser.fields(refused)  # and says that it would now be another sum
    assert "summation" not in kept
    verdict = browser.post("/start", kept | {"do": "look"})
    assert "proposed" not in page_of(verdict).lower()
    browser.post("/start", browser.fields(verdict) | {"do": "start"})
    (view,) = phases(browser.server)
    assert view.parameters.summation is SummationName.BELL


# ---------------------------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("phones", "many", "Give a whole number, such as 200."),
        ("phones", "2", "Must be a whole number, from 3 to"),
        ("least_phones", "2500", "Must be at most phones=2000, the phones wanted."),
        ("least_phones", "1", "Give at least 3, or leave it out."),
        ("epsilon", "two", "Give a number, such as 24 or 0.5."),
        ("epsilon", "-1", "Must be"),
        ("epsilon", "nan", "Give a number, such as 24 or 0.5."),
        ("epsilon", "0", "Must be"),
        ("gather_hours", "0", "Give more than 0 and at most 8760."),
        ("gather_hours", "9000", "Give more than 0 and at most 8760."),
        ("step_hours", "0", "Must be"),
        ("labels", " , ", "Give at least one."),
        ("labels", "home, home", "Labels repeat"),
        ("labels", "x" * 65, "1 to 64 printable characters"),
        ("name", "x" * 65, "Give at most 64 characters."),
        ("cohort", "Not A Cohort", "Give names of lower-case letters"),
    ],
)
def test_a_mistake_is_named_beside_its_field_and_nothing_typed_is_lost(
    browser: OperatorsBrowser, name: str, text: str, said: str
) -> None:
    form = STARTED | {name: text, "form_key": browser.key(), "do": "start", "once": "x"}
    response = browser.post("/start", form)
    page_of(response, 422)
    (mistake,) = re.findall(rf'<p class="mistake" id="{name}-mistake">([^<]*)', response.text)
    assert said in mistake
    kept = browser.fields(response)
    assert {each: kept[each] for each in STARTED} == STARTED | {name: text}
    assert phases(browser.server) == ()


def test_a_german_form_takes_a_decimal_comma(
    browser: OperatorsBrowser, monkeypatch: pytest.MonkeyPatch
) -> None:
    form = STARTED | {"epsilon": "1,5", "form_key": browser.key(), "do": "look"}
    assert "Give a number, such as 24 or 0.5" in page_of(browser.post("/start", form), 422)
    for epsilon in ("1,5", "1.5"):
        seen = browser.post("/start", form | {"epsilon": epsilon}, **{"Accept-Language": "de"})
        assert "ε je Telefon, zusammen" in page_of(seen)
        assert browser.fields(seen)["epsilon"] == epsilon
    monkeypatch.setattr(statistics_budget, "EPSILON", 0.25)
    proposed = browser.get("/start?kind=statistics", **{"Accept-Language": "de"})
    assert browser.fields(proposed)["epsilon"] == "0,25"


def test_a_page_says_a_problem_in_german_and_programs_hear_it_in_english(
    browser: OperatorsBrowser,
) -> None:
    path, german = "/phases/" + "0" * 32 + "/wall", {"Accept-Language": "de"}
    shown = page_of(browser.post(path, {"form_key": "old"}, **german), 403)
    assert "Dieses Formular kommt von anderswo" in shown
    assert "stammt aus einer früheren Anmeldung" in shown
    told = problem_of(
        browser.post(path, {"form_key": "old"}, **german, Accept="*/*"), 403, "forged"
    )
    assert told.title == "This form comes from elsewhere"
    assert told.detail == "This form is of an earlier session: check it and send it again."
    lower = browser.get("/invitations/none/revoke", **german)
    assert '<span lang="en">There is no invitation' in lower.text


def test_a_phase_is_changed_after_the_verdict_and_hostile_words_stay_words(
    browser: OperatorsBrowser,
) -> None:
    hostile = '"><script>alert(1)</script>'
    form = STARTED | {"name": hostile, "form_key": browser.key(), "do": "look"}
    verdict = browser.post("/start", form)
    changed = browser.post("/start", browser.fields(verdict) | {"do": "change"})
    for page in (verdict, changed):
        assert "<script>alert" not in page.text
        assert browser.fields(page)["name"] == hostile
        assert "script-src 'self'" in page.headers["Content-Security-Policy"]
        assert page.headers["Referrer-Policy"] == "same-origin"  # or browsers send Origin: null
        assert page.headers["Cache-Control"] == "no-store"


def test_an_invitation_is_shown_once_and_is_good(server: Server) -> None:
    browser = OperatorsBrowser(server)
    browser.sign_in(token_of(server, "olga", Role.OPERATOR))
    key = browser.key("/invite")
    form = {"uses": "3", "days": "2", "cohort": "north", "form_key": key, "do": "look"}
    asked = browser.post("/invite", form)
    assert "3 phones may enrol in north" in page_of(asked)
    assert "100 % of them could be" in page_of(asked)
    assert [entry.action for entry in audit(server)] == ["add operator"]
    shown = browser.post("/invite", browser.fields(asked) | {"do": "sign"})
    assert "3 phones may enrol until" in page_of(shown)
    (code,) = re.findall(r"<code>([\w=-]+)</code></pre>", shown.text)
    for _ in range(3):
        server.phone(code)
    newest = audit(server)[0]
    assert (newest.operator, newest.action) == ("olga", "invite")
    assert newest.detail == "3 uses, 2 days"
    assert code not in newest.subject
    for name, text in (("uses", "0"), ("days", "0"), ("cohort", "No!")):
        wrong = browser.post("/invite", form | {name: text, "do": "sign"})
        page_of(wrong, 422)
        assert f'id="{name}-mistake"' in wrong.text
        assert browser.fields(wrong)[name] == text
    assert audit(server)[0] == newest


@pytest.mark.parametrize("name", ["", "class-7b"])
def test_a_reloaded_page_signs_no_second_code(browser: OperatorsBrowser, name: str) -> None:
    key = browser.key("/invite")
    form = {"uses": "3", "days": "2", "cohort": "", "name": name, "form_key": key, "do": "look"}
    sign = browser.fields(browser.post("/invite", form)) | {"do": "sign"}
    assert "Copy the code now" in page_of(browser.post("/invite", sign))
    again = browser.post("/invite", sign)
    said = "there is an invitation" if name else "its code is in the list, and is not shown again"
    assert said in page_of(again, 422 if name else 409)
    assert [each.action for each in audit(browser.server)] == ["invite"]
    another = browser.fields(again) | {"name": "", "do": "look"}
    sign = browser.fields(browser.post("/invite", another)) | {"do": "sign"}
    assert "Copy the code now" in page_of(browser.post("/invite", sign))


def scanned(shown: TestResponse) -> str:
    """The QR code of a page."""
    (drawing,) = re.findall(r'class="scan"[^>]*>(<svg.*?</svg>)', shown.text, re.DOTALL)
    assert isinstance(drawing, str)
    return drawing


@pytest.mark.parametrize("helper", ["", "ab" * 32])
def test_an_invitation_leads_to_a_page_that_holds_a_phone(
    database: Database, tmp_path: Path, helper: str
) -> None:
    page = "https://phone.example.org/"
    credentials = Credentials.load_or_create(tmp_path, leads=True)
    settings = ApiSettings(database, credentials, phone_page=page, helper_key=helper)
    server = Server(create_app(settings), credentials)
    browser = OperatorsBrowser(server)
    browser.sign_in(token_of(server, "olga", Role.OPERATOR))
    form = {"uses": "3", "days": "2", "cohort": "", "form_key": browser.key("/invite")}
    shown = browser.post("/invite", form | {"do": "sign"})
    code, *links = re.findall(r"<code>([^<]+)</code></pre>", shown.text)
    if not helper:  # a phone in a browser could take part in nothing
        assert links == []
        assert scanned(shown).strip() == drawn(code).strip()
        return
    (link,) = links
    told = read(link.removeprefix(page + "#"))
    assert (told["invitation"], told["server"]) == (code, "http://localhost")
    assert (told["leader"].hex(), told["helper"].hex()) == (credentials.leader, helper)
    assert scanned(shown).strip() == drawn(link).strip()
    assert "style=" not in scanned(shown)  # which the page's policy forbids


def test_a_phase_is_stopped_for_a_reason_that_the_audit_log_keeps(server: Server) -> None:
    phase = server.start(PARAMETERS)
    browser = OperatorsBrowser(server)
    browser.sign_in(token_of(server, "olga", Role.OPERATOR))
    path = f"/phases/{phase.hex()}/stop"
    assert f'href="{path}"' in browser.get(f"/phases/{phase.hex()}").text
    asked = browser.get(path)
    assert "so nothing was spent" in page_of(asked)
    form = browser.fields(asked)
    for wrong in ("", "  ", "x" * 201, "two\nlines", "\u202e"):
        again = browser.post(path, form | {"reason": wrong})
        assert "Say why, in one line" in page_of(again, 422)
    assert [each.status for each in phases(server)] == ["gathering"]
    response = browser.post(path, form | {"reason": "wrong labels <b>"})
    assert (response.status_code, response.location) == (303, f"/phases/{phase.hex()}")
    assert [each.status for each in phases(server)] == ["stopped"]
    newest = audit(server)[0]
    assert (newest.operator, newest.action) == ("olga", "stop phase")
    assert (newest.subject, newest.detail) == (phase.hex(), "wrong labels <b>")
    assert "This phase is over already" in page_of(browser.get(path))
    assert browser.post(path, form | {"reason": "again"}).status_code == 303
    assert audit(server)[0] == newest
    unknown = browser.get("/phases/" + "0" * 32 + "/stop")
    assert "There is no such phase" in page_of(unknown, 404)


# ------------------------------------------------------------------------- pages that are not there


@pytest.mark.parametrize(
    ("method", "path", "status", "said"),
    [
        ("GET", "/nothing", 404, "There is nothing at this path"),
        ("GET", "/phases/0/nothing.csv", 404, "There is nothing at this path"),
        ("GET", "/sign-out", 405, "This path does not take this method"),
        ("POST", "/", 405, "This path does not take this method"),
    ],
)
def test_browsers_are_told_in_a_page_and_programs_in_a_problem(
    browser: OperatorsBrowser, method: str, path: str, status: int, said: str
) -> None:
    response = browser.client.open(path, method=method, headers={"Accept": ACCEPT})
    assert said in page_of(response, status)
    assert 'href="/"' in response.text
    assert "default-src 'none'" in response.headers["Content-Security-Policy"]
    if status == 405:
        assert response.headers["Allow"]
    for accept in ("*/*", "application/json", ""):
        problem = browser.client.open(path, method=method, headers={"Accept": accept})
        assert problem.status_code == status
        assert problem.content_type == "application/problem+json"


def test_the_api_answers_problems_whoever_asks(server: Server) -> None:
    for path, status in (("/v1/nothing", 404), (PHASES, 401), ("/metrics", 401)):
        response = server.get(path, Accept=ACCEPT)
        assert (response.status_code, response.content_type) == (
            status,
            "application/problem+json",
        )


def test_a_mistake_of_the_servers_own_is_a_page_that_tells_nothing_else(
    browser: OperatorsBrowser, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("password=hunter2")

    monkeypatch.setattr("earshot_server.api.forms.read_invite", broken)
    response = browser.post("/invite", {"uses": "1", "form_key": browser.key()})
    said = page_of(response, 500)
    assert "The server made a mistake" in said
    assert response.headers["X-Request-Id"] in said
    assert "hunter2" not in response.text


def test_a_form_has_a_length(browser: OperatorsBrowser) -> None:
    for path, most in (("/sign-in", 4096), ("/start", 65_536)):
        response = browser.post(path, {"token": "x" * most})
        assert "The body is too large" in page_of(response, 413)
    odd = browser.client.post("/sign-in", data=b"{}", content_type="application/json",
                              headers=browser.origin | {"Accept": ACCEPT})  # fmt: skip
    assert "Content-Type must be application/x-www-form-urlencoded" in page_of(odd, 415)


# ------------------------------------------------------------------------------ counting contacts


COUNTED = STARTED | {
    "kind": "statistics",
    "epsilon": "1.5",
    "contacts": "6",
    "since": "2026-03-02",
    "until": "2026-03-09",
}


def test_a_statistics_phase_is_started_with_what_the_form_says(browser: OperatorsBrowser) -> None:
    form = browser.get("/start?kind=statistics")
    assert "Start a phase that counts contacts" in page_of(form)
    assert {"kind": "statistics", "contacts": "8", "epsilon": "1"}.items() <= browser.fields(
        form
    ).items()
    wrong = COUNTED | {"form_key": browser.key(), "do": "look"}
    for name, text, said in (
        ("contacts", "many", "whole number"),
        ("since", "soon", "give a day, such as 2026-03-31"),
        ("until", "2026-03-01", "window must begin before it ends"),
        ("epsilon", "0", "must be a positive, finite number"),
    ):
        refused = browser.post("/start", wrong | {name: text})
        assert said in page_of(refused, 422)
        assert browser.fields(refused)[name] == text
        assert "Start a phase that counts contacts" in refused.text
    assert phases(browser.server) == ()
    response = started(browser, **COUNTED, anyway="yes")
    assert response.status_code == 303
    (phase,) = phases(browser.server)
    wanted = parameters_of(
        STATISTICS,
        Options(
            phones=2000,
            labels=("home", "street", "office"),
            statistics=True,
            budget="histogram=1.5",
            contacts=6,
            since=date(2026, 3, 2),
            until=date(2026, 3, 9),
        ),
    )
    assert phase.parameters == msgspec.structs.replace(wanted, step_seconds=12 * 3600.0)
    assert (phase.name, phase.least) == ("Week 12", 1500)


def test_a_statistics_phase_counts_by_the_places_of_the_newest_result(
    browser: OperatorsBrowser, database: Database
) -> None:
    ending = made.published_discovery(61, made.NOW).ending
    assert isinstance(ending, Discovered)
    registry, store = Registry(database), PostgresPhaseStore(database)
    registry.gather(ending.phase, PARAMETERS, 3, 4e9)
    registry.end_gathering(ending.phase)
    last = PresentStep(0, "published", 4e9, 0, common=encode(ending), over=True)
    store.create(ending.phase, b"", last, [])
    named = ending.label_names[0]
    started(browser, **(COUNTED | {"labels": f"{named}, elsewhere"}), anyway="yes")
    parameters = phases(browser.server)[0].parameters
    assert isinstance(parameters, StatisticsParameters)
    assert parameters.places == newest([ending], hierarchy_of((named, "elsewhere"), ()))
    assert parameters.places is not None


def test_the_dashboard_says_who_the_two_operators_are(
    leading: OperatorsBrowser, browser: OperatorsBrowser
) -> None:
    shown = page_of(leading.get("/"))
    assert f"Leader, this server {leading.server.credentials.leader}" in shown
    assert f"Helper, at https://helper.example {'ab' * 32}" in shown
    assert "Helper" not in page_of(browser.get("/"))


def test_contacts_are_counted_by_two_operators_where_there_is_a_helper(
    leading: OperatorsBrowser,
) -> None:
    form = leading.get("/start?kind=statistics")
    offered = leading.fields(form)
    assert (offered["summation"], "pace" in offered) == ("two-operators", False)
    assert "proposed, as this server has a helper" in page_of(form).lower()
    verdict = leading.post("/start", offered | {"do": "look"})
    assert "these two never put their data together" in page_of(verdict)
    leading.post("/start", leading.fields(verdict) | {"do": "start", "anyway": "yes"})
    (view,) = phases(leading.server)
    assert isinstance(view.parameters, StatisticsParameters)
    assert view.parameters.summation is SummationName.TWO_OPERATORS


# -------------------------------------------------------------------------------------- operators


def shown_token(shown: TestResponse) -> str:
    (token,) = re.findall(r"<code>([A-Za-z0-9_-]{43})</code></pre>", shown.text)
    assert isinstance(token, str)
    return token


def test_an_administrator_manages_operators(browser: OperatorsBrowser) -> None:
    server, key = browser.server, browser.key("/operators")
    form = {"name": "olga", "role": "operator", "form_key": key}
    first = shown_token(browser.post("/operators", form))
    olga = OperatorsBrowser(server)
    olga.sign_in(first)
    assert "Signed in as olga (operator)" in page_of(olga.get("/"))
    assert 'href="/operators"' not in olga.get("/").text
    for path in ("/operators", "/operators/olga"):
        assert "has the role operator; this needs admin" in page_of(olga.get(path), 403)
    shown = browser.get("/operators")
    assert re.findall(r'href="/operators/(\w+)"', shown.text) == ["olga"]
    assert first not in shown.text

    rotate = browser.fields(browser.get("/operators/olga")) | {"do": "rotate"}
    second = shown_token(browser.post("/operators/olga", rotate))
    assert olga.get("/").status_code == 303  # to sign in
    olga.sign_in(second)
    removed = browser.post("/operators/olga", {"do": "remove", "form_key": key})
    assert (removed.status_code, removed.location) == (303, "/operators")
    assert olga.get("/").status_code == 303
    assert browser.get("/operators/olga").status_code == 404
    assert browser.post("/operators/olga", {"do": "rotate", "form_key": key}).status_code == 404
    assert [(each.operator, each.action, each.subject) for each in audit(server)] == [
        (FIRST, "remove operator", "olga"),
        (FIRST, "rotate token", "olga"),
        (FIRST, "add operator", "olga"),
    ]


def test_a_reloaded_page_gives_no_second_token(browser: OperatorsBrowser) -> None:
    form = {"name": "olga", "role": "operator", "form_key": browser.key("/operators")}
    browser.post("/operators", form)
    assert "there is an operator" in page_of(browser.post("/operators", form), 422)
    rotate = browser.fields(browser.get("/operators/olga")) | {"do": "rotate"}
    answered = browser.post("/operators/olga", rotate)
    given = shown_token(answered)
    assert "hreflang" not in answered.text  # in another language, the token would not be shown
    for late in (rotate, rotate | {"replaces": "é\0"}, {**rotate, "replaces": ""}):
        again = browser.post("/operators/olga", late)
        assert "was given a new token already, which is not shown again" in page_of(again, 409)
        assert not re.search(r"[A-Za-z0-9_-]{43}</code>", again.text)
    assert OperatorsBrowser(browser.server).sign_in(given).status_code == 303
    assert [each.action for each in audit(browser.server)] == ["rotate token", "add operator"]
    another = shown_token(browser.post("/operators/olga", browser.fields(again) | {"do": "rotate"}))
    assert OperatorsBrowser(browser.server).sign_in(another).status_code == 303


def test_a_mistaken_operator_is_marked_in_the_form(browser: OperatorsBrowser) -> None:
    right = {"name": "olga", "role": "viewer", "form_key": browser.key("/operators")}
    for name, text, said in (
        ("name", "Olga", "a letter first"),
        ("name", FIRST, "the server"),
        ("role", "king", "choose one of these"),
    ):
        refused = browser.post("/operators", right | {name: text})
        assert said in page_of(refused, 422).lower()
        assert f'id="{name}-mistake"' in refused.text
    for do in ("rotate", "remove"):  # whose token is in the data folder
        form = {"do": do, "form_key": right["form_key"]}
        page_of(browser.post(f"/operators/{FIRST}", form), 409)
    assert "This token is in the data folder" in page_of(browser.get(f"/operators/{FIRST}"))
    assert audit(browser.server) == ()
