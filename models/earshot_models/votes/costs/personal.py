"""Personal budgets of data owners: sensitivities, and the number of labels they can pay for.

There are three ways to let owners spend differently (Mühl, *Personalizing Private Aggregation of
Teacher Ensembles*, Freie Universität Berlin 2021, chapter 5): a record serves several teachers, a
teacher sits out some votes, or votes have weights. All of them cost Δ_o² times a vote of weight
one, where Δ_o is the number of copies, 1 or 0, or the weight. Groups of equal budgets are public,
and who belongs to which must not depend on the data. `OneWinnerRule.divergences` with a group's
weight returns the group's cost for the actual votes, given the real noise and the weighted counts;
the noise's deviation over the weight replaces σ.

`OwnersAccount` decides which owners can still pay, by the cost of noise alone, λρ, of the answered
queries, which are public: a decision by data-dependent costs would leak information about the
votes. An owner's guarantee is its budget; `OwnersAccount.spent` depends on the votes, through which
queries were answered.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from earshot_models.votes.confident_check import ConfidentCheck
from earshot_protocol import checks
from earshot_protocol.arrays import Numbers
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.privacy.conversions import zcdp_epsilon, zcdp_rho

_LARGEST_DENOMINATOR = 100
"""Largest denominator of budget ratios where records are copied, to keep copies few."""
_EXACT = 1e-9


@dataclass(frozen=True)
class OwnerGroup:
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
                f"members={self.members}: must be at least 2, or the budget tells whose it is; "
                "give a smaller budget that others also have"
            )


def weights(groups: Sequence[OwnerGroup]) -> Numbers:
    """Return the weight ψ of each group: proportional to budgets, and one on average over owners.

    Sensitivities in the ratio R of two budgets use both up at about the same query (section 6.2.2,
    whose "square of the ratio" is that of costs).

    Args:
        groups: Groups of owners, at least one.
    """
    budgets, shares = _of(groups)
    found: Numbers = budgets / (budgets @ shares)
    return found


def copies(groups: Sequence[OwnerGroup]) -> npt.NDArray[np.int64]:
    """Return the number of teachers per record of each group: least integers in ratio.

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


def frequencies(groups: Sequence[OwnerGroup]) -> Numbers:
    """Return the frequency at which each group's teachers vote, at most 1, by ε².

    For budgets 1 and R it is 1 : 2R², which section 6.2.2 found to keep the costs of both in the
    ratio of budgets; the group with the least budget votes half as often as ε² alone would give.

    Args:
        groups: Groups of owners, at least one.
    """
    budgets, _ = _of(groups)
    relative = np.square(budgets / budgets.min()) * np.where(budgets > budgets.min(), 2.0, 1.0)
    found: Numbers = relative / relative.max()
    return found


def concentration(epsilon: npt.ArrayLike, delta: float) -> Numbers:
    """Return ρ(ε) = (√(L + ε) − √L)², L = ln 1/δ: the largest concentration for ε.

    It follows from the conversion λρ + L/(λ − 1).

    Args:
        epsilon: Values of ε, of any shape, not negative.
        delta: Value of δ for the conversion.
    """
    length = -math.log(checks.probability("delta", delta))
    found: Numbers = np.square(
        np.sqrt(length + np.asarray(epsilon, dtype=np.float64)) - math.sqrt(length)
    )
    return found


def expected_labels(
    base: float,
    groups: Sequence[OwnerGroup],
    sensitivities: npt.NDArray[np.number],
    delta: float,
    factor: float = 1.0,
) -> float:
    """Return the expected labels under these budgets, given `base` labels for ε = 1.

    The number is base · min_o ρ(ε_o) / (ρ(1) (Δ_o / factor)²): every label costs each owner the
    same at each order, up to the square of its sensitivity, and the first owner to use up its
    budget ends the labelling.

    Args:
        base: Labels if all owners have an ε of 1.
        groups: Groups of owners, at least one.
        sensitivities: Sensitivity Δ_o of each group: weights or copies.
        delta: Value of δ of all owners.
        factor: Factor by which noise was scaled.

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


class QueryCost(NamedTuple):
    """Concentrations ρ that a query costs a vote of weight one, by noise alone.

    Attributes:
        check: Concentration of the check, 1/2σ₁²; 0 without one.
        answer: Concentration of an answer, 1/σ².
    """

    check: float
    answer: float

    @classmethod
    def of(cls, deviation: float, check: ConfidentCheck | None) -> QueryCost:
        """Return the cost of Gaussian noise of deviation σ on every count, behind a check."""
        asked = 0.0 if check is None else 1 / (2 * check.deviation**2)
        return cls(asked, 1 / deviation**2)


def _of(groups: Sequence[OwnerGroup]) -> tuple[Numbers, Numbers]:
    """Return the groups' budgets, and their shares of the owners."""
    if not groups:
        raise InvalidParametersError("groups: must be at least one")
    members = np.array([group.members for group in groups], dtype=np.float64)
    return np.array([group.epsilon for group in groups]), members / members.sum()


class OwnersAccount:
    """Account of owners' budgets, spent query by query.

    An owner votes only if it can pay for both the check and an answer; then it is charged for what
    happened. An owner with too little left drops out, and the others continue.

    Args:
        budgets: Budget ε of each owner, (owners,), positive.
        delta: Value of δ of all owners.
        records: Records of the largest data set that is protected, if δ is to be compared with it.

    Raises:
        InvalidParametersError: A budget is not positive, or δ is not below 1/records, which would
            permit publishing a record.
    """

    def __init__(
        self, budgets: npt.NDArray[np.floating], delta: float, records: int | None = None
    ) -> None:
        self._budgets = np.asarray(budgets, dtype=np.float64)
        self.delta = checks.probability("delta", delta)
        if self._budgets.ndim != 1 or not len(self._budgets):
            raise InvalidParametersError("budgets: must be one number for every owner")
        if not (np.isfinite(self._budgets) & (self._budgets > 0)).all():
            raise InvalidParametersError(
                "budgets: must be positive and finite; leave out an owner without a budget, as it "
                "has no vote"
            )
        if records is not None and delta >= 1 / checks.whole("records", records):
            raise InvalidParametersError(
                f"delta={delta:g}: must be below one in {records} records, {1 / records:.3g}"
            )
        # Rounded down, so that converting back to ε never exceeds the budget.
        self._limits = np.array([_within(each, delta) for each in self._budgets.tolist()])
        self._spent = np.zeros(len(self._budgets))

    @property
    def spent(self) -> Numbers:
        """ε spent by each owner so far, (owners,)."""
        return np.array(
            [zcdp_epsilon(rho, self.delta) if rho else 0.0 for rho in self._spent.tolist()]
        )

    def willing(self, cost: QueryCost, weights: npt.NDArray[np.number]) -> Numbers:
        """Return the weights with which owners vote on the next query: zero for any unable to pay.

        Args:
            cost: Cost of the noise that is added, for any voters.
            weights: Weight of each owner's votes, (owners,), copies counted; not negative.

        Raises:
            InvalidParametersError: The weights have another shape, or are not finite or negative.
        """
        each = self._checked(weights)
        whole = sum(cost) * np.square(each)
        return np.where(self._spent + whole <= self._limits, each, 0.0)

    def pay(self, cost: QueryCost, weights: npt.NDArray[np.number], answered: bool) -> None:
        """Charge owners what a query cost: its check, and its answer if it was given.

        Args:
            cost: Cost of the noise that was added.
            weights: Weights with which owners voted, (owners,), as returned by `willing`.
            answered: Whether the teachers answered.

        Raises:
            InvalidParametersError: The weights are invalid, or an owner could not pay; nothing is
                charged.
        """
        each = self._checked(weights)
        after = self._spent + (cost.check + cost.answer * bool(answered)) * np.square(each)
        beyond = np.flatnonzero(after > self._limits)
        if len(beyond):
            raise InvalidParametersError(
                f"owner {beyond[0]} of budget {self._budgets[beyond[0]]:g} cannot pay for its vote "
                f"of weight {each[beyond[0]]:g}; must vote with what `willing` allows"
            )
        self._spent = after

    def _checked(self, weights: npt.NDArray[np.number]) -> Numbers:
        each = np.asarray(weights, dtype=np.float64)
        if each.shape != self._spent.shape or not (np.isfinite(each) & (each >= 0)).all():
            raise InvalidParametersError(
                f"weights: must be finite, at least 0, one for each of {len(self._spent)} owners"
            )
        return each


def _within(epsilon: float, delta: float) -> float:
    """Return the largest ρ that `zcdp_epsilon` turns into no more than this ε."""
    rho = zcdp_rho(epsilon, delta)
    while zcdp_epsilon(rho, delta) > epsilon:
        rho = math.nextafter(rho * (1 - 1e-12), 0.0)
    return rho
