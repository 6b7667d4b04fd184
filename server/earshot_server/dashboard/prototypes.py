"""Findings of a discovery phase: prototypes of its labels, and the cells in which sound was heard.

Phases of former releases gave names to cells instead, which `cells` shows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from earshot_protocol.phases import discovery
from earshot_protocol.phases.discovery import LABELS, Discovered, DiscoveryParameters
from earshot_protocol.phases.places import UNNAMED, Places
from earshot_protocol.privacy.significance import LEVEL
from earshot_protocol.voting.vectors import unit_steps
from earshot_server.dashboard import charts, wording
from earshot_server.dashboard.histograms import CONFIDENCE, length_noise
from earshot_server.records import PhaseRecord

UNKNOWN = "unknown"
"""Name of a sound or a cell that lies within the radius of no prototype."""


@dataclass(frozen=True)
class Row:
    """One row of the sum of labels: that of a label, or that of a choice with a prototype.

    Attributes:
        label: Label.
        choice: Choice of a poll that it stands for; empty for the label itself.
        number: Number of its prototype on the map, from 1; None where it is not clear of the noise.
        hue: Hue of its marks, that of its label.
        length: Length of its sum without noise, in phones.
        p_value: P-value of that sum.
        cells: Cells with sound that it names, counted from 0; for a label, by its choices, too.
    """

    label: str
    choice: str
    number: int | None
    hue: int
    length: float
    p_value: float
    cells: tuple[int, ...]

    @property
    def name(self) -> str:
        """Name of the choice, or of the label."""
        return self.choice or self.label

    @property
    def numbers(self) -> str:
        """Its cells, as people know them; empty without any."""
        return ", ".join(f"c{cell + 1}" for cell in self.cells)


@dataclass(frozen=True)
class Cell:
    """One cell.

    Attributes:
        number: Number in the table, from 1.
        name: Name of the nearest prototype, or `UNKNOWN`.
        hue: Hue of its mark, that of its label.
        moved: Whether what phones heard in it stood clear of the noise.
        length: Length of its sum without noise, in phones.
        nameless: Whether it is a kind of place that nobody named: with sound, and unknown.
    """

    number: int
    name: str
    hue: int
    moved: bool
    length: float
    nameless: bool


@dataclass(frozen=True)
class Prototypes:
    """Findings of a discovery phase.

    Attributes:
        rows: Labels, each followed by its choices that have prototypes; the longest sums first,
            those that are not clear of the noise last.
        cells: All cells, by number.
        unclear_choices: Choices with a row that is not clear of the noise. A result has no names
            for them.
        map: Picture of the prototypes, and of the cells with sound; None where there are neither.
        explained: Share of the variance that the map shows; None where nothing is left out.
        noise: Bound on what noise does to the length of a label, in 95 of 100 cases, in phones.
        cell_noise: Bound on what it does to the length of a cell; None where no sum moved them.
        reach: How far a sound may lie from the prototype that names it, in a sentence.
    """

    rows: tuple[Row, ...]
    cells: tuple[Cell, ...]
    unclear_choices: int
    map: Markup | None
    explained: float | None
    noise: float
    cell_noise: float | None
    reach: str

    @property
    def left_out(self) -> tuple[str, ...]:
        """Labels that are not clear of the noise."""
        return tuple(row.label for row in self.rows if row.number is None)

    @property
    def moved(self) -> int:
        """Number of cells in which phones' sound stood clear of the noise."""
        return sum(cell.moved for cell in self.cells)

    @property
    def nameless(self) -> tuple[Cell, ...]:
        """Cells that are kinds of place that nobody named, the longest first."""
        return without_name(self.cells)


def nameless(found: Discovered) -> tuple[int, ...]:
    """Return the cells that are kinds of place that nobody named, counted from 0.

    What phones heard there stands clear of the noise, and no prototype is within the radius.
    """
    cells = zip(found.cell_labels, found.moved, strict=True)
    return tuple(row for row, (label, moved) in enumerate(cells) if moved and label == UNNAMED)


def rows(found: Discovered) -> tuple[Row, ...]:
    """Return the rows of labels, and of choices that have prototypes (`Prototypes.rows`)."""
    labels, owners = found.cell_labels, _owners(found)
    heard = [row for row, moved in enumerate(found.moved) if moved]
    clear = [row for row, p_value in enumerate(found.row_p_values) if p_value <= LEVEL]
    made: list[Row] = []
    for label, name in enumerate(found.label_names):
        made.append(
            Row(
                label=name,
                choice="",
                number=clear.index(label) + 1 if label in clear else None,
                hue=label % charts.HUES,
                length=found.lengths[label] if found.lengths else 0.0,
                p_value=found.row_p_values[label] if found.row_p_values else 1.0,
                cells=tuple(row for row in heard if labels[row] == label),
            )
        )
        made += (
            Row(
                label=name,
                choice=choice,
                number=place + 1,
                hue=label % charts.HUES,
                length=found.lengths[clear[place]],
                p_value=found.row_p_values[clear[place]],
                cells=tuple(row for row in heard if owners[row] == place),
            )
            for place, choice in enumerate(found.choices)
            if choice and found.labels[place] == label
        )
    whole = {row.label: row for row in made if not row.choice}
    return tuple(
        sorted(
            made,
            key=lambda row: (
                whole[row.label].number is None,
                -whole[row.label].length,
                row.label,
                row.choice != "",
                -row.length,
            ),
        )
    )


def cells(found: Discovered) -> tuple[Cell, ...]:
    """Return all cells, each with the name of the prototype that is nearest to it."""
    owners, without = _owners(found), set(nameless(found))
    return tuple(
        Cell(
            number=row + 1,
            name=UNKNOWN if owner is None else _name(found, owner),
            hue=charts.HUES if owner is None else found.labels[owner] % charts.HUES,
            moved=found.moved[row],
            length=found.cell_lengths[row],
            nameless=row in without,
        )
        for row, owner in enumerate(owners)
    )


def without_name(found: tuple[Cell, ...]) -> tuple[Cell, ...]:
    """Return those cells that are kinds of place that nobody named, the longest first."""
    return tuple(sorted((cell for cell in found if cell.nameless), key=lambda cell: -cell.length))


def prototypes(record: PhaseRecord, found: Discovered) -> Prototypes:
    """Return the findings of a published discovery phase."""
    by_label, heard = rows(found), cells(found)
    named = sum(row.choice != "" for row in by_label)
    picture, explained = _map(found, by_label, heard)
    return Prototypes(
        by_label,
        heard,
        len(found.lengths) - len(found.label_names) - named if found.lengths else 0,
        picture,
        explained,
        length_noise(record, LABELS).radius(CONFIDENCE) / found.vote,
        _cell_noise(record),
        reach(found.radius),
    )


def reach(radius: float | None) -> str:
    """Return in a sentence how far a sound may lie from the prototype that names it."""
    if radius is None:
        return "A sound has the name of the nearest prototype, however far away that is."
    degrees = round(math.degrees(math.acos(1.0 - radius)))
    return (
        f"A sound has the name of the nearest prototype within a distance (1 − cosine) of "
        f"{wording.real(radius)}, an angle of {degrees}°; beyond it a sound is unknown."
    )


def _owners(found: Discovered) -> list[int | None]:
    """Return the prototype that names each cell; None for an unknown one."""
    placed = np.empty((0, 0), np.float32) if found.cells is None else found.cells.array()
    return Places.of(found).within(placed)


def _name(found: Discovered, prototype: int) -> str:
    choice = found.choices[prototype] if found.choices else ""
    return choice or found.label_names[found.labels[prototype]]


def _cell_noise(record: PhaseRecord) -> float | None:
    parameters = record.parameters
    if not isinstance(parameters, DiscoveryParameters) or not parameters.sums:
        return None
    noise = length_noise(record, discovery.cells(parameters.sums))
    unit = unit_steps(parameters.most_cells * parameters.dimensions)
    return noise.radius(CONFIDENCE) / unit


def _map(
    found: Discovered, by_label: tuple[Row, ...], heard: tuple[Cell, ...]
) -> tuple[Markup | None, float | None]:
    """Draw the prototypes and the cells with sound; cells without one are where nobody is."""
    drawn = [cell for cell in heard if cell.moved]
    with_number = sorted((row for row in by_label if row.number), key=lambda row: row.number or 0)
    if found.cells is None or not (drawn or with_number):
        return None, None
    moved = found.cells.array()[[cell.number - 1 for cell in drawn]]
    plane, explained = charts.principal_plane(np.concatenate([found.centroids.array(), moved]))
    places = [
        charts.Place(str(row.number), row.name, row.hue, row.length) for row in with_number
    ] + [
        charts.Place(f"c{cell.number}", cell.name, cell.hue, cell.length, cell=True)
        for cell in drawn
    ]
    title = (
        f"Map of {wording.counted(len(with_number), 'prototype')} and "
        f"{wording.counted(len(drawn), 'cell')}; the tables list them by number."
    )
    return charts.environment_map(places, plane, title), explained
