"""A step is closed by streaming: answers come in chunks; who dies between two leaves no trace."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

import pytest
from support.networked import await_
from support.played_phase import PHONES, again, outcome, play, stored, undisturbed
from support.reading import MEBIBYTE, ONE, left, reading
from support.resident import grown_by
from support.steps import STEPS, Step

from earshot_protocol.secure_sum.interface import Saved
from earshot_server.discovery.optics import Optics
from earshot_server.phases.coordinator import Coordinator
from earshot_server.processes.driver import Driver
from earshot_server.store import postgres
from earshot_server.store.database import Database, DatabaseUnavailableError
from earshot_server.store.interface import PresentStep
from earshot_server.store.memory import MemoryPhaseStore
from earshot_server.store.postgres import PostgresPhaseStore
from earshot_server.store.registry import Registry


class Dying(MemoryPhaseStore):
    """A store that breaks after some answers, or some tasks, and works the next time."""

    def __init__(self) -> None:
        super().__init__()
        self.answers_left: int | None = None
        self.tasks_left: int | None = None

    def answers(self, phase: bytes) -> Iterator[tuple[int, bytes]]:
        left, self.answers_left = self.answers_left, None
        for count, each in enumerate(super().answers(phase)):
            if count == left:
                raise DatabaseUnavailableError("gone")
            yield each

    def replace(
        self,
        phase: bytes,
        snapshot: Saved,
        step: PresentStep,
        tasks: Iterable[tuple[int, bytes]],
        *,
        keep_answers: bool = False,
    ) -> None:
        left, self.tasks_left = self.tasks_left, None

        def some() -> Iterator[tuple[int, bytes]]:
            for count, each in enumerate(tasks):
                if count == left:
                    raise DatabaseUnavailableError("gone")
                yield each

        super().replace(phase, snapshot, step, some(), keep_answers=keep_answers)


def everything(coordinator: Coordinator) -> tuple[object, ...]:
    store, phase = stored(coordinator), coordinator.phase
    return (
        store.snapshot(phase),
        store.present_step(phase),
        [store.assignment(phase, phone).task for phone in range(PHONES)],
        tuple(store.answers(phase)),
    )


@pytest.mark.parametrize("died", ["first", "middle", "tasks"])
def test_a_store_that_dies_between_chunks_leaves_nothing_half_done(died: str) -> None:
    """In every step: the closing that failed is done over, by this process or by another."""
    store = Dying()
    game = play(store=store)
    for number, step in enumerate(STEPS):
        assert game.coordinator.step == step
        game.answer_all(sorted(game.present))
        game.now += 1000.0
        before = everything(game.coordinator)
        if died == "tasks":
            store.tasks_left = 5
        else:
            store.answers_left = 0 if died == "first" else PHONES // 2
        try:
            moved = game.coordinator.advance(game.now)
        except DatabaseUnavailableError:
            assert everything(game.coordinator) == before
            if number % 2:
                game.coordinator = again(game.coordinator)
            moved = game.coordinator.advance(game.now)
        else:  # a step that all are told alike has no tasks of single phones
            assert died == "tasks"
        assert moved
    assert outcome(game.coordinator) == undisturbed()


def test_an_answer_that_nobody_can_read_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    game = play()
    game.until(Step.CENTROID_VOTE_MASK)
    game.answer_all(sorted(game.present - {2, 7}))
    store, phase = stored(game.coordinator), game.coordinator.phase
    number = store.present_step(phase).number
    for phone, garbage in ((2, b""), (7, b"\x81\xa4type\xa4none")):
        store.add_answer(phase, number, phone, garbage)
    assert game.coordinator.advance(game.now)
    assert game.coordinator.step == Step.CENTROID_VOTE_UNMASK
    for phone in (2, 7):
        assert f"an answer of phone {phone} is left out" in caplog.text
    assert game.coordinator.state.inputs == {"centroid vote": PHONES - 2}
    game.present -= {2, 7}
    game.until(Step.PUBLISHED)


# ----------------------------------------------------------------------------------- PostgreSQL


def in_database(database: Database, answers: Iterable[bytes]) -> PostgresPhaseStore:
    store = PostgresPhaseStore(database)
    store.create(ONE, b"", PresentStep(0, "some step", 1e9, 3), [])
    for place, answer in enumerate(answers):
        store.add_answer(ONE, 0, 97 * place % 64, answer)
    return store


@pytest.mark.parametrize("size", [1, 7, 64])
@pytest.mark.parametrize("bounds", ["number", "bytes"])
def test_chunks_of_any_size_are_the_whole_in_its_order(
    database: Database, monkeypatch: pytest.MonkeyPatch, size: int, bounds: str
) -> None:
    answers = [bytes([place]) * (100 if place % 10 else 5000) for place in range(64)]
    store = in_database(database, answers)
    if bounds == "number":
        monkeypatch.setattr(postgres, "_CHUNK_ANSWERS", size)
    else:
        monkeypatch.setattr(postgres, "_CHUNK_BYTES", 100 * size)
    statements = 0
    query = database.query

    def counted(*given: object) -> list[tuple[object, ...]]:
        nonlocal statements
        statements += 1
        return query(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(database, "query", counted)
    read = list(store.answers(ONE))
    assert read == [(97 * place % 64, answer) for place, answer in enumerate(answers)]
    if bounds == "number":
        assert statements == 1 + -(-64 // size)


def test_what_comes_and_goes_while_answers_are_read(database: Database) -> None:
    """One that is taken back is left out; of a step that was opened meanwhile nothing is read."""
    store = in_database(database, [b"x"] * 10)
    reading = store.answers(ONE)
    database.query("DELETE FROM answers WHERE phone = 0")
    assert len(list(reading)) == 9
    reading = store.answers(ONE)
    store.replace(ONE, b"", PresentStep(1, "another step", 1e9, 3), [])
    for place in range(10):
        store.add_answer(ONE, 1, 97 * place % 64, b"y")
    assert list(reading) == []


@pytest.mark.parametrize("size", [1, 7, PHONES])
def test_a_phase_closed_in_chunks_publishes_the_same(
    database: Database, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(postgres, "_CHUNK_ANSWERS", size)
    game = play(store=PostgresPhaseStore(database))
    game.until(Step.PUBLISHED)
    assert outcome(game.coordinator) == undisturbed()


def test_a_database_that_goes_between_chunks_leaves_nothing_half_done(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "_CHUNK_ANSWERS", 5)
    store = PostgresPhaseStore(database)
    game = play(store=store)
    for _ in STEPS:
        game.answer_all(sorted(game.present))
        game.now += 1000.0
        phase = game.coordinator.phase
        before = store.snapshot(phase), tuple(store.answers(phase))
        with monkeypatch.context() as patched:
            patched.setattr(store, "_database", Breaking(database, "ANY", after=1))
            with pytest.raises(DatabaseUnavailableError):
                game.coordinator.advance(game.now)
        assert (store.snapshot(phase), tuple(store.answers(phase))) == before
        assert game.coordinator.advance(game.now)
    assert outcome(game.coordinator) == undisturbed()


class Breaking:
    """A database that is gone when it is asked something for the second time, or the third."""

    def __init__(self, database: Database, asked: str, after: int) -> None:
        self._database, self._asked, self._left = database, asked, after

    def __getattr__(self, name: str) -> object:
        return getattr(self._database, name)

    def query(self, statement: str, *given: object) -> object:
        if self._asked in statement:
            if not self._left:
                raise DatabaseUnavailableError("gone")
            self._left -= 1
        return self._database.query(statement, *given)  # type: ignore[arg-type]


def test_memory_of_reading_does_not_grow_with_the_answers(
    database: Database, database_url: str
) -> None:
    """Sixty-four mebibytes of masked vectors pass through less than a third of that."""
    in_database(database, (os.urandom(MEBIBYTE) for _ in range(64)))
    assert grown_by(reading, database_url) < 20 * MEBIBYTE


# --------------------------------------------------------------------------------------- leases


def test_a_lease_is_whole_again_after_each_chunk_of_a_close_that_outlasts_it(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a lease passes with each of four chunks; meanwhile nobody else gets the phase."""
    # In a lease's time, so that nobody waits long.
    monkeypatch.setattr("earshot_server.processes.driver._RENEWALS", 600)
    monkeypatch.setattr(postgres, "_CHUNK_ANSWERS", 3)
    registry, driver = Registry(database), Driver(database, Optics(), 1e6, lease_seconds=60.0)
    game = play(store=PostgresPhaseStore(database))
    game.until(Step.CENTROID_VOTE_SHARE)
    game.answer_all(sorted(game.present))
    refused, chunks = 0, postgres._chunks

    def slow(lengths: Iterable[tuple[int, int]]) -> Iterator[list[int]]:
        nonlocal refused
        for chunk in chunks(lengths):
            database.query("UPDATE leases SET expires = expires - 30")
            refused += not registry.lease(game.coordinator.phase, "another", 60.0)
            await_(lambda: left(database) > 45, "a renewal")
            yield chunk

    monkeypatch.setattr(postgres, "_chunks", slow)
    assert driver.turn() == 1
    assert refused == 4
    assert game.coordinator.step == Step.CENTROID_VOTE_MASK
    assert database.query("SELECT count(*) FROM leases") == [(0,)]
