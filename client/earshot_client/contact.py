"""A contact as an exposure-notification app knows it, and whether a phone listens because of it.

Names in quotes are those of Google's and Apple's Exposure Notification API, version 2 (exposure
windows). A *critical* contact (thesis, chapters 1 and 4.1) was near and long enough for an
infection, as the app's own risk score says.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, date, datetime

from earshot_protocol.errors import InvalidInputError

CRITICAL_MINUTES = 15.0
"""Weighted minutes from which on a contact is critical, unless the app says otherwise: what public
health authorities called a close contact with SARS-CoV-2, at a risk of 1."""


@dataclass(frozen=True)
class Contact:
    """A contact, as far as it matters to a phone; none of it is kept but the day.

    Attributes:
        began: when, with its time zone.
        minutes: how long so far: the sum of "secondsSinceLastScan" over the "ScanInstances" of an
            "ExposureWindow", divided by 60.
        risk: what a minute of it counts: the product of the weights of attenuation, infectiousness
            and report type, each 1 for an ordinary near contact and 0 for one that does not matter.
        consent: whether the user wants this phone to listen in such a moment.

    Raises:
        InvalidInputError: a time without a zone, or a duration or risk that is negative or no
            finite number.
    """

    began: datetime
    minutes: float
    risk: float = 1.0
    consent: bool = False

    def __post_init__(self) -> None:
        if self.began.tzinfo is None:
            raise InvalidInputError("a contact's time needs a time zone")
        for name in ("minutes", "risk"):
            value = getattr(self, name)
            if not (value >= 0 and math.isfinite(value)):
                raise InvalidInputError(f"{name}={value}: a number from 0 up is accepted")

    @property
    def weighted_minutes(self) -> float:
        """The score of a contact: "weightedDurationSum", in minutes."""
        return self.minutes * self.risk

    @property
    def day(self) -> date:
        """On which it began, in UTC, as "dateMillisSinceEpoch" tells it."""
        return self.began.astimezone(UTC).date()

    def lets_listen(self, least: float = CRITICAL_MINUTES) -> bool:
        """Whether it is critical, of so many weighted minutes at least, and the user consents."""
        return self.consent is True and self.weighted_minutes >= least
