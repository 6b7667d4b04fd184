"""What operators read of phases that gather, run, are published or failed."""

from __future__ import annotations

import pytest
from support.parameters import statistics_parameters
from support.played_phase import PARAMETERS as LEARNING
from support.published_statistics import published

from earshot_protocol.errors import EarshotError
from earshot_protocol.geometry import Geometry
from earshot_protocol.messages import Failed
from earshot_protocol.phases.learning import Result
from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.phases.statistics import Statistics
from earshot_protocol.wire import Matrix, encode
from earshot_server.records import StepRecord
from earshot_server.store.archive import Archive
from earshot_server.store.database import Database
from earshot_server.store.interface import PresentStep
from earshot_server.store.postgres import PostgresPhaseStore
from earshot_server.store.registry import Registry

STATISTICS = statistics_parameters(phones=9)
PHASES = [bytes([65 + number]) * 16 for number in range(5)]
MOST = 4e9


def result(phase: bytes) -> Result:
    return Result(
        phase=phase,
        geometry=Geometry.EUCLIDEAN,
        centroids=Matrix(1, 1, bytes(4)),
        labels=(0,),
        label_names=("bus",),
        centroid_votes=(3,),
        label_votes=((2,),),
        centroid_p_values=(0.0,),
        name_p_values=(1.0,),
        encoder="any",
        privacy=(),
    )


def statistics(phase: bytes) -> Statistics:
    return published(("bus", "park"), phase=phase)


class Keeper:
    """Lets phases be in any situation."""

    def __init__(self, database: Database) -> None:
        self.registry = Registry(database)
        self.store = PostgresPhaseStore(database)

    def gather(self, phase: bytes, parameters: Parameters = LEARNING, phones: int = 0) -> None:
        self.registry.gather(phase, parameters, 3, MOST)
        for number in range(phones):
            self.registry.join(phase, self.registry.enrol(bytes([number]) * 32, b"i" * 16, 99))

    def begin(self, phase: bytes, parameters: Parameters = LEARNING) -> None:
        self.gather(phase, parameters, phones=4)
        self.registry.end_gathering(phase)
        self.store.create(phase, b"", PresentStep(0, "first", MOST - 1, 4), [])
        for phone in range(3):
            self.store.add_answer(phase, 0, phone, b"x")
        self.store.close(phase, 0)
        self.store.replace(phase, b"", PresentStep(1, "second", MOST, 3), [])
        self.store.add_answer(phase, 1, 0, b"x")

    def end(self, ending: Result | Statistics | Failed) -> None:
        step = "failed" if isinstance(ending, Failed) else "published"
        opening = PresentStep(2, step, MOST, 0, common=encode(ending), over=True)
        self.store.replace(ending.phase, b"", opening, [])


@pytest.fixture
def archive(database: Database) -> Archive:
    return Archive(database)


@pytest.fixture
def keeper(database: Database) -> Keeper:
    return Keeper(database)


def history(steps: tuple[StepRecord, ...]) -> list[tuple[int, str, int, int, bool]]:
    return [(s.number, s.step, s.expected, s.answered, s.closed is not None) for s in steps]


def test_an_empty_database_has_nothing_to_show(archive: Archive) -> None:
    assert archive.phases() == ()
    assert archive.phase(PHASES[0]) is None
    assert archive.statistics() == ()
    assert archive.counts().phones == 0


def test_a_phase_that_gathers(archive: Archive, keeper: Keeper, database: Database) -> None:
    before = database.now()
    keeper.gather(PHASES[0], STATISTICS, phones=2)
    record = archive.phase(PHASES[0])
    assert record is not None
    assert (record.phase, record.parameters) == (PHASES[0], STATISTICS)
    assert (record.status, record.step, record.deadline) == ("gathering", "gathering", None)
    assert (record.wanted, record.least, record.joined) == (9, 3, 2)
    assert (record.gather_until, record.finished, record.ending) == (MOST, None, None)
    assert before <= record.created <= database.now()
    assert record.steps == ()


def test_a_gathering_that_failed(archive: Archive, keeper: Keeper) -> None:
    keeper.gather(PHASES[0], phones=2)
    keeper.registry.end_gathering(PHASES[0], "x" * 2000)
    record = archive.phase(PHASES[0])
    assert record is not None
    assert (record.status, record.step, record.deadline) == ("failed", "failed", None)
    assert record.ending == Failed(phase=PHASES[0], reason="x" * 1024)
    assert record.finished is not None
    assert record.finished >= record.created


def test_a_phase_that_runs(archive: Archive, keeper: Keeper) -> None:
    keeper.begin(PHASES[0])
    record = archive.phase(PHASES[0])
    assert record is not None
    assert (record.status, record.step, record.deadline) == ("running", "second", MOST)
    assert (record.finished, record.ending, record.joined) == (None, None, 4)
    assert history(record.steps) == [(0, "first", 4, 3, True), (1, "second", 3, 1, False)]
    assert record.steps[0].closed is not None
    assert record.created <= record.steps[0].opened <= record.steps[0].closed


@pytest.mark.parametrize(
    ("ending", "status"),
    [
        (result(PHASES[0]), "published"),
        (statistics(PHASES[0]), "published"),
        (Failed(phase=PHASES[0], reason="stopped"), "failed"),
        (Failed(phase=PHASES[0], reason="stopped by an operator"), "stopped"),
    ],
)
def test_a_phase_that_is_over(
    archive: Archive, keeper: Keeper, ending: Result | Statistics | Failed, status: str
) -> None:
    keeper.begin(PHASES[0], STATISTICS if isinstance(ending, Statistics) else LEARNING)
    keeper.end(ending)
    record = archive.phase(PHASES[0])
    assert record is not None
    assert (record.status, record.step, record.deadline) == (status, status, None)
    assert record.ending == ending
    assert history(record.steps) == [(0, "first", 4, 3, True), (1, "second", 3, 1, True)]
    assert record.finished is not None
    assert record.finished >= (record.steps[1].closed or MOST)
    keeper.registry.purge(MOST)
    assert archive.phase(PHASES[0]) == record


def test_the_newest_come_first_and_no_more_than_wanted(archive: Archive, keeper: Keeper) -> None:
    for phase in PHASES:
        keeper.begin(phase)
    assert [record.phase for record in archive.phases()] == PHASES[::-1]
    assert [record.phase for record in archive.phases(limit=2)] == PHASES[:2:-1]
    for record in archive.phases():
        assert record == archive.phase(record.phase)


def test_statistics_are_told_from_results_and_come_newest_first(
    archive: Archive, keeper: Keeper
) -> None:
    kinds = [LEARNING, STATISTICS, LEARNING, STATISTICS, LEARNING]
    for phase, parameters in zip(PHASES, kinds, strict=True):
        keeper.begin(phase, parameters)
    order = [2, 1, 0, 3]  # of ending
    for number in order:
        keeper.end((result if number % 2 == 0 else statistics)(PHASES[number]))
    keeper.end(Failed(phase=PHASES[4], reason="stopped"))
    assert archive.statistics() == (statistics(PHASES[3]), statistics(PHASES[1]))
    assert archive.statistics(limit=1) == (statistics(PHASES[3]),)


def test_what_there_is_is_counted(archive: Archive, keeper: Keeper, database: Database) -> None:
    keeper.gather(PHASES[0], phones=3)
    phones, size, refusals = archive.counts()
    assert (phones, refusals) == (3, {})
    assert size > 10**6
    database.query(
        "INSERT INTO invitations SELECT decode(md5(n::text), 'hex'), 1"
        " FROM generate_series(1, 50000) AS n"
    )
    assert archive.counts().database_bytes > size + 10**6


def test_an_ending_that_is_none_is_named(archive: Archive, keeper: Keeper) -> None:
    keeper.begin(PHASES[0])
    keeper.store.replace(
        PHASES[0], b"", PresentStep(2, "published", MOST, 0, common=b"\xc0", over=True), []
    )
    with pytest.raises(EarshotError, match="not a message"):
        archive.phases()
