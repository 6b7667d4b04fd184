"""One contract for all kinds of phase, between coordinator and phones, whatever happens to them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import Any

import msgspec
import numpy as np
import pytest
from support import discovery_phase, labelling_phase, played_phase, statistics_phase
from support.played_phase import PARAMETERS, PHONES, Play, again, liar
from support.statistics_phase import FIRST, places

from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.messages import Failed
from earshot_protocol.phases.learning import Budget
from earshot_protocol.privacy.mechanisms import GRID
from earshot_protocol.wire import Ending
from earshot_server.discovery.optics import Optics
from earshot_server.phases.coordinator import Coordinator
from earshot_server.phases.kinds import decode_snapshot
from earshot_server.store.memory import MemoryPhaseStore


@dataclass(frozen=True)
class Kind:
    """A kind of phase, and how a test plays one with real or ideal sums."""

    parameters: Any
    play: Callable[[Any, bool], Play] = lambda agreed, ideal: played_phase.play(ideal, agreed)

    def steps(self) -> tuple[str, ...]:
        return tuple(step.name for step in self.parameters.plan().steps)

    def begin(self, ideal: bool = True) -> Play:
        return self.play(self.parameters, ideal)


KINDS = {
    "learning": Kind(PARAMETERS),
    "statistics": Kind(statistics_phase.PARAMETERS),
    "labelling": Kind(labelling_phase.parameters(threshold=3.0), labelling_phase.play),
} | {
    f"discovery of {sums} sums": Kind(discovery_phase.parameters(sums=sums), discovery_phase.play)
    for sums in range(4)
}
LEAST = ".*ε=1e-05.*at least 0.000122"
CUT = ("discovery of 2 sums", "labelling", "statistics")
STEPS = [(kind, step) for kind in CUT for step in KINDS[kind].steps()]


def published(game: Play) -> Ending:
    """The result, under a name that all phases share."""
    game.until("published")
    return msgspec.structs.replace(game.coordinator.result(), phase=bytes(16))


@cache
def undisturbed(kind: str) -> Ending:
    return published(KINDS[kind].begin(ideal=False))


@pytest.mark.parametrize("kind", KINDS)
def test_real_and_ideal_sums_publish_the_same(kind: str) -> None:
    assert published(KINDS[kind].begin()) == undisturbed(kind)


@pytest.mark.parametrize(
    ("kind", "ideal"),
    [("learning", True), *((kind, False) for kind in ("learning", *CUT))],
)
def test_killed_after_every_half_and_every_step_it_publishes_the_same(
    kind: str, ideal: bool
) -> None:
    game = KINDS[kind].begin(ideal)
    kills = 0

    def kill(coordinator: Coordinator) -> Coordinator:
        nonlocal kills
        kills += 1
        saved = msgspec.msgpack.encode(coordinator.state)
        restored, _ = decode_snapshot(saved)
        assert type(restored) is type(coordinator.state)
        assert msgspec.msgpack.encode(restored) == saved
        other = again(coordinator)
        assert (other.step, other.missing()) == (coordinator.step, coordinator.missing())
        tasks = [[each.task_for(i) for i in range(PHONES)] for each in (coordinator, other)]
        assert tasks[0] == tasks[1]
        return other

    game.disturb = kill
    assert published(game) == undisturbed(kind)
    assert kills == 3 * len(KINDS[kind].steps())


@pytest.mark.parametrize(("kind", "step"), [each for each in STEPS if each[0] != "statistics"])
@pytest.mark.parametrize("ideal", [True, False])
def test_phones_that_vanish_in_any_step_are_done_without(kind: str, step: str, ideal: bool) -> None:
    game = KINDS[kind].begin(ideal)
    game.until(step)
    game.present -= {1, 5, 8} if kind.startswith("discovery") else {1, 5, 9}
    result: Any = published(game)
    if kind.startswith("discovery"):
        assert discovery_phase.names_of(result) == list(discovery_phase.CLASSES)
    else:
        assert [result.labels[place] for place in (0, 1, 3)] == [0, 1, 0]
    place = KINDS[kind].steps().index(step)
    inputs = list(game.coordinator.state.inputs.values())
    # The third round is the one in which inputs travel.
    assert inputs == [
        PHONES - 3 if place <= 4 * sums + 2 else PHONES for sums in range(len(inputs))
    ]
    assert len(inputs) == len(KINDS[kind].steps()) / 4


@pytest.mark.parametrize(("kind", "step"), STEPS)
def test_too_few_phones_fail_the_phase_by_name(kind: str, step: str) -> None:
    game = KINDS[kind].begin()
    game.until(step)
    game.present -= {1, 5, 8, 9}
    game.step()
    assert game.coordinator.step == "failed"
    told = game.coordinator.task_for(0)
    assert isinstance(told, Failed)
    assert "8 of 12" in told.reason


@pytest.mark.parametrize(
    ("kind", "step", "values"),
    [
        ("discovery of 2 sums", "cells 1", [14 * GRID, 0, 0, 0, 0, 0]),
        ("discovery of 2 sums", "cells 1", [-24 * GRID, 0, 0, 0, 0, 0]),
        ("discovery of 2 sums", "labels", [14 * GRID, 0, 0, 0, 0, 0]),
        ("discovery of 2 sums", "labels", [-24 * GRID, 0, 0, 0, 0, 0]),
        ("labelling", "votes", [40, 0, 0, 0, 0, 0, 0, 0]),
        ("labelling", "votes", [-40, 0, 0, 0, 0, 0, 0, 0]),
        ("labelling", "votes", [12] * 8),
        ("labelling", "check", [40, 0, 0, 0]),
        ("labelling", "check", [0, 0, -40, 0]),
    ],
)
def test_a_total_that_no_honest_crowd_has_ends_the_phase_by_name(
    kind: str, step: str, values: list[int]
) -> None:
    game = KINDS[kind].begin()
    liar(game, f"{step}: masked input", np.array(values))
    game.step()
    told = game.coordinator.task_for(0)
    assert isinstance(told, Failed)
    assert "at least one phone sent something that is not an input" in told.reason


@pytest.mark.parametrize(
    ("kind", "changed", "message"),
    [
        ("learning", {"phones": 2}, "phones=2"),
        ("learning", {"dropout": 0.6, "corrupted": 0.5}, "together"),
        ("learning", {"dropout": 0.7}, "dropout"),
        ("learning", {"centroid_votes": 3}, "centroid_votes=3"),
        ("learning", {"budget": Budget(1, 1, 1e-5, 1)}, f"budget centroid-vote: {LEAST}"),
        ("learning", {"budget": Budget(1, 1, 1, 1e-5)}, f"budget label-vote: {LEAST}"),
        ("statistics", {"contacts": 0}, "contacts=0"),
        ("statistics", {"noise": 0.0}, "noise=0"),
        ("statistics", {"noise": float("nan")}, "noise=nan"),
        ("statistics", {"delta": 1.0}, "delta=1"),
        ("statistics", {"labels": ("bus", "bus")}, "repeat"),
        ("statistics", {"dropout": 0.7}, "dropout"),
        ("statistics", {"since": FIRST}, "two dates"),
        ("statistics", {"until": FIRST}, "two dates"),
        ("statistics", {"since": FIRST, "until": FIRST}, "must begin before it ends"),
        ("statistics", {"since": FIRST, "until": FIRST - timedelta(1)}, "must begin before it"),
        ("statistics", {"since": FIRST, "until": FIRST + timedelta(367)}, "366 days"),
        ("statistics", {"since": datetime(2026, 1, 1), "until": datetime(2026, 1, 2)}, "two dates"),
        ("statistics", {"places": places((0, 2))}, "2 labels up to number 2"),
        ("labelling", {"threshold": 12.5}, "at most 12, the votes of all 12 phones"),
        ("labelling", {"threshold": 0.0}, "threshold=0.0: must be above 0"),
        ("labelling", {"threshold": float("nan")}, "threshold=nan"),
        ("labelling", {"threshold": 25.0, "largest_weight": 2}, "at most 24"),
        ("labelling", {"threshold": 11.0, "phones": 10}, "the votes of all 10 phones"),
        ("labelling", {"votes_noise": 0.0}, "votes_noise=0.0"),
        ("labelling", {"check_noise": float("inf")}, "check_noise=inf"),
        ("labelling", {"largest_weight": 0}, "largest_weight=0: must .* from 1 to 16"),
        ("labelling", {"labels": ("bus",)}, "the number of labels=1: must .* 2 to 256"),
        ("labelling", {"delta": 1.0}, "delta"),
    ],
)  # fmt: skip
def test_a_phase_that_cannot_run_is_not_started(
    kind: str, changed: dict[str, object], message: str
) -> None:
    store = MemoryPhaseStore()
    agreed = msgspec.structs.replace(KINDS[kind].parameters, **changed)
    with pytest.raises(InvalidParametersError, match=message):
        Coordinator.start(store, Optics(), agreed, now=0.0)
    with pytest.raises(InvalidParametersError, match=message):
        agreed.check_feasible()
    assert store.phases() == ()
