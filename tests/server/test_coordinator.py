from __future__ import annotations

from collections.abc import Iterable

import msgspec
import numpy as np
import pytest
from support.played_phase import (
    CENTRES,
    CLASSES,
    PARAMETERS,
    PHONES,
    Play,
    again,
    make_phones,
    outcome,
    play,
    stored,
    undisturbed,
)
from support.steps import STEPS, Step

from earshot_protocol.errors import (
    InvalidInputError,
    UnexpectedMessageError,
    WrongStateError,
)
from earshot_protocol.geometry import Geometry
from earshot_protocol.messages import Failed, Wait
from earshot_protocol.phases.learning import Cluster
from earshot_server.discovery.interface import FoundCentroids
from earshot_server.discovery.optics import NothingFoundError, Optics
from earshot_server.phases.coordinator import Coordinator
from earshot_server.phases.kinds import decode_snapshot
from earshot_server.phases.learning import LearningPhase
from earshot_server.store.interface import PresentStep
from earshot_server.store.memory import MemoryPhaseStore
from earshot_simulations.engine.ideal import IDEAL

# --------------------------------------------------------------------------- the way it should go


def test_an_undisturbed_phase_publishes_both_scenes() -> None:
    result = undisturbed()
    centroids = result.centroids.array()
    truth = np.linalg.norm(centroids[:, None] - CENTRES, axis=2).argmin(axis=1)
    assert sorted(truth) == [0, 1]
    assert [result.label_names[label] for label in result.labels] == [
        CLASSES[scene] for scene in truth
    ]
    assert result.label_names == CLASSES
    assert result.privacy == PARAMETERS.plan().releases()
    # Every phone knows both, so each of 12 ballots holds a one for each; the noise is small.
    assert all(6 <= votes <= 18 for votes in result.centroid_votes)


def test_votes_are_published_in_the_order_of_the_kept_centroids() -> None:
    game = play(ideal=True)
    game.until(Step.PUBLISHED)
    state, result = game.coordinator.state, game.coordinator.result()
    assert state.centroids is not None
    kept = list(state.top)
    np.testing.assert_array_equal(result.centroids.array(), state.centroids.array()[kept])
    assert result.centroid_votes == tuple(state.centroid_votes[i] for i in kept)
    assert list(result.centroid_votes) == sorted(state.centroid_votes, reverse=True)[: len(kept)]


class Failing(MemoryPhaseStore):
    """A store that fails now and then, before it does anything."""

    def __init__(self) -> None:
        super().__init__()
        self.failing = False

    def replace(
        self,
        phase: bytes,
        snapshot: bytes,
        step: PresentStep,
        tasks: Iterable[tuple[int, bytes]],
        *,
        keep_answers: bool = False,
    ) -> None:
        self._fail()
        super().replace(phase, snapshot, step, tasks, keep_answers=keep_answers)

    def add_answer(self, phase: bytes, number: int, phone: int, answer: bytes) -> None:
        self._fail()
        super().add_answer(phase, number, phone, answer)

    def _fail(self) -> None:
        if self.failing:
            raise OSError("the disk is full")


def test_a_store_that_fails_costs_nothing_once_the_phase_is_loaded_again() -> None:
    store = Failing()
    game = Play(Coordinator.start(store, Optics(), PARAMETERS, now=0.0), make_phones())
    while game.coordinator.step != Step.PUBLISHED:
        unlucky = 3
        first = game.answer(unlucky)
        store.failing = True
        with pytest.raises(OSError, match="full"):
            game.coordinator.accept(unlucky, first)
        store.failing = False
        game.coordinator = again(game.coordinator)
        assert unlucky in game.coordinator.missing()
        assert game.answer(unlucky) == first
        game.answer_all(range(PHONES))
        store.failing = True
        with pytest.raises(OSError, match="full"):
            game.coordinator.advance(game.now)
        store.failing = False
        game.coordinator = again(game.coordinator)
        assert game.coordinator.missing() == set()
        assert game.coordinator.advance(game.now)
    assert outcome(game.coordinator) == undisturbed()


# --------------------------------------------------------------------------------------- the clock


def test_a_step_waits_for_all_or_for_its_deadline() -> None:
    coordinator = play(ideal=True).coordinator
    assert coordinator.missing() == set(range(PHONES))
    before = stored(coordinator).snapshot(coordinator.phase)
    assert not coordinator.advance(99.9)
    assert coordinator.step == Step.LOCAL_CENTROIDS
    assert stored(coordinator).snapshot(coordinator.phase) == before

    game = Play(coordinator, make_phones(IDEAL))
    game.answer_all(range(9))
    assert coordinator.missing() == {9, 10, 11}
    assert not coordinator.advance(99.9)
    assert coordinator.advance(100.0)
    assert coordinator.step == Step.CENTROID_VOTE_ADVERTISE
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
    assert coordinator.step == Step.CENTROID_VOTE_MASK


def test_what_closing_takes_is_not_taken_from_the_next_step() -> None:
    game = play(ideal=True)
    game.answer_all(range(PHONES))
    # Found at 50 s; 200 s of work later, phones have their 100 s all the same.
    assert game.coordinator.advance(50.0, lambda: 250.0)
    assert game.coordinator.state.deadline == 350.0


def test_who_has_answered_or_is_out_waits() -> None:
    game = play(ideal=True)
    for step in STEPS:
        assert game.coordinator.step == step
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
    assert decode_snapshot(stored(coordinator).snapshot(coordinator.phase)[1])[1] == b""
    assert tuple(stored(coordinator).answers(coordinator.phase)) == ()


@pytest.mark.parametrize("step", STEPS)
def test_too_few_phones_fail_the_phase_and_open_nothing(step: Step) -> None:
    assert PARAMETERS.least_survivors == 9
    for stayed in (9, 8):
        game = play()
        game.until(step)
        game.present = set(range(stayed))
        state = game.coordinator.state
        known = (state.centroids, state.centroid_votes, state.label_votes, state.labels)
        game.step()
        if stayed == 9:
            assert game.coordinator.step != Step.FAILED
            continue
        coordinator = game.coordinator
        assert coordinator.step == Step.FAILED
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
        _, snapshot = stored(coordinator).snapshot(coordinator.phase)
        assert decode_snapshot(snapshot)[1] == b""
        assert tuple(stored(coordinator).answers(coordinator.phase)) == ()
        other = again(coordinator)
        assert (other.step, other.state.failure) == (Step.FAILED, reason)


class FindsNothing:
    def discover(self, points: np.ndarray, geometry: Geometry) -> FoundCentroids:
        raise NothingFoundError(f"no cluster among {len(points)} points" + "!" * 2000)


def test_a_phase_in_which_nothing_is_found_fails() -> None:
    store = MemoryPhaseStore()
    coordinator = Coordinator.start(store, FindsNothing(), PARAMETERS, now=0.0)
    game = Play(coordinator, make_phones())
    game.step()
    assert coordinator.step == Step.FAILED
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


def test_a_phase_that_no_store_knows_is_not_loaded() -> None:
    with pytest.raises(InvalidInputError, match="no phase"):
        Coordinator(MemoryPhaseStore(), Optics(), bytes(16)).task_for(0)


def test_a_snapshot_holds_more_published_centroids_than_a_message_does() -> None:
    points = np.arange(2 * 70_000, dtype="<f4").reshape(-1, 2)
    snapshot = LearningPhase(
        phase=bytes(16),
        parameters=PARAMETERS,
        step=Step.PUBLISHED,
        deadline=0.0,
        local=points.tobytes(),
    )
    restored, _ = decode_snapshot(msgspec.msgpack.encode(snapshot))
    assert isinstance(restored, LearningPhase)
    assert np.array_equal(restored.local_centroids(), points)
