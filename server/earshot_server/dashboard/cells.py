"""What a discovery phase found, row by row: its cells, and the environments that they make up."""

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
        number: on the map, from 1.
        name: its label, or that it is unnamed.
        hue: of its mark: that of its environment.
        moved: whether what phones heard in it stood clear of the noise.
        label_votes: for each label: the sum and the strength of its colour.
        label: the label with the most votes.
        p_value: of that label.
        why_unnamed: the label that noise may have chosen; empty where it has a name.
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
        """For its label."""
        return self.label_votes[self.label][0]


@dataclass(frozen=True)
class Cells:
    """What a discovery phase found.

    Attributes:
        environments: groups of cells, those with a clear name first.
        rows: all cells, by number.
        moved: in how many of them phones' sound stood clear of the noise.
        map: the picture.
        explained: the share of the variance that it holds; None where nothing is left out.
        radius: of the noise in each number of votes.
    """

    environments: tuple[Group, ...]
    rows: tuple[Cell, ...]
    moved: int
    map: Markup
    explained: float | None
    radius: float


def cells(record: PhaseRecord, found: Discovered) -> Cells:
    """The cells of a published discovery phase."""
    largest = max((max(votes) for votes in found.label_votes), default=0.0)
    p_values = found.name_p_values or (1.0,) * len(found.labels)
    rows = tuple(
        Cell(
            number=row + 1,
            name=found.names[row] or wording.UNNAMED,
            hue=charts.HUES if found.names[row] is None else label % charts.HUES,
            moved=found.moved[row],
            label_votes=tuple(
                (votes, charts.heat(votes, largest)) for votes in found.label_votes[row]
            ),
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
