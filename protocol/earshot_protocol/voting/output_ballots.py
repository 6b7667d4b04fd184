"""What a teacher finds of every label, in whole steps, of which only its largest outputs count.

Against a threshold a teacher need not say yes or no: its probabilities add up as well as votes do
(Muschiol 2021, Definition 10). A sum of whole numbers takes them in steps; and so that one teacher
moves few labels, all of its outputs but the v largest are zeros.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from earshot_protocol import checks
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.privacy.mechanisms import Unit
from earshot_protocol.voting.label_ballots import MOST_LABELS
from earshot_protocol.voting.teacher_ballots import Whole, integers

STEPS = 2**8
"""Of a whole vote, where outputs are probabilities."""


@dataclass(frozen=True)
class Outputs:
    """A vote, or a part of one, for each of the v labels that a teacher finds likeliest.

    Attributes:
        labels: k.
        most: v, outputs that count; all by default.
        vote: steps of a whole vote; with 1, outputs are zeros and ones.

    Raises:
        InvalidParametersError: no labels, more outputs than labels, or no steps.
    """

    labels: int
    most: int | None = None
    vote: int = 1
    least_entry: ClassVar[int] = 0

    def __post_init__(self) -> None:
        checks.whole("labels", self.labels, 1, MOST_LABELS)
        checks.whole("vote", self.vote, 1, 2**16)
        if self.most is not None:
            checks.whole("most", self.most, 1, self.labels)

    @property
    def length(self) -> int:
        """See `Ballot.length`."""
        return self.labels

    @property
    def largest_entry(self) -> int:
        """See `Ballot.largest_entry`."""
        return self.vote

    def l1(self, unit: Unit) -> float:
        """See `Ballot.l1`."""
        return float(self._changed(unit) * self.vote)

    def l2(self, unit: Unit) -> float:
        """See `Ballot.l2`: as many labels change as two ballots have outputs, by a vote each."""
        return math.sqrt(self._changed(unit)) * self.vote

    def _changed(self, unit: Unit) -> int:
        most = self.labels if self.most is None else self.most
        return most if unit is Unit.PHONE else min(self.labels, 2 * most)

    def cast(self, answers: npt.NDArray[np.integer]) -> Whole:
        """See `Ballot.cast`; of equal outputs the first labels count.

        Args:
            answers: outputs in steps, 0 to `vote`, integers (…, labels).

        Raises:
            InvalidInputError: other numbers, or a ballot longer than is accounted for.
        """
        steps = integers("answers", answers)
        if steps.ndim == 0 or steps.shape[-1] != self.labels:
            raise InvalidInputError(
                f"answers of shape {steps.shape}: the last must be {self.labels} labels"
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
        """Whether what leaves a teacher is no longer than its cost says: Σ entry² ≤ v · vote².

        Raises:
            InvalidInputError: it is longer.
        """
        room = int(self.l2(Unit.PHONE) ** 2 + 0.5)
        longest = int((ballots * ballots).sum(axis=-1).max(initial=0))
        if longest > room:
            raise InvalidInputError(
                f"ballot of squared length {longest}: must be at most {room}, which is paid for"
            )


def in_steps(outputs: npt.NDArray[np.floating], vote: int = STEPS) -> npt.NDArray[np.int32]:
    """Probabilities as whole numbers of steps, to the nearest.

    Args:
        outputs: from 0 to 1, of any shape.
        vote: steps of 1.

    Raises:
        InvalidInputError: numbers out of range, or none.
    """
    if not ((outputs >= 0) & (outputs <= 1)).all():
        raise InvalidInputError("outputs: must be probabilities from 0 to 1")
    steps: npt.NDArray[np.int32] = np.rint(outputs * vote).astype(np.int32)
    return steps
