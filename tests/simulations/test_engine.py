from __future__ import annotations

import msgspec
import numpy as np
import pytest

from earshot_client.store.memory import MemoryStore
from earshot_protocol.errors import WrongStateError
from earshot_protocol.messages import (
    AdvertiseKeys,
    Cluster,
    GlobalCentroids,
    LocalCentroids,
    Matrix,
    Wait,
    decode_answer,
    encode,
)
from earshot_protocol.phase import Budget, Step
from earshot_protocol.privacy.accounting import CENTROID_VOTE, phase_mechanisms
from earshot_protocol.privacy.mechanisms import BallotSum
from earshot_protocol.secure_sum.participant import Participant
from earshot_protocol.voting.sums import vote_sum
from earshot_simulations.engine.ideal import IdealParticipant
from earshot_simulations.engine.local import (
    HeardPoints,
    Job,
    Outcome,
    Scenario,
    answer_all,
    peak_memory,
)
from earshot_simulations.learning.settings import Settings
from earshot_simulations.populations import Blobs, Recordings

PHASE = bytes(16)
PHONES = 30
SETTINGS = Settings(phones=PHONES, recordings=10, scenes=3)
POPULATION = Blobs(PHONES, 10, 3, labelled=0.5, seed=4)
PARAMETERS = SETTINGS.parameters(POPULATION)


def scenario(seed: int = 1, participant: type[Participant] = Participant) -> Scenario:
    return Scenario(POPULATION, seed, participant)


def cluster_jobs(budget: Budget = SETTINGS.budget) -> list[Job]:
    parameters = msgspec.structs.replace(PARAMETERS, budget=budget)
    return [
        Job(phone, b"", encode(Cluster(phase=PHASE, index=phone, parameters=parameters)))
        for phone in range(PHONES)
    ]


def outcomes(
    scenario: Scenario, step: Step, jobs: list[Job], processes: int = 1
) -> dict[int, Outcome]:
    batches = list(answer_all(scenario, step, jobs, processes))
    flat = [outcome for batch in batches for outcome in batch.outcomes]
    assert len({outcome.phone for outcome in flat}) == len(flat)
    return {outcome.phone: outcome for outcome in flat}


def essence(found: dict[int, Outcome]) -> dict[int, tuple[bytes, bytes, str]]:
    return {
        phone: (outcome.state, outcome.answer, outcome.refusal) for phone, outcome in found.items()
    }


def test_every_phone_answers_once_and_the_same_in_any_number_of_processes() -> None:
    jobs = cluster_jobs()
    one = outcomes(scenario(), Step.LOCAL_CENTROIDS, jobs)
    two = outcomes(scenario(), Step.LOCAL_CENTROIDS, jobs, processes=2)
    few = outcomes(scenario(), Step.LOCAL_CENTROIDS, jobs[7:9])
    assert set(one) == set(range(PHONES))
    assert essence(one) == essence(two)
    assert essence(few) == {phone: essence(one)[phone] for phone in (7, 8)}
    for phone, outcome in one.items():
        answer = decode_answer(outcome.answer)
        assert isinstance(answer, LocalCentroids)
        assert answer.sender == phone
        assert outcome.cpu_seconds >= 0
        assert outcome.refusal == ""


def test_seed_and_step_each_bring_noise_of_their_own() -> None:
    jobs = cluster_jobs()
    first = essence(outcomes(scenario(1), Step.LOCAL_CENTROIDS, jobs))
    for other in (
        outcomes(scenario(2), Step.LOCAL_CENTROIDS, jobs),
        outcomes(scenario(1), Step.LABEL_VOTE_ADVERTISE, jobs),
    ):
        changed = essence(other)
        assert all(changed[phone][1] != first[phone][1] for phone in range(PHONES))


class Silence(Blobs):
    """Phones that have heard nothing: all that they publish is noise."""

    def recordings(self, phone: int) -> Recordings:
        none = np.empty(0, dtype=np.int16)
        return Recordings(np.empty((0, 2), dtype=np.float32), none, none)


def test_no_two_phones_share_their_noise() -> None:
    silent = Scenario(Silence(PHONES, 10, 3, labelled=0.5, seed=4), 1, Participant)
    published = set()
    # With less budget, noise throws most of them into the same corners.
    jobs = cluster_jobs(Budget(1000.0, 1.0, 1.0, 1.0))
    for outcome in outcomes(silent, Step.LOCAL_CENTROIDS, jobs).values():
        answer = decode_answer(outcome.answer)
        assert isinstance(answer, LocalCentroids)
        published.add(answer.centroids.data)
    assert len(published) == PHONES


def test_a_phone_goes_on_from_its_state_and_its_recordings() -> None:
    """In the second step it must know its phase and vote with what it heard."""
    started = outcomes(scenario(), Step.LOCAL_CENTROIDS, cluster_jobs())
    centroids = POPULATION.centres
    mechanism = phase_mechanisms(PARAMETERS)[CENTROID_VOTE]
    assert isinstance(mechanism, BallotSum)

    def opening(phone: int) -> bytes:
        advertise = AdvertiseKeys(
            sum_id=bytes(16),
            index=phone,
            parameters=vote_sum(PARAMETERS, mechanism, (len(centroids),)),
        )
        return encode(
            GlobalCentroids(phase=PHASE, centroids=Matrix.of(centroids), advertise=advertise)
        )

    jobs = [Job(phone, outcome.state, opening(phone)) for phone, outcome in started.items()]
    voted = outcomes(
        scenario(participant=IdealParticipant), Step.CENTROID_VOTE_ADVERTISE, jobs, processes=1
    )
    assert all(not outcome.refusal for outcome in voted.values())
    without = [Job(job.phone, b"", job.task) for job in jobs]
    lost = outcomes(scenario(), Step.CENTROID_VOTE_ADVERTISE, without)
    assert all("not in" in outcome.refusal for outcome in lost.values())


def test_a_refusal_keeps_the_state_and_says_why() -> None:
    started = outcomes(scenario(), Step.LOCAL_CENTROIDS, cluster_jobs())
    again = cluster_jobs(Budget(2.0, 2.0, 2.0, 2.0))
    jobs = [Job(job.phone, started[job.phone].state, job.task) for job in again]
    refused = outcomes(scenario(), Step.LOCAL_CENTROIDS, jobs)
    for phone, outcome in refused.items():
        assert outcome.answer == b""
        assert outcome.state == started[phone].state
        assert "released already" in outcome.refusal


def test_simulated_phones_agree_to_any_budget_and_crowd() -> None:
    jobs = cluster_jobs(Budget(1e5, 1e5, 1e5, 1e5))
    rich = outcomes(scenario(), Step.LOCAL_CENTROIDS, jobs)
    assert all(not outcome.refusal for outcome in rich.values())


def test_a_task_that_asks_for_nothing_gets_no_answer() -> None:
    waiting = outcomes(scenario(), Step.LOCAL_CENTROIDS, [Job(0, b"", encode(Wait(seconds=1.0)))])
    assert (waiting[0].answer, waiting[0].refusal) == (b"", "")
    assert MemoryStore.from_bytes(waiting[0].state).ledger() == ()


def test_no_jobs_are_no_work() -> None:
    assert outcomes(scenario(), Step.LOCAL_CENTROIDS, []) == {}


def test_peak_memory_is_in_bytes() -> None:
    held = np.ones(2**23)
    assert held.nbytes < peak_memory() < 2**40


def test_points_are_what_simulated_phones_hear() -> None:
    points = np.ones((3, 2), dtype=np.float32)
    encoder = HeardPoints("blobs", 2)
    assert encoder.project(points, 2) is points
    with pytest.raises(WrongStateError):
        encoder.embed(points)
