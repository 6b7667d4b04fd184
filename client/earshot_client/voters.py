"""Who votes on a phone where samples are to be labelled: a model of the app's, or its recordings.

Whatever a voter answers, and whether it answers at all, what leaves the phone is a ballot in a
secure sum: no voter can cost more than another.
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
"""Of a sample, that vote on it."""
LEAST_LIKENESS = 0.5
"""The cosine below which a recording is no neighbour, however far apart all of them are."""
REACH = 3.0
"""How far neighbours are at most, in distances from a recording to the one that is most like it. A
phone that has heard nothing like a sample knows nothing of it, and should not vote: many that have
not outvote the few that have. Of a simulated crowd that knows 34 of 100 pairs of phone and sample,
28 to 31 vote so, on points and on sound alike (docs/simulating.md)."""
_COMPARED = 500
"""Recordings, the newest, from which that distance is taken."""

Points = npt.NDArray[np.float32]


class Voter(Protocol):
    """A model that a phone keeps."""

    @property
    def classes(self) -> Sequence[str]:
        """All that it can answer: classes of environments, or choices that stand for them."""

    def answers(self, samples: Points) -> Sequence[str | None]:
        """What each sample is.

        Args:
            samples: float32 (samples, dimensions), unit rows in the encoder's projection.

        Returns:
            For each sample one of its classes; None where it abstains.
        """


@dataclass(frozen=True)
class NearestRecordings:
    """The label that most of the nearest labelled recordings have; without any near, none.

    Of equally frequent ones that of the nearest.

    Attributes:
        points: float32 (recordings, dimensions).
        labels: of each.
        reach: how far a sample's neighbours may be: the distance of unit vectors.
    """

    points: Points
    labels: tuple[str, ...]
    reach: float = 2.0

    @classmethod
    def of(cls, points: Points, labels: Sequence[str | None]) -> Self:
        """Of what a phone has heard, labelled or not.

        Args:
            points: float32 (recordings, dimensions), oldest first.
            labels: of each; None where it has none.
        """
        known = [(place, label) for place, label in enumerate(labels) if label is not None]
        own = points[[place for place, _ in known]]
        return cls(own, tuple(label for _, label in known), _reach(points[-_COMPARED:]))

    @property
    def classes(self) -> tuple[str, ...]:
        """See `Voter.classes`."""
        return tuple(dict.fromkeys(self.labels))

    def answers(self, samples: Points) -> list[str | None]:
        """See `Voter.answers`."""
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
    """`REACH` times how far it is, in the median, from a recording to the one most like it."""
    if len(points) < 2:
        return 2.0
    rows = _unit(points)
    likeness = rows @ rows.T
    np.fill_diagonal(likeness, -1.0)
    distances = np.sqrt(np.maximum(0.0, 2 - 2 * likeness.max(axis=1)))
    return REACH * float(np.median(distances))


def asked(voter: Voter, samples: Points) -> list[str | None]:
    """What a voter answers, checked.

    Raises:
        InvalidInputError: not one answer for each sample, or one that is none of its classes.
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
            f"a voter answered {', '.join(sorted(map(repr, unknown)))}, which is none of its "
            f"classes: {', '.join(voter.classes)}"
        )
    return answers


def _unit(rows: Points) -> npt.NDArray[np.float64]:
    return unit_rows(rows.astype(np.float64))
