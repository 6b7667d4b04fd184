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
    cells_of,
    directions,
    names_of,
    outcome,
    parameters,
    play,
)
from support.played_phase import liar

from earshot_protocol.phases.discovery import Discovered, SumCells, SumLabels
from earshot_protocol.privacy.mechanisms import GRID
from earshot_protocol.start_centroids import CentroidSet
from earshot_server.dashboard.prototypes import nameless
from earshot_server.phases.discovery import DiscoveryPhase

STEPS = tuple(step.name for step in parameters(sums=2).plan().steps)


def distance(result: Discovered, scene: int) -> float:
    """Degrees between a scene and the cell closest to it."""
    closest = float((cells_of(result) @ SCENES[scene]).max())
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
    assert names_of(result) == list(CLASSES)
    if sums:
        assert max(distance(result, scene) for scene in (0, 1)) < 6
        assert result.moved[cell_of(result, 0)]
    else:
        assert np.array_equal(cells_of(result), START.centroids())
        assert not any(result.moved)
        assert distance(result, 0) > 20
        assert set(result.cell_lengths) == {0.0}
    # Half of what every phone labelled is of each scene, which sounds alike: 1/√2 a row.
    assert result.lengths == pytest.approx([PHONES / np.sqrt(2)] * 2, abs=1)
    assert result.labels == (0, 1)
    apart = np.degrees(np.arccos((result.centroids.array() * SCENES).sum(axis=1).clip(-1, 1)))
    assert apart.max() < 4, "a prototype is where its label's sound is, wherever cells are"


def test_phones_are_told_parameters_once_and_then_where_cells_are() -> None:
    game = play(parameters(sums=2))
    told = {}
    while game.coordinator.step != "published":
        task = game.coordinator.task_for(5)
        if isinstance(task, SumCells | SumLabels):
            state = game.coordinator.state
            assert isinstance(state, DiscoveryPhase)
            told[game.coordinator.step] = task, state.centroids
        game.step()
    (first, _), (second, moved), (last, _) = told.values()
    assert isinstance(first, SumCells)
    assert isinstance(second, SumCells)
    assert isinstance(last, SumLabels)
    assert (first.parameters, first.centroids) == (parameters(sums=2), None)
    assert (second.parameters, last.parameters) == (None, None)
    assert (first.repetition, second.repetition) == (1, 2)
    assert second.centroids == moved
    assert moved is not None


# --------------------------------------------------------------------------- what there is to hear


def test_without_labels_there_are_cells_that_nobody_named_and_no_prototypes() -> None:
    result = outcome(play(parameters(), labelled=False))
    assert result.names == (None, None)
    assert min(result.name_p_values) > 0.05
    assert max(distance(result, scene) for scene in (0, 1)) < 6
    assert result.cell_labels == (-1, -1, -1)
    assert {cell_of(result, 0), cell_of(result, 1)} <= set(nameless(result))
    assert names_of(result) == [None, None]
    assert max(result.lengths) < 2


def test_phones_without_recordings_publish_where_the_cells_began() -> None:
    result = outcome(play(parameters(sums=2), recordings=False))
    assert result.names == (None, None)
    assert result.moved == (False, False, False)
    assert np.array_equal(cells_of(result), START.centroids())
    assert nameless(result) == ()


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
        part = game.coordinator.step.partition(":")[0]
        assert state.shape(part) == ((2, 3) if part == "labels" else (9, 2))
        game.step()
    assert rows == [4] * ROUNDS + [9] * 2 * ROUNDS
    result = outcome(game)
    assert len(cells_of(result)) == len(result.moved) == len(result.cell_lengths) == 9
    assert [CLASSES[result.cell_labels[cell_of(result, scene)]] for scene in (0, 1)] == list(
        CLASSES
    )
    # A last sum of cells adds none: nothing would tell them apart.
    once = outcome(play(msgspec.structs.replace(agreed, sums=1), ideal))
    assert len(cells_of(once)) == 4


def test_one_cell_and_one_label_are_enough() -> None:
    alone = CentroidSet.of(directions(70))
    result = outcome(play(parameters(start=alone, labels=("bus",), sums=2)))
    assert result.names == ("bus",)
    assert result.moved == (True,)
    # Half of what a phone heard is labelled so and sounds alike.
    assert result.lengths == pytest.approx([PHONES], abs=2)


def test_a_label_that_nobody_has_names_nothing() -> None:
    result = outcome(play(parameters(labels=("attic", "bus", "park"))))
    assert result.names == (None, "bus", "park")
    assert result.name_p_values[0] > 0.05
    assert result.lengths[0] < 2


def test_cells_where_nobody_is_have_not_moved() -> None:
    far = CentroidSet.of(directions(25, 150, 265, 275))
    result = outcome(play(parameters(start=far, sums=1)))
    assert result.names == ("bus", "park")
    assert result.moved == (True, True, False, False)
    assert result.cell_lengths[0] > 7
    assert max(result.cell_lengths[2:]) < 2


# ------------------------------------------------------------------------------- phones that lie


@pytest.fixture(scope="module")
def honest() -> Discovered:
    return outcome(play(parameters(sums=1)))


def with_push(honest: Discovered, length: int) -> Discovered:
    """The result where phone 4 sends this length in a direction of its own for the bus."""
    game = play(parameters(sums=1))
    values = np.zeros((2, 3), dtype=np.int64)
    values[0, :2] = np.rint(length * GRID * ASIDE)
    liar(game, "labels: masked input", values)
    return outcome(game)


ASIDE = directions(25 + 90)[0]
"""At a right angle to the sound of the bus."""


def turned(result: Discovered) -> float:
    """Degrees by which the prototype of the bus is turned from its sound."""
    return float(np.degrees(np.arccos(result.centroids.array()[0] @ SCENES[0])))


def test_what_one_phone_that_lies_can_do_within_bounds(honest: Discovered) -> None:
    """It turns one prototype by its length beside theirs, and no more: it is not the phase."""
    result = with_push(honest, 3)
    assert names_of(result) == list(CLASSES)
    assert result.cells == honest.cells
    # Eleven honest phones have 1/√2 each under this label.
    assert turned(result) == pytest.approx(np.degrees(np.arctan(3 / (11 / np.sqrt(2)))), abs=3)
    assert np.allclose(result.centroids.array()[1], honest.centroids.array()[1], atol=0.06)


def test_a_push_as_long_as_the_whole_crowd_from_one_phone_moves_a_name(honest: Discovered) -> None:
    """The limit of what totals can tell, which the threat model states: names are not verified."""
    assert turned(with_push(honest, 11)) > 45
