"""Limits that phones accept by default or by choice, and the phases that they refuse.

The server proposes, the phone decides. Both derive here whether a phase is acceptable: a phone with
its own limits before it answers, an operator with the defaults before a phase is started.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from datetime import date
from typing import Any, Self

from earshot_protocol.checks import between
from earshot_protocol.encoder_file import DIMENSIONS
from earshot_protocol.errors import InvalidParametersError, RefusedError
from earshot_protocol.phases.parameters import NOISE_CROWD, Parameters, check_once
from earshot_protocol.phases.plan import SecureSum
from earshot_protocol.privacy.accounting import (
    NOTHING,
    Expense,
    added_epsilon,
    composed_cost,
    epsilon_at,
    stated_delta,
)
from earshot_protocol.privacy.budgets import BUDGETS, LedgerBudget, Span, Standing
from earshot_protocol.privacy.ledger import Ledger
from earshot_protocol.privacy.local_mechanisms import COUNTED_RECORDINGS
from earshot_protocol.privacy.mechanisms import LEDGER_UNITS, Unit
from earshot_protocol.rules import Rule
from earshot_protocol.secure_sum.parameters import SumParameters
from earshot_protocol.shipped_encoders import DEFAULT_ENCODER

_SLACK = 1e-9
"""Relative room for rounding: thirty times 0.1 is at most 3."""

Refusals = Iterator[RefusedError]


@dataclass(frozen=True)
class Limits:
    """Limits of a phone; a refusal names the limit that caused it.

    Budgets are kept in two units: per recording, and, with `phone` in their names, for all that the
    phone contributes. ε is that of all releases together at the δ of the same budget
    (`epsilon_at`).

    Attributes:
        least_phones: Least number of phones in a phase.
        largest_phones: Largest number of phones in a phase, since a claimed crowd may not be real.
        largest_noise_crowd: Most phones whose noise a sum counts on: every phone adds at least the
            share of one in a crowd of this size, however large the server claims the crowd to be.
        largest_epsilon: Largest ε that one phase may spend.
        largest_delta: Largest δ that one phase may spend.
        largest_yearly_epsilon: Largest ε that all phases of 366 days may spend.
        largest_yearly_delta: Largest δ that all phases of 366 days may spend.
        largest_lifetime_epsilon: Largest ε that all phases together may spend.
        largest_lifetime_delta: Largest δ that all phases together may spend.
        largest_phone_epsilon: Largest ε that one phase may spend, for the phone.
        largest_phone_delta: Largest δ that one phase may spend, for the phone.
        largest_yearly_phone_epsilon: Largest ε that all phases of 366 days may spend, for the
            phone.
        largest_yearly_phone_delta: Largest δ that all phases of 366 days may spend, for the phone.
        largest_lifetime_phone_epsilon: Largest ε that all phases together may spend, for the phone.
        largest_lifetime_phone_delta: Largest δ that all phases together may spend, for the phone.
        largest_dropout: Largest ρ: every phone adds noise for those that may vanish.
        least_corrupted: Least γ, the fraction of corrupted phones to be safe against.
        least_threshold: Least number of shares that reconstruct a secret of this phone; with 1
            every neighbour would know it.
        least_statistical_security: Least σ of a secure sum, in bits.
        least_correctness: Least η of a secure sum, in bits.
        any_delta: Whether a phase may have a δ of 1/phones or more, which permits it to expose one
            of its phones.

    Raises:
        InvalidParametersError: A limit is negative or of the wrong type; or ε has a limit although
            that of δ is 1 or more, at which every ε is 0.
    """

    least_phones: int = 100
    largest_phones: int = 10**7
    largest_noise_crowd: int = NOISE_CROWD
    largest_epsilon: float = 3.0
    largest_delta: float = 1e-5
    largest_yearly_epsilon: float = 30.0
    largest_yearly_delta: float = 1e-4
    largest_lifetime_epsilon: float = 100.0
    largest_lifetime_delta: float = 1e-3
    largest_phone_epsilon: float = 2.0
    largest_phone_delta: float = 1e-5
    largest_yearly_phone_epsilon: float = 8.0
    largest_yearly_phone_delta: float = 1e-4
    largest_lifetime_phone_epsilon: float = 30.0
    largest_lifetime_phone_delta: float = 1e-3
    largest_dropout: float = 0.3
    least_corrupted: float = 0.05
    least_threshold: int = 2
    least_statistical_security: int = 40
    least_correctness: int = 20
    any_delta: bool = False

    def __post_init__(self) -> None:
        for limit in fields(Limits):
            value = getattr(self, limit.name)
            if not isinstance(limit.default, bool):
                between(limit.name, value, 0)
            elif not isinstance(value, bool):  # a text such as "no" is true
                raise InvalidParametersError(f"{limit.name}={value!r}: must be True or False")
        for budget in BUDGETS:
            epsilon, delta = getattr(self, budget.epsilon), getattr(self, budget.delta)
            if epsilon < math.inf and delta >= 1:
                raise InvalidParametersError(
                    f"{budget.delta}={delta:g} with {budget.epsilon}={epsilon:g}: a limit of ε "
                    "needs a δ below 1"
                )

    @classmethod
    def per_recording(cls, **limits: Any) -> Self:
        """Return limits that protect single recordings, with no limit on the cost per phone.

        Phases that cluster on each phone (the thesis's route) spend an ε of hundreds or thousands
        per phone: they do not hide a user with many recordings.

        Args:
            limits: Limits that differ from the defaults. With a limit of a phone's ε, the default
                limit of its δ applies as well.
        """
        unlimited = {
            rule.value: math.inf
            for budget in BUDGETS
            if budget.unit is Unit.PHONE and budget.epsilon not in limits
            for rule in (budget.epsilon, budget.delta)
        }
        return cls(**(unlimited | limits))

    def refusals_of_phase(
        self, parameters: Parameters, ledger: Ledger, today: date, recordings: int = 0
    ) -> Refusals:
        """Yield every reason for which a phone with these limits refuses a phase.

        Args:
            parameters: Parameters that the server proposes.
            ledger: Everything that the phone has spent in its life.
            today: Present day, in UTC.
            recordings: Number of recordings that the phone holds.

        Yields:
            An error for each rule: its name, the value and what would be accepted.
        """
        invalid = _why_invalid(Rule.PARAMETERS, "phase", parameters)
        if invalid is not None:  # nothing else can be computed from invalid parameters
            yield invalid
            return
        yield from self._at_least(parameters, "phones")
        yield from self._at_most(Rule.LARGEST_PHONES, "phones", parameters.phones)
        yield from self._at_most(Rule.LARGEST_DROPOUT, "dropout", parameters.dropout)
        counted_on = parameters.noise_survivors
        if counted_on is not None:  # else no guarantee depends on the crowd
            yield from self._at_most(
                Rule.LARGEST_NOISE_CROWD,
                "phones whose noise is counted on",
                counted_on,
            )
            yield from self._at_least(parameters, "corrupted")
        if parameters.honest_survivors < 1:
            yield RefusedError(
                f"dropout={parameters.dropout} and corrupted={parameters.corrupted} leave no "
                "honest phone to add noise; together they must stay below 1",
                Rule.PARAMETERS,
            )
        planned = parameters.expenses(1)
        # If a phone may take part with weight 0, a spent budget is no reason to refuse.
        paying = Ledger() if 0 in parameters.weights else ledger
        refused = list(self.refusals_of_cost(planned, paying, today))
        yield from refused
        yield from self._refusals_of_delta(planned, parameters.phones)
        booked = parameters.expenses(1, recordings)
        if not refused and booked != planned:
            for refusal in self.refusals_of_cost(booked, paying, today):
                yield RefusedError(
                    f"{refusal}, computed for at least {COUNTED_RECORDINGS} recordings, so as not "
                    "to reveal how many this phone has",
                    refusal.rule,
                )

    def weight(self, parameters: Parameters, ledger: Ledger, today: date) -> int:
        """Return the weight of a phone with these limits in a phase that it accepts.

        It is the largest that fits the phone's budgets. It depends on what the phone has spent,
        never on its recordings, and no sum reveals it.

        Args:
            parameters: Parameters of the phase, which the phone does not refuse.
            ledger: Everything that the phone has spent in its life.
            today: Present day, in UTC.

        Returns:
            One of `parameters.weights`.
        """
        for weight in parameters.weights[:-1]:
            if not any(self.refusals_of_cost(parameters.expenses(weight), ledger, today)):
                return weight
        return parameters.weights[-1]

    def refusals_of_cost(
        self,
        expenses: Sequence[Expense],
        ledger: Ledger,
        today: date,
        phase: bytes | None = None,
    ) -> Refusals:
        """Yield every reason for which a phone with these limits does not spend these expenses.

        Args:
            expenses: Expenses of what the phone would release, in every unit.
            ledger: Everything that the phone has spent in its life.
            today: Present day, in UTC.
            phase: Phase to which these expenses belong, if the phone has released something in it
                before.

        Yields:
            An error for each rule: its name, the value and what would be accepted.
        """
        for unit in LEDGER_UNITS:
            new = tuple(
                expense
                for expense in expenses
                if expense.release.unit is unit and expense.event != NOTHING
            )
            if not new:
                continue
            before = {
                Span.PHASE: () if phase is None else ledger.expenses_of(unit, phase=phase),
                Span.YEAR: ledger.expenses_of(unit, today=today),
                Span.LIFE: ledger.expenses_of(unit),
            }
            for budget in (each for each in BUDGETS if each.unit is unit):
                refused = list(self._refusals_of_budget(budget, before[budget.span], new))
                yield from refused
                if refused:  # a phase beyond its own budget is beyond the year's as well
                    break

    def standing(self, ledger: Ledger, today: date) -> tuple[Standing, ...]:
        """Return the spent and allowed ε in every unit: this year, and in the phone's life.

        Args:
            ledger: Everything that the phone has spent in its life.
            today: Present day, in UTC.
        """
        return tuple(
            self._standing(budget, ledger, today)
            for budget in BUDGETS
            if budget.span is not Span.PHASE
        )

    def _standing(self, budget: LedgerBudget, ledger: Ledger, today: date) -> Standing:
        epsilon, delta = getattr(self, budget.epsilon), getattr(self, budget.delta)
        if delta >= 1:  # no limit: state ε at the default one
            delta = getattr(Limits, budget.delta)
        year = today if budget.span is Span.YEAR else None
        spent = epsilon_at(delta, ledger.expenses_of(budget.unit, today=year))
        return Standing(budget.span, budget.unit, spent, epsilon, delta)

    def refusals_of_sum(self, parameters: Parameters, sum_parameters: SumParameters) -> Refusals:
        """Yield every reason for which a phone refuses a secure sum of a phase that it accepted.

        Args:
            parameters: Parameters of the phase.
            sum_parameters: Parameters that the server proposes for one of its sums.

        Yields:
            An error for each rule: its name, the value and what would be accepted.
        """
        for name in ("phones", "dropout", "corrupted"):
            value, agreed = getattr(sum_parameters, name), getattr(parameters, name)
            if value != agreed:
                yield RefusedError(
                    f"the sum has {name}={value}; its phase agreed on {agreed}", Rule.SUM
                )
        yield from self._at_least(
            sum_parameters, "statistical_security", "correctness", "threshold"
        )
        invalid = _why_invalid(Rule.SUM, "sum", sum_parameters)
        if invalid is not None:
            yield invalid

    def _refusals_of_delta(self, planned: Sequence[Expense], phones: int) -> Refusals:
        delta = stated_delta(each for each in planned if each.release.unit is Unit.RECORDING)
        if not (self.any_delta or delta * phones < 1):
            yield RefusedError(
                f"{Rule.DELTA}: δ of the phase={delta:g} with {phones} phones; below 1/phones is "
                "accepted",
                Rule.DELTA,
            )

    def _refusals_of_budget(
        self, budget: LedgerBudget, before: tuple[Expense, ...], new: tuple[Expense, ...]
    ) -> Refusals:
        """Yield why these expenses, after those before, exceed a budget."""
        epsilon, delta = getattr(self, budget.epsilon), getattr(self, budget.delta)
        if delta >= 1:  # then ε has no limit (`__post_init__`): any expense fits
            return
        together = before + new
        stated, reached = stated_delta(together), epsilon_at(delta, together)
        if any(each.release.epsilon == math.inf for each in new):  # even if a larger δ gives less:
            reached = math.inf  # the phase states no finite ε, and a ledger records what is stated
        fits = reached <= epsilon or math.isclose(reached, epsilon, rel_tol=_SLACK)
        if fits and stated <= delta:
            return
        over, spent = f"{budget.span.over} per {budget.unit}", ""
        if before:
            spent = f", with the {epsilon_at(delta, before):.6g} already spent"
        # A phase keeps the δ that it states; over phases only the composed cost counts.
        if stated > delta and (budget.span is Span.PHASE or not fits):
            yield from self._at_most(budget.epsilon, f"ε {over}{spent}", added_epsilon(together))
            yield from self._at_most(budget.delta, f"δ {over}", stated)
        if stated <= delta and not fits:
            # For a whole phase, state at least the ε of reports, which is at a smaller δ.
            whole = budget.span is Span.PHASE and not before
            told = max(reached, composed_cost(new).epsilon) if whole else reached
            yield from self._at_most(budget.epsilon, f"ε {over}{spent}", told)

    def _at_least(self, parameters: Parameters | SumParameters, *names: str) -> Refusals:
        for name in names:
            rule, value = Rule(f"least_{name}"), getattr(parameters, name)
            limit = getattr(self, rule)
            # The condition is negated so that not-a-number is refused.
            if not value >= limit:
                yield RefusedError(f"{rule}: {name}={value}; at least {limit} is accepted", rule)

    def _at_most(self, rule: Rule, what: str, value: float) -> Refusals:
        limit = getattr(self, rule)
        if not (value <= limit or math.isclose(value, limit, rel_tol=_SLACK)):
            yield RefusedError(f"{rule}: {what}={value:.10g}; at most {limit} is accepted", rule)


def refusals_of_change(agreed: Parameters, proposed: Parameters) -> Refusals:
    """Yield why a phone refuses parameters other than those that it agreed to."""
    if proposed != agreed:
        changed = ", ".join(
            name
            for name in (*proposed.__struct_fields__, "kind")
            if getattr(proposed, name) != getattr(agreed, name, None)
        )
        yield RefusedError(
            f"changed: {changed} of the phase; parameters stay as this phone agreed to them",
            Rule.CHANGED,
        )


def refusals_of_encoder(parameters: Parameters, name: str, dimensions: int) -> Refusals:
    """Yield why a phone with embeddings of this encoder refuses a phase that is about others.

    Args:
        parameters: Parameters that the server proposes.
        name: Name of the phone's encoder.
        dimensions: Dimensions of the encoder's embeddings.
    """
    reads = parameters.reads
    if reads is None:
        return
    if reads.encoder != name:
        yield RefusedError(
            f"encoder: the phase is about embeddings of '{reads.encoder}'; this phone's are of "
            f"'{name}'",
            Rule.ENCODER,
        )
    if reads.dimensions > dimensions:
        yield RefusedError(
            f"dimensions={reads.dimensions}: an embedding has {dimensions}", Rule.DIMENSIONS
        )


def default_refusals(parameters: Parameters) -> Refusals:
    """Yield every reason for which a default phone refuses a phase.

    A default phone has the default limits, the default encoder and an empty ledger.

    Args:
        parameters: Parameters of a phase that can run, see `Parameters.check_feasible`.
    """
    limits, plan = Limits(), parameters.plan()
    yield from refusals_of_encoder(parameters, DEFAULT_ENCODER, DIMENSIONS)
    yield from limits.refusals_of_phase(parameters, Ledger(), date.min)
    for part in plan.parts:
        if isinstance(part, SecureSum):
            proposed = parameters.sum_parameters(part, (1,))
            if isinstance(proposed, SumParameters):
                yield from limits.refusals_of_sum(parameters, proposed)
            return  # the others differ in their shapes and bounds alone


def _why_invalid(
    rule: Rule, what: str, parameters: Parameters | SumParameters
) -> RefusedError | None:
    try:
        check_once(parameters)
    except InvalidParametersError as error:
        return RefusedError(f"the {what}'s parameters are not valid: {error}", rule)
    return None
