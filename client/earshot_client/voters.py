"""Who votes on a phone where samples are to be labelled: a model of the app's, or its recordings.

Whatever a voter answers, and whether it answers at all, what leaves the phone is a ballot in a
secure sum: no voter can cost more than another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from earshot_protocol.errors import InvalidInputError
from earshot_protocol.geometry import unit_rows

NEIGHBOURS = 5
"""Of a sample, that vote on it."""
LEAST_LIKENESS = 0.5
"""The cosine from which on a recording is a neighbour: a phone that has heard nothing like a sample
knows nothing of it."""

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
    """

    points: Points
    labels: tuple[str, ...]

    @property
    def classes(self) -> tuple[str, ...]:
        """See `Voter.classes`."""
        return tuple(dict.fromkeys(self.labels))

    def answers(self, samples: Points) -> list[str | None]:
        """See `Voter.answers`."""
        if not self.labels:
            return [None] * len(samples)
        likeness = _unit(samples) @ _unit(self.points).T
        nearest = np.argsort(-likeness, axis=1, kind="stable")[:, :NEIGHBOURS]
        return [
            self._of(row[row_likeness[row] >= LEAST_LIKENESS])
            for row, row_likeness in zip(nearest, likeness, strict=True)
        ]

    def _of(self, neighbours: npt.NDArray[np.integer]) -> str | None:
        labels = [self.labels[place] for place in neighbours]
        return max(labels, key=labels.count, default=None)


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
