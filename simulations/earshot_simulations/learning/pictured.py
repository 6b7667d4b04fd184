"""The steps of a phase as a page shows them: one picture each, in one plane."""

from __future__ import annotations

from typing import NamedTuple

from earshot_simulations.learning.run import Run
from earshot_simulations.reporting import plane
from earshot_simulations.reporting.drawing import Picture
from earshot_simulations.reporting.markup import figure
from earshot_simulations.reporting.words import counted


class Step(NamedTuple):
    """A step of a phase.

    Attributes:
        title: Title of the picture.
        words: Caption of the picture.
        picture: Picture; None if a run that ended early never reached the step.
    """

    title: str
    words: str
    picture: Picture | None


def heard(run: Run, frame: plane.Frame) -> Step:
    """Return the first step of all phases."""
    return Step(
        "What the phones heard",
        f"A sample of {counted(len(run.points), 'recording')}, coloured by true scene. "
        "No phone and no server knows this picture.",
        plane.recordings(run.points, run.scenes, run.label_names, frame),
    )


def numbered(*steps: Step) -> list[str]:
    """Return steps as numbered figures, in their order."""
    return [
        figure(f"{number}. {step.title}", step.words, step.picture)
        for number, step in enumerate(steps, start=1)
    ]
