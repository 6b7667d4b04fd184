"""How many labels an ensemble gives until the first owner's own budget is spent."""

from __future__ import annotations

import enum
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from earshot_models.teachers.ensemble import vote_counts
from earshot_protocol.voting.winners import NONE
from earshot_server.accounting.votes import costs
from earshot_server.accounting.votes.costs import Method
from earshot_studies.muehl.plan import Plan, participation

Numbers = npt.NDArray[np.float64]

THEIR_ORDERS = np.arange(2.0, 51.0)
"""Those Mühl (2021) tries."""
_FIRST = 500
"""Queries whose exact cost is worked out at first; twice as many while the budgets last."""


class Accounting(enum.StrEnum):
    """By which an owner's cost is worked out."""

    THEIRS = "theirs"
    """Theorem 6 of Papernot et al. (2018), σ over Δ_o; integer orders; the classic conversion."""
    SOUND = "sound"
    """Exact laws of outcomes in both directions, of checks and answers; the tight conversion."""
    PUBLIC = "public"
    """By the noise alone: it looks at answers, not at votes, so it may stop."""


@dataclass(frozen=True)
class Answered:
    """What a voting process gave.

    Attributes:
        queries: places of the samples that were asked, in this order, int64 (asked,).
        winners: a class or `NONE` each, int64 (asked,).
        spent: the largest ε of an owner of the lower, and of the higher group.
    """

    queries: npt.NDArray[np.int64]
    winners: npt.NDArray[np.int64]
    spent: tuple[float, float]

    @property
    def labels(self) -> int:
        """Samples that were answered."""
        return int((self.winners != NONE).sum())


@dataclass(frozen=True)
class _Voting:
    """All that was said in one voting process, before anybody counts its cost.

    Attributes:
        plan: of it.
        queries: places of samples, (queries,).
        counts: weighted votes, (queries, classes).
        winners: (queries,).
        takes: who took part, bool (queries, voters); None if all did.
    """

    plan: Plan
    queries: npt.NDArray[np.int64]
    counts: Numbers
    winners: npt.NDArray[np.int64]
    takes: npt.NDArray[np.bool_] | None


def answered(
    plan: Plan,
    votes: npt.NDArray[np.integer],
    classes: int,
    delta: float,
    accountings: tuple[Accounting, ...],
    generator: np.random.Generator,
) -> dict[Accounting, Answered]:
    """One voting process: the same draws, stopped where each accounting says.

    Samples are asked in random order. Whoever exceeds a budget by the next query ends it before.

    Args:
        plan: who votes how.
        votes: what each of its voters answers, (voters, samples).
        classes: how many there are.
        delta: δ of all budgets.
        accountings: by which to stop.
        generator: of the order, of who vanishes and of the noise.
    """
    voting = _voting(plan, votes, classes, generator)
    return {accounting: _stopped(voting, accounting, delta) for accounting in accountings}


def _voting(
    plan: Plan, votes: npt.NDArray[np.integer], classes: int, generator: np.random.Generator
) -> _Voting:
    order = generator.permutation(votes.shape[1])
    takes = None
    if min(plan.voting) < 1:
        takes = participation(plan, len(order), generator)
        counts = vote_counts(votes[:, order], classes, takes.T * plan.weights[:, None])
    else:
        counts = vote_counts(votes, classes, plan.weights)[order]
    winners = plan.mechanism.winners(counts, generator.bytes)
    return _Voting(plan, order, counts, winners, takes)


def _stopped(voting: _Voting, accounting: Accounting, delta: float) -> Answered:
    asked, most = 0, len(voting.queries)
    known = _FIRST if accounting is Accounting.SOUND else most
    while True:
        known = min(known, most)
        each = _realized(voting, accounting, known)
        asked = _last(voting, each, accounting, delta)
        if asked < known or known == most:
            break
        known *= 2
    spent = _spent(voting, each, asked, accounting, delta)
    return Answered(voting.queries[:asked], voting.winners[:asked], spent)


def _realized(voting: _Voting, accounting: Accounting, known: int) -> tuple[Numbers, Numbers]:
    """What the first queries cost an owner of each group who takes part, (queries, orders)."""
    voted = voting.winners[:known] != NONE
    found: list[Numbers] = []
    for impact in voting.plan.impact:
        if found and impact == voting.plan.impact[0]:
            found.append(found[0])
            continue
        method = {
            Accounting.THEIRS: Method.DEPENDENT,
            Accounting.SOUND: Method.EXACT,
            Accounting.PUBLIC: Method.INDEPENDENT,
        }[accounting]
        counts, mechanism = voting.counts[:known], voting.plan.mechanism
        orders = _orders(accounting)
        each = costs.query_divergences(mechanism, counts, orders, method, impact, voted=voted)
        answers = each.answered
        if accounting is Accounting.SOUND and _scattered(voting.plan) and counts.shape[1] > 2:
            # Votes of one owner's several teachers may move to several classes, and no proof says
            # that all to one is worst. Of two classes there is but one way to move.
            answers = costs.query_divergences(
                mechanism, counts, orders, Method.INDEPENDENT, impact, voted=voted
            ).answered
        found.append(each.asked + answers * voted[:, None])
    return found[0], found[1]


def _scattered(plan: Plan) -> bool:
    """Whether one owner moves several whole votes."""
    return len(plan.wanted) > len({teacher for _, teacher in plan.wanted})


def _last(
    voting: _Voting, each: tuple[Numbers, Numbers], accounting: Accounting, delta: float
) -> int:
    """The most queries that leave every owner within its budget, by bisection."""
    fits, exceeds = 0, len(each[0]) + 1
    while exceeds - fits > 1:
        middle = (fits + exceeds) // 2
        spent = _spent(voting, each, middle, accounting, delta)
        if all(e <= budget for e, budget in zip(spent, voting.plan.budgets, strict=True)):
            fits = middle
        else:
            exceeds = middle
    return fits


def _spent(
    voting: _Voting,
    each: tuple[Numbers, Numbers],
    asked: int,
    accounting: Accounting,
    delta: float,
) -> tuple[float, float]:
    """The largest ε of an owner of either group after so many queries."""
    if not asked:
        return 0.0, 0.0
    found = []
    for group, cost in zip((~voting.plan.high, voting.plan.high), each, strict=True):
        if voting.takes is None:
            owners = cost[:asked].sum(axis=0, keepdims=True)
        else:
            owners = voting.takes[:asked, group].T.astype(np.float64) @ cost[:asked]
        classic = accounting is Accounting.THEIRS
        spent = costs.epsilons(owners, _orders(accounting), delta, classic=classic)
        found.append(float(spent.max()))
    return found[0], found[1]


def _orders(accounting: Accounting) -> Numbers:
    return costs.COARSE if accounting is Accounting.SOUND else THEIR_ORDERS
