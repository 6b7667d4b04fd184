"""All results of a sweep as one table, for other tools."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from earshot_protocol import distribution
from earshot_protocol.files import replace_file
from earshot_server.data_frames import data_frame
from earshot_simulations.phases.run import INFINITE, plain
from earshot_simulations.sweeps.estimate import Estimate, estimate
from earshot_simulations.sweeps.phase import RANGES
from earshot_simulations.sweeps.plan import SEED, SweepPlan
from earshot_simulations.sweeps.rows import Figures

if TYPE_CHECKING:
    from pandas import DataFrame

CSV, PARQUET = "table.csv", "table.parquet"
SHOWN = ("ari_test", "label_accuracy", "clear_label_accuracy")
"""Figures shown first."""
_MOST_SHOWN = 8


@dataclass(frozen=True)
class SweepTable:
    """The results of a sweep.

    Attributes:
        plan: Plan of the sweep: `plan.arms`, an `Arm` for each point, and `plan.seeds`.
        figures: Figures of each point's seeds, in their order.
    """

    plan: SweepPlan
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
        """Number of phases without a result, which have the scores of `phase.NOTHING`."""
        return sum(bool(figures.get("failure")) for each in self.figures for figures in each)

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per run, all with the same columns: varied settings, seed, figures."""
        names = dict.fromkeys(name for each in self.figures for row in each for name in row)
        return [
            {**arm.labels, SEED: seed, **{name: figures.get(name) for name in names}}
            for arm, each in zip(self.plan.arms, self.figures, strict=True)
            for seed, figures in zip(self.plan.seeds, each, strict=True)
        ]

    def to_frame(self) -> DataFrame:
        """Return `rows` as a data frame.

        Raises:
            MissingExtraError: The package pandas is not installed.
        """
        return data_frame(self.rows())

    def __repr__(self) -> str:
        lines = [self._called(), *("; ".join(map(": ".join, row)) for row in self._points())]
        shown = lines[: _MOST_SHOWN + 1]
        more = [f"and {len(lines) - len(shown)} more points"] if len(lines) > len(shown) else []
        return "<SweepTable: " + "\n  ".join([*shown, *more]) + ">"

    def _repr_html_(self) -> str:
        """Return a small table for a notebook: every point, and means over its seeds."""
        from earshot_simulations.reporting.pages import fragment

        points = self._points()
        columns = [name for name, _ in points[0]]
        rows = [[value for _, value in row] for row in points]
        return fragment(
            "reporting/fragment.html", caption=self._called(), columns=columns, rows=rows
        )

    def _called(self) -> str:
        plan, failed = self.plan, f", {self.failures} failed" if self.failures else ""
        return f"{len(plan.arms)} points, {len(plan.seeds)} seeds each{failed}"

    def _points(self) -> list[list[tuple[str, str]]]:
        """Return each point's settings, and its first figures over seeds, as text."""
        shown = [(name, self.estimates(name)) for name in SHOWN if name in self.metrics]
        return [
            [
                *((name, str(value)) for name, value in arm.labels.items()),
                *((name.replace("_", " "), str(found[place])) for name, found in shown),
            ]
            for place, arm in enumerate(self.plan.arms)
        ]

    def estimates(self, metric: str) -> list[Estimate | None]:
        """Return a figure's mean over seeds with its interval, per point; None without values."""
        return [
            over_seeds(metric, [figures.get(metric) for figures in each]) for each in self.figures
        ]


def over_seeds(metric: str, values: Sequence[Any]) -> Estimate | None:
    """Estimate a figure from the values that are present; None without any."""
    there = [float(value) for value in values if value is not None]
    return estimate(there, RANGES.get(metric)) if there else None


def write(table: SweepTable, folder: Path) -> None:
    """Write `table.csv` and `table.parquet`, each atomically.

    In CSV numbers have all their digits, ∞ is `inf`, and missing values are empty. Parquet has
    types, and under the key `earshot` of its metadata the version and all settings that did not
    vary.
    """
    import pyarrow
    from pyarrow import parquet

    rows = table.rows()
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    shared = plain(table.plan.shared, INFINITE)
    about = json.dumps({"version": distribution.version(), "settings": shared}, allow_nan=False)
    typed = pyarrow.Table.from_pylist(rows, metadata={"earshot": about})
    columns = io.BytesIO()
    parquet.write_table(typed, columns)
    replace_file(folder / CSV, text.getvalue())
    replace_file(folder / PARQUET, columns.getvalue())
