"""The policy of a phone: it checks every request of a server, and names the rule of a refusal.

A phase with too little noise, too few phones or too weak a secure sum gets no answer. The limits
and their defaults are public (`earshot_protocol`'s `phases.acceptance`), so that operators know
before they start a phase what phones refuse.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date

from earshot_protocol.errors import RefusedError, WrongStateError
from earshot_protocol.phases.acceptance import Limits, Refusals
from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.privacy.accounting import Expense
from earshot_protocol.privacy.ledger import Ledger
from earshot_protocol.rules import Rule
from earshot_protocol.summations import AnySumParameters, Opening
from earshot_protocol.two_operators.acceptance import refusals_of_offer
from earshot_protocol.two_operators.messages import SendReport
from earshot_protocol.two_operators.parameters import TwoOperatorParameters


@dataclass(frozen=True)
class Policy(Limits):
    """The limits of this phone (see `Limits`), and whether it reports which one was exceeded.

    Attributes:
        tell_refusals: Whether the server is sent the name of the rule by which this phone refuses a
            phase, once, and nothing else; so operators learn why their phases fail.
        leaders: Identities (Ed25519 public keys, 32 bytes) of servers that this phone's app lets
            lead sums by two operators.
        helpers: Identities of helpers that the app names, each of another organization than any
            leader. By default none, so that sums by two operators are refused.

    Raises:
        InvalidParametersError: A limit is negative or not a number, or a limit of ε has a δ of 1 or
            more.
    """

    tell_refusals: bool = True
    leaders: tuple[bytes, ...] = ()
    helpers: tuple[bytes, ...] = ()

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
        """Refuse to release more than the budgets have left, even in an accepted phase.

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

    def check_opening(
        self,
        parameters: Parameters,
        part: str,
        opening: Opening,
        expected: AnySumParameters,
        told: bytes,
        now: float,
    ) -> None:
        """Refuse a sum that differs from the agreed one, or is weaker than this policy requires.

        Args:
            parameters: Parameters of the phase, accepted by `check_phase`.
            part: Name of the part that is a sum.
            opening: Task that opens it.
            expected: Parameters of the sum as the phone derives them from the phase.
            told: Bytes that must be the same for all phones of the sum.
            now: Present time by the phone's clock, in seconds since 1970.

        Raises:
            RefusedError: The sum breaks a rule; the message names it, the value and what would be
                accepted.
        """
        if isinstance(opening, SendReport) and isinstance(expected, TwoOperatorParameters):
            task = hashlib.sha256(told).digest()
            _raise_first(
                refusals_of_offer(opening, expected, task, self.leaders, self.helpers, now)
            )
            return
        if isinstance(opening, SendReport):
            raise RefusedError("a sum by two operators in a phase that has none", Rule.SUM)
        _raise_first(self.refusals_of_sum(parameters, opening.parameters))
        if opening.parameters != expected:
            raise RefusedError(
                f"the parameters of the {part}'s secure sum are not those expected", Rule.SUM
            )


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
