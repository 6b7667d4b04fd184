"""Cells of private students as a table, and differences of systems, seed by seed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from earshot_simulations.sweeps.estimate import Estimate, paired
from earshot_studies.kit.outcome import Row, means
from earshot_studies.pate_aae import printed as theirs
from earshot_studies.pate_aae.answers import Noise
from earshot_studies.pate_aae.study import Cell
from earshot_studies.pate_aae.systems import System

ACCURACIES = {noise: f"{noise.name.lower()}_accuracy" for noise in Noise}
"""Columns, by the noise on the answers."""
KEPT = {noise: f"{noise.name.lower()}_kept" for noise in Noise}
"""Columns: how many answers are those that there would be without noise."""
SCALES = {noise: f"{noise.name.lower()}_scale" for noise in Noise}
"""Columns: the size of the noise, in votes."""

_MEASURED = ("fid", "fid_real", "agreement", *KEPT.values(), *ACCURACIES.values())


class Found(NamedTuple):
    """All that was measured.

    Attributes:
        cells: of every system, budget and seed.
        references: what is reached without generated clips, of every seed.
        table: means over seeds of the cells.
    """

    cells: Sequence[Cell]
    references: Sequence[Cell]
    table: Sequence[Row]


def averaged(cells: Sequence[Cell]) -> list[Row]:
    """Means over seeds with half of their 95 % intervals, by system and ε."""
    groups: dict[tuple[str, float], list[Cell]] = {}
    for cell in cells:
        groups.setdefault((str(cell["system"]), float(cell["epsilon"])), []).append(cell)
    found: list[Row] = []
    for (system, epsilon), group in groups.items():
        printed = theirs.FID.get(System(system), {}).get(epsilon, "")
        row: Row = {"system": system, "epsilon": epsilon, "seeds": len(group)}
        row |= {"theirs_fid": printed, "labels_epsilon": group[0]["labels_epsilon"]}
        row |= {name: group[0][name] for name in SCALES.values()}
        found.append(row | means(group, _MEASURED))
    return found


def difference(
    cells: Sequence[Cell], column: str, one: System, other: System, epsilon: float
) -> Estimate:
    """One system's figure less another's under one budget, in pairs of a seed."""
    first, second = (_by_seed(cells, column, system, epsilon) for system in (one, other))
    return paired([first[seed] for seed in first], [second[seed] for seed in first])


def ratio(cells: Sequence[Cell], one: System, other: System, epsilon: float) -> float:
    """Of the mean distances of two systems under one budget."""
    first, second = (_by_seed(cells, "fid", system, epsilon) for system in (one, other))
    return sum(first.values()) / sum(second[seed] for seed in first)


def verdict(found: Estimate, above: str = "as theirs", below: str = "the other way round") -> str:
    """Whether a difference is above zero, in words."""
    if found.wide is None:
        return "one seed says nothing"
    if not found.clear:
        return "not told apart"
    return above if found.mean > 0 else below


def said(row: Row, name: str, digits: int = 3) -> str:
    """A mean and half of its interval."""
    if row[name] == "":
        return "–"
    wide = row.get(f"{name}_interval_95", "")
    mean = f"{float(row[name]):.{digits}f}"
    return mean if wide == "" else f"{mean} ± {float(wide):.{digits}f}"


def _by_seed(
    cells: Sequence[Cell], column: str, system: System, epsilon: float
) -> dict[int, float]:
    return {
        int(cell["seed"]): float(cell[column])
        for cell in cells
        if cell["system"] == system and cell["epsilon"] == epsilon
    }
