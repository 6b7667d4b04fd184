from __future__ import annotations

import msgspec
import numpy as np
import pytest
from joblib import Parallel, delayed
from joblib.externals.loky import get_reusable_executor
from support.steps import STEPS, Step

from earshot_client.store.memory import MemoryStore
from earshot_protocol.errors import WrongStateError
from earshot_protocol.geometry import Geometry
from earshot_protocol.messages import Wait, decode_answer
from earshot_protocol.phases.learning import (
    CENTROID_VOTE,
    Budget,
    Cluster,
    GlobalCentroids,
    LocalCentroids,
)
from earshot_protocol.phases.learning_budget import BUDGETS
from earshot_protocol.phases.plan import SecureSum
from earshot_protocol.secure_sum.bell import BELL
from earshot_protocol.secure_sum.interface import Summation
from earshot_protocol.secure_sum.messages import AdvertiseKeys
from earshot_protocol.wire import Matrix, encode
from earshot_simulations.engine.ideal import IDEAL
from earshot_simulations.engine.interface import AGREES, HeardPoints, PhoneOutcome, Scenario
from earshot_simulations.engine.local import LocalEngine
from earshot_simulations.phases.settings import Discovery, Settings
from earshot_simulations.populations import Blobs, Recordings

PHASE = bytes(16)
PHONES = 30
SETTINGS = Settings(
    discovery=Discovery.LOCAL, phones=PHONES, recordings=10, scenes=3, corrupted=0.0
)
POPULATION = Blobs(PHONES, 10, 3, labelled=0.5, seed=4)
PARAMETERS = SETTINGS.parameters(POPULATION)


def engine(
    seed: int = 1,
    population: Blobs = POPULATION,
    processes: int = 1,
    summation: Summation = BELL,
) -> LocalEngine:
    return LocalEngine(Scenario(population, seed, summation, AGREES), processes)


def cluster_tasks(budget: Budget = BUDGETS[Geometry.EUCLIDEAN]) -> dict[int, bytes]:
    parameters = msgspec.structs.replace(PARAMETERS, budget=budget)
    return {
        phone: encode(Cluster(phase=PHASE, index=phone, parameters=parameters))
        for phone in range(PHONES)
    }


def outcomes(
    engine: LocalEngine, tasks: dict[int, bytes], step: Step = Step.LOCAL_CENTROIDS
) -> dict[int, PhoneOutcome]:
    batches = list(engine.answer(STEPS.index(step), tasks.items()))
    flat = [outcome for batch in batches for outcome in batch]
    assert len({outcome.phone for outcome in flat}) == len(flat)
    return {outcome.phone: outcome for outcome in flat}


def states(engine: LocalEngine) -> dict[int, bytes]:
    """Of all phones that have answered."""
    assert engine._place is not None
    files = engine._place.states
    return {
        phone: state
        for shard, (_, newest) in enumerate(engine._versions)
        for phone, state in files.read(shard, newest).items()
    }


def essence(
    engine: LocalEngine, outcomes: dict[int, PhoneOutcome]
) -> dict[int, tuple[bytes, bytes, str]]:
    kept = states(engine)
    return {
        phone: (kept[phone], outcome.answer, outcome.refusal) for phone, outcome in outcomes.items()
    }


def test_every_phone_answers_once_and_the_same_in_any_number_of_processes() -> None:
    tasks = cluster_tasks()
    alone, both, some = engine(), engine(processes=2), engine()
    one = outcomes(alone, tasks)
    two = outcomes(both, tasks)
    few = outcomes(some, {phone: tasks[phone] for phone in (7, 8)})
    assert set(one) == set(range(PHONES))
    assert essence(alone, one) == essence(both, two)
    assert essence(some, few) == {phone: essence(alone, one)[phone] for phone in (7, 8)}
    for phone, outcome in one.items():
        answer = decode_answer(outcome.answer)
        assert isinstance(answer, LocalCentroids)
        assert answer.sender == phone
        assert outcome.cpu_seconds >= 0
        assert outcome.refusal == ""


def test_seed_and_step_each_bring_noise_of_their_own() -> None:
    tasks = cluster_tasks()
    first = outcomes(engine(1), tasks)
    for other in (
        outcomes(engine(2), tasks),
        outcomes(engine(1), tasks, Step.LABEL_VOTE_ADVERTISE),
    ):
        assert all(other[phone].answer != first[phone].answer for phone in range(PHONES))


class Silence(Blobs):
    """Phones that have heard nothing: all that they publish is noise."""

    def recordings(self, phone: int) -> Recordings:
        none = np.empty(0, dtype=np.int16)
        return Recordings(np.empty((0, 2), dtype=np.float32), none, none)


def test_no_two_phones_share_their_noise() -> None:
    silent = engine(population=Silence(PHONES, 10, 3, labelled=0.5, seed=4))
    published = set()
    # With less budget, noise throws most of them into the same corners.
    for outcome in outcomes(silent, cluster_tasks(Budget(1000.0, 1.0, 1.0, 1.0))).values():
        answer = decode_answer(outcome.answer)
        assert isinstance(answer, LocalCentroids)
        published.add(answer.centroids.data)
    assert len(published) == PHONES


def test_a_phone_goes_on_from_its_state_and_its_recordings() -> None:
    """In the second step it must know its phase and vote with what it heard."""
    centroids = POPULATION.centres
    part = PARAMETERS.plan().part(CENTROID_VOTE)
    assert isinstance(part, SecureSum)

    def vote(phone: int) -> bytes:
        advertise = AdvertiseKeys(
            sum_id=bytes(16),
            index=phone,
            parameters=PARAMETERS.sum_parameters(part, (len(centroids),)),
        )
        return encode(
            GlobalCentroids(phase=PHASE, centroids=Matrix.of(centroids), opening=advertise)
        )

    tasks = {phone: vote(phone) for phone in range(PHONES)}
    started = engine(summation=IDEAL)
    outcomes(started, cluster_tasks())
    voted = outcomes(started, tasks, Step.CENTROID_VOTE_ADVERTISE)
    assert all(not outcome.refusal for outcome in voted.values())
    lost = outcomes(engine(), tasks, Step.CENTROID_VOTE_ADVERTISE)
    assert all("not in" in outcome.refusal for outcome in lost.values())


def test_a_refusal_keeps_the_state_and_says_why() -> None:
    started = engine()
    outcomes(started, cluster_tasks())
    before = states(started)
    refused = outcomes(started, cluster_tasks(Budget(2.0, 2.0, 2.0, 2.0)))
    assert states(started) == before
    for outcome in refused.values():
        assert outcome.answer == b""
        assert "released already" in outcome.refusal


def test_simulated_phones_agree_to_any_budget_and_crowd() -> None:
    rich = outcomes(engine(), cluster_tasks(Budget(1e5, 1e5, 1e5, 1e5)))
    assert all(not outcome.refusal for outcome in rich.values())


def test_a_task_that_asks_for_nothing_gets_no_answer() -> None:
    one = engine()
    waiting = outcomes(one, {0: encode(Wait(seconds=1.0))})
    assert (waiting[0].answer, waiting[0].refusal) == (b"", "")
    assert MemoryStore.from_bytes(states(one)[0]).ledger() == ()


def test_no_tasks_are_no_work() -> None:
    assert outcomes(engine(), {}) == {}


def test_who_vanishes_is_gone() -> None:
    one = engine()
    assert set(one.present) == set(range(PHONES))
    one.drop((3, 29))
    assert set(one.present) == set(range(PHONES)) - {3, 29}


def test_peak_memory_is_in_bytes() -> None:
    array = np.ones(2**23)
    assert array.nbytes < engine().peak_memory() < 2**40


def test_points_are_what_simulated_phones_hear() -> None:
    points = np.ones((3, 2), dtype=np.float32)
    encoder = HeardPoints("blobs", 2)
    assert encoder.project(points, 2) is points
    with pytest.raises(WrongStateError):
        encoder.embed(points)


@pytest.mark.slow
def test_processes_of_an_engine_are_not_those_of_others() -> None:
    """Joblib keeps one pool for all its callers, which must not find an engine's in its place."""
    tasks = cluster_tasks()
    with engine(processes=2) as both:
        first = outcomes(both, tasks)
        assert Parallel(n_jobs=2)(delayed(abs)(number) for number in (-1, -2)) == [1, 2]
        again = outcomes(both, tasks, Step.LABEL_VOTE_ADVERTISE)
    get_reusable_executor().shutdown()
    assert set(first) == set(again) == set(range(PHONES))
