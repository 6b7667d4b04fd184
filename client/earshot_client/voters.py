"""Voters on samples that are to be labelled: an app's model, or the phone's recordings.

A ballot in a secure sum leaves the phone whatever a voter answers, so all voters cost the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
import numpy.typing as npt

from earshot_protocol.errors import InvalidInputError
from earshot_protocol.geometry import unit_rows

NEIGHBOURS = 5
"""Number of a sample's neighbours that vote on it."""
LEAST_LIKENESS = 0.5
"""Cosine below which a recording is not a neighbour, however far apart all of them are."""
REACH = 3.0
"""Largest distance of neighbours, as a multiple of the median distance from a recording to its
nearest. A phone that has heard nothing like a sample should not vote: such phones would outvote the
few that have. In a simulated crowd that knows 34 of 100 pairs of phone and sample, 28 to 31 vote
with this limit, on points as on sound (docs/simulating.md)."""
_COMPARED = 500
"""Number of newest recordings from which that median is computed."""

Points = npt.NDArray[np.float32]


class Voter(Protocol):
    """A model that labels samples."""

    @property
    def classes(self) -> Sequence[str]:
        """Possible answers: classes of environments, or their choices."""

    def answers(self, samples: Points) -> Sequence[str | None]:
        """Name each sample.

        Args:
            samples: Samples, float32 (samples, dimensions), unit rows in the encoder's projection.

        Returns:
            One of the voter's classes for each sample; None to abstain.
        """


@dataclass(frozen=True)
class NearestRecordings:
    """A nearest-neighbour voter: the commonest label of the near recordings; abstains without any.

    Among equally frequent labels, that of the nearest recording wins.

    Attributes:
        points: Points of the recordings, float32 (recordings, dimensions).
        labels: Label of each recording.
        reach: Largest distance of a sample's neighbours, that of unit vectors.
    """

    points: Points
    labels: tuple[str, ...]
    reach: float = 2.0

    @classmethod
    def of(cls, points: Points, labels: Sequence[str | None]) -> Self:
        """Make a voter from a phone's recordings, labelled or not.

        Args:
            points: Recordings, float32 (recordings, dimensions), oldest first.
            labels: Label of each recording, or None.
        """
        known = [(place, label) for place, label in enumerate(labels) if label is not None]
        own = points[[place for place, _ in known]]
        return cls(own, tuple(label for _, label in known), _reach(points[-_COMPARED:]))

    @property
    def classes(self) -> tuple[str, ...]:
        """Labels of the recordings, each once."""
        return tuple(dict.fromkeys(self.labels))

    def answers(self, samples: Points) -> list[str | None]:
        """Name each sample by its nearest recordings; None if none is near."""
        if not self.labels:
            return [None] * len(samples)
        likeness = _unit(samples) @ _unit(self.points).T
        least = max(LEAST_LIKENESS, 1 - self.reach**2 / 2)  # as a cosine
        nearest = np.argsort(-likeness, axis=1, kind="stable")[:, :NEIGHBOURS]
        near = np.take_along_axis(likeness, nearest, axis=1) >= least
        return [self._most(row[kept]) for row, kept in zip(nearest, near, strict=True)]

    def _most(self, neighbours: npt.NDArray[np.integer]) -> str | None:
        labels = [self.labels[place] for place in neighbours]
        return max(labels, key=labels.count, default=None)


def _reach(points: Points) -> float:
    """Return `REACH` times the median distance from a recording to its nearest."""
    if len(points) < 2:
        return 2.0
    rows = _unit(points)
    likeness = rows @ rows.T
    np.fill_diagonal(likeness, -1.0)
    distances = np.sqrt(np.maximum(0.0, 2 - 2 * likeness.max(axis=1)))
    return REACH * float(np.median(distances))


def asked(voter: Voter, samples: Points) -> list[str | None]:
    """Return a voter's answers, checked.

    Raises:
        InvalidInputError: There is not one answer for each sample, or one is not of its classes.
    """
    answers = list(voter.answers(_unit(samples).astype(np.float32)))
    if len(answers) != len(samples):
        raise InvalidInputError(
            f"a voter gave {len(answers)} answers for {len(samples)} samples: one for each is "
            "needed, None where it abstains"
        )
    unknown = set(answers) - {*voter.classes, None}
    if unknown:
        raise InvalidInputError(
            f"a voter answered {', '.join(sorted(map(repr, unknown)))}, not one of its "
            f"classes: {', '.join(voter.classes)}"
        )
    return answers


def _unit(rows: Points) -> npt.NDArray[np.float64]:
    return unit_rows(rows.astype(np.float64))
