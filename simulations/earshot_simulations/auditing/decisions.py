"""The law of an operator's noise, tails included, read from its sampler's use of random words.

N draws cannot show a tail much rarer than 1/N. But a sampler is a function of random words, and
words can be chosen. Discrete Laplace noise adds up binary digits, each decided by its own word:
bisection finds the word at which a digit flips. Discrete Gaussian noise rejects some proposals of
Laplace noise, each by a further word: it is tried with words just below and just above the
threshold of the definition. A cut tail, a weakened entry or any other law then shows with
certainty, however rare its values are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from earshot_protocol.arrays import Numbers, Whole
from earshot_protocol.keyed_randomness import KEY_BYTES, keyed
from earshot_protocol.privacy.noise import discrete_laplace
from earshot_protocol.privacy.sum_noise import NoiseOfOperators, WholeLaplace
from earshot_simulations.auditing import power
from earshot_simulations.auditing.findings import Check
from earshot_simulations.auditing.laws import Sampler
from earshot_simulations.auditing.streams import LARGEST_WORD, WORD_BITS, Words, steered_words

REACH = 9.0
"""Deviations up to which proposals of discrete Gaussian noise are tried; P beyond is 10^-18."""
_PLACES = 100
"""Values that are tried in each deviation, or all of them where there are fewer."""
_NEAR = 2.0**-39
"""Distance of a tried word from the threshold of the definition, as a probability."""
_STEERED = 2000
_ROUNDING = 1e-12


class OtherDrawError(Exception):
    """A sampler requests other random words than its definition does."""


@dataclass(frozen=True)
class Digits:
    """The weights and thresholds by which a sampler decides discrete Laplace noise.

    Attributes:
        weights: Number that each word adds if its digit is one, int64 of shape (words,).
        limits: Smallest word whose digit is zero, uint64 of the same shape.
    """

    weights: Whole
    limits: Words

    @classmethod
    def read(cls, sampler: Sampler) -> Digits:
        """Find the thresholds of a draw's words by bisection.

        Raises:
            OtherDrawError: Noise is not zero where every digit is, or draws request other words.
        """
        asked: list[int] = []

        def zeros(size: int) -> bytes:
            asked.append(size)
            return bytes(size)

        sampler(1, zeros)
        count = asked[0] // 8
        none = np.full(count, LARGEST_WORD, dtype=np.uint64)

        def drawn(at: int, word: int) -> int:
            words = none.copy()
            words[at] = word
            return int(sampler(1, _fed(words))[0])

        base = drawn(0, LARGEST_WORD)
        weights = [drawn(at, 0) - base for at in range(count)]
        if base:
            raise OtherDrawError(f"{base} where every digit is zero")
        limits = []
        for at, weight in enumerate(weights):
            low, high = 0, LARGEST_WORD  # the digit is one at `low`, and zero at `high`
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if drawn(at, middle) == weight else (low, middle)
            limits.append(high)
        return cls(np.array(weights), np.array(limits, dtype=np.uint64))

    def drawn(self, words: Words) -> Whole:
        """Return the noise that words of shape (words, count) give."""
        found: Whole = self.weights @ (words < self.limits[:, None]).astype(np.int64)
        return found

    def words_of(self, values: Whole) -> Words:
        """Return words, of shape (words, count), that give these values."""
        sizes = np.where(np.sign(self.weights)[:, None] == np.sign(values), np.abs(values), 0)
        ones = (sizes & np.abs(self.weights)[:, None]) != 0
        return np.where(ones, np.uint64(0), np.uint64(LARGEST_WORD)).astype("<u8")

    def fault(self, scale: float) -> str:
        """Describe the difference from discrete Laplace noise of this scale; empty without any."""
        half = len(self.weights) // 2
        powers = 2 ** np.arange(half, dtype=np.int64)
        if not np.array_equal(self.weights, np.concatenate([powers, -powers])):
            return "its words are not those of binary digits"
        ratios = np.exp(-powers / scale)
        chances = np.tile(ratios / (1 + ratios), 2)
        # A further word decides ties, at the limit or one above it.
        off = np.abs(self.limits / 2.0**WORD_BITS - chances)
        if (off > _ROUNDING * chances + 2.0 ** (2 - WORD_BITS)).any():
            return f"digit {int(off.argmax()) % half} is one with another probability"
        if ratios[-1] ** 2 > 2.0**-WORD_BITS:
            return f"digits from {half} on are missing"
        return ""


def decisions_check(case: str, noise: NoiseOfOperators, sampler: Sampler | None = None) -> Check:
    """Check a sampler's decisions against the noise's definition, tails included.

    Args:
        case: Description of the noise.
        noise: Declared noise.
        sampler: Sampler of this noise; the operators' by default.
    """
    sampler = sampler or noise.drawn
    laplace = isinstance(noise, WholeLaplace)
    try:
        if isinstance(noise, WholeLaplace):
            fault = _laplace_fault(sampler, noise.scale)
        else:
            fault = _gaussian_fault(sampler, math.sqrt(noise.variance))
    except (OtherDrawError, ValueError) as error:
        fault = str(error)
    words = "every digit of a draw" if laplace else f"proposals up to {REACH:g} deviations"
    off = 2.0 ** (2 - WORD_BITS) if laplace else 2 * _NEAR
    where = "" if laplace else f" that holds for 1/{_PLACES} of a deviation"
    return Check(
        f"{case}: what its sampler decides",
        "as the law of its definition, tails included",
        fault or "the same",
        not fault,
        f"{words}, by chosen words, and {_STEERED} draws of words that lead into the tails",
        f"{power.EXACTLY} beyond {off:.1g}{where}",
    )


def _laplace_fault(sampler: Sampler, scale: float) -> str:
    read = Digits.read(sampler)
    return read.fault(scale) or _steered_fault(sampler, read)


def _steered_fault(sampler: Sampler, read: Digits) -> str:
    """Describe how a vector of draws differs from single draws; empty if it does not."""
    random = keyed(bytes(KEY_BYTES), "digits")
    words = steered_words(random, (len(read.weights), _STEERED))
    found, wanted = sampler(_STEERED, _fed(words)), read.drawn(words)
    return _different(found, wanted)


def _gaussian_fault(sampler: Sampler, sigma: float) -> str:
    scale = math.floor(sigma) + 1
    read = Digits.read(lambda size, random: discrete_laplace(scale, size, random))
    wrong = read.fault(scale)
    if wrong:
        return f"its proposals: {wrong}"
    step = max(1, round(sigma / _PLACES))
    places = step * np.arange(1, math.floor(REACH * sigma / step) + 1)
    values = np.concatenate([places, -places])
    few = np.zeros(1, dtype=np.int64)
    for tried, other in ((values, few), (few, few + 1)):
        for above in (False, True):
            source = _Proposing(read, sigma, tried, other, above=above)
            fault = _different(sampler(len(tried), source), source.wanted(len(tried)))
            if fault:
                return fault
    source = _Proposing(read, sigma)
    return _different(sampler(_STEERED, source), source.wanted(_STEERED))


class _Proposing:
    """A byte source for a rejection sampler, with the expected result.

    It returns, in turn, the words of proposals and a word to decide on each.

    Args:
        read: Digits of the proposals' sampler.
        sigma: Parameter σ.
        tried: Values to propose first; by default, proposals come from steered words.
        other: Value to propose after these, which is accepted.
        above: Whether the words for tried values are just too large to accept them, instead of
            just small enough.
    """

    def __init__(
        self,
        read: Digits,
        sigma: float,
        tried: Whole | None = None,
        other: Whole | None = None,
        *,
        above: bool = False,
    ) -> None:
        self._read, self._sigma, self._above = read, sigma, above
        self._tried, self._other = tried, other
        self._random = keyed(bytes(KEY_BYTES), "proposals")
        self._proposed: Whole | None = None
        self._marked = 0
        self._accepted: list[Whole] = []

    def __call__(self, size: int) -> bytes:
        """Return words, for proposals or to decide on them."""
        if self._proposed is None:
            return self._propose(size)
        if size != 8 * len(self._proposed):
            raise OtherDrawError(f"{size} bytes to decide on {len(self._proposed)} proposals")
        words, accepted = self._decide(self._proposed)
        self._accepted.append(self._proposed[accepted])
        self._proposed = None
        return words.astype("<u8").tobytes()

    def wanted(self, count: int) -> Whole:
        """Return the values that were accepted first."""
        return np.concatenate(self._accepted)[:count]

    def _propose(self, size: int) -> bytes:
        count, rest = divmod(size, 8 * len(self._read.weights))
        if rest or not count:
            raise OtherDrawError(f"{size} bytes for proposals")
        if self._tried is None or self._other is None:
            words = steered_words(self._random, (len(self._read.weights), count))
            limits = self._read.limits[:, None]
            ties = (words <= limits) & (words + 1 >= limits)  # decided by a further word
            words = np.where(ties, limits + 1, words)
        else:
            tried, self._tried = self._tried, self._tried[:0]
            self._marked = len(tried)
            rest_of_them = np.full(max(0, count - len(tried)), self._other[0])
            words = self._read.words_of(np.concatenate([tried, rest_of_them])[:count])
        self._proposed = self._read.drawn(words)
        return words.astype("<u8").tobytes()

    def _decide(self, proposed: Whole) -> tuple[Words, npt.NDArray[np.bool_]]:
        """Return a word for each proposal, and which it accepts."""
        chances = _acceptance(proposed, self._sigma)
        if self._other is None:
            words = steered_words(self._random, proposed.shape)
            near = np.abs(words / 2.0**WORD_BITS - chances) < _NEAR
            far = np.where(chances < 1 / 2, np.uint64(LARGEST_WORD), np.uint64(0))
            words = np.where(near, far, words)
            return words, words / 2.0**WORD_BITS < chances
        words = np.zeros(len(proposed), dtype=np.uint64)
        accepted = np.ones(len(proposed), dtype=bool)
        marked = slice(0, self._marked)
        if self._above:
            # A proposal with a chance of 1 is accepted by every word.
            aims = chances[marked] + _NEAR
            accepted[marked] = aims >= 1
        else:
            aims = chances[marked] - _NEAR
        words[marked] = (np.where(aims < 1, aims, 0).clip(0) * 2.0**WORD_BITS).astype(np.uint64)
        return words, accepted


def _acceptance(proposed: Whole, sigma: float) -> Numbers:
    """Return exp(−(|x| − σ²/t)² / 2σ²), t = ⌊σ⌋ + 1."""
    centre = sigma * sigma / (math.floor(sigma) + 1)
    chances: Numbers = np.exp(-np.square((np.abs(proposed) - centre) / sigma) / 2)
    return chances


def _different(found: Whole, wanted: Whole) -> str:
    if found.shape != wanted.shape:
        return f"{len(found)} numbers where {len(wanted)} are drawn"
    wrong = np.flatnonzero(found != wanted)
    if not len(wrong):
        return ""
    at = int(wrong[0])
    return f"{len(wrong)} of {len(wanted)} differ, the first is {found[at]} for {wanted[at]}"


def _fed(words: Words) -> _Fed:
    return _Fed(words.astype("<u8").tobytes())


class _Fed:
    """A byte source of a given prefix, then zeros."""

    def __init__(self, first: bytes) -> None:
        self._first: bytes | None = first

    def __call__(self, size: int) -> bytes:
        given, self._first = self._first, None
        if given is None:
            return bytes(size)
        if len(given) != size:
            raise OtherDrawError(f"{size} bytes requested of {len(given)}")
        return given
