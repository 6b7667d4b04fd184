"""Account of what each owner has spent, and who can still pay: none spends more than its budget.

Costs here are those of noise alone, λρ, of what was answered, which everybody knows who has the
answers. Stopping by what votes really cost would reveal something of the votes. An owner is
promised its budget; `spent` depends on the votes, through which queries were answered.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from earshot_models.votes.costs.personal import Gaussian, concentrations
from earshot_protocol import checks
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.privacy.conversions import zcdp_epsilon, zcdp_rho

Numbers = npt.NDArray[np.float64]


class OwnersAccount:
    """Account of owners' budgets, spent query by query.

    An owner is asked only if it can pay for the check and for an answer; then it pays for what
    happened. An owner with too little left drops out, and the others go on.

    Args:
        budgets: Budget ε of each owner, (owners,), positive.
        delta: δ of all owners.
        records: Records of the largest data set that is protected, if δ is to be compared with it.

    Raises:
        InvalidParametersError: A budget is not positive, or δ is not below one in all records:
            that would permit publishing a record.
            that a record could be published.
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
        # Rounded down, so that turning back into ε never exceeds the budget.
        self._limits = np.array([_within(each, delta) for each in self._budgets.tolist()])
        self._spent = np.zeros(len(self._budgets))

    @property
    def spent(self) -> Numbers:
        """ε spent by each owner so far, (owners,)."""
        return np.array(
            [zcdp_epsilon(rho, self.delta) if rho else 0.0 for rho in self._spent.tolist()]
        )

    def willing(self, aggregator: Gaussian, weights: npt.NDArray[np.number]) -> Numbers:
        """Return the weights with which owners vote on the next query: zero for any unable to pay.

        Args:
            aggregator: Aggregator with the noise that is added, no matter who votes.
            weights: Weight of each owner's votes, (owners,), copies counted; not negative.

        Raises:
            InvalidParametersError: The weights have another shape, or are not finite or negative.
        """
        each = self._checked(weights)
        whole = sum(concentrations(aggregator)) * np.square(each)
        return np.where(self._spent + whole <= self._limits, each, 0.0)

    def pay(self, aggregator: Gaussian, weights: npt.NDArray[np.number], answered: bool) -> None:
        """Charge owners what a query cost: its check, and its answer if it was given.

        Args:
            aggregator: Aggregator with the noise that was added.
            weights: Weights with which owners voted, (owners,), as returned by `willing`.
            answered: Whether the teachers answered.

        Raises:
            InvalidParametersError: The weights are of another kind, or an owner could not pay;
                then nothing is charged.
        """
        each = self._checked(weights)
        check, answer = concentrations(aggregator)
        after = self._spent + (check + answer * bool(answered)) * np.square(each)
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
