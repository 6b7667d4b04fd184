"""Invitations that are listed, revoked, and refused by name."""

from __future__ import annotations

import base64
import re
import time
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from support.api_caller import Caller, Server, body_of, problem_of
from support.desk import OperatorsBrowser
from werkzeug.test import TestResponse

from earshot_protocol.api import AUDIT, INVITATIONS, Enrolled, Invitation, Invite
from earshot_server.api.views import Audit, Invitations
from earshot_server.attestation import Admission, Attestation, InvitationCodes
from earshot_server.records import InvitationRecord, InvitationState
from earshot_server.store.database import Database


def invite(server: Server, **asked: object) -> Invitation:
    return body_of(server.order(INVITATIONS, Invite(**asked)), Invitation)  # type: ignore[arg-type]


def listed(server: Server) -> dict[str, InvitationRecord]:
    found = body_of(server.read(INVITATIONS), Invitations).invitations
    return {each.name: each for each in found}


def revoke(server: Server, name: str) -> TestResponse:
    return server.app.test_client().delete(f"{INVITATIONS}/{name}", headers=server.bearer)


def let_expire(database: Database, name: str) -> None:
    database.query("UPDATE invitation_codes SET expires = 1 WHERE name = %s", (name,))


def test_an_invitation_is_listed_without_its_code(server: Server, database: Database) -> None:
    first = invite(server, uses=3, days=2.0, cohort="north", name="class-7b")
    second = invite(server)
    server.phone(first.code)
    response = server.read(INVITATIONS)
    assert [each["name"] for each in response.get_json()["invitations"]] == [
        second.name,
        "class-7b",
    ]
    each = listed(server)["class-7b"]
    assert (each.state, each.used, each.uses) == (InvitationState.OPEN, 1, 3)
    assert (each.cohort, each.expires, each.revoked) == ("north", first.expires, None)
    assert each.made == pytest.approx(time.time(), abs=60)
    # Neither the code nor its signature, the part that nobody can make up.
    signature = base64.urlsafe_b64decode(first.code)[-64:]
    assert first.code not in response.text
    for table in ("invitation_codes", "invitations", "phones", "audit"):
        for (row,) in database.query(f"SELECT t::text FROM {table} t"):  # type: ignore[arg-type]  # noqa: S608
            assert first.code not in row
            assert signature.hex() not in row


def test_a_revoked_invitation_enrols_no_more_phones_and_keeps_those_that_it_has(
    server: Server,
) -> None:
    code = invite(server, uses=3, name="class-7b").code
    other = invite(server, uses=3, name="class-7c").code
    phone = server.phone(code)
    assert revoke(server, "class-7b").status_code == 204
    problem = problem_of(Caller(server.app).enrol(code), 403, "invitation")
    assert problem.detail == "this invitation was revoked: ask for a new one"
    # A phone whose answer was lost asks again, under the same key.
    assert body_of(Caller(server.app, key=phone.key).enrol(code), Enrolled).phone == phone.name
    phone.task()
    server.phone(other)
    each = listed(server)["class-7b"]
    assert (each.state, each.used) == (InvitationState.REVOKED, 1)
    assert each.revoked == pytest.approx(time.time(), abs=60)


def test_an_invitation_that_the_server_has_no_record_of_is_refused(
    server: Server, database: Database
) -> None:
    """As after a restored backup that is older than the code."""
    unlisted = InvitationCodes(server.credentials.invitation_key).issue(Invite(), time.time())
    problem = problem_of(Caller(server.app).enrol(unlisted.code), 403, "invitation")
    assert "no record of this invitation" in problem.detail
    assert database.query("SELECT count(*) FROM phones") == [(0,)]
    assert database.query("SELECT count(*) FROM invitations") == [(0,)]


def test_each_refusal_has_its_own_words(server: Server) -> None:
    used, over = invite(server, name="used"), invite(server, days=1e-9)
    server.phone(used.code)
    forged = InvitationCodes(Ed25519PrivateKey.generate()).issue(Invite(name="used"), time.time())
    said = {
        "1 phones have enrolled with this invitation": (used, "invitation-used-up"),
        "has expired": (over, "invitation"),
        "not an invitation code of this server": (forged, "invitation"),
    }
    for words, (invitation, kind) in said.items():
        assert words in problem_of(Caller(server.app).enrol(invitation.code), 403, kind).detail


def test_what_admits_no_phone_cannot_be_revoked(server: Server, database: Database) -> None:
    for name in ("used", "over", "gone"):
        invited = invite(server, name=name)
        if name == "used":
            server.phone(invited.code)
    let_expire(database, "over")
    revoke(server, "gone")
    before = listed(server)
    for name, state in (("used", "used up"), ("over", "expired"), ("gone", "revoked")):
        assert before[name].state.value == state
        problem = problem_of(revoke(server, name), 409, "invitation-over")
        assert problem.detail == f"the invitation '{name}' is {state} already"
    assert listed(server) == before
    problem = problem_of(revoke(server, "nothing"), 404, "unknown-invitation")
    assert problem.detail == "there is no invitation 'nothing'"
    actions = [each.action for each in body_of(server.read(AUDIT), Audit).entries]
    assert actions.count("revoke invitation") == 1


def test_a_name_is_given_once(server: Server) -> None:
    invite(server, name="class-7b")
    revoke(server, "class-7b")
    problem = problem_of(server.order(INVITATIONS, Invite(name="class-7b")), 409, "invitation-name")
    assert problem.detail == "there is an invitation 'class-7b': choose another name"
    assert len(listed(server)) == 1
    actions = [each.action for each in body_of(server.read(AUDIT), Audit).entries]
    assert actions == ["revoke invitation", "invite"]


@pytest.mark.parametrize("name", ["Class", "a b", "-a", "a" * 33, "ä", "a/b", "a\n", "'"])
def test_names_are_simple(server: Server, name: str) -> None:
    problem_of(server.order(INVITATIONS, Invite(name=name)), 400, "malformed")
    assert revoke(server, name).status_code == 404
    assert listed(server) == {}


class _Anybody(Attestation):
    def check(self, attestation: str, public_key: bytes, now: float) -> Admission:
        return Admission(invitation=bytes(16), uses=1)


def test_another_attestation_needs_no_list(database: Database, tmp_path: Path) -> None:
    server = Server.over(database, tmp_path, attestation=_Anybody())
    body_of(Caller(server.app).enrol("a platform's word"), Enrolled)
    problem_of(Caller(server.app).enrol("a platform's word"), 403, "invitation-used-up")
    assert listed(server) == {}


# ----------------------------------------------------------------------------------- dashboard


@pytest.fixture
def browser(server: Server) -> OperatorsBrowser:
    browser = OperatorsBrowser(server)
    browser.sign_in()
    return browser


def test_the_dashboard_lists_and_revokes(browser: OperatorsBrowser, database: Database) -> None:
    server = browser.server
    for name in ("open", "over", "gone"):
        code = invite(server, uses=3, name=name).code
        server.phone(code)
    let_expire(database, "over")
    revoke(server, "gone")
    shown = browser.get("/invite").text
    rows = dict(re.findall(r'scope="row">(\w+)</th>\s*<td role="cell">(\w+)', shown))
    assert rows == {"gone": "revoked", "over": "expired", "open": "open"}
    assert re.findall(r'href="([^"]*/revoke)"', shown) == ["/invitations/open/revoke"]
    assert code not in shown

    asked = browser.get("/invitations/open/revoke")
    assert "1 phone of 3 has enrolled with it" in asked.text
    assert listed(server)["open"].state is InvitationState.OPEN
    done = browser.post("/invitations/open/revoke", browser.fields(asked))
    assert (done.status_code, done.location) == (303, "/invite")
    assert listed(server)["open"].state is InvitationState.REVOKED
    # From a page that was open since before.
    again = browser.post("/invitations/open/revoke", browser.fields(asked))
    assert again.status_code == 409
    assert "is revoked already" in again.text
    for name, state in (("over", "expired"), ("gone", "revoked")):
        assert (
            f"This invitation is {state} already" in browser.get(f"/invitations/{name}/revoke").text
        )
    assert browser.get("/invitations/nothing/revoke").status_code == 404


def test_a_wrong_or_taken_name_is_marked_in_the_form(browser: OperatorsBrowser) -> None:
    invite(browser.server, name="class-7b")
    form = {"uses": "3", "days": "2", "cohort": "", "form_key": browser.key("/invite")}
    for name, words in (
        ("Class 7b", "a letter or digit first"),
        ("class-7b", "there is an invitation &#39;class-7b&#39;"),
    ):
        response = browser.post("/invite", form | {"name": name, "do": "sign"})
        assert response.status_code == 422
        assert 'id="name-mistake"' in response.text
        assert words in response.text.lower()
        assert browser.fields(response)["name"] == name
    assert len(listed(browser.server)) == 1
    done = browser.post("/invite", form | {"name": "class-7c", "do": "sign"})
    assert "<strong>class-7c</strong>" in done.text
    assert "class-7c" in listed(browser.server)
