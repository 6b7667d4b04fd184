"""Sittings: how they are started, begun before all are there, and shown on a wall."""

from __future__ import annotations

import html
import json
import math
import re
import time
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest
from support import dashboard_records as made
from support.api_caller import Server, body_of, problem_of
from support.command import dry_start, earshot
from support.dashboard_server import application, served, words
from support.desk import OperatorsBrowser
from support.played_phase import PARAMETERS
from support.textbook_link import read
from werkzeug.test import TestResponse

from earshot_protocol.api import AUDIT, COHORTS, OPERATORS, PHASES, Invite, StartPhase
from earshot_protocol.environments import default_hierarchy
from earshot_protocol.phases.discovery import LABELS, Discovered, DiscoveryParameters
from earshot_protocol.phases.plan import SecureSum
from earshot_protocol.privacy.mechanisms import VectorSum
from earshot_protocol.privacy.significance import LEVEL
from earshot_protocol.secure_sum.interface import SummationName
from earshot_protocol.voting.vectors import UNCOUNTED, unit_steps
from earshot_server.api.app import ApiSettings, create_app
from earshot_server.api.views import (
    Audit,
    Cohorts,
    NewOperator,
    OperatorToken,
    Phases,
    PhaseView,
)
from earshot_server.commands.phase.starting import SECURE_SUM, Options, parameters_of
from earshot_server.credentials import Credentials
from earshot_server.dashboard import prospects
from earshot_server.discovery.optics import Optics
from earshot_server.discovery.prototypes import prototypes
from earshot_server.phases import sitting
from earshot_server.phases.forecast import forecast
from earshot_server.phases.options import Discovery
from earshot_server.phases.proposal import proposed
from earshot_server.processes.driver import Driver
from earshot_server.records import RUNNING, PhaseRecord, StepRecord, Trouble
from earshot_server.store.database import Database
from earshot_server.store.operators import Role

PAGE, HELPER = "https://phone.example.org/", "ab" * 32
CLASS = {
    "pace": "sitting",
    "name": "Class 7b",
    "labels": "home, street, office",
    "phones": "20",
    "least_phones": "",
    "epsilon": "2",
    "summation": "two-operators",
    "gather_hours": "24",
    "step_hours": "24",
    "cohort": "",
}
LEAST = 10


@pytest.fixture
def leading(database: Database, tmp_path: Path) -> OperatorsBrowser:
    """One in which the first operator is signed in, at a server with a helper and a page."""
    credentials = Credentials.load_or_create(tmp_path, leads=True)
    settings = ApiSettings(database, credentials, helper_key=HELPER, phone_page=PAGE)
    browser = OperatorsBrowser(Server(create_app(settings), credentials))
    assert browser.sign_in().status_code == 303
    return browser


def said(response: TestResponse, status: int = 200) -> str:
    """The words of the page that the response must be."""
    assert response.status_code == status, response.text
    text = html.unescape(re.sub(r"<[^>]+>", " ", response.text))
    return re.sub(r"\s+", " ", text)


def started(browser: OperatorsBrowser, **changes: str) -> str:
    """The path of the wall page of a sitting that the form has started."""
    form = CLASS | changes | {"form_key": browser.key(), "do": "look"}
    verdict = browser.fields(browser.post("/start", form))
    response = browser.post("/start", verdict | {"do": "start", "anyway": "yes"})
    assert response.status_code == 303, response.text
    return response.location


def invited(browser: OperatorsBrowser, wall: str) -> TestResponse:
    return browser.post(wall, browser.fields(browser.get(wall)))


def links(page: TestResponse) -> list[str]:
    return re.findall(r"<code>([^<]+)</code></pre>", page.text)


def audited(server: Server) -> list[str]:
    return [each.action for each in body_of(server.read(AUDIT), Audit).entries]


def view_of(server: Server) -> PhaseView:
    (view,) = body_of(server.read(PHASES), Phases).phases
    return view


# --------------------------------------------------------------------------------- starting one


def test_a_sitting_is_one_sum_of_labels_with_the_whole_budget() -> None:
    usual = Options(phones=20, labels=("home", "street"))
    parameters = parameters_of(SECURE_SUM, sitting.seated(usual))
    assert isinstance(parameters, DiscoveryParameters)
    (only,) = parameters.plan().parts
    assert isinstance(only, SecureSum)
    assert parameters.summation is SummationName.TWO_OPERATORS
    unproved = replace(usual, summation=SummationName.TWO_OPERATORS_UNPROVED)
    assert sitting.seated(unproved).summation is SummationName.TWO_OPERATORS_UNPROVED
    nightly = parameters_of(SECURE_SUM, replace(usual, summation=SummationName.TWO_OPERATORS))
    assert isinstance(nightly, DiscoveryParameters)
    assert parameters.labels_noise < 0.6 * nightly.labels_noise
    costs = [forecast(StartPhase(parameters=each)).together for each in (parameters, nightly)]
    assert costs[0]["phone"].epsilon == pytest.approx(costs[1]["phone"].epsilon, rel=0.01)


def test_operations_says_how_many_phones_a_label_takes() -> None:
    labels = tuple(default_hierarchy().groups)
    parameters, proposal = proposed(
        replace(sitting.seated(Options(phones=40, labels=labels)), discovery=Discovery.SECURE_SUM)
    )
    assert proposal.needed == 14
    assert isinstance(parameters, DiscoveryParameters)
    mechanism = parameters.plan().mechanisms[LABELS]
    assert isinstance(mechanism, VectorSum)
    shape = len(labels), parameters.label_entries
    deviation, generator = mechanism.noise(40).deviation, np.random.default_rng(4)
    cells = np.eye(parameters.most_cells, parameters.dimensions)

    def share(phones: int, direction: int) -> float:
        """Share of labels with a clear prototype, each from so many phones whose sounds agree."""
        heard = np.zeros(shape)
        heard[:, direction] = phones * UNCOUNTED * unit_steps(math.prod(shape))
        totals = (np.rint(heard + generator.normal(0, deviation, shape)) for _ in range(50))
        found = [prototypes(total.astype(np.int64), deviation, cells) for total in totals]
        return float(np.mean([each.p_values <= LEVEL for each in found]))

    assert share(13, 0) < 0.5 < share(14, 0) < 0.65
    assert 0.95 < share(20, 0) < 0.98
    assert share(21, -2) < 0.5 < share(22, -2) < 0.6
    text = " ".join((Path(__file__).parents[2] / "docs" / "operations.md").read_text().split())
    assert "a label takes 14 phones that give it, and no other, for about even odds" in text
    assert "at ε = 2 and 11 labels, and 20 for 19 times out of 20" in text
    assert "and 22 for even odds if they are like no start centroid" in text
    assert len(labels) == 11


def test_half_of_the_phones_are_enough_and_never_fewer_than_three() -> None:
    assert [sitting.enough(phones) for phones in (2, 3, 5, 6, 7, 20, 21)] == [3, 3, 3, 3, 4, 10, 11]


def test_the_form_starts_a_sitting_and_leads_to_its_wall(leading: OperatorsBrowser) -> None:
    offered = leading.fields(leading.get("/start"))
    assert offered["pace"] == "nights"
    verdict = leading.post("/start", CLASS | {"form_key": leading.key(), "do": "look"})
    told = said(verdict)
    assert " phones=20; at least 100 is accepted" in told
    assert "least_phones" not in told
    assert "earshot helper allow KEY --least-reports 8" in told
    assert "at the most, while the helper answers 10 min" in told
    assert "these two never put their data together" in told
    assert "proposed" not in told.lower()
    refused = leading.post("/start", leading.fields(verdict) | {"do": "start"})
    assert "Nothing was started: tick this" in said(refused, 422)
    wall = started(leading)
    view = view_of(leading.server)
    assert wall == f"/phases/{view.phase}/wall"
    assert (view.wanted, view.least) == (20, 10)
    assert view.gather_until - view.created == pytest.approx(600, abs=5)
    labels = ("home", "street", "office")
    expected = parameters_of(SECURE_SUM, sitting.seated(Options(phones=20, labels=labels)))
    assert view.parameters == msgspec.structs.replace(expected, step_seconds=30.0)


def test_hours_do_not_count_in_a_sitting_and_few_phones_may_be_named(
    leading: OperatorsBrowser,
) -> None:
    started(leading, gather_hours="", step_hours="soon", least_phones="15")
    assert view_of(leading.server).least == 15


@pytest.mark.parametrize(
    ("field", "text", "mistake"),
    [
        ("summation", "bell", "A sitting is by two operators"),
        ("pace", "weeks", "Choose one of these"),
        ("least_phones", "30", "Must be at most phones=20"),
        ("phones", "2", "Must be a whole number"),
    ],
)
def test_what_no_sitting_can_be_is_named_beside_its_field(
    leading: OperatorsBrowser, field: str, text: str, mistake: str
) -> None:
    form = CLASS | {field: text, "form_key": leading.key(), "do": "start", "once": "x"}
    response = leading.post("/start", form)
    said(response, 422)
    (found,) = re.findall(rf'id="{field}-mistake">([^<]*)', response.text)
    assert mistake in found
    assert body_of(leading.server.read(PHASES), Phases).phases == ()


def test_a_server_without_a_helper_offers_no_sitting(server: Server) -> None:
    browser = OperatorsBrowser(server)
    browser.sign_in()
    assert "pace" not in browser.fields(browser.get("/start"))
    form = CLASS | {"form_key": browser.key(), "do": "start", "once": "x", "anyway": "yes"}
    assert "this server has no helper" in said(browser.post("/start", form), 422)


def test_what_gathers_already_is_named_since_phones_join_it_first(
    leading: OperatorsBrowser,
) -> None:
    look = CLASS | {"form_key": leading.key(), "do": "look"}
    assert "first, which gathers already" not in said(leading.post("/start", look))
    leading.server.start(PARAMETERS)
    assert "first, which gathers already" in said(leading.post("/start", look))
    asked = StartPhase(parameters=PARAMETERS, cohorts=("north",))
    elsewhere = msgspec.structs.replace(made.gathering(), cohorts=("south",))
    full = msgspec.structs.replace(made.gathering(), joined=200)
    here = msgspec.structs.replace(made.gathering(), cohorts=("north", "south"))
    found = prospects.gathering_before(asked, [elsewhere, full, here, made.running()])
    assert found == [here]


def test_the_command_starts_the_same_and_names_the_wall(
    leading: OperatorsBrowser, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = leading.server.credentials.operator_token
    with served(leading.server.app) as address:
        run = earshot(
            *("phase", "start", "--sitting", "--phones", "20", "--labels", "home,street,office"),
            *("--name", "Class 7b", "--anyway"),
            EARSHOT_SERVER=address + "/",
            EARSHOT_OPERATOR_TOKEN=token,
        )
    assert run.returncode == 0, run.stderr
    view = view_of(leading.server)
    assert run.stdout == f"{view.phase}\n"
    assert f"wall page: {address}/phases/{view.phase}/wall" in run.stderr
    assert "earshot helper allow KEY --least-reports 8" in run.stderr
    assert "proposed" not in run.stderr
    by_command = view.parameters, view.least, view.gather_until - view.created
    labels = ("home", "street", "office")
    expected = parameters_of(SECURE_SUM, sitting.seated(Options(phones=20, labels=labels)))
    assert by_command == (
        msgspec.structs.replace(expected, step_seconds=30.0), 10, pytest.approx(600, abs=5)
    )  # fmt: skip


def test_a_dry_run_of_a_sitting_needs_no_server() -> None:
    printed = dry_start("--sitting", "--phones", "400")
    assert "in 1 steps" in printed
    assert "if the helper answers immediately" in printed
    assert "1 steps" in printed


@pytest.mark.parametrize(
    "options",
    [
        ("--gather-hours", "1"),
        ("--step-hours", "1"),
        ("--sums", "1"),
        ("--discovery", "local"),
        ("--statistics",),
    ],
)
def test_options_that_a_sitting_does_not_have_are_refused(options: tuple[str, ...]) -> None:
    refused = dry_start("--sitting", *options, status=2)
    assert options[0] in refused
    assert "not for --sitting" in refused


# --------------------------------------------------------------------------------- beginning one


def test_a_phase_begins_with_those_who_are_there(server: Server, database: Database) -> None:
    phase = server.start(PARAMETERS, least=LEAST)
    begin = f"{PHASES}/{phase.hex()}/begin"
    phones = [server.phone() for _ in range(LEAST + 1)]
    for phone in phones[: LEAST - 1]:
        phone.task()
    refused = problem_of(server.order(begin), 409, "unexpected")
    assert "9 phones have joined; the phase begins with 10 or more" in refused.detail
    driver = Driver(database, Optics(), keep_seconds=1e9)
    assert driver.turn() == 0
    phones[LEAST - 1].task()
    view = body_of(server.order(begin), PhaseView)
    assert (view.status, view.joined) == ("gathering", LEAST)
    phones[LEAST].task()  # comes too late
    assert driver.turn() == 1
    assert (view_of(server).status, view_of(server).joined) == (RUNNING, LEAST)
    assert audited(server).count("begin phase") == 1
    again = problem_of(server.order(begin), 409, "unexpected")
    assert "the phase is running and gathers no phones" in again.detail
    problem_of(server.order(f"{PHASES}/{'0' * 32}/begin"), 404, "unknown-phase")


def test_only_operators_let_a_phase_begin(server: Server) -> None:
    phase = server.start(PARAMETERS, least=LEAST)
    for _ in range(LEAST):
        server.phone().task()
    made_for = NewOperator(name="vera", role=Role.VIEWER)
    token = body_of(server.order(OPERATORS, made_for), OperatorToken, 201).token
    path = f"{PHASES}/{phase.hex()}/begin"
    viewer = {"Authorization": f"Bearer {token}"}
    problem_of(server.app.test_client().post(path, headers=viewer), 403, "role")
    problem_of(server.app.test_client().post(path), 401, "operator")
    assert "begin phase" not in audited(server)


def test_the_command_lets_a_phase_begin(leading: OperatorsBrowser) -> None:
    server = leading.server
    phase = server.start(PARAMETERS, least=LEAST).hex()
    token = {"EARSHOT_OPERATOR_TOKEN": server.credentials.operator_token}
    with served(server.app) as address:
        words = ("phase", "begin", phase[:8], "--server", address)
        few = earshot(*words, **token)
        assert few.returncode == 2
        assert "0 phones have joined" in few.stderr
        for _ in range(LEAST):
            server.phone().task()
        run = earshot(*words, **token)
        assert (run.returncode, run.stdout) == (0, f"begins with 10 phones: {phase}\n")
        assert json.loads(earshot(*words, "--json", **token).stdout)["joined"] == LEAST


# ------------------------------------------------------------------------------------- the wall


def test_an_invitation_is_signed_for_the_wall_and_shown_once(leading: OperatorsBrowser) -> None:
    server = leading.server
    wall = started(leading)
    before = leading.get(wall)
    assert "0 of 20 phones are here" in said(before)
    assert "Anyone who sees this page can use it" in said(before)
    assert links(before) == []
    shown = invited(leading, wall)
    (link,) = links(shown)
    told = read(link.removeprefix(PAGE + "#"))
    assert (told["server"], told["helper"].hex()) == ("http://localhost", HELPER)
    assert 'role="img" aria-label="QR code of the link below"><svg' in shown.text
    assert "This link leads to this machine alone" in said(shown)
    assert audited(server)[0] == "invite"
    view = view_of(server)
    newest = body_of(server.read(AUDIT), Audit).entries[0]
    assert newest.detail.startswith("20 uses, 0.00")  # not a second longer than the gathering
    assert float(newest.detail.split()[2]) * 86_400 <= view.gather_until - time.time() + 5
    for _ in range(2):  # as the page renews itself, and as a browser reloads it
        again = leading.get(wall)
        assert links(again) == []
        assert told["invitation"] not in again.text
        assert link not in again.text
    assert audited(server).count("invite") == 1
    for number in range(1, 4):
        server.phone(told["invitation"]).task()
        assert f"{number} of 20 phones" in said(leading.get(wall))
    assert "1 of 20 phones is here" not in said(leading.get(wall))


def test_a_reloaded_wall_signs_no_second_invitation(leading: OperatorsBrowser) -> None:
    wall = started(leading)
    form = leading.fields(leading.get(wall))
    assert len(links(leading.post(wall, form))) == 1
    for _ in range(2):
        again = leading.post(wall, form)
        assert (again.status_code, again.location) == (303, wall)
    assert audited(leading.server).count("invite") == 1
    assert "It is shown only once and not stored" in said(leading.get(wall))
    assert len(links(invited(leading, wall))) == 1


def test_phones_of_the_wall_belong_to_a_cohort_that_may_join(leading: OperatorsBrowser) -> None:
    server = leading.server
    server.phone(body_of(server.order("/v1/invitations", Invite(cohort="north")), dict)["code"])
    wall = started(leading, cohort="north")
    (link,) = links(invited(leading, wall))
    phone = server.phone(str(read(link.removeprefix(PAGE + "#"))["invitation"]))
    phone.task()
    assert "1 of 20 phones is here" in said(leading.get(wall))
    found = body_of(server.read(COHORTS), Cohorts).cohorts
    assert [(each.name, each.phones) for each in found] == [("north", 2)]


@pytest.mark.parametrize("path", ["wall", "begin"])
def test_nobody_else_does_anything_at_the_wall(leading: OperatorsBrowser, path: str) -> None:
    server = leading.server
    wall = started(leading)
    there = wall.removesuffix("wall") + path
    before = audited(server)
    key = leading.fields(leading.get(wall))["form_key"]
    for form in ({"form_key": ""}, {"form_key": key[:-1]}, {"form_key": "é"}):
        said(leading.post(there, form), 403)
    elsewhere = replace(leading, origin={"Sec-Fetch-Site": "cross-site"})
    elsewhere.client = leading.client
    assert "This form comes from elsewhere" in said(elsewhere.post(there, {"form_key": key}), 403)
    said(OperatorsBrowser(server).post(there, {"form_key": key}), 403)
    token = body_of(
        server.order(OPERATORS, NewOperator(name="vera", role=Role.VIEWER)), OperatorToken, 201
    ).token
    viewer = OperatorsBrowser(server)
    viewer.sign_in(token)
    shown = viewer.get(wall)
    assert "An operator shows invitations here" in said(shown)
    assert "<form" not in shown.text
    own = viewer.fields(viewer.get("/"))["form_key"]
    refused = said(viewer.post(there, {"form_key": own}), 403)
    assert "vera has the role viewer; this needs operator" in refused.lower()
    assert OperatorsBrowser(server).get(wall).status_code == 303  # to sign in
    assert audited(server) == ["add operator", *before]


def test_the_button_appears_with_enough_phones_and_begins(leading: OperatorsBrowser) -> None:
    server = leading.server
    wall = started(leading, least_phones="3")
    (link,) = links(invited(leading, wall))
    code = str(read(link.removeprefix(PAGE + "#"))["invitation"])
    begin = wall.removesuffix("wall") + "begin"
    for _ in range(2):
        server.phone(code).task()
    few = leading.get(wall)
    assert "At least 3 must be here." in said(few)
    assert begin not in few.text
    form = {"form_key": leading.fields(few)["form_key"]}
    assert "2 phones have joined" in said(leading.post(begin, form), 409)
    server.phone(code).task()
    enough = leading.get(wall)
    assert "They are enough." in said(enough)
    assert f'action="{begin}"' in enough.text
    response = leading.post(begin, form)
    assert (response.status_code, response.location) == (303, wall)
    assert audited(server)[0] == "begin phase"


def test_a_phase_that_gathers_no_more_invites_nobody(leading: OperatorsBrowser) -> None:
    server = leading.server
    wall = started(leading)
    form = {"form_key": leading.fields(leading.get(wall))["form_key"]}
    leading.post(wall.removesuffix("wall") + "stop", form | {"reason": "rain"})
    response = leading.post(wall, form)
    assert (response.status_code, response.location) == (303, wall)
    assert "invite" not in audited(server)
    over = leading.get(wall)
    assert "An operator stopped this phase" in said(over)
    assert "nothing was spent" in said(over)
    assert "data-every" not in over.text
    assert leading.get("/phases/" + "0" * 32 + "/wall").status_code == 404


# ------------------------------------------------------------------ what a room reads, by status


def wall_of(record: PhaseRecord) -> str:
    return words(f"/phases/{record.phase.hex()}/wall", record)


def sitting_record(*steps: StepRecord, trouble: Trouble | None = None) -> PhaseRecord:
    parameters = parameters_of(SECURE_SUM, sitting.seated(Options(phones=20, labels=made.LABELS)))
    return msgspec.structs.replace(
        made.running(7),
        parameters=msgspec.structs.replace(parameters, step_seconds=30.0),
        joined=20,
        wanted=40,
        steps=steps,
        step=steps[-1].step,
        deadline=made.NOW + 24.4,
        helper=trouble,
        refusals={"least_phones": 3},
    )


def step(number: int, name: str, answered: int, closed: bool) -> StepRecord:
    expected = 20 if name.endswith("report") else 1
    opened = made.NOW - 10 + number
    return StepRecord(number, name, expected, answered, opened, opened + 1 if closed else None)


def names() -> tuple[str, ...]:
    parameters = parameters_of(SECURE_SUM, sitting.seated(Options(phones=20, labels=made.LABELS)))
    return tuple(each.name for each in parameters.plan().steps)


def test_a_step_says_how_many_have_answered_and_how_long_it_lasts() -> None:
    offer, report, total = names()
    shown = wall_of(sitting_record(step(0, offer, 1, True), step(1, report, 17, False)))
    assert "17 of 20 phones have answered" in shown
    assert f"Step 2 of 3: {report}" in shown
    assert "16 must answer. 24 s left at most." in shown
    assert "3 phones" in shown  # refuse
    waits = sitting_record(step(0, offer, 0, False), trouble=Trouble(2, "against_policy", made.NOW))
    assert "Waiting for the helper" in wall_of(waits)
    assert "against_policy" in wall_of(waits)
    assert total not in wall_of(waits)


def test_the_end_names_what_is_clear_and_what_may_be_noise_and_the_price() -> None:
    record = made.published_discovery(60, made.NOW)
    ending = record.ending
    assert isinstance(ending, Discovered)
    clear = [name for name in ending.names if name is not None]
    doubtful = [
        label for label, name in zip(ending.label_names, ending.names, strict=True) if name is None
    ]
    assert clear
    assert doubtful
    shown = wall_of(record)
    assert f"{len(clear)} environments found" in shown
    for name in clear:
        assert shown.count(f" {name} ") >= 1
    listed = shown.partition("May be noise: ")[2].partition(".")[0]
    assert set(re.split(", | and ", listed)) == set(doubtful)
    assert "Noise alone would give any name in at most 5 of 100 phases." in shown
    spent = forecast(StartPhase(parameters=record.parameters)).together["phone"]
    assert f"ε = {spent.epsilon:.3g} At δ = " in shown
    assert "183 of 200 phones stayed" in shown


def test_a_result_of_noise_alone_is_called_that() -> None:
    shown = wall_of(made.empty_discovery(62, made.NOW))
    assert "Nothing stands clear of the noise" in shown
    assert "A larger crowd would show more." in shown
    assert "Clear of the noise" not in shown
    assert all(label in shown.partition("May be noise")[2] for label in made.LABELS)


def test_other_kinds_of_phase_have_a_wall_as_well() -> None:
    counted = wall_of(made.published_statistics(30, made.NOW))
    assert "Public transport: 204 labelled, 408 named by places." in counted
    learned = wall_of(made.published_learning(10, made.NOW))
    assert "Environment 1: " in learned
    failed = wall_of(made.too_few())
    assert "131 of 200 phones answered the round" in failed
    assert "--step-hours" in failed


@pytest.fixture(scope="module")
def walls() -> dict[str, str]:
    offer, report, _ = names()
    found = {
        "gathering": msgspec.structs.replace(made.gathering(), name="<i>Class</i>"),
        "running": sitting_record(step(0, offer, 1, True), step(1, report, 17, False)),
        "published": made.published_discovery(60, made.NOW),
    }
    client = application(made.HandMadeArchive([*found.values()])).test_client()
    return {
        name: client.get(f"/phases/{record.phase.hex()}/wall").text
        for name, record in found.items()
    }


@pytest.mark.parametrize("name", ["gathering", "running", "published"])
def test_a_wall_suits_a_strict_policy_and_renews_itself_every_two_seconds(
    walls: dict[str, str], name: str
) -> None:
    text = walls[name]
    assert "style=" not in text
    assert "<style" not in text
    assert not re.search(r"\son\w+=", text)
    assert re.findall(r"<script[^>]*>", text) == (
        [] if name == "published" else ['<script src="/static/renew.js" defer>']
    )
    assert ('data-every="2"' in text) == (name != "published")
    assert f'data-state="{name}"' in text
    assert text.count("<h1") == text.count("<main") == 1
    assert "<i>" not in text


def test_labels_of_everyday_life_come_with_the_choices_of_polls(leading: OperatorsBrowser) -> None:
    usual = default_hierarchy()
    started(leading, labels=", ".join(usual.classes))
    assert view_of(leading.server).parameters.hierarchy == usual.digest
