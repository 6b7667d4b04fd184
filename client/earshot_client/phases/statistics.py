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
from earshot_protocol.voting.vectors import projected, quantized

_COUNTING = "counting"
"""Name of the stored value with the recordings that the histogram under way counts."""


def _contacts(memory: Memory, parameters: StatisticsParameters, task: CountContacts) -> Input:
    """Count the contacts of the window and project the counts."""
    countable = _countable(memory, parameters)
    numbers = [number for number, _ in countable]
    memory.store.put(_COUNTING, msgspec.msgpack.encode(numbers))
    entries = np.array([entry for _, entry in countable], dtype=np.int64)
    counts = np.bincount(entries, minlength=parameters.entries)
    return quantized(projected(counts, parameters.contacts))


def _countable(memory: Memory, parameters: StatisticsParameters) -> list[tuple[int, int]]:
    """Return all contacts of the window that no histogram has counted, each with its entry."""
    descriptions = memory.store.descriptions()
    return [
        (recording.number, entry)
        for recording, entry in zip(descriptions, _entries(memory, parameters), strict=True)
        if not recording.counted and parameters.counts(recording.day)
    ]


def _count(memory: Memory) -> None:
    """Mark recordings as counted, even if the phase fails later, so that none counts twice."""
    saved = memory.store.get(_COUNTING)
    if saved is not None:
        memory.store.mark_counted(msgspec.msgpack.decode(saved, type=list[int]))
        memory.store.delete(_COUNTING)


def _entries(memory: Memory, parameters: StatisticsParameters) -> list[int]:
    """Return the entry in which each recording counts, oldest first.

    One with a label counts under it, and one without under the label of the nearest of the phase's
    places, never of another result's, so that all phones of a sum use the same places. All others
    count as unknown.
    """
    embeddings, choices = memory.store.recordings()
    names = parameters.labels
    named: list[str | None] = [None] * len(choices)
    if parameters.places is not None and len(embeddings):
        places = parameters.places.named(names)
        points = memory.encoder.project(embeddings, places.points.shape[1])
        named = places.nearest(points)
    return [
        _entry(names, name, 0) if choice is not None else _entry(names, place, len(names))
        for choice, name, place in zip(choices, memory.classes_of(choices), named, strict=True)
    ]


def _entry(names: tuple[str, ...], name: str | None, first: int) -> int:
    """Return the entry of a name, where `first` is that of the first label; else the last one."""
    return first + names.index(name) if name in names else 2 * len(names)


def _describe(published: Statistics) -> dict[str, Any]:
    labels = published.label_names
    described: dict[str, Any] = {
        "contacts": dict(zip(labels, map(round, published.assigned), strict=False)),
        "unknown": round(published.unknown),
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
