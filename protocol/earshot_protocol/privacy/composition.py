"""Joint costs of releases, computed from their events: closed forms that a phone can afford.

Rényi differential privacy adds up over releases, also adaptive ones (Mironov, CSF 2017), and turns
into (ε, δ) at the end, at the best of a fixed grid of orders. Two things are set apart before and
added after: the δ of an approximate event, and the distance of a real secure summation from an
ideal one. For releases that are all purely private, adding up ε and δ or convolving their losses
(`privacy.losses`) gives less, and is taken.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from earshot_protocol import checks
from earshot_protocol.privacy.conversions import renyi_epsilons, summation_distance
from earshot_protocol.privacy.divergences import ORDERS, Curve, renyi
from earshot_protocol.privacy.events import (
    Approximate,
    BoundedRange,
    DiscreteLaplaceSum,
    Event,
    Pure,
    RevealedSum,
)
from earshot_protocol.privacy.losses import LARGEST_LOSS, PureLosses, dominating


def added(costs: Iterable[float]) -> float:
    """Return the sum of costs, rounded once; infinite where it leaves the range of floats."""
    try:
        return math.fsum(costs)
    except OverflowError:
        return math.inf


def distance(event: Event) -> float:
    """Return how far an event's real secure summation is from an ideal one; 0 for local events."""
    if isinstance(event, RevealedSum):
        return summation_distance(event.statistical_security, event.computational_security)
    return 0.0


def composed_epsilon(events: Iterable[Event], delta: float) -> float:
    """Return an ε such that all events together are (ε, δ)-differentially private.

    Args:
        events: Every release to be counted, against neighbours of the same unit.
        delta: Value of δ, from 0 (at which only pure releases have an ε) to 1.

    Returns:
        ε; infinite where no bound is known at this δ.

    Raises:
        InvalidParametersError: The value of δ, or a number of an event, is out of range.
    """
    return _epsilon(tuple(events), delta)


@functools.lru_cache(maxsize=1024)
def _epsilon(events: tuple[Event, ...], delta: float) -> float:
    """Compute ε, cached: a phone needs it at every step, and a simulation has many phones."""
    return Composition(events).epsilon(delta)


class Bound(NamedTuple):
    """A bound on ε and its origin: `move` + ε of ideal sums at `ideal_delta`."""

    epsilon: float
    move: float
    ideal_delta: float


class Composition:
    """The privacy lost by some releases, as a curve of (ε, δ).

    Sums through a real summation are a distance d from ideal ones, for either of two neighbours.
    Three bounds say how much that adds, and the best is taken:

    1. each release has its own (ε, δ), and both add up: where all are pure;
    2. a real world is Σd from the ideal one, so δ grows by (1 + e^ε) Σd: where ε is small;
    3. of the outcomes of one sum, set apart those that the real neighbour has less than τ times as
       often as the ideal one. The ideal neighbour has them with probability ≤ d / (1 − τ), and so
       the ideal world with some F: by its divergence, F ≤ (e^D d / (1 − τ))^(1−1/α) (Mironov 2017,
       Proposition 10). On all others the real neighbour is τ times the ideal one, at least;
       so k sums move ε by k ln 1/τ and δ by Σ(d + F): where ε has grown large over many sums.

    Attributes:
        counts: Number of occurrences of each event.
        added_epsilon: Sum of all ε; infinite unless all events are purely private.
        added_delta: Sum of all δ at these ε, at most 1.

    Raises:
        InvalidParametersError: A number of an event is out of range.
    """

    def __init__(self, events: Iterable[Event]) -> None:
        self.counts = Counter(events)
        self._curve = np.zeros(len(ORDERS))
        with np.errstate(over="ignore"):  # a sum that overflows is infinite
            for event, count in self.counts.items():
                self._curve += count * _shared_curve(event)
        self.added_epsilon = self._total(_pure_epsilon)
        self.added_delta = min(1.0, self._total(_pure_delta))
        self._distance = self._total(distance)
        self._approximate = self._total(_approximate_delta)

    def epsilon(self, delta: float) -> float:
        """Return ε at a δ from 0 to 1; infinite where no bound is known.

        Raises:
            InvalidParametersError: The value of δ is out of range.
        """
        return self.best(delta).epsilon

    def best(self, delta: float) -> Bound:
        """Return the best of the three bounds at a δ from 0 to 1.

        Raises:
            InvalidParametersError: The value of δ is out of range.
        """
        checks.share("delta", delta)
        left = delta - self._approximate
        bounds = [Bound(self.added_epsilon, 0.0, 0.0)] if delta >= self.added_delta else []
        bounds.append(self._beside_sums(left))
        if self._sums_delta(min(bounds).epsilon) > _LITTLE * delta:
            for move, moved in self._set_apart:
                bounds.append(Bound(move + self.ideal_epsilon(left - moved), move, left - moved))
        return min(bounds)

    def ideal_epsilon(self, delta: float) -> float:
        """Return ε at this δ for ideal sums (Canonne, Kamath and Steinke 2020, Prop. 12)."""
        if delta < 0:
            return math.inf
        if delta >= 1:
            return 0.0
        if delta == 0:
            return self.added_epsilon
        if self._losses is not None:
            return min(self.added_epsilon, self._losses.epsilon(delta), self._by_renyi(delta))
        return self._by_renyi(delta)

    def _by_renyi(self, delta: float) -> float:
        return max(0.0, float(np.min(renyi_epsilons(self._curve, ORDERS, delta))))

    @functools.cached_property
    def _losses(self) -> PureLosses | None:
        """Losses of the releases, computed on demand: they take milliseconds; None if too large."""
        if self.added_epsilon > LARGEST_LOSS:
            return None
        each = ((dominating(event), count) for event, count in self.counts.items())
        return PureLosses(one._replace(times=one.times * count) for one, count in each)

    def _total(self, what: Callable[[Event], float]) -> float:
        return added(count * what(event) for event, count in self.counts.items())

    def _beside_sums(self, delta: float) -> Bound:
        """Return the smallest ε whose δ, (1 + e^ε) Σd included, is at most this one (bound 2).

        ε rises step by step to the first that is enough. Each step assumes a little more δ than the
        sums need, so the last one errs on the safe side.
        """
        reckoned = self._sums_delta(0.0) * _ABOVE
        for _ in range(_LARGEST_NUMBER_OF_STEPS):
            epsilon = self.ideal_epsilon(delta - reckoned)
            needed = self._sums_delta(epsilon)
            if needed <= reckoned or epsilon == math.inf:
                return Bound(epsilon, 0.0, delta - reckoned)
            reckoned = needed * _ABOVE
        return Bound(math.inf, 0.0, 0.0)

    def _sums_delta(self, epsilon: float) -> float:
        """Return how much real sums add to δ by bound 2.

        Pr[real] ≤ Pr[ideal] + d ≤ e^ε Pr'[ideal] + δ + d ≤ e^ε (Pr'[real] + d) + δ + d.
        """
        return _capped(self._distance, epsilon)

    @functools.cached_property
    def _set_apart(self) -> tuple[tuple[float, float], ...]:
        """Moves of ε by bound 3, and what real sums add to δ for each; there must be some sums."""
        sums = {event: count for event, count in self.counts.items() if distance(event)}
        moves = np.geomspace(1e-6, 1.0, 49)
        less = -np.expm1(-moves / sum(sums.values()))
        spent = np.zeros(len(moves))
        for event, count in sums.items():
            rare = np.log(distance(event) / less)[:, np.newaxis]
            chances = (1 - 1 / ORDERS) * (_shared_curve(event) + rare)
            spent += count * (distance(event) + np.exp(np.minimum(0.0, chances.min(axis=1))))
        return tuple(zip(moves.tolist(), spent.tolist(), strict=True))


_ABOVE = 1 + 1e-9
_LITTLE = 1e-4
"""Share of δ below which no better bound is computed."""
_LARGEST_NUMBER_OF_STEPS = 100


def _capped(distances: float, epsilon: float) -> float:
    """Return (1 + e^ε) · distances, at most 1."""
    if distances == 0:
        return 0.0
    return math.exp(min(0.0, float(np.logaddexp(0.0, epsilon)) + math.log(distances)))


@functools.lru_cache(maxsize=1024)
def _shared_curve(event: Event) -> Curve:
    """Return `renyi` on the grid, cached; policies need the same few events repeatedly."""
    curve = renyi(event)
    curve.setflags(write=False)
    return curve


def _pure_epsilon(event: Event) -> float:
    """Return ε of an event by itself at its own δ, infinite for one that is never pure."""
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
    """Return δ of an event by itself at its own ε."""
    return _approximate_delta(event) + _capped(distance(event), _pure_epsilon(event))


def _approximate_delta(event: Event) -> float:
    return event.delta if isinstance(event, Approximate) else 0.0
