"""Web and driver have SQL roles of their own, which do all they must and nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import psycopg
import pytest
from support.api_caller import Server, body_of
from support.campaigns import campaign
from support.played_phase import PARAMETERS, make_phones

from earshot_protocol.api import AUDIT, CAMPAIGNS, LEAVE, OPERATORS, PHASES, REFUSAL, Leave, Refuse
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.messages import Failed
from earshot_protocol.phases.learning import Result
from earshot_protocol.rules import Rule
from earshot_server.api.views import (
    CampaignExport,
    CampaignView,
    NewOperator,
    OperatorToken,
    StartCampaign,
    Stopped,
)
from earshot_server.discovery.optics import Optics
from earshot_server.processes.driver import Driver
from earshot_server.processes.embedded import EmbeddedPostgres
from earshot_server.store import privileges
from earshot_server.store.campaigns import CampaignRows
from earshot_server.store.database import Database, DatabaseUnavailableError
from earshot_server.store.driving import Driving
from earshot_server.store.operators import Role
from earshot_server.store.privileges import separate
from earshot_server.store.registry import Registry


class Separated(NamedTuple):
    owner: Database
    web: Database
    driver: Database
    urls: tuple[str, str]


@pytest.fixture(scope="module")
def own_url(postgres: EmbeddedPostgres) -> Iterator[str]:
    """A database of this module's own, without any table."""
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute("CREATE DATABASE separated")
        yield postgres.url.replace("/postgres?", "/separated?")
        connection.execute("DROP DATABASE separated WITH (FORCE)")


@pytest.fixture(scope="module")
def separated(own_url: str) -> Iterator[Separated]:
    owner = Database(own_url, pool_size=4)
    owner.migrate()
    names = ("a_web", "a_driver")
    urls = tuple(own_url.replace("//earshot@", f"//{name}@") for name in names)
    separate(owner, *urls)
    web, driver = (Database(url, pool_size=4) for url in urls)
    yield Separated(owner, web, driver, urls)  # type: ignore[arg-type]
    web.close()
    driver.close()
    for name in names:
        drop(owner, name)
    owner.close()


def drop(owner: Database, name: str) -> None:
    owner.query(f"DROP OWNED BY {name}")  # type: ignore[arg-type]
    owner.query(f"DROP ROLE {name}")  # type: ignore[arg-type]


def test_every_table_is_thought_of(separated: Separated) -> None:
    tables = separated.owner.query("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    assert {name for (name,) in tables} == set(privileges.TABLES)


# --------------------------------------------------------------------------- what they must do


@pytest.mark.slow
def test_with_them_phases_are_played_stopped_and_purged(
    separated: Separated, tmp_path: Path
) -> None:
    server = Server.over(separated.web, tmp_path, data_folder=tmp_path)
    driver = Driver(separated.driver, Optics(), keep_seconds=-1.0)
    driver._purged = 0.0  # not before all is over
    phones = make_phones()
    callers = {number: server.phone() for number in phones}
    phase = server.start(PARAMETERS)
    for _ in range(12):
        for number, phone in phones.items():
            answer = phone.answer(callers[number].task())
            if answer is not None:
                for _ in range(2):  # the first response may have been lost
                    assert callers[number].answer(answer).status_code == 204
        driver.turn()
    assert isinstance(callers[0].task(), Result)
    stopped = server.start(PARAMETERS)
    for caller in callers.values():
        caller.task(known=(phase,))
    driver.turn()
    refusal = Refuse(phase=stopped, rule=Rule.LEAST_PHONES)
    assert callers[0].post(REFUSAL, refusal).status_code == 204
    assert callers[1].answer(phones[1].answer(callers[1].task(known=(phase,)))).status_code == 204  # type: ignore[arg-type]
    assert callers[1].post(LEAVE, Leave()).status_code == 204
    assert body_of(server.order(f"{PHASES}/{stopped.hex()}/stop"), Stopped).stopped
    driver.turn()
    assert isinstance(callers[0].task(known=(phase,)), Failed)
    gathering = server.start(PARAMETERS)
    callers[0].task(known=(phase, stopped))
    assert callers[0].post(LEAVE, Leave()).status_code == 204
    assert body_of(server.order(f"{PHASES}/{gathering.hex()}/stop"), Stopped).stopped
    driver._purged = -1e9
    driver.turn()
    members = "SELECT count(*) FROM members WHERE phase = ANY(%s)"
    assert separated.owner.query(members, ([phase, stopped, gathering],)) == [(0,)]
    # In trouble, and out of it.
    driving = Driving(separated.driver)
    driving.begin(phase)
    driving.fail(phase, "ValueError")
    driving.lost_lease()
    driving.clear(phase)
    assert Registry(separated.driver).lease(phase, "driver", 9.0)


def test_with_them_campaigns_are_run(separated: Separated, tmp_path: Path) -> None:
    server = Server.over(separated.web, tmp_path, data_folder=tmp_path)
    server.phone()
    begins = datetime.fromtimestamp(separated.owner.now(), UTC).date() - timedelta(days=16)
    wanted = campaign(begins=begins, weeks=2, discovery=None)
    view = body_of(server.order(CAMPAIGNS, StartCampaign(campaign=wanted)), CampaignView, 201)
    Driver(separated.driver, Optics(), keep_seconds=1e9).turn()
    one = f"{CAMPAIGNS}/{view.campaign}"
    assert body_of(server.read(one), CampaignExport).campaign.states == {"running": 1, "due": 1}
    stopped = body_of(server.order(f"{one}/stop"), CampaignView)
    assert stopped.states == {"failed": 1, "stopped": 1}
    CampaignRows(separated.driver).miss(bytes.fromhex(view.campaign), "statistics", 2)


def test_with_them_operators_are_managed_and_all_is_read(
    separated: Separated, tmp_path: Path
) -> None:
    server = Server.over(separated.web, tmp_path, data_folder=tmp_path)
    phase = server.start(PARAMETERS)
    phone = server.phone()
    phone.task()
    olga = NewOperator(name="olga", role=Role.VIEWER)
    assert body_of(server.order(OPERATORS, olga), OperatorToken, 201).token
    body_of(server.order(f"{OPERATORS}/olga/token"), OperatorToken)
    for path in (
        *("/", "/metrics", PHASES, f"{PHASES}/{phase.hex()}", f"{PHASES}/{phase.hex()}/export"),
        *(OPERATORS, AUDIT, "/v1/privacy", "/v1/cohorts", "/v1/results", "/v1/statistics"),
        *("/v1/phones", f"/phases/{phase.hex()}", "/health/ready", "/health/live"),
    ):
        response = server.read(path)
        if path == "/":
            continue  # for browsers, which authenticate otherwise
        assert response.status_code in (200, 401), (path, response.data)
    assert server.app.test_client().delete(
        f"{OPERATORS}/olga", headers=server.bearer
    ).status_code in (200, 204)
    assert server.app.test_client().delete(
        f"/v1/phones/{phone.name}", headers=server.bearer
    ).status_code in (200, 204)
    entries = json.loads(server.read(AUDIT).data)["entries"]
    assert len(entries) >= 4


# ----------------------------------------------------------------------- what they must not do

ANYBODY = (
    "CREATE TABLE mine (one integer)",
    "DROP TABLE phones",
    "ALTER TABLE audit DISABLE TRIGGER only_added_to",
    "ALTER TABLE phases ADD mine integer",
    "DROP TRIGGER only_added_to ON audit",
    "CREATE OR REPLACE FUNCTION seconds_now() RETURNS double precision LANGUAGE sql AS 'SELECT 1'",
    "SET ROLE earshot",
    "GRANT ALL ON credentials TO PUBLIC",
    "UPDATE audit SET detail = ''",
    "DELETE FROM audit",
    "TRUNCATE audit",
    "INSERT INTO schema_version (version, name) VALUES (1000, '')",
    "SELECT fingerprint FROM credentials",
    "UPDATE credentials SET fingerprint = fingerprint",
    "UPDATE phones SET public_key = public_key",
    "UPDATE phones SET cohort = ''",
    "UPDATE gatherings SET parameters = ''",
    "UPDATE gatherings SET wanted = 1",
    "DELETE FROM gatherings",
    "UPDATE operators SET role = 'admin'",
    "DELETE FROM steps",
    "UPDATE tasks SET task = ''",
    "DELETE FROM phases",
    "DELETE FROM refusals",
)
DENIED = {
    "web": (
        *ANYBODY,
        "SELECT snapshot FROM snapshots",
        "UPDATE phases SET common = ''",
        "UPDATE phases SET step = 'published'",
        "UPDATE phases SET over = true",
        "UPDATE phases SET closed = true",
        "UPDATE snapshots SET snapshot = ''",
        "INSERT INTO phases (phase) VALUES ('')",
        "INSERT INTO tasks VALUES ('', 1, '')",
        "UPDATE steps SET answered = 0",
        "INSERT INTO leases VALUES ('', '', 0)",
        "DELETE FROM leases",
        "DELETE FROM troubles",
        "UPDATE tallies SET count = 0",
        "DELETE FROM drivers",
        "DELETE FROM invitations",
        "UPDATE campaigns SET plan = ''",
        "INSERT INTO campaign_phases (number) VALUES (1)",
        "DELETE FROM missed_phases",
    ),
    "driver": (
        *ANYBODY,
        "SELECT public_key FROM phones",
        "SELECT phone FROM phones",
        "DELETE FROM phones",
        "SELECT phone FROM members",
        "UPDATE members SET index = 0",
        "SELECT token_hash FROM operators",
        "DELETE FROM operators",
        "SELECT detail FROM audit",
        "INSERT INTO audit (operator, action, subject, detail) VALUES ('', '', '', '')",
        "SELECT invitation FROM invitations",
        "UPDATE invitations SET used = 0",
        "SELECT rule FROM refusals",
        "UPDATE answers SET phone = 2",
        "UPDATE tasks SET task = ''",
        "UPDATE gatherings SET joined = 0",
        "INSERT INTO campaigns (plan) VALUES ('')",
        "UPDATE campaigns SET state = 'running'",
        "UPDATE campaign_phases SET attempt = 1",
        "DELETE FROM missed_phases",
    ),
}


@pytest.mark.parametrize("process", DENIED)
def test_what_others_need_is_denied(separated: Separated, process: str) -> None:
    role: Database = getattr(separated, process)
    role.check()
    for statement in DENIED[process]:
        with pytest.raises(DatabaseUnavailableError, match=r"permission denied|must be owner"):
            role.query(statement)  # type: ignore[arg-type]


# --------------------------------------------------------------------------------- how it is done


def test_once_more_changes_nothing_and_takes_back_what_was_added(separated: Separated) -> None:
    web = separated.urls[0].split("//")[1].split("@")[0]
    separated.owner.query(f"GRANT ALL ON audit, leases, credentials TO {web}")  # type: ignore[arg-type]
    separated.owner.query(f"GRANT UPDATE (common) ON phases TO {web}")  # type: ignore[arg-type]
    separate(separated.owner, *separated.urls)
    for statement in DENIED["web"]:
        with pytest.raises(DatabaseUnavailableError):
            separated.web.query(statement)  # type: ignore[arg-type]
    separated.web.write()


def test_roles_that_separate_nothing_are_refused_by_name(
    separated: Separated, own_url: str
) -> None:
    web, driver = separated.urls
    with pytest.raises(InvalidInputError, match="the driver's role earshot may do whatever"):
        separate(separated.owner, web, own_url)
    with pytest.raises(InvalidInputError, match="have the same role, a_web"):
        separate(separated.owner, web, web)
    with pytest.raises(InvalidInputError, match="names no role"):
        separate(
            separated.owner, web, driver.replace(driver.split("//")[1].split("@")[0] + "@", "")
        )
    with pytest.raises(InvalidInputError, match="must be like postgresql"):
        separate(separated.owner, web, "mysql://secret-word@x")


def test_a_role_is_made_with_the_password_of_its_url_which_the_server_never_sees(
    separated: Separated, own_url: str
) -> None:
    name = "a_fresh_one"
    try:
        url = own_url.replace("//earshot@", f"//{name}:secret%20word@")
        separate(separated.owner, separated.urls[0], url)
        verifier = separated.owner.query(
            "SELECT rolpassword FROM pg_authid WHERE rolname = %s", (name,)
        )[0][0]
        assert verifier.startswith("SCRAM-SHA-256$")
    finally:
        drop(separated.owner, name)


def test_an_owner_that_may_make_no_roles_uses_those_that_are_there(
    separated: Separated, own_url: str
) -> None:
    """As where somebody else administers the database."""
    owner = "an_owner"
    for statement in (
        f"CREATE ROLE {owner} LOGIN",
        f"ALTER DATABASE separated OWNER TO {owner}",
        *(f"ALTER TABLE {table} OWNER TO {owner}" for table in privileges.TABLES),
    ):
        separated.owner.query(statement)  # type: ignore[arg-type]
    mere = Database(own_url.replace("//earshot@", f"//{owner}@"), pool_size=1)
    try:
        separate(mere, *separated.urls)
        for statement in DENIED["web"]:
            with pytest.raises(DatabaseUnavailableError):
                separated.web.query(statement)  # type: ignore[arg-type]
        separated.web.write()
        with pytest.raises(DatabaseUnavailableError, match="create role"):
            separate(mere, separated.urls[0], own_url.replace("//earshot@", "//nobody_yet@"))
    finally:
        mere.close()
        separated.owner.query(f"REASSIGN OWNED BY {owner} TO earshot")  # type: ignore[arg-type]
        drop(separated.owner, owner)
