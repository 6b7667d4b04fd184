"""All attacks on one generator, and whether what they find fits what is said of its privacy."""

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
"""Scores of all trials and records, (trials, records): large for what seems learned from."""

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
    """What the attacks say of a stated ε."""

    PASSES = "passes"
    """They found no more than it allows, and find more where more is to be found."""
    FAILS = "fails"
    """They found more than it allows."""
    SILENT = "says nothing"
    """They found no more than it allows, and would not have in a generator that hides nothing."""


@dataclass(frozen=True)
class Outcome:
    """Of one attack.

    Attributes:
        attack: its name.
        evidence: how well it did.
        expected: the ε that it showed of trials whose coins it knew.
        shown: the ε that it showed of the others, a lower bound.
        test: by which test.
    """

    attack: str
    evidence: Evidence
    expected: float
    shown: float
    test: str


@dataclass(frozen=True)
class Report:
    """Of all attacks.

    Attributes:
        outcomes: of each.
        chosen: of the one that did best on the trials whose coins were known; its `shown` is the
            bound that the verdict stands on, and no others' counts.
        epsilon, delta: stated of the generator; ε is infinite if it is not said to be private.
        confidence: that `chosen.shown` is a lower bound on ε.
        power: what the same attacks show of a generator that repeats its records, in the same
            number of trials.
        trials: that were measured.
        coins: of all records in these.
    """

    outcomes: tuple[Outcome, ...]
    chosen: Outcome
    epsilon: float
    delta: float
    confidence: float
    power: float
    trials: int
    coins: int

    @property
    def verdict(self) -> Verdict:
        """In one word."""
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
) -> Report:
    """Play the game, try all attacks, and do the same to a generator that repeats its records.

    Args:
        train: what is attacked.
        game: what is played.
        epsilon: stated of the generator, for neighbours as the game has them; infinity if it is
            not said to be private.
        delta: δ.
        seed: of everything that is drawn.
        confidence: of the lower bound.
        attacks: by name.
        progress: told of trials.

    Raises:
        InvalidParametersError: a number is out of range.
        InvalidInputError: the generator makes no samples like its records.
    """
    if epsilon != math.inf:
        checks.positive("epsilon", epsilon)
    checks.fraction("delta", delta)
    checks.probability("confidence", confidence)
    outcomes = _outcomes(play(train, game, seed, progress), game, delta, confidence, seed, attacks)
    measured = game.trials - game.known
    return Report(
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
) -> tuple[Outcome, ...]:
    found = []
    for name, attack in attacks.items():
        known, measured = _halves(attack, game, played)
        test, expected = best_test(*known, delta, confidence)
        shown = test.bound(*measured, delta, confidence)
        figures = evidence(known, measured, seed)
        found.append(Outcome(name, figures, expected, shown, test.words))
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
    """Scores and coins of trials that are known, and of those that are measured."""
    scores, coins, known = attack(game, played), played.coins, game.known
    return (scores[:known], coins[:known]), (scores[known:], coins[known:])
