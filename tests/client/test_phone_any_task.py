"""Whatever a server sends, a phone answers or refuses by name: nothing else comes out of it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import examples
from support.parameters import learning_parameters, statistics_parameters
from support.phase_tasks import PHASE, first_task, opening
from support.points import HeardPoints
from support.policies import without_budget

from earshot_client.labels import LabelHierarchy
from earshot_client.phone import Phone
from earshot_client.policy import Policy
from earshot_client.store.encrypted import EncryptedStore
from earshot_client.store.interface import Store
from earshot_client.store.memory import MemoryStore
from earshot_protocol.errors import RefusedError, RemoteError, UnexpectedMessageError
from earshot_protocol.geometry import Geometry
from earshot_protocol.messages import decode_task
from earshot_protocol.phases.learning import (
    CENTROID_VOTE,
    LABEL_VOTE,
    Cluster,
    GlobalCentroids,
    PhaseParameters,
    TopCentroids,
)
from earshot_protocol.phases.parameters import LARGEST_CROWD
from earshot_protocol.wire import Matrix, Task

POINTS = np.random.default_rng(3).uniform(-1, 1, (6, 2)).astype(np.float32)
CENTROIDS = Matrix.of(np.array([[-0.5, 0.0], [0.5, 0.0]]))
ANYTHING = without_budget(
    least_phones=0,
    largest_phones=LARGEST_CROWD,
    largest_noise_crowd=LARGEST_CROWD,
    largest_dropout=1.0,
    least_corrupted=0.0,
    least_threshold=0,
    least_statistical_security=0,
    least_correctness=0,
)
"""So that what a policy refuses early reaches whatever is behind it."""
LEARNING = learning_parameters()
SPHERICAL = learning_parameters(geometry=Geometry.SPHERICAL)
STATISTICS = statistics_parameters()


def votes(parameters: PhaseParameters) -> list[Task]:
    first = opening(parameters, CENTROID_VOTE, (2,))
    second = opening(parameters, LABEL_VOTE, (2, 2))
    return [
        GlobalCentroids(phase=PHASE, centroids=CENTROIDS, opening=first),
        TopCentroids(phase=PHASE, centroids=CENTROIDS, opening=second),
    ]


TASKS: dict[str, tuple[list[Task], Task]] = {
    "euclidean": ([], Cluster(phase=PHASE, index=0, parameters=LEARNING)),
    "spherical": ([], Cluster(phase=PHASE, index=0, parameters=SPHERICAL)),
    "centroid vote": ([Cluster(phase=PHASE, index=0, parameters=LEARNING)], votes(LEARNING)[0]),
    "label vote": ([Cluster(phase=PHASE, index=0, parameters=LEARNING)], votes(LEARNING)[1]),
    "statistics": ([], first_task(STATISTICS)),
}
"""What a phone answers first, and the task that is spoilt."""

NUMBERS = st.sampled_from(
    [
        *(math.nan, math.inf, -math.inf, -1.0, -0.0, 5e-324, 1e-300, 1e-16, 1e-9, 1e300, 1e308),
        *(0, 1, -1, 2, 3, 255, 256, 10**6, 10**8, 2**31, 2**32, 2**63 - 1, 2**63, 2**64 - 1),
        *(-(2**63), 0.5, 1.0, 1 - 1e-16, 1.5),
    ]
)
VALUES = NUMBERS | st.floats() | st.integers(-(2**63), 2**64 - 1) | st.none() | st.text(max_size=3)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where a plain message holds something that is not a map."""
    if isinstance(value, dict):
        for name, entry in value.items():
            yield from places(entry, (*path, name))
    else:
        yield path
        if isinstance(value, list):
            for at in range(len(value)):
                yield (*path, at)


def put(value: Any, path: tuple[Any, ...], entry: Any) -> Any:
    if not path:
        return entry
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = put(value[path[0]], path[1:], entry)
    return copy


def phone(policy: Policy | None = None, store: Store | None = None) -> Phone:
    return Phone(
        store or MemoryStore(POINTS, ("bus", "park", None, "bus", None, "park")),
        HeardPoints("points", 2),
        policy or Policy.per_recording(),
        hierarchy=LabelHierarchy({"bus": ("tram",), "park": ("garden",)}),
    )


def plain(task: Task) -> Any:
    """As it is sent, in plain types, with every field that has a default."""
    sent = msgspec.msgpack.decode(msgspec.msgpack.encode(task))
    if isinstance(sent.get("parameters"), dict):
        parameters = task.parameters  # type: ignore[attr-defined]
        sent["parameters"] |= {
            field.encode_name: getattr(parameters, field.name)
            for field in msgspec.structs.fields(parameters)
            if field.default is not msgspec.NODEFAULT
        }
    return sent


def answered(policy: Policy | None, before: list[Task], sent: bytes) -> bool:
    """Whether a phone answers what was sent; anything but a refusal by name is raised."""
    asked = phone(policy)
    for task in before:
        asked.answer(task)
    kept = asked.ledger.export()
    try:
        asked.answer(decode_task(sent))
    except RemoteError:
        assert asked.ledger.export() == kept
        return False
    return True


@pytest.mark.parametrize("policy", [None, ANYTHING], ids=["per recording", "anything goes"])
@pytest.mark.parametrize("name", TASKS)
def test_the_task_itself_is_answered(name: str, policy: Policy | None) -> None:
    before, task = TASKS[name]
    assert answered(policy, before, msgspec.msgpack.encode(plain(task)))


@pytest.mark.parametrize("policy", [None, ANYTHING], ids=["per recording", "anything goes"])
@pytest.mark.parametrize("name", TASKS)
@settings(max_examples=examples(150), deadline=None, derandomize=True)
@given(data=st.data())
def test_a_field_with_any_other_value_is_answered_or_refused_by_name(
    name: str, policy: Policy | None, data: st.DataObject
) -> None:
    before, task = TASKS[name]
    message = plain(task)
    path = data.draw(st.sampled_from(list(places(message))))
    answered(policy, before, msgspec.msgpack.encode(put(message, path, data.draw(VALUES))))


@pytest.mark.parametrize("policy", [None, ANYTHING], ids=["per recording", "anything goes"])
@pytest.mark.parametrize("name", TASKS)
def test_no_number_that_is_none_gets_an_answer(name: str, policy: Policy | None) -> None:
    """Each field in turn: the costs of a phase cannot be computed from these."""
    before, task = TASKS[name]
    message = plain(task)
    for path in places(message):
        for wrong in (math.nan, -math.inf, math.inf, -1.0):
            spoilt = msgspec.msgpack.encode(put(message, path, wrong))
            assert not answered(policy, before, spoilt), path


# ------------------------------------------------------------------------- what it keeps in mind


def test_a_sum_is_begun_once_though_another_was_opened_meanwhile(tmp_path: Path) -> None:
    """Or one sum would have two sets of this phone's keys; it outlives a restart, and a phase."""

    def asked(task: Task) -> Any:
        key = bytes(32)
        with phone(store=EncryptedStore(tmp_path / "phone", key, dimensions=2)) as restarted:
            return restarted.answer(task)

    def opened(task: Task, sum_id: bytes) -> Task:
        advertise = msgspec.structs.replace(task.opening, sum_id=sum_id)  # type: ignore[attr-defined]
        return msgspec.structs.replace(task, opening=advertise)

    before, vote = TASKS["centroid vote"]
    asked(before[0])
    asked(vote)
    other = asked(opened(vote, b"another sum 0001"))
    with pytest.raises(RefusedError, match="begins only once"):
        asked(vote)
    assert asked(opened(vote, b"another sum 0001")) == other
    with pytest.raises(RefusedError, match="begins only once"):
        asked(TASKS["label vote"][1])
    counted = msgspec.structs.replace(TASKS["statistics"][1], phase=b"another phase 01")  # type: ignore[type-var]
    with pytest.raises(RefusedError, match="begins only once"):
        asked(counted)
    assert asked(opened(counted, b"another sum 0002")) is not None


@pytest.mark.parametrize(
    ("held", "named", "counted"),
    [
        (0, 1, 1000),
        (6, 1, 1000),
        (1000, 5, 1000),
        (1001, 5, 2000),
        (4001, 5, 8000),
        (6, 1500, 1500),
        (1500, 1500, 1500),
        (1501, 1500, 3000),
    ],
)
def test_the_ledger_counts_at_least_the_recordings_held_and_not_how_many_they_are(
    held: int, named: int, counted: int
) -> None:
    """With N = 1 and six recordings held, the whole phone loses six times as much, at least."""
    store = MemoryStore(np.resize(POINTS, (held, 2)))
    holder = Phone(store, HeardPoints("points", 2), ANYTHING)
    parameters = msgspec.structs.replace(LEARNING, recordings=named)
    holder.answer(Cluster(phase=PHASE, index=0, parameters=parameters))
    paid = {(each.step, each.unit.value): each.epsilon for each in holder.ledger.releases}
    assert paid["cluster", "recording"] == 1.0
    assert paid["cluster", "phone"] == pytest.approx(counted)
    assert paid["select", "phone"] == pytest.approx(2 * 0.25 * counted)


class Dance(Task, frozen=True, tag="dance"):
    """A task of which no phone has heard."""


def test_a_task_of_no_kind_asks_nothing_of_a_phone() -> None:
    with (
        Phone(MemoryStore(POINTS), HeardPoints("points", 2), ANYTHING) as phone,
        pytest.raises(UnexpectedMessageError, match="Dance asks nothing of a phone"),
    ):
        phone.answer(Dance())
