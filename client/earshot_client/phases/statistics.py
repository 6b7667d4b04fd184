"""A phone's part in a statistics phase (thesis, section 7.2)."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from earshot_client.phases import centroids as shared
from earshot_client.phases.kind import Input, PhoneKind
from earshot_client.phases.memory import Memory
from earshot_protocol.phases import statistics
from earshot_protocol.phases.statistics import CountContacts, Statistics, StatisticsParameters

_COUNTING = "counting"
"""Name of the stored value with the recordings that the histogram under way counts."""


def _contacts(memory: Memory, parameters: StatisticsParameters, task: CountContacts) -> Input:
    """Count the newest contacts of the window in the environments of their labels or sounds.

    Sound is named by the phase's places only, never by other results, so that all phones of a sum
    use the same places. Contacts that a histogram has counted, and those of other environments, are
    left for another phase.
    """
    names = parameters.labels
    countable = [
        (recording.number, names.index(name))
        for recording, name in zip(
            memory.store.descriptions(), _environments(memory, parameters), strict=True
        )
        if name in names and not recording.counted and parameters.counts(recording.day)
    ][-parameters.contacts :]
    numbers = [number for number, _ in countable]
    memory.store.put(_COUNTING, msgspec.msgpack.encode(numbers))
    environments = np.array([environment for _, environment in countable], dtype=np.int64)
    return np.bincount(environments, minlength=len(names)).astype(np.int64)


def _count(memory: Memory) -> None:
    """Mark recordings as counted, even if the phase fails later, so that none counts twice."""
    saved = memory.store.get(_COUNTING)
    if saved is not None:
        memory.store.mark_counted(msgspec.msgpack.decode(saved, type=list[int]))
        memory.store.delete(_COUNTING)


def _environments(memory: Memory, parameters: StatisticsParameters) -> list[str | None]:
    """Return the class of each recording, oldest first; None where it is unknown."""
    embeddings, choices = memory.store.recordings()
    classes = memory.classes_of(choices)
    if parameters.places is None or not len(embeddings):
        return classes
    places = parameters.places.named(parameters.labels)
    points = memory.encoder.project(embeddings, places.points.shape[1])
    return [
        scene if choice is None else name
        for choice, name, scene in zip(choices, classes, places.nearest(points), strict=True)
    ]


def _describe(published: Statistics) -> dict[str, Any]:
    labels = published.label_names
    described: dict[str, Any] = {
        "contacts": dict(zip(labels, published.contacts, strict=False)),
        "noise": [name for name, clear in zip(labels, published.clear, strict=False) if not clear],
    }
    if published.since is not None and published.until is not None:
        described |= {"since": str(published.since), "until": str(published.until)}
    return described


STATISTICS = PhoneKind(
    kind=statistics.STATISTICS,
    contribute={CountContacts: _contacts},
    describe=_describe,
    released=_count,
    check=shared.check_encoder,
)
