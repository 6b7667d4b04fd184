"""Budgets of a phone: how much privacy it may spend in a phase, in a year and in its life."""

from __future__ import annotations

import enum
from typing import NamedTuple

from earshot_protocol.privacy.mechanisms import LEDGER_UNITS, Unit
from earshot_protocol.rules import Rule


class Span(enum.StrEnum):
    """Period that a budget is for."""

    PHASE = "phase"
    YEAR = "year"
    """366 days, `ledger.YEAR`."""
    LIFE = "life"

    @property
    def over(self) -> str:
        """Name of the period in a sentence."""
        return {"phase": "of the phase", "year": "of this year", "life": "of this phone's life"}[
            self
        ]


class LedgerBudget(NamedTuple):
    """One budget.

    Attributes:
        span: Period that the budget is for.
        unit: Unit in which the budget counts.
        epsilon: Name of the limit of ε.
        delta: Name of the limit of δ.
    """

    span: Span
    unit: Unit
    epsilon: Rule
    delta: Rule


class Standing(NamedTuple):
    """A phone's standing with one of its budgets.

    Attributes:
        span: Period that the budget is for.
        unit: Unit in which the budget counts.
        epsilon: Joint ε of everything that was spent, at `delta`; infinite where no bound is known.
        largest_epsilon: Limit of ε; infinite where there is none.
        delta: Limit of δ; the default one where there is none.
    """

    span: Span
    unit: Unit
    epsilon: float
    largest_epsilon: float
    delta: float

    @property
    def left(self) -> float:
        """ε that is left, at least 0; a little more can be spent, as releases compose."""
        return max(0.0, self.largest_epsilon - self.epsilon)


def _budget(span: Span, unit: Unit) -> LedgerBudget:
    prefix = {Span.PHASE: "", Span.YEAR: "yearly_", Span.LIFE: "lifetime_"}[span]
    whose = "phone_" if unit is Unit.PHONE else ""
    epsilon, delta = (Rule(f"largest_{prefix}{whose}{what}") for what in ("epsilon", "delta"))
    return LedgerBudget(span, unit, epsilon, delta)


BUDGETS = tuple(_budget(span, unit) for span in Span for unit in LEDGER_UNITS)
"""All budgets, those of shorter periods first."""
