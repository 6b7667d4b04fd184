"""Server's part in a statistics phase (thesis, section 7.2)."""

from __future__ import annotations

from earshot_protocol.overriding import override
from earshot_protocol.phases.plan import SumPartTask
from earshot_protocol.phases.statistics import CountContacts, Statistics, StatisticsParameters
from earshot_protocol.privacy.significance import count_p_values
from earshot_protocol.summations import Opening
from earshot_server.phases.expected import Expected, counts
from earshot_server.phases.snapshot import Snapshot, Totals


class StatisticsPhase(Snapshot, kw_only=True):
    """Statistics phase at the start of a step.

    Attributes:
        parameters: Parameters of the phase.
        contacts: Histogram of contacts, noise included.
        p_values: P-values of its bars.
    """

    parameters: StatisticsParameters
    contacts: tuple[int, ...] = ()
    p_values: tuple[float, ...] = ()

    @override
    @staticmethod
    def expected(parameters: StatisticsParameters, part: str) -> Expected:
        """Return the expected inputs: every contact is a vote for a label."""
        labels, contacts = len(parameters.labels), parameters.contacts
        return Expected(
            shape=(labels,),
            places=labels,
            votes=contacts,
            most=contacts,
            hurdle=counts(labels),
            verb="count",
        )

    @override
    def shape(self, part: str) -> tuple[int, ...]:
        return (len(self.parameters.labels),)

    @override
    def sum_task(self, part: str, opening: Opening) -> SumPartTask:
        return CountContacts(
            phase=self.phase,
            parameters=self.parameters,
            choices=self.choices,
            opening=opening,
        )

    @override
    def take_total(self, part: str, total: Totals) -> None:
        self.contacts = tuple(total.tolist())
        self.p_values = count_p_values(total, self.noise(part))

    @override
    def published(self) -> Statistics:
        return Statistics(
            phase=self.phase,
            label_names=self.parameters.labels,
            contacts=self.contacts,
            p_values=self.p_values,
            since=self.parameters.since,
            until=self.parameters.until,
            privacy=self.parameters.plan().releases(),
        )
