"""A labelling phase that a test plays: twelve phones, samples of two scenes and of neither."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from earshot_client.labels import LabelHierarchy
from earshot_client.phone import Phone
from earshot_client.policy import Policy
from earshot_client.store.memory import MemoryStore
from earshot_client.voters import Voter
from earshot_protocol.phases.labelling import Labelled, LabellingParameters
from earshot_protocol.secure_sum.bell import BELL
from earshot_protocol.wire import Matrix
from earshot_server.discovery.optics import Optics
from earshot_server.phases.coordinator import Coordinator
from earshot_server.store.memory import MemoryPhaseStore
from earshot_simulations.engine.ideal import IDEAL
from support.parameters import labelling_parameters
from support.played_phase import Play
from support.points import AGREES, HeardPoints

PHONES = 12
CLASSES = ("bus", "park")
SCENES = np.array([[1.0, 0.1], [0.1, 1.0]])
SAMPLES = np.array([[1.0, 0.1], [0.2, 2.0], [-1.0, -1.0], [0.9, 0.1]])
"""Of a bus, of a park, of what no phone has heard, of a bus."""
ANSWERS = (0, 1, -1, 0)


def parameters(**changes: Any) -> LabellingParameters:
    """Hardly any noise, and room for three dropouts."""
    small = {
        "phones": PHONES,
        "labels": CLASSES,
        "samples": Matrix.of(SAMPLES),
        "votes_noise": 0.5,
        "check_noise": 0.5,
        "threshold": 6.0,
        "dropout": 0.25,
        "step_seconds": 100.0,
    }
    return labelling_parameters(**(small | changes))


def phone(
    number: int,
    ideal: bool = True,
    labelled: bool = True,
    policy: Policy = AGREES,
    voter: Voter | None = None,
    store: MemoryStore | None = None,
) -> Phone:
    """Eight recordings of both scenes; each third phone has heard nothing."""
    random = np.random.default_rng([35, number])
    scenes = np.arange(8 if number % 3 else 0) % 2
    points = SCENES[scenes] * random.uniform(0.5, 2, (len(scenes), 1))
    points += random.normal(0, 0.03, points.shape)
    choices = [CLASSES[scene] if labelled else None for scene in scenes]
    return Phone(
        store or MemoryStore(points.astype(np.float32), choices),
        HeardPoints("points", 2),
        policy,
        hierarchy=LabelHierarchy.flat(CLASSES),
        random=np.random.default_rng([36, number]).bytes,
        summation=IDEAL if ideal else BELL,
        voter=voter,
    )


def play(agreed: LabellingParameters, ideal: bool = True, **phones: Any) -> Play:
    coordinator = Coordinator.start(
        MemoryPhaseStore(), Optics(), agreed, now=0.0, summation=IDEAL if ideal else BELL
    )
    return Play(coordinator, {number: phone(number, ideal, **phones) for number in range(PHONES)})


def outcome(game: Play) -> Labelled:
    """What is published, under a name that all phases share."""
    game.until("published")
    result = game.coordinator.result()
    assert isinstance(result, Labelled)
    return msgspec.structs.replace(result, phase=bytes(16))
