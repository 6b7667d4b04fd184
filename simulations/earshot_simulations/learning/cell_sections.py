"""The parts of a report that only a discovery by secure sums has: cells and their fate."""

from __future__ import annotations

from earshot_protocol.privacy.significance import LEVEL
from earshot_server.dashboard.groups import groups, numbers
from earshot_simulations.learning import cell_pictures
from earshot_simulations.learning.pictured import Step, heard, numbered
from earshot_simulations.learning.run import Run
from earshot_simulations.reporting import charts, plane
from earshot_simulations.reporting.markup import figure, grid, lead, section, table
from earshot_simulations.reporting.words import NOTHING, UNNAMED, real, votes, whole

KIND = "discovery phase"


def found(run: Run) -> tuple[str, str]:
    """Return the name and the values of the counts at the head of a page."""
    placed = run.start_centroids if run.global_centroids is None else run.global_centroids
    cells = NOTHING if placed is None else whole(len(placed))
    moved = whole(int(run.moved.sum())) if len(run.moved) else NOTHING
    named = NOTHING
    if run.label_votes is not None:
        named = whole(len(run.names) - run.names.count(None))
    return "cells / moved / named", f"{cells} / {moved} / {named}"


def pictures(run: Run) -> str:
    """Show the fate of the cells, step by step, in one plane."""
    frame = plane.frame(run.points)
    words = (
        "Phones sort what they heard into the cells of public start centroids. Secure sums over "
        "all phones move the cells to where sound is, and a last one counts labels in each. "
        "Every picture shows the same plane."
    )
    shown = numbered(heard(run, frame), *steps(run, frame))
    return section("The discovery phase", lead(f"{words} {plane.projection(frame)}") + grid(*shown))


def steps(run: Run, frame: plane.Frame) -> tuple[Step, ...]:
    """Return the steps that follow hearing, in order."""
    return (
        Step(
            "Public start centroids and their cells",
            "Crosses come with the encoder, and nobody's sound is in them. A recording has the "
            "colour of the cell that it falls into.",
            cell_pictures.start(run, frame),
        ),
        Step(
            "Where sums moved them",
            "Blue crosses are cells in which phones' sound stood clear of the noise in the last "
            "sum, with a line from their start; grey ones are the others, beside the fullest cells "
            "or where they began. Where few cells hear nearly everything, further ones are placed "
            "beside them.",
            cell_pictures.moved(run, frame),
        ),
        Step(
            "Named environments",
            "Cells with a name that stands clear of the noise; those of one colour are one "
            "environment. Grey crosses have none.",
            cell_pictures.named(run, frame),
        ),
    )


def environments(run: Run) -> str:
    """Format environments, cells and their votes."""
    title = "Environments found"
    if run.label_votes is None:
        return section(title, lead("The run ended before the sum of labels."))
    together = table(
        "Cells of one label are one environment. Votes are for this label, in all of its cells: a "
        "phone's labels are one vote in all, or little more. Environments without a cell whose "
        "name is clear may be noise.",
        ("Environment", "Cells with this name", "Cells that may be noise", "#Votes"),
        [
            [
                group.name if group.clear else f"{group.name}, which may be noise",
                numbers(group.clear) or NOTHING,
                numbers(group.doubtful) or NOTHING,
                votes(group.votes),
            ]
            for group in groups(run)
        ],
    )
    cells = table(
        "Cells. Votes carry noise, so that some are below zero. The label with the most votes is "
        "the cell's name where noise alone would name any cell in at most "
        f"{round(100 * LEVEL)} of 100 phases (p, corrected for all that were looked at); else the "
        "cell is unnamed.",
        ("Cell", "Name", "Most votes", "Moved", "#Votes", "#p"),
        [_cell(run, row) for row in range(len(run.labels))],
    )
    shown = grid(
        figure(
            "Labels, published and true",
            "Held-out recordings by the label of their cell, be it noise, beside their true one.",
            charts.histogram(run.label_names, run.label_histogram, run.true_histogram),
        ),
        figure(
            "Votes for a label",
            "The last sum, noise included; a strong colour is a large number.",
            charts.votes_by_label(
                run.label_votes, range(1, len(run.labels) + 1), run.label_names, "cell"
            ),
        ),
    )
    return section(title, together + cells + shown)


def _cell(run: Run, row: int) -> list[str]:
    label, name = run.labels[row], run.names[row]
    cast = 0.0 if run.label_votes is None else float(run.label_votes[row][label])
    moved = len(run.moved) and bool(run.moved[row])
    return [
        str(row + 1),
        UNNAMED if name is None else name,
        run.label_names[label],
        "yes" if moved else "no",
        votes(cast),
        real(run.name_p_values[row]) if run.name_p_values else NOTHING,
    ]
