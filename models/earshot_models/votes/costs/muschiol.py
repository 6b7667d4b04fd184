"""Costs that Muschiol (2021) claims for votes against thresholds, for comparison.

They are not used for accounting, and none of them holds: the most labels of a training sample, n =
3, do not bound what a newly trained teacher may answer (4.2.2); an adaptive threshold of votes
without noise jumps with a single one of them (Definition 11); and costs are converted at orders
that end at λ = 2 from below, which are sound but not the best. The costs that do hold are in
`costs.thresholds`.

Muschiol's σ_e and σ_c are variances of noise on the average of M teachers, times M: on sums of
votes they are variances σM; only with these can its tables be reproduced.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from earshot_models.votes.costs.costs import epsilon
from earshot_models.votes.costs.dependent import dependent_divergence, log_other_answer
from earshot_models.votes.costs.thresholds import log_other_labels
from earshot_models.votes.counts import middle_of_widest_gap
from earshot_protocol import checks
from earshot_protocol.arrays import Numbers
from earshot_protocol.errors import InvalidParametersError

MOST_LABELS = 3
"""Most labels n of a training sample: the claimed sensitivity to its absence (4.2.2)."""
WHY_NOT = f"a teacher that is trained anew may change all of its labels, not {MOST_LABELS} at most"
"""Reason why no printed cost holds."""
DELTA = 1e-8
"""Value of δ in all tables and figures."""
ORDERS = np.concatenate([np.arange(2.0, 33.0), np.geomspace(34.0, 512.0, 24)])
"""Orders λ; Table 5.4 shows their lower end, at λ = 2."""


def deviation(variance: float, teachers: int) -> float:
    """Return the deviation of the noise on a sum of votes, √(σM) for σ_e and σ_c, in votes.

    Raises:
        InvalidParametersError: The variance is not positive, or there are no teachers.
    """
    return math.sqrt(checks.positive("variance", variance) * checks.whole("teachers", teachers))


def claimed_threshold(
    sigma: float, orders: npt.ArrayLike, most_labels: int = MOST_LABELS
) -> Numbers:
    """Return nλ/2σ² for an answer against a threshold (Theorem 12).

    Args:
        sigma: Standard deviation σ of the noise, in votes.
        orders: Orders λ.
        most_labels: Most labels n of a training sample.
    """
    return np.asarray(orders, dtype=np.float64) * most_labels / (2 * sigma**2)


def claimed_check(sigma: float, orders: npt.ArrayLike) -> Numbers:
    """Return λ/2σ_c² for the check of each sample.

    According to the text, an answered sample pays nothing for its check (4.2.4); Table 5.4 agrees
    with this cost for every sample, answered or not, which holds for one noise on the largest sum.
    """
    return claimed_threshold(sigma, orders, 1)


def raw_thresholds(votes: npt.NDArray[np.number]) -> Numbers:
    """Return the middle of the widest gap between sorted votes, the upper of equal ones.

    This is Definition 11. It depends on votes without noise: for (50, 25, 0, 0, 0) it is 37.5, for
    (50, 26, 0, 0, 0) it is 13.

    Raises:
        InvalidInputError: Votes are on fewer than two labels.
    """
    return middle_of_widest_gap(votes)


class PrintedRule(NamedTuple):
    """Setting of Table 5.4.

    Attributes:
        threshold: Threshold th_e as a share of the teachers; None for the adaptive one.
        check: Threshold th_c of the check as a share of the teachers; None for no check.
        noise: Noise σ_e on the sums, as Muschiol defines it.
        check_noise: Noise σ_c of the check, as Muschiol defines it.
        teachers: Number of teachers M.
    """

    threshold: float | None
    check: float | None = None
    noise: float = 0.3
    check_noise: float = 0.6
    teachers: int = 50

    @property
    def sigma(self) -> float:
        """Standard deviation of the noise on sums, in votes."""
        return deviation(self.noise, self.teachers)

    @property
    def check_sigma(self) -> float:
        """Standard deviation of the noise on the largest sum, in votes."""
        return deviation(self.check_noise, self.teachers)

    def thresholds(self, votes: npt.NDArray[np.number]) -> Numbers:
        """Return the threshold of each query, in votes: public, or from the votes themselves."""
        if self.threshold is None:
            return raw_thresholds(votes)
        return np.full(len(votes), self.threshold * self.teachers)

    def log_q(self, votes: npt.NDArray[np.number]) -> Numbers:
        """Return ln of 1 − ∏ Φ(|sᵢ − th|/σ), (queries,) (Theorem 13)."""
        table = np.asarray(votes, dtype=np.float64)
        return log_other_labels(table - self.thresholds(table)[:, None], 0.0, self.sigma)


class ClaimedCost(NamedTuple):
    """Claimed cost of some queries.

    Attributes:
        dependent: Value of ε by the votes.
        independent: Value of ε by the noise alone.
        q: Mean of q over answered queries.
    """

    dependent: float
    independent: float
    q: float


def claimed_answers(
    rule: PrintedRule, votes: npt.NDArray[np.number], orders: npt.ArrayLike = ORDERS
) -> Numbers:
    """Return the claimed cost of each answer by its votes, (queries, orders) (Theorems 11 to 14).

    The cost is that of Theorem 11 with ε_j = nμ_j/2σ², μ₂ = √(2σ² ln(1/q)/n), μ₁ = μ₂ + 1 and the
    conditions of 2.3.4 (Theorem 11 and 4.2.3 exchange indices); nλ/2σ² where that is less or the
    conditions fail.

    Raises:
        InvalidInputError: The threshold is adaptive and the votes are on one label.
        InvalidParametersError: An order is 1 or less.
    """
    ratio = rule.sigma * math.sqrt(2.0 / MOST_LABELS)
    return dependent_divergence(rule.log_q(votes), ratio, orders)


def claimed_checks(
    rule: PrintedRule, votes: npt.NDArray[np.number], orders: npt.ArrayLike = ORDERS
) -> Numbers:
    """Return the claimed cost of each check by its votes, (queries, orders); zeros without one.

    Raises:
        InvalidParametersError: An order is 1 or less.
    """
    chosen = np.atleast_1d(np.asarray(orders, dtype=np.float64))
    if rule.check is None:
        return np.zeros((len(votes), len(chosen)))
    most = np.asarray(votes, dtype=np.float64).max(axis=1)
    logs = log_other_answer(most, rule.check * rule.teachers, rule.check_sigma)
    return dependent_divergence(logs, math.sqrt(2.0) * rule.check_sigma, chosen)


def claim(
    rule: PrintedRule, votes: npt.NDArray[np.number], answered: npt.NDArray[np.bool_] | None = None
) -> ClaimedCost:
    """Return ε of some queries as in Table 5.4, at δ = 10⁻⁸ and orders from 2 on.

    Args:
        rule: Setting of the table.
        votes: Votes s of every query that was asked, (queries, labels).
        answered: Queries that passed the check, bool (queries,); all by default.

    Raises:
        InvalidInputError: The threshold is adaptive and the votes are on one label.
        InvalidParametersError: No query was answered.
    """
    passed = np.ones(len(votes), dtype=np.bool_) if answered is None else answered
    if not passed.any():
        raise InvalidParametersError("answered: must be at least one query")
    answers = claimed_answers(rule, votes[passed]).sum(axis=0)
    by_votes = answers + claimed_checks(rule, votes).sum(axis=0)
    return ClaimedCost(
        epsilon(by_votes, ORDERS, DELTA, classic=True)[0],
        independent(rule, len(votes), int(passed.sum())),
        float(np.exp(rule.log_q(votes[passed])).mean()),
    )


def independent(rule: PrintedRule, asked: int, answered: int) -> float:
    """Return ε of this many queries whatever their votes, as in Table 5.4.

    Args:
        rule: Setting of the table.
        asked: Queries that paid for a check, if there is one.
        answered: Queries among them that were answered.
    """
    check = None if rule.check is None else rule.check_sigma
    return claimed_epsilon(rule.sigma, answered, check, asked, DELTA)


def claimed_epsilon(
    sigma: float, answered: int, check_sigma: float | None, asked: int, delta: float
) -> float:
    """Return ε of this many answers and checks, at orders from 2 on.

    Args:
        sigma: Standard deviation of the noise on sums, in votes.
        answered: Queries that were answered.
        check_sigma: Standard deviation of the noise on the largest sum, in votes; None if no check.
        asked: Queries that were checked.
        delta: Value of δ at which ε is stated.

    Raises:
        InvalidParametersError: δ is not between 0 and 1.
    """
    total = answered * claimed_threshold(sigma, ORDERS)
    if check_sigma is not None:
        total = total + asked * claimed_check(check_sigma, ORDERS)
    return epsilon(total, ORDERS, delta, classic=True)[0]
