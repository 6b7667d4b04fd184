"""Clips to learn from, whose faults are reported before hours of work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from earshot_protocol import checks
from earshot_protocol.errors import InvalidInputError, InvalidParametersError

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
        """Return clips about which nothing is known, as if there were no labels."""
        return cls.of(power, np.zeros((len(power), 0)))

    def __len__(self) -> int:
        return len(self.power)

    @property
    def shape(self) -> tuple[int, int]:
        """Frames and bands of a clip."""
        frames, bands = self.power.shape[1:]
        return frames, bands

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
        # In this form, the check refuses not-a-number too.
        if not ((self.targets >= 0) & (self.targets <= 1)).all():
            raise InvalidInputError("targets: must be from 0 to 1")


def checked_examples(
    power: NDArray[np.floating],
    targets: NDArray[np.floating] | NDArray[np.integer] | NDArray[np.bool_],
    labels: Sequence[str],
    sources: NDArray[np.integer] | None = None,
) -> Examples:
    """Return the clips of a whole data set, if they are fit for a study.

    Args:
        power: Mel power, (clips, frames, bands).
        targets: Amount of each label in each clip, 0 to 1, (clips, labels).
        labels: Names of the labels, at least one, all different.
        sources: Recording that each clip was cut from, whole numbers (clips,).

    Raises:
        InvalidInputError: There are clips without a label, labels without a clip, or labels with
            only one recording (no other could tell whether they were learned), or `Examples.check`
            refuses them.
    """
    names = tuple(labels)
    if not names or len(set(names)) != len(names):
        raise InvalidInputError("labels: must be different names, at least one")
    given = Examples.of(power, targets)
    if given.power.ndim != 3:
        raise InvalidInputError(
            f"power of shape {given.power.shape}: must be (clips, frames, bands)"
        )
    given.check(given.shape, len(names))
    there: NDArray[np.bool_] = given.targets > 0
    bare = np.flatnonzero(~there.any(axis=1))
    if len(bare):
        raise InvalidInputError(
            f"clips without a label: {_listed(bare)}; label them, or leave them out"
        )
    unused = [name for name, own in zip(names, there.T, strict=True) if not own.any()]
    if unused:
        raise InvalidInputError(
            f"labels without a clip: {_listed(unused)}; add clips, or leave the labels out"
        )
    if sources is not None:
        whose = np.asarray(sources)
        if whose.shape != (len(given),) or whose.dtype.kind not in "iu":
            raise InvalidInputError("sources: must be a whole number for each clip")
        single = [
            name for name, own in zip(names, there.T, strict=True) if len(np.unique(whose[own])) < 2
        ]
        if single:
            raise InvalidInputError(
                f"labels with only one recording: {_listed(single)}; a label needs at least two, "
                "one to learn from and one to be tested on"
            )
    return given


def check_ensemble(teachers: int, sources: NDArray[np.integer]) -> None:
    """Check that each teacher can have its own source.

    Args:
        teachers: Number of teachers.
        sources: Source of each clip, whole numbers (clips,).

    Raises:
        InvalidParametersError: There is no teacher, or there are more teachers than sources.
    """
    checks.whole("teachers", teachers)
    number = len(np.unique(np.asarray(sources)))
    if teachers > number:
        raise InvalidParametersError(
            f"teachers={teachers}: there are only {number} sources, and each teacher needs its own"
        )


def _check_power(power: NDArray[np.float32]) -> None:
    if not np.isfinite(power).all():
        clips = np.flatnonzero(~np.isfinite(power).all(axis=(1, 2)))
        raise InvalidInputError(f"power: NaN or infinite in clips {_listed(clips)}")
    if (power < 0).any():
        raise InvalidInputError("power: must not be negative; give powers, not logarithms")


def _listed(things: Sequence[object] | NDArray[np.int64]) -> str:
    first = ", ".join(str(each) for each in things[:_MOST_NAMED])
    more = len(things) - _MOST_NAMED
    return f"{first} and {more} more" if more > 0 else first
