"""The game of membership: coins decide which records a generator learns from, samples are shown.

Each trial tosses a fair coin for every record, trains a generator on those that won and shows what
it makes. Whoever guesses coins from that better than ε-differential privacy allows has refuted ε
(Steinke, Nasr and Jagielski, NeurIPS 2023; Jagielski, Ullman and Oprea, NeurIPS 2020). The coins of
the first half of the trials are known to the attacker, who learns from them as from shadow models;
those of the second half are guessed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from earshot_protocol import checks
from earshot_protocol.errors import InvalidInputError

Records = npt.NDArray[np.float32]
Coins = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.float64]

LEAST_TRIALS = 8
LEAST_REFERENCE = 8


class Sampler(Protocol):
    """A trained generator, of which nobody sees more than this."""

    def samples(self, count: int, seed: int) -> npt.NDArray[np.float32]:
        """So many samples, shaped like records."""
        ...


Train = Callable[[Records, int], Sampler]
"""From records and a seed to a generator."""
Progress = Callable[[int, int], None]
"""Told how many trials are done, and of how many."""


@dataclass(frozen=True)
class Game:
    """What is played.

    Attributes:
        records: whose membership is guessed, (records, …); the first is the canary, as unlike all
            others as a record can be.
        always: records that every generator learns from, (others, …), perhaps none.
        reference: records of the same kind that none learns from and the attacker has,
            (references, …).
        instead: what takes the place of a record whose coin is lost, shaped like `records`; None
            to leave it out. With it neighbours differ in a record that is exchanged.
        trials: generators that are trained.
        samples: of each generator.

    Raises:
        InvalidInputError: records of different shapes, or that are no numbers, or too few.
        InvalidParametersError: a number is out of range.
    """

    records: Records
    always: Records
    reference: Records
    instead: Records | None = None
    trials: int = 200
    samples: int = 200

    def __post_init__(self) -> None:
        checks.whole("trials", self.trials, LEAST_TRIALS)
        checks.whole("samples", self.samples, 2)
        shape = np.shape(self.records)[1:]
        for name, rows, least in (
            ("records", self.records, 1),
            ("always", self.always, 0),
            ("reference", self.reference, LEAST_REFERENCE),
            ("instead", self.instead, len(self.records)),
        ):
            if rows is None:
                continue
            if len(rows) < least:
                raise InvalidInputError(f"{name}: {len(rows)} records; at least {least} are needed")
            if rows.shape[1:] != shape:
                raise InvalidInputError(
                    f"{name}: shape {rows.shape}; must be (…, {', '.join(map(str, shape))}) like "
                    "records"
                )
            if not np.isfinite(rows).all():
                raise InvalidInputError(f"{name}: must be finite numbers")

    @property
    def known(self) -> int:
        """Trials whose coins the attacker is told."""
        return self.trials // 2


@dataclass(frozen=True)
class Played:
    """What came out.

    Attributes:
        coins: whether a record was learned from, (trials, records).
        samples: float64 (trials, samples, numbers), flat.
        reference: samples of a generator that learned from `Game.reference` alone,
            (samples, numbers).
    """

    coins: Coins
    samples: Numbers
    reference: Numbers


def play(train: Train, game: Game, seed: int, progress: Progress | None = None) -> Played:
    """Train one generator for each trial, and one that knows none of the records.

    Args:
        train: what is attacked.
        game: what is played.
        seed: of coins, trainings and samples.
        progress: told after each trial.

    Raises:
        InvalidInputError: a generator makes samples of another shape, or such as are no numbers.
    """
    generator = np.random.default_rng(checks.whole("seed", seed, 0))
    coins = generator.random((game.trials, len(game.records))) < 0.5
    seeds = generator.integers(2**31, size=(game.trials + 1, 2)).tolist()
    shown = []
    for trial, row in enumerate(coins):
        shown.append(_shown(train, learned_from(game, row), game, seeds[trial]))
        if progress is not None:
            progress(trial + 1, game.trials)
    reference = _shown(train, game.reference, game, seeds[-1])
    return Played(coins, np.stack(shown), reference)


def learned_from(game: Game, coins: Coins) -> Records:
    """The records of one training."""
    if game.instead is None:
        chosen = game.records[coins]
    else:
        won = coins.reshape(-1, *[1] * (game.records.ndim - 1))
        chosen = np.where(won, game.records, game.instead)
    return np.concatenate([game.always, chosen]).astype(np.float32)


def flat(records: npt.NDArray[np.floating]) -> Numbers:
    """Records as rows of float64."""
    return np.asarray(records, dtype=np.float64).reshape(len(records), -1)


def _shown(train: Train, records: Records, game: Game, seeds: list[int]) -> Numbers:
    samples = np.asarray(train(records, seeds[0]).samples(game.samples, seeds[1]))
    wanted = (game.samples, *game.records.shape[1:])
    if samples.shape != wanted or not np.isfinite(samples).all():
        raise InvalidInputError(
            f"samples of shape {samples.shape}; must be finite numbers of shape {wanted}"
        )
    return flat(samples)
