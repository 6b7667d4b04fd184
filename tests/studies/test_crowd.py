"""All phones at once give what each phone gives for itself."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from support.simulated import by_phones

from earshot_protocol.voting.vectors import unit_steps
from earshot_server.phases.discovery import DiscoveryPhase
from earshot_simulations import (
    Adversary,
    Discovery,
    PolicyChoice,
    Settings,
    SummationChoice,
)
from earshot_simulations.phases.run import NOISELESS
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
    ("sums", "kinds"),
    [
        (0, 1),
        (1, 1),
        (1, 3),
        *(pytest.param(sums, 6, marks=pytest.mark.slow) for sums in (0, 2, 3)),
    ],
)
def test_without_noise_it_is_what_phones_give_one_by_one(sums: int, kinds: int) -> None:
    # Some phones give everything one label, which so has several kinds of sound.
    adversary = Adversary(one_label=0.2 if kinds > 1 else 0.0)
    settings = dataclasses.replace(SETTINGS, sums=sums, kinds=kinds, adversary=adversary)
    parameters = settings.parameters(POPULATION)
    heard = HeardByAll.of(POPULATION, settings.attack(POPULATION))
    found, expected = discover(parameters, heard, 9), by_phones(settings, POPULATION)
    # A share of noise of 10⁻⁶ of the largest vector is off by one step in one of 10⁵ entries.
    assert found.cells is not None
    assert expected.cells is not None
    np.testing.assert_allclose(found.lengths, expected.lengths, atol=3 / 4096)
    np.testing.assert_allclose(found.cell_lengths, expected.cell_lengths, atol=3 / 4096)
    np.testing.assert_allclose(found.centroids.array(), expected.centroids.array(), atol=1e-3)
    np.testing.assert_allclose(found.cells.array(), expected.cells.array(), atol=1e-4)
    assert (found.labels, found.moved) == (expected.labels, expected.moved)
    assert found.names == expected.names
    assert max(found.lengths) > 10
    assert (len(found.labels) > SETTINGS.scenes) == (kinds > 1)


def test_what_phones_of_an_attack_hold_is_what_their_sums_have() -> None:
    adversary = Adversary(swapped_labels=0.3, one_label=0.1)
    settings = dataclasses.replace(SETTINGS, sums=1, adversary=adversary)
    attack, honest = settings.attack(POPULATION), HeardByAll.of(POPULATION)
    held = HeardByAll.of(POPULATION, attack)
    assert np.array_equal(held.points, honest.points)
    assert np.array_equal(held.starts, honest.starts)
    for phone in range(settings.phones):
        rows = slice(held.starts[phone], held.starts[phone + 1])
        expected = attack.heard(phone, POPULATION.recordings(phone)).labels
        assert held.labels[rows].tolist() == expected.tolist()
        if phone not in attack.corrupted:
            assert held.labels[rows].tolist() == honest.labels[rows].tolist()
    parameters = settings.parameters(POPULATION)
    found, plain = (discover(parameters, heard, 9) for heard in (held, honest))
    assert found.cells == plain.cells
    assert found.lengths != plain.lengths


def test_poisoned_phones_hold_the_place_that_they_want() -> None:
    settings = dataclasses.replace(SETTINGS, adversary=Adversary(poisoning=0.1))
    attack = settings.attack(POPULATION)
    held = HeardByAll.of(POPULATION, attack)
    for phone in sorted(attack.corrupted):
        rows = slice(held.starts[phone], held.starts[phone + 1])
        assert rows.stop - rows.start == settings.recordings
        assert (held.points[rows] == attack.target).all()
        assert (held.labels[rows] == 0).all()


def test_its_noise_is_that_of_the_shares_of_all_who_stayed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = dataclasses.replace(SETTINGS, epsilon=1.0, sums=0)
    parameters, heard = settings.parameters(POPULATION), HeardByAll.of(POPULATION)
    quiet = dataclasses.replace(settings, epsilon=NOISELESS, kinds=1).parameters(POPULATION)
    assert parameters.kinds == 1
    totals: list[np.ndarray] = []
    take = DiscoveryPhase.take_total

    def recorded(self: DiscoveryPhase, part: str, total: np.ndarray) -> None:
        totals.append(total)
        take(self, part, total)

    monkeypatch.setattr(DiscoveryPhase, "take_total", recorded)
    for seed in range(150):
        discover(parameters, heard, seed)
        discover(quiet, heard, seed)
    errors = np.array(totals[::2]) - np.array(totals[1::2])
    assert errors.shape == (150, 4, 4)
    # 2,400 entries: the deviation is known to 2 %, and shares make 150 · 0.8 to 150.
    relative = np.std(errors) / (unit_steps(16) * parameters.labels_noise)
    assert 0.95 < relative < 1.05 * np.sqrt(150 / parameters.noise_survivors)
