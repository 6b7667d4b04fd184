"""Phones, invitations, gatherings, leases: one by one, and many at once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import TypeVar

import msgspec
import pytest
from support.parameters import statistics_parameters
from support.played_phase import PARAMETERS as LEARNING

from earshot_protocol.errors import InvalidInputError
from earshot_protocol.phases.parameters import Parameters
from earshot_server.store.database import Database
from earshot_server.store.interface import PresentStep
from earshot_server.store.postgres import PostgresPhaseStore
from earshot_server.store.registry import Gathering, InvitationUsedUpError, PhoneStanding, Registry

STATISTICS = statistics_parameters()
A, B, C, D = (letter * 16 for letter in (b"A", b"B", b"C", b"D"))
MANY = b"an invitation ok"
FAR = 4e9
T = TypeVar("T")


@pytest.fixture
def registry(database: Database) -> Registry:
    return Registry(database)


class World:
    """A registry, and phases that begin and end."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.registry = Registry(database)
        self.store = PostgresPhaseStore(database)
        self._keys = count()

    def phone(self) -> int:
        return self.registry.enrol(key(next(self._keys)), MANY, 10**6)

    def gather(self, phase: bytes, *phones: int, parameters: Parameters = LEARNING) -> None:
        self.registry.gather(phase, parameters, 3, FAR)
        for phone in phones:
            self.registry.join(phase, phone)

    def joined(self, phase: bytes) -> int:
        rows = self.database.query("SELECT count(*) FROM members WHERE phase = %s", (phase,))
        return int(rows[0][0])

    def begin(self, phase: bytes, *phones: int, parameters: Parameters = LEARNING) -> None:
        self.gather(phase, *phones, parameters=parameters)
        self.registry.end_gathering(phase)
        self.store.create(phase, b"snapshot", PresentStep(0, "step", FAR, 3), [])

    def finish(self, phase: bytes, step: str = "published") -> None:
        self.store.replace(phase, b"last", PresentStep(1, step, FAR, 0, over=True), [])

    def run(self, phase: bytes, *phones: int, parameters: Parameters = LEARNING) -> None:
        self.begin(phase, *phones, parameters=parameters)
        self.finish(phase)


@pytest.fixture
def world(database: Database) -> World:
    return World(database)


def key(number: int) -> bytes:
    return number.to_bytes(32, "big")


def at_once(work: Callable[[int], T], number: int) -> list[T]:
    barrier = threading.Barrier(number)

    def run(index: int) -> T:
        barrier.wait()
        return work(index)

    with ThreadPoolExecutor(number) as pool:
        return list(pool.map(run, range(number)))


# --------------------------------------------------------------------------------- enrolment


def test_a_phone_is_known_by_its_key(registry: Registry) -> None:
    phones = [registry.enrol(key(number), MANY, 3) for number in range(3)]
    assert len(set(phones)) == 3
    assert [registry.public_key(phone) for phone in phones] == [key(n) for n in range(3)]
    assert registry.public_key(max(phones) + 1) is None
    assert registry.public_key(10**30) is None


def test_the_same_key_again_is_the_same_phone_and_uses_nothing(registry: Registry) -> None:
    first = registry.enrol(key(1), MANY, 2)
    assert registry.enrol(key(1), MANY, 2) == first
    assert registry.enrol(key(1), b"another invitati", 1) == first
    registry.enrol(key(2), b"another invitati", 1)
    second = registry.enrol(key(3), MANY, 2)
    # Used up, and still the phones that have enrolled are known.
    assert [registry.enrol(key(n), MANY, 2) for n in (1, 3)] == [first, second]


@pytest.mark.parametrize("uses", [0, 1, 2])
def test_an_invitation_has_so_many_uses(registry: Registry, uses: int) -> None:
    for number in range(uses):
        registry.enrol(key(number), MANY, uses)
    for number in (10, 11):
        with pytest.raises(InvitationUsedUpError, match=f"^{uses} phones have enrolled"):
            registry.enrol(key(number), MANY, uses)
    registry.enrol(key(10), b"another invitati", 1)


def test_uses_are_never_exceeded_by_many_at_once(registry: Registry, database: Database) -> None:
    def enrol(number: int) -> int | None:
        try:
            return registry.enrol(key(number), MANY, 7)
        except InvitationUsedUpError:
            return None

    phones = [phone for phone in at_once(enrol, 16) if phone is not None]
    assert len(phones) == len(set(phones)) == 7
    assert database.query("SELECT count(*) FROM phones") == [(7,)]


def test_one_key_enrolled_by_many_at_once_is_one_phone(registry: Registry) -> None:
    for number in range(5):
        invitation = key(number)[16:]
        phones = at_once(lambda _, n=number, i=invitation: registry.enrol(key(n), i, 2), 8)
        assert len(set(phones)) == 1
        registry.enrol(key(1000 + number), invitation, 2)  # one use was left, and only one
        with pytest.raises(InvitationUsedUpError):
            registry.enrol(key(2000 + number), invitation, 2)


# -------------------------------------------------------------------------------- gatherings


@pytest.mark.parametrize("parameters", [LEARNING, STATISTICS])
def test_a_gathering_comes_back_as_it_was(registry: Registry, parameters: Parameters) -> None:
    choices = (("tram", "bus stop"), ())
    registry.gather(A, parameters, 3, 123.456, choices=choices)
    gathering = Gathering(
        *(A, parameters.phones, 3, 123.456, 0),
        *(msgspec.msgpack.encode(parameters), msgspec.msgpack.encode(choices), False),
    )
    assert registry.gatherings() == (gathering,)
    assert gathering.choices == choices
    assert gathering.parameters == parameters
    with pytest.raises(InvalidInputError, match=A.hex()):
        registry.gather(A, LEARNING, 5, FAR)
    assert registry.gatherings() == (gathering,)


def test_phones_join_in_order_until_it_is_full(world: World) -> None:
    world.gather(A)
    phones = [world.phone() for _ in range(14)]
    joined = [world.registry.join(A, phone) for phone in phones]
    assert joined == [*range(12), None, None]
    assert [world.registry.join(A, phone) for phone in phones] == joined
    assert world.joined(A) == 12
    assert world.registry.gatherings()[0].joined == 12


def test_indices_are_dense_when_many_join_at_once(world: World) -> None:
    parameters = msgspec.structs.replace(LEARNING, phones=50)
    world.gather(A, parameters=parameters)
    phones = [world.phone() for _ in range(60)]
    # Each twice, in two threads.
    joined = at_once(lambda i: [world.registry.join(A, phone) for phone in phones[i % 8 :: 8]], 16)
    assert joined[:8] == joined[8:]
    indices = [index for indices in joined[:8] for index in indices]
    assert sorted(index for index in indices if index is not None) == list(range(50))
    assert indices.count(None) == 10
    assert world.joined(A) == 50


def test_nobody_joins_what_has_ended(world: World) -> None:
    early, late = world.phone(), world.phone()
    world.gather(A, early)
    assert world.registry.end_gathering(A) == 1
    assert world.registry.end_gathering(A) == 1
    assert world.registry.join(A, late) is None
    assert world.registry.join(A, early) == 0
    assert world.registry.join(B, late) is None
    assert world.joined(B) == 0
    with pytest.raises(InvalidInputError, match=B.hex()):
        world.registry.end_gathering(B)


def test_the_end_counts_all_that_joined_at_once(world: World) -> None:
    parameters = msgspec.structs.replace(LEARNING, phones=1000)
    world.gather(A, parameters=parameters)
    phones = [world.phone() for _ in range(200)]
    some = threading.Event()

    def work(index: int) -> int:
        if index == 0:
            assert some.wait(60)
            return world.registry.end_gathering(A)
        joined = 0
        for phone in phones[index - 1 :: 4]:
            joined += world.registry.join(A, phone) is not None
            some.set()
        return joined

    ended, *joined = at_once(work, 5)
    assert ended == sum(joined) == world.joined(A)


def test_a_gathering_is_listed_until_it_has_begun_or_failed(world: World) -> None:
    for phase in (A, B, C):
        world.gather(phase)
        world.registry.end_gathering(phase)  # and whoever did so may have died
    assert [gathering.phase for gathering in world.registry.gatherings()] == [A, B, C]
    world.store.create(A, b"", PresentStep(0, "step", FAR, 3), [])
    world.registry.end_gathering(B, "too few phones")
    assert [gathering.phase for gathering in world.registry.gatherings()] == [C]


def test_a_phase_that_has_begun_cannot_fail_to_begin(world: World) -> None:
    phone = world.phone()
    world.begin(A, phone)
    world.registry.end_gathering(A, "too late")
    assert world.registry.standing(phone).member == (A, 0)


# ---------------------------------------------------------------------------------- standing


def test_nothing_concerns_a_phone_where_there_is_nothing(world: World) -> None:
    nothing = PhoneStanding(None, None, None)
    assert world.registry.standing(world.phone()) == nothing
    assert world.registry.standing(10**6, (A,)) == nothing


def test_a_phone_is_offered_the_oldest_gathering_with_room(world: World) -> None:
    phone, others = world.phone(), [world.phone() for _ in range(12)]
    world.gather(A)
    world.gather(B, *others)
    world.gather(C)
    world.gather(D)
    world.registry.end_gathering(A)
    assert world.registry.standing(phone) == PhoneStanding(None, None, C)
    world.registry.join(C, phone)
    assert world.registry.standing(phone) == PhoneStanding((C, 0), None, None)
    world.registry.end_gathering(C)
    assert world.registry.standing(phone).member == (C, 0)


def test_a_member_is_told_the_ending_until_it_knows_it_then_is_free(world: World) -> None:
    phone, other = world.phone(), world.phone()
    world.begin(A, other, phone)
    world.gather(B)
    assert world.registry.standing(phone) == PhoneStanding((A, 1), None, None)
    world.finish(A)
    assert world.registry.standing(phone) == PhoneStanding(None, A, B)
    assert world.registry.standing(phone, (A,)) == PhoneStanding(None, None, B)
    assert world.registry.standing(other).news == A


def test_a_member_is_told_that_its_phase_failed(world: World) -> None:
    begun, gathered, stranger = world.phone(), world.phone(), world.phone()
    world.begin(A, begun)
    world.finish(A, "failed")
    world.gather(B, gathered)
    world.registry.end_gathering(B, "too few phones")
    assert world.registry.standing(begun) == PhoneStanding(None, A, None)
    assert world.registry.standing(gathered) == PhoneStanding(None, B, None)
    assert world.registry.standing(stranger) == PhoneStanding(None, None, None)
    for phone, phase in ((begun, A), (gathered, B)):
        assert world.registry.standing(phone, (phase,)).news is None


def test_a_stranger_is_told_of_the_newest_result(world: World) -> None:
    phone = world.phone()
    world.run(A)
    world.run(B)
    world.run(C, parameters=STATISTICS)
    world.begin(D)
    world.finish(D, "failed")
    assert world.registry.standing(phone) == PhoneStanding(None, B, None)
    assert world.registry.standing(phone, (A,)).news == B
    assert world.registry.standing(phone, (B,)).news is None
    assert world.registry.standing(phone, (A, B)).news is None


def test_a_phone_that_knows_a_newer_result_is_not_told_an_older_one(world: World) -> None:
    phone = world.phone()
    world.run(A, phone)
    world.run(B, phone)
    assert world.registry.standing(phone).news == B
    assert world.registry.standing(phone, (B,)).news is None


def test_a_phase_that_ended_later_is_news_even_if_it_is_older(world: World) -> None:
    phone = world.phone()
    world.begin(A, phone)
    world.run(B)
    assert world.registry.standing(phone, (B,)) == PhoneStanding((A, 0), None, None)
    world.finish(A)
    assert world.registry.standing(phone, (B,)).news == A


def test_the_ending_of_statistics_is_told_to_its_members(world: World) -> None:
    phone = world.phone()
    world.run(A, phone)
    world.run(B, phone, parameters=STATISTICS)
    assert world.registry.standing(phone, (A,)) == PhoneStanding(None, B, None)
    assert world.registry.standing(phone, (A, B)).news is None


def test_an_ending_that_a_phone_missed_does_not_stop_it_from_joining_another(world: World) -> None:
    phone = world.phone()
    world.run(A, phone)
    world.gather(B, phone)
    assert world.registry.standing(phone) == PhoneStanding((B, 0), A, None)


# ---------------------------------------------------------------------- leases and the past


def test_a_lease_is_one_owners_until_it_expires_or_is_released(registry: Registry) -> None:
    assert registry.lease(A, "one", 60)
    assert registry.lease(A, "one", 60)
    assert not registry.lease(A, "two", 60)
    assert registry.lease(B, "two", 60)
    registry.release(A, "two")
    assert not registry.lease(A, "two", 60)
    registry.release(A, "one")
    assert registry.lease(A, "two", -1)
    assert registry.lease(A, "one", 60)
    assert not registry.lease(A, "two", 60)


def test_a_lease_is_renewed_by_whoever_has_it(registry: Registry) -> None:
    assert not registry.renew(A, "one", 60)
    assert registry.lease(A, "one", -1)
    assert registry.renew(A, "one", 60)
    assert not registry.lease(A, "two", 60)
    assert registry.renew(A, "one", -1)
    assert registry.lease(A, "two", 60)
    assert not registry.renew(A, "one", 60)
    registry.release(A, "two")
    # What was taken over and given back is nobody's, and is not renewed either.
    assert not registry.renew(A, "one", 60)


def test_of_many_at_once_one_has_the_lease(registry: Registry) -> None:
    for round_ in range(5):
        taken = at_once(lambda i, r=round_: registry.lease(key(r)[16:], f"owner {i}", 60), 8)
        assert taken.count(True) == 1
        registry.lease(key(round_)[16:], f"owner {taken.index(True)}", -1)
        again = at_once(lambda i, r=round_: registry.lease(key(r)[16:], f"owner {i}", 60), 8)
        assert again.count(True) == 1


def test_what_is_long_over_is_purged_but_for_its_ending(world: World, database: Database) -> None:
    phone, other = world.phone(), world.phone()
    world.run(A, phone)
    world.gather(B, phone)
    world.registry.end_gathering(B, "too few phones")
    world.begin(C, other)
    world.registry.lease(A, "one", -1)
    world.registry.lease(C, "one", 1000)
    then = database.now()
    world.run(D, phone)
    assert world.registry.purge(0.0) == 0
    assert world.registry.purge(then) == 2
    assert world.registry.purge(then) == 0
    with pytest.raises(InvalidInputError, match=f"{A.hex()} is over"):
        world.store.snapshot(A)
    assert world.store.present_step(A).name == "published"
    assert world.store.snapshot(C) == (0, b"snapshot")
    assert world.store.snapshot(D) == (1, b"last")
    assert database.query("SELECT DISTINCT phase FROM members ORDER BY 1") == [(C,), (D,)]
    assert database.query("SELECT phase FROM leases") == [(C,)]
    assert database.query("SELECT count(*) FROM steps WHERE phase = %s", (A,)) == [(1,)]
    assert world.registry.standing(other).member == (C, 0)
