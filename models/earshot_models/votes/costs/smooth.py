"""Local sensitivities of data-dependent costs, near the actual votes.

A cost that depends on votes reveals information about them. The change of a query's cost by one
teacher, at votes that are d teachers away from these, is bounded for every query, added up over
queries, and only then smoothed (`costs.releases`), as a teacher votes on all queries (Papernot et
al., ICLR 2018, appendix C; Nissim, Raskhodnikova and Smith, STOC 2007).
"""

from __future__ import annotations

import functools
import math

import numpy as np
import numpy.typing as npt

from earshot_models.votes.confident_check import ConfidentCheck
from earshot_models.votes.costs import dependent
from earshot_models.votes.costs.outcomes import check_divergence, outcome_divergence
from earshot_protocol import checks
from earshot_protocol.arrays import Numbers
from earshot_protocol.errors import InvalidParametersError

_BISECTIONS = 200
_POINTS = 2000
"""Points at which growth with q is checked."""
_ROUNDING = 1e-9


def local_sensitivities(
    deviation: float,
    check: ConfidentCheck | None,
    votes: npt.NDArray[np.number],
    voted: npt.NDArray[np.bool_],
    order: float,
    teachers: int,
    weight: float = 1.0,
) -> Numbers:
    """Return bounds on the local sensitivity of the cost, at votes d teachers away.

    Args:
        deviation: Standard deviation σ of the noise that was added to each count.
        check: Check before an answer, of the largest count; None for none.
        votes: Votes of every query that was asked, (queries, classes).
        voted: Queries that the teachers answered, bool (queries,); public, so the same for
            neighbours.
        order: Order λ of the divergence that is to be published.
        teachers: Number of teachers, which is the largest distance.
        weight: Weight of the vote that neighbours move.

    Returns:
        Local sensitivities for d = 0, 1, …, added up over queries, float64 (teachers + 1,).

    Raises:
        InvalidParametersError: Votes are invalid, the order is out of range, or for this σ the cost
            of an answer does not grow with q as smooth sensitivity requires (`check_growth`).
    """
    table = dependent.checked_votes(votes)
    count = checks.whole("teachers", teachers)
    total = np.zeros(count + 1)
    answered = table[np.asarray(voted, dtype=bool)]
    if len(answered):
        answers = _grown(deviation / weight, table.shape[1], order)
        # Names of classes do not matter, and many queries share the same counts.
        alike, times = np.unique(np.sort(answered, axis=1)[:, ::-1], axis=0, return_counts=True)
        total += times @ answers.sensitivities(alike, count, deviation, weight)
    if check is not None:
        checked = _check_table(check, order, count, weight)
        places = np.clip(np.rint(table.max(axis=1)).astype(np.int64), 0, count)
        total += _of_table(checked, places)
    return total


def exact_sensitivities(
    deviation: float,
    check: ConfidentCheck | None,
    votes: npt.NDArray[np.number],
    voted: npt.NDArray[np.bool_],
    order: float,
    teachers: int,
) -> Numbers:
    """Return local sensitivities of the exact cost of votes for two classes.

    Votes of n teachers for two classes are (v, n − v), and their neighbours are (v ± 1, n − v ∓ 1).
    So a table of the cost of each v from 0 to n gives the cost of votes d teachers away and of
    their neighbours. The check of the larger count is likewise a table. The largest step between
    two neighbours within d of these votes is their local sensitivity at distance d, exactly.

    Args:
        deviation: Standard deviation σ of the noise that was really added to each count.
        check: Check before an answer, of the largest count; None for none.
        votes: Votes of every query that was asked, (queries, 2), which add up to the teachers.
        voted: Queries that the teachers answered, bool (queries,).
        order: Order λ of the divergence that is to be published.
        teachers: Number of teachers.

    Returns:
        Local sensitivities for d = 0, 1, …, added up over queries, float64 (teachers + 1,).

    Raises:
        InvalidParametersError: There are not two classes, or counts are not whole or do not add up
            to `teachers`.
    """
    table = dependent.checked_votes(votes)
    count = checks.whole("teachers", teachers)
    if table.shape[1] != 2:
        raise InvalidParametersError(
            f"votes for {table.shape[1]} classes: exact costs can be published for two; take the "
            "data-dependent ones"
        )
    if (table != np.rint(table)).any() or (table.sum(axis=1) != count).any():
        raise InvalidParametersError(f"votes: must be whole numbers that add up to {count}")
    first = np.arange(count + 1.0)
    answers = outcome_divergence(np.stack([first, count - first], axis=1), deviation, [order])[:, 0]
    total = _of_table(answers, table[np.asarray(voted, dtype=bool), 0].astype(np.int64))
    if check is not None:
        larger = np.maximum(first, count - first)
        checked = check_divergence(larger, check.threshold, check.deviation, [order])[:, 0]
        total += _of_table(checked, table[:, 0].astype(np.int64))
    return total


@functools.lru_cache(maxsize=64)
def _grown(ratio: float, classes: int, order: float) -> _Answers:
    answers = _Answers(ratio, classes, order)
    answers.check_growth()
    return answers


class _Answers:
    """Cost of one GNMax answer as a function of q, and its local sensitivity.

    Moving one vote changes q to a value between B_L(q) and B_U(q) (Papernot et al. 2018,
    Proposition 22): q = (m − 1)/2 · erfc(x) is that of m − 1 equally trailing classes, whose gap a
    vote changes by at most two.

    Attributes:
        log_q0: Natural logarithm of the q from which noise alone costs less than Theorem 6.
        log_q1: Natural logarithm of B_L(q0).
    """

    def __init__(self, ratio: float, classes: int, order: float) -> None:
        self._ratio, self._order = checks.positive("ratio", ratio), order
        self._others = math.log(classes - 1)
        self._usual = float(dependent.independent_divergence(ratio, [order])[0])
        low, high = -1e6, math.log1p(-1 / classes)
        if not self.cost(np.array([low]))[0] < self._usual:
            raise InvalidParametersError(
                f"deviation over weight={ratio}: too small for a data-dependent cost at the order "
                f"{order}; must be larger, or the order smaller"
            )
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            if self.cost(np.array([middle]))[0] < self._usual:
                low = middle
            else:
                high = middle
        self.log_q0 = high
        self.log_q1 = float(self._moved(np.array([high]), -1)[0])

    def cost(self, log_q: Numbers) -> Numbers:
        """Return R(q), in the shape of q."""
        return dependent.dependent_divergence(log_q, self._ratio, [self._order])[:, 0]

    def sensitivity(self, log_q: Numbers) -> Numbers:
        """Return LS(q) = max(R(B_U) − R, R − R(B_L)), the same for all q from q1 to q0."""
        flat = (self.log_q1 <= log_q) & (log_q <= self.log_q0)
        here = np.where(flat, self.log_q1, log_q)
        cost = self.cost(here)
        up = self.cost(self._moved(here, 1)) - cost
        down = cost - self.cost(self._moved(here, -1))
        found: Numbers = np.maximum(np.maximum(up, down), 0.0)
        return found

    def check_growth(self) -> None:
        """Check conditions C5 and C6 of the paper: R grows with q, and so do both steps below q1.

        The step down keeps growing up to q0, where it ends at q1, so none in between is larger than
        the largest at either end. This is checked at some thousand points, not proven.

        Raises:
            InvalidParametersError: The conditions do not hold, so `sensitivities` would not be a
                bound.
        """
        logs = np.linspace(self.log_q0 - 700, self.log_q0, _POINTS)
        cost = self.cost(logs)
        up, down = (np.abs(self.cost(self._moved(logs, sign)) - cost) for sign in (1, -1))
        for grows in (cost, down, up[logs <= self.log_q1]):
            if (np.diff(grows) < -_ROUNDING * self._usual).any():
                raise InvalidParametersError(
                    f"deviation over weight={self._ratio}: too small at the order "
                    f"{self._order} for a data-dependent cost that can be published; must be "
                    "larger, or the order smaller"
                )

    def sensitivities(
        self, votes: Numbers, teachers: int, deviation: float, weight: float
    ) -> Numbers:
        """Return LS_d of each query, (queries, teachers + 1).

        Below q1, sensitivity grows with q, and q grows most by moving votes from the first class to
        the second; above q0 it falls with q, which falls most by the reverse moves. Between them it
        is largest, and a query that gets there stays there.

        Args:
            votes: Votes of each query in descending order, (queries, classes).
            teachers: Largest distance d.
            deviation: Standard deviation σ of the noise.
            weight: Weight of a vote.
        """
        plateau = self.sensitivity(np.array([self.log_q1]))[0]
        found = np.full((len(votes), teachers + 1), plateau)
        places, here = np.arange(len(votes)), votes.copy()
        logs = dependent.log_other_winner(here, deviation)
        wins = logs > self.log_q0
        for distance in range(teachers + 1):
            going = np.where(wins, logs > self.log_q0, logs < self.log_q1)
            places, here, logs, wins = places[going], here[going], logs[going], wins[going]
            if not len(places):
                break
            found[places, distance] = self.sensitivity(logs)
            step = np.where(wins, np.minimum(here[:, 1], weight), -weight)
            here[:, 0] += step
            here[:, 1] -= step
            here = -np.sort(-here, axis=1)
            logs = dependent.log_other_winner(here, deviation)
        return np.maximum.accumulate(found, axis=1)

    def _moved(self, log_q: Numbers, sign: int) -> Numbers:
        """Return ln of B_U (1) or B_L (−1): other classes gain or lose two votes on the first."""
        from scipy.special import log_ndtr, ndtri_exp

        # ½ erfc(x) = Φ(−√2 x); one vote of weight Δ adds Δ/σ to x.
        place = ndtri_exp(np.minimum(log_q - self._others, -1e-16))
        moved = log_ndtr(place + sign * math.sqrt(2) / self._ratio) + self._others
        bounds: Numbers = np.minimum(moved, 0.0)
        return bounds


def _check_table(check: ConfidentCheck, order: float, teachers: int, weight: float) -> Numbers:
    """Return the cost of the check of v votes, v = 0, 1, …, n."""
    numbers = np.arange(teachers + 1.0)
    logs = dependent.log_other_answer(numbers, check.threshold, check.deviation)
    ratio = math.sqrt(2) * check.deviation / weight
    return dependent.dependent_divergence(logs, ratio, [order])[:, 0]


def _of_table(costs: Numbers, places: npt.NDArray[np.int64]) -> Numbers:
    """Return LS_d of a table whose adjacent entries are costs of neighbours, summed over places.

    It is the largest step from any entry at most d places away.
    """
    steps: Numbers = np.abs(np.diff(costs))
    around: Numbers = np.maximum(np.append(steps, 0.0), np.append(0.0, steps))
    alike, times = np.unique(places, return_counts=True)
    found: Numbers = np.zeros((len(alike), len(costs)))
    for row, place in enumerate(alike.tolist()):
        np.maximum.at(found[row], np.abs(np.arange(len(costs)) - place), around)
    total: Numbers = times.astype(np.float64) @ np.maximum.accumulate(found, axis=1)
    return total
