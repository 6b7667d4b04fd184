"""A statistics phase: one private histogram of contacts over environments (thesis 7.2)."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from support.parameters import statistics_parameters
from support.played_phase import CENTRES, CLASSES, PHONES, POLICY, Play, again, make_phones
from support.steps import STATISTICS_STEPS, Step

from earshot_client.labels import LabelHierarchy
from earshot_client.phone import Phone
from earshot_client.policy import Policy
from earshot_client.store.memory import MemoryStore
from earshot_protocol.errors import InvalidParametersError, RefusedError
from earshot_protocol.geometry import Geometry
from earshot_protocol.phases.learning import Result
from earshot_protocol.phases.statistics import CountContacts, Statistics, StatisticsParameters
from earshot_protocol.privacy.mechanisms import Unit
from earshot_protocol.wire import Matrix, encode
from earshot_server.discovery.optics import Optics
from earshot_server.phases.coordinator import Coordinator
from earshot_server.store.memory import MemoryPhaseStore
from earshot_simulations.engine.interface import HeardPoints

PARAMETERS = statistics_parameters(
    phones=PHONES,
    labels=CLASSES,
    contacts=12,
    epsilon=2000.0,  # so little noise that the count is exact
    dropout=0.25,
    step_seconds=100.0,
)


def start(parameters: StatisticsParameters = PARAMETERS) -> Coordinator:
    return Coordinator.start(MemoryPhaseStore(), Optics(), parameters, now=0.0)


def phone(points: np.ndarray, choices: list[str | None], policy: Policy = POLICY) -> Phone:
    return Phone(
        MemoryStore(points.astype(np.float32), choices),
        HeardPoints("points", 2),
        policy,
        hierarchy=LabelHierarchy.flat(("bus", "park", "home")),
        random=np.random.default_rng(3).bytes,
    )


def published(labels: tuple[int, ...]) -> Result:
    return Result(
        phase=bytes(16),
        geometry=Geometry.EUCLIDEAN,
        centroids=Matrix.of(CENTRES),
        labels=labels,
        label_names=CLASSES,
        centroid_votes=(3, 3),
        label_votes=((3, 0), (0, 3)),
        name_p_values=(0.0, 0.0),
        privacy=(),
    )


def test_everybodys_contacts_are_counted() -> None:
    game = Play(start(), make_phones())
    steps = []
    while game.coordinator.step != Step.PUBLISHED:
        steps.append(game.coordinator.step)
        game.step()
    assert tuple(steps) == STATISTICS_STEPS
    result = game.coordinator.result()
    assert isinstance(result, Statistics)
    assert result.label_names == CLASSES
    assert result.contacts == (6 * PHONES, 6 * PHONES)
    assert result.privacy == PARAMETERS.plan().releases()
    assert all(game.coordinator.task_for(number) == result for number in range(PHONES))


def test_phones_that_drop_after_masking_are_counted_and_others_are_not() -> None:
    game = Play(start(), make_phones(), disturb=again)
    game.until(Step.HISTOGRAM_MASK)
    game.present -= {1, 2}
    game.step()
    game.present -= {3}
    game.step()
    result = game.coordinator.result()
    assert isinstance(result, Statistics)
    assert result.contacts == (6 * (PHONES - 2), 6 * (PHONES - 2))


def test_too_few_phones_fail_it() -> None:
    game = Play(start(), make_phones())
    game.present = set(range(8))
    game.step()
    assert game.coordinator.step == Step.FAILED
    assert "8 of 12" in game.coordinator.state.failure


def test_the_noise_has_the_scale_that_is_declared() -> None:
    (recording, whole) = msgspec.structs.replace(PARAMETERS, epsilon=0.5).plan().releases()
    assert (recording.unit, recording.epsilon) == (Unit.RECORDING, 0.5)
    # A phone is 12 contacts, a recording moves two of them: six times as much.
    assert (whole.unit, whole.epsilon) == (Unit.PHONE, 3.0)


def ballot_of(them: Phone, contacts: int = 12) -> list[int]:
    """What the phone would add, read off its side of the sum before it is masked."""
    parameters = msgspec.structs.replace(PARAMETERS, contacts=contacts)
    task = start(parameters).task_for(5)
    assert isinstance(task, CountContacts)
    them.answer(task)
    saved = them._store.get("sum")
    assert saved is not None
    words = np.frombuffer(msgspec.msgpack.decode(saved)["words"], dtype=np.uint16)
    signed: list[int] = words.view(np.int16).tolist()
    return signed


def test_a_contact_counts_as_its_own_label_or_as_the_nearest_published_one() -> None:
    points = np.concatenate([CENTRES[[0, 0, 1]], CENTRES[[1]]])
    them = phone(points, [None, "park", None, "home"])
    them.answer(published((0, 1)))
    # The second was near "bus" but its user said "park"; "home" is not asked for.
    assert ballot_of(them) == [1, 2]


def test_without_a_published_centroid_or_label_there_is_nothing_to_count() -> None:
    assert ballot_of(phone(CENTRES, [None, "bus"])) == [1, 0]
    them = phone(CENTRES, [None, None])
    them.answer(published((-1, 1)))
    assert ballot_of(them) == [0, 1]
    assert ballot_of(phone(np.empty((0, 2)), [])) == [0, 0]


def test_only_the_newest_contacts_count() -> None:
    them = phone(CENTRES[[0, 0, 0, 1, 1]], ["bus", "bus", "bus", "park", "home"])
    assert ballot_of(them, contacts=3) == [1, 1]


def test_one_recording_more_moves_the_count_by_at_most_two() -> None:
    random = np.random.default_rng(5)
    for _ in range(40):
        choices = [CLASSES[i] for i in random.integers(0, 2, random.integers(1, 9))]
        points = np.zeros((len(choices), 2))
        contacts = int(random.integers(1, 9))
        place = int(random.integers(0, len(choices)))
        with_it = np.array(ballot_of(phone(points, list(choices)), contacts))
        without = [*choices[:place], *choices[place + 1 :]]
        without_it = np.array(ballot_of(phone(points[1:], list(without)), contacts))
        assert np.abs(with_it - without_it).sum() <= 2
        assert with_it.sum() <= contacts


def test_a_phone_refuses_a_histogram_that_costs_too_much() -> None:
    them = phone(CENTRES, [None, None], Policy(least_phones=3, least_threshold=1))
    with pytest.raises(RefusedError, match="largest_epsilon"):
        them.answer(start().task_for(0))
    assert them.ledger.export() == []


def test_a_released_histogram_is_in_the_ledger_once() -> None:
    game = Play(start(), make_phones())
    game.until(Step.PUBLISHED)
    entries = game.phones[0].ledger.export()
    assert [entry["step"] for entry in entries] == ["histogram", "histogram"]
    assert {entry["phase"] for entry in entries} == {game.coordinator.phase.hex()}


def test_a_histogram_is_cast_once() -> None:
    coordinator = start(msgspec.structs.replace(PARAMETERS, epsilon=2.0))
    game = Play(coordinator, make_phones())
    task = coordinator.task_for(0)
    game.until(Step.PUBLISHED)
    assert isinstance(task, CountContacts)
    other = msgspec.structs.replace(
        task, advertise=msgspec.structs.replace(task.advertise, sum_id=b"another sum id!!")
    )
    with pytest.raises(RefusedError, match="has voted"):
        game.phones[0].answer(other)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"contacts": 0}, "contacts=0"),
        ({"epsilon": 0.0}, "epsilon=0"),
        ({"epsilon": float("nan")}, "epsilon=nan"),
        ({"epsilon": 1e-5}, "budget histogram"),
        ({"labels": ("bus", "bus")}, "repeat"),
        ({"dropout": 0.7}, "dropout"),
    ],
)
def test_a_statistics_phase_that_cannot_run_is_not_started(
    changed: dict[str, object], message: str
) -> None:
    with pytest.raises(InvalidParametersError, match=message):
        start(msgspec.structs.replace(PARAMETERS, **changed))


def test_a_phone_of_another_number_is_refused() -> None:
    task = start().task_for(0)
    assert isinstance(task, CountContacts)
    beyond = msgspec.structs.replace(
        task, advertise=msgspec.structs.replace(task.advertise, index=PHONES)
    )
    with pytest.raises(RefusedError):
        phone(CENTRES, [None, None]).answer(beyond)
    assert len(encode(beyond)) < 1024
