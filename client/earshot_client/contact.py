"""A contact in an exposure-notification app, and whether the phone records because of it.

Names in quotes are those of Google's and Apple's Exposure Notification API, version 2 (exposure
windows). A *critical* contact (thesis, chapters 1 and 4.1) was near and long enough for an
infection, by the app's own risk score.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, date, datetime

from earshot_protocol.errors import InvalidInputError

CRITICAL_MINUTES = 15.0
"""Default number of weighted minutes from which on a contact is critical: those of a close contact
with SARS-CoV-2 as public health authorities defined it, at a risk of 1."""


@dataclass(frozen=True)
class Contact:
    """A contact, as far as it matters to a phone, which keeps only its day.

    Attributes:
        began: Time at which the contact began, with its time zone.
        minutes: Duration so far: the sum of "secondsSinceLastScan" over the "ScanInstances" of an
            "ExposureWindow", divided by 60.
        risk: Weight of a minute: the product of the weights of attenuation, infectiousness and
            report type, each 1 for an ordinary near contact and 0 for one that does not matter.
        consent: Whether the user wants this phone to listen in such a moment.

    Raises:
        InvalidInputError: The time has no zone, or the duration or risk is not a finite number of
            at least 0.
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
                raise InvalidInputError(f"{name}={value}: must be a finite number of at least 0")

    @property
    def weighted_minutes(self) -> float:
        """Score of the contact: "weightedDurationSum", in minutes."""
        return self.minutes * self.risk

    @property
    def day(self) -> date:
        """Day on which the contact began, in UTC, as in "dateMillisSinceEpoch"."""
        return self.began.astimezone(UTC).date()

    def lets_listen(self, least: float = CRITICAL_MINUTES) -> bool:
        """Return whether the user consents and the contact has `least` weighted minutes."""
        return self.consent is True and self.weighted_minutes >= least
