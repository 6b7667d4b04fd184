"""Whole discovery phases over simulated phones: whatever is random, whoever vanishes, wherever."""

from __future__ import annotations

import dataclasses

import pytest
from support.simulated import essence, interrupted_after

from earshot_protocol.privacy.significance import are_clear
from earshot_simulations.adversary.adversary import Adversary
from earshot_simulations.engine.dropouts import draw_dropouts
from earshot_simulations.phases.run import NOISELESS, render, result
from earshot_simulations.phases.settings import PolicyChoice, Settings, SummationChoice
from earshot_simulations.phases.simulation import simulate
from earshot_simulations.populations import LiftedBlobs

CROWD = Settings(
    phones=44,
    recordings=20,
    scenes=3,
    labelled=0.5,
    dropout=0.3,
    corrupted=0.0,
    policy=PolicyChoice.ANYTHING,
    epsilon=12.0,
    cells=12,
    sums=2,
    jobs=1,
    seed=3,
)
QUIET = dataclasses.replace(
    CROWD,
    phones=200,
    dropout=0.0,
    epsilon=NOISELESS,
    labelled=1.0,
    summation=SummationChoice.IDEAL,
)
SMALL = dataclasses.replace(CROWD, phones=24, dropout=0.0, summation=SummationChoice.IDEAL)


def population(settings: Settings) -> LiftedBlobs:
    return LiftedBlobs(
        settings.phones, settings.recordings, settings.scenes, settings.labelled, settings.seed
    )


def steps(settings: Settings) -> list[str]:
    return [step.name for step in settings.parameters(population(settings)).plan().steps]


@pytest.mark.slow
def test_where_few_cells_hear_everything_their_number_grows_and_names_are_no_worse() -> None:
    """Three blobs in thirty cells: far less than half of these hear anything."""
    few = dataclasses.replace(QUIET, cells=30, most_cells=30)
    stayed, grew = simulate(few), simulate(dataclasses.replace(few, most_cells=50))
    assert [len(run.found.cells) for run in (stayed, grew)] == [30, 50]
    assert len(grew.found.moved) == len(grew.found.cell_lengths) == 50
    assert grew.found.label_accuracy == pytest.approx(1, abs=0.01)
    assert "50 placed" in render(grew)
    assert len(result(grew)["cells"]) == 50  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "sums", [0, 1, *(pytest.param(sums, marks=pytest.mark.slow) for sums in (2, 3))]
)
def test_the_ideal_sum_gives_what_the_real_one_gives_bit_for_bit(sums: int) -> None:
    settings = dataclasses.replace(CROWD, sums=sums)
    real = simulate(settings)
    assert real.interrupted is None
    ideal = simulate(dataclasses.replace(settings, summation=SummationChoice.IDEAL))
    assert essence(real) == essence(ideal)
    assert [step.step for step in real.steps] == steps(settings)
    assert len(real.steps) == 4 * (sums + 1)
    gone = sum(len(step.dropped) for step in real.steps)
    assert gone == 13
    assert real.survivors == CROWD.phones - gone


def test_somebody_vanishes_in_every_step() -> None:
    assert len(steps(CROWD)) == 12
    settings = dataclasses.replace(CROWD, phones=90, seed=0)
    lost = draw_dropouts(settings.parameters(population(settings)), 0)
    assert sum(map(len, lost.values())) == 27
    assert all(lost.values())
    run = simulate(dataclasses.replace(settings, summation=SummationChoice.IDEAL))
    assert run.interrupted is None
    assert {step.step: step.dropped for step in run.steps} == lost


@pytest.mark.parametrize(
    "place",
    [
        pytest.param(place, marks=[] if place in (0, 6, 11) else [pytest.mark.slow])
        for place in range(12)
    ],
)
def test_an_interrupt_leaves_the_sums_that_were_finished(place: int) -> None:
    stop = steps(SMALL)[place]

    run = simulate(SMALL, interrupted_after(stop))
    assert run.found.global_centroids is None
    assert run.found.ari_test is None
    assert run.found.cells is not None
    # Inputs leave the phones in the third round of each sum; from then on it is spent.
    spent = [
        name
        for number, name in enumerate(("cells 1", "cells 2", "labels"))
        if place >= 4 * number + 2
    ]
    assert sorted({release.step for release in run.privacy}) == spent
    assert run.found.moved is not None
    assert (len(run.found.moved) > 0) == (place >= 4)


@pytest.mark.parametrize("sums", [0, 1, 2])
def test_without_noise_scenes_are_found_and_named(sums: int) -> None:
    run = simulate(dataclasses.replace(QUIET, sums=sums))
    assert run.found.label_accuracy is not None
    assert run.found.label_accuracy > 0.95
    assert run.found.ari_test is not None
    assert run.found.ari_test > 0.9


def test_without_labels_there_are_no_names() -> None:
    run = simulate(dataclasses.replace(SMALL, labelled=0.0))
    assert run.interrupted is None
    assert len(run.found.name_p_values) == len(run.found.labels) == SMALL.scenes
    assert not any(are_clear(run.found.name_p_values, SMALL.scenes))
    assert result(run)["named"] == 0


def test_one_cell_is_enough_to_go_through() -> None:
    run = simulate(dataclasses.replace(SMALL, cells=1))
    assert run.interrupted is None
    assert run.found.cells is not None
    assert run.found.cells.shape == (1, 3)


def test_stuffed_ballots_are_votes_and_not_steps_of_one() -> None:
    """A vote is many steps of a sum over cells: ballots of single steps would attack nothing."""
    stuffing = Adversary(ballot_stuffing=0.1)
    settings = dataclasses.replace(QUIET, phones=100, epsilon=8.0, sums=0)
    honest, attacked = (
        simulate(dataclasses.replace(settings, adversary=adversary))
        for adversary in (Adversary(), stuffing)
    )
    assert attacked.interrupted is None
    # Single steps would leave the rows shorter, by what these phones did not add.
    assert 0 < sum(attacked.found.lengths) - sum(honest.found.lengths) < settings.phones
