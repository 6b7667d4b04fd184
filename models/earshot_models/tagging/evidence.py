"""Evidence of how often a tagger's names were right on sound that it was checked on, by label."""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from earshot_protocol import checks
from earshot_protocol.errors import InvalidInputError

CONFIDENCE = 0.95
"""Confidence, over all labels together, that no label passes whose names are all false alarms."""

_GRID = np.linspace(0.02, 0.98, 97)
"""Probabilities among which thresholds are chosen."""


class LabelEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """Names of one label on clips whose content is known.

    Attributes:
        clips: Number of all clips.
        present: Clips that have the label.
        named: Clips in which the label was named.
        right: Clips that have the label and in which it was named.
    """

    clips: int
    present: int
    named: int
    right: int

    def check(self) -> None:
        """Check that the numbers are consistent.

        Raises:
            InvalidInputError: The numbers contradict each other.
        """
        least = max(0, self.named + self.present - self.clips)
        if not (
            0 <= self.present <= self.clips
            and 0 <= self.named <= self.clips
            and least <= self.right <= min(self.named, self.present)
        ):
            raise InvalidInputError(
                f"{self.right} right of {self.named} names of a label that {self.present} of "
                f"{self.clips} clips have: such clips cannot exist"
            )

    @property
    def false_alarms(self) -> float:
        """Probability that a clip without the label is named: (false names + 1) / (such clips + 2).

        This is Laplace's rule of succession, so that a label never named in few clips is not taken
        to be never wrong.
        """
        return (self.named - self.right + 1) / (self.clips - self.present + 2)

    def chance(self, named: int, pieces: int) -> float:
        """Return the probability of at least `named` names if the label is in none of the pieces.

        Raises:
            InvalidParametersError: There are more names than pieces.
        """
        from scipy.stats import binom

        checks.whole("named", named, 0, checks.whole("pieces", pieces, 0))
        return float(binom.sf(named - 1, pieces, self.false_alarms)) if named else 1.0


def gathered(
    truth: NDArray[np.integer],
    probabilities: NDArray[np.floating],
    thresholds: NDArray[np.floating],
) -> tuple[LabelEvidence, ...]:
    """Gather evidence of every label, from clips not used for training or for thresholds.

    Args:
        truth: True labels of each clip, 0 or 1, (clips, labels).
        probabilities: Probabilities of the labels in each clip, (clips, labels).
        thresholds: Probabilities above which each label is named, (labels,).

    Raises:
        InvalidInputError: The shapes do not match.
    """
    there = _truth(truth, probabilities).astype(bool)
    limits = np.asarray(thresholds)
    if limits.shape != there.shape[1:]:
        raise InvalidInputError(f"thresholds of shape {limits.shape}: must be {there.shape[1:]}")
    said = np.asarray(probabilities) > limits
    return tuple(
        LabelEvidence(
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
    """Return the threshold of each label with the best F1 on these clips, (labels,).

    A label that is in none of them gets the highest threshold there is.

    Args:
        truth: True labels of each clip, 0 or 1, (clips, labels), for clips on which nothing is
            reported.
        probabilities: Probabilities of the labels in each clip, (clips, labels).

    Raises:
        InvalidInputError: The shapes do not match.
    """
    there = _truth(truth, probabilities).astype(bool)
    # Start from above, so that the higher of two equally good thresholds is taken.
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
