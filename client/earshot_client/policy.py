"""What this phone agrees to: it checks whatever a server asks for and refuses by name.

The server proposes, the phone decides: a phase whose noise is too small, whose crowd is too thin
or whose secure sum is too weak gets no answer, whoever asks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields

from earshot_protocol.checks import between
from earshot_protocol.errors import InvalidParametersError, RefusedError
from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.privacy.accounting import Release, total
from earshot_protocol.privacy.ledger import Ledger
from earshot_protocol.privacy.mechanisms import Unit
from earshot_protocol.secure_sum.parameters import SumParameters

_SLACK = 1e-9
"""Relative room for rounding: thirty times 0.1 is at most 3."""


@dataclass(frozen=True)
class Policy:
    """The limits that this phone keeps; each is named in the refusal that it causes.

    ε and δ are those of the recording unit, added up by basic composition.

    Attributes:
        least_phones: phones of a phase, at least.
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
        for limit in fields(self):
            between(limit.name, getattr(self, limit.name), 0)

    def check_phase(
        self, parameters: Parameters, planned: Sequence[Release], ledger: Ledger
    ) -> None:
        """Refuse a phase before anything of it is released.

        Args:
            parameters: what the server proposes.
            planned: everything that this phone would release in the phase, as it computed itself.
            ledger: everything that this phone ever released.

        Raises:
            RefusedError: names the rule, the value and what would be accepted.
        """
        _check_valid("phase", parameters)
        self._at_least(parameters, "phones")
        self._at_most("largest_dropout", "dropout", parameters.dropout)
        self._at_least(parameters, "corrupted")
        if parameters.honest_survivors < 1:
            raise RefusedError(
                f"dropout={parameters.dropout} and corrupted={parameters.corrupted} leave no "
                "honest phone to add noise; together they must stay below 1"
            )
        cost, spent = total(planned)[Unit.RECORDING], ledger.spent()[Unit.RECORDING]
        self._at_most("largest_epsilon", "ε of the phase", cost.epsilon)
        self._at_most("largest_delta", "δ of the phase", cost.delta)
        self._at_most(
            "largest_lifetime_epsilon",
            f"ε with the {spent.epsilon:g} already spent",
            spent.epsilon + cost.epsilon,
        )
        self._at_most(
            "largest_lifetime_delta",
            f"δ with the {spent.delta:g} already spent",
            spent.delta + cost.delta,
        )

    def check_sum(self, parameters: Parameters, sum_parameters: SumParameters) -> None:
        """Refuse a secure sum that is weaker than the phase or this policy asks for.

        Args:
            parameters: of the phase, accepted by `check_phase`.
            sum_parameters: what the server proposes for one of its sums.

        Raises:
            RefusedError: names the rule, the value and what would be accepted.
        """
        for name in ("phones", "dropout", "corrupted"):
            value, agreed = getattr(sum_parameters, name), getattr(parameters, name)
            if value != agreed:
                raise RefusedError(f"the sum has {name}={value}; its phase agreed on {agreed}")
        self._at_least(sum_parameters, "statistical_security", "correctness", "threshold")
        _check_valid("sum", sum_parameters)

    def _at_least(self, parameters: Parameters | SumParameters, *names: str) -> None:
        for name in names:
            value, limit = getattr(parameters, name), getattr(self, f"least_{name}")
            # Written so that not-a-number is refused.
            if not value >= limit:
                raise RefusedError(f"least_{name}: {name}={value}; at least {limit} is accepted")

    def _at_most(self, rule: str, what: str, value: float) -> None:
        limit = getattr(self, rule)
        if not (value <= limit or math.isclose(value, limit, rel_tol=_SLACK)):
            raise RefusedError(f"{rule}: {what}={value}; at most {limit} is accepted")


def _check_valid(what: str, parameters: Parameters | SumParameters) -> None:
    try:
        parameters.check()
    except InvalidParametersError as error:
        raise RefusedError(f"the {what}'s parameters are not valid: {error}") from error
