from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from support.recordings import RATE

from earshot_client.encoder import default_encoder
from earshot_client.hearing import Hearing, Second
from earshot_client.labels import LabelHierarchy
from earshot_client.phone import Phone
from earshot_client.store.encrypted import EncryptedStore
from earshot_client.store.interface import Store
from earshot_client.store.memory import MemoryStore
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.sound_reading import UnreadableFileError

KEY = bytes(range(32))
HIERARCHY = LabelHierarchy.flat(["bus", "park"])


class Killed(BaseException):
    pass


class Sound:
    """Seconds that all differ; those of `silent` cannot be used, `deadly` kill the listener."""

    def __init__(self, count: int, silent: Sequence[int] = (), deadly: Sequence[int] = ()) -> None:
        self.count = count
        self.silent = silent
        self.deadly = set(deadly)
        self.read_so_far: list[str] = []

    def seconds(self) -> list[Second]:
        return [Second(str(n), ("bus", "park", None)[n % 3]) for n in range(self.count)]

    def read(self, second: Second) -> tuple[NDArray[np.float32], int]:
        number = int(second.name)
        self.read_so_far.append(second.name)
        if number in self.deadly:
            self.deadly.remove(number)
            raise Killed
        if number in self.silent:
            return np.zeros((RATE, 1), dtype=np.float32), RATE
        noise = np.random.default_rng(number).uniform(-0.3, 0.3, (RATE, 1))
        return noise.astype(np.float32), RATE


def embedding(number: int) -> NDArray[np.float32]:
    store = MemoryStore()
    sound = Sound(number + 1)
    Phone(store, default_encoder()).hear(*sound.read(Second(str(number))))
    return store.recordings()[0][0]


def hear(store: Store, sound: Sound, **options: object) -> list[str]:
    phone = Phone(store, default_encoder(), hierarchy=HIERARCHY)
    hearing = Hearing(phone, store, **options)  # type: ignore[arg-type]
    return [second.name for second in hearing.hear(sound)]


def test_all_is_heard_once_with_its_labels() -> None:
    store = MemoryStore()
    heard = hear(store, Sound(7))
    assert sorted(heard) == [str(number) for number in range(7)]
    embeddings, choices = store.recordings()
    for name, row, choice in zip(heard, embeddings, choices, strict=True):
        np.testing.assert_array_equal(row, embedding(int(name)))
        assert choice == ("bus", "park", None)[int(name) % 3]
    again = Sound(9)
    assert sorted(hear(store, again)) == ["7", "8"]
    assert sorted(again.read_so_far) == ["7", "8"]
    assert hear(store, Sound(9)) == []


def test_seconds_that_cannot_be_read_are_named_once_and_heard_when_they_can_be() -> None:
    class Unplugged(Sound):
        def read(self, second: Second) -> tuple[NDArray[np.float32], int]:
            if second.name in "135":
                raise UnreadableFileError("a.wav cannot be read: Input/output error")
            return super().read(second)

    store = MemoryStore()
    hearing = Hearing(Phone(store, default_encoder()), store)
    assert sorted(second.name for second in hearing.hear(Unplugged(6))) == ["0", "2", "4"]
    assert hearing.unreadable == ["a.wav cannot be read: Input/output error"]
    assert sorted(hear(store, Sound(6))) == ["1", "3", "5"]


def test_killed_at_any_second_a_phone_hears_the_rest_and_nothing_twice(tmp_path: Path) -> None:
    sound = Sound(8, silent=[2], deadly=range(8))
    kept: list[str] = []
    for _ in range(20):
        store = EncryptedStore(tmp_path / "phone.db", KEY)
        phone = Phone(store, default_encoder(), hierarchy=HIERARCHY)
        try:
            # One by one: what was kept before a kill counts.
            for second in Hearing(phone, store, seed=3).hear(sound):
                kept.append(second.name)
        except Killed:
            continue
        finally:
            store.close()
        break
    assert sorted(kept) == ["0", "1", "3", "4", "5", "6", "7"]
    store = EncryptedStore(tmp_path / "phone.db", KEY)
    embeddings, choices = store.recordings()
    store.close()
    assert len(np.unique(embeddings, axis=0)) == len(embeddings) == 7
    assert sorted(map(str, choices)) == ["None"] + ["bus"] * 3 + ["park"] * 3
    assert not sound.deadly


def test_of_more_seconds_so_many_are_drawn_and_silence_does_not_count() -> None:
    drawn = hear(MemoryStore(), Sound(40), most=10, seed=5)
    assert len(set(drawn)) == 10
    assert hear(MemoryStore(), Sound(40), most=10, seed=5) == drawn
    assert hear(MemoryStore(), Sound(40), most=10, seed=6) != drawn
    assert hear(MemoryStore(), Sound(40), most=10) != hear(MemoryStore(), Sound(40), most=10)
    silent = [int(name) for name in drawn[:4]]
    others = hear(MemoryStore(), Sound(40, silent), most=10, seed=5)
    assert others[:6] == drawn[4:]
    assert len(set(others)) == 10


def test_the_most_counts_what_the_phone_holds_already() -> None:
    store = MemoryStore()
    drawn = hear(MemoryStore(), Sound(40), most=10, seed=5)
    assert hear(store, Sound(40), most=4, seed=5) == drawn[:4]
    assert hear(store, Sound(40), most=10, seed=5) == drawn[4:]
    assert hear(store, Sound(40), most=9, seed=5) == []
    assert hear(MemoryStore(), Sound(40), most=0) == []


def test_a_fraction_is_labelled() -> None:
    for fraction in (0.0, 0.3, 1.0):
        store = MemoryStore()
        heard = hear(store, Sound(300), labelled=fraction, seed=1)
        choices = store.recordings()[1]
        labelled = sum(choice is not None for choice in choices)
        # 200 of the seconds have a label; four standard deviations.
        deviation = (200 * fraction * (1 - fraction)) ** 0.5
        assert abs(labelled - 200 * fraction) <= 4 * deviation
        for name, choice in zip(heard, choices, strict=True):
            assert choice in (None, ("bus", "park", None)[int(name) % 3])


def test_who_is_asked_decides_and_is_not_asked_about_silence() -> None:
    store = MemoryStore()
    asked: list[str] = []

    def ask(second: Second) -> str | None:
        asked.append(second.name)
        return "park" if int(second.name) % 2 else None

    heard = hear(store, Sound(6, silent=[1]), ask=ask)
    assert asked == heard
    for name, choice in zip(heard, store.recordings()[1], strict=True):
        assert choice == ("park" if int(name) % 2 else None)


def test_killed_while_it_asks_it_asks_again() -> None:
    store = MemoryStore()

    def die(second: Second) -> str | None:
        raise Killed

    with pytest.raises(Killed):
        hear(store, Sound(1), ask=die)
    assert len(store.recordings()[1]) == 0
    hear(store, Sound(1), ask=lambda second: "bus")
    assert store.recordings()[1] == ("bus",)


@pytest.mark.parametrize(
    "options", [{"labelled": -0.1}, {"labelled": 1.1}, {"labelled": float("nan")}, {"most": -1}]
)
def test_other_numbers_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(InvalidInputError, match=r"must be (from 0 to 1|at least 0)"):
        hear(MemoryStore(), Sound(1), **options)
