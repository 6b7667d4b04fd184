"""The whole discovery phase between coordinator and phones: whatever happens to it in between."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from support.discovery_phase import (
    CLASSES,
    PHONES,
    ROUNDS,
    SCENES,
    START,
    cell_of,
    directions,
    outcome,
    parameters,
    play,
)
from support.played_phase import liar

from earshot_protocol.phases.discovery import Discovered, LabelCells, SumCells
from earshot_protocol.privacy.mechanisms import GRID
from earshot_protocol.start_centroids import CentroidSet
from earshot_server.phases.discovery import DiscoveryPhase

STEPS = tuple(step.name for step in parameters(sums=2).plan().steps)


def distance(result: Discovered, scene: int) -> float:
    """Degrees between a scene and the cell closest to it."""
    closest = float((result.centroids.array() @ SCENES[scene]).max())
    return float(np.degrees(np.arccos(min(1.0, closest))))


@pytest.mark.parametrize("sums", [0, 1, 2, 3])
def test_each_sum_is_one_of_four_rounds_and_cells_go_where_sound_is(sums: int) -> None:
    agreed = parameters(sums=sums)
    game = play(agreed)
    seen = []
    while game.coordinator.step != "published":
        seen.append(game.coordinator.step)
        game.step()
    assert len(seen) == ROUNDS * (sums + 1)
    result = outcome(game)
    assert result.privacy == agreed.plan().releases()
    assert result.encoder == agreed.encoder
    assert [result.names[cell_of(result, scene)] for scene in (0, 1)] == list(CLASSES)
    if sums:
        assert max(distance(result, scene) for scene in (0, 1)) < 6
        assert result.moved[cell_of(result, 0)]
    else:
        assert np.array_equal(result.centroids.array(), START.centroids())
        assert not any(result.moved)
        assert distance(result, 0) > 20
    # Every phone's labels make one vote or little more: half of them lie in each of two cells.
    votes = np.array(result.label_votes)
    assert votes.sum() == pytest.approx(PHONES * np.sqrt(2), rel=0.15)


def test_phones_are_told_parameters_once_and_then_where_cells_are() -> None:
    game = play(parameters(sums=2))
    told = {}
    while game.coordinator.step != "published":
        task = game.coordinator.task_for(5)
        if isinstance(task, SumCells | LabelCells):
            state = game.coordinator.state
            assert isinstance(state, DiscoveryPhase)
            told[game.coordinator.step] = task, state.centroids
        game.step()
    (first, _), (second, moved), (last, twice) = told.values()
    assert isinstance(first, SumCells)
    assert isinstance(second, SumCells)
    assert isinstance(last, LabelCells)
    assert (first.parameters, first.centroids) == (parameters(sums=2), None)
    assert (second.parameters, last.parameters) == (None, None)
    assert (first.repetition, second.repetition) == (1, 2)
    assert second.centroids == moved
    assert last.centroids == twice
    assert moved not in (None, twice)


# --------------------------------------------------------------------------- what there is to hear


def test_without_labels_no_cell_has_a_name() -> None:
    result = outcome(play(parameters(), labelled=False))
    assert result.names == (None, None, None)
    assert max(distance(result, scene) for scene in (0, 1)) < 6
    assert np.abs(result.label_votes).max() < 2


def test_phones_without_recordings_publish_where_the_cells_began() -> None:
    result = outcome(play(parameters(sums=2), recordings=False))
    assert result.names == (None, None, None)
    assert result.moved == (False, False, False)
    assert np.array_equal(result.centroids.array(), START.centroids())


@pytest.mark.parametrize("ideal", [True, False])
def test_where_sound_is_far_from_the_start_further_cells_tell_it_apart(ideal: bool) -> None:
    """Both scenes lie in the first of four cells."""
    far = CentroidSet.of(directions(88, 265, 270, 275))
    agreed = parameters(start=far, most_cells=9, sums=2, cells_noise=0.05)
    game = play(agreed, ideal)
    rows = []
    while game.coordinator.step != "published":
        state = game.coordinator.state
        assert isinstance(state, DiscoveryPhase)
        rows.append(len(state.cells()))
        assert state.shape(game.coordinator.step.partition(":")[0])[0] == 9
        game.step()
    assert rows == [4] * ROUNDS + [9] * 2 * ROUNDS
    result = outcome(game)
    assert len(result.labels) == len(result.moved) == len(result.name_p_values) == 9
    assert [result.names[cell_of(result, scene)] for scene in (0, 1)] == list(CLASSES)
    # A last sum of cells adds none: nothing would tell them apart.
    once = outcome(play(msgspec.structs.replace(agreed, sums=1), ideal))
    assert len(once.labels) == 4


def test_one_cell_and_one_label_are_enough() -> None:
    alone = CentroidSet.of(directions(70))
    result = outcome(play(parameters(start=alone, labels=("bus",), sums=2)))
    assert result.names == ("bus",)
    assert result.moved == (True,)
    assert float(result.label_votes[0][0]) == pytest.approx(PHONES, abs=2)


def test_a_label_that_nobody_has_names_nothing() -> None:
    result = outcome(play(parameters(labels=("attic", "bus", "park"))))
    assert "attic" not in result.names
    assert {"bus", "park"} <= set(result.names)


def test_cells_where_nobody_is_are_unnamed() -> None:
    far = CentroidSet.of(directions(25, 150, 265, 275))
    result = outcome(play(parameters(start=far, sums=0)))
    assert result.names == ("bus", "park", None, None)


# ------------------------------------------------------------------------------- phones that lie


@pytest.fixture(scope="module")
def honest() -> Discovered:
    return outcome(play(parameters(sums=1)))


def with_votes_for_park(honest: Discovered, votes: int) -> Discovered:
    """The result where phone 4 sends these votes for another name of the first scene's cell."""
    game = play(parameters(sums=1))
    values = np.zeros((3, 2), dtype=np.int64)
    values[cell_of(honest, 0), 1] = votes * GRID
    liar(game, "labels: masked input", values)
    return outcome(game)


def test_what_one_phone_that_lies_can_do_within_bounds(honest: Discovered) -> None:
    """As much as all others together, and no more: it is one cell or one name, not the phase."""
    result, bus = with_votes_for_park(honest, 3), cell_of(honest, 0)
    # Three phones' worth of votes for another name is not enough against eleven honest ones.
    assert result.names[bus] == "bus"
    assert result.names[cell_of(result, 1)] == "park"
    assert result.centroids == honest.centroids
    gained = np.array(result.label_votes) - np.array(honest.label_votes)
    assert gained[bus, 1] > 2.5


def test_votes_as_of_the_whole_crowd_from_one_phone_make_a_name(honest: Discovered) -> None:
    """The limit of what totals can tell, which the threat model states: names are not verified."""
    assert with_votes_for_park(honest, 11).names[cell_of(honest, 0)] == "park"
