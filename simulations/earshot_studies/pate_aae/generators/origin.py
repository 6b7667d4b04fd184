"""The sound that a generator learned from, and the privacy of its samples."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from earshot_protocol import checks
from earshot_protocol.errors import InvalidParametersError

LONGEST_UNIT = 100
"""Longest unit, in characters."""


class OriginKind(Enum):
    """Kinds of origin: public sound, or sensitive sound with differential privacy or without."""

    PUBLIC = "public"
    DP = "dp"
    NOT_PRIVATE = "not_private"


@dataclass(frozen=True)
class Origin:
    """The origin of a generator, as stated by its trainer.

    Attributes:
        kind: Kind of the origin, see `OriginKind`.
        epsilon, delta: Privacy of everything that is published of the training; None unless
            private.
        unit: Difference between neighbours, such as "clip"; None unless private.

    Raises:
        InvalidParametersError: A private origin lacks a value, or another origin has one.
    """

    kind: OriginKind
    epsilon: float | None = None
    delta: float | None = None
    unit: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.kind, OriginKind):
            raise InvalidParametersError(f"kind={self.kind!r}: must be an OriginKind")
        given = [each is not None for each in (self.epsilon, self.delta, self.unit)]
        if self.kind is not OriginKind.DP:
            if any(given):
                raise InvalidParametersError(
                    f"kind={self.kind.value}: must not have epsilon, delta or unit"
                )
            return
        if self.epsilon is None or self.delta is None or self.unit is None:
            raise InvalidParametersError("kind=dp: needs epsilon, delta and unit")
        checks.epsilon("epsilon", self.epsilon)
        checks.probability("delta", self.delta)
        if not isinstance(self.unit, str) or not 0 < len(self.unit) <= LONGEST_UNIT:
            raise InvalidParametersError(
                f"unit={self.unit!r}: must name the difference between neighbours, such as clip"
            )

    @property
    def text(self) -> str:
        """Sentence for every report."""
        if self.kind is OriginKind.PUBLIC:
            return "trained on public sound alone"
        if self.kind is OriginKind.NOT_PRIVATE:
            return (
                "not private: trained on sensitive sound without noise, so its samples may repeat "
                "that sound"
            )
        return (
            f"differentially private for each {self.unit}: ε = {self.epsilon:.4g} at "
            f"δ = {self.delta:.2g}, as stated by its trainer"
        )


PUBLIC = Origin(OriginKind.PUBLIC)
NOT_PRIVATE = Origin(OriginKind.NOT_PRIVATE)


def private(epsilon: float, delta: float, unit: str) -> Origin:
    """Return the origin of a generator trained under (ε, δ)-differential privacy of a unit.

    Raises:
        InvalidParametersError: A value is one that `Origin` refuses.
    """
    return Origin(OriginKind.DP, epsilon, delta, unit)


def refuse_private(origin: Origin) -> None:
    """Refuse a private origin for training without noise.

    Raises:
        InvalidParametersError: The origin is private.
    """
    if origin.kind is OriginKind.DP:
        raise InvalidParametersError(
            "origin: this training adds no noise; it must be PUBLIC or NOT_PRIVATE"
        )
