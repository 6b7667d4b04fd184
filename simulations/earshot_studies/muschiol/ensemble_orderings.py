"""What Muschiol (2021) says of ensembles in chapter 5, held against several seeds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from earshot_simulations.sweeps.estimate import Estimate, paired
from earshot_studies.kit.outcome import Row
from earshot_studies.muschiol.ensemble_tables import (
    ADAPTIVE,
    ALONE_5_1,
    BASELINE,
    HALF,
    PASSED,
    TABLE_5_1,
    TABLE_5_2,
    TABLE_5_3,
    TEACHERS,
)

CONFIRMED, REFUTED, UNDECIDED = "confirmed", "refuted", "undecided"
_WORTH = 0.01
"""Of mAP: a gain that is not worth the while."""


class Ordering(NamedTuple):
    """A statement, and a difference that is above zero if it is true.

    Attributes:
        said: by Muschiol.
        what: is compared.
        theirs: the difference in its tables; None where it has no numbers.
        ours: the difference, seed by seed.
        no_gain: whether the statement is that there is no gain, and not that there is one.
    """

    said: str
    what: str
    theirs: float | None
    ours: Estimate
    no_gain: bool = False

    @property
    def verdict(self) -> str:
        """Confirmed, refuted, or neither, by the interval."""
        if self.ours.wide is None:
            return "one seed"
        low, high = self.ours.mean - self.ours.wide, self.ours.mean + self.ours.wide
        if self.no_gain:
            return CONFIRMED if high < _WORTH else REFUTED if low > 0 else UNDECIDED
        return CONFIRMED if low > 0 else REFUTED if high < 0 else UNDECIDED

    def row(self) -> dict[str, Any]:
        """Of the note's table."""
        wide = "" if self.ours.wide is None else f" ± {self.ours.wide:.3f}"
        return {
            "Muschiol": self.said,
            "difference": self.what,
            "theirs": "–" if self.theirs is None else f"{self.theirs:+.3f}",
            "ours": f"{self.ours.mean:+.3f}{wide}",
            "verdict": self.verdict,
        }


Cell = tuple[str, int, str, str, str]
"""Table, teachers, th_e, th_c and column; th_e is empty in Table 5.1, which has one each."""


class _Seeds:
    def __init__(self, rows: Sequence[Row]) -> None:
        self._seeds = sorted({int(row["seed"]) for row in rows})
        self._values: dict[tuple[Any, ...], Row] = {}
        for row in rows:
            # Each has one threshold there, the best on validation.
            one = row["table"] == "5.1" or (row["table"], row["teachers"]) == ("5.3", BASELINE)
            threshold = "" if one else row["th_e"]
            key = (row["seed"], row["table"], row["teachers"], threshold, row["th_c"])
            self._values[key] = row

    def __call__(self, cell: Cell) -> list[float]:
        """Of each seed; not a number where nothing was answered or named."""
        *place, column = cell
        values = (self._values[(seed, *place)].get(column, "") for seed in self._seeds)
        return [math.nan if value == "" else float(value) for value in values]

    def less(self, cell: Cell, other: Cell) -> Estimate:
        """Cell − other, seed by seed."""
        return paired(self(cell), self(other))


_PLACE = {"P": 0, "R": 1, "F1": 2}
_WHOLE = {"P": "precision", "R": "recall", "F1": "F1"}


def orderings(rows: Sequence[Row]) -> list[Ordering]:
    """All of them.

    Args:
        rows: of `audioset_ensemble_tables.measured`, each with its seed.
    """
    seeds = _Seeds(rows)
    return [
        *_by_ranking(seeds),
        *_by_teachers(seeds),
        *_by_threshold(seeds),
        *_by_check(seeds),
    ]


def _by_ranking(seeds: _Seeds) -> list[Ordering]:
    """Table 5.1: mAP, AUC, and teachers by themselves."""
    found = []
    for column in ("mAP", "AUC"):
        for few, many in ((BASELINE, 10), (10, 20), (20, 50)):
            said = f"Raw {column} falls with more teachers"
            if few == BASELINE:
                said = f"Raw {column}: the baseline is above ensembles"
            found.append(
                Ordering(
                    said,
                    f"{_who(few)} − {many}",
                    TABLE_5_1[few].ranking[column] - TABLE_5_1[many].ranking[column],
                    seeds.less(("5.1", few, "", "", column), ("5.1", many, "", "", column)),
                )
            )
    for column, place in _PLACE.items():
        cells = [("5.1", teachers, "", "", f"alone_{column}") for teachers in (10, 50)]
        found.append(
            Ordering(
                f"A single teacher's {_WHOLE[column]} falls with what it has to learn from",
                "one of 10 − one of 50",
                ALONE_5_1[10][place] - ALONE_5_1[50][place],
                seeds.less(cells[0], cells[1]),
            )
        )
    for teachers in TEACHERS:
        found.append(
            Ordering(
                "Together they are better than one by one",
                f"F1, {teachers}: ensemble − teacher",
                TABLE_5_1[teachers].together[2] - ALONE_5_1[teachers][2],
                seeds.less(("5.1", teachers, "", "", "F1"), ("5.1", teachers, "", "", "alone_F1")),
            )
        )
    return found


def _by_teachers(seeds: _Seeds) -> list[Ordering]:
    """Table 5.2, from one number of teachers to another at one threshold."""
    found = []
    for threshold in ("0.2", "0.4", "0.6"):
        for column, sign in (("P", 1), ("R", -1), ("F1", -1)):
            few, many = (10, 50) if sign < 0 else (50, 10)
            found.append(
                Ordering(
                    f"{_WHOLE[column].capitalize()} {'rises' if sign > 0 else 'falls'} with "
                    "more teachers",
                    f"th {threshold}: {few} − {many}",
                    _printed(few, threshold, column) - _printed(many, threshold, column),
                    seeds.less(_cell(few, threshold, column), _cell(many, threshold, column)),
                )
            )
        for column, name in (
            ("P_if_one", "a label nobody names counting as 1"),
            ("P_of_named", "of labels that are named"),
            ("micro_P", "of all names together"),
        ):
            found.append(
                Ordering(
                    f"The same of precision {name}",
                    f"th {threshold}: 50 − 10",
                    None,
                    seeds.less(_cell(50, threshold, column), _cell(10, threshold, column)),
                )
            )
        found.append(
            Ordering(
                "Ensembles are more precise than the baseline at a fixed threshold",
                f"th {threshold}: 50 − baseline",
                _printed(50, threshold, "P") - _printed(BASELINE, threshold, "P"),
                seeds.less(_cell(50, threshold, "P"), _cell(BASELINE, threshold, "P")),
            )
        )
    found.append(
        Ordering(
            "The more teachers, the more labels nobody names (A.6)",
            "labels never named, th 0.4: 50 − baseline",
            None,
            seeds.less(_cell(50, "0.4", "never_named"), _cell(BASELINE, "0.4", "never_named")),
        )
    )
    return found


def _by_threshold(seeds: _Seeds) -> list[Ordering]:
    """Table 5.2, from one threshold to another."""
    found = []
    for teachers in (BASELINE, *TEACHERS):
        for column, high, low in (("P", "0.6", "0.2"), ("R", "0.2", "0.6")):
            found.append(
                Ordering(
                    f"{_WHOLE[column].capitalize()} {'rises' if column == 'P' else 'falls'} "
                    "with the threshold",
                    f"{_who(teachers)}: {high} − {low}",
                    _printed(teachers, high, column) - _printed(teachers, low, column),
                    seeds.less(_cell(teachers, high, column), _cell(teachers, low, column)),
                )
            )
    for teachers in TEACHERS:
        for other in ("0.4", ADAPTIVE):
            found.append(
                Ordering(
                    "F1 is best at the low threshold",
                    f"{teachers}: 0.2 − {other}",
                    _printed(teachers, "0.2", "F1") - _printed(teachers, other, "F1"),
                    seeds.less(_cell(teachers, "0.2", "F1"), _cell(teachers, other, "F1")),
                )
            )
    found.append(
        Ordering(
            "An adaptive threshold is less precise than a fixed one",
            "P, 50: 0.2 − adaptive",
            _printed(50, "0.2", "P") - _printed(50, ADAPTIVE, "P"),
            seeds.less(_cell(50, "0.2", "P"), _cell(50, ADAPTIVE, "P")),
        )
    )
    found.append(
        Ordering(
            "… but names rare labels (A.6)",
            "labels never named, 50: 0.2 − adaptive",
            None,
            seeds.less(_cell(50, "0.2", "never_named"), _cell(50, ADAPTIVE, "never_named")),
        )
    )
    return found


def _by_check(seeds: _Seeds) -> list[Ordering]:
    """Table 5.3: what is gained by not answering."""
    found = []
    for teachers in TEACHERS:
        for check in ("0.4", "0.6"):
            found.append(
                Ordering(
                    "F1 of answers rises with a check",
                    f"{teachers}, th 0.2: th_c {check} − none",
                    TABLE_5_3[teachers, "0.2", check][2] - _printed(teachers, "0.2", "F1"),
                    seeds.less(("5.3", teachers, "0.2", check, "F1"), _cell(teachers, "0.2", "F1")),
                )
            )
    for check in ("0.4", "0.6"):
        found.append(
            Ordering(
                "More teachers answer less",
                f"answered, th_c {check}: 10 − 50",
                PASSED[10, check] - PASSED[50, check],
                seeds.less(
                    ("5.3", 10, "0.2", check, "answered"), ("5.3", 50, "0.2", check, "answered")
                ),
            )
        )
    for teachers in TEACHERS:
        best, own = ("5.1", BASELINE, "", "", "F1"), ("5.3", teachers, "0.2", "0.6")
        theirs = TABLE_5_3[teachers, "0.2", "0.6"][2] - TABLE_5_2[BASELINE, "0.2"][2]
        for what, difference, printed in (
            ("its answers − the baseline's on everything", ((*own, "F1"), best), theirs),
            ("both on what it answers", ((*own, "F1"), (*own, "baseline_F1")), None),
            ("both on everything, no names without an answer", ((*own, "asked_F1"), best), None),
            (
                "both on their own better half",
                (("5.3", teachers, "0.2", HALF, "F1"), ("5.3", BASELINE, "", HALF, "F1")),
                None,
            ),
        ):
            found.append(
                Ordering(
                    "With a check an ensemble is above the baseline",
                    f"F1, {teachers}, 0.2 + 0.6: {what}",
                    printed,
                    seeds.less(*difference),
                )
            )
    return found


def _cell(teachers: int, threshold: str, column: str) -> Cell:
    return "5.2", teachers, threshold, "", column


def _printed(teachers: int, threshold: str, column: str) -> float:
    return TABLE_5_2[teachers, threshold][_PLACE[column]]


def _who(teachers: int) -> str:
    return "baseline" if teachers == BASELINE else str(teachers)
