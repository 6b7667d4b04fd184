"""Training clips, validated before hours of training."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from earshot_protocol.errors import InvalidInputError

_MOST_NAMED = 5


@dataclass(frozen=True)
class Examples:
    """Clips and their labels.

    Attributes:
        power: Mel power, float32 (clips, frames, bands).
        targets: Amount of each label in each clip, 0 to 1, float32 (clips, labels).
    """

    power: NDArray[np.float32]
    targets: NDArray[np.float32]

    @classmethod
    def of(
        cls,
        power: NDArray[np.floating],
        targets: NDArray[np.floating] | NDArray[np.integer] | NDArray[np.bool_],
    ) -> Examples:
        """Return examples as float32."""
        return cls(np.asarray(power, dtype=np.float32), np.asarray(targets, dtype=np.float32))

    @classmethod
    def of_power(cls, power: NDArray[np.floating]) -> Examples:
        """Return clips without labels, targets of shape (clips, 0)."""
        return cls.of(power, np.zeros((len(power), 0)))

    def __len__(self) -> int:
        return len(self.power)

    def rows(self, rows: slice | NDArray[np.integer]) -> Examples:
        """Return some of the examples."""
        return Examples(self.power[rows], self.targets[rows])

    def check(self, shape: tuple[int, int], labels: int) -> None:
        """Check that a network of this shape can work with the examples.

        Raises:
            InvalidInputError: The shape is wrong, there are no clips, powers are negative or not
                finite, or targets are outside [0, 1].
        """
        if self.power.ndim != 3 or self.power.shape[1:] != shape:
            raise InvalidInputError(
                f"power of shape {self.power.shape}: must be (clips, {shape[0]}, {shape[1]})"
            )
        if self.targets.shape != (len(self.power), labels):
            raise InvalidInputError(
                f"targets of shape {self.targets.shape}: must be ({len(self.power)}, {labels})"
            )
        if labels and not len(self.power):
            raise InvalidInputError("no clips: at least one is needed")
        _check_power(self.power)
        # In this form, the check also refuses NaN.
        if not ((self.targets >= 0) & (self.targets <= 1)).all():
            raise InvalidInputError("targets: must be from 0 to 1")


def _check_power(power: NDArray[np.float32]) -> None:
    if not np.isfinite(power).all():
        clips = np.flatnonzero(~np.isfinite(power).all(axis=(1, 2)))
        raise InvalidInputError(f"power: NaN or infinite in clips {_listed(clips)}")
    if (power < 0).any():
        raise InvalidInputError("power: must not be negative; give powers, not logarithms")


def _listed(clips: NDArray[np.int64]) -> str:
    first = ", ".join(str(each) for each in clips[:_MOST_NAMED])
    more = len(clips) - _MOST_NAMED
    return f"{first} and {more} more" if more > 0 else first
