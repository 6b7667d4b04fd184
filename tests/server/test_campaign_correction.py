"""Corrected counts beside contacts that a map took for others on purpose."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from earshot_server.campaigns.correction import corrected, naming_of

Reals = npt.NDArray[np.float64]
MADE = np.array([4000.0, 2500, 1500, 800, 200])


def naming(right: float) -> Reals:
    """Rates of a map: each place is mostly taken for the next one."""
    wrong = (1 - right) * (0.8 * np.roll(np.eye(5), 1, axis=1) + 0.05 * (1 - np.eye(5)))
    rates = right * np.eye(5) + wrong
    return rates / rates.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("right", [0.95, 0.75])
def test_without_noise_and_chance_correction_is_exact(right: float) -> None:
    rates = naming(right)
    found = corrected(
        MADE @ rates, np.full(5, 1e-9), naming_of(np.diag(MADE * 1e6) @ rates, deviation=0.0)
    )
    assert found.counts == pytest.approx(MADE)
    assert np.abs(found.naming).max() < 1


@given(st.lists(st.floats(-1e4, 1e4), min_size=5, max_size=5), st.integers(0, 99))
def test_corrected_contacts_add_up_to_the_named_ones(named: list[float], seed: int) -> None:
    table = np.diag(MADE) @ naming(0.8) + np.random.default_rng(seed).normal(0, 20, (5, 5))
    found = corrected(np.array(named), np.full(5, 100.0), naming_of(table, 20.0))
    assert found.counts.sum() == pytest.approx(sum(named), abs=1e-6)
    assert np.linalg.eigvalsh(found.noise).min() > 0
    # So noise on the rates moves contacts from place to place, and makes none.
    assert found.naming.sum() == pytest.approx(0, abs=1e-6 * (1 + found.naming.max()))


@given(st.integers(0, 999), st.floats(1, 200))
def test_rates_are_the_nearest_shares(seed: int, deviation: float) -> None:
    source = np.random.default_rng(seed)
    table = np.diag(MADE) @ naming(0.7) + source.normal(0, deviation, (5, 5))
    found = naming_of(table, deviation)
    assert (found.rates >= 0).all()
    assert found.rates.sum(axis=1) == pytest.approx(np.ones(5))
    totals = table.sum(axis=1)
    for place in range(5):
        if np.isinf(found.recordings[place]):
            assert totals[place] <= 3 * deviation * np.sqrt(5)
            assert found.rates[place] == pytest.approx(np.eye(5)[place])
            continue
        assert found.recordings[place] == totals[place]
        # No shares are nearer: each step towards others leads away (a projection's law).
        left = table[place] / totals[place] - found.rates[place]
        others = source.dirichlet(np.ones(5), 20)
        assert ((others - found.rates[place]) @ left <= 1e-12).all()


def test_a_place_that_nobody_labelled_keeps_its_name() -> None:
    table = np.diag(MADE) @ naming(0.8)
    table[4] = [10, -4, 6, 5, 3]  # 20 in all, beside noise of 4 √5
    found = corrected(MADE @ naming(0.8), np.full(5, 1.0), naming_of(table, 4.0))
    assert np.isinf(naming_of(table, 4.0).recordings[4])
    assert np.isfinite(found.counts).all()
    assert np.isfinite(found.naming).all()
    nothing = corrected(MADE, np.full(5, 1.0), naming_of(np.zeros((5, 5)), 0.0))
    assert nothing.counts == pytest.approx(MADE)


@pytest.mark.parametrize("right", [0.93, 0.75])
def test_variances_are_those_of_repeated_years(right: float) -> None:
    """Noise and chance of a week, and those of the table, each drawn 1200 times."""
    source, rates, draws = np.random.default_rng(53), naming(right), 1200
    labelled, deviation = (0.5 * MADE).astype(int), 6.0
    counts, expected = [], []
    for _ in range(draws):
        table = np.stack([source.multinomial(*each) for each in zip(labelled, rates, strict=True)])
        told = naming_of(table + source.normal(0, deviation, (5, 5)), deviation)
        named = sum(source.multinomial(*each) for each in zip(MADE.astype(int), rates, strict=True))
        found = corrected(named + source.normal(0, 50, 5), np.full(5, 2500.0), told)
        counts.append(found.counts)
        expected.append(np.diag(found.noise + found.naming.sum(axis=0)))
    errors = np.array(counts) - MADE
    assert errors.mean(axis=0) == pytest.approx(np.zeros(5), abs=15)
    assert np.var(errors, axis=0) == pytest.approx(np.mean(expected, axis=0), rel=0.15)
    held = np.abs(errors) <= 1.959964 * np.sqrt(expected)
    assert held.mean() == pytest.approx(0.95, abs=0.015)
