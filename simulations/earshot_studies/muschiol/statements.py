"""What Muschiol (2021) says of privacy in chapter 5, held against several ensembles."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from earshot_simulations.sweeps.estimate import Estimate, estimate
from earshot_studies.kit.outcome import Row
from earshot_studies.muschiol.printed import ADAPTIVE, Setting
from earshot_studies.muschiol.settings import CHECK_NOISES, GRID, NOISES, PUBLIC

Rows = Sequence[Row]


class Found(NamedTuple):
    """A statement and what came of it.

    Attributes:
        said: by Muschiol.
        what: a ratio of two ε, or of two F1.
        theirs: from its tables; None where it has no numbers.
        claimed: of ours by its accounting, seed by seed.
        sound: of ours by exact outcomes of rules that hold; None where there are none.
        expected: from and to which ratios confirm it.
    """

    said: str
    what: str
    theirs: float | None
    claimed: Estimate
    sound: Estimate | None
    expected: tuple[float, float]

    @property
    def verdict(self) -> str:
        """Confirmed, refuted, or neither, by the interval of the claimed ratio."""
        return _verdict(self.claimed, self.expected)

    @property
    def sound_verdict(self) -> str:
        """The same of the sound ratio."""
        return "–" if self.sound is None else _verdict(self.sound, self.expected)

    def row(self) -> dict[str, Any]:
        """Of the note's table."""
        return {
            "statement": self.said,
            "ratio": self.what,
            "theirs": "–" if self.theirs is None else f"{self.theirs:.2f}",
            "ours, their accounting": _said(self.claimed),
            "verdict": self.verdict,
            "ours, soundly": "–" if self.sound is None else _said(self.sound),
            "soundly": self.sound_verdict,
        }


def _said(found: Estimate) -> str:
    return f"{found.mean:.2f}" + ("" if found.wide is None else f" ± {found.wide:.2f}")


def _verdict(found: Estimate, expected: tuple[float, float]) -> str:
    if found.wide is None:
        return "one ensemble"
    low, high = found.mean - found.wide, found.mean + found.wide
    if expected[0] <= low and high <= expected[1]:
        return "confirmed"
    if high < expected[0] or expected[1] < low:
        return "refuted"
    return "undecided"


LESS, MORE = (-math.inf, 1.0), (1.0, math.inf)
SOUND = "left_out_exact"
"""Its column: a teacher left out, v = 3, exact outcomes."""


def statements(rows: Rows) -> list[Found]:
    """All of them.

    Args:
        rows: of `audioset_settings.measure`, of all seeds.
    """
    seeds = sorted({int(row["seed"]) for row in rows})
    each = [_Seed([row for row in rows if row["seed"] == seed]) for seed in seeds]

    def found(
        said: str,
        what: str,
        theirs: float | None,
        expected: tuple[float, float],
        ratio: Callable[[_Seed, str], float],
        claimed: str = "claimed",
        sound: str | None = SOUND,
    ) -> Found:
        ours = estimate([ratio(seed, claimed) for seed in each])
        held = None if sound is None else estimate([ratio(seed, sound) for seed in each])
        return Found(said, what, theirs, ours, held, expected)

    listed = [
        found(
            "At th .2 the votes save nothing",
            "by votes / by noise, .2",
            1.0,
            (0.98, 1.0 + 1e-9),
            lambda seed, name: seed.table("0.2", "", name) / seed.table("0.2", "", _NOISE[name]),
        )
    ]
    for threshold, check, theirs in (
        ("0.2", "0.4", 479.5 / 418.4),
        ("0.2", "0.6", 481.1 / 418.4),
        ("0.4", "0.4", 371.4 / 268.4),
        ("0.4", "0.6", 347.4 / 268.4),
    ):
        listed.append(
            found(
                "The check makes a fixed threshold dearer",
                f"{threshold} + {check} / {threshold}",
                theirs,
                MORE,
                lambda seed, name, t=threshold, c=check: (  # type: ignore[misc]
                    seed.table(t, c, name) / seed.table(t, "", name)
                ),
            )
        )
    for check, theirs in (("0.4", 248.5 / 371.4), ("0.6", 180.2 / 347.4)):
        listed.append(
            found(
                "Adaptive is the cheapest that has a check",
                f"{ADAPTIVE} + {check} / 0.4 + {check}",
                theirs,
                LESS,
                lambda seed, name, c=check: (  # type: ignore[misc]
                    seed.table(ADAPTIVE, c, name) / seed.table("0.4", c, name)
                ),
            )
        )
    for check, theirs in (("0.4", 248.5 / 269.9), ("0.6", 180.2 / 269.9)):
        listed.append(
            found(
                "Adaptive with a check is below adaptive without",
                f"{ADAPTIVE} + {check} / {ADAPTIVE}",
                theirs,
                LESS,
                lambda seed, name, c=check: (  # type: ignore[misc]
                    seed.table(ADAPTIVE, c, name) / seed.table(ADAPTIVE, "", name)
                ),
            )
        )
    for check_noise in CHECK_NOISES:
        listed.append(
            found(
                "Adaptive + .6 is the cheapest at the least noise (5.15)",
                f"σ_e .1 / the cheapest of .2 to .5, σ_c {check_noise:g}",
                None,
                LESS,
                lambda seed, name, c=check_noise: (  # type: ignore[misc]
                    seed.curve("5.15", ADAPTIVE, name, c)[0]
                    / min(seed.curve("5.15", ADAPTIVE, name, c)[1:])
                ),
            )
        )
    for threshold in ("0.2", "0.4", "0.6", ADAPTIVE):
        listed.append(
            found(
                "ε about halves from σ_e .1 to .2 (5.13)",
                f"{threshold}: .2 / .1",
                None,
                (0.4, 0.6),
                lambda seed, name, t=threshold: (  # type: ignore[misc]
                    seed.curve("5.13", t, name)[1] / seed.curve("5.13", t, name)[0]
                ),
            )
        )
    listed.append(
        found(
            "The higher a fixed threshold, the cheaper (5.13)",
            "0.6 / 0.4, σ_e .3",
            None,
            LESS,
            lambda seed, name: (
                seed.curve("5.13", "0.6", name)[2] / seed.curve("5.13", "0.4", name)[2]
            ),
        )
    )
    listed.append(
        found(
            "Adaptive and .4 are close without a check (5.13)",
            f"{ADAPTIVE} / 0.4",
            269.9 / 268.4,
            (0.9, 1.1),
            lambda seed, name: seed.table(ADAPTIVE, "", name) / seed.table("0.4", "", name),
        )
    )
    listed.append(
        found(
            "The check doubles F1 (5.14)",
            "macro F1, 0.4 + 0.6 / 0.4",
            None,
            (1.8, math.inf),
            lambda seed, name: seed.table("0.4", "0.6", name) / seed.table("0.4", "", name),
            "macro_f1_printed",
            "macro_f1_sound",
        )
    )
    return listed


_NOISE = {"claimed": "claimed_independent", SOUND: "left_out_independent"}


class _Seed:
    """The rows of one ensemble."""

    def __init__(self, rows: Rows) -> None:
        self._table = {(row["th_e"], row["th_c"]): row for row in rows if row["table"] == "5.4"}
        self._curves = {
            (row["table"], row["th_e"], row["sigma_c"], row["sigma_e"]): row
            for row in rows
            if row["table"] in ("5.13", "5.14", "5.15")
        }

    def table(self, threshold: str, check: str, column: str) -> float:
        """Of a row of Table 5.4."""
        return float(self._table[threshold, check][column])

    def curve(
        self, figure: str, threshold: str, column: str, check: float | str = ""
    ) -> list[float]:
        """By σ_e; with a check of this σ_c."""
        return [float(self._curves[figure, threshold, check, noise][column]) for noise in NOISES]


class Cheapest(NamedTuple):
    """Which setting costs least.

    Attributes:
        setting: th_e and th_c.
        epsilon: what it costs.
        second: the next; None if there is no other.
        ratio: of the second to it, seed by seed.
    """

    setting: Setting
    epsilon: Estimate
    second: Setting | None
    ratio: Estimate | None

    def __str__(self) -> str:
        wide = "" if self.epsilon.wide is None else f" ± {self.epsilon.wide:.0f}"
        said = f"**{named(self.setting)}**, ε = {self.epsilon.mean:.0f}{wide}"
        if self.second is None or self.ratio is None:
            return f"{said}, the only one"
        return f"{said}, before {named(self.second)}, which costs {_said(self.ratio)} times as much"


def named(setting: Setting) -> str:
    """In words."""
    return " + ".join(filter(None, setting))


def cheapest(
    rows: Rows, column: str, among: Callable[[Setting], bool] = lambda setting: True
) -> Cheapest:
    """The setting of Table 5.4 with the least mean of a column.

    Args:
        rows: of all seeds.
        column: of costs.
        among: which settings are compared.
    """
    costs: Mapping[Setting, list[float]] = {
        setting: [
            float(row[column])
            for row in sorted(rows, key=lambda row: row["seed"])
            if row["table"] == "5.4" and (row["th_e"], row["th_c"]) == setting
        ]
        for setting in PUBLIC
        if among(setting) and not (column == "claimed" and setting[0] == GRID)
    }
    first, second, *_ = *sorted(costs, key=lambda setting: sum(costs[setting])), None
    if second is None:
        return Cheapest(first, estimate(costs[first]), None, None)
    ratios = [b / a for a, b in zip(costs[first], costs[second], strict=True)]
    return Cheapest(first, estimate(costs[first]), second, estimate(ratios))
