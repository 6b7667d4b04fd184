"""The note of attacks on generators of spoken digits: what was found, and what that means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from earshot_simulations.reporting.tables import markdown_table
from earshot_studies.kit.outcome import Row


@dataclass(frozen=True)
class Setting:
    """What was played.

    Attributes:
        public: the speaker who is not attacked.
        trials: generators of a game.
        records: clips whose membership is guessed.
        samples: of each generator.
        epsilon, delta: that all are held against.
        confidence: of a lower bound.
        recipes: how generators are trained, in words.
    """

    public: str
    trials: int
    records: int
    samples: int
    epsilon: float
    delta: float
    confidence: float
    recipes: str


def note(rows: Sequence[Row], setting: Setting) -> str:
    """The whole Markdown.

    Args:
        rows: of all generators, games and attacks.
        setting: what was played.
    """
    measured = setting.trials - setting.trials // 2
    return f"""# Attacks on generators of spoken digits

No paper has these figures. In a game a coin decides for each of {setting.records} clips of
all speakers but {setting.public} whether a generator learns from it or from another such clip;
{setting.trials} generators are trained, each with new coins, and attackers see {setting.samples}
samples of each. The coins of {setting.trials // 2} generators are known to them, those of
{measured} are guessed. Pictures are those of all our generators of speech.
Generators: {setting.recipes}.

Every generator is held against ε = {setting.epsilon:g}, δ = {setting.delta:g}, for a clip that is
replaced. *Shown* is a lower bound on its ε with a confidence of {setting.confidence:.0%} in one
game, by the attack that did best on known coins: no other's bound counts. *Power* is the same of a
generator that repeats its clips.

{_verdicts(rows)}

- **fails**: it is shown not to keep ε = {setting.epsilon:g}.
- **passes**: nothing more was shown, though the same attacks show more of one that repeats its
  clips. It is no proof: its noise is, see the audit of votes and of DP-SGD. An attack whose area is
  clear of a half has seen clips, even where ε = {setting.epsilon:g} allows as much.
- **says nothing**: the attacks had no power; a generator that hides nothing would look the same.

*PATE-GAN, warmed up on its clips* has all the noise of the PATE-GAN above it, and a decoder that an
autoencoder of the same clips left. A generator of {setting.records} clips at this ε makes noise;
samples to listen to need thousands.

{_words(rows)}

## Every attack in every game

Area under the curve of true over false alarms, a half for a blind attack, and the rate of true
alarms where 1 % are false; intervals of 95 % by drawing trials and clips again.

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
    """How often each verdict was found, generator by generator."""
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
