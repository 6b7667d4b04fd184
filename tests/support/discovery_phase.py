"""A discovery phase that a test plays: twelve phones, three cells, two scenes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from earshot_client.labels import LabelHierarchy
from earshot_client.phone import Phone
from earshot_client.store.memory import MemoryStore
from earshot_protocol.phases.discovery import Discovered, DiscoveryParameters
from earshot_protocol.phases.places import Places
from earshot_protocol.secure_sum.bell import BELL
from earshot_protocol.start_centroids import CentroidSet
from earshot_server.discovery.optics import Optics
from earshot_server.phases.coordinator import Coordinator
from earshot_server.store.memory import MemoryPhaseStore
from earshot_simulations.engine.ideal import IDEAL
from support.parameters import discovery_parameters
from support.played_phase import Play
from support.points import AGREES, HeardPoints

PHONES = 12
CLASSES = ("bus", "park")
ROUNDS = 4
"""Steps of a secure sum."""


def directions(*degrees: float) -> np.ndarray:
    angles = np.radians(degrees)
    return np.column_stack([np.cos(angles), np.sin(angles)])


START = CentroidSet.of(directions(0, 120, 240))
SCENES = directions(25, 150)


def parameters(**changes: Any) -> DiscoveryParameters:
    """Hardly any noise, and room for three dropouts."""
    small = {
        "phones": PHONES,
        "labels": CLASSES,
        "start": START,
        "sums": 1,
        "cells_noise": 0.2,
        "labels_noise": 0.2,
        "dropout": 0.25,
        "step_seconds": 100.0,
    }
    return discovery_parameters(**(small | changes))


def heard(number: int, labelled: bool = True) -> tuple[np.ndarray, list[str | None]]:
    """Eight recordings of one phone, of both scenes, of any length."""
    random = np.random.default_rng([25, number])
    scenes = np.arange(8) % 2
    points = SCENES[scenes] * random.uniform(0.5, 2, (8, 1)) + random.normal(0, 0.03, (8, 2))
    return points.astype(np.float32), [CLASSES[s] if labelled else None for s in scenes]


def phone(number: int, ideal: bool, recordings: bool = True, labelled: bool = True) -> Phone:
    points, choices = heard(number, labelled)
    kept = slice(None if recordings else 0)
    return Phone(
        MemoryStore(points[kept], choices[kept]),
        HeardPoints("points", 2),
        AGREES,
        hierarchy=LabelHierarchy.flat(CLASSES),
        random=np.random.default_rng([26, number]).bytes,
        summation=IDEAL if ideal else BELL,
    )


def play(
    agreed: DiscoveryParameters, ideal: bool = True, recordings: bool = True, labelled: bool = True
) -> Play:
    coordinator = Coordinator.start(
        MemoryPhaseStore(), Optics(), agreed, now=0.0, summation=IDEAL if ideal else BELL
    )
    crowd = {number: phone(number, ideal, recordings, labelled) for number in range(PHONES)}
    return Play(coordinator, crowd)


def outcome(game: Play) -> Discovered:
    """What is published, under a name that all phases share."""
    game.until("published")
    result = game.coordinator.result()
    assert isinstance(result, Discovered)
    return msgspec.structs.replace(result, phase=bytes(16))


def cells_of(result: Discovered) -> np.ndarray:
    """Return where the cells of a result are."""
    assert result.cells is not None
    return result.cells.array()


def cell_of(result: Discovered, scene: int) -> int:
    """Return the cell that lies closest to a scene."""
    return int(np.argmax(cells_of(result) @ SCENES[scene]))


def names_of(result: Discovered) -> list[str | None]:
    """Return the names by which a phone that knows the result calls the scenes."""
    return Places.of(result).nearest(SCENES.astype(np.float32))


def by_plain_addition(parameters: DiscoveryParameters, phones: Sequence[Phone]) -> Discovered:
    """Play a phase in one process, without cryptography, and return its result."""
    coordinator = Coordinator.start(
        MemoryPhaseStore(), Optics(), parameters, now=0.0, summation=IDEAL
    )
    for now, _ in enumerate(parameters.plan().steps, start=1):
        for number, phone in enumerate(phones):
            answer = phone.answer(coordinator.task_for(number))
            assert answer is not None
            coordinator.accept(number, answer)
        assert coordinator.advance(float(now))
    result = coordinator.result()
    assert isinstance(result, Discovered)
    return result
