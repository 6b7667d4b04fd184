"""What a phone keeps, lists, forgets and lets expire, and when it listens at all."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path

import numpy as np
import pytest
from support.recordings import NOISE, RATE

from earshot_client.contact import CRITICAL_MINUTES, Contact
from earshot_client.expiry import KEEP_DAYS
from earshot_client.features import UnusableRecordingError
from earshot_client.labels import LabelHierarchy, UnknownLabelError
from earshot_client.phone import Phone
from earshot_client.store.encrypted import EncryptedStore
from earshot_client.store.interface import Store
from earshot_client.store.memory import MemoryStore
from earshot_protocol.errors import InvalidInputError

KEY = bytes(range(32))
EVENING = datetime(2026, 3, 2, 23, 50, tzinfo=UTC)
MONDAY = EVENING.date()


class Pair:
    """An encoder of two numbers."""

    name, dimensions = "pair", 2

    def embed(self, samples: np.ndarray) -> np.ndarray:
        return np.stack([samples.mean(axis=1), samples.std(axis=1)], axis=1).astype(np.float32)

    def project(self, embeddings: np.ndarray, dimensions: int) -> np.ndarray:
        return embeddings[:, :dimensions]


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = EVENING

    def __call__(self) -> float:
        return self.now.timestamp()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["memory", "encrypted"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    kept: Store = MemoryStore(np.empty((0, 2), dtype=np.float32))
    if request.param == "encrypted":
        kept = EncryptedStore(tmp_path / "phone.db", KEY, dimensions=2)
    with contextlib.closing(kept):
        yield kept


def phone_with(store: Store, clock: Clock, keep_days: int | None = None) -> Phone:
    return Phone(store, Pair(), clock=clock, keep_days=keep_days)


def days(phone: Phone) -> list[date | None]:
    return [each.day for each in phone.recordings()]


# -------------------------------------------------------------------------- lists and forgets


def test_a_phone_lists_what_it_keeps(store: Store, clock: Clock) -> None:
    phone = phone_with(store, clock)
    assert phone.recordings() == ()
    first = phone.hear(NOISE, RATE)
    clock.now += timedelta(hours=1)
    second = phone.hear(NOISE, RATE)
    phone.label(first, "train")
    kept = phone.recordings()
    assert [each.number for each in kept] == [first, second]
    # An hour later it is another day; nothing finer than the day is kept.
    assert days(phone) == [MONDAY, MONDAY + timedelta(days=1)]
    assert [each.choice for each in kept] == ["train", None]
    assert [each.labelled for each in kept] == [True, False]
    assert not any(each.counted for each in kept)


def test_a_phone_forgets_one_recording_or_all(store: Store, clock: Clock) -> None:
    phone = phone_with(store, clock)
    numbers = [phone.hear(NOISE, RATE) for _ in range(3)]
    phone.forget(numbers[1])
    assert [each.number for each in phone.recordings()] == [numbers[0], numbers[2]]
    with pytest.raises(InvalidInputError, match=f"no recording {numbers[1]}"):
        phone.forget(numbers[1])
    phone.forget_all()
    assert phone.recordings() == ()
    assert len(store.recordings()[0]) == 0
    assert phone.hear(NOISE, RATE) > max(numbers)


def test_what_was_forgotten_or_expired_is_not_in_the_file_any_more(
    tmp_path: Path, clock: Clock
) -> None:
    path = tmp_path / "phone.db"
    store = EncryptedStore(path, KEY, dimensions=2)
    with phone_with(store, clock, keep_days=3) as phone:
        numbers = [phone.hear(NOISE, RATE) for _ in range(2)]
        rows = store._file.rows("SELECT sealed FROM recordings")
        assert all(sealed in path.read_bytes() for (sealed,) in rows)
        phone.forget(numbers[0])
        clock.now += timedelta(days=3)
        phone.hear(NOISE, RATE)
    left = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert [sealed[-40:] in left for (sealed,) in rows] == [False, False]


# ------------------------------------------------------------------------------------- expires


@pytest.mark.parametrize("keep_days", [1, 2, 14])
def test_recordings_expire_when_the_phone_hears_or_is_opened(
    store: Store, clock: Clock, keep_days: int
) -> None:
    phone = phone_with(store, clock, keep_days)
    phone.hear(NOISE, RATE)
    clock.now += timedelta(days=keep_days - 1)
    phone.hear(NOISE, RATE)
    assert days(phone) == [MONDAY, clock.now.date()]
    clock.now += timedelta(minutes=20)
    phone.hear(NOISE, RATE)
    assert days(phone) == [clock.now.date() - timedelta(days=1), clock.now.date()][-keep_days:]
    clock.now += timedelta(days=400)
    assert phone_with(store, clock).recordings()
    assert phone_with(store, clock, keep_days).recordings() == ()
    phone.hear(NOISE, RATE)
    clock.now += timedelta(days=400)
    assert phone.recordings() == ()


def test_recordings_without_a_day_expire_once_they_have_been_known_for_so_long(
    clock: Clock,
) -> None:
    store = MemoryStore(np.ones((2, 2)), days=(None, None))
    phone = phone_with(store, clock, 14)
    clock.now += timedelta(days=13)
    phone.hear(NOISE, RATE)
    assert days(phone) == [None, None, clock.now.date()]
    clock.now += timedelta(days=1)
    assert days(phone_with(store, clock, 14)) == [clock.now.date() - timedelta(days=1)]
    # Others that come later are counted from then.
    store.add(np.ones(2))
    phone_with(store, clock, 14)
    clock.now += timedelta(days=5)
    assert None in days(phone_with(store, clock, 14))
    clock.now += timedelta(days=9)
    assert days(phone_with(store, clock, 14)) == []


def test_a_day_that_is_still_to_come_does_not_keep_a_recording_for_ever(clock: Clock) -> None:
    store = MemoryStore(np.ones((1, 2)), days=(date(2099, 1, 1),))
    phone_with(store, clock, 14)
    clock.now += timedelta(days=14)
    assert phone_with(store, clock, 14).recordings() == ()


def test_an_app_keeps_recordings_for_four_weeks_unless_it_says_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[int | None] = []
    original = Phone.__init__

    def noting(self: Phone, *words: object, **options: object) -> None:
        opened.append(options["keep_days"])  # type: ignore[arg-type]
        original(self, *words, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Phone, "__init__", noting)
    path = tmp_path / "phone.db"
    Phone.open(path, key=KEY).close()
    Phone.open(path, key=KEY, keep_days=7).close()
    assert opened == [KEEP_DAYS, 7]
    assert KEEP_DAYS == 28


@pytest.mark.parametrize("keep_days", [0, -1])
def test_less_than_a_day_is_refused(keep_days: int) -> None:
    with pytest.raises(InvalidInputError, match="at least one day"):
        Phone(MemoryStore(), Pair(), keep_days=keep_days)


def test_an_app_gives_its_own_hierarchy(tmp_path: Path) -> None:
    hierarchy = LabelHierarchy({"on water": ("ferry", "rowing boat")})
    with Phone.open(tmp_path / "phone.db", key=KEY, hierarchy=hierarchy) as phone:
        recording = phone.hear(NOISE, RATE)
        phone.label(recording, "ferry")
        with pytest.raises(UnknownLabelError, match="rowing boat"):
            phone.label(recording, "train")
        assert phone.recordings()[0].choice == "ferry"


# ------------------------------------------------------------------------------------ contacts


class Ears:
    """A microphone that tells how often it was used."""

    def __init__(self, samples: np.ndarray = NOISE) -> None:
        self.samples = samples
        self.used = 0

    def __call__(self) -> tuple[np.ndarray, int]:
        self.used += 1
        return self.samples, RATE


def contact(minutes: float = 20.0, risk: float = 1.0, consent: bool = True) -> Contact:
    return Contact(EVENING, minutes, risk, consent)


@pytest.mark.parametrize(
    "met",
    [
        contact(consent=False),
        contact(minutes=CRITICAL_MINUTES - 0.1),
        contact(minutes=100, risk=0.1),
        contact(minutes=1000, risk=0.0),
        Contact(EVENING, 20.0),
    ],
)
def test_nothing_is_heard_or_kept_without_a_critical_contact_and_consent(
    store: Store, clock: Clock, met: Contact
) -> None:
    ears = Ears()
    phone = phone_with(store, clock)
    assert phone.contact(met, ears) is None
    assert ears.used == 0
    assert phone.recordings() == ()


@pytest.mark.parametrize(
    ("met", "least"),
    [(contact(), 15.0), (contact(minutes=6, risk=2.5), 15.0), (contact(minutes=5), 5.0)],
)
def test_a_second_is_heard_after_a_critical_contact(
    store: Store, clock: Clock, met: Contact, least: float
) -> None:
    ears = Ears()
    phone = phone_with(store, clock)
    clock.now += timedelta(minutes=30)
    recording = phone.contact(met, ears, least=least)
    assert ears.used == 1
    (kept,) = phone.recordings()
    assert (kept.number, kept.day) == (recording, MONDAY)


def test_the_day_is_the_contacts_in_utc_and_never_one_to_come(store: Store, clock: Clock) -> None:
    phone = phone_with(store, clock)
    pacific = timezone(timedelta(hours=-8))
    phone.contact(Contact(datetime(2026, 3, 1, 20, tzinfo=pacific), 20, consent=True), Ears())
    phone.contact(Contact(EVENING + timedelta(days=3), 20, consent=True), Ears())
    assert days(phone) == [MONDAY, MONDAY]


def test_sound_that_says_nothing_is_refused_after_a_contact_too(store: Store, clock: Clock) -> None:
    phone = phone_with(store, clock)
    with pytest.raises(UnusableRecordingError, match="silent"):
        phone.contact(contact(), Ears(np.zeros(RATE)))
    assert phone.recordings() == ()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"minutes": -1.0}, "minutes=-1"),
        ({"minutes": float("nan")}, "minutes=nan"),
        ({"risk": float("inf")}, "risk=inf"),
        ({"began": datetime(2026, 3, 2)}, "time zone"),
    ],
)
def test_a_contact_that_makes_no_sense_is_refused(options: dict[str, object], said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        Contact(**{"began": EVENING, "minutes": 20.0, **options})  # type: ignore[arg-type]
