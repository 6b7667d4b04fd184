"""Test vectors of what phones put into sums of contacts: entries, projection and rounding."""

from __future__ import annotations

import json
from datetime import date
from typing import Any

import examples
import msgspec
import numpy as np
from cells import described

from earshot_client.phases.memory import Memory
from earshot_client.phases.statistics import STATISTICS as PHONE
from earshot_client.store.memory import MemoryStore
from earshot_protocol.phases.parameters import Choices, hierarchy_of
from earshot_protocol.phases.statistics import HISTOGRAM, CountContacts, StatisticsParameters
from earshot_protocol.secure_sum.messages import AdvertiseKeys
from earshot_simulations.engine.interface import HeardPoints

Vector = dict[str, Any]
Contact = tuple[str | None, tuple[float, float], date | None, bool]
"""Choice, point, day, and whether a histogram has counted it."""

_FAR, _NEAR, _UNNAMED = (-1.0, 0.0), (1.0, 0.125), (0.6, 0.75)
"""Points far from all places, near the first one, and near the second one, which has no name."""
_IN, _OUT = date(2026, 1, 1), date(2026, 1, 8)
_HELD: tuple[Contact, ...] = (
    ("siren", _FAR, _IN, False),
    ("street", _NEAR, date(2026, 1, 7), False),
    ("street", _FAR, _OUT, False),
    ("nature", _FAR, date(2025, 12, 31), False),
    ("nature", _NEAR, None, False),
    ("nature", _NEAR, _IN, True),
    ("a former label", _NEAR, _IN, False),
    (None, _NEAR, _IN, False),
    (None, _NEAR, _IN, False),
    (None, _UNNAMED, _IN, False),
    (None, _FAR, _IN, False),
)
_WINDOWLESS = msgspec.structs.replace(examples.STATISTICS, since=None, until=None, places=None)


def contact_vectors() -> Vector:
    """Return what phones put into sums of contacts, and what phones derive of these sums."""
    short, one = (msgspec.structs.replace(_WINDOWLESS, contacts=each) for each in (3, 1))
    confusion = examples.CONFUSION
    alone = msgspec.structs.replace(confusion, contacts=1)
    return {
        "inputs": [
            _input(parameters, held)
            for parameters in (examples.STATISTICS, _WINDOWLESS, short, one)
            for held in (_HELD, _HELD[:1], _HELD[7:9] * 40, ())
        ]
        + [
            _input(confusion, held)
            for held in (_HELD, _HELD[:1], _HELD[1:2], _HELD[3:5], _HELD[9:], ())
        ],
        "sums": [
            described(parameters, HISTOGRAM, (parameters.entries,))
            for parameters in (examples.STATISTICS, short, one, confusion, alone)
        ],
    }


def _input(parameters: StatisticsParameters, held: tuple[Contact, ...]) -> Vector:
    choices: Choices = examples.CHOICES
    store = MemoryStore(
        np.array([point for _, point, _, _ in held], dtype=np.float32).reshape(-1, 2),
        [choice for choice, _, _, _ in held],
        [day for _, _, day, _ in held],
    )
    described = store.descriptions()
    store.mark_counted(
        [each.number for each, contact in zip(described, held, strict=True) if contact[3]]
    )
    encoder = HeardPoints("contrast-3", 2)
    memory = Memory(store, encoder, hierarchy_of(parameters.labels, choices), _no_noise)
    part = parameters.plan().parts[0]
    opening = AdvertiseKeys(
        sum_id=bytes(16),
        index=0,
        parameters=parameters.sum_parameters(part, (parameters.entries,)),  # type: ignore[arg-type]
    )
    task = CountContacts(phase=bytes(16), parameters=parameters, opening=opening)
    vector = np.asarray(PHONE.contribute[CountContacts](memory, parameters, task))
    PHONE.released(memory)
    return {
        "parameters": json.loads(msgspec.json.encode(parameters)),
        "choices": choices,
        "contacts": [
            {
                "choice": choice,
                "point": point,
                "day": None if day is None else str(day),
                "counted": counted,
            }
            for choice, point, day, counted in held
        ],
        "counted": [at for at, each in enumerate(store.descriptions()) if each.counted],
        "input": vector.tolist(),
    }


def _no_noise(size: int) -> bytes:
    raise AssertionError("inputs are taken before noise is drawn")
