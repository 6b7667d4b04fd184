"""Several operators, what each may do, and the log of what they did."""

from __future__ import annotations

import base64
from pathlib import Path

import psycopg
import pytest
from support.api_caller import Server, body_of, problem_of
from support.played_phase import PARAMETERS
from werkzeug.test import TestResponse

from earshot_protocol.api import (
    AUDIT,
    INVITATIONS,
    JSON,
    OPERATORS,
    PHASES,
    Invite,
    StartPhase,
    encode_body,
)
from earshot_server.api.openapi import OPERATIONS, Operation
from earshot_server.api.views import Audit, NewOperator, Operators, OperatorToken, OperatorView
from earshot_server.store.database import Database
from earshot_server.store.operators import FIRST, Accounts, Role
from earshot_server.store.registry import Registry

NOBODY = "0" * 32
ORDERS = [each for each in OPERATIONS if each.caller == "operator"]


def call(server: Server, token: str, method: str, path: str, body: object = None) -> TestResponse:
    fields = {"Authorization": f"Bearer {token}", "Content-Type": JSON}
    data = b"" if body is None else encode_body(body, JSON)
    return server.app.test_client().open(path, method=method, headers=fields, data=data)


def add(server: Server, name: str, role: Role) -> str:
    response = server.order(OPERATORS, NewOperator(name=name, role=role))
    return body_of(response, OperatorToken, 201).token


def logged(server: Server) -> list[tuple[str, str, str, str]]:
    """The audit log, oldest first."""
    entries = body_of(server.read(AUDIT), Audit).entries
    return [(each.operator, each.action, each.subject, each.detail) for each in entries[::-1]]


# --------------------------------------------------------------------------------------- roles


@pytest.mark.parametrize("role", list(Role))
@pytest.mark.parametrize("operation", ORDERS, ids=lambda each: each.name)
def test_each_may_do_what_the_role_says_and_no_more(
    server: Server, role: Role, operation: Operation
) -> None:
    token = add(server, "somebody", role)
    path = operation.path.replace("{phase}", NOBODY).replace("{operator}", "anybody")
    path = path.replace("{phone}", "7").replace("{invitation}", "class-7b")
    path = path.replace("{campaign}", 2 * NOBODY)
    response = call(server, token, operation.method.upper(), path)
    if role.includes(operation.role):
        assert response.status_code not in (401, 403, 405), response.data
    else:
        said = problem_of(response, 403, "role").detail
        assert said == f"somebody has the role {role.value}; this needs {operation.role.value}"
    # Without a token nobody gets so far, and neither does a phone's method.
    problem_of(call(server, "", operation.method.upper(), path), 401, "operator")


def test_a_viewer_sees_the_dashboard_under_the_own_name_only(server: Server) -> None:
    token = add(server, "vera", Role.VIEWER)
    for name, secret, status in (
        ("vera", token, 200),
        (FIRST, server.credentials.operator_token, 200),
        (FIRST, token, 401),
        ("", token, 401),
        ("vera", server.credentials.operator_token, 401),
        ("vera", token[:-1], 401),
    ):
        basic = base64.b64encode(f"{name}:{secret}".encode()).decode()
        assert server.get("/", Authorization=f"Basic {basic}").status_code == status, name


def test_a_token_opens_nothing_once_it_is_rotated_or_its_operator_removed(server: Server) -> None:
    first = add(server, "olga", Role.OPERATOR)
    assert call(server, first, "GET", PHASES).status_code == 200
    rotated = server.order(f"{OPERATORS}/olga/token")
    second = body_of(rotated, OperatorToken).token
    assert second != first
    problem_of(call(server, first, "GET", PHASES), 401, "operator")
    assert call(server, second, "GET", PHASES).status_code == 200
    admin = server.credentials.operator_token
    assert call(server, admin, "DELETE", f"{OPERATORS}/olga").status_code == 204
    problem_of(call(server, second, "GET", PHASES), 401, "operator")
    problem_of(call(server, admin, "DELETE", f"{OPERATORS}/olga"), 404, "unknown-operator")
    problem_of(server.order(f"{OPERATORS}/olga/token"), 404, "unknown-operator")


def test_the_first_operator_is_an_admin_that_no_request_changes(server: Server) -> None:
    add(server, "alan", Role.ADMIN)
    listed = body_of(server.read(OPERATORS), Operators).operators
    assert listed == (
        OperatorView(name=FIRST, role=Role.ADMIN),
        OperatorView(name="alan", role=Role.ADMIN),
    )
    for name in (FIRST, "phone", "alan"):
        response = server.order(OPERATORS, NewOperator(name=name, role=Role.VIEWER))
        problem_of(response, 409, "operator-name")
    problem_of(server.order(f"{OPERATORS}/{FIRST}/token"), 409, "operator-name")
    admin = server.credentials.operator_token
    problem_of(call(server, admin, "DELETE", f"{OPERATORS}/{FIRST}"), 409, "operator-name")
    assert body_of(server.read(OPERATORS), Operators).operators == listed


@pytest.mark.parametrize("name", ["", "Olga", "0lga", "o" * 33, "o l", "ol/ga", "ölga"])
def test_names_are_plain(server: Server, name: str) -> None:
    problem_of(server.order(OPERATORS, {"name": name, "role": "viewer"}), 400, "malformed")


def test_no_table_holds_a_token(server: Server, database: Database) -> None:
    tokens = [add(server, f"o{number}", Role.VIEWER) for number in range(3)]
    assert len(set(tokens)) == 3
    for token in (*tokens, server.credentials.operator_token):
        assert len(base64.urlsafe_b64decode(token + "=")) == 32
        for table in ("operators", "audit"):
            kept = database.query(f"SELECT t::text FROM {table} t")  # type: ignore[arg-type]  # noqa: S608
            assert kept
            assert not any(token in row for (row,) in kept)
            assert not any(token.encode().hex() in row for (row,) in kept)


# --------------------------------------------------------------------------------------- audit


def test_what_changes_something_is_in_the_log_with_who_did_it(server: Server) -> None:
    token = add(server, "olga", Role.OPERATOR)
    body = Invite(uses=3, days=2.0, name="class-7b")
    code = call(server, token, "POST", INVITATIONS, body).get_json()["code"]
    phase = server.start(PARAMETERS).hex()
    assert call(server, token, "POST", f"{PHASES}/{phase}/stop").get_json()["stopped"]
    assert not call(server, token, "POST", f"{PHASES}/{phase}/stop").get_json()["stopped"]
    call(server, token, "DELETE", f"{INVITATIONS}/class-7b")
    server.order(f"{OPERATORS}/olga/token")
    call(server, server.credentials.operator_token, "DELETE", f"{OPERATORS}/olga")
    assert logged(server) == [
        (FIRST, "add operator", "olga", "operator"),
        ("olga", "invite", "class-7b", "3 uses, 2 days"),
        (FIRST, "start phase", phase, "learning, 12 phones"),
        ("olga", "stop phase", phase, ""),
        ("olga", "revoke invitation", "class-7b", ""),
        (FIRST, "rotate token", "olga", ""),
        (FIRST, "remove operator", "olga", ""),
    ]
    assert code not in str(logged(server))


def test_what_was_refused_or_read_is_not_in_the_log(server: Server) -> None:
    token = add(server, "vera", Role.VIEWER)
    before = logged(server)
    call(server, token, "POST", INVITATIONS, Invite())
    call(server, token, "GET", PHASES)
    server.order(OPERATORS, NewOperator(name="vera", role=Role.ADMIN))
    server.order(f"{PHASES}/{NOBODY}/stop")
    assert logged(server) == before


def test_what_cannot_be_logged_is_not_done(own_database: Database, tmp_path: Path) -> None:
    server = Server.over(own_database, tmp_path)
    phase = server.start(PARAMETERS)
    own_database.query("ALTER TABLE audit RENAME TO lost")
    assert server.order(OPERATORS, NewOperator(name="olga", role=Role.ADMIN)).status_code == 503
    assert server.order(f"{PHASES}/{phase.hex()}/stop").status_code == 503
    another = StartPhase(parameters=PARAMETERS, anyway=True)
    assert server.order(PHASES, another).status_code == 503
    own_database.query("ALTER TABLE lost RENAME TO audit")
    assert [each.name for each in Accounts(own_database).all()] == [FIRST]
    assert [each.phase for each in Registry(own_database).gatherings()] == [phase]
    assert [entry[1] for entry in logged(server)] == ["start phase"]


def test_the_log_is_only_added_to(database: Database) -> None:
    accounts = Accounts(database)
    accounts.record("somebody", "does", "something", "somehow")
    for change in ("UPDATE audit SET operator = 'x'", "DELETE FROM audit", "TRUNCATE audit"):
        with pytest.raises(psycopg.errors.RaiseException, match="only added to"):
            database.query(change)  # type: ignore[arg-type]
    assert [entry.operator for entry in accounts.audit()] == ["somebody"]


def test_a_long_log_is_read_page_by_page(server: Server, database: Database) -> None:
    accounts = Accounts(database)
    for number in range(7):
        accounts.record("somebody", "counts", str(number))
    newest = accounts.audit(limit=3)
    assert [entry.subject for entry in newest] == ["6", "5", "4"]
    older = body_of(server.read(f"{AUDIT}?before={newest[-1].entry}"), Audit).entries
    assert [entry.subject for entry in older] == ["3", "2", "1", "0"]
    assert body_of(server.read(f"{AUDIT}?before={older[-1].entry}"), Audit).entries == ()
    assert [entry.at for entry in newest + older] == sorted(
        (entry.at for entry in newest + older), reverse=True
    )
    for wrong in ("", "x", "-1", "٣", "9" * 19):
        problem_of(server.read(f"{AUDIT}?before={wrong}"), 400, "malformed")


# -------------------------------------------------------------------------------- transactions


def undone(database: Database) -> None:
    with database.transaction():
        Accounts(database).record("somebody", "does", "what is undone")
        assert Accounts(database).audit()[0].subject == "what is undone"
        raise ZeroDivisionError


def test_what_a_thread_does_within_a_transaction_is_part_of_it(database: Database) -> None:
    accounts = Accounts(database)
    with pytest.raises(ZeroDivisionError):
        undone(database)
    assert accounts.audit() == ()
    with database.transaction():
        accounts.record("somebody", "does", "what stays")
        with pytest.raises(ZeroDivisionError):
            undone(database)
    assert [entry.subject for entry in accounts.audit()] == ["what stays"]
