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
    directions,
    outcome,
    parameters,
    play,
)
from support.played_phase import Play, again

from earshot_protocol.messages import Failed
from earshot_protocol.phases.discovery import Discovered, LabelCells, SumCells
from earshot_protocol.phases.plan import SecureSum
from earshot_protocol.privacy.mechanisms import GRID
from earshot_protocol.secure_sum import encoding, masks
from earshot_protocol.secure_sum.messages import MaskedInput
from earshot_protocol.start_centroids import CentroidSet
from earshot_protocol.wire import Answer
from earshot_server.phases.coordinator import Coordinator
from earshot_server.phases.discovery import DiscoveryPhase
from earshot_server.phases.kinds import decode_snapshot

STEPS = tuple(step.name for step in parameters(sums=2).plan().steps)


@pytest.fixture(scope="module")
def undisturbed() -> Discovered:
    """Of two sums of cells, when nothing happens."""
    return outcome(play(parameters(sums=2), ideal=False))


def cell_of(result: Discovered, scene: int) -> int:
    return int(np.argmax(result.centroids.array() @ SCENES[scene]))


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


@pytest.mark.parametrize("sums", [0, 1, 2, 3])
def test_real_and_ideal_sums_publish_the_same(sums: int) -> None:
    agreed = parameters(sums=sums)
    assert outcome(play(agreed, ideal=False)) == outcome(play(agreed, ideal=True))


def test_killed_after_every_half_and_every_step_it_publishes_the_same(
    undisturbed: Discovered,
) -> None:
    game = play(parameters(sums=2), ideal=False)
    kills = 0

    def kill(coordinator: Coordinator) -> Coordinator:
        nonlocal kills
        kills += 1
        saved = msgspec.msgpack.encode(coordinator.state)
        restored, _ = decode_snapshot(saved)
        assert isinstance(restored, DiscoveryPhase)
        assert msgspec.msgpack.encode(restored) == saved
        other = again(coordinator)
        tasks = [[each.task_for(i) for i in range(PHONES)] for each in (coordinator, other)]
        assert tasks[0] == tasks[1]
        return other

    game.disturb = kill
    assert outcome(game) == undisturbed
    assert kills == 3 * len(STEPS)


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


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("ideal", [True, False])
def test_phones_that_vanish_in_any_step_are_done_without(step: str, ideal: bool) -> None:
    game = play(parameters(sums=2), ideal)
    game.until(step)
    game.present -= {1, 5, 8}
    result = outcome(game)
    assert [result.names[cell_of(result, scene)] for scene in (0, 1)] == list(CLASSES)
    inputs = game.coordinator.state.inputs
    place = STEPS.index(step)
    # The third round is the one in which inputs travel.
    expected = [PHONES - 3 if place <= ROUNDS * number + 2 else PHONES for number in range(3)]
    assert list(inputs.values()) == expected


@pytest.mark.parametrize("step", STEPS)
def test_too_few_phones_fail_the_phase_by_name(step: str) -> None:
    game = play(parameters(sums=2))
    game.until(step)
    game.present -= {1, 5, 8, 9}
    game.step()
    told = game.coordinator.task_for(0)
    assert isinstance(told, Failed)
    assert "8 of 12" in told.reason


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


def lied(game: Play, answer: Answer, values: np.ndarray) -> MaskedInput:
    """In the place of a phone's input: in an ideal sum inputs travel as they are."""
    assert isinstance(answer, MaskedInput)
    state = game.coordinator.state
    part = state.parameters.plan().part(game.coordinator.step.partition(":")[0])
    assert isinstance(part, SecureSum)
    agreed = state.parameters.sum_parameters(part, state.shape(part.name))
    whole = np.asarray(values, dtype=np.int64).ravel() % 2**agreed.modulus_bits
    words = whole.astype(masks.word_type(agreed.modulus_bits))
    packed = encoding.pack(words, agreed.modulus_bits)
    return msgspec.structs.replace(answer, vector=packed)


def liar(game: Play, part: int, values: np.ndarray) -> None:
    """Phone 4 sends these numbers in a part's third round; all others do what they should."""
    game.until(STEPS[ROUNDS * part + 2])
    game.coordinator.accept(4, lied(game, game.answer(4), values))
    game.present -= {4}
    game.step()
    game.present |= {4}


@pytest.mark.parametrize(
    ("part", "entry"), [(0, 14 * GRID), (0, -24 * GRID), (2, 14 * GRID), (2, -11 * GRID)]
)
def test_a_total_that_no_honest_crowd_has_ends_the_phase_by_name(part: int, entry: int) -> None:
    game = play(parameters(sums=2))
    liar(game, part, np.array([entry, 0, 0, 0, 0, 0]))
    game.step()
    told = game.coordinator.task_for(0)
    assert isinstance(told, Failed)
    assert "at least one phone sent something that is not an input" in told.reason


def test_what_one_phone_that_lies_can_do_within_bounds() -> None:
    """As much as all others together, and no more: it is one cell or one name, not the phase."""
    game = play(parameters(sums=1))
    game.until("labels: masked input")
    votes = np.zeros((3, 2), dtype=np.int64)
    honest = outcome(play(parameters(sums=1)))
    bus = cell_of(honest, 0)
    votes[bus, 1] = 3 * GRID
    game.coordinator.accept(4, lied(game, game.answer(4), votes))
    game.present -= {4}
    game.step()
    game.present |= {4}
    result = outcome(game)
    # Three phones' worth of votes for another name is not enough against eleven honest ones.
    assert result.names[bus] == "bus"
    assert result.names[cell_of(result, 1)] == "park"
    assert result.centroids == honest.centroids
    gained = np.array(result.label_votes) - np.array(honest.label_votes)
    assert gained[bus, 1] > 2.5


def test_votes_as_of_the_whole_crowd_from_one_phone_make_a_name() -> None:
    """The limit of what totals can tell, which the threat model states: names are not verified."""
    honest = outcome(play(parameters(sums=1)))
    bus = cell_of(honest, 0)
    game = play(parameters(sums=1))
    game.until("labels: masked input")
    votes = np.zeros((3, 2), dtype=np.int64)
    votes[bus, 1] = 11 * GRID
    game.coordinator.accept(4, lied(game, game.answer(4), votes))
    game.present -= {4}
    game.step()
    game.present |= {4}
    assert outcome(game).names[bus] == "park"
