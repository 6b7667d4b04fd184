"""Private selection of the largest counts, audited by the exact law of the selection.

A few counts have few outcomes, so the probability of every ordered selection is a finite sum. The
law follows from a method's definition; draws of phones' code are tested against it.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from earshot_client.selection import top_centroids
from earshot_protocol.arrays import Numbers
from earshot_protocol.privacy.local_mechanisms import Selection, SelectionMethod
from earshot_protocol.privacy.mechanisms import Unit
from earshot_simulations.auditing.findings import EXACT, Result, Technique
from earshot_simulations.auditing.losses import outcome_epsilon
from earshot_simulations.auditing.proofs import DELTA, finding
from earshot_simulations.auditing.sampling import Outcome, OutcomeLaw, law_check

Counts = tuple[int, ...]
Selector = Callable[[Counts], OutcomeLaw]
"""Function that returns the law of an ordered selection from some counts."""

_ROUNDING = 1e-13
"""Relative error of a probability that is a sum of a few thousand products."""
_REACH = 60
_EXACT = Technique(EXACT, "exact: every selection from few counts and their neighbours")


def selection_law(method: SelectionMethod, epsilon: float, repeats: int) -> Selector:
    """Return the law of choices without replacement, as `top_centroids` defines them."""
    chances_of = _CHANCES[method]

    def law(counts: Counts) -> OutcomeLaw:
        everybody = tuple(range(len(counts)))
        return dict(_ordered(everybody, counts, lambda left: chances_of(left, epsilon), repeats))

    return law


def audit_selection(
    step: str, mechanism: Selection, candidates: int, trials: int, seed: int
) -> Iterator[Result]:
    """Audit a selection in every unit, exactly, and check that phones' code follows its law.

    Args:
        step: Name of the private step.
        mechanism: Mechanism of the selection.
        candidates: Number of counts; more than three would only take longer.
        trials: Number of drawn selections.
        seed: Seed of the selections.
    """
    few = max(mechanism.repeats + 1, min(candidates, 3))
    law = selection_law(mechanism.method, mechanism.epsilon, mechanism.repeats)
    case = f"{step} by {mechanism.method}, ε = {mechanism.epsilon:g}, {mechanism.repeats} of {few}"
    for unit, recordings in units_of(mechanism):
        one, two = worst_selection(law, few, recordings, 1 / mechanism.epsilon)
        measured = outcome_epsilon(one, two, DELTA, _ROUNDING)
        yield finding(case, unit, mechanism, measured, _EXACT)
    counts = tuple(range(few))
    generator = np.random.default_rng(seed)
    drawn = Counter(
        tuple(top_centroids(np.array(counts), mechanism, generator.bytes).tolist())
        for _ in range(trials)
    )
    yield law_check(f"{step} by {mechanism.method}: what is selected", drawn, law(counts))


def worst_selection(
    law: Selector, candidates: int, recordings: int, scale: float
) -> tuple[Numbers, Numbers]:
    """Return the laws of outcomes on the worst small counts, and on their worst neighbour.

    Neighbours have a larger value of one count.

    Args:
        law: Law of the method.
        candidates: Number of counts.
        recordings: Recordings by which neighbours differ; they raise one count.
        scale: Scale of the method's noise, by which one count trails or leads the others.
    """
    leads = sorted({0, 1, *(round(scale * share) for share in (1, 2, 4, 8, 12))})
    pairs = [
        (counts, tuple(np.add(counts, np.eye(candidates, dtype=int)[at] * recordings).tolist()))
        for counts in _trailing(candidates, leads)
        for at in (0, candidates - 1)
    ]
    laws = {counts: law(counts) for pair in pairs for counts in pair}
    outcomes = sorted(next(iter(laws.values())))
    known = {
        counts: np.array([outcome_law[outcome] for outcome in outcomes])
        for counts, outcome_law in laws.items()
    }
    both = [(known[a], known[b]) for one, two in pairs for a, b in ((one, two), (two, one))]
    return max(both, key=lambda each: outcome_epsilon(each[0], each[1], DELTA, _ROUNDING).low)


def units_of(mechanism: Selection) -> tuple[tuple[Unit, int], ...]:
    """Return each unit, and the number of recordings by which neighbours differ."""
    return ((Unit.RECORDING, 1), (Unit.PHONE, mechanism.recordings))


def _ordered(
    left: tuple[int, ...], counts: Counts, chances_of: Callable[[list[int]], Numbers], repeats: int
) -> Iterator[tuple[Outcome, float]]:
    if not repeats:
        yield (), 1.0
        return
    for winner, chance in zip(left, chances_of([counts[i] for i in left]), strict=True):
        rest = tuple(each for each in left if each != winner)
        for outcome, probability in _ordered(rest, counts, chances_of, repeats - 1):
            yield (winner, *outcome), chance * probability


def _noisy_max(counts: list[int], epsilon: float) -> Numbers:
    """Return P(this is the first of the largest noisy counts), with discrete Laplace noise."""
    reach = math.ceil(_REACH / epsilon)
    values = np.arange(min(counts) - reach, max(counts) + reach + 1)
    ratio = math.exp(-epsilon)
    noise = values[None, :] - np.array(counts)[:, None]
    powers = np.exp(-epsilon * np.abs(noise))
    equal = (1 - ratio) / (1 + ratio) * powers
    tail = powers / (1 + ratio)
    at_most = np.where(noise < 0, tail, 1 - ratio * tail)
    below = np.where(noise <= 0, ratio * tail, 1 - tail)
    chances = np.empty(len(counts))
    for winner in range(len(counts)):
        others = [
            below[each] if each < winner else at_most[each]
            for each in range(len(counts))
            if each != winner
        ]
        chances[winner] = float(equal[winner] @ np.prod(others, axis=0)) if others else 1.0
    return chances


def _permute_and_flip(counts: list[int], epsilon: float) -> Numbers:
    """Return P(this is drawn among heads); the coin of the largest count always shows heads."""
    heads = np.exp(-epsilon * (max(counts) - np.array(counts)))
    chances = np.zeros(len(counts))
    for coins in itertools.product((False, True), repeat=len(counts)):
        tossed = np.array(coins)
        if tossed.any():
            chance = float(np.prod(np.where(tossed, heads, 1 - heads)))
            chances[tossed] += chance / tossed.sum()
    return chances


def _exponential(counts: list[int], epsilon: float) -> Numbers:
    """Return probabilities proportional to exp(ε · count)."""
    weights = np.exp(-epsilon * (max(counts) - np.array(counts)))
    chances: Numbers = weights / weights.sum()
    return chances


_CHANCES: dict[SelectionMethod, Callable[[list[int], float], Numbers]] = {
    SelectionMethod.NOISY_MAX: _noisy_max,
    SelectionMethod.PERMUTE_AND_FLIP: _permute_and_flip,
    SelectionMethod.GUMBEL: _exponential,
}


def _trailing(candidates: int, leads: Iterable[int]) -> Iterator[Counts]:
    """Yield counts whose first, or last, trails or leads the others by these leads."""
    for lead, ahead in itertools.product(leads, (0, candidates - 1)):
        for one, others in ((0, lead), (lead, 0)):
            yield tuple(one if each == ahead else others for each in range(candidates))
