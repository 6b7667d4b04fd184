"""A statistics phase counts the contacts in each environment (thesis, section 7.2)."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Annotated

import msgspec

from earshot_protocol import checks
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.overriding import override
from earshot_protocol.phases.parameters import (
    Choices,
    Embeddings,
    Kind,
    LabelName,
    Parameters,
    PerLabel,
    Releases,
)
from earshot_protocol.phases.places import AgreedPlaces
from earshot_protocol.phases.plan import Outcome, Plan, SecureSum, SumPartTask
from earshot_protocol.privacy.mechanisms import BallotSum
from earshot_protocol.privacy.significance import PValue, are_clear
from earshot_protocol.summations import Opening

HISTOGRAM = "histogram"
"""Name of the only part of the plan, and of its private step."""

LARGEST_CONTACTS = 10_000
LARGEST_WINDOW = timedelta(days=366)


class StatisticsParameters(Parameters, frozen=True, kw_only=True, tag="statistics"):
    """Everything that phones and server must agree on before a statistics phase.

    Attributes:
        phones: Number of phones that are enrolled, n.
        labels: Equivalence classes of environments that are counted, L.
        contacts: Most contacts that a phone counts, its newest ones.
        since: First day, in UTC, on which a counted contact was made; None, with `until`, to count
            contacts of every day, known or not.
        until: Day after the last one.
        places: Places of which the nearest names an unlabelled contact; None to leave unlabelled
            contacts out.
        epsilon: Value of ε for the histogram, in the recording unit.
        dropout: Largest fraction of phones that may vanish, ρ.
        corrupted: Largest fraction of phones that an adversary may control, γ.
        step_seconds: Time for which a step waits for phones, in seconds.
        noise_crowd: Most phones whose noise a sum counts on.
    """

    contacts: int
    epsilon: float
    since: date | None = None
    until: date | None = None
    places: AgreedPlaces | None = None

    @property
    @override
    def reads(self) -> Embeddings | None:
        """Embeddings of the places, if there are any."""
        places = self.places
        return None if places is None else Embeddings(places.encoder, places.centroids.columns)

    def counts(self, day: date | None) -> bool:
        """Return whether a contact of that day, or of an unknown one, lies in the window."""
        if self.since is None or self.until is None:
            return True
        return day is not None and self.since <= day < self.until

    @override
    def plan(self) -> Plan:
        """Return the plan of one histogram.

        A phone counts its newest contacts only, so one more recording may displace another: the
        histogram moves by at most 2, and by `contacts` with the whole phone, as a ballot does.

        No phone counts a recording in two histograms, but that does not make them independent: the
        one that was displaced from this histogram may displace yet another from the next. Whether a
        recording is counted depends on its own day and name and on how many newer ones are left
        over, so with and without a recording what is left over differs by at most one recording
        after every phase. Hence each histogram moves by at most 2, and their costs add up.
        """
        mechanism = BallotSum(
            self.epsilon, self.contacts, self.noise_survivors, largest_entry=self.contacts
        )
        return Plan((SecureSum(HISTOGRAM, CountContacts, mechanism),))

    @override
    def check(self) -> None:
        super().check()
        checks.whole("contacts", self.contacts, 1, LARGEST_CONTACTS)
        checks.epsilon("epsilon", self.epsilon)
        _check_window(self.since, self.until)
        if self.places is not None:
            self.places.check(len(self.labels))


def _check_window(since: date | None, until: date | None) -> None:
    if since is None and until is None:
        return
    # To Python, a datetime is a date as well.
    if type(since) is not date or type(until) is not date:
        raise InvalidParametersError(
            f"since={since}, until={until}: give two dates for a window, or neither"
        )
    if not timedelta() < until - since <= LARGEST_WINDOW:
        raise InvalidParametersError(
            f"since={since}, until={until}: a window must begin before it ends and last at most "
            f"{LARGEST_WINDOW.days} days"
        )


class CountContacts(SumPartTask, frozen=True, kw_only=True, tag="count-contacts"):
    """Thesis 7.2: count your contacts in each environment; opens the histogram's secure sum.

    `choices` are those of the phase's labels (`Parameters.agreed_hierarchy`).
    """

    parameters: StatisticsParameters
    choices: Choices = ()
    opening: Opening = msgspec.field(name="advertise")


class Statistics(Outcome, frozen=True, kw_only=True, tag="statistics"):
    """The private histogram of contacts over environments, and the privacy spent.

    Attributes:
        label_names: Labels of the phase, L.
        contacts: Noisy sum of the contacts with each label.
        p_values: P-value of each label's contacts; where it is large, they may be noise
            (`count_p_values` over all labels).
        since: First day of the parameters.
        until: Day after the last one, of the parameters.
        privacy: Privacy that the phase spent.
    """

    label_names: Annotated[tuple[LabelName, ...], PerLabel]
    contacts: Annotated[tuple[int, ...], PerLabel]
    p_values: Annotated[tuple[PValue, ...], PerLabel]
    since: date | None = None
    until: date | None = None
    privacy: Releases

    @property
    def clear(self) -> tuple[bool, ...]:
        """Whether the contacts with each label stand clear of the noise."""
        return are_clear(self.p_values, len(self.contacts))


STATISTICS = Kind(StatisticsParameters, (CountContacts,), (), Statistics)
