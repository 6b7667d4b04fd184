"""What a phone accepts: the published limits, and what they refuse.

The server proposes, the phone decides. Both derive here whether a phase is acceptable: a phone
with its own limits before it answers, an operator with the defaults before a phase is started.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields

from earshot_protocol.checks import between
from earshot_protocol.encoder_file import DIMENSIONS
from earshot_protocol.errors import InvalidParametersError, RefusedError
from earshot_protocol.phases.parameters import NOISE_CROWD, Parameters
from earshot_protocol.phases.plan import SecureSum
from earshot_protocol.privacy.mechanisms import Cost, Unit
from earshot_protocol.rules import Rule
from earshot_protocol.secure_sum.parameters import SumParameters
from earshot_protocol.shipped_encoders import DEFAULT_ENCODER

_SLACK = 1e-9
"""Relative room for rounding: thirty times 0.1 is at most 3."""
_NOTHING = Cost(0.0, 0.0)

Refusals = Iterator[RefusedError]


@dataclass(frozen=True)
class Limits:
    """The limits that a phone keeps; each is named in the refusal that it causes.

    ε and δ are those of the recording unit, added up by basic composition.

    Attributes:
        least_phones: phones of a phase, at least.
        largest_phones: phones of a phase, at most: a claimed crowd hides what a real one would.
        largest_noise_crowd: phones on whose noise a sum counts, at most: every phone adds at least
            one part in so many of it, whatever crowd it is told of.
        largest_epsilon: ε that one phase may spend.
        largest_delta: δ that one phase may spend.
        largest_lifetime_epsilon: ε that all phases together may spend.
        largest_lifetime_delta: δ that all phases together may spend.
        largest_dropout: ρ, at most; every phone adds noise for those that may vanish.
        least_corrupted: γ, the fraction of corrupted phones to be safe against, at least.
        least_threshold: shares that must meet before a secret of this phone's is known, at least;
            with 1 every neighbour would know it.
        least_statistical_security: σ of a secure sum, in bits, at least.
        least_correctness: η of a secure sum, in bits, at least.

    Raises:
        InvalidParametersError: a limit is negative or not a number.
    """

    least_phones: int = 100
    largest_phones: int = 10**7
    largest_noise_crowd: int = NOISE_CROWD
    largest_epsilon: float = 3.0
    largest_delta: float = 1e-5
    largest_lifetime_epsilon: float = 100.0
    largest_lifetime_delta: float = 1e-3
    largest_dropout: float = 0.3
    least_corrupted: float = 0.05
    least_threshold: int = 2
    least_statistical_security: int = 40
    least_correctness: int = 20

    def __post_init__(self) -> None:
        for limit in fields(Limits):
            between(limit.name, getattr(self, limit.name), 0)

    def refusals_of_phase(
        self, parameters: Parameters, planned: Mapping[Unit, Cost], spent: Mapping[Unit, Cost]
    ) -> Refusals:
        """Everything for which a phone with these limits refuses a phase.

        Args:
            parameters: what the server proposes.
            planned: what the phone would spend in the phase.
            spent: what it has spent in its life.

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
        cost, before = planned[Unit.RECORDING], spent.get(Unit.RECORDING, _NOTHING)
        yield from self._at_most(Rule.LARGEST_EPSILON, "ε of the phase", cost.epsilon)
        yield from self._at_most(Rule.LARGEST_DELTA, "δ of the phase", cost.delta)
        yield from self._at_most(
            Rule.LARGEST_LIFETIME_EPSILON,
            f"ε with the {before.epsilon:g} already spent",
            before.epsilon + cost.epsilon,
        )
        yield from self._at_most(
            Rule.LARGEST_LIFETIME_DELTA,
            f"δ with the {before.delta:g} already spent",
            before.delta + cost.delta,
        )

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
            yield RefusedError(f"{rule}: {what}={value}; at most {limit} is accepted", rule)


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
            f"encoder: the phase clusters embeddings of '{reads.encoder}'; this phone's are of "
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
    yield from limits.refusals_of_phase(parameters, plan.total(), {})
    for part in plan.parts:
        if isinstance(part, SecureSum):
            proposed = parameters.sum_parameters(part, (1,))
            yield from limits.refusals_of_sum(parameters, proposed)
            return  # the others differ in their shapes and bounds alone


def _why_invalid(
    rule: Rule, what: str, parameters: Parameters | SumParameters
) -> RefusedError | None:
    try:
        parameters.check()
    except InvalidParametersError as error:
        return RefusedError(f"the {what}'s parameters are not valid: {error}", rule)
    return None
