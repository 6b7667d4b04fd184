"""Phases, ledgers and limits at random, each with what our policy says; extremes are among them.

Most limits lie near what a phase would spend: at it, one float beside it, and on both sides of the
room that limits have for rounding. Limits and parameters may be any number that a float or a
message holds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields
from datetime import date, timedelta
from random import Random
from typing import Any

import msgspec

from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.phases.acceptance import Limits
from earshot_protocol.phases.parameters import Parameters, check_once
from earshot_protocol.privacy.accounting import (
    Expense,
    Release,
    added_epsilon,
    epsilon_at,
    stated_delta,
)
from earshot_protocol.privacy.budgets import BUDGETS, LedgerBudget, Span
from earshot_protocol.privacy.events import Event, Pure, ZeroConcentrated
from earshot_protocol.privacy.ledger import Ledger
from earshot_protocol.privacy.mechanisms import LEDGER_UNITS
from earshot_protocol.wire import canonical
from support.random_offers import TODAY, Drawn

WHOLE = (-(2**63), -1, 0, 1, 2, 2**31, 2**53 - 1, 2**53, 2**53 + 1, 2**63, 2**64 - 1)
"""Whole numbers at the ends of what a message and a float hold."""
REAL = (0.0, -0.0, 5e-324, 2.3e-308, 1e-12, 1.0, 2.0**53 + 2, 1.7e308, math.inf, -math.inf, -1.0)
"""Numbers at the ends of what a float holds; beside them, `Drawn` draws not-a-number."""
ROOMY: dict[str, float] = {each.epsilon.value: 1e6 for each in BUDGETS} | {
    each.delta.value: 0.5 for each in BUDGETS
}
"""Budgets that hold nearly all, so that one other decides."""


@dataclass
class Case:
    """A phase that is proposed under some limits, and the verdict of our policy.

    Attributes:
        parameters: The phase's, in canonical form.
        limits: What differs from the defaults, as a map in MessagePack.
        verdict: Rules by which the phase is refused, all of them in order, and else the weight of
            the phone's part; or the name of the error that the limits are.
    """

    parameters: bytes
    limits: bytes
    verdict: dict[str, Any]


@dataclass
class Round:
    """Some cases of one phone: the entries of its ledger, and its day."""

    ledger: list[bytes]
    today: date
    cases: list[Case]


def rounds(seed: int, count: int, cases: int) -> Iterator[Round]:
    """The first rounds of a seed, of so many cases each."""
    for number in range(count):
        # S311: they are cases of tests.
        yield _Limited(Random(f"limits {seed}, {number}")).round(cases)


class _Limited(Drawn):
    """One round, drawn."""

    def round(self, cases: int) -> Round:
        ledger, entries = Ledger(), []
        for number, (expenses, day) in enumerate(self.history()):
            entries += ledger.append(number.to_bytes(16), expenses, day)
        return Round(entries, TODAY, [self.judged(ledger) for _ in range(cases)])

    def judged(self, ledger: Ledger) -> Case:
        """A case, whose phase is now and then one that no phone accepts."""
        self.fine = self.chance(0.8)
        parameters, _ = self.parameters()
        if self.chance(0.5):
            delta = self.between(1e-9, 1e-5)  # no round number, so that sums of it are rounded
            parameters = msgspec.structs.replace(parameters, delta=delta)
        if self.chance(0.1):
            parameters = self.odd(parameters)
        stated = self.limits_near(parameters, ledger)
        return Case(
            canonical(parameters),
            msgspec.msgpack.encode(stated),
            _verdict(parameters, stated, ledger),
        )

    # ------------------------------------------------------------------------------ parameters

    def odd(self, parameters: Parameters) -> Parameters:
        """The same parameters with one number at the end of its range."""
        numbers = {
            name: value
            for name in parameters.__struct_fields__
            if type(value := getattr(parameters, name)) in (int, float)
        }
        name = self.random.choice(sorted(numbers))
        ends = WHOLE if type(numbers[name]) is int else REAL
        return msgspec.structs.replace(parameters, **{name: self.random.choice(ends)})

    # ---------------------------------------------------------------------------------- ledger

    def history(self) -> Iterator[tuple[tuple[Expense, ...], date]]:
        """Expenses of former phases, each with its day; in many rounds there are none."""
        alike = self.chance(0.3)  # as thirty times 0.1
        kept: tuple[Expense, ...] | None = None
        for _ in range(self.random.choice((0, 0, 1, 2, 5, 30 if alike else 8))):
            ago = self.random.choice((0, 1, 200, 365, 366, 367, -1, -40))
            if kept is None or not alike:
                kept = self.expenses()
            yield kept, TODAY - timedelta(ago)

    def expenses(self) -> tuple[Expense, ...]:
        """Expenses of one phase, or now and then of numbers that none would have."""
        if self.chance(0.7):
            self.fine = True
            return tuple(self.parameters()[0].expenses(1))
        epsilon = self.random.choice((0.0, 5e-324, 1e-300, 0.1, 1.0, 1e300, 1.7e308))
        delta = self.random.choice((0.0, 5e-324, 1e-7, 1e-6, 1.0))
        event: Event = ZeroConcentrated(min(epsilon, 1e300)) if delta else Pure(epsilon)
        return tuple(
            Expense(Release("histogram", unit, epsilon, delta, "drawn"), event)
            for unit in LEDGER_UNITS
        )

    # ---------------------------------------------------------------------------------- limits

    def limits_near(self, parameters: Parameters, ledger: Ledger) -> dict[str, Any]:
        """Limits other than the defaults, most of them near what this phase is or spends."""
        limits: dict[str, Any] = dict(ROOMY) if self.chance(0.5) else {}
        if self.chance(0.3):
            limits["any_delta"] = self.chance(0.5)
        if self.chance(0.3):
            limits["least_phones"] = self.beside(float(parameters.phones), True)
        if self.chance(0.2):
            limits["largest_phones"] = self.beside(float(parameters.phones), True)
        if self.chance(0.2):
            limits["largest_dropout"] = self.beside(parameters.dropout, True)
        for budget in self.random.sample(BUDGETS, self.random.choice((0, 1, 1, 2, 6))):
            limits |= self.budget_near(budget, parameters, ledger)
        if self.chance(0.1):  # any number, whether it can be a limit or not
            names = [each.name for each in fields(Limits) if each.name in NAMES]
            ends = (*REAL, math.nan, *WHOLE)
            limits[self.random.choice(names)] = self.random.choice(ends)
        return limits

    def budget_near(
        self, budget: LedgerBudget, parameters: Parameters, ledger: Ledger
    ) -> dict[str, float]:
        """A limit of δ and one of ε at it."""
        together = ()
        if _is_valid(parameters):
            spent = {"today": TODAY} if budget.span is Span.YEAR else {}
            before = () if budget.span is Span.PHASE else ledger.expenses_of(budget.unit, **spent)
            new = (each for each in parameters.expenses(1) if each.release.unit is budget.unit)
            together = (*before, *new)
        stated = stated_delta(together)
        ends = (0.0, -0.0, 5e-324, 1e-300, 1e-12, 1e-5, 0.5, math.nextafter(1.0, 0.0))
        delta = self.beside(stated, True) if self.chance(0.5) else self.random.choice(ends)
        if delta >= 1:
            return {budget.delta.value: delta, budget.epsilon.value: math.inf}
        reached = self.random.choice((epsilon_at(delta, together), added_epsilon(together)))
        epsilon = self.beside(reached, False) if self.chance(0.8) else self.random.choice(REAL[:9])
        return {budget.delta.value: delta, budget.epsilon.value: epsilon}

    def beside(self, value: float, exact: bool) -> float:
        """A limit beside a value, at least 0: what is not `exact` is computed by logarithms."""
        room = 1e-9
        edge = value * (1 - room)
        near = (
            *(value, math.nextafter(value, math.inf), math.nextafter(value, 0.0)),
            *(value * (1 - part * room) for part in (0.5, 0.9, 1.1, 2.0)),
            *(value * (1 - 1e-6), value * (1 + 1e-6), value * 0.7),
            *((edge, math.nextafter(edge, 0.0), math.nextafter(edge, 1.0)) if exact else ()),
        )
        return max(0.0, self.random.choice(near))


NAMES = frozenset(("least_phones", "largest_phones", "largest_dropout", *ROOMY))
"""Limits that a phone without Bell et al.'s sum has as well."""


def _is_valid(parameters: Parameters) -> bool:
    try:
        check_once(parameters)
    except InvalidParametersError:
        return False
    return True


def _verdict(parameters: Parameters, stated: dict[str, Any], ledger: Ledger) -> dict[str, Any]:
    try:
        limits = Limits(**stated)
    except InvalidParametersError as error:
        return {"error": type(error).__name__}
    refused = [each.rule.value for each in limits.refusals_of_phase(parameters, ledger, TODAY)]
    return {
        "rules": refused,
        "weight": None if refused else limits.weight(parameters, ledger, TODAY),
    }
