"""All results of a sweep as one table, for whichever tool comes next."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from earshot_protocol import distribution
from earshot_protocol.files import replace_file
from earshot_simulations.sweeps.estimate import Estimate, estimate
from earshot_simulations.sweeps.plan import SEED, Plan
from earshot_simulations.sweeps.rows import Figures

CSV, PARQUET = "table.csv", "table.parquet"


@dataclass(frozen=True)
class Table:
    """What a sweep came to.

    Attributes:
        plan: what was run.
        figures: for each point, those of its seeds, in their order.
    """

    plan: Plan
    figures: tuple[tuple[Figures, ...], ...]

    @property
    def metrics(self) -> tuple[str, ...]:
        """Names of the figures that are numbers, in their order."""
        every = [figures for each in self.figures for figures in each]
        names = dict.fromkeys(name for figures in every for name in figures)
        return tuple(
            name
            for name in names
            if all(isinstance(figures.get(name), int | float | None) for figures in every)
            and any(figures.get(name) is not None for figures in every)
        )

    @property
    def failures(self) -> int:
        """Phases that ended without a result; their scores are those of no result."""
        return sum(bool(figures.get("failure")) for each in self.figures for figures in each)

    def rows(self) -> list[dict[str, Any]]:
        """One row per run: what varied, the seed, every figure; all with the same columns."""
        names = dict.fromkeys(name for each in self.figures for row in each for name in row)
        return [
            {**arm.labels, SEED: seed, **{name: figures.get(name) for name in names}}
            for arm, each in zip(self.plan.arms, self.figures, strict=True)
            for seed, figures in zip(self.plan.seeds, each, strict=True)
        ]

    def estimates(self, metric: str) -> list[Estimate | None]:
        """A figure's mean over seeds with its interval, per point; None where it has none."""
        return [over_seeds([figures.get(metric) for figures in each]) for each in self.figures]


def over_seeds(values: Sequence[Any]) -> Estimate | None:
    """Of the values that are there; None without any."""
    there = [float(value) for value in values if value is not None]
    return estimate(there) if there else None


def write(table: Table, folder: Path) -> None:
    """Write `table.csv` and `table.parquet`, each whole or not at all.

    In CSV numbers have all their digits, and what is missing is empty. Parquet has types, and
    under the key `earshot` of its metadata the version and all settings that did not vary.
    """
    import pyarrow
    from pyarrow import parquet

    rows = table.rows()
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    about = {"version": distribution.version(), "settings": table.plan.shared}
    typed = pyarrow.Table.from_pylist(rows, metadata={"earshot": json.dumps(about)})
    columns = io.BytesIO()
    parquet.write_table(typed, columns)
    replace_file(folder / CSV, text.getvalue())
    replace_file(folder / PARQUET, columns.getvalue())
