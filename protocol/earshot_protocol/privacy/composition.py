"""What releases cost together, worked out from their events: closed forms that a phone can afford.

Rényi differential privacy adds up over releases, also adaptive ones (Mironov, CSF 2017), and turns
into (ε, δ) at the end, at the best of a fixed grid of orders. Two things are set apart before and
added after: the δ of an approximate event, and what a real secure summation differs from an ideal
one. Adding up ε and δ is the better answer for few releases that are purely ε-private, and is taken
then.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt

from earshot_protocol import checks
from earshot_protocol.privacy.conversions import summation_distance
from earshot_protocol.privacy.events import (
    Approximate,
    BoundedRange,
    DiscreteLaplaceSum,
    Event,
    Pure,
    SkellamSum,
    ZeroConcentrated,
)

Curve = npt.NDArray[np.float64]


def _grid() -> Curve:
    """Orders that leave at most 0.1 % to a better one, for costs from 10⁻⁷ to 10⁷."""
    grid = np.concatenate([1 + np.geomspace(1e-6, 1e10, 700), np.arange(2, 65)])
    orders = np.unique(grid)
    orders.setflags(write=False)
    return orders


ORDERS = _grid()
"""The orders α > 1 at which Rényi divergences are composed."""


def renyi(event: Event, orders: Curve = ORDERS) -> Curve:
    """Rényi divergence between what neighbours release, through an ideal summation.

    Args:
        event: one release.
        orders: α, each above 1.

    Returns:
        The divergence of each order, or a bound; of an `Approximate` event what remains once its
        δ is set apart.

    Raises:
        InvalidParametersError: a number of the event is out of range.
    """
    match event:
        case Pure():
            return _times(event) * _randomized_response(_epsilon(event.epsilon), orders)
        case Approximate():
            checks.share("delta", event.delta)
            return _randomized_response(_epsilon(event.epsilon), orders)
        case BoundedRange():
            epsilon = _epsilon(event.epsilon)
            concentrated = orders * epsilon**2 / 8
            pure = _randomized_response(epsilon, orders)
            return _times(event) * np.minimum(pure, concentrated)
        case ZeroConcentrated():
            return orders * checks.between("rho", event.rho, 0)
        case DiscreteLaplaceSum():
            scale = checks.positive("scale", event.scale)
            sensitivity = checks.between("sensitivity", event.sensitivity, 0)
            return _discrete_laplace(1 / scale, sensitivity, orders)
        case SkellamSum():
            return _skellam(event, orders)


def distance(event: Event) -> float:
    """How far the real secure summation of an event is from an ideal one; 0 for local events."""
    match event:
        case DiscreteLaplaceSum() | SkellamSum():
            return summation_distance(event.statistical_security, event.computational_security)
        case _:
            return 0.0


def composed_epsilon(events: Iterable[Event], delta: float) -> float:
    """An ε such that all events together are (ε, δ)-differentially private.

    Args:
        events: every release to be counted, against neighbours of the same unit.
        delta: δ, from 0 (only what is purely private has an ε then) to 1.

    Returns:
        ε; infinite where nothing is known to hold at this δ.

    Raises:
        InvalidParametersError: δ, or a number of an event, is out of range.
    """
    return Composition(events).epsilon(delta)


def composed_delta(events: Iterable[Event], epsilon: float) -> float:
    """A δ such that all events together are (ε, δ)-differentially private.

    Args:
        events: every release to be counted, against neighbours of the same unit.
        epsilon: ε, at least 0.

    Returns:
        δ, at most 1.

    Raises:
        InvalidParametersError: ε, or a number of an event, is out of range.
    """
    return Composition(events).delta(epsilon)


class Composition:
    """All that some releases have lost, as a curve of (ε, δ).

    Sums through a real summation are a distance d from ideal ones, for either of two neighbours.
    Three bounds say what that adds, and the best is taken:

    1. each release has its own (ε, δ), and both add up: where all are pure;
    2. a real world is Σd from the ideal one, so δ grows by (1 + e^ε) Σd: where ε is small;
    3. of the outcomes of one sum, set apart those that the real neighbour has less than τ times as
       often as the ideal one. The ideal neighbour has them with probability ≤ d / (1 − τ), and so
       the ideal world with some F: by its divergence, F ≤ (e^D d / (1 − τ))^(1−1/α) (Mironov 2017,
       Proposition 10). On all others the real neighbour is τ times the ideal one, at least;
       so k sums move ε by k ln 1/τ and δ by Σ(d + F): where ε has grown large over many sums.

    Args:
        events: every release to be counted, against neighbours of the same unit.

    Raises:
        InvalidParametersError: a number of an event is out of range.
    """

    def __init__(self, events: Iterable[Event]) -> None:
        self.counts = Counter(events)
        self._curve = np.zeros(len(ORDERS))
        for event, count in self.counts.items():
            self._curve += count * _shared_curve(event)
        self._pure = self._total(_pure_epsilon)
        self._pure_delta = self._total(_pure_delta)
        self._distance = self._total(distance)
        self._approximate = self._total(_approximate_delta)
        # What bound 3 takes of δ, for each of some moves of ε.
        self._moves = np.geomspace(1e-6, 1.0, 49) if self._distance else np.zeros(1)
        self._moved_delta = self._set_apart()

    def epsilon(self, delta: float) -> float:
        """ε at a δ from 0 to 1; infinite where nothing is known to hold.

        Raises:
            InvalidParametersError: another δ.
        """
        checks.share("delta", delta)
        bounds = [self._pure] if delta >= self._pure_delta else []
        bounds.append(self._epsilon_beside_sums(delta - self._approximate))
        for move, moved in zip(self._moves.tolist(), self._moved_delta.tolist(), strict=True):
            bounds.append(move + self.ideal_epsilon(delta - self._approximate - moved))
        return min(bounds)

    def delta(self, epsilon: float) -> float:
        """δ at an ε of at least 0; at most 1.

        Raises:
            InvalidParametersError: another ε.
        """
        checks.between("epsilon", epsilon, 0)
        # A smaller ε implies a larger one, and costs less where real sums are most of δ.
        tried = np.linspace(0.0, min(epsilon, self._pure), 129).tolist()
        extra = [self.ideal_delta(point) + self._sums_delta(point) for point in tried]
        for move, moved in zip(self._moves.tolist(), self._moved_delta.tolist(), strict=True):
            if move <= epsilon:
                extra.append(self.ideal_delta(epsilon - move) + moved)
        by_addition = self._pure_delta if epsilon >= self._pure else 1.0
        return min(1.0, by_addition, self._approximate + min(extra))

    def ideal_epsilon(self, delta: float) -> float:
        """ε at this δ if every sum were ideal (Canonne, Kamath and Steinke 2020, Prop. 12)."""
        if delta < 0:
            return math.inf
        if delta >= 1:
            return 0.0
        if delta == 0:
            return self._pure
        conversion = np.log1p(-1 / ORDERS) - (math.log(delta) + np.log(ORDERS)) / (ORDERS - 1)
        return min(self._pure, max(0.0, float(np.min(self._curve + conversion))))

    def ideal_delta(self, epsilon: float) -> float:
        """δ at this ε if every sum were ideal (the same, solved for δ)."""
        if epsilon >= self._pure:
            return 0.0
        exponents = (ORDERS - 1) * (self._curve - epsilon + np.log1p(-1 / ORDERS)) - np.log(ORDERS)
        return math.exp(min(0.0, float(np.min(exponents))))

    def _total(self, what: Callable[[Event], float]) -> float:
        return math.fsum(count * what(event) for event, count in self.counts.items())

    def _epsilon_beside_sums(self, delta: float) -> float:
        """The smallest ε whose δ, (1 + e^ε) Σd included, is no more than this one (bound 2).

        ε rises step by step to the first that is enough. Each step reckons with a little more than
        it must, so the last one errs on the safe side.
        """
        reckoned = self._sums_delta(0.0) * _ABOVE
        for _ in range(_LARGEST_NUMBER_OF_STEPS):
            epsilon = self.ideal_epsilon(delta - reckoned)
            needed = self._sums_delta(epsilon)
            if needed <= reckoned or epsilon == math.inf:
                return epsilon
            reckoned = needed * _ABOVE
        return math.inf

    def _sums_delta(self, epsilon: float) -> float:
        """What real sums add to δ by bound 2.

        Pr[real] ≤ Pr[ideal] + d ≤ e^ε Pr'[ideal] + δ + d ≤ e^ε (Pr'[real] + d) + δ + d.
        """
        return _capped(self._distance, epsilon)

    def _set_apart(self) -> Curve:
        """What real sums add to δ by bound 3, for each of `_moves`."""
        sums = {event: count for event, count in self.counts.items() if distance(event)}
        spent = np.zeros(len(self._moves))
        for event, count in sums.items():
            less = -np.expm1(-self._moves / sum(sums.values()))
            rare = np.log(distance(event) / less)[:, np.newaxis]
            chances = (1 - 1 / ORDERS) * (_shared_curve(event) + rare)
            spent += count * (distance(event) + np.exp(np.minimum(0.0, chances.min(axis=1))))
        return spent


_ABOVE = 1 + 1e-9
_LARGEST_NUMBER_OF_STEPS = 100


def _capped(distances: float, epsilon: float) -> float:
    """(1 + e^ε) · distances, at most 1."""
    if distances == 0:
        return 0.0
    return math.exp(min(0.0, float(np.logaddexp(0.0, epsilon)) + math.log(distances)))


@functools.lru_cache(maxsize=1024)
def _shared_curve(event: Event) -> Curve:
    """`renyi` on the grid; policies ask for the same few events again and again."""
    curve = renyi(event)
    curve.setflags(write=False)
    return curve


def _pure_epsilon(event: Event) -> float:
    """ε of an event by itself at its own δ, infinite for what is never pure."""
    match event:
        case Pure() | BoundedRange():
            return event.times * event.epsilon
        case Approximate():
            return event.epsilon
        case DiscreteLaplaceSum():
            return event.sensitivity / event.scale
        case _:
            return math.inf


def _pure_delta(event: Event) -> float:
    """δ of an event by itself at its own ε."""
    return _approximate_delta(event) + _capped(distance(event), _pure_epsilon(event))


def _approximate_delta(event: Event) -> float:
    return event.delta if isinstance(event, Approximate) else 0.0


def _epsilon(value: float) -> float:
    return checks.between("epsilon", value, 0)


def _times(event: Pure | BoundedRange) -> int:
    return checks.whole("times", event.times)


def _randomized_response(epsilon: float, orders: Curve) -> Curve:
    """The worst of all ε-private releases: randomized response (Kairouz, Oh and Viswanath 2015).

    Its divergence is Proposition 3.3 of Bun and Steinke (TCC 2016) before they simplify it. It has
    the likelihood ratios of discrete Laplace noise of scale 1/ε against a shift by one.
    """
    return _discrete_laplace(epsilon, 1.0, orders)


def _discrete_laplace(decay: float, shift: float, orders: Curve) -> Curve:
    """Rényi divergence of discrete Laplace noise against itself, moved by `shift`.

    Noise k has probability ∝ exp(−decay · |k|). Summing the geometric series left of both centres,
    between them and right of both gives, with x = decay · shift,

        exp((α − 1) D) = u · e^((α−1)x) + v · e^(−αx),   u + v = 1,
        u = (1 − e^(−2α·decay)) / ((1 − e^(−(2α−1)·decay)) (1 + e^(−decay))) > v > 0.

    That is a moment E[W^shift] of some W > 0, so its logarithm is convex in the shift (Hölder) and
    0 at 0: it grows faster than in proportion. Entries have independent noise, so divergences add
    up over them, and of all ways to spread an L1 distance over entries, putting all of it on one
    is worst. The formula also bounds any smaller distance, whole or not.
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
    # Of the two ways to write it, one overflows and the other cancels.
    return np.where(rise > 1, large, small) / (orders - 1)


def _skellam(event: SkellamSum, orders: Curve) -> Curve:
    """Agarwal, Kairouz and Liu (NeurIPS 2021), Theorem 3.5, for noise of variance μ.

    D ≤ αΔ₂²/2μ + min(((2α − 1)Δ₂² + 6Δ₁)/4μ², 3Δ₁/2μ) at whole orders; between them (α − 1)D is
    convex in α (van Erven and Harremoës 2014, Corollary 2), so chords bound it. Both distances may
    be bounds that are not whole: the formula grows with either.
    """
    variance = checks.positive("variance", event.variance)
    l1 = checks.between("l1", event.l1, 0)
    l2 = checks.between("l2", event.l2, 0)

    def weighted(whole: Curve) -> Curve:
        extra = np.minimum(
            ((2 * whole - 1) * l2**2 + 6 * l1) / (4 * variance**2), 3 * l1 / (2 * variance)
        )
        return (whole - 1) * (whole * l2**2 / (2 * variance) + extra)

    below = np.floor(orders)
    part = orders - below
    return ((1 - part) * weighted(below) + part * weighted(below + 1)) / (orders - 1)
