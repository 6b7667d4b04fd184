"""Results of a discovery phase: prototypes of its labels, and cells in which sound was heard."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from earshot_protocol.phases import discovery
from earshot_protocol.phases.discovery import LABELS, Discovered, DiscoveryParameters
from earshot_protocol.phases.places import UNNAMED
from earshot_protocol.privacy.mechanisms import GRID
from earshot_server.dashboard import charts, wording
from earshot_server.dashboard.histograms import CONFIDENCE, length_noise
from earshot_server.dashboard.languages import gettext as _
from earshot_server.records import PhaseRecord


@dataclass(frozen=True)
class LabelRow:
    """One prototype: of a label, or of a choice with its own rows; each may have several.

    Attributes:
        number: Number of the prototype, from 1.
        label: Label.
        choice: Choice of a poll; empty for the label itself.
        hue: Hue of its marks, by label.
        length: Length of its sum without noise, in phones.
        p_value: P-value of that sum.
        clear: Whether it is clear of the noise.
        cells: Indices of the cells with sound that it names.
    """

    number: int
    label: str
    choice: str
    hue: int
    length: float
    p_value: float
    clear: bool
    cells: tuple[int, ...]

    @property
    def name(self) -> str:
        """Name of the choice, or of the label."""
        return self.choice or self.label

    @property
    def numbers(self) -> str:
        """Numbers of its cells, as shown to people; empty without any."""
        return ", ".join(f"c{cell + 1}" for cell in self.cells)


@dataclass(frozen=True)
class HeardCell:
    """One cell.

    Attributes:
        number: Number in the table, from 1.
        name: Name of the nearest prototype, or `wording.UNKNOWN`.
        doubtful: Name of the nearest prototype if that is not clear of the noise; else empty.
        hue: Hue of its mark, by label.
        moved: Whether what phones heard in it was clear of the noise.
        length: Length of its sum without noise, in phones.
        nameless: Whether it has sound but no clear prototype near it (an unlabelled kind of place).
    """

    number: int
    name: str
    doubtful: str
    hue: int
    moved: bool
    length: float
    nameless: bool


@dataclass(frozen=True)
class FoundLabels:
    """Results of a discovery phase.

    Attributes:
        rows: Prototypes by label, those of its choices last; the longest first, those that are not
            clear of the noise last.
        cells: All cells, by number.
        map: Map of the clear prototypes and the cells with sound; None if there are neither.
        explained: Share of the variance that the map shows; None if it shows all.
        noise: Bound on the noise in the length of a label, in 95 of 100 cases, in phones.
        cell_noise: Bound on the noise in the length of a cell; None if no sum moved them.
        reach: Sentence on how far a sound may lie from the prototype that names it.
    """

    rows: tuple[LabelRow, ...]
    cells: tuple[HeardCell, ...]
    map: Markup | None
    explained: float | None
    noise: float
    cell_noise: float | None
    reach: str

    @property
    def left_out(self) -> tuple[str, ...]:
        """Labels and choices of which no prototype is clear of the noise."""
        return tuple(dict.fromkeys(row.name for row in self.rows if not row.clear))

    @property
    def moved(self) -> int:
        """Number of cells in which phones' sound was clear of the noise."""
        return sum(cell.moved for cell in self.cells)

    @property
    def nameless(self) -> tuple[HeardCell, ...]:
        """Cells of unlabelled kinds of place, the longest first."""
        return without_name(self.cells)


def nameless(found: Discovered) -> tuple[int, ...]:
    """Return the indices of cells of unlabelled kinds of place.

    Their sound is clear of the noise, and no clear prototype is near them.
    """
    cells = zip(found.cell_labels, found.moved, strict=True)
    return tuple(row for row, (label, moved) in enumerate(cells) if moved and label == UNNAMED)


def rows(found: Discovered) -> tuple[LabelRow, ...]:
    """Return the prototypes of labels and choices (`FoundLabels.rows`)."""
    owners = found.cell_owners
    heard = [cell for cell, moved in enumerate(found.moved) if moved]
    made = [
        LabelRow(
            number=row + 1,
            label=found.label_names[label],
            choice=choice,
            hue=label % charts.HUES,
            length=length,
            p_value=p_value,
            clear=name is not None,
            cells=tuple(cell for cell in heard if name is not None and owners[cell] == row),
        )
        for row, (label, choice, length, p_value, name) in enumerate(
            zip(
                found.labels,
                found.choices,
                found.lengths,
                found.name_p_values,
                found.names,
                strict=True,
            )
        )
    ]
    best = {row.label: (not row.clear, -row.length, row.label) for row in made[::-1]}
    for row in made:
        if not row.choice:
            best[row.label] = min(best[row.label], (not row.clear, -row.length, row.label))
    return tuple(
        sorted(
            made,
            key=lambda row: (*best[row.label], row.choice != "", not row.clear, -row.length),
        )
    )


def cells(found: Discovered) -> tuple[HeardCell, ...]:
    """Return all cells, each with the name of its nearest prototype."""
    without = set(nameless(found))
    return tuple(
        _cell(found, row, owner, row in without) for row, owner in enumerate(found.cell_owners)
    )


def without_name(found: tuple[HeardCell, ...]) -> tuple[HeardCell, ...]:
    """Return those cells that are unlabelled kinds of place, the longest first."""
    return tuple(sorted((cell for cell in found if cell.nameless), key=lambda cell: -cell.length))


def prototypes(record: PhaseRecord, found: Discovered) -> FoundLabels:
    """Return the results of a published discovery phase."""
    by_label, heard = rows(found), cells(found)
    picture, explained = _map(found, by_label, heard)
    return FoundLabels(
        by_label,
        heard,
        picture,
        explained,
        length_noise(record, LABELS).radius(CONFIDENCE) / GRID,
        _cell_noise(record),
        reach(found),
    )


def reach(found: Discovered) -> str:
    """Return a sentence on how far a sound may lie from the prototype that names it."""
    if found.radius is None:
        return _("A sound has the name of the nearest prototype, at any distance.")
    degrees = round(math.degrees(math.acos(1.0 - found.radius)))
    near = _(
        "A sound has the name of the nearest prototype within a distance (1 − cosine) of "
        "%(radius)s, an angle of %(degrees)s°; beyond it a sound is unknown.",
        radius=wording.real(found.radius),
        degrees=degrees,
    )
    if not found.named:
        return near
    beyond = _(
        "About one in twenty of the sounds of clear labels lies beyond; of the kinds of public "
        "sound with which the phase began, %(share)s stay unknown, an estimate of how much "
        "unlabelled sound will.",
        share=wording.percent(found.refused),
    )
    return f"{near} {beyond}"


def _cell(found: Discovered, row: int, owner: int | None, nameless: bool) -> HeardCell:
    near = "" if owner is None else _name(found, owner)
    clear = owner is not None and found.names[owner] is not None
    return HeardCell(
        number=row + 1,
        name=near if clear else _(wording.UNKNOWN),
        doubtful="" if clear else near,
        hue=charts.HUES if owner is None or not clear else found.labels[owner] % charts.HUES,
        moved=found.moved[row],
        length=found.cell_lengths[row],
        nameless=nameless,
    )


def _name(found: Discovered, prototype: int) -> str:
    return found.choices[prototype] or found.label_names[found.labels[prototype]]


def _cell_noise(record: PhaseRecord) -> float | None:
    parameters = record.parameters
    if not isinstance(parameters, DiscoveryParameters) or not parameters.sums:
        return None
    noise = length_noise(record, discovery.cells(parameters.sums))
    return noise.radius(CONFIDENCE) / GRID


def _map(
    found: Discovered, by_label: tuple[LabelRow, ...], heard: tuple[HeardCell, ...]
) -> tuple[Markup | None, float | None]:
    """Draw the prototypes that are clear of the noise, and the cells with sound."""
    drawn = [cell for cell in heard if cell.moved]
    clear = [row for row in by_label if row.clear]
    if not (drawn or clear):
        return None, None
    points = np.concatenate(
        [
            found.centroids.array()[[row.number - 1 for row in clear]],
            found.cells.array()[[cell.number - 1 for cell in drawn]],
        ]
    )
    plane, explained = charts.principal_plane(points)
    places = [charts.Place(str(row.number), row.name, row.hue, row.length) for row in clear] + [
        charts.Place(f"c{cell.number}", cell.name, cell.hue, cell.length, cell=True)
        for cell in drawn
    ]
    title = _(
        "Map of %(prototypes)s and %(cells)s; the tables list them by number.",
        prototypes=wording.counted(len(clear), "prototype"),
        cells=wording.counted(len(drawn), "cell"),
    )
    return charts.environment_map(places, plane, title), explained
