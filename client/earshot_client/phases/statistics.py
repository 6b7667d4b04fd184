"""A phone's part in a statistics phase (thesis, section 7.2)."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from earshot_client.phases import centroids as shared
from earshot_client.phases.kind import Input, PhoneKind
from earshot_client.phases.memory import Memory
from earshot_protocol.phases import statistics
from earshot_protocol.phases.statistics import CountContacts, Statistics, StatisticsParameters
from earshot_protocol.voting.vectors import bounded, joined, projected, quantized

_COUNTING = "counting"
"""Name of the stored value with the recordings that the histogram under way counts."""


def _contacts(memory: Memory, parameters: StatisticsParameters, task: CountContacts) -> Input:
    """Count the contacts of the window and project the counts; add a confusion matrix if asked."""
    recordings = _recordings(memory, parameters)
    countable = _countable(memory, parameters, recordings)
    numbers = [number for number, _ in countable]
    memory.store.put(_COUNTING, msgspec.msgpack.encode(numbers))
    entries = np.array([entry for _, entry in countable], dtype=np.int64)
    counts = np.bincount(entries, minlength=parameters.count_entries)
    vector = projected(counts, parameters.contacts)
    if parameters.confusion:
        vector = joined(vector, _confusion(recordings, parameters.labels))
    return quantized(vector)


def _countable(
    memory: Memory, parameters: StatisticsParameters, recordings: list[_Recording]
) -> list[tuple[int, int]]:
    """Return all contacts of the window that no histogram has counted, each with its entry."""
    return [
        (described.number, recording.entry(parameters.labels))
        for described, recording in zip(memory.store.descriptions(), recordings, strict=True)
        if not described.counted and parameters.counts(described.day)
    ]


def _count(memory: Memory) -> None:
    """Mark recordings as counted, even if the phase fails later, so that none counts twice."""
    saved = memory.store.get(_COUNTING)
    if saved is not None:
        memory.store.mark_counted(msgspec.msgpack.decode(saved, type=list[int]))
        memory.store.delete(_COUNTING)


class _Recording(NamedTuple):
    """A recording as a sum counts it.

    Attributes:
        labelled: Whether somebody labelled it, whatever the label.
        label: Class of its label; None if it has none that the phase or the phone knows.
        place: Name of the nearest of the phase's places; None if none is near, or named.
    """

    labelled: bool
    label: str | None
    place: str | None

    def entry(self, names: tuple[str, ...]) -> int:
        """Return the entry in which it counts: that of its label or its place, else the last."""
        name, first = (self.label, 0) if self.labelled else (self.place, len(names))
        return first + names.index(name) if name in names else 2 * len(names)


def _recordings(memory: Memory, parameters: StatisticsParameters) -> list[_Recording]:
    """Return all recordings, oldest first.

    Places are the phase's, never another result's, so that all phones of a sum use the same.
    """
    embeddings, choices = memory.store.recordings()
    named: list[str | None] = [None] * len(choices)
    if parameters.places is not None and len(embeddings):
        places = parameters.places.named(parameters.labels)
        points = memory.encoder.project(embeddings, places.points.shape[1])
        named = places.nearest(points)
    classes = memory.classes_of(choices)
    return [
        _Recording(choice is not None, label, place)
        for choice, label, place in zip(choices, classes, named, strict=True)
    ]


def _confusion(recordings: list[_Recording], names: tuple[str, ...]) -> npt.NDArray[np.float64]:
    """Return the scaled confusion matrix of labels and names, float64 (labels, names)."""
    number = {name: at for at, name in enumerate(names)}
    labelled = np.zeros(len(names), dtype=np.int64)
    table = np.zeros((len(names), len(names)), dtype=np.int64)
    for recording in recordings:
        if recording.label not in number:
            continue
        labelled[number[recording.label]] += 1
        if recording.place is not None:
            table[number[recording.label], number[recording.place]] += 1
    return bounded(table, labelled)


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
