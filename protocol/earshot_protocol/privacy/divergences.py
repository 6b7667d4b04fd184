"""Rényi divergences between neighbours' releases, in closed form for every event."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from earshot_protocol import checks
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.privacy.events import (
    Approximate,
    BoundedRange,
    DiscreteLaplaceSum,
    Event,
    Pure,
    RenyiCurve,
    SelectedRuns,
    SkellamSum,
    ZeroConcentrated,
)

Curve = npt.NDArray[np.float64]


ORDERS = np.unique(np.concatenate([1 + np.geomspace(1e-6, 1e10, 700), np.arange(2, 65)]))
"""Orders α > 1 at which Rényi divergences are composed: a better order gains at most 0.1 %, for
costs from 10⁻⁷ to 10⁷."""
ORDERS.setflags(write=False)


def renyi(event: Event, orders: Curve = ORDERS) -> Curve:
    """Return the Rényi divergence between neighbours' releases, through an ideal summation.

    Args:
        event: Event of one release.
        orders: Orders α, each above 1.

    Returns:
        The divergence of each order, or a bound; for an `Approximate` event, the rest once its δ is
        set apart.

    Raises:
        InvalidParametersError: A number of the event is out of range.
    """
    # Numbers come from a server: where they overflow, the divergence is infinite.
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        return np.nan_to_num(_divergence(event, orders), nan=math.inf, posinf=math.inf)


def _divergence(event: Event, orders: Curve) -> Curve:
    match event:
        case Pure():
            return _times(event) * _randomized_response(_epsilon(event.epsilon), orders)
        case Approximate():
            checks.share("delta", event.delta)
            return _randomized_response(_epsilon(event.epsilon), orders)
        case BoundedRange():
            epsilon = _epsilon(event.epsilon)
            concentrated = orders * (epsilon * epsilon) / 8
            pure = _randomized_response(epsilon, orders)
            return _times(event) * np.minimum(pure, concentrated)
        case ZeroConcentrated():
            return orders * checks.between("rho", event.rho, 0)
        case SelectedRuns():
            return _selected_runs(event, orders)
        case DiscreteLaplaceSum():
            scale = checks.positive("scale", event.scale)
            sensitivity = checks.between("sensitivity", event.sensitivity, 0)
            return _discrete_laplace(1 / scale, sensitivity, orders)
        case SkellamSum():
            return _skellam(event, orders)
        case RenyiCurve():
            return _known(event, orders)


def _epsilon(value: float) -> float:
    return checks.between("epsilon", value, 0)


def _times(event: Pure | BoundedRange) -> int:
    return checks.whole("times", event.times)


def _randomized_response(epsilon: float, orders: Curve) -> Curve:
    """Return the divergence of randomized response, the worst of all ε-private releases.

    Kairouz, Oh and Viswanath (2015) show that it is the worst. Its divergence is Proposition
    3.3 of Bun and Steinke (TCC 2016) before they simplify it. It has the likelihood ratios of
    discrete Laplace noise of scale 1/ε against a shift by one.
    """
    return _discrete_laplace(epsilon, 1.0, orders)


def _discrete_laplace(decay: float, shift: float, orders: Curve) -> Curve:
    """Return the Rényi divergence of discrete Laplace noise against itself, moved by `shift`.

    Noise k has probability ∝ exp(−decay · |k|). Summing the geometric series left of both centres,
    between them and right of both gives, with x = decay · shift,

        exp((α − 1) D) = u · e^((α−1)x) + v · e^(−αx),   u + v = 1,
        u = (1 − e^(−2α·decay)) / ((1 − e^(−(2α−1)·decay)) (1 + e^(−decay))) > v > 0.

    That is a moment E[W^shift] of some W > 0, so its logarithm is convex in the shift (Hölder) and
    0 at 0: it grows faster than in proportion. Entries have independent noise, so divergences add
    up over them, and of all ways to spread an L1 distance over entries, putting all of it on one is
    worst. The formula also bounds any smaller distance, whole or not.
    """
    if decay == 0 or shift == 0:
        return np.zeros(len(orders))
    with np.errstate(under="ignore", over="ignore", divide="ignore"):
        between = np.expm1(-(2 * orders - 1) * decay) * (1 + math.exp(-decay))
        up = np.expm1(-2 * orders * decay) / between
        down = math.exp(-decay) * np.expm1(-2 * (orders - 1) * decay) / between
        rise, fall = (orders - 1) * decay * shift, -orders * decay * shift
        large = np.logaddexp(np.log(up) + rise, np.log(down) + fall)
        small = np.log1p(up * np.expm1(rise) + down * np.expm1(fall))
    # One of the two ways to write it overflows, the other cancels.
    return np.where(rise > 1, large, small) / (orders - 1)


def _skellam(event: SkellamSum, orders: Curve) -> Curve:
    """Bound the divergence of noise of variance μ by Agarwal et al. (NeurIPS 2021), Theorem 3.5.

    D ≤ αΔ₂²/2μ + min(((2α − 1)Δ₂² + 6Δ₁)/4μ², 3Δ₁/2μ) at whole orders (Agarwal, Kairouz and Liu);
    between them (α − 1)D is convex in α (van Erven and Harremoës 2014, Corollary 2), so chords
    bound it. Both distances may be bounds that are not whole: the formula grows with either.
    """
    variance = np.float64(checks.positive("variance", event.variance))
    l1 = checks.between("l1", event.l1, 0)
    l2 = checks.between("l2", event.l2, 0)
    squared = np.float64(l2) * l2

    def weighted(whole: Curve) -> Curve:
        extra = np.minimum(
            ((2 * whole - 1) * squared + 6 * l1) / (4 * variance * variance),
            3 * l1 / (2 * variance),
        )
        return (whole - 1) * (whole * squared / (2 * variance) + extra)

    below = np.floor(orders)
    part = orders - below
    return ((1 - part) * weighted(below) + part * weighted(below + 1)) / (orders - 1)


def _selected_runs(event: SelectedRuns, orders: Curve) -> Curve:
    """Bound the divergence by Papernot and Steinke (ICLR 2022), Theorem 2: η = 1, ρ-zCDP runs.

    With m runs on average, D ≤ αρ + ln(m) / (α − 1) + 2(β − 1)ρ + 2 ln(m) / β for every β ≥ 1. As D
    grows with α, a bound at a larger order is one at a smaller, too: the best of those is taken.
    """
    rho = checks.between("rho", event.rho, 0)
    logarithm = math.log(checks.whole("mean", event.mean))
    if rho == 0:
        return np.zeros(len(orders))
    root = math.sqrt(logarithm / rho)
    other = max(1.0, root)
    constant = 2 * (other - 1) * rho + 2 * logarithm / other
    best = np.maximum(orders, 1 + root)
    # Without a second run both logarithms vanish, and what remains is the one run's own curve.
    return best * rho + logarithm / (best - 1) + constant


def _known(event: RenyiCurve, orders: Curve) -> Curve:
    """Bound the divergence at each order by that of any larger known order, as it grows with it."""
    known = np.asarray(event.orders, dtype=np.float64)
    divergences = np.asarray(event.divergences, dtype=np.float64)
    if not (
        len(known) and np.isfinite(known).all() and known[0] > 1 and (np.diff(known) > 0).all()
    ):
        raise InvalidParametersError("orders: must be at least one, finite, above 1, ascending")
    if len(divergences) != len(known) or not (divergences >= 0).all():
        raise InvalidParametersError("divergences: must be one per order, each at least 0")
    least = np.append(np.minimum.accumulate(divergences[::-1])[::-1], math.inf)
    bounds: Curve = least[np.searchsorted(known, orders, side="left")]
    return bounds
