"""Claimed privacy costs of the thesis, a library and a textbook sampler, beside the measured ones.

The thesis's claims are on its votes, the library's on DPLloyd-Impr, by which phones cluster, and
the sampler's on Laplace noise from floating-point logarithms.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from earshot_client.clustering import DPLloyd
from earshot_protocol.arrays import Numbers
from earshot_protocol.geometry import Geometry
from earshot_protocol.privacy.local_mechanisms import LaplaceLloyd
from earshot_protocol.privacy.mechanisms import BallotSum, Unit
from earshot_simulations.auditing.findings import EXACT, Finding, Technique
from earshot_simulations.auditing.lloyd import Clustering, largest_loss, transcript_shifts
from earshot_simulations.auditing.losses import Bracket, discrete_laplace_loss
from earshot_simulations.auditing.proofs import DELTA, finding

_CELLS = 2**13


def claims() -> Iterator[Finding]:
    """Compare every claim with the measured cost."""
    yield thesis_vote()
    yield from thesis_ballots()
    yield swapped_budgets()
    yield rounded_laplace()


def thesis_vote(phones: int = 1000, survivors: int = 900, epsilon: float = 1.0) -> Finding:
    """Audit Laplace shares claimed to add up to Laplace noise (Liebenow 2022, Theorem 8.2)."""
    return Finding(
        f"Liebenow 8.2.3: a vote of {phones} phones, v = 1; {survivors} shares of Laplace noise of "
        f"scale v/(ε·{survivors})",
        Unit.PHONE,
        DELTA,
        epsilon,
        None,
        laplace_shares_epsilon(epsilon, survivors, DELTA),
        Technique(
            EXACT,
            "exact from below: the closed form of the sum's density, put into cells, which can "
            "only lower ε",
        ),
    )


def laplace_shares_epsilon(epsilon: float, shares: int, delta: float) -> Bracket:
    """Return ε of a count plus Laplace variables of scale 1/(ε · shares), from below.

    Neighbours' counts differ by one. Outputs are put into cells, which is post-processing: it can
    only lower ε. The density falls on either side of zero, so in every other cell its largest and
    smallest values are at the ends: they bound the cell's probability from below for one data set,
    and from above for the other.
    """
    scale = 1 / (epsilon * shares)
    reach = 12 * math.sqrt(2 * shares) * scale
    edges = np.linspace(-reach, reach, _CELLS + 1)
    width = edges[1] - edges[0]

    def bounds(shift: float) -> tuple[Numbers, Numbers]:
        ends = _log_density(np.abs(edges - shift), scale, shares) + math.log(width)
        return np.minimum(ends[:-1], ends[1:]), np.maximum(ends[:-1], ends[1:])

    least, most = bounds(0.0)[0], bounds(-1.0)[1]
    losses = least - most
    masses = np.exp(least)

    def divergence(at: float) -> float:
        return float(-(masses * np.expm1(np.minimum(0.0, at - losses))).sum())

    low, high = 0.0, float(losses.max())
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if divergence(middle) > delta else (low, middle)
    return Bracket(low, math.inf)


def _log_density(distance: Numbers, scale: float, shares: int) -> Numbers:
    """Return ln of the density of a sum of Laplace variables: a difference of two gamma variables.

    The Bessel function in it has half-integer order and is a finite sum of positive terms:
    f(x) = e^(−z) / (scale · (m)! · 2^(m+1)) · Σ_j (m + j)! / (j! (m − j)! 2^j) · z^(m−j), with
    z = |x| / scale and m = shares − 1.
    """
    from scipy.special import gammaln, logsumexp

    m = shares - 1
    j = np.arange(m + 1)
    weights = gammaln(m + j + 1) - gammaln(j + 1) - gammaln(m - j + 1) - j * math.log(2)
    z = np.maximum(distance / scale, 1e-300)
    terms = weights[:, None] + (m - j)[:, None] * np.log(z)[None, :]
    constant = math.log(scale) + float(gammaln(m + 1)) + (m + 1) * math.log(2)
    density: Numbers = logsumexp(terms, axis=0) - z - constant
    return density


def thesis_ballots(epsilon: float = 0.5) -> Iterator[Finding]:
    """Audit noise for v votes, though one recording changes two (Liebenow 6.4, 8.2.3)."""
    for votes in (1, 3):
        scale, step = votes / epsilon, 1e-6
        swapped = discrete_laplace_loss(1, scale, step).times(2)
        yield Finding(
            f"Liebenow 6.4: sensitivity v = {votes}, and noise that does add up to scale v/ε",
            Unit.RECORDING,
            DELTA,
            epsilon,
            2 / scale,
            swapped.epsilon(DELTA),
            Technique(EXACT, "exact: a recording swaps one vote for another"),
        )


class _SwappedBudgets(DPLloyd):
    """A clustering with the budgets of counts and coordinates swapped."""

    def split(self, dimensions: int) -> tuple[float, float]:
        """Return the swapped budgets."""
        counts, coordinates = super().split(dimensions)
        return coordinates, counts


def swapped_budgets(epsilon: float = 1.0, dimensions: int = 128) -> Finding:
    """Audit DPLloyd-Impr of a well-known library, which swaps the budgets of counts and sums."""
    mechanism = LaplaceLloyd(epsilon, 1000)
    clustering = _SwappedBudgets(4, mechanism)
    audited = Clustering("", clustering, mechanism, Geometry.EUCLIDEAN, dimensions)
    largest = largest_loss(transcript_shifts(audited, 1, 0))
    counts, coordinates = clustering.split(dimensions)
    return Finding(
        f"DPLloyd-Impr of a well-known library, d = {dimensions}: two budgets change places",
        Unit.RECORDING,
        0.0,
        epsilon,
        clustering.iterations(dimensions) * (counts + dimensions * coordinates),
        Bracket(largest, largest),
        Technique(EXACT, "exact: every draw of a transcript, their largest losses added up"),
    )


def rounded_laplace(bits: int = 18) -> Finding:
    """Audit Laplace noise by floating-point logarithms: some sums reveal the count.

    All values of a uniform variable of `bits` bits are tried, in single precision (Mironov 2012).
    """
    uniform = (np.arange(1, 2**bits, dtype=np.float64) / 2**bits).astype(np.float32)
    noise = np.log(uniform)
    released = [
        np.concatenate([np.float32(count) + noise, np.float32(count) - noise]) for count in (0, 1)
    ]
    only = float(np.isin(released[0], released[1], invert=True).mean())
    epsilon = math.inf if only > DELTA else 0.0
    return Finding(
        f"Laplace noise from floating-point numbers (Mironov 2012): {100 * only:.0f} % of the sums "
        "that 0 gives cannot come from 1",
        "one count",
        DELTA,
        1.0,
        None,
        Bracket(epsilon, epsilon),
        Technique(EXACT, f"exact: all values of a uniform variable of {bits} bits"),
    )


def laplace_shares() -> Finding:
    """Audit a planted fault: Laplace shares claimed to add up to Laplace noise."""
    mechanism = BallotSum(2.0, 1, 900)
    return finding(
        "900 shares of Laplace noise sold as Laplace noise",
        Unit.PHONE,
        mechanism,
        laplace_shares_epsilon(1 / mechanism.scale, 900, DELTA),
        Technique(EXACT, "exact from below: the closed form of the sum's density, put into cells"),
    )
