"""The phase that counts the contacts of a week, and the noise of its sum."""

from __future__ import annotations

import math

from earshot_protocol.phases.plan import SecureSum
from earshot_protocol.phases.statistics import StatisticsParameters
from earshot_protocol.privacy.accounting import TOLD_DELTA
from earshot_server.campaigns.campaign import Campaign
from earshot_server.phases.statistics import steps


def week_parameters(
    campaign: Campaign, contacts: int, noise: float, step_seconds: float, confusion: bool = False
) -> StatisticsParameters:
    """Return the parameters of a phase that counts the contacts of one week.

    A sum that also has a confusion matrix sends the counts at 1/√2 of their length. Its noise is
    smaller by as much, so that counts of all weeks have the same noise, and it costs as much as two
    weeks.

    Args:
        campaign: The campaign.
        contacts: Length to which a phone's counts are projected, B.
        noise: Noise multiplier of a sum of counts alone.
        step_seconds: Time for which a step waits for phones, in seconds.
        confusion: Whether the sum also has a confusion matrix.
    """
    return StatisticsParameters(
        phones=campaign.expected.phones,
        labels=campaign.labels,
        dropout=campaign.sum.dropout,
        corrupted=campaign.sum.corrupted,
        step_seconds=step_seconds,
        summation=campaign.sum.summation,
        contacts=contacts,
        noise=noise / math.sqrt(2) if confusion else noise,
        confusion=confusion,
        delta=TOLD_DELTA,
    )


def histogram(week: StatisticsParameters) -> SecureSum:
    """Return the only part of a week's plan."""
    return next(part for part in week.plan().parts if isinstance(part, SecureSum))


def entry_deviation(week: StatisticsParameters) -> float:
    """Return the standard deviation of the noise on an entry, in contacts, if all phones stay."""
    return histogram(week).mechanism.noise(week.phones).deviation / steps(week)
