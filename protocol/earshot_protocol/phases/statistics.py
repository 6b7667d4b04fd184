"""A statistics phase counts the contacts in each environment (thesis, section 7.2)."""

from __future__ import annotations

from typing import Annotated

from earshot_protocol import checks
from earshot_protocol.phases.parameters import (
    Kind,
    LabelName,
    Parameters,
    PerLabel,
    Releases,
)
from earshot_protocol.phases.plan import Outcome, Plan, SecureSum, SumPartTask
from earshot_protocol.privacy.mechanisms import BallotSum
from earshot_protocol.privacy.significance import PValue, are_clear
from earshot_protocol.secure_sum.messages import AdvertiseKeys

HISTOGRAM = "histogram"
"""The only part of the plan, and its private step."""

LARGEST_CONTACTS = 10_000


class StatisticsParameters(Parameters, frozen=True, kw_only=True, tag="statistics"):
    """Everything that phones and server must agree on before a statistics phase.

    Attributes:
        phones: n, the phones that are enrolled.
        labels: L, the equivalence classes of environments that are counted.
        contacts: the most contacts that a phone counts, its newest ones.
        epsilon: ε of the histogram, in the recording unit.
        dropout: ρ, the largest fraction of phones that may vanish.
        corrupted: γ, the largest fraction of phones that an adversary may control.
        step_seconds: how long a step waits for phones, in seconds.
        noise_crowd: the most phones on whose noise a sum counts.
    """

    contacts: int
    epsilon: float

    def plan(self) -> Plan:
        """One histogram.

        A phone counts its newest contacts only, so one more recording may displace another: the
        histogram moves by at most 2, and by `contacts` with the whole phone, as a ballot does.
        """
        mechanism = BallotSum(self.epsilon, self.contacts, self.noise_survivors)
        return Plan((SecureSum(HISTOGRAM, CountContacts, mechanism),))

    def check(self) -> None:
        """Refuse parameters under which no phase should run.

        Raises:
            InvalidParametersError: says which value is wrong and what would be accepted.
        """
        super().check()
        checks.whole("contacts", self.contacts, 1, LARGEST_CONTACTS)
        checks.epsilon("epsilon", self.epsilon)


class CountContacts(SumPartTask, frozen=True, kw_only=True, tag="count-contacts"):
    """Thesis 7.2: count your contacts in each environment; opens the histogram's secure sum."""

    parameters: StatisticsParameters
    advertise: AdvertiseKeys


class Statistics(Outcome, frozen=True, kw_only=True, tag="statistics"):
    """The private histogram of contacts over environments, and the privacy spent.

    Attributes:
        label_names: L, of the phase.
        contacts: per label, the noisy sum.
        p_values: per label, whether its contacts are noise (`count_p_values` over all labels);
            empty where a former release published them and did not test.
        privacy: spent.
    """

    label_names: Annotated[tuple[LabelName, ...], PerLabel]
    contacts: Annotated[tuple[int, ...], PerLabel]
    p_values: Annotated[tuple[PValue, ...], PerLabel] = ()
    privacy: Releases

    @property
    def clear(self) -> tuple[bool, ...]:
        """Whether the contacts with each label stand clear of the noise."""
        return are_clear(self.p_values, len(self.contacts))


STATISTICS = Kind(StatisticsParameters, (CountContacts,), (), Statistics)
