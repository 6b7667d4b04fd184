"""Owners of data with budgets of their own: their sensitivities, and how many labels they pay for.

There are three ways to let owners spend differently (Mühl, *Personalizing Private Aggregation of
Teacher Ensembles*, Freie Universität Berlin 2021, chapter 5): a record serves several teachers, a
teacher sits out some votes, or votes have weights. All of them cost Δ_o² times a vote of weight
one, where Δ_o is the number of copies, 1 or 0, or the weight. Groups of equal budgets are public,
and who belongs to which must not depend on the data. `costs.query_divergences` with a group's
weight says what the group pays for the actual votes, given the real noise and the weighted counts;
the noise's deviation over the weight takes the place of σ.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from earshot_models.votes.confident_check import Check
from earshot_protocol import checks
from earshot_protocol.errors import InvalidParametersError

Numbers = npt.NDArray[np.float64]

_LARGEST_DENOMINATOR = 100
"""Largest denominator of ratios of budgets, where records are copied: nobody has 100 copies."""
_EXACT = 1e-9


class Gaussian(Protocol):
    """Curator's vote for one winner by Gaussian noise."""

    @property
    def check(self) -> Check | None:
        """Check before an answer; None for none."""

    @property
    def deviation(self) -> float:
        """Standard deviation of the answer's noise, σ, in votes."""


class Scalable(Protocol):
    """Curator's vote whose noise and threshold can grow with the votes."""

    def times(self: Own, factor: float) -> Own:
        """Return the same for a multiple of the votes."""


Own = TypeVar("Own", bound=Scalable)


@dataclass(frozen=True)
class Group:
    """Group of owners with equal budgets.

    Attributes:
        epsilon: Budget ε of each owner.
        members: Number of owners.

    Raises:
        InvalidParametersError: There is no budget, or there are fewer than two members: a budget
            that only one owner has identifies the owner.
    """

    epsilon: float
    members: int

    def __post_init__(self) -> None:
        checks.positive("epsilon", self.epsilon)
        if checks.whole("members", self.members) < 2:
            raise InvalidParametersError(
                f"members={self.members}: must be at least 2, or the budget identifies its owner; "
                "give the owner a smaller budget that others also have"
            )


def weights(groups: Sequence[Group]) -> Numbers:
    """Return the weight ψ of each group: proportional to budgets, and one on average over owners.

    Sensitivities in the ratio R of two budgets use both up at about the same query (section 6.2.2,
    whose "square of the ratio" is that of costs).

    Args:
        groups: Groups of owners, at least one.
    """
    budgets, shares = _of(groups)
    found: Numbers = budgets / (budgets @ shares)
    return found


def copies(groups: Sequence[Group]) -> npt.NDArray[np.int64]:
    """Return how many teachers T use a record of each group: the smallest proportional to budgets.

    Args:
        groups: Groups of owners, at least one.

    Raises:
            InvalidParametersError: The ratios of budgets are not small fractions.
    """
    budgets, _ = _of(groups)
    ratios = [
        Fraction(each / budgets.min()).limit_denominator(_LARGEST_DENOMINATOR) for each in budgets
    ]
    common = math.lcm(*(ratio.denominator for ratio in ratios))
    found = np.array([int(ratio * common) for ratio in ratios], dtype=np.int64)
    exact = np.abs(found / common * budgets.min() / budgets - 1).max() < _EXACT
    if not exact or found.max() > _LARGEST_DENOMINATOR:
        raise InvalidParametersError(
            f"budgets {budgets.tolist()}: must be in ratios of whole numbers up to "
            f"{_LARGEST_DENOMINATOR} for records to be copied; round them down, or take weights"
        )
    return found


def frequencies(groups: Sequence[Group]) -> Numbers:
    """Return how often a teacher of each group votes, at most always: as 2ε², where budgets differ.

    For budgets 1 and R that is 1 : 2R², which section 6.2.2 found to keep the costs of both in the
    ratio of budgets; the group with the least budget votes half as often as the square would say.

    Args:
        groups: Groups of owners, at least one.
    """
    budgets, _ = _of(groups)
    relative = np.square(budgets / budgets.min()) * np.where(budgets > budgets.min(), 2.0, 1.0)
    found: Numbers = relative / relative.max()
    return found


def scaled(aggregator: Own, factor: float) -> Own:
    """Return the aggregator for a multiple of the votes: σ and T grow with them.

    Args:
        aggregator: Aggregator for one vote of each owner.
        factor: Mean number of copies, or mean share of teachers that vote; 1 for weights.
    """
    return aggregator.times(checks.positive("factor", factor))


def concentration(epsilon: npt.ArrayLike, delta: float) -> Numbers:
    """Return ρ(ε) = (√(L + ε) − √L)², L = ln 1/δ: what noise alone may spend for ε.

    It follows from the conversion λρ + L/(λ − 1).

    Args:
        epsilon: ε, of any shape, not negative.
        delta: δ of the conversion.
    """
    length = -math.log(checks.probability("delta", delta))
    found: Numbers = np.square(
        np.sqrt(length + np.asarray(epsilon, dtype=np.float64)) - math.sqrt(length)
    )
    return found


def expected_labels(
    base: float,
    groups: Sequence[Group],
    sensitivities: npt.NDArray[np.number],
    delta: float,
    factor: float = 1.0,
) -> float:
    """Return the labels that owners with budgets pay for, if as many with equal ε pay for `base`.

    The number is base · min_o ρ(ε_o) / (ρ(1) (Δ_o / factor)²): every label costs each owner the
    same at each order, up to the square of its sensitivity, and the first owner to use up its
    budget ends the labelling.

    Args:
        base: Labels if all owners have an ε of 1.
        groups: Groups of owners, at least one.
        sensitivities: Sensitivity Δ_o of each group: weights or copies.
        delta: δ of all owners.
        factor: Factor by which noise was scaled (see `scaled`).

    Raises:
        InvalidParametersError: There are not as many groups as sensitivities, or a number is out of
            range.
    """
    budgets, _ = _of(groups)
    loud = np.asarray(sensitivities, dtype=np.float64) / checks.positive("factor", factor)
    if loud.shape != budgets.shape or not (loud > 0).all():
        raise InvalidParametersError("sensitivities: must be above 0, one for every group")
    spendable = concentration(budgets, delta) / concentration(1.0, delta)
    return float(checks.positive("base", base) * (spendable / loud**2).min())


def concentrations(aggregator: Gaussian) -> tuple[float, float]:
    """Return ρ of a check and of an answer, by noise alone, at weight one: 1/2σ₁² and 1/σ₂²."""
    check = aggregator.check
    asked = 0.0 if check is None else 1 / (2 * check.deviation**2)
    return asked, 1 / aggregator.deviation**2


def _of(groups: Sequence[Group]) -> tuple[Numbers, Numbers]:
    """Return the groups' budgets, and their shares of the owners."""
    if not groups:
        raise InvalidParametersError("groups: must be at least one")
    members = np.array([group.members for group in groups], dtype=np.float64)
    return np.array([group.epsilon for group in groups]), members / members.sum()
