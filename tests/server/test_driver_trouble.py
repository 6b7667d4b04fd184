"""What goes wrong in one phase is no other's trouble; who works long keeps its lease."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from support.listening import PATIENCE
from support.networked import await_
from support.played_phase import PARAMETERS, PHONES, Play, make_phones
from support.reading import left, record
from support.steps import Step

from earshot_protocol.geometry import Geometry
from earshot_protocol.messages import Failed
from earshot_server.discovery.interface import CentroidDiscovery, FoundCentroids
from earshot_server.discovery.optics import Optics
from earshot_server.phases.coordinator import Coordinator
from earshot_server.processes.driver import _RENEWALS, Driver
from earshot_server.records import FAILED, GATHERING, MOST_TRIES, RUNNING, Trouble
from earshot_server.store.database import Database
from earshot_server.store.driving import LEFT, Driving
from earshot_server.store.postgres import PostgresPhaseStore
from earshot_server.store.registry import Registry

DAY = 86_400.0


class Trapped:
    """A discovery in which something happens first."""

    def __init__(self, trap: Callable[[], None]) -> None:
        self.trap = trap
        self.calls = 0

    def discover(self, points: npt.NDArray[np.float32], geometry: Geometry) -> FoundCentroids:
        self.calls += 1
        self.trap()
        return Optics().discover(points, geometry)


def division() -> None:
    raise ZeroDivisionError("a text that nobody else needs to read")


def make_driver(database: Database, discovery: CentroidDiscovery) -> Driver:
    return Driver(database, discovery, 30 * DAY, lease_seconds=60.0)


def begun(database: Database) -> Play:
    """A phase whose first step is open, and all phones have answered it."""
    registry, phase = Registry(database), os.urandom(16)
    registry.gather(phase, PARAMETERS, 10, database.now() + 1000.0)
    for _ in range(PHONES):
        registry.join(phase, registry.enrol(os.urandom(32), bytes(16), 10_000))
    make_driver(database, Optics()).turn()
    game = Play(Coordinator(PostgresPhaseStore(database), Optics(), phase), make_phones())
    game.answer_all(range(PHONES))
    return game


def hurry(database: Database) -> None:
    """Let the time until the next try be over."""
    database.query("UPDATE troubles SET next_try = 0")


# ---------------------------------------------------------------------------------- isolation


def test_an_error_in_one_phase_stalls_neither_the_others_nor_the_purge(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    older = begun(database)
    database.query("UPDATE snapshots SET snapshot = 'damaged'")
    younger = begun(database)
    database.query("INSERT INTO drivers VALUES ('long gone', 0)")
    assert make_driver(database, Optics()).turn() == 1
    assert younger.coordinator.step != Step.LOCAL_CENTROIDS
    assert database.query("SELECT count(*) FROM drivers WHERE turned = 0") == [(0,)]

    view = record(database, older.coordinator.phase)
    assert (view.status, view.step) == (RUNNING, Step.LOCAL_CENTROIDS)
    assert view.trouble is not None
    assert (view.trouble.attempts, view.trouble.reason) == (1, "ValidationError")
    assert record(database, younger.coordinator.phase).trouble is None
    assert Driving(database).drivers().troubles == 1
    logged = [entry for entry in caplog.records if entry.message == "a phase is in trouble"]
    assert [vars(entry)["phase"] for entry in logged] == [older.coordinator.phase.hex()]
    assert logged[0].exc_info


def test_it_is_tried_again_after_ever_longer_pauses_and_goes_on_when_it_can(
    database: Database,
) -> None:
    game, discovery = begun(database), Trapped(division)
    driver = make_driver(database, discovery)
    for attempt, pause in enumerate((5, 10, 20), start=1):
        before = database.now()
        assert driver.turn() == 0
        after = database.now()
        assert discovery.calls == attempt
        trouble = record(database, game.coordinator.phase).trouble
        assert trouble is not None
        assert (trouble.attempts, trouble.reason) == (attempt, "ZeroDivisionError")
        assert before + pause <= trouble.next_try <= after + pause
        database.query("UPDATE troubles SET next_try = next_try + 3600")  # however slow we are
        assert driver.turn() == 0  # too early
        assert discovery.calls == attempt
        hurry(database)
    discovery.trap = lambda: None
    assert driver.turn() == 1
    assert record(database, game.coordinator.phase).trouble is None
    assert record(database, game.coordinator.phase).step != Step.LOCAL_CENTROIDS
    assert database.query("SELECT count(*) FROM troubles") == [(0,)]
    assert Driving(database).drivers().troubles == 3


def test_a_phase_is_given_up_by_name_after_many_tries(database: Database) -> None:
    game, discovery = begun(database), Trapped(division)
    driver = make_driver(database, discovery)
    for _ in range(MOST_TRIES):
        assert driver.turn() == 0
        hurry(database)
    assert record(database, game.coordinator.phase).status == RUNNING
    assert driver.turn() == 1
    assert discovery.calls == MOST_TRIES
    view = record(database, game.coordinator.phase)
    assert (view.status, view.trouble) == (FAILED, None)
    assert isinstance(view.ending, Failed)
    assert view.ending.reason == (
        "the server failed 12 times (ZeroDivisionError), in the step 'local centroids'"
    )


def test_what_cannot_even_be_read_is_given_up_as_well(database: Database) -> None:
    game, driver = begun(database), make_driver(database, Optics())
    database.query("UPDATE snapshots SET snapshot = 'damaged'")
    for _ in range(MOST_TRIES + 1):
        driver.turn()
        hurry(database)
    view = record(database, game.coordinator.phase)
    assert isinstance(view.ending, Failed)
    assert "ValidationError" in view.ending.reason
    assert driver.turn() == 0


def test_a_gathering_that_cannot_be_read_is_given_up_and_the_others_begin(
    database: Database,
) -> None:
    registry, phase = Registry(database), os.urandom(16)
    registry.gather(phase, PARAMETERS, 10, 0.0)
    for _ in range(PHONES):
        registry.join(phase, registry.enrol(os.urandom(32), bytes(16), 10_000))
    database.query("UPDATE gatherings SET parameters = 'damaged'")
    game = begun(database)
    assert game.coordinator.step == Step.LOCAL_CENTROIDS
    driver = make_driver(database, Optics())
    for _ in range(MOST_TRIES + 1):
        driver.turn()
        hurry(database)
    failure = database.query("SELECT failure FROM gatherings WHERE phase = %s", (phase,))[0][0]
    assert failure == "the server failed 12 times (ValidationError)"


def test_a_driver_that_dies_in_the_middle_has_counted_its_try(database: Database) -> None:
    def die() -> None:
        raise SystemExit

    game = begun(database)
    with pytest.raises(SystemExit):
        make_driver(database, Trapped(die)).turn()
    assert record(database, game.coordinator.phase).trouble is None  # it may still be at work
    driving, phase = Driving(database), game.coordinator.phase
    assert driving.postponed() == {phase}
    trouble = driving.begin(phase)
    assert (trouble.attempts, trouble.reason) == (2, LEFT)
    assert record(database, game.coordinator.phase).trouble == trouble
    for _ in range(40):
        before = database.now()
        trouble = driving.begin(phase)
    assert before + 3600 <= trouble.next_try <= database.now() + 3600


def test_the_database_s_trouble_with_one_phase_is_that_phase_s(own_database: Database) -> None:
    older = begun(own_database)
    # What PostgreSQL says of a row that is too large, which no other phase needs to have.
    own_database.query(
        "CREATE FUNCTION too_large() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE SQLSTATE '54000'; END $$"
    )
    own_database.query(
        "CREATE TRIGGER too_large BEFORE UPDATE ON snapshots FOR EACH ROW"  # type: ignore[arg-type]
        f" WHEN (old.phase = '\\x{older.coordinator.phase.hex()}') EXECUTE FUNCTION too_large()"
    )
    younger, driver = begun(own_database), make_driver(own_database, Optics())
    assert driver.turn() == 1
    assert younger.coordinator.step != Step.LOCAL_CENTROIDS
    for _ in range(MOST_TRIES + 2):
        hurry(own_database)
        assert driver.turn() == 0
    # It may be mended at any time: the phase is not given up for it.
    trouble = record(own_database, older.coordinator.phase).trouble
    assert trouble is not None
    assert (trouble.attempts, trouble.reason) == (1, "DatabaseUnavailableError")
    own_database.query("DROP TRIGGER too_large ON snapshots")
    hurry(own_database)
    assert driver.turn() == 1


# -------------------------------------------------------------------------------------- leases


def test_a_lease_is_renewed_while_work_goes_on(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three times half of the lease passes, and each time it is whole again."""
    assert _RENEWALS >= 2  # in a lease's time; here more, so that nobody waits for long
    monkeypatch.setattr("earshot_server.processes.driver._RENEWALS", 600)
    at_work, enough = threading.Event(), threading.Event()

    def work() -> None:
        at_work.set()
        assert enough.wait(PATIENCE)

    game, discovery = begun(database), Trapped(work)
    slow, other = make_driver(database, discovery), make_driver(database, discovery)
    thread = threading.Thread(target=slow.turn)
    thread.start()
    assert at_work.wait(PATIENCE)
    moved = 0
    for _ in range(3):
        database.query("UPDATE leases SET expires = expires - 30")
        database.query("UPDATE troubles SET next_try = 0")
        moved += other.turn()
        await_(lambda: left(database) > 45, "a renewal")
    enough.set()
    thread.join()
    assert (moved, discovery.calls) == (0, 1)
    assert record(database, game.coordinator.phase).step != Step.LOCAL_CENTROIDS
    assert database.query("SELECT count(*) FROM leases") == [(0,)]


def test_whoever_loses_the_lease_discards_its_work(database: Database) -> None:
    game = begun(database)
    phase, owners = game.coordinator.phase, "SELECT owner FROM leases"

    def take_over() -> None:
        # The driver was suspended for longer than its lease.
        database.query("UPDATE leases SET expires = 0")
        assert Registry(database).lease(phase, "another", 60.0)

    assert make_driver(database, Trapped(take_over)).turn() == 0
    assert record(database, game.coordinator.phase).step == Step.LOCAL_CENTROIDS
    assert database.query("SELECT count(*) FROM answers") == [(PHONES,)]
    assert database.query(owners) == [("another",)]
    assert Driving(database).drivers().lost_leases == 1

    Registry(database).release(phase, "another")
    hurry(database)
    assert make_driver(database, Optics()).turn() == 1
    steps = record(database, game.coordinator.phase).steps
    assert [(step.number, step.answered) for step in steps] == [(0, PHONES), (1, 0)]


def test_of_two_that_finish_the_work_one_opens_the_step(database: Database) -> None:
    game = begun(database)
    phase, second = game.coordinator.phase, make_driver(database, Optics())

    def overtaken() -> None:
        database.query("DELETE FROM leases")
        hurry(database)
        assert second.turn() == 1

    assert make_driver(database, Trapped(overtaken)).turn() == 0
    steps = record(database, game.coordinator.phase).steps
    assert [step.number for step in steps] == [0, 1]
    assert database.query("SELECT count(*) FROM leases") == [(0,)]
    assert Driving(database).postponed() == frozenset()
    assert PostgresPhaseStore(database).present_step(phase).number == 1


def test_a_gathering_that_another_driver_has_taken_over_begins_once(database: Database) -> None:
    registry, phase = Registry(database), os.urandom(16)
    registry.gather(phase, PARAMETERS, 10, database.now() + 1000.0)
    for _ in range(PHONES):
        registry.join(phase, registry.enrol(os.urandom(32), bytes(16), 10_000))
    moved: list[int] = []
    driver = make_driver(database, Optics())
    with database.transaction() as connection:
        connection.execute("LOCK TABLE gatherings IN SHARE MODE")  # it comes so far, for now
        thread = threading.Thread(target=lambda: moved.append(driver.turn()))
        thread.start()
        while not database.query("UPDATE leases SET owner = 'another' RETURNING true"):
            time.sleep(0.01)
    thread.join()
    assert moved == [0]
    assert PostgresPhaseStore(database).phases() == ()
    assert record(database, phase).status == GATHERING
    registry.release(phase, "another")
    hurry(database)
    assert driver.turn() == 1
    assert PostgresPhaseStore(database).phases() == (phase,)


def test_signs_of_life(database: Database) -> None:
    driving = Driving(database)
    assert driving.drivers() == (0, None, 0, 0)
    make_driver(database, Optics()).turn()
    make_driver(database, Optics()).turn()
    alive, seconds, troubles, lost = driving.drivers()
    assert (alive, troubles, lost) == (2, 0, 0)
    assert seconds is not None
    assert 0 <= seconds < 30
    database.query("UPDATE drivers SET turned = turned - 3600")
    assert driving.drivers().alive == 0
    driving.purge(database.now() - 60)
    assert driving.drivers() == (0, None, 0, 0)


def test_a_trouble_is_one_of_the_present(database: Database) -> None:
    driving, phase = Driving(database), os.urandom(16)
    before = database.now()
    trouble = driving.begin(phase)
    assert trouble == Trouble(1, "", trouble.next_try)
    assert before + 5 <= trouble.next_try <= database.now() + 5
    driving.fail(phase, "KeyError")
    assert driving.begin(phase).reason == "KeyError"
    driving.clear(phase)
    assert driving.begin(phase).attempts == 1
