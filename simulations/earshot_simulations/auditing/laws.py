"""Laws of whole numbers, with a bound on their unknown mass.

The law of a noise share is read from its sampler: by the random words that make it return a value.
What stays unknown, a word's last bit or a tail that was cut, is kept as mass in doubt; measurements
with such a law count it against the measured ε.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from earshot_protocol.arrays import Numbers
from earshot_protocol.keyed_randomness import KEY_BYTES
from earshot_protocol.privacy.mechanisms import SumMechanism
from earshot_protocol.privacy.sum_noise import SumNoise
from earshot_protocol.randomness import RandomBytes
from earshot_simulations.auditing.streams import Noted, drawn_again, steered

Sampler = Callable[[int, RandomBytes], npt.NDArray[np.int64]]
"""Function that draws a number of integers from a source of bytes."""

_WORD_BITS = 64
_MIDDLE = 2**63 + 1
"""Mid-range random word, which decides a draw without further words."""
_DIRECT = 2**14
"""Laws up to this long are convolved term by term, which keeps the digits of small masses."""
_FEW = 2**12
"""Length of a law from which repeated convolution uses its characteristic function."""
_DEVIATIONS = 12.0
"""Reach of the law of such a sum, in standard deviations."""
_NEGLIGIBLE = 1e-40
_ROUNDING = 2.0**-52
_STEERED = 2000


@dataclass(frozen=True)
class Law:
    """P(first), P(first + 1), …, whose errors add up to at most `doubt`.

    Attributes:
        first: Smallest value.
        masses: Probabilities, float64 of shape (values,), none negative.
        doubt: Most by which the probability of any event can differ from the true one.
    """

    first: int
    masses: Numbers
    doubt: float = 0.0

    @property
    def values(self) -> npt.NDArray[np.int64]:
        """Values that have these probabilities."""
        return self.first + np.arange(len(self.masses))

    @property
    def variance(self) -> float:
        """Variance of the known masses."""
        mean = float(self.masses @ self.values)
        return float(self.masses @ np.square(self.values - mean))

    def plus(self, other: Law) -> Law:
        """Return the law of the sum of two independent integers."""
        doubt = self.doubt + other.doubt
        if min(len(self.masses), len(other.masses)) <= _DIRECT:
            masses = np.convolve(self.masses, other.masses)
            return Law(self.first + other.first, masses, doubt).trimmed(_NEGLIGIBLE)
        masses, error = transformed(self.masses, other.masses)
        return Law(self.first + other.first, masses, doubt + error).trimmed(error)

    def negated(self) -> Law:
        """Return the law of the negated integer."""
        return Law(1 - self.first - len(self.masses), self.masses[::-1], self.doubt)

    def times(self, count: int) -> Law:
        """Return the law of the sum of this many independent integers of this law."""
        if len(self.masses) > _FEW:
            return self._power(count)
        total, power = Law(0, np.ones(1)), self
        while count:
            if count % 2:
                total = total.plus(power)
            count //= 2
            if count:
                power = power.plus(power)
        return total

    def _power(self, count: int) -> Law:
        """Return `times`, as the power of a characteristic function.

        A sum beyond the reach wraps around; Chernoff's bound limits the mass that does. A value of
        the characteristic function is off by at most `unit`, relative to its size; so the errors of
        all probabilities add up to at most `unit` times the root of their number times their
        Euclidean norm (Parseval; Cauchy and Schwarz).
        """
        mean = float(self.masses @ self.values)
        deviation = math.sqrt(count * self.variance)
        reach = math.ceil(_DEVIATIONS * deviation)
        tilt = reach / deviation**2
        tails = sum(
            math.exp(count * math.log(self.masses @ np.exp(sign * tilt * (self.values - mean))))
            for sign in (-1, 1)
        ) * math.exp(-tilt * reach)
        size = 1 << (2 * reach + 1).bit_length()
        folded = np.bincount(self.values % size, weights=self.masses, minlength=size)
        spectrum = np.fft.rfft(folded) ** count
        around = math.floor(count * mean) - size // 2
        masses = np.roll(np.fft.irfft(spectrum, size), -around).clip(0)
        unit = count * 4 * math.log2(size) * _ROUNDING
        error = unit * math.sqrt(size) * float(np.sqrt(np.square(masses).sum()))
        whole = Law(around, masses, count * self.doubt + error + 2 * tails)
        return whole.trimmed(error)

    def trimmed(self, mass: float) -> Law:
        """Cut a tail of this mass on either side, and add it to the doubt."""
        kept = np.flatnonzero(
            (np.cumsum(self.masses) > mass) & (np.cumsum(self.masses[::-1])[::-1] > mass)
        )
        low, high = int(kept[0]), int(kept[-1]) + 1
        if high - low == len(self.masses):
            return self
        return Law(self.first + low, self.masses[low:high], self.doubt + 2 * mass)


@functools.lru_cache(maxsize=64)
def share_law(sampler: Sampler, most: int = 2**22) -> Law:
    """Return the law of a noise share, read from its sampler.

    A share is the difference of two draws, each decided by one random word: the larger the word,
    the larger the draw. So bisection finds the first word of every draw. Where further words decide
    a draw, the probability of one word is in doubt.

    Args:
        sampler: Sampler of shares.
        most: Largest number of values of a draw that is read.

    Raises:
        ValueError: A draw has more values, or the sampler draws by other words.
    """
    lowest = _drawn(sampler, np.zeros(1, np.uint64))[0]
    largest = np.full(1, 2**_WORD_BITS - 1, np.uint64)
    count = int(_drawn(sampler, largest)[0] - lowest)
    if not 0 <= count <= most:
        raise ValueError(f"a share of {count + 1} values, of which at most {most} can be read")
    wanted = lowest + 1 + np.arange(count)
    # The first word with a draw of at least `wanted`, by its bits from the highest.
    first = np.zeros(count, np.uint64)
    for bit in reversed(range(_WORD_BITS)):
        below = first | np.uint64(1 << bit)
        first = np.where(_drawn(sampler, below - np.uint64(1)) < wanted, below, first)
    edges = [0, *map(int, first), 2**_WORD_BITS]
    masses = np.array([(b - a) / 2**_WORD_BITS for a, b in itertools.pairwise(edges)])
    draw = Law(0, masses, (count + 1) * 2.0**-_WORD_BITS)
    return draw.plus(draw.negated())


def share_law_of(mechanism: SumMechanism) -> Law:
    """Return the law of the share that a phone adds under a mechanism.

    Mechanisms of the same noise share a sampler, whose law is read once. A mechanism that makes
    other shares from the same random bytes is read separately.
    """
    source, noise = Noted(steered(bytes(KEY_BYTES), "shares")), mechanism.entry_noise
    shares = mechanism.noise_share(_STEERED, source)
    again = drawn_again(functools.partial(noise.share, _STEERED), source.taken())
    same = again is not None and np.array_equal(again, shares)
    return _law_of(noise) if same else share_law(mechanism.noise_share)


@functools.lru_cache(maxsize=64)
def _law_of(noise: SumNoise) -> Law:
    return share_law(noise.share)


def _drawn(sampler: Sampler, words: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """Return the shares that these words give; the subtracted draw is the same for all."""
    fed = iter([np.append(words, np.full(len(words), _MIDDLE, np.uint64)).astype("<u8").tobytes()])

    def random(size: int) -> bytes:
        given = next(fed, bytes(size))
        if len(given) != size:
            raise ValueError(
                f"{size} random bytes were requested for {len(words)} shares: a share must be the "
                "difference of two draws of one word each"
            )
        return given

    return sampler(len(words), random)


def transformed(a: Numbers, b: Numbers) -> tuple[Numbers, float]:
    """Return a convolution by Fourier transforms, and its error, added up over all entries.

    A transform is off by some roundings of its norm for each of its log2(size) steps. Factors that
    add up to 1 do not amplify that, and a sum of absolute values is at most the root of their
    number times their norm (Cauchy and Schwarz).
    """
    from scipy.fft import irfft, next_fast_len, rfft

    size = len(a) + len(b) - 1
    fast = next_fast_len(size, real=True)
    spectrum = rfft(a, fast)
    product = np.square(spectrum) if a is b else spectrum * rfft(b, fast)
    masses = irfft(product, fast)[:size].clip(0)
    norms = sum(float(np.sqrt(np.square(each).sum())) for each in (a, b, masses))
    return masses, 4 * math.log2(fast + 2) * _ROUNDING * math.sqrt(fast) * norms
