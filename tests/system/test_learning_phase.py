"""One learning phase: phones with real cryptography over a coordinator, messages as on the wire."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from support.parameters import learning_parameters
from support.policies import without_budget
from support.steps import STEPS, Step

from earshot_client.labels import LabelHierarchy
from earshot_client.phone import Phone
from earshot_client.store.encrypted import EncryptedStore
from earshot_client.store.memory import MemoryStore
from earshot_protocol.messages import Wait, decode_answer, decode_task
from earshot_protocol.phases.learning import (
    CENTROID_VOTE,
    CLUSTER,
    LABEL_VOTE,
    SELECT,
    Budget,
    Result,
)
from earshot_protocol.phases.plan import SecureSum
from earshot_protocol.privacy.mechanisms import BallotSum
from earshot_protocol.wire import encode
from earshot_server.discovery.optics import Optics
from earshot_server.phases.coordinator import Coordinator
from earshot_server.store.memory import MemoryPhaseStore
from earshot_simulations.engine.interface import HeardPoints

PHONES = 48
ENCRYPTED = (0, 7, 20)
CENTRES = np.array([[-0.6, -0.5], [0.6, -0.4], [0.0, 0.7]])
CLASSES = ("bus", "park", "office")
CHOICES = (("tram", "coach"), ("forest", "garden"), ("desk", "meeting"))
GROUPS = LabelHierarchy(dict(zip(CLASSES, CHOICES, strict=True)))
SILENT = 5
"""A phone that heard nothing."""
GONE = {
    Step.LOCAL_CENTROIDS: {1},
    Step.CENTROID_VOTE_ADVERTISE: {11},
    Step.CENTROID_VOTE_SHARE: {12},
    Step.CENTROID_VOTE_MASK: {13},
    Step.CENTROID_VOTE_UNMASK: {14},
    Step.LABEL_VOTE_SHARE: {32},
    Step.LABEL_VOTE_MASK: {33},
    Step.LABEL_VOTE_UNMASK: {34},
}
"""Who vanishes before answering a step."""
LARGE = 20.0
PARAMETERS = learning_parameters(
    phones=PHONES,
    recordings=12,
    labels=CLASSES,
    local_centroids=3,
    top_local_centroids=2,
    top_global_centroids=3,
    centroid_votes=2,
    label_votes=2,
    dropout=0.2,
    corrupted=0.1,
    budget=Budget(clustering=LARGE, selection=LARGE, centroid_vote=2.0, label_vote=2.0),
)
POLICY = without_budget(least_phones=10)


class Seeded:
    """A source of bytes that starts anew at every step."""

    def __init__(self, phone: int) -> None:
        self._phone = phone
        self.at(Step.LOCAL_CENTROIDS)

    def at(self, step: Step) -> None:
        self._bytes = np.random.default_rng([71, self._phone, STEPS.index(step)]).bytes

    def __call__(self, size: int) -> bytes:
        return self._bytes(size)


@dataclass
class Heard:
    points: np.ndarray
    scenes: np.ndarray
    labelled: np.ndarray


def heard(phone: int) -> Heard:
    random = np.random.default_rng([72, phone])
    count = 0 if phone == SILENT else int(random.integers(6, 15))
    scenes = random.choice(3, count, p=random.dirichlet(np.full(3, 0.7)))
    points = (CENTRES[scenes] + random.normal(0, 0.05, (count, 2))).astype(np.float32)
    return Heard(points, scenes, random.random(count) < 0.5)


@dataclass
class Phase:
    """What there is to look at afterwards."""

    coordinator: Coordinator
    phones: dict[int, Phone]
    random: dict[int, Seeded]
    heard: dict[int, Heard]


def make_phone(number: int, hears: Heard, folder: Path, random: Seeded) -> Phone:
    if number in ENCRYPTED:
        store = EncryptedStore(folder / str(number), bytes(31) + b"k", dimensions=2)
        for point in hears.points:
            store.add(point)
    else:
        store = MemoryStore(hears.points)
    phone = Phone(store, HeardPoints("points", 2), POLICY, hierarchy=GROUPS, random=random)
    for recording in np.flatnonzero(hears.labelled):
        phone.label(int(recording) + 1, CHOICES[hears.scenes[recording]][recording % 2])
    return phone


@pytest.fixture(scope="module")
def phase(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Phase]:
    folder = tmp_path_factory.mktemp("phones")
    sound = {number: heard(number) for number in range(PHONES)}
    random = {number: Seeded(number) for number in range(PHONES)}
    phones = {
        number: make_phone(number, sound[number], folder, random[number])
        for number in range(PHONES)
    }
    coordinator = Coordinator.start(MemoryPhaseStore(), Optics(), PARAMETERS, now=0.0)
    present, now = set(range(PHONES)), 0.0
    for step in STEPS:
        assert coordinator.step == step
        present -= GONE.get(step, set())
        for number in sorted(present):
            random[number].at(step)
            task = decode_task(encode(coordinator.task_for(number)))
            answer = phones[number].answer(task)
            assert answer is not None
            coordinator.accept(number, decode_answer(encode(answer)))
            assert isinstance(coordinator.task_for(number), Wait)
        now += 2 * PARAMETERS.step_seconds
        assert coordinator.advance(now)
    for number in sorted(present):
        assert phones[number].answer(decode_task(encode(coordinator.task_for(number)))) is None
    yield Phase(coordinator, phones, random, sound)
    for phone in phones.values():
        phone.close()


def gone_by(step: Step) -> set[int]:
    return set().union(*(GONE.get(before, set()) for before in STEPS[: STEPS.index(step) + 1]))


def nearest(points: np.ndarray, centroids: np.ndarray) -> np.ndarray:
    return np.linalg.norm(points[:, None] - centroids[None], axis=2).argmin(axis=1)


def best(values: list[int], votes: int) -> list[int]:
    """Places of the largest positive values, the first of equal ones."""
    return sorted((place for place, v in enumerate(values) if v), key=lambda i: -values[i])[:votes]


def noise(vote: str, step: Step, phone: int, shape: tuple[int, ...]) -> np.ndarray:
    budget = PARAMETERS.budget
    epsilon = budget.centroid_vote if vote == CENTROID_VOTE else budget.label_vote
    # (1 − 0.2 − 0.1) · 48 = 33.6 honest phones stay: 34.
    mechanism = BallotSum(epsilon, votes=2, honest_survivors=34)
    random = Seeded(phone)
    random.at(step)
    share = mechanism.noise_share(shape, random)
    part = PARAMETERS.plan().part(vote)
    assert isinstance(part, SecureSum)
    assert np.abs(share).max() < PARAMETERS.sum_parameters(part, shape).bound
    return share


def test_the_phase_is_published_with_the_right_labels(phase: Phase) -> None:
    assert phase.coordinator.step == Step.PUBLISHED
    result = phase.coordinator.result()
    centroids = result.centroids.array()
    truth = nearest(centroids, CENTRES)
    assert sorted(truth) == [0, 1, 2]
    assert np.linalg.norm(centroids - CENTRES[truth], axis=1).max() < 0.1
    assert [result.label_names[label] for label in result.labels] == [CLASSES[i] for i in truth]


def test_the_centroid_vote_is_the_sum_of_ballots_and_noise_of_a2(phase: Phase) -> None:
    state = phase.coordinator.state
    assert state.centroids is not None
    centroids = state.centroids.array()
    voters = set(range(PHONES)) - gone_by(Step.CENTROID_VOTE_MASK)
    assert {14, SILENT} < voters
    assert not {1, 11, 12, 13} & voters
    total = np.zeros(len(centroids), dtype=np.int64)
    for phone in voters:
        near = nearest(phase.heard[phone].points, centroids)
        ballot = np.zeros_like(total)
        ballot[best([int((near == c).sum()) for c in range(len(centroids))], 2)] = 1
        # The ballot is cast, and its noise drawn, when the vote opens.
        opening = Step.CENTROID_VOTE_ADVERTISE
        total += ballot + noise(CENTROID_VOTE, opening, phone, total.shape)
    assert state.centroid_votes == tuple(total)
    ranked = sorted(range(len(total)), key=lambda i: (-total[i], i))
    assert state.top == tuple(ranked[:3])


def test_the_label_vote_is_the_sum_of_ballots_and_noise_of_a2(phase: Phase) -> None:
    result = phase.coordinator.result()
    centroids = result.centroids.array()
    voters = set(range(PHONES)) - gone_by(Step.LABEL_VOTE_MASK)
    assert {34, SILENT} < voters
    total = np.zeros((3, 3), dtype=np.int64)
    for phone in voters:
        hears = phase.heard[phone]
        near = nearest(hears.points[hears.labelled], centroids)
        table = np.zeros_like(total)
        for centroid, scene in zip(near, hears.scenes[hears.labelled], strict=True):
            table[centroid, scene] += 1
        ballot = np.zeros_like(total)
        for centroid in best([int(row.max()) for row in table], 2):
            ballot[centroid, int(table[centroid].argmax())] = 1
        total += ballot + noise(LABEL_VOTE, Step.LABEL_VOTE_ADVERTISE, phone, total.shape)
    assert result.label_votes == tuple(map(tuple, total.tolist()))


def test_the_noise_is_not_nothing(phase: Phase) -> None:
    """Or the two tests above would show little."""
    shares = [
        noise(CENTROID_VOTE, Step.CENTROID_VOTE_ADVERTISE, phone, (3,)) for phone in range(PHONES)
    ]
    assert sum(bool(share.any()) for share in shares) >= 3


def test_every_phone_that_stayed_keeps_the_result_and_has_paid_for_it(phase: Phase) -> None:
    result = phase.coordinator.result()
    assert result.privacy == PARAMETERS.plan().releases()
    for number in set(range(PHONES)) - gone_by(Step.LABEL_VOTE_UNMASK):
        phone = phase.phones[number]
        assert phone.result == result
        # Some phones hold more recordings than the phase says, and count them.
        held = len(phone._store.recordings()[0])
        expenses = PARAMETERS.plan().expenses(held)
        assert phone.ledger.releases == tuple(expense.release for expense in expenses)
        assert isinstance(phone.result, Result)


def test_a_phone_that_vanished_has_paid_for_what_left_it(phase: Phase) -> None:
    paid = {
        number: {release.step for release in phase.phones[number].ledger.releases}
        for number in gone_by(Step.LABEL_VOTE_UNMASK)
    }
    local, first, both = {CLUSTER, SELECT}, {CENTROID_VOTE}, {CENTROID_VOTE, LABEL_VOTE}
    assert paid == {
        1: set(),
        11: local,
        12: local,
        13: local,
        14: local | first,
        32: local | first,
        33: local | first,
        34: local | both,
    }
    assert all(phase.phones[number].result is None for number in paid)


def test_local_centroids_of_those_who_answered_are_all_that_discovery_saw(phase: Phase) -> None:
    state = phase.coordinator.state
    published = state.local_centroids()
    assert published is not None
    assert len(published) == 2 * (PHONES - 1) == len(state.clusters)
