"""The parts of a report that only the local route has: published centroids, and two votes."""

from __future__ import annotations

from earshot_protocol.privacy.significance import LEVEL
from earshot_simulations.learning import local_pictures
from earshot_simulations.learning.pictured import Step, heard, numbered
from earshot_simulations.learning.run import Run
from earshot_simulations.reporting import charts, plane
from earshot_simulations.reporting.markup import figure, grid, lead, section, table
from earshot_simulations.reporting.words import NOTHING, UNNAMED, percent, real, whole

KIND = "learning phase"
MOST_ROWS = 200


def found(run: Run) -> tuple[str, str]:
    """Return the name and the values of the counts at the head of a page."""
    kept = NOTHING if run.centroid_votes is None else whole(len(run.top))
    centroids = NOTHING if run.global_centroids is None else whole(len(run.global_centroids))
    named = NOTHING
    if run.label_votes is not None:
        named = whole(len(run.names) - run.names.count(None))
    return "centroids found / kept / named", f"{centroids} / {kept} / {named}"


def pictures(run: Run) -> str:
    """Show, in one plane, what the steps made of the phones' sound."""
    frame = plane.frame(run.points)
    words = "Every picture shows the same plane. Grey points are what the phones heard."
    shown = numbered(heard(run, frame), *steps(run, frame))
    return section("The learning phase", lead(f"{words} {plane.projection(frame)}") + grid(*shown))


def steps(run: Run, frame: plane.Frame) -> tuple[Step, ...]:
    """Return the steps that follow hearing, in order."""
    return (
        Step(
            "What the phones published",
            "The top centroids of all phones, with the noise that protects each recording.",
            local_pictures.local_centroids(run, frame),
        ),
        Step(
            "What the server found",
            "Centroids in one colour went into one global centroid, marked by a cross; "
            "grey ones are outliers.",
            local_pictures.global_centroids(run, frame),
        ),
        Step(
            "What the votes made of it",
            "The kept global centroids with the label and the centroid votes each received.",
            local_pictures.labelled_centroids(run, frame),
        ),
    )


def environments(run: Run) -> str:
    """Format the kept centroids and their votes."""
    if run.centroid_votes is None:
        return section("Environments found", lead("The run ended before the vote on centroids."))
    rows = []
    for row, (index, name) in enumerate(zip(run.top, run.names, strict=True)):
        votes_to_keep = whole(run.centroid_votes[index])
        if run.label_votes is None:
            rows.append([NOTHING, str(index), votes_to_keep, NOTHING, NOTHING, NOTHING])
            continue
        votes = run.label_votes[row]
        cast, most = votes.clip(0).sum(), votes.max()
        rows.append(
            [
                UNNAMED if name is None else name,
                str(index),
                votes_to_keep,
                whole(most),
                percent(most / cast) if cast else NOTHING,
                real(run.name_p_values[row]) if run.name_p_values else NOTHING,
            ]
        )
    centroids = table(
        "Kept global centroids. Votes carry noise; the share is that of the most frequent label "
        "among the label votes for its centroid. It is the centroid's name where noise alone would "
        f"name any centroid in at most {round(100 * LEVEL)} of 100 phases (p, corrected for all "
        "that were looked at); else the centroid is unnamed.",
        ("Label", "#Centroid", "#Votes to keep it", "#Votes for the label", "#Share", "#p"),
        rows[:MOST_ROWS],
    )
    shown = grid(
        figure(
            "Labels, published and true",
            "Held-out recordings by the name that the published centroids give them, "
            "beside their true one.",
            charts.histogram(run.label_names, run.label_histogram, run.true_histogram),
        ),
        figure(
            "Votes for a label",
            "Noisy sums of the second vote; a strong colour is a large sum.",
            None
            if run.label_votes is None
            else charts.votes_by_label(
                run.label_votes, run.top.tolist(), run.label_names, "global centroid"
            ),
        ),
        figure(
            "Votes to keep a centroid",
            "Noisy sums of the first vote.",
            charts.candidates(run.centroid_votes, run.top, "global centroid"),
        ),
    )
    return section("Environments found", centroids + left_out(len(rows)) + shown)


def left_out(rows: int) -> str:
    """Return the remark on rows that a table has no room for; empty if it shows all."""
    more = rows - MOST_ROWS
    return lead(f"{whole(more)} more are in result.json.") if more > 0 else ""
