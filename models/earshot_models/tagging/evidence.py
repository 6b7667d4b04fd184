"""How often a tagger's names were right on sound that it was checked on, label by label."""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from earshot_protocol import checks
from earshot_protocol.errors import InvalidInputError

CONFIDENCE = 0.95
"""That none of the labels together is taken for more than false alarms where it is not."""

_GRID = np.linspace(0.02, 0.98, 97)
"""Probabilities among which thresholds are chosen."""


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """Names of one label on clips of which it is known what sounds in them.

    Attributes:
        clips: all of them.
        present: in which the label is.
        named: in which it was named.
        right: in which it was named and is.
    """

    clips: int
    present: int
    named: int
    right: int

    def check(self) -> None:
        """See that the numbers go together.

        Raises:
            InvalidInputError: they do not.
        """
        least = max(0, self.named + self.present - self.clips)
        if not (
            0 <= self.present <= self.clips
            and 0 <= self.named <= self.clips
            and least <= self.right <= min(self.named, self.present)
        ):
            raise InvalidInputError(
                f"{self.right} right of {self.named} names of a label that {self.present} of "
                f"{self.clips} clips have: such clips there are not"
            )

    @property
    def false_alarms(self) -> float:
        """How likely a clip without the label is named: (false names + 1) / (such clips + 2).

        Laplace's rule of succession, so that a label never named in few clips is not taken to be
        never wrong.
        """
        return (self.named - self.right + 1) / (self.clips - self.present + 2)

    def chance(self, named: int, pieces: int) -> float:
        """How likely at least so many of so many pieces are named, if the label is in none.

        Raises:
            InvalidParametersError: more names than pieces.
        """
        from scipy.stats import binom

        checks.whole("named", named, 0, checks.whole("pieces", pieces, 0))
        return float(binom.sf(named - 1, pieces, self.false_alarms)) if named else 1.0


def gathered(
    truth: NDArray[np.integer],
    probabilities: NDArray[np.floating],
    thresholds: NDArray[np.floating],
) -> tuple[Evidence, ...]:
    """Of every label, from clips on which neither training nor thresholds were chosen.

    Args:
        truth: 0 or 1, (clips, labels).
        probabilities: (clips, labels).
        thresholds: (labels,), above which a label is named.

    Raises:
        InvalidInputError: shapes that do not go together.
    """
    there = _truth(truth, probabilities).astype(bool)
    limits = np.asarray(thresholds)
    if limits.shape != there.shape[1:]:
        raise InvalidInputError(f"thresholds of shape {limits.shape}: must be {there.shape[1:]}")
    said = np.asarray(probabilities) > limits
    return tuple(
        Evidence(
            clips=len(there),
            present=int(here.sum()),
            named=int(names.sum()),
            right=int((here & names).sum()),
        )
        for here, names in zip(there.T, said.T, strict=True)
    )


def best_thresholds(
    truth: NDArray[np.integer], probabilities: NDArray[np.floating]
) -> NDArray[np.float64]:
    """Above which probability to name each label: where its F1 is best on these clips, (labels,).

    A label that is in none of them gets the highest threshold there is.

    Args:
        truth: 0 or 1, (clips, labels), of clips on which nothing is reported.
        probabilities: (clips, labels).

    Raises:
        InvalidInputError: shapes that do not go together.
    """
    there = _truth(truth, probabilities).astype(bool)
    # From above, so that the higher of two that are equal is taken.
    levels = _GRID[::-1]
    scores = []
    for level in levels:
        said = np.asarray(probabilities) > level
        right = (said & there).sum(axis=0)
        scores.append(2 * right / np.maximum(said.sum(axis=0) + there.sum(axis=0), 1))
    best: NDArray[np.float64] = levels[np.argmax(scores, axis=0)]
    return best


def _truth(truth: NDArray[np.integer], probabilities: NDArray[np.floating]) -> NDArray[np.integer]:
    there, likely = np.asarray(truth), np.asarray(probabilities)
    if there.ndim != 2 or there.shape != likely.shape or not np.isfinite(likely).all():
        raise InvalidInputError(
            f"probabilities of shape {likely.shape}: must be finite, of the truth's shape "
            f"{there.shape}, (clips, labels)"
        )
    if not np.isin(there, (0, 1)).all():
        raise InvalidInputError("truth: must be 0 or 1")
    return there
