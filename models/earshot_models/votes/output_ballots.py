"""Ballots of a teacher's outputs on every label, in whole steps; only the largest outputs count.

With thresholds, a teacher may vote with probabilities instead of zeros and ones (Muschiol 2021,
Definition 10). Secure sums add whole numbers, so probabilities are rounded to steps; to limit the
labels that one teacher changes, all outputs except the v largest are set to zero.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from earshot_models.votes.label_ballots import MOST_LABELS
from earshot_protocol import checks
from earshot_protocol.arrays import Whole
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.privacy.mechanisms import Unit
from earshot_protocol.voting.teacher_ballots import integers

STEPS = 2**8
"""Steps of a whole vote where outputs are probabilities."""


@dataclass(frozen=True)
class Outputs:
    """A vote, or a part of one, for each of the v labels with a teacher's largest outputs.

    Attributes:
        labels: Number of labels, k.
        most: Number of outputs that count, v; all by default.
        vote: Steps of a whole vote; with 1, outputs are zeros and ones.

    Raises:
        InvalidParametersError: There are no labels, more outputs than labels, or no steps.
    """

    labels: int
    most: int | None = None
    vote: int = 1

    def __post_init__(self) -> None:
        checks.whole("labels", self.labels, 1, MOST_LABELS)
        checks.whole("vote", self.vote, 1, 2**16)
        if self.most is not None:
            checks.whole("most", self.most, 1, self.labels)

    @property
    def length(self) -> int:
        """Entries of a ballot."""
        return self.labels

    @property
    def largest_entry(self) -> int:
        """Most that a ballot adds to an entry, in steps."""
        return self.vote

    def l1(self, unit: Unit) -> float:
        """Return the L1 distance between sums of neighbours, in steps."""
        return float(self._changed(unit) * self.vote)

    def l2(self, unit: Unit) -> float:
        """Return the L2 distance: every counted output changes by at most one vote."""
        return math.sqrt(self._changed(unit)) * self.vote

    def _changed(self, unit: Unit) -> int:
        most = self.labels if self.most is None else self.most
        return most if unit is Unit.PHONE else min(self.labels, 2 * most)

    def cast(self, answers: npt.NDArray[np.integer]) -> Whole:
        """Return the ballots of outputs; of equal outputs the first labels count.

        Args:
            answers: Outputs in steps, 0 to `vote`, integers (…, labels).

        Raises:
            InvalidInputError: Outputs are out of range, or a ballot exceeds its accounted length.
        """
        steps = integers("answers", answers)
        if steps.ndim == 0 or steps.shape[-1] != self.labels:
            raise InvalidInputError(
                f"answers of shape {steps.shape}: the last axis must be {self.labels} labels"
            )
        if steps.size and not 0 <= steps.min() <= steps.max() <= self.vote:
            raise InvalidInputError(
                f"answers from {steps.min()} to {steps.max()}: must be 0 to {self.vote} steps"
            )
        if self.most is None or self.most == self.labels:
            return steps
        order = np.argsort(-steps, axis=-1, kind="stable")
        np.put_along_axis(steps, order[..., self.most :], 0, axis=-1)
        self.check(steps)
        return steps

    def check(self, ballots: Whole) -> None:
        """Check that ballots do not exceed their accounted length: Σ entry² ≤ v · vote².

        Raises:
            InvalidInputError: A ballot is longer.
        """
        room = int(self.l2(Unit.PHONE) ** 2 + 0.5)
        longest = int((ballots * ballots).sum(axis=-1).max(initial=0))
        if longest > room:
            raise InvalidInputError(
                f"ballot of squared length {longest}: must be at most {room}, the length paid for"
            )


def in_steps(outputs: npt.NDArray[np.floating], vote: int = STEPS) -> npt.NDArray[np.int32]:
    """Return probabilities as whole numbers of steps, to the nearest.

    Args:
        outputs: Probabilities from 0 to 1, of any shape.
        vote: Steps of 1.

    Raises:
        InvalidInputError: Numbers are out of range, or not numbers.
    """
    if not ((outputs >= 0) & (outputs <= 1)).all():
        raise InvalidInputError("outputs: must be probabilities from 0 to 1")
    steps: npt.NDArray[np.int32] = np.rint(outputs * vote).astype(np.int32)
    return steps
