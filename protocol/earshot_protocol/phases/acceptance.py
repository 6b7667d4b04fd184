"""What a phone accepts: the published limits, and what they refuse.

The server proposes, the phone decides. Both derive here whether a phase is acceptable: a phone
with its own limits before it answers, an operator with the defaults before a phase is started.
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
    composed_cost,
    epsilon_at,
    stated_delta,
)
from earshot_protocol.privacy.budgets import BUDGETS, Budget, Span, Standing
from earshot_protocol.privacy.ledger import Ledger
from earshot_protocol.privacy.mechanisms import LEDGER_UNITS, Unit
from earshot_protocol.rules import Rule
from earshot_protocol.secure_sum.parameters import SumParameters
from earshot_protocol.shipped_encoders import DEFAULT_ENCODER

_SLACK = 1e-9
"""Relative room for rounding: thirty times 0.1 is at most 3."""
COUNTED_RECORDINGS = 1000
"""So many a phone reckons with at least before it makes a release private itself, where the phase
names fewer: what such a release costs a phone grows with the number that it holds, and its answer
would tell that number to a server that tries one phase after the other."""

Refusals = Iterator[RefusedError]


@dataclass(frozen=True)
class Limits:
    """The limits that a phone keeps; each is named in the refusal that it causes.

    Budgets are kept in two units: per recording, and, with `phone` in their names, for all that the
    phone contributes. ε is what all releases together come to at the δ of the same budget
    (`epsilon_at`).

    Attributes:
        least_phones: phones of a phase, at least.
        largest_phones: phones of a phase, at most: a claimed crowd hides what a real one would.
        largest_noise_crowd: phones on whose noise a sum counts, at most: every phone adds at least
            one part in so many of it, whatever crowd it is told of.
        largest_epsilon: ε that one phase may spend.
        largest_delta: δ that one phase may spend.
        largest_yearly_epsilon: ε that all phases of 366 days may spend.
        largest_yearly_delta: δ that all phases of 366 days may spend.
        largest_lifetime_epsilon: ε that all phases together may spend.
        largest_lifetime_delta: δ that all phases together may spend.
        largest_phone_epsilon: as `largest_epsilon`, for the phone.
        largest_phone_delta: as `largest_delta`, for the phone.
        largest_yearly_phone_epsilon: as `largest_yearly_epsilon`, for the phone.
        largest_yearly_phone_delta: as `largest_yearly_delta`, for the phone.
        largest_lifetime_phone_epsilon: as `largest_lifetime_epsilon`, for the phone.
        largest_lifetime_phone_delta: as `largest_lifetime_delta`, for the phone.
        largest_dropout: ρ, at most; every phone adds noise for those that may vanish.
        least_corrupted: γ, the fraction of corrupted phones to be safe against, at least.
        least_threshold: shares that must meet before a secret of this phone's is known, at least;
            with 1 every neighbour would know it.
        least_statistical_security: σ of a secure sum, in bits, at least.
        least_correctness: η of a secure sum, in bits, at least.
        any_delta: whether a phase may have a δ of 1/phones and more, with which it may expose one
            of its phones and keep its word.

    Raises:
        InvalidParametersError: a limit is negative or not a number; or ε has one and its δ has
            none below 1, at which every ε is 0.
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
            between(limit.name, getattr(self, limit.name), 0)
        for budget in BUDGETS:
            epsilon, delta = getattr(self, budget.epsilon), getattr(self, budget.delta)
            if epsilon < math.inf and delta >= 1:
                raise InvalidParametersError(
                    f"{budget.delta}={delta:g} with {budget.epsilon}={epsilon:g}: a limit of ε "
                    "needs a δ below 1"
                )

    @classmethod
    def per_recording(cls, **limits: Any) -> Self:
        """Limits of a phone that protects single recordings, whatever it costs the phone itself.

        Phases that cluster on each phone (the thesis's route) spend hundreds or thousands per
        phone: whoever has many recordings is not hidden by them.

        Args:
            limits: that are not the default ones. A limit of a phone's ε brings its δ along.
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
        """Everything for which a phone with these limits refuses a phase.

        Args:
            parameters: what the server proposes.
            ledger: what the phone has spent in its life.
            today: in UTC.
            recordings: that the phone holds.

        Yields:
            An error for each rule: its name, the value and what would be accepted.
        """
        invalid = _why_invalid(Rule.PARAMETERS, "phase", parameters)
        if invalid is not None:  # of what is not valid, nothing else can be computed
            yield invalid
            return
        yield from self._at_least(parameters, "phones")
        yield from self._at_most(Rule.LARGEST_PHONES, "phones", parameters.phones)
        yield from self._at_most(
            Rule.LARGEST_NOISE_CROWD,
            "phones whose noise is counted on (noise_crowd)",
            parameters.noise_survivors,
        )
        yield from self._at_most(Rule.LARGEST_DROPOUT, "dropout", parameters.dropout)
        yield from self._at_least(parameters, "corrupted")
        if parameters.honest_survivors < 1:
            yield RefusedError(
                f"dropout={parameters.dropout} and corrupted={parameters.corrupted} leave no "
                "honest phone to add noise; together they must stay below 1",
                Rule.PARAMETERS,
            )
        planned = parameters.expenses(1)
        # Where a phone that has spent its budget sits out unseen, what it has spent is no reason.
        paying = Ledger() if 0 in parameters.weights else ledger
        refused = list(self.refusals_of_cost(planned, paying, today))
        yield from refused
        yield from self._refusals_of_delta(planned, parameters.phones)
        counted = max(recordings, COUNTED_RECORDINGS)
        if not refused and parameters.expenses(1, counted) != planned:
            for refusal in self.refusals_of_cost(parameters.expenses(1, counted), paying, today):
                yield RefusedError(
                    f"{refusal}, reckoned for {counted} recordings, lest it tell how many this "
                    "phone has",
                    refusal.rule,
                )

    def weight(self, parameters: Parameters, ledger: Ledger, today: date) -> int:
        """How often the part of a phone with these limits counts in a phase that it accepts.

        The most that its budgets hold. It follows from what the phone has spent and from nothing
        that it has heard, and no sum tells it.

        Args:
            parameters: of the phase, without refusals.
            ledger: what the phone has spent in its life.
            today: in UTC.

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
        """Everything for which a phone with these limits does not spend so much.

        Args:
            expenses: what it would release, in every unit.
            ledger: what it has spent in its life.
            today: in UTC.
            phase: to which these expenses belong, if it has released something in it before.

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
                if refused:  # a phase that is too much by itself is not also too much for a year
                    break

    def standing(self, ledger: Ledger, today: date) -> tuple[Standing, ...]:
        """What is spent, and what may be, in every unit: of this year, and of the phone's life.

        Args:
            ledger: what the phone has spent in its life.
            today: in UTC.
        """
        return tuple(
            self._standing(budget, ledger, today)
            for budget in BUDGETS
            if budget.span is not Span.PHASE
        )

    def _standing(self, budget: Budget, ledger: Ledger, today: date) -> Standing:
        epsilon, delta = getattr(self, budget.epsilon), getattr(self, budget.delta)
        if delta >= 1:  # no limit: at the usual one
            delta = getattr(Limits, budget.delta)
        year = today if budget.span is Span.YEAR else None
        spent = epsilon_at(delta, ledger.expenses_of(budget.unit, today=year))
        return Standing(budget.span, budget.unit, spent, epsilon, delta)

    def refusals_of_sum(self, parameters: Parameters, sum_parameters: SumParameters) -> Refusals:
        """Everything for which a phone refuses a secure sum of a phase that it accepted.

        Args:
            parameters: of the phase.
            sum_parameters: what the server proposes for one of its sums.

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
        self, budget: Budget, before: tuple[Expense, ...], new: tuple[Expense, ...]
    ) -> Refusals:
        """Why these expenses, after those before, are more than a budget has."""
        epsilon, delta = getattr(self, budget.epsilon), getattr(self, budget.delta)
        if delta >= 1:  # ε has no limit then (`__post_init__`): whatever is spent fits
            return
        together = before + new
        stated, reached = stated_delta(together), epsilon_at(delta, together)
        if any(each.release.epsilon == math.inf for each in new):  # whatever a larger δ would make
            reached = math.inf  # of it: it is what the phase promises, and what a ledger keeps
        fits = reached <= epsilon or math.isclose(reached, epsilon, rel_tol=_SLACK)
        if fits and stated <= delta:
            return
        over, spent = f"{budget.span.over} per {budget.unit}", ""
        if before:
            spent = f", with the {epsilon_at(delta, before):.6g} already spent"
        # A phase keeps the δ that it states; over phases only what they come to counts.
        if stated > delta and (budget.span is Span.PHASE or not fits):
            added = math.fsum(each.release.epsilon for each in together)
            yield from self._at_most(budget.epsilon, f"ε {over}{spent}", added)
            yield from self._at_most(budget.delta, f"δ {over}", stated)
        if stated <= delta and not fits:
            # Of a whole phase it is what reports and operators are told, at a smaller δ: no less.
            whole = budget.span is Span.PHASE and not before
            told = max(reached, composed_cost(new).epsilon) if whole else reached
            yield from self._at_most(budget.epsilon, f"ε {over}{spent}", told)

    def _at_least(self, parameters: Parameters | SumParameters, *names: str) -> Refusals:
        for name in names:
            rule, value = Rule(f"least_{name}"), getattr(parameters, name)
            limit = getattr(self, rule)
            # Written so that not-a-number is refused.
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
    """Why a phone whose embeddings are of this encoder refuses a phase that is about others.

    Args:
        parameters: what the server proposes.
        name: of the phone's encoder.
        dimensions: of its embeddings.
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
    """Everything for which a default phone refuses a phase.

    That is a phone with the default limits, the default encoder and an empty ledger.

    Args:
        parameters: of a phase that can run, see `Parameters.check_feasible`.
    """
    limits, plan = Limits(), parameters.plan()
    yield from refusals_of_encoder(parameters, DEFAULT_ENCODER, DIMENSIONS)
    yield from limits.refusals_of_phase(parameters, Ledger(), date.min)
    for part in plan.parts:
        if isinstance(part, SecureSum):
            proposed = parameters.sum_parameters(part, (1,))
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
