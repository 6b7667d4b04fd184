from __future__ import annotations

import os
import threading
import time

import msgspec
import numpy as np
import pytest
from support.played_phase import PARAMETERS, PHONES, Play, make_phones, outcome, undisturbed
from support.reading import record
from support.steps import Step

from earshot_protocol.geometry import Geometry
from earshot_protocol.messages import Failed
from earshot_protocol.phases.learning import Result
from earshot_protocol.phases.parameters import Parameters
from earshot_server.discovery.interface import FoundCentroids
from earshot_server.discovery.optics import Optics
from earshot_server.phases.coordinator import Coordinator
from earshot_server.processes.driver import Driver
from earshot_server.processes.embedded import EmbeddedPostgres
from earshot_server.records import FAILED, GATHERING, PUBLISHED, RUNNING
from earshot_server.store.database import Database
from earshot_server.store.postgres import PostgresPhaseStore
from earshot_server.store.registry import Registry

DAY = 86_400.0


@pytest.fixture
def driver(database: Database) -> Driver:
    return Driver(database, Optics(), 30 * DAY)


def gather(
    database: Database,
    joining: int,
    *,
    parameters: Parameters = PARAMETERS,
    least: int = 10,
    seconds: float = 1000.0,
) -> bytes:
    """A gathering that so many phones have joined."""
    registry, phase = Registry(database), os.urandom(16)
    registry.gather(phase, parameters, least, database.now() + seconds)
    for _ in range(joining):
        registry.join(phase, registry.enrol(os.urandom(32), bytes(16), 1000))
    return phase


def status(database: Database, phase: bytes) -> str:
    return record(database, phase).status


def test_a_gathering_that_is_full_becomes_a_phase(database: Database, driver: Driver) -> None:
    phase = gather(database, PHONES)
    assert driver.turn() == 1
    assert status(database, phase) == RUNNING
    coordinator = Coordinator(PostgresPhaseStore(database), Optics(), phase)
    assert coordinator.step == Step.LOCAL_CENTROIDS
    assert coordinator.state.parameters == PARAMETERS
    assert driver.turn() == 0


def test_a_gathering_waits_for_more_phones_or_for_its_end(
    database: Database, driver: Driver
) -> None:
    waiting = gather(database, PHONES - 1)
    enough = gather(database, PHONES - 1, seconds=-1.0)
    assert driver.turn() == 1
    assert status(database, waiting) == GATHERING
    assert status(database, enough) == RUNNING
    state = Coordinator(PostgresPhaseStore(database), Optics(), enough).state
    # The noise is made for those that take part, not for those that were wanted.
    assert state.parameters == msgspec.structs.replace(PARAMETERS, phones=PHONES - 1)


def test_too_few_phones_begin_no_phase(database: Database, driver: Driver) -> None:
    phase = gather(database, 9, seconds=-1.0)
    assert driver.turn() == 1
    found = record(database, phase)
    assert found.status == FAILED
    assert isinstance(found.ending, Failed)
    assert "9 phones" in found.ending.reason
    assert "at least 10 are needed" in found.ending.reason
    assert driver.turn() == 0


def test_parameters_that_suit_no_such_crowd_fail_by_name(
    database: Database, driver: Driver
) -> None:
    greedy = msgspec.structs.replace(PARAMETERS, phones=100, dropout=0.45, corrupted=0.3)
    phase = gather(database, 4, parameters=greedy, least=3, seconds=-1.0)
    assert driver.turn() == 1
    found = record(database, phase)
    assert isinstance(found.ending, Failed)
    assert "dropout" in found.ending.reason


def test_a_driver_that_dies_after_a_gathering_ended_is_replaced(
    database: Database, driver: Driver
) -> None:
    phase = gather(database, PHONES)
    Registry(database).end_gathering(phase)  # and no phase begun
    assert driver.turn() == 1
    assert status(database, phase) == RUNNING


def test_what_another_driver_has_leased_is_left_alone(database: Database, driver: Driver) -> None:
    phase = gather(database, PHONES)
    registry = Registry(database)
    assert registry.lease(phase, "another", 1000.0)
    assert driver.turn() == 0
    assert status(database, phase) == GATHERING
    registry.release(phase, "another")
    assert driver.turn() == 1


def driven(database: Database, driver: Driver, phase: bytes) -> Play:
    """The phase, played over the database; the driver takes the place of `advance`."""
    coordinator = Coordinator(PostgresPhaseStore(database), Optics(), phase)
    return Play(coordinator, make_phones())


def test_a_whole_phase_over_the_database_is_that_in_memory(
    database: Database, driver: Driver
) -> None:
    game = driven(database, driver, gather(database, PHONES))
    assert driver.turn() == 1
    while game.coordinator.step != Step.PUBLISHED:
        game.answer_all(range(PHONES // 2))
        assert driver.turn() == 0
        game.answer_all(range(PHONES // 2, PHONES))
        assert driver.turn() == 1
    assert outcome(game.coordinator) == undisturbed()
    assert status(database, game.coordinator.phase) == PUBLISHED
    found = record(database, game.coordinator.phase)
    assert isinstance(found.ending, Result)
    assert found.ending == game.coordinator.result()
    assert driver.turn() == 0


def test_many_drivers_close_every_step_once(database: Database) -> None:
    drivers = [Driver(database, Optics(), 30 * DAY) for _ in range(4)]
    game = driven(database, drivers[0], gather(database, PHONES))
    moved: list[int] = []

    def all_turn() -> int:
        moved.clear()
        threads = [threading.Thread(target=lambda d=d: moved.append(d.turn())) for d in drivers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return sum(moved)

    assert all_turn() == 1
    steps = 0
    while game.coordinator.step != Step.PUBLISHED:
        game.answer_all(range(PHONES))
        step = game.coordinator.step
        assert all_turn() >= 1
        assert game.coordinator.step != step
        steps += 1
    assert steps == 9
    found = record(database, game.coordinator.phase)
    assert [each.number for each in found.steps] == list(range(9))
    assert all(each.answered == PHONES for each in found.steps)


def test_a_gathering_that_another_driver_began_is_not_begun_again(
    database: Database,
    driver: Driver,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    phase, late = gather(database, PHONES), Driver(database, Optics(), 30 * DAY)
    looked = late._registry.gatherings()
    assert driver.turn() == 1
    found = iter([looked])
    fresh = late._registry.gatherings
    monkeypatch.setattr(late._registry, "gatherings", lambda: next(found, None) or fresh())
    monkeypatch.setattr(late._store, "running", tuple)
    assert late.turn() == 0
    assert status(database, phase) == RUNNING
    assert "does not start" not in caplog.text


def test_the_deadline_is_the_database_s(database: Database, driver: Driver) -> None:
    hasty = msgspec.structs.replace(PARAMETERS, step_seconds=0.2)
    game = driven(database, driver, gather(database, PHONES, parameters=hasty))
    driver.turn()
    game.answer_all(range(10))
    stop = threading.Event()
    thread = threading.Thread(target=driver.run, args=(stop, 0.01))
    thread.start()
    while game.coordinator.step == Step.LOCAL_CENTROIDS:
        stop.wait(0.01)
    stop.set()
    thread.join()
    found = record(database, game.coordinator.phase)
    assert (found.steps[0].expected, found.steps[0].answered) == (PHONES, 10)


class Slow(Optics):
    """Takes longer than the steps of the phase."""

    def __init__(self, database: Database) -> None:
        super().__init__()
        self.ended: list[float] = []
        self._database = database

    def discover(self, points: np.ndarray, geometry: Geometry) -> FoundCentroids:
        time.sleep(0.5)
        found = super().discover(points, geometry)
        self.ended.append(self._database.now())
        return found


def test_work_in_a_phase_takes_no_time_from_its_phones_or_from_another_s(
    database: Database,
) -> None:
    hasty = msgspec.structs.replace(PARAMETERS, step_seconds=0.4)
    discovery = Slow(database)
    driver = Driver(database, discovery, 30 * DAY)
    games = [driven(database, driver, gather(database, PHONES, parameters=hasty)) for _ in range(2)]
    assert driver.turn() == 2
    for game in games:
        game.answer_all(range(PHONES))
    assert driver.turn() == 2
    for game in games:
        assert game.coordinator.step == Step.CENTROID_VOTE_ADVERTISE
    deadlines = sorted(game.coordinator.state.deadline for game in games)
    for ended, deadline in zip(discovery.ended, deadlines, strict=True):
        assert deadline >= ended + 0.4


def test_a_driver_waits_for_a_database_that_is_away(
    mortal_postgres: EmbeddedPostgres,
    mortal_database: Database,
    caplog: pytest.LogCaptureFixture,
) -> None:
    database = mortal_database
    driver = Driver(database, Optics(), 30 * DAY)
    phase = gather(database, PHONES)
    mortal_postgres.stop()
    stop = threading.Event()
    thread = threading.Thread(target=driver.run, args=(stop, 0.01))
    thread.start()
    while "waits for its database" not in caplog.text:
        stop.wait(0.01)
    mortal_postgres.start()
    while status(database, phase) != RUNNING:
        stop.wait(0.05)
    stop.set()
    thread.join()


def test_what_is_long_over_is_purged(database: Database) -> None:
    phase = gather(database, 1, least=3, seconds=-1.0)
    Driver(database, Optics(), 30 * DAY).turn()
    assert status(database, phase) == FAILED
    count = "SELECT count(*) FROM members"
    assert database.query(count) == [(1,)]
    Driver(database, Optics(), -1.0).turn()
    assert database.query(count) == [(0,)]
    assert status(database, phase) == FAILED
