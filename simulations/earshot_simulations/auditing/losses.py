"""Privacy losses: bounds on δ at an ε, and on ε at a δ, from below and from above.

For an output y of a mechanism on data D, its loss is ln(P(y)/Q(y)), P and Q being the laws of the
output on D and on a neighbour. A mechanism is (ε, δ)-differentially private for this pair exactly
when the hockey-stick divergence E_P[(1 − e^(ε − loss))₊] is at most δ (Sommer, Meiser and
Mohammadi, PoPETs 2019). Losses of independent outputs add up, so their law is a convolution.

Losses are kept on a grid, rounded down. So a computed divergence is at most the true one, and at
least the true one at an ε that is larger by the sum of all roundings.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from earshot_protocol.arrays import Numbers
from earshot_simulations.auditing.laws import Law, transformed

_BISECTIONS = 60
_ROUNDING = 2.0**-52
_TAIL = 0.005
"""Mass cut from either side of a convolution, as a share of the error of its masses."""
_DEVIATIONS = 12.0
"""Standard deviations beyond which Gaussian noise is in doubt."""
_LARGEST = 700.0
"""An ε beyond which e^ε overflows; larger claims are vacuous."""


@dataclass(frozen=True)
class Bracket:
    """Bounds of a measured ε: at least `low`, at most `high`."""

    low: float
    high: float


@dataclass(frozen=True)
class Losses:
    """The law of a privacy loss under P, on a grid.

    Attributes:
        step: Step of the grid.
        first: Loss of the first mass, in steps.
        masses: Probabilities, float64 of shape (losses,).
        infinite: Mass of outputs that are impossible on the neighbour's data.
        rounded: Bound on the rounding of a loss, which is rounded down.
        doubt: Bound on the errors of the masses, added up.
        neighbours_doubt: The same for the masses of Q, whose errors count e^ε times.
    """

    step: float
    first: int
    masses: Numbers
    infinite: float = 0.0
    rounded: float = 0.0
    doubt: float = 0.0
    neighbours_doubt: float = 0.0

    def plus(self, other: Losses) -> Losses:
        """Return the loss of two independent outputs together."""
        if self.step != other.step:
            raise ValueError(f"losses on grids of {self.step} and {other.step} do not add up")
        masses, error = transformed(self.masses, other.masses)
        # Tails far below the masses' error would only make the next convolution longer.
        tail = error * _TAIL
        low, high = _without_tails(masses, tail)
        return Losses(
            self.step,
            self.first + other.first + low,
            masses[low:high],
            1 - (1 - self.infinite) * (1 - other.infinite),
            self.rounded + other.rounded,
            self.doubt + other.doubt + error + 2 * tail,
            self.neighbours_doubt + other.neighbours_doubt,
        )

    def times(self, count: int) -> Losses:
        """Return the loss of this many independent outputs of this law."""
        total, power = None, self
        while True:
            if count % 2:
                total = power if total is None else total.plus(power)
            count //= 2
            if not count:
                return power if total is None else total
            power = power.plus(power)

    def least_delta(self, epsilon: float) -> float:
        """Return a lower bound on the smallest δ at this ε."""
        divergence, error = self._divergence(epsilon)
        margin = self.doubt + error + _exp(epsilon) * self.neighbours_doubt
        return max(0.0, divergence - margin)

    def sufficient_delta(self, epsilon: float) -> float:
        """Return an upper bound on the smallest δ at this ε."""
        divergence, error = self._divergence(epsilon - self.rounded)
        margin = self.doubt + error + _exp(epsilon) * self.neighbours_doubt
        return min(1.0, divergence + margin)

    def epsilon(self, delta: float) -> Bracket:
        """Return bounds on the smallest ε at this δ."""
        top = (self.first + len(self.masses)) * self.step + self.rounded
        low = _largest(lambda epsilon: self.least_delta(epsilon) > delta, top)
        if self.least_delta(top) > delta:
            low = math.inf if self.infinite > delta else top
        return Bracket(low, self._sufficient_epsilon(delta, low, top))

    def _sufficient_epsilon(self, delta: float, low: float, top: float) -> float:
        """Return an ε at which δ holds, as near to `low` as possible: doubt grows with e^ε."""
        if math.isinf(low):
            return low
        width = self.step
        while self.sufficient_delta(low + width) > delta:
            width *= 2
            if low + width > 2 * top + 1:
                return math.inf
        return low + _largest(lambda more: self.sufficient_delta(low + more) > delta, width)

    def _divergence(self, epsilon: float) -> tuple[float, float]:
        """Return the divergence of P from Q at this ε, and a bound on its rounding error."""
        start = max(0, math.ceil(epsilon / self.step) - self.first)
        if start >= len(self.masses):
            return self.infinite, 0.0
        above, discounted = (float(tail[start]) for tail in self._tails)
        neighbours = math.exp(epsilon - (self.first + start) * self.step) * discounted
        return self.infinite + above - neighbours, 4 * len(self.masses) * _ROUNDING * above

    @functools.cached_property
    def _tails(self) -> tuple[Numbers, Numbers]:
        """Masses of P from each loss on, and of Q times e^loss: Σ m_j and Σ m_j e^(loss − loss_j).

        Added up from the far end, so that small masses are added first.
        """
        from scipy.signal import lfilter

        backwards = self.masses[::-1]
        discounted = lfilter([1.0], [1.0, -math.exp(-self.step)], backwards)
        return np.cumsum(backwards)[::-1], discounted[::-1]


def loss(p: Numbers, q: Numbers, step: float, doubt: tuple[float, float] = (0.0, 0.0)) -> Losses:
    """Return the law of the loss of one output.

    Args:
        p: Probabilities of outputs on one data set, float64 of shape (outputs,).
        q: Probabilities of the same outputs on a neighbour.
        step: Step of the grid.
        doubt: Bounds on the error of an event's probability, under p and under q.
    """
    possible = p > 0
    both = possible & (q > 0)
    infinite = float(p[possible & ~both].sum())
    places = np.floor(np.log(p[both] / q[both]) / step).astype(np.int64)
    first = int(places.min()) if len(places) else 0
    masses = _counted(places - first, p[both]) if len(places) else np.zeros(1)
    return Losses(step, first, masses, infinite, step, doubt[0], doubt[1])


def outcome_epsilon(p: Numbers, q: Numbers, delta: float, error: float) -> Bracket:
    """Return bounds on the ε at which a few outcomes are (ε, δ)-close in one direction.

    Args:
        p: Probabilities of outcomes on one data set, float64 of shape (outcomes,).
        q: Probabilities of the same outcomes on a neighbour.
        delta: Value of δ.
        error: Relative error of every probability.
    """
    p, q = p[p > 0], q[p > 0]
    with np.errstate(divide="ignore"):
        losses = np.log(p) - np.log(q)
    top = float(losses[np.isfinite(losses)].max(initial=0.0)) + 1.0

    def divergence(epsilon: float, error: float) -> float:
        share = np.exp(np.minimum(epsilon - losses, 0.0))
        return float((p * (1 - error - (1 + error) * share)).clip(0).sum())

    low = _largest(lambda epsilon: divergence(epsilon, error) > delta, top)
    high = _largest(lambda epsilon: divergence(epsilon, -error) > delta, top)
    return Bracket(*(math.inf if each > top - 0.5 else each for each in (low, high)))


def shifted(law: Law, shift: int, step: float) -> Losses:
    """Return the loss of a number with this noise, where the neighbour's is larger by `shift`.

    This covers both directions if the noise is symmetric.
    """
    size = len(law.masses) + abs(shift)
    p, q = np.zeros(size), np.zeros(size)
    at = max(0, -shift)
    p[at : at + len(law.masses)] = law.masses
    at = max(0, shift)
    q[at : at + len(law.masses)] = law.masses
    # Where the neighbour's law was cut, its mass is in doubt; the loss there is not infinite.
    known = (p > 0) & (q > 0)
    return loss(p[known], q[known], step, (law.doubt + float(p[~known].sum()), law.doubt))


def discrete_laplace_loss(shift: int, scale: float, step: float) -> Losses:
    """Return the loss of a number plus discrete Laplace noise, by its closed form.

    The loss at noise x is (|x − shift| − |x|) / scale: it falls from shift/scale to −shift/scale
    and depends on x between 0 and the shift alone.
    """
    ratio = math.exp(-1 / scale)
    outside = 1 / (1 + ratio)  # P(noise ≤ 0)
    most = 2**20
    cells = min(abs(shift) - 1, most)
    # Noise between 0 and the shift, in cells; each is given the smallest loss in it.
    edges = np.linspace(0, abs(shift) - 1, cells + 1).astype(np.int64)
    edges = edges[np.diff(edges, prepend=-1) > 0]
    above = np.exp(-edges / scale) * ratio * outside  # P(noise > edge)
    inner = -np.diff(above)
    losses = (abs(shift) - 2.0 * edges[1:]) / scale
    beyond = math.exp(-(abs(shift) - 1) / scale) * ratio * outside
    values = np.concatenate([[abs(shift) / scale], losses, [-abs(shift) / scale]])
    masses = np.concatenate([[outside], inner, [beyond]])
    places = np.floor(values / step + 1e-9).astype(np.int64)
    first = int(places.min())
    width = float(np.diff(edges).max(initial=1) - 1) * 2 / scale
    return Losses(step, first, _counted(places - first, masses), rounded=step + width)


def discrete_gaussian_loss(shift: float, sigma: float, step: float) -> Losses:
    """Return the loss of a number plus discrete Gaussian noise: (s² − 2sx) / 2σ² at noise x.

    Args:
        shift: Difference s by which the neighbour's number is larger.
        sigma: Standard deviation σ of the noise.
        step: Step of the grid.
    """
    cell = max(1, int(_DEVIATIONS * sigma) // 2**17)
    reach = math.ceil(_DEVIATIONS * sigma / cell) * cell
    # Noise in cells of equal width; each is given the smallest loss in it.
    noise = np.arange(-reach, reach, cell, dtype=np.float64)
    weights = np.zeros(len(noise))
    for each in range(cell):
        weights += np.exp(-np.square((noise + each) / sigma) / 2)
    values = shift * (shift - 2 * (noise + cell - 1)) / (2 * sigma**2)
    places = np.floor(values / step).astype(np.int64)
    first = int(places.min())
    width = abs(shift) * (cell - 1) / sigma**2
    doubt = 4 * math.erfc(_DEVIATIONS / math.sqrt(2)) + len(noise) * 2.0**-52
    masses = _counted(places - first, weights / weights.sum())
    return Losses(step, first, masses, rounded=step + width, doubt=doubt)


def composed(parts: Iterable[Losses]) -> Losses:
    """Return the loss of independent outputs together."""
    parts = list(parts)
    total = parts[0]
    for part in parts[1:]:
        total = total.plus(part)
    return total


def _largest(holds: Callable[[float], bool], top: float) -> float:
    low, high = 0.0, max(top, 0.0)
    if not holds(0.0):
        return 0.0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def _without_tails(masses: Numbers, mass: float) -> tuple[int, int]:
    """Return the slice of the masses without this much on either side, as its ends."""
    low = int(np.searchsorted(np.cumsum(masses), mass, side="right"))
    high = len(masses) - int(np.searchsorted(np.cumsum(masses[::-1]), mass, side="right"))
    return (low, high) if low < high else (0, len(masses))


def _exp(value: float) -> float:
    return math.exp(min(value, _LARGEST))


def _counted(places: npt.NDArray[np.int64], masses: Numbers) -> Numbers:
    return np.bincount(places, weights=masses).astype(np.float64)
