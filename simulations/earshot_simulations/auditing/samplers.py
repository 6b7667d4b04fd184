"""The integer samplers of the protocol against the laws that they are named after."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

import numpy as np

from earshot_protocol.arrays import Whole
from earshot_protocol.privacy.coins import bernoulli_exp, geometric, uniform_below
from earshot_protocol.privacy.noise import (
    discrete_gaussian,
    discrete_laplace,
    polya_share,
    skellam_share,
)
from earshot_protocol.randomness import RandomBytes
from earshot_simulations.auditing import power
from earshot_simulations.auditing.findings import Check
from earshot_simulations.auditing.laws import Law, Sampler, share_law
from earshot_simulations.auditing.sampling import Outcome, OutcomeLaw, law_check

_RESOLUTION = 1e-9
_SCALE, _SIGMA, _VARIANCE = 4.0, 6.5, 5000.0
_SHARES = 900
_RATE, _STEPS, _LIMIT, _MEAN = 0.3, 2, 6, 4
_ONE_BY_ONE = 10
"""Factor by which samplers of single numbers draw fewer."""


def _laplace(size: int, random: RandomBytes) -> Whole:
    return discrete_laplace(_SCALE, size, random)


def _gaussian(size: int, random: RandomBytes) -> Whole:
    return discrete_gaussian(_SIGMA, size, random)


def _polya(size: int, random: RandomBytes) -> Whole:
    return polya_share(_SCALE, _SHARES, size, random)


def _skellam(size: int, random: RandomBytes) -> Whole:
    return skellam_share(_VARIANCE, _SHARES, size, random)


def _coins(size: int, random: RandomBytes) -> Whole:
    return np.array([bernoulli_exp(_RATE, _STEPS, random) for _ in range(size // _ONE_BY_ONE)])


def _uniform(size: int, random: RandomBytes) -> Whole:
    return np.array([uniform_below(_LIMIT, random) for _ in range(size // _ONE_BY_ONE)])


def _geometric(size: int, random: RandomBytes) -> Whole:
    return np.array([geometric(_MEAN, random) for _ in range(size // _ONE_BY_ONE)])


AUDITED: dict[str, Sampler] = {
    "discrete_laplace": _laplace,
    "discrete_gaussian": _gaussian,
    "polya_share": _polya,
    "skellam_share": _skellam,
    "bernoulli_exp": _coins,
    "uniform_below": _uniform,
    "geometric": _geometric,
}
"""Samplers by their names in the protocol."""


def audit_samplers(trials: int, seed: int) -> Iterator[Check]:
    """Audit every sampler by draws, and those of shares also by the law of their sum.

    Args:
        trials: Draws of each.
        seed: Seed of the draws.
    """
    shares = {name: share_law(AUDITED[name]) for name in ("polya_share", "skellam_share")}
    heads = math.exp(-_RATE * _STEPS)
    counts = np.arange(1, 40 * _MEAN)
    laws = shares | {
        "discrete_laplace": discrete_laplace_law(_SCALE),
        "discrete_gaussian": discrete_gaussian_law(_SIGMA),
        "bernoulli_exp": Law(0, np.array([1 - heads, heads])),
        "uniform_below": Law(0, np.full(_LIMIT, 1 / _LIMIT)),
        "geometric": Law(1, (1 - 1 / _MEAN) ** (counts - 1.0) / _MEAN),
    }
    for name, sampler in AUDITED.items():
        yield drawn_check(name, sampler, laws[name], trials, seed)
    yield sum_check("polya_share", shares["polya_share"], laws["discrete_laplace"])
    yield sum_check("skellam_share", shares["skellam_share"], skellam_law(_VARIANCE))


def discrete_laplace_law(scale: float) -> Law:
    """Return P(x) = (1 − α) / (1 + α) · α^|x|, α = exp(−1/scale), where it exceeds 10⁻⁴⁰."""
    reach = math.ceil(95 * scale)
    ratio = math.exp(-1 / scale)
    values = np.arange(-reach, reach + 1)
    return Law(-reach, (1 - ratio) / (1 + ratio) * ratio ** np.abs(values).astype(np.float64))


def discrete_gaussian_law(sigma: float) -> Law:
    """Return P(x) proportional to exp(−x² / 2σ²), where it exceeds 10⁻⁴⁰."""
    reach = math.ceil(14 * sigma)
    masses = np.exp(-np.square(np.arange(-reach, reach + 1) / sigma) / 2)
    return Law(-reach, masses / masses.sum())


def skellam_law(variance: float) -> Law:
    """Return the law of the difference of two Poisson variables, where it exceeds 10⁻¹⁵."""
    from scipy.stats import skellam

    reach = math.ceil(9 * math.sqrt(variance))
    masses = skellam.pmf(np.arange(-reach, reach + 1), variance / 2, variance / 2)
    return Law(-reach, np.asarray(masses), doubt=1e-15)


def drawn_check(name: str, sampler: Sampler, law: Law, trials: int, seed: int) -> Check:
    """Check a sampler's draws against this law."""
    drawn = Counter(sampler(trials, np.random.default_rng(seed).bytes).tolist())
    outcomes: OutcomeLaw = {
        (value,): mass for value, mass in zip(law.values.tolist(), law.masses.tolist(), strict=True)
    }
    numbers: Counter[Outcome] = Counter({(value,): count for value, count in drawn.items()})
    return law_check(f"{name}: draws", numbers, outcomes)


def sum_check(name: str, share: Law, law: Law) -> Check:
    """Check that shares, as their sampler draws them, add up to this law."""
    total = share.times(_SHARES)
    first = min(total.first, law.first)
    last = max(total.values[-1], law.values[-1])
    both = np.zeros((2, last - first + 1))
    for row, each in zip(both, (total, law), strict=True):
        row[each.first - first : each.first - first + len(each.masses)] = each.masses
    distance = float(np.abs(both[0] - both[1]).sum()) / 2 + total.doubt
    return Check(
        f"{name}: the sum of {_SHARES} shares",
        f"within {_RESOLUTION:g} of its law",
        f"{distance:.1g}",
        distance <= _RESOLUTION,
        "total variation; shares as their sampler draws them, convolved",
        f"{power.EXACTLY} beyond {_RESOLUTION + total.doubt:.1g}",
    )
