"""What operators and the public call."""

from __future__ import annotations

import base64
import math
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
import pytest
from support.api_caller import Server, body_of, problem_of
from support.networked import PATIENCE, await_
from support.parameters import statistics_parameters
from support.played_phase import PARAMETERS, make_phones
from support.statistics_phase import counts

from earshot_protocol.api import (
    INVITATIONS,
    JSON,
    MESSAGEPACK,
    PHASES,
    RESULTS,
    STATISTICS,
    Invitation,
    Invite,
    StartPhase,
)
from earshot_protocol.messages import Failed, Wait
from earshot_protocol.phases.learning import Budget, Result
from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.phases.statistics import Statistics
from earshot_protocol.wire import Task
from earshot_server.api.views import Histograms, PhaseExport, Phases, PhaseView, Results, Stopped
from earshot_server.discovery.optics import Optics
from earshot_server.processes.driver import Driver
from earshot_server.store.database import Database
from earshot_server.store.postgres import PostgresPhaseStore
from earshot_server.store.registry import Registry

COUNTING = statistics_parameters(
    phones=12,
    labels=PARAMETERS.labels,
    contacts=12,
    noise=0.5,  # a deviation of seven contacts
)
OPERATORS_ONLY = (PHASES, f"{PHASES}/{'0' * 32}", f"{PHASES}/{'0' * 32}/export", "/metrics", "/")


def play(server: Server, database: Database, *each: Parameters) -> list[bytes]:
    """Play whole phases over the API with real phones, one after the other."""
    phones = make_phones()
    callers = {number: server.phone() for number in phones}
    driver = Driver(database, Optics(), keep_seconds=1e9)
    phases = []
    for parameters in each:
        phases.append(server.start(parameters))
        for _ in range(12):
            for number, phone in phones.items():
                task: Task = callers[number].task(known=tuple(phases[:-1]))
                answer = phone.answer(task)
                if answer is not None:
                    assert callers[number].answer(answer).status_code == 204
            driver.turn()
    return phases


# --------------------------------------------------------------------------------- credentials


@pytest.mark.parametrize("path", OPERATORS_ONLY)
def test_operators_prove_themselves(server: Server, path: str) -> None:
    token = server.credentials.operator_token
    basic = {
        secret: "Basic " + base64.b64encode(f"operator:{secret}".encode()).decode()
        for secret in (token, token[:-1], "")
    }
    wrong = ("", "Bearer", "Bearer ", f"Bearer {token}x", f"Bearer {token[:-1]}", f"Token {token}")
    for authorization in (*wrong, basic[token[:-1]], basic[""], "Basic !!!", "Basic " + token):
        response = server.get(path, Authorization=authorization)
        assert token not in problem_of(response, 401, "operator").detail
        scheme = "Basic" if path == "/" else "Bearer"
        assert response.headers["WWW-Authenticate"] == f'{scheme} realm="earshot"'
    statuses = {
        server.get(path, Authorization=right).status_code
        for right in (f"Bearer {token}", f"bearer {token}", basic[token])
    }
    assert statuses in ({200}, {404})


def test_what_browsers_send_of_their_own_accord_changes_nothing(server: Server) -> None:
    secret = base64.b64encode(f":{server.credentials.operator_token}".encode()).decode()
    phase = server.start(PARAMETERS)
    for path in (INVITATIONS, PHASES, f"{PHASES}/{phase.hex()}/stop"):
        response = server.app.test_client().post(
            path, data=b"{}", headers={"Authorization": f"Basic {secret}", "Content-Type": JSON}
        )
        problem_of(response, 401, "operator")
    assert body_of(server.read(PHASES), Phases).phases[0].status == "gathering"


def test_invitations_are_what_was_asked_for(server: Server) -> None:
    invitation = body_of(server.order(INVITATIONS, Invite(uses=3, days=1.0)), Invitation)
    assert invitation.uses == 3
    packed = server.order(INVITATIONS, Invite(uses=3, days=1.0), MESSAGEPACK)
    assert packed.content_type == MESSAGEPACK
    assert body_of(packed, Invitation).code != invitation.code


# -------------------------------------------------------------------------------------- phases


def test_a_phase_gathers_as_it_was_told(server: Server, database: Database) -> None:
    phase = server.start(PARAMETERS, least=10)
    for _ in range(3):
        server.phone().task()
    view = body_of(server.read(f"{PHASES}/{phase.hex()}"), PhaseView)
    assert (view.phase, view.status, view.step) == (phase.hex(), "gathering", "gathering")
    assert (view.wanted, view.least, view.joined) == (12, 10, 3)
    assert view.parameters == PARAMETERS
    assert view.gather_until == pytest.approx(database.now() + 3600, abs=60)
    assert (view.finished, view.failure) == (None, "")
    assert body_of(server.read(PHASES), Phases).phases == (view,)


def test_phases_are_listed_newest_first_under_the_name_that_paths_have(server: Server) -> None:
    names = [server.start(parameters).hex() for parameters in (PARAMETERS, COUNTING, PARAMETERS)]
    listed = server.read(PHASES).get_json()["phases"]
    assert [each["phase"] for each in listed] == names[::-1]
    kinds = [each["parameters"]["type"] for each in listed]
    assert kinds == ["learning", "statistics", "learning"]


def test_phases_are_found_by_their_first_digits(server: Server) -> None:
    names = [server.start(PARAMETERS).hex() for _ in range(3)]

    def found(prefix: str) -> list[str]:
        listed = body_of(server.read(f"{PHASES}?prefix={prefix}"), Phases).phases
        return [each.phase for each in listed]

    for name in names:
        assert found(name) == [name]
        for length in (1, 8, 31):
            alike = [each for each in names[::-1] if each.startswith(name[:length])]
            assert found(name[:length]) == alike
    absent = next(digit for digit in "0123456789abcdef" if not any(n[0] == digit for n in names))
    assert found(absent) == []
    for wrong in ("", "g", "A", "%25", "_", "0" * 33):
        problem_of(server.read(f"{PHASES}?prefix={wrong}"), 400, "malformed")


def test_a_phase_that_runs_is_stopped_too(server: Server, database: Database) -> None:
    phase = server.start(PARAMETERS)
    for _ in range(PARAMETERS.phones):
        server.phone().task()
    Driver(database, Optics(), keep_seconds=1e9).turn()
    came = body_of(server.order(f"{PHASES}/{phase.hex()}/stop"), Stopped)
    assert came.stopped
    assert (came.phase.status, came.phase.step) == ("stopped", "stopped")
    assert came.phase.joined == PARAMETERS.phones


def changed(**fields: Any) -> Parameters:
    return msgspec.structs.replace(PARAMETERS, **fields)


@pytest.mark.parametrize(
    ("parameters", "least", "said"),
    [
        (PARAMETERS, 13, "least_phones=13: must be at most phones=12"),
        (changed(labels=()), None, "labels=0"),
        (changed(dropout=1.0), None, "dropout=1.0"),
        (changed(dropout=0.6, corrupted=0.4), None, "dropout"),
        (changed(phones=2), None, "phones=2"),
        (changed(delta=0.0), None, "delta"),
        (changed(step_seconds=-1.0), None, "step_seconds"),
        (changed(budget=Budget(1.0, 1.0, 1.0, 1e-300)), None, "label"),
        (msgspec.structs.replace(COUNTING, noise=0.0), None, "noise"),
        (msgspec.structs.replace(COUNTING, contacts=0), None, "contacts"),
    ],
)
def test_a_phase_that_cannot_run_is_refused_by_name(
    server: Server, parameters: Parameters, least: int | None, said: str
) -> None:
    response = server.order(
        PHASES, StartPhase(parameters=parameters, least_phones=least, anyway=True)
    )
    assert said in problem_of(response, 422, "invalid-parameters").detail
    assert body_of(server.read(PHASES), Phases).phases == ()


def test_parameters_that_no_phase_could_run_with_at_its_least_are_refused(server: Server) -> None:
    # No safe graph exists for three phones of which one in three may be corrupted.
    large = changed(phones=1000, corrupted=0.2)
    assert server.order(PHASES, StartPhase(parameters=large, anyway=True)).status_code == 201
    response = server.order(PHASES, StartPhase(parameters=large, least_phones=3, anyway=True))
    problem_of(response, 422, "invalid-parameters")


@pytest.mark.parametrize("seconds", [0.0, -1.0, math.nan, math.inf, 1e12])
def test_a_gathering_takes_a_sensible_time(server: Server, seconds: float) -> None:
    body = StartPhase(parameters=PARAMETERS, gather_seconds=seconds)
    problem_of(server.order(PHASES, body, MESSAGEPACK), 400, "malformed")


def test_unknown_phases_are_unknown(server: Server) -> None:
    name = "00" * 16
    for response in (
        server.read(f"{PHASES}/{name}"),
        server.read(f"{PHASES}/{name}/export"),
        server.order(f"{PHASES}/{name}/stop"),
        server.get(f"{RESULTS}/{name}"),
    ):
        problem_of(response, 404, "unknown-phase")
    for other in ("", "0" * 31, "0" * 33, "G" * 32, "A" * 32, "%00" * 32, "٠" * 32):
        problem_of(server.read(f"{PHASES}/{other}/export"), 404, "unknown-path")


def test_a_gathering_is_stopped_once_and_for_all(server: Server, database: Database) -> None:
    phase = server.start(PARAMETERS)
    phone = server.phone()
    assert isinstance(phone.task(), Wait)
    for first in (True, False):
        came = body_of(server.order(f"{PHASES}/{phase.hex()}/stop"), Stopped)
        view = body_of(server.read(f"{PHASES}/{phase.hex()}"), PhaseView)
        assert came == Stopped(stopped=first, phase=view)
        assert (view.status, view.step) == ("stopped", "stopped")
        assert view.failure == "stopped by an operator"
    Driver(database, Optics(), keep_seconds=1e9).turn()
    assert phone.task() == Failed(phase=phase, reason="stopped by an operator")


@pytest.mark.parametrize("begun", [False, True])
def test_a_stop_holds_whatever_a_driver_was_doing(
    server: Server, database: Database, monkeypatch: pytest.MonkeyPatch, begun: bool
) -> None:
    phase = server.start(PARAMETERS)
    members = make_phones()
    phones = [server.phone() for _ in members]
    for phone in phones:
        phone.task()
    driver = Driver(database, Optics(), keep_seconds=1e9)
    if begun:
        driver.turn()
        for phone, member in zip(phones, members.values(), strict=True):
            answer = member.answer(phone.task())
            assert answer is not None
            assert phone.answer(answer).status_code == 204
    happens = "replace" if begun else "create"
    opens = getattr(PostgresPhaseStore, happens)

    def stopped_meanwhile(self: PostgresPhaseStore, *arguments: Any, **named: Any) -> None:
        monkeypatch.undo()
        came = body_of(server.order(f"{PHASES}/{phase.hex()}/stop"), Stopped)
        assert came.stopped
        opens(self, *arguments, **named)

    monkeypatch.setattr(PostgresPhaseStore, happens, stopped_meanwhile)
    driver.turn()
    if begun:  # what was done before the stop is thrown away
        assert database.query("SELECT number FROM phases") == [(0,)]
    failed = Failed(phase=phase, reason="stopped by an operator")
    assert [phone.task() for phone in phones] == [failed] * len(phones)
    for _ in range(2):
        driver.turn()
        view = body_of(server.read(f"{PHASES}/{phase.hex()}"), PhaseView)
        assert (view.status, view.step, view.deadline) == ("stopped", "stopped", None)
        left = "SELECT (SELECT count(*) FROM tasks) + (SELECT count(*) FROM answers)"
        assert database.query(left) == [(0,)]
        assert PostgresPhaseStore(database).running() == ()
    assert [phone.task() for phone in phones] == [failed] * len(phones)
    assert "earshot_phases_in_trouble 0" in server.read("/metrics").text


def test_a_phase_that_is_published_at_this_moment_is_not_stopped(
    server: Server, database: Database
) -> None:
    phase = server.start(PARAMETERS)
    database.query(
        "INSERT INTO phases (phase, number, step, deadline, expected, common, sum, over,"
        " wait) VALUES (%s, 1, 'label vote', 0, 0, '', '', false, 1)",
        (phase,),
    )
    with ThreadPoolExecutor(1) as elsewhere:
        with database.transaction():
            # As a driver that publishes does, up to its end.
            database.query("SELECT FROM gatherings WHERE phase = %s FOR SHARE", (phase,))
            stopping = elsewhere.submit(Registry(database).stop, phase, "stopped")
            await_(lambda: waiting(database), "the stop to wait")
            database.query("UPDATE phases SET over = true WHERE phase = %s", (phase,))
        assert stopping.result(PATIENCE) is False
    assert database.query("SELECT failure FROM gatherings") == [(None,)]


def waiting(database: Database) -> bool:
    rows = database.query("SELECT count(*) FROM pg_locks WHERE NOT granted")
    return bool(rows[0][0])


# ------------------------------------------------------------------------------ what is published


def test_a_whole_learning_and_a_whole_statistics_phase_over_the_api(
    server: Server, database: Database
) -> None:
    learned, counted = play(server, database, PARAMETERS, COUNTING)

    listed = body_of(server.get(RESULTS), Results).results
    assert [each.phase for each in listed] == [learned.hex()]
    assert (listed[0].environments, listed[0].label_names) == (2, PARAMETERS.labels)
    result = body_of(server.get(f"{RESULTS}/{learned.hex()}"), Result)
    assert sorted(result.labels) == [0, 1]
    packed = server.get(f"{RESULTS}/{learned.hex()}", Accept=MESSAGEPACK)
    assert body_of(packed, Result) == result
    problem_of(server.get(f"{RESULTS}/{counted.hex()}"), 404, "unknown-phase")

    histogram = body_of(server.get(STATISTICS), Histograms).statistics
    assert [each.phase for each in histogram] == [counted]
    assert counts(histogram[0]) == pytest.approx((72, 72, 0, 0, 0), abs=50)

    export = body_of(server.read(f"{PHASES}/{learned.hex()}/export"), PhaseExport)
    assert export.ending == result
    assert [step.answered for step in export.phase.steps][:9] == [12] * 9
    assert export.phase.status == "published"
    other = body_of(server.read(f"{PHASES}/{counted.hex()}/export"), PhaseExport)
    assert isinstance(other.ending, Statistics)
    # What is over stays as it is.
    came = body_of(server.order(f"{PHASES}/{learned.hex()}/stop"), Stopped)
    assert came == Stopped(stopped=False, phase=export.phase)
    assert body_of(server.get(f"{RESULTS}/{learned.hex()}"), Result) == result

    # A phone that was in no phase is told the newest result, until it knows it.
    late = server.phone()
    assert late.task() == late.task() == result
    assert isinstance(late.task(known=(learned,)), Wait)


def test_the_public_reads_before_there_is_anything(server: Server) -> None:
    assert body_of(server.get(RESULTS), Results).results == ()
    assert body_of(server.get(STATISTICS), Histograms).statistics == ()


# ------------------------------------------------------------------------ what phones would refuse


def test_what_default_phones_refuse_is_started_only_if_the_operator_insists(
    server: Server,
) -> None:
    body = StartPhase(parameters=PARAMETERS)
    refused = problem_of(server.order(PHASES, body), 422, "invalid-parameters")
    assert "phones=12; at least 100 is accepted" in refused.detail
    assert "anyway" in refused.detail
    few = StartPhase(parameters=statistics_parameters(phones=100), least_phones=50)
    assert (
        "no more than 50" in problem_of(server.order(PHASES, few), 422, "invalid-parameters").detail
    )
    assert body_of(server.read(PHASES), Phases).phases == ()
    assert server.order(PHASES, msgspec.structs.replace(body, anyway=True)).status_code == 201
    usual = StartPhase(parameters=statistics_parameters(phones=100))
    assert server.order(PHASES, usual).status_code == 201


def test_a_phase_for_a_cohort_without_phones_is_a_mistake(server: Server) -> None:
    body = StartPhase(parameters=statistics_parameters(phones=100), cohorts=("nroth",))
    refused = problem_of(server.order(PHASES, body), 422, "invalid-parameters")
    assert "cohort nroth has no phones" in refused.detail
    assert server.order(PHASES, msgspec.structs.replace(body, anyway=True)).status_code == 201
