from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import msgspec
import numpy as np
import pytest

from earshot_client.labels import LabelHierarchy
from earshot_client.memory_store import MemoryStore
from earshot_client.phone import Phone
from earshot_client.policy import Policy
from earshot_protocol.errors import (
    InvalidInputError,
    InvalidParametersError,
    MalformedMessageError,
    RemoteError,
    RepeatedMessageError,
    UnexpectedMessageError,
    WrongStateError,
)
from earshot_protocol.geometry import Geometry
from earshot_protocol.messages import (
    AdvertisedKeys,
    Answer,
    Cluster,
    Failed,
    LocalCentroids,
    MaskedInput,
    Matrix,
    Result,
    SharedKeys,
    Unmasked,
    Wait,
    decode_answer,
    encode,
)
from earshot_protocol.phase import STEPS, Budget, PhaseParameters, Step
from earshot_protocol.privacy.accounting import phase_releases
from earshot_protocol.secure_sum.aggregator import Aggregator
from earshot_protocol.secure_sum.participant import Participant
from earshot_server.coordinator import Coordinator, Snapshot, check_feasible, least_answers
from earshot_server.discovery.interface import Discovered
from earshot_server.discovery.optics import NothingFoundError, Optics
from earshot_server.store.memory import MemoryPhaseStore
from earshot_simulations.engine import HeardPoints
from earshot_simulations.ideal import IdealAggregator, IdealParticipant

PHONES = 12
CENTRES = np.array([[-0.6, -0.5], [0.6, 0.4]])
CLASSES = ("bus", "park")
PARAMETERS = PhaseParameters(
    phones=PHONES,
    recordings=12,
    dimensions=2,
    geometry=Geometry.EUCLIDEAN,
    encoder="points",
    labels=CLASSES,
    local_centroids=2,
    top_local_centroids=2,
    top_global_centroids=2,
    centroid_votes=2,
    label_votes=2,
    dropout=0.25,
    corrupted=0.05,
    budget=Budget(clustering=40.0, selection=40.0, centroid_vote=2.0, label_vote=2.0),
    step_seconds=100.0,
)
POLICY = Policy(
    least_phones=3,
    largest_epsilon=1e6,
    largest_delta=1.0,
    largest_lifetime_epsilon=1e6,
    largest_lifetime_delta=1.0,
)


def make_phones(
    participant: type[Participant] = Participant, labelled: bool = True
) -> dict[int, Phone]:
    phones = {}
    for number in range(PHONES):
        random = np.random.default_rng([81, number])
        scenes = np.arange(12) % 2
        points = CENTRES[scenes] + random.normal(0, 0.05, (12, 2))
        choices = [CLASSES[scene] if labelled else None for scene in scenes]
        phones[number] = Phone(
            MemoryStore(points.astype(np.float32), choices),
            HeardPoints("points", 2),
            POLICY,
            hierarchy=LabelHierarchy.flat(CLASSES),
            random=random.bytes,
            participant=participant,
        )
    return phones


def no_change(coordinator: Coordinator) -> Coordinator:
    return coordinator


@dataclass
class Play:
    """A phase that goes from step to step; `disturb` may put another coordinator in the place."""

    coordinator: Coordinator
    phones: Mapping[int, Phone]
    present: set[int] = field(default_factory=lambda: set(range(PHONES)))
    disturb: Callable[[Coordinator], Coordinator] = no_change
    now: float = 0.0

    def answer(self, number: int) -> Answer:
        answer = self.phones[number].answer(self.coordinator.task_for(number))
        assert answer is not None
        return answer

    def answer_all(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            self.coordinator.accept(number, self.answer(number))

    def step(self) -> None:
        """Half of the answers, a disturbance, the others, the end of the step, a disturbance."""
        order = sorted(self.present, key=lambda number: number * 5 % PHONES)
        self.answer_all(order[: len(order) // 2])
        self.coordinator = self.disturb(self.coordinator)
        self.answer_all(order[len(order) // 2 :])
        self.coordinator = self.disturb(self.coordinator)
        self.now += 1000.0
        assert self.coordinator.advance(self.now)
        self.coordinator = self.disturb(self.coordinator)

    def until(self, step: Step) -> None:
        while self.coordinator.step is not step:
            self.step()


def play(ideal: bool = False, parameters: PhaseParameters = PARAMETERS) -> Play:
    participant, aggregator = (
        (IdealParticipant, IdealAggregator) if ideal else (Participant, Aggregator)
    )
    coordinator = Coordinator.start(
        MemoryPhaseStore(), Optics(), parameters, now=0.0, aggregator=aggregator
    )
    return Play(coordinator, make_phones(participant))


def stored(coordinator: Coordinator) -> MemoryPhaseStore:
    store = coordinator._store
    assert isinstance(store, MemoryPhaseStore)
    return store


def outcome(coordinator: Coordinator) -> Result:
    """The result, under a name that all phases share."""
    return msgspec.structs.replace(coordinator.result(), phase=bytes(16))


@pytest.fixture(scope="module")
def undisturbed() -> Result:
    """What the phase publishes when nothing happens to it."""
    game = play()
    game.until(Step.PUBLISHED)
    return outcome(game.coordinator)


# --------------------------------------------------------------------------- the way it should go


def test_an_undisturbed_phase_publishes_both_scenes(undisturbed: Result) -> None:
    centroids = undisturbed.centroids.array()
    truth = np.linalg.norm(centroids[:, None] - CENTRES, axis=2).argmin(axis=1)
    assert sorted(truth) == [0, 1]
    assert [undisturbed.label_names[label] for label in undisturbed.labels] == [
        CLASSES[scene] for scene in truth
    ]
    assert undisturbed.label_names == CLASSES
    assert undisturbed.privacy == phase_releases(PARAMETERS)
    # Every phone knows both, so each of 12 ballots holds a one for each; the noise is small.
    assert all(6 <= votes <= 18 for votes in undisturbed.centroid_votes)


def test_real_and_ideal_sums_publish_the_same(undisturbed: Result) -> None:
    game = play(ideal=True)
    game.until(Step.PUBLISHED)
    assert outcome(game.coordinator) == undisturbed


def test_votes_are_published_in_the_order_of_the_kept_centroids() -> None:
    game = play(ideal=True)
    game.until(Step.PUBLISHED)
    state, result = game.coordinator.state, game.coordinator.result()
    assert state.centroids is not None
    kept = list(state.top)
    np.testing.assert_array_equal(result.centroids.array(), state.centroids.array()[kept])
    assert result.centroid_votes == tuple(state.centroid_votes[i] for i in kept)
    assert list(result.centroid_votes) == sorted(state.centroid_votes, reverse=True)[: len(kept)]


@pytest.mark.parametrize("aggregator", [Aggregator, IdealAggregator])
def test_killed_after_every_half_and_every_step_it_publishes_the_same(
    aggregator: type[Aggregator], undisturbed: Result
) -> None:
    game = play(ideal=aggregator is IdealAggregator)
    kills = 0

    def kill(coordinator: Coordinator) -> Coordinator:
        nonlocal kills
        kills += 1
        again = Coordinator.load(
            stored(coordinator), Optics(), coordinator.phase, aggregator=aggregator
        )
        assert again.step is coordinator.step
        assert again.missing() == coordinator.missing()
        assert [again.task_for(i) for i in range(PHONES)] == [
            coordinator.task_for(i) for i in range(PHONES)
        ]
        return again

    game.disturb = kill
    game.until(Step.PUBLISHED)
    assert kills == 3 * len(STEPS)
    assert outcome(game.coordinator) == undisturbed


class Failing(MemoryPhaseStore):
    """A store that fails now and then, before it does anything."""

    def __init__(self) -> None:
        super().__init__()
        self.failing = False

    def replace(self, phase: bytes, snapshot: bytes) -> None:
        self._fail()
        super().replace(phase, snapshot)

    def add_answer(self, phase: bytes, phone: int, answer: bytes) -> None:
        self._fail()
        super().add_answer(phase, phone, answer)

    def _fail(self) -> None:
        if self.failing:
            raise OSError("the disk is full")


def test_a_store_that_fails_costs_nothing_once_the_phase_is_loaded_again(
    undisturbed: Result,
) -> None:
    store = Failing()
    game = Play(Coordinator.start(store, Optics(), PARAMETERS, now=0.0), make_phones())
    while game.coordinator.step is not Step.PUBLISHED:
        unlucky = 3
        first = game.answer(unlucky)
        store.failing = True
        with pytest.raises(OSError, match="full"):
            game.coordinator.accept(unlucky, first)
        store.failing = False
        game.coordinator = Coordinator.load(store, Optics(), game.coordinator.phase)
        assert unlucky in game.coordinator.missing()
        assert game.answer(unlucky) == first
        game.answer_all(range(PHONES))
        store.failing = True
        with pytest.raises(OSError, match="full"):
            game.coordinator.advance(game.now)
        store.failing = False
        game.coordinator = Coordinator.load(store, Optics(), game.coordinator.phase)
        assert game.coordinator.missing() == set()
        assert game.coordinator.advance(game.now)
    assert outcome(game.coordinator) == undisturbed


# --------------------------------------------------------------------------------------- the clock


def test_a_step_waits_for_all_or_for_its_deadline() -> None:
    coordinator = play(ideal=True).coordinator
    assert coordinator.missing() == set(range(PHONES))
    before = stored(coordinator).snapshot(coordinator.phase)
    assert not coordinator.advance(99.9)
    assert coordinator.step is Step.LOCAL_CENTROIDS
    assert stored(coordinator).snapshot(coordinator.phase) == before

    game = Play(coordinator, make_phones(IdealParticipant))
    game.answer_all(range(9))
    assert coordinator.missing() == {9, 10, 11}
    assert not coordinator.advance(99.9)
    assert coordinator.advance(100.0)
    assert coordinator.step is Step.CENTROID_VOTE_ADVERTISE
    assert coordinator.state.deadline == 200.0
    game.answer_all(range(9))
    assert not coordinator.advance(199.0)
    assert coordinator.advance(230.0)
    # From now on, not from the deadline that has passed.
    assert coordinator.state.deadline == 330.0
    # Whoever did not advertise is not waited for, and all others have answered: no need to wait.
    assert coordinator.missing() == set(range(9))
    game.answer_all(range(9))
    assert coordinator.missing() == set()
    assert coordinator.advance(231.0)
    assert coordinator.step is Step.CENTROID_VOTE_MASK


def test_who_has_answered_or_is_out_waits() -> None:
    game = play(ideal=True)
    for step in STEPS:
        assert game.coordinator.step is step
        task = game.coordinator.task_for(0)
        assert not isinstance(task, Wait)
        assert game.coordinator.task_for(0) == task
        game.answer_all([0])
        waiting = game.coordinator.task_for(0)
        assert isinstance(waiting, Wait)
        assert 0 < waiting.seconds <= PARAMETERS.step_seconds
        game.present.discard(0)
        if step is Step.CENTROID_VOTE_SHARE:
            game.present.discard(11)
        game.step()
        game.present.add(0)
        if step is Step.CENTROID_VOTE_SHARE:
            assert isinstance(game.coordinator.task_for(11), Wait)
            assert 11 not in game.coordinator.missing()


# ------------------------------------------------------------------------------------- the ends


def test_after_the_end_everybody_gets_the_result_and_nothing_is_taken() -> None:
    game = play(ideal=True)
    with pytest.raises(WrongStateError, match="no result"):
        game.coordinator.result()
    game.until(Step.LABEL_VOTE_UNMASK)
    last = game.answer(0)
    game.until(Step.PUBLISHED)
    coordinator = game.coordinator
    for number in range(PHONES):
        assert coordinator.task_for(number) == coordinator.result()
    assert coordinator.missing() == set()
    assert not coordinator.advance(1e12)
    with pytest.raises(UnexpectedMessageError, match="published"):
        coordinator.accept(0, last)
    assert coordinator.state.sum == b""
    assert stored(coordinator).answers(coordinator.phase) == ()


@pytest.mark.parametrize("step", STEPS)
def test_too_few_phones_fail_the_phase_and_open_nothing(step: Step) -> None:
    assert least_answers(PARAMETERS) == 9
    for stayed in (9, 8):
        game = play()
        game.until(step)
        game.present = set(range(stayed))
        state = game.coordinator.state
        known = (state.centroids, state.centroid_votes, state.label_votes, state.labels)
        game.step()
        if stayed == 9:
            assert game.coordinator.step is not Step.FAILED
            continue
        coordinator = game.coordinator
        assert coordinator.step is Step.FAILED
        reason = coordinator.state.failure
        assert "8 of 12" in reason
        assert "9" in reason
        assert known == (state.centroids, state.centroid_votes, state.label_votes, state.labels)
        assert (state.centroids is None) == (step is Step.LOCAL_CENTROIDS)
        with pytest.raises(WrongStateError, match="failed"):
            coordinator.result()
        for number in range(PHONES):
            task = coordinator.task_for(number)
            assert task == Failed(phase=coordinator.phase, reason=reason)
            assert game.phones[number].answer(task) is None
        assert not coordinator.advance(1e12)
        assert coordinator.missing() == set()
        # The keys and inputs of a sum that failed are not kept.
        snapshot = stored(coordinator).snapshot(coordinator.phase)
        assert msgspec.msgpack.decode(snapshot, type=Snapshot).sum == b""
        assert stored(coordinator).answers(coordinator.phase) == ()
        again = Coordinator.load(stored(coordinator), Optics(), coordinator.phase)
        assert (again.step, again.state.failure) == (Step.FAILED, reason)


class FindsNothing:
    def discover(self, points: np.ndarray, geometry: Geometry) -> Discovered:
        raise NothingFoundError(f"no cluster among {len(points)} points" + "!" * 2000)


def test_a_phase_in_which_nothing_is_found_fails() -> None:
    store = MemoryPhaseStore()
    coordinator = Coordinator.start(store, FindsNothing(), PARAMETERS, now=0.0)
    game = Play(coordinator, make_phones())
    game.step()
    assert coordinator.step is Step.FAILED
    assert coordinator.state.failure.startswith("no cluster among 24 points")
    failed = coordinator.task_for(0)
    assert isinstance(failed, Failed)
    assert len(failed.reason) == 1024
    assert coordinator.state.centroids is None


def test_a_label_that_nobody_votes_for_is_none() -> None:
    quiet = msgspec.structs.replace(
        PARAMETERS, budget=msgspec.structs.replace(PARAMETERS.budget, label_vote=2000.0)
    )
    coordinator = Coordinator.start(MemoryPhaseStore(), Optics(), quiet, now=0.0)
    game = Play(coordinator, make_phones(labelled=False))
    game.until(Step.PUBLISHED)
    assert coordinator.result().label_votes == ((0, 0), (0, 0))
    assert coordinator.result().labels == (-1, -1)


# -------------------------------------------------------------------------------- bad answers

NOT_A_NUMBER = np.array([np.nan] * 4, dtype="<f4").tobytes()
ONES = np.ones(4, dtype="<f4").tobytes()


def malformed(answer: Answer) -> list[Answer]:
    """The same answer with fields of the wrong size or value."""
    replace = msgspec.structs.replace
    match answer:
        case LocalCentroids():
            matrices = (
                Matrix(2, 2, NOT_A_NUMBER),
                Matrix(2, 2, ONES[:-4]),
                Matrix(2, 2, b""),
                Matrix(4, 1, ONES),
                Matrix(1, 2, ONES[:8]),
                Matrix(0, 2, b""),
            )
            return [replace(answer, centroids=matrix) for matrix in matrices]
        case AdvertisedKeys():
            return [
                replace(answer, mask_key=answer.cipher_key),
                replace(answer, mask_key=bytes(32)),
            ]
        case SharedKeys():
            return [replace(answer, ciphertexts=answer.ciphertexts[1:])]
        case MaskedInput():
            return [
                replace(answer, vector=answer.vector + b"\0"),
                replace(answer, vector=answer.vector[1:]),
                replace(answer, vector=b""),
            ]
        case Unmasked():
            return [
                replace(answer, shares=answer.shares + b"\0"),
                replace(answer, shares=answer.shares[:-33]),
            ]


def foreign(answer: Answer) -> Answer:
    """The same answer to another phase or sum."""
    if isinstance(answer, LocalCentroids):
        return msgspec.structs.replace(answer, phase=b"another phase!!!")
    return msgspec.structs.replace(answer, sum_id=b"another sum!!!!!")


def premature(answer: Answer) -> Answer:
    """An answer that belongs to a later round of the sum that is under way."""
    sum_id = bytes(16) if isinstance(answer, LocalCentroids) else answer.sum_id
    if isinstance(answer, Unmasked):
        return LocalCentroids(phase=bytes(16), sender=answer.sender, centroids=Matrix(2, 2, ONES))
    return Unmasked(sum_id=sum_id, sender=answer.sender, shares=b"")


class Attacked:
    """Sends bad answers at a coordinator, each of which must be refused and change nothing."""

    def __init__(self, game: Play) -> None:
        self.game = game
        self.coordinator = game.coordinator
        self.past: list[Answer] = []
        self.refused = 0

    def refuses(self, phone: int, answer: Answer, error: type[RemoteError]) -> None:
        coordinator = self.coordinator
        before = self.seen()
        with pytest.raises(error) as raised:
            coordinator.accept(phone, answer)
        assert raised.type is error
        assert str(raised.value)
        assert self.seen() == before
        self.refused += 1

    def seen(self) -> tuple[object, ...]:
        coordinator, store = self.coordinator, stored(self.coordinator)
        return (
            store.snapshot(coordinator.phase),
            store.answers(coordinator.phase),
            coordinator.missing(),
            msgspec.msgpack.encode(coordinator.state),
            coordinator._sum.save() if coordinator._sum else b"",
        )

    def attack(self, phone: int, other: int) -> None:
        """Before and after the phone's good answer of this step."""
        good, others = self.game.answer(phone), self.game.answer(other)
        for bad in malformed(good):
            if bad != good:  # an ideal sum has no ciphertexts and shares to leave out
                self.refuses(phone, bad, MalformedMessageError)
        stolen = msgspec.structs.replace(good, sender=other)
        for bad in (foreign(good), premature(good), stolen, others):
            self.refuses(phone, bad, UnexpectedMessageError)
        for late in self.past:
            self.refuses(phone, late, UnexpectedMessageError)
        for stranger in (PHONES, -1):
            theirs = msgspec.structs.replace(good, sender=stranger)
            self.refuses(stranger, theirs, UnexpectedMessageError)
        self.coordinator.accept(phone, decode_answer(encode(good)))
        self.refuses(phone, good, RepeatedMessageError)
        self.past.append(good)


@pytest.mark.parametrize("ideal", [False, True])
def test_bad_answers_are_refused_by_name_and_change_nothing(
    ideal: bool, undisturbed: Result
) -> None:
    game = play(ideal)
    attacked = Attacked(game)
    everybody = set(range(PHONES))
    for step in STEPS:
        assert game.coordinator.step is step
        attacked.attack(phone=4, other=7)
        game.present = everybody - {4}
        game.step()
    assert attacked.refused > 5 * len(STEPS)
    assert outcome(game.coordinator) == undisturbed


def test_who_missed_a_round_is_out_of_this_sum_and_back_in_the_next() -> None:
    game = play()
    game.until(Step.CENTROID_VOTE_SHARE)
    game.present.remove(3)
    late = game.answer(3)
    game.step()
    attacked = Attacked(game)
    attacked.refuses(3, late, UnexpectedMessageError)
    assert isinstance(late, SharedKeys)
    sneaked = MaskedInput(sum_id=late.sum_id, sender=3, vector=b"")
    attacked.refuses(3, sneaked, UnexpectedMessageError)
    game.until(Step.LABEL_VOTE_ADVERTISE)
    assert 3 in game.coordinator.missing()
    assert not isinstance(game.coordinator.task_for(3), Wait)


@pytest.mark.parametrize("phone", [-1, PHONES, 10**9])
def test_a_phone_that_is_not_enrolled_has_no_task(phone: int) -> None:
    game = play(ideal=True)
    for _ in range(2):
        with pytest.raises(UnexpectedMessageError, match="not enrolled"):
            game.coordinator.task_for(phone)
        game.step()


# --------------------------------------------------------------------------------------- the start


def test_a_phase_opens_with_its_parameters() -> None:
    store = MemoryPhaseStore()
    coordinator = Coordinator.start(store, Optics(), PARAMETERS, now=5.0)
    assert store.phases() == (coordinator.phase,)
    assert len(coordinator.phase) == 16
    assert coordinator.state.deadline == 105.0
    assert coordinator.task_for(3) == Cluster(
        phase=coordinator.phase, index=3, parameters=PARAMETERS
    )
    other = Coordinator.start(store, Optics(), PARAMETERS, now=5.0)
    assert store.phases() == (coordinator.phase, other.phase)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"phones": 2}, "phones=2"),
        ({"dropout": 0.6, "corrupted": 0.5}, "together"),
        ({"dropout": 0.7}, "dropout"),
        ({"centroid_votes": 3}, "centroid_votes=3"),
        ({"budget": Budget(1.0, 1.0, 1e-5, 1.0)}, "budget centroid-vote=1e-05.*at least 0.000122"),
        ({"budget": Budget(1.0, 1.0, 1.0, 1e-5)}, "budget label-vote=1e-05.*at least 0.000122"),
    ],
)
def test_a_phase_that_cannot_run_is_not_started(changed: dict[str, object], message: str) -> None:
    store = MemoryPhaseStore()
    parameters = msgspec.structs.replace(PARAMETERS, **changed)
    with pytest.raises(InvalidParametersError, match=message):
        Coordinator.start(store, Optics(), parameters, now=0.0)
    with pytest.raises(InvalidParametersError, match=message):
        check_feasible(parameters)
    assert store.phases() == ()


def test_a_phase_that_no_store_knows_is_not_loaded() -> None:
    with pytest.raises(InvalidInputError, match="no phase"):
        Coordinator.load(MemoryPhaseStore(), Optics(), bytes(16))


def test_a_snapshot_holds_more_published_centroids_than_a_message_does() -> None:
    points = np.arange(2 * 70_000, dtype="<f4").reshape(-1, 2)
    snapshot = Snapshot(bytes(16), PARAMETERS, Step.PUBLISHED, 0.0, local=points.tobytes())
    restored = msgspec.msgpack.decode(msgspec.msgpack.encode(snapshot), type=Snapshot)
    assert np.array_equal(restored.local_centroids(), points)
