"""What every store of phases must do: in memory and on PostgreSQL, one by one and at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.examples import examples
from support.networked import PATIENCE, await_
from support.steps import Step

from earshot_protocol.errors import (
    EarshotError,
    InvalidInputError,
    RepeatedMessageError,
    UnexpectedMessageError,
    WrongStateError,
)
from earshot_server.store.database import Database
from earshot_server.store.interface import Assignment, PhaseStore, PresentStep
from earshot_server.store.memory import MemoryPhaseStore
from earshot_server.store.postgres import PostgresPhaseStore

ONE, TWO, NONE = b"one phase, 16 by", b"another, 16 byte", b"there is no such"
EVERYTHING = bytes(range(256)) * 100


@pytest.fixture(params=["memory", "postgres"])
def store(request: pytest.FixtureRequest) -> PhaseStore:
    if request.param == "memory":
        return MemoryPhaseStore()
    return PostgresPhaseStore(request.getfixturevalue("database"))


@pytest.fixture
def shared(database: Database) -> PostgresPhaseStore:
    return PostgresPhaseStore(database)


def step(number: int, name: str = "some step", expected: int = 3) -> PresentStep:
    return PresentStep(number=number, name=name, deadline=1e9 + 1 / 3, expected=expected)


def closing(store: PhaseStore, phase: bytes, number: int) -> None:
    store.close(phase, number)
    store.replace(phase, b"", step(number + 1), [])


def test_a_new_store_is_empty(store: PhaseStore) -> None:
    assert store.phases() == ()


def test_a_phase_is_created_once_and_stays_what_it_was(store: PhaseStore) -> None:
    store.create(ONE, b"first", step(0), [(3, b"do")])
    store.add_answer(ONE, 0, 3, b"an answer")
    with pytest.raises(InvalidInputError, match=ONE.hex()):
        store.create(ONE, b"second", step(0, "another"), [(4, b"that")])
    assert store.snapshot(ONE) == (0, b"first")
    assert store.present_step(ONE) == step(0)
    assert store.assignment(ONE, 3) == Assignment(step(0), False, b"do", True)
    assert store.assignment(ONE, 4) == Assignment(step(0), False, None, False)
    assert store.phases() == (ONE,)


def test_phases_are_listed_oldest_first_and_kept_apart(store: PhaseStore) -> None:
    for phase in (TWO, ONE):
        store.create(phase, phase, step(0), [(1, b"task of " + phase)])
    store.add_answer(ONE, 0, 1, b"of one")
    store.add_answer(TWO, 0, 1, b"of two")
    closing(store, TWO, 0)
    assert store.phases() == (TWO, ONE)
    assert (store.snapshot(ONE), store.snapshot(TWO)) == ((0, ONE), (1, b""))
    assert (tuple(store.answers(ONE)), tuple(store.answers(TWO))) == (((1, b"of one"),), ())
    assert store.assignment(ONE, 1).task == b"task of " + ONE
    assert store.assignment(TWO, 1).task is None


def test_an_opening_comes_back_as_it_was(store: PhaseStore) -> None:
    opening = PresentStep(
        number=0,
        name=Step.CENTROID_VOTE_MASK,
        deadline=1234567890.123456,
        expected=10**6,
        common=EVERYTHING,
        sum=b"\0",
        over=True,
        wait=0.1,
    )
    store.create(ONE, EVERYTHING, opening, [])
    assert store.present_step(ONE) == opening
    assert store.assignment(ONE, 0).step == opening
    assert store.snapshot(ONE) == (0, EVERYTHING)
    later = step(1, Step.PUBLISHED)
    store.replace(ONE, b"", later, [])
    assert store.present_step(ONE) == later


def test_bytes_come_back_as_they_were(store: PhaseStore) -> None:
    store.create(ONE, b"", step(0), [(0, EVERYTHING), (2**32 - 1, b"")])
    assert store.assignment(ONE, 0).task == EVERYTHING
    assert store.assignment(ONE, 2**32 - 1).task == b""
    store.add_answer(ONE, 0, 0, EVERYTHING)
    store.add_answer(ONE, 0, 2**32 - 1, b"")
    assert tuple(store.answers(ONE)) == ((0, EVERYTHING), (2**32 - 1, b""))


def test_answers_come_back_in_order_of_arrival(store: PhaseStore) -> None:
    store.create(ONE, b"", step(0), [])
    arrived = tuple((phone, bytes([phone])) for phone in (9, 2, 11, 0, 255, 1))
    for phone, answer in arrived:
        store.add_answer(ONE, 0, phone, answer)
        store.add_answer(ONE, 0, 9, b"\t")  # once more: it does not move to the end
    assert tuple(store.answers(ONE)) == arrived
    assert store.answer_count(ONE) == len(arrived)


def test_the_next_step_and_the_end_of_the_last_are_one_change(store: PhaseStore) -> None:
    store.create(ONE, b"before", step(0), [(1, b"a"), (2, b"b")])
    store.add_answer(ONE, 0, 1, b"x")
    store.close(ONE, 0)
    store.replace(ONE, b"after", step(1), iter([(2, b"c"), (3, b"d")]))
    assert store.snapshot(ONE) == (1, b"after")
    assert tuple(store.answers(ONE)) == ()
    assert store.answer_count(ONE) == 0
    assert [store.assignment(ONE, phone).task for phone in (1, 2, 3)] == [None, b"c", b"d"]
    assert not store.assignment(ONE, 1).closed
    store.add_answer(ONE, 1, 2, b"y")
    assert tuple(store.answers(ONE)) == ((2, b"y"),)


def test_answers_that_are_kept_stay_for_one_step_beside_its_own(store: PhaseStore) -> None:
    store.create(ONE, b"", step(0), [])
    for phone in (2, 1):
        store.add_answer(ONE, 0, phone, b"report of %d" % phone)
    store.close(ONE, 0)
    store.replace(ONE, b"", step(1, expected=1), [(-1, b"for the helper")], keep_answers=True)
    reports = ((2, b"report of 2"), (1, b"report of 1"))
    assert tuple(store.kept_answers(ONE)) == reports
    assert (tuple(store.answers(ONE)), store.answer_count(ONE)) == ((), 0)
    assert not store.assignment(ONE, 1).answered
    assert store.assignment(ONE, -1).task == b"for the helper"
    store.add_answer(ONE, 1, -1, b"total")
    store.add_answer(ONE, 1, 1, b"something else")
    assert tuple(store.kept_answers(ONE)) == reports
    assert tuple(store.answers(ONE)) == ((-1, b"total"), (1, b"something else"))
    closing(store, ONE, 1)
    assert tuple(store.kept_answers(ONE)) == ()
    assert tuple(store.answers(ONE)) == ()


def test_tasks_that_cannot_all_be_made_change_nothing(store: PhaseStore) -> None:
    def broken() -> Iterator[tuple[int, bytes]]:
        yield 1, b"new"
        raise UnexpectedMessageError("no second one")

    store.create(ONE, b"before", step(0), [(1, b"old")])
    store.add_answer(ONE, 0, 1, b"x")
    with pytest.raises(UnexpectedMessageError, match="no second one"):
        store.replace(ONE, b"after", step(1), broken())
    with pytest.raises(UnexpectedMessageError, match="no second one"):
        store.create(TWO, b"", step(0), broken())
    assert store.snapshot(ONE) == (0, b"before")
    assert store.assignment(ONE, 1) == Assignment(step(0), False, b"old", True)
    assert store.phases() == (ONE,)


def test_the_same_answer_again_is_acknowledged_even_after_closing(store: PhaseStore) -> None:
    store.create(ONE, b"", step(0), [])
    store.add_answer(ONE, 0, 1, b"x")
    store.add_answer(ONE, 0, 1, b"x")
    store.close(ONE, 0)
    store.add_answer(ONE, 0, 1, b"x")
    assert tuple(store.answers(ONE)) == ((1, b"x"),)


def test_another_answer_is_a_repetition_before_and_after_closing(store: PhaseStore) -> None:
    store.create(ONE, b"", step(0), [])
    store.add_answer(ONE, 0, 1, b"x")
    with pytest.raises(RepeatedMessageError, match="phone 1"):
        store.add_answer(ONE, 0, 1, b"y")
    store.close(ONE, 0)
    with pytest.raises(RepeatedMessageError, match="phone 1"):
        store.add_answer(ONE, 0, 1, b"y")
    assert tuple(store.answers(ONE)) == ((1, b"x"),)


def test_a_step_that_is_closed_takes_no_answer(store: PhaseStore) -> None:
    store.create(ONE, b"", step(0), [])
    store.close(ONE, 0)
    store.close(ONE, 0)
    assert store.assignment(ONE, 1).closed
    with pytest.raises(UnexpectedMessageError, match="phone 1"):
        store.add_answer(ONE, 0, 1, b"x")
    assert tuple(store.answers(ONE)) == ()


@pytest.mark.parametrize("number", [-1, 0, 2])
def test_only_the_present_step_takes_answers(store: PhaseStore, number: int) -> None:
    store.create(ONE, b"", step(0), [])
    store.add_answer(ONE, 0, 1, b"x")
    closing(store, ONE, 0)
    with pytest.raises(UnexpectedMessageError, match="phone 1"):
        store.add_answer(ONE, number, 1, b"x")
    assert tuple(store.answers(ONE)) == ()


def test_closing_another_step_does_nothing(store: PhaseStore) -> None:
    store.create(ONE, b"", step(0), [])
    closing(store, ONE, 0)
    for number in (0, 2):
        store.close(ONE, number)
    store.add_answer(ONE, 1, 1, b"x")
    assert tuple(store.answers(ONE)) == ((1, b"x"),)


@pytest.mark.parametrize("number", [0, 1, 3])
def test_a_step_follows_the_one_before_it_only(store: PhaseStore, number: int) -> None:
    store.create(ONE, b"", step(0), [])
    store.replace(ONE, b"kept", step(1), [(1, b"kept")])
    store.add_answer(ONE, 1, 1, b"kept")
    with pytest.raises(WrongStateError, match=f"step {number} cannot follow step 1"):
        store.replace(ONE, b"lost", step(number), [(1, b"lost")])
    assert store.snapshot(ONE) == (1, b"kept")
    assert store.assignment(ONE, 1) == Assignment(step(1), False, b"kept", True)


def test_what_was_read_does_not_change_afterwards(store: PhaseStore) -> None:
    store.create(ONE, b"", step(0), [])
    store.add_answer(ONE, 0, 1, b"a")
    read, assignment = tuple(store.answers(ONE)), store.assignment(ONE, 1)
    store.add_answer(ONE, 0, 2, b"b")
    closing(store, ONE, 0)
    assert read == ((1, b"a"),)
    assert assignment == Assignment(step(0), False, None, True)


@pytest.mark.parametrize(
    "use",
    [
        lambda store: store.present_step(NONE),
        lambda store: store.snapshot(NONE),
        lambda store: store.assignment(NONE, 0),
        lambda store: store.add_answer(NONE, 0, 1, b"a"),
        lambda store: store.answer_count(NONE),
        lambda store: store.close(NONE, 0),
        lambda store: tuple(store.answers(NONE)),
        lambda store: store.replace(NONE, b"new", step(1), []),
    ],
)
def test_a_phase_that_there_is_not_is_named_and_not_made(
    store: PhaseStore, use: Callable[[PhaseStore], object]
) -> None:
    store.create(ONE, b"", step(0), [])
    with pytest.raises(InvalidInputError, match=NONE.hex()):
        use(store)
    assert store.phases() == (ONE,)


# ------------------------------------------------------------- both do the same, whatever is done

_phases = st.sampled_from([ONE, TWO])
_numbers = st.integers(0, 3)
_bytes = st.binary(max_size=2)
_tasks = st.dictionaries(st.integers(0, 3), _bytes, max_size=3)
_changes = st.one_of(
    st.tuples(st.just("create"), _phases, _bytes, st.just(0), _tasks),
    st.tuples(st.just("replace"), _phases, _bytes, _numbers, _tasks),
    st.tuples(st.just("close"), _phases, _numbers),
    st.tuples(st.just("add_answer"), _phases, _numbers, st.integers(0, 3), _bytes),
    st.tuples(st.just("add_answer"), _phases, st.just(0), st.integers(0, 3), _bytes),
)


def _done(store: PhaseStore, change: tuple[object, ...]) -> tuple[object, ...]:
    """What a change came to, and all that can be read after it."""
    name, phase, *others = change
    if name in ("create", "replace"):
        snapshot, number, tasks = others
        others = [snapshot, step(number), tasks.items()]
    try:
        outcome: object = getattr(store, str(name))(phase, *others)
    except EarshotError as error:
        outcome = (type(error), str(error))
    known = store.phases()
    return (
        outcome,
        known,
        [(store.present_step(p), store.snapshot(p), tuple(store.answers(p))) for p in known],
        [store.assignment(p, phone) for p in known for phone in range(4)],
    )


@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=st.lists(_changes, max_size=20))
def test_both_stores_do_the_same(database: Database, changes: list[tuple[object, ...]]) -> None:
    database.query("TRUNCATE phases, snapshots, tasks, answers, steps")
    memory, postgres = MemoryPhaseStore(), PostgresPhaseStore(database)
    for change in changes:
        assert _done(postgres, change) == _done(memory, change)


# ------------------------------------------------------------------------- many at once: PostgreSQL


def _at_once(*works: Callable[[], object]) -> list[object]:
    """What each came to, or the error that it raised; all begin together."""
    barrier = threading.Barrier(len(works))

    def run(work: Callable[[], object]) -> object:
        barrier.wait()
        try:
            return work()
        except EarshotError as error:
            return error

    with ThreadPoolExecutor(len(works)) as pool:
        return list(pool.map(run, works))


@pytest.mark.parametrize("attempt", range(4))
def test_no_acknowledged_answer_is_missing_after_closing(
    shared: PostgresPhaseStore, attempt: int
) -> None:
    shared.create(ONE, b"", step(0), [])
    acknowledged: set[int] = set()
    begun = threading.Event()

    def answer(first: int) -> None:
        for phone in range(first, 100_000, 6):  # far more than there is time for
            try:
                shared.add_answer(ONE, 0, phone, b"x" * 3000)
            except UnexpectedMessageError:
                return
            acknowledged.add(phone)
            if len(acknowledged) >= 20 * attempt:
                begun.set()

    def close() -> set[int]:
        begun.wait(60)
        shared.close(ONE, 0)
        return {phone for phone, _ in shared.answers(ONE)}

    *_, read = _at_once(*(lambda first=i: answer(first) for i in range(6)), close)
    assert isinstance(read, set)
    assert read == acknowledged
    assert read == {phone for phone, _ in shared.answers(ONE)}
    assert 20 * attempt <= len(read) < 100_000


def test_the_same_answer_from_many_at_once_is_kept_once(shared: PostgresPhaseStore) -> None:
    shared.create(ONE, b"", step(0), [])
    for phone in range(20):
        outcomes = _at_once(*[lambda p=phone: shared.add_answer(ONE, 0, p, b"same")] * 6)
        assert outcomes == [None] * 6
    assert tuple(shared.answers(ONE)) == tuple((phone, b"same") for phone in range(20))


def test_of_different_answers_at_once_exactly_one_is_kept(shared: PostgresPhaseStore) -> None:
    shared.create(ONE, b"", step(0), [])
    for phone in range(20):
        outcomes = _at_once(
            *(lambda p=phone, a=bytes([i]): shared.add_answer(ONE, 0, p, a) for i in range(6))
        )
        assert outcomes.count(None) == 1
        assert sum(isinstance(outcome, RepeatedMessageError) for outcome in outcomes) == 5
        assert tuple(shared.answers(ONE))[phone] == (phone, bytes([outcomes.index(None)]))


def test_of_two_replacements_at_once_exactly_one_wins(shared: PostgresPhaseStore) -> None:
    shared.create(ONE, b"", step(0), [])
    for number in range(1, 15):
        outcomes = _at_once(
            *(
                lambda n=number, who=bytes([i]): shared.replace(
                    ONE, who, step(n), [(phone, who) for phone in range(50)]
                )
                for i in range(4)
            )
        )
        assert outcomes.count(None) == 1
        assert sum(isinstance(outcome, WrongStateError) for outcome in outcomes) == 3
        winner = bytes([outcomes.index(None)])
        assert shared.snapshot(ONE) == (number, winner)
        assert {shared.assignment(ONE, phone).task for phone in range(50)} == {winner}


def _await_blocked(database: Database, sessions: int) -> None:
    """Until so many sessions of this database wait for a lock.

    To be called from a thread that is in no transaction, of which the question would be part.
    """

    def waiting() -> int:
        rows = database.query(
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE wait_event_type = 'Lock' AND datname = current_database()"
        )
        return int(rows[0][0])

    await_(lambda: waiting() >= sessions, "all sessions that wait for one another")


def test_closing_waits_for_the_answers_that_are_on_their_way(own_database: Database) -> None:
    shared = PostgresPhaseStore(own_database)
    own_database.query(
        "CREATE FUNCTION dawdle() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NEW; END $$"
    )
    own_database.query(
        "CREATE TRIGGER dawdle BEFORE INSERT ON answers FOR EACH ROW EXECUTE FUNCTION dawdle()"
    )
    shared.create(ONE, b"", step(0), [])

    def close() -> tuple[tuple[int, bytes], ...]:
        shared.close(ONE, 0)
        return tuple(shared.answers(ONE))

    with ThreadPoolExecutor(3) as pool:
        with own_database.transaction() as connection:
            connection.execute("SELECT pg_advisory_xact_lock(1)")
            answer = pool.submit(shared.add_answer, ONE, 0, 1, b"x")
            pool.submit(_await_blocked, own_database, 1).result(PATIENCE)
            read = pool.submit(close)
            pool.submit(_await_blocked, own_database, 2).result(PATIENCE)
        answer.result(PATIENCE)
        assert read.result(PATIENCE) == ((1, b"x"),)


def test_an_answer_that_waited_for_the_end_of_its_step_is_late(
    shared: PostgresPhaseStore, database: Database
) -> None:
    """The answer's statement begins before the step is replaced, and ends after."""
    shared.create(ONE, b"", step(0), [])
    answers: list[Future[None]] = []

    def tasks() -> Iterator[tuple[int, bytes]]:
        answers.append(pool.submit(shared.add_answer, ONE, 0, 1, b"x"))
        pool.submit(_await_blocked, database, 1).result(PATIENCE)
        yield 1, b"next"

    with ThreadPoolExecutor(2) as pool:
        shared.replace(ONE, b"", step(1), tasks())
        with pytest.raises(UnexpectedMessageError, match="step that is over"):
            answers[0].result(PATIENCE)
    assert tuple(shared.answers(ONE)) == ()


# ----------------------------------------------------------------------- on PostgreSQL only


def test_the_history_of_steps_is_written_along(
    shared: PostgresPhaseStore, database: Database
) -> None:
    before = database.now()
    shared.create(ONE, b"", step(0, "first", expected=3), [])
    shared.add_answer(ONE, 0, 1, b"x")
    shared.add_answer(ONE, 0, 2, b"x")
    closing(shared, ONE, 0)
    shared.replace(
        ONE, b"", PresentStep(number=2, name="published", deadline=0, expected=0, over=True), []
    )
    rows = database.query(
        "SELECT number, step, expected, answered, opened, closed FROM steps ORDER BY number"
    )
    assert [row[:4] for row in rows] == [(0, "first", 3, 2), (1, "some step", 3, 0)]
    times = [before, rows[0][4], rows[0][5], rows[1][4], rows[1][5], database.now()]
    assert times == sorted(times)


def test_ciphertexts_are_stored_as_they_are(database: Database) -> None:
    """Storage `e`: outside of the row, and not compressed in vain."""
    rows = database.query(
        "SELECT attrelid::regclass::text, attname FROM pg_attribute"
        " WHERE attstorage = 'e' AND attrelid::regclass::text = ANY(%s) ORDER BY 1",
        (["snapshots", "tasks", "answers"],),
    )
    assert rows == [("answers", "answer"), ("snapshots", "snapshot"), ("tasks", "task")]


def test_two_stores_on_one_database_are_one(database: Database, database_url: str) -> None:
    other_database = Database(database_url)
    one, other = PostgresPhaseStore(database), PostgresPhaseStore(other_database)
    one.create(ONE, b"seen", step(0), [(1, b"task")])
    other.add_answer(ONE, 0, 1, b"x")
    one.close(ONE, 0)
    assert other.assignment(ONE, 1) == Assignment(step(0), True, b"task", True)
    assert tuple(one.answers(ONE)) == ((1, b"x"),)
    other_database.close()
