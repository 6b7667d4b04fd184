"""What phones call: nobody reads, answers or enrols for another, and nothing happens twice."""

from __future__ import annotations

import base64
import time
from pathlib import Path

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from support.api_caller import Caller, Server, body_of, problem_of
from support.played_phase import PARAMETERS

from earshot_protocol.api import (
    ANSWER,
    ENROL,
    JSON,
    MESSAGEPACK,
    TASK,
    AskTask,
    Enrol,
    Enrolled,
    Invite,
    encode_body,
)
from earshot_protocol.messages import Failed, Wait
from earshot_protocol.phases.learning import Cluster, LocalCentroids
from earshot_protocol.wire import Matrix
from earshot_server.attestation import Admission, InvitationCodes, InvitationError
from earshot_server.discovery.optics import Optics
from earshot_server.phases.coordinator import Coordinator
from earshot_server.store.database import Database
from earshot_server.store.postgres import PostgresPhaseStore
from earshot_server.store.registry import Registry

IDLE = 4321.0
FEW = msgspec.structs.replace(PARAMETERS, phones=12)


@pytest.fixture
def server(database: Database, tmp_path: Path) -> Server:
    return Server.over(database, tmp_path, idle_seconds=IDLE)


def begin(database: Database, phase: bytes) -> Coordinator:
    """What the driver does at the end of a gathering."""
    joined = Registry(database).end_gathering(phase)
    parameters = msgspec.structs.replace(FEW, phones=joined)
    store = PostgresPhaseStore(database)
    return Coordinator.start(store, Optics(), parameters, database.now(), phase=phase)


def running(server: Server, database: Database) -> tuple[bytes, list[Caller]]:
    """A phase in its first step, and its phones."""
    phase = server.start(FEW)
    phones = [server.phone() for _ in range(FEW.phones)]
    for phone in phones:
        assert isinstance(phone.task(), Wait)
    begin(database, phase)
    return phase, phones


def centroids(task: Cluster, value: float = 0.5) -> LocalCentroids:
    matrix = Matrix(2, 2, data=base64.b64decode("AAAAPwAAAD8AAAA/AAAAPw=="))
    if value != 0.5:
        matrix = Matrix(2, 2, bytes(16))
    return LocalCentroids(phase=task.phase, sender=task.index, centroids=matrix)


# ---------------------------------------------------------------------------------- enrolment


def test_a_phone_enrols_once_however_often_it_asks(server: Server) -> None:
    code, phone = server.invitation(uses=1), Caller(server.app)
    first = body_of(phone.enrol(code), Enrolled)
    assert body_of(phone.enrol(code), Enrolled) == first
    assert body_of(phone.enrol(code, JSON), Enrolled) == first


def test_an_invitation_admits_as_many_phones_as_it_says(server: Server) -> None:
    code = server.invitation(uses=2)
    names = {server.phone(code).name for _ in range(2)}
    assert len(names) == 2
    problem_of(Caller(server.app).enrol(code), 403, "invitation-used-up")


def test_an_invitation_that_is_forged_or_expired_admits_nobody(server: Server) -> None:
    forged = InvitationCodes(Ed25519PrivateKey.generate()).issue(Invite(), 2e9).code
    problem_of(Caller(server.app).enrol(forged), 403, "invitation")
    codes = InvitationCodes(server.credentials.invitation_key)
    problem = problem_of(
        Caller(server.app).enrol(codes.issue(Invite(), 1e9).code), 403, "invitation"
    )
    assert "expired" in problem.detail


def test_nobody_enrols_a_key_that_it_does_not_hold(server: Server, database: Database) -> None:
    code, victim, thief = server.invitation(uses=1), Caller(server.app), Caller(server.app)
    body = Enrol(public_key=victim.public_key, attestation=code)
    problem_of(thief.post(ENROL, body), 401, "signature")
    # The invitation is still whole.
    body_of(victim.enrol(code), Enrolled)


def test_an_enrolled_phone_does_not_enrol_another_in_its_name(server: Server) -> None:
    phone = server.phone()
    body = Enrol(public_key=phone.public_key, attestation=server.invitation())
    assert "new" in problem_of(phone.post(ENROL, body), 401, "signature").detail


def test_another_attestation_decides_who_enrols(database: Database, tmp_path: Path) -> None:
    class Platform:
        """Knows one device by its name, and lets it be one phone."""

        def check(self, attestation: str, public_key: bytes, now: float) -> Admission:
            if attestation != "device":
                raise InvitationError("not a device that the platform knows")
            assert public_key == phone.public_key
            assert now == pytest.approx(database.now(), abs=60)
            return Admission(bytes(16), 1)

    server = Server.over(database, tmp_path, attestation=Platform())
    phone = Caller(server.app)
    body_of(phone.enrol("device"), Enrolled)
    detail = problem_of(phone.enrol(server.invitation()), 403, "invitation").detail
    assert detail == "not a device that the platform knows"


# -------------------------------------------------------------------------------------- tasks


def test_a_phone_for_which_there_is_nothing_to_do_waits_long(server: Server) -> None:
    assert server.phone().task() == Wait(seconds=IDLE)


def test_a_phone_joins_waits_and_is_told_its_own_task(server: Server, database: Database) -> None:
    phase = server.start(FEW)
    phones = [server.phone() for _ in range(FEW.phones)]
    for _ in range(2):
        assert {phone.task() for phone in phones} == {Wait(seconds=FEW.step_seconds / 10)}
    begin(database, phase)
    for index, phone in enumerate(phones):
        task = phone.task()
        assert isinstance(task, Cluster)
        assert (task.phase, task.index) == (phase, index)


def test_a_gathering_that_is_full_takes_no_more(server: Server) -> None:
    server.start(FEW)
    for _ in range(FEW.phones):
        server.phone().task()
    assert server.phone().task() == Wait(seconds=IDLE)


def test_json_and_messagepack_say_the_same(server: Server, database: Database) -> None:
    _, phones = running(server, database)
    packed, plain = (phones[3].post(TASK, AskTask(), media) for media in (MESSAGEPACK, JSON))
    assert (packed.content_type, plain.content_type) == (MESSAGEPACK, JSON)
    assert body_of(packed, Cluster) == body_of(plain, Cluster)
    other = phones[3].post(TASK, AskTask(), JSON, Accept=MESSAGEPACK)
    assert other.data == packed.data


def test_an_ending_is_told_until_it_is_known(server: Server, database: Database) -> None:
    phase, phones = running(server, database)
    assert server.order(f"/v1/phases/{phase.hex()}/stop").status_code == 200
    for _ in range(2):  # the first response may have been lost
        told = phones[0].task()
        assert isinstance(told, Failed)
        assert told.phase == phase
    known = phones[0].post(TASK, AskTask(known=(phase,)))
    assert body_of(known, Wait) == Wait(seconds=IDLE)


# ------------------------------------------------------------------------------------ answers


def test_an_answer_is_acknowledged_however_often_it_is_sent(
    server: Server, database: Database
) -> None:
    phase, phones = running(server, database)
    task = phones[0].task()
    assert isinstance(task, Cluster)
    for media in (MESSAGEPACK, JSON, MESSAGEPACK):
        response = phones[0].post(ANSWER, centroids(task), media)
        assert (response.status_code, response.data) == (204, b"")
    store = PostgresPhaseStore(database)
    assert store.answer_count(phase) == 1
    assert phones[0].task() == Wait(seconds=FEW.step_seconds / 10)
    problem_of(phones[0].answer(centroids(task, 0.0)), 409, "repeated")


def test_answers_that_fit_nothing_are_refused_by_name(server: Server, database: Database) -> None:
    stranger = server.phone()
    answer = LocalCentroids(phase=bytes(16), sender=0, centroids=Matrix(2, 2, bytes(16)))
    problem_of(stranger.answer(answer), 409, "unexpected")
    server.start(FEW)
    assert isinstance(stranger.task(), Wait)
    assert "not begun" in problem_of(stranger.answer(answer), 409, "unexpected").detail


def test_a_misfit_answer_is_malformed(server: Server, database: Database) -> None:
    _, phones = running(server, database)
    task = phones[0].task()
    assert isinstance(task, Cluster)
    small = msgspec.structs.replace(centroids(task), centroids=Matrix(1, 2, bytes(8)))
    assert "takes 2 × 2" in problem_of(phones[0].answer(small), 400, "malformed").detail


# ------------------------------------------------------------------- one phone is not another


def test_no_phone_answers_for_another(server: Server, database: Database) -> None:
    phase, phones = running(server, database)
    task = phones[1].task()
    assert isinstance(task, Cluster)
    problem = problem_of(phones[0].answer(centroids(task)), 409, "unexpected")
    assert "in the name of 1" in problem.detail
    assert PostgresPhaseStore(database).answer_count(phase) == 0
    # The victim is not kept from answering.
    assert phones[1].answer(centroids(task)).status_code == 204


def test_no_phone_signs_in_the_name_of_another(server: Server, database: Database) -> None:
    phase, phones = running(server, database)
    thief = Caller(server.app, name=phones[1].name, key=phones[0].key)
    task = phones[1].task()
    assert isinstance(task, Cluster)
    problem_of(thief.post(TASK, AskTask()), 401, "signature")
    problem_of(thief.answer(centroids(task)), 401, "signature")
    assert PostgresPhaseStore(database).answer_count(phase) == 0


def test_a_phone_that_does_not_exist_looks_like_a_wrong_signature(server: Server) -> None:
    phone = server.phone()
    key = Ed25519PrivateKey.generate()
    names = (phone.name, "999999999", "new", "0", "-1", "007", "9" * 19, "nobody")
    said = {
        problem_of(Caller(server.app, name, key).post(TASK, AskTask()), 401, "signature").detail
        for name in names
    }
    assert len(said) == 1


def test_a_phone_outside_a_phase_cannot_answer_in_it(server: Server, database: Database) -> None:
    _, phones = running(server, database)
    task = phones[0].task()
    assert isinstance(task, Cluster)
    outsider = server.phone()
    problem = problem_of(outsider.answer(centroids(task)), 409, "unexpected")
    assert "takes part in no phase" in problem.detail


# --------------------------------------------------------------------------------- signatures


@pytest.fixture
def noon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time stands still, so that bounds hold to the second on a slow machine too."""
    now = float(int(time.time()))
    monkeypatch.setattr(time, "time", lambda: now)


@pytest.mark.usefixtures("noon")
@pytest.mark.parametrize("skew", [-301, 301, -(10**8)])
def test_a_stale_signature_is_told_the_time(server: Server, skew: float) -> None:
    phone = server.phone()
    problem = problem_of(phone.post(TASK, AskTask(), skew=skew), 401, "stale-signature")
    assert problem.now is not None
    # With the time that it was told, the phone is heard.
    assert phone.post(TASK, AskTask(), skew=0).status_code == 200


@pytest.mark.usefixtures("noon")
@pytest.mark.parametrize("skew", [-300, 300])
def test_a_clock_that_is_a_little_wrong_is_right_enough(server: Server, skew: float) -> None:
    assert server.phone().post(TASK, AskTask(), skew=skew).status_code == 200


def test_the_time_is_not_told_to_those_who_do_not_hold_the_key(server: Server) -> None:
    thief = Caller(server.app, name=server.phone().name)
    assert problem_of(thief.post(TASK, AskTask(), skew=-999), 401, "signature").now is None


def test_a_signature_is_for_one_body_path_and_type(server: Server, database: Database) -> None:
    phone = server.phone()
    data = encode_body(AskTask(), JSON)
    fields = phone.fields(TASK, data, JSON)
    client = server.app.test_client()
    assert client.post(TASK, data=data, headers=fields).status_code == 200
    wrong = (
        (TASK, data + b" ", fields),
        (ANSWER, data, fields),
        (TASK, data, fields | {"Content-Type": f"{JSON}; charset=utf-8"}),
        (TASK, data, {name: fields[name] for name in fields if name != "Signature"}),
        (TASK, data, {name: fields[name] for name in fields if name != "Content-Digest"}),
        (TASK, data, {"Content-Type": JSON}),
    )
    for path, body, given in wrong:
        problem_of(client.post(path, data=body, headers=given), 401, "signature")


def test_an_operators_token_is_no_signature(server: Server) -> None:
    problem_of(server.order(TASK, AskTask()), 401, "signature")


def test_a_media_type_may_have_parameters_which_are_signed_too(server: Server) -> None:
    phone = server.phone()
    response = phone.post(TASK, b"{}", "application/json; charset=utf-8")
    assert body_of(response, Wait) == Wait(seconds=IDLE)
