"""What a private release was, kept so that any accountant can compose it later.

An event is a plain value, without behaviour, as in Google's dp-accounting: a single (ε, δ) does not
say what happened, and adding those up is the loosest of all compositions. It holds for one unit:
what neighbours differ in is part of its sensitivity.
"""

from __future__ import annotations

import msgspec


class _Event(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="event"):
    """What happened, for neighbours that differ in one unit."""


class Pure(_Event, frozen=True, tag="pure"):
    """Something ε-differentially private of which nothing else is known.

    Attributes:
        epsilon: ε.
    """

    epsilon: float


class ZeroConcentrated(_Event, frozen=True, tag="zcdp"):
    """Something ρ-zCDP, such as discrete Gaussian noise (Bun and Steinke, TCC 2016).

    Attributes:
        rho: ρ.
    """

    rho: float


class DiscreteLaplaceSum(_Event, frozen=True, tag="discrete-laplace-sum"):
    """Discrete Laplace noise on a sum that a secure summation reveals.

    Attributes:
        scale: of the noise on every entry.
        sensitivity: L1 distance between sums of neighbours.
        statistical_security: σ of the summation, in bits.
        computational_security: λ of the summation, in bits.
    """

    scale: float
    sensitivity: float
    statistical_security: float = 40
    computational_security: float = 128


class Approximate(_Event, frozen=True, tag="approximate"):
    """Something (ε, δ)-differentially private of which nothing else is known.

    Attributes:
        epsilon: ε.
        delta: δ.
    """

    epsilon: float
    delta: float


Event = Pure | ZeroConcentrated | DiscreteLaplaceSum | Approximate
