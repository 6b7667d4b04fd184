"""All attacks on one generator, and the comparison of their findings with its stated privacy."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from earshot_protocol import checks
from earshot_simulations.membership import discriminators, distances, shadows
from earshot_simulations.membership.evidence import Evidence, evidence
from earshot_simulations.membership.game import Coins, Game, Numbers, Played, Progress, Train, play
from earshot_simulations.membership.guesses import best_test
from earshot_simulations.membership.planted import repeating

Attack = Callable[[Game, Played], Numbers]
"""Scores of all trials and records, (trials, records): large if a record seems learned from."""

ATTACKS: dict[str, Attack] = {
    "nearest sample": distances.nearest,
    "nearest sample, calibrated": distances.calibrated,
    "samples within a radius": distances.within_radius,
    "discriminator": discriminators.discriminator,
    "shadow models: moments": shadows.moments,
    "shadow models: correlations": shadows.correlations,
    "shadow models: nearness": shadows.nearness,
}
CONFIDENCE = 0.95


class Verdict(enum.StrEnum):
    """Verdicts of the attacks on a stated ε."""

    PASSES = "passes"
    """The attacks found no more than it allows, and do find more where there is more to find."""
    FAILS = "fails"
    """The attacks found more than it allows."""
    SILENT = "says nothing"
    """The attacks found no more than it allows, but would not have in a generator that hides
    nothing either."""


@dataclass(frozen=True)
class AttackOutcome:
    """The outcome of one attack.

    Attributes:
        attack: Name of the attack.
        evidence: Success of the attack.
        expected: The ε that the attack showed on trials whose coins it knew.
        shown: The ε that the attack showed on the other trials, a lower bound.
        test: Name of the test.
    """

    attack: str
    evidence: Evidence
    expected: float
    shown: float
    test: str


@dataclass(frozen=True)
class AttackReport:
    """The outcome of all attacks.

    Attributes:
        outcomes: Outcome of each attack.
        chosen: Outcome of the attack that did best on the trials with known coins; the verdict
            rests on its `shown` alone.
        epsilon, delta: Stated ε and δ of the generator; ε is infinite if it does not claim to be
            private.
        confidence: Confidence that `chosen.shown` is a lower bound on ε.
        power: The ε that the same attacks show of a generator that repeats its records, in the
            same number of trials.
        trials: Number of measured trials.
        coins: Number of coins of all records in these trials.
    """

    outcomes: tuple[AttackOutcome, ...]
    chosen: AttackOutcome
    epsilon: float
    delta: float
    confidence: float
    power: float
    trials: int
    coins: int

    @property
    def verdict(self) -> Verdict:
        """Verdict in one word."""
        if self.chosen.shown > self.epsilon:
            return Verdict.FAILS
        return Verdict.PASSES if self.power > self.epsilon else Verdict.SILENT


def attacked(
    train: Train,
    game: Game,
    epsilon: float,
    delta: float,
    *,
    seed: int = 0,
    confidence: float = CONFIDENCE,
    attacks: Mapping[str, Attack] = ATTACKS,
    progress: Progress | None = None,
) -> AttackReport:
    """Play the game, try all attacks, and do the same to a generator that repeats its records.

    Args:
        train: Training that is attacked.
        game: Settings of the game.
        epsilon: Stated ε of the generator, for neighbours as the game has them; infinity if it does
            not claim to be private.
        delta: Stated δ of the generator.
        seed: Seed of everything that is drawn.
        confidence: Confidence of the lower bound.
        attacks: Attacks by name.
        progress: Callback after each trial.

    Raises:
        InvalidParametersError: A number is out of range.
        InvalidInputError: The generator's samples do not look like its records.
    """
    if epsilon != math.inf:
        checks.positive("epsilon", epsilon)
    checks.fraction("delta", delta)
    checks.probability("confidence", confidence)
    outcomes = _outcomes(play(train, game, seed, progress), game, delta, confidence, seed, attacks)
    measured = game.trials - game.known
    return AttackReport(
        outcomes, max(outcomes, key=lambda each: each.expected), epsilon, delta, confidence,
        _power(game, delta, confidence, seed, attacks), measured, measured * len(game.records),
    )  # fmt: skip


def _outcomes(
    played: Played,
    game: Game,
    delta: float,
    confidence: float,
    seed: int,
    attacks: Mapping[str, Attack],
) -> tuple[AttackOutcome, ...]:
    found = []
    for name, attack in attacks.items():
        known, measured = _halves(attack, game, played)
        test, expected = best_test(*known, delta, confidence)
        shown = test.bound(*measured, delta, confidence)
        figures = evidence(known, measured, seed)
        found.append(AttackOutcome(name, figures, expected, shown, test.words))
    return tuple(found)


def _power(
    game: Game, delta: float, confidence: float, seed: int, attacks: Mapping[str, Attack]
) -> float:
    played = play(repeating, game, seed)
    halves = [_halves(attack, game, played) for attack in attacks.values()]
    tests = [best_test(*known, delta, confidence) for known, _ in halves]
    (test, _), (_, measured) = max(zip(tests, halves, strict=True), key=lambda each: each[0][1])
    return test.bound(*measured, delta, confidence)


def _halves(
    attack: Attack, game: Game, played: Played
) -> tuple[tuple[Numbers, Coins], tuple[Numbers, Coins]]:
    """Return scores and coins of known trials, and those of measured trials."""
    scores, coins, known = attack(game, played), played.coins, game.known
    return (scores[:known], coins[:known]), (scores[known:], coins[known:])
