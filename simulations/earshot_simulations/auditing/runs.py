"""The best of several private runs, audited by the exact law of the released outcome.

K runs, K geometric and secret, release the outcome with the largest score. If F(s) is the
probability that one run scores at most s, the best scores at most s with probability
γF / (1 − (1 − γ)F), γ = 1 / E[K]. The proof holds for any runs of the declared privacy, so the
worst of these are measured, with the scores that reveal most.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator

import numpy as np

from earshot_protocol.arrays import Numbers
from earshot_protocol.privacy.coins import geometric
from earshot_protocol.privacy.local_mechanisms import BestGaussianLloyd, BestLaplaceLloyd
from earshot_protocol.privacy.mechanisms import Unit
from earshot_simulations.auditing.findings import EXACT, Result, Technique
from earshot_simulations.auditing.losses import outcome_epsilon
from earshot_simulations.auditing.proofs import DELTA, finding
from earshot_simulations.auditing.sampling import Outcome, OutcomeLaw, law_check

Runs = BestLaplaceLloyd | BestGaussianLloyd

_CELLS = 4000
_DEVIATIONS = 9.0
_ROUNDING = 1e-12
_EXACT = Technique(EXACT, "exact: the law of the best of a geometric number of worst runs")


def audit_runs(step: str, mechanism: Runs, draws: int, seed: int) -> Iterator[Result]:
    """Audit runs in every unit, and check the law of their number.

    Args:
        step: Name of the private step.
        mechanism: Mechanism of the runs.
        draws: Draws of the number of runs.
        seed: Seed of the draws.
    """
    case = f"{step}, ε = {mechanism.epsilon:g}, {mechanism.runs} runs on average"
    for unit, recordings in ((Unit.RECORDING, 1), (Unit.PHONE, mechanism.recordings)):
        p, q = worst_runs(mechanism, recordings)
        measured = outcome_epsilon(p, q, DELTA, _ROUNDING)
        yield finding(case, unit, mechanism, measured, _EXACT)
    generator = np.random.default_rng(seed)
    drawn: Counter[Outcome] = Counter(
        (geometric(mechanism.runs, generator.bytes),) for _ in range(draws)
    )
    stop = 1 / mechanism.runs
    counts = range(1, 100 * mechanism.runs)
    law: OutcomeLaw = {(count,): stop * (1 - stop) ** (count - 1) for count in counts}
    yield law_check(f"{step}: the number of runs", drawn, law)


def worst_runs(mechanism: Runs, recordings: int) -> tuple[Numbers, Numbers]:
    """Return the laws of the outcome of the worst runs, on two neighbours.

    Args:
        mechanism: Mechanism of the runs.
        recordings: Recordings by which the neighbours differ.
    """
    if isinstance(mechanism, BestLaplaceLloyd):
        pairs = _pure_runs(mechanism.epsilon * recordings / 3)
    else:
        pairs = _gaussian_runs(math.sqrt(2 * mechanism.rho) * recordings)
    best = [
        (best_of(one, mechanism.runs), best_of(two, mechanism.runs))
        for pair in pairs
        for one, two in (pair, pair[::-1])
    ]
    return max(best, key=lambda each: outcome_epsilon(each[0], each[1], DELTA, _ROUNDING).low)


def best_of(chances: Numbers, runs: int) -> Numbers:
    """Return the law of the outcome of the best of several runs.

    Args:
        chances: Probabilities of the outcomes of one run, by ascending score.
        runs: Mean number of runs.
    """
    stop = 1 / runs
    # Added up from the highest score, which avoids cancellation.
    above = np.append(np.cumsum(chances[::-1])[::-1][1:], 0.0)
    stays, at_least = stop + (1 - stop) * above, stop + (1 - stop) * (above + chances)
    released: Numbers = stop * chances / (stays * at_least)
    return released


def _pure_runs(epsilon: float) -> Iterator[tuple[Numbers, Numbers]]:
    """Yield laws of three outcomes of a run that is ε-private and no more.

    On one data set the middle score is likelier by e^ε, and the highest less likely by as much.
    """
    ratio = math.exp(-epsilon)
    for rare, high in itertools.product(np.geomspace(1e-5, 0.3, 12), np.geomspace(1e-3, 0.6, 12)):
        one = np.array([0.0, rare, high * ratio])
        two = np.array([0.0, rare * ratio, high])
        one[0], two[0] = 1 - one.sum(), 1 - two.sum()
        if min(one[0], two[0]) > 0 and ratio <= one[0] / two[0] <= 1 / ratio:
            yield one, two


def _gaussian_runs(shift: float) -> Iterator[tuple[Numbers, Numbers]]:
    """Yield laws of a number with Gaussian noise, whose score rises or falls with it.

    The number is discretized, which is post-processing.
    """
    from scipy.stats import norm

    edges = np.linspace(-_DEVIATIONS, shift + _DEVIATIONS, _CELLS)
    edges[0], edges[-1] = -np.inf, np.inf

    def cells(mean: float) -> Numbers:
        # Differences of the smaller tail; those of the other would cancel.
        below, above = norm.cdf(edges - mean), norm.sf(edges - mean)
        return np.asarray(np.where(edges[1:] <= mean, np.diff(below), -np.diff(above)))

    one, two = cells(0.0), cells(shift)
    yield one, two
    yield one[::-1], two[::-1]
