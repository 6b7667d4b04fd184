"""Clips to learn from; what is wrong with them is said before hours of work."""

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
    """Clips and what is in them.

    Attributes:
        power: mel power, float32 (clips, frames, bands).
        targets: how much of each label is there, 0 to 1, float32 (clips, labels).
    """

    power: NDArray[np.float32]
    targets: NDArray[np.float32]

    @classmethod
    def of(
        cls,
        power: NDArray[np.floating],
        targets: NDArray[np.floating] | NDArray[np.integer] | NDArray[np.bool_],
    ) -> Examples:
        """The same as float32."""
        return cls(np.asarray(power, dtype=np.float32), np.asarray(targets, dtype=np.float32))

    @classmethod
    def of_power(cls, power: NDArray[np.floating]) -> Examples:
        """Clips of which nothing is known, as if there were no labels."""
        return cls.of(power, np.zeros((len(power), 0)))

    def __len__(self) -> int:
        return len(self.power)

    @property
    def shape(self) -> tuple[int, int]:
        """Frames and bands of a clip."""
        frames, bands = self.power.shape[1:]
        return frames, bands

    def rows(self, rows: slice | NDArray[np.integer]) -> Examples:
        """Only some of them."""
        return Examples(self.power[rows], self.targets[rows])

    def check(self, shape: tuple[int, int], labels: int) -> None:
        """See that a network of this shape can work with them.

        Raises:
            InvalidInputError: another shape, no clips, powers that are negative or not finite, or
                targets outside of [0, 1].
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
        # Written so that not-a-number is refused.
        if not ((self.targets >= 0) & (self.targets <= 1)).all():
            raise InvalidInputError("targets: must be from 0 to 1")


def checked_examples(
    power: NDArray[np.floating],
    targets: NDArray[np.floating] | NDArray[np.integer] | NDArray[np.bool_],
    labels: Sequence[str],
    sources: NDArray[np.integer] | None = None,
) -> Examples:
    """Clips of a whole data set, if a study can be made of them.

    Args:
        power: mel power, (clips, frames, bands).
        targets: 0 to 1, (clips, labels).
        labels: names, at least one, all different.
        sources: the recording that each clip was cut from, whole numbers (clips,).

    Raises:
        InvalidInputError: clips without a label, labels without a clip, a label that has one
            recording only (no other could tell whether it was learned), or anything that
            `Examples.check` refuses.
    """
    names = tuple(labels)
    if not names or len(set(names)) != len(names):
        raise InvalidInputError("labels: must be different names, one at least")
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
                f"labels with one recording only: {_listed(single)}; a label needs two at least, "
                "one to learn from and one to be tested on"
            )
    return given


def check_ensemble(teachers: int, sources: NDArray[np.integer]) -> None:
    """See that each teacher can have a source of its own.

    Args:
        teachers: how many there are.
        sources: whole numbers (clips,), what each clip was cut from.

    Raises:
        InvalidParametersError: no teacher, or more teachers than sources.
    """
    checks.whole("teachers", teachers)
    number = len(np.unique(np.asarray(sources)))
    if teachers > number:
        raise InvalidParametersError(
            f"teachers={teachers}: an ensemble larger than its sources; there are {number}, and "
            "each teacher needs one of its own"
        )


def _check_power(power: NDArray[np.float32]) -> None:
    if not np.isfinite(power).all():
        clips = np.flatnonzero(~np.isfinite(power).all(axis=(1, 2)))
        raise InvalidInputError(f"power: NaN or infinite in clips {_listed(clips)}")
    if (power < 0).any():
        raise InvalidInputError("power: must not be negative; give powers, and no logarithms")


def _listed(things: Sequence[object] | NDArray[np.int64]) -> str:
    first = ", ".join(str(each) for each in things[:_MOST_NAMED])
    more = len(things) - _MOST_NAMED
    return f"{first} and {more} more" if more > 0 else first
