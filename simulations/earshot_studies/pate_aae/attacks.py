"""Attacks on generators of spoken digits from their samples alone: what each shows of a clip.

No paper has these figures: Yang et al. (Interspeech 2021) and Jordon et al. (ICLR 2019) attack
nothing. Every number below was fixed on games of seeds below 1000, before the reported games.
"""

from __future__ import annotations

import enum
import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from earshot_protocol.errors import InvalidInputError
from earshot_protocol.progress import Progress
from earshot_simulations.membership.game import Game, Records, Sampler, Train
from earshot_simulations.membership.planted import repeating
from earshot_simulations.membership.suite import ATTACKS, CONFIDENCE, Attack, AttackReport, attacked
from earshot_simulations.reporting.tables import markdown_table
from earshot_studies.kit.kept import Kept, digest
from earshot_studies.kit.outcome import Reproduction, Row


@dataclass(frozen=True)
class GameSetting:
    """The settings of the reported games.

    Attributes:
        public: Speaker who is not attacked.
        trials: Number of generators in a game.
        records: Number of clips whose membership is guessed.
        samples: Number of samples of each generator.
        epsilon, delta: Budget against which all generators are held.
        confidence: Confidence of a lower bound.
        recipes: Training of the generators, in words.
    """

    public: str
    trials: int
    records: int
    samples: int
    epsilon: float
    delta: float
    confidence: float
    recipes: str


def _note(rows: Sequence[Row], setting: GameSetting) -> str:
    """Write the whole note in Markdown.

    Args:
        rows: Results of all generators, games and attacks.
        setting: Settings of the games.
    """
    measured = setting.trials - setting.trials // 2
    return f"""# Attacks on generators of spoken digits

No paper has these figures. In a game, a coin decides for each of {setting.records} clips of
all speakers but {setting.public} whether a generator learns from it or from another such clip;
{setting.trials} generators are trained, each with new coins, and attackers see {setting.samples}
samples of each. They know the coins of {setting.trials // 2} generators and guess those of the
other {measured}. Pictures are those of all our generators of speech.
Generators: {setting.recipes}.

Every generator is held against ε = {setting.epsilon:g}, δ = {setting.delta:g}, for a clip that is
replaced. *Shown* is a lower bound on its ε with a confidence of {setting.confidence:.0%} in one
game, by the attack that did best on known coins; no other attack's bound counts. *Power* is the
same bound for a generator that repeats its clips.

{_verdicts(rows)}

- **fails**: it is shown not to keep ε = {setting.epsilon:g}.
- **passes**: nothing more was shown, though the same attacks show more of a generator that repeats
  its clips. This does not prove that it is private: its noise does, as the audits of votes and of
  DP-SGD check. An attack whose area is clear of a half has seen clips, even where
  ε = {setting.epsilon:g} allows as much.
- **says nothing**: the attacks had no power; a generator that hides nothing would look the same.

*PATE-GAN, warmed up on its clips* has all the noise of the PATE-GAN above it, and starts with the
decoder of an autoencoder of the same clips. A generator that learns from {setting.records} clips at
this ε produces noise; samples worth listening to need thousands of clips.

{_words(rows)}

## Every attack in every game

*Area* is the area under the curve of true against false alarms, a half for a blind attack. Beside
it is the rate of true alarms where 1 % are false. The 95 % intervals come from drawing trials and
clips again.

{_attacks(rows)}
"""


def _verdicts(rows: Sequence[Row]) -> str:
    return markdown_table(
        [
            {
                "generator": row["generator"],
                "seed": row["seed"],
                "shown": f"{float(row['epsilon_at_least']):.2f}",
                "by": row["attack"],
                "power": f"{float(row['power']):.2f}",
                "verdict": row["verdict"],
            }
            for row in rows
            if row["stands"]
        ],
        ("generator", "seed", "shown", "by", "power", "verdict"),
    )


def _words(rows: Sequence[Row]) -> str:
    """List how often each verdict was found, generator by generator."""
    counts: dict[str, dict[str, int]] = {}
    for row in rows:
        if row["stands"]:
            own = counts.setdefault(str(row["generator"]), {})
            own[str(row["verdict"])] = own.get(str(row["verdict"]), 0) + 1
    return "\n".join(
        f"- {generator}: "
        + ", ".join(
            f"{verdict} in {count} of {sum(own.values())}" for verdict, count in own.items()
        )
        for generator, own in counts.items()
    )


def _attacks(rows: Sequence[Row]) -> str:
    return markdown_table(
        [
            {
                "generator": row["generator"],
                "seed": row["seed"],
                "attack": row["attack"],
                "area": _between(row, "area", "area"),
                "true at 1 % false": _between(row, "true_rate_at_false_rate_0.01", "true_rate"),
                "shown": f"{float(row['epsilon_at_least']):.2f}",
            }
            for row in rows
        ],
        ("generator", "seed", "attack", "area", "true at 1 % false", "shown"),
    )


def _between(row: Row, name: str, interval: str) -> str:
    low, high = (float(row[f"{interval}_{end}_95"]) for end in ("low", "high"))
    return f"{float(row[name]):.2f} ({low:.2f} to {high:.2f})"


def _draw(rows: Sequence[Row], epsilon: float, path: Path) -> None:
    """Write the picture.

    Args:
        rows: Results of all generators, games and attacks.
        epsilon: Budget ε against which all generators are held.
        path: Path of the PNG.
    """
    from matplotlib.figure import Figure

    attacks = list(dict.fromkeys(str(row["attack"]) for row in rows))
    generators = list(dict.fromkeys(str(row["generator"]) for row in rows))
    seeds = list(dict.fromkeys(int(row["seed"]) for row in rows))
    colours = {name: f"C{place}" for place, name in enumerate(generators)}
    figure: Any = Figure(figsize=(13, 5.5), layout="constrained")
    areas, shown = figure.subplots(1, 2, width_ratios=(2, 1))
    wide = 1 / (len(generators) * len(seeds) + 2)
    for place, generator in enumerate(generators):
        for game, seed in enumerate(seeds):
            own = [row for row in rows if row["generator"] == generator and row["seed"] == seed]
            beside = wide * (place * len(seeds) + game) - 0.5 + 1.5 * wide
            values = [float(row["area"]) for row in own]
            ends = [
                [value - float(row["area_low_95"]) for value, row in zip(values, own, strict=True)],
                [
                    float(row["area_high_95"]) - value
                    for value, row in zip(values, own, strict=True)
                ],
            ]
            areas.errorbar(
                [attacks.index(str(row["attack"])) + beside for row in own], values, yerr=ends,
                fmt="o", markersize=3, color=colours[generator],
                label=generator if game == 0 else None,
            )  # fmt: skip
            (stands,) = (row for row in own if row["stands"])
            shown.plot(
                place + 0.15 * (game - (len(seeds) - 1) / 2), float(stands["epsilon_at_least"]),
                "o", color=colours[generator],
            )  # fmt: skip
    areas.axhline(0.5, color="black", linewidth=1)
    areas.set_xticks(range(len(attacks)), [name.replace(": ", ":\n") for name in attacks])
    areas.tick_params(axis="x", labelsize=7)
    areas.set_title("area under the curve, by attack; a half is blind", fontsize=10)
    areas.set_ylim(0, 1.05)
    areas.legend(fontsize=7, loc="lower left")
    shown.axhline(epsilon, color="black", linestyle="--", linewidth=1)
    shown.set_xticks(range(len(generators)), [textwrap.fill(name, 15) for name in generators])
    shown.tick_params(axis="x", labelsize=7)
    shown.set_title(f"ε that was shown; dashed: {epsilon:g}, not to be exceeded", fontsize=10)
    figure.savefig(path, dpi=100)


NAME = "pate-gan-attacks"
FIRST_SEED = 2026
"""First seed of the reported games; seeds below 1000 are never reported."""
EPSILON, DELTA = 2.0, 1e-5
"""Budget against which all generators are held, for a clip that is replaced."""
RECORDS, REFERENCE, SAMPLES = 12, 24, 100
"""Numbers of clips whose membership is guessed, of others that attackers have, and of samples."""

TRIED = {name: own for name, own in ATTACKS.items() if name != "shadow models: correlations"}
"""Attacks by name, without one: 1,280 numbers have 800,000 correlations, too many for twenty shadow
models."""

_DIGITS = "fsdd"
_VERSION = 1


class AttackedSystem(enum.StrEnum):
    """The generators that are attacked."""

    PATE_GAN = "PATE-GAN"
    """PATE-GAN as it is offered."""
    WARMED = "PATE-GAN, warmed up on its clips"
    """PATE-GAN with all its noise, and a planted decoder, left by an autoencoder of its clips."""
    AAE = "AAE, as printed"
    """An autoencoder without noise, held against the same ε, which it does not keep."""
    REPEATING = "repeats its clips"
    """Planted generator that shows how much attacks could find at all."""


@dataclass(frozen=True)
class AttackWork:
    """The subjects of the attacks, and the folder that keeps results.

    Attributes:
        public: Speaker who is not attacked.
        clips: Clips of all other speakers, float32 (clips, frames, bands).
        trained: Function that trains each subject.
        trials: Number of generators of each subject.
        folder: Folder that keeps results.
        progress: Callback for progress.
        attacks: Attacks by name.
    """

    public: str
    clips: Records
    trained: Mapping[AttackedSystem, Train]
    trials: int
    folder: Path
    progress: Progress
    attacks: Mapping[str, Attack]

    def rows(self, subject: AttackedSystem, seed: int) -> list[Row]:
        """Return what every attack shows of a subject in one game; an earlier run is reused.

        Args:
            subject: Generator that is attacked.
            seed: Seed of clips, coins, trainings and samples.
        """

        def measured() -> list[Row]:
            report = attacked(
                self.trained[subject], game(self.clips, self.trials, seed), EPSILON, DELTA,
                seed=seed, attacks=self.attacks, progress=self._told(subject, seed),
            )  # fmt: skip
            return _rows(subject, seed, report)

        settings = [_VERSION, self.public, self.trials, list(self.attacks), RECIPES]
        name = f"{subject.name.lower()}-{seed}"
        return Kept(self.folder).rows(name, [*settings, digest(self.clips)], measured)

    def _told(self, subject: AttackedSystem, seed: int) -> Callable[[int, int], None]:
        return lambda done, total: self.progress(f"{subject}, seed {seed}", done, total)


RECIPES = (
    "dense networks of width 64 with 3 latent numbers; 20 steps of 8 votes by 6 teachers under "
    "GNMax; autoencoders 600 steps of 12 clips"
)
"""Training of the generators, in words."""


def opened(
    data: Path,
    folder: Path,
    trials: int,
    progress: Progress,
    speaker: str | None = None,
    trained: Mapping[AttackedSystem, Train] | None = None,
    attacks: Mapping[str, Attack] = TRIED,
) -> AttackWork:
    """Open the clips of all speakers but one, and refuse at once whatever can be refused.

    Args:
        data: Folder that holds `fsdd`.
        folder: Folder that keeps results.
        trials: Number of generators of each subject.
        progress: Callback for progress.
        speaker: Public speaker, who is not attacked; None for the first by name.
        trained: Function that trains each subject; None for `subjects`.
        attacks: Attacks by name.

    Raises:
        DatasetError: There is no such folder, or its files have other names.
        InvalidParametersError: There is no speaker of that name, or there are too few trials.
        InvalidInputError: There is only one speaker, one has no clip to train or to test on, or
            there are too few clips.
    """
    from earshot_studies.pate_aae.split import open_split

    def told(done: int, total: int) -> None:
        progress("reading sound", done, total)

    split = open_split(data / _DIGITS, speaker, folder / "sound", told)
    clips = split.private.pictures
    game(clips, trials, FIRST_SEED)
    return AttackWork(
        split.speaker, clips, trained or subjects(), trials, folder, progress, attacks
    )


def game(clips: Records, trials: int, seed: int) -> Game:
    """Draw the clips of a game: a lost coin exchanges one for another, and all others are left out.

    Raises:
        InvalidInputError: There are fewer clips than the game needs.
        InvalidParametersError: There are too few trials.
    """
    needed = 2 * RECORDS + REFERENCE
    if len(clips) < needed:
        raise InvalidInputError(f"{len(clips)} private clips; at least {needed} are needed")
    drawn = clips[np.random.default_rng(seed).permutation(len(clips))[:needed]]
    records, instead, reference = np.split(drawn, [RECORDS, 2 * RECORDS])
    return Game(records, drawn[:0], reference, instead, trials, SAMPLES)


def subjects() -> dict[AttackedSystem, Train]:
    """Return the function that trains each subject; see `RECIPES`."""
    from earshot_studies.pate_aae.attacked_generators import PateGanRecipe, pate_gan, warmed_up
    from earshot_studies.pate_aae.generators.autoencoder import train_autoencoder
    from earshot_studies.pate_aae.generators.origin import NOT_PRIVATE
    from earshot_studies.pate_aae.generators.pate_gan import Ensemble
    from earshot_studies.pate_aae.generators.settings import GeneratorSettings, Network

    voted = GeneratorSettings(
        network=Network.DENSE, width=64, latent=3, critic_width=32, steps=20, batch=8, rate=5e-4,
        critic_rate=2e-3, averaging=0.9,
    )  # fmt: skip
    open = GeneratorSettings(
        network=Network.DENSE, width=64, latent=3, critic_width=16, steps=600, batch=RECORDS,
        rate=3e-3, critic_rate=3e-3, averaging=0.9,
    )  # fmt: skip
    recipe = PateGanRecipe(voted, Ensemble(RECORDS // 2, width=16, batch=2), EPSILON, DELTA)

    def autoencoder(records: Records, seed: int) -> Sampler:
        return train_autoencoder(records, open, NOT_PRIVATE, seed)

    return {
        AttackedSystem.PATE_GAN: pate_gan(recipe),
        AttackedSystem.WARMED: warmed_up(recipe, open),
        AttackedSystem.AAE: autoencoder,
        AttackedSystem.REPEATING: repeating,
    }


def reproduce(work: AttackWork, seeds: int) -> Reproduction:
    """Attack every subject in several games, all of which are reported.

    Args:
        work: Subjects and settings of the attacks.
        seeds: Number of games, the first with `FIRST_SEED`.
    """
    rows = [
        row
        for seed in range(FIRST_SEED, FIRST_SEED + seeds)
        for subject in AttackedSystem
        for row in work.rows(subject, seed)
    ]
    return Reproduction(
        NAME,
        rows,
        lambda path: _draw(rows, EPSILON, path),
        _note(
            rows,
            GameSetting(
                work.public, work.trials, RECORDS, SAMPLES, EPSILON, DELTA, CONFIDENCE, RECIPES
            ),
        ),
    )


def _rows(subject: AttackedSystem, seed: int, report: AttackReport) -> list[Row]:
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
