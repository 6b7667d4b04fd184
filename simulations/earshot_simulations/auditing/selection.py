"""Private selection of the largest counts, audited by the exact law of what is selected.

Few counts have few outcomes, so the probability of every ordered selection is a finite sum. The
law is that of a method's definition; that phones' code draws from it is a check of its own.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from earshot_client.selection import top_centroids
from earshot_protocol.privacy.local_mechanisms import Selection, SelectionMethod
from earshot_protocol.privacy.mechanisms import Unit
from earshot_simulations.auditing import power
from earshot_simulations.auditing.findings import EXACT, Check, Method, Result, Role
from earshot_simulations.auditing.laws import Numbers
from earshot_simulations.auditing.losses import outcome_epsilon
from earshot_simulations.auditing.proofs import DELTA, finding

SELECTION = "selection"

Counts = tuple[int, ...]
Outcome = tuple[int, ...]
"""Which were selected, in order."""
OutcomeLaw = dict[Outcome, float]
Selector = Callable[[Counts], OutcomeLaw]
"""The law of what a method selects from some counts."""

_ROUNDING = 1e-13
"""Of a probability that is a sum of some thousand products."""
_REACH = 60
_EXACT = Method(EXACT, "exact: every selection from few counts and their neighbours")
UNLIKELY = 1e-9
"""A p-value below which drawn numbers are not of the law that they should be of."""


def selection_law(method: SelectionMethod, epsilon: float, repeats: int) -> Selector:
    """So many choices without replacement, as `top_centroids` defines them."""
    chances_of = _CHANCES[method]

    def law(counts: Counts) -> OutcomeLaw:
        everybody = tuple(range(len(counts)))
        return dict(_ordered(everybody, counts, lambda left: chances_of(left, epsilon), repeats))

    return law


def audit_selection(
    step: str, mechanism: Selection, candidates: int, trials: int, seed: int
) -> Iterator[Result]:
    """In every unit, exactly; and that phones' code selects as it is said to.

    Args:
        step: the private step.
        mechanism: of the selection.
        candidates: how many counts there are; more than three only take longer.
        trials: selections that are drawn.
        seed: of these.
    """
    few = max(mechanism.repeats + 1, min(candidates, 3))
    law = selection_law(mechanism.method, mechanism.epsilon, mechanism.repeats)
    case = f"{step} by {mechanism.method}, ε = {mechanism.epsilon:g}, {mechanism.repeats} of {few}"
    for unit, recordings in units_of(mechanism):
        one, two = worst_selection(law, few, recordings, 1 / mechanism.epsilon)
        measured = outcome_epsilon(one, two, DELTA, _ROUNDING)
        yield finding(SELECTION, case, unit, mechanism, measured, _EXACT)
    counts = tuple(range(few))
    generator = np.random.default_rng(seed)
    drawn = Counter(
        tuple(top_centroids(np.array(counts), mechanism, generator.bytes).tolist())
        for _ in range(trials)
    )
    yield law_check(
        SELECTION, f"{step} by {mechanism.method}: what is selected", drawn, law(counts)
    )


def worst_selection(
    law: Selector, candidates: int, recordings: int, scale: float
) -> tuple[Numbers, Numbers]:
    """Probabilities of outcomes on the worst of small counts, and on its worst neighbour.

    Neighbours have more of one count.

    Args:
        law: of the method.
        candidates: how many counts there are.
        recordings: by how many neighbours differ; they raise one count.
        scale: of the method's noise, by which one count trails or leads the others.
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


def law_check(
    subject: str,
    case: str,
    drawn: Counter[Outcome],
    law: OutcomeLaw,
    role: Role = Role.PRODUCT,
) -> Check:
    """Whether what was drawn can be of this law: Pearson's χ² over outcomes that are not rare."""
    from scipy.stats import chisquare

    trials = sum(drawn.values())
    common = [outcome for outcome, chance in law.items() if chance * trials >= 10]
    expected = np.array([trials * law[outcome] for outcome in common])
    observed = np.array([drawn[outcome] for outcome in common], dtype=float)
    rest = max(trials - expected.sum(), 1e-9)
    expected, observed = np.append(expected, rest), np.append(observed, trials - observed.sum())
    if rest < 10:  # too few to say anything, so they join the last
        expected = np.append(expected[:-2], expected[-2:].sum())
        observed = np.append(observed[:-2], observed[-2:].sum())
    p_value = float(chisquare(observed, expected).pvalue)
    impossible = sum(count for outcome, count in drawn.items() if not law.get(outcome))
    return Check(
        subject,
        case,
        f"the law of its definition (p ≥ {UNLIKELY:g})",
        f"p = {p_value:.2g}" + (f", {impossible} impossible" if impossible else ""),
        p_value >= UNLIKELY and not impossible,
        f"χ² test over {len(expected)} outcomes of {trials} draws",
        power.of_fit(len(expected), trials, UNLIKELY),
        role,
    )


def units_of(mechanism: Selection) -> tuple[tuple[Unit, int], ...]:
    """Each unit, and how many recordings neighbours differ by."""
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
    """P(the first of the largest noisy counts is this one), discrete Laplace noise on each."""
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
    """P(this one is drawn from those whose coins are heads); the largest count's always is."""
    heads = np.exp(-epsilon * (max(counts) - np.array(counts)))
    chances = np.zeros(len(counts))
    for coins in itertools.product((False, True), repeat=len(counts)):
        tossed = np.array(coins)
        if tossed.any():
            chance = float(np.prod(np.where(tossed, heads, 1 - heads)))
            chances[tossed] += chance / tossed.sum()
    return chances


def _exponential(counts: list[int], epsilon: float) -> Numbers:
    """Proportional to exp(ε · count)."""
    weights = np.exp(-epsilon * (max(counts) - np.array(counts)))
    chances: Numbers = weights / weights.sum()
    return chances


_CHANCES: dict[SelectionMethod, Callable[[list[int], float], Numbers]] = {
    SelectionMethod.NOISY_MAX: _noisy_max,
    SelectionMethod.PERMUTE_AND_FLIP: _permute_and_flip,
    SelectionMethod.GUMBEL: _exponential,
}


def _trailing(candidates: int, leads: Iterable[int]) -> Iterator[Counts]:
    """Counts among which the first, or the last, trails the others by so much, or leads them."""
    for lead, ahead in itertools.product(leads, (0, candidates - 1)):
        for one, others in ((0, lead), (lead, 0)):
            yield tuple(one if each == ahead else others for each in range(candidates))
