"""The power that an audit states of its lines: errors of that size are seen 99 times in 100."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from scipy import stats

from earshot_simulations.auditing import power, sampling
from earshot_simulations.auditing.findings import EXACT, Finding, Technique
from earshot_simulations.auditing.laws import Law
from earshot_simulations.auditing.losses import Bracket

TRIALS = 400
LEAST = 0.97
"""Of trials: a power of .99 is below it once in a thousand runs."""


def number(words: str) -> float:
    found = re.search(r"\d+(\.\d+)?(e-\d+)?", words)
    assert found is not None
    return float(found[0])


def test_a_law_that_is_as_far_away_as_is_said_is_refused() -> None:
    cells, draws, level = 25, 20_000, 1e-9
    away = 1.03 * number(power.of_fit(cells, draws, level))
    # The farthest in χ² for its total variation is spread evenly: half the cells gain, half lose.
    true = np.full(cells, 1 / cells)
    true[: cells // 2] += away / (cells // 2)
    true[cells // 2 : 2 * (cells // 2)] -= away / (cells // 2)
    observed = np.random.default_rng(0).multinomial(draws, true, TRIALS)
    refused = stats.chisquare(observed, draws / cells, axis=1).pvalue < level
    assert refused.mean() >= LEAST


def test_a_law_that_is_farther_away_by_kolmogorov_is_refused() -> None:
    draws, level = 2000, 1e-6
    away = number(power.of_kolmogorov(draws, level))
    generator = np.random.default_rng(1)
    shift = 2 * stats.norm.ppf(0.5 + away / 2)
    found = [
        stats.kstest(generator.normal(shift, 1, draws), "norm").pvalue < level for _ in range(50)
    ]
    assert np.mean(found) >= LEAST


def test_a_correlation_of_that_size_is_refused() -> None:
    numbers, deviations = 3000, 6.0
    size = 1.03 * number(power.of_correlation(numbers, deviations))
    generator = np.random.default_rng(2)
    one, rest = generator.standard_normal((2, TRIALS, numbers))
    other = size * one + math.sqrt(1 - size**2) * rest
    found = [
        np.corrcoef(a, b)[0, 1] * math.sqrt(numbers) > deviations
        for a, b in zip(one, other, strict=True)
    ]
    assert np.mean(found) >= LEAST
    assert power.of_correlation(60, 6.0) == "none"


def test_a_rate_that_is_so_far_off_is_refused() -> None:
    rate, draws, deviations = 0.1, 100_000, 6.0
    off = 1.03 * number(power.of_rate(rate, draws, deviations)) / 100
    counts = np.random.default_rng(3).binomial(draws, rate * (1 + off), TRIALS)
    found = (counts / draws - rate) * math.sqrt(draws / rate / (1 - rate)) > deviations
    assert found.mean() >= LEAST


def test_an_epsilon_of_that_size_is_seen_in_trials() -> None:
    trials, limit = 4000, 2.0
    epsilon = 1.01 * number(power.of_trials(trials, sampling.CONFIDENCE, 1e-6, limit))
    chance = 1 / (1 + math.exp(-epsilon))
    generator = np.random.default_rng(4)
    seen = []
    for _ in range(100):
        losses, others = (
            np.where(generator.random(trials) < each, epsilon, -epsilon)
            for each in (chance, 1 - chance)
        )
        seen.append(sampling.sampled_epsilon(losses, others, 1e-6).low > limit)
    assert np.mean(seen) >= LEAST
    assert power.of_trials(100, sampling.CONFIDENCE, 1e-6, 30.0) == "none"


def test_an_error_on_so_few_inputs_is_met() -> None:
    share = number(power.of_tries(200)) / 100
    assert 1 - (1 - share) ** 200 == pytest.approx(0.99, abs=0.002)


def test_a_byte_that_repeats_so_often_is_counted() -> None:
    share = number(power.of_repeats(24, 4)) / 100
    assert stats.binom.sf(4, 24, share) == pytest.approx(0.99, abs=0.005)


def test_an_exact_line_sees_what_is_beyond_its_bracket() -> None:
    found = Finding("", "", 1e-6, 1.0, 1.0, Bracket(0.9, 0.95), Technique(EXACT, ""))
    assert found.power == "any ε from 1.05"
    unbounded = Finding("", "", 1e-6, 1.0, 1.0, Bracket(0.9, math.inf), Technique(EXACT, ""))
    assert "no upper end" in unbounded.power


def test_numbers_fit_their_law_and_no_other() -> None:
    masses = stats.binom.pmf(np.arange(41), 40, 0.5)
    law = Law(-20, masses)
    generator = np.random.default_rng(5)
    drawn = generator.binomial(40, 0.5, 5000) - 20
    assert sampling.fit(law, drawn)[0] > 1e-4
    assert sampling.fit(law, generator.binomial(40, 0.53, 5000) - 20)[0] < 1e-9
    assert sampling.fit(law, np.zeros(5000, dtype=np.int64))[0] < 1e-9
    peaked = Law(-1, np.array([0.005, 0.99, 0.005]))
    assert sampling.fit(peaked, np.repeat([-1, 0, 1], [25, 4950, 25]))[0] > 0.5
