"""PgBouncer in transaction mode before the database: no answer is another statement's."""

from __future__ import annotations

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from support.crowd import PARAMETERS, Crowd
from support.networked import ServerProcess
from support.pooler import PASSWORD, pooled

from earshot_protocol.phases.discovery import Discovered
from earshot_server.processes.embedded import EmbeddedPostgres
from earshot_server.store.database import Database, DatabaseUnavailableError
from earshot_server.store.interface import PresentStep
from earshot_server.store.postgres import PostgresPhaseStore

CLIENTS = 24
PHASE = b"one phase, 16 by"


def through(own_url: str, port: int) -> str:
    """The URL of the same database by way of the pooler."""
    with psycopg.connect(own_url) as connection:
        return f"postgresql://earshot@127.0.0.1:{port}/{connection.info.dbname}"


@pytest.fixture
def pooled_url(own_url: str, postgres: EmbeddedPostgres) -> Iterator[str]:
    with pooled(postgres) as port:
        yield through(own_url, port)


def test_many_clients_on_two_connections_get_answers_to_their_own_questions(
    pooled_url: str,
) -> None:
    """Each asks often enough that its driver would prepare the statements by name."""
    with closing(Database(pooled_url)) as database:
        database.migrate()
        store = PostgresPhaseStore(database)
        store.create(PHASE, b"", PresentStep(0, "step", 0.0, CLIENTS), [])

    def ask(client: int) -> list[int]:
        draw, wrong = random.Random(client), []
        with closing(Database(pooled_url, pool_size=1, patience=60.0)) as database:
            store = PostgresPhaseStore(database)
            for number in range(30):
                kind = draw.randrange(4)
                if kind == 0:
                    said = database.query("SELECT %s::int, 'a' || %s::text", (client, str(number)))
                    right = said == [(client, f"a{number}")]
                elif kind == 1:
                    said = database.query("SELECT 'b' || %s::text, %s::int", (str(number), client))
                    right = said == [(f"b{number}", client)]
                elif kind == 2:
                    store.add_answer(PHASE, 0, client, b"answer of %d" % client)
                    right = store.assignment(PHASE, client).answered
                else:
                    with database.transaction() as connection:
                        first = connection.execute("SELECT pg_backend_pid(), %s::int", (client,))
                        again = connection.execute("SELECT %s::int, pg_backend_pid()", (number,))
                        one, other = first.fetchone(), again.fetchone()
                    assert one is not None
                    assert other is not None
                    right = one == (other[1], client) and other[0] == number
                wrong += [] if right else [number]
        return wrong

    with ThreadPoolExecutor(CLIENTS) as threads:
        assert list(threads.map(ask, range(CLIENTS))) == [[]] * CLIENTS
    with closing(Database(pooled_url)) as database:
        answers = dict(PostgresPhaseStore(database).answers(PHASE))
        assert answers == {client: b"answer of %d" % client for client in range(CLIENTS)}


@pytest.mark.slow
def test_a_phase_is_played_through_it_by_two_workers_and_a_driver(
    own_url: str, postgres: EmbeddedPostgres, tmp_path: Path
) -> None:
    with pooled(postgres) as port:
        url = through(own_url, port)
        with ServerProcess(tmp_path / "server", url, "--workers", "2") as server:
            crowd = Crowd(server)
            crowd.start(server)
            with ThreadPoolExecutor(len(crowd.phones)) as threads:
                for _ in PARAMETERS.plan().steps:
                    list(threads.map(crowd.answer, crowd.phones))
            assert all(isinstance(crowd.task(number), Discovered) for number in crowd.phones)
            crowd.hang_up()
            log = server.log.read_text()
        assert '"status": 5' not in log
        assert "Traceback" not in log


@pytest.mark.parametrize(
    ("mode", "more", "said"),
    [
        ("statement", "", "transaction blocks not allowed in statement pooling mode"),
        ("transaction", "?options=-c%20jit%3Doff", "unsupported startup parameter: options"),
    ],
)
def test_what_a_pooler_refuses_is_told_at_the_first_use(
    own_url: str, postgres: EmbeddedPostgres, mode: str, more: str, said: str
) -> None:
    with (
        pooled(postgres, mode) as port,
        closing(Database(through(own_url, port) + more, patience=0.5)) as database,
        pytest.raises(DatabaseUnavailableError, match=said),
    ):
        database.migrate()


@pytest.mark.slow
def test_a_pooler_that_is_started_again_is_not_noticed(
    own_url: str, postgres: EmbeddedPostgres
) -> None:
    with pooled(postgres, asks=True) as port:
        url = through(own_url, port).replace("@", f":{PASSWORD.replace(' ', '%20')}@")
        database = Database(url, patience=1.0)
        database.migrate()
    with closing(database):
        with pytest.raises(DatabaseUnavailableError):
            database.check()
        with pooled(postgres, asks=True, port=port):
            database.check()
