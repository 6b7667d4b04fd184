"""The label hierarchy that a phase and its phones agree on."""

from __future__ import annotations

from datetime import datetime

import msgspec
import numpy as np
import pytest
from support.line import Line
from support.parameters import learning_parameters, statistics_parameters
from support.points import HeardPoints

from earshot_client.encoder import default_encoder
from earshot_client.labels import LabelHierarchy, UnknownLabelError, default_hierarchy
from earshot_client.phone import Phone
from earshot_client.policy import Policy
from earshot_client.store.memory import MemoryStore
from earshot_client.visits.participation import Participation
from earshot_protocol.errors import RefusedError
from earshot_protocol.geometry import Geometry
from earshot_protocol.messages import Failed
from earshot_protocol.phases.learning import Cluster
from earshot_protocol.phases.parameters import Choices
from earshot_protocol.shipped_encoders import DEFAULT_ENCODER
from earshot_protocol.wire import Task

PHASE = bytes(range(16))
PER_RECORDING = Policy.per_recording()
GROUPS = {"gastronomy": ("café", "bar"), "transport": ("train", "bus stop")}
CHOICES: Choices = tuple(GROUPS.values())
PARAMETERS = learning_parameters(
    phones=100, labels=tuple(GROUPS), hierarchy=LabelHierarchy(GROUPS).digest
)
FLAT = learning_parameters(phones=100, labels=("gastronomy", "transport"))


def task(choices: Choices = CHOICES, **changes: object) -> Cluster:
    parameters = msgspec.structs.replace(PARAMETERS, **changes)
    return Cluster(phase=PHASE, index=7, parameters=parameters, choices=choices)


def phone_with(
    *choices: str | None, hierarchy: LabelHierarchy | None = None, store: MemoryStore | None = None
) -> Phone:
    points = np.zeros((len(choices), 2), dtype=np.float32)
    store = store or MemoryStore(points, choices)
    return Phone(store, HeardPoints("points", 2), PER_RECORDING, hierarchy=hierarchy)


def classes(phone: Phone) -> list[str | None]:
    return phone._memory.classes_of(each.choice for each in phone.recordings())


def test_choices_become_the_classes_of_the_phase() -> None:
    phone = phone_with("bar", "bus stop", "gastronomy", "living room", None)
    assert classes(phone) == ["gastronomy", "public transport", "gastronomy", "home", None]
    phone.answer(task())
    assert classes(phone) == ["gastronomy", "transport", "gastronomy", None, None]


def test_a_choice_that_the_phase_lacks_stands_for_its_class_here() -> None:
    # "restaurant" is a choice of everyday polls only; its class there has a namesake here.
    phone = phone_with("restaurant", "kitchen")
    phone.answer(task())
    assert classes(phone) == ["gastronomy", None]
    phone = phone_with("restaurant", "kitchen")
    phone.answer(Cluster(phase=PHASE, index=7, parameters=FLAT))
    assert classes(phone) == ["gastronomy", None]


def test_the_next_poll_offers_what_the_phase_asks_for() -> None:
    store = MemoryStore()
    phone = phone_with(store=store)
    assert phone.hierarchy == default_hierarchy()
    phone.answer(task())
    assert dict(phone.poll.groups) == GROUPS
    phone.answer(Failed(phase=PHASE, reason="too few phones"))
    assert dict(phone_with(store=store).hierarchy.groups) == GROUPS, "kept after the phase"
    phone.answer(Cluster(phase=b"another phase !!", index=7, parameters=FLAT))
    assert phone.hierarchy == LabelHierarchy.flat(FLAT.labels)


def test_labels_of_everyday_polls_stay_labels() -> None:
    phone = phone_with(None)
    phone.answer(task())
    (recording,) = phone.recordings()
    phone.label(recording.number, "bus stop")
    phone.label(recording.number, "living room")
    with pytest.raises(UnknownLabelError, match="café"):
        phone.label(recording.number, "office chair")


def test_an_app_that_fixed_its_hierarchy_polls_it_and_counts_by_the_phases() -> None:
    own = LabelHierarchy({"eating": ("bar", "snack bar"), "gastronomy": ("inn",), "sport": ()})
    phone = phone_with("bar", "snack bar", "inn", hierarchy=own)
    phone.answer(task())
    assert phone.hierarchy == own
    assert classes(phone) == ["gastronomy", None, "gastronomy"]


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (task(()), "digest"),
        (task((*CHOICES, ("sea",))), "3 of 2 labels"),
        (task((("café",), ("train", "bus stop"))), "digest"),
        (task(CHOICES[::-1]), "digest"),
        (task((("café", "train"), ("train", "bus stop"))), "belongs to one class"),
        (task(hierarchy=b""), "digest"),
        (task(hierarchy=bytes(32)), "digest"),
        (task(hierarchy=bytes(31)), "32 bytes"),
        (task((("café", "bar "), ("train", "bus stop"))), "printable"),
        (Cluster(phase=PHASE, index=7, parameters=FLAT, choices=CHOICES), "digest"),
    ],
)
def test_choices_that_are_not_agreed_on_are_refused(wrong: Task, reason: str) -> None:
    phone = phone_with("bar")
    with pytest.raises(RefusedError, match=reason):
        phone.answer(wrong)
    assert phone.ledger.export() == []
    assert phone.hierarchy == default_hierarchy(), "nothing is kept of what was refused"


def test_sizes_are_limited() -> None:
    many = tuple(tuple(f"{label} {number}" for number in range(2049)) for label in "ab")
    phone = phone_with("bar")
    with pytest.raises(RefusedError, match="4096 choices"):
        phone.answer(task(many))


@pytest.mark.parametrize(
    ("choices", "said"),
    [
        ((), "takes part without recordings"),
        ((None, None), "takes part without labels: none of its recordings has one"),
        (
            ("living room", "forest"),
            "takes part without labels: the phase knows none of this phone's; it asks for "
            "gastronomy, transport",
        ),
        (("living room", "bar"), ""),
    ],
)
def test_a_phone_says_what_its_part_lacks(choices: tuple[str | None, ...], said: str) -> None:
    phone = phone_with(*choices)
    assert phone.shortfall == "", "no phase is under way"
    phone.answer(task())
    assert phone.shortfall == said
    phone.answer(Failed(phase=PHASE, reason="too few phones"))
    assert phone.shortfall == ""


@pytest.mark.parametrize(("labels", "more"), [(12, ""), (13, ", …")])
def test_of_many_labels_twelve_are_named(labels: int, more: str) -> None:
    names = tuple(f"label {number:02}" for number in range(labels))
    phone = phone_with("living room")
    parameters = learning_parameters(phones=100, labels=names)
    phone.answer(Cluster(phase=PHASE, index=7, parameters=parameters))
    assert phone.shortfall.endswith(f"asks for {', '.join(names[:12])}{more}")


SPHERICAL = {"encoder": DEFAULT_ENCODER, "geometry": Geometry.SPHERICAL, "dimensions": 8}


def test_a_visit_says_it_with_the_first_answer() -> None:
    store = MemoryStore(np.eye(1, 128, dtype=np.float32), ("living room",))
    phone = Phone(store, default_encoder(), PER_RECORDING)
    visit = Participation(phone, store, Line(task(**SPHERICAL))).visit(datetime(2026, 3, 1, 12))
    assert visit.detail.startswith(
        "local centroids; this phone takes part without labels: the phase knows none"
    )


def test_statistics_phases_tell_their_choices_too() -> None:
    counting = statistics_parameters(phones=100, labels=("gastronomy",))
    assert counting.agreed_hierarchy(()) == LabelHierarchy.flat(("gastronomy",))
    agreed = msgspec.structs.replace(
        counting, hierarchy=LabelHierarchy({"gastronomy": ("inn",)}).digest
    )
    assert agreed.agreed_hierarchy((("inn",),)).class_of("inn") == "gastronomy"
