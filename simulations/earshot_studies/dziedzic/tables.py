"""Queries answered by rules with several winners: Tables 3, 11, 12, 14, 15; Figures 1–4, 8–10.

Of Private Multi-Winner Voting (Dziedzic et al., PoPETs 2023), on mixtures of real sounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earshot_studies.dziedzic.contests import (
    ByLabel,
    BySet,
    Contest,
    answered,
    binary,
    clipped,
    powerset,
)
from earshot_studies.dziedzic.multi_winner import (
    BINARY,
    CLIPPED,
    EPSILON,
    POWERSET,
    RULES,
    VOC_DELTA,
    XRAY_DELTA,
    Ensemble,
    Study,
    best_noise,
    ensembles,
)
from earshot_studies.dziedzic.scores import scores
from earshot_studies.dziedzic.sets import limited_votes
from earshot_studies.kit.mixtures.ensembles import Aim
from earshot_studies.kit.outcome import Row

SURE, TORN, FEW = "high consensus", "low consensus", "ten teachers"
ENSEMBLES = {
    SURE: (Aim.F1, 50, VOC_DELTA),
    TORN: (Aim.BALANCED, 50, XRAY_DELTA),
    FEW: (Aim.BALANCED, 10, XRAY_DELTA),
}
"""Beside Pascal VOC, CheXpert and PadChest: thresholds, teachers, δ."""

LABELS = (1, 2, 3, 5, 8, 11, 14, 16, 20)
SIGMAS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 18, 20, 24, 28)

_VOC = dict(zip(LABELS, (5464, 5442, 3437, 2398, 1543, 1190, 888, 461, 427), strict=True))
_VOC_SETS = dict(zip(LABELS, (5464, 5464, 3416, 2040, 1192, 702, 417, 94, 78), strict=True))
_XRAY = {1: 988, 2: 898, 3: 399, 5: 320, 8: 145, 11: 201}
_XRAY_SETS = {1: 988, 2: 872, 3: 674, 5: 582, 8: 200, 11: 152}
PRINTED: dict[tuple[str, str], dict[int, int]] = {
    (SURE, BINARY): _VOC,
    (SURE, POWERSET): _VOC_SETS,
    (TORN, BINARY): _XRAY,
    (TORN, POWERSET): _XRAY_SETS,
}
"""Queries of Tables 11 and 12, by labels."""
_TABLE_3 = {1: 0, 2: 6, 3: 13, 5: 31, 8: 81, 10: 113, 15: 239, 20: 403}
_TABLE_14 = {1e-5: 170, 1e-6: 158, 1e-7: 151, 1e-8: 139}
_TABLE_15 = {1: 111, 2: 99, 3: 81, 4: 78, 5: 78, 20: 78}

_CHUNK = 50
"""Queries whose costs are worked out at first; then twice as many, and so on."""
_SET_LABELS = (11, 20)
"""Of how many labels the law of the set that wins is worked out, which takes long."""
_MADE_UP = 500
"""Queries of Figure 1."""
_TUNED = 500
"""Validation mixtures by whose costs noise is chosen."""


@dataclass(frozen=True)
class Budget:
    """What may be spent."""

    epsilon: float
    delta: float


def measure(study: Study) -> list[Row]:
    """All rows of all seeds, one after the other; of a seed that was measured before, as kept."""
    return [row for seed in study.reported for row in study.kept("queries", seed, _of_seed)]


def _of_seed(study: Study, seed: int) -> list[Row]:
    rows: list[Row] = []
    made = ensembles(study.mixtures(seed), ENSEMBLES)
    for done, ensemble in enumerate(made, start=1):
        for row in _of_ensemble(ensemble, seed):
            rows.append({"seed": seed, "ensemble": ensemble.name, **row})
        study.progress(f"elections, seed {seed + 1}", done, len(made))
    return rows


def _of_ensemble(ensemble: Ensemble, seed: int) -> Iterator[Row]:
    yield from _by_labels(ensemble, seed)
    yield from _by_noise(ensemble, seed)
    if ensemble.name == SURE:
        yield from _by_budget(ensemble, seed)
        yield from _by_size_of_set(ensemble, seed)


def _by_labels(ensemble: Ensemble, seed: int) -> Iterator[Row]:
    """Tables 11 and 12, Figures 3, 9 and 10."""
    budget = Budget(EPSILON, ensemble.delta)
    for labels in LABELS:
        most = ensemble.most_noise(labels, seed)
        for rule in RULES:
            contest = ensemble.contest(rule, ensemble.queries, labels)
            sigma = _chosen(ensemble, rule, labels, most[rule], budget)
            printed = PRINTED.get((ensemble.name, rule), {}).get(labels, "")
            row = _row("labels", rule, labels, sigma, budget, printed)
            laws = rule != POWERSET or (ensemble.name == SURE and labels in _SET_LABELS)
            row |= _counts(contest, sigma, most[rule], budget, laws)
            count = int(row["claimed"])
            row |= {"gap": contest.gap()} | _right(ensemble, contest, labels, sigma, count, seed)
            yield row


def _chosen(ensemble: Ensemble, rule: str, labels: int, most: float, budget: Budget) -> float:
    """σ with which the rule answers most by what is claimed, on validation mixtures."""
    own = ensemble.contest(rule, ensemble.validation, labels).rows(0, _TUNED)
    return best_noise(own.claimed, most, budget.epsilon, budget.delta)


def _by_noise(ensemble: Ensemble, seed: int) -> Iterator[Row]:
    """Figures 2, 4 and 14, of all labels but for sets, of which there are eleven labels."""
    budget = Budget(EPSILON, ensemble.delta)
    cast = ensemble.queries.ballots
    contests: dict[str, tuple[int, Contest]] = {
        BINARY: (20, binary(cast)),
        CLIPPED: (20, clipped(cast, ensemble.tau)),
        POWERSET: (11, powerset(cast[:, :, :11])),
    }
    taus = {norm: ensemble.least_tau(norm) for norm in (1, 2)}
    for sigma in SIGMAS:
        for rule, (labels, contest) in contests.items():
            row = _row("noise", rule, labels, float(sigma), budget, "")
            row |= _counts(contest, float(sigma), float(sigma), budget, rule == BINARY)
            yield row | _right(ensemble, contest, labels, float(sigma), 1000, seed)
        for norm, name in ((2, "L2-DI"), (1, "L1-DI")):
            whole = clipped(cast[:, :1], taus[norm], norm)
            claimed = answered(whole.independently_claimed(sigma), budget.epsilon, budget.delta)
            seen = answered(whole.counted(sigma), budget.epsilon, budget.delta)
            row = _row("noise", name, 20, float(sigma), budget, "")
            yield row | _figures(claimed, "", "", seen, float(sigma))


def _by_budget(ensemble: Ensemble, seed: int) -> Iterator[Row]:
    """Tables 3 (ε) and 14 (δ): Binary voting on all labels, with the noise of one ε."""
    labels = 20
    contest = ensemble.contest(BINARY, ensemble.queries, labels)
    most = ensemble.most_noise(labels, seed)[BINARY]
    budget = Budget(EPSILON, ensemble.delta)
    sigma = _chosen(ensemble, BINARY, labels, most, budget)
    for epsilon, printed in _TABLE_3.items():
        own = Budget(float(epsilon), ensemble.delta)
        row = _row("epsilon", BINARY, labels, sigma, own, printed)
        yield row | _counts(contest, sigma, most, own)
    for delta, printed in _TABLE_14.items():
        own = Budget(16.0, delta)
        row = _row("delta", BINARY, labels, sigma, own, printed)
        yield row | _counts(contest, sigma, most, own)


def _by_size_of_set(ensemble: Ensemble, seed: int) -> Iterator[Row]:
    """Table 15: sets of at most v labels, all with the noise that suits all sets."""
    labels, budget = 20, Budget(EPSILON, ensemble.delta)
    most = ensemble.most_noise(labels, seed)[POWERSET]
    sigma = _chosen(ensemble, POWERSET, labels, most, budget)
    for size, printed in _TABLE_15.items():
        own = ensemble.queries
        contest = BySet(limited_votes(own.ballots, own.probabilities, size))
        row = _row("set size", POWERSET, labels, sigma, budget, printed) | {"most": size}
        yield row | _counts(contest, sigma, sigma, budget, laws=False)


def _row(table: str, rule: str, labels: int, sigma: float, budget: Budget, printed: Any) -> Row:
    return {
        "table": table,
        "rule": rule,
        "labels": labels,
        "most": "",
        "epsilon": budget.epsilon,
        "delta": budget.delta,
        "sigma": sigma,
        "theirs": printed,
        "claimed": "",
        "exactly": "",
        "exactly_best": "",
        "counted": "",
        "counted_sigma": "",
        "gap": "",
        **dict.fromkeys(("ACC", "BAC", "AUC", "MAP"), ""),
    }


def _counts(contest: Contest, sigma: float, most: float, budget: Budget, laws: bool = True) -> Row:
    """Queries answered: as claimed; by exact outcomes, at this σ and at the largest; by counts."""
    claimed = first_queries(contest, lambda part: part.claimed(sigma), budget)
    exactly: int | str = ""
    best: int | str = ""
    if laws:
        exactly = best = first_queries(contest, lambda part: part.exactly(sigma), budget)
        if most > sigma and isinstance(contest, ByLabel):
            best = max(best, first_queries(contest, lambda part: part.exactly(most), budget))
    seen = answered(contest.counted(most), budget.epsilon, budget.delta)
    return _figures(claimed, exactly, best, seen, most)


def _figures(claimed: int, exactly: Any, best: Any, seen: int, most: float) -> Row:
    return {
        "claimed": claimed,
        "exactly": exactly,
        "exactly_best": best,
        "counted": seen,
        "counted_sigma": most,
    }


def first_queries(
    contest: Contest, cost: Callable[[Contest], NDArray[np.float64]], budget: Budget
) -> int:
    """How many queries are answered, one after the other, before the budget is spent.

    Args:
        contest: of all queries.
        cost: divergences (queries, orders) of some.
        budget: ε and δ.
    """
    spent: NDArray[np.float64] | None = None
    start, chunk = 0, _CHUNK
    while True:
        if start >= len(contest):
            return len(contest)
        divergences = np.array(cost(contest.rows(start, start + chunk)))
        chunk *= 2
        if spent is not None:
            divergences[0] += spent
        count = answered(divergences, budget.epsilon, budget.delta)
        if count < len(divergences):
            return start + count
        spent, start = divergences.sum(axis=0), start + len(divergences)


def _right(
    ensemble: Ensemble, contest: Contest, labels: int, sigma: float, count: int, seed: int
) -> Row:
    """Measures of the answered queries; of hard answers AUC is BAC, as in the paper's tables."""
    if count < 1:
        return {}
    truth = ensemble.queries.part.truth[:count, :labels]
    if not (truth.any(axis=0) & ~truth.all(axis=0)).any():
        return {}
    generator = np.random.default_rng([seed, labels, int(10 * sigma)])
    found = scores(truth, contest.rows(0, count).winners(sigma, generator))
    return dict(found.row())


def figure_1() -> Sequence[Row]:
    """Queries of Figure 1 at σ = 7, k = 20: random ballots at ε = 20, unanimous zeros at ε = 2."""
    generator = np.random.default_rng(1)
    even = (generator.random((50, _MADE_UP, 20)) < 0.5).astype(np.int8)
    rows = []
    for name, ballots, epsilon in (("random", even, 20.0), ("all zeros", 0 * even, 2.0)):
        budget = Budget(epsilon, VOC_DELTA)
        for rule, contest in ((BINARY, binary(ballots)), (POWERSET, powerset(ballots))):
            row = _row(f"figure 1, {name}", rule, 20, 7.0, budget, "")
            rows.append(row | _counts(contest, 7.0, 7.0, budget))
    return rows


def data_independent() -> Sequence[Row]:
    """F.9: what τ voting answers whatever the votes, at the paper's own parameters."""
    rows = []
    for name, tau, sigma, delta, printed in (
        ("F.9, Pascal VOC", 1.8, 9.0, VOC_DELTA, 123),
        ("F.9, MIMIC", 3.0, 10.0, XRAY_DELTA, 48),
    ):
        budget = Budget(EPSILON, delta)
        labels = 20 if delta == VOC_DELTA else 11
        contest = clipped(np.zeros((50, 1, labels), np.int8), tau)
        row = _row(name, "L2-DI", labels, sigma, budget, printed)
        claimed = answered(contest.independently_claimed(sigma), EPSILON, delta)
        seen = answered(contest.counted(sigma), EPSILON, delta)
        rows.append(row | _figures(claimed, "", "", seen, sigma))
    return rows
