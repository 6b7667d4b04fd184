"""An ending as a phone's user is told of it: plain types, and which of it may be noise."""

from __future__ import annotations

from datetime import date
from typing import Any

import numpy as np
import pytest

from earshot_client.phases.kinds import described
from earshot_protocol.geometry import Geometry
from earshot_protocol.messages import Failed
from earshot_protocol.phases.discovery import Discovered
from earshot_protocol.phases.labelling import Labelled
from earshot_protocol.phases.learning import Result
from earshot_protocol.phases.statistics import Statistics
from earshot_protocol.wire import Ending, Matrix

PHASE = bytes(range(16))
FOUND: dict[str, Any] = {
    "phase": PHASE,
    "geometry": Geometry.SPHERICAL,
    "centroids": Matrix.of(np.eye(4)),
    "labels": (1, 0, -1, 1),
    "label_names": ("bus", "park"),
    "name_p_values": (0.0, 0.0, 0.0, 0.9),
    "encoder": "contrast-3",
    "privacy": (),
}
COUNTED: dict[str, Any] = {
    "phase": PHASE,
    "label_names": ("bus", "park"),
    "labelled": (-3.25, 200.0),
    "named": (0.5, 50.25),
    "unknown": 17.5,
    "labelled_p_values": (0.7, 0.0),
    "named_p_values": (1.0, 0.2),
    "unknown_p_value": 0.3,
    "deviation": 4.5,
    "contacts": 5,
    "phones": 90,
    "privacy": (),
}
NUMBERS = {"contacts": {"bus": -3, "park": 250}, "unknown": 18}
VOTES = ((1, 9), (9, 1), (4, 4), (3, 4))
WEEK = {"since": date(2026, 3, 2), "until": date(2026, 3, 8)}

TOLD: list[tuple[Ending, dict[str, Any]]] = [
    (Failed(phase=PHASE, reason="too few phones"), {"type": "failed", "reason": "too few phones"}),
    (
        Result(
            **FOUND,
            centroid_votes=(9, 9, 8, 7),
            label_votes=VOTES,
            centroid_p_values=(0.0, 0.0, 0.0, 0.0),
        ),
        {"type": "result", "environments": ["park", "bus", "unnamed", "unnamed"]},
    ),
    (
        Discovered(
            **FOUND | {"labels": (1, 0, 0, 1)},
            choices=("", "", "night bus", "garden"),
            lengths=(9.0, 8.0, 7.0, 0.5),
            cells=Matrix.of(np.eye(4)),
            moved=(True,) * 4,
            cell_lengths=(9.0, 8.0, 7.0, 6.0),
            cell_prototypes=(0, 1, 2, 3),
            refused=0.0,
        ),
        {"type": "discovered", "environments": ["bus", "park"]},
    ),
    (
        Labelled(**FOUND, label_votes=VOTES, agreement=(9, 9, 2, 9), threshold=5.0),
        {"type": "labelled", "answers": ["park", "bus", None, "park"], "noise": [3]},
    ),
    (
        Statistics(**COUNTED),
        {"type": "statistics", **NUMBERS, "noise": ["bus"]},
    ),
    (
        Statistics(**COUNTED, since=date(2026, 3, 2)),
        {"type": "statistics", **NUMBERS, "noise": ["bus"]},
    ),
    (
        Statistics(**COUNTED, until=date(2026, 3, 8)),
        {"type": "statistics", **NUMBERS, "noise": ["bus"]},
    ),
    (
        Statistics(**COUNTED, **WEEK),
        {
            "type": "statistics",
            **NUMBERS,
            "noise": ["bus"],
            "since": "2026-03-02",
            "until": "2026-03-08",
        },
    ),
]


@pytest.mark.parametrize(("ending", "told"), TOLD, ids=lambda each: type(each).__name__)
def test_an_ending_is_told_in_plain_types(ending: Ending, told: dict[str, Any]) -> None:
    assert described(ending) == told | {"phase": PHASE.hex()}


def test_samples_without_an_answer_are_counted() -> None:
    labelled = TOLD[3][0]
    assert isinstance(labelled, Labelled)
    assert labelled.answered == 3
