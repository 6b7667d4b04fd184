"""What holds of phases of every kind: what a phone refuses to join, and that it says why."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import date, datetime
from typing import Any

import msgspec
import numpy as np
import pytest
from support.endings import discovered, labelled, result
from support.line import Line
from support.parameters import discovery_parameters as discovery
from support.parameters import labelling_parameters as labelling
from support.parameters import learning_parameters as learning
from support.parameters import statistics_parameters as statistics
from support.phase_tasks import OTHER_PHASE, PHASE, first_task
from support.points import HeardPoints
from support.refusing_phone import CountedBytes, refuses

from earshot_client.phone import Phone
from earshot_client.policy import Policy
from earshot_client.store.memory import MemoryStore
from earshot_client.visits.outcome import Event
from earshot_client.visits.participation import Participation
from earshot_protocol.api import Refuse
from earshot_protocol.errors import (
    MalformedMessageError,
    RefusedError,
    RemoteError,
    UnexpectedMessageError,
)
from earshot_protocol.geometry import Geometry
from earshot_protocol.phases.learning import Budget
from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.privacy.accounting import expenses
from earshot_protocol.privacy.ledger import Ledger
from earshot_protocol.privacy.mechanisms import BallotSum
from earshot_protocol.rules import Rule
from earshot_protocol.start_centroids import CentroidSet
from earshot_protocol.wire import Ending, Matrix, Task
from earshot_simulations.engine.ideal import IDEAL

Make = Callable[..., Parameters]
Changes = dict[str, Any]
KINDS = [discovery, labelling, learning, statistics]
POINTS = np.random.default_rng(4).normal(size=(6, 2)).astype(np.float32)
DEFAULT, RECORDINGS = Policy(), Policy.per_recording()
SPHERICAL: Changes = {"geometry": Geometry.SPHERICAL}


def phone(policy: Policy, recordings: int = 6) -> Phone:
    store = MemoryStore(POINTS[:recordings], (["bus", "park", None] * 2)[:recordings])
    before = expenses("before", BallotSum(0.1, 1, 75))
    for entry in Ledger().append(OTHER_PHASE, before, date(2026, 1, 1)):
        store.append_ledger(entry)
    return Phone(store, HeardPoints("points", 2), policy, random=CountedBytes(), summation=IDEAL)


def accepting(make: Make) -> Policy:
    """The strictest of the ready policies under which a usual phase of this kind is accepted."""
    return RECORDINGS if make is learning else DEFAULT


def budget(clustering: float = 1.0, centroid_vote: float = 0.5) -> Budget:
    return Budget(clustering, 0.25, centroid_vote, 0.75)


def start(dimensions: int, count: int, size: int) -> Changes:
    return {"start": CentroidSet(dimensions=dimensions, count=count, rows=bytes(size))}


def said(value: object) -> str | None:
    if isinstance(value, dict):
        return str(value)[:60]
    return value.__name__.partition("_")[0] if callable(value) else None


UNSUITED: list[tuple[Make, Changes, Rule, str]] = [
    (discovery, {"phones": 10**7 + 1}, Rule.LARGEST_PHONES, ""),
    (discovery, {"corrupted": 0.01}, Rule.LEAST_CORRUPTED, ""),
    (discovery, {"encoder": "another"}, Rule.ENCODER, "embeddings of 'another'"),
    (discovery, {"start": CentroidSet.of(np.eye(3))}, Rule.DIMENSIONS, "dimensions=3"),
    (discovery, {"sums": 4}, Rule.PARAMETERS, "sums"),
    (discovery, {"cells_noise": 0.0}, Rule.PARAMETERS, "cells_noise"),
    (discovery, {"cells_noise": 1e-148}, Rule.PARAMETERS, ""),
    (discovery, {"cells_noise": 0.5}, Rule.LARGEST_EPSILON, ""),
    (discovery, {"cells_noise": 1e6}, Rule.PARAMETERS, "variance"),
    (discovery, {"cells_noise": math.inf}, Rule.PARAMETERS, "cells_noise"),
    (discovery, {"labels_noise": 1e-9}, Rule.LARGEST_EPSILON, ""),
    (discovery, {"labels_noise": math.nan}, Rule.PARAMETERS, "labels_noise"),
    (discovery, {"delta": 1.0}, Rule.PARAMETERS, "delta"),
    (discovery, start(2, 3, 11), Rule.PARAMETERS, "12 bytes"),
    (discovery, start(2, 3, 12), Rule.PARAMETERS, "length 1"),
    (discovery, start(0, 3, 0), Rule.PARAMETERS, "dimensions"),
    (discovery, start(2, 10**9, 12), Rule.PARAMETERS, "1 to 1024"),
    (labelling, {"encoder": "another"}, Rule.ENCODER, ""),
    (labelling, {"samples": Matrix.of(np.eye(3))}, Rule.DIMENSIONS, ""),
    (labelling, {"samples": Matrix(2, 2, bytes(15))}, Rule.PARAMETERS, ""),
    (labelling, {"samples": Matrix.of(np.zeros((2, 2)))}, Rule.PARAMETERS, ""),
    (labelling, {"votes_noise": 1e9}, Rule.PARAMETERS, ""),
    (labelling, {"threshold": 1e9}, Rule.PARAMETERS, ""),
    (learning, {"encoder": "log-mel-1"}, Rule.ENCODER, "log-mel-1.*points"),
    (learning, {"dimensions": 3}, Rule.DIMENSIONS, "dimensions=3"),
    (learning, {"phones": 99}, Rule.LEAST_PHONES, "least_phones"),
    (learning, {"phones": 10**7 + 1}, Rule.LARGEST_PHONES, "phones=10000001; at most 10000000"),
    (learning, {"phones": 10**8}, Rule.LARGEST_PHONES, "largest_phones"),
    (learning, {"phones": 20_000, "noise_crowd": 10_001}, Rule.LARGEST_NOISE_CROWD, ""),
    (learning, {"noise_crowd": 0}, Rule.PARAMETERS, "noise_crowd=0"),
    (learning, {"dropout": 0.31}, Rule.LARGEST_DROPOUT, "largest_dropout"),
    (learning, {"dropout": 0.4}, Rule.LARGEST_DROPOUT, ""),
    (learning, {"dropout": 0.3, "corrupted": 0.8}, Rule.PARAMETERS, "honest"),
    (learning, {"corrupted": 0.01}, Rule.LEAST_CORRUPTED, ""),
    (learning, {"budget": budget(2.0)}, Rule.LARGEST_EPSILON, "largest_epsilon"),
    (learning, SPHERICAL | {"delta": 1e-3}, Rule.LARGEST_DELTA, "largest_delta"),
    (learning, SPHERICAL | {"delta": 2e-5}, Rule.LARGEST_DELTA, ""),
    # What cannot be a phase at all is refused like the rest: the server is wrong, not the caller.
    (learning, {"delta": 2.0}, Rule.PARAMETERS, ""),
    (learning, {"recordings": 0}, Rule.PARAMETERS, "recordings=0"),
    (learning, {"top_local_centroids": 4}, Rule.PARAMETERS, "top_local_centroids=4"),
    (learning, {"budget": budget(-1.0)}, Rule.PARAMETERS, "clustering=-1"),
    (learning, {"budget": budget(1e-17)}, Rule.PARAMETERS, "clustering=1e-17: must be at least"),
    (learning, {"budget": budget(5e-324)}, Rule.PARAMETERS, "clustering=5e-324"),
    (learning, {"budget": budget(1.0, math.nan)}, Rule.PARAMETERS, "centroid-vote=nan"),
    (statistics, {"phones": 99}, Rule.LEAST_PHONES, ""),
    (statistics, {"phones": 20_000, "noise_crowd": 15_000}, Rule.LARGEST_NOISE_CROWD, ""),
    (statistics, {"dropout": 0.31}, Rule.LARGEST_DROPOUT, ""),
    (statistics, {"noise": 0.5, "contacts": 1}, Rule.LARGEST_EPSILON, ""),
    (statistics, {"noise": 2.0, "contacts": 9}, Rule.LARGEST_PHONE_EPSILON, ""),
    (statistics, {"noise": math.nan}, Rule.PARAMETERS, ""),
]


def is_refused(asked: Phone, task: Task, rule: Rule, words: str) -> None:
    """By name, without any change, and the server is told the rule and nothing else."""
    error = refuses(asked, task, RefusedError, words)
    assert error.rule is rule, str(error)
    line = Line(task)
    visit = Participation(asked, asked._store, line).visit(datetime(2026, 3, 1, 12))
    assert visit.event is Event.REFUSED
    assert line.refused == [Refuse(phase=PHASE, rule=rule)]
    assert line.sent == []


@pytest.mark.parametrize("recordings", [0, 6])
@pytest.mark.parametrize(("make", "changes", "rule", "words"), UNSUITED, ids=said)
def test_a_phase_that_does_not_suit_the_phone_is_refused_whatever_it_has_heard(
    make: Make, changes: Changes, rule: Rule, words: str, recordings: int
) -> None:
    asked = phone(accepting(make), recordings)
    is_refused(asked, first_task(make(**changes)), rule, words)
    assert asked.answer(first_task(make())) is not None


@pytest.mark.parametrize(
    ("policy", "parameters", "rule"),
    [
        # What a phone makes private itself, also of a server that names one recording.
        (DEFAULT, learning(), Rule.LARGEST_PHONE_EPSILON),
        (
            DEFAULT,
            learning(recordings=1, budget=Budget(0.4, 0.1, 0.3, 0.3)),
            Rule.LARGEST_PHONE_EPSILON,
        ),
        (
            Policy.per_recording(largest_delta=0.9),
            learning(delta=1e-2, **SPHERICAL),
            Rule.DELTA,
        ),
        # Its secure sums use up the delta.
        (RECORDINGS, discovery(delta=1e-300), Rule.LARGEST_EPSILON),
    ],
)
def test_a_phase_that_does_not_suit_the_policy_is_refused(
    policy: Policy, parameters: Parameters, rule: Rule
) -> None:
    asked = phone(policy)
    is_refused(asked, first_task(parameters), rule, "")
    assert asked.answer(first_task(statistics())) is not None


@pytest.mark.parametrize("make", KINDS, ids=said)
def test_a_number_outside_the_phase_is_refused(make: Make) -> None:
    task = first_task(make(), index=100)
    is_refused(phone(accepting(make)), task, Rule.PROTOCOL, "phone 100")


NONE = Matrix(0, 2, b"")
ENDINGS = [result(), discovered(), labelled()]


@pytest.mark.parametrize("ending", ENDINGS, ids=lambda each: type(each).__name__)
@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"labels": (0, 1)}, UnexpectedMessageError),
        ({"labels": (0, 1, 2)}, UnexpectedMessageError),
        ({"name_p_values": (0.1,)}, UnexpectedMessageError),
        ({"centroids": Matrix.of(np.eye(3))}, UnexpectedMessageError),
        ({"centroids": NONE}, UnexpectedMessageError),
        ({"centroids": NONE, "labels": (), "name_p_values": ()}, UnexpectedMessageError),
        ({"centroids": Matrix(3, 2, bytes(20))}, MalformedMessageError),
    ],
    ids=said,
)
def test_an_ending_that_makes_no_sense_is_not_kept(
    ending: Ending, changes: Changes, error: type[RemoteError]
) -> None:
    asked = phone(RECORDINGS)
    asked.answer(first_task(learning()))
    refuses(asked, msgspec.structs.replace(ending, **changes), error, "result|matrix")
    assert asked.result is asked.labelled is None
    asked.answer(ending)
    assert ending in (asked.result, asked.labelled)
