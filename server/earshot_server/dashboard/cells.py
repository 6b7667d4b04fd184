"""Findings of a discovery phase of a former release: cells with names, and what they make up.

Phases gave cells their names by votes before labels had prototypes (`prototypes`).
"""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from earshot_protocol.phases.discovery import Discovered
from earshot_server.dashboard import charts, histograms, outcomes, wording
from earshot_server.dashboard.groups import Group, groups
from earshot_server.records import PhaseRecord


@dataclass(frozen=True)
class Cell:
    """One cell.

    Attributes:
        number: Number on the map, from 1.
        name: Label of the cell, or `wording.UNNAMED`.
        hue: Hue of its mark, that of its environment.
        moved: Whether what phones heard in it stood clear of the noise.
        label_votes: Sum of votes for each label, and the strength of its colour.
        label: Label with the most votes, an index.
        p_value: P-value of that label.
        why_unnamed: Label that noise may have chosen, in words; empty where the cell has a name.
    """

    number: int
    name: str
    hue: int
    moved: bool
    label_votes: tuple[tuple[float, int], ...]
    label: int
    p_value: float
    why_unnamed: str

    @property
    def votes(self) -> float:
        """Votes for its label."""
        return self.label_votes[self.label][0]


@dataclass(frozen=True)
class Cells:
    """Findings of a discovery phase of a former release.

    Attributes:
        environments: Groups of cells, those with a clear name first.
        rows: All cells, by number.
        moved: Number of cells in which phones' sound stood clear of the noise.
        map: Picture of the cells.
        explained: Share of the variance that the map shows; None where nothing is left out.
        radius: Bound on the noise in each number of votes, in 95 of 100 cases.
    """

    environments: tuple[Group, ...]
    rows: tuple[Cell, ...]
    moved: int
    map: Markup
    explained: float | None
    radius: float


def cells(record: PhaseRecord, found: Discovered) -> Cells:
    """Return the cells of a discovery phase that a former release published."""
    sums = charts.heated(found.label_votes)
    p_values = found.name_p_values or (1.0,) * len(found.labels)
    rows = tuple(
        Cell(
            number=row + 1,
            name=found.names[row] or wording.UNNAMED,
            hue=charts.HUES if found.names[row] is None else label % charts.HUES,
            moved=found.moved[row],
            label_votes=sums[row],
            label=label,
            p_value=p_values[row],
            why_unnamed=outcomes.why_unnamed(found, row),
        )
        for row, label in enumerate(found.labels)
    )
    plane, explained = charts.principal_plane(found.centroids.array())
    places = [charts.Place(row.number, row.name, row.hue, max(0.0, row.votes)) for row in rows]
    title = f"Map of {len(rows)} cells; the table lists them by number."
    return Cells(
        groups(found),
        rows,
        sum(found.moved),
        charts.environment_map(places, plane, title),
        explained,
        histograms.sum_noise(record, found.named_in).radius() / found.vote,
    )
