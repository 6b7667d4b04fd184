"""What every store of phases must do; a new one joins the list `STORES`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from earshot_protocol.errors import InvalidInputError
from earshot_server.store.interface import PhaseStore
from earshot_server.store.memory import MemoryPhaseStore

STORES: dict[str, Callable[[Path], PhaseStore]] = {"memory": lambda _: MemoryPhaseStore()}

ONE, TWO = b"one phase, 16 by", b"another, 16 byte"


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> PhaseStore:
    return STORES[request.param](tmp_path)


def test_a_new_store_is_empty(store: PhaseStore) -> None:
    assert store.phases() == ()


def test_a_phase_is_created_once_and_stays_what_it_was(store: PhaseStore) -> None:
    store.create(ONE, b"first")
    store.add_answer(ONE, 3, b"an answer")
    with pytest.raises(InvalidInputError, match=ONE.hex()):
        store.create(ONE, b"second")
    assert store.snapshot(ONE) == b"first"
    assert store.answers(ONE) == ((3, b"an answer"),)
    assert store.phases() == (ONE,)


def test_phases_are_listed_oldest_first_and_kept_apart(store: PhaseStore) -> None:
    for phase in (TWO, ONE):
        store.create(phase, phase)
    store.add_answer(ONE, 1, b"of one")
    store.add_answer(TWO, 1, b"of two")
    store.replace(TWO, b"newer")
    assert store.phases() == (TWO, ONE)
    assert (store.snapshot(ONE), store.snapshot(TWO)) == (ONE, b"newer")
    assert (store.answers(ONE), store.answers(TWO)) == (((1, b"of one"),), ())


def test_answers_come_back_in_order_of_arrival(store: PhaseStore) -> None:
    store.create(ONE, b"")
    arrived = tuple((phone, bytes([phone])) for phone in (9, 2, 11, 0, 2**32 - 1 & 0xFF, 1))
    for phone, answer in arrived:
        store.add_answer(ONE, phone, answer)
    assert store.answers(ONE) == arrived


def test_a_snapshot_and_the_end_of_its_answers_are_one_change(store: PhaseStore) -> None:
    store.create(ONE, b"before")
    store.add_answer(ONE, 1, b"a")
    store.add_answer(ONE, 2, b"b")
    store.replace(ONE, b"after")
    assert store.snapshot(ONE) == b"after"
    assert store.answers(ONE) == ()
    store.add_answer(ONE, 2, b"c")
    assert store.answers(ONE) == ((2, b"c"),)


def test_bytes_come_back_as_they_were(store: PhaseStore) -> None:
    everything = bytes(range(256)) * 100
    store.create(ONE, everything)
    store.add_answer(ONE, 0, everything)
    store.add_answer(ONE, 2**32 - 1, b"")
    assert store.snapshot(ONE) == everything
    assert store.answers(ONE) == ((0, everything), (2**32 - 1, b""))


def test_what_was_read_does_not_change_afterwards(store: PhaseStore) -> None:
    store.create(ONE, b"")
    store.add_answer(ONE, 1, b"a")
    read = store.answers(ONE)
    store.add_answer(ONE, 2, b"b")
    store.replace(ONE, b"new")
    assert read == ((1, b"a"),)


@pytest.mark.parametrize(
    "use",
    [
        lambda store: store.snapshot(TWO),
        lambda store: store.answers(TWO),
        lambda store: store.replace(TWO, b"new"),
        lambda store: store.add_answer(TWO, 1, b"a"),
    ],
)
def test_a_phase_that_there_is_not_is_named_and_not_made(
    store: PhaseStore, use: Callable[[PhaseStore], object]
) -> None:
    store.create(ONE, b"")
    with pytest.raises(InvalidInputError, match=TWO.hex()):
        use(store)
    assert store.phases() == (ONE,)


class _Model(RuleBasedStateMachine):
    """Any sequence of changes, beside plain dictionaries."""

    name = "memory"
    phase = st.sampled_from([bytes([number]) * 16 for number in range(3)])

    def __init__(self) -> None:
        super().__init__()
        self.store = STORES[self.name](Path())
        self.snapshots: dict[bytes, bytes] = {}
        self.kept: dict[bytes, list[tuple[int, bytes]]] = {}

    def change(self, phase: bytes, known: bool, act: Callable[[], None]) -> bool:
        """Whether the change went through, which it must exactly if the phase is `known`."""
        if (phase in self.snapshots) == known:
            act()
            return True
        with pytest.raises(InvalidInputError):
            act()
        return False

    @rule(phase=phase, snapshot=st.binary(max_size=5))
    def create(self, phase: bytes, snapshot: bytes) -> None:
        if self.change(phase, False, lambda: self.store.create(phase, snapshot)):
            self.snapshots[phase], self.kept[phase] = snapshot, []

    @rule(phase=phase, snapshot=st.binary(max_size=5))
    def replace(self, phase: bytes, snapshot: bytes) -> None:
        if self.change(phase, True, lambda: self.store.replace(phase, snapshot)):
            self.snapshots[phase], self.kept[phase] = snapshot, []

    @rule(phase=phase, phone=st.integers(0, 9), answer=st.binary(max_size=5))
    def add_answer(self, phase: bytes, phone: int, answer: bytes) -> None:
        if self.change(phase, True, lambda: self.store.add_answer(phase, phone, answer)):
            self.kept[phase].append((phone, answer))

    @invariant()
    def same(self) -> None:
        assert self.store.phases() == tuple(self.snapshots)
        for phase, snapshot in self.snapshots.items():
            assert self.store.snapshot(phase) == snapshot
            assert self.store.answers(phase) == tuple(self.kept[phase])


TestMemoryModel = _Model.TestCase
TestMemoryModel.settings = settings(max_examples=25, stateful_step_count=25)
