"""Attacks on generators of spoken digits from their samples alone: what each shows of a clip.

No table of a paper: Yang et al. (Interspeech 2021) and Jordon et al. (ICLR 2019) attack nothing.
Every number below was fixed, on games of seeds below 1000, before those that are reported.
"""

from __future__ import annotations

import enum
import hashlib
import json
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from earshot_protocol.errors import InvalidInputError
from earshot_protocol.progress import Progress
from earshot_simulations.membership.game import Game, Records, Sampler, Train
from earshot_simulations.membership.planted import repeating
from earshot_simulations.membership.suite import ATTACKS, CONFIDENCE, Attack, Report, attacked
from earshot_simulations.reproductions import pate_gan_attacks_note, pate_gan_attacks_picture
from earshot_simulations.reproductions.outcome import Outcome, Row

NAME = "pate-gan-attacks"
FIRST_SEED = 2026
"""Of the games that are reported; none below 1000 is."""
EPSILON, DELTA = 2.0, 1e-5
"""That all generators are held against, for a clip that is replaced."""
RECORDS, REFERENCE, SAMPLES, TRIALS = 12, 24, 100, 40
"""Clips whose membership is guessed, others that attackers have, samples and generators."""

TRIED = {name: own for name, own in ATTACKS.items() if name != "shadow models: correlations"}
"""Attacks: 1,280 numbers have 800,000 correlations, too many for twenty shadow models."""

_DIGITS = "fsdd"
_VERSION = 1


class Subject(enum.StrEnum):
    """What is attacked."""

    PATE_GAN = "PATE-GAN"
    """As it is offered."""
    WARMED = "PATE-GAN, warmed up on its clips"
    """With all its noise, from a decoder that an autoencoder of the same clips left: planted."""
    AAE = "AAE, as printed"
    """An autoencoder without noise, held against the same ε, which it does not keep."""
    REPEATING = "repeats its clips"
    """Planted: what attacks could find at all."""


@dataclass(frozen=True)
class Work:
    """What is attacked, and where what was found is kept.

    Attributes:
        public: the speaker who is not attacked.
        clips: float32 (clips, frames, bands), of all others.
        trained: what trains each subject.
        trials: generators of each.
        folder: that keeps what was found.
        progress: told what is done.
        attacks: by name.
    """

    public: str
    clips: Records
    trained: Mapping[Subject, Train]
    trials: int
    folder: Path
    progress: Progress
    attacks: Mapping[str, Attack]

    def rows(self, subject: Subject, seed: int) -> list[Row]:
        """What every attack shows of a subject in one game, from an earlier run if there was one.

        Args:
            subject: what is attacked.
            seed: of clips, coins, trainings and samples.
        """
        path = self.folder / f"{self._identity()}-{subject.name.lower()}-{seed}.json"
        if not path.is_file():
            report = attacked(
                self.trained[subject], game(self.clips, self.trials, seed), EPSILON, DELTA,
                seed=seed, attacks=self.attacks, progress=self._told(subject, seed),
            )  # fmt: skip
            new = path.with_suffix(".new")
            new.write_text(json.dumps(_rows(subject, seed, report)), encoding="utf-8")
            os.replace(new, path)
        found: list[Row] = json.loads(path.read_text(encoding="utf-8"))
        return found

    def _told(self, subject: Subject, seed: int) -> Callable[[int, int], None]:
        return lambda done, total: self.progress(f"{subject}, seed {seed}", done, total)

    def _identity(self) -> str:
        about = [_VERSION, self.public, self.trials, list(self.attacks), RECIPES]
        digest = hashlib.sha256(json.dumps(about).encode())
        digest.update(np.ascontiguousarray(self.clips).tobytes())
        return digest.hexdigest()[:12]


RECIPES = (
    "dense networks of width 64 with 3 latent numbers; 20 steps of 8 votes by 6 teachers under "
    "GNMax; autoencoders 600 steps of 12 clips"
)
"""How generators are trained, in words."""


def opened(
    data: Path,
    folder: Path,
    trials: int,
    progress: Progress,
    speaker: str | None = None,
    trained: Mapping[Subject, Train] | None = None,
    attacks: Mapping[str, Attack] = TRIED,
) -> Work:
    """The clips of all speakers but one, with everything that can be refused refused.

    Args:
        data: folder that holds `fsdd`.
        folder: that keeps what was found.
        trials: generators of each subject.
        progress: told what is done.
        speaker: the public one, who is not attacked; the first by name where None.
        trained: what trains each subject; `subjects` where None.
        attacks: by name.

    Raises:
        DatasetError: no such folder, or files of other names.
        InvalidParametersError: no speaker of that name, or too few trials.
        InvalidInputError: a single speaker, one without clips to train or to test on, or too few
            clips.
    """
    from earshot_simulations.spoken.split import open_split

    def told(done: int, total: int) -> None:
        progress("reading sound", done, total)

    split = open_split(data / _DIGITS, speaker, folder / "sound", told)
    clips = split.private.pictures
    game(clips, trials, FIRST_SEED)
    return Work(split.speaker, clips, trained or subjects(), trials, folder, progress, attacks)


def game(clips: Records, trials: int, seed: int) -> Game:
    """A game for some clips: a lost coin exchanges one for another, and all else is left out.

    Raises:
        InvalidInputError: fewer clips than it needs.
        InvalidParametersError: too few trials.
    """
    needed = 2 * RECORDS + REFERENCE
    if len(clips) < needed:
        raise InvalidInputError(f"{len(clips)} private clips; at least {needed} are needed")
    drawn = clips[np.random.default_rng(seed).permutation(len(clips))[:needed]]
    records, instead, reference = np.split(drawn, [RECORDS, 2 * RECORDS])
    return Game(records, drawn[:0], reference, instead, trials, SAMPLES)


def subjects() -> dict[Subject, Train]:
    """What trains each of them; see `RECIPES`."""
    from earshot_models.generators.autoencoder import train_autoencoder
    from earshot_models.generators.origin import NOT_PRIVATE
    from earshot_models.generators.pate_gan import Ensemble
    from earshot_models.generators.settings import Network, Settings
    from earshot_simulations.auditing.attacked_pate_gans import Recipe, pate_gan, warmed_up

    voted = Settings(
        network=Network.DENSE, width=64, latent=3, critic_width=32, steps=20, batch=8, rate=5e-4,
        critic_rate=2e-3, averaging=0.9,
    )  # fmt: skip
    open = Settings(
        network=Network.DENSE, width=64, latent=3, critic_width=16, steps=600, batch=RECORDS,
        rate=3e-3, critic_rate=3e-3, averaging=0.9,
    )  # fmt: skip
    recipe = Recipe(voted, Ensemble(RECORDS // 2, width=16, batch=2), EPSILON, DELTA)

    def autoencoder(records: Records, seed: int) -> Sampler:
        return train_autoencoder(records, open, NOT_PRIVATE, seed)

    return {
        Subject.PATE_GAN: pate_gan(recipe),
        Subject.WARMED: warmed_up(recipe, open),
        Subject.AAE: autoencoder,
        Subject.REPEATING: repeating,
    }


def reproduce(work: Work, seeds: int) -> Outcome:
    """Every subject in so many games, all of them reported.

    Args:
        work: what is attacked.
        seeds: games, the first of `FIRST_SEED`.
    """
    rows = [
        row
        for seed in range(FIRST_SEED, FIRST_SEED + seeds)
        for subject in Subject
        for row in work.rows(subject, seed)
    ]
    return Outcome(
        NAME,
        rows,
        lambda path: pate_gan_attacks_picture.draw(rows, EPSILON, path),
        pate_gan_attacks_note.note(
            rows,
            pate_gan_attacks_note.Setting(
                work.public, work.trials, RECORDS, SAMPLES, EPSILON, DELTA, CONFIDENCE, RECIPES
            ),
        ),
    )


def _rows(subject: Subject, seed: int, report: Report) -> list[Row]:
    return [
        {
            "generator": str(subject),
            "seed": seed,
            "held_against_epsilon": report.epsilon,
            "attack": each.attack,
            "area": each.evidence.area.value,
            "area_low_95": each.evidence.area.low,
            "area_high_95": each.evidence.area.high,
            "true_rate_at_false_rate_0.01": each.evidence.rate.value,
            "true_rate_low_95": each.evidence.rate.low,
            "true_rate_high_95": each.evidence.rate.high,
            "epsilon_of_known_trials": each.expected,
            "epsilon_at_least": each.shown,
            "stands": int(each is report.chosen),
            "power": report.power if math.isfinite(report.power) else "",
            "verdict": str(report.verdict),
        }
        for each in report.outcomes
    ]
