"""The game of membership: coins decide which records a generator learns from, samples are shown.

Each trial tosses a fair coin for every record, trains a generator on those that won and shows its
samples. An attacker who guesses coins from them better than ε-differential privacy allows has
refuted ε (Steinke, Nasr and Jagielski, NeurIPS 2023; Jagielski, Ullman and Oprea, NeurIPS 2020).
The coins of the first half of the trials are known to the attacker, who learns from them as from
shadow models; those of the second half are guessed.
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
    """A trained generator, of which an attacker sees nothing but samples."""

    def samples(self, count: int, seed: int) -> npt.NDArray[np.float32]:
        """Return this many samples, shaped like records."""
        ...


Train = Callable[[Records, int], Sampler]
"""Function that trains a generator on records with a seed."""
Progress = Callable[[int, int], None]
"""Callback that receives the number of finished trials, and of all trials."""


@dataclass(frozen=True)
class Game:
    """The settings of a game.

    Attributes:
        records: Records whose membership is guessed, (records, …); the first is the canary, as
            unlike all others as a record can be.
        always: Records that every generator learns from, (others, …), perhaps none.
        reference: Records of the same kind that no generator learns from and the attacker has,
            (references, …).
        instead: Replacements of records whose coin is lost, shaped like `records`; None to leave
            such records out. With it neighbours differ in an exchanged record.
        trials: Number of generators that are trained.
        samples: Number of samples of each generator.

    Raises:
        InvalidInputError: Records have different shapes, are not finite numbers, or are too few.
        InvalidParametersError: A number is out of range.
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
                raise InvalidInputError(f"{name}: {len(rows)} records; must be at least {least}")
            if rows.shape[1:] != shape:
                raise InvalidInputError(
                    f"{name}: shape {rows.shape}; must be (…, {', '.join(map(str, shape))}) like "
                    "records"
                )
            if not np.isfinite(rows).all():
                raise InvalidInputError(f"{name}: must be finite numbers")

    @property
    def known(self) -> int:
        """Number of trials whose coins the attacker knows."""
        return self.trials // 2


@dataclass(frozen=True)
class Played:
    """The results of a game.

    Attributes:
        coins: Whether each record was learned from, (trials, records).
        samples: Samples of each trial as rows, float64 (trials, samples, numbers).
        reference: Samples of a generator trained on `Game.reference` alone, (samples, numbers).
    """

    coins: Coins
    samples: Numbers
    reference: Numbers


def play(train: Train, game: Game, seed: int, progress: Progress | None = None) -> Played:
    """Train one generator for each trial, and one that knows none of the records.

    Args:
        train: Training that is attacked.
        game: Settings of the game.
        seed: Seed of coins, trainings and samples.
        progress: Callback after each trial.

    Raises:
        InvalidInputError: A generator makes samples of another shape, or that are not finite.
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
    """Return the records of one training."""
    if game.instead is None:
        chosen = game.records[coins]
    else:
        won = coins.reshape(-1, *[1] * (game.records.ndim - 1))
        chosen = np.where(won, game.records, game.instead)
    return np.concatenate([game.always, chosen]).astype(np.float32)


def flat(records: npt.NDArray[np.floating]) -> Numbers:
    """Return records as rows of float64."""
    return np.asarray(records, dtype=np.float64).reshape(len(records), -1)


def _shown(train: Train, records: Records, game: Game, seeds: list[int]) -> Numbers:
    samples = np.asarray(train(records, seeds[0]).samples(game.samples, seeds[1]))
    wanted = (game.samples, *game.records.shape[1:])
    if samples.shape != wanted or not np.isfinite(samples).all():
        raise InvalidInputError(
            f"samples of shape {samples.shape}; must be finite numbers of shape {wanted}"
        )
    return flat(samples)
