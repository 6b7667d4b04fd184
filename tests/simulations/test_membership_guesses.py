"""Lower bounds on ε from guessed coins: other programs, fifty digits, and mechanisms of known ε."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from jax_privacy.auditing import CanaryScoreAuditor, Explicit

from earshot_simulations.membership.guesses import (
    CanaryAbove,
    GuessAll,
    best_test,
    chance_of_right,
    guessed_epsilon,
)


def exact_chance(right: int, guesses: int, coins: int, epsilon: float, delta: float) -> float:
    """Theorem 5.2 of Steinke et al. (2023), term by term at fifty digits."""
    with mpmath.workdps(50):
        chance = 1 / (1 + mpmath.exp(-mpmath.mpf(epsilon)))
        mass = [
            mpmath.binomial(guesses, w) * chance**w * (1 - chance) ** (guesses - w)
            for w in range(guesses + 1)
        ]
        tail = mpmath.fsum(mass[right:])
        steps = [mpmath.fsum(mass[right - i : right]) / i for i in range(1, right + 1)]
        return float(min(mpmath.mpf(1), tail + 2 * coins * mpmath.mpf(delta) * max(steps)))


@pytest.mark.parametrize(
    ("right", "guesses", "coins", "epsilon", "delta"),
    [
        (8, 10, 10, 0.5, 0.0),
        (60, 70, 400, 1.0, 1e-5),
        (1, 3, 3, 0.0, 1e-3),
        (45, 45, 90, 3.0, 1e-4),
    ],
)
def test_the_chance_of_so_many_right_guesses_is_that_of_the_theorem(
    right: int, guesses: int, coins: int, epsilon: float, delta: float
) -> None:
    found = chance_of_right(right, guesses, coins, epsilon, delta)
    assert found == pytest.approx(exact_chance(right, guesses, coins, epsilon, delta), rel=1e-9)


@pytest.mark.parametrize("delta", [1e-9, 1e-5, 1e-3])
def test_guesses_of_one_side_show_what_jax_privacy_finds(delta: float) -> None:
    generator = np.random.default_rng(0)
    ours, others = generator.normal(1.5, 1, 300), generator.normal(0, 1, 300)
    threshold = float(np.sort(np.append(ours, others))[-60])
    theirs = CanaryScoreAuditor(ours, others).epsilon_one_run(
        0.05, delta, threshold_strategy=Explicit(threshold)
    )
    scores = np.append(ours, others)[:, None]
    coins = np.arange(600)[:, None] < 300
    shown = GuessAll(0.1, 0.0).bound(scores, coins, delta, 0.95)
    assert theirs > 0.5
    assert shown == pytest.approx(theirs, abs=1e-5)


@pytest.mark.parametrize("above", [True, False])
def test_the_canary_shows_what_jax_privacy_finds(above: bool) -> None:
    generator = np.random.default_rng(1)
    ours, others = generator.normal(2, 1, 200), generator.normal(0, 1, 150)
    sign = 1 if above else -1
    members, rest = (ours, others) if above else (-others, -ours)
    theirs = CanaryScoreAuditor(members, rest).epsilon_clopper_pearson(
        0.02, 1e-4, threshold_strategy=Explicit(1.5 * sign)
    )
    # Theirs spends its whole significance on each of two bounds, ours half of it.
    scores, coins = np.append(ours, others)[:, None], np.arange(350)[:, None] < 200
    shown = CanaryAbove(1.5, above).bound(scores, coins, 1e-4, 0.98)
    strict = CanaryScoreAuditor(members, rest).epsilon_clopper_pearson(
        0.01, 1e-4, threshold_strategy=Explicit(1.5 * sign)
    )
    assert min(theirs, strict) - 1e-6 <= shown <= max(theirs, strict) + 1e-6
    assert shown > 0.5


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.5])
def test_randomized_answers_are_measured_just_below_their_epsilon_and_never_above(
    epsilon: float,
) -> None:
    generator, below = np.random.default_rng(3), []
    for _ in range(30):
        coins = generator.random((50, 40)) < 0.5
        told = generator.random(coins.shape) < 1 / (1 + math.exp(-epsilon))
        right = int((coins == (coins == told)).sum())  # what is told of a coin is right where told
        assert right == int(told.sum())
        below.append(guessed_epsilon(right, coins.size, coins.size, 0.0, 0.999))
    assert max(below) <= epsilon
    assert np.mean(below) > epsilon - 0.25


def test_a_bound_is_wrong_no_more_often_than_it_says() -> None:
    generator, epsilon = np.random.default_rng(4), 1.0
    right = generator.binomial(500, 1 / (1 + math.exp(-epsilon)), 5000)
    bounds = {each: guessed_epsilon(int(each), 500, 500, 0.0, 0.9) for each in np.unique(right)}
    assert 0.05 < np.mean([bounds[each] > epsilon for each in right]) <= 0.1 + 0.01


def test_nothing_is_shown_by_scores_that_know_nothing() -> None:
    generator = np.random.default_rng(5)
    scores, coins = generator.random((60, 30)), generator.random((60, 30)) < 0.5
    test, expected = best_test(scores[:30], coins[:30], 1e-6, 0.999)
    assert expected < 0.15  # the best of many tests of the trials that chose it
    assert test.bound(scores[30:], coins[30:], 1e-6, 0.999) == 0.0


def test_no_guess_and_no_right_guess_show_nothing() -> None:
    assert guessed_epsilon(0, 0, 100, 1e-6, 0.95) == 0.0
    assert guessed_epsilon(0, 10, 100, 1e-6, 0.95) == 0.0
    assert guessed_epsilon(5, 10, 100, 1e-6, 0.95) == 0.0


def test_the_best_test_is_the_best_of_all() -> None:
    from earshot_simulations.membership.guesses import tests_of

    generator = np.random.default_rng(6)
    coins = generator.random((40, 12)) < 0.5
    scores = coins + generator.normal(0, 0.7, coins.shape)
    _, shown = best_test(scores, coins, 1e-6, 0.95)
    assert shown == max(each.bound(scores, coins, 1e-6, 0.95) for each in tests_of(scores))
    assert shown > 1
