"""Three ways to let owners with a higher budget give more: who votes, how often, how heavily.

Sections 5.2 to 5.4 and 6.2.2 of Mühl (2021). Its text has the ratio of two
owners' influence wrong ("the square"): what its tables come from is the ratio of budgets, R, and
for vanishing 1 : 2R² of how often they vote.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from earshot_protocol import checks
from earshot_protocol.voting.winners import ConfidentGNMax
from earshot_server.accounting.votes import personal
from earshot_server.accounting.votes.personal import Group
from earshot_studies.muehl.votes import QUARTERS, Ensembles

LOWER = 1.0
"""ε of the group with the lower budget."""


class Variant(enum.StrEnum):
    """How influence differs."""

    EQUAL = "equal"
    """It does not: everybody has the lower budget, which is the baseline."""
    UPSAMPLING = "upsampling"
    """What an owner with the higher budget gave is learned by more teachers."""
    VANISHING = "vanishing"
    """Teachers of owners with the lower budget sit most votings out."""
    WEIGHTING = "weighting"
    """Teachers of owners with the higher budget have heavier votes."""


@dataclass(frozen=True)
class Plan:
    """Who votes how, and what that makes of an owner's influence.

    Attributes:
        wanted: (copy, teacher) of each voter.
        high: whether the voter's owners have the higher budget, bool (voters,).
        weights: of each vote, float64 (voters,).
        voting: how often a voter of the lower and of the higher group votes.
        impact: Δ_o, what an owner of the lower and of the higher group can move at most.
        budgets: ε of both.
        mechanism: with noise and threshold for so many votes.
        factor: by which these are scaled.
    """

    wanted: tuple[tuple[int, int], ...]
    high: npt.NDArray[np.bool_]
    weights: npt.NDArray[np.float64]
    voting: tuple[float, float]
    impact: tuple[float, float]
    budgets: tuple[float, float]
    mechanism: ConfidentGNMax
    factor: float


def plan(
    variant: Variant,
    higher: float,
    quarters: int,
    ensembles: Ensembles,
    mechanism: ConfidentGNMax,
) -> Plan:
    """How an ensemble votes.

    Args:
        variant: the way.
        higher: ε of the higher budget, R times the lower one.
        quarters: of the owners, how many have the higher budget: 1 to 3.
        ensembles: who learns from what.
        mechanism: for an ensemble in which all are alike.

    Raises:
        InvalidParametersError: a higher budget that is lower, or another number of quarters.
    """
    checks.whole("quarters", quarters, 1, QUARTERS - 1)
    checks.between("higher", higher, LOWER)
    teachers = ensembles.teachers
    rich = ensembles.ends[quarters - 1]
    groups = (Group(LOWER, teachers - rich), Group(higher, rich))
    wanted = [(0, teacher) for teacher in range(teachers)]
    voting, impact = np.ones(2), np.ones(2)
    factor = 1.0
    match variant:
        case Variant.UPSAMPLING:
            impact = personal.copies(groups).astype(np.float64)
            least, most = (int(number) for number in impact)
            wanted += [(copy, teacher) for copy in range(1, least) for teacher in range(teachers)]
            wanted += [(copy, teacher) for copy in range(least, most) for teacher in range(rich)]
            factor = len(wanted) / teachers
        case Variant.VANISHING:
            voting = personal.frequencies(groups)
            factor = float(voting @ [teachers - rich, rich]) / teachers
        case Variant.WEIGHTING:
            impact = personal.weights(groups)
    high = np.array([teacher < rich for _, teacher in wanted])
    weights = np.ones(len(wanted))
    if variant is Variant.WEIGHTING:
        weights = np.where(high, impact[1], impact[0])
    budgets = (LOWER, LOWER if variant is Variant.EQUAL else higher)
    scaled = personal.scaled(mechanism, factor)
    assert isinstance(scaled, ConfidentGNMax)  # noqa: S101 - for the type checker
    return Plan(tuple(wanted), high, weights, _pair(voting), _pair(impact), budgets, scaled, factor)


def closed_form(base: float, plan: Plan, delta: float) -> float:
    """Labels by the noise alone, from those of the baseline; see `personal.expected_labels`.

    Args:
        base: labels of the baseline.
        plan: of voters; those who vote rarely pay only then.
        delta: δ.
    """
    members = np.bincount(plan.high, minlength=2).tolist()
    groups = tuple(map(Group, plan.budgets, members))
    often = np.array(plan.impact) * np.sqrt(plan.voting)
    return personal.expected_labels(base, groups, often, delta, plan.factor)


def participation(
    plan: Plan, queries: int, generator: np.random.Generator
) -> npt.NDArray[np.bool_]:
    """Who votes on which query, bool (queries, voters).

    Each group takes turns in one random order after another, so that the same number votes each
    time, give or take one, and all vote equally often. It depends on no data.
    """
    takes = np.ones((queries, len(plan.high)), dtype=bool)
    for group, often in zip((~plan.high, plan.high), plan.voting, strict=True):
        voters = np.flatnonzero(group)
        if often >= 1 or not len(voters):
            continue
        ends = np.floor(np.arange(queries + 1) * (len(voters) * often)).astype(np.int64)
        turns = np.concatenate(
            [generator.permutation(voters) for _ in range(int(ends[-1]) // len(voters) + 1)]
        )
        takes[:, voters] = False
        asked = np.repeat(np.arange(queries), np.diff(ends))
        takes[asked, turns[: ends[-1]]] = True
    return takes


def _pair(numbers: npt.NDArray[np.floating]) -> tuple[float, float]:
    lower, higher = numbers.tolist()
    return float(lower), float(higher)
