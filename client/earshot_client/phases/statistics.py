"""A phone's part in a statistics phase (thesis, section 7.2)."""

from __future__ import annotations

from typing import Any

import numpy as np

from earshot_client.phases.kind import Input, PhoneKind
from earshot_client.phases.memory import Memory
from earshot_protocol.geometry import nearest
from earshot_protocol.phases import statistics
from earshot_protocol.phases.statistics import CountContacts, Statistics, StatisticsParameters


def _contacts(memory: Memory, parameters: StatisticsParameters, task: CountContacts) -> Input:
    """The newest contacts, each in the environment of its label, or else of its sound."""
    classes = _environments(memory)[-parameters.contacts :]
    names = parameters.labels
    indices = np.array([names.index(name) for name in classes if name in names], dtype=np.int64)
    return np.bincount(indices, minlength=len(names)).astype(np.int64)


def _environments(memory: Memory) -> list[str | None]:
    """The class of each recording, oldest first; None where nobody can tell."""
    embeddings, choices = memory.store.recordings()
    classes = [memory.class_of(choice) for choice in choices]
    result = memory.result
    if result is None or not len(embeddings):
        return classes
    centroids = result.centroids.array()
    points = memory.encoder.project(embeddings, centroids.shape[1])
    scenes = [result.names[place] for place in nearest(points, centroids, result.geometry)]
    return [
        scene if choice is None else name
        for choice, name, scene in zip(choices, classes, scenes, strict=True)
    ]


def _describe(published: Statistics) -> dict[str, Any]:
    labels = published.label_names
    return {
        "contacts": dict(zip(labels, published.contacts, strict=False)),
        "noise": [name for name, clear in zip(labels, published.clear, strict=False) if not clear],
    }


STATISTICS = PhoneKind(
    kind=statistics.STATISTICS, contribute={CountContacts: _contacts}, describe=_describe
)
