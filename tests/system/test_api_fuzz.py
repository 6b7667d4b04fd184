"""Thousands of hostile requests: no 5xx, no trace of our code, no change of state, no more memory.

One half comes from the OpenAPI document, valid and invalid; the other is made by hand.
"""

from __future__ import annotations

import collections
import dataclasses
import hashlib
import json
import resource
from collections.abc import Iterator
from random import Random
from typing import Any

import msgspec
import psutil
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from support.api_caller import Caller, Server
from support.hostile_requests import Request, Response, World, send
from support.played_phase import PARAMETERS
from support.unsafe_postgres import UNSAFE

from earshot_protocol.api import (
    ANSWER,
    ENROL,
    JSON,
    MESSAGEPACK,
    PHASES,
    PROBLEM,
    REFUSAL,
    TASK,
    Problem,
)
from earshot_protocol.phases.learning import Cluster, LocalCentroids
from earshot_protocol.wire import Matrix
from earshot_server.api.openapi import document
from earshot_server.discovery.optics import Optics
from earshot_server.phases.coordinator import Coordinator
from earshot_server.processes.embedded import embedded
from earshot_server.store.database import Database
from earshot_server.store.postgres import PostgresPhaseStore
from earshot_server.store.registry import Registry

OFTEN = 10**9
"""A rate that nobody reaches: these tests are about what is behind it."""
MOST_GROWTH = 24 * 2**20
LARGEST_ALLOCATION = 96 * 2**20
"""Of a request that claims to be gigabytes."""


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    with embedded(tmp_path_factory.mktemp("fuzz"), UNSAFE) as postgres:
        database = Database(postgres.url)
        database.migrate()
        yield database
        database.close()


@pytest.fixture(scope="module")
def server(database: Database, tmp_path_factory: pytest.TempPathFactory) -> Server:
    folder = tmp_path_factory.mktemp("credentials")
    return Server.over(
        database,
        folder,
        phone_requests_per_minute=OFTEN,
        address_requests_per_minute=OFTEN,
        address_failures_per_minute=OFTEN,
    )


@pytest.fixture(scope="module")
def world(server: Server, database: Database) -> World:
    """A phase that gathers, and one in its first step, in which every second phone has answered."""
    running = server.start(PARAMETERS)
    phones = [server.phone() for _ in range(PARAMETERS.phones)]
    for phone in phones:
        phone.task()
    Registry(database).end_gathering(running)
    store = PostgresPhaseStore(database)
    Coordinator.start(store, Optics(), PARAMETERS, database.now(), phase=running)
    server.start(PARAMETERS)
    answers = []
    for number, phone in enumerate(phones):
        task = phone.task()
        assert isinstance(task, Cluster)
        answers.append(
            LocalCentroids(phase=running, sender=number, centroids=Matrix(2, 2, bytes(16)))
        )
        if number % 2 == 0:
            assert phone.answer(answers[number]).status_code == 204
    return World(server, phones, answers, PARAMETERS, Random(2024))


ORDERED = ("audit", "invitation_codes", "operators", "audit_entry_seq")
"""What an order of an operator may change, should a valid one be generated."""


def state(database: Database, but: tuple[str, ...] = ()) -> dict[str, str]:
    """A digest of every row of every table, and of every sequence, but of those named."""
    names = database.query(
        "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY tablename"
    )
    assert len(names) >= 8
    rows = {
        name: sorted(row for (row,) in database.query(f'SELECT t::text FROM "{name}" t'))  # noqa: S608
        for (name,) in names
        if name not in ("readiness", *but)  # which is written when somebody asks whether it can be
    }
    rows["sequences"] = [
        f"{name} {last}"
        for name, last in database.query(
            "SELECT sequencename, last_value FROM pg_sequences ORDER BY sequencename"
        )
        # The first counts attempts, and orders answers only.
        if name not in ("answers_arrived_seq", *but)
    ]
    return {
        name: hashlib.sha256("\n".join(held).encode()).hexdigest() for name, held in rows.items()
    }


def check(request: Request, response: Response) -> None:
    """What holds for every response, whatever the request was."""
    assert response.status < 500, (request, response)
    assert b"Traceback" not in response.body
    assert b".py" not in response.body
    if response.status >= 400 and request.method != "HEAD":
        assert response.fields["Content-Type"] == PROBLEM, (request, response)
        problem = msgspec.json.decode(response.body, type=Problem)
        assert problem.status == response.status
        assert problem.type.startswith("urn:earshot:problem:")
    assert response.fields["X-Content-Type-Options"] == "nosniff"
    assert "X-Evil" not in response.fields


# ---------------------------------------------------------------------------- made by hand


def attack(world: World, rounds: int) -> collections.Counter[tuple[str, int]]:
    seen: collections.Counter[tuple[str, int]] = collections.Counter()
    for _ in range(rounds):
        for made in world.attacks():
            request = made()
            response = send(world.server.app, request)
            check(request, response)
            seen[made.__name__, response.status] += 1
    return seen


def hostile(world: World, database: Database, rounds: int) -> None:
    attack(world, 10)  # caches are filled
    before, memory = state(database), psutil.Process().memory_info().rss
    seen = attack(world, rounds)
    assert state(database) == before
    assert psutil.Process().memory_info().rss - memory < MOST_GROWTH

    def statuses(name: str) -> set[int]:
        return {status for made, status in seen if made == name}

    # The harness sends what it says: what is valid is taken, what is wrong is refused.
    assert statuses("valid") == {200, 204}
    assert statuses("flipped") == statuses("stranger") == statuses("stale") == {401}
    assert statuses("moved") <= {401, 415}
    assert statuses("swapped") == {401, 409}
    assert statuses("forged_operator") == {401}
    assert statuses("false_enrolment") == {401, 403}
    assert statuses("forged_answer") == {400, 409}
    assert statuses("misstart") == {400, 422}
    assert statuses("bomb") | statuses("operator_bomb") == {400, 413}


def test_hostile_requests_change_nothing(world: World, database: Database) -> None:
    hostile(world, database, 60)


@pytest.mark.slow
def test_twelve_thousand_hostile_requests_change_nothing(world: World, database: Database) -> None:
    hostile(world, database, 800)


def test_what_claims_to_be_large_is_not_given_room(world: World) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(200):
        send(world.server.app, world.bomb())
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown * 1024 < LARGEST_ALLOCATION


def test_the_phones_that_were_attacked_go_on(world: World, database: Database) -> None:
    attack(world, 5)
    for number, phone in enumerate(world.phones):
        task = phone.task()
        assert isinstance(task, Cluster) is (number % 2 == 1)


# -------------------------------------------------------------------- made from the document


def request_of(case: Any, world: World, caller: str, media: str) -> Request:
    """A generated case as somebody sends it: as it is, as the operator, or signed by a phone."""
    fields = {str(name): str(value) for name, value in dict(case.headers or {}).items()}
    body = b""
    if case.media_type is not None:
        body = case.body if isinstance(case.body, bytes) else json.dumps(case.body).encode()
        if media == MESSAGEPACK and not isinstance(case.body, bytes):
            body = packed(body)
        fields["Content-Type"] = media
    path = case.formatted_path
    if caller == "operator":
        fields["Authorization"] = world.server.bearer["Authorization"]
    if caller == "phone":
        # Members of the running phase, or a new one: nobody here may join what gathers.
        signer = Caller(world.server.app) if path == ENROL else world.any_phone()
        fields |= signer.fields(path, body, media)
    latin = {n: v.encode("utf-8", "replace").decode("latin-1") for n, v in fields.items()}
    return Request(path, body, tuple(latin.items()), case.method)


def packed(body: bytes) -> bytes:
    try:
        return msgspec.msgpack.encode(msgspec.json.decode(body))
    except (msgspec.DecodeError, OverflowError, UnicodeEncodeError):
        return body


BASE64 = {24: "{22}==", 44: "{43}=", 124: "{124}"}
"""Of 16, 32 and 93 bytes: as many characters, and the padding."""


def give_base64(node: Any) -> None:
    """Let bytes be generated as what they are; a schema cannot say how long they may be."""
    if isinstance(node, dict):
        if node.get("contentEncoding") == "base64":
            length = node.pop("minLength", 0)
            node.pop("maxLength", 0)
            node["pattern"] = f"^[A-Za-z0-9+/]{BASE64.get(length, '{4,64}')}$"
        for child in node.values():
            give_base64(child)
    elif isinstance(node, list):
        for child in node:
            give_base64(child)


@dataclasses.dataclass
class Drive:
    """Sends what is generated, as everybody, and remembers what came back."""

    world: World
    seen: collections.Counter[tuple[str, int]] = dataclasses.field(
        default_factory=collections.Counter
    )
    sent: list[Request] = dataclasses.field(default_factory=list)
    """All but those that started a phase."""
    started: list[str] = dataclasses.field(default_factory=list)

    def run(self, examples: int) -> None:
        """So many valid and so many invalid cases of every operation."""
        import schemathesis  # seconds, in every process that collects this file
        from schemathesis.generation import GenerationMode

        described = document()
        give_base64(described)
        for loaded in schemathesis.openapi.from_dict(described).get_all_operations():
            operation = loaded.ok()
            responses = described["paths"][operation.path][operation.method]["responses"]
            for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
                made = operation.as_strategy(generation_mode=mode)
                try:
                    self._send_all(made, examples, {int(status) for status in responses})
                except Unsatisfiable:
                    assert mode is GenerationMode.NEGATIVE  # there is nothing to get wrong

    def _send_all(self, made: Any, examples: int, documented: set[int]) -> None:
        @settings(
            max_examples=examples,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=made)
        def run(case: Any) -> None:
            self._send(case, documented)

        run()

    def _send(self, case: Any, documented: set[int]) -> None:
        insider = "phone" if case.path in (ENROL, TASK, ANSWER, REFUSAL) else "operator"
        if case.method.upper() == "DELETE":
            insider = "stranger"  # an administrator's order would do what it says
        caller = self.world.random.choice(["stranger", insider])
        media = self.world.random.choice([JSON, MESSAGEPACK])
        request = request_of(case, self.world, caller, media)
        response = send(self.world.server.app, request)
        check(request, response)
        self.seen[caller, response.status] += 1
        if response.status == 201 and case.path == PHASES:
            self.started.append(msgspec.json.decode(response.body)["phase"])
        else:
            self.sent.append(request)
        # A path that is generated wrong is another path.
        assert response.status in documented | {404, 405}, (request, response)


def generated(world: World, database: Database, examples: int) -> None:
    drive = Drive(world)
    gathering, before = len(Registry(database).gatherings()), state(database, ORDERED)
    drive.run(examples)
    # A phase that the operator did start, should one have been generated, is there, and no more.
    assert len(Registry(database).gatherings()) == gathering + len(drive.started)
    assert drive.started or state(database, ORDERED) == before

    def statuses(caller: str) -> set[int]:
        return {status for who, status in drive.seen if who == caller}

    assert statuses("stranger") >= {200, 400, 401, 404}
    assert statuses("operator") >= {200, 400, 404}
    assert statuses("phone") >= {200, 400, 409}
    assert drive.seen.total() >= 20 * examples

    # All of it once more, now that the generator remembers nothing new.
    after, memory = state(database, ORDERED), psutil.Process().memory_info().rss
    for request in drive.sent:
        check(request, send(world.server.app, request))
    assert state(database, ORDERED) == after
    assert psutil.Process().memory_info().rss - memory < MOST_GROWTH


@pytest.mark.slow
def test_three_thousand_requests_made_from_the_document_change_nothing(
    world: World, database: Database
) -> None:
    generated(world, database, 150)
