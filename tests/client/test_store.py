from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from support.examples import examples
from support.refusals import refused
from support.stores import DIMENSIONS, VOICE, content, fill, open_file

from earshot_client.store.interface import DamagedStoreError, Store
from earshot_client.store.memory import MemoryStore
from earshot_protocol.errors import InvalidInputError, WrongStateError

MONDAY = date(2026, 3, 2)


def memory() -> MemoryStore:
    return MemoryStore(np.empty((0, DIMENSIONS), dtype=np.float32))


@pytest.fixture(params=["memory", "encrypted"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    opened: Store = memory() if request.param == "memory" else open_file(tmp_path / "store")
    with contextlib.closing(opened):
        yield opened


def described(store: Store) -> list[tuple[int, date | None, str | None, bool]]:
    assert store.count() == len(store.descriptions())
    return [(each.number, each.day, each.choice, each.counted) for each in store.descriptions()]


# ------------------------------------------------------------------ what both stores promise


def test_a_new_store_is_empty(store: Store) -> None:
    embeddings, choices = store.recordings()
    assert embeddings.shape == (0, DIMENSIONS)
    assert embeddings.dtype == np.float32
    assert (choices, store.get("state"), store.ledger()) == ((), None, ())


def test_what_is_kept_is_read(store: Store) -> None:
    first = fill(store)
    embeddings, choices = store.recordings()
    np.testing.assert_array_equal(embeddings, np.stack([VOICE, -VOICE]))
    assert embeddings.dtype == np.float32
    assert choices == ("café", None)
    assert store.get("state") == b"some state"
    assert store.ledger() == (b"first entry", b"second entry")
    store.label(first, "x" * 64)
    store.put("state", b"")
    assert store.recordings()[1] == ("x" * 64, None)
    assert store.get("state") == b""
    store.delete("state")
    store.delete("never put")
    assert store.get("state") is None


def test_the_number_of_a_forgotten_recording_is_never_used_again(store: Store) -> None:
    numbers = [store.add(VOICE), store.add(VOICE)]
    store.forget(numbers[1])
    numbers += [store.add(2 * VOICE), store.add(VOICE)]
    assert len(set(numbers)) == 4
    store.label(numbers[2], "rain")
    assert store.recordings()[1] == (None, "rain", None)


def test_a_number_may_be_large(store: Store) -> None:
    for _ in range(130):
        last = store.add(VOICE)
    store.label(last, "rain")
    store.forget(last)
    assert len(store.recordings()[1]) == 129


def test_all_recordings_are_forgotten_and_nothing_else(store: Store) -> None:
    before = [fill(store), store.add(VOICE)]
    store.forget_all()
    assert content(store) == ([], (), b"some state", None, (b"first entry", b"second entry"))
    after = store.add(2 * VOICE)
    assert after > max(before)
    with contextlib.suppress(ZeroDivisionError), store.transaction():
        store.forget_all()
        raise ZeroDivisionError
    np.testing.assert_array_equal(store.recordings()[0], 2 * VOICE[None])


def test_what_is_known_of_recordings_is_told_in_their_order(store: Store) -> None:
    first, second, third = (store.add(VOICE, day) for day in (MONDAY, None, date.max))
    assert described(store) == [
        (first, MONDAY, None, False),
        (second, None, None, False),
        (third, date.max, None, False),
    ]
    store.label(second, "café")
    store.mark_counted([first, third])
    store.label(first, "rain")
    store.forget(third)
    assert described(store) == [(first, MONDAY, "rain", True), (second, None, "café", False)]
    assert store.recordings()[1] == ("rain", "café")
    np.testing.assert_array_equal(store.recordings()[0], np.stack([VOICE, VOICE]))


def test_marks_are_for_recordings_that_are_still_there_and_part_of_a_transaction(
    store: Store,
) -> None:
    first, second = store.add(VOICE, MONDAY), store.add(VOICE, MONDAY)
    store.forget(first)
    store.mark_counted([first, second, 99])
    assert described(store) == [(second, MONDAY, None, True)]
    third = store.add(VOICE, MONDAY)
    with contextlib.suppress(ZeroDivisionError), store.transaction():
        store.mark_counted([third])
        raise ZeroDivisionError
    assert described(store)[1] == (third, MONDAY, None, False)


@pytest.mark.parametrize("number", [0, -1, 3, 2**63, 2**70])
def test_an_unknown_recording_is_refused(store: Store, number: int) -> None:
    fill(store)
    before = content(store)
    for change in (lambda: store.label(number, "rain"), lambda: store.forget(number)):
        with pytest.raises(InvalidInputError, match=f"no recording {number}"):
            change()
    assert content(store) == before


@pytest.mark.parametrize(
    "embedding",
    [
        np.ones(2),
        np.ones(4),
        np.ones((1, 3)),
        np.array([1.0, np.nan, 1.0]),
        np.array([1.0, np.inf, 1.0]),
        np.array([1.0, 1e300, 1.0]),
        np.array(["a", "b", "c"]),
        np.array([1j, 1j, 1j]),
    ],
)
def test_what_is_no_embedding_is_refused(store: Store, embedding: np.ndarray) -> None:
    with pytest.raises(InvalidInputError, match="embedding"):
        store.add(embedding)
    assert store.recordings()[0].shape == (0, DIMENSIONS)


@pytest.mark.parametrize("name", ["", "x" * 65, "a\0b", "\ud800"])
def test_bad_choices_and_names_are_refused(store: Store, name: str) -> None:
    number = fill(store)
    with pytest.raises(InvalidInputError, match="1 to 64 printable characters"):
        store.label(number, name)
    with pytest.raises(InvalidInputError, match="1 to 64 printable characters"):
        store.put(name, b"value")
    assert store.recordings()[1] == ("café", None)


def test_longest_choice_of_the_widest_characters_is_kept(store: Store) -> None:
    store.label(store.add(VOICE), "🚆" * 64)
    assert store.recordings()[1] == ("🚆" * 64,)


def test_a_transaction_is_all_or_nothing(store: Store) -> None:
    number = fill(store)
    before = content(store)

    def change_and_fail(error: type[BaseException]) -> None:
        with store.transaction():
            store.add(VOICE)
            store.label(number, "rain")
            store.forget(number)
            store.put("state", b"new")
            store.put("b", b"new")
            store.append_ledger(b"third entry")
            assert store.get("state") == b"new"
            assert len(store.ledger()) == 3
            raise error

    for error in (RuntimeError, KeyboardInterrupt):
        with pytest.raises(error):
            change_and_fail(error)
        assert content(store) == before
    with store.transaction():
        store.put("state", b"new")
        store.append_ledger(b"third entry")
    assert (store.get("state"), store.ledger()[2:]) == (b"new", (b"third entry",))


def test_an_inner_transaction_takes_back_only_its_own_changes(store: Store) -> None:
    with store.transaction():
        store.put("state", b"outer")
        with contextlib.suppress(RuntimeError), store.transaction():
            store.put("state", b"inner")
            store.append_ledger(b"inner")
            raise RuntimeError
        with contextlib.suppress(InvalidInputError):
            store.forget(99)
        assert store.get("state") == b"outer"
        with store.transaction():
            store.append_ledger(b"kept")
    assert (store.get("state"), store.ledger()) == (b"outer", (b"kept",))
    with contextlib.suppress(RuntimeError), store.transaction():
        with store.transaction():
            store.put("state", b"inner")
        raise RuntimeError
    assert store.get("state") == b"outer"


def test_a_closed_store_says_so(store: Store) -> None:
    store.close()
    store.close()
    for call in (
        lambda: store.add(VOICE),
        lambda: store.label(1, "rain"),
        lambda: store.forget(1),
        store.recordings,
        store.descriptions,
        lambda: store.mark_counted([1]),
        lambda: store.get("state"),
        lambda: store.put("state", b""),
        lambda: store.delete("state"),
        store.ledger,
        lambda: store.append_ledger(b""),
        lambda: store.transaction().__enter__(),
    ):
        with pytest.raises(WrongStateError, match="closed"):
            call()


def test_a_store_is_not_closed_within_a_transaction(store: Store) -> None:
    with store.transaction():
        store.put("state", b"kept")
        with pytest.raises(WrongStateError, match="within a transaction"):
            store.close()
    assert store.get("state") == b"kept"


def test_what_is_read_cannot_change_what_is_kept(store: Store) -> None:
    kept = VOICE.copy()
    store.add(kept)
    kept[:] = 0
    with contextlib.suppress(ValueError):
        store.recordings()[0][:] = 0
    np.testing.assert_array_equal(store.recordings()[0], VOICE[None])


class _Stores(RuleBasedStateMachine):
    """Any series of calls leaves a store with what a plain model of it holds."""

    def __init__(self, make: Callable[[Path], Store], lasting: bool) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.make, self.lasting = make, lasting
        self.store = make(self.folder / "store")
        self.rows: dict[int, tuple[list[float], str | None]] = {}
        self.days: dict[int, date] = {}
        self.counted: set[int] = set()
        self.values: dict[str, bytes] = {}
        self.entries: list[bytes] = []

    embeddings = st.lists(st.floats(-9, 9, width=32), min_size=DIMENSIONS, max_size=DIMENSIONS)
    names = st.sampled_from(["a", "b", "state"])
    pick = st.integers(0, 5)

    def number(self, pick: int) -> int:
        return [*self.rows, 10**6][pick % (len(self.rows) + 1)]

    @rule(embedding=embeddings, day=st.dates())
    def add(self, embedding: list[float], day: date) -> None:
        number = self.store.add(np.array(embedding, dtype=np.float32), day)
        assert number not in self.days
        self.days[number] = day
        self.rows[number] = (embedding, None)

    @rule(pick=pick, choice=st.text("réin", min_size=1, max_size=9))
    def label(self, pick: int, choice: str) -> None:
        number = self.number(pick)
        if number in self.rows:
            self.store.label(number, choice)
            self.rows[number] = (self.rows[number][0], choice)
        else:
            with pytest.raises(InvalidInputError):
                self.store.label(number, choice)

    @rule(pick=pick)
    def count(self, pick: int) -> None:
        self.store.mark_counted([self.number(pick)])
        self.counted.add(self.number(pick))

    @rule(pick=pick)
    def forget(self, pick: int) -> None:
        number = self.number(pick)
        if self.rows.pop(number, None) is not None:
            self.store.forget(number)
        else:
            with pytest.raises(InvalidInputError):
                self.store.forget(number)

    @rule()
    def forget_all(self) -> None:
        self.store.forget_all()
        self.rows.clear()

    @rule(name=names, value=st.binary(max_size=40))
    def put(self, name: str, value: bytes) -> None:
        self.store.put(name, value)
        self.values[name] = value

    @rule(name=names)
    def delete(self, name: str) -> None:
        self.store.delete(name)
        self.values.pop(name, None)

    @rule(entry=st.binary(max_size=40))
    def append(self, entry: bytes) -> None:
        self.store.append_ledger(entry)
        self.entries.append(entry)

    @rule(name=names, value=st.binary(max_size=40), pick=pick)
    def fail(self, name: str, value: bytes, pick: int) -> None:
        with contextlib.suppress(ZeroDivisionError, InvalidInputError), self.store.transaction():
            self.store.add(VOICE)
            self.store.put(name, value)
            self.store.append_ledger(value)
            self.store.forget(self.number(pick))
            raise ZeroDivisionError

    @rule()
    def reopen(self) -> None:
        if self.lasting:
            self.store.close()
            self.store = self.make(self.folder / "store")

    @invariant()
    def same(self) -> None:
        embeddings, choices = self.store.recordings()
        assert embeddings.tolist() == [embedding for embedding, _ in self.rows.values()]
        assert choices == tuple(choice for _, choice in self.rows.values())
        assert described(self.store) == [
            (number, self.days[number], choice, number in self.counted)
            for number, (_, choice) in self.rows.items()
        ]
        assert self.store.ledger() == tuple(self.entries)
        for name in ("a", "b", "state"):
            assert self.store.get(name) == self.values.get(name)

    def teardown(self) -> None:
        self.store.close()
        shutil.rmtree(self.folder)


class MemoryStores(_Stores):
    def __init__(self) -> None:
        super().__init__(lambda _: memory(), lasting=False)


class EncryptedStores(_Stores):
    def __init__(self) -> None:
        super().__init__(open_file, lasting=True)


# Deriving the random choices from the code itself keeps these from being flaky.
STATEFUL = settings(
    max_examples=examples(25), stateful_step_count=20, deadline=None, derandomize=True
)
TestMemoryStores = MemoryStores.TestCase
TestMemoryStores.settings = STATEFUL
TestEncryptedStores = EncryptedStores.TestCase
TestEncryptedStores.settings = STATEFUL


# ------------------------------------------------------------------------ the store in memory


def test_a_memory_store_is_made_of_arrays_that_it_shares_and_leaves_alone() -> None:
    everything = np.arange(12, dtype=np.float32).reshape(4, 3)
    store = MemoryStore(everything, ("rain", None, "train", None))
    embeddings, choices = store.recordings()
    assert np.shares_memory(embeddings, everything)
    assert choices == ("rain", None, "train", None)
    store.forget(2)
    store.label(4, "waves")
    assert store.add(VOICE) == 5
    assert store.recordings()[1] == ("rain", "train", "waves", None)
    np.testing.assert_array_equal(everything, np.arange(12).reshape(4, 3))
    assert everything.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        embeddings[0] = 0


test_a_memory_store_of_bad_arrays_is_refused = refused(
    InvalidInputError,
    (None, MemoryStore, np.ones(3)),
    (None, MemoryStore, np.ones((2, 0))),
    (None, MemoryStore, np.full((2, 3), np.nan)),
    (None, MemoryStore, np.ones((2, 3)), ("rain",)),
    (None, MemoryStore, np.ones((2, 3)), ("rain", "")),
    (None, MemoryStore, np.ones((1, 3)), ("x" * 65,)),
    ("1 days for 2 recordings", MemoryStore, np.ones((2, 3)), None, (MONDAY,)),
)


def test_a_memory_store_may_be_told_on_which_days_recordings_were_made() -> None:
    store = MemoryStore(np.ones((2, 3)), days=(MONDAY, None))
    assert described(store) == [(1, MONDAY, None, False), (2, None, None, False)]


def test_a_memory_store_saves_its_values_and_ledger() -> None:
    store = memory()
    fill(store)
    saved = store.to_bytes()
    again = MemoryStore.from_bytes(saved, VOICE[None], ("rain",))
    assert again.get("state") == b"some state"
    assert again.ledger() == (b"first entry", b"second entry")
    assert again.recordings()[1] == ("rain",)
    for damaged in (b"", saved[:-1], saved + b"\0", b"\xc0"):
        with pytest.raises(DamagedStoreError):
            MemoryStore.from_bytes(damaged)


def test_a_memory_store_saves_which_recordings_were_counted() -> None:
    store = MemoryStore(np.ones((3, 3)), days=(MONDAY,) * 3)
    store.mark_counted((2, 3))
    without = MemoryStore.from_bytes(store.to_bytes())
    later = MemoryStore.from_bytes(without.to_bytes(), np.ones((2, 3)), days=(MONDAY,) * 2, first=3)
    assert described(later) == [(3, MONDAY, None, True), (4, MONDAY, None, False)]
    assert later.add(np.ones(3)) == 5
