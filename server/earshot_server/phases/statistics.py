"""Server's part in a statistics phase (thesis, section 7.2)."""

from __future__ import annotations

import math

from earshot_protocol.overriding import override
from earshot_protocol.phases.plan import SumPartTask
from earshot_protocol.phases.statistics import (
    HISTOGRAM,
    CountContacts,
    Statistics,
    StatisticsParameters,
)
from earshot_protocol.privacy.significance import count_p_values
from earshot_protocol.summations import Opening
from earshot_protocol.voting.vectors import unit_steps
from earshot_server.phases.expected import Expected, counts
from earshot_server.phases.snapshot import Snapshot, Totals


class StatisticsPhase(Snapshot, kw_only=True):
    """Statistics phase at the start of a step.

    Attributes:
        parameters: Parameters of the phase.
        total: Sum of phones' vectors, in steps, noise included.
        p_values: P-values of the counts among its entries.
    """

    parameters: StatisticsParameters
    total: tuple[int, ...] = ()
    p_values: tuple[float, ...] = ()

    @override
    @staticmethod
    def expected(parameters: StatisticsParameters, part: str) -> Expected:
        """Return the expected inputs: every contact is a vote for a label."""
        labels, contacts = len(parameters.labels), parameters.contacts
        return Expected(
            shape=(parameters.entries,),
            places=labels,
            votes=contacts,
            most=contacts,
            unit=steps(parameters),
            spread=math.sqrt(parameters.count_entries),
            hurdle=counts(parameters.count_entries),
            honest="contacts of honest phones",
            provided="if every phone has as many as it may count",
            verb="count",
        )

    @override
    def shape(self, part: str) -> tuple[int, ...]:
        return (self.parameters.entries,)

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
        self.total = tuple(total.tolist())
        counts = total[: self.parameters.count_entries]
        self.p_values = count_p_values(counts, self.noise(part))

    @override
    def published(self) -> Statistics:
        agreed, step = self.parameters, steps(self.parameters)
        labels = len(agreed.labels)
        counts = agreed.count_entries
        contacts = tuple(each / step for each in self.total[:counts])
        return Statistics(
            phase=self.phase,
            label_names=agreed.labels,
            labelled=contacts[:labels],
            named=contacts[labels:-1],
            unknown=contacts[-1],
            # A phone's one labelled recording counts as many steps as B contacts.
            confusion=tuple(each / step / agreed.contacts for each in self.total[counts:]),
            labelled_p_values=self.p_values[:labels],
            named_p_values=self.p_values[labels:-1],
            unknown_p_value=self.p_values[-1],
            deviation=self.noise(HISTOGRAM).deviation / step,
            contacts=agreed.contacts,
            phones=self.inputs[HISTOGRAM],
            since=agreed.since,
            until=agreed.until,
            privacy=agreed.plan().releases(),
        )


def steps(parameters: StatisticsParameters) -> float:
    """Return the steps of the sum in one contact that is not scaled down."""
    length = unit_steps(parameters.entries) / (math.sqrt(2) if parameters.confusion else 1)
    return length / parameters.contacts
