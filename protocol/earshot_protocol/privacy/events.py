"""Events: records of private releases that any accountant can compose later.

An event is a plain value, without behaviour, as in Google's dp-accounting: a single (ε, δ) does not
describe the release, and adding those up is the loosest of all compositions. An event holds for one
unit: the difference between neighbours is part of its sensitivity.
"""

from __future__ import annotations

import msgspec


class _Event(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="event"):
    """Record of a release, for neighbours that differ in one unit."""


class Pure(_Event, frozen=True, tag="pure"):
    """An ε-differentially private release of which nothing else is known.

    Attributes:
        epsilon: Value of ε of one release.
        times: Number of such releases, one after the other.
    """

    epsilon: float
    times: int = 1


class BoundedRange(_Event, frozen=True, tag="bounded-range"):
    """The exponential mechanism (McSherry and Talwar, FOCS 2007): losses in a range of ε.

    That makes it ε²/8-zCDP as well (Cesar and Rogers, ALT 2021).

    Attributes:
        epsilon: Value of ε of one release.
        times: Number of such releases, one after the other.
    """

    epsilon: float
    times: int = 1


class ZeroConcentrated(_Event, frozen=True, tag="zcdp"):
    """A ρ-zCDP release, such as discrete Gaussian noise (Bun and Steinke, TCC 2016).

    Attributes:
        rho: Value of ρ.
    """

    rho: float


class SelectedRuns(_Event, frozen=True, tag="selected-runs"):
    """The best of several ρ-zCDP runs, by a score that each released: the others stay secret.

    Their number is geometric and secret too (Papernot and Steinke, ICLR 2022, Theorem 2, η = 1).

    Attributes:
        rho: Value of ρ of one run, its score included.
        mean: Average number of runs.
    """

    rho: float
    mean: int


class RevealedSum(_Event, frozen=True, kw_only=True):
    """Noise on a sum that a secure summation reveals, at some distance from an ideal one.

    Attributes:
        statistical_security: Statistical security σ of the summation, in bits.
        computational_security: Computational security λ of the summation, in bits.
    """

    statistical_security: float = 40
    computational_security: float = 128


class DiscreteLaplaceSum(RevealedSum, frozen=True, tag="discrete-laplace-sum"):
    """Discrete Laplace noise on a sum.

    Attributes:
        scale: Scale of the noise on every entry.
        sensitivity: L1 distance between sums of neighbours.
    """

    scale: float
    sensitivity: float


class SkellamSum(RevealedSum, frozen=True, tag="skellam-sum"):
    """Skellam noise on the sum of vectors of whole numbers.

    Agarwal, Kairouz and Liu (NeurIPS 2021) bound its Rényi differential privacy.

    Attributes:
        variance: Variance of the noise on every entry.
        l1: L1 distance between sums of neighbours.
        l2: L2 distance between sums of neighbours.
    """

    variance: float
    l1: float
    l2: float


class RenyiCurve(_Event, frozen=True, tag="renyi-curve"):
    """A release whose Rényi divergences are known at some orders, such as the votes of a curator.

    Between two orders, the divergence at the larger one holds; beyond the largest, nothing is
    known.

    Attributes:
        orders: Orders α, ascending, each above 1.
        divergences: Divergence at each order, whichever neighbour comes first.
    """

    orders: tuple[float, ...]
    divergences: tuple[float, ...]


class Approximate(_Event, frozen=True, tag="approximate"):
    """An (ε, δ)-differentially private release of which nothing else is known.

    Attributes:
        epsilon: Value of ε.
        delta: Value of δ.
    """

    epsilon: float
    delta: float


Event = (
    Pure
    | BoundedRange
    | ZeroConcentrated
    | SelectedRuns
    | DiscreteLaplaceSum
    | SkellamSum
    | RenyiCurve
    | Approximate
)
