"""All phones at once give what each phone gives for itself."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from support.simulated import by_phones

from earshot_simulations import Discovery, PolicyChoice, Settings, SummationChoice
from earshot_simulations.phases.settings import NOISELESS
from earshot_simulations.populations import LiftedBlobs
from earshot_studies.liebenow.at_once.crowd import discover
from earshot_studies.liebenow.at_once.heard import HeardByAll

SETTINGS = Settings(
    phones=150,
    recordings=12,
    scenes=4,
    labelled=0.5,
    dropout=0.2,
    corrupted=0.0,
    discovery=Discovery.SECURE_SUM,
    summation=SummationChoice.IDEAL,
    policy=PolicyChoice.ANYTHING,
    epsilon=NOISELESS,
    jobs=1,
    seed=9,
)
POPULATION = LiftedBlobs(150, 12, 4, 0.5, 9)


@pytest.mark.parametrize(
    "sums", [0, 1, *(pytest.param(sums, marks=pytest.mark.slow) for sums in (2, 3))]
)
def test_without_noise_it_is_what_phones_give_one_by_one(sums: int) -> None:
    settings = dataclasses.replace(SETTINGS, sums=sums)
    parameters = settings.parameters(POPULATION)
    found, expected = (
        discover(parameters, HeardByAll.of(POPULATION), settings.seed),
        by_phones(settings, POPULATION),
    )
    # A share of noise of 10⁻⁶ of the largest vector is off by one step in one of 10⁵ entries.
    votes = np.array(expected.label_votes)
    np.testing.assert_allclose(np.array(found.label_votes), votes, atol=3 / 4096)
    np.testing.assert_allclose(found.centroids.array(), expected.centroids.array(), atol=1e-4)
    assert (found.labels, found.moved) == (expected.labels, expected.moved)
    assert votes.max() > 10


def test_its_noise_is_that_of_the_shares_of_all_who_stayed() -> None:
    settings = dataclasses.replace(SETTINGS, epsilon=1.0, sums=0)
    parameters, heard = settings.parameters(POPULATION), HeardByAll.of(POPULATION)
    quiet = dataclasses.replace(settings, epsilon=NOISELESS).parameters(POPULATION)
    errors = [
        np.array(discover(parameters, heard, seed).label_votes)
        - np.array(discover(quiet, heard, seed).label_votes)
        for seed in range(40)
    ]
    # 40 tables of 80 entries: the deviation is known to 2 %, and shares make 150 · 0.8 to 150.
    relative = np.std(errors) / parameters.labels_noise
    assert 0.95 < relative < 1.05 * np.sqrt(150 / parameters.noise_survivors)
