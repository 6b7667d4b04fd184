"""A statistics phase: one private histogram of contacts over environments (thesis 7.2)."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import msgspec
import numpy as np
import pytest
from support.played_phase import CENTRES, CLASSES, PHONES, POLICY, Play, again, deceive, make_phones
from support.statistics_phase import FIRST, PARAMETERS, places
from support.steps import STATISTICS_STEPS, Step

from earshot_client.labels import LabelHierarchy
from earshot_client.phone import Phone
from earshot_client.policy import Policy
from earshot_client.store.memory import MemoryStore
from earshot_protocol.errors import RefusedError, TooManyDropoutsError
from earshot_protocol.geometry import Geometry
from earshot_protocol.phases.learning import Result
from earshot_protocol.phases.places import AgreedPlaces
from earshot_protocol.phases.statistics import CountContacts, Statistics, StatisticsParameters
from earshot_protocol.privacy.mechanisms import Unit
from earshot_protocol.rules import Rule
from earshot_protocol.wire import Matrix, encode
from earshot_server.discovery.optics import Optics
from earshot_server.phases.coordinator import Coordinator
from earshot_server.store.memory import MemoryPhaseStore
from earshot_simulations.engine.interface import HeardPoints

WIDE = Matrix.of(np.eye(2, 3))


def start(parameters: StatisticsParameters = PARAMETERS) -> Coordinator:
    return Coordinator.start(MemoryPhaseStore(), Optics(), parameters, now=0.0)


def phone(
    points: np.ndarray,
    choices: list[str | None],
    policy: Policy = POLICY,
    days: list[date | None] | None = None,
) -> Phone:
    return Phone(
        MemoryStore(points.astype(np.float32), choices, days),
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
        centroid_p_values=(0.0, 0.0),
        name_p_values=(0.0, 0.0),
        encoder="points",
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


def test_the_noise_has_the_scale_that_is_declared() -> None:
    (recording, whole) = msgspec.structs.replace(PARAMETERS, epsilon=0.5).plan().releases()
    assert (recording.unit, recording.epsilon) == (Unit.RECORDING, 0.5)
    # A phone is 12 contacts, a recording moves two of them: six times as much.
    assert (whole.unit, whole.epsilon) == (Unit.PHONE, 3.0)


def ballot_of(
    them: Phone, contacts: int = 12, agreed: AgreedPlaces | None = None, **window: date
) -> list[int]:
    """What the phone would add, read off its side of the sum before it is masked."""
    parameters = msgspec.structs.replace(PARAMETERS, contacts=contacts, places=agreed, **window)
    task = start(parameters).task_for(5)
    assert isinstance(task, CountContacts)
    them.answer(task)
    saved = them._store.get("sum")
    assert saved is not None
    words = np.frombuffer(msgspec.msgpack.decode(saved)["words"], dtype=np.uint16)
    signed: list[int] = words.view(np.int16).tolist()
    return signed


def test_a_contact_counts_as_its_own_label_or_as_the_nearest_place_of_the_phase() -> None:
    points = np.concatenate([CENTRES[[0, 0, 1]], CENTRES[[1]]])
    them = phone(points, [None, "park", None, "home"])
    # The second was near "bus" but its user said "park"; "home" is not asked for.
    assert ballot_of(them, agreed=places((0, 1))) == [1, 2]


def test_without_a_place_or_label_there_is_nothing_to_count() -> None:
    assert ballot_of(phone(CENTRES, [None, "bus"])) == [1, 0]
    assert ballot_of(phone(CENTRES, [None, None]), agreed=places((-1, 1))) == [0, 1]
    assert ballot_of(phone(np.empty((0, 2)), []), agreed=places((0, 1))) == [0, 0]


@pytest.mark.parametrize("told", [(0, 0), (1, 1), (1, 0)])
def test_what_one_phone_was_told_of_a_result_does_not_decide_how_it_counts(
    told: tuple[int, int],
) -> None:
    """A result for one phone alone would have put all that it heard into an entry of its own."""
    them = phone(CENTRES[[0, 0, 1]], [None, None, None])
    them.answer(published(told))
    assert them.result == published(told)
    assert ballot_of(them, agreed=places((0, 1))) == [2, 1]
    alone = phone(CENTRES[[0, 0, 1]], [None, None, None])
    alone.answer(published(told))
    assert ballot_of(alone) == [0, 0]


def test_a_phone_with_another_encoder_than_the_places_have_stays_out_by_name() -> None:
    for agreed, rule in (
        (places((0, 1), "others"), Rule.ENCODER),
        (msgspec.structs.replace(places((0, 1)), centroids=WIDE), Rule.DIMENSIONS),
    ):
        with pytest.raises(RefusedError) as refused:
            ballot_of(phone(CENTRES, [None, None]), agreed=agreed)
        assert refused.value.rule is rule


def test_a_phone_that_is_shown_other_places_stops_before_it_counts() -> None:
    game = Play(start(msgspec.structs.replace(PARAMETERS, places=places((0, 1)))), make_phones())
    victim = 4
    task = game.coordinator.task_for(victim)
    assert isinstance(task, CountContacts)
    other = msgspec.structs.replace(task.parameters, places=places((1, 0)))
    deceive(game, victim, msgspec.structs.replace(task, parameters=other))
    with pytest.raises(TooManyDropoutsError, match="shares of 0 neighbours arrived"):
        game.answer(victim)
    assert game.phones[victim].ledger.export() == []


def test_only_the_newest_contacts_count() -> None:
    them = phone(CENTRES[[0, 0, 0, 1, 1]], ["bus", "bus", "bus", "park", "home"])
    # "home" is not asked for, and takes nobody's place.
    assert ballot_of(them, contacts=3) == [2, 1]


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


# ------------------------------------------------------------------- windows, each counted once


DAYS = [FIRST + timedelta(days=day) for day in range(14)]
FIRST_WEEK = {"since": FIRST, "until": date(2026, 1, 8)}
SECOND_WEEK = {"since": date(2026, 1, 8), "until": date(2026, 1, 15)}
ALWAYS: dict[str, date] = {}


def counted(phones: dict[int, Phone], window: dict[str, date], contacts: int = 12) -> Statistics:
    """What a whole phase of these phones publishes."""
    coordinator = start(msgspec.structs.replace(PARAMETERS, contacts=contacts, **window))
    game = Play(coordinator, phones)
    game.until(Step.PUBLISHED)
    published = game.coordinator.result()
    assert isinstance(published, Statistics)
    return published


def test_contacts_count_between_two_dates() -> None:
    made = [FIRST - timedelta(days=1), FIRST, date(2026, 1, 7), date(2026, 1, 8), None]
    them = phone(CENTRES[[0] * 5], ["bus"] * 5, days=made)
    assert ballot_of(them, **FIRST_WEEK) == [2, 0]
    assert ballot_of(them) == [5, 0]


def test_weeks_add_up_and_nothing_is_counted_twice() -> None:
    phones = make_phones(days=[*DAYS[4:12], None, None, None, None])
    first = counted(phones, FIRST_WEEK)
    assert (first.since, first.until) == tuple(FIRST_WEEK.values())
    # Days 5, 6 and 7 of January; then 8 to 12.
    assert sum(first.contacts) == 3 * PHONES
    assert sum(counted(phones, FIRST_WEEK).contacts) == 0
    assert sum(counted(phones, SECOND_WEEK).contacts) == 5 * PHONES
    # Only recordings whose day nobody knows are left for a phase without a window.
    everything = counted(phones, ALWAYS)
    assert (everything.since, everything.until) == (None, None)
    assert sum(everything.contacts) == 4 * PHONES
    assert sum(counted(phones, ALWAYS).contacts) == 0
    assert all(each.counted for each in phones[0].recordings())


def test_what_found_no_room_or_no_name_is_left_for_another_phase() -> None:
    phones = make_phones(days=[FIRST] * 12)
    assert sum(counted(phones, FIRST_WEEK, contacts=5).contacts) == 5 * PHONES
    marks = [each.counted for each in phones[3].recordings()]
    assert marks == [False] * 7 + [True] * 5
    assert sum(counted(phones, FIRST_WEEK, contacts=20).contacts) == 7 * PHONES
    them = phone(CENTRES, ["home", "bus"], days=[FIRST, FIRST])
    assert ballot_of(them, **FIRST_WEEK) == [1, 0]
    release(them)
    assert [each.counted for each in them.recordings()] == [False, True]


def release(them: Phone) -> None:
    """The part of `answer` that enters a histogram into the ledger, after `ballot_of`."""
    member = them._membership()
    assert member is not None
    them._record(member, ["histogram"])


def test_marks_are_made_in_the_transaction_that_pays_for_the_release() -> None:
    phones = make_phones(days=[FIRST] * 12)
    game = Play(start(msgspec.structs.replace(PARAMETERS, **FIRST_WEEK)), phones)
    while game.coordinator.step != Step.HISTOGRAM_MASK:
        assert not any(each.counted for each in phones[4].recordings())
        assert phones[4].ledger.export() == []
        game.step()
    store = phones[4]._store
    task = game.coordinator.task_for(4)
    before = store._content  # type: ignore[attr-defined]
    answer = phones[4].answer(task)
    assert all(each.counted for each in phones[4].recordings())
    assert store.get("counting") is None
    assert len(phones[4].ledger.export()) == 2
    # Killed before the commit, everything is undone; killed after it, the answer is the same.
    after, store._open_content = store._content, before  # type: ignore[attr-defined]
    assert not any(each.counted for each in phones[4].recordings())
    assert phones[4].ledger.export() == []
    store._open_content = after  # type: ignore[attr-defined]
    assert phones[4].answer(task) == answer


def test_a_phase_that_fails_after_the_release_has_used_its_contacts_up() -> None:
    phones = make_phones(days=[FIRST] * 12)
    game = Play(start(msgspec.structs.replace(PARAMETERS, **FIRST_WEEK)), phones)
    game.until(Step.HISTOGRAM_MASK)
    game.step()
    game.present = {0, 1, 2}
    game.step()
    assert game.coordinator.step == Step.FAILED
    assert sum(counted(phones, FIRST_WEEK).contacts) == 0


def test_a_phase_that_is_given_up_before_the_release_uses_nothing_up() -> None:
    phones = make_phones(days=[FIRST] * 12)
    game = Play(start(msgspec.structs.replace(PARAMETERS, **FIRST_WEEK)), phones)
    game.until(Step.HISTOGRAM_MASK)
    assert sum(counted(phones, FIRST_WEEK).contacts) == 12 * PHONES


def test_a_phone_that_stays_open_does_not_count_what_has_expired() -> None:
    seconds = [datetime(2026, 1, 7, tzinfo=UTC).timestamp()]
    them = Phone(
        MemoryStore(CENTRES.astype(np.float32), ["bus", "park"], [FIRST, date(2026, 1, 6)]),
        HeardPoints("points", 2),
        POLICY,
        hierarchy=LabelHierarchy.flat(CLASSES),
        clock=lambda: seconds[0],
        keep_days=7,
    )
    seconds[0] += 2 * 86_400
    assert ballot_of(them, **FIRST_WEEK) == [0, 1]
    assert [each.day for each in them.recordings()] == [date(2026, 1, 6)]


def test_a_recording_that_was_forgotten_in_the_meantime_does_no_harm() -> None:
    them = phone(CENTRES, ["bus", "park"], days=[FIRST, FIRST])
    assert ballot_of(them, **FIRST_WEEK) == [1, 1]
    them.forget(1)
    release(them)
    assert [(each.number, each.counted) for each in them.recordings()] == [(2, True)]


def test_over_many_histograms_one_recording_more_moves_each_by_at_most_two() -> None:
    """The claim of `StatisticsParameters.plan`, over random series of phases of one phone."""
    random = np.random.default_rng(11)
    largest = 0
    for _ in range(25):
        size = int(random.integers(4, 14))
        choices: list[str | None] = [
            (*CLASSES, *CLASSES, "home", None)[place] for place in random.integers(0, 6, size)
        ]
        made: list[date | None] = [
            DAYS[place] if place < 14 else None for place in random.integers(0, 16, size)
        ]
        place = int(random.integers(0, size))
        points = np.zeros((size, 2))
        pair = (
            phone(points, choices, days=made),
            phone(
                points[1:],
                choices[:place] + choices[place + 1 :],
                days=made[:place] + made[place + 1 :],
            ),
        )
        for _ in range(5):
            contacts = int(random.integers(1, 4))
            window = (ALWAYS, FIRST_WEEK, SECOND_WEEK)[int(random.integers(3))]
            both = []
            for them in pair:
                both.append(np.array(ballot_of(them, contacts, **window)))
                release(them)
            moved = int(np.abs(both[0] - both[1]).sum())
            largest = max(largest, moved)
            assert moved <= 2
            assert both[0].sum() <= contacts
            left = [sum(not each.counted for each in them.recordings()) for them in pair]
            assert abs(left[0] - left[1]) <= 1
    assert largest == 2


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
        task, opening=msgspec.structs.replace(task.opening, sum_id=b"another sum id!!")
    )
    with pytest.raises(RefusedError, match="released already"):
        game.phones[0].answer(other)


def test_a_phone_of_another_number_is_refused() -> None:
    task = start().task_for(0)
    assert isinstance(task, CountContacts)
    beyond = msgspec.structs.replace(
        task, opening=msgspec.structs.replace(task.opening, index=PHONES)
    )
    with pytest.raises(RefusedError):
        phone(CENTRES, [None, None]).answer(beyond)
    assert len(encode(beyond)) < 1024
