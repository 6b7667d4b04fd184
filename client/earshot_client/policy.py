"""The policy of a phone: it checks every request of a server and refuses by name.

A phase whose noise is too small, whose crowd is too thin or whose secure sum is too weak gets no
answer, whoever asks. The limits and their defaults are published (`earshot_protocol`'s
`phases.acceptance`), so that operators know before they start a phase what phones refuse.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date

from earshot_protocol.errors import RefusedError, WrongStateError
from earshot_protocol.phases.acceptance import Limits, Refusals
from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.privacy.accounting import Expense
from earshot_protocol.privacy.ledger import Ledger
from earshot_protocol.rules import Rule
from earshot_protocol.secure_sum.parameters import SumParameters


@dataclass(frozen=True)
class Policy(Limits):
    """The limits that this phone keeps, see `Limits`, and whether it names the one it refuses by.

    Attributes:
        tell_refusals: Whether the server is told the name of the rule by which this phone refuses a
            phase, once, and nothing else; so operators learn why their phases fail.

    Raises:
        InvalidParametersError: A limit is negative or not a number.
    """

    tell_refusals: bool = True

    def check_phase(
        self, parameters: Parameters, ledger: Ledger, today: date, recordings: int = 0
    ) -> None:
        """Refuse a phase before anything is released in it.

        Args:
            parameters: Parameters that the server proposes.
            ledger: Everything that this phone ever released.
            today: Present day, in UTC.
            recordings: Number of recordings that this phone holds.

        Raises:
            RefusedError: The phase breaks a rule; the message names it, the value and what would be
                accepted.
        """
        _raise_first(self.refusals_of_phase(parameters, ledger, today, recordings))

    def check_release(
        self, phase: bytes, expenses: Sequence[Expense], ledger: Ledger, today: date
    ) -> None:
        """Refuse to release more than is left, whatever was agreed to when the phase began.

        Args:
            phase: Phase in which the release would be made.
            expenses: Costs of the release, in every unit.
            ledger: Everything that this phone ever released.
            today: Present day, in UTC.

        Raises:
            RefusedError: The release breaks a rule; the message names it, the value and what would
                be accepted.
        """
        _raise_first(self.refusals_of_cost(expenses, ledger, today, phase))

    def check_sum(self, parameters: Parameters, sum_parameters: SumParameters) -> None:
        """Refuse a secure sum that is weaker than the phase or this policy asks for.

        Args:
            parameters: Parameters of the phase, accepted by `check_phase`.
            sum_parameters: Parameters that the server proposes for one of its sums.

        Raises:
            RefusedError: The sum breaks a rule; the message names it, the value and what would be
                accepted.
        """
        _raise_first(self.refusals_of_sum(parameters, sum_parameters))


def check_unreleased(ledger: Ledger, phase: bytes, steps: Collection[str]) -> None:
    """Refuse to release anything twice.

    Args:
        ledger: Everything that this phone ever released.
        phase: Phase in which the release would be made.
        steps: Steps of the phase, by name.

    Raises:
        RefusedError: One of the steps is in the ledger.
    """
    try:
        ledger.check_unreleased(phase, steps)
    except WrongStateError as error:
        raise RefusedError(str(error), Rule.REPEATED) from error


def _raise_first(refusals: Refusals) -> None:
    for refused in refusals:
        raise refused
