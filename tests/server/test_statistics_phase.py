"""A statistics phase: one private histogram of contacts over environments (thesis 7.2)."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction

import msgspec
import numpy as np
import pytest
from support.played_phase import CENTRES, CLASSES, PHONES, POLICY, Play, again, deceive, make_phones
from support.points import HeardPoints
from support.statistics_phase import FIRST, PARAMETERS, counts, places
from support.steps import STATISTICS_STEPS, Step

from earshot_client.labels import LabelHierarchy
from earshot_client.phone import Phone
from earshot_client.policy import Policy
from earshot_client.store.memory import MemoryStore
from earshot_protocol.errors import RefusedError, TooManyDropoutsError
from earshot_protocol.geometry import Geometry
from earshot_protocol.phases.learning import Result
from earshot_protocol.phases.places import AgreedPlaces
from earshot_protocol.phases.plan import SecureSum
from earshot_protocol.phases.statistics import CountContacts, Statistics, StatisticsParameters
from earshot_protocol.privacy.composition import composed_epsilon
from earshot_protocol.privacy.events import SkellamSum
from earshot_protocol.privacy.mechanisms import Unit
from earshot_protocol.rules import Rule
from earshot_protocol.voting.vectors import unit_steps
from earshot_protocol.wire import Matrix, encode
from earshot_server.discovery.optics import Optics
from earshot_server.phases.coordinator import Coordinator
from earshot_server.store.memory import MemoryPhaseStore

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
    assert counts(result) == (6 * PHONES, 6 * PHONES, 0, 0, 0)
    assert (result.contacts, result.phones) == (12, PHONES)
    # Twelve shares of which nine are counted on; a length of 1 is twelve contacts.
    steps = 1e-6 * 4096 * math.sqrt(12 / 9)
    assert result.deviation == pytest.approx(steps * 12 / (4096 - math.sqrt(5) / 2))
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
    assert counts(result) == (6 * (PHONES - 2), 6 * (PHONES - 2), 0, 0, 0)
    assert result.phones == PHONES - 2


def test_the_cost_is_that_of_the_noise_and_of_the_distance_in_each_unit() -> None:
    quiet = msgspec.structs.replace(PARAMETERS, noise=5.5, contacts=16, delta=1e-7)
    (recording, whole) = quiet.plan().releases()
    steps = (4096 - math.sqrt(5) / 2) / 16 + math.sqrt(5)
    for release, unit, distance in ((recording, Unit.RECORDING, steps), (whole, Unit.PHONE, 4096)):
        event = SkellamSum((5.5 * 4096) ** 2, math.sqrt(5) * distance, distance)
        assert (release.unit, release.delta) == (unit, 1e-7)
        assert release.epsilon == pytest.approx(composed_epsilon([event], 1e-7))
    assert whole.epsilon > 10 * recording.epsilon


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
    words = np.frombuffer(msgspec.msgpack.decode(saved)["words"], dtype=np.uint32)
    signed: list[int] = words.view(np.int32).tolist()
    return signed


def contacts_of(them: Phone, agreed: AgreedPlaces | None = None, **window: date) -> list[int]:
    """The same in contacts: labelled, named by places and unknown; they are not scaled down."""
    steps = ballot_of(them, 12, agreed, **window)
    return [round(each * 12 / unit_steps(len(steps))) for each in steps]


def test_a_contact_counts_as_its_own_label_or_as_the_nearest_place_of_the_phase() -> None:
    points = np.concatenate([CENTRES[[0, 0, 1]], CENTRES[[1]]])
    them = phone(points, [None, "park", None, "home"])
    # The second was near "bus" but its user said "park"; "home" is not asked for.
    assert contacts_of(them, agreed=places((0, 1))) == [0, 1, 1, 1, 1]


def test_without_a_place_or_label_a_contact_is_unknown() -> None:
    assert contacts_of(phone(CENTRES, [None, "bus"])) == [1, 0, 0, 0, 1]
    assert contacts_of(phone(CENTRES, [None, None]), agreed=places((-1, 1))) == [0, 0, 0, 1, 1]


@pytest.mark.parametrize("agreed", [None, places((0, 1))])
def test_a_phone_without_contacts_sends_zeros_like_any_other(agreed: AgreedPlaces | None) -> None:
    none = phone(np.empty((0, 2)), [])
    assert ballot_of(none, agreed=agreed) == [0] * 5
    outside = phone(CENTRES, ["bus", None], days=[date(2025, 1, 1)] * 2)
    assert ballot_of(outside, agreed=agreed, **FIRST_WEEK) == [0] * 5
    # Both spend the same and mark nothing.
    for them in (none, outside):
        release(them)
        assert len(them.ledger.export()) == 2
        assert not any(each.counted for each in them.recordings())


@pytest.mark.parametrize("told", [(0, 0), (1, 1), (1, 0)])
def test_what_one_phone_was_told_of_a_result_does_not_decide_how_it_counts(
    told: tuple[int, int],
) -> None:
    """A result for one phone alone would have put all that it heard into an entry of its own."""
    them = phone(CENTRES[[0, 0, 1]], [None, None, None])
    them.answer(published(told))
    assert them.result == published(told)
    assert contacts_of(them, agreed=places((0, 1))) == [0, 0, 2, 1, 0]
    alone = phone(CENTRES[[0, 0, 1]], [None, None, None])
    alone.answer(published(told))
    assert contacts_of(alone) == [0, 0, 0, 0, 3]


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


def test_many_contacts_are_scaled_down_and_their_shares_stay() -> None:
    points = CENTRES[[0] * 15]
    them = phone(points, [*["bus"] * 9, *["park"] * 4, *["home"] * 2])
    assert ballot_of(them, contacts=20) == oracle([9, 4, 0, 0, 2], 20)
    scaled = ballot_of(phone(points, [*["bus"] * 9, *["park"] * 4, *["home"] * 2]), contacts=5)
    assert scaled == oracle([9, 4, 0, 0, 2], 5)
    assert sum(each**2 for each in scaled) <= 4096**2
    assert scaled[0] / scaled[1] == pytest.approx(9 / 4, rel=1e-3)


def oracle(counts: list[int], length: int) -> list[int]:
    """The projection by its definition: the nearest point of the ball, by bisection on its ray."""
    low, high = Fraction(0), Fraction(1)
    for _ in range(80):
        middle = (low + high) / 2
        inside = sum((middle * count) ** 2 for count in counts) <= length**2
        low, high = (middle, high) if inside else (low, middle)
    unit = 4096 - math.sqrt(len(counts)) / 2
    return [round(float(high * count / length) * unit) for count in counts]


def test_one_recording_more_moves_the_steps_by_no_more_than_is_declared() -> None:
    random = np.random.default_rng(5)
    for _ in range(40):
        size = int(random.integers(1, 25))
        choices = [("bus", "park", "home", None)[i] for i in random.integers(0, 4, size)]
        points = CENTRES[random.integers(0, 2, size)]
        contacts, place = int(random.integers(1, 9)), int(random.integers(0, size))
        with_it = np.array(ballot_of(phone(points, choices), contacts, places((0, 1))))
        without = phone(np.delete(points, place, axis=0), choices[:place] + choices[place + 1 :])
        moved = with_it - np.array(ballot_of(without, contacts, places((0, 1))))
        declared = msgspec.structs.replace(PARAMETERS, contacts=contacts).plan().parts[0]
        assert isinstance(declared, SecureSum)
        assert np.linalg.norm(moved) <= declared.mechanism.sensitivity(Unit.RECORDING)  # type: ignore[attr-defined]


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
    assert contacts_of(them, **FIRST_WEEK) == [2, 0, 0, 0, 0]
    assert contacts_of(them) == [5, 0, 0, 0, 0]


def test_weeks_add_up_and_nothing_is_counted_twice() -> None:
    phones = make_phones(days=[*DAYS[4:12], None, None, None, None])
    first = counted(phones, FIRST_WEEK)
    assert (first.since, first.until) == tuple(FIRST_WEEK.values())
    # Days 5, 6 and 7 of January; then 8 to 12.
    assert sum(counts(first)) == 3 * PHONES
    assert sum(counts(counted(phones, FIRST_WEEK))) == 0
    assert sum(counts(counted(phones, SECOND_WEEK))) == 5 * PHONES
    # Only recordings whose day nobody knows are left for a phase without a window.
    everything = counted(phones, ALWAYS)
    assert (everything.since, everything.until) == (None, None)
    assert sum(counts(everything)) == 4 * PHONES
    assert sum(counts(counted(phones, ALWAYS))) == 0
    assert all(each.counted for each in phones[0].recordings())


def test_all_contacts_of_the_window_are_used_up_whatever_they_are() -> None:
    phones = make_phones(days=[FIRST] * 12)
    counted(phones, FIRST_WEEK, contacts=5)  # fewer than a phone has
    assert all(each.counted for each in phones[3].recordings())
    assert counts(counted(phones, FIRST_WEEK, contacts=20)) == (0,) * 5
    after = date(2026, 1, 8)
    them = phone(CENTRES[[0] * 4], ["home", "bus", None, None], days=[FIRST, FIRST, FIRST, after])
    assert contacts_of(them, **FIRST_WEEK) == [1, 0, 0, 0, 2]
    release(them)
    assert [each.counted for each in them.recordings()] == [True, True, True, False]


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
    assert sum(counts(counted(phones, FIRST_WEEK))) == 0


def test_a_phase_that_is_given_up_before_the_release_uses_nothing_up() -> None:
    phones = make_phones(days=[FIRST] * 12)
    game = Play(start(msgspec.structs.replace(PARAMETERS, **FIRST_WEEK)), phones)
    game.until(Step.HISTOGRAM_MASK)
    assert sum(counts(counted(phones, FIRST_WEEK))) == 12 * PHONES


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
    assert contacts_of(them, **FIRST_WEEK) == [0, 1, 0, 0, 0]
    assert [each.day for each in them.recordings()] == [date(2026, 1, 6)]


def test_a_recording_that_was_forgotten_in_the_meantime_does_no_harm() -> None:
    them = phone(CENTRES, ["bus", "park"], days=[FIRST, FIRST])
    assert contacts_of(them, **FIRST_WEEK) == [1, 1, 0, 0, 0]
    them.forget(1)
    release(them)
    assert [(each.number, each.counted) for each in them.recordings()] == [(2, True)]


def test_over_many_histograms_one_recording_more_moves_one_of_them() -> None:
    """The claim of `StatisticsParameters.plan`, over random series of phases of one phone."""
    random = np.random.default_rng(11)
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
        moved = 0
        for _ in range(5):
            window = (ALWAYS, FIRST_WEEK, SECOND_WEEK)[int(random.integers(3))]
            both = []
            for them in pair:
                both.append(np.array(contacts_of(them, **window)))
                release(them)
            moved += int(np.abs(both[0] - both[1]).sum())
        left = [sum(not each.counted for each in them.recordings()) for them in pair]
        assert moved + left[0] - left[1] == 1, "counted once, or left"


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
    coordinator = start(msgspec.structs.replace(PARAMETERS, noise=2.0))
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
