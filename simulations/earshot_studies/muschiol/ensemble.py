"""`earshot reproduce audioset-ensemble`: what Muschiol (2021) says of ensembles of taggers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from earshot_studies.kit.outcome import Outcome, Row, means
from earshot_studies.muschiol import recipes as audioset_recipes
from earshot_studies.muschiol.ensemble_note import note
from earshot_studies.muschiol.ensemble_orderings import orderings
from earshot_studies.muschiol.ensemble_picture import draw
from earshot_studies.muschiol.ensemble_tables import (
    ALONE_5_1,
    BASELINE,
    PASSED,
    TABLE_5_1,
    TABLE_5_2,
    TABLE_5_3,
    Three,
    measured,
)
from earshot_studies.muschiol.taggers.school import Kind
from earshot_studies.muschiol.work import Work

NAME = "audioset-ensemble"
FILES = ()
"""What is written beside the table: nothing."""

_PLACE = ("table", "teachers", "th_e", "th_c")
_COLUMNS = (
    *("mAP", "AUC", "P", "R", "F1", "micro_P", "micro_R", "micro_F1"),
    *("never_named", "P_if_one", "P_of_named"),
    *("alone_P", "alone_R", "alone_F1", "alone_mAP", "alone_mAP_deviation"),
    *("answered", "baseline_P", "baseline_R", "baseline_F1", "asked_P", "asked_R", "asked_F1"),
    "most_over_least",
)
_THEIRS = (
    *("theirs_mAP", "theirs_AUC", "theirs_th_e", "theirs_P_R_F1"),
    *("theirs_alone_P_R_F1", "theirs_answered"),
)


def reproduce(work: Work) -> Outcome:
    """Tables 5.1 to 5.3, and Figures 5.6 to 5.11; what was measured of a seed is kept."""
    rows, recipes = [], []
    for seed in work.reported:
        rows += work.kept(NAME, seed, lambda seed=seed: _of_seed(work, seed))  # type: ignore[misc]
        if work.teaching.kind is not Kind.LINEAR:
            name = f"{audioset_recipes.NAME} {work.full}"
            recipes += work.kept(
                name,
                seed,
                lambda seed=seed: audioset_recipes.of_seed(work, seed),  # type: ignore[misc]
            )
    table = _averaged(rows)
    found, gains = orderings(rows), audioset_recipes.gains(recipes) if recipes else []
    by_recipe = _by_recipe(recipes)
    return Outcome(
        NAME,
        [*table, *by_recipe],
        lambda path: draw(table, gains, path),
        note(work, table, by_recipe, found, gains),
    )


def _of_seed(work: Work, seed: int) -> list[Row]:
    rows = measured(lambda teachers: work.ensemble(teachers, seed))
    return [{"seed": seed} | row for row in rows]


def _averaged(rows: Sequence[Row]) -> list[Row]:
    """Means over seeds with half of their 95 % intervals; thresholds that differ are listed."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        chosen = row["table"] == "5.1" or (row["teachers"] == BASELINE and row["table"] == "5.3")
        key = tuple(row[name] for name in _PLACE if name != "th_e" or not chosen)
        groups.setdefault(key, []).append(row)
    found = []
    for group in groups.values():
        place: Row = {name: group[0][name] for name in _PLACE}
        place["th_e"] = ", ".join(sorted({str(row["th_e"]) for row in group}))
        found.append(_mean(group, place) | _theirs(place))
    return found


def _by_recipe(rows: Sequence[Row]) -> list[Row]:
    found = []
    for name in audioset_recipes.RECIPES:
        group = [row for row in rows if row["recipe"] == name]
        if group:
            place: Row = {"table": "recipe", "teachers": group[0]["teachers"]}
            found.append(_mean(group, place | {"th_e": name, "th_c": ""}))
    return found


def _mean(group: Sequence[Row], place: Row) -> Row:
    """All columns that any row of the CSV has."""
    filled = [{name: row.get(name, "") for name in _COLUMNS} for row in group]
    theirs: Row = dict.fromkeys(_THEIRS, "")
    return {**place, "seeds": len(group), **theirs, **means(filled, _COLUMNS)}


def _theirs(place: Row) -> Row:
    """What Muschiol has there."""
    teachers, threshold, check = int(place["teachers"]), str(place["th_e"]), str(place["th_c"])
    if place["table"] == "5.1":
        printed, alone = TABLE_5_1[teachers], ALONE_5_1.get(teachers)
        return {
            "theirs_mAP": printed.precision,
            "theirs_AUC": printed.area,
            "theirs_th_e": printed.threshold,
            "theirs_P_R_F1": _slashed(printed.together),
            "theirs_alone_P_R_F1": "" if alone is None else _slashed(alone),
        }
    if place["table"] == "5.2":
        return {"theirs_P_R_F1": _slashed(TABLE_5_2[teachers, threshold])}
    three = TABLE_5_3.get((teachers, threshold, check))
    if three is None:
        return {}
    return {"theirs_P_R_F1": _slashed(three), "theirs_answered": PASSED[teachers, check]}


def _slashed(values: Three) -> str:
    return " / ".join(f"{value:.3f}" for value in values)
