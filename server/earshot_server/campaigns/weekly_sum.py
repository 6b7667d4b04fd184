"""The secure sum of a week's contacts, as phones count them: projected to a length B.

A phone scales its counts c to c · min(1, B/‖c‖₂) and sends them as a vector in units of B. The
projection onto a ball brings no two points farther apart, so one recording moves the vector by 1/B
at most, and the whole phone by 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from earshot_protocol.overriding import override
from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.phases.plan import Plan, SecureSum
from earshot_protocol.phases.statistics import HISTOGRAM, CountContacts
from earshot_protocol.privacy.accounting import TOLD_DELTA
from earshot_protocol.privacy.mechanisms import Unit, VectorSum
from earshot_protocol.voting.vectors import unit_steps
from earshot_server.campaigns.campaign import Campaign


@dataclass(frozen=True)
class ProjectedSum(VectorSum):
    """The secure sum of counts that are projected to a length.

    Attributes:
        contacts: Length to which a phone's counts are projected, B.
    """

    contacts: int = 1

    @override
    def sensitivity(self, unit: Unit) -> float:
        """Return the L2 distance between sums of neighbours, in steps: rounding adds √length."""
        if unit is Unit.RECORDING:
            return unit_steps(self.length) / self.contacts + math.sqrt(self.length)
        return super().sensitivity(unit)


class WeekParameters(Parameters, frozen=True, kw_only=True, tag="week"):
    """Parameters of the phase that counts the contacts of a week.

    Attributes:
        contacts: Length to which a phone's counts are projected, B.
        noise: Noise multiplier of the sum.
        entries: Entries of a phone's counts.
    """

    contacts: int
    noise: float
    entries: int

    @override
    def plan(self) -> Plan:
        """Return the plan of one sum."""
        survivors = self.noise_survivors
        mechanism = ProjectedSum(
            self.noise, self.entries, TOLD_DELTA, survivors, contacts=self.contacts
        )
        return Plan((SecureSum(HISTOGRAM, CountContacts, mechanism),))


def week_parameters(
    campaign: Campaign, contacts: int, noise: float, step_seconds: float
) -> WeekParameters:
    """Return the parameters of a phase that counts the contacts of one week.

    Args:
        campaign: The campaign.
        contacts: Length to which a phone's counts are projected, B.
        noise: Noise multiplier of the sum.
        step_seconds: Time for which a step waits for phones, in seconds.
    """
    return WeekParameters(
        phones=campaign.expected.phones,
        labels=campaign.labels,
        dropout=campaign.sum.dropout,
        corrupted=campaign.sum.corrupted,
        step_seconds=step_seconds,
        summation=campaign.sum.summation,
        contacts=contacts,
        noise=noise,
        entries=campaign.entries,
    )


def histogram(week: WeekParameters) -> SecureSum:
    """Return the only part of a week's plan."""
    return next(part for part in week.plan().parts if isinstance(part, SecureSum))


def entry_deviation(week: WeekParameters) -> float:
    """Return the standard deviation of the noise on an entry, in contacts, if all phones stay."""
    steps = unit_steps(week.entries) / week.contacts
    return histogram(week).mechanism.noise(week.phones).deviation / steps
