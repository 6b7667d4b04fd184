"""Names of phases, and phases for the phones of some invitations only."""

from __future__ import annotations

import base64

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st
from support import dashboard_records as made
from support.api_caller import Caller, Server, body_of, problem_of
from support.dashboard_server import application
from support.played_phase import PARAMETERS

from earshot_protocol.api import (
    COHORTS,
    INVITATIONS,
    PHASES,
    Enrolled,
    Invitation,
    Invite,
    StartPhase,
)
from earshot_protocol.errors import UnexpectedMessageError
from earshot_protocol.rules import Rule
from earshot_server.api.views import Cohorts, Phases, PhaseView
from earshot_server.attestation import InvitationCodes, InvitationError
from earshot_server.records import CohortRecord
from earshot_server.store.database import Database
from earshot_server.store.registry import Registry

KEY = Ed25519PrivateKey.generate()
CODES = InvitationCodes(KEY)
PHONE = bytes(32)


def phone_of(server: Server, cohort: str) -> Caller:
    code = body_of(server.order(INVITATIONS, Invite(uses=9, cohort=cohort)), Invitation).code
    caller = Caller(server.app)
    caller.name = body_of(caller.enrol(code), Enrolled).phone
    return caller


def start(server: Server, **chosen: object) -> bytes:
    body = msgspec.structs.replace(StartPhase(parameters=PARAMETERS, anyway=True), **chosen)
    return bytes.fromhex(body_of(server.order(PHASES, body), dict, 201)["phase"])


def joined(server: Server, phase: bytes) -> int:
    return body_of(server.read(f"{PHASES}/{phase.hex()}"), PhaseView).joined


# ---------------------------------------------------------------------------------- invitations


def test_a_code_carries_its_cohort_under_its_signature() -> None:
    invitation = CODES.issue(Invite(uses=3, cohort="north-1"), 0.0)
    assert invitation.cohort == "north-1"
    assert CODES.check(invitation.code, PHONE, 0.0).cohort == "north-1"
    signed = base64.urlsafe_b64decode(invitation.code)
    for forged in (
        signed.replace(b"north-1", b"south-1"),
        signed.replace(b"north-1", b""),
        signed.replace(b"north-1", b"north-11"),
    ):
        with pytest.raises(InvitationError):
            CODES.check(base64.urlsafe_b64encode(forged).decode(), PHONE, 0.0)


def test_a_code_without_a_cohort_is_what_it_was_before_there_were_any() -> None:
    signed = base64.urlsafe_b64decode(CODES.issue(Invite(), 0.0).code)
    assert len(signed) == 32 + 64
    assert CODES.check(CODES.issue(Invite(), 0.0).code, PHONE, 0.0).cohort == ""


@pytest.mark.parametrize(
    "cohort", ["North", "a b", "-a", "a" * 33, "ä", "a,b", "a\n", "\n", "a/b", "'"]
)
def test_names_of_cohorts_are_simple(server: Server, cohort: str) -> None:
    problem_of(server.order(INVITATIONS, Invite(cohort=cohort)), 400, "malformed")
    body = StartPhase(parameters=PARAMETERS, anyway=True, cohorts=(cohort,))
    problem_of(server.order(PHASES, body), 400, "malformed")


# --------------------------------------------------------------------------------------- phases


def test_a_phase_for_a_cohort_gathers_its_phones_alone(server: Server) -> None:
    phase = start(server, cohorts=("north", "west"))
    callers = {cohort: phone_of(server, cohort) for cohort in ("north", "south", "west", "")}
    for caller in callers.values():
        caller.task()
    assert joined(server, phase) == 2
    # The others go to the next phase that takes them, though it is younger.
    other = start(server, cohorts=("south",))
    everybody = start(server)
    for caller in callers.values():
        caller.task()
    assert [joined(server, each) for each in (phase, other, everybody)] == [2, 1, 1]
    view = body_of(server.read(f"{PHASES}/{phase.hex()}"), PhaseView)
    assert view.cohorts == ("north", "west")


def test_a_phone_of_another_cohort_does_not_join_even_if_it_is_let(database: Database) -> None:
    registry = Registry(database)
    north, none = (
        registry.enrol(bytes([number]) * 32, b"i" * 16, 9, cohort)
        for number, cohort in enumerate(("north", ""))
    )
    phase = b"p" * 16
    registry.gather(phase, PARAMETERS, 3, 4e9, cohorts=("north",))
    assert registry.join(phase, none) is None
    assert registry.join(phase, north) == 0
    # A key that enrols again stays where it was.
    assert registry.enrol(bytes(32), b"i" * 16, 9, "south") == north
    assert registry.standing(north).member == (phase, 0)
    with pytest.raises(UnexpectedMessageError):
        registry.refuse(phase, none, Rule.SUM)


def test_cohorts_are_listed_with_their_phones(server: Server) -> None:
    assert body_of(server.read(COHORTS), Cohorts).cohorts == ()
    members = [phone_of(server, cohort) for cohort in ("north", "north", "south", "")]
    start(server, cohorts=("north",))
    members[0].task()
    assert body_of(server.read(COHORTS), Cohorts).cohorts == (
        CohortRecord("", 1, 1),
        CohortRecord("north", 2, 1),
        CohortRecord("south", 1, 1),
    )
    phase = body_of(server.read(PHASES), Phases).phases[0].phase
    server.order(f"{PHASES}/{phase}/stop")
    assert body_of(server.read(COHORTS), Cohorts).cohorts[1].free == 2
    problem_of(server.get(COHORTS), 401, "operator")


# ---------------------------------------------------------------------------------------- names


def test_a_phase_has_the_name_that_it_was_given(server: Server) -> None:
    names = ["Week 12, north", "", "Week 12, north"]
    for name in names:
        start(server, name=name)
    listed = body_of(server.read(PHASES), Phases).phases
    assert [each.name for each in listed] == names
    assert "“Week 12, north”" in server.read("/").text
    assert "“Week 12, north”" in server.read(f"/phases/{listed[0].phase}").text


@pytest.mark.parametrize("name", [" a", "a ", "a\nb", "\x1b[31mred", "a\u202eb", "\u200b"])
def test_a_name_is_printable(server: Server, name: str) -> None:
    body = StartPhase(parameters=PARAMETERS, anyway=True, name=name)
    assert "printable" in problem_of(server.order(PHASES, body), 422, "invalid-parameters").detail


def test_a_name_has_at_most_64_characters(server: Server) -> None:
    start(server, name="ü" * 64)
    body = StartPhase(parameters=PARAMETERS, anyway=True, name="ü" * 65)
    problem_of(server.order(PHASES, body), 400, "malformed")


@pytest.mark.slow
@settings(max_examples=25)
@given(st.text(max_size=64))
def test_whatever_a_name_holds_the_dashboard_shows_it_as_text(name: str) -> None:
    record = msgspec.structs.replace(made.running(), name=f"<b>{name}", cohorts=("<i>",))
    client = application(made.HandMadeArchive([record])).test_client()
    for path in ("/", f"/phases/{record.phase.hex()}"):
        text = client.get(path).text
        assert "&lt;b&gt;" in text
        assert "<b>" not in text
        assert "<i>" not in text
