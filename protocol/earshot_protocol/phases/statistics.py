"""A statistics phase counts the contacts in each environment (thesis, section 7.2)."""

from __future__ import annotations

import operator
from datetime import date, timedelta
from typing import Annotated

import msgspec
from msgspec import Meta

from earshot_protocol import checks
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.overriding import override
from earshot_protocol.phases.parameters import (
    LARGEST_CROWD,
    LARGEST_LABELS,
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
from earshot_protocol.privacy.mechanisms import VectorSum
from earshot_protocol.privacy.significance import PValue, are_clear
from earshot_protocol.summations import Opening
from earshot_protocol.voting.vectors import moved_by_count, moved_with_confusion

HISTOGRAM = "histogram"
"""Name of the only part of the plan, and of its private step."""

LARGEST_CONTACTS = 10_000
LARGEST_WINDOW = timedelta(days=366)
LARGEST_COUNT = 1e15
"""Number far above any noisy count of contacts."""
Count = Annotated[float, Meta(ge=-LARGEST_COUNT, le=LARGEST_COUNT)]


class StatisticsParameters(Parameters, frozen=True, kw_only=True, tag="statistics"):
    """Everything that phones and server must agree on before a statistics phase.

    Attributes:
        phones: Number of phones that are enrolled, n.
        labels: Equivalence classes of environments that are counted, L.
        contacts: Length to which a phone projects its counts, B: one phone counts for at most that
            many contacts of one environment.
        noise: Noise multiplier of the sum: the noise's standard deviation over the most that one
            phone adds.
        since: First day, in UTC, on which a counted contact was made; None, with `until`, to count
            contacts of every day, known or not.
        until: Day after the last one.
        places: Places of which the nearest names an unlabelled contact; None to leave unlabelled
            contacts without a name.
        confusion: Whether the sum also counts a phone's labelled recordings, of any day, by label
            and by the name that the places give them.
        delta: Value of δ for which costs are stated.
        dropout: Largest fraction of phones that may vanish, ρ.
        corrupted: Largest fraction of phones that an adversary may control, γ.
        step_seconds: Time for which a step waits for phones, in seconds.
        noise_crowd: Most phones whose noise a sum counts on.
    """

    contacts: int
    noise: float
    since: date | None = None
    until: date | None = None
    places: AgreedPlaces | None = None
    confusion: bool = False
    delta: float = 1e-6

    @property
    def count_entries(self) -> int:
        """Entries of a phone's counts: labelled, named and unknown contacts, 2L + 1."""
        return 2 * len(self.labels) + 1

    @property
    def entries(self) -> int:
        """Entries of the sum: the counts, and with a confusion matrix its L² entries behind."""
        return self.count_entries + self.confusion * len(self.labels) ** 2

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

        Every contact of the window is in one entry of one phone's counts, and no phone counts it in
        two histograms: all contacts of a window are marked with the histogram that counts them.
        Whether a contact is counted depends on its own day and on the phases that the phone was in,
        not on other contacts, so one recording moves one histogram. A confusion matrix marks
        nothing: its recordings are also counted in the histograms of their days, and each phase
        costs what it says.
        """
        moved = moved_with_confusion if self.confusion else moved_by_count
        mechanism = VectorSum(
            self.noise,
            self.entries,
            self.delta,
            self.noise_survivors,
            moved(self.entries, self.contacts),
        )
        return Plan((SecureSum(HISTOGRAM, CountContacts, mechanism),))

    @override
    def check(self) -> None:
        super().check()
        checks.whole("contacts", self.contacts, 1, LARGEST_CONTACTS)
        checks.noise("noise", self.noise)
        checks.probability("delta", self.delta)
        _check_window(self.since, self.until)
        if self.places is not None:
            self.places.check(len(self.labels))
        elif self.confusion:
            raise InvalidParametersError("confusion=True: needs places, whose names it counts")


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

    The counts are those of labelled contacts by label, of unlabelled ones by the label of the
    nearest of the phase's places, and of all others; then the confusion matrix of labels and these
    names, if the phase asks for one.

    `choices` are those of the phase's labels (`Parameters.agreed_hierarchy`).
    """

    parameters: StatisticsParameters
    choices: Choices = ()
    opening: Opening = msgspec.field(name="advertise")


class Statistics(Outcome, frozen=True, kw_only=True, tag="statistics"):
    """The private histogram of contacts over environments, and the privacy spent.

    Every contact is counted once: under its label, else under the label of the nearest of the
    phase's places, else as unknown. Counts are noisy, so they may be negative. Those of a phone
    with many contacts are scaled down to the length `contacts`.

    Attributes:
        label_names: Labels of the phase, L.
        labelled: Contacts with each label.
        named: Contacts without a label that the phase's places name, by label.
        unknown: Contacts with neither.
        confusion: Labelled recordings by label and by the name that the phase's places give them,
            label by label, each phone's over the length of its number of recordings by label; empty
            if the phase did not ask. The standard deviation of its noise is `deviation` /
            `contacts`.
        labelled_p_values: P-value of each number of `labelled`; where it is large, the number may
            be noise (`count_p_values` over all 2L + 1).
        named_p_values: Likewise, of each number of `named`.
        unknown_p_value: Likewise, of `unknown`.
        deviation: Standard deviation of the noise on each number, in contacts.
        contacts: Length to which a phone projected its counts, B.
        phones: Number of phones whose counts were added up.
        since: First day of the parameters.
        until: Day after the last one, of the parameters.
        privacy: Privacy that the phase spent.
    """

    label_names: Annotated[tuple[LabelName, ...], PerLabel]
    labelled: Annotated[tuple[Count, ...], PerLabel]
    named: Annotated[tuple[Count, ...], PerLabel]
    unknown: Count
    confusion: Annotated[tuple[Count, ...], Meta(max_length=LARGEST_LABELS**2)] = ()
    labelled_p_values: Annotated[tuple[PValue, ...], PerLabel]
    named_p_values: Annotated[tuple[PValue, ...], PerLabel]
    unknown_p_value: PValue
    deviation: Annotated[float, Meta(ge=0, le=LARGEST_COUNT)]
    contacts: Annotated[int, Meta(ge=1, le=LARGEST_CONTACTS)]
    phones: Annotated[int, Meta(ge=0, le=LARGEST_CROWD)]
    since: date | None = None
    until: date | None = None
    privacy: Releases

    @property
    def assigned(self) -> tuple[float, ...]:
        """Contacts assigned to each label: labelled ones and named ones together."""
        return tuple(map(operator.add, self.labelled, self.named))

    @property
    def clear(self) -> tuple[bool, ...]:
        """Whether the labelled or the named contacts of each label stand clear of the noise."""
        labels = len(self.label_names)
        either = (are_clear(each, labels) for each in (self.labelled_p_values, self.named_p_values))
        return tuple(map(any, zip(*either, strict=True)))


STATISTICS = Kind(StatisticsParameters, (CountContacts,), (), Statistics)
