"""Lower bounds on ε, with a stated confidence, from guessed coins.

Two tests. *All records*: under (ε, δ)-differential privacy the number of right guesses is hardly
larger than that of coins that fall right with probability e^ε/(1 + e^ε) (Steinke, Nasr and
Jagielski, NeurIPS 2023, Theorem 5.2); coins of several trainings are coins of one mechanism that
runs them all. *The canary alone*: whether its score exceeds a threshold, in trials with it and in
trials without it (Jagielski, Ullman and Oprea, NeurIPS 2020; Clopper and Pearson). The test and its
threshold are chosen on trials other than those that are measured.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

from earshot_simulations.membership.game import Coins, Numbers
from earshot_simulations.membership.proportions import clopper_pearson

SHARES = (0.0, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5)
"""Shares of all coins that may be guessed won, and likewise lost."""
_THRESHOLDS = 40
_BISECTIONS = 50
_LARGEST = 40.0


@dataclass(frozen=True)
class GuessAll:
    """Guess that the highest scores were learned from and the lowest were not.

    Attributes:
        won: Share of all coins that are guessed won.
        lost: Share of all coins that are guessed lost.
    """

    won: float
    lost: float

    words = "guesses of all records"

    def bound(self, scores: Numbers, coins: Coins, delta: float, confidence: float) -> float:
        """Return a lower bound on ε.

        Args:
            scores: Scores (trials, records), large for records that seem learned from.
            coins: Coins (trials, records), true for records that were learned from.
            delta: Value of δ.
            confidence: Confidence that the bound holds.
        """
        return guessed_epsilon(*self._guessed(scores, coins), coins.size, delta, confidence)

    def refutes(
        self, epsilon: float, scores: Numbers, coins: Coins, delta: float, confidence: float
    ) -> bool:
        """Return whether the bound is above ε, without computing it."""
        guessed = self._guessed(scores, coins)
        return chance_of_right(*guessed, coins.size, epsilon, delta) <= 1 - confidence

    def _guessed(self, scores: Numbers, coins: Coins) -> tuple[int, int]:
        """Return the number of right guesses, and of all guesses."""
        ordered = coins.ravel()[np.argsort(scores, axis=None, kind="stable")]
        won, lost = round(self.won * len(ordered)), round(self.lost * len(ordered))
        right = int(ordered[len(ordered) - won :].sum()) + int((~ordered[:lost]).sum())
        return right, won + lost


@dataclass(frozen=True)
class CanaryAbove:
    """Test whether the canary's score reaches a threshold, or falls below it.

    Attributes:
        threshold: Threshold of the score.
        above: Whether scores from the threshold up indicate the canary; otherwise those below it
            indicate its absence.
    """

    threshold: float
    above: bool

    words = "the canary's score"

    def bound(self, scores: Numbers, coins: Coins, delta: float, confidence: float) -> float:
        """Return a lower bound on ε; arguments as for `GuessAll.bound`."""
        event = (scores[:, 0] >= self.threshold) == self.above
        usual = coins[:, 0] == self.above
        error = (1 - confidence) / 2
        least, _ = clopper_pearson(int(event[usual].sum()), int(usual.sum()), error)
        _, most = clopper_pearson(int(event[~usual].sum()), int((~usual).sum()), error)
        return max(0.0, math.log((least - delta) / most)) if least > delta else 0.0

    def refutes(
        self, epsilon: float, scores: Numbers, coins: Coins, delta: float, confidence: float
    ) -> bool:
        """Return whether the bound is above ε."""
        return self.bound(scores, coins, delta, confidence) > epsilon


Test = GuessAll | CanaryAbove


def tests_of(scores: Numbers) -> list[Test]:
    """Return all tests that are tried on scores (trials, records)."""
    places = np.unique(np.quantile(scores[:, 0], np.linspace(0, 1, _THRESHOLDS)))
    return [
        *(
            GuessAll(won, lost)
            for won, lost in itertools.product(SHARES, repeat=2)
            if won + lost > 0
        ),
        *(CanaryAbove(float(at), above) for at in places for above in (True, False)),
    ]


def best_test(scores: Numbers, coins: Coins, delta: float, confidence: float) -> tuple[Test, float]:
    """Return the test that shows most on trials with known coins, and the ε that it shows."""
    best, shown = tests_of(scores)[0], -1.0
    for test in tests_of(scores):
        if shown < 0 or test.refutes(shown, scores, coins, delta, confidence):
            best, shown = test, test.bound(scores, coins, delta, confidence)
    return best, shown


def guessed_epsilon(right: int, guesses: int, coins: int, delta: float, confidence: float) -> float:
    """Return the largest ε that this many right guesses refute, from below.

    Args:
        right: Number of right guesses.
        guesses: Number of guesses, fixed beforehand.
        coins: Number of coins, guessed or not.
        delta: Value of δ.
        confidence: Confidence that ε is not below.
    """

    def refuted(epsilon: float) -> bool:
        return chance_of_right(right, guesses, coins, epsilon, delta) <= 1 - confidence

    if guesses == 0 or not refuted(0.0):
        return 0.0
    low, high = 0.0, _LARGEST
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low


def chance_of_right(right: int, guesses: int, coins: int, epsilon: float, delta: float) -> float:
    """Bound the probability of this many right guesses or more (Steinke et al., Theorem 5.2).

    β + 2mδ · max_i (P[right − i ≤ W < right]) / i, W binomial, of `guesses` at e^ε/(1 + e^ε),
    β = P[W ≥ right] and m the number of coins.
    """
    from scipy.stats import binom

    chance = 1 / (1 + math.exp(-epsilon))
    tail = float(binom.sf(right - 1, guesses, chance))
    if delta == 0 or right == 0:
        return tail
    fewer = np.arange(1, right + 1)
    steps = (binom.sf(right - fewer - 1, guesses, chance) - tail) / fewer
    return min(1.0, tail + 2 * coins * delta * max(0.0, float(steps.max())))
